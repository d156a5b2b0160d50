"""Decide who types a command: a person at a terminal, or an agent.

A face says by which channel its callers come; the command line has no face of its own, because every coding agent has a
shell.  So a command is a person's only where standard input is a terminal and no agent has marked the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.model.records import Channel
from commonplace.model.values import Value

#: What coding agents set for the commands that they start: name, variables, and the values that all of them must have
#: (None: any but an empty one).  Only marks of a running session are in it: variables that people set to configure an
#: agent (CODEX_HOME, CLAUDE_CODE_USE_BEDROCK, AIDER_MODEL) or that an editor gives its terminals (CURSOR_TRACE_ID) also
#: stand in a person's shell.  Collected from the documentation and the sources of the agents, from the tables of
#: am-i-vibing, @vercel/detect-agent, std-env and the JFrog command, and from https://github.com/agentsmd/agents.md/issues/136.
AGENTS: tuple[tuple[str, Mapping[str, str | None]], ...] = (
    ("Claude Code", {"CLAUDECODE": None}),
    ("Claude Code", {"CLAUDE_CODE": None}),
    ("Claude Code", {"CLAUDE_CODE_ENTRYPOINT": None}),
    ("Claude Code", {"CLAUDE_CODE_CHILD_SESSION": None}),
    ("Claude Code", {"CLAUDE_CODE_IS_COWORK": None}),
    ("Claude Code", {"CLAUDE_CODE_REMOTE": "true"}),
    ("Codex", {"CODEX_SANDBOX": None}),
    ("Codex", {"CODEX_SANDBOX_NETWORK_DISABLED": None}),
    ("Codex", {"CODEX_THREAD_ID": None}),
    ("Codex", {"CODEX_CI": None}),
    ("Gemini CLI", {"GEMINI_CLI": None}),
    ("Qwen Code", {"QWEN_CODE": None}),
    ("Cursor", {"CURSOR_AGENT": None}),
    ("Cursor", {"CURSOR_EXTENSION_HOST_ROLE": "agent-exec"}),
    ("Cursor", {"CURSOR_TRACE_ID": None, "PAGER": "head -n 10000 | cat"}),
    ("OpenCode", {"OPENCODE": None}),
    ("OpenCode", {"OPENCODE_SESSION_ID": None}),
    ("GitHub Copilot", {"COPILOT_CLI": None}),
    ("GitHub Copilot", {"COPILOT_AGENT": None}),
    ("GitHub Copilot", {"COPILOT_AGENT_JOB_ID": None}),
    ("GitHub Copilot", {"COPILOT_AGENT_SESSION_ID": None}),
    ("GitHub Copilot", {"TERM_PROGRAM": "vscode", "GIT_PAGER": "cat"}),
    ("Cline", {"CLINE_ACTIVE": None}),
    ("Roo Code", {"ROO_ACTIVE": None}),
    ("Roo Code", {"ROO_CLI_RUNTIME": None}),
    ("Kilo Code", {"KILOCODE_FEATURE": "cli"}),
    ("Windsurf", {"WINDSURF_CASCADE_TERMINAL": None}),
    ("Zed", {"TERM_PROGRAM": "zed", "PAGER": "cat"}),
    ("Amp", {"AMP_CURRENT_THREAD_ID": None}),
    ("Goose", {"GOOSE_TERMINAL": None}),
    ("Crush", {"CRUSH": None}),
    ("pi", {"PI_CODING_AGENT": None}),
    ("Augment", {"AUGMENT_AGENT": None}),
    ("Antigravity", {"ANTIGRAVITY_AGENT": None}),
    ("iFlow", {"IFLOW_CLI": None}),
    ("Trae", {"TRAE_AI_SHELL_ID": None}),
    ("Grok", {"GROK_AGENT": "1"}),
    ("Replit", {"REPLIT_MODE": "assistant"}),
    ("Jules", {"HOME": "/home/jules", "USER": "swebot"}),
    ("an agent", {"AI_AGENT": None}),
    ("an agent", {"AGENT": None}),
)


class Speaker(Value):
    """Who types a command."""

    channel: Channel
    why: str = ""  #: why it is taken for an agent's, to follow "because"

    @property
    def is_person(self) -> bool:
        """Whether it is a person, whose word is the user's."""
        return self.channel is Channel.USER


PERSON = Speaker(channel=Channel.USER)


def agent_mark(env: Mapping[str, str]) -> str | None:
    """Return what shows that an agent started this process, as a sentence; None: nothing does."""
    for name, variables in AGENTS:
        if all(_is_set(env.get(variable, ""), value) for variable, value in variables.items()):
            return f"{name} runs this command ({', '.join(variables)} in its environment)"
    return None


def _is_set(given: str, wanted: str | None) -> bool:
    return bool(given) if wanted is None else given == wanted


def speaker_of(env: Mapping[str, str], user_settings: Mapping[str, Any], *, at_terminal: bool) -> Speaker:
    """Return who types: an agent where one has marked the environment, a person at a terminal, else as it is set."""
    if mark := agent_mark(env):
        return Speaker(channel=Channel.AGENT, why=mark)
    if at_terminal or user_settings["scripts_speak_as"] == Channel.USER:
        return PERSON
    return Speaker(channel=Channel.AGENT, why="standard input is not a terminal")

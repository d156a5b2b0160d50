"""Claude Code: hooks in its settings, MCP, and transcripts in ``~/.claude/projects``.

What our hooks inject becomes an ``attachment`` line there, so attachments are left out: memory must not learn from
itself.  Summaries that compaction writes in the user's name are left out too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.hosts.registry import (
    COMPACT,
    END,
    PROMPT,
    START,
    STOP,
    Host,
    HostTranscript,
    SettingsPart,
    SettingsPlace,
)

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_COMMAND = ("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>")


def _is_aside(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("isSidechain") or entry.get("isMeta") or entry.get("isCompactSummary"))


def _parts(content: object, names: dict[str, str]) -> Iterator[Mapping[str, Any]]:
    from commonplace.hosts.transcripts import content_text, text_part, tool_call, tool_result  # noqa: PLC0415 - see above

    if isinstance(content, str):
        yield text_part(_own(content))
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            yield text_part(_own(str(part.get("text") or "")))
        elif kind == "tool_use":
            names[str(part.get("id"))] = str(part.get("name") or "")
            yield tool_call(part.get("name"), part.get("input"), part.get("id"))
        elif kind == "tool_result":
            id_ = part.get("tool_use_id")
            yield tool_result(names.pop(str(id_), ""), content_text(part.get("content")), id_)


def _own(text: str) -> str:
    """The text without reminders of the program, and empty for the output of its own commands."""
    return "" if text.lstrip().startswith(_COMMAND) else _REMINDER.sub("", text)


class ClaudeCode(Host):
    """Claude Code, and what Codex and Gemini have in common with it."""

    NAME = "claude-code"
    TITLE = "Claude Code"
    PROGRAM = "claude"
    FOLDER = ".claude"
    KEEPS_LOGS = True
    EVENTS: Mapping[str, str] = {
        "SessionStart": START,
        "UserPromptSubmit": PROMPT,
        "PreCompact": COMPACT,
        "Stop": STOP,
        "SessionEnd": END,
    }
    MILLISECONDS = False  # the unit of a hook's time limit
    NOTES: Sequence[str] = ("sessions that are open now see it when they are started again",)

    def answer(self, event: str, name: str, text: str) -> Mapping[str, Any]:
        """See ``Host``; at other events it would make the agent go on."""
        if event not in (START, PROMPT):
            return {}
        return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}

    def ask(self, text: str) -> Mapping[str, Any]:
        """See ``Host``."""
        return {"decision": "block", "reason": text}

    def history(self, env: Mapping[str, str]) -> Iterator[HostTranscript]:
        """See ``Host``; transcripts of subagents, in folders below, are left out."""
        from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

        projects = os.path.join(self.root(env), "projects")
        for folder in sorted(os.listdir(projects)) if os.path.isdir(projects) else ():
            for path in files(os.path.join(projects, folder), deep=False):
                yield HostTranscript(path=path, session=os.path.basename(path).removesuffix(".jsonl"))

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import header, json_lines, message  # noqa: PLC0415 - see above

        names: dict[str, str] = {}  # of tools, by the call
        begun = False
        for entry in json_lines(found.path):
            body = entry.get("message")
            if entry.get("type") not in ("user", "assistant") or not isinstance(body, dict) or _is_aside(entry):
                continue
            if not begun:
                yield header(entry.get("sessionId"), entry.get("cwd"), None)
                begun = True
            if spoken := list(_parts(body.get("content"), names)):
                yield message(entry["type"], spoken, entry.get("timestamp"))

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """See ``Host``; a project's hooks go to its local settings, because they name a path of this machine."""
        if place.project is None:
            hooks = os.path.join(self.root(place.env), "settings.json")
            servers = os.path.join(place.env.get("CLAUDE_CONFIG_DIR") or place.home, ".claude.json")
        else:
            hooks = os.path.join(place.project, ".claude", "settings.local.json")
            servers = os.path.join(place.project, ".mcp.json")
        server = {"type": "stdio", "command": script, "args": ["mcp"]}
        return [
            *self.hook_parts(hooks, script),
            SettingsPart(file=servers, kind="json", path=("mcpServers", "commonplace"), value=server),
        ]

    def hook_parts(self, file: str, script: str) -> Iterator[SettingsPart]:
        """The hooks of all events, in the form that Codex and Gemini take too."""
        for name, event in self.EVENTS.items():
            entry = hook_entry(script, event, self.NAME, milliseconds=self.MILLISECONDS)
            yield SettingsPart(file=file, kind="json", path=("hooks", name), value=entry, listed=True)

    def root(self, env: Mapping[str, str]) -> str:
        """See ``Host``."""
        return env.get("CLAUDE_CONFIG_DIR") or super().root(env)


def hook_entry(script: str, event: str, host: str | None, *, milliseconds: bool = False) -> Mapping[str, Any]:
    """One hook in the settings."""
    from commonplace.hosts.settings import LIMITS, hook_command_line  # noqa: PLC0415 - a prompt edits no settings

    limit = LIMITS[event] * (1000 if milliseconds else 1)
    return {"hooks": [{"type": "command", "command": hook_command_line(script, event, host), "timeout": limit}]}


HOST = ClaudeCode()

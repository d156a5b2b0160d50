"""Codex: hooks in ``hooks.json``, MCP in ``config.toml``, rollouts in ``~/.codex/sessions``.

Messages of the developer role and those that the program puts in the user's name (environment, instructions) are no
words of the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.hosts.claude_code import ClaudeCode
from commonplace.hosts.registry import HostTranscript, SettingsPart, SettingsPlace, user_home

_PUT_THERE = (
    *("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<user_shell_command>"),
    *("<skill", "<subagent_notification", "<INSTRUCTIONS>", "# AGENTS.md instructions"),
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def _to_message(body: Mapping[str, Any], names: dict[str, str]) -> tuple[str, list[Mapping[str, Any]]] | None:
    """The role and the parts of an item; None if it is no message."""
    from commonplace.hosts.transcripts import content_text, text_part, tool_call, tool_result  # noqa: PLC0415 - see above

    kind, role = body.get("type"), body.get("role")
    if kind == "message" and role in ("user", "assistant"):
        text = content_text(body.get("content"), "input_text", "output_text", "text")
        put_there = role == "user" and text.lstrip().startswith(_PUT_THERE)
        return None if put_there else (role, [text_part(text)])
    if kind in _CALLS:
        name = "local_shell" if kind == "local_shell_call" else str(body.get("name") or "")
        names[str(body.get("call_id"))] = name
        return "assistant", [tool_call(name, _arguments(body), body.get("call_id"))]
    if kind in _RESULTS:
        id_ = body.get("call_id")
        return "user", [tool_result(names.pop(str(id_), ""), _output(body.get("output")), id_)]
    return None


def _arguments(body: Mapping[str, Any]) -> object:
    given = body.get("arguments", body.get("input", body.get("action")))
    return _decode(given) if isinstance(given, str) else given


def _output(output: object) -> str:
    """The output of a tool, which may be wrapped in JSON with its exit code."""
    from commonplace.hosts.transcripts import content_text  # noqa: PLC0415 - see above

    inner = _decode(output) if isinstance(output, str) else output
    if isinstance(inner, dict):
        inner = inner.get("output", inner.get("content"))
    return inner if isinstance(inner, str) else content_text(inner, "input_text", "output_text", "text")


def _decode(text: str) -> object:
    """JSON in a text, or else the text."""
    import json  # noqa: PLC0415 - see above

    if not text.startswith("{"):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text


class Codex(ClaudeCode):
    """Codex."""

    NAME = "codex"
    TITLE = "Codex"
    PROGRAM = "codex"
    FOLDER = ".codex"
    NOTES: Sequence[str] = ("Codex asks once whether its new hooks are trusted; they run after you confirm",)

    def history(self, env: Mapping[str, str]) -> Iterator[HostTranscript]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

        yield from (
            HostTranscript(path=path) for path in files(os.path.join(self.root(env), "sessions"), begin="rollout-")
        )

    def is_of(self, found: HostTranscript, session: str) -> bool:
        """See ``Host``; the name of the file ends with the session."""
        return found.path.endswith(f"-{session}.jsonl")

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import header, json_lines, message  # noqa: PLC0415 - see above

        names: dict[str, str] = {}  # of tools, by the call
        begun = False
        for entry in json_lines(found.path):
            body = entry.get("payload")
            if not isinstance(body, dict):
                continue
            if entry.get("type") == "session_meta" and not begun:
                begun = True
                yield header(body.get("id"), body.get("cwd"), None)
            elif entry.get("type") == "response_item" and (spoken := _to_message(body, names)):
                yield message(*spoken, entry.get("timestamp"))

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """See ``Host``."""
        folder = self.settings_folder(place)
        server = {"command": script, "args": ["mcp"]}
        config = os.path.join(folder, "config.toml")
        return [
            *self.hook_parts(os.path.join(folder, "hooks.json"), script),
            SettingsPart(file=config, kind="toml", path=("mcp_servers", "commonplace"), value=server),
        ]

    def root(self, env: Mapping[str, str]) -> str:
        """See ``Host``."""
        return env.get("CODEX_HOME") or os.path.join(user_home(env), self.FOLDER)


HOST = Codex()

"""Gemini CLI: hooks and MCP in ``settings.json``, chats in ``~/.gemini/tmp``.

It puts what a hook injects into the prompt itself, so it comes back in later inputs and in the chat, and is taken out
there.  A chat's lines change what came before: a message is written again when it is complete, and ``$rewindTo`` takes
back what followed; so a chat is gone through twice, first for which lines still count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.files.disk import read_text
from commonplace.hosts.claude_code import ClaudeCode
from commonplace.hosts.registry import (
    COMPACT,
    END,
    PROMPT,
    START,
    STOP,
    HostTranscript,
    SettingsPart,
    SettingsPlace,
    user_home,
    without_hook_context,
)

PATH_BYTES = 65_536  # of the file that names a folder
ROLES = {"user": "user", "gemini": "assistant"}
CONTEXT = "<session_context>"  # begins what the program itself writes in the user's name: folders, GEMINI.md


def _project(folder: str) -> str | None:
    """The folder that its chats are about, which it stores with them."""
    try:
        return read_text(os.path.join(folder, ".project_root"), limit=PATH_BYTES).strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _standing(path: str) -> dict[str, int]:
    """The line of each message that still counts: its last one, unless it was taken back."""
    from commonplace.hosts.transcripts import json_lines  # noqa: PLC0415 - see above

    lines: dict[str, int] = {}
    for number, entry in enumerate(json_lines(path)):
        if isinstance(back := entry.get("$rewindTo"), str) and back in lines:
            names = list(lines)
            for name in names[names.index(back) :]:
                del lines[name]
        elif isinstance(changed := entry.get("$set"), dict) and "messages" in changed:
            lines.clear()
        lines |= {str(one["id"]): number for one in _messages(entry)}
    return lines


def _messages(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The messages in a line: one, or all of them anew."""
    changed = entry.get("$set")
    listed = changed.get("messages") if isinstance(changed, dict) else None
    found = listed if isinstance(listed, list) else [entry]
    return [one for one in found if isinstance(one, dict) and str(one.get("type")) in ROLES and one.get("id")]


def _parts(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    from commonplace.hosts.transcripts import content_text, text_part, tool_call, tool_result  # noqa: PLC0415 - see above

    own = without_hook_context(content_text(entry.get("content")))
    if own and not own.lstrip().startswith(CONTEXT):
        yield text_part(own)
    calls = entry.get("toolCalls")
    for one in calls if isinstance(calls, list) else ():
        if isinstance(one, dict):
            yield tool_call(one.get("name"), one.get("args"), one.get("id"))
            yield tool_result(one.get("name"), _result(one), one.get("id"))


def _result(entry: Mapping[str, Any]) -> str:
    """The output of a tool: the text of its response, else what the user was shown."""
    found = entry.get("result")
    for part in found if isinstance(found, list) else ():
        response = part.get("functionResponse") if isinstance(part, dict) else None
        inner = response.get("response") if isinstance(response, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            return str(inner["output"])
    shown = entry.get("resultDisplay")
    return shown if isinstance(shown, str) else ""


class Gemini(ClaudeCode):
    """Gemini CLI."""

    NAME = "gemini"
    TITLE = "Gemini CLI"
    PROGRAM = "gemini"
    FOLDER = ".gemini"
    EVENTS: Mapping[str, str] = {
        "SessionStart": START,
        "BeforeAgent": PROMPT,
        "PreCompress": COMPACT,
        "AfterAgent": STOP,
        "SessionEnd": END,
    }
    NOTES: Sequence[str] = ()
    MILLISECONDS = True

    def history(self, env: Mapping[str, str]) -> Iterator[HostTranscript]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

        chats = os.path.join(self.root(env), "tmp")
        for folder in sorted(os.listdir(chats)) if os.path.isdir(chats) else ():
            cwd = _project(os.path.join(chats, folder))
            inside = files(os.path.join(chats, folder, "chats"), begin="session-", deep=False)
            yield from (HostTranscript(path=path, cwd=cwd) for path in inside)

    def is_of(self, found: HostTranscript, session: str) -> bool:
        """See ``Host``; the name of the file ends with the beginning of the session."""
        return found.path.endswith(f"-{session[:8]}.jsonl")

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """See ``Host``."""
        from commonplace.hosts.transcripts import header, json_lines, message  # noqa: PLC0415 - see above

        standing = _standing(found.path)
        for number, entry in enumerate(json_lines(found.path)):
            if number == 0:
                yield header(entry.get("sessionId"), found.cwd, entry.get("startTime"))
            for one in _messages(entry):
                if standing.get(str(one["id"])) == number and (spoken := list(_parts(one))):
                    yield message(ROLES[one["type"]], spoken, one.get("timestamp"))

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """See ``Host``."""
        file = os.path.join(self.settings_folder(place), "settings.json")
        server = {"command": script, "args": ["mcp"]}
        part = SettingsPart(file=file, kind="json", path=("mcpServers", "commonplace"), value=server)
        return [*self.hook_parts(file, script), part]

    def root(self, env: Mapping[str, str]) -> str:
        """See ``Host``."""
        return os.path.join(env.get("GEMINI_CLI_HOME") or user_home(env), self.FOLDER)


HOST = Gemini()

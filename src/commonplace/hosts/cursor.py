"""Cursor: hooks in ``hooks.json``, MCP in ``mcp.json``.  Its chats are not documented, so its hooks write them down.

Its prompts and answers are saved, redacted, as a transcript of our form in the data folder, and removed a month after
the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.config import paths as data
from commonplace.hosts.registry import (
    ANSWER,
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


class Cursor(Host):
    """Cursor."""

    NAME = "cursor"
    TITLE = "Cursor"
    PROGRAM = "cursor"
    FOLDER = ".cursor"
    EVENTS: Mapping[str, str] = {
        "sessionStart": START, "beforeSubmitPrompt": PROMPT, "afterAgentResponse": ANSWER, "preCompact": COMPACT,
        "stop": STOP, "sessionEnd": END,
    }  # fmt: skip

    def answer(self, event: str, name: str, text: str) -> Mapping[str, Any]:
        """See ``Host``."""
        del name
        return {"additional_context": text} if event in (START, PROMPT) else {}

    def transcript(self, payload: Mapping[str, Any], env: Mapping[str, str]) -> HostTranscript | None:
        """See ``Host``: what our own hooks took down."""
        from commonplace.hosts.hook_files import transcript_path  # noqa: PLC0415 - a prompt reads no transcript

        session = payload.get("conversation_id") or payload.get("session_id")
        path = transcript_path(data.home(env), str(session)) if session else ""
        return HostTranscript(path=path, session=str(session)) if os.path.isfile(path) else None

    def lines(self, found: HostTranscript) -> Iterator[Mapping[str, Any]]:
        """See ``Host``; it is in our form already."""
        from commonplace.hosts.transcripts import json_lines  # noqa: PLC0415 - see above

        return json_lines(found.path)

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """See ``Host``."""
        from commonplace.hosts.settings import hook_command_line  # noqa: PLC0415 - see above

        folder = self.settings_folder(place)
        hooks = os.path.join(folder, "hooks.json")
        wired = [
            SettingsPart(
                file=hooks, kind="json", path=("hooks", name), listed=True, new_file_fields={"version": 1},
                value={"command": hook_command_line(script, event, self.NAME)},
            )
            for name, event in self.EVENTS.items()
        ]  # fmt: skip
        server = {"command": script, "args": ["mcp"]}
        file = os.path.join(folder, "mcp.json")
        return [*wired, SettingsPart(file=file, kind="json", path=("mcpServers", "commonplace"), value=server)]


HOST = Cursor()

"""Visual Studio Code: an MCP server in ``mcp.json``.  It has no hooks of commands, and its chats are not read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.hosts.registry import SettingsPart, SettingsPlace, Transcript

TITLE = "VS Code"
PROGRAM = "code"
KEEPS_LOGS = False
EVENTS: Mapping[str, str] = {}
NOTES = ("VS Code has no hooks: its agent asks memory by the MCP tools",)


def answer(event: str, name: str, text: str) -> Mapping[str, Any]:
    """See ``Host``: it has no hooks."""
    del event, name, text
    return {}


def history(env: Mapping[str, str]) -> Iterator[Transcript]:
    """See ``Host``: there is none to be read."""
    del env
    yield from ()


def transcript(payload: Mapping[str, Any], env: Mapping[str, str]) -> Transcript | None:
    """See ``Host``: there is none."""
    del payload, env
    return None


def lines(found: Transcript) -> Iterator[Mapping[str, Any]]:
    """See ``Host``: there is none to be read."""
    del found
    yield from ()


def parts(script: str, places: SettingsPlace) -> Sequence[SettingsPart]:
    """See ``Host``."""
    file = os.path.join(
        folder(places) if places.project is None else os.path.join(places.project, ".vscode"), "mcp.json"
    )
    server = {"type": "stdio", "command": script, "args": ["mcp"]}
    return [SettingsPart(file=file, kind="json", path=("servers", "commonplace"), value=server)]


def folder(places: SettingsPlace) -> str:
    """See ``Host``."""
    if sys.platform == "darwin":
        return os.path.join(places.home, "Library", "Application Support", "Code", "User")
    return os.path.join(places.env.get("XDG_CONFIG_HOME") or os.path.join(places.home, ".config"), "Code", "User")

"""Visual Studio Code: an MCP server in ``mcp.json``.  It has no hooks of commands, and its chats are not read."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from commonplace.hosts.registry import Host, SettingsPart, SettingsPlace, user_home


class VsCode(Host):
    """Visual Studio Code."""

    NAME = "vscode"
    TITLE = "VS Code"
    PROGRAM = "code"
    FOLDER = ".vscode"
    NOTES: Sequence[str] = ("VS Code has no hooks: its agent asks memory by the MCP tools",)

    def parts(self, script: str, place: SettingsPlace) -> Sequence[SettingsPart]:
        """See ``Host``."""
        file = os.path.join(self.settings_folder(place), "mcp.json")
        server = {"type": "stdio", "command": script, "args": ["mcp"]}
        return [SettingsPart(file=file, kind="json", path=("servers", "commonplace"), value=server)]

    def root(self, env: Mapping[str, str]) -> str:
        """See ``Host``."""
        if sys.platform == "darwin":
            return os.path.join(user_home(env), "Library", "Application Support", "Code", "User")
        return os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(user_home(env), ".config"), "Code", "User")


HOST = VsCode()

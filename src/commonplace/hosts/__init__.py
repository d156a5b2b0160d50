"""Coding agents that connect to Commonplace: their hooks, their transcripts and their settings."""

from __future__ import annotations

from commonplace.lazy import lazy_names

TYPE_CHECKING = False  # type checkers take the name for true
if TYPE_CHECKING:
    from commonplace.hosts.capture import HistoryReport, index_history
    from commonplace.hosts.connections import list_connections
    from commonplace.hosts.hook_files import forget_session_files, hook_notes, hook_troubles, saved_files
    from commonplace.hosts.registry import get_host

COMMANDS = {
    "connect": ("connect_command:connect", "Connect a coding agent: its hooks and its MCP settings.", "Agents"),
    "disconnect": ("connect_command:disconnect", "Undo `connect` exactly.", "Agents"),
    "hook": ("hook_command:hook", "Answer a hook of a coding agent; `connect` sets it up.", "Agents"),
}  #: name -> where it lives in this package, what it does, its part of the help ("": hidden)

__getattr__ = lazy_names(
    __name__,
    {
        "capture": "HistoryReport index_history",
        "connections": "list_connections",
        "hook_files": "forget_session_files hook_notes hook_troubles saved_files",
        "registry": "get_host",
    },
)

__all__ = [
    "COMMANDS",
    "HistoryReport",
    "forget_session_files",
    "get_host",
    "hook_notes",
    "hook_troubles",
    "index_history",
    "list_connections",
    "saved_files",
]

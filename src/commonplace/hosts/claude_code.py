"""Claude Code: hooks in its settings, MCP, and transcripts in ``~/.claude/projects``.

What our hooks inject becomes an ``attachment`` line there, so leaving attachments out keeps memory from hearing itself.
Summaries that compaction writes stand in the user's name and are left out too: no user said them.
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
    SettingsPart,
    SettingsPlace,
    Transcript,
    user_home,
)

TITLE = "Claude Code"
PROGRAM = "claude"
KEEPS_LOGS = True
EVENTS = {"SessionStart": START, "UserPromptSubmit": PROMPT, "PreCompact": COMPACT, "Stop": STOP, "SessionEnd": END}
NOTES = ("sessions that are open now see it when they are started again",)

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_COMMAND = ("<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>")


def answer(event: str, name: str, text: str) -> Mapping[str, Any]:
    """See ``Host``; at other events it would make the agent go on."""
    if event not in (START, PROMPT):
        return {}
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def history(env: Mapping[str, str]) -> Iterator[Transcript]:
    """See ``Host``; what subagents say is in folders below, and is not looked at."""
    from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

    projects = os.path.join(_root(env), "projects")
    for folder in sorted(os.listdir(projects)) if os.path.isdir(projects) else ():
        for path in files(os.path.join(projects, folder), deep=False):
            yield Transcript(path=path, session=os.path.basename(path).removesuffix(".jsonl"))


def transcript(payload: Mapping[str, Any], env: Mapping[str, str]) -> Transcript | None:
    """See ``Host``."""
    path, session = payload.get("transcript_path"), payload.get("session_id")
    if isinstance(path, str) and os.path.isfile(path):
        return Transcript(path=path, session=session if isinstance(session, str) else None)
    return next((found for found in history(env) if session and found.session == session), None)


def lines(found: Transcript) -> Iterator[Mapping[str, Any]]:
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
    """What was really said: neither what the program reminds its model of, nor what its own commands print."""
    return "" if text.lstrip().startswith(_COMMAND) else _REMINDER.sub("", text)


def parts(script: str, places: SettingsPlace) -> Sequence[SettingsPart]:
    """See ``Host``; the project's hooks go to the settings that are not shared, because they name a path of here."""
    if places.project is None:
        hooks, servers = os.path.join(_root(places.env), "settings.json"), _servers(places)
    else:
        hooks = os.path.join(places.project, ".claude", "settings.local.json")
        servers = os.path.join(places.project, ".mcp.json")
    wired = [
        SettingsPart(
            file=hooks, kind="json", path=("hooks", name), value=hook_entry(script, event, "claude-code"), listed=True
        )
        for name, event in EVENTS.items()
    ]
    server = {"type": "stdio", "command": script, "args": ["mcp"]}
    return [*wired, SettingsPart(file=servers, kind="json", path=("mcpServers", "commonplace"), value=server)]


def hook_entry(script: str, event: str, host: str | None, *, milliseconds: bool = False) -> Mapping[str, Any]:
    """One hook as Claude Code, Codex and Gemini write it."""
    from commonplace.hosts.settings import LIMITS, hook_command_line  # noqa: PLC0415 - a prompt edits no settings

    limit = LIMITS[event] * (1000 if milliseconds else 1)
    return {"hooks": [{"type": "command", "command": hook_command_line(script, event, host), "timeout": limit}]}


def folder(places: SettingsPlace) -> str:
    """See ``Host``."""
    return _root(places.env)


def _root(env: Mapping[str, str]) -> str:
    return env.get("CLAUDE_CONFIG_DIR") or os.path.join(user_home(env), ".claude")


def _servers(places: SettingsPlace) -> str:
    own = places.env.get("CLAUDE_CONFIG_DIR")
    return os.path.join(own or places.home, ".claude.json")

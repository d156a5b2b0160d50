"""Claude Code: hooks in its settings, MCP, and transcripts in ``~/.claude/projects``.

What our hooks inject becomes an ``attachment`` line there, so leaving attachments out keeps memory from hearing itself.
Summaries that compaction writes stand in the user's name and are left out too: no user said them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.hosts import hook_line as wires
from commonplace.hosts.hook_line import LIMITS
from commonplace.hosts.registry import COMPACT, END, PROMPT, START, STOP, Found, Part, Places, home_of

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


def history(env: Mapping[str, str]) -> Iterator[Found]:
    """See ``Host``; what subagents say is in folders below, and is not looked at."""
    from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

    projects = os.path.join(_root(env), "projects")
    for folder in sorted(os.listdir(projects)) if os.path.isdir(projects) else ():
        for path in files(os.path.join(projects, folder), deep=False):
            yield Found(path=path, session=os.path.basename(path).removesuffix(".jsonl"))


def transcript(said: Mapping[str, Any], env: Mapping[str, str]) -> Found | None:
    """See ``Host``."""
    path, session = said.get("transcript_path"), said.get("session_id")
    if isinstance(path, str) and os.path.isfile(path):
        return Found(path=path, session=session if isinstance(session, str) else None)
    return next((found for found in history(env) if session and found.session == session), None)


def lines(found: Found) -> Iterator[Mapping[str, Any]]:
    """See ``Host``."""
    from commonplace.hosts.transcripts import header, message, objects  # noqa: PLC0415 - see above

    names: dict[str, str] = {}  # of tools, by the call
    begun = False
    for said in objects(found.path):
        body = said.get("message")
        if said.get("type") not in ("user", "assistant") or not isinstance(body, dict) or _is_aside(said):
            continue
        if not begun:
            yield header(said.get("sessionId"), said.get("cwd"), None)
            begun = True
        if spoken := list(_parts(body.get("content"), names)):
            yield message(said["type"], spoken, said.get("timestamp"))


def _is_aside(said: Mapping[str, Any]) -> bool:
    return bool(said.get("isSidechain") or said.get("isMeta") or said.get("isCompactSummary"))


def _parts(content: object, names: dict[str, str]) -> Iterator[Mapping[str, Any]]:
    from commonplace.hosts.transcripts import call, result, text, words  # noqa: PLC0415 - see above

    if isinstance(content, str):
        yield text(_own(content))
    for part in content if isinstance(content, list) else ():
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "text":
            yield text(_own(str(part.get("text") or "")))
        elif kind == "tool_use":
            names[str(part.get("id"))] = str(part.get("name") or "")
            yield call(part.get("name"), part.get("input"), part.get("id"))
        elif kind == "tool_result":
            id_ = part.get("tool_use_id")
            yield result(names.pop(str(id_), ""), words(part.get("content")), id_)


def _own(said: str) -> str:
    """What was really said: neither what the program reminds its model of, nor what its own commands print."""
    return "" if said.lstrip().startswith(_COMMAND) else _REMINDER.sub("", said)


def parts(script: str, places: Places) -> Sequence[Part]:
    """See ``Host``; the project's hooks go to the settings that are not shared, because they name a path of here."""
    if places.project is None:
        hooks, servers = os.path.join(_root(places.env), "settings.json"), _servers(places)
    else:
        hooks = os.path.join(places.project, ".claude", "settings.local.json")
        servers = os.path.join(places.project, ".mcp.json")
    wired = [
        Part(file=hooks, kind="json", path=("hooks", name), value=entry(script, event, "claude-code"), listed=True)
        for name, event in EVENTS.items()
    ]
    server = {"type": "stdio", "command": script, "args": ["mcp"]}
    return [*wired, Part(file=servers, kind="json", path=("mcpServers", "commonplace"), value=server)]


def entry(script: str, event: str, host: str | None, *, milliseconds: bool = False) -> Mapping[str, Any]:
    """One hook as Claude Code, Codex and Gemini write it."""
    limit = LIMITS[event] * (1000 if milliseconds else 1)
    return {"hooks": [{"type": "command", "command": wires.command(script, event, host), "timeout": limit}]}


def folder(places: Places) -> str:
    """See ``Host``."""
    return _root(places.env)


def _root(env: Mapping[str, str]) -> str:
    return env.get("CLAUDE_CONFIG_DIR") or os.path.join(home_of(env), ".claude")


def _servers(places: Places) -> str:
    own = places.env.get("CLAUDE_CONFIG_DIR")
    return os.path.join(own or places.home, ".claude.json")

"""Codex: hooks in ``hooks.json``, MCP in ``config.toml``, rollouts in ``~/.codex/sessions``.

Messages of the developer role and those that the program puts in the user's name (environment, instructions) are no
words of the user.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from commonplace.hosts import claude_code
from commonplace.hosts.claude_code import answer, entry
from commonplace.hosts.registry import Found, Part, Places, home_of

__all__ = [
    "EVENTS",
    "KEEPS_LOGS",
    "NOTES",
    "PROGRAM",
    "TITLE",
    "answer",
    "folder",
    "history",
    "lines",
    "parts",
    "transcript",
]

TITLE = "Codex"
PROGRAM = "codex"
KEEPS_LOGS = True
EVENTS = claude_code.EVENTS
NOTES = ("Codex asks once whether its new hooks are trusted; they run when you have said yes",)

_PUT_THERE = (
    *("<environment_context>", "<user_instructions>", "<permissions", "<turn_aborted>", "<user_shell_command>"),
    *("<skill", "<subagent_notification", "<INSTRUCTIONS>", "# AGENTS.md instructions"),
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


def history(env: Mapping[str, str]) -> Iterator[Found]:
    """See ``Host``."""
    from commonplace.hosts.transcripts import files  # noqa: PLC0415 - a prompt reads no transcript

    yield from (Found(path=path) for path in files(os.path.join(_root(env), "sessions"), begin="rollout-"))


def transcript(said: Mapping[str, Any], env: Mapping[str, str]) -> Found | None:
    """See ``Host``; it may be told without a path, and then goes by its id."""
    path, session = said.get("transcript_path"), said.get("session_id")
    name = session if isinstance(session, str) else None
    if isinstance(path, str) and os.path.isfile(path):
        return Found(path=path, session=name)
    found = (one for one in history(env) if name and one.path.endswith(f"-{name}.jsonl"))
    return next((one.replace(session=name) for one in found), None)


def lines(found: Found) -> Iterator[Mapping[str, Any]]:
    """See ``Host``."""
    from commonplace.hosts.transcripts import header, message, objects  # noqa: PLC0415 - see above

    names: dict[str, str] = {}  # of tools, by the call
    begun = False
    for said in objects(found.path):
        body = said.get("payload")
        if not isinstance(body, dict):
            continue
        if said.get("type") == "session_meta" and not begun:
            begun = True
            yield header(body.get("id"), body.get("cwd"), None)
        elif said.get("type") == "response_item" and (spoken := _spoken(body, names)):
            yield message(*spoken, said.get("timestamp"))


def _spoken(body: Mapping[str, Any], names: dict[str, str]) -> tuple[str, list[Mapping[str, Any]]] | None:
    """Who says what in an item; None if nobody does."""
    from commonplace.hosts.transcripts import call, result, text, words  # noqa: PLC0415 - see above

    kind, role = body.get("type"), body.get("role")
    if kind == "message" and role in ("user", "assistant"):
        said = words(body.get("content"), "input_text", "output_text", "text")
        put_there = role == "user" and said.lstrip().startswith(_PUT_THERE)
        return None if put_there else (role, [text(said)])
    if kind in _CALLS:
        name = "local_shell" if kind == "local_shell_call" else str(body.get("name") or "")
        names[str(body.get("call_id"))] = name
        return "assistant", [call(name, _arguments(body), body.get("call_id"))]
    if kind in _RESULTS:
        id_ = body.get("call_id")
        return "user", [result(names.pop(str(id_), ""), _output(body.get("output")), id_)]
    return None


def _arguments(body: Mapping[str, Any]) -> object:
    given = body.get("arguments", body.get("input", body.get("action")))
    return _decoded(given) if isinstance(given, str) else given


def _output(said: object) -> str:
    """What a tool said, which may be wrapped in JSON with its exit code."""
    from commonplace.hosts.transcripts import words  # noqa: PLC0415 - see above

    inner = _decoded(said) if isinstance(said, str) else said
    if isinstance(inner, dict):
        inner = inner.get("output", inner.get("content"))
    return inner if isinstance(inner, str) else words(inner, "input_text", "output_text", "text")


def _decoded(text: str) -> object:
    """JSON in a text, or else the text."""
    import json  # noqa: PLC0415 - see above

    if not text.startswith("{"):
        return text
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return said if isinstance(said, dict) else text


def parts(script: str, places: Places) -> Sequence[Part]:
    """See ``Host``."""
    root = _root(places.env) if places.project is None else os.path.join(places.project, ".codex")
    hooks = os.path.join(root, "hooks.json")
    wired = [
        Part(file=hooks, kind="json", path=("hooks", name), value=entry(script, event, "codex"), listed=True)
        for name, event in EVENTS.items()
    ]
    server = {"command": script, "args": ["mcp"]}
    config = os.path.join(root, "config.toml")
    return [*wired, Part(file=config, kind="toml", path=("mcp_servers", "commonplace"), value=server)]


def folder(places: Places) -> str:
    """See ``Host``."""
    return _root(places.env)


def _root(env: Mapping[str, str]) -> str:
    return env.get("CODEX_HOME") or os.path.join(home_of(env), ".codex")

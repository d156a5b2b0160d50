"""Our format of session transcripts: JSON Lines, one message each.  Pure: a line goes in, what it says comes out.

The first line may be a header, ``{"session": ..., "cwd": ..., "started": ...}``.  Every other line is a message with
``role`` and ``content``, and perhaps ``time``, ``name`` (of the tool) and ``tool_calls``; docs/reference/sessions.md
has the whole of it.  Thinking and pictures are never kept, and of what tools say only what is likely to matter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from commonplace.domain.errors import InvalidInput
from commonplace.domain.values import Value
from commonplace.engine.transcripts import TOOL

ROLES = ("system", "developer", "user", "assistant", TOOL)
TOOLS = frozenset({"bash", "python", "eval", "read", "grep"})  # whose results are kept
TOOL_CHARS = 32_000  # a longer result is a file or a log, not a finding
CALL_CHARS = 500  # of a call's arguments: enough for a command line


class Header(Value):
    """What a transcript says about itself."""

    session: str | None = None
    cwd: str | None = None
    started: datetime | None = None


class Message(Value):
    """One message: what was said in it, by whom, and what was left out."""

    spoken: tuple[tuple[str, str], ...]  #: speaker and text; a tool's result is the tool's, in whosever message it is
    time: datetime | None = None
    filtered: int = 0  #: results of tools that are not kept


def read(line: bytes, *, first: bool = False) -> Header | Message:
    """What a line says.  Raises ``InvalidInput`` with the reason, whatever the bytes are."""
    said = _object(line)
    if first and "role" not in said and "session" in said:
        return Header(
            session=_text(said, "session"), cwd=_text(said, "cwd"), started=_moment(said.get("started"), "started")
        )
    role = said.get("role")
    if role not in ROLES:
        raise InvalidInput(f"has the role {role!r}; there are {', '.join(ROLES)}" if role else "has no role")
    spoken, filtered = _spoken(role, said)
    return Message(spoken=tuple(spoken), time=_moment(said.get("time"), "time"), filtered=filtered)


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        said = json.loads(line)
    except RecursionError:
        raise InvalidInput("is nested too deeply") from None
    except ValueError as error:  # also bytes that are not UTF-8, and numbers of thousands of digits
        raise InvalidInput(f"is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise InvalidInput(f"is not a message but {type(said).__name__}")
    return said


def _spoken(role: str, said: Mapping[str, Any]) -> tuple[list[tuple[str, str]], int]:
    """Who says what in a message, and how many results of tools are left out."""
    texts: list[str] = []
    results: list[tuple[Any, str]] = []
    for kind, part in _parts(said.get("content")):
        if kind == "text":
            texts.append(_text(part, "text") or "")
        elif kind == "tool_call":
            texts.append(_call(part))
        elif kind == "tool_result":
            results.append((part.get("name"), _plain(part.get("content"))))
    texts += [_call(call) for call in _listed(said.get("tool_calls"), "tool_calls")]
    text = "\n".join(filter(None, texts))
    if role == TOOL:
        results.insert(0, (said.get("name"), text))
        text = ""
    kept = [(TOOL, result) for name, result in results if _is_kept(name, result)]
    own = [(role, text)] if text.strip() else []
    return own + kept, len(results) - len(kept)


def _parts(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parts of a content with what they are; thinking, pictures and whatever else there is are passed over."""
    if content is None or isinstance(content, str):
        yield "text", {"text": content}
        return
    for part in _listed(content, "content"):
        kind = part.get("type")
        if not isinstance(kind, str):
            raise InvalidInput("has a part of its content without a type")
        yield kind, part


def _listed(value: Any, what: str) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidInput(f"has a {what} that is neither text nor a list of objects")
    return value


def _plain(content: Any) -> str:
    """The text of a tool's result."""
    return "\n".join(_text(part, "text") or "" for kind, part in _parts(content) if kind == "text")


def _call(call: Mapping[str, Any]) -> str:
    """A call on one line: the tool and what it was given."""
    name = _text(call, "name") or TOOL
    given = call.get("arguments")
    values = given.values() if isinstance(given, dict) else [given]
    said = " ".join(value if isinstance(value, str) else json.dumps(value) for value in values if value is not None)
    line = " ".join(said.split())
    return f"-> {name}: {line[:CALL_CHARS]}{'…' if len(line) > CALL_CHARS else ''}".rstrip(": ")


def _is_kept(name: Any, text: str) -> bool:
    return isinstance(name, str) and name.lower() in TOOLS and bool(text.strip()) and len(text) <= TOOL_CHARS


def _text(said: Mapping[str, Any], key: str) -> str | None:
    value = said.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"has a {key} that is not text")
    return value


def _moment(value: Any, key: str) -> datetime | None:
    """A moment in ISO 8601; without a zone it is taken as UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"has a {key} that is no moment such as 2026-03-01T09:00:00Z: {value!r}") from None

"""Our format of session transcripts: JSON Lines, one message each.  Pure: parses one line at a time.

The first line may be a header, ``{"session": ..., "cwd": ..., "started": ...}``.  Every other line is a message with
``role`` and ``content``, and perhaps ``time``, ``name`` (of the tool) and ``tool_calls``; docs/reference/sessions.md
describes it.  Thinking and pictures are never stored, and of tool results only what is likely to matter.

What an agent fetched from memory with a tool of its own, by the ``commonplace`` command or from our files, comes back
without a fence: it is recognised by the call that it answers, which comes before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace.engine.transcripts import TOOL
from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value
from commonplace.redact.redaction import names_secret

ROLES = ("system", "developer", "user", "assistant", TOOL)
TOOLS = frozenset({"bash", "python", "eval", "read", "grep"})  # whose results are stored
TOOL_CHARS = 32_000  # a longer result is a file or a log, not a finding
CALL_CHARS = 500  # of a call's arguments: enough for a command line
PENDING_MOST = 64  # calls that can wait for their results at once; a call that never gets one must not stay for ever

# What stands before a program on a command line, or carries a command line to a shell.
_LAUNCHERS = frozenset(
    """bash sh zsh dash fish cmd command exec env time timeout nice nohup sudo then do else if while uv uvx pipx run
    python python3 powershell pwsh""".split()  # noqa: SIM905 - thirty quoted words are harder to read
)
_SEGMENTS = re.compile(r"&&|\|\||[;&|\n()`]|\$\(")
_QUOTES = re.compile(r"[\"'\[\]{},\\]")
_PROGRAM = re.compile(r"(?:\S*[/\\])?commonplace(?:\.exe)?\Z")
_PREFIX = re.compile(r"-\S*|\w+=\S*|\d\S*|\w*:")  # options, variables, limits, the keys of an object
_FILES = re.compile(r"(?:\A|[\s\"'=/\\])\.commonplace[/\\]")


class Header(Value):
    """The header of a transcript."""

    session: str | None = None
    cwd: str | None = None
    started: datetime | None = None


class ToolCall(Value):
    """A call of a tool that waits for its result."""

    tool: str
    id: str | None = None  #: as the transcript has it, if it has one
    own: bool = False  #: it asks memory


class Message(Value):
    """One message: its texts with their speakers, and what was left out."""

    spoken: tuple[tuple[str, str], ...]  #: speaker and text; a tool's result is the tool's, in whosever message it is
    time: datetime | None = None
    filtered: int = 0  #: results of tools that are not stored
    own: int = 0  #: results of tools that are memory's own words, and are not stored either
    pending: tuple[ToolCall, ...] = ()  #: calls that wait for their results after it


def read(line: bytes, *, first: bool = False, pending: Sequence[ToolCall] = ()) -> Header | Message:
    """Parse a line, given the calls that wait for results.  Raises ``InvalidInput`` with the reason, for any bytes."""
    message = _object(line)
    if first and "role" not in message and "session" in message:
        return Header(
            session=_text(message, "session"),
            cwd=_text(message, "cwd"),
            started=_moment(message.get("started"), "started"),
        )
    role = message.get("role")
    if role not in ROLES:
        raise InvalidInput(f"has the role {role!r}; there are {', '.join(ROLES)}" if role else "has no role")
    waiting = list(pending)
    spoken, filtered, own = _speakers(role, message, waiting)
    return Message(
        spoken=tuple(spoken), time=_moment(message.get("time"), "time"), filtered=filtered, own=own,
        pending=tuple(waiting[-PENDING_MOST:]),
    )  # fmt: skip


def _object(line: bytes) -> Mapping[str, Any]:
    try:
        message = json.loads(line)
    except RecursionError:
        raise InvalidInput("is nested too deeply") from None
    except ValueError as error:  # also bytes that are not UTF-8, and numbers of thousands of digits
        raise InvalidInput(f"is not JSON: {error}") from None
    if not isinstance(message, dict):
        raise InvalidInput(f"is not a message but {type(message).__name__}")
    return message


def _speakers(role: str, message: Mapping[str, Any], waiting: list[ToolCall]) -> tuple[list[tuple[str, str]], int, int]:
    """Return the texts of a message by speaker, and how many tool results are left out: others, and memory's own."""
    texts: list[str] = []
    results: list[tuple[Any, str, bool]] = []
    for kind, part in _parts(message.get("content")):
        if kind == "text":
            texts.append(_text(part, "text") or "")
        elif kind == "tool_call":
            texts.append(_call(part))
            waiting.append(tool_call(part))
        elif kind == "tool_result":
            results.append((part.get("name"), _plain(part.get("content")), _take_call(part, waiting).own))
    calls = _objects(message.get("tool_calls"), "tool_calls")
    texts += [_call(call) for call in calls]
    waiting += [tool_call(call) for call in calls]
    text = "\n".join(filter(None, texts))
    if role == TOOL:
        results.insert(0, (message.get("name"), text, _take_call(message, waiting).own))
        text = ""
    others = [(name, result) for name, result, own in results if not own]
    kept = [(TOOL, result) for name, result in others if _is_useful(name, result)]
    own_text = [(role, text)] if text.strip() else []
    return own_text + kept, len(others) - len(kept), len(results) - len(others)


def _parts(content: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the parts of a content with their type; thinking, pictures and other parts are skipped."""
    if content is None or isinstance(content, str):
        yield "text", {"text": content}
        return
    for part in _objects(content, "content"):
        kind = part.get("type")
        if not isinstance(kind, str):
            raise InvalidInput("has a part of its content without a type")
        yield kind, part


def _objects(value: Any, what: str) -> list[Mapping[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InvalidInput(f"has a {what} that is neither text nor a list of objects")
    return value


def _plain(content: Any) -> str:
    """Return the text of a tool's result."""
    return "\n".join(_text(part, "text") or "" for kind, part in _parts(content) if kind == "text")


def _call(call: Mapping[str, Any]) -> str:
    """Return a call on one line: the tool and its arguments."""
    name = _text(call, "name") or TOOL
    given = call.get("arguments")
    values = [_argument(*one) for one in given.items()] if isinstance(given, dict) else [_plain_argument(given)]
    line = " ".join(" ".join(values).split())
    return f"-> {name}: {_beginning(line)}".rstrip(": ")


def _argument(name: str, value: Any) -> str:
    """Return an argument without its name, unless the name is all that says that the value is a secret."""
    plain = _plain_argument(value)
    if not plain or not names_secret(name):
        return plain
    quoted = plain.replace('"', "'")
    return f'{name}: "{quoted}"'


def _plain_argument(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def _beginning(line: str) -> str:
    """Return the beginning of a long line, up to a blank: half of a secret would not be recognised."""
    if len(line) <= CALL_CHARS:
        return line
    head, blank, _ = line[: CALL_CHARS + 1].rpartition(" ")
    return f"{head if blank else line[:CALL_CHARS]}…"


# Memory's own words


def tool_call(call: Mapping[str, Any]) -> ToolCall:
    """Return a call as far as it is needed to recognise its result."""
    name, given = call.get("name"), call.get("arguments")
    return ToolCall(tool=str(name or "").lower(), id=_id(call), own=any(map(asks_memory, _strings(given))))


def asks_memory(text: str) -> bool:
    """Return whether a command line runs our command, or an argument names one of our files."""
    if _FILES.search(text):
        return True
    if "commonplace" not in text:
        return False
    return any(_runs_us(segment) for segment in _SEGMENTS.split(text))


def _runs_us(segment: str) -> bool:
    """Return whether the first word that is no launcher, option or variable is our program."""
    for word in _QUOTES.sub(" ", segment).split():
        if word not in _LAUNCHERS and not _PREFIX.fullmatch(word):
            return bool(_PROGRAM.match(word))
    return False


def _take_call(result: Mapping[str, Any], waiting: list[ToolCall]) -> ToolCall:
    """Remove and return the waiting call that a result answers: by its id, else the first of that tool."""
    name, id_ = str(result.get("name") or "").lower(), _id(result)
    by_id = (one for one in waiting if id_ is not None and one.id == id_)
    by_name = (one for one in waiting if one.tool == name and (id_ is None or one.id is None))
    found = next(by_id, None) or next(by_name, None)
    if found is None:
        return ToolCall(tool=name)
    waiting.remove(found)
    return found


def _id(message: Mapping[str, Any]) -> str | None:
    value = message.get("id")
    return value if isinstance(value, str) and value else None


def _strings(given: Any) -> Iterator[str]:
    """Yield every text in the arguments of a call; a list of texts is also a command line."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, list) and given and all(isinstance(one, str) for one in given):
        yield " ".join(given)
    elif isinstance(given, dict | list):
        for value in given.values() if isinstance(given, dict) else given:
            yield from _strings(value)


def _is_useful(name: Any, text: str) -> bool:
    return isinstance(name, str) and name.lower() in TOOLS and bool(text.strip()) and len(text) <= TOOL_CHARS


def _text(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"has a {key} that is not text")
    return value


def _moment(value: Any, key: str) -> datetime | None:
    """Return a date in ISO 8601; without a zone it is taken as UTC."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"has a {key} that is no moment such as 2026-03-01T09:00:00Z: {value!r}") from None

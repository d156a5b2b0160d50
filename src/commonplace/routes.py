"""Route: how a room answers a request in a wire format of its own.

A room declares a route only where others have decided about the format; its verbs get theirs without being asked.  The
server makes its own routes and the OpenAPI document from these rows.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from commonplace.model.values import Value
from commonplace.wire import Schema

Name = Annotated[str, Meta(min_length=1, max_length=512)]
Limit = Annotated[int, Meta(ge=1, le=1_000_000)]  # beyond LIMIT_MAX it counts as LIMIT_MAX
Offset = Annotated[int, Meta(ge=0, le=1_000_000)]
LIMIT_MAX = 1000  # items on one page
_VERSION = re.compile(r'(?:W/)?"?([0-9]{1,15})"?')


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body or the parameters of a request: unknown names are refused."""


class RequestRefused(Exception):
    """A request is refused before any verb is called."""

    def __init__(self, status: int, error: str, message: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.error = error
        self.headers = dict(headers or {})


class Call(Value):
    """One request, parsed."""

    path: Mapping[str, str]
    query: Any  #: of the route's type
    body: Any  #: of the route's type
    headers: Mapping[str, str]  #: whose names are in lower case

    @property
    def version(self) -> int | None:
        """The version in ``If-Match``: ``3``, ``"3"`` or ``W/"3"``."""
        header = self.headers.get("if-match")
        if header is None:
            return None
        found = _VERSION.fullmatch(header.strip())
        if found is None:
            raise RequestRefused(400, "INVALID_INPUT", 'If-Match must name one version, such as 3 or "3"')
        return int(found[1])

    @property
    def required_version(self) -> int:
        """The same, where a write without one could overwrite what the caller has not read."""
        if self.version is None:
            raise RequestRefused(
                428, "PRECONDITION_REQUIRED", "If-Match header required: the version that you have read"
            )
        return self.version


class Streaming(Value):
    """What the server provides to a stream of events."""

    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    is_allowed: Callable[[], bool]  #: whether the key of the request is still valid
    is_stopping: Callable[[], bool]  #: whether the server is shutting down
    wait: Callable[[int], Awaitable[int]]  #: for an event newer than that number; returns the newest number
    heartbeat_seconds: float  #: between two signs of life on a silent stream


Handler: TypeAlias = Callable[[Any, Call], object]  #: from the caller that the room's verbs take, and the request
Stream: TypeAlias = Callable[[Any, Call, Streaming], AsyncIterator[bytes]]


class RouteAnswer(Value):
    """An answer with a status or headers of its own."""

    content: object
    status: int = 200
    headers: Mapping[str, str] = {}


class Route(Value):
    """One row."""

    method: str
    path: str  #: with ``{names}``; the last may be ``{name:path}``
    summary: str
    handle: Handler
    answers: Any  #: the type of the answer
    body: Any = None  #: the type of the body; None: there is none
    query: Any = None  #: the type of the parameters; None: there are none
    body_schema: Schema | None = None  #: of a body whose type does not say all of it
    answer_schema: Schema | None = None  #: likewise of the answer
    problems: tuple[int, ...] = ()  #: error statuses besides those that every route may answer with
    match: Literal["no", "may", "must"] = "no"  #: whether If-Match names a version
    optional_body: bool = False
    open: bool = False  #: needs no key
    reads: bool = False  #: changes nothing although its method could
    stream: Stream | None = None  #: for clients that accept text/event-stream
    tag: str = "memory"

    @property
    def is_read(self) -> bool:
        """Whether a key that may only read may call it."""
        return self.reads or self.method == "GET"


def aware(at: datetime | None) -> datetime | None:
    """Return a time with its zone; without one it is UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at

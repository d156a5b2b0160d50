"""Route: one row of what the server answers.  Starlette's routes and the OpenAPI document come from the same rows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast, get_origin
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Meta
from starlette.datastructures import Headers

from commonplace.intents.entries import Caller
from commonplace.intents.intents import Intents
from commonplace.intents.verbs import IntentAccess
from commonplace.model.ports import Clock
from commonplace.model.values import Value
from commonplace.records.access import MemoryAccess
from commonplace.server.errors import Refused
from commonplace.server.keys import Keys
from commonplace.server.settings import Server
from commonplace.wire import Schema

T = TypeVar("T")
Name = Annotated[str, Meta(min_length=1, max_length=512)]
Limit = Annotated[int, Meta(ge=1, le=1_000_000)]  # beyond LIMIT_MAX it counts as LIMIT_MAX
Offset = Annotated[int, Meta(ge=0, le=1_000_000)]
LIMIT_MAX = 1000  # items on one page
_VERSION = re.compile(r'(?:W/)?"?([0-9]{1,15})"?')


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A body or the parameters of a request: unknown names are refused."""


class Principal(Value):
    """Who calls."""

    key: str  #: the key's id, as the log shows it
    agent: str | None  #: the one agent it acts for; None: an operator, who acts for any


class Services(Value):
    """What handlers work with."""

    settings: Server
    intents: Intents
    keys: Keys
    memory_access: Callable[[str | None], MemoryAccess]  #: the records of the served store, or of one agent
    wait_for_event: Callable[[int, float], Awaitable[int]]  #: see ``EventWatch.wait``
    clock: Clock
    stopping: Callable[[], bool]  #: whether the server is shutting down


class Call(Value):
    """One request, parsed and authorized."""

    services: Services
    principal: Principal
    path: Mapping[str, str]
    query: Any  #: of the route's type
    body: Any  #: of the route's type
    headers: Headers

    @property
    def access(self) -> IntentAccess:
        """Intent memory, as the caller may use it."""
        agent = self.principal.agent
        return IntentAccess(intents=self.services.intents, caller=Caller(agent=agent, admin=agent is None))

    @property
    def version(self) -> int | None:
        """The version in ``If-Match``: ``3``, ``"3"`` or ``W/"3"``."""
        header = self.headers.get("if-match")
        if header is None:
            return None
        found = _VERSION.fullmatch(header.strip())
        if found is None:
            raise Refused(400, "INVALID_INPUT", 'If-Match must name one version, such as 3 or "3"')
        return int(found[1])

    @property
    def required_version(self) -> int:
        """The same, where a write without one could overwrite what the caller has not read."""
        if self.version is None:
            raise Refused(428, "PRECONDITION_REQUIRED", "If-Match header required: the version that you have read")
        return self.version


Handler: TypeAlias = Callable[[Call], object]
InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
Stream: TypeAlias = Callable[[Call, InThread, Callable[[], Principal]], AsyncIterator[bytes]]


class Answer(Value):
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
    stream: Stream | None = None  #: for clients that accept text/event-stream
    tag: str = "memory"


def aware(at: datetime | None) -> datetime | None:
    """Return a time with its zone; without one it is UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def decode_path(params: Mapping[str, str]) -> dict[str, str]:
    """Return the names in a path, each decoded by itself: an encoded slash is part of a name."""
    try:
        return {name: unquote(part, errors="strict") for name, part in params.items()}
    except UnicodeDecodeError:
        raise Refused(400, "INVALID_INPUT", "the path is not UTF-8") from None


def read_query(query: bytes, kind: type[T] | None) -> T | None:
    """Return the parameters of a request as their type; a list may be repeated or joined by commas."""
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        raise Refused(400, "INVALID_INPUT", "the query string cannot be read") from None
    if kind is None:
        if pairs:
            raise Refused(400, "INVALID_INPUT", "this route takes no parameters")
        return None
    return _parameters(pairs, kind)


def _parameters(pairs: list[tuple[str, str]], kind: type[T]) -> T:
    fields = msgspec.structs.fields(cast("type[msgspec.Struct]", kind))
    lists = {field.encode_name for field in fields if get_origin(field.type) is list}
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in lists:
            given.setdefault(name, []).extend(part for part in text.split(",") if part)
        elif name in given:
            raise Refused(400, "INVALID_INPUT", f"the parameter {name!r} is given twice")
        else:
            given[name] = text
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(400, "INVALID_INPUT", f"the parameters are wrong: {error}") from None


def read_body(body: bytes, kind: type[T]) -> T:
    """Return the body as its type."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:  # a wrong type is one of these too
        raise Refused(400, "INVALID_INPUT", f"the body is wrong: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise Refused(400, "INVALID_INPUT", "the body is nested too deeply, or is not UTF-8") from None

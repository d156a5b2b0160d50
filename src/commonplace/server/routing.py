"""Route: one row of what the server answers.  Starlette's routes and the OpenAPI document come from the same rows."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_origin
from urllib.parse import parse_qsl, unquote

import msgspec
from starlette.datastructures import Headers

from commonplace.intents.intents import Caller, Intents
from commonplace.model.ports import Clock
from commonplace.model.values import Value
from commonplace.records.access import MemoryAccess
from commonplace.server.errors import Refused
from commonplace.server.event_watch import Watch
from commonplace.server.keys import Keys
from commonplace.server.settings import Server

T = TypeVar("T")
_VERSION = re.compile(r'(?:W/)?"?([0-9]{1,15})"?')


class Principal(Value):
    """Who calls."""

    key: str  #: the key's id, as the log shows it
    agent: str | None  #: the one agent it acts for; None: an operator, who acts for any

    @property
    def caller(self) -> Caller:
        """As the engine knows callers."""
        return Caller(agent=self.agent, admin=self.agent is None)


class Services(Value):
    """Everything that verbs are asked of."""

    settings: Server
    intents: Intents
    keys: Keys
    desk: Callable[[str | None], MemoryAccess]  #: the memory of our own verbs, of the place or of one agent
    watch: Watch  #: for new events
    clock: Clock
    stopping: Callable[[], bool]  #: whether the server is on its way out


class Call(Value):
    """One request, read and allowed."""

    services: Services
    principal: Principal
    path: Mapping[str, str]
    query: Any  #: of the route's type
    body: Any  #: of the route's type
    headers: Headers

    @property
    def caller(self) -> Caller:
        """Who asks, as the engine knows it."""
        return self.principal.caller

    @property
    def intents(self) -> Intents:
        """The verbs of intent memory."""
        return self.services.intents

    @property
    def version(self) -> int | None:
        """The version that ``If-Match`` names: ``3``, ``"3"`` or ``W/"3"``."""
        told = self.headers.get("if-match")
        if told is None:
            return None
        found = _VERSION.fullmatch(told.strip())
        if found is None:
            raise Refused(400, "INVALID_INPUT", 'If-Match must name one version, such as 3 or "3"')
        return int(found[1])

    @property
    def required_version(self) -> int:
        """The same, where a write without one would overwrite what nobody has seen."""
        if self.version is None:
            raise Refused(428, "PRECONDITION_REQUIRED", "If-Match header required: the version that you have read")
        return self.version


Handler: TypeAlias = Callable[[Call], object]
InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
Stream: TypeAlias = Callable[[Call, InThread, Callable[[], Principal]], AsyncIterator[bytes]]


class Answer(Value):
    """An answer that is not simply 200."""

    content: object
    status: int = 200
    headers: Mapping[str, str] = {}


class Route(Value):
    """One row."""

    method: str
    path: str  #: with ``{names}``; the last may be ``{name:path}``
    summary: str
    handle: Handler
    answers: Any  #: the type of what comes back
    body: Any = None  #: the type of what goes in; None: nothing
    query: Any = None  #: the type of the parameters; None: there are none
    problems: tuple[int, ...] = ()  #: besides those that every route may answer with
    match: Literal["no", "may", "must"] = "no"  #: whether If-Match names a version
    optional_body: bool = False
    open: bool = False  #: nobody is asked for a key
    stream: Stream | None = None  #: for whoever accepts text/event-stream
    tag: str = "memory"


def decoded_path(params: Mapping[str, str]) -> dict[str, str]:
    """The names in a path, each decoded by itself: a slash that was encoded is part of a name."""
    try:
        return {name: unquote(part, errors="strict") for name, part in params.items()}
    except UnicodeDecodeError:
        raise Refused(400, "INVALID_INPUT", "the path is not UTF-8") from None


def read_query(query: bytes, kind: type[T] | None) -> T | None:
    """The parameters of a request as their type; a list may be repeated or joined by commas."""
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
    many = {
        part.encode_name
        for part in msgspec.structs.fields(cast("type[msgspec.Struct]", kind))
        if get_origin(part.type) is list
    }
    given: dict[str, Any] = {}
    for name, text in pairs:
        if name in many:
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
    """The body as its type."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:  # a wrong type is one of these too
        raise Refused(400, "INVALID_INPUT", f"the body is wrong: {error}") from None
    except (RecursionError, UnicodeDecodeError):
        raise Refused(400, "INVALID_INPUT", "the body is nested too deeply, or is not UTF-8") from None

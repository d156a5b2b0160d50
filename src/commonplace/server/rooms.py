"""What the server serves: the routes of each room, and how the caller of its verbs is opened for a request."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import msgspec

from commonplace.intents import EVENT_ROUTES, RFC_ROUTES, SDK_ROUTES, VERBS, Caller, IntentAccess, Intents
from commonplace.model.errors import CommonplaceError, StoreReplaced
from commonplace.model.values import Value
from commonplace.records import VERBS as RECORD_VERBS
from commonplace.records import MemoryAccess
from commonplace.routes import Call, Name, RequestRefused, Route, Strict
from commonplace.server.auth import Authenticator, Principal
from commonplace.server.keys import Keys
from commonplace.server.settings import ServerSettings
from commonplace.server.verb_routes import routes_of
from commonplace.version import VERSION


class Services(Value):
    """What a server works with."""

    settings: ServerSettings
    intents: Intents
    keys: Keys
    authenticator: Authenticator
    memory_access: Callable[[str | None], MemoryAccess]  #: the records of the served store, or of one agent
    is_stopping: Callable[[], bool]  #: whether the server is shutting down
    open_own: Callable[[], AbstractContextManager[MemoryAccess]]  #: the operator's records, for one view of the page


class Health(msgspec.Struct, kw_only=True):
    """The state of the server."""

    status: str
    version: str


class RecordsQuery(Strict):
    """Whose records an operator means: those of the served store, or an agent's own."""

    agent: Name | None = None


def live(_services: Services, _call: Call) -> Health:
    """Answer, which shows that the server runs; nothing else is checked."""
    return Health(status="ok", version=VERSION)


def ready(services: Services, _call: Call) -> Health:
    """Answer if the server is not shutting down and its store can be read."""
    if services.is_stopping():
        raise RequestRefused(503, "STOPPING", "the server is shutting down")
    try:
        services.keys.store.require_current()
        services.keys.exist()
    except StoreReplaced:
        raise RequestRefused(503, "REPLACED", "the database was removed or replaced; it is opened anew") from None
    except CommonplaceError:  # callers without a key do not get the details
        raise RequestRefused(503, "NOT_READY", "the store cannot be read") from None
    return Health(status="ready", version=VERSION)


HEALTH_ROUTES = (
    Route(
        method="GET", path="/healthz", summary="Tell that the server runs.", handle=live, answers=Health, open=True,
        tag="health",
    ),
    Route(
        method="GET", path="/readyz", summary="Tell whether the server can answer.", handle=ready, answers=Health,
        open=True, problems=(503,), tag="health",
    ),
)  # fmt: skip


def _services(services: Services, _principal: Principal, _call: Call) -> Services:
    return services


def _intent_access(services: Services, principal: Principal, _call: Call) -> IntentAccess:
    caller = Caller(agent=principal.agent, admin=principal.agent is None)
    return IntentAccess(intents=services.intents, caller=caller)


def _memory_access(services: Services, principal: Principal, call: Call) -> MemoryAccess:
    """Open the caller's records: an agent always has its own, an operator those of the agent that the call names."""
    return services.memory_access(principal.agent or call.query.agent)


Opener: TypeAlias = Callable[[Services, Principal, Call], Any]
#: In the order in which they are matched: a literal stands before a name in the same place.
ROOMS: tuple[tuple[Opener, tuple[Route, ...]], ...] = (
    (_services, HEALTH_ROUTES),
    (_intent_access, (*EVENT_ROUTES, *RFC_ROUTES, *SDK_ROUTES, *routes_of("intents", VERBS))),
    (_memory_access, routes_of("records", RECORD_VERBS, query=RecordsQuery)),
)
ROUTES = tuple(route for _, routes in ROOMS for route in routes)

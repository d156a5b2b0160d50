"""The HTTP routes of declared verbs: ``POST /v1/<room>/<verb>`` with the arguments and the result as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from commonplace.server.routing import Call, Route
from commonplace.verbs import Verb
from commonplace.wire import encode, schema_of

C = TypeVar("C")
READ_PROBLEMS = (403, 404)
WRITE_PROBLEMS = (403, 404, 409, 429)


def routes_of(
    room: str, verbs: Iterable[Verb[C, ..., Any]], open_caller: Callable[[Call], C], *, query: Any = None
) -> tuple[Route, ...]:
    """Return one route for each verb.

    Args:
        room: The room's name, which the paths begin with.
        verbs: Its verbs.
        open_caller: Returns the caller of the verbs for a request.
        query: The type of the parameters that ``open_caller`` reads; None: there are none.
    """
    return tuple(_route(room, verb, open_caller, query) for verb in verbs)


def _route(room: str, verb: Verb[C, ..., Any], open_caller: Callable[[Call], C], query: Any) -> Route:
    def handle(call: Call) -> object:
        return encode(verb(open_caller(call), **verb.check(call.body)))

    return Route(
        method="POST", path=f"/v1/{room}/{verb.name}", summary=verb.summary, handle=handle, query=query,
        body=dict[str, Any], answers=object, body_schema=verb.parameters(),
        answer_schema=schema_of(verb.result, nullable=True), problems=READ_PROBLEMS if verb.reads else WRITE_PROBLEMS,
        tag=room,
    )  # fmt: skip

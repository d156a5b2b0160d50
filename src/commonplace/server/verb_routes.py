"""The HTTP routes of declared verbs: ``POST /v1/<room>/<verb>`` with the arguments and the result as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from commonplace.routes import Call, Route
from commonplace.verbs import Verb
from commonplace.wire import encode, schema_of

READ_PROBLEMS = (403, 404)
WRITE_PROBLEMS = (403, 404, 409, 429)


def routes_of(room: str, verbs: Iterable[Verb[Any, ..., Any]], *, query: Any = None) -> tuple[Route, ...]:
    """Return one route for each verb of a room; ``query`` is the type of the parameters that opening a caller reads."""
    return tuple(_route(room, verb, query) for verb in verbs)


def _route(room: str, verb: Verb[Any, ..., Any], query: Any) -> Route:
    def handle(caller: Any, call: Call) -> object:
        return encode(verb(caller, **verb.check({} if call.body is None else call.body)))

    return Route(
        method="POST", path=f"/v1/{room}/{verb.name}", summary=verb.summary, handle=handle, query=query,
        body=dict[str, Any], optional_body=not verb.required_names(), answers=object, body_schema=verb.parameters(),
        answer_schema=schema_of(verb.result, nullable=True), problems=READ_PROBLEMS if verb.reads else WRITE_PROBLEMS,
        reads=verb.reads, tag=room,
    )  # fmt: skip

"""Entries by agent, namespace and key in the path, as the MCP tools of intent memory ask for them.

A namespace called ``summary`` cannot be listed this way: its path is the summary's.  ``?namespace=summary`` lists it.
"""

from __future__ import annotations

from commonplace.intents import wire
from commonplace.intents.intents import EntryFilter
from commonplace.intents.sdk_routes import tagged
from commonplace.intents.wire import Deleted, Limit, Offset, PutValue, Strict, Tier, WireEntry
from commonplace.server.routing import Answer, Call, Route


class WhichTier(Strict):
    """In which tier, and for which task."""

    memory_type: Tier | None = None
    task_id: wire.Name | None = None


class Part(Strict):
    """Which part of a list."""

    limit: Limit = 100
    offset: Offset = 0


def put(call: Call) -> Answer:
    """Keep the value of a key, new or not; If-Match makes it conditional."""
    given: PutValue = call.body
    where: WhichTier = call.query
    kept = call.intents.store(
        call.caller, call.path["agent"], call.path["key"], given.value, namespace=call.path["namespace"],
        tier=where.memory_type or given.memory_type, tags=tuple(given.tags), ttl=given.ttl_seconds, task=where.task_id,
        version=call.version,
    )  # fmt: skip
    return tagged(wire.entry(kept))


def get(call: Call) -> Answer:
    """The entry of a key."""
    where: WhichTier = call.query
    found = call.intents.get(
        call.caller, call.path["agent"], call.path["key"], namespace=call.path["namespace"], tier=where.memory_type,
        task=where.task_id,
    )  # fmt: skip
    return tagged(wire.entry(found))


def delete(call: Call) -> Deleted:
    """Erase the entry of a key for good."""
    where: WhichTier = call.query
    call.intents.forget(
        call.caller, call.path["agent"], call.path["key"], namespace=call.path["namespace"], tier=where.memory_type,
        task=where.task_id,
    )  # fmt: skip
    return Deleted()


def listed(call: Call) -> list[WireEntry]:
    """The entries of a namespace."""
    part: Part = call.query
    where = EntryFilter(agent=call.path["agent"], namespace=call.path["namespace"])
    found = call.intents.page(call.caller, where, limit=min(part.limit, wire.LIMIT_MOST), offset=part.offset)
    return wire.entries(found.entries)


_KEY = "/api/v1/agents/{agent}/memory/{namespace}/{key:path}"
ROUTES = (
    Route(
        method="PUT", path=_KEY, summary="Keep the value of a key, new or not.", handle=put, body=PutValue,
        query=WhichTier, answers=WireEntry, problems=(403, 404, 409, 429), match="may", tag="by key",
    ),
    Route(
        method="GET", path=_KEY, summary="The entry of a key.", handle=get, query=WhichTier, answers=WireEntry,
        problems=(403, 404), tag="by key",
    ),
    Route(
        method="DELETE", path=_KEY, summary="Erase the entry of a key for good.", handle=delete, query=WhichTier,
        answers=Deleted, problems=(403, 404), tag="by key",
    ),
    Route(
        method="GET", path="/api/v1/agents/{agent}/memory/{namespace}", summary="The entries of a namespace.",
        handle=listed, query=Part, answers=list[WireEntry], tag="by key",
    ),
)  # fmt: skip

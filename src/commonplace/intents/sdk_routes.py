"""The five flat calls of the public client: create, get, list, update, delete."""

from __future__ import annotations

from commonplace.intents import wire
from commonplace.intents.intents import EntryFilter
from commonplace.intents.wire import AgentPage, Deleted, EntryChange, NewEntry, WireEntry
from commonplace.server.routing import Answer, Call, Route


def create(call: Call) -> Answer:
    """Keep a new entry; a key that is taken is a conflict, never a second row and never a silent overwrite."""
    given: NewEntry = call.body
    return tagged(wire.entry(call.intents.store(call.caller, **given.arguments(), fresh=True)))


def get(call: Call) -> Answer:
    """One entry by its id."""
    return tagged(wire.entry(call.intents.entry(call.caller, call.path["id"])))


def listed(call: Call) -> list[WireEntry]:
    """An agent's entries as a bare array: that is what the public client reads."""
    asked: AgentPage = call.query
    where = EntryFilter(
        agent=call.path["agent"], namespace=asked.namespace or None, tier=asked.memory_type, tags=tuple(asked.tags)
    )
    found = call.intents.page(call.caller, where, limit=min(asked.limit, wire.LIMIT_MOST), offset=asked.offset)
    return wire.entries(found.entries)


def update(call: Call) -> Answer:
    """Change an entry that is at the version which If-Match names."""
    change: EntryChange = call.body
    version = call.required_version
    return tagged(wire.entry(call.intents.update(call.caller, call.path["id"], version=version, **change.arguments())))


def delete(call: Call) -> Deleted:
    """Erase an entry for good."""
    call.intents.remove(call.caller, call.path["id"])
    return Deleted(entry_id=call.path["id"])


def tagged(entry: WireEntry) -> Answer:
    """An entry with its version as ETag, which If-Match takes as it is."""
    return Answer(content=entry, headers={"ETag": f'"{entry.version}"'})


ROUTES = (
    Route(
        method="POST", path="/api/v1/memory", summary="Keep a new entry.", handle=create, body=NewEntry,
        answers=WireEntry, problems=(403, 409, 429),
    ),
    Route(
        method="GET", path="/api/v1/memory/{id}", summary="One entry by its id.", handle=get, answers=WireEntry,
        problems=(404,),
    ),
    Route(
        method="PATCH", path="/api/v1/memory/{id}", summary="Change an entry that is at the version of If-Match.",
        handle=update, body=EntryChange, answers=WireEntry, problems=(403, 404, 409, 428, 429), match="must",
    ),
    Route(
        method="DELETE", path="/api/v1/memory/{id}", summary="Erase an entry for good.", handle=delete,
        answers=Deleted, problems=(403, 404),
    ),
    Route(
        method="GET", path="/api/v1/agents/{agent}/memory", summary="An agent's entries, newest first.", handle=listed,
        query=AgentPage, answers=list[WireEntry],
    ),
)  # fmt: skip

"""What happened to entries, as a list and as server-sent events; never a value.

Every process on a store tells of what the others do: one thread waits until the store has heard of something, and then
every stream looks.  A stream begins after the event that ``Last-Event-ID`` or ``after`` names, so a client that was cut
off misses nothing; one that was away for longer than events are kept is told so.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from commonplace.intents.intents import agent_of, namespace_of, task_of
from commonplace.intents.wire import LIMIT_MOST, Limit, Name, Strict, Tier, moment
from commonplace.model.events import Event
from commonplace.server.errors import Refused
from commonplace.server.routing import Call, InThread, Principal, Route

STREAM_PAGE = 500  # events of one look; the next follows at once if there were as many
SEQUENCE_MOST = 9_007_199_254_740_991


class WhichEvents(Strict):
    """Which events are meant."""

    after: Annotated[int, Meta(ge=0, le=SEQUENCE_MOST)] = 0  #: the ``id`` of the last one that is known
    limit: Limit = 100
    agent_id: Name | None = None


class WireEvent(msgspec.Struct, kw_only=True):
    """One thing that happened to an entry."""

    id: int  #: later ones are greater
    type: str  #: memory.created, .updated, .deleted, .archived, .evicted or .expired
    at: str
    entry_id: str | None
    agent_id: str | None  #: whose entry; None: shared
    namespace: str
    key: str | None
    memory_type: Tier | None
    version: int | None
    previous_version: int | None
    tags: list[str]
    task_id: str | None
    entries_archived: int | UnsetType = UNSET  #: of an archive: how many it holds


class WireEvents(msgspec.Struct, kw_only=True):
    """Events, earliest first."""

    events: list[WireEvent]
    next: int  #: what ``after`` should be the next time
    kept_after: int  #: up to this number only archives are kept: with an ``after`` below it some may be missing


def listed(call: Call) -> WireEvents:
    """The events after one, earliest first."""
    asked: WhichEvents = call.query
    found = call.intents.events(
        call.caller, after=asked.after, limit=min(asked.limit, LIMIT_MOST), agent=asked.agent_id
    )
    last = found[-1].seq if found else asked.after
    return WireEvents(events=[event(one) for one in found], next=last, kept_after=call.intents.events_floor())


async def stream(call: Call, in_thread: InThread, allowed: Callable[[], Principal]) -> AsyncIterator[bytes]:
    """Events as they happen, until the client goes, the key is revoked or the server stops."""
    asked: WhichEvents = call.query
    limits = call.services.settings.limits
    after, seen, spoke = started_after(call), 0, time.monotonic()
    resumed = after
    yield b"retry: 1000\n\n"
    while not call.services.stopping():
        found = await in_thread(partial(_look, call, allowed, after, asked.agent_id))
        if found is None:
            return
        if resumed:
            kept = await in_thread(call.intents.events_floor)
            if resumed < kept:
                yield missed(kept)
            resumed = 0
        for one in found:
            after = one.seq
            yield sent(one)
        if found:
            spoke = time.monotonic()
        elif time.monotonic() - spoke >= limits.beat_seconds:
            spoke = time.monotonic()
            yield b": still here\n\n"
        if len(found) < STREAM_PAGE:
            seen = await call.services.watch.beyond(seen, limits.poll_seconds)


def started_after(call: Call) -> int:
    """Where a stream begins: after what the client says that it had last."""
    had = call.headers.get("last-event-id")
    if had is None:
        return int(call.query.after)
    if not (had.isascii() and had.isdecimal() and len(had) <= len(str(SEQUENCE_MOST))):
        raise Refused(400, "INVALID_INPUT", "Last-Event-ID must be the id of an event")
    return int(had)


def _look(call: Call, allowed: Callable[[], Principal], after: int, agent: str | None) -> list[Event] | None:
    """The next events; None if the key that opened the stream opens nothing any more."""
    try:
        if allowed() != call.principal:
            return None
    except Refused:
        return None
    return call.intents.events(call.caller, after=after, limit=STREAM_PAGE, agent=agent)


def missed(kept_after: int) -> bytes:
    """What a client is told that was away for too long; without an id, so that it goes on from where it is."""
    return b"event: memory.missed\ndata: %s\n\n" % msgspec.json.encode({"kept_after": kept_after})


def sent(happened: Event) -> bytes:
    """An event in the form of server-sent events."""
    told = msgspec.json.encode(event(happened))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (happened.seq, happened.what.value.encode(), told)


def event(happened: Event) -> WireEvent:
    """An event to go out: names and versions, and of an archive only how much it holds."""
    count = happened.detail.get("entries_archived")
    return WireEvent(
        id=happened.seq, type=happened.what.value, at=moment(happened.at), entry_id=happened.record,
        agent_id=agent_of(happened.scope), namespace=namespace_of(happened.scope), key=happened.key,
        memory_type=_tier(happened), version=happened.version, previous_version=happened.previous,
        tags=sorted(happened.tags), task_id=task_of(happened.scope),
        entries_archived=count if isinstance(count, int) else UNSET,
    )  # fmt: skip


def _tier(happened: Event) -> Tier | None:
    return None if happened.kind is None else msgspec.convert(happened.kind.value, Tier)


ROUTES = (
    Route(
        method="GET", path="/api/v1/memory/events",
        summary="What happened to entries, earliest first; as a stream with Accept: text/event-stream.",
        handle=listed, query=WhichEvents, answers=WireEvents, problems=(403,), stream=stream, tag="events",
    ),
)  # fmt: skip

"""The route of events: a list, and with ``Accept: text/event-stream`` a stream of server-sent events.

Every server on a store streams the events of all: one thread waits until the store has a new event, then every stream
reads.  A stream begins after the event that ``Last-Event-ID`` or ``after`` names, so a client that was cut off misses
nothing; one that was away for longer than events are stored gets an event that says so.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from commonplace.intents import verbs
from commonplace.intents.events import EntryEvent, EntryEvents
from commonplace.intents.public_format import Public, PublicEvents, public_event, public_events
from commonplace.intents.verbs import SEQUENCE_MAX, IntentAccess
from commonplace.routes import Call, Limit, Name, RequestRefused, Route, Streaming

STREAM_PAGE = 500  # events of one read; the next read follows at once if there were as many


class EventFilter(Public):
    """Which events."""

    after: Annotated[int, Meta(ge=0, le=SEQUENCE_MAX)] = 0  #: the ``id`` of the last event that the client knows
    limit: Limit = 100
    agent_id: Name | None = None


def list_events(access: IntentAccess, call: Call) -> PublicEvents:
    """Return the events after one, oldest first."""
    return public_events(verbs.events(access, **call.query.arguments()))


async def stream(access: IntentAccess, call: Call, streaming: Streaming) -> AsyncIterator[bytes]:
    """Send events as they happen, until the client leaves, the key is revoked or the server stops."""
    after, newest, sent_at = _start(call), 0, time.monotonic()
    resumed = after
    yield b"retry: 1000\n\n"
    while not streaming.is_stopping():
        found = await streaming.in_thread(partial(_read, access, call, streaming, after))
        if found is None:
            return
        if 0 < resumed < found.events_floor:
            yield _missed_event(found.events_floor)
        resumed, after = 0, found.next
        for event in found.events:
            yield _to_sse(event)
        if found.events:
            sent_at = time.monotonic()
        elif time.monotonic() - sent_at >= streaming.heartbeat_seconds:
            sent_at = time.monotonic()
            yield b": still here\n\n"
        if len(found.events) < STREAM_PAGE:
            newest = await streaming.wait(newest)


def _start(call: Call) -> int:
    """Return the number of the last event that the client has."""
    last = call.headers.get("last-event-id")
    if last is None:
        return int(call.query.after)
    if not (last.isascii() and last.isdecimal() and len(last) <= len(str(SEQUENCE_MAX))):
        raise RequestRefused(400, "INVALID_INPUT", "Last-Event-ID must be the id of an event")
    return int(last)


def _read(access: IntentAccess, call: Call, streaming: Streaming, after: int) -> EntryEvents | None:
    """Return the next events; None if the key that opened the stream was revoked."""
    if not streaming.is_allowed():
        return None
    return verbs.events(access, after, limit=STREAM_PAGE, agent_id=call.query.agent_id)


def _missed_event(events_floor: int) -> bytes:
    """Return the event for a client that was away too long; without an id, so that it resumes from where it is."""
    return b"event: memory.missed\ndata: %s\n\n" % msgspec.json.encode({"events_floor": events_floor})


def _to_sse(event: EntryEvent) -> bytes:
    """Return an event in the format of server-sent events."""
    data = msgspec.json.encode(public_event(event))
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.type.encode(), data)


EVENT_ROUTES = (
    Route(
        method="GET", path="/api/v1/memory/events",
        summary="List events of entries, oldest first; with Accept: text/event-stream as a stream.",
        handle=list_events, query=EventFilter, answers=PublicEvents, problems=(403,), stream=stream, tag="events",
    ),
)  # fmt: skip

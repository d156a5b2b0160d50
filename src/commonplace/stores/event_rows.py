"""Events to rows and back, for both databases.  Pure: no connection is seen here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from commonplace.model.events import Event, Happened
from commonplace.model.records import Kind, Record
from commonplace.stores.rows import micros, moment, packed, scope_at, unpacked

#: The columns of an event but for its number, which the database gives, and its scope, which is a row.
FIELDS = ("what", "at", "record", "kind", "key", "version", "previous", "tags", "detail")
TRIMMED = "events_kept_after"  # under which a store notes up to where events were erased for their age
LISTED = (
    f"select e.seq, s.path, {', '.join(f'e.{field}' for field in FIELDS)} from event e join scope s on s.id = e.scope"
)


def outdated(rows: Sequence[Sequence[Any]], before: datetime) -> int | None:
    """Up to which number events (number, moment; in order) are old: to the last old one; None: none is."""
    return next((int(seq) for seq, at in reversed(rows) if at < micros(before)), None)


def written(record: Record) -> Event:
    """What a put tells of the record that it kept."""
    what = Happened.CREATED if record.version == 1 else Happened.UPDATED
    return _about(record, what, record.updated_at, previous=record.version - 1 or None)


def ended(record: Record, what: Happened, at: datetime) -> Event:
    """What the end of a record tells."""
    return _about(record, what, at, previous=record.version)


def _about(record: Record, what: Happened, at: datetime, *, previous: int | None) -> Event:
    return Event(
        what=what, at=at, scope=record.scope, record=record.id, kind=record.kind, key=record.key,
        version=record.version, previous=previous, tags=tuple(sorted(record.tags)),
    )  # fmt: skip


def event_row(event: Event) -> tuple[Any, ...]:
    """An event as values for ``FIELDS``."""
    return (
        event.what.value, micros(event.at), event.record, None if event.kind is None else event.kind.value, event.key,
        event.version, event.previous, packed(list(event.tags)), packed(dict(event.detail)),
    )  # fmt: skip


def row_event(row: Sequence[Any]) -> Event:
    """A row of ``LISTED`` as an event."""
    seq, path, what, at, record, kind, key, version, previous, tags, detail = row
    return Event(
        seq=seq, what=Happened(what), at=moment(at), scope=scope_at(path), record=record,
        kind=None if kind is None else Kind(kind), key=key, version=version, previous=previous,
        tags=tuple(unpacked(tags)), detail=unpacked(detail),
    )  # fmt: skip

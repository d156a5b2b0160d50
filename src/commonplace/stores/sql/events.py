"""Events inside a transaction: inserted, listed, and erased for their age.  Loaded by changes that emit them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.model.changes import Outcome, TrimEvents
from commonplace.model.events import Event, EventKind
from commonplace.model.records import Kind, Record
from commonplace.model.scopes import Scope
from commonplace.stores.rows import from_json, insert_sql, micros, moment, scope_at, to_json
from commonplace.stores.sql.filters import rows_limit, scope_row, scopes_sql

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

#: The columns of an event but for its number, which the database gives, and its scope, which is a row.
FIELDS = ("what", "at", "record", "kind", "key", "version", "previous", "tags", "detail")
FLOOR = "events_kept_after"  # under which a store notes up to which number events were erased for their age
_INSERT = insert_sql("event", ("scope", *FIELDS))
_SELECT = (
    f"select e.seq, s.path, {', '.join(f'e.{field}' for field in FIELDS)} from event e join scope s on s.id = e.scope"
)


def insert(db: Db, events: Collection[Event]) -> Outcome:
    """Insert events; the store numbers them."""
    if events:
        db.insert_events(_INSERT, [(scope_row(db, event.scope), *_row(event)) for event in events])
    return Outcome()


def list_events(db: Db, scopes: Collection[Scope], *, after: int, limit: int) -> list[Event]:
    """Return the events of these scopes after that number."""
    condition, values = scopes_sql(db, scopes, "e.scope")
    sql = f"{_SELECT} where {condition} and e.seq > ? order by e.seq limit ?"
    return [_event(row) for row in db.every(sql, [*values, after, rows_limit(limit)])]


def last(db: Db) -> int:
    """Return the number of the last event; 0 if there is none."""
    [(number,)] = db.every(f"select coalesce(max(seq), 0) from event where {db.own_events}")
    return int(number)


def floor(db: Db) -> int:
    """Return the number up to which events were erased for their age."""
    row = db.first(f"select value from {db.notes} where key = ?", [FLOOR])
    return int(row[0]) if row else 0


def trim(db: Db, change: TrimEvents) -> Outcome:
    """Erase the earliest events if they are old; it begins where the last one ended, past all old archives.

    One at a time, and no one waits: a transaction that is trimming already does it for both.
    """
    if not db.may_trim():
        return Outcome()
    start = floor(db)
    window = f"select seq, at from event where {db.own_events} and seq > ? order by seq limit ?"
    rows = db.every(window, [start, change.limit])
    before = micros(change.before)
    end = next((int(seq) for seq, at in reversed(rows) if at < before), None)  # what comes before an old one is old
    if end is None:
        return Outcome()
    reached = db.erase_events(start, end)
    if reached > start:
        db.note(FLOOR, reached)
    return Outcome(more=len(rows) == change.limit and reached == rows[-1][0])


# Rows


def about(record: Record, what: str | None, at: datetime) -> Event:
    """Return the event of a record's end, or, without ``what``, of a put."""
    put = EventKind.CREATED if record.version == 1 else EventKind.UPDATED
    return Event(
        what=put if what is None else EventKind(what), at=at, scope=record.scope, record=record.id, kind=record.kind,
        key=record.key, version=record.version, tags=tuple(sorted(record.tags)),
        previous=record.version if what is not None else record.version - 1 or None,
    )  # fmt: skip


def _row(event: Event) -> tuple[Any, ...]:
    return (
        event.what.value, micros(event.at), event.record, None if event.kind is None else event.kind.value, event.key,
        event.version, event.previous, to_json(list(event.tags)), to_json(dict(event.detail)),
    )  # fmt: skip


def _event(row: Sequence[Any]) -> Event:
    seq, path, what, at, record, kind, key, version, previous, tags, detail = row
    return Event(
        seq=seq, what=EventKind(what), at=moment(at), scope=scope_at(path), record=record,
        kind=None if kind is None else Kind(kind), key=key, version=version, previous=previous,
        tags=tuple(from_json(tags)), detail=from_json(detail),
    )  # fmt: skip

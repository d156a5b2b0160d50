"""Events inside a transaction.  One writer at a time: their numbers are in the order of the commits."""

from __future__ import annotations

from collections.abc import Collection

import apsw

from commonplace.model.changes import Outcome, TrimEvents
from commonplace.model.events import Event, Happened
from commonplace.model.scopes import Scope
from commonplace.stores.event_rows import FIELDS, LISTED, TRIMMED, event_row, outdated, row_event
from commonplace.stores.rows import marks, scopes_sql
from commonplace.stores.sqlite.connection import every, first, scope_row

_INSERT = f"insert into event (scope, {', '.join(FIELDS)}) values (?, {marks(FIELDS)})"


def note(db: apsw.Connection, events: Collection[Event]) -> None:
    """Write events down; the store numbers them."""
    db.executemany(_INSERT, [(scope_row(db, event.scope), *event_row(event)) for event in events])


def listed(db: apsw.Connection, scopes: Collection[Scope], *, after: int, limit: int) -> list[Event]:
    """What was told of these scopes after that number."""
    condition, values = scopes_sql(frozenset(scopes), "e.scope")
    sql = f"{LISTED} where {condition} and e.seq > ? order by e.seq limit ?"
    return [row_event(row) for row in every(db, sql, [*values, after, limit])]


def trim(db: apsw.Connection, change: TrimEvents) -> Outcome:
    """Erase the earliest events if they are old; where the last look ended this one begins, past all old archives."""
    start = events_floor(db)
    rows = every(db, "select seq, at from event where seq > ? order by seq limit ?", (start, change.most))
    end = outdated(rows, change.before)
    if end is None:
        return Outcome()
    db.execute("delete from event where seq > ? and seq <= ? and what <> ?", (start, end, Happened.ARCHIVED.value))
    db.execute("insert or replace into meta values (?, ?)", (TRIMMED, end))
    return Outcome(more=len(rows) == change.most and end == rows[-1][0])


def events_floor(db: apsw.Connection) -> int:
    """The number up to which events were erased for their age."""
    row = first(db, "select value from meta where key = ?", (TRIMMED,))
    return int(row[0]) if row else 0


def take_over(db: apsw.Connection, last: int) -> None:
    """Say up to where events were erased elsewhere: the next one must have a later number here, too."""
    db.execute("insert or replace into meta values (?, ?)", (TRIMMED, last))
    db.execute(
        "insert into sqlite_sequence select 'event', 0"
        " where not exists (select 1 from sqlite_sequence where name = 'event')"
    )
    db.execute("update sqlite_sequence set seq = max(seq, ?) where name = 'event'", (last,))

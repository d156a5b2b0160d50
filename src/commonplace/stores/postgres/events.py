"""Events inside a transaction.  Whoever tells something waits until whoever told the last thing has committed.

A number is handed out before its transaction ends: without that turn a later one could be seen first, and who had read
so far would never come back for the earlier one.  The turn is taken last, after those of the scopes, so that nobody
waits in a circle.  Who listens on the store's channel hears of each transaction that told something, when it is done.
"""

from __future__ import annotations

from collections.abc import Collection

from commonplace.model.changes import Outcome, TrimEvents
from commonplace.model.events import Event, Happened
from commonplace.model.scopes import Scope
from commonplace.stores.event_rows import FIELDS, LISTED, TRIMMED, event_row, outdated, row_event
from commonplace.stores.postgres.connection import Db, every, first, run, run_each
from commonplace.stores.postgres.filters import most, scopes_sql
from commonplace.stores.postgres.scopes import scope_row
from commonplace.stores.postgres.vectors import NOTED
from commonplace.stores.rows import marks

_INSERT = f"insert into event (scope, {', '.join(FIELDS)}) values (?, {marks(FIELDS)})"
_CHANNEL = "'commonplace ' || md5(current_schema() || ' ' || current_setting('commonplace.tenant'))"
_OWN = (
    "tenant = current_setting('commonplace.tenant')"  # said also without row-level security: the index begins with it
)
_TRIMMING = (
    "select pg_try_advisory_xact_lock(hashtextextended("
    "current_schema() || ' trimming ' || current_setting('commonplace.tenant'), 0))"
)
_TURN = "select pg_advisory_xact_lock(hashtextextended(current_schema() || ' events', 0))"


def note(db: Db, events: Collection[Event]) -> None:
    """Write events down; the store numbers them."""
    if events:
        run(db, _TURN)
        run_each(db, _INSERT, [(scope_row(db, event.scope), *event_row(event)) for event in events])
        run(db, f"select pg_notify({_CHANNEL}, '')")  # says that there is something, to nobody what


def channel(db: Db) -> str:
    """On what channel a store, and each tenant of it, tells that it told something."""
    [(name,)] = every(db, f"select {_CHANNEL}")
    return str(name)


def last(db: Db) -> int:
    """The number of the last event; 0 if there is none."""
    [(number,)] = every(db, f"select coalesce(max(seq), 0) from event where {_OWN}")
    return int(number)


def listed(db: Db, scopes: Collection[Scope], *, after: int, limit: int) -> list[Event]:
    """What was told of these scopes after that number."""
    condition, values = scopes_sql(scopes, "e.scope")
    sql = f"{LISTED} where {condition} and e.seq > ? order by e.seq limit ?"
    return [row_event(row) for row in every(db, sql, [*values, after, most(limit)])]


def trim(db: Db, change: TrimEvents) -> Outcome:
    """Erase the earliest events if they are old; where the last look ended this one begins, past all old archives.

    One at a time, and nobody waits: who finds another at it leaves it to them.
    """
    [(mine,)] = every(db, _TRIMMING)
    start = events_floor(db) if mine else 0
    window = f"select seq, at from event where {_OWN} and seq > ? order by seq limit ?"
    rows = every(db, window, [start, change.most]) if mine else []
    end = outdated(rows, change.before)
    if end is None:
        return Outcome()
    reached = _erased(db, start, end)
    if reached > start:
        again = "on conflict (key, tenant) do update set value = excluded.value"
        run(db, f"insert into {NOTED} (key, value) values (?, ?) {again}", [TRIMMED, str(reached)])
    return Outcome(more=len(rows) == change.most and reached == rows[-1][0])


def _erased(db: Db, start: int, last: int) -> int:
    """Erase what lies between these numbers, and say how far: not past what somebody else is erasing with its scope."""
    meant = f"{_OWN} and seq > ? and seq <= ? and what <> ?"
    values = [start, last, Happened.ARCHIVED.value]
    free = {seq for (seq,) in every(db, f"select seq from event where {meant} for update skip locked", values)}
    there = every(db, f"select seq from event where {meant} order by seq", values)
    reached = next((int(seq) - 1 for (seq,) in there if seq not in free), last)
    run(db, f"delete from event where {meant}", [start, reached, Happened.ARCHIVED.value])
    return reached


def events_floor(db: Db) -> int:
    """The number up to which events were erased for their age."""
    row = first(db, f"select value from {NOTED} where key = ?", [TRIMMED])
    return int(row[0]) if row else 0

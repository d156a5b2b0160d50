"""Events inside a transaction.  Whoever tells something waits until whoever told the last thing has committed.

A number is handed out before its transaction ends: without that turn a later one could be seen first, and who had read
so far would never come back for the earlier one.  The turn is taken last, after those of the scopes, so that nobody
waits in a circle.  Who listens on the store's channel hears of each transaction that told something, when it is done.
"""

from __future__ import annotations

from collections.abc import Collection

from commonplace.domain.events import Event
from commonplace.domain.scopes import Scope
from commonplace.stores.event_rows import FIELDS, LISTED, event_row, row_event
from commonplace.stores.postgres_connection import Db, every, run, run_each
from commonplace.stores.postgres_filters import most, scopes_sql
from commonplace.stores.postgres_scopes import scope_row
from commonplace.stores.rows import marks

_INSERT = f"insert into event (scope, {', '.join(FIELDS)}) values (?, {marks(FIELDS)})"
_CHANNEL = "'commonplace ' || md5(current_schema() || ' ' || current_setting('commonplace.tenant'))"
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
    [(number,)] = every(db, "select coalesce(max(seq), 0) from event")
    return int(number)


def listed(db: Db, scopes: Collection[Scope], *, after: int, limit: int) -> list[Event]:
    """What was told of these scopes after that number."""
    condition, values = scopes_sql(scopes, "e.scope")
    sql = f"{LISTED} where {condition} and e.seq > ? order by e.seq limit ?"
    return [row_event(row) for row in every(db, sql, [*values, after, most(limit)])]

"""Events inside a transaction.  One writer at a time: their numbers are in the order of the commits."""

from __future__ import annotations

from collections.abc import Collection

import apsw

from commonplace.domain.events import Event
from commonplace.domain.scopes import Scope
from commonplace.stores.event_rows import FIELDS, LISTED, event_row, row_event
from commonplace.stores.rows import marks, scopes_sql
from commonplace.stores.sqlite_connection import every, scope_row

_INSERT = f"insert into event (scope, {', '.join(FIELDS)}) values (?, {marks(FIELDS)})"


def note(db: apsw.Connection, events: Collection[Event]) -> None:
    """Write events down; the store numbers them."""
    db.executemany(_INSERT, [(scope_row(db, event.scope), *event_row(event)) for event in events])


def listed(db: apsw.Connection, scopes: Collection[Scope], *, after: int, limit: int) -> list[Event]:
    """What was told of these scopes after that number."""
    condition, values = scopes_sql(frozenset(scopes), "e.scope")
    sql = f"{LISTED} where {condition} and e.seq > ? order by e.seq limit ?"
    return [row_event(row) for row in every(db, sql, [*values, after, limit])]

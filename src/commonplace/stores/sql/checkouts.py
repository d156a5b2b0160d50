"""What a checkout shows: of most records the current version, of some an earlier one, of some nothing.

The exceptions are rows of ``file`` under a name of their own (``model.documents.shown_in``), one for each record.  A
version that is not there any more is no exception: then the current one is shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from commonplace.model.documents import CHECKOUT, HIDDEN, SHOWN
from commonplace.stores.rows import FILE, Sql, insert_sql
from commonplace.stores.sql.filters import state_sql

if TYPE_CHECKING:
    from commonplace.model.changes import FromCheckout
    from commonplace.model.queries import Filter
    from commonplace.stores.sql.dialect import Db

#: An exception under the alias `s` that holds for the record `p`.
_HOLDS = (
    f"s.record = p.id and s.version <> p.version and (s.version = {HIDDEN}"
    " or exists (select 1 from version w where w.record = p.row and w.version = s.version))"
)
_EARLIER = "join record p on p.id = s.record join version v on v.record = p.row and v.version = s.version"
#: The checkouts of a scope: the folders are few, so they are leapt through, not counted.
_CHECKOUTS = (
    "with recursive named (folder) as (select min(folder) from file union all select"
    " (select min(f.folder) from file f where f.folder > named.folder) from named where named.folder is not null)"
    " select folder from named where exists (select 1 from file f where f.folder = named.folder and f.path = ?)"
)


def viewed_rows(db: Db, views: Collection[str]) -> Sql:
    """Return the rows that checkouts show, as a table with the columns of ``filters.rows_of``."""
    condition, names = db.among("s.folder", views)
    return _viewed(db.columns, condition), [*names, *names]


@lru_cache(maxsize=8)
def _viewed(columns: tuple[str, ...], condition: str) -> str:
    present, past = (", ".join(f"{alias}.{column}" for column in columns) for alias in "pv")
    return (
        f"(select p.row as row, p.row * 4 as entry, {present} from record p"
        f" where not exists (select 1 from file s where {condition} and {_HOLDS})"
        f" union all select v.record as row, v.row * 4 + 2 as entry, {past} from file s {_EARLIER} where {condition}"
        " and s.version <> p.version)"
    )


def viewed_entries(db: Db, where: Filter) -> Sql:
    """Return the condition that an entry under the alias `e` is one that checkouts show; of earlier versions the live.

    A chunk passes it.
    """
    condition, names = db.among("s.folder", where.views)
    live, moments = state_sql("v", where.states, where.at)
    hidden = f"select p.row * 4 from file s join record p on {_HOLDS} where {condition}"
    earlier = f"select v.row * 4 + 2 from file s {_EARLIER} where {condition} and s.version <> p.version and {live}"
    sql = f"((e.id % 4 <> 2 and e.id not in ({hidden})) or e.id in ({earlier}))"
    return sql, [*names, *names, *moments]


def pin(db: Db, change: FromCheckout, records: Iterable[str]) -> None:
    """Let these records be current in one folder, and in each other one of its scope what that folder's files show."""
    ids = sorted({*records})
    own = change.folder
    registered = {folder.removesuffix(CHECKOUT) for (folder,) in db.every(_CHECKOUTS, [str(change.scope)])}
    if own not in registered:
        _insert(db, [(own + CHECKOUT, str(change.scope), "", 0, "", 0)])
    if not ids:
        return
    chosen, values = db.among("record", ids)
    for folder in sorted(registered - {own}):
        held = dict(db.every(f"select record, max(version) from file where folder = ? and {chosen} group by record",
                             [folder, *values]))  # fmt: skip
        _insert(db, [(folder + SHOWN, id_, id_, held.get(id_, HIDDEN), "", 0) for id_ in ids])
    db.run(f"delete from file where folder = ? and {chosen}", [own + SHOWN, *values])


def _insert(db: Db, rows: list[tuple[str, str, str, int, str, int]]) -> None:
    """Insert rows of `file` unless they are there."""
    db.run_each(f"{insert_sql('file', ('folder', 'path', *FILE))} on conflict do nothing", rows)

"""How much was stored at the end of each of some spans of time, counted in one pass over the rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from commonplace.model.ports import Growth
from commonplace.model.scopes import Scope
from commonplace.stores.rows import micros, scope_at
from commonplace.stores.sql.dialect import Db

RECORDS = "records"


def growth(db: Db, scopes: Collection[Scope], *, until: datetime, step: timedelta, steps: int) -> list[Growth]:
    """See ``Store.growth``."""
    start, width = micros(until - step * (steps - 1)), step // timedelta(microseconds=1)
    record, document = db.bytes_of.format("r.content"), db.bytes_of.format("d.content")
    sql = (
        f"select s.path, '{RECORDS}', {_step('r.created_at')}, {_step('r.archived_at')}, count(*),"
        f" cast(sum({record}) as bigint) from record r join scope s on s.id = r.scope group by 1, 2, 3, 4 union all"
        f" select s.path, d.kind, {_step('d.created_at')}, -1, count(*), cast(sum(coalesce({document}, 0)) as bigint)"
        " from document d join scope s on s.id = d.scope group by 1, 2, 3, 4"
    )
    changes: dict[tuple[Scope, str], list[tuple[int, int]]] = {}
    for path, what, begin, end, count, size in db.every(sql, [start, start, width] * 3):
        if (scope := scope_at(path)) not in scopes:
            continue
        row = changes.setdefault((scope, what), [(0, 0)] * steps)
        for place, sign in ((begin, 1), (end, -1)):
            if 0 <= place < steps:
                row[place] = (row[place][0] + sign * count, row[place][1] + sign * size)
    return [_sums(scope, what, row) for (scope, what), row in sorted(changes.items(), key=lambda one: repr(one[0]))]


def _sums(scope: Scope, what: str, row: Sequence[tuple[int, int]]) -> Growth:
    counts, sizes = (tuple(accumulate(one[part] for one in row)) for part in (0, 1))
    return Growth(scope=scope, what=what, counts=counts, bytes=sizes)


def _step(moment: str) -> str:
    """SQL for the number of the first span at whose end something had happened; -1: it has not."""
    return f"case when {moment} is null then -1 when {moment} <= ? then 0 else ({moment} - ? - 1) / ? + 1 end"

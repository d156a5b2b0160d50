"""Rows that are not what was written, by the hash that each carries: found, and accepted as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from commonplace.model.ports import StoreProblem
from commonplace.model.values import Value
from commonplace.stores.rows import FIELDS, columns_sql, row_hash

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

PAGE = 2_000  # rows that are read at once


class Altered(Value):
    """A row that is not what was written."""

    table: str
    row: int
    record: str
    version: int
    hash: str  #: what its hash would have to be


def every_row(db: Db, *extra: str) -> Iterator[tuple[str, int, list[Any], list[Any]]]:
    """Yield every record and version: its table, its row, its ``FIELDS``, and extra columns."""
    own = ", ".join(f"t.{column}" for column in extra)
    for table in ("record", "version"):
        sql = f"select t.row, {own}, {columns_sql(FIELDS, 't')} from {table} t join scope s on s.id = t.scope"
        after = 0
        while page := db.every(f"{sql} where t.row > ? order by t.row limit ?", [after, PAGE]):
            after = page[-1][0]
            yield from ((table, row[0], list(row[1 + len(extra) :]), list(row[1 : 1 + len(extra)])) for row in page)


def altered_rows(db: Db) -> Iterator[Altered]:
    """Yield the rows whose hash is wrong."""
    for table, row, fields, [held] in every_row(db, "hash"):
        if (now := row_hash(fields)) != held:
            version = int(fields[FIELDS.index("version")])
            yield Altered(table=table, row=row, record=str(fields[0]), version=version, hash=now)


def hash_problems(db: Db) -> Iterator[StoreProblem]:
    """Yield a problem for each of them."""
    for altered in altered_rows(db):
        what = f"version {altered.version} of record {altered.record!r} is not what was written: its hash is wrong"
        yield StoreProblem(what=what, fixable=True)


def accept_altered(db: Db) -> list[tuple[str, bool]]:
    """Accept altered rows as they are now; the file of a record, if it has one, wins at the next sync.

    Returns a sentence for each, and whether a file has what was written.
    """
    return [_accept(db, altered) for altered in list(altered_rows(db))]


def _accept(db: Db, altered: Altered) -> tuple[str, bool]:
    db.run(f"update {altered.table} set hash = ? where row = ?", [altered.hash, altered.row])
    if altered.table == "version" or not db.first("select 1 from file where record = ?", [altered.record]):
        what = f"version {altered.version} of record {altered.record!r}"
        return f"{what} was damaged and has no file: it stays as it is now", False
    db.run("delete from file where record = ?", [altered.record])
    return f"record {altered.record!r} was damaged: its file has the last word at the next sync", True

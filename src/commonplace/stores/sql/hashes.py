"""Rows that are not what was written, by the hash that each carries: found, and accepted as they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from commonplace.model.ports import ProgressCallback, StoreProblem, no_progress
from commonplace.model.values import Value
from commonplace.stores.rows import CHUNK_FIELDS, FIELDS, columns_sql, is_sound, row_hash, values_hash
from commonplace.stores.sql.documents import DOCUMENT

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

PAGE = 2_000  # rows that are read at once
#: What is hashed of a document and of a passage: first what names it, then what it says.
_TEXTS = {
    "document": (
        f"select t.row, t.hash, s.path, t.kind, t.name, {columns_sql(DOCUMENT[:-1], 't')}"
        " from document t join scope s on s.id = t.scope"
    ),
    "chunk": f"select t.row, t.hash, {columns_sql(CHUNK_FIELDS[:-1], 't')} from chunk t",
}


class Altered(Value):
    """A row that is not what was written."""

    table: str
    row: int
    what: str  #: what people call it
    record: str | None  #: the id of the record that it is
    hash: str  #: what its hash would have to be


def every_row(db: Db, *extra: str, last: int | None = None) -> Iterator[tuple[str, int, list[Any], list[Any]]]:
    """Yield every record and version, or the ``last``: its table, its row, its ``FIELDS``, and extra columns."""
    own = ", ".join(f"t.{column}" for column in extra)
    for table in ("record", "version"):
        sql = f"select t.row, {own}, {columns_sql(FIELDS, 't')} from {table} t join scope s on s.id = t.scope"
        for row in _paged(db, table, sql, last):
            yield table, row[0], list(row[1 + len(extra) :]), list(row[1 : 1 + len(extra)])


def _paged(db: Db, table: str, sql: str, last: int | None) -> Iterator[tuple[Any, ...]]:
    after = 0
    if last is not None:
        [(newest,)] = db.every(f"select coalesce(max(row), 0) from {table}")
        after = max(0, newest - last)
    while page := db.every(f"{sql} where t.row > ? order by t.row limit ?", [after, PAGE]):
        after = page[-1][0]
        yield from page


def altered_rows(db: Db, *, last: int | None = None, progress: ProgressCallback = no_progress) -> Iterator[Altered]:
    """Yield the rows whose hash is wrong, of all or of the ``last`` of each table."""
    seen = 0
    for table, row, fields, [held] in every_row(db, "hash", last=last):
        progress(seen := seen + 1, 0)
        if (now := row_hash(fields)) != held:
            what = f"version {fields[FIELDS.index('version')]} of record {fields[0]!r}"
            yield Altered(table=table, row=row, what=what, record=str(fields[0]), hash=now)
    for table, sql in _TEXTS.items():
        for row, held, *fields in _paged(db, table, sql, last):
            progress(seen := seen + 1, 0)
            if not is_sound(fields, held):
                what = f"{fields[1]} {fields[2]!r}" if table == "document" else _passage(db, row)
                yield Altered(table=table, row=row, what=what, record=None, hash=values_hash(fields))


def _passage(db: Db, row: int) -> str:
    sql = "select c.seq, d.kind, d.name from chunk c join document d on d.row = c.document where c.row = ?"
    seq, kind, name = db.first(sql, [row]) or (row, "a lost", "document")
    return f"passage {seq} of {kind} {name!r}"


def hash_problems(
    db: Db, *, last: int | None = None, progress: ProgressCallback = no_progress
) -> Iterator[StoreProblem]:
    """Yield a problem for each of them."""
    for altered in altered_rows(db, last=last, progress=progress):
        yield StoreProblem(what=f"{altered.what} is not what was written: its hash is wrong", fixable=True)


def accept_altered(db: Db) -> list[tuple[str, bool]]:
    """Accept altered rows as they are now; the file of a record, if it has one, wins at the next sync.

    Returns a sentence for each, and whether a file has what was written.
    """
    return [_accept(db, altered) for altered in list(altered_rows(db))]


def _accept(db: Db, altered: Altered) -> tuple[str, bool]:
    db.run(f"update {altered.table} set hash = ? where row = ?", [altered.hash, altered.row])
    if altered.table != "record" or not db.first("select 1 from file where record = ?", [altered.record]):
        return f"{altered.what} was damaged and has no file: it stays as it is now", False
    db.run("delete from file where record = ?", [altered.record])
    return f"record {altered.record!r} was damaged: its file has the last word at the next sync", True


def fill_hashes(db: Db) -> None:
    """Give documents and passages of an earlier schema their hashes."""
    for table, sql in _TEXTS.items():
        rows = _paged(db, table, sql, None)
        while page := [(values_hash(fields), row) for row, _, *fields in islice(rows, PAGE)]:
            db.run_each(f"update {table} set hash = ? where row = ?", page)

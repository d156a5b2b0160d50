"""Entries inside a transaction: what a search reads of a record, an earlier version or a chunk."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from commonplace.model.records import Record
from commonplace.stores import scoring
from commonplace.stores.items import indexed
from commonplace.stores.postgres.connection import Db, run
from commonplace.stores.rows import micros

RECORD, CHUNK, VERSION, CLOSED = scoring.RECORD, scoring.CHUNK_CLASS, scoring.VERSION, scoring.CLOSED

_COLUMNS = "bucket, length, expires, kind, category, terms"
_VALUES = "?::bigint, ?::bigint, ?::bigint, ?::text, ?::text, ?::text[]"
#: Lets the record be found that was made in the same statement; takes ``values``.
INSERT = f"insert into entry (id, record, {_COLUMNS}) select row * 4 + {RECORD}, row, {_VALUES} from made"


def put_version(db: Db, row: int, record: Record, terms: Sequence[str], *, scope: int) -> None:
    """Let an earlier version be found."""
    _put(db, "version", row * 4 + VERSION, record, terms, bucket=scope * 4 + VERSION)


def put_chunk(db: Db, row: int, terms: Sequence[str], *, scope: int) -> None:
    """Let a chunk be found."""
    _put(db, "chunk", row * 4 + CHUNK, None, terms, bucket=scope * 4 + CHUNK)


def _put(db: Db, of: str, entry: int, record: Record | None, terms: Sequence[str], *, bucket: int) -> None:
    sql = f"insert into entry (id, {of}, {_COLUMNS}) values (?, ?, {_VALUES})"
    run(db, sql, [entry, entry // 4, *values(record, terms, bucket)])


def values(record: Record | None, terms: Sequence[str], bucket: int) -> list[Any]:
    """What an entry says of a record or a version; of a chunk without them."""
    known = (micros(record.expires_at), record.kind.value, record.category) if record else (None, None, None)
    return [bucket, len(terms), *known, array_text([*map(indexed, terms)])]


def copy_to_version(db: Db, row: int, version: int, *, scope: int) -> None:
    """What a record was found by, its last version is found by from now on."""
    sql = (
        f"insert into entry (id, version, {_COLUMNS})"
        " select ?::bigint, ?::bigint, ?::bigint, length, expires, kind, category, terms from entry where id = ?"
    )
    run(db, sql, [version * 4 + VERSION, version, scope * 4 + VERSION, row * 4 + RECORD])


def change_record(db: Db, row: int, record: Record, terms: Sequence[str] | None, *, scope: int) -> None:
    """A record is another one now; without terms, of the same words."""
    known = [bucket(record, scope), micros(record.expires_at), record.kind.value, record.category]
    words, values = "", []
    if terms is not None:
        words, values = ", length = ?, terms = ?::text[]", [len(terms), array_text([*map(indexed, terms)])]
    sql = f"update entry set bucket = ?, expires = ?, kind = ?, category = ?{words} where id = ?"
    run(db, sql, [*known, *values, row * 4 + RECORD])


def bucket(record: Record, scope: int) -> int:
    """Where a record is looked for."""
    return scope * 4 + (RECORD if record.archived_at is None and not record.held else CLOSED)


def array_text(texts: Collection[str]) -> str:
    """An array as PostgreSQL reads it: written here in one go, because the driver writes each text by itself."""
    said = '","'.join(texts)
    if "\\" in said or said.count('"') > 2 * (len(texts) - 1):
        said = '","'.join(text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return '{"' + said + '"}' if texts else "{}"

"""Entries inside a transaction: what a search reads of a record, an earlier version or a chunk."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.domain.records import Record
from commonplace.stores import scoring
from commonplace.stores.moving import indexed
from commonplace.stores.postgres_connection import Db, run
from commonplace.stores.rows import micros

RECORD, CHUNK, VERSION, CLOSED = scoring.RECORD, scoring.CHUNK_CLASS, scoring.VERSION, scoring.CLOSED

_PUT = (
    "insert into entry (id, {0}, bucket, length, expires, kind, category, terms)"
    " values (?, ?, ?, ?, ?, ?, ?, ?::text[])"
)


def put_record(db: Db, row: int, record: Record, terms: Sequence[str], *, scope: int) -> None:
    """Let a record be found."""
    _put(db, "record", row * 4 + RECORD, record, terms, bucket=bucket(record, scope))


def put_version(db: Db, row: int, record: Record, terms: Sequence[str], *, scope: int) -> None:
    """Let an earlier version be found."""
    _put(db, "version", row * 4 + VERSION, record, terms, bucket=scope * 4 + VERSION)


def put_chunk(db: Db, row: int, terms: Sequence[str], *, scope: int) -> None:
    """Let a chunk be found."""
    _put(db, "chunk", row * 4 + CHUNK, None, terms, bucket=scope * 4 + CHUNK)


def _put(db: Db, of: str, entry: int, record: Record | None, terms: Sequence[str], *, bucket: int) -> None:
    known = (micros(record.expires_at), record.kind.value, record.category) if record else (None, None, None)
    words = [*map(indexed, terms)]
    run(db, _PUT.format(of), [entry, entry // 4, bucket, len(terms), *known, words])


def copy_to_version(db: Db, row: int, version: int, *, scope: int) -> None:
    """What a record was found by, its last version is found by from now on."""
    sql = (
        "insert into entry (id, version, bucket, length, expires, kind, category, terms)"
        " select ?::bigint, ?::bigint, ?::bigint, length, expires, kind, category, terms from entry where id = ?"
    )
    run(db, sql, [version * 4 + VERSION, version, scope * 4 + VERSION, row * 4 + RECORD])


def change_record(db: Db, row: int, record: Record, terms: Sequence[str] | None, *, scope: int) -> None:
    """A record is another one now; without terms, of the same words."""
    known = [bucket(record, scope), micros(record.expires_at), record.kind.value, record.category]
    words, values = "", []
    if terms is not None:
        words, values = ", length = ?, terms = ?::text[]", [len(terms), [*map(indexed, terms)]]
    sql = f"update entry set bucket = ?, expires = ?, kind = ?, category = ?{words} where id = ?"
    run(db, sql, [*known, *values, row * 4 + RECORD])


def bucket(record: Record, scope: int) -> int:
    """Where a record is looked for."""
    return scope * 4 + (RECORD if record.archived_at is None and not record.held else CLOSED)

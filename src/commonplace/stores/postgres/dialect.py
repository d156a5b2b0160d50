"""A connection to a PostgreSQL schema, and what PostgreSQL contributes to the rules (``sql.dialect``).

Tags and parents are arrays, an entry holds the terms that its text is found by, and what does not need each other's
answer is asked in one statement or one pipeline: a question costs most by its way.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any

import psycopg

from commonplace.model.changes import Terms
from commonplace.model.errors import StoreDamaged
from commonplace.model.queries import Filter, Query, Vector
from commonplace.model.records import Record
from commonplace.stores.postgres import search
from commonplace.stores.rows import CHUNK_FIELDS, SHARED_COLUMNS, Sql, insert_sql, micros, to_json
from commonplace.stores.scoring import CHUNK, CLOSED, RECORD, VERSION, Postings, unit_vector
from commonplace.stores.sql.items import indexed_term
from commonplace.stores.sql.search import Candidates
from commonplace.stores.sql.vectors import embedder, refusal

NOTES = "setting"  # the table in which each tenant's store notes something about itself
_COLUMNS = (*SHARED_COLUMNS, "tagged", "derived")
_ENTRY = "bucket, length, expires, kind, category, terms"
_ENTRY_VALUES = "?::bigint, ?::bigint, ?::bigint, ?::text, ?::text, ?::text[]"
#: A record and its entry, with its vector or without: in one statement.  The vector is not stored where the store knows
#: no embedder, or one of another length.
_MADE = (
    f"with made as ({insert_sql('record', _COLUMNS)} on conflict do nothing returning row),"
    f" found as (insert into entry (id, record, {_ENTRY}) select row * 4 + {RECORD}, row, {_ENTRY_VALUES} from made"
    " returning id)"
)
_NEAR = (
    f"near as (insert into embedding select f.id, ? from found f join {NOTES} d on d.key = 'dimensions'"
    " and d.value = ? returning entry)"
)
_INSERT_RECORD = f"{_MADE} select row, true from made"
_INSERT_WITH_VECTOR = f"{_MADE}, {_NEAR} select row, exists (select 1 from near) from made"
_INSERT_CHUNK = f"{insert_sql('chunk', ('document', 'scope', *CHUNK_FIELDS))} returning row"

#: The channel on which a store, and each tenant of it, notifies of events.
CHANNEL = "'commonplace ' || md5(current_schema() || ' ' || current_setting('commonplace.tenant'))"
_EVENTS_LOCK = "select pg_advisory_xact_lock(hashtextextended(current_schema() || ' events', 0))"
_AUDIT_LOCK = (
    "select pg_advisory_xact_lock(hashtextextended("
    "current_schema() || ' audit ' || current_setting('commonplace.tenant'), 0))"
)
_TRIM_LOCK = (
    "select pg_try_advisory_xact_lock(hashtextextended("
    "current_schema() || ' trimming ' || current_setting('commonplace.tenant'), 0))"
)


class PostgresDb(psycopg.Connection[tuple[Any, ...]]):
    """One connection of the pool."""

    columns = _COLUMNS
    counts = "tally"
    vectors = "embedding"
    notes = NOTES
    own = ", tenant"
    own_events = "tenant = current_setting('commonplace.tenant')"  # also without row-level security: for the index
    for_update = " for update"
    bytes_of = "octet_length(replace(replace({0}, E'\\x01\\x01', ' '), E'\\x01\\x02', ' '))"  # as before it was escaped
    clock = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"  # the transaction's own may be long past
    orphaned = "not exists (select 1 from record k where k.id = any(r.derived))"

    def __init__(self, *given: Any, **options: Any) -> None:
        """See the driver."""
        super().__init__(*given, **options)
        self.damaged: list[str] = []

    # Asking

    def every(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of an answer."""
        return self.execute(_to_driver(sql), values).fetchall()

    def first(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of an answer."""
        return self.execute(_to_driver(sql), values).fetchone()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return how many rows it changed."""
        return self.execute(_to_driver(sql), values).rowcount

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of these rows."""
        if rows:
            with self.cursor() as cursor:
                cursor.executemany(_to_driver(sql), rows)

    def run_unique(self, sql: str, values: Sequence[Any], *, keyed: bool) -> int | None:
        """See ``Db``; the savepoint costs two ways, so only what may be taken gets one."""
        try:
            with self.transaction() if keyed else contextlib.nullcontext():
                return self.run(sql, values)
        except psycopg.errors.UniqueViolation:
            return None

    def every_of(self, questions: Sequence[Sql], *, numbers: Collection[int] = ()) -> list[list[tuple[Any, ...]]]:
        """See ``Db``: asked in one go, waited for once."""
        if len(questions) < 2:  # noqa: PLR2004 - a pipeline of one costs more than the question
            return [self.numbers_of(*one) if numbers else self.every(*one) for one in questions]
        with self.pipeline():
            asked = [
                self.execute(_to_driver(sql), given, binary=n in numbers) for n, (sql, given) in enumerate(questions)
            ]
        return [cursor.fetchall() for cursor in asked]

    def numbers_of(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of an answer of numbers, arrays and vectors: in binary, which needs no parsing."""
        return self.execute(_to_driver(sql), values, binary=True).fetchall()

    # Wording

    def among(self, column: str, allowed: Collection[Any]) -> Sql:
        if not allowed:
            return "false", []
        if isinstance(next(iter(allowed)), int):
            return f"{column} = any(?::bigint[])", [sorted(allowed)]
        return f"{column} = any(?::text[])", [sorted(str(value) for value in allowed)]

    def tagged_sql(self, alias: str, tags: Collection[str], *, past: bool) -> Sql:
        return f"{alias}.tagged @> ?::text[]", [sorted(tags)]

    def metadata_sql(self, alias: str, name: str, value: str | float | bool) -> Sql:
        return f"({alias}.metadata::jsonb -> ?::text) = ?::jsonb", [name, to_json(value)]

    def derived_sql(self, alias: str, parents: Collection[str], *, past: bool) -> Sql:
        return f"{alias}.derived && ?::text[]", [sorted(parents)]

    def terms_sql(self, table: str, alias: str) -> str:
        return f"(select array_to_string(e.terms, ' ') from entry e where e.{table} = {alias}.row)"

    # Records and chunks with their index

    def own_values(self, record: Record, terms: Terms | None) -> dict[str, Any]:
        return {"tagged": sorted(record.tags), "derived": list(dict.fromkeys(record.source.parents))}

    def insert_record(
        self, record: Record, row: Sequence[Any], terms: Terms, *, scope: int, vector: Vector | None
    ) -> int | None:
        values = [*row, *self.own_values(record, terms).values(), *_entry_values(record, terms, _bucket(record, scope))]
        if vector is None:
            made = self.first(_INSERT_RECORD, values)
        elif len(vector) == 0:  # the database knows no such thing
            raise refusal(embedder(self), vector)
        else:
            made = self.first(_INSERT_WITH_VECTOR, [*values, unit_vector(vector), str(len(vector))])
        if made is None:
            return None
        number, stored = made
        if vector is not None and not stored:
            raise refusal(embedder(self), vector)
        return int(number)

    def index_record(self, number: int, record: Record, terms: Terms | None, *, scope: int) -> None:
        known = [_bucket(record, scope), micros(record.expires_at), record.kind.value, record.category]
        words, values = "", []
        if terms is not None:
            words, values = ", length = ?, terms = ?::text[]", [len(terms), array_text([*map(indexed_term, terms)])]
        sql = f"update entry set bucket = ?, expires = ?, kind = ?, category = ?{words} where id = ?"
        self.run(sql, [*known, *values, number * 4 + RECORD])

    def index_version(
        self, number: int, version: int, record: Record | None, terms: Terms | None, *, scope: int
    ) -> None:
        entry, bucket = version * 4 + VERSION, scope * 4 + VERSION
        if record is not None and terms is not None:
            self._insert_entry("version", entry, record, terms, bucket)
            return
        sql = (
            f"insert into entry (id, version, {_ENTRY})"
            " select ?::bigint, ?::bigint, ?::bigint, length, expires, kind, category, terms from entry where id = ?"
        )
        self.run(sql, [entry, version, bucket, number * 4 + RECORD])

    def insert_chunk(self, values: Sequence[Any], terms: Terms, *, scope: int) -> int:
        [(row,)] = self.every(_INSERT_CHUNK, values)
        self._insert_entry("chunk", row * 4 + CHUNK, None, terms, scope * 4 + CHUNK)
        return int(row)

    def _insert_entry(self, of: str, entry: int, record: Record | None, terms: Terms, bucket: int) -> None:
        sql = f"insert into entry (id, {of}, {_ENTRY}) values (?, ?, {_ENTRY_VALUES})"
        self.run(sql, [entry, entry // 4, *_entry_values(record, terms, bucket)])

    def drop_counts(self) -> None:
        """See ``Db``; a trigger does it."""

    # Vectors

    def numbers(self, data: Any, dimensions: int) -> Sequence[float]:
        if len(data) != dimensions:
            raise StoreDamaged("vectors are of a wrong length; run `commonplace doctor`")
        numbers: array[float] = data
        return numbers

    def save_vector(self, entry: int, vector: array[float], *, coming: bool) -> None:
        table = "beside" if coming else "embedding"
        sql = f"insert into {table} values (?, ?) on conflict (entry) do update set data = excluded.data"
        self.run(sql, [entry, vector])

    def copy_vectors(self, entry: int, to: int) -> None:
        for table in ("embedding", "beside"):
            self.run(f"insert into {table} select ?::bigint, data from {table} where entry = ?", [to, entry])

    def switch_vectors(self) -> None:
        self.run("delete from embedding")
        self.run("insert into embedding select entry, data from beside")

    def note(self, key: str, value: str | int) -> None:
        sql = f"insert into {NOTES} values (?, ?) on conflict (key, tenant) do update set value = excluded.value"
        self.run(sql, [key, str(value)])

    def take_audit_turn(self) -> None:
        self.run(_AUDIT_LOCK)

    # Events: a number is handed out before its transaction ends, so without a turn a later event could be seen first,
    # and who had read so far would never come back for the earlier one.  The turn is taken last, after those of the
    # scopes, so that no two wait for each other.

    def insert_events(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self.run(_EVENTS_LOCK)
        self.run_each(sql, rows)
        self.run(f"select pg_notify({CHANNEL}, '')")  # without content: who is woken reads the events

    def may_trim(self) -> bool:
        [(mine,)] = self.every(_TRIM_LOCK)
        return bool(mine)

    def erase_events(self, start: int, end: int) -> int:
        """See ``Db``; not past an event that another transaction is erasing with its scope."""
        meant = f"{self.own_events} and seq > ? and seq <= ? and what <> 'memory.archived'"
        free = {
            seq for (seq,) in self.every(f"select seq from event where {meant} for update skip locked", [start, end])
        }
        there = self.every(f"select seq from event where {meant} order by seq", [start, end])
        reached = next((int(seq) - 1 for (seq,) in there if seq not in free), end)
        self.run(f"delete from event where {meant}", [start, reached])
        return reached

    # Searching

    def postings(self, where: Filter, query: Query) -> tuple[Postings, int, int]:
        places = search.places_of(self, where)
        found = search.postings_at(query, self.numbers_of(*search.postings_sql(self, where, query, places)))
        return found, places.texts, places.length

    def nearest(self, where: Filter, asked: array[float], limit: int) -> list[tuple[int, float]]:
        return search.nearest(self, where, asked, limit)

    def candidates(self, where: Filter, query: Query, vector: Vector | None, limit: int) -> Candidates:
        return search.candidates(self, where, query, vector, limit)


@lru_cache(maxsize=1024)
def _to_driver(sql: str) -> bytes:
    """Replace question marks, which the rules use, by the marks of this driver."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _entry_values(record: Record | None, terms: Terms, bucket: int) -> list[Any]:
    """Return what an entry has of a record or a version; of a chunk without them."""
    known = (micros(record.expires_at), record.kind.value, record.category) if record else (None, None, None)
    return [bucket, len(terms), *known, array_text([*map(indexed_term, terms)])]


def _bucket(record: Record, scope: int) -> int:
    return scope * 4 + (RECORD if record.archived_at is None and not record.held else CLOSED)


def array_text(texts: Collection[str]) -> str:
    """Return an array as PostgreSQL parses it: in one go, because the driver writes each text by itself."""
    text = '","'.join(texts)
    if "\\" in text or text.count('"') > 2 * (len(texts) - 1):
        text = '","'.join(one.replace("\\", "\\\\").replace('"', '\\"') for one in texts)
    return '{"' + text + '"}' if texts else "{}"

"""A connection to a SQLite file, and what SQLite contributes to the rules (``sql.dialect``).

Triggers bring index, counts and vectors in step with the rows (0001.sql), so only tags, parents and codes are written
here.  Nearness is found by codes of vectors (``codes``), which are read in one go for each bucket.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from math import hypot
from struct import unpack
from typing import TYPE_CHECKING, Any, TypeAlias

import apsw

from commonplace.model.errors import StoreDamaged, StoreError
from commonplace.stores import codes
from commonplace.stores.rows import CHUNK_FIELDS, SHARED_COLUMNS, Sql, insert_sql, to_json
from commonplace.stores.scoring import asked_vector, best, classes, cosine, likeness
from commonplace.stores.sql.filters import entry_sql
from commonplace.stores.sql.search import Candidates, candidates_wanted, vectors_sql
from commonplace.stores.sql.vectors import COMING, PRESENT, embedder, put
from commonplace.stores.sqlite.place import file_id

if TYPE_CHECKING:
    from commonplace.model.changes import Terms
    from commonplace.model.queries import Filter, Query, Vector
    from commonplace.model.records import Record
    from commonplace.stores.scoring import Postings

BUSY_MS = 10_000  # how long the database waits for its own lock
MAX_PARAMETERS = 500  # a statement has 32,766 places, and a long one takes longer to parse than a list to look through
FLOAT_BYTES = 4
SINGLE_PRECISION = 1e-4  # more than sqlite-vec's cosine, made of small floats, can be wrong

SETTINGS = f"""
pragma busy_timeout = {BUSY_MS};
pragma synchronous = full;
pragma foreign_keys = on;
pragma secure_delete = on;
pragma trusted_schema = off;
pragma cell_size_check = on;
pragma mmap_size = 0;
pragma temp_store = memory;
pragma journal_size_limit = 67108864;
pragma recursive_triggers = off;
"""
_WRITES = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_READS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_COLUMNS = (*SHARED_COLUMNS, "terms", "length")
_INSERT_RECORD = f"{insert_sql('record', _COLUMNS)} on conflict do nothing"
_INSERT_CHUNK = f"{insert_sql('chunk', ('document', 'scope', *CHUNK_FIELDS, 'terms', 'length'))} returning row"

#: Finds so many entries, or more, that may be nearest to what is asked, among those that a filter keeps.
Near: TypeAlias = "Callable[[SqliteDb, Filter, Sequence[float], int], list[int]]"


class SqliteDb(apsw.Connection):
    """One connection, owned by one thread at a time and by the process that opened it."""

    columns = _COLUMNS
    counts = "(select id as bucket, docs as texts, length from bucket)"
    vectors = "vector"
    notes = "meta"
    own = ""
    own_events = "true"
    for_update = ""
    bytes_of = "length(cast({0} as blob))"
    clock = "null"
    orphaned = "not exists (select 1 from parent p join record k on k.id = p.parent where p.record = r.row)"

    def __init__(
        self, path: str, *, vec: str | None = None, near: Near | None = None, reads_only: bool = False
    ) -> None:
        """Open a file; ``vec`` is where sqlite-vec lies, ``near`` finds what is near in place of the codes.

        With ``reads_only`` the path is an address that SQLite opens for reading.
        """
        super().__init__(path, flags=_READS if reads_only else _WRITES)
        self.pid = os.getpid()
        self.place: tuple[int, int] | None = None  #: which file it is, where that may become another one
        self.damaged: list[str] = []
        self.is_replaced = False  #: whether it was noticed that it did
        self.has_vec = vec is not None
        self._near = near or by_codes
        self.set_busy_timeout(BUSY_MS)
        self.every(SETTINGS)  # to the end: a setting that answers with a row would stop the rest
        self.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        # Else a look at a key is planned anew for every value, in case it suits another index: ten times the time.
        self.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        if vec is not None:
            self._load(vec)

    def _load(self, vec: str) -> None:
        """Load sqlite-vec by its path: importing its package would load numpy, which costs more than a recall."""
        self.enable_load_extension(True)
        try:
            self.load_extension(vec)
            self.every("select vec_distance_cosine(x'0000803f', x'0000803f')")
        except apsw.Error as error:
            self.close()
            raise StoreError(f"{vec!r} cannot be loaded as sqlite-vec: {error}") from error
        self.enable_load_extension(False)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the store throughout."""
        self.execute("begin")
        try:
            yield
        finally:
            if self.in_transaction:  # a failing disk ends it by itself, and its error must be raised
                self.execute("commit")

    @contextlib.contextmanager
    def writing(self, *, durable: bool) -> Iterator[None]:
        """Make all of it or none; when it returns it is on disk, unless it need not be durable."""
        if not durable:
            self.execute("pragma synchronous = normal")
        try:
            self.execute("begin immediate")
            try:
                yield
            except BaseException:
                if self.in_transaction:
                    self.execute("rollback")
                raise
            self.execute("commit")
        finally:
            if self.in_transaction:  # the commit itself failed
                self.execute("rollback")
            if not durable:
                self.execute("pragma synchronous = full")

    def close(self, force: bool = False) -> None:
        """Close, unless the process that opened it is another one: what it holds is not ours to give back."""
        if self.pid != os.getpid():
            return
        if self.place is not None and (self.is_replaced or file_id(self.filename) != self.place):
            # The log that lies there by now is another file's: it is neither replayed nor removed.
            self.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        super().close(force)

    # Asking

    def every(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of an answer, at once: a read that lingers keeps the log from shrinking."""
        return self.execute(sql, values).fetchall()

    def first(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of an answer."""
        found = self.execute(sql, values).fetchall()
        return found[0] if found else None

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return how many rows it changed."""
        self.execute(sql, values)
        return self.changes()

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of these rows."""
        self.executemany(sql, rows)

    def run_unique(self, sql: str, values: Sequence[Any], *, keyed: bool) -> int | None:
        try:
            return self.run(sql, values)
        except apsw.ConstraintError:
            return None

    def every_of(self, questions: Sequence[Sql], *, numbers: Collection[int] = ()) -> list[list[tuple[Any, ...]]]:
        return [self.every(*question) for question in questions]

    # Wording

    def among(self, column: str, allowed: Collection[Any]) -> Sql:
        """See ``Db``; however many they are."""
        values: list[Any] = [value if isinstance(value, int) else str(value) for value in allowed]
        if len(values) == 1:
            return f"{column} in (?)", values
        values.sort()
        if len(values) <= MAX_PARAMETERS:
            return f"{column} in ({', '.join('?' * len(values))})", values
        return f"{column} in (select value from json_each(?))", [to_json(values)]

    def tagged_sql(self, alias: str, tags: Collection[str], *, past: bool) -> Sql:
        """See ``Db``; an earlier version's tags are in its own row only."""
        own = f"exists (select 1 from json_each({alias}.tags) where value = ?)"
        sql = own if past else f"{alias}.row in (select record from tag where tag = ?)"
        return " and ".join([sql] * len(tags)), sorted(tags)

    def metadata_sql(self, alias: str, name: str, value: str | float | bool) -> Sql:
        """See ``Db``; JSON's true is 1 in SQLite, so the sort of the value is compared as well."""
        sorts = {bool: ("true", "false"), str: ("text", "text")}.get(type(value), ("integer", "real"))
        sql = f"exists (select 1 from json_each({alias}.metadata) where key = ? and value = ? and type in (?, ?))"
        return sql, [name, int(value) if isinstance(value, bool) else value, *sorts]

    def derived_sql(self, alias: str, parents: Collection[str], *, past: bool) -> Sql:
        """See ``Db``; an earlier version's parents are in its own row only."""
        inner, values = self.among("value" if past else "parent", parents)
        own = f"exists (select 1 from json_each({alias}.parents) where {inner})"
        return own if past else f"{alias}.row in (select record from parent where {inner})", values

    def terms_sql(self, table: str, alias: str) -> str:
        return f"{alias}.terms"

    # Records and chunks with their index

    def own_values(self, record: Record, terms: Terms | None) -> dict[str, Any]:
        return {} if terms is None else {"terms": " ".join(terms), "length": len(terms)}

    def insert_record(
        self,
        record: Record,
        row: Sequence[Any],
        terms: Terms,
        *,
        scope: int,
        vector: Vector | None,
    ) -> int | None:
        if not self.run(_INSERT_RECORD, [*row, " ".join(terms), len(terms)]):
            return None
        number = self.last_insert_rowid()  # sooner than `returning`
        self._link(number, record)
        if vector is not None:
            put(self, number * 4, vector)
        return number

    def index_record(self, number: int, record: Record, terms: Terms | None, *, scope: int) -> None:
        self.execute("delete from tag where record = ?", (number,))
        self.execute("delete from parent where record = ?", (number,))
        self._link(number, record)

    def _link(self, number: int, record: Record) -> None:
        """Insert tags and parents by value."""
        if record.tags:
            self.executemany("insert into tag values (?, ?)", [(number, tag) for tag in sorted(record.tags)])
        if parents := dict.fromkeys(record.source.parents):
            self.executemany("insert into parent values (?, ?)", [(number, parent) for parent in parents])

    def index_version(
        self, number: int, version: int, record: Record | None, terms: Terms | None, *, scope: int
    ) -> None:
        """See ``Db``; a trigger does it."""

    def insert_chunk(self, values: Sequence[Any], terms: Terms, *, scope: int) -> int:
        [(row,)] = self.every(_INSERT_CHUNK, [*values, " ".join(terms), len(terms)])
        return int(row)

    def drop_counts(self) -> None:
        self.execute("delete from bucket where id / 4 not in (select id from scope)")
        self.execute("delete from stock where scope not in (select id from scope)")

    # Vectors, each with its code

    def numbers(self, data: Any, dimensions: int) -> Sequence[float]:
        if len(data) != FLOAT_BYTES * dimensions:
            raise StoreDamaged("vectors are missing or damaged; run `commonplace doctor`")
        return unpack(f"{dimensions}f", data)

    def save_vector(self, entry: int, vector: array[float], *, coming: bool) -> None:
        self.save_coded(entry, vector.tobytes(), codes.code_for_entry(entry, vector), coming=coming)

    def save_coded(self, entry: int, data: bytes, code: bytes, *, coming: bool) -> None:
        """Give an entry a vector, as bytes, and its code."""
        if coming:
            self.execute("insert or replace into beside values (?, ?, ?)", (entry, data, code))
            return
        self.execute("insert or replace into vector select id, bucket, ? from entry where id = ?", (data, entry))
        columns = "bucket, id, expires, kind, category, ?"
        self.execute(f"insert or replace into code select {columns} from entry where id = ?", (code, entry))

    def copy_vectors(self, entry: int, to: int) -> None:
        coded = "vector v join code c on c.bucket = v.bucket and c.id = v.entry where v.entry = ?"
        for sql, coming in (
            (f"select v.data, c.data from {coded}", False),
            ("select data, code from beside where entry = ?", True),
        ):
            for data, code in self.every(sql, (entry,)):
                self.save_coded(to, data, codes.change_entry(to, code), coming=coming)

    def switch_vectors(self) -> None:
        self.execute("delete from code")
        self.execute("delete from vector")
        self.execute("insert into vector select e.id, e.bucket, b.data from beside b join entry e on e.id = b.entry")
        columns = "e.bucket, e.id, e.expires, e.kind, e.category, b.code"
        self.execute(f"insert into code select {columns} from beside b join entry e on e.id = b.entry order by 1, 2")

    def encode_vectors(self) -> None:
        """Make all codes anew; a vector of a wrong length, or of no numbers, is dropped, missed, and made again."""
        self.execute("delete from code")
        for table, keys in (("vector", PRESENT), ("beside", COMING)):
            held = embedder(self, keys)
            wrong = f"length(data) <> {FLOAT_BYTES * held.dimensions if held else 0}"
            self.execute(f"delete from {table} where {wrong} or entry not in (select id from entry)")
            for (entry,) in self.every(f"select entry from {table} order by entry"):
                [(data,)] = self.every(f"select data from {table} where entry = ?", (entry,))
                try:
                    self.save_vector(entry, array("f", data), coming=keys == COMING)
                except (ValueError, OverflowError):  # bytes that are no numbers any more
                    self.execute(f"delete from {table} where entry = ?", (entry,))

    def note(self, key: str, value: str | int) -> None:
        self.execute("insert or replace into meta values (?, ?)", (key, value))

    def take_audit_turn(self) -> None:
        """See ``Db``; there is one writer at a time."""

    # Events: one writer at a time, so their numbers are in the order of the commits

    def insert_events(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """See ``Db``; who waits looks for themselves."""
        self.executemany(sql, rows)

    def may_trim(self) -> bool:
        return True

    def erase_events(self, start: int, end: int) -> int:
        self.execute("delete from event where seq > ? and seq <= ? and what <> 'memory.archived'", (start, end))
        return end

    # Searching

    def postings(self, where: Filter, query: Query) -> tuple[Postings, int, int]:
        terms = list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))
        numbers, texts, length = self.buckets(where)
        condition, values = entry_sql(self, where)
        sql = (
            "select p.doc, count(*), e.length from entry_at p join entry e on e.id = p.doc"
            f" where p.term = ? and e.bucket = ? and {condition} group by p.doc"  # no term speaks for another bucket
        )
        found: dict[str, Any] = {
            term: [row for bucket in numbers for row in self.every(sql, [f"{bucket}:{term}", bucket, *values])]
            for term in terms
        }
        return found, texts, length

    def buckets(self, where: Filter) -> tuple[list[int], int, int]:
        """Return where to look, and how many texts of what total length are there."""
        within, paths = self.among("path", where.scopes)
        scopes = self.every(f"select id from scope where {within} order by path", paths)
        chosen, wanted = self.among("id", [number * 4 + class_ for (number,) in scopes for class_ in classes(where)])
        rows = self.every(f"select id, docs, length from bucket where docs > 0 and {chosen}", wanted)
        return [row[0] for row in rows], sum(row[1] for row in rows), sum(row[2] for row in rows)

    def nearest(self, where: Filter, asked: array[float], limit: int) -> list[tuple[int, float]]:
        """See ``Db``; with sqlite-vec sooner, and the same."""
        entries = self._near(self, where, asked, candidates_wanted(limit))
        if self.has_vec and len(entries) > limit:
            entries = self._narrow(asked, entries, limit)
        rows = self.every(*vectors_sql(self, "vector", entries))
        if len(rows) != len(entries):
            raise StoreDamaged("vectors are missing or damaged; run `commonplace doctor`")
        ours, long, size = tuple(asked), hypot(*asked), len(asked)
        return [(entry, cosine(ours, long, self.numbers(data, size))) for entry, data in rows]

    def _narrow(self, asked: array[float], entries: Sequence[int], limit: int) -> list[int]:
        """Return the nearest of these, and all that sqlite-vec's small floats cannot tell from the last of them."""
        condition, numbers = self.among("entry", entries)
        distance = "coalesce(vec_distance_cosine(data, ?), 1.0)"
        sql = f"select {distance} as far, entry from vector where {condition} order by far"
        rows = self.every(sql, [asked.tobytes(), *numbers])
        cut = rows[limit - 1][0] + SINGLE_PRECISION
        return [entry for far, entry in rows if far <= cut]

    def candidates(self, where: Filter, query: Query, vector: Vector | None, limit: int) -> Candidates:
        postings, texts, length = self.postings(where, query)
        asked = asked_vector(vector, embedder(self))
        near = [] if asked is None else self._near(self, where, asked, limit)
        if asked is not None and len(near) > limit:  # as of equal texts: then by their cosines
            held, size = dict(self.every(*vectors_sql(self, "vector", near))), len(asked)
            similar, _ = likeness(asked, held, lambda entry: self.numbers(held[entry], size), {})
            near = list(best(similar, limit))
        return Candidates(asked=asked, postings=postings, texts=texts, length=length, nearest=near, vectors={})

    def codes(self, where: Filter, dimensions: int, *, only: str = "true") -> bytes:
        """Return the codes of all that may be found, one after the other: joined by the database, which is soonest.

        ``only`` is one more condition on codes, under the alias `e`.
        """
        numbers, _, _ = self.buckets(where)
        condition, values = entry_sql(self, where)
        sql = f"select cast(group_concat(e.data, '') as blob) from code e where e.bucket = ? and {only} and {condition}"
        found = [data for bucket in numbers for (data,) in self.every(sql, [bucket, *values]) if data]
        joined = b"".join(found) if len(found) != 1 else found[0]
        if len(joined) % codes.length(dimensions):
            raise StoreDamaged("the codes of vectors are damaged; run `commonplace doctor`")
        return joined


def by_codes(db: SqliteDb, where: Filter, asked: Sequence[float], count: int) -> list[int]:
    """Find those whose codes are nearest."""
    return codes.best(db.codes(where, len(asked)), asked, count)

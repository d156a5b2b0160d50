"""What a database contributes to the rules: how it is asked, how it words a few conditions, and what it indexes how.

A ``Db`` is one connection, lent for one transaction.  SQLite indexes by triggers, so there most of the methods that
index have little to do; PostgreSQL is given each entry.  An *entry* is what a search reads of a record, an earlier
version or a chunk: its number is the row of that times four, plus 0, 2 or 1.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Any, Protocol

from commonplace.model.changes import Terms
from commonplace.model.queries import Filter, Query, Vector
from commonplace.model.records import Record
from commonplace.stores.rows import Sql
from commonplace.stores.scoring import Postings
from commonplace.stores.sql.search import Candidates


class Db(Protocol):
    """A connection to a store's database, inside of a transaction."""

    columns: tuple[str, ...]  #: of a record and of a version: ``SHARED_COLUMNS`` and the database's own
    counts: str  #: the table of how many `texts` of what `length` a `bucket` has
    vectors: str  #: the table of the vectors in use
    notes: str  #: the table of what a store notes about itself
    own: str  #: what a unique key ends with
    own_events: str  #: the condition that an event is of this store
    for_update: str  #: what ends a select of one row that is then changed
    bytes_of: str  #: the size of a text, `{0}`, in bytes
    clock: str  #: the time by which leases run; null: the caller's
    damaged: list[str]  #: what was left out of the present answer because it is not what was written, as sentences
    orphaned: str  #: the condition that no parent of the record `r` is left

    # Asking; a value stands where a question mark is

    def every(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return every row of an answer."""

    def first(self, sql: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row of an answer."""

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return how many rows it changed."""

    def run_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of these rows."""

    def run_unique(self, sql: str, values: Sequence[Any], *, keyed: bool) -> int | None:
        """Execute a statement; None if something unique is taken, which undoes the statement alone.

        ``keyed``: the row has something that may be taken.
        """

    def every_of(self, questions: Sequence[Sql], *, numbers: Collection[int] = ()) -> list[list[tuple[Any, ...]]]:
        """Return the answers to several questions, asked at once where that saves time.

        ``numbers`` are the places of those whose answers hold nothing but numbers and vectors.
        """

    # Wording

    def among(self, column: str, allowed: Collection[Any]) -> Sql:
        """Return the condition that a column has one of these values: all texts, or all numbers."""

    def tagged_sql(self, alias: str, tags: Collection[str], *, past: bool) -> Sql:
        """Return the condition that a record, or with ``past`` any version, has all of these tags."""

    def metadata_sql(self, alias: str, name: str, value: str | float | bool) -> Sql:
        """Return the condition that the metadata has this value under this name."""

    def derived_sql(self, alias: str, parents: Collection[str], *, past: bool) -> Sql:
        """Return the condition that a record, or with ``past`` any version, has one of these parents."""

    def terms_sql(self, table: str, alias: str) -> str:
        """Return the terms of a record, version or chunk, as one text."""

    # Records and chunks with their index

    def own_values(self, record: Record, terms: Terms | None) -> dict[str, Any]:
        """Return the database's own columns of a record; terms that are None stay what they are."""

    def insert_record(
        self, record: Record, row: Sequence[Any], terms: Terms, *, scope: int, vector: Vector | None
    ) -> int | None:
        """Insert a record with its index and its vector; return its row, or None if its id or its key is taken."""

    def index_record(self, number: int, record: Record, terms: Terms | None, *, scope: int) -> None:
        """Bring the index of a record in step with its new version; terms that are None stay what they are."""

    def index_version(
        self, number: int, version: int, record: Record | None, terms: Terms | None, *, scope: int
    ) -> None:
        """Index an earlier version; without terms by what record ``number`` is found by now."""

    def insert_chunk(self, values: Sequence[Any], terms: Terms, *, scope: int) -> int:
        """Insert a chunk with its index and return its row."""

    def drop_counts(self) -> None:
        """Forget the counts of scopes that are gone."""

    # Vectors

    def numbers(self, data: Any, dimensions: int) -> Sequence[float]:
        """Return a vector as it was read as numbers; raise ``StoreDamaged`` if it is of another length."""

    def save_vector(self, entry: int, vector: array[float], *, coming: bool) -> None:
        """Give an entry its vector; ``coming``: of the embedder that is not in use yet."""

    def copy_vectors(self, entry: int, to: int) -> None:
        """Give another entry, of the same text, the same vectors."""

    def switch_vectors(self) -> None:
        """Replace all vectors by the coming ones."""

    def note(self, key: str, value: str | int) -> None:
        """Note something about the store."""

    # The audit log

    def take_audit_turn(self) -> None:
        """Wait until no other transaction appends to the audit log; call it last, so no two wait for each other."""

    # Events

    def insert_events(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert events so that no reader sees a later one before an earlier one, and wake those who wait for them."""

    def may_trim(self) -> bool:
        """Return whether no other transaction is trimming events."""

    def erase_events(self, start: int, end: int) -> int:
        """Erase events after one number and up to another, but for archives; return how far it came."""

    # Searching

    def postings(self, where: Filter, query: Query) -> tuple[Postings, int, int]:
        """Return where each term occurs, and how many texts of what total length were searched."""

    def nearest(self, where: Filter, asked: array[float], limit: int) -> list[tuple[int, float]]:
        """Return the nearest entries, and more, each with its cosine."""

    def candidates(self, where: Filter, query: Query, vector: Vector | None, limit: int) -> Candidates:
        """Return what may be an answer: by words all, by nearness so many."""

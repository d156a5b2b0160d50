"""Nearness by an index of pgvector (HNSW), where so much is asked through that comparing all of it takes too long.

The index is one for all scopes.  It is walked from the nearest on until the filter has let enough through (an iterative
scan), so a filter that keeps little still finds what it keeps; where a scope is a small part of the whole, or the walk
ends too soon, everything in it is compared instead.  The owner of the tables builds the index: ``PostgresMaintenance``.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.stores.rows import Sql

if TYPE_CHECKING:
    from commonplace.stores.postgres.dialect import PostgresDb

INDEX_FROM = 5_000  # texts: below that comparing all of them is soon done
STEP = 3  # how many texts are compared in the time of one step of a walk
MAX_DIMENSIONS = 2000  # of a vector that an index of pgvector holds
MIN_VERSION = (0, 8)  # of pgvector: earlier ones do not go on when a filter leaves too little
EF_SEARCH, MAX_SCANNED = 200, 20_000  # how wide the walk is, and how long
M, EF_CONSTRUCTION = 16, 128  # how dense the index is, and how carefully it is built


def index_name(dimensions: int) -> str:
    """Return the name of the index for vectors of that length."""
    return f"embedding_near_{dimensions}"


def size_sql(dimensions: int) -> Sql:
    """Return the question how many vectors are in the index."""
    sql = (
        "select t.reltuples from pg_index i join pg_class t on t.oid = i.indrelid"
        " where i.indexrelid = to_regclass(?) and i.indisvalid"
    )
    return sql, [index_name(dimensions)]


def is_shorter(size: Sequence[tuple[Any, ...]], among: int, wanted: int) -> bool:
    """Return whether the index is there (an answer to ``size_sql``) and the walk shorter than comparing so many.

    Of all vectors that are walked by, as many are in the scopes asked as their share says.
    """
    return bool(size) and among >= INDEX_FROM and among * among >= STEP * wanted * size[0][0]


def walk_sql(asked: array[float], buckets: Sequence[int], condition: Sql, wanted: int) -> tuple[Sql, Sql, Sql]:
    """Return the question for so many of the nearest that a filter lets through; fewer if the walk ends before.

    What is set before it, and set back after it, holds in this transaction.
    """
    values = [list(buckets), *condition[1], asked, wanted]
    return _settings(_WALKING), (statement(len(asked), condition[0]), values), _settings({"enable_sort": "on"})


_WALKING = {
    "hnsw.ef_search": str(EF_SEARCH), "hnsw.max_scan_tuples": str(MAX_SCANNED),
    "hnsw.iterative_scan": "strict_order", "enable_sort": "off",
}  # fmt: skip


def _settings(given: Mapping[str, str]) -> Sql:
    sets = ", ".join("set_config(?, ?, true)" for _ in given)
    return f"select {sets}", [part for setting in given.items() for part in setting]


def statement(dimensions: int, condition: str) -> str:
    """Return the question that the index answers."""
    return (
        "select e.id, m.data from embedding m join entry e on e.id = m.entry"
        f" where vector_dims(m.data) = {dimensions} and e.bucket = any(?::bigint[]) and {condition}"
        f" order by m.data::vector({dimensions}) <=> ? limit ?"
    )


def is_missing(db: PostgresDb, dimensions: int) -> bool:
    """Return whether an index would be of use, is not there, and can be made by this role."""
    sql = (
        "select t.reltuples, to_regclass(?) is null, pg_has_role(t.relowner, 'usage'), x.extversion"
        " from pg_class t cross join pg_extension x where t.oid = to_regclass('embedding') and x.extname = 'vector'"
    )
    [(size, missing, owned, version)] = db.every(sql, [index_name(dimensions)])
    known = tuple(int(part) for part in version.split(".")[:2])
    return bool(missing and owned and size >= INDEX_FROM and dimensions <= MAX_DIMENSIONS and known >= MIN_VERSION)


def build(db: PostgresDb, dimensions: int) -> None:
    """Make the index while others write; outside of any transaction."""
    db.run(
        f"create index concurrently if not exists {index_name(dimensions)} on embedding"
        f" using hnsw ((data::vector({dimensions})) vector_cosine_ops)"
        f" with (m = {M}, ef_construction = {EF_CONSTRUCTION}) where vector_dims(data) = {dimensions}",
    )

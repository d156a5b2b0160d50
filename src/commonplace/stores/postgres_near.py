"""Nearness by an index of pgvector (HNSW), where so much is asked through that comparing all of it takes too long.

The index is one for all scopes.  It is walked from the nearest on until the filter has let enough through (an iterative
scan), so a filter that keeps little still finds what it keeps; where a scope is a small part of the whole, or the walk
ends too soon, everything in it is compared instead.  Whoever owns the tables builds the index: ``PostgresKeeper``.
"""

from __future__ import annotations

from array import array

from commonplace.stores.postgres_connection import Db, every, run, vectors_of
from commonplace.stores.rows import Sql

INDEX_FROM = 20_000  # texts in the scopes asked: below that comparing all of them is soon done
SHARE_LEAST = 20  # the scopes asked hold at least one in so many of all vectors, or the walk is longer than they are
DIMENSIONS_MOST = 2000  # of a vector that an index of pgvector holds
VERSION_LEAST = (0, 8)  # of pgvector: earlier ones do not go on when a filter leaves too little
EF_SEARCH, SCANNED_MOST = 200, 200_000  # how wide the walk is, and how long
M, EF_CONSTRUCTION = 16, 128  # how dense the index is, and how carefully it is built


def index_name(dimensions: int) -> str:
    """What the index for vectors of that length is called."""
    return f"embedding_near_{dimensions}"


def worth_it(db: Db, dimensions: int, among: int, *, index_from: int) -> bool:
    """Whether the index is there, and the walk along it is shorter than comparing so many."""
    if among < index_from:
        return False
    sql = (
        "select t.reltuples from pg_index i join pg_class t on t.oid = i.indrelid"
        " where i.indexrelid = to_regclass(?) and i.indisvalid"
    )
    found = every(db, sql, [index_name(dimensions)])
    return bool(found) and among * SHARE_LEAST >= found[0][0]


def nearest(
    db: Db, asked: array[float], buckets: list[int], condition: Sql, wanted: int
) -> list[tuple[int, array[float]]]:
    """So many of the nearest that a filter lets through; fewer if the walk has ended before that."""
    for setting in (f"hnsw.ef_search = {EF_SEARCH}", f"hnsw.max_scan_tuples = {SCANNED_MOST}", "enable_sort = off"):
        run(db, f"set local {setting}")
    run(db, "set local hnsw.iterative_scan = strict_order")
    found = vectors_of(db, statement(len(asked), condition[0]), [buckets, *condition[1], asked, wanted])
    run(db, "set local enable_sort = on")
    return found


def statement(dimensions: int, condition: str) -> str:
    """The question that the index answers."""
    return (
        "select e.id, m.data from embedding m join entry e on e.id = m.entry"
        f" where vector_dims(m.data) = {dimensions} and e.bucket = any(?::bigint[]) and {condition}"
        f" order by m.data::vector({dimensions}) <=> ? limit ?"
    )


def lacking(db: Db, dimensions: int) -> bool:
    """Whether an index would be of use, and is not there, and can be made by whoever asks."""
    sql = (
        "select t.reltuples, to_regclass(?) is null, pg_has_role(t.relowner, 'usage'), x.extversion"
        " from pg_class t cross join pg_extension x where t.oid = to_regclass('embedding') and x.extname = 'vector'"
    )
    [(size, missing, owned, version)] = every(db, sql, [index_name(dimensions)])
    known = tuple(int(part) for part in version.split(".")[:2])
    return bool(missing and owned and size >= INDEX_FROM and dimensions <= DIMENSIONS_MOST and known >= VERSION_LEAST)


def build(db: Db, dimensions: int) -> None:
    """Make the index while others write; outside of any transaction."""
    run(
        db,
        f"create index concurrently if not exists {index_name(dimensions)} on embedding"
        f" using hnsw ((data::vector({dimensions})) vector_cosine_ops)"
        f" with (m = {M}, ef_construction = {EF_CONSTRUCTION}) where vector_dims(data) = {dimensions}",
    )

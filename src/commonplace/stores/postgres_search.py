"""Searching inside a transaction: by words, by nearness, and what a filter lets through.

Words are scored by ``bm25`` from postings, exactly as in SQLite.  Nearness is exact within what the filter lets
through: pgvector compares, the best are weighed once more in double precision so that both stores give one order.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from math import hypot

from commonplace.domain.documents import Chunk
from commonplace.domain.errors import DimensionMismatch, StoreDamaged
from commonplace.domain.queries import Filter, Match, Query, Vector
from commonplace.domain.records import Record
from commonplace.domain.values import Value
from commonplace.stores import postgres_entries as entries
from commonplace.stores import postgres_near as near
from commonplace.stores.bm25 import Postings, Scored, score
from commonplace.stores.moving import indexed
from commonplace.stores.postgres_connection import Db, every, vectors_of
from commonplace.stores.postgres_filters import among, among_numbers, entry_sql
from commonplace.stores.postgres_vectors import embedder
from commonplace.stores.rows import row_record, select_list
from commonplace.stores.scoring import (
    CANDIDATES_EACH,
    CANDIDATES_LEAST,
    CHUNK,
    chunk_at,
    classes,
    cosine,
    leading,
    matches,
)
from commonplace.stores.sqlite_vectors import unit


def match(db: Db, where: Filter, query: Query, *, limit: int) -> list[Match]:
    """By words."""
    found, documents, length = postings(db, where, query, places_of(db, where))
    return _fetch(db, leading(score(query, found, documents=documents, length=length), limit))[:limit]


class Places(Value):
    """Where a search looks, and what is there."""

    buckets: tuple[int, ...]
    texts: int
    length: int  #: of all texts together, in terms
    watched: bool  #: by row-level security


def postings(db: Db, where: Filter, query: Query, places: Places) -> tuple[Postings, int, int]:
    """Where each term of a question occurs; and how many texts of what total length there are to search."""
    terms = list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))
    found: dict[str, list[tuple[int, int, int]]] = {term: [] for term in terms}
    if not terms or not places.buckets:
        return found, places.texts, places.length
    pairs = [(bucket, number) for bucket in places.buckets for number in range(len(terms))]
    words = [indexed(term) for term in terms]
    condition, values = entry_sql(where)
    sql = (
        "select a.number, e.id, cardinality(array_positions(e.terms, a.term)), e.length"
        " from unnest(?::bigint[], ?::bigint[], ?::text[]) a (bucket, number, term)"
        f" join entry e on {_WATCHED if places.watched else _INDEXED} where {condition}"
    )
    asked = [[bucket for bucket, _ in pairs], [number for _, number in pairs], [words[number] for _, number in pairs]]
    for number, entry, count, size in every(db, sql, [*asked, *values]):
        found[terms[number]].append((entry, count, size))
    return found, places.texts, places.length


def nearest(db: Db, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
    """By nearness."""
    asked, held = unit(array("f", vector)), embedder(db)
    if held is None:
        return []
    if held.dimensions != len(asked):
        raise DimensionMismatch(stored=held.dimensions, offered=len(asked))
    wanted = max(CANDIDATES_LEAST, CANDIDATES_EACH * limit)
    found = cosines(asked, candidates(db, where, asked, wanted, places_of(db, where)))
    return _fetch(db, leading([(True, near_by, 1.0, entry) for entry, near_by in found], limit))[:limit]


def candidates(
    db: Db, where: Filter, asked: array[float], wanted: int, places: Places, *, index_from: int = near.INDEX_FROM
) -> list[tuple[int, array[float]]]:
    """The nearest of what the filter lets through: from so many texts on by the index, else by comparing all."""
    if wanted and near.worth_it(db, len(asked), places.texts, index_from=index_from):
        found = near.nearest(db, asked, list(places.buckets), entry_sql(where), wanted)
        if len(found) >= wanted:
            return found
    return _compared(db, where, asked, wanted, list(places.buckets))


def _compared(
    db: Db, where: Filter, asked: array[float], wanted: int, buckets: list[int]
) -> list[tuple[int, array[float]]]:
    """The nearest, exactly, and all that tie with the last; a vector of no length is at 0."""
    condition, values = entry_sql(where)
    sql = (
        "select e.id, m.data from entry e join embedding m on m.entry = e.id"
        f" where e.bucket = any(?::bigint[]) and {condition}"
        " order by coalesce(nullif(m.data <=> ?, 'NaN'), 1) fetch first ? rows with ties"
    )
    found = vectors_of(db, sql, [buckets, *values, asked, wanted]) if wanted else []
    if any(len(data) != len(asked) for _, data in found):
        raise StoreDamaged("vectors are of a wrong length")
    return found


def cosines(asked: Sequence[float], found: Sequence[tuple[int, Sequence[float]]]) -> list[tuple[int, float]]:
    """How near each of these is, exactly."""
    long = hypot(*asked)
    return [(entry, cosine(asked, long, theirs)) for entry, theirs in found]


#: Where a term occurs: by the index, or, under row-level security, which lets no such index be used, by looking through
#: the scope.
_INDEXED = "placed(e.bucket, e.terms) @> array[a.bucket || ':' || a.term]"
_WATCHED = "e.bucket = a.bucket and e.terms @> array[a.term]"


def places_of(db: Db, where: Filter) -> Places:
    """Where to look for what a filter means."""
    condition, values = among("s.path", where.scopes)
    sql = (
        "select e.bucket, count(*), sum(e.length)::bigint, row_security_active('entry') from scope s"
        " cross join unnest(?::bigint[]) c (class)"
        f" join entry e on e.bucket = s.id * 4 + c.class where {condition} group by e.bucket order by e.bucket"
    )
    rows = every(db, sql, [classes(where), *values])
    return Places(
        buckets=tuple(row[0] for row in rows), texts=sum(row[1] for row in rows), length=sum(row[2] for row in rows),
        watched=any(row[3] for row in rows),
    )  # fmt: skip


def _fetch(db: Db, found: Sequence[Scored]) -> list[Match]:
    """What was found, best first, ties by id."""
    wanted = [entry for *_, entry in found]
    return matches(found, records(db, wanted), chunks(db, wanted))


def records(db: Db, wanted: Collection[int]) -> dict[int, Record]:
    """The records and earlier versions among these entries."""
    found: dict[int, Record] = {}
    for table, key, class_ in (("record", "row", entries.RECORD), ("version", "record", entries.VERSION)):
        rows = [entry // 4 for entry in wanted if entry % 4 == class_]
        condition, numbers = among_numbers("r.row", rows)
        sql = (
            f"select r.row, {select_list('r')} from {table} r join scope s on s.id = r.scope"
            f" left join usage u on u.record = r.{key} where {condition}"
        )
        found |= {row[0] * 4 + class_: row_record(row[1:]) for row in (every(db, sql, numbers) if rows else [])}
    return found


def chunks(db: Db, wanted: Collection[int]) -> dict[int, Chunk]:
    """The chunks among these entries."""
    rows = [entry // 4 for entry in wanted if entry % 4 == entries.CHUNK]
    condition, numbers = among_numbers("c.row", rows)
    found = every(db, f"{CHUNK} where {condition}", numbers) if rows else []
    return {row[0] * 4 + entries.CHUNK: chunk_at(row) for row in found}

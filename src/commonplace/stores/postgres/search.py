"""Searching inside a transaction: by words, by nearness, and what a filter lets through.

Words are scored by ``bm25`` from postings, exactly as in SQLite.  Nearness is exact within what the filter lets
through: pgvector compares, the best are weighed once more in double precision so that both stores give one order.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from math import hypot
from typing import Any

from commonplace.model.documents import Chunk
from commonplace.model.errors import DimensionMismatch, StoreDamaged
from commonplace.model.queries import Filter, Match, Query, Vector
from commonplace.model.records import Record
from commonplace.model.values import Value
from commonplace.stores.bm25 import Postings, Scored, score
from commonplace.stores.items import indexed
from commonplace.stores.postgres import entries
from commonplace.stores.postgres import hnsw as near
from commonplace.stores.postgres.connection import Db, every, every_of, numbers_of
from commonplace.stores.postgres.filters import among, among_numbers, entry_sql
from commonplace.stores.postgres.vectors import embedder
from commonplace.stores.rows import Sql, row_record, select_list
from commonplace.stores.scoring import (
    CANDIDATES_EACH,
    CANDIDATES_LEAST,
    CHUNK,
    chunk_at,
    classes,
    cosine,
    leading,
    matches,
    unit,
)


def match(db: Db, where: Filter, query: Query, *, limit: int) -> list[Match]:
    """By words."""
    places = places_of(db, where)
    found = score(query, postings(db, where, query, places), documents=places.texts, length=places.length)
    return _fetch(db, leading(found, limit))[:limit]


class Places(Value):
    """Where a search looks, and what is there."""

    buckets: tuple[int, ...]
    texts: int
    length: int  #: of all texts together, in terms
    watched: bool  #: by row-level security


def postings(db: Db, where: Filter, query: Query, places: Places) -> Postings:
    """Where each term of a question occurs."""
    return postings_at(query, numbers_of(db, *postings_sql(where, query, places)))


def postings_at(query: Query, rows: Iterable[tuple[Any, ...]]) -> Postings:
    """Rows of ``postings_sql``, by term."""
    terms = _terms(query)
    found: dict[str, list[tuple[int, int, int]]] = {term: [] for term in terms}
    found |= {terms[number]: list(zip(*columns, strict=True)) for number, *columns in rows}
    return found


def _terms(query: Query) -> list[str]:
    return list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))


def postings_sql(where: Filter, query: Query, places: Places) -> Sql:
    """The question where each term occurs, how often, and in how long a text: one row for each term."""
    condition, values = entry_sql(where)
    sql = (
        "select a.number - 1, array_agg(e.id), array_agg(1 + cardinality(array_positions(e.repeated, a.term))),"
        f" array_agg(e.length) from {_ASKED} a join entry e on {_WATCHED if places.watched else _INDEXED}"
        f" where {condition} group by a.number"
    )
    return sql, [[indexed(term) for term in _terms(query)], list(places.buckets), *values]


#: The terms, numbered; and each as it stands in the index, once for each bucket.
_ASKED = (
    "(select term, number, buckets, array(select bucket || ':' || term from unnest(buckets) bucket) as keys"
    " from unnest(?::text[]) with ordinality said (term, number), (select ?::bigint[]) here (buckets) offset 0)"
)
#: Where a term occurs: by the index, or, under row-level security, which lets no such index be used, by looking through
#: the scope.
_INDEXED = "placed(e.bucket, e.terms) && a.keys"
_WATCHED = "e.bucket = any(a.buckets) and e.terms @> array[a.term]"


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
    db: Db, where: Filter, asked: array[float], wanted: int, places: Places, *, walk: bool | None = None
) -> list[tuple[int, array[float]]]:
    """The nearest of what the filter lets through: by walking along the index, or, where that is sooner, of all."""
    if walk is None:
        walk = near.is_shorter(every(db, *near.size_sql(len(asked))), places.texts, wanted)
    if wanted and walk:
        questions = near.walk_sql(asked, places.buckets, entry_sql(where), wanted)
        _, rows, _ = every_of(db, questions, numbers={1})
        if len(rows) >= wanted:
            return compared_at(asked, rows)
    return compared_at(asked, numbers_of(db, *compared_sql(where, asked, wanted, places)))


def compared_at(asked: array[float], found: Sequence[tuple[Any, ...]]) -> list[tuple[int, array[float]]]:
    """Rows of ``compared_sql``, or of any question for entries and their vectors."""
    if any(len(data) != len(asked) for _, data in found):
        raise StoreDamaged("vectors are of a wrong length")
    return [(entry, data) for entry, data in found]


def compared_sql(where: Filter, asked: array[float], wanted: int, places: Places) -> Sql:
    """The question for the nearest, exactly, and all that tie with the last; a vector of no length is at 0."""
    condition, values = entry_sql(where)
    nearest = (
        "select e.id from entry e join embedding m on m.entry = e.id"
        f" where e.bucket = any(?::bigint[]) and {condition}"
        " order by coalesce(nullif(m.data <=> ?, 'NaN'), 1) fetch first ? rows with ties"
    )  # by themselves: to sort whole vectors takes as long as to compare them
    sql = f"select n.id, m.data from ({nearest}) n join embedding m on m.entry = n.id"
    return sql, [list(places.buckets), *values, asked, max(0, wanted)]


def cosines(asked: Sequence[float], found: Sequence[tuple[int, Sequence[float]]]) -> list[tuple[int, float]]:
    """How near each of these is, exactly."""
    long = hypot(*asked)
    return [(entry, cosine(asked, long, theirs)) for entry, theirs in found]


def places_of(db: Db, where: Filter) -> Places:
    """Where to look for what a filter means."""
    return places_at(every(db, *places_sql(where)))


def places_sql(where: Filter) -> Sql:
    """The question where to look."""
    condition, values = among("s.path", where.scopes)
    sql = (
        "select t.bucket, t.texts, t.length, row_security_active('entry') from scope s"
        " cross join unnest(?::bigint[]) c (class) join tally t on t.bucket = s.id * 4 + c.class"
        f" where {condition} and t.texts > 0 order by t.bucket"
    )
    return sql, [classes(where), *values]


def places_at(rows: Sequence[tuple[Any, ...]]) -> Places:
    """Rows of ``places_sql`` as places."""
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
    return records_at(row for question in records_sql(wanted) for row in every(db, *question))


def records_sql(wanted: Collection[int]) -> list[Sql]:
    """The questions for them: one, two or none."""
    questions = []
    for table, key, class_ in (("record", "row", entries.RECORD), ("version", "record", entries.VERSION)):
        rows = [entry // 4 for entry in wanted if entry % 4 == class_]
        condition, numbers = among_numbers("r.row", rows)
        sql = (
            f"select r.row * 4 + {class_}, {select_list('r')} from {table} r join scope s on s.id = r.scope"
            f" left join usage u on u.record = r.{key} where {condition}"
        )
        questions += [(sql, numbers)] if rows else []
    return questions


def records_at(rows: Iterable[tuple[Any, ...]]) -> dict[int, Record]:
    """Rows of ``records_sql``, by entry."""
    return {row[0]: row_record(row[1:]) for row in rows}


def chunks(db: Db, wanted: Collection[int]) -> dict[int, Chunk]:
    """The chunks among these entries."""
    rows = [entry // 4 for entry in wanted if entry % 4 == entries.CHUNK]
    condition, numbers = among_numbers("c.row", rows)
    found = every(db, f"{CHUNK} where {condition}", numbers) if rows else []
    return {row[0] * 4 + entries.CHUNK: chunk_at(row) for row in found}

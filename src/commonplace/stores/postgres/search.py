"""Find candidates in PostgreSQL: by words from postings, by nearness exactly or by walking along an index.

pgvector compares; the best are weighed once more in double precision, so that both stores give one order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from math import hypot
from typing import TYPE_CHECKING, Any

from commonplace.model.queries import Filter, Query, Vector
from commonplace.model.values import Value
from commonplace.stores.postgres import hnsw
from commonplace.stores.rows import Sql
from commonplace.stores.scoring import Postings, asked_vector, best, classes, cosine
from commonplace.stores.sql.filters import entry_sql
from commonplace.stores.sql.items import indexed_term
from commonplace.stores.sql.search import Candidates, candidates_wanted
from commonplace.stores.sql.vectors import embedder_sql, identity_at

if TYPE_CHECKING:
    from commonplace.stores.postgres.dialect import PostgresDb


class Places(Value):
    """Where a search looks, and what is there."""

    buckets: tuple[int, ...]
    texts: int
    length: int  #: of all texts together, in terms
    watched: bool  #: by row-level security


def candidates(db: PostgresDb, where: Filter, query: Query, vector: Vector | None, limit: int) -> Candidates:
    """See ``Db``.  What does not need each other's answer is asked together: a question costs most by its way."""
    sized = [hnsw.size_sql(len(vector))] if vector is not None else []
    here, named, *size = db.every_of([_places_sql(db, where), embedder_sql(db), *sized])
    places, asked = _places_at(here), asked_vector(vector, identity_at(dict(named)))
    walk = vector is not None and hnsw.is_shorter(size[0], places.texts, limit)
    found, near = _find(db, where, query, asked, places, limit=limit, walk=walk)
    entries = set(dict(near))
    if asked is not None and len(near) > limit:  # more than were wanted tie with the last: then by their cosines
        entries = best(dict(_cosines(asked, near)), limit)
    return Candidates(
        asked=asked, postings=found, texts=places.texts, length=places.length, nearest=entries, vectors=dict(near)
    )


def _find(
    db: PostgresDb, where: Filter, query: Query, asked: array[float] | None, places: Places, *, limit: int, walk: bool
) -> tuple[Postings, list[tuple[int, array[float]]]]:
    """Where the words are, and what is nearest."""
    by_words = postings_sql(db, where, query, places)
    if asked is None:
        return postings_at(query, db.numbers_of(*by_words)), []
    by_nearness, place = [_compared_sql(db, where, asked, limit, places)], 1
    if walk:  # something is set before it, and set back after it
        by_nearness, place = [*hnsw.walk_sql(asked, places.buckets, entry_sql(db, where), limit)], 2
    answers = db.every_of([by_words, *by_nearness], numbers={0, place})
    near = _checked(db, asked, answers[place])
    if walk and len(near) < limit:  # the filter keeps so little that the walk has ended before
        near = nearest_vectors(db, where, asked, limit, places, walk=False)
    return postings_at(query, answers[0]), near


# Words


def postings_sql(db: PostgresDb, where: Filter, query: Query, places: Places) -> Sql:
    """Return the question where each term occurs, how often, and in how long a text: one row for each term."""
    condition, values = entry_sql(db, where)
    sql = (
        "select a.number - 1, array_agg(e.id), array_agg(1 + cardinality(array_positions(e.repeated, a.term))),"
        f" array_agg(e.length) from {_ASKED} a join entry e on {_WATCHED if places.watched else _INDEXED}"
        f" where {condition} group by a.number"
    )
    return sql, [[indexed_term(term) for term in _terms(query)], list(places.buckets), *values]


#: The terms, numbered; and each as it stands in the index, once for each bucket.
_ASKED = (
    "(select term, number, buckets, array(select bucket || ':' || term from unnest(buckets) bucket) as keys"
    " from unnest(?::text[]) with ordinality said (term, number), (select ?::bigint[]) here (buckets) offset 0)"
)
#: Where a term occurs: by the index, or, under row-level security, which lets no such index be used, by looking through
#: the scope.
_INDEXED = "placed(e.bucket, e.terms) && a.keys"
_WATCHED = "e.bucket = any(a.buckets) and e.terms @> array[a.term]"


def postings_at(query: Query, rows: Iterable[tuple[Any, ...]]) -> Postings:
    """Return rows of ``postings_sql`` by term."""
    terms = _terms(query)
    found: dict[str, list[tuple[int, int, int]]] = {term: [] for term in terms}
    found |= {terms[number]: list(zip(*columns, strict=True)) for number, *columns in rows}
    return found


def _terms(query: Query) -> list[str]:
    return list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))


# Nearness


def nearest(db: PostgresDb, where: Filter, asked: array[float], limit: int) -> list[tuple[int, float]]:
    """Return the nearest entries, and more, each with its cosine."""
    return _cosines(asked, nearest_vectors(db, where, asked, candidates_wanted(limit), places_of(db, where)))


def nearest_vectors(
    db: PostgresDb, where: Filter, asked: array[float], wanted: int, places: Places, *, walk: bool | None = None
) -> list[tuple[int, array[float]]]:
    """Return the nearest of what the filter lets through: by walking along the index, or, where sooner, of all."""
    if walk is None:
        walk = hnsw.is_shorter(db.every(*hnsw.size_sql(len(asked))), places.texts, wanted)
    if wanted and walk:
        questions = hnsw.walk_sql(asked, places.buckets, entry_sql(db, where), wanted)
        _, rows, _ = db.every_of(questions, numbers={1})
        if len(rows) >= wanted:
            return _checked(db, asked, rows)
    return _checked(db, asked, db.numbers_of(*_compared_sql(db, where, asked, wanted, places)))


def _checked(db: PostgresDb, asked: array[float], found: Sequence[tuple[Any, ...]]) -> list[tuple[int, array[float]]]:
    for _, data in found:
        db.numbers(data, len(asked))
    return [(entry, data) for entry, data in found]


def _compared_sql(db: PostgresDb, where: Filter, asked: array[float], wanted: int, places: Places) -> Sql:
    """Return the question for the nearest, exactly, and all that tie with the last; a vector of no length is at 0."""
    condition, values = entry_sql(db, where)
    nearest = (
        "select e.id from entry e join embedding m on m.entry = e.id"
        f" where e.bucket = any(?::bigint[]) and {condition}"
        " order by coalesce(nullif(m.data <=> ?, 'NaN'), 1) fetch first ? rows with ties"
    )  # by themselves: to sort whole vectors takes as long as to compare them
    sql = f"select n.id, m.data from ({nearest}) n join embedding m on m.entry = n.id"
    return sql, [list(places.buckets), *values, asked, max(0, wanted)]


def _cosines(asked: Sequence[float], found: Sequence[tuple[int, Sequence[float]]]) -> list[tuple[int, float]]:
    """Return how near each of these is, exactly."""
    long = hypot(*asked)
    return [(entry, cosine(asked, long, theirs)) for entry, theirs in found]


# Where to look


def places_of(db: PostgresDb, where: Filter) -> Places:
    """Return where to look for what a filter means."""
    return _places_at(db.every(*_places_sql(db, where)))


def _places_sql(db: PostgresDb, where: Filter) -> Sql:
    condition, values = db.among("s.path", where.scopes)
    sql = (
        "select t.bucket, t.texts, t.length, row_security_active('entry') from scope s"
        " cross join unnest(?::bigint[]) c (class) join tally t on t.bucket = s.id * 4 + c.class"
        f" where {condition} and t.texts > 0 order by t.bucket"
    )
    return sql, [classes(where), *values]


def _places_at(rows: Sequence[tuple[Any, ...]]) -> Places:
    return Places(
        buckets=tuple(row[0] for row in rows), texts=sum(row[1] for row in rows), length=sum(row[2] for row in rows),
        watched=any(row[3] for row in rows),
    )  # fmt: skip

"""What may bear on a question, seen in one transaction: by words, by nearness, and what stands around it."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from commonplace.model.errors import DimensionMismatch
from commonplace.model.ports import AROUND, EmbedderIdentity
from commonplace.model.queries import Filter, Query, Survey, Vector
from commonplace.model.records import Record
from commonplace.model.scopes import Scope
from commonplace.stores.bm25 import Postings, worths
from commonplace.stores.postgres import hnsw as near
from commonplace.stores.postgres import search
from commonplace.stores.postgres.connection import Db, every, every_of, numbers_of
from commonplace.stores.postgres.filters import among_numbers, entry_sql, scopes_sql
from commonplace.stores.postgres.vectors import EMBEDDER, embedder_at
from commonplace.stores.scoring import CHUNK_CLASS, SPEAKERS_MOST, best, likeness, neighbours, surveyed, totals, unit


def survey(db: Db, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
    """See ``Store``.  What does not need each other's answer is asked together: a question costs most by its way."""
    sized = [near.size_sql(len(vector))] if vector is not None else []
    here, named, *size = every_of(db, [search.places_sql(where), EMBEDDER, *sized])
    places, asked = search.places_at(here), _asked(embedder_at((key, value) for key, value in named), vector)
    walk = vector is not None and near.is_shorter(size[0], places.texts, limit)
    found, nearest = _found(db, where, query, asked, places, limit=limit, walk=walk)
    words, rarities = worths(query, found, documents=places.texts, length=places.length)
    seen = best(totals(words), limit)
    if asked is not None:  # more than were wanted tie with the last: then by their cosines
        seen |= dict(nearest).keys() if len(nearest) <= limit else best(dict(search.cosines(asked, nearest)), limit)
    before = _around(db, seen) if where.chunks else {}
    seen |= before.keys()
    held, records = _held(db, asked, seen, dict(nearest))
    similar, together = likeness(asked, held, held.__getitem__, before) if asked is not None else ({}, {})
    return surveyed(
        seen, words, rarities, similar=similar, together=together, records=records, chunks=search.chunks(db, seen)
    )


def _found(
    db: Db, where: Filter, query: Query, asked: array[float] | None, places: search.Places, *, limit: int, walk: bool
) -> tuple[Postings, list[tuple[int, array[float]]]]:
    """Where the words are, and what is nearest."""
    by_words = search.postings_sql(where, query, places)
    if asked is None:
        return search.postings_at(query, numbers_of(db, *by_words)), []
    by_nearness, place = [search.compared_sql(where, asked, limit, places)], 1
    if walk:  # something is set before it, and set back after it
        by_nearness, place = [*near.walk_sql(asked, places.buckets, entry_sql(where), limit)], 2
    answers = every_of(db, [by_words, *by_nearness], numbers={0, place})
    found, nearest = search.postings_at(query, answers[0]), search.compared_at(asked, answers[place])
    if walk and len(nearest) < limit:  # the filter keeps so little that the walk has ended before
        nearest = search.candidates(db, where, asked, limit, places, walk=False)
    return found, nearest


def _held(
    db: Db, asked: array[float] | None, seen: Collection[int], known: Mapping[int, array[float]]
) -> tuple[dict[int, array[float]], dict[int, Record]]:
    """The vectors and the records of what was seen; some vectors are known already."""
    condition, numbers = among_numbers("m.entry", [] if asked is None else [one for one in seen if one not in known])
    vectors = (f"select m.entry, m.data from embedding m where {condition}", numbers)
    more, *rows = every_of(db, [vectors, *search.records_sql(seen)], numbers={0})
    held = dict(search.compared_at(asked, more)) if asked is not None else {}
    return held | {entry: data for entry, data in known.items() if entry in seen}, search.records_at(chain(*rows))


def speakers(db: Db, scopes: Collection[Scope]) -> list[str]:
    """Who speaks in these scopes: the index is leapt through from name to name, not read."""
    condition, values = scopes_sql(scopes, "s.id")
    found: set[str] = set()
    for (scope,) in every(db, f"select s.id from scope s where {condition}", values):
        sql = (
            "with recursive name (name) as ("
            "(select speaker from chunk where scope = ? and speaker > '' order by speaker limit 1) union all"
            " select (select c.speaker from chunk c where c.scope = ? and c.speaker > name.name order by c.speaker"
            " limit 1) from name where name.name is not null)"
            " select name from name where name is not null limit ?"
        )
        found.update(name for (name,) in every(db, sql, [scope, scope, SPEAKERS_MOST]))
    return sorted(found)


def _asked(held: EmbedderIdentity | None, vector: Vector | None) -> array[float] | None:
    if vector is None or held is None:
        return None
    if held.dimensions != len(vector):
        raise DimensionMismatch(stored=held.dimensions, offered=len(vector))
    return unit(array("f", vector))


def _around(db: Db, seen: Iterable[int]) -> dict[int, int | None]:
    """Every chunk beside these, and these, each with the one before it if that is among them."""
    rows = [entry // 4 for entry in seen if entry % 4 == CHUNK_CLASS]
    condition, numbers = among_numbers("c.row", rows)
    sql = (
        "select distinct n.row, n.document, n.seq from chunk c join chunk n on n.document = c.document"
        f" and n.seq between c.seq - {AROUND} and c.seq + {AROUND} where {condition}"
    )
    return neighbours((row, document, seq) for row, document, seq in (every(db, sql, numbers) if rows else []))

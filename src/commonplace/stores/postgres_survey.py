"""What may bear on a question, seen in one transaction: by words, by nearness, and what stands around it."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest
from math import dist, hypot

from commonplace.domain.errors import DimensionMismatch, StoreDamaged
from commonplace.domain.ports import AROUND
from commonplace.domain.queries import Filter, Query, Sighting, Survey, Vector
from commonplace.domain.scopes import Scope
from commonplace.stores import postgres_search as search
from commonplace.stores.bm25 import worths
from commonplace.stores.postgres_connection import Db, every, vectors_of
from commonplace.stores.postgres_entries import CHUNK
from commonplace.stores.postgres_filters import among_numbers, scopes_sql
from commonplace.stores.postgres_vectors import embedder
from commonplace.stores.sqlite_survey import SPEAKERS_MOST
from commonplace.stores.sqlite_vectors import unit


def survey(db: Db, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
    """See ``Store``."""
    postings, documents, length = search.postings(db, where, query)
    words, rarities = worths(query, postings, documents=documents, length=length)
    totals: dict[int, float] = {}
    for word in words:
        for entry, worth in word.items():
            totals[entry] = totals.get(entry, 0.0) + worth
    asked = _asked(db, vector)
    seen = _best(totals, limit)
    if asked is not None:
        near = search.cosines(asked, search.candidates(db, where, asked, limit))
        seen |= _best(dict(near), limit)
    before = _around(db, seen) if where.chunks else {}
    seen |= before.keys()
    similar, together = _cosines(db, asked, seen, before) if asked is not None else ({}, {})
    records, chunks = search.records(db, seen), search.chunks(db, seen)
    return Survey(
        rarities=tuple(rarities),
        sightings=tuple(
            Sighting(
                record=records.get(entry),
                chunk=chunks.get(entry),
                words=tuple([word.get(entry, 0.0) for word in words]),
                similarity=similar.get(entry),
                together=together.get(entry),
            )
            for entry in sorted(seen)
            if entry in records or entry in chunks
        ),
    )


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


def _asked(db: Db, vector: Vector | None) -> array[float] | None:
    held = embedder(db)
    if vector is None or held is None:
        return None
    if held.dimensions != len(vector):
        raise DimensionMismatch(stored=held.dimensions, offered=len(vector))
    return unit(array("f", vector))


def _best(worth: Mapping[int, float], limit: int) -> set[int]:
    return {-entry for _, entry in nlargest(limit, [(value, -entry) for entry, value in worth.items()])}


def _around(db: Db, seen: Iterable[int]) -> dict[int, int | None]:
    """Every chunk beside these, and these, each with the one before it if that is among them."""
    rows = [entry // 4 for entry in seen if entry % 4 == CHUNK]
    condition, numbers = among_numbers("c.row", rows)
    sql = (
        "select distinct n.row, n.document, n.seq from chunk c join chunk n on n.document = c.document"
        f" and n.seq between c.seq - {AROUND} and c.seq + {AROUND} where {condition}"
    )
    places = {(document, seq): row for row, document, seq in every(db, sql, numbers)} if rows else {}
    before = {row: places.get((document, seq - 1)) for (document, seq), row in places.items()}
    return {_entry(row): None if last is None else _entry(last) for row, last in before.items()}


def _entry(row: int) -> int:
    return row * 4 + CHUNK


def _cosines(
    db: Db, asked: array[float], seen: Collection[int], before: Mapping[int, int | None]
) -> tuple[dict[int, float], dict[int, float]]:
    """How near each is, and how near each is together with the one before it: all vectors are of unit length.

    The arithmetic is that of ``sqlite_survey``, so that the two stores weigh alike.
    """
    held = _vectors(db, seen, len(asked))
    long = hypot(*asked) ** 2
    similar = {
        entry: (long + 1 - dist(asked, theirs) ** 2) / 2 if any(theirs) else 0.0 for entry, theirs in held.items()
    }
    together: dict[int, float] = {}
    for entry, theirs in held.items():
        last = before.get(entry)
        if last is not None and last in held:
            both = (
                4 - dist(theirs, held[last]) ** 2 if any(theirs) and any(held[last]) else 1.0
            )  # the square of their sum
            together[entry] = (similar[entry] + similar[last]) / both**0.5 if both > 0 else 0.0
    return similar, together


def _vectors(db: Db, seen: Collection[int], dimensions: int) -> dict[int, array[float]]:
    condition, numbers = among_numbers("entry", seen)
    rows = vectors_of(db, f"select entry, data from embedding where {condition} order by entry", numbers)
    if any(len(data) != dimensions for _, data in rows):
        raise StoreDamaged("vectors are of a wrong length")
    return dict(rows)

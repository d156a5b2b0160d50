"""What may bear on a question, seen in one transaction: by words, by nearness, and what stands around it.

Both ways of searching are asked for their best; then everything that was seen is weighed in both ways.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import dist, hypot
from struct import Struct

import apsw

from commonplace.domain.errors import DimensionMismatch, StoreDamaged
from commonplace.domain.ports import AROUND
from commonplace.domain.queries import Filter, Query, Sighting, Survey, Vector
from commonplace.domain.scopes import Scope
from commonplace.stores import signatures
from commonplace.stores import sqlite_search as search
from commonplace.stores.bm25 import worths
from commonplace.stores.rows import among
from commonplace.stores.sqlite_connection import every
from commonplace.stores.sqlite_vectors import FLOAT_BYTES, embedder, unit

CHUNK_CLASS = 1  # the last two bits of a chunk's entry: see 0001.sql
SPEAKERS_MOST = 500  # a scope in which more people speak is no conversation


def survey(db: apsw.Connection, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
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
        seen |= _nearest(db, where, asked, limit)
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


def speakers(db: apsw.Connection, scopes: Collection[Scope]) -> list[str]:
    """Who speaks in these scopes: the index is leapt through from name to name, not read."""
    condition, values = among("path", [str(scope) for scope in scopes])
    found: set[str] = set()
    for (scope,) in every(db, f"select id from scope where {condition}", values):
        sql = (
            "with recursive name (name) as (select min(speaker) from chunk where scope = ?1 and speaker > '' union all"
            " select (select min(speaker) from chunk where scope = ?1 and speaker > name.name) from name"
            " where name.name is not null limit ?2) select name from name where name is not null"
        )
        found.update(name for (name,) in every(db, sql, (scope, SPEAKERS_MOST)))
    return sorted(found)


def _asked(db: apsw.Connection, vector: Vector | None) -> array[float] | None:
    held = embedder(db)
    if vector is None or held is None:
        return None
    if held.dimensions != len(vector):
        raise DimensionMismatch(stored=held.dimensions, offered=len(vector))
    return unit(array("f", vector))


def _best(worth: Mapping[int, float], limit: int) -> set[int]:
    return {-entry for _, entry in nlargest(limit, [(value, -entry) for entry, value in worth.items()])}


def _nearest(db: apsw.Connection, where: Filter, asked: Sequence[float], limit: int) -> set[int]:
    """The nearest by their codes; where more tie than are wanted, as equal texts do, by their cosines."""
    near = signatures.best(search.codes(db, where, len(asked)), asked, limit)
    if len(near) <= limit:
        return set(near)
    return _best(_cosines(db, asked, near, {})[0], limit)


def _around(db: apsw.Connection, entries: Iterable[int]) -> dict[int, int | None]:
    """Every chunk beside these, and these, each with the one before it if that is among them."""
    rows = [entry // 4 for entry in entries if entry % 4 == CHUNK_CLASS]
    condition, numbers = among("c.row", rows)
    sql = (
        "select distinct n.row, n.document, n.seq from chunk c join chunk n on n.document = c.document"
        f" and n.seq between c.seq - {AROUND} and c.seq + {AROUND} where {condition}"
    )
    places = {(document, seq): row for row, document, seq in every(db, sql, numbers)} if rows else {}
    before = {row: places.get((document, seq - 1)) for (document, seq), row in places.items()}
    return {_entry(row): None if last is None else _entry(last) for row, last in before.items()}


def _entry(row: int) -> int:
    return row * 4 + CHUNK_CLASS


def _cosines(
    db: apsw.Connection, asked: Sequence[float], entries: Collection[int], before: Mapping[int, int | None]
) -> tuple[dict[int, float], dict[int, float]]:
    """How near each is, and how near each is together with the one before it: all vectors are of unit length.

    Numbers are unpacked as they are needed, neighbours after each other: to hold all of them takes twice as long.
    """
    held = _vectors(db, entries, len(asked))
    numbers = Struct(f"{len(asked)}f").unpack
    ours, long = tuple(asked), hypot(*asked) ** 2
    similar: dict[int, float] = {}
    sums: dict[int, float] = {}
    previous, known = -1, ours
    for entry in sorted(held):
        theirs, last = numbers(held[entry]), before.get(entry)
        similar[entry] = (long + 1 - dist(ours, theirs) ** 2) / 2 if any(theirs) else 0.0
        if last is not None and last in held:
            pair = theirs, known if last == previous else numbers(held[last])
            sums[entry] = 4 - dist(*pair) ** 2 if all(map(any, pair)) else 1.0  # the square of their sum
        previous, known = entry, theirs
    together = {
        entry: (similar[entry] + similar[before[entry] or 0]) / both**0.5 if both > 0 else 0.0
        for entry, both in sums.items()
    }
    return similar, together


def _vectors(db: apsw.Connection, entries: Collection[int], dimensions: int) -> dict[int, bytes]:
    condition, numbers = among("entry", entries)
    rows = every(db, f"select entry, data from vector where {condition}", numbers) if entries else []
    if any(len(data) != FLOAT_BYTES * dimensions for _, data in rows):
        raise StoreDamaged("vectors are damaged; run `commonplace doctor`")
    return dict(rows)

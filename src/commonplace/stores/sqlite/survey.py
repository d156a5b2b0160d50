"""What may bear on a question, seen in one transaction: by words, by nearness, and what stands around it.

Both ways of searching are asked for their best; then everything that was seen is weighed in both ways.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from struct import Struct

import apsw

from commonplace.model.errors import DimensionMismatch, StoreDamaged
from commonplace.model.ports import AROUND
from commonplace.model.queries import Filter, Query, Survey, Vector
from commonplace.model.scopes import Scope
from commonplace.stores.bm25 import worths
from commonplace.stores.rows import among
from commonplace.stores.scoring import CHUNK_CLASS, SPEAKERS_MOST, best, likeness, neighbours, surveyed, totals, unit
from commonplace.stores.sqlite import search
from commonplace.stores.sqlite.connection import every
from commonplace.stores.sqlite.vectors import FLOAT_BYTES, embedder


def survey(
    db: apsw.Connection,
    where: Filter,
    query: Query,
    vector: Vector | None,
    *,
    limit: int,
    near: search.Near = search.by_codes,
) -> Survey:
    """See ``Store``."""
    postings, documents, length = search.postings(db, where, query)
    words, rarities = worths(query, postings, documents=documents, length=length)
    asked = _asked(db, vector)
    seen = best(totals(words), limit)
    if asked is not None:
        seen |= _nearest(db, near(db, where, asked, limit), asked, limit)
    before = _around(db, seen) if where.chunks else {}
    seen |= before.keys()
    similar, together = _cosines(db, asked, seen, before) if asked is not None else ({}, {})
    return surveyed(
        seen, words, rarities, similar=similar, together=together, records=search.records(db, seen),
        chunks=search.chunks(db, seen),
    )  # fmt: skip


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


def _nearest(db: apsw.Connection, near: Sequence[int], asked: Sequence[float], limit: int) -> set[int]:
    """The nearest as they were found; where more were found than are wanted, as of equal texts, by their cosines."""
    if len(near) <= limit:
        return set(near)
    return best(_cosines(db, asked, near, {})[0], limit)


def _around(db: apsw.Connection, entries: Iterable[int]) -> dict[int, int | None]:
    """Every chunk beside these, and these, each with the one before it if that is among them."""
    rows = [entry // 4 for entry in entries if entry % 4 == CHUNK_CLASS]
    condition, numbers = among("c.row", rows)
    sql = (
        "select distinct n.row, n.document, n.seq from chunk c join chunk n on n.document = c.document"
        f" and n.seq between c.seq - {AROUND} and c.seq + {AROUND} where {condition}"
    )
    return neighbours(every(db, sql, numbers) if rows else [])


def _cosines(
    db: apsw.Connection, asked: Sequence[float], entries: Collection[int], before: Mapping[int, int | None]
) -> tuple[dict[int, float], dict[int, float]]:
    """How near each is, and how near each is together with the one before it."""
    held = _vectors(db, entries, len(asked))
    unpack = Struct(f"{len(asked)}f").unpack
    return likeness(asked, held, lambda entry: unpack(held[entry]), before)


def _vectors(db: apsw.Connection, entries: Collection[int], dimensions: int) -> dict[int, bytes]:
    condition, numbers = among("entry", entries)
    rows = every(db, f"select entry, data from vector where {condition}", numbers) if entries else []
    if any(len(data) != FLOAT_BYTES * dimensions for _, data in rows):
        raise StoreDamaged("vectors are damaged; run `commonplace doctor`")
    return dict(rows)

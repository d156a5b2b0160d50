"""What may bear on a question, seen in one transaction: by words, by nearness, and what stands around it."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping

from commonplace.domain.errors import DimensionMismatch, StoreDamaged
from commonplace.domain.ports import AROUND
from commonplace.domain.queries import Filter, Query, Survey, Vector
from commonplace.domain.scopes import Scope
from commonplace.stores import postgres_search as search
from commonplace.stores.bm25 import worths
from commonplace.stores.postgres_connection import Db, every, vectors_of
from commonplace.stores.postgres_filters import among_numbers, scopes_sql
from commonplace.stores.postgres_vectors import embedder
from commonplace.stores.scoring import CHUNK_CLASS, SPEAKERS_MOST, best, likeness, neighbours, surveyed, totals
from commonplace.stores.sqlite_vectors import unit


def survey(db: Db, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
    """See ``Store``."""
    places = search.places_of(db, where)
    postings, documents, length = search.postings(db, where, query, places)
    words, rarities = worths(query, postings, documents=documents, length=length)
    asked = _asked(db, vector)
    seen = best(totals(words), limit)
    near = search.candidates(db, where, asked, limit, places) if asked is not None else []
    if asked is not None:  # more than were wanted tie with the last: then by their cosines
        seen |= dict(near).keys() if len(near) <= limit else best(dict(search.cosines(asked, near)), limit)
    before = _around(db, seen) if where.chunks else {}
    seen |= before.keys()
    similar, together = _cosines(db, asked, seen, before, dict(near)) if asked is not None else ({}, {})
    return surveyed(
        seen, words, rarities, similar=similar, together=together, records=search.records(db, seen),
        chunks=search.chunks(db, seen),
    )  # fmt: skip


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


def _around(db: Db, seen: Iterable[int]) -> dict[int, int | None]:
    """Every chunk beside these, and these, each with the one before it if that is among them."""
    rows = [entry // 4 for entry in seen if entry % 4 == CHUNK_CLASS]
    condition, numbers = among_numbers("c.row", rows)
    sql = (
        "select distinct n.row, n.document, n.seq from chunk c join chunk n on n.document = c.document"
        f" and n.seq between c.seq - {AROUND} and c.seq + {AROUND} where {condition}"
    )
    return neighbours((row, document, seq) for row, document, seq in (every(db, sql, numbers) if rows else []))


def _cosines(
    db: Db,
    asked: array[float],
    seen: Collection[int],
    before: Mapping[int, int | None],
    known: Mapping[int, array[float]],
) -> tuple[dict[int, float], dict[int, float]]:
    """How near each is, and how near each is together with the one before it; some vectors are known already."""
    held = _vectors(db, [entry for entry in seen if entry not in known], len(asked))
    held |= {entry: vector for entry, vector in known.items() if entry in seen}
    return likeness(asked, held, held.__getitem__, before)


def _vectors(db: Db, seen: Collection[int], dimensions: int) -> dict[int, array[float]]:
    condition, numbers = among_numbers("entry", seen)
    rows = vectors_of(db, f"select entry, data from embedding where {condition} order by entry", numbers)
    if any(len(data) != dimensions for _, data in rows):
        raise StoreDamaged("vectors are of a wrong length")
    return dict(rows)

"""Searching inside a transaction: by words, by nearness, and what a filter lets through.

A filter is a condition of the statement that reads candidates, never of what is left after a cut: so a filter that
keeps little still finds the best of what it keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from math import hypot
from struct import unpack
from typing import Any, TypeAlias

import apsw

from commonplace.model.documents import Chunk
from commonplace.model.errors import DimensionMismatch, StoreDamaged
from commonplace.model.queries import Filter, Match, Query, Vector
from commonplace.model.records import Record
from commonplace.stores import codes as signatures
from commonplace.stores.bm25 import Postings, Scored, score
from commonplace.stores.rows import (
    COLUMNS,
    Sql,
    among,
    filter_sql,
    marks,
    micros,
    row_record,
    select_list,
)
from commonplace.stores.scoring import (
    CANDIDATES_EACH,
    CANDIDATES_LEAST,
    CHUNK,
    CHUNK_CLASS,
    RECORD,
    VERSION,
    chunk_at,
    classes,
    cosine,
    leading,
    matches,
    unit,
)
from commonplace.stores.sqlite.connection import every
from commonplace.stores.sqlite.vectors import FLOAT_BYTES, embedder

SINGLE_PRECISION = 1e-4  # more than sqlite-vec's cosine, made of small floats, can be wrong
#: Finds so many entries, or more, that may be nearest to what is asked, among those that a filter keeps.
Near: TypeAlias = Callable[[apsw.Connection, Filter, Sequence[float], int], list[int]]


def match(db: apsw.Connection, where: Filter, query: Query, *, limit: int) -> list[Match]:
    """By words."""
    found, documents, length = postings(db, where, query)
    return _fetch(db, leading(score(query, found, documents=documents, length=length), limit))[:limit]


def postings(db: apsw.Connection, where: Filter, query: Query) -> tuple[Postings, int, int]:
    """Where each term of a question occurs; and how many texts of what total length there are to search."""
    terms = list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))
    numbers, documents, length = buckets(db, where)
    condition, values = entry_sql(where)
    return {term: _postings(db, numbers, term, condition, values) for term in terms}, documents, length


def by_codes(db: apsw.Connection, where: Filter, asked: Sequence[float], count: int) -> list[int]:
    """Those whose codes are nearest."""
    return signatures.best(codes(db, where, len(asked)), asked, count)


def nearest(
    db: apsw.Connection, where: Filter, vector: Vector, *, limit: int, vec: bool, near: Near = by_codes
) -> list[Match]:
    """By nearness; with sqlite-vec sooner, and the same."""
    asked, held = unit(array("f", vector)), embedder(db)
    if held is None:
        return []
    if held.dimensions != len(asked):
        raise DimensionMismatch(stored=held.dimensions, offered=len(asked))
    wanted = max(CANDIDATES_LEAST, CANDIDATES_EACH * limit)
    candidates = near(db, where, asked, wanted)
    if vec and len(candidates) > limit:
        candidates = _narrowed(db, asked, candidates, limit)
    found = [(True, near_by, 1.0, entry) for entry, near_by in _cosines(db, asked, candidates)]
    return _fetch(db, leading(found, limit))[:limit]


def codes(db: apsw.Connection, where: Filter, dimensions: int, *, only: str = "1") -> bytes:
    """The codes of all that may be found, one after the other: put together by the database, which is soonest.

    ``only`` is one more condition on codes, under the alias `e`.
    """
    numbers, _, _ = buckets(db, where)
    condition, values = entry_sql(where)
    sql = f"select cast(group_concat(e.data, '') as blob) from code e where e.bucket = ? and {only} and {condition}"
    found = [data for bucket in numbers for (data,) in every(db, sql, [bucket, *values]) if data]
    codes = b"".join(found) if len(found) != 1 else found[0]
    if len(codes) % signatures.length(dimensions):
        raise StoreDamaged("the codes of vectors are damaged; run `commonplace doctor`")
    return codes


def _cosines(db: apsw.Connection, asked: Sequence[float], entries: Sequence[int]) -> list[tuple[int, float]]:
    """How near each of these is, exactly."""
    condition, numbers = among("entry", entries)
    rows = every(db, f"select entry, data from vector where {condition}", numbers)
    if len(rows) != len(entries) or any(len(data) != FLOAT_BYTES * len(asked) for _, data in rows):
        raise StoreDamaged("vectors are missing or damaged; run `commonplace doctor`")
    form, ours, long = f"{len(asked)}f", tuple(asked), hypot(*asked)
    return [(entry, cosine(ours, long, unpack(form, data))) for entry, data in rows]


def _narrowed(db: apsw.Connection, asked: array[float], entries: Sequence[int], limit: int) -> list[int]:
    """The nearest of these, and all that sqlite-vec's small floats cannot tell from the last of them."""
    condition, numbers = among("entry", entries)
    sql = f"select coalesce(vec_distance_cosine(data, ?), 1.0) as far, entry from vector where {condition} order by far"
    rows = every(db, sql, [asked.tobytes(), *numbers])
    cut = rows[limit - 1][0] + SINGLE_PRECISION
    return [entry for far, entry in rows if far <= cut]


def rows_of(where: Filter) -> Sql:
    """Which rows a filter looks at: the present, every version, or what was valid at a moment."""
    if where.as_of is not None:
        return _AS_OF, [micros(where.as_of), micros(where.as_of)]
    return (_EVERY, []) if where.versions else ("record", [])


def _columns(alias: str) -> str:
    return ", ".join(f"{alias}.{column}" for column in COLUMNS)


_EVERY = (
    f"(select p.row as row, p.row * 4 as entry, {_columns('p')} from record p"
    f" union all select v.record as row, v.row * 4 + 2 as entry, {_columns('v')} from version v)"
)
#: Of each record the last version that had begun by then.
_AS_OF = (
    f"(select t.* from {_EVERY} t where t.valid_from <= ? and not exists (select 1 from {_EVERY} later"
    " where later.row = t.row and later.version > t.version and later.valid_from <= ?))"
)


def buckets(db: apsw.Connection, where: Filter) -> tuple[list[int], int, int]:
    """Where to look, and how many texts of what total length are there."""
    within, paths = among("path", where.scopes)
    scopes = every(db, f"select id from scope where {within} order by path", paths)
    chosen, wanted = among("id", [number * 4 + class_ for (number,) in scopes for class_ in classes(where)])
    rows = every(db, f"select id, docs, length from bucket where docs > 0 and {chosen}", wanted)
    return [row[0] for row in rows], sum(row[1] for row in rows), sum(row[2] for row in rows)


#: What a filter can ask for that an entry does not know.
_BEYOND_ENTRIES = tuple(
    field for field in Filter.fields if field not in {"scopes", "at", "kinds", "categories", "records", "chunks"}
)


def plain(where: Filter) -> bool:
    """Whether a filter asks for nothing but what an entry knows of itself."""
    return all(getattr(where, field) == Filter.defaults[field] for field in _BEYOND_ENTRIES)


def entry_sql(where: Filter) -> Sql:
    """A filter as a condition on entries under the alias `e`; chunks pass it, they have no kind and no state."""
    if plain(where):
        parts: list[Sql] = [("(e.expires is null or e.expires > ?)", [micros(where.at)])]
        for column, allowed in {"kind": where.kinds, "category": where.categories}.items():
            if allowed is not None:
                values = [str(value) for value in sorted(allowed)]
                parts.append((f"(e.{column} in ({marks(values)}) or e.kind is null)", values))
        return " and ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]
    condition, values = filter_sql(where, "r")
    table, moments = rows_of(where)
    entry = "r.row * 4" if table == "record" else "r.entry"
    return f"(e.kind is null or e.id in (select {entry} from {table} r where {condition}))", [*moments, *values]


def _postings(
    db: apsw.Connection, buckets: Sequence[int], term: str, condition: str, values: Sequence[Any]
) -> list[tuple[int, int, int]]:
    sql = (
        "select p.doc, count(*), e.length from entry_at p join entry e on e.id = p.doc"
        f" where p.term = ? and e.bucket = ? and {condition} group by p.doc"  # no term speaks for another bucket
    )
    return [row for bucket in buckets for row in every(db, sql, [f"{bucket}:{term}", bucket, *values])]


def _fetch(db: apsw.Connection, found: Sequence[Scored]) -> list[Match]:
    """What was found, best first, ties by id."""
    entries = [entry for *_, entry in found]
    return matches(found, records(db, entries), chunks(db, entries))


def records(db: apsw.Connection, entries: Collection[int]) -> dict[int, Record]:
    """The records and earlier versions among these entries."""
    found: dict[int, Record] = {}
    for table, key, class_ in (("record", "row", RECORD), ("version", "record", VERSION)):
        condition, numbers = among("r.row", [entry // 4 for entry in entries if entry % 4 == class_])
        sql = (
            f"select r.row, {select_list('r')} from {table} r join scope s on s.id = r.scope"
            f" left join usage u on u.record = r.{key} where {condition}"
        )
        rows = every(db, sql, numbers) if numbers else []
        found |= {row[0] * 4 + class_: row_record(row[1:]) for row in rows}
    return found


def chunks(db: apsw.Connection, entries: Collection[int]) -> dict[int, Chunk]:
    """The chunks among these entries."""
    condition, numbers = among("c.row", [entry // 4 for entry in entries if entry % 4 == CHUNK_CLASS])
    rows = every(db, f"{CHUNK} where {condition}", numbers) if numbers else []
    return {row[0] * 4 + CHUNK_CLASS: chunk_at(row) for row in rows}

"""Searching inside a transaction: by words, by nearness, and what a filter lets through.

A filter is a condition of the statement that reads candidates, never of what is left after a cut: so a filter that
keeps little still finds the best of what it keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from math import dist, hypot
from struct import unpack
from typing import Any

import apsw

from commonplace.domain.documents import Chunk, DocumentKind
from commonplace.domain.errors import DimensionMismatch, StoreDamaged
from commonplace.domain.queries import Filter, Match, Query, State, Vector
from commonplace.domain.records import Record, Trust
from commonplace.stores import signatures
from commonplace.stores.bm25 import Postings, Scored, score
from commonplace.stores.rows import (
    COLUMNS,
    Sql,
    among,
    filter_sql,
    marks,
    micros,
    moment,
    row_record,
    scope_at,
    select_list,
)
from commonplace.stores.sqlite_connection import every
from commonplace.stores.sqlite_vectors import FLOAT_BYTES, embedder, unit

CANDIDATES_LEAST, CANDIDATES_EACH = 100, 4  # compared exactly: so many, or so many times what is asked for
SINGLE_PRECISION = 1e-4  # more than sqlite-vec's cosine, made of small floats, can be wrong
_CLASS = {"record": 0, "chunk": 1, "version": 2, "closed": 3}  # the last two bits of a bucket: see 0001.sql


def match(db: apsw.Connection, where: Filter, query: Query, *, limit: int) -> list[Match]:
    """By words."""
    found, documents, length = postings(db, where, query)
    return _fetch(db, _leading(score(query, found, documents=documents, length=length), limit))[:limit]


def postings(db: apsw.Connection, where: Filter, query: Query) -> tuple[Postings, int, int]:
    """Where each term of a question occurs; and how many texts of what total length there are to search."""
    terms = list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))
    buckets, documents, length = _buckets(db, where)
    condition, values = _entry_sql(where)
    return {term: _postings(db, buckets, term, condition, values) for term in terms}, documents, length


def nearest(db: apsw.Connection, where: Filter, vector: Vector, *, limit: int, vec: bool) -> list[Match]:
    """By nearness; with sqlite-vec sooner, and the same."""
    asked, held = unit(array("f", vector)), embedder(db)
    if held is None:
        return []
    if held.dimensions != len(asked):
        raise DimensionMismatch(stored=held.dimensions, offered=len(asked))
    wanted = max(CANDIDATES_LEAST, CANDIDATES_EACH * limit)
    candidates = signatures.best(codes(db, where, len(asked)), asked, wanted)
    if vec and len(candidates) > limit:
        candidates = _narrowed(db, asked, candidates, limit)
    near = [(True, cosine, 1.0, entry) for entry, cosine in _cosines(db, asked, candidates)]
    return _fetch(db, _leading(near, limit))[:limit]


def codes(db: apsw.Connection, where: Filter, dimensions: int) -> bytes:
    """The codes of all that may be found, one after the other: put together by the database, which is soonest."""
    buckets, _, _ = _buckets(db, where)
    condition, values = _entry_sql(where)
    sql = f"select cast(group_concat(e.data, '') as blob) from code e where e.bucket = ? and {condition}"
    found = [data for bucket in buckets for (data,) in every(db, sql, [bucket, *values]) if data]
    codes = b"".join(found) if len(found) != 1 else found[0]
    if len(codes) % signatures.length(dimensions):
        raise StoreDamaged("the codes of vectors are damaged; run `commonplace doctor`")
    return codes


def _cosines(db: apsw.Connection, asked: Sequence[float], entries: Sequence[int]) -> list[tuple[int, float]]:
    """Exactly, from three lengths: those of the sides and that of their difference, which the library measures."""
    condition, numbers = among("entry", entries)
    rows = every(db, f"select entry, data from vector where {condition}", numbers)
    if len(rows) != len(entries) or any(len(data) != FLOAT_BYTES * len(asked) for _, data in rows):
        raise StoreDamaged("vectors are missing or damaged; run `commonplace doctor`")
    form, ours, long, cosines = f"{len(asked)}f", tuple(asked), hypot(*asked), []
    for entry, data in rows:
        theirs = unpack(form, data)
        wide, apart = hypot(*theirs), dist(ours, theirs)
        both = 2 * long * wide
        cosines.append((entry, (long * long + wide * wide - apart * apart) / both if both else 0.0))
    return cosines


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


def _buckets(db: apsw.Connection, where: Filter) -> tuple[list[int], int, int]:
    """Where to look, and how many texts of what total length are there."""
    classes = []
    if where.records:
        classes.append(_CLASS["record"])
        if where.as_of is not None or where.states != {State.LIVE}:
            classes.append(_CLASS["closed"])
        if where.as_of is not None or where.versions:
            classes.append(_CLASS["version"])
    if where.chunks:
        classes.append(_CLASS["chunk"])
    paths = sorted(str(scope) for scope in where.scopes)
    scopes = every(db, f"select id from scope where path in ({marks(paths)}) order by path", paths)
    wanted = [number * 4 + class_ for (number,) in scopes for class_ in classes]
    rows = every(db, f"select id, docs, length from bucket where docs > 0 and id in ({marks(wanted)})", wanted)
    return [row[0] for row in rows], sum(row[1] for row in rows), sum(row[2] for row in rows)


#: What a filter can ask for that an entry does not know.
_BEYOND_ENTRIES = tuple(
    field for field in Filter.fields if field not in {"scopes", "at", "kinds", "categories", "records", "chunks"}
)


def _entry_sql(where: Filter) -> Sql:
    """A filter as a condition on entries under the alias `e`; chunks pass it, they have no kind and no state."""
    if all(getattr(where, field) == Filter.defaults[field] for field in _BEYOND_ENTRIES):
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


def _leading(found: list[Scored], limit: int) -> list[Scored]:
    """The best, and all that tie with the last of them: only ids can decide between those."""
    found.sort(reverse=True)
    end = limit
    while 0 < end < len(found) and found[end][:2] == found[limit - 1][:2]:
        end += 1
    return found[:end]


def _fetch(db: apsw.Connection, found: Sequence[Scored]) -> list[Match]:
    """What was found, best first, ties by id."""
    entries = [entry for *_, entry in found]
    kept, said = records(db, entries), chunks(db, entries)
    matches = [
        Match(score=score, coverage=1.0 if whole else coverage, record=kept.get(entry), chunk=said.get(entry))
        for whole, score, coverage, entry in found
    ]
    return sorted(matches, key=lambda match: (match.coverage < 1, -match.score, match.id))


def records(db: apsw.Connection, entries: Collection[int]) -> dict[int, Record]:
    """The records and earlier versions among these entries."""
    found: dict[int, Record] = {}
    for table, key, class_ in (("record", "row", _CLASS["record"]), ("version", "record", _CLASS["version"])):
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
    condition, numbers = among("c.row", [entry // 4 for entry in entries if entry % 4 == _CLASS["chunk"]])
    rows = every(db, f"{CHUNK} where {condition}", numbers) if numbers else []
    return {row[0] * 4 + _CLASS["chunk"]: chunk_at(row) for row in rows}


CHUNK = (
    "select c.row, s.path, d.kind, d.name, c.seq, c.ref, c.text, c.speaker, c.occurred_at, c.trust"
    " from chunk c join document d on d.row = c.document join scope s on s.id = c.scope"
)


def chunk_at(row: Sequence[Any]) -> Chunk:
    """A row of ``CHUNK`` as a chunk."""
    _, path, kind, name, seq, ref, text, speaker, occurred, trust = row
    return Chunk(
        scope=scope_at(path), kind=_KINDS[kind], document=name, seq=seq, ref=ref, text=text, speaker=speaker,
        occurred_at=moment(occurred), trust=_TRUSTS[trust],
    )  # fmt: skip


#: By value: asking the enumerations themselves takes as long as all other fields.
_KINDS = {kind.value: kind for kind in DocumentKind}
_TRUSTS = {trust.value: trust for trust in Trust}

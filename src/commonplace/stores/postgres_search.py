"""Searching inside a transaction: by words, by nearness, and what a filter lets through.

Words are scored by ``bm25`` from postings, exactly as in SQLite.  Nearness is exact within what the filter lets
through: pgvector compares, the best are weighed once more in double precision so that both stores give one order.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from math import dist, hypot

from commonplace.domain.documents import Chunk
from commonplace.domain.errors import DimensionMismatch, StoreDamaged
from commonplace.domain.queries import Filter, Match, Query, State, Vector
from commonplace.domain.records import Record
from commonplace.stores import postgres_entries as entries
from commonplace.stores.bm25 import Postings, Scored, score
from commonplace.stores.postgres_connection import Db, every, vectors_of
from commonplace.stores.postgres_filters import among, among_numbers, entry_sql
from commonplace.stores.postgres_vectors import embedder
from commonplace.stores.rows import row_record, select_list
from commonplace.stores.sqlite_search import CANDIDATES_EACH, CANDIDATES_LEAST, CHUNK, chunk_at
from commonplace.stores.sqlite_vectors import unit


def match(db: Db, where: Filter, query: Query, *, limit: int) -> list[Match]:
    """By words."""
    found, documents, length = postings(db, where, query)
    return _fetch(db, _leading(score(query, found, documents=documents, length=length), limit))[:limit]


def postings(db: Db, where: Filter, query: Query) -> tuple[Postings, int, int]:
    """Where each term of a question occurs; and how many texts of what total length there are to search."""
    terms = list(dict.fromkeys(term for word in query.words for terms in word.terms for term in terms))
    buckets, documents, length = _buckets(db, where)
    found: dict[str, list[tuple[int, int, int]]] = {term: [] for term in terms}
    if not terms or not buckets:
        return found, documents, length
    pairs = [(bucket, number) for bucket in buckets for number in range(len(terms))]
    words = [entries.indexed(term) for term in terms]
    condition, values = entry_sql(where)
    sql = (
        "select a.number, e.id, cardinality(array_positions(e.terms, a.term)), e.length"
        " from unnest(?::bigint[], ?::bigint[], ?::text[]) a (bucket, number, term)"
        " join entry e on placed(e.bucket, e.terms) @> array[a.bucket || ':' || a.term]"
        f" where {condition}"
    )
    asked = [[bucket for bucket, _ in pairs], [number for _, number in pairs], [words[number] for _, number in pairs]]
    for number, entry, count, size in every(db, sql, [*asked, *values]):
        found[terms[number]].append((entry, count, size))
    return found, documents, length


def nearest(db: Db, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
    """By nearness."""
    asked, held = unit(array("f", vector)), embedder(db)
    if held is None:
        return []
    if held.dimensions != len(asked):
        raise DimensionMismatch(stored=held.dimensions, offered=len(asked))
    wanted = max(CANDIDATES_LEAST, CANDIDATES_EACH * limit)
    near = [(True, cosine, 1.0, entry) for entry, cosine in cosines(asked, candidates(db, where, asked, wanted))]
    return _fetch(db, _leading(near, limit))[:limit]


def candidates(db: Db, where: Filter, asked: array[float], wanted: int) -> list[tuple[int, array[float]]]:
    """The nearest of what the filter lets through, and all that tie with the last; a vector of no length is at 0."""
    buckets, _, _ = _buckets(db, where)
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
    """Exactly, from three lengths: those of the sides and that of their difference (as in ``sqlite_search``)."""
    long, answer = hypot(*asked), []
    for entry, theirs in found:
        wide, apart = hypot(*theirs), dist(asked, theirs)
        both = 2 * long * wide
        answer.append((entry, (long * long + wide * wide - apart * apart) / both if both else 0.0))
    return answer


def _buckets(db: Db, where: Filter) -> tuple[list[int], int, int]:
    """Where to look, and how many texts of what total length are there."""
    classes = []
    if where.records:
        classes.append(entries.RECORD)
        if where.as_of is not None or where.states != {State.LIVE}:
            classes.append(entries.CLOSED)
        if where.as_of is not None or where.versions:
            classes.append(entries.VERSION)
    if where.chunks:
        classes.append(entries.CHUNK)
    condition, values = among("s.path", where.scopes)
    sql = (
        "select e.bucket, count(*), sum(e.length)::bigint from scope s cross join unnest(?::bigint[]) c (class)"
        f" join entry e on e.bucket = s.id * 4 + c.class where {condition} group by e.bucket order by e.bucket"
    )
    rows = every(db, sql, [classes, *values])
    return [row[0] for row in rows], sum(row[1] for row in rows), sum(row[2] for row in rows)


def _leading(found: list[Scored], limit: int) -> list[Scored]:
    """The best, and all that tie with the last of them: only ids can decide between those."""
    found.sort(reverse=True)
    end = limit
    while 0 < end < len(found) and found[end][:2] == found[limit - 1][:2]:
        end += 1
    return found[:end]


def _fetch(db: Db, found: Sequence[Scored]) -> list[Match]:
    """What was found, best first, ties by id."""
    wanted = [entry for *_, entry in found]
    kept, said = records(db, wanted), chunks(db, wanted)
    matches = [
        Match(score=score, coverage=1.0 if whole else coverage, record=kept.get(entry), chunk=said.get(entry))
        for whole, score, coverage, entry in found
    ]
    return sorted(matches, key=lambda match: (match.coverage < 1, -match.score, match.id))


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

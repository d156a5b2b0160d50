"""Searching inside a transaction: by words, by nearness, and what stands around what was found.

A database finds candidates (``Db.postings``, ``Db.nearest``, ``Db.candidates``); a filter is a condition of that
statement, never of what is left after a cut, so a filter that keeps little still finds the best of what it keeps.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from commonplace.model.documents import Chunk, DocumentKind
from commonplace.model.errors import ADVICE
from commonplace.model.ports import AROUND
from commonplace.model.queries import Filter, Match, Query, Survey, Vector
from commonplace.model.records import Record, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.stores.rows import Sql, is_sound, moment, records_or_none, scope_at, select_list
from commonplace.stores.scoring import (
    CANDIDATES_EACH,
    CHUNK,
    MAX_SPEAKERS,
    MIN_CANDIDATES,
    RECORD,
    VERSION,
    Postings,
    Scored,
    asked_vector,
    best,
    build_survey,
    leading,
    likeness,
    matches,
    neighbours,
    score,
    totals,
    worths,
)
from commonplace.stores.sql.filters import scopes_sql
from commonplace.stores.sql.vectors import embedder

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db


SELECT_CHUNK = (
    "select c.row, s.path, d.kind, d.name, c.seq, c.ref, c.text, c.speaker, c.occurred_at, c.trust, c.hash"
    " from chunk c join document d on d.row = c.document join scope s on s.id = c.scope"
)
#: By value: looking a member up in the enumeration itself takes as long as all other fields.
KINDS = {kind.value: kind for kind in DocumentKind}
TRUSTS = {trust.value: trust for trust in Trust}


class Candidates(Value):
    """What may be an answer to a question, before it is weighed."""

    asked: array[float] | None  #: the vector of the question; None: there is none, or the store knows no embedder
    postings: Postings
    texts: int  #: how many texts were searched
    length: int  #: of all of them together, in terms
    nearest: Collection[int]  #: the entries that are nearest
    vectors: Mapping[int, Any]  #: of those the vectors that were read already


def match(db: Db, where: Filter, query: Query, *, limit: int) -> list[Match]:
    """Return the best by words."""
    found, texts, length = db.postings(where, query)
    return _matches(db, leading(score(query, found, documents=texts, length=length), limit))[:limit]


def nearest(db: Db, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
    """Return the best by nearness."""
    asked = asked_vector(vector, embedder(db))
    if asked is None:
        return []
    found = db.nearest(where, asked, limit)
    return _matches(db, leading([(True, cosine, 1.0, entry) for entry, cosine in found], limit))[:limit]


def candidates_wanted(limit: int) -> int:
    """Return how many candidates are compared exactly for so many answers."""
    return max(MIN_CANDIDATES, CANDIDATES_EACH * limit)


def survey(db: Db, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
    """See ``Store``: the best of both ways of searching, then everything that was seen is weighed in both ways."""
    found = db.candidates(where, query, vector, limit)
    words, rarities = worths(query, found.postings, documents=found.texts, length=found.length)
    seen = best(totals(words), limit) | set(found.nearest)
    before = _around(db, seen) if where.chunks else {}
    seen |= before.keys()
    unread = [] if found.asked is None else [entry for entry in seen if entry not in found.vectors]
    vectors, *rows = db.every_of([vectors_sql(db, db.vectors, unread), *_records_sql(db, seen)], numbers={0})
    similar: dict[int, float] = {}
    together: dict[int, float] = {}
    if found.asked is not None:
        held = dict(vectors) | {entry: data for entry, data in found.vectors.items() if entry in seen}
        size = len(found.asked)
        similar, together = likeness(found.asked, held, lambda entry: db.numbers(held[entry], size), before)
    return build_survey(
        seen, words, rarities, texts=found.texts, similar=similar, together=together,
        records=_records(db, chain(*rows)),
        chunks=_chunks(db, seen),
    )  # fmt: skip


def speakers(db: Db, scopes: Collection[Scope]) -> list[str]:
    """Return who speaks in these scopes: the index is leapt through from name to name, not read."""
    condition, values = scopes_sql(db, scopes, "s.id")
    found: set[str] = set()
    for (scope,) in db.every(f"select s.id from scope s where {condition}", values):
        sql = (
            "with recursive name (name) as (select min(speaker) from chunk where scope = ? and speaker > '' union all"
            " select (select min(c.speaker) from chunk c where c.scope = ? and c.speaker > name.name) from name"
            " where name.name is not null) select name from name where name is not null limit ?"
        )
        found.update(name for (name,) in db.every(sql, [scope, scope, MAX_SPEAKERS]))
    return sorted(found)


# Rows of what was found


def _matches(db: Db, found: Sequence[Scored]) -> list[Match]:
    entries = [entry for *_, entry in found]
    rows = chain(*db.every_of(_records_sql(db, entries)))
    return matches(found, _records(db, rows), _chunks(db, entries))


def vectors_sql(db: Db, table: str, entries: Collection[int]) -> Sql:
    """Return the question for the vectors of these entries."""
    condition, numbers = db.among("m.entry", entries)
    return f"select m.entry, m.data from {table} m where {condition}", numbers


def _records_sql(db: Db, entries: Collection[int]) -> list[Sql]:
    """Return the questions for the records and earlier versions among these entries: one, two or none."""
    questions = []
    for table, key, class_ in (("record", "row", RECORD), ("version", "record", VERSION)):
        if rows := [entry // 4 for entry in entries if entry % 4 == class_]:
            condition, numbers = db.among("r.row", rows)
            sql = (
                f"select r.row * 4 + {class_}, {select_list('r')} from {table} r join scope s on s.id = r.scope"
                f" left join usage u on u.record = r.{key} where {condition}"
            )
            questions.append((sql, numbers))
    return questions


def _records(db: Db, rows: Iterable[tuple[Any, ...]]) -> dict[int, Record]:
    found = list(rows)
    decoded = records_or_none([row[1:] for row in found], db.damaged)
    return {row[0]: record for row, record in zip(found, decoded, strict=True) if record is not None}


def _chunks(db: Db, entries: Collection[int]) -> dict[int, Chunk]:
    """Return the chunks among these entries."""
    rows = [entry // 4 for entry in entries if entry % 4 == CHUNK]
    condition, numbers = db.among("c.row", rows)
    found = db.every(f"{SELECT_CHUNK} where {condition}", numbers) if rows else []
    return {row[0] * 4 + CHUNK: chunk_at(row) for row in sound_chunks(db, found)}


def sound_chunks(db: Db, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``SELECT_CHUNK`` that are what was written, and name the others."""
    for row in rows:
        if is_sound(row[4:-1], row[-1]):
            yield row
        else:
            db.damaged.append(f"passage {row[4]} of {row[2]} {row[3]!r} is damaged, so it is left out{ADVICE}")


def chunk_at(row: Sequence[Any]) -> Chunk:
    """Decode a row of ``SELECT_CHUNK``."""
    _, path, kind, name, seq, ref, text, speaker, occurred, trust, _ = row
    return Chunk(
        scope=scope_at(path), kind=KINDS[kind], document=name, seq=seq, ref=ref, text=text, speaker=speaker,
        occurred_at=moment(occurred), trust=TRUSTS[trust],
    )  # fmt: skip


def _around(db: Db, entries: Iterable[int]) -> dict[int, int | None]:
    """Return every chunk beside these, and these, each with the one before it if that is among them."""
    rows = [entry // 4 for entry in entries if entry % 4 == CHUNK]
    condition, numbers = db.among("c.row", rows)
    sql = (
        "select distinct n.row, n.document, n.seq from chunk c join chunk n on n.document = c.document"
        f" and n.seq between c.seq - {AROUND} and c.seq + {AROUND} where {condition}"
    )
    return neighbours((row, document, seq) for row, document, seq in (db.every(sql, numbers) if rows else []))

"""What both databases do with what a search has read: weigh it, cut it, put it together.  Pure: no connection is seen.

The arithmetic is in one place so that two stores that hold the same give the same answers, to the last digit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import dist, hypot, isfinite
from typing import Any

from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import DimensionMismatch, InvalidInput
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Filter, Match, Sighting, State, Survey, Vector
from commonplace.model.records import Channel, Record, Source, Trust
from commonplace.stores.bm25 import Scored
from commonplace.stores.rows import moment, scope_at, unpacked

NEAR_UNIT = 1e-3  # a vector of nearly unit length is kept as it came
CANDIDATES_LEAST, CANDIDATES_EACH = 100, 4  # compared exactly: so many, or so many times what is asked for
SPEAKERS_MOST = 500  # a scope in which more people speak is no conversation
#: The last two bits of a bucket and, but for the last, of an entry: see 0001.sql.
RECORD, CHUNK_CLASS, VERSION, CLOSED = 0, 1, 2, 3


def classes(where: Filter) -> list[int]:
    """Which buckets of a scope a filter looks into."""
    wanted = []
    if where.records:
        wanted.append(RECORD)
        if where.as_of is not None or where.states != {State.LIVE}:
            wanted.append(CLOSED)
        if where.as_of is not None or where.versions:
            wanted.append(VERSION)
    if where.chunks:
        wanted.append(CHUNK_CLASS)
    return wanted


# Vectors


def as_kept(vector: Vector, identity: EmbedderIdentity) -> array[float]:
    """A vector as it is kept: as long as the embedder's, made of finite numbers, of unit length."""
    if identity.dimensions != len(vector):
        raise DimensionMismatch(stored=identity.dimensions, offered=len(vector))
    return whole_unit(vector)


def whole_unit(vector: Vector) -> array[float]:
    """A vector as it is kept, whatever its length: made of finite numbers, of unit length."""
    numbers = array("f", vector)
    if not all(map(isfinite, numbers)):
        raise InvalidInput("a vector must be made of finite numbers")
    return unit(numbers)


def unit(vector: array[float]) -> array[float]:
    """Of unit length, as embedders promise and floats of single precision need; what has no length stays."""
    norm = hypot(*vector)
    return array("f", [number / norm for number in vector]) if norm and abs(norm - 1) > NEAR_UNIT else vector


# What is best


def leading(found: list[Scored], limit: int) -> list[Scored]:
    """The best, and all that tie with the last of them: only ids can decide between those."""
    found.sort(reverse=True)
    end = limit
    while 0 < end < len(found) and found[end][:2] == found[limit - 1][:2]:
        end += 1
    return found[:end]


def matches(found: Sequence[Scored], records: Mapping[int, Record], chunks: Mapping[int, Chunk]) -> list[Match]:
    """What was found, best first, ties by id."""
    made = [
        Match(score=score, coverage=1.0 if whole else coverage, record=records.get(entry), chunk=chunks.get(entry))
        for whole, score, coverage, entry in found
    ]
    return sorted(made, key=lambda match: (match.coverage < 1, -match.score, match.id))


def best(worth: Mapping[int, float], limit: int) -> set[int]:
    """The entries that are worth most; of equal ones the first."""
    return {-entry for _, entry in nlargest(limit, [(value, -entry) for entry, value in worth.items()])}


def totals(words: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """What all words together are worth in each entry."""
    summed: dict[int, float] = {}
    for word in words:
        for entry, worth in word.items():
            summed[entry] = summed.get(entry, 0.0) + worth
    return summed


# What is near


def cosine(ours: Sequence[float], long: float, theirs: Sequence[float]) -> float:
    """Exactly, from three lengths: those of the sides and that of their difference, which the library measures."""
    wide, apart = hypot(*theirs), dist(ours, theirs)
    both = 2 * long * wide
    return (long * long + wide * wide - apart * apart) / both if both else 0.0


def likeness(
    asked: Sequence[float],
    held: Collection[int],
    numbers: Callable[[int], Sequence[float]],
    before: Mapping[int, int | None],
) -> tuple[dict[int, float], dict[int, float]]:
    """How near each is, and how near each is together with the one before it: all vectors are of unit length.

    Numbers are read as they are needed, neighbours after each other: to hold all of them takes twice as long.
    """
    ours, long = tuple(asked), hypot(*asked) ** 2
    similar: dict[int, float] = {}
    sums: dict[int, float] = {}
    previous, known = -1, ours
    for entry in sorted(held):
        theirs, last = tuple(numbers(entry)), before.get(entry)
        similar[entry] = (long + 1 - dist(ours, theirs) ** 2) / 2 if any(theirs) else 0.0
        if last is not None and last in held:
            pair = theirs, known if last == previous else tuple(numbers(last))
            sums[entry] = 4 - dist(*pair) ** 2 if all(map(any, pair)) else 1.0  # the square of their sum
        previous, known = entry, theirs
    together = {
        entry: (similar[entry] + similar[before[entry] or 0]) / both**0.5 if both > 0 else 0.0
        for entry, both in sums.items()
    }
    return similar, together


# What stands around


def neighbours(places: Iterable[tuple[int, int, int]]) -> dict[int, int | None]:
    """Chunks (row, document, seq) as entries, each with the one before it if that is among them."""
    rows = {(document, seq): row for row, document, seq in places}
    before = {row: rows.get((document, seq - 1)) for (document, seq), row in rows.items()}
    return {_entry(row): None if last is None else _entry(last) for row, last in before.items()}


def _entry(row: int) -> int:
    return row * 4 + CHUNK_CLASS


def surveyed(
    seen: Collection[int],
    words: Sequence[Mapping[int, float]],
    rarities: Iterable[float],
    *,
    similar: Mapping[int, float],
    together: Mapping[int, float],
    records: Mapping[int, Record],
    chunks: Mapping[int, Chunk],
) -> Survey:
    """Everything that was seen, weighed in every way."""
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


# Rows of documents and chunks

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


def document_at(row: Sequence[Any]) -> Document:
    """A row of a document as a document."""
    path, kind, name, digest, content, metadata, channel, ref, parents, trust, created, updated = row
    source = Source(channel=Channel(channel), ref=ref, parents=tuple(unpacked(parents)))
    return Document(
        scope=scope_at(path), kind=_KINDS[kind], name=name, digest=digest, content=content,
        metadata=unpacked(metadata), source=source, trust=_TRUSTS[trust], created_at=moment(created),
        updated_at=moment(updated),
    )  # fmt: skip


#: By value: asking the enumerations themselves takes as long as all other fields.
_KINDS = {kind.value: kind for kind in DocumentKind}
_TRUSTS = {trust.value: trust for trust in Trust}

"""Weigh what a search has read, cut it and put it together, for both databases.  Pure: no connection is seen here.

The arithmetic is in one place so that two stores that hold the same give the same answers, to the last digit.  Words
are scored by BM25 over the given scopes and nothing else: the database's own ranking function counts words over the
whole table, so another scope's writes would move the score.  Here the counts are those of the postings themselves.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import dist, hypot, isfinite, log
from typing import TypeAlias

from commonplace.model.documents import Chunk
from commonplace.model.errors import DimensionMismatch, InvalidInput
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Candidate, Filter, Match, Query, State, Survey, Vector
from commonplace.model.records import Record

Postings: TypeAlias = Mapping[str, Sequence[tuple[int, int, int]]]  # term -> (entry, how often, the entry's length)

K1 = 1.2  # how soon more of the same word stops counting
B = 0.75  # how much a long text is discounted

#: Whether every word of the question is there, the score, the share of the question that is covered, and the entry: in
#: that order, so that sorting tuples ranks them.  Plain tuples, because there is one for every match.
Scored: TypeAlias = tuple[bool, float, float, int]

NEAR_UNIT = 1e-3  # a vector of nearly unit length is stored as it came
MIN_CANDIDATES, CANDIDATES_EACH = 100, 4  # compared exactly: so many, or so many times what is asked for
MAX_SPEAKERS = 500  # a scope in which more people speak is no conversation
#: The last two bits of a bucket and, but for the last, of an entry: see 0001.sql.
RECORD, CHUNK, VERSION, CLOSED = 0, 1, 2, 3


def classes(where: Filter) -> list[int]:
    """Return which buckets of a scope a filter looks into."""
    wanted = []
    if where.records:
        wanted.append(RECORD)
        if where.as_of is not None or where.states != {State.LIVE}:
            wanted.append(CLOSED)
        if where.as_of is not None or where.versions or where.views:
            wanted.append(VERSION)
    if where.chunks:
        wanted.append(CHUNK)
    return wanted


# Words


def score(query: Query, postings: Postings, *, documents: int, length: int) -> list[Scored]:
    """Score every entry that has a term of the question; unordered."""
    totals: dict[int, float] = {}
    covered: dict[int, float] = {}
    words, rarities = worths(query, postings, documents=documents, length=length)
    whole = 0.0
    for worth, weight in zip(words, rarities, strict=True):
        whole += weight
        for entry, value in worth.items():
            totals[entry] = totals.get(entry, 0.0) + value
            covered[entry] = covered.get(entry, 0.0) + weight
    share = 1 / whole if whole else 0.0
    return [(covered[entry] == whole, total, covered[entry] * share, entry) for entry, total in totals.items()]


def worths(
    query: Query, postings: Postings, *, documents: int, length: int
) -> tuple[list[Mapping[int, float]], list[float]]:
    """Return what each word of the question is worth in each entry that has it, and how rare each word is."""
    average = length / documents if documents and length else 1.0
    weighed = {term: _weights(rows, documents, average) for term, rows in postings.items()}
    rare = {term: rarity(documents, len(rows)) for term, rows in postings.items()}
    rarities = [
        max((rare.get(term, 0.0) for terms in word.terms for term in terms), default=0.0) for word in query.words
    ]
    return [_word(word.terms, weighed) for word in query.words], rarities


def rarity(documents: int, having: int) -> float:
    """Inverse document frequency: what few texts have says more; never negative."""
    return log(1 + (max(documents, having) - having + 0.5) / (having + 0.5))


def _weights(rows: Sequence[tuple[int, int, int]], documents: int, average: float) -> dict[int, float]:
    rare = rarity(documents, len(rows)) * (K1 + 1)
    return {entry: rare * count / (count + K1 * (1 - B + B * size / average)) for entry, count, size in rows}


def _word(alternatives: Sequence[Sequence[str]], weighed: Mapping[str, Mapping[int, float]]) -> Mapping[int, float]:
    """Alternatives add up, each where all of its terms are: a compound as it was asked stands above its parts."""
    if len(alternatives) == 1 and len(alternatives[0]) == 1:  # nearly every word
        return weighed.get(alternatives[0][0], {})
    found_here: dict[int, float] = {}
    for terms in alternatives:
        lists = [weighed.get(term, {}) for term in terms]
        shortest = min(lists, key=len)
        for entry in shortest:
            if all(entry in found for found in lists):
                found_here[entry] = found_here.get(entry, 0.0) + sum(found[entry] for found in lists)
    return found_here


# Vectors


def checked_vector(vector: Vector, identity: EmbedderIdentity) -> array[float]:
    """Return a vector as it is stored, if it is as long as the embedder's."""
    if identity.dimensions != len(vector):
        raise DimensionMismatch(stored=identity.dimensions, offered=len(vector))
    return unit_vector(vector)


def unit_vector(vector: Vector) -> array[float]:
    """Return a vector as it is stored: made of finite numbers, of unit length."""
    numbers = array("f", vector)
    if not all(map(isfinite, numbers)):
        raise InvalidInput("a vector must be made of finite numbers")
    return unit(numbers)


def asked_vector(vector: Vector | None, identity: EmbedderIdentity | None) -> array[float] | None:
    """Return the vector of a question, if there is one and a store of that embedder, or of none, can compare it."""
    if vector is None or identity is None:
        return None
    if identity.dimensions != len(vector):
        raise DimensionMismatch(stored=identity.dimensions, offered=len(vector))
    return unit(array("f", vector))


def unit(vector: array[float]) -> array[float]:
    """Scale to unit length, as embedders promise and floats of single precision need; what has no length stays."""
    norm = hypot(*vector)
    return array("f", [number / norm for number in vector]) if norm and abs(norm - 1) > NEAR_UNIT else vector


# What is best


def leading(found: list[Scored], limit: int) -> list[Scored]:
    """Return the best, and all that tie with the last of them: only ids can decide between those."""
    found.sort(reverse=True)
    end = limit
    while 0 < end < len(found) and found[end][:2] == found[limit - 1][:2]:
        end += 1
    return found[:end]


def matches(found: Sequence[Scored], records: Mapping[int, Record], chunks: Mapping[int, Chunk]) -> list[Match]:
    """Return what was found, best first, ties by id."""
    made = [
        Match(score=score, coverage=1.0 if whole else coverage, record=records.get(entry), chunk=chunks.get(entry))
        for whole, score, coverage, entry in found
        if entry in records or entry in chunks  # what is damaged is in neither
    ]
    return sorted(made, key=lambda match: (match.coverage < 1, -match.score, match.id))


def best(worth: Mapping[int, float], limit: int) -> set[int]:
    """Return the entries that are worth most; of equal ones the first."""
    return {-entry for _, entry in nlargest(limit, [(value, -entry) for entry, value in worth.items()])}


def totals(words: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """Return what all words together are worth in each entry."""
    summed: dict[int, float] = {}
    for word in words:
        for entry, worth in word.items():
            summed[entry] = summed.get(entry, 0.0) + worth
    return summed


# What is near


def cosine(ours: Sequence[float], long: float, theirs: Sequence[float]) -> float:
    """Return the cosine exactly, from three lengths: of both sides and of their difference, measured by the library."""
    wide, apart = hypot(*theirs), dist(ours, theirs)
    both = 2 * long * wide
    return (long * long + wide * wide - apart * apart) / both if both else 0.0


def likeness(
    asked: Sequence[float],
    held: Collection[int],
    numbers: Callable[[int], Sequence[float]],
    before: Mapping[int, int | None],
) -> tuple[dict[int, float], dict[int, float]]:
    """Return how near each is, and how near together with the one before it; all vectors are of unit length.

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


# The survey


def neighbours(places: Iterable[tuple[int, int, int]]) -> dict[int, int | None]:
    """Return chunks (row, document, seq) as entries, each with the one before it if that is among them."""
    rows = {(document, seq): row for row, document, seq in places}
    before = {row: rows.get((document, seq - 1)) for (document, seq), row in rows.items()}
    return {_entry(row): None if last is None else _entry(last) for row, last in before.items()}


def _entry(row: int) -> int:
    return row * 4 + CHUNK


def build_survey(
    seen: Collection[int],
    words: Sequence[Mapping[int, float]],
    rarities: Iterable[float],
    *,
    texts: int,
    similar: Mapping[int, float],
    together: Mapping[int, float],
    records: Mapping[int, Record],
    chunks: Mapping[int, Chunk],
) -> Survey:
    """Put together everything that was seen, weighed in every way."""
    return Survey(
        rarities=tuple(rarities),
        texts=texts,
        candidates=tuple(
            Candidate(
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

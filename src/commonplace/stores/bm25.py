"""Score postings by BM25, over the given scopes and nothing else.  Pure: shared by all stores.

The database's own ranking function counts words over the whole table, so another scope's writes would move the score.
Here the counts are those of the postings themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log
from typing import TypeAlias

from commonplace.model.queries import Query

Postings: TypeAlias = Mapping[str, Sequence[tuple[int, int, int]]]  # term -> (entry, how often, the entry's length)

K1 = 1.2  # how soon more of the same word stops counting
B = 0.75  # how much a long text is discounted


#: Whether every word of the question is there, the score, the share of the question that is covered, and the entry: in
#: that order, so that sorting tuples ranks them.  Plain tuples, because there is one for every match.
Scored: TypeAlias = tuple[bool, float, float, int]


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
    """What each word of the question is worth in each entry that has it, and how rare each word is."""
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

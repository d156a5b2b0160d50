"""Compare a question with the few records of a young store, word by word, and say which of them answer it.

Among ten facts no word is rare and something is always nearest, so the measures of ``ranking`` say little.  Here each
word of the question looks for its nearest word in a record, the record as a whole is compared with the question, and
what sort of answer the question wants counts: who, when, how many.  How sure the best one is depends on how far it
stands out of the store.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import dist

from commonplace.model.queries import Candidate, Vector
from commonplace.text.question import Wants, holds
from commonplace.text.words import plan, word_weights

SURE = 0.54  # of the best one and half of what it is above the others, from which on there is an answer
STANDS_OUT = 0.5
BESIDE = 0.3  # of the way from the others to the best one: what is above that is shown too
USUAL = 0.17  # what a record that has nothing to do with a question comes to; there are at least as many
OTHERS = 4
WANTED = 0.1  # for each sort of answer that is wanted and missing
EVERY_WORD = 0.5  # for a record that has every word of the question that says something
TEXT_WORDS = 60  # of a record that are compared

Embed = Callable[[Sequence[str]], Sequence[Vector]]


def compare_few(
    candidates: Sequence[Candidate],
    question: str,
    *,
    weights: Sequence[float],
    wants: Wants,
    embed_words: Embed | None,
    chance: float,
) -> dict[str, float]:
    """Return the records that answer a question, by id, each with how near it is; none, if none of them does.

    ``weights`` are those of the question's words; ``embed_words`` gives vectors of single words, where an embedder has
    some; ``chance`` is the cosine of texts that have nothing to do with each other.
    """
    aligned = _align(candidates, question, embed_words) if embed_words else {}
    near = {
        one.id: _nearness(one, aligned, chance) + _every_word(one, weights) - WANTED * _missing(one, wants)
        for one in candidates
    }
    if not near:
        return {}
    best = max(near.values())
    rest = sorted(near.values(), reverse=True)[1:]
    usual = sum([*rest, *[USUAL] * max(0, OTHERS - len(rest))]) / max(len(rest), OTHERS)
    if best + STANDS_OUT * (best - usual) < SURE:
        return {}
    line = min(SURE, usual + BESIDE * (best - usual))  # of many that answer alike none is hidden
    return {id_: value for id_, value in near.items() if value >= line}


def _nearness(one: Candidate, aligned: Mapping[str, float], chance: float) -> float:
    cosine = one.similarity or 0.0
    if aligned:
        return cosine + aligned[one.id]
    return 2 * max(0.0, cosine - chance) / (1 - chance)  # below chance nothing speaks against its words


def _every_word(one: Candidate, weights: Sequence[float]) -> float:
    telling = [worth for worth, weight in zip(one.words, weights, strict=True) if weight >= 1] or one.words
    return EVERY_WORD if telling and all(telling) else 0.0


def _missing(one: Candidate, wants: Wants) -> int:
    text = one.record.content if one.record else ""
    return sum(not holds(text, want) for want in wants)


def _align(candidates: Sequence[Candidate], question: str, embed_words: Embed) -> dict[str, float]:
    """How well each word of the question is matched by a word of each record, on average; common words count less."""
    asked = plan(question).words
    texts = {one.id: _words(one.record.content if one.record else "") for one in candidates}
    weights = dict(zip([word.text.lower() for word in asked], word_weights(asked), strict=True))
    known = list(dict.fromkeys([*weights, *(word for words in texts.values() for word in words)]))
    vectors = dict(zip(known, embed_words(known), strict=True))
    whole = sum(weights.values()) or 1.0
    return {
        id_: sum(weight * _best(vectors[word], [vectors[other] for other in words]) for word, weight in weights.items())
        / whole
        for id_, words in texts.items()
    }


def _best(word: Vector, others: Sequence[Vector]) -> float:
    return max([_dot(word, other) for other in others], default=0.0)


def _dot(one: Vector, other: Vector) -> float:
    """The cosine of two vectors of unit length, from the length of their difference, which the library measures."""
    return max(0.0, 1 - dist(one, other) ** 2 / 2)


def _words(text: str) -> list[str]:
    found = [word.text.lower() for word in plan(text).words[:TEXT_WORDS]]
    return found or re.findall(r"\w+", text.lower())[:TEXT_WORDS]

"""Turn ranked lists into one.  Pure: no store, no clock, no model.

Scores are fused, not ranks: rank fusion measured worse than full text alone.  A hit's parts add up to its score, so
that every place in the list can be explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from commonplace.domain.queries import Hit, Match
from commonplace.domain.records import Trust
from commonplace.engine.text import estimate_tokens

MEANING = 0.5  # the share of the vector's word when there is one; the rest is full text's
COVERAGE = 0.2  # of full text's word: how much of the question is there; more costs recall on long questions
PINNED = 0.05  # what a pin adds, as a share of what the text earned
UNTRUSTED = 0.10  # what text from outside loses, likewise


def fuse(lexical: Sequence[Match], semantic: Sequence[Match], *, limit: int) -> list[Hit]:
    """One list, best first, ties by id: the same matches always give the same hits."""
    words = _words(lexical)
    meaning = _meaning(semantic)
    share = MEANING if semantic else 0.0
    found = {match.id: match for match in (*lexical, *semantic)}
    scored = []
    for key, match in found.items():
        parts = _parts(match, words=(1 - share) * words.get(key, 0.0), meaning=share * meaning.get(key, 0.0))
        scored.append((-sum(part for _, part in parts), key, parts))
    scored.sort()
    similar = {match.id: match.score for match in semantic}
    return [
        Hit(
            score=min(1.0, -score), record=found[key].record, chunk=found[key].chunk, similarity=similar.get(key),
            parts=parts if score >= -1 else _within_one(parts),
        )
        for score, key, parts in scored[:limit]
    ]  # fmt: skip


def within(hits: Sequence[Hit], budget: int | None) -> list[Hit]:
    """The hits that fit a budget of tokens, in order; one that does not fit makes room for a shorter one."""
    if budget is None:
        return list(hits)
    kept, left = [], budget
    for hit in hits:
        cost = estimate_tokens(hit.text)
        if cost <= left:
            kept.append(hit)
            left -= cost
    return kept


def _words(lexical: Sequence[Match]) -> Mapping[str, float]:
    """Full text as 0..1: whoever has every word of the question stands above one half, everybody else below."""
    best = max((match.score for match in lexical), default=1.0) or 1.0
    blended = {match.id: (1 - COVERAGE) * (match.score / best) + COVERAGE * match.coverage for match in lexical}
    return {
        match.id: (1 + blended[match.id]) / 2 if match.coverage >= 1 else blended[match.id] / 2 for match in lexical
    }


def _meaning(semantic: Sequence[Match]) -> Mapping[str, float]:
    """Cosines as 0..1 between the farthest and the nearest; a single one by itself."""
    scores = [match.score for match in semantic]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high == low:
        return {match.id: max(0.0, match.score) for match in semantic}
    return {match.id: (match.score - low) / (high - low) for match in semantic}


def _parts(match: Match, *, words: float, meaning: float) -> tuple[tuple[str, float], ...]:
    base = words + meaning
    parts = [("words", words), ("meaning", meaning)]
    record = match.record
    trust = record.trust if record else match.chunk.trust if match.chunk else Trust.EXTERNAL
    if record and record.pinned:
        parts.append(("pinned", base * PINNED))
    if trust is Trust.EXTERNAL:
        parts.append(("from outside", -base * UNTRUSTED))
    return tuple(part for part in parts if part[1])


def _within_one(parts: Sequence[tuple[str, float]]) -> tuple[tuple[str, float], ...]:
    """A pin lifts a hit above its equals, but the score that is shown ends at one."""
    over = sum(part for _, part in parts) - 1
    return tuple((name, max(0.0, part - over)) if name == "pinned" else (name, part) for name, part in parts)

"""Find records that say about the same as one: what a person should see before they decide about it."""

from __future__ import annotations

from commonplace.engine.embedding import query_vector
from commonplace.engine.memory import Memory
from commonplace.model.queries import Filter, Match, State
from commonplace.model.records import Record
from commonplace.text.words import plan

NEAR = 0.72  # cosine from which on two records are about the same; of two on one subject, other words give less
COVERED = 0.8  # share of the words, by rarity, where there are no vectors
LOOKED_AT = 8


def find_similar(memory: Memory, record: Record, *, limit: int) -> list[Record]:
    """Return live records that say about the same as one, the nearest first."""
    where = Filter(scopes=frozenset({record.scope}), at=memory.clock(), states=frozenset({State.LIVE}))
    near = [one.record for one in _matches(memory, where, record.content) if one.record and one.record.id != record.id]
    return near[:limit]


def _matches(memory: Memory, where: Filter, text: str) -> list[Match]:
    vector, _ = query_vector(memory.store, memory.embedder, text)
    if vector is not None:
        return [one for one in memory.store.nearest(where, vector, limit=LOOKED_AT) if one.score >= NEAR]
    found = memory.store.match(where, plan(text), limit=LOOKED_AT)
    return [one for one in found if one.coverage >= COVERED]

"""Entries by words and by meaning: the ranking of every other recall, without its dropping of what says the same.

Two entries with different keys are two entries, whatever they say.
"""

from __future__ import annotations

from commonplace.engine.memory import CANDIDATES
from commonplace.engine.ranking import rank
from commonplace.model.changes import AdoptEmbedder
from commonplace.model.errors import ProviderError
from commonplace.model.ports import Embedder, Store
from commonplace.model.queries import Filter, Vector
from commonplace.model.records import Record
from commonplace.text.question import ask
from commonplace.text.words import plan

SEEN_MOST = 2000  # candidates by words and by meaning, each


class Search:
    """Asks a store questions."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._store = store
        self._embedder = embedder

    def ranked(self, where: Filter, query: str, *, limit: int) -> list[Record] | None:
        """What bears on a question, best first; None if it has no words."""
        asked = ask(query, speakers=(), now=where.at)
        planned = plan(asked.text)
        if not planned.words:
            return None
        most = min(max(CANDIDATES, 2 * limit), SEEN_MOST)
        survey = self._store.survey(where, planned, self._vector(asked.text), limit=most)
        return [hit.record for hit in rank(survey, asked, limit=limit) if hit.record]

    def _vector(self, query: str) -> Vector | None:
        """What a question means; without an embedder that works words still find what they find."""
        if self._embedder is None or self._store.embedder() is None:
            return None
        try:
            if self._store.embedder() != self._embedder.identity:  # vectors of two embedders are never compared
                self._store.apply([AdoptEmbedder(identity=self._embedder.identity)])
            [vector] = self._embedder.embed([query], query=True)
        except ProviderError:
            return None
        return vector

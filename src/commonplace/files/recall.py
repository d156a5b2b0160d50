"""Recall before a run: look for edited files, ask every scope at once, say where each thing comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from commonplace.engine.memory import Memory
from commonplace.engine.recall import Recall
from commonplace.files.freshness import Look
from commonplace.model.queries import Hit
from commonplace.model.scopes import Scope
from commonplace.model.values import Value


class Brief(Value):
    """What was recalled, with a reference for each thing that leads back to its origin."""

    recall: Recall
    references: Mapping[str, str]  #: by the hit's id
    notes: tuple[str, ...] = ()  #: what the caller should know, as sentences

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits, best first."""
        return self.recall.hits


def brief(memory: Memory, look: Look, query: str, *, sync: Callable[[Scope], Iterable[str]], **options: Any) -> Brief:
    """Recall, after a look at the files: what a person has just edited is found.

    ``sync`` brings one scope up to date and says what the caller should know; ``options`` are ``Memory.recall``'s.
    """
    mirrored = [scope for scope in memory.binding.reads if scope in look.store.folders]
    fresh = [scope for scope in mirrored if look.is_fresh(scope)]
    notes = [note for scope in mirrored if scope not in fresh and look.differs(scope) for note in sync(scope)]
    recall = memory.recall(query, **options)
    if edited := [scope for scope in fresh if look.edited(scope, _ids(recall))]:
        notes += [note for scope in edited for note in sync(scope)]
        recall = memory.recall(query, **options)
    return Brief(
        recall=recall, references=look.store.references(_ids(recall)), notes=tuple(dict.fromkeys(notes)) + recall.notes
    )


def _ids(recall: Recall) -> list[str]:
    return [hit.id for hit in recall.hits if hit.record]

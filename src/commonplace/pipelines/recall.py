"""Recall before a run: look for edited files, ask every scope at once, say where each thing comes from."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from commonplace.domain.queries import Hit
from commonplace.domain.scopes import Scope
from commonplace.domain.values import Value
from commonplace.engine.memory import Memory, Recall
from commonplace.markdown import files
from commonplace.markdown.mirror import MirroredStore

LOOK_SECONDS = 0.02  # how long a recall may look for edited files; `commonplace sync` looks at all of them


class Brief(Value):
    """What was recalled, with a reference for each thing that leads back to its origin."""

    recall: Recall
    references: Mapping[str, str]  #: by the hit's id
    notes: tuple[str, ...] = ()  #: what the caller should know, as sentences

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits, best first."""
        return self.recall.hits


def brief(
    memory: Memory, store: MirroredStore, query: str, *, sync: Callable[[Scope], Iterable[str]], **options: Any
) -> Brief:
    """Recall, after a look at the files: what a person has just edited is found.

    ``sync`` brings one scope up to date and says what the caller should know; ``options`` are ``Memory.recall``'s.
    """
    notes: list[str] = []
    for scope in memory.binding.reads:
        if scope in store.folders:
            looked = unchanged(store, scope)
            if looked is None:
                notes.append(f"there was no time to look at every file of {scope}; `commonplace sync` does")
            elif not looked:
                notes += sync(scope)
    recall = memory.recall(query, **options)
    references = store.references([hit.id for hit in recall.hits if hit.record])
    return Brief(recall=recall, references=references, notes=(*notes, *recall.notes))


def unchanged(store: MirroredStore, scope: Scope, *, seconds: float = LOOK_SECONDS) -> bool | None:
    """Whether the folder's files are those that were last noted; None if there was no time to look at them all."""
    folder = store.folders[scope]
    deadline = time.monotonic() + seconds
    known = {state.path: state.stamp for state in store.files(folder)}
    seen = 0
    for path, stamp in _until(deadline, files.listed(folder)):
        if known.get(path) != stamp:
            return False
        seen += 1
    if seen < len(known) and time.monotonic() > deadline:
        return None
    return seen == len(known)


def _until(deadline: float, listed: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    for number, item in enumerate(listed):
        if number % 64 == 63 and time.monotonic() > deadline:  # noqa: PLR2004 - the time costs as much as a look
            return
        yield item

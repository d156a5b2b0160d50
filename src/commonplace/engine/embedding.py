"""Bring vectors up to date: fill the gaps that a failing embedder left, or embed a whole store anew with another one.

Both list what lacks a vector, embed some of it, and keep that before they go on: whoever is stopped goes on from there
the next time, and what is written meanwhile is listed again.
"""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.model.changes import AdoptEmbedder, SetVectors, SwitchEmbedder
from commonplace.model.errors import Conflict, ProviderError
from commonplace.model.ports import Embedder, EmbedderIdentity, Store, Tell, Unembedded, silent
from commonplace.model.queries import Vector
from commonplace.model.values import Value

LISTED = 4_096  # texts read at a time: a list begins with a look over all that has a vector
BATCH = 50  # texts embedded and kept at a time: what is lost when somebody pulls the plug


class Report(Value):
    """What embedding a store anew came to."""

    embedded: int  #: texts that got a vector in this run
    before: EmbedderIdentity | None  #: whose vectors were in use
    now: EmbedderIdentity


def catch_up(store: Store, embedder: Embedder, *, most: int | None = None, tell: Tell = silent) -> int:
    """Give texts the vectors that they lack, of at most so many; returns how many that were.

    Raises ``ProviderError`` when the embedder fails; what was embedded until then is kept.  Another embedder than the
    store's is refused by name.
    """
    if not store.count_unembedded(embedder.identity):
        return 0
    if store.embedder() != embedder.identity:
        store.apply([AdoptEmbedder(identity=embedder.identity)])
    return _filled(store, embedder, most=most, tell=tell)


def reembed(store: Store, embedder: Embedder, *, tell: Tell = silent) -> Report:
    """Embed every text with this embedder, beside the vectors in use, then put the new ones in their place at once.

    Until then the old ones answer.  Raises ``ProviderError`` like ``catch_up``; the next run goes on.
    """
    before, embedded = store.embedder(), 0
    while True:
        embedded += _filled(store, embedder, most=None, tell=tell)
        try:
            store.apply([SwitchEmbedder(identity=embedder.identity)])
        except Conflict:  # something was written just now: it is the next to be embedded
            continue
        return Report(embedded=embedded, before=before, now=embedder.identity)


def _filled(store: Store, embedder: Embedder, *, most: int | None, tell: Tell) -> int:
    lacking, done = store.count_unembedded(embedder.identity), 0
    of = lacking if most is None else min(lacking, most)
    while texts := store.unembedded(embedder.identity, limit=LISTED if most is None else min(LISTED, most - done)):
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors = dict(zip([text.ref for text in batch], _embedded(embedder, batch), strict=True))
            store.apply([SetVectors(identity=embedder.identity, vectors=vectors)])
            done += len(batch)
            tell(done, max(of, done))
    return done


def _embedded(embedder: Embedder, batch: Sequence[Unembedded]) -> Sequence[Vector]:
    vectors = embedder.embed([text.text for text in batch])
    if len(vectors) != len(batch):
        raise ProviderError(f"{embedder.identity.name!r} gave {len(vectors)} vectors for {len(batch)} texts")
    return vectors

"""Vectors: of a question, of texts that are stored, and of a whole store.

``catch_up`` fills the gaps that a failing embedder left, ``reembed`` embeds a whole store anew with another one.  Both
list what lacks a vector, embed some of it, and store that before they go on: if interrupted, run it again; it resumes
where it stopped, and what is written meanwhile is listed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import dist, isfinite

from commonplace.model.changes import SetVectors, SwitchEmbedder
from commonplace.model.errors import Conflict, DimensionMismatch, EmbeddingModelChanged, ProviderError
from commonplace.model.ports import Embedder, EmbedderIdentity, ProgressCallback, Store, no_progress
from commonplace.model.queries import Vector
from commonplace.model.values import Value

#: Sentences that have nothing to do with each other.
UNRELATED = (
    "The train leaves at noon.", "She paints birds in oil.", "Interest rates fell again.", "My knee hurts.",
    "The soup needs more salt.", "He repaired the clock.", "A storm reached the coast.", "They won the final.",
)  # fmt: skip
_CHANCES: dict[EmbedderIdentity, float] = {}  # of the embedders of this process that do not know their own
LISTED = 4_096  # texts read at a time: a list begins with a look over all that has a vector
BATCH = 50  # texts embedded and stored at a time: what is lost in a power cut


class EmbeddingReport(Value):
    """The result of ``reembed``."""

    embedded: int  #: texts that got a vector in this run
    before: EmbedderIdentity | None  #: whose vectors were in use
    now: EmbedderIdentity


def embed(embedder: Embedder, texts: Sequence[str], *, query: bool = False) -> Sequence[Vector]:
    """Return one vector for each text.  Raises ``ProviderError``, also if what the embedder gives cannot be stored."""
    if not texts:
        return []
    vectors, name, length = embedder.embed(texts, query=query), embedder.identity.name, embedder.identity.dimensions
    if len(vectors) != len(texts):
        raise ProviderError(f"{name!r} gave {len(vectors)} vectors for {len(texts)} texts")
    for vector in vectors:
        if len(vector) != length:
            raise ProviderError(f"{name!r} gave a vector of {len(vector)} dimensions and announced {length}")
        if not isfinite(sum(vector)):
            raise ProviderError(f"{name!r} gave a vector that is not made of finite numbers")
    return vectors


def check_embedder(store: Store, embedder: Embedder) -> EmbedderIdentity | None:
    """Refuse an embedder that is not the one of the store's vectors; returns that one, None before the first."""
    stored, offered = store.embedder(), embedder.identity
    if stored in (None, offered):
        return stored
    if stored.name != offered.name:
        raise EmbeddingModelChanged(stored=stored.name, offered=offered.name)
    raise DimensionMismatch(stored=stored.dimensions, offered=offered.dimensions)


def query_vector(store: Store, embedder: Embedder | None, query: str) -> tuple[Vector | None, tuple[str, ...]]:
    """Embed a question; None, with a note unless there is nothing to compare with, if only words can be searched."""
    try:
        if embedder is None or check_embedder(store, embedder) is None:
            return None, ()
        [vector] = embed(embedder, [query], query=True)
    except (ProviderError, EmbeddingModelChanged, DimensionMismatch) as error:
        return None, (f"only words were searched: {error}",)
    return vector, ()


def query_and_chance(
    store: Store, embedder: Embedder | None, query: str
) -> tuple[Vector | None, float, tuple[str, ...]]:
    """Embed a question, and measure the cosine that texts have with this embedder which have nothing in common.

    Embedders differ widely in that: of some it is 0, of others 0.7.  One that does not know it is asked, with the
    first question of a process and in the same request, about sentences that have nothing to do with any question.
    """
    known = getattr(embedder, "chance", None)
    if embedder is None or known is not None or (known := _CHANCES.get(embedder.identity)) is not None:
        vector, notes = query_vector(store, embedder, query)
        return vector, known or 0.0, notes
    try:
        if check_embedder(store, embedder) is None:
            return None, 0.0, ()
        vector, *others = embed(embedder, [query, *UNRELATED], query=True)
    except (ProviderError, EmbeddingModelChanged, DimensionMismatch) as error:
        return None, 0.0, (f"only words were searched: {error}",)
    pairs = [_cosine(one, other) for one, other in combinations(others, 2)]
    _CHANCES[embedder.identity] = chance = max(0.0, sum(pairs) / len(pairs))
    return vector, chance, ()


def _cosine(one: Vector, other: Vector) -> float:
    """The cosine of two vectors of unit length."""
    return 1 - dist(one, other) ** 2 / 2


def catch_up(
    store: Store, embedder: Embedder, *, limit: int | None = None, progress: ProgressCallback = no_progress
) -> int:
    """Embed texts that lack a vector, up to ``limit``; returns how many got one.

    Raises ``ProviderError`` when the embedder fails; what was embedded until then is stored.  An embedder that is not
    the store's fills no gaps: ``reembed`` changes over.
    """
    if store.embedder() not in (None, embedder.identity) or not store.count_unembedded(embedder.identity):
        return 0
    return _fill(store, embedder, limit=limit, progress=progress)


def reembed(store: Store, embedder: Embedder, *, progress: ProgressCallback = no_progress) -> EmbeddingReport:
    """Embed every text with this embedder, then replace the vectors in use in one transaction.

    Until then the old ones answer.  Raises ``ProviderError`` like ``catch_up``; the next run resumes.
    """
    before, embedded = store.embedder(), 0
    while True:
        embedded += _fill(store, embedder, limit=None, progress=progress)
        try:
            store.apply([SwitchEmbedder(identity=embedder.identity)])
        except Conflict:  # something was written just now: it is the next to be embedded
            continue
        return EmbeddingReport(embedded=embedded, before=before, now=embedder.identity)


def _fill(store: Store, embedder: Embedder, *, limit: int | None, progress: ProgressCallback) -> int:
    lacking, done = store.count_unembedded(embedder.identity), 0
    of = lacking if limit is None else min(lacking, limit)
    while texts := store.list_unembedded(
        embedder.identity, limit=LISTED if limit is None else min(LISTED, limit - done)
    ):
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            vectors = embed(embedder, [text.text for text in batch])
            given = dict(zip([text.ref for text in batch], vectors, strict=True))
            store.apply([SetVectors(identity=embedder.identity, vectors=given)])
            done += len(batch)
            progress(done, max(of, done))
    return done

"""The one write sequence: admit, embed, adopt the embedder, apply, and plan again if another process was first.

Callers make changes as values: ``Put``, ``PutDocument`` and ``AppendChunks`` without vectors, together with what
belongs to the same transaction (claims, caps, events, the end of a job).  The writer adds the vectors and applies all
of it at once.

**No write fails because of an embedder.**  If the embedder fails, gives something that is no vector, or is not the one
that the store's vectors come from, the text is stored without a vector: words find it, the store counts it as
unembedded, and a note says why and what to do.  Vectors of two embedders are never mixed: the change that names the
embedder is part of the same transaction, and a store that has changed over in between refuses it.

**Nothing erased comes back by itself.**  Each transaction looks its texts, ids and sessions up among the tombstones
(``tombstones``), in one question, and is refused as a whole if one has been erased.  Doors through which old copies
come leave them out beforehand and say so.  A person who writes the same text again lifts its tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from commonplace.engine.embedding import check_embedder, embed
from commonplace.engine.tombstones import WriteCheck
from commonplace.model.changes import (
    AdoptEmbedder,
    AppendChunks,
    Change,
    LiftTombstones,
    Outcome,
    Put,
    PutDocument,
    RequireUnerased,
    Trim,
)
from commonplace.model.documents import Chunk, Document
from commonplace.model.errors import (
    Conflict,
    DimensionMismatch,
    EmbeddingModelChanged,
    ErasedBefore,
    NotFound,
    ProviderError,
)
from commonplace.model.ids import new_id
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import Filter, Vector
from commonplace.model.records import Draft, Kind, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.words import terms

if TYPE_CHECKING:
    from commonplace.engine.admission import Admitted
    from commonplace.model.binding import Binding

TRIES = 64  # of a write on the current version, each after another process's success
WRITTEN_AGAIN = "you had erased this before; it is stored, because you have written it again"
UNEMBEDDED = "stored without a vector, so that only words find it"
T = TypeVar("T")


class Written(Value):
    """What a transaction did."""

    outcomes: tuple[Outcome, ...]  #: one for each change that was given, in order
    notes: tuple[str, ...] = ()  #: why texts have no vector yet, as sentences


class Writer:
    """Writes to one store with one embedder and one key of redaction marks."""

    def __init__(
        self, store: Store, *, clock: Clock, embedder: Embedder | None = None, secret: Callable[[], bytes] = bytes
    ) -> None:
        self.store = store
        self.clock = clock
        self.embedder = embedder
        self.secret = secret

    def admit(self, draft: Draft, binding: Binding, *, parent_trust: Trust = Trust.USER) -> Admitted:
        """Make a record of a draft, with a new id; raises ``InvalidInput`` or ``Forbidden``."""
        from commonplace.engine.admission import admit  # noqa: PLC0415 - what only writes chunks needs no gate

        now = self.clock()
        return admit(draft, binding=binding, id=new_id(now), now=now, secret=self.secret(), parent_trust=parent_trust)

    def apply(self, changes: Sequence[Change]) -> Written:
        """Apply the changes in one transaction, with the vectors of the texts that they store."""
        return self._apply(changes, {})

    def retry(
        self,
        plan: Callable[[], tuple[Sequence[Change], T]],
        *,
        busy: str,
        tries: int = TRIES,
        when: Callable[[Conflict], bool] = lambda _: True,
    ) -> tuple[Written, T]:
        """Apply what ``plan`` makes of the store as it is, and plan again while another process changes it first.

        Errors of the plan itself are raised, and so are conflicts for which ``when`` is false.  ``busy`` begins the
        sentence of the ``Conflict`` that ends the last try.  A text is embedded once, however often it is tried.
        """
        vectors: dict[str, Vector] = {}
        last: Conflict | NotFound | None = None
        for _ in range(tries):
            changes, made = plan()
            try:
                return self._apply(changes, vectors), made
            except NotFound as error:
                last = error
            except Conflict as error:
                if not when(error):
                    raise
                last = error
        message = f"{busy}; it was tried {tries} times"
        raise Conflict(message, current=getattr(last, "current", None), holder=getattr(last, "holder", None)) from last

    def _apply(self, changes: Sequence[Change], vectors: dict[str, Vector]) -> Written:
        texts = [text for change in changes for text in _texts_to_embed(change)]
        if self.embedder is None or not texts:
            return self._store(changes) if changes else Written(outcomes=())
        try:
            self._embed(self.embedder, texts, vectors)
            adopt = AdoptEmbedder(identity=self.embedder.identity)
            written = self._store([adopt, *(_with_vectors(change, vectors) for change in changes)])
        except (ProviderError, EmbeddingModelChanged, DimensionMismatch) as error:
            vectors.clear()
            written = self._store(changes)
            return written.replace(notes=(*written.notes, f"{UNEMBEDDED}: {error}"))
        return written.replace(outcomes=written.outcomes[1:])

    def _store(self, changes: Sequence[Change]) -> Written:
        """Apply changes unless they hold what was erased; what a person writes again lifts its tombstone."""
        check = WriteCheck(changes, self.secret())
        if not check.digests:
            return Written(outcomes=tuple(self.store.apply(changes)))
        try:
            return Written(outcomes=tuple(self.store.apply([RequireUnerased(digests=check.digests), *changes])[1:]))
        except ErasedBefore:
            if not check.typed:
                raise
        require = RequireUnerased(digests=frozenset(check.others - check.typed))
        lift = LiftTombstones(digests=frozenset(check.typed))
        outcomes = self.store.apply([lift, require, *changes])
        return Written(outcomes=tuple(outcomes[2:]), notes=(WRITTEN_AGAIN,))

    def _embed(self, embedder: Embedder, texts: Iterable[str], vectors: dict[str, Vector]) -> None:
        """Add the vectors of texts that have none.  Raises ``ProviderError`` and what ``check_embedder`` raises."""
        check_embedder(self.store, embedder)
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        vectors.update(zip(missing, embed(embedder, missing), strict=True))


def trims(binding: Binding, scope: Scope, kinds: Iterable[Kind], now: datetime) -> list[Change]:
    """Return the changes that erase what is over the limits of a binding."""
    return [
        Trim(
            where=Filter(scopes=frozenset({scope}), at=now, kinds=frozenset({kind})), keep=limit.keep, order=limit.order
        )
        for kind in kinds
        if (limit := binding.limits.get(kind))
    ]


def document_change(
    document: Document, chunks: Sequence[Chunk], *, expect_digest: str | None = None
) -> PutDocument | AppendChunks:
    """The change that stores a document with these chunks; with ``expect_digest`` they follow those that it has."""
    words = tuple(tuple(terms(chunk.text)) for chunk in chunks)
    if expect_digest is None:
        return PutDocument(document=document, chunks=tuple(chunks), terms=words)
    return AppendChunks(document=document, chunks=tuple(chunks), terms=words, expect_digest=expect_digest)


def _texts_to_embed(change: Change) -> Sequence[str]:
    """The texts that a change stores and that need a vector; what has no terms is not searched and needs none."""
    if isinstance(change, Put):
        return [change.record.content] if change.terms and change.vector is None else ()
    if isinstance(change, PutDocument | AppendChunks):
        return [chunk.text for chunk in change.chunks]
    return ()


def _with_vectors(change: Change, vectors: Mapping[str, Vector]) -> Change:
    if isinstance(change, Put) and change.terms and change.vector is None:
        return change.replace(vector=vectors[change.record.content])
    if isinstance(change, PutDocument | AppendChunks) and change.chunks:
        return change.replace(vectors={chunk.seq: vectors[chunk.text] for chunk in change.chunks})
    return change

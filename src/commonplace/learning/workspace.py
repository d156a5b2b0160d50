"""What the pipelines that learn work with: one store, one project, one way to think; and the gate for what they write.

Extraction and consolidation hand in drafts and texts; changes come back, cleaned, redacted, judged and embedded, to be
applied together with the end of the job.  Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256

from commonplace.config.learning_settings import Learning
from commonplace.engine.admission import Admitted, Gate, admit
from commonplace.model.binding import Binding
from commonplace.model.changes import Put, PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import ProviderError
from commonplace.model.ids import new_id
from commonplace.model.ports import Clock, Embedder, Model, Store
from commonplace.model.records import CEILING, EMPTY, Channel, Draft, Json, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value


class Workplace(Value):
    """Where learning happens, and with what."""

    store: Store
    scope: Scope  #: the project's: sessions, extractions, artifacts, receipts and most records live there
    personal: Scope | None = None  #: the user's own, for preferences that hold everywhere; None: it is off
    folder: str | None = None  #: where artifacts are written as files as well; None: in the store only
    bind: Callable[[Channel], Binding]  #: who writes
    learning: Learning = Learning()
    clock: Clock
    secret: Callable[[], bytes] = bytes  #: the key of redaction marks
    embedder: Embedder | None = None
    model: Callable[[str], Model]  #: by role, ``default`` or ``smol``; raises ``ConfigError`` if none is set up
    prompt: Callable[[str], str]  #: a prompt file by its name, the user's own before ours

    def admit(self, draft: Draft, channel: Channel, *, parent_trust: Trust = Trust.USER) -> Admitted:
        """Make a record of a draft; raises ``InvalidInput`` and ``Forbidden`` like every write."""
        now = self.clock()
        return admit(
            draft, binding=self.bind(channel), id=new_id(now), now=now, secret=self.secret(), parent_trust=parent_trust
        )

    def puts(self, admitted: Sequence[Admitted]) -> list[Put]:
        """The changes that keep these records, with their vectors; what is already said is not said twice."""
        vectors = dict(enumerate(self.vectors([one.record.content for one in admitted])))
        return [
            Put(record=one.record, terms=one.terms, vector=vectors.get(number), dedupe=True)
            for number, one in enumerate(admitted)
        ]

    def document(
        self, kind: DocumentKind, name: str, content: str, channel: Channel, metadata: Mapping[str, Json] = EMPTY
    ) -> PutDocument:
        """The change that keeps a text under a name in the project, cleaned and redacted, name and metadata too."""
        gate, now = Gate(self.secret()), self.clock()
        text = gate.text(content, what=name)
        beside = {key: gate.json(value, what=f"the metadata of {name}", name=key) for key, value in metadata.items()}
        return PutDocument(
            document=Document(
                scope=self.scope, kind=kind, name=gate.text(name, what="the name"), content=text,
                digest=sha256(f"{text}\x1f{beside!r}".encode()).hexdigest(), metadata=beside,
                source=Source(channel=channel), trust=CEILING[channel], created_at=now, updated_at=now,
            )
        )  # fmt: skip

    def vectors(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """None while the embedder is not the store's, or fails: what is written now is found by its words."""
        if self.embedder is None or not texts or self.store.embedder() != self.embedder.identity:
            return []
        try:
            return self.embedder.embed(texts)
        except ProviderError:
            return []

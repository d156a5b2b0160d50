"""What indexing, extraction and consolidation work with: one store, one project, one way to think.

Drafts and texts become changes, cleaned and redacted, to be written together with the end of the job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta
from hashlib import sha256

from commonplace.config.learning import DEFAULT_LEARNING, Learning
from commonplace.engine import jobs
from commonplace.engine.admission import Gate
from commonplace.engine.writer import Writer
from commonplace.model.binding import Binding
from commonplace.model.changes import PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.jobs import Claim
from commonplace.model.ports import Clock, Embedder, Model, Store
from commonplace.model.records import CEILING, EMPTY, Channel, Json, Source
from commonplace.model.scopes import Scope
from commonplace.model.values import Value


class Workspace(Value):
    """Where learning happens, and with what."""

    store: Store
    scope: Scope  #: the project's: sessions, extractions, artifacts, receipts and most records live there
    personal: Scope | None = None  #: the user's own, for preferences that hold everywhere; None: it is off
    folder: str | None = None  #: where artifacts are written as files as well; None: in the store only
    bind: Callable[[Channel], Binding]  #: who writes
    learning: Learning = DEFAULT_LEARNING
    clock: Clock
    secret: Callable[[], bytes] = bytes  #: the key of redaction marks
    embedder: Embedder | None = None
    model: Callable[[str], Model]  #: by role, ``default`` or ``smol``; raises ``ConfigError`` if none is set up
    is_foreign: Callable[[str, bytes], bool] = lambda _name, _data: False  #: whether Git brought a file from others
    prompt: Callable[[str], str]  #: a prompt file by its name, the user's own before ours

    @property
    def writer(self) -> Writer:
        """Writes to the store with the embedder of the settings."""
        return Writer(self.store, clock=self.clock, embedder=self.embedder, secret=self.secret)

    def hold(
        self, claim: Claim, *, lease: timedelta, every: timedelta | None = None, retry_after: timedelta = jobs.AT_ONCE
    ) -> AbstractContextManager[None]:
        """Keep a claim alive while the block works, and note what it fails on; see ``jobs.hold``."""
        return jobs.hold(
            self.store, claim, lease=lease, clock=self.clock, every=every, retry_after=retry_after, clean=self.clean
        )

    def clean(self, error: object) -> str:
        """What went wrong, short and without secrets."""
        return Gate(self.secret()).text(str(error), what="the error")[: jobs.ERROR_CHARS]

    def document(
        self, kind: DocumentKind, name: str, content: str, channel: Channel, metadata: Mapping[str, Json] = EMPTY
    ) -> PutDocument:
        """The change that stores a text under a name in the project, cleaned and redacted, name and metadata too."""
        gate, now = Gate(self.secret()), self.clock()
        text = gate.text(content, what=name)
        details = {key: gate.json(value, what=f"the metadata of {name}", name=key) for key, value in metadata.items()}
        return PutDocument(
            document=Document(
                scope=self.scope, kind=kind, name=gate.text(name, what="the name"), content=text,
                digest=sha256(f"{text}\x1f{details!r}".encode()).hexdigest(), metadata=details,
                source=Source(channel=channel), trust=CEILING[channel], created_at=now, updated_at=now,
            )
        )  # fmt: skip

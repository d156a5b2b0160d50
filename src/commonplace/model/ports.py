"""The protocols that the engine needs.  The docstring of each method is its contract, and is tested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from commonplace.model.values import Value

if TYPE_CHECKING:
    from commonplace.model.audit import AuditEntry
    from commonplace.model.changes import Change, Outcome
    from commonplace.model.documents import Chunk, Document, FileState
    from commonplace.model.events import Event
    from commonplace.model.jobs import Claim, Job, JobState, Skipped
    from commonplace.model.queries import DocumentFilter, Filter, Match, Order, Query, State, Survey, Vector
    from commonplace.model.records import Kind, Record
    from commonplace.model.scopes import Scope
    from commonplace.model.tombstones import Tombstone

AROUND = 2  # chunks before and after one that are read with it: an answer depends on the question before it
Clock: TypeAlias = Callable[[], datetime]
ProgressCallback: TypeAlias = Callable[[int, int], None]  #: called with the steps done and their total


def no_progress(_done: int, _of: int) -> None:
    """Ignore the progress."""


class EmbedderIdentity(Value):
    """Which embedder made a vector; vectors of two embedders are never compared."""

    name: str
    dimensions: int


class UnembeddedText(Value):
    """A text that has no vector of some embedder yet."""

    ref: str  #: identifies the text in its current version only
    text: str


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which embedder this is; the same identity always gives the same vectors."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """Return one vector per text, in order.  Raises ``ProviderError``."""


Effort: TypeAlias = Literal["low", "medium"]  #: how long a model may think, where it can be set


class ModelAnswer(Value):
    """The answer of a language model."""

    text: str
    model: str  #: which one answered
    tokens_in: int = 0  #: as counted by the provider
    tokens_out: int = 0


class Model(Protocol):
    """A language model that answers one prompt."""

    @property
    def name(self) -> str:
        """Provider and model, such as ``openai:gpt-5-mini``."""

    @property
    def window(self) -> int | None:
        """Its context window in tokens, if it is known."""

    def ask(self, system: str, prompt: str, *, max_tokens: int, effort: Effort = "low") -> ModelAnswer:
        """Answer in at most ``max_tokens``.  Raises ``ProviderError``."""


class Tally(Value):
    """How many things of one sort a scope holds."""

    scope: Scope
    what: Kind | str  #: a kind of record, or the name of a kind of document
    state: State
    count: int
    bytes: int


class Growth(Value):
    """How much of one sort a scope held at some moments, the earliest first."""

    scope: Scope
    what: str  #: ``records``, for those that are not archived, or the name of a kind of document
    counts: tuple[int, ...]
    bytes: tuple[int, ...]  #: of the records' contents and of the documents' own texts


class Measure(Value):
    """How much there is."""

    count: int
    bytes: int  #: of the records' contents


class Store(Protocol):
    """Where records are stored.  Every store implements all of this."""

    def get(self, id: str) -> Record | None:
        """Return the current version of a record, in any state and scope; None if there is none."""

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        """Return the matching records, in order; ties by id.  With ``where.versions`` every version, newest first."""

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:
        """Search by words, best first, ties by id.

        Any term of any word makes a match; matches with every word come first.  The score is BM25 over the
        scopes of the filter and nothing else: no write outside of them moves it.
        """

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
        """Search by cosine, best first, ties by id.  A text without a vector is not found."""

    def survey(self, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
        """Return the best by words and the best by meaning, up to ``limit`` of each, and their neighbours.

        The neighbours of a chunk are the ``AROUND`` before it and after it in its document.  Everything comes with its
        score for each word and its cosine, however it was found.
        """

    def speakers(self, scopes: Collection[Scope]) -> list[str]:
        """Return the speakers in the sessions of these scopes, sorted."""

    def documents(self, where: DocumentFilter, *, limit: int) -> list[Document]:
        """Return the matching documents, newest first."""

    def chunks(self, where: DocumentFilter, *, limit: int, after: int = -1) -> list[Chunk]:
        """Return the chunks of the matching documents, by document and in their order; of each after ``after``."""

    def files(self, folder: str, *, records: Collection[str] | None = None) -> list[FileState]:
        """Return the last known files of a mirrored folder, by path; of these records only, if given."""

    def file_stamps(self, folder: str) -> dict[str, int]:
        """Return the stamp of each last known file of a mirrored folder, by path: what a look at all of them needs."""

    def mirrored_folders(self) -> list[str]:
        """Return the mirrored folders of this machine of which a file is known, sorted."""

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        """Count what is stored by scope, kind and state; what has expired by ``at`` is counted apart."""

    def growth(self, scopes: Collection[Scope], *, until: datetime, step: timedelta, steps: int) -> list[Growth]:
        """Count what these scopes held at ``until`` and at each step before it; what is erased was never there."""

    def measure(self, where: Filter) -> Measure:
        """Return the number of matching records and the size of their contents."""

    def versions_digest(self, where: Filter) -> str:
        """Hash the ids and versions of the matching records: what ``Require`` compares."""

    def scopes(self, below: Scope | None = None) -> list[Scope]:
        """Return that scope, if it exists, and every scope below it; without one, all scopes; by path."""

    def scopes_with_records(self, below: Scope) -> list[Scope]:
        """Return the scopes with records, in any state, among that scope and those below it; by path."""

    def events(self, scopes: Collection[Scope], *, after: int = 0, limit: int) -> list[Event]:
        """Return the events of these scopes after that number, in order.

        A caller that passes the last number that it saw misses no event of any process, unless that number is below
        ``events_floor``.
        """

    def events_floor(self) -> int:
        """Return the number up to which events were erased for their age, except archives; 0 if none was.

        No event above it was erased.  It never falls, and no later event has a number up to it.
        """

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """Return the newest event number of any scope; block until it is above ``after`` or the time is over.

        Events of other processes count.  The number is 0 before the first, and may fall when events are erased.
        """

    def tombstones(self, digests: Collection[str] | None = None) -> list[Tombstone]:
        """Return the tombstones with these digests, or all of them; by digest, then in the order of the erasures."""

    def audit_log(self, *, after: int = 0, record: str | None = None, limit: int) -> list[AuditEntry]:
        """Return entries of the audit log after that number, in order; of one record only, if one is given.

        A store writes its log with each ``apply``, in the same transaction, if it was given an auditor.
        """

    def latest_audit(
        self, scopes: Collection[Scope], *, before: int | None = None, verbs: Collection[str] | None = None, limit: int
    ) -> list[AuditEntry]:
        """Return entries of the audit log, latest first; below that number, and of these verbs, if they are given.

        They are about records of these scopes, about records that are gone, or about none.
        """

    def embedder(self) -> EmbedderIdentity | None:
        """Return the embedder of the vectors; None before the first."""

    def list_unembedded(self, identity: EmbedderIdentity, *, limit: int) -> list[UnembeddedText]:
        """Return texts without a vector of that embedder: records, earlier versions and chunks, always in one order.

        A record stored without terms, such as a server's own, is not searched and needs none.
        """

    def count_unembedded(self, identity: EmbedderIdentity) -> int:
        """Return the number of texts without a vector of that embedder."""

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Make every change, in order, in one transaction, or none of them.  Return one outcome per change."""

    def without_waiting(self) -> AbstractContextManager[None]:
        """Within it a write of this thread that would wait for another writer raises ``StoreBusy`` at once.

        Recalls that cannot be counted then are counted with the next write, or not at all.
        """

    def take_notices(self) -> tuple[str, ...]:
        """Return what the caller should know of the store, as sentences, each once: damage, or that it is read-only."""

    def require_current(self) -> None:
        """Raise ``StoreReplaced``, once, if something else lies where the store was opened; that is then opened."""

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        """Claim a job, unless it is done for its newest watermark, running, waiting or out of tries.

        The claim is for the newest watermark that was queued, which is then its job's.
        """

    def jobs(self, scopes: Collection[Scope], *, now: datetime) -> list[JobState]:
        """Return the state of every job of these scopes, by kind and key."""

    def close(self) -> None:
        """Release connections and files.  A closed store reopens when it is used."""


class StoreProblem(Value):
    """A problem in one sentence, and whether ``repair`` can fix it."""

    what: str
    fixable: bool


class Repair(Value):
    """What a repair did."""

    done: tuple[str, ...] = ()  #: as sentences
    lost: tuple[str, ...] = ()  #: what could not be read any more, as sentences


class Maintenance(Protocol):
    """Checks, repairs and backs up a store; every store has one."""

    def check(self, *, quick: bool = False, progress: ProgressCallback = no_progress) -> list[StoreProblem]:
        """Check everything, or with ``quick`` the newest rows; an empty list means that the store is healthy."""

    def repair(self) -> Repair:
        """Fix what can be fixed; nothing that can be read is lost, and what cannot is counted."""

    def accept_loss(self) -> int:
        """Forget that writes are missing, because a person knows; returns how many notes of it there were."""

    def backup(self, path: str) -> int:
        """Copy the store to a new file while others use it; return the number of records in it."""

    def restore(self, path: str) -> int:
        """Replace the contents by those of a backup, in one transaction; returns the number of records."""

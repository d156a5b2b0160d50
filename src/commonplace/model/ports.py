"""What the engine needs from outside, as protocols.  The contract of each method is a list of sentences to test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from commonplace.model.values import Value

if TYPE_CHECKING:
    from commonplace.model.changes import Change, Outcome
    from commonplace.model.documents import Chunk, Document, FileState
    from commonplace.model.events import Event
    from commonplace.model.jobs import Claim, Job, JobState, Skipped
    from commonplace.model.queries import DocumentFilter, Filter, Match, Order, Query, State, Survey, Vector
    from commonplace.model.records import Kind, Record
    from commonplace.model.scopes import Scope

AROUND = 2  # chunks before and after one that are seen with it: an answer leans on what was asked before it
Clock: TypeAlias = Callable[[], datetime]
Tell: TypeAlias = Callable[[int, int], None]  #: hears how much of some long work is done, and of how much


def silent(_done: int, _of: int) -> None:
    """Nobody listens."""


class EmbedderIdentity(Value):
    """Which embedder made a vector; vectors of two embedders are never compared."""

    name: str
    dimensions: int


class Unembedded(Value):
    """A text that has no vector of some embedder yet."""

    ref: str  #: names the text as it is now; means nothing once it has changed
    text: str


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def identity(self) -> EmbedderIdentity:
        """Which embedder this is; the same identity always gives the same vectors."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:
        """Return one vector per text, in order.  Raises ``ProviderError``."""


Effort: TypeAlias = Literal["low", "medium"]  #: how long a model may think, where it can be told


class Answer(Value):
    """What a language model said."""

    text: str
    model: str  #: which one answered
    tokens_in: int = 0  #: as the provider counts them
    tokens_out: int = 0


class Model(Protocol):
    """A language model that answers one prompt."""

    @property
    def name(self) -> str:
        """Provider and model, such as ``openai:gpt-5-mini``."""

    @property
    def window(self) -> int | None:
        """Its context window in tokens, if it is known."""

    def ask(self, system: str, prompt: str, *, most: int, effort: Effort = "low") -> Answer:
        """Answer in at most that many tokens.  Raises ``ProviderError``."""


class Tally(Value):
    """How much of one sort a scope holds."""

    scope: Scope
    what: Kind | str  #: a kind of record, or the name of a kind of document
    state: State
    count: int
    bytes: int


class Measure(Value):
    """How much there is."""

    count: int
    bytes: int  #: of what the records say


class Store(Protocol):
    """Where records live.  Every store does all of this, or is not a store."""

    def get(self, id: str) -> Record | None:
        """The present version of a record, in whatever state and scope; None if there is none."""

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        """The records meant, in order; ties by id.  With ``where.versions`` every version, newest first."""

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:
        """Full text, best first, ties by id.

        Any term of any word makes a match; what has every word comes before what has not.  The score is BM25 over the
        scopes of the filter and nothing else: no write outside of them moves it.
        """

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
        """By cosine, best first, ties by id.  What has no vector is not found."""

    def survey(self, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
        """What is best by words, what is best by meaning, up to ``limit`` of each, and what stands around them.

        Around a chunk stand the ``AROUND`` before it and after it in its document.  Whatever is seen comes with the
        worth of each word in it and with its cosine, by whichever way it was found.
        """

    def speakers(self, scopes: Collection[Scope]) -> list[str]:
        """Who speaks in the sessions of these scopes, by name."""

    def documents(self, where: DocumentFilter, *, limit: int) -> list[Document]:
        """The documents meant, newest first."""

    def chunks(self, where: DocumentFilter, *, limit: int, after: int = -1) -> list[Chunk]:
        """The chunks of the documents meant, by document and in their order; of each from ``after`` on."""

    def files(self, folder: str, *, records: Collection[str] | None = None) -> list[FileState]:
        """What a mirrored folder was last known to hold, by path; of these records only, if given."""

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        """What is stored where: a row for each scope, kind and state; what has expired by ``at`` is told apart."""

    def measure(self, where: Filter) -> Measure:
        """How many records are meant, and how much they say."""

    def versions_digest(self, where: Filter) -> str:
        """Hash the ids and versions of the records meant: what ``Require`` compares."""

    def scopes(self, below: Scope | None = None) -> list[Scope]:
        """That scope, if it is there, and every scope below it; all there are, if none is given; by path."""

    def scopes_with_records(self, below: Scope) -> list[Scope]:
        """Those of that scope and the scopes below it that hold records, in whatever state; by path."""

    def events(self, scopes: Collection[Scope], *, after: int = 0, limit: int) -> list[Event]:
        """What was told of these scopes after that number, in the order in which it happened.

        Whoever asks again after the last number that they saw misses nothing, whichever process tells it, unless that
        number is below ``events_floor``.
        """

    def events_floor(self) -> int:
        """The number up to which events were erased for their age, but for archives; 0 if none was.

        No event after it was.  It never falls, and no later event has a number up to it.
        """

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """The number of the last event of any scope: as soon as it is greater than ``after``, or the time is over.

        Whichever process tells it.  The number is 0 before the first, and may fall when events are erased.
        """

    def embedder(self) -> EmbedderIdentity | None:
        """Which embedder the vectors come from; None before the first."""

    def unembedded(self, identity: EmbedderIdentity, *, limit: int) -> list[Unembedded]:
        """Texts that have no vector of that embedder: records, earlier versions and chunks, always in one order.

        What was kept without terms, such as a server's own records, is not searched and needs none.
        """

    def count_unembedded(self, identity: EmbedderIdentity) -> int:
        """How many texts have no vector of that embedder."""

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Make every change, in order, in one transaction, or none of them.  One outcome per change."""

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        """Take a job, unless it is done for its newest watermark, running, waiting or out of tries.

        The claim is for the newest watermark that anybody asked for, which is then its job's.
        """

    def jobs(self, scopes: Collection[Scope], *, now: datetime) -> list[JobState]:
        """Every job of these scopes and where it stands, by kind and key."""

    def close(self) -> None:
        """Give back what is held.  A closed store opens itself again when it is used."""


class Problem(Value):
    """Something unhealthy, in one sentence, and whether ``repair`` can mend it."""

    what: str
    fixable: bool


class Keeper(Protocol):
    """What looks after a store: every store has one."""

    def check(self) -> list[Problem]:
        """Look at everything; an empty list is health."""

    def repair(self) -> list[str]:
        """Mend what can be mended without losing anything; returns what was done, as sentences."""

    def backup(self, path: str) -> int:
        """Copy the store to a new file while others use it; returns the number of records in it."""

    def restore(self, path: str) -> int:
        """Put a backup in the place of what is there, in one transaction; returns the number of records."""

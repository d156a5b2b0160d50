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
Tell: TypeAlias = Callable[[int, int], None]  #: is called with how much of some long work is done, and of how much


def silent(_done: int, _of: int) -> None:
    """Report no progress."""


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


Effort: TypeAlias = Literal["low", "medium"]  #: how long a model may think, where that can be set


class Answer(Value):
    """What a language model answered."""

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
    """How many things of one sort a scope holds."""

    scope: Scope
    what: Kind | str  #: a kind of record, or the name of a kind of document
    state: State
    count: int
    bytes: int


class Measure(Value):
    """How much there is."""

    count: int
    bytes: int  #: of their content


class Store(Protocol):
    """Where records live.  Every store does all of this, or is not a store."""

    def get(self, id: str) -> Record | None:
        """Return the present version of a record, in whatever state and scope; None if there is none."""

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        """Return the records meant, in order; ties by id.  With ``where.versions`` every version, newest first."""

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:
        """Return matches by full text, best first, ties by id.

        Any term of any word makes a match; what has every word comes before what has not.  The score is BM25 over the
        scopes of the filter and nothing else: no write outside of them moves it.
        """

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
        """Return matches by cosine, best first, ties by id.  What has no vector is not found."""

    def survey(self, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
        """Return the best by words and the best by meaning, up to ``limit`` of each, and what stands around them.

        Around a chunk stand the ``AROUND`` before it and after it in its document.  Whatever is seen comes with the
        worth of each word in it and with its cosine, by whichever way it was found.
        """

    def speakers(self, scopes: Collection[Scope]) -> list[str]:
        """Return who speaks in the sessions of these scopes, by name."""

    def documents(self, where: DocumentFilter, *, limit: int) -> list[Document]:
        """Return the documents meant, newest first."""

    def chunks(self, where: DocumentFilter, *, limit: int, after: int = -1) -> list[Chunk]:
        """Return the chunks of the documents meant, by document and in their order; of each those after ``after``."""

    def files(self, folder: str, *, records: Collection[str] | None = None) -> list[FileState]:
        """Return the state of the files of a mirrored folder, by path; of these records only, if given."""

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        """Count what is stored by scope, kind and state; what has expired by ``at`` is counted as expired."""

    def measure(self, where: Filter) -> Measure:
        """Count the records meant and the bytes of their content."""

    def versions_digest(self, where: Filter) -> str:
        """Hash the ids and versions of the records meant: what ``Require`` compares."""

    def scopes(self, below: Scope | None = None) -> list[Scope]:
        """Return that scope, if it exists, and every scope below it, by path; without one all scopes."""

    def scopes_with_records(self, below: Scope) -> list[Scope]:
        """Return those of that scope and the scopes below it that hold records, in whatever state; by path."""

    def events(self, scopes: Collection[Scope], *, after: int = 0, limit: int) -> list[Event]:
        """Return the events of these scopes after that number, in order.

        A caller that asks again after the last number that it saw misses nothing, whichever process writes, unless that
        number is below ``events_floor``.
        """

    def events_floor(self) -> int:
        """Return the number up to which events were erased for their age, but for archives; 0 if none was.

        No event after it was erased.  It never falls, and no later event has a number up to it.
        """

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """Return the number of the last event; block until it is greater than ``after`` or the time is over.

        Whichever process writes it, in whatever scope.  It is 0 before the first, and may fall when events are erased.
        """

    def embedder(self) -> EmbedderIdentity | None:
        """Return which embedder the vectors come from; None before the first."""

    def unembedded(self, identity: EmbedderIdentity, *, limit: int) -> list[Unembedded]:
        """Return texts that have no vector of that embedder: records, earlier versions and chunks, in one order.

        What was stored without terms, such as a server's own records, is not searched and needs none.
        """

    def count_unembedded(self, identity: EmbedderIdentity) -> int:
        """Return how many texts have no vector of that embedder."""

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Make every change, in order, in one transaction, or none of them.  One outcome per change."""

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        """Claim a job, unless it is done for its newest watermark, running, waiting or out of tries.

        The claim is for the newest watermark that was requested, which is then its job's.
        """

    def jobs(self, scopes: Collection[Scope], *, now: datetime) -> list[JobState]:
        """Return the state of every job of these scopes, by kind and key."""

    def close(self) -> None:
        """Release all connections.  A closed store opens itself again when it is used."""


class Problem(Value):
    """Something unhealthy, in one sentence, and whether ``repair`` can mend it."""

    what: str
    fixable: bool


class Keeper(Protocol):
    """Checks, repairs and backs up a store."""

    def check(self) -> list[Problem]:
        """Check everything; an empty list means that the store is healthy."""

    def repair(self) -> list[str]:
        """Repair what can be repaired without losing anything; return what was done, as sentences."""

    def backup(self, path: str) -> int:
        """Copy the store to a new file while others use it; return the number of records in it."""

    def restore(self, path: str) -> int:
        """Replace the store by a backup, in one transaction; return the number of records."""

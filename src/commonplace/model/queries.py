"""Questions to a store and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

if TYPE_CHECKING:
    from commonplace.model.documents import Chunk
    from commonplace.model.records import Kind, Record, Trust

Vector: TypeAlias = Sequence[float]
REPR_CHARS = 60  # of a text, for people who look at a value


class State(StrEnum):
    """The state of a record at a moment; it is in exactly one."""

    LIVE = "live"
    ARCHIVED = "archived"
    HELD = "held"
    EXPIRED = "expired"


ANY_STATE = frozenset(State)


class Order(StrEnum):
    """The order of a list of records."""

    NEWEST = "newest"  #: by creation, latest first
    OLDEST = "oldest"  #: by creation, earliest first
    SAID = "said"  #: by when it was true or happened, else by creation, latest first
    STALEST = "stalest"  #: least recently used first; an unused record counts from its creation
    ID = "id"  #: by id; exports page through it
    EXPENDABLE = "expendable"  #: by ``metadata.priority``: low, the rest, high; of equals the stalest


class Filter(Value):
    """Which records (and chunks) match.  Scopes are required: no query reads every scope."""

    scopes: frozenset[Scope]  #: at least one
    at: datetime  #: the moment at which a record must be live
    states: frozenset[State] = frozenset({State.LIVE})  #: any of these
    as_of: datetime | None = None  #: read the past: what was valid at that moment, in its version of that moment
    versions: bool = False  #: every version of each record, the earlier ones too
    ids: frozenset[str] | None = None  #: any of these
    prefix: str | None = None  #: ids that begin so
    part: str | None = None  #: ids that have it somewhere
    kinds: frozenset[Kind] | None = None  #: any of these
    categories: frozenset[str] | None = None  #: any of these
    tags: frozenset[str] = frozenset()  #: all of these, by value
    metadata: tuple[tuple[str, str | float | bool], ...] = ()  #: names and their values in the metadata, all of them
    keys: frozenset[str] | None = None  #: any of these
    trusts: frozenset[Trust] | None = None  #: any of these
    sources: frozenset[str] | None = None  #: any of these: a channel (`import`), or the reference of a source, whole
    since: datetime | None = None  #: created at that moment or later
    until: datetime | None = None  #: created before that moment
    waiting: bool = False  #: only what waits for a person: see ``Record.waits``
    superseded_by: frozenset[str] | None = None  #: replaced by any of these
    earlier: tuple[datetime, str] | None = None  #: created before that moment, or then and with a smaller id
    pinned: bool | None = None
    consolidated: bool | None = None
    parents: frozenset[str] | None = None  #: derived from any of these
    after: str | None = None  #: ids greater than this one
    views: frozenset[str] = frozenset()  #: checkouts (``shown_in``): the version that the files of each show
    records: bool = True  #: search records
    chunks: bool = False  #: search the chunks of documents as well

    def _check(self) -> None:
        if not self.scopes:
            raise InvalidInput("a filter needs at least one scope: nothing can be read everywhere")
        for moment in (self.at, self.as_of, self.since, self.until):
            if moment is not None and moment.tzinfo is None:
                raise InvalidInput(f"{moment} has no time zone")


class DocumentFilter(Value):
    """Which documents match."""

    scopes: frozenset[Scope]
    kinds: frozenset[str] | None = None
    names: frozenset[str] | None = None

    def _check(self) -> None:
        if not self.scopes:
            raise InvalidInput("a filter needs at least one scope: nothing can be read everywhere")


class Word(Value):
    """One word of a question, with the ways in which a text can contain it."""

    text: str  #: as in the question
    terms: tuple[tuple[str, ...], ...]  #: alternatives; of one alternative every term must be there


class Query(Value):
    """A question split into words: any text is legal."""

    text: str
    words: tuple[Word, ...]


class Match(Value):
    """One search result of a store; scores are comparable within one answer only."""

    score: float  #: bm25 for full text, cosine for vectors; higher is better
    record: Record | None = None
    chunk: Chunk | None = None
    coverage: float = 1.0  #: share of the question's words that were found, each by its rarity

    @property
    def id(self) -> str:
        """The id of the record or chunk."""
        found = self.record or self.chunk
        return found.id if found else ""


class Candidate(Value):
    """One candidate for a question, with everything the store knows about how it matches."""

    record: Record | None = None
    chunk: Chunk | None = None
    words: tuple[float, ...] = ()  #: what each word of the question adds to its score (BM25), in the question's order
    similarity: float | None = None  #: cosine to the question; None: it has no vector
    together: float | None = None  #: the cosine of a chunk and the one before it, taken together

    @property
    def id(self) -> str:
        """The id of the record or chunk."""
        found = self.record or self.chunk
        return found.id if found else ""


class Survey(Value):
    """The candidates of a store, in no order."""

    candidates: tuple[Candidate, ...]
    rarities: tuple[float, ...] = ()  #: of each word of the question; rare words count more
    texts: int = 0  #: how many were searched


class Hit(Value):
    """One ranked result of a recall, and the parts of its score."""

    score: float  #: 0..1 within one answer
    #: None, in spite of its type, where ``chunk`` is set: only a memory with indexed sessions has such hits, and where
    #: there are none ``hit.record.id`` should need no question.
    record: Record = None  # type: ignore[assignment]
    chunk: Chunk | None = None  #: a turn of a session or a part of a ticket
    similarity: float | None = None  #: cosine to the question, when there is an embedder
    parts: tuple[tuple[str, float], ...] = ()  #: name and contribution; together they make the score
    alike: tuple[str, ...] = ()  #: ids of near duplicates that were left out
    bears: float = 0.0  #: how far it bears on the question, whatever else was found; comparable between questions
    replaced_by: str | None = None  #: of a turn: the id of the record that replaced what was learned from it

    @property
    def id(self) -> str:
        """The id of the record or chunk."""
        found = self.record or self.chunk
        return found.id if found else ""

    @property
    def text(self) -> str:
        """The words to show."""
        return self.record.content if self.record else self.chunk.text if self.chunk else ""

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= REPR_CHARS else f"{self.text[: REPR_CHARS - 1]}…"
        return f"Hit({self.score:.2f}, {text!r}, id={self.id!r})"


SearchedKind: TypeAlias = Literal["record", "session", "ticket"]

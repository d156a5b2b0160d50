"""Record: one stored memory.  Draft: what a caller asks to store."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Annotated, TypeAlias

from commonplace.model.errors import InvalidInput
from commonplace.model.ids import SHORT, SHOWN, is_id
from commonplace.model.queries import State
from commonplace.model.scopes import Scope
from commonplace.model.values import QUOTED, Value

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
EMPTY: Mapping[str, Json] = MappingProxyType({})
PROPOSED = "git:"  # begins the reference of what a file says that came by Git, and is not the user's word


class Kind(StrEnum):
    """What sort of memory a record is."""

    SEMANTIC = "semantic"  #: facts
    EPISODIC = "episodic"  #: events
    PROCEDURAL = "procedural"  #: procedures
    WORKING = "working"  #: the state of a task while it lasts


#: The categories of the records system, and the kind of memory each is.
CATEGORIES: Mapping[str, Kind] = MappingProxyType(
    {
        "decisions": Kind.SEMANTIC,
        "procedures": Kind.PROCEDURAL,
        "principles": Kind.SEMANTIC,
        "incidents": Kind.EPISODIC,
        "preferences": Kind.SEMANTIC,
        "facts": Kind.SEMANTIC,
    }
)


#: The categories that tell an agent what to do: a record of these is an instruction only with a person's authority.
INSTRUCTIVE = frozenset({"procedures", "principles", "preferences"})
PROPOSAL = "proposal"  # in the metadata: what a record would do to another one, until a person has decided


class Trust(IntEnum):
    """How far to trust a record; a derived record is never trusted more than its least trusted parent."""

    EXTERNAL = 0  #: came from outside: an import, a tool's output
    AGENT = 1  #: a model's own words
    USER = 2  #: a person wrote it, or saved it by their own command


class Channel(StrEnum):
    """The way by which a record was written.  Set by code, never by a model or by the content."""

    USER = "user"
    AGENT = "agent"
    CAPTURE = "capture"
    EXTRACTION = "extraction"
    CONSOLIDATION = "consolidation"
    IMPORT = "import"
    FILE = "file"


#: The most trust that a channel can give.
CEILING: Mapping[Channel, Trust] = MappingProxyType(
    {
        Channel.USER: Trust.USER,
        Channel.FILE: Trust.USER,
        Channel.AGENT: Trust.AGENT,
        Channel.CAPTURE: Trust.AGENT,
        Channel.EXTRACTION: Trust.AGENT,
        Channel.CONSOLIDATION: Trust.AGENT,
        Channel.IMPORT: Trust.EXTERNAL,
    }
)


class Source(Value):
    """Where a record comes from."""

    channel: Channel
    ref: Annotated[str | None, QUOTED] = None  #: the origin in that channel: a session and turn, a file, an address
    parents: tuple[str, ...] = ()  #: ids of the records that it was derived from


class Usage(Value):
    """How often a record was recalled; stored apart, so that a recall changes no version."""

    recalls: int = 0
    last_recalled_at: datetime | None = None


UNUSED = Usage()


class Record(Value):
    """One thing worth remembering."""

    id: str  #: time-ordered, URL-safe, the only identity
    scope: Scope  #: decides who may see it
    kind: Kind
    category: str = "general"  #: a slug; six are known, any is allowed where the surface allows it
    content: Annotated[str, QUOTED]  #: the text that is searched, embedded and shown
    key: Annotated[str | None, QUOTED] = None  #: unique among live records of (scope, kind)
    value: Annotated[Json, QUOTED] = None  #: structured value; then content is its rendering
    tags: Annotated[frozenset[str], QUOTED] = frozenset()
    metadata: Annotated[Mapping[str, Json], QUOTED] = EMPTY  #: aliases and keywords live here and are searchable
    source: Source
    trust: Trust
    pinned: bool = False  #: exempt from eviction
    version: int = 0  #: 0 until stored; compare-and-set
    created_at: datetime
    updated_at: datetime
    occurred_at: datetime | None = None  #: when it was true or happened, if that is not when it was written
    expires_at: datetime | None = None  #: ttl, resolved at admission
    archived_at: datetime | None = None  #: out of recall, kept
    superseded_by: str | None = None  #: implies archived
    held: bool = False  #: waits for a person's review; not live
    consolidated_at: datetime | None = None
    approved_at: datetime | None = None  #: when a person approved these words; gone when somebody else changes them
    usage: Usage = UNUSED

    @property
    def authority(self) -> Trust:
        """Whose word it counts as: what a person has approved counts as theirs."""
        return self.trust if self.approved_at is None else Trust.USER

    @property
    def has_authority(self) -> bool:
        """Whether it may be shown as an instruction: a person wrote it, or approved these very words."""
        return self.authority is Trust.USER

    @property
    def is_instruction(self) -> bool:
        """Whether it tells an agent what to do."""
        return self.kind is Kind.PROCEDURAL or self.category in INSTRUCTIVE

    @property
    def waits(self) -> bool:
        """Whether it waits for a person, while it is held or live (``filters`` has the same rule in SQL).

        It is held; it may replace another one; or it tells agents what to do, or came with a file from elsewhere, and
        no person has said yes.
        """
        came_by_file = self.source.channel is Channel.FILE and self.trust is Trust.EXTERNAL
        asks = self.held or PROPOSAL in self.metadata
        return asks or (not self.has_authority and (self.is_instruction or came_by_file))

    @property
    def trust_mark(self) -> str:
        """Its trust as lines of memory show it."""
        return f"trust {self.trust.name.lower()}" + (", approved" if self.approved_at is not None else "")

    @property
    def short(self) -> str:
        """Enough of the id to tell it from others."""
        return self.id[:SHORT]

    @property
    def brief_id(self) -> str:
        """The end of the id, which is random: few characters tell it from others, and any part of an id is accepted."""
        return self.id[-SHOWN:]

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names by which it is found."""
        return _words(self.metadata.get("aliases"))

    @property
    def keywords(self) -> tuple[str, ...]:
        """Further words by which it is found."""
        return _words(self.metadata.get("keywords"))

    @property
    def is_file_proposal(self) -> bool:
        """Whether it waits for review in place of a change that a file made: that file is another record's."""
        came_by_git = self.source.channel is Channel.FILE and (self.source.ref or "").startswith(PROPOSED)
        return self.held and came_by_git and self.trust is Trust.EXTERNAL and bool(self.source.parents)

    @property
    def has_file(self) -> bool:
        """Whether it has a file where its scope has a folder; a proposal made of another one's file has none."""
        return self.category in CATEGORIES and not self.is_file_proposal

    def state(self, at: datetime) -> State:
        """Return its state at that moment: the one rule of what is live (``rows.state_sql`` is the same in SQL)."""
        if self.archived_at is not None:
            return State.ARCHIVED
        if self.held:
            return State.HELD
        if self.expires_at is not None and self.expires_at <= at:
            return State.EXPIRED
        return State.LIVE

    def __repr__(self) -> str:
        """Return every field that says something, the content first."""
        defaults = type(self).defaults
        fields = {"content": self.content} | {name: getattr(self, name) for name in type(self).fields}
        said = [f"{name}={_plain(value)}" for name, value in fields.items()
                if name not in defaults or value != defaults[name]]  # fmt: skip
        return f"Record({', '.join(said)})"

    def _check(self) -> None:
        if not is_id(self.id):
            raise InvalidInput(f"{self.id!r} is not a record id")
        if self.superseded_by is not None and self.archived_at is None:
            raise InvalidInput(f"record {self.id!r} is superseded but not archived")
        moments = (self.created_at, self.updated_at, self.occurred_at, self.expires_at, self.archived_at)
        for moment in (*moments, self.consolidated_at, self.approved_at):
            if moment is not None and moment.tzinfo is None:
                raise InvalidInput(f"record {self.id!r} has a date without a time zone")


class Draft(Value):
    """What a caller asks to store; admission turns it into a record."""

    content: str = ""
    category: str | None = None  #: None: "general", or refused where the categories are closed
    kind: Kind | None = None  #: None: what the category says, else semantic
    scope: Scope | None = None  #: None: where the binding writes that kind
    key: str | None = None
    value: Json = None
    tags: frozenset[str] = frozenset()
    metadata: Mapping[str, Json] = EMPTY
    ref: str | None = None  #: the origin within the binding's channel
    parents: tuple[str, ...] = ()
    pinned: bool = False
    held: bool = False
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    ttl: timedelta | None = None  #: instead of expires_at


def _words(value: Json) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def _plain(value: object) -> str:
    """Return a value as a person would write it."""
    return repr(str(value)) if isinstance(value, Scope | StrEnum | datetime) else repr(value)

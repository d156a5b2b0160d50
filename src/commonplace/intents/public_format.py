"""The format of the public contract (the openintent SDK and RFC-0015), and how it maps to the verbs.

``PUBLIC_NAMES`` is the one list of names that differ.  Where public documents disagree about a name, both are accepted;
an unknown name is refused, since ignoring a mistyped option makes a wrong write.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from commonplace.intents.entries import Entry, Page
from commonplace.intents.events import EntryEvent, EntryEvents
from commonplace.intents.verbs import BATCH_MAX, SEQUENCE_MAX, Priority, Sensitivity, Tier
from commonplace.model.errors import InvalidInput
from commonplace.routes import Limit, Name, Offset, Strict, aware

PUBLIC_NAMES = {"agent": "agent_id", "tier": "memory_type", "task": "task_id", "intent": "intent_id"}  #: ours -> theirs
Ttl = int | float | str  # seconds, or the words of the RFC; the engine checks them
Seconds = Annotated[int, Meta(ge=1, le=3_153_600_000)]
Version = Annotated[int, Meta(ge=1, le=SEQUENCE_MAX)]


class Public(Strict, rename=PUBLIC_NAMES):
    """A part of a request or an answer: our field names, their names in JSON, no unknown ones."""

    def arguments(self) -> dict[str, Any]:
        """Return the given fields as a verb takes them."""
        fields = {name: part for name in self.__struct_fields__ if (part := getattr(self, name)) is not UNSET}
        return {name: aware(part) if isinstance(part, datetime) else part for name, part in fields.items()}


class EntryScope(Public):
    """The task or the intent that an entry belongs to."""

    task: Name | None = None
    intent: Name | None = None


class NewEntry(Public):
    """An entry to create."""

    agent_id: Name
    key: Name
    value: Any
    namespace: Name | None = None
    tier: Tier | UnsetType = UNSET
    other_tier: Tier | UnsetType = field(default=UNSET, name="tier")  #: another name of memory_type
    scope: EntryScope | None = None
    tags: list[str] = field(default_factory=list)
    ttl: Ttl | None = None  #: seconds, ``task_lifetime`` or ``duration:<ISO 8601>``
    ttl_seconds: Seconds | None = None  #: another form of ttl
    pinned: bool | None = None
    priority: Priority | None = None
    sensitivity: Sensitivity | None = None
    expires_at: datetime | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the given fields as ``store`` takes them; the tier is working by default, as in the public client."""
        given = super().arguments() | (self.scope or EntryScope()).arguments()
        seconds, other = given.pop("ttl_seconds"), given.pop("other_tier", None)
        tier = given.pop("tier", None)
        if tier is not None and other is not None and tier != other:
            raise InvalidInput(f"memory_type is {tier!r} and tier {other!r}; they are the same thing")
        if self.ttl is not None and seconds is not None:
            raise InvalidInput("ttl and ttl_seconds are the same thing; give one of them")
        del given["scope"]
        return given | {"tier": tier or other or "working", "ttl": self.ttl if seconds is None else seconds}


class BatchEntry(NewEntry):
    """An entry to create or update."""

    version: Version | None = None  #: only if it is at this version


class Batch(Public):
    """Entries to store, all or none."""

    entries: Annotated[list[BatchEntry], Meta(min_length=1, max_length=BATCH_MAX)]


class EntryChange(Public):
    """The fields of an entry to change; the rest stays."""

    value: Any = UNSET
    tags: list[str] | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    ttl: Ttl | UnsetType | None = UNSET


class KeyValue(Public):
    """The value of a key, as the MCP tools of openintent send it."""

    value: Any
    ttl_seconds: Seconds | None = None
    tags: list[str] = field(default_factory=list)
    tier: Tier = "episodic"


class EntryTier(Public):
    """In which tier, and for which task."""

    tier: Tier | None = None
    task: Name | None = None


class PagePart(Public):
    """Which part of a list."""

    limit: Limit = 100
    offset: Offset = 0


class AgentFilter(PagePart):
    """The entries of an agent that match, as the public client asks for them."""

    namespace: str | None = None
    tier: Tier | None = None
    tags: list[str] = field(default_factory=list)


class Filter(Public):
    """The entries that match, by the parameters of the RFC."""

    agent_id: Name | None = None
    namespace: Name | None = None  #: exact, or a prefix that ends in ``*``
    key: Name | None = None
    tier: Tier | None = None
    tags: list[str] = field(default_factory=list)  #: all of them
    tags_any: list[str] = field(default_factory=list)  #: any of them
    task: Name | None = field(default=None, name="scope.task_id")
    intent: Name | None = field(default=None, name="scope.intent_id")
    pinned: bool | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None


class FilterPage(Filter):
    """The entries that match, and which part of them."""

    limit: Limit = 100
    offset: Offset = 0


class PublicEntry(Public, kw_only=False):
    """An entry in an answer: all seventeen fields, always."""

    id: str
    agent: str
    namespace: str
    key: str
    value: Any
    tier: Tier
    version: int
    scope: EntryScope | None
    tags: tuple[str, ...]
    ttl: Ttl | None
    pinned: bool
    priority: Priority
    sensitivity: Sensitivity | None
    curated_by: str | None
    created_at: str
    updated_at: str
    expires_at: str | None


class PublicPage(Public):
    """A page of entries."""

    entries: list[PublicEntry]
    total: int
    limit: int
    offset: int


class PublicEntries(Public):
    """Entries."""

    entries: list[PublicEntry]


class Deleted(Public):
    """What was erased."""

    status: Literal["deleted"] = "deleted"
    entry_id: str | UnsetType = UNSET
    deleted: int | UnsetType = UNSET  #: the number of entries that a filter matched


class PublicEvent(Public):
    """One event of an entry."""

    id: int  #: later events have greater ones
    type: str  #: memory.created, .updated, .deleted, .archived, .evicted or .expired
    at: str
    entry_id: str | None
    agent: str | None  #: whose entry; null: shared
    namespace: str
    key: str | None
    tier: str | None
    version: int | None
    previous_version: int | None
    tags: tuple[str, ...]
    task: str | None
    entries_archived: int | UnsetType = UNSET  #: of an archive: how many entries it holds


class PublicEvents(Public):
    """Events, oldest first."""

    events: list[PublicEvent]
    next: int  #: pass it as ``after`` to get the events that follow
    events_floor: int  #: up to this number only archives are stored: an ``after`` below it may have missed events


#: The fields of an entry in the order of ``PublicEntry``; its scope, made of two, is filled in afterwards.
_read_fields = attrgetter(*("task" if name == "scope" else name for name in PublicEntry.__struct_fields__))


def public_entry(entry: Entry) -> PublicEntry:
    """Return an entry in the public format."""
    shown = PublicEntry(*_read_fields(entry))
    scoped = entry.task is not None or entry.intent is not None
    shown.scope = EntryScope(task=entry.task, intent=entry.intent) if scoped else None
    shown.created_at, shown.updated_at = iso_time(entry.created_at), iso_time(entry.updated_at)
    shown.expires_at = iso_time(entry.expires_at) if entry.expires_at else None
    return shown


def public_entries(entries: Iterable[Entry]) -> list[PublicEntry]:
    """Return entries in the public format."""
    return [public_entry(entry) for entry in entries]


def public_page(page: Page) -> PublicPage:
    """Return a page in the public format."""
    return PublicPage(entries=public_entries(page), total=page.total, limit=page.limit, offset=page.offset)


def public_event(event: EntryEvent) -> PublicEvent:
    """Return an event in the public format."""
    fields: dict[str, Any] = {name: getattr(event, name) for name in PublicEvent.__struct_fields__}
    archived = UNSET if event.entries_archived is None else event.entries_archived
    return PublicEvent(**fields | {"at": iso_time(event.at), "entries_archived": archived})


def public_events(found: EntryEvents) -> PublicEvents:
    """Return events in the public format."""
    events = [public_event(event) for event in found.events]
    return PublicEvents(events=events, next=found.next, events_floor=found.events_floor)


def iso_time(at: datetime) -> str:
    """Return a time with ``+00:00`` and no fraction or six digits of it, which every Python since 3.7 reads."""
    return at.astimezone(UTC).isoformat()

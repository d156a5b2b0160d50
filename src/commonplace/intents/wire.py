"""What travels: every body, answer and set of parameters, as types.  Decoding, encoding and OpenAPI all come from here.

The names are those of the public contract (``memory_type``, ``agent_id``, ``scope``); the engine's are shorter.  Where
documents disagree about a name, both are taken; a name that nobody knows is refused, since a mistyped option that is
ignored is a wrong write.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from commonplace.intents.intents import Entry, EntryDraft, EntryFilter, Page
from commonplace.model.errors import InvalidInput

Tier = Literal["working", "episodic", "semantic"]
Priority = Literal["low", "normal", "high"]
Sensitivity = Literal["public", "internal", "confidential", "restricted"]
Name = Annotated[str, Meta(min_length=1, max_length=512)]
Ttl = int | float | str  # seconds, or the RFC's words; the engine judges them
Limit = Annotated[int, Meta(ge=1, le=1_000_000)]  # beyond LIMIT_MOST it is LIMIT_MOST
Offset = Annotated[int, Meta(ge=0, le=1_000_000)]
Version = Annotated[int, Meta(ge=1, le=9_007_199_254_740_991)]
LIMIT_MOST = 1000  # entries in one page
BATCH_MOST = 1000  # entries in one batch


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What comes in: nothing that is not known."""


class EntryScope(Strict):
    """The task or the intent that an entry belongs to."""

    task_id: Name | None = None
    intent_id: Name | None = None


class NewEntry(Strict):
    """An entry as it is handed in."""

    agent_id: Name
    key: Name
    value: Any
    namespace: Name | None = None
    memory_type: Tier | UnsetType = UNSET
    tier: Tier | UnsetType = UNSET  #: another name of memory_type
    scope: EntryScope | None = None
    tags: list[str] = []
    ttl: Ttl | None = None  #: seconds, ``task_lifetime`` or ``duration:<ISO 8601>``
    ttl_seconds: Annotated[int, Meta(ge=1, le=3_153_600_000)] | None = None  #: another form of ttl
    pinned: bool | None = None
    priority: Priority | None = None
    sensitivity: Sensitivity | None = None
    expires_at: datetime | None = None

    def arguments(self) -> dict[str, Any]:
        """As ``Intents.store`` and ``EntryDraft`` take it."""
        scope = self.scope or EntryScope()
        return {
            "agent": self.agent_id, "key": self.key, "value": self.value, "tier": self.chosen_tier(),
            "namespace": self.namespace, "tags": tuple(self.tags), "ttl": self.chosen_ttl(), "task": scope.task_id,
            "intent": scope.intent_id, "pinned": self.pinned, "priority": self.priority,
            "sensitivity": self.sensitivity, "expires_at": aware(self.expires_at),
        }  # fmt: skip

    def chosen_tier(self) -> str:
        """The tier by whichever name it was given; working, as the public client has it, if by none."""
        given = {name for name in (self.memory_type, self.tier) if name is not UNSET}
        if len(given) > 1:
            raise InvalidInput(f"memory_type is {self.memory_type!r} and tier {self.tier!r}; they are the same thing")
        return str(next(iter(given), "working"))

    def chosen_ttl(self) -> Ttl | None:
        """The time to live by whichever name it was given."""
        if self.ttl is not None and self.ttl_seconds is not None:
            raise InvalidInput("ttl and ttl_seconds are the same thing; give one of them")
        return self.ttl if self.ttl_seconds is None else self.ttl_seconds


class KeptEntry(NewEntry):
    """An entry to keep, whether it is there already or not."""

    version: Version | None = None  #: only if it is at this version

    def draft(self) -> EntryDraft:
        """As ``Intents.batch`` takes it."""
        return EntryDraft(**self.arguments(), version=self.version)


class Batch(Strict):
    """Entries to keep, all or none."""

    entries: Annotated[list[KeptEntry], Meta(min_length=1, max_length=BATCH_MOST)]


class EntryChange(Strict):
    """What is to be changed of an entry; the rest stays."""

    value: Any = UNSET
    tags: list[str] | UnsetType = UNSET
    pinned: bool | UnsetType = UNSET
    priority: Priority | UnsetType = UNSET
    ttl: Ttl | UnsetType | None = UNSET

    def arguments(self) -> dict[str, Any]:
        """As ``Intents.update`` takes it: what was named."""
        return {name: part for name in self.__struct_fields__ if (part := getattr(self, name)) is not UNSET}


class PutValue(Strict):
    """The value of a key, in the form of the MCP tools."""

    value: Any
    ttl_seconds: Annotated[int, Meta(ge=1, le=3_153_600_000)] | None = None
    tags: list[str] = []
    memory_type: Tier = "episodic"


class Where(Strict):
    """Which entries are meant, by the names of the RFC."""

    agent_id: Name | None = None
    namespace: Name | None = None  #: exact, or everything that begins so with ``*`` at its end
    key: Name | None = None
    memory_type: Tier | None = None
    tags: list[str] = []  #: all of them
    tags_any: list[str] = []  #: any of them
    task_id: Name | None = field(default=None, name="scope.task_id")
    intent_id: Name | None = field(default=None, name="scope.intent_id")
    pinned: bool | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None

    def filter(self) -> EntryFilter:
        """As ``Intents`` takes it."""
        return EntryFilter(
            agent=self.agent_id, namespace=self.namespace, key=self.key, tier=self.memory_type, tags=tuple(self.tags),
            tags_any=tuple(self.tags_any), task=self.task_id, intent=self.intent_id, pinned=self.pinned,
            updated_after=aware(self.updated_after), updated_before=aware(self.updated_before),
        )  # fmt: skip


class WherePage(Where):
    """Which entries are meant, and which of them."""

    limit: Limit = 100
    offset: Offset = 0


class AgentPage(Strict):
    """Which entries of an agent are meant, as the public client asks."""

    namespace: str | None = None
    memory_type: Tier | None = None
    tags: list[str] = []
    limit: Limit = 100
    offset: Offset = 0


class WireEntry(msgspec.Struct, kw_only=True):
    """An entry as it goes out: all seventeen fields, always."""

    id: str
    agent_id: str
    namespace: str
    key: str
    value: Any
    memory_type: Tier
    version: int
    scope: EntryScope | None
    tags: list[str]
    ttl: Ttl | None
    pinned: bool
    priority: Priority
    sensitivity: Sensitivity | None
    curated_by: str | None
    created_at: str
    updated_at: str
    expires_at: str | None


class WirePage(msgspec.Struct, kw_only=True):
    """A page of entries."""

    entries: list[WireEntry]
    total: int
    limit: int
    offset: int


class Found(msgspec.Struct, kw_only=True):
    """Entries, best or newest first."""

    entries: list[WireEntry]


class Deleted(msgspec.Struct, kw_only=True):
    """What was erased."""

    status: Literal["deleted"] = "deleted"
    entry_id: str | UnsetType = UNSET
    deleted: int | UnsetType = UNSET  #: how many, where a filter said which


def entry(entry: Entry) -> WireEntry:
    """An entry of the engine's, to go out."""
    scoped = entry.task is not None or entry.intent is not None
    fields: dict[str, Any] = {
        "id": entry.id, "agent_id": entry.agent, "namespace": entry.namespace, "key": entry.key, "value": entry.value,
        "memory_type": entry.tier, "version": entry.version,
        "scope": EntryScope(task_id=entry.task, intent_id=entry.intent) if scoped else None,
        "tags": sorted(entry.tags), "ttl": entry.ttl, "pinned": entry.pinned, "priority": entry.priority,
        "sensitivity": entry.sensitivity, "curated_by": entry.curated_by, "created_at": moment(entry.created_at),
        "updated_at": moment(entry.updated_at), "expires_at": moment(entry.expires_at) if entry.expires_at else None,
    }  # fmt: skip
    return WireEntry(**fields)


def entries(found: Iterable[Entry]) -> list[WireEntry]:
    """Entries of the engine's, to go out."""
    return [entry(one) for one in found]


def page(found: Page) -> WirePage:
    """A page of the engine's, to go out."""
    return WirePage(entries=entries(found.entries), total=found.total, limit=found.limit, offset=found.offset)


def moment(at: datetime) -> str:
    """A moment with ``+00:00`` and no fraction or six digits of it: what every Python since 3.7 reads."""
    return at.astimezone(UTC).isoformat()


def aware(at: datetime | None) -> datetime | None:
    """A moment with its zone; one without, as the reference server writes them, is in UTC."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at

"""What intent memory speaks of: entries with keys and versions, who calls, what is asked, who may see a namespace.

Values and the mapping between them and records.  Pure: no store, no clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias, TypeGuard

from commonplace.engine.admission import check_scope
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import QUOTED, Value

TIERS: Mapping[str, Kind] = MappingProxyType(
    {"working": Kind.WORKING, "episodic": Kind.EPISODIC, "semantic": Kind.SEMANTIC}
)
PRIORITIES = ("low", "normal", "high")
SENSITIVITIES = ("public", "internal", "confidential", "restricted")
GUARDED = frozenset({"confidential", "restricted"})  # left out of briefs by default
ACCESS = ("none", "read", "write", "admin")  # each includes those before it
OUTCOMES = ("completed", "failed", "cancelled")
ENTRY = "intent"  # the category of every entry: what other systems keep in a scope of the same name is none
DEFAULT = "default"  # the namespace of calls that name none
TASK_LIFETIME = "task_lifetime"
_DURATION = re.compile(
    r"P(?=.)(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+(?:\.\d+)?)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+(?:\.\d+)?)H)?(?:(?P<minutes>\d+(?:\.\d+)?)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?",
    re.ASCII,
)
#: A duration has no calendar: a month has thirty days, a year has 365.
_SECONDS = {
    "years": 31_536_000, "months": 2_592_000, "weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60,
    "seconds": 1,
}  # fmt: skip

Ttl: TypeAlias = float | str | None  #: seconds, ``duration:<ISO 8601>`` or ``task_lifetime``


class Caller(Value):
    """Who calls."""

    agent: str | None = None  #: None: an operator, who acts for any agent
    admin: bool = False  #: may change every namespace's permissions


class Entry(Value):
    """One entry, as it is at one version."""

    id: str
    agent: str  #: who wrote it first
    namespace: str
    key: str
    value: Annotated[Json, QUOTED]
    tier: str  #: working | episodic | semantic
    version: int
    task: str | None = None
    intent: str | None = None
    tags: tuple[str, ...] = ()  #: sorted
    ttl: Ttl = None  #: as it was given
    pinned: bool = False
    priority: str = "normal"
    sensitivity: str | None = None
    curated_by: str | None = None  #: of shared knowledge: who wrote it last
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None

    def get(self, name: str, default: Any = None) -> Any:
        """A field by its name."""
        return getattr(self, name) if name in Entry.fields else default


class EntryDraft(Value):
    """What a caller asks to keep."""

    agent: str
    key: str
    value: Json
    tier: str
    namespace: str | None = None  #: None: ``default``
    tags: tuple[str, ...] = ()
    ttl: Ttl = None
    version: int | None = None  #: it must be at that version; 0: it must not exist
    task: str | None = None
    intent: str | None = None
    pinned: bool | None = None  #: None: as it is
    priority: str | None = None  #: None: as it is, else normal
    sensitivity: str | None = None  #: None: as it is
    expires_at: datetime | None = None  #: wins over the ttl
    fresh: bool = False  #: it must not exist
    max_entries: int | None = None  #: of that agent, tier and namespace; episodic ones give way, others are refused

    def _check(self) -> None:
        for what, name in {"an agent": self.agent, "a key": self.key}.items():
            if not isinstance(name, str):
                raise InvalidInput(f"{name!r} cannot name {what}: it is no text")
        _check_fields(self, texts=("namespace", "task", "intent"), lists=("tags",), moments=("expires_at",))
        if self.version is not None and not _is_whole(self.version):
            raise InvalidInput(f"a version is a whole number, not {self.version!r}")
        if self.max_entries is not None:
            above_zero(self.max_entries, "max_entries")


class EntryFilter(Value):
    """Which entries are meant; what is None is not asked."""

    agent: str | None = None  #: as whom: its own entries and what it may read
    namespace: str | None = None  #: exact, or a beginning that ends in ``*``
    key: str | None = None
    tier: str | None = None
    tags: tuple[str, ...] = ()  #: all of these
    tags_any: tuple[str, ...] = ()  #: at least one of these
    task: str | None = None
    intent: str | None = None
    pinned: bool | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    query: str | None = None  #: full text and meaning; then best first instead of newest first

    def _check(self) -> None:
        texts = ("agent", "namespace", "key", "task", "intent", "query")
        _check_fields(self, texts=texts, lists=("tags", "tags_any"), moments=("updated_after", "updated_before"))


class Page(Value):
    """A part of a list."""

    entries: tuple[Entry, ...]
    total: int  #: of all parts
    limit: int
    offset: int

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class Permissions(Value):
    """Who may do what in a namespace."""

    default: str = "read"  #: none | read | write: everybody who is not named
    allow: Mapping[str, str] = MappingProxyType({})  #: agent -> read | write | admin

    def of(self, agent: str) -> str:
        """What one agent may do."""
        return self.allow.get(agent, self.default)

    def allows(self, agent: str, access: str) -> bool:
        """Whether one agent may do that much."""
        return ACCESS.index(self.of(agent)) >= ACCESS.index(access)

    def _check(self) -> None:
        one_of(self.default, ("none", "read", "write"), "a default permission")
        for agent, access in self.allow.items():
            one_of(access, ACCESS, f"a permission of {agent!r}")


class Policy(Value):
    """What a task does with its working memory."""

    archive_on_completion: bool = True  #: False: it is erased without a snapshot
    inherit_from_parent: bool = False  #: its agent may read the working memory of the task above
    max_entries: int | None = None
    max_total_size_kb: int | None = None

    def _check(self) -> None:
        for name in ("archive_on_completion", "inherit_from_parent"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} should be true or false, not {getattr(self, name)!r}")
        for name in ("max_entries", "max_total_size_kb"):
            if getattr(self, name) is not None:
                above_zero(getattr(self, name), name)


class Task(Value):
    """A task: who works on it, who watches over it."""

    id: str
    status: str = "active"  #: active | completed | failed | cancelled
    assigned: str  #: who writes its working memory
    former: tuple[str, ...] = ()  #: who did, earliest first; what they wrote stays theirs
    coordinator: str | None = None  #: may read all of it
    parent: str | None = None
    policy: Policy = Policy()

    @property
    def agents(self) -> tuple[str, ...]:
        """All whose working memory belongs to it, the present one first."""
        return (self.assigned, *reversed([agent for agent in self.former if agent != self.assigned]))

    def is_open_to(self, agent: str) -> bool:
        """Whether that agent may read what others wrote for it."""
        return agent in (self.assigned, self.coordinator)


class Summary(Value):
    """How much an agent holds."""

    agent: str
    working_count: int
    working_bytes: int
    tasks: tuple[str, ...]  #: those with working memory of this agent
    episodic_count: int
    episodic_bytes: int
    capacity: int  #: of a namespace of episodic memory
    pinned_count: int
    oldest: datetime | None
    newest: datetime | None
    namespaces: tuple[str, ...]  #: shared ones that it may read


# What callers give


def _check_fields(
    given: EntryDraft | EntryFilter, *, texts: Sequence[str], lists: Sequence[str], moments: Sequence[str]
) -> None:
    """Refuse what is of the wrong sort, each in a sentence; what is None was not given."""
    for name in texts:
        if not isinstance(getattr(given, name), str | None):
            raise InvalidInput(f"{name} should be a text, not {getattr(given, name)!r}")
    for name in lists:
        if isinstance(getattr(given, name), Iterator):  # it would be empty when it is kept
            raise InvalidInput(f"{name} should be a list of texts, not {getattr(given, name)!r}")
        read_text_list(getattr(given, name), name)
    for name in moments:
        moment = getattr(given, name)
        if moment is not None and (not isinstance(moment, datetime) or moment.tzinfo is None):
            raise InvalidInput(f"{name} should be a moment with a time zone, not {moment!r}")
    if not isinstance(given.pinned, bool | None):
        raise InvalidInput(f"pinned should be true or false, not {given.pinned!r}")


def read_text_list(texts: object, name: str = "tags") -> tuple[str, ...]:
    """Several texts; a single one would be taken for its letters."""
    listed = texts if isinstance(texts, Iterable) and not isinstance(texts, str | bytes | Mapping) else None
    found = None if listed is None else tuple(listed)
    if found is None or not all(isinstance(text, str) for text in found):
        raise InvalidInput(f"{name} should be a list of texts, not {texts!r}")
    return found


def above_zero(number: object, what: str) -> None:
    """Refuse what is no number of things that there can be."""
    if not _is_whole(number) or number < 1:
        raise InvalidInput(f"{what} should be a whole number above zero, not {number!r}")


def _is_whole(number: object) -> TypeGuard[int]:
    return isinstance(number, int) and not isinstance(number, bool)


# Where entries live


def agent_scope(agent: str, *, task: str | None = None, namespace: str = DEFAULT) -> Scope:
    """Where an agent's own entries live: its working memory of a task apart, each namespace apart."""
    segments = [("agent", agent)]
    if task is not None:
        segments.append(("task", task))
    if namespace != DEFAULT:
        segments.append(("namespace", namespace))
    return make_scope(*segments)


def make_scope(*segments: tuple[str, str]) -> Scope:
    """A scope of names that callers gave."""
    for kind, name in segments:
        if not isinstance(name, str):
            raise InvalidInput(f"{name!r} cannot name {'an' if kind == 'agent' else 'a'} {kind}: it is no text")
    return check_scope(Scope.of(*segments))


def shared_scope(namespace: str) -> Scope:
    """Where shared entries live."""
    return make_scope(("namespace", namespace))


def scope_of(tier: str, agent: str, *, task: str | None, namespace: str) -> Scope:
    """Where an entry of a tier lives."""
    if tier == "semantic":
        return shared_scope(namespace)
    return agent_scope(agent, task=task if tier == "working" else None, namespace=namespace)


def agent_of(scope: Scope) -> str | None:
    """Whose scope it is; None: a shared one."""
    kind, name = scope.segments[0]
    return name if kind == "agent" else None


def task_of(scope: Scope) -> str | None:
    """The task whose working memory lives there."""
    return next((name for kind, name in scope.segments if kind == "task"), None)


def namespace_of(scope: Scope) -> str:
    """The namespace of what lives there."""
    return next((name for kind, name in scope.segments if kind == "namespace"), DEFAULT)


# Records and entries


def entry_of(record: Record) -> Entry:
    """A record as the entry that it keeps."""
    kept = record.metadata
    return Entry(
        id=record.id, agent=agent_of(record.scope) or text_in(kept, "agent") or "",
        namespace=namespace_of(record.scope), key=record.key or record.id, value=record.value, tier=record.kind.value,
        version=record.version, task=task_of(record.scope) or text_in(kept, "task"), intent=text_in(kept, "intent"),
        tags=tuple(sorted(record.tags)), ttl=_ttl_in(kept), pinned=record.pinned,
        priority=text_in(kept, "priority") or "normal", sensitivity=text_in(kept, "sensitivity"),
        curated_by=text_in(kept, "curated_by"), created_at=record.created_at, updated_at=record.updated_at,
        expires_at=record.expires_at,
    )  # fmt: skip


def text_in(kept: Mapping[str, Json], name: str) -> str | None:
    """A text of a record's metadata."""
    found = kept.get(name)
    return found if isinstance(found, str) else None


def _ttl_in(kept: Mapping[str, Json]) -> Ttl:
    found = kept.get("ttl")
    return found if isinstance(found, int | float | str) else None


def check_tier(name: str) -> str:
    """A tier, or a sentence that says which there are."""
    return one_of(name, tuple(TIERS), "a tier")


def one_of(value: str, known: Sequence[str], what: str) -> str:
    """A word of a closed list, or a sentence that says which there are."""
    if value not in known:
        raise InvalidInput(f"{value!r} is not {what}; use one of {', '.join(known)}")
    return value


def check_namespace(name: str | None) -> str:
    """A namespace; a star would make it a beginning of others."""
    if name is None:
        return DEFAULT
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} cannot name a namespace: it is no text")
    if "*" in name:
        raise InvalidInput(f"{name!r} cannot name a namespace: a star stands for the rest of a name")
    return name


def lifetime(ttl: Ttl) -> timedelta | None:
    """How long a ttl says; None: no fixed time."""
    if ttl is None or ttl == TASK_LIFETIME:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float | str):
        raise InvalidInput(f"{ttl!r} is not a ttl; use seconds, 'duration:PT1H' or {TASK_LIFETIME!r}")
    seconds = _seconds(ttl) if isinstance(ttl, str) else ttl
    try:
        length = timedelta(seconds=seconds)
    except (OverflowError, ValueError):  # too long, or not a number
        raise InvalidInput(f"a ttl of {ttl!r} ends after the last day of the calendar") from None
    if length <= timedelta(0):
        raise InvalidInput(f"a ttl of {ttl!r} would expire at once")
    return length


def _seconds(text: str) -> float:
    found = _DURATION.fullmatch(text.removeprefix("duration:")) if text.startswith("duration:") else None
    if found is None:
        raise InvalidInput(f"{text!r} is not a ttl; use seconds, 'duration:PT1H' or {TASK_LIFETIME!r}")
    return sum(float(number) * _SECONDS[name] for name, number in found.groupdict().items() if number)

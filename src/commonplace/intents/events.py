"""Events of entries, and the archives of tasks, as callers see them: an event has names and versions, never a value."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from commonplace.intents.entries import agent_of, namespace_of, task_of
from commonplace.model.events import Event
from commonplace.model.records import Json
from commonplace.model.values import Value


class EntryEvent(Value):
    """One event of an entry."""

    id: int  #: later events have greater ones
    type: str  #: memory.created, .updated, .deleted, .archived, .evicted or .expired
    at: datetime
    entry_id: str | None
    agent: str | None  #: whose entry; None: shared
    namespace: str
    key: str | None
    tier: str | None
    version: int | None
    previous_version: int | None
    tags: tuple[str, ...]  #: sorted
    task: str | None
    entries_archived: int | None = None  #: of an archive: how many entries it holds


class EntryEvents(Value):
    """Events, oldest first."""

    events: tuple[EntryEvent, ...]
    next: int  #: pass it as ``after`` to get the events that follow
    events_floor: int  #: up to this number only archives are stored: an ``after`` below it may have missed events


class ArchivedEntry(Value):
    """An entry as it was when its task ended."""

    namespace: str
    key: str
    value: Json
    tags: tuple[str, ...] = ()


class TaskArchive(Value):
    """The working memory of one agent when the task ended."""

    agent: str | None
    at: datetime
    entries: tuple[ArchivedEntry, ...]


def event_of(event: Event) -> EntryEvent:
    """Return a stored event without the values that an archive holds."""
    count = event.detail.get("entries_archived")
    return EntryEvent(
        id=event.seq, type=event.what.value, at=event.at, entry_id=event.record, agent=agent_of(event.scope),
        namespace=namespace_of(event.scope), key=event.key, tier=event.kind.value if event.kind else None,
        version=event.version, previous_version=event.previous, tags=tuple(sorted(event.tags)),
        task=task_of(event.scope), entries_archived=count if isinstance(count, int) else None,
    )  # fmt: skip


def archive_of(event: Event) -> TaskArchive:
    """Return the snapshot that an archive event holds."""
    snapshot = event.detail.get("snapshot")
    entries = (
        [_archived_entry(item) for item in snapshot if isinstance(item, Mapping)] if isinstance(snapshot, list) else []
    )
    return TaskArchive(agent=agent_of(event.scope), at=event.at, entries=tuple(entries))


def _archived_entry(item: Mapping[str, Json]) -> ArchivedEntry:
    tags = item.get("tags")
    return ArchivedEntry(
        namespace=str(item.get("namespace")), key=str(item.get("key")), value=item.get("value"),
        tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
    )  # fmt: skip

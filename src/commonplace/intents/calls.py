"""The verbs of intent memory under the engine's own names: what our remote client calls.

Keys and questions travel in bodies here: what stands in a path or a query string ends up in the logs of proxies.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from commonplace.intents import wire
from commonplace.intents.intents import Entry, EntryDraft, EntryFilter, Permissions, Task, agent_of
from commonplace.intents.rfc_routes import Namespaces, WireSummary, summary
from commonplace.intents.wire import (
    BATCH_MOST,
    Limit,
    Name,
    Offset,
    Priority,
    Sensitivity,
    Strict,
    Tier,
    Ttl,
    aware,
    moment,
)
from commonplace.model.events import Event
from commonplace.server.routing import Call, Route

Outcome = Literal["completed", "failed", "cancelled"]
Question = Annotated[str, Meta(max_length=4096)]


class Kept(Strict):
    """An entry to keep."""

    agent: Name
    key: Name
    value: Any
    tier: Tier
    namespace: Name | None = None
    tags: list[str] = field(default_factory=list)
    ttl: Ttl | None = None
    version: Annotated[int, Meta(ge=0)] | None = None  #: only if it is at this version; 0: only if it is not there
    task: Name | None = None
    intent: Name | None = None
    pinned: bool | None = None
    priority: Priority | None = None
    sensitivity: Sensitivity | None = None
    expires_at: datetime | None = None
    fresh: bool = False
    max_entries: Annotated[int, Meta(ge=1)] | None = None

    def arguments(self) -> dict[str, Any]:
        """As ``Intents.store`` and ``EntryDraft`` take it."""
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return fields | {"tags": tuple(self.tags), "expires_at": aware(self.expires_at)}


class KeptAll(Strict):
    """Entries to keep, all or none."""

    items: Annotated[list[Kept], Meta(min_length=1, max_length=BATCH_MOST)]


class Named(Strict):
    """Which entry is meant."""

    agent: Name
    key: Name
    namespace: Name | None = None
    tier: Tier | None = None
    task: Name | None = None

    def arguments(self) -> dict[str, Any]:
        """As the verbs of ``Intents`` take it."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class Recalled(Strict):
    """What is to be recalled."""

    agent: Name
    query: Question | None = None
    tags: list[str] = field(default_factory=list)
    key: Name | None = None
    tier: Tier | None = None
    namespace: Name | None = None
    task: Name | None = None
    limit: Limit = 10
    brief: bool = False  #: leave out what is confidential or restricted


class Listed(Strict):
    """Which entries are to be listed."""

    agent: Name | None = None
    namespace: Name | None = None
    key: Name | None = None
    tier: Tier | None = None
    tags: list[str] = field(default_factory=list)
    tags_any: list[str] = field(default_factory=list)
    task: Name | None = None
    intent: Name | None = None
    pinned: bool | None = None
    updated_after: datetime | None = None
    updated_before: datetime | None = None
    query: Question | None = None
    limit: Limit = 100
    offset: Offset = 0


class Allowed(Strict):
    """Who may do what in a namespace."""

    namespace: Name
    default: Literal["none", "read", "write"] = "read"
    allow: dict[str, Literal["none", "read", "write", "admin"]] = field(default_factory=dict)


class OfNamespace(Strict):
    """Which namespace is meant."""

    namespace: Name


class OfAgent(Strict):
    """Which agent is meant."""

    agent: Name | None = None


class OneAgent(Strict):
    """Which agent is meant."""

    agent: Name


class TaskPolicy(Strict):
    """What a task does with its working memory."""

    archive_on_completion: bool = True
    inherit_from_parent: bool = False
    max_entries: Annotated[int, Meta(ge=1)] | None = None
    max_total_size_kb: Annotated[int, Meta(ge=1)] | None = None


class Begun(Strict):
    """A task to begin."""

    task: Name
    agent: Name
    coordinator: Name | None = None
    parent: Name | None = None
    policy: TaskPolicy | None = None


class Assigned(Strict):
    """Who takes a task over."""

    task: Name
    agent: Name


class Finished(Strict):
    """How a task ends."""

    task: Name
    outcome: Outcome = "completed"


class OfTask(Strict):
    """Which task is meant."""

    task: Name


class PlainEntry(msgspec.Struct, kw_only=True):
    """An entry under the engine's names."""

    id: str
    agent: str
    namespace: str
    key: str
    value: Any
    tier: Tier
    version: int
    task: str | None
    intent: str | None
    tags: list[str]
    ttl: Ttl | None
    pinned: bool
    priority: Priority
    sensitivity: Sensitivity | None
    curated_by: str | None
    created_at: str
    updated_at: str
    expires_at: str | None


class PlainEntries(msgspec.Struct, kw_only=True):
    """Entries under the engine's names, and how many there are where that was asked."""

    entries: list[PlainEntry]
    total: int | UnsetType = UNSET
    limit: int | UnsetType = UNSET
    offset: int | UnsetType = UNSET


class Forgotten(msgspec.Struct, kw_only=True):
    """That an entry is gone."""

    forgotten: bool = True


class PlainTask(msgspec.Struct, kw_only=True):
    """A task."""

    id: str
    status: str
    assigned: str
    former: list[str]
    coordinator: str | None
    parent: str | None
    policy: TaskPolicy


class ArchivedEntry(msgspec.Struct, kw_only=True):
    """An entry as it was when its task ended."""

    namespace: str
    key: str
    value: Any
    tags: list[str]


class TaskArchive(msgspec.Struct, kw_only=True):
    """What one agent had noted for a task."""

    agent: str | None
    at: str
    entries: list[ArchivedEntry]


class TaskArchives(msgspec.Struct, kw_only=True):
    """What the working memory of a task held at its end."""

    task: str
    archives: list[TaskArchive]


def keep(call: Call) -> PlainEntry:
    """Keep an entry, new or not."""
    given: Kept = call.body
    return _plain(call.intents.store(call.caller, **given.arguments()))


def keep_all(call: Call) -> PlainEntries:
    """Keep entries, new or not; all of them or none."""
    given: KeptAll = call.body
    drafts = [EntryDraft(**one.arguments()) for one in given.items]
    return PlainEntries(entries=[_plain(entry) for entry in call.intents.batch(call.caller, drafts)])


def get(call: Call) -> PlainEntry:
    """One entry by its key."""
    return _plain(call.intents.get(call.caller, **call.body.arguments()))


def pin(call: Call) -> PlainEntry:
    """Exempt an entry from eviction."""
    return _plain(call.intents.pin(call.caller, **call.body.arguments()))


def unpin(call: Call) -> PlainEntry:
    """Let an entry be evicted again."""
    return _plain(call.intents.unpin(call.caller, **call.body.arguments()))


def forget(call: Call) -> Forgotten:
    """Erase an entry for good."""
    call.intents.forget(call.caller, **call.body.arguments())
    return Forgotten()


def recall(call: Call) -> PlainEntries:
    """Entries that bear on a question, best first; without one the newest."""
    asked: Recalled = call.body
    found = call.intents.recall(
        call.caller, asked.agent, query=asked.query, tags=tuple(asked.tags), key=asked.key, tier=asked.tier,
        namespace=asked.namespace, task=asked.task, limit=min(asked.limit, wire.LIMIT_MOST), brief=asked.brief,
    )  # fmt: skip
    return PlainEntries(entries=[_plain(entry) for entry in found])


def listed(call: Call) -> PlainEntries:
    """The entries meant, and how many there are."""
    asked: Listed = call.body
    where = EntryFilter(
        agent=asked.agent, namespace=asked.namespace, key=asked.key, tier=asked.tier, tags=tuple(asked.tags),
        tags_any=tuple(asked.tags_any), task=asked.task, intent=asked.intent, pinned=asked.pinned,
        updated_after=aware(asked.updated_after), updated_before=aware(asked.updated_before), query=asked.query,
    )  # fmt: skip
    page = call.intents.page(call.caller, where, limit=min(asked.limit, wire.LIMIT_MOST), offset=asked.offset)
    entries = [_plain(entry) for entry in page.entries]
    return PlainEntries(entries=entries, total=page.total, limit=page.limit, offset=page.offset)


def permit(call: Call) -> Allowed:
    """Say who may do what in a namespace."""
    given: Allowed = call.body
    wanted = Permissions(default=given.default, allow=dict(given.allow))
    return _allowed(given.namespace, call.intents.permit(call.caller, given.namespace, wanted))


def permissions(call: Call) -> Allowed:
    """Who may do what in a namespace."""
    return _allowed(call.body.namespace, call.intents.permissions(call.caller, call.body.namespace))


def namespaces(call: Call) -> Namespaces:
    """The namespaces that an agent may read."""
    return Namespaces(namespaces=sorted(call.intents.namespaces(call.caller, call.body.agent)))


def summed(call: Call) -> WireSummary:
    """How much an agent holds."""
    return summary(call.replace(path={"agent": call.body.agent}))


def begin(call: Call) -> PlainTask:
    """Begin a task."""
    given: Begun = call.body
    policy = msgspec.structs.asdict(given.policy) if given.policy else None
    return _task(
        call.intents.begin(
            call.caller, given.task, agent=given.agent, coordinator=given.coordinator, parent=given.parent,
            policy=policy,
        )
    )  # fmt: skip


def assign(call: Call) -> PlainTask:
    """Let another agent take a task over."""
    return _task(call.intents.assign(call.caller, call.body.task, call.body.agent))


def finish(call: Call) -> PlainTask:
    """End a task; its working memory is archived."""
    return _task(call.intents.finish(call.caller, call.body.task, call.body.outcome))


def task(call: Call) -> PlainTask:
    """A task as it stands."""
    return _task(call.intents.task(call.caller, call.body.task))


def archive(call: Call) -> TaskArchives:
    """What the working memory of a task held at its end."""
    found = call.intents.archive(call.caller, call.body.task)
    return TaskArchives(task=call.body.task, archives=[_archive(event) for event in found])


def _archive(event: Event) -> TaskArchive:
    entries = msgspec.convert(event.detail.get("snapshot", []), list[ArchivedEntry])
    return TaskArchive(agent=agent_of(event.scope), at=moment(event.at), entries=entries)


def erase(call: Call) -> Forgotten:
    """Erase a task with its working memory and its archive."""
    call.intents.erase(call.caller, call.body.task)
    return Forgotten()


def _plain(entry: Entry) -> PlainEntry:
    fields = {name: getattr(entry, name) for name in PlainEntry.__struct_fields__}
    times = {
        name: moment(fields[name]) if fields[name] else None for name in ("created_at", "updated_at", "expires_at")
    }
    return PlainEntry(**fields | times | {"tags": list(entry.tags)})


def _allowed(namespace: str, found: Permissions) -> Allowed:
    return msgspec.convert({"namespace": namespace, "default": found.default, "allow": dict(found.allow)}, Allowed)


def _task(task: Task) -> PlainTask:
    policy = {name: getattr(task.policy, name) for name in TaskPolicy.__struct_fields__}
    return PlainTask(
        id=task.id, status=task.status, assigned=task.assigned, former=list(task.former), coordinator=task.coordinator,
        parent=task.parent, policy=TaskPolicy(**policy),
    )  # fmt: skip


def _verb(name: str, summary: str, handle: Callable[[Call], object], body: Any, answers: Any, *problems: int) -> Route:
    return Route(
        method="POST", path=f"/v1/intents/{name}", summary=summary, handle=handle, body=body, answers=answers,
        problems=problems, tag="intents",
    )  # fmt: skip


ROUTES = (
    _verb("store", "Keep an entry, new or not.", keep, Kept, PlainEntry, 403, 404, 409, 429),
    _verb("batch", "Keep entries, new or not; all or none.", keep_all, KeptAll, PlainEntries, 403, 404, 409, 429),
    _verb("get", "One entry by its key.", get, Named, PlainEntry, 403, 404),
    _verb("recall", "Entries that bear on a question.", recall, Recalled, PlainEntries, 403, 404),
    _verb("list", "The entries meant, and how many there are.", listed, Listed, PlainEntries, 403, 404),
    _verb("pin", "Exempt an entry from eviction.", pin, Named, PlainEntry, 403, 404, 409),
    _verb("unpin", "Let an entry be evicted again.", unpin, Named, PlainEntry, 403, 404, 409),
    _verb("forget", "Erase an entry for good.", forget, Named, Forgotten, 403, 404),
    _verb("permit", "Say who may do what in a namespace.", permit, Allowed, Allowed, 403, 404, 409),
    _verb("permissions", "Who may do what in a namespace.", permissions, OfNamespace, Allowed, 403, 404),
    _verb("namespaces", "The namespaces that an agent may read.", namespaces, OfAgent, Namespaces, 403),
    _verb("summary", "How much an agent holds.", summed, OneAgent, WireSummary, 403, 404),
    _verb("tasks/begin", "Begin a task.", begin, Begun, PlainTask, 403, 404, 409),
    _verb("tasks/assign", "Let another agent take a task over.", assign, Assigned, PlainTask, 403, 404, 409),
    _verb("tasks/finish", "End a task; its working memory is archived.", finish, Finished, PlainTask, 403, 404, 409),
    _verb("tasks/get", "A task as it stands.", task, OfTask, PlainTask, 403, 404),
    _verb("tasks/erase", "Erase a task with its archive.", erase, OfTask, Forgotten, 403, 404),
    _verb("tasks/archive", "What a task's working memory held at its end.", archive, OfTask, TaskArchives, 403, 404),
)

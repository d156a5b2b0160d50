"""Intents: the verbs of intent memory.  Each asks who may, reads what it needs, and makes its changes at once.

Entries have keys, versions and a tier.  Working memory belongs to an agent and a task, episodic memory to an agent,
semantic memory to everybody whom its namespace lets in.  The rules of that are in ``access``, the making of changes in
``writing``, the life of a task in ``tasks``; here is what callers call.  Writing and searching are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from commonplace.engine.memory import now_utc
from commonplace.engine.recall import CANDIDATES, count_use, search
from commonplace.engine.writer import Writer
from commonplace.intents.access import ALL, Access
from commonplace.intents.entries import (
    ENTRY,
    GUARDED,
    TIERS,
    Caller,
    Entry,
    EntryDraft,
    EntryFilter,
    Page,
    Permissions,
    Policy,
    Summary,
    Task,
    Ttl,
    above_zero,
    agent_of,
    agent_scope,
    check_namespace,
    check_tier,
    entry_of,
    namespace_of,
    read_text_list,
    scope_of,
    shared_scope,
    task_of,
)
from commonplace.intents.retention import Retention
from commonplace.intents.tasks import TaskManager
from commonplace.intents.writing import Writing
from commonplace.model.changes import Change, Delete
from commonplace.model.errors import Forbidden, InvalidInput, NotFound
from commonplace.model.events import EVENT_DAYS, Event, EventKind
from commonplace.model.ids import is_id
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import Filter, Order, State
from commonplace.model.records import Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import UNSET

__all__ = [
    "UNSET", "Caller", "Entry", "EntryDraft", "EntryFilter", "Intents", "Page", "Permissions", "Policy", "Summary",
    "Task", "agent_of", "namespace_of", "task_of",
]  # fmt: skip

EPISODIC_CAPACITY = 1000  # entries of one agent in one namespace
RECALL_LIMIT = 10
PAGE_LIMIT = 100
PAGE_MOST = 1000
CANDIDATES_MOST = 2000  # by words and by meaning, each


class Intents:
    """Entries with keys, versions and tiers, over one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock = now_utc,
        embedder: Embedder | None = None,
        secret: Callable[[], bytes] = bytes,
        capacity: int = EPISODIC_CAPACITY,
        event_days: int = EVENT_DAYS,
    ) -> None:
        """Keep entries in that store.

        ``capacity`` is how many episodic ones an agent has in one namespace, ``event_days`` for how long it is kept
        what happened; 0: for ever.
        """
        above_zero(capacity, "a capacity")
        self._store = store
        self._clock = clock
        self._capacity = capacity
        self._access = Access(store, clock)
        self._writer = Writer(store, clock=clock, embedder=embedder, secret=secret)
        retention = Retention(store, clock, days=event_days)
        self._writing = Writing(self._writer, self._access, capacity=capacity, retention=retention)
        self._tasks = TaskManager(self._writer, self._access, self._writing)

    # Writing

    def store(
        self,
        caller: Caller,
        agent: str,
        key: str,
        value: Json,
        *,
        tier: str,
        namespace: str | None = None,
        tags: Iterable[str] = (),
        ttl: Ttl = None,
        version: int | None = None,
        task: str | None = None,
        intent: str | None = None,
        pinned: bool | None = None,
        priority: str | None = None,
        sensitivity: str | None = None,
        expires_at: datetime | None = None,
        fresh: bool = False,
        max_entries: int | None = None,
    ) -> Entry:
        """Keep a value under a key; one that is there gets a new version.

        ``version`` must be the one that is there (0: none), else ``Conflict`` says which is; ``fresh`` means 0.
        A value replaces value, tags and ttl; pin, priority and sensitivity stay unless they are given.
        """
        draft = EntryDraft(
            agent=agent, key=key, value=value, tier=tier, namespace=namespace, tags=read_text_list(tags), ttl=ttl,
            version=version, task=task, intent=intent, pinned=pinned, priority=priority, sensitivity=sensitivity,
            expires_at=expires_at, fresh=fresh, max_entries=max_entries,
        )  # fmt: skip
        [entry] = self.batch(caller, [draft])
        return entry

    def batch(self, caller: Caller, items: Sequence[EntryDraft]) -> list[Entry]:
        """Keep all of these or none, each as ``store`` would."""
        return [entry_of(record) for record in self._writing.store(caller, items)] if items else []

    def update(
        self,
        caller: Caller,
        id: str,
        *,
        version: int,
        value: Json = UNSET,
        tags: Iterable[str] = UNSET,
        pinned: bool = UNSET,
        priority: str = UNSET,
        ttl: Ttl = UNSET,
    ) -> Entry:
        """Change what is named of an entry that is at that version; the rest stays, and the version rises."""
        listed = tags if tags is UNSET else read_text_list(tags)
        named = {"value": value, "tags": listed, "pinned": pinned, "priority": priority, "ttl": ttl}
        fields = {name: field for name, field in named.items() if field is not UNSET}
        return entry_of(self._writing.update(caller, self._visible_entry(caller, id), version, fields))

    def pin(
        self, caller: Caller, agent: str, key: str, *, namespace: str | None = None, tier: str | None = None,
        task: str | None = None,
    ) -> Entry:  # fmt: skip
        """Let an entry survive every eviction."""
        held = self._find_entries(caller, agent, key, namespace=namespace, tier=tier, task=task)
        return entry_of(self._writing.update(caller, held, None, {"pinned": True}))

    def unpin(
        self, caller: Caller, agent: str, key: str, *, namespace: str | None = None, tier: str | None = None,
        task: str | None = None,
    ) -> Entry:  # fmt: skip
        """Let an entry be evicted again."""
        held = self._find_entries(caller, agent, key, namespace=namespace, tier=tier, task=task)
        return entry_of(self._writing.update(caller, held, None, {"pinned": False}))

    def forget(
        self, caller: Caller, agent: str, key: str, *, namespace: str | None = None, tier: str | None = None,
        task: str | None = None,
    ) -> None:  # fmt: skip
        """Erase an entry for good, with its earlier versions."""
        self._erase(caller, self._find_entries(caller, agent, key, namespace=namespace, tier=tier, task=task))

    def remove(self, caller: Caller, id: str) -> None:
        """Erase an entry for good, by its id."""
        self._erase(caller, self._visible_entry(caller, id))

    def remove_where(self, caller: Caller, where: EntryFilter) -> int:
        """Erase every entry meant that the caller may write to; returns how many."""
        scopes = self._scopes(caller, where, access="write")
        found = self._matching(scopes, where) if scopes else []
        if not found:
            return 0
        ids = frozenset(record.id for record in found)
        [outcome] = self._store.apply([Delete(where=self._writing.where(scopes, ids=ids), emit=EventKind.DELETED)])
        return len(outcome.gone)

    # Reading

    def get(
        self, caller: Caller, agent: str, key: str, *, namespace: str | None = None, tier: str | None = None,
        task: str | None = None,
    ) -> Entry:  # fmt: skip
        """The entry with a key.  Without a tier: of the task's working memory, else the agent's own, else the shared.

        ``agent`` is whose entry it is; the working memory of a task is found too if those before it kept it.
        """
        record = self._find_entries(caller, agent, key, namespace=namespace, tier=tier, task=task)
        self._touch([record])
        return entry_of(record)

    def entry(self, caller: Caller, id: str) -> Entry:
        """An entry by its id."""
        record = self._visible_entry(caller, id)
        self._touch([record])
        return entry_of(record)

    def recall(
        self,
        caller: Caller,
        agent: str,
        *,
        query: str | None = None,
        tags: Iterable[str] = (),
        key: str | None = None,
        tier: str | None = None,
        namespace: str | None = None,
        task: str | None = None,
        limit: int = RECALL_LIMIT,
        brief: bool = False,
    ) -> list[Entry]:
        """Find entries: by words and meaning, best first; without a query the newest first.

        ``tags`` must all be there.  Without a namespace everything that the agent may read is looked at.  ``brief``
        leaves out what is confidential or restricted: it is for a prompt.
        """
        where = EntryFilter(
            agent=agent, namespace=namespace, key=key, tier=tier, tags=read_text_list(tags), task=task, query=query
        )
        wanted = _within(limit)
        scopes = self._scopes(caller, where)
        if not scopes:
            return []
        found = self._search(scopes, where, ALL if brief else wanted)
        shown = [record for record in found if not (brief and entry_of(record).sensitivity in GUARDED)][:wanted]
        self._touch(shown)
        return [entry_of(record) for record in shown]

    def page(self, caller: Caller, where: EntryFilter, *, limit: int = PAGE_LIMIT, offset: int = 0) -> Page:
        """A part of the entries meant, newest first (with a query: best first), and how many there are in all."""
        wanted = _within(limit)
        if not isinstance(offset, int) or offset < 0:
            raise InvalidInput(f"an offset of {offset!r} is before the first entry, or no number")
        scopes = self._scopes(caller, where)
        if not scopes:
            return Page(entries=(), total=0, limit=wanted, offset=offset)
        if where.query is None and _is_plain(where):
            asked = self._filter(scopes, where)
            total = self._store.measure(asked).count
            found = self._store.find(asked, order=Order.NEWEST, limit=min(offset + wanted, ALL))
        else:
            found = self._matching(scopes, where)
            total = len(found)
        entries = tuple(entry_of(record) for record in found[offset : offset + wanted])
        return Page(entries=entries, total=total, limit=wanted, offset=offset)

    def summary(self, caller: Caller, agent: str) -> Summary:
        """How much an agent holds."""
        if caller.agent not in (None, agent):
            raise Forbidden(f"{caller.agent!r} may not see what {agent!r} holds")
        scopes = self._store.scopes_with_records(agent_scope(agent)) or [agent_scope(agent)]
        working = self._writing.where(scopes, kinds=frozenset({Kind.WORKING}))
        episodic = self._writing.where(scopes, kinds=frozenset({Kind.EPISODIC}))
        held, kept = self._store.measure(working), self._store.measure(episodic)
        tasks = {task_of(record.scope) for record in self._store.find(working, order=Order.ID, limit=ALL)}
        ends = [self._store.find(episodic, order=order, limit=1) for order in (Order.OLDEST, Order.NEWEST)]
        oldest, newest = (found[0].created_at if found else None for found in ends)
        return Summary(
            agent=agent, working_count=held.count, working_bytes=held.bytes,
            tasks=tuple(sorted(task for task in tasks if task is not None)), episodic_count=kept.count,
            episodic_bytes=kept.bytes, capacity=self._capacity,
            pinned_count=self._store.measure(episodic.replace(pinned=True)).count, oldest=oldest, newest=newest,
            namespaces=tuple(self._access.shared_namespaces(agent)),
        )  # fmt: skip

    def events(self, caller: Caller, *, after: int = 0, limit: int = 100, agent: str | None = None) -> list[Event]:
        """What happened after that number to what an agent may read; an operator who names none hears all."""
        if agent is not None and caller.agent not in (None, agent):
            return []
        reader = agent if caller.agent is None else caller.agent
        if reader is None:
            scopes = [scope for scope in self._store.scopes() if scope.segments[0][0] in ("agent", "namespace")]
        else:
            shared = [shared_scope(name) for name in self._access.shared_namespaces(reader)]
            scopes = [*self._store.scopes(agent_scope(reader)), *shared]
        return self._store.events(scopes, after=after, limit=_within(limit)) if scopes else []

    def events_floor(self) -> int:
        """Return the number up to which old events were erased, except archives.

        A client that resumes after a lower number may have missed some.
        """
        return self._store.events_floor()

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """Return the newest event number; block until one is newer than ``after`` or the time is over."""
        return self._store.wait_for_event(after=after, seconds=seconds)

    # Namespaces

    def namespaces(self, caller: Caller, agent: str | None = None) -> list[str]:
        """Return the shared namespaces that the caller, or the agent that an operator acts for, may read."""
        if agent is not None and caller.agent not in (None, agent):
            return []
        return self._access.shared_namespaces(agent if caller.agent is None else caller.agent)

    def permissions(self, caller: Caller, namespace: str) -> Permissions:
        """Return the permissions of a namespace; only its administrators may see them."""
        found = self._access.permissions(check_namespace(namespace))
        if found is None or (caller.agent is not None and not found[0].allows(caller.agent, "read")):
            raise NotFound(f"there is no namespace {namespace!r}")
        if not _administers(caller, found[0]):
            raise Forbidden(f"{caller.agent!r} does not administer the namespace {namespace!r}")
        return found[0]

    def permit(self, caller: Caller, namespace: str, permissions: Permissions) -> Permissions:
        """Set the permissions of a namespace; a new one is created and administered by the caller."""
        name = check_namespace(namespace)
        for agent in permissions.allow:
            agent_scope(agent)  # refuses what cannot name an agent
        if caller.agent is not None:
            permissions = permissions.replace(allow=dict(permissions.allow) | {caller.agent: "admin"})

        def plan() -> tuple[list[Change], Permissions]:
            found = self._access.permissions(name)
            if found is not None and not _administers(caller, found[0]):
                raise Forbidden(f"{caller.agent!r} does not administer the namespace {namespace!r}")
            return [self._writing.policy(name, permissions, found[1] if found else None)], permissions

        return self._writer.retry(plan, busy=f"others change the permissions of {namespace!r}")[1]

    # Tasks

    def begin(
        self,
        caller: Caller,
        task: str,
        *,
        agent: str,
        coordinator: str | None = None,
        parent: str | None = None,
        policy: Policy | Mapping[str, Any] | None = None,
    ) -> Task:
        """Begin a task; its working memory is the agent's, to be read by the coordinator and by who takes it over."""
        return self._tasks.begin(caller, task, agent=agent, coordinator=coordinator, parent=parent, policy=policy)

    def assign(self, caller: Caller, task: str, agent: str) -> Task:
        """Hand a task to another agent, which may read what those before it kept."""
        return self._tasks.assign(caller, task, agent)

    def finish(self, caller: Caller, task: str, outcome: str = "completed") -> Task:
        """End a task as completed, failed or cancelled: its working memory is archived and erased."""
        return self._tasks.finish(caller, task, outcome)

    def task(self, caller: Caller, task: str) -> Task:
        """Return a task; only its agents, its coordinator and operators may see it."""
        return self._tasks.get(caller, task)

    def archive(self, caller: Caller, task: str) -> list[Event]:
        """Return the archived working memory of a task: one event for each agent that stored something."""
        return self._tasks.archive_events(caller, task)

    def erase(self, caller: Caller, task: str) -> None:
        """Erase a task with its working memory, its archive and its events."""
        self._tasks.erase(caller, task)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # How reads are made

    def _find_entries(
        self, caller: Caller, agent: str, key: str, *, namespace: str | None, tier: str | None, task: str | None
    ) -> Record:
        """Return the nearest entry with a key that the caller may see."""
        tiers = tuple(TIERS) if tier is None else (check_tier(tier),)
        where = check_namespace(namespace)
        places = self._places(caller, agent, tiers, where, task)
        if not isinstance(key, str):
            raise InvalidInput(f"{key!r} cannot name a key: it is no text")
        kept = self._writing.name(key)
        asked = self._writing.where([scope for scope, _ in places], keys=frozenset({kept})) if places else None
        found = self._store.find(asked, order=Order.ID, limit=ALL) if asked else []
        by_place = {(record.scope, record.kind): record for record in found}
        for place in places:
            record = by_place.get(place)
            shared = record is not None and record.kind is Kind.SEMANTIC
            if record is not None and (not shared or self._access.may(agent, where, "read")):
                return record
        raise NotFound(f"there is no entry {key!r} of {agent!r} in the namespace {where!r}")

    def _places(
        self, caller: Caller, agent: str, tiers: Sequence[str], namespace: str, task: str | None
    ) -> list[tuple[Scope, Kind]]:
        """Return the scopes and kinds in which an entry with a key can be, nearest first."""
        reader = self._access.reading(caller, agent)
        places: list[tuple[Scope, Kind]] = []
        if "working" in tiers and task is not None:
            views = self._access.views(reader, task)
            if reader != agent:
                views = [view for view in views if view[0] == agent]
            places += [(agent_scope(owner, task=of, namespace=namespace), Kind.WORKING) for owner, of in views]
        if reader != agent:
            return places
        if "working" in tiers and task is None:
            places.append((agent_scope(agent, namespace=namespace), Kind.WORKING))
        rest = [tier for tier in ("episodic", "semantic") if tier in tiers]
        return places + [(scope_of(tier, agent, task=None, namespace=namespace), TIERS[tier]) for tier in rest]

    def _visible_entry(self, caller: Caller, id: str) -> Record:
        record = self._store.get(id) if is_id(id) else None
        known = record is not None and record.category == ENTRY and record.kind.value in TIERS
        if record is None or not known or record.state(self._clock()) is not State.LIVE:
            raise NotFound(f"there is no entry {id!r}")
        if not self._access.sees(caller, record):
            raise NotFound(f"there is no entry {id!r}")
        return record

    def _scopes(self, caller: Caller, where: EntryFilter, *, access: str = "read") -> list[Scope]:
        """Return the scopes of a filter that the caller may use."""
        if where.tier is not None:
            check_tier(where.tier)
        if where.agent is not None:
            agent_scope(where.agent)
        anybody = caller.agent is None and where.agent is None and where.task is None
        if anybody and where.tier in ("working", "episodic"):
            raise InvalidInput(f"name the agent whose {where.tier} entries are meant")
        return self._access.scopes(caller, where, access=access)

    def _filter(self, scopes: Iterable[Scope], where: EntryFilter) -> Filter:
        kinds = frozenset(TIERS.values()) if where.tier is None else frozenset({TIERS[where.tier]})
        keys = None if where.key is None else frozenset({self._writing.name(where.key)})
        tags = frozenset(self._writing.name(tag) for tag in where.tags)
        return self._writing.where(scopes, kinds=kinds, keys=keys, tags=tags, pinned=where.pinned)

    def _matching(self, scopes: Iterable[Scope], where: EntryFilter) -> list[Record]:
        """Return all entries that match, in order."""
        found = self._search(scopes, where, ALL)
        wanted = where.replace(tags_any=tuple(self._writing.name(tag) for tag in where.tags_any))
        return [record for record in found if _is_meant(entry_of(record), wanted)]

    def _search(self, scopes: Iterable[Scope], where: EntryFilter, limit: int) -> list[Record]:
        """Return entries by rank, or by date without a query; equal texts under different keys are all kept."""
        asked, found = self._filter(scopes, where), None
        if where.query is not None:
            candidates = min(max(CANDIDATES, 2 * limit), CANDIDATES_MOST)
            found = search(
                self._store, self._writer.embedder, asked, where.query, limit=limit, candidates=candidates
            )  # fmt: skip
        if found is None:
            return self._store.find(asked, order=Order.NEWEST, limit=limit)
        return [hit.record for hit in found if hit.record]

    def _touch(self, records: Sequence[Record]) -> None:
        """Count a read of episodic entries, which protects them from eviction; a read-only store still answers."""
        count_use(self._store, [record.id for record in records if record.kind is Kind.EPISODIC], self._clock())

    def _erase(self, caller: Caller, record: Record) -> None:
        self._access.check_owner(caller, record)
        where = self._writing.where([record.scope], ids=frozenset({record.id}))
        self._store.apply([Delete(where=where, emit=EventKind.DELETED)])


def _administers(caller: Caller, permissions: Permissions) -> bool:
    return caller.agent is None or caller.admin or permissions.allows(caller.agent, "admin")


def _within(limit: int) -> int:
    if not isinstance(limit, int) or limit < 1:
        raise InvalidInput(f"a limit of {limit!r} would find nothing")
    return min(limit, PAGE_MOST)


def _is_plain(where: EntryFilter) -> bool:
    """Tell whether the store can answer a filter alone."""
    further = (where.tags_any, where.intent, where.updated_after, where.updated_before)
    return not any(further) and (where.task is None or where.tier == "working")


def _is_meant(entry: Entry, where: EntryFilter) -> bool:
    """Check the conditions that the store cannot."""
    return (
        (not where.tags_any or not set(where.tags_any).isdisjoint(entry.tags))
        and (where.intent is None or entry.intent == where.intent)
        and (where.task is None or entry.tier == "working" or entry.task == where.task)
        and (where.updated_after is None or entry.updated_at > where.updated_after)
        and (where.updated_before is None or entry.updated_at < where.updated_before)
    )

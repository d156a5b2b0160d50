"""How entries are stored: drafts become changes, all of one call become one transaction.

What has expired where something is written goes with it; what makes room for it goes with it; what does not fit is
refused by the database, in the transaction, so that no two writers can each take the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from commonplace.engine.admission import Admitted, Gate
from commonplace.engine.writer import Writer
from commonplace.intents.access import ACTIVE, PERMISSIONS, Access, policy_scope, task_scope
from commonplace.intents.entries import (
    ENTRY,
    PRIORITIES,
    SENSITIVITIES,
    TASK_LIFETIME,
    TIERS,
    Caller,
    EntryDraft,
    Permissions,
    Task,
    Ttl,
    agent_of,
    agent_scope,
    check_namespace,
    check_tier,
    lifetime,
    one_of,
    read_text_list,
    scope_of,
)
from commonplace.intents.retention import Retention
from commonplace.model.binding import Binding
from commonplace.model.changes import Cap, Change, Delete, Put, Require, Trim
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from commonplace.model.events import EventKind
from commonplace.model.queries import Filter, Order, State
from commonplace.model.records import EMPTY, Channel, Draft, Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

VALUE_BYTES = 65_536  # as JSON; more belongs into a file that the value names
BATCH_MOST = 1000
KIBIBYTE = 1024


class PlannedWrite(Value):
    """One entry on its way into the store."""

    put: Put
    task: Task | None = None  #: that it is working memory of, and that must be open
    max_entries: int | None = None

    @property
    def record(self) -> Record:
        """As it will be."""
        return self.put.record

    @property
    def is_new(self) -> bool:
        """Whether it makes one entry more."""
        return self.put.expect == 0


class Writing:
    """Turns drafts into changes, and writes them."""

    def __init__(self, writer: Writer, access: Access, *, capacity: int, retention: Retention) -> None:
        self._writer = writer
        self._store = writer.store
        self._clock = writer.clock
        self._access = access
        self._capacity = capacity
        self._retention = retention

    def store(self, caller: Caller, drafts: Sequence[EntryDraft]) -> list[Record]:
        """Store all of these or none."""
        if len(drafts) > BATCH_MOST:
            raise InvalidInput(f"a batch of {len(drafts)} entries is too long; {BATCH_MOST} are the most")
        return self._write(lambda: self._plan_drafts(caller, drafts))

    def update(self, caller: Caller, record: Record, version: int | None, fields: Mapping[str, Any]) -> Record:
        """Put the next version of an entry; without a version, on the current one."""
        known = [record]  # it was read just now; the database says if that is not what is there

        def plan() -> tuple[list[Change], list[PlannedWrite]]:
            held = known.pop() if known else self._store.get(record.id)
            if held is None or held.state(self._clock()) is not State.LIVE:
                raise NotFound(f"there is no entry {record.id!r}")
            if version is not None and held.version != version:
                raise stale(held, version)
            task = self._access.check_write(caller, held)
            return [], [PlannedWrite(put=self._put(self._with_changes(caller, held, fields), held), task=task)]

        [changed] = self._write(plan)
        return changed

    def _write(self, plan: Callable[[], tuple[list[Change], list[PlannedWrite]]]) -> list[Record]:
        """Plan on the stored state, and again if it changed meanwhile; plans refuse versions that are not expected."""

        def changes() -> tuple[list[Change], list[PlannedWrite]]:
            before, planned = plan()
            return [*before, *self._changes(planned)], planned

        written, planned = self._writer.retry(
            changes, busy="the key is changed by others all the time, or taken by what is no entry"
        )
        self._retention.look()
        stored = {record.id: record for outcome in written.outcomes for record in outcome.records}
        return [stored[one.record.id] for one in planned]

    # From drafts to puts

    def _plan_drafts(self, caller: Caller, drafts: Sequence[EntryDraft]) -> tuple[list[Change], list[PlannedWrite]]:
        claims: dict[str, tuple[str, Change]] = {}
        planned: dict[tuple[Scope, Kind, str | None], PlannedWrite] = {}
        for draft in drafts:
            one = self._plan_draft(caller, draft, claims)
            name = (one.record.scope, one.record.kind, one.record.key)
            if name in planned:
                raise InvalidInput(f"the key {draft.key!r} is in this batch twice")
            planned[name] = one
        return [claim for _, claim in claims.values()], list(planned.values())

    def _plan_draft(self, caller: Caller, draft: EntryDraft, claims: dict[str, tuple[str, Change]]) -> PlannedWrite:
        tier, namespace = check_tier(draft.tier), check_namespace(draft.namespace)
        agent = self._access.acting(caller, draft.agent)
        scope_of("working", agent, task=draft.task, namespace=namespace)  # refuses what can name nothing
        task = None
        if tier == "semantic":
            self._enter(agent, namespace, claims)
        if tier == "working" and draft.task is not None:
            task = self._access.writable_task(agent, draft.task)
        scope = scope_of(tier, agent, task=draft.task, namespace=namespace)
        held = self.live_entry(scope, TIERS[tier], draft.key)
        _check_version(draft, held)
        kept = held.metadata if held else EMPTY
        metadata: dict[str, Json] = {
            "agent": (kept.get("agent") or agent) if tier == "semantic" else None, "task": draft.task,
            "intent": draft.intent, "ttl": draft.ttl,
            "priority": draft.priority or kept.get("priority"),
            "sensitivity": draft.sensitivity or kept.get("sensitivity"),
        }  # fmt: skip
        admitted = self._admit_entry(
            scope, TIERS[tier], draft.key, draft.value, tags=draft.tags,
            metadata=_metadata(metadata, tier=tier, writer=agent),
            pinned=draft.pinned if draft.pinned is not None else bool(held and held.pinned),
            expires_at=self._end(draft, tier),
        )  # fmt: skip
        return PlannedWrite(put=self._put(admitted, held), task=task, max_entries=draft.max_entries)

    def _with_changes(self, caller: Caller, held: Record, fields: Mapping[str, Any]) -> Admitted:
        """An entry with some fields changed passes the gate like a new one."""
        tier = held.kind.value
        metadata = dict(held.metadata) | {name: fields[name] for name in ("priority", "ttl") if name in fields}
        writer = caller.agent or str(metadata.get("curated_by") or agent_of(held.scope))
        expires_at = self._expiry(fields["ttl"], tier) if "ttl" in fields else held.expires_at
        return self._admit_entry(
            held.scope, held.kind, held.key or held.id, fields.get("value", held.value),
            tags=read_text_list(fields.get("tags", held.tags)), metadata=_metadata(metadata, tier=tier, writer=writer),
            pinned=fields.get("pinned", held.pinned), expires_at=expires_at,
        )  # fmt: skip

    def _enter(self, agent: str, namespace: str, claims: dict[str, tuple[str, Change]]) -> None:
        """The first to write to a namespace administers it; everybody after that needs the right."""
        found = self._access.permissions(namespace)
        if found is None and namespace not in claims:
            claims[namespace] = agent, self.policy(namespace, Permissions(allow={agent: "admin"}), None)
        allowed = found[0].allows(agent, "write") if found else claims[namespace][0] == agent
        if not allowed:
            raise Forbidden(f"{agent!r} may not write to the namespace {namespace!r}")

    def policy(self, namespace: str, permissions: Permissions, held: Record | None) -> Put:
        """The change that stores a namespace's permissions."""
        value: dict[str, Json] = {"default": permissions.default, "allow": dict(permissions.allow)}
        return self.own_record(policy_scope(namespace), PERMISSIONS, value, held, category="policy", kind=Kind.SEMANTIC)

    def own_record(
        self, scope: Scope, key: str, value: Json, held: Record | None, *, category: str, kind: Kind = Kind.WORKING
    ) -> Put:
        """The change that stores a record of intent memory's own."""
        draft = Draft(key=key, value=value, kind=kind, category=category)
        put = self._put(self._admit(draft, scope, kind), held, emit=False)
        return put.replace(terms=())  # not searchable

    def _admit_entry(
        self, scope: Scope, kind: Kind, key: str, value: Json, *, tags: Iterable[str], metadata: Mapping[str, Json],
        pinned: bool, expires_at: datetime | None,
    ) -> Admitted:  # fmt: skip
        draft = Draft(
            content=_searchable_text(value), category=ENTRY, kind=kind, key=key, value=value, tags=frozenset(tags),
            metadata=metadata, pinned=pinned, expires_at=expires_at,
        )  # fmt: skip
        admitted = self._admit(draft, scope, kind)
        size = len(admitted.record.value.encode()) if isinstance(admitted.record.value, str) else 0
        if size > VALUE_BYTES:  # the blanks around a text are part of the value, but not of what is shown of it
            raise InvalidInput(f"the value has {size} bytes; the limit is {VALUE_BYTES}")
        return admitted

    def _admit(self, draft: Draft, scope: Scope, kind: Kind) -> Admitted:
        binding = Binding(
            channel=Channel.AGENT, writes={kind: scope}, reads=(scope,), content_bytes=VALUE_BYTES, filed=False
        )
        return self._writer.admit(draft, binding)

    def _end(self, draft: EntryDraft, tier: str) -> datetime | None:
        """Return when an entry expires: at ``expires_at``, else after its ttl; both must be in the future."""
        after = self._expiry(draft.ttl, tier)
        if draft.expires_at is not None and draft.expires_at <= self._clock():
            raise InvalidInput(f"an entry that ends at {draft.expires_at} would expire at once")
        return draft.expires_at or after

    def _expiry(self, ttl: Ttl, tier: str) -> datetime | None:
        if ttl == TASK_LIFETIME and tier != "working":
            raise InvalidInput(f"a ttl of {TASK_LIFETIME!r} is for working memory, not for {tier}")
        length = lifetime(ttl)
        try:
            return None if length is None else self._clock() + length
        except OverflowError:
            raise InvalidInput(f"a ttl of {ttl!r} ends after the last day of the calendar") from None

    def _put(self, admitted: Admitted, held: Record | None, *, emit: bool = True) -> Put:
        record = admitted.record
        if held is not None:
            record = record.replace(id=held.id, created_at=held.created_at)
        return Put(record=record, terms=admitted.terms, expect=held.version if held else 0, emit=emit)

    def live_entry(self, scope: Scope, kind: Kind, key: str) -> Record | None:
        """Return the live entry with a key."""
        where = self.where([scope], kinds=frozenset({kind}), keys=frozenset({self.name(key)}))
        return next(iter(self._store.find(where, order=Order.NEWEST, limit=1)), None)

    def name(self, key: str) -> str:
        """Return a key as it is stored: cleaned, and without secrets."""
        return Gate(self._writer.secret()).text(key, what="the key")

    def where(self, scopes: Iterable[Scope], **fields: Any) -> Filter:
        """Return a filter for the entries of some scopes."""
        return Filter(scopes=frozenset(scopes), at=self._clock(), categories=frozenset({ENTRY}), **fields)

    # From puts to one transaction

    def _changes(self, planned: Sequence[PlannedWrite]) -> list[Change]:
        expired = self.where({one.record.scope for one in planned}, states=frozenset({State.EXPIRED}))
        open_tasks = {one.task.id: one.task for one in planned if one.task}
        return [
            *(self._open(task) for task in open_tasks),
            Delete(where=expired, emit=EventKind.EXPIRED),
            *(one.put for one in planned),
            *self._room(planned),
            *(cap for task in open_tasks.values() for cap in self._within(task, planned)),
        ]

    def _open(self, task: str) -> Require:
        """Require that the task is active, so that nothing is written to its working memory after its end."""
        where = Filter(scopes=frozenset({task_scope(task)}), at=self._clock(), categories=frozenset({ACTIVE}))
        return Require(where=where, count=1)

    def _room(self, planned: Sequence[PlannedWrite]) -> Iterable[Change]:
        """Trim episodic memory to its limit, but for what was just written; other tiers have a cap instead."""
        new = [one for one in planned if one.is_new]
        for scope, kind in dict.fromkeys((one.record.scope, one.record.kind) for one in new):
            here = [one for one in new if (one.record.scope, one.record.kind) == (scope, kind)]
            limits = [one.max_entries for one in here if one.max_entries is not None]
            most = min(limits) if limits else self._capacity if kind is Kind.EPISODIC else None
            if most is None:
                continue
            where = self.where([scope], kinds=frozenset({kind}))
            if kind is Kind.EPISODIC:
                spare = tuple(one.record.id for one in planned)
                yield Trim(where=where, keep=most, order=Order.EXPENDABLE, spare=spare, emit=True)
            yield Cap(where=where, max_records=most)

    def _within(self, task: Task, planned: Sequence[PlannedWrite]) -> Iterable[Cap]:
        """Return the limits of a task, over all its agents."""
        policy = task.policy
        if policy.max_entries is None and policy.max_total_size_kb is None:
            return
        own = {one.record.scope for one in planned if one.task and one.task.id == task.id}
        roots = tuple(agent_scope(agent, task=task.id) for agent in task.agents)
        grows = any(one.is_new for one in planned if one.task and one.task.id == task.id)
        size = None if policy.max_total_size_kb is None else policy.max_total_size_kb * KIBIBYTE
        yield Cap(where=self.where(own), below=roots, max_records=policy.max_entries if grows else None, max_bytes=size)


def stale(held: Record, version: int) -> Conflict:
    """Return the error for a caller that expects an earlier version."""
    message = f"the entry {held.key!r} is at version {held.version}, not {version}: it was changed meanwhile"
    return Conflict(message, current=held.version, holder=held.id)


def _check_version(draft: EntryDraft, held: Record | None) -> None:
    """Refuse a draft that expects another version than the stored one."""
    if draft.version is not None and draft.version < 0:
        raise InvalidInput(f"{draft.version} is not a version")
    if held is None:
        if draft.version:
            raise Conflict(f"there is no entry {draft.key!r}, so it is not at version {draft.version}", current=0)
        return
    if draft.fresh or draft.version == 0:
        raise Conflict(f"there is an entry {draft.key!r} already", current=held.version, holder=held.id)
    if draft.version is not None and draft.version != held.version:
        raise stale(held, draft.version)


def _metadata(fields: Mapping[str, Json], *, tier: str, writer: str) -> dict[str, Json]:
    """Return the metadata of an entry; for shared knowledge with its last writer."""
    for name, words in {"priority": PRIORITIES, "sensitivity": SENSITIVITIES}.items():
        if fields.get(name) is not None:
            one_of(str(fields[name]), words, f"a {name}")
    curated: dict[str, Json] = {"curated_by": writer} if tier == "semantic" else {}
    return {name: value for name, value in (dict(fields) | curated).items() if value is not None}


def _searchable_text(value: Json) -> str:
    """Return the text that an entry is found by and shown as; empty for other JSON, which the gate renders."""
    if value is None:
        return "null"
    return value if isinstance(value, str) and value.strip() else ""

"""Access rules of intent memory, checked by every read and every write.

An agent's own entries are private.  The working memory of a task is open to the agent that the task is assigned to, to
its coordinator, and to agents of tasks below it that inherit.  A shared namespace has permissions: the first agent that
writes to it administers it, and by default all others may read.  An entry that a caller may not see is reported as
missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from commonplace.intents.entries import (
    DEFAULT,
    Caller,
    EntryFilter,
    Permissions,
    Policy,
    Task,
    agent_of,
    agent_scope,
    make_scope,
    namespace_of,
    shared_scope,
    task_of,
)
from commonplace.model.errors import Forbidden, NotFound
from commonplace.model.ports import Clock, Store
from commonplace.model.queries import Filter, Order
from commonplace.model.records import Record
from commonplace.model.scopes import Scope

ALL = 1_000_000  # rows: more than any list of one agent
ACTIVE = "active"  # the category of a task's record while it lasts: a write can require it
ENDED = "ended"
TASK = "task"
POLICIES = Scope.of(("server", "namespaces"))  # whose permissions lie below it, one scope each
PERMISSIONS = "permissions"


class Access:
    """Applies the rules to the tasks and namespaces in the store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    # Who acts

    def acting(self, caller: Caller, agent: str) -> str:
        """Return the agent that a write is made for; only an operator may write for another agent."""
        if caller.agent not in (None, agent):
            raise Forbidden(f"{caller.agent!r} may not write for {agent!r}")
        return agent

    def reading(self, caller: Caller, agent: str) -> str:
        """Return the agent that a read is made for: the caller, or the named agent if the caller is an operator."""
        return agent if caller.agent is None else caller.agent

    # Namespaces

    def permissions(self, namespace: str) -> tuple[Permissions, Record] | None:
        """Return the permissions of a namespace and their record; None if it has no entries yet."""
        record = self._one(policy_scope(namespace), PERMISSIONS)
        return None if record is None else (permissions_of(record), record)

    def policies(self) -> dict[str, Permissions]:
        """Return the permissions of every namespace."""
        scopes = [scope for scope in self._store.scopes(POLICIES) if scope != POLICIES]
        if not scopes:
            return {}
        where = Filter(scopes=frozenset(scopes), at=self._clock(), keys=frozenset({PERMISSIONS}))
        found = self._store.find(where, order=Order.ID, limit=ALL)
        return {namespace_of(record.scope): permissions_of(record) for record in found}

    def may(self, agent: str, namespace: str, access: str) -> bool:
        """Tell whether an agent has this access to a namespace that exists."""
        found = self.permissions(namespace)
        return found is not None and found[0].allows(agent, access)

    def shared_namespaces(self, agent: str | None, access: str = "read") -> list[str]:
        """Return the namespaces that an agent has this access to; all of them if ``agent`` is None."""
        found = self.policies().items()
        return sorted(name for name, held in found if agent is None or held.allows(agent, access))

    # Tasks

    def task(self, id: str) -> tuple[Task, Record] | None:
        """Return a task and its record; None if there is none."""
        record = self._one(task_scope(id), TASK)
        return None if record is None else (task_in(record), record)

    def views(self, agent: str, task: str) -> list[tuple[str, str]]:
        """Return the working memories that an agent may read, nearest first, as (owner, task)."""
        found = self.task(task)
        if found is None or not found[0].is_open_to(agent):
            return [(agent, task)]
        others = [(owner, task) for owner in found[0].agents if owner != agent]
        heir = found[0].assigned == agent and found[0].status == ACTIVE
        return [(agent, task), *others, *(self._inherited_views(found[0]) if heir else [])]

    def _inherited_views(self, task: Task) -> list[tuple[str, str]]:
        """Return the working memories of parent tasks that the assigned agent may read while the task is active."""
        seen: set[str] = {task.id}
        found: list[tuple[str, str]] = []
        while task.policy.inherit_from_parent and task.parent and task.parent not in seen:
            above = self.task(task.parent)
            if above is None:
                break
            task = above[0]
            seen.add(task.id)
            found += [(owner, task.id) for owner in task.agents]
        return found

    def writable_task(self, agent: str, task: str) -> Task | None:
        """Return the task if the agent may write to its working memory; None if no task was begun: then it may."""
        found = self.task(task)
        if found is None:
            return None
        if found[0].assigned != agent:
            raise Forbidden(f"the task {task!r} is not assigned to {agent!r}")
        if found[0].status != ACTIVE:
            raise Forbidden(f"the task {task!r} is {found[0].status}; its working memory takes nothing more")
        return found[0]

    # Entries

    def sees(self, caller: Caller, record: Record) -> bool:
        """Tell whether a caller may read an entry."""
        owner = agent_of(record.scope)
        if caller.agent is None or caller.agent == owner:
            return True
        if owner is None:
            return self.may(caller.agent, namespace_of(record.scope), "read")
        task = task_of(record.scope)
        found = None if task is None else self.task(task)
        return found is not None and owner in found[0].agents and found[0].is_open_to(caller.agent)

    def check_owner(self, caller: Caller, record: Record) -> None:
        """Refuse to erase an entry that the caller can see but may not write."""
        owner, namespace = agent_of(record.scope), namespace_of(record.scope)
        if owner is not None:
            self.acting(caller, owner)
        elif caller.agent is not None and not self.may(caller.agent, namespace, "write"):
            raise Forbidden(f"{caller.agent!r} may not write to the namespace {namespace!r}")

    def check_write(self, caller: Caller, record: Record) -> Task | None:
        """Refuse a change, also if the task was reassigned; return the task, if one was begun."""
        self.check_owner(caller, record)
        owner, task = agent_of(record.scope), task_of(record.scope)
        return None if owner is None or task is None else self.writable_task(owner, task)

    def scopes(self, caller: Caller, where: EntryFilter, *, access: str = "read") -> list[Scope]:
        """Return the scopes of a filter that the caller may read (or write)."""
        tiers = ("working", "episodic", "semantic") if where.tier is None else (where.tier,)
        reader = self.reading(caller, where.agent) if where.agent is not None else caller.agent
        found: list[Scope] = []
        if "working" in tiers:
            found += self._working(reader, where, access)
        if "episodic" in tiers and reader is not None and where.agent in (None, reader):
            found += [scope for scope in self._below(agent_scope(reader), where) if task_of(scope) is None]
        if "semantic" in tiers and where.agent in (None, reader):
            found += self._semantic(reader, where, access)
        return [scope for scope in dict.fromkeys(found) if matches(namespace_of(scope), where.namespace)]

    def _working(self, reader: str | None, where: EntryFilter, access: str) -> Iterable[Scope]:
        if where.task is None:
            own = reader is not None and where.agent in (None, reader)
            return self._below(agent_scope(reader), where) if own and reader is not None else []
        if reader is None:
            task = self.task(where.task)
            views = [(owner, where.task) for owner in task[0].agents] if task else []
        else:
            views = self.views(reader, where.task)
        if access != "read":
            views = [view for view in views if reader in (None, view[0]) and view[1] == where.task]
        if where.agent not in (None, reader):
            views = [view for view in views if view[0] == where.agent]
        return [scope for owner, task in views for scope in self._below(agent_scope(owner, task=task), where)]

    def _semantic(self, reader: str | None, where: EntryFilter, access: str) -> Iterable[Scope]:
        if where.namespace is not None and not where.namespace.endswith("*"):
            if reader is None or self.may(reader, where.namespace, access):
                return [shared_scope(where.namespace)]
            return []
        return [shared_scope(name) for name in self.shared_namespaces(reader, access)]

    def _below(self, scope: Scope, where: EntryFilter) -> Sequence[Scope]:
        """Return a scope and its namespaces, as far as they hold entries; a single namespace needs no lookup.

        Tasks that have ended left empty scopes behind, with their archives: there may be thousands.
        """
        if where.namespace is None or where.namespace.endswith("*"):
            return self._store.scopes_with_records(scope)
        if where.task is None and where.tier != "episodic":  # of every task
            return self._store.scopes_with_records(scope)
        return [scope if where.namespace == DEFAULT else below(scope, where.namespace)]

    def _one(self, scope: Scope, key: str) -> Record | None:
        where = Filter(scopes=frozenset({scope}), at=self._clock(), keys=frozenset({key}))
        return next(iter(self._store.find(where, order=Order.NEWEST, limit=1)), None)


def task_scope(id: str) -> Scope:
    """Return the scope of a task's record."""
    return make_scope(("task", id))


def policy_scope(namespace: str) -> Scope:
    """Return the scope of a namespace's permissions."""
    return below(POLICIES, namespace)


def below(scope: Scope, namespace: str) -> Scope:
    """Return the scope of a namespace inside another scope."""
    return Scope(segments=(*scope.segments, ("namespace", namespace)))


def matches(namespace: str, asked: str | None) -> bool:
    """Tell whether a namespace matches: by its name, or by a prefix that ends in a star."""
    if asked is None:
        return True
    return namespace.startswith(asked[:-1]) if asked.endswith("*") else namespace == asked


def visible_task(reader: Caller, task: Task) -> Task:
    """Return the task; raise ``NotFound`` if the reader is neither its agent nor its coordinator."""
    if reader.agent is not None and reader.agent not in (*task.agents, task.coordinator):
        raise NotFound(f"there is no task {task.id!r}")
    return task


def permissions_of(record: Record) -> Permissions:
    """Return the permissions stored in a record."""
    value: Mapping[str, Any] = record.value if isinstance(record.value, dict) else {}
    return Permissions(default=value["default"], allow=value["allow"])


def task_in(record: Record) -> Task:
    """Return the task stored in a record."""
    value: Mapping[str, Any] = record.value if isinstance(record.value, dict) else {}
    return Task(
        id=record.scope.name, status=value["status"], assigned=value["assigned"], former=tuple(value["former"]),
        coordinator=value["coordinator"], parent=value["parent"], policy=Policy(**value["policy"]),
    )  # fmt: skip


def task_value(task: Task) -> dict[str, Any]:
    """Return a task as the value of its record."""
    policy = {field: getattr(task.policy, field) for field in Policy.fields}
    named = {"status": task.status, "assigned": task.assigned, "former": list(task.former)}
    return named | {"coordinator": task.coordinator, "parent": task.parent, "policy": policy}

"""Tasks: begin, assign, finish and erase; at the end their working memory is archived and erased.

Only a task's agents, its coordinator and operators see it.  Only an operator assigns work to another agent: otherwise
any agent could become coordinator of the entries that another one stores for a task of that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.engine.writer import Writer
from commonplace.intents.access import (
    ACTIVE,
    ALL,
    ENDED,
    TASK,
    Access,
    task_scope,
    task_value,
    visible_task,
)
from commonplace.intents.entries import (
    OUTCOMES,
    Caller,
    Policy,
    Task,
    agent_scope,
    namespace_of,
    one_of,
)
from commonplace.intents.writing import Writing
from commonplace.model.changes import Change, Delete, DropScope, Emit, Require, versions_digest
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from commonplace.model.events import Event, EventKind
from commonplace.model.queries import ANY_STATE, Order
from commonplace.model.records import Json, Record
from commonplace.model.scopes import Scope


class TaskManager:
    """Begins, assigns, finishes and erases tasks."""

    def __init__(self, writer: Writer, access: Access, writing: Writing) -> None:
        self._writer = writer
        self._store = writer.store
        self._access = access
        self._writing = writing

    def get(self, caller: Caller, id: str) -> Task:
        """Return a task; only its agents, its coordinator and operators may see it."""
        found = self._access.task(id)
        if found is None:
            raise NotFound(f"there is no task {id!r}")
        return visible_task(caller, found[0])

    def begin(
        self,
        caller: Caller,
        id: str,
        *,
        agent: str,
        coordinator: str | None,
        parent: str | None,
        policy: Policy | Mapping[str, Any] | None,
    ) -> Task:
        """Begin a task for an agent."""
        if caller.agent not in (None, agent):
            raise Forbidden(f"{caller.agent!r} may not begin a task for {agent!r}")
        for name in (agent, *([] if coordinator is None else [coordinator])):
            agent_scope(name)  # refuses what cannot name an agent
        if parent is not None and not self._is_open(caller, parent):
            raise NotFound(f"there is no task {parent!r}")
        task = Task(id=id, assigned=agent, coordinator=coordinator, parent=parent, policy=_policy(policy))
        try:
            self._store.apply([self._put(task, None)])
        except Conflict:
            raise Conflict(f"there is a task {id!r} already") from None
        return task

    def assign(self, caller: Caller, id: str, agent: str) -> Task:
        """Assign a task to another agent, which may read the working memory of those before it."""
        self.get(caller, id)  # callers who may not see it get NotFound
        if caller.agent is not None:
            raise Forbidden(f"{caller.agent!r} may not assign the task {id!r}: only an operator may")
        agent_scope(agent)

        def plan() -> tuple[list[Change], Task]:
            task, held = self._find_task(caller, id)
            if task.status != ACTIVE:
                raise Conflict(f"the task {id!r} is {task.status}")
            former = tuple(name for name in (*task.former, task.assigned) if name != agent)
            after = task.replace(assigned=agent, former=former)
            return [self._put(after, held)], after

        return self._writer.retry(plan, busy=f"others change the task {id!r}")[1]

    def finish(self, caller: Caller, id: str, outcome: str) -> Task:
        """End a task: nothing more can be written to its working memory, which is archived and erased.

        Ending it again does what an interrupted end left undone, and nothing else.
        """
        one_of(outcome, OUTCOMES, "an outcome")

        def plan() -> tuple[list[Change], Task]:
            task, held = self._find_task(caller, id)
            if caller.agent not in (None, task.assigned, task.coordinator):
                raise Forbidden(f"{caller.agent!r} may not end the task {id!r}")
            if task.status not in (ACTIVE, outcome):
                raise Conflict(f"the task {id!r} is {task.status} already")
            after = task.replace(status=outcome)
            return [] if task.status == outcome else [self._put(after, held)], after

        _, task = self._writer.retry(plan, busy=f"others change the task {id!r}")
        self._archive(task)
        return task

    def archive_events(self, caller: Caller, id: str) -> list[Event]:
        """Return the archived working memory of a task: one event for each agent that stored something."""
        task = self.get(caller, id)
        all_of_it = caller.agent is None or task.is_open_to(caller.agent)
        owners = task.agents if all_of_it else tuple(name for name in task.agents if name == caller.agent)
        scopes = [agent_scope(owner, task=id) for owner in owners]
        events = self._store.events(scopes, limit=ALL) if scopes else []
        return [event for event in events if event.what is EventKind.ARCHIVED]

    def erase(self, caller: Caller, id: str) -> None:
        """Erase a task with its working memory, its archive and its events."""
        task, _ = self._find_task(caller, id)
        if caller.agent not in (None, task.coordinator) and (caller.agent,) != task.agents:
            raise Forbidden(f"{caller.agent!r} may not erase the task {id!r}")
        scopes = [task_scope(id), *(agent_scope(owner, task=id) for owner in task.agents)]
        self._store.apply([DropScope(scope=scope) for scope in scopes])

    # How

    def _is_open(self, caller: Caller, id: str) -> bool:
        found = self._access.task(id)
        return found is not None and (caller.agent is None or found[0].is_open_to(caller.agent))

    def _find_task(self, caller: Caller, id: str) -> tuple[Task, Record]:
        found = self._access.task(id)
        if found is None:
            raise NotFound(f"there is no task {id!r}")
        return visible_task(caller, found[0]), found[1]

    def _put(self, task: Task, held: Record | None) -> Change:
        category = ACTIVE if task.status == ACTIVE else ENDED
        return self._writing.own_record(task_scope(task.id), TASK, task_value(task), held, category=category)

    def _archive(self, task: Task) -> None:
        """Snapshot and erase what each agent stored, in one transaction; a concurrent forget makes it plan again."""

        def plan() -> tuple[list[Change], None]:
            return [change for owner in task.agents for change in self._ending(task, owner)], None

        self._writer.retry(plan, busy=f"others change the working memory of the task {task.id!r}")

    def _ending(self, task: Task, owner: str) -> list[Change]:
        root = agent_scope(owner, task=task.id)
        scopes = self._store.scopes(root)
        if not scopes:
            return []
        where = self._writing.where(scopes, states=ANY_STATE)
        held = self._store.find(where, order=Order.OLDEST, limit=ALL)
        live = [record for record in held if record.state(where.at).value == "live"]
        if not held:
            return []
        if not task.policy.archive_on_completion:
            return [Delete(where=where, emit=EventKind.DELETED)]
        return [
            Require(where=where, digest=versions_digest((record.id, record.version) for record in held)),
            Emit(event=_snapshot(root, live, task, where.at)),
            Delete(where=where),
        ]


def _snapshot(scope: Scope, records: Sequence[Record], task: Task, at: Any) -> Event:
    shown: list[Json] = [
        {
            "namespace": namespace_of(record.scope),
            "key": record.key,
            "value": record.value,
            "tags": [*sorted(record.tags)],
        }
        for record in records
    ]
    detail: dict[str, Json] = {
        "task": task.id, "outcome": task.status, "entries_archived": len(shown), "snapshot": shown,
    }  # fmt: skip
    return Event(what=EventKind.ARCHIVED, at=at, scope=scope, detail=detail)


def _policy(given: Policy | Mapping[str, Any] | None) -> Policy:
    if given is None or isinstance(given, Policy):
        return given or Policy()
    if not isinstance(given, Mapping):
        raise InvalidInput(f"a memory policy should be a mapping, not {given!r}")
    if unknown := sorted(set(given) - set(Policy.fields)):
        raise InvalidInput(f"{unknown[0]!r} is not part of a memory policy; use {', '.join(Policy.fields)}")
    return Policy(**given)

"""Intents: what agents are assigned, from the assignment to its end, over one store and without a server.

    with runner("memory.db") as work:
        result = await work.assign(Researcher(), Intent(title="Competitors in 2026"))

An intent is a task of intent memory: what its agent keeps in working memory is there until the intent is completed,
fails or is cancelled, and then archived.  An intent that was left open can be assigned to another agent, which reads
what the first one kept.  Inside a handler ``assign`` gives a part of the work to another agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from commonplace.app import LOCAL
from commonplace.engine.memory import now_utc
from commonplace.intents.agent_memory import AgentMemory, HandedOver, Rules
from commonplace.intents.decorators import declaration_of, handler, remembering
from commonplace.intents.entries import Caller, Permissions, Task
from commonplace.intents.intents import Intents
from commonplace.intents.opening import open_intents
from commonplace.model.errors import Conflict, Forbidden
from commonplace.model.ids import new_id
from commonplace.model.ports import Clock, Embedder
from commonplace.model.records import EMPTY
from commonplace.model.values import Value

OPERATOR = Caller()  # the process that runs agents acts for all of them; each agent acts for itself
ACTIVE = "active"


class Intent(Value):
    """Something to be done, as an agent's handler is given it."""

    id: str  #: the task that its working memory belongs to (default: a new one)
    title: str
    description: str
    inputs: Mapping[str, Any]  #: what the handler needs to know
    results: Mapping[str, Any]  #: in a workflow: what the phases before came to, by name
    parent: str | None  #: the intent that this one is a part of

    def __init__(
        self,
        *,
        title: str,
        description: str = "",
        id: str | None = None,
        inputs: Mapping[str, Any] = EMPTY,
        results: Mapping[str, Any] = EMPTY,
        parent: str | None = None,
    ) -> None:
        known = {"title": title, "description": description, "inputs": inputs, "results": results, "parent": parent}
        super().__init__(id=id or new_id(now_utc()), **known)


class Runner:
    """Agents at work, over one store."""

    def __init__(self, intents: Intents) -> None:
        self.intents = intents

    async def assign(
        self,
        agent: object,
        intent: Intent,
        *,
        policy: Mapping[str, Any] | None = None,
        coordinator: str | None = None,
        leave_open: bool = False,
    ) -> Any:
        """Run an agent on it and return what its handler returns; working memory is archived with the outcome.

        An intent that is still open is taken over: the agent reads what its predecessor stored.  ``leave_open`` leaves
        it open when the handler fails, for another agent.  ``policy`` is the ``memory_policy`` of RFC-0015.
        """
        handler(agent)  # before anything is begun
        outer = _current.get()
        if outer and outer.runner is self:
            intent = intent.replace(parent=intent.parent or outer.intent.id)
            coordinator = coordinator or outer.agent
        memory = await self.begin(agent, intent, policy=policy, coordinator=coordinator)
        try:
            result = await self.attend(agent, intent, memory)
        except BaseException as error:
            cancelled = isinstance(error, asyncio.CancelledError)
            if cancelled or not leave_open:
                with suppress(Forbidden):  # it was handed to another agent meanwhile, and is that one's now
                    await self._finish(intent, "cancelled" if cancelled else "failed", Caller(agent=memory.agent))
            raise
        await self._finish(intent, "completed", Caller(agent=memory.agent))
        return result

    async def begin(
        self,
        agent: object,
        intent: Intent,
        *,
        policy: Mapping[str, Any] | None = None,
        coordinator: str | None = None,
        rules: Rules | None = None,
        handed_over: Sequence[HandedOver] = (),
    ) -> AgentMemory:
        """Assign an intent, or reassign it, and return the agent's memory for it; nothing runs yet."""
        declared = declaration_of(agent)
        applied = rules or declared.rules
        await asyncio.to_thread(self._assign_task, intent, declared.id, coordinator, _task_policy(policy, applied))
        return AgentMemory(self.intents, declared.id, rules=applied, task=intent.id, handed_over=handed_over)

    async def attend(self, agent: object, intent: Intent, memory: AgentMemory) -> Any:
        """Run the agent's handler with that memory; the intent stays open."""
        before = _current.set(_Current(runner=self, intent=intent, agent=memory.agent))
        try:
            with remembering(agent, memory):
                return await handler(agent)(intent)
        finally:
            _current.reset(before)

    def memory(self, agent: object) -> AgentMemory:
        """Return an agent's memory outside of any task: episodic and semantic, but no working memory."""
        declared = declaration_of(agent)
        return AgentMemory(self.intents, declared.id, rules=declared.rules)

    def permit(self, namespace: str, *, default: str = "read", allow: Mapping[str, str] | None = None) -> Permissions:
        """Set who may use a shared namespace: all by ``default``, and agents by name: read, write or admin."""
        return self.intents.permit(OPERATOR, namespace, Permissions(default=default, allow=allow or {}))

    async def complete(self, intent: Intent | str) -> Task:
        """End an intent as completed."""
        return await self.finish(intent, "completed")

    async def fail(self, intent: Intent | str) -> Task:
        """End an intent as failed."""
        return await self.finish(intent, "failed")

    async def cancel(self, intent: Intent | str) -> Task:
        """End an intent as cancelled."""
        return await self.finish(intent, "cancelled")

    async def finish(self, intent: Intent | str, outcome: str) -> Task:
        """End an intent with an outcome: ``completed``, ``failed`` or ``cancelled``."""
        return await self._finish(intent, outcome, OPERATOR)

    async def _finish(self, intent: Intent | str, outcome: str, caller: Caller) -> Task:
        task = intent if isinstance(intent, str) else intent.id
        return await asyncio.to_thread(self.intents.finish, caller, task, outcome)

    def _assign_task(self, intent: Intent, agent: str, coordinator: str | None, policy: Mapping[str, Any]) -> Task:
        """Begin the task; one that exists and is open is assigned to this agent."""
        try:
            return self.intents.begin(
                OPERATOR, intent.id, agent=agent, coordinator=coordinator, parent=intent.parent, policy=policy
            )
        except Conflict:
            task = self.intents.task(OPERATOR, intent.id)
        if task.status != ACTIVE:
            raise Conflict(f"the intent {intent.id!r} is {task.status}; what comes next needs an id of its own")
        return task if task.assigned == agent else self.intents.assign(OPERATOR, intent.id, agent)


class _Current(Value):
    """The agent and the intent of the current context."""

    runner: Runner
    intent: Intent
    agent: str


_current: ContextVar[_Current | None] = ContextVar("commonplace_current", default=None)


def _task_policy(policy: Mapping[str, Any] | None, rules: Rules) -> dict[str, Any]:
    """Return a task's policy; by default with the number of working entries that the agent declares."""
    declared = rules.limits.get("working")
    most = {"max_entries": declared.max_entries} if declared and declared.max_entries else {}
    return most | dict(policy or {})


async def assign(agent: object, intent: Intent, *, policy: Mapping[str, Any] | None = None) -> Any:
    """Assign an intent: inside a handler as a part of that work, else on the store in the data folder."""
    outer = _current.get()
    if outer:
        return await outer.runner.assign(agent, intent, policy=policy)
    with runner() as work:
        return await work.assign(agent, intent, policy=policy)


@contextmanager
def runner(
    store: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    embedder: Embedder | str | None = LOCAL,
) -> Iterator[Runner]:
    """Open a store to run agents on: a file of its own, the address of a database, or the command's."""
    with open_intents(store, env=env, clock=clock, embedder=embedder) as intents:
        yield Runner(intents)

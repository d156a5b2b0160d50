"""A run of a workflow: its phases as intents, each as soon as those it depends on are done, several at once.

    with runner("memory.db") as work:
        outcome = await run(load("workflow.yml"), work, agents=[Researcher, Synthesizer])

A phase that fails does not stop the others; those that depend on it do not run, and the outcome says so.  The working
memory of a phase with ``handoff`` stays open until the phases that depend on it have ended; every other one is archived
when its phase ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from commonplace.agents.intent_agents import described
from commonplace.agents.intent_memory import NOTHING_SAID, HandedOver, Kept, Rules
from commonplace.agents.intents import Intent, Runner
from commonplace.agents.workflow_agents import Cast
from commonplace.config.workflow import TIER, MemoryBlock, Phase, Policy, Workflow
from commonplace.domain.errors import CommonplaceError
from commonplace.domain.ids import new_id
from commonplace.domain.records import EMPTY
from commonplace.domain.values import Value
from commonplace.engine.intent_entries import Caller
from commonplace.engine.memory import now_utc
from commonplace.engine.text import one_line

log = logging.getLogger("commonplace")
log.addHandler(logging.NullHandler())  # else Python would write the whole traceback to the terminal


class Ended(Value):
    """What came of one phase."""

    phase: str
    agent: str
    outcome: str  #: completed | failed | cancelled | skipped
    result: Any = None  #: what the agent's handler returned
    error: str = ""  #: why it failed or did not run, in one sentence

    @property
    def completed(self) -> bool:
        """Whether phases that depend on it can run."""
        return self.outcome == "completed"


class Outcome(Value):
    """What came of a run."""

    workflow: str
    run: str  #: its id, and the task above those of its phases, which are called ``<run>.<phase>``
    phases: Mapping[str, Ended]  #: by name, in the order in which they ended

    @property
    def completed(self) -> bool:
        """Whether every phase was."""
        return all(phase.completed for phase in self.phases.values())


Watch = Callable[["Phase | Ended"], None]


def unwatched(_seen: Phase | Ended) -> None:
    """Nobody looks on."""


async def run(
    workflow: Workflow,
    runner: Runner,
    *,
    agents: Iterable[object] = (),
    inputs: Mapping[str, Any] = EMPTY,
    env: Mapping[str, str] | None = None,
    watch: Watch = unwatched,
) -> Outcome:
    """Run every phase; ``agents`` are classes with ``@Agent`` or instances, beside those that the file names.

    Nothing runs if an agent cannot be found.  ``watch`` is told of every phase as it starts, and what came of it.
    """
    cast = Cast(workflow, agents, env=env)
    return await _Run(workflow, runner, cast, inputs=inputs, watch=watch).through()


def rules_of(workflow: Workflow, phase: Phase, declared: Rules) -> Rules:
    """What holds for a phase's memory: what it says itself, else the workflow, else the agent's own declaration."""
    top, own, agent = workflow.memory, phase.memory, workflow.agent(phase)
    tier = own.tier or top.tier or declared.tier
    kept = dict(declared.kept)
    _lay(kept, "episodic", MemoryBlock(max_entries=agent.capacity or workflow.capacity))
    _lay(kept, top.tier or TIER, top)
    _lay(kept, tier, own.replace(ttl=own.ttl or top.ttl, max_entries=own.max_entries or top.max_entries))
    return declared.replace(
        namespace=own.namespace or top.namespace or declared.namespace,
        tier=tier,
        kept=kept,
        pinned_namespaces=declared.pinned_namespaces | set(agent.pinned_namespaces),
        semantic_namespaces=workflow.semantic_namespaces,
    )


def policy_of(workflow: Workflow, phase: Phase) -> Policy:
    """What holds for a phase's task."""
    return phase.policy.over(workflow.policy)


class _Run:
    """One run, while it lasts."""

    def __init__(
        self, workflow: Workflow, runner: Runner, cast: Cast, *, inputs: Mapping[str, Any], watch: Watch
    ) -> None:
        self._workflow = workflow
        self._runner = runner
        self._cast = cast
        self._inputs = inputs
        self._watch = watch
        self._id = new_id(now_utc())
        self._coordinator = f"workflow:{self._id}"
        self._ended: dict[str, Ended] = {}
        self._open: dict[str, str] = {}  # phase -> what came of it: tasks that are not archived yet

    async def through(self) -> Outcome:
        """Run the phases, each when it can; whoever interrupts ends those that are running."""
        waiting = {name: self._workflow.phase(name) for wave in self._workflow.order() for name in wave}
        running: dict[asyncio.Task[Any], Phase] = {}
        outcome = Outcome(workflow=self._workflow.name, run=self._id, phases=self._ended)
        await asyncio.to_thread(self._begin)
        try:
            while waiting or running:
                for phase in self._ready(waiting):
                    running[asyncio.ensure_future(self._attended(phase))] = phase
                await self._archive()
                if running:
                    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in done:
                        self._end(running.pop(task), task)
        finally:
            await _stopped(running)
            await self._archive(whatever=True)
            await self._runner.finish(self._id, self._came_to(outcome))
        return outcome

    def _begin(self) -> None:
        """The run is a task too: its coordinator keeps the inputs there, and a phase that inherits may read them."""
        intents, me = self._runner.intents, Caller(agent=self._coordinator)
        intents.begin(me, self._id, agent=self._coordinator)
        if self._inputs:
            intents.store(me, self._coordinator, "inputs", dict(self._inputs), tier="working", task=self._id)

    def _came_to(self, outcome: Outcome) -> str:
        if len(self._ended) < len(self._workflow.phases):
            return "cancelled"
        return "completed" if outcome.completed else "failed"

    def _ready(self, waiting: dict[str, Phase]) -> list[Phase]:
        """Take out what can run now; what cannot run any more has ended.  Nothing waits for what comes after it."""
        ready = []
        for phase in list(waiting.values()):
            before = [self._ended.get(name) for name in phase.depends_on]
            if missing := [one.phase for one in before if one and not one.completed]:
                names = " and ".join(map(repr, missing))
                self._note(phase, "skipped", error=f"it was not run, because {names} did not complete")
                del waiting[phase.name]
            elif all(before):
                ready.append(waiting.pop(phase.name))
        return ready

    async def _attended(self, phase: Phase) -> Any:
        agent = self._cast.agent(phase)
        self._watch(phase)
        intent = self._intent(phase)
        memory = await self._runner.begin(
            agent,
            intent,
            policy=policy_of(self._workflow, phase).said(),
            coordinator=self._coordinator,
            rules=rules_of(self._workflow, phase, described(agent).rules),
            handed_over=[
                HandedOver(task=self._task(one), coordinator=self._coordinator)
                for one in self._workflow.handed_to(phase)
            ],
        )
        self._open[phase.name] = "cancelled"  # unless it comes to an end of its own
        return await self._runner.attend(agent, intent, memory)

    def _intent(self, phase: Phase) -> Intent:
        results = {name: self._ended[name].result for name in phase.depends_on}
        return Intent(
            id=self._task(phase),
            title=phase.title,
            description=phase.description,
            inputs=self._inputs,
            results=results,
            parent=self._id,
        )

    def _task(self, phase: Phase) -> str:
        return f"{self._id}.{phase.name}"

    def _end(self, phase: Phase, task: asyncio.Task[Any]) -> None:
        """Say what came of a phase; an error is told in one sentence and logged whole."""
        if task.cancelled():
            self._note(phase, "cancelled", error="it was cancelled")
        elif error := task.exception():
            log.warning("the phase %r failed", phase.name, exc_info=error)
            self._note(phase, "failed", error=_sentence(error))
        else:
            self._note(phase, "completed", result=task.result())

    def _note(self, phase: Phase, outcome: str, *, result: Any = None, error: str = "") -> None:
        ended = Ended(phase=phase.name, agent=phase.assign, outcome=outcome, result=result, error=error)
        self._ended[phase.name] = ended
        if phase.name in self._open:
            self._open[phase.name] = outcome
        self._watch(ended)

    async def _archive(self, *, whatever: bool = False) -> None:
        """Finish the tasks of phases that have ended, but for those whose working memory others may still read."""
        for name, outcome in list(self._open.items()):
            if whatever or (name in self._ended and not self._handed_over(name)):
                del self._open[name]
                await self._runner.finish(self._task(self._workflow.phase(name)), outcome)

    def _handed_over(self, name: str) -> bool:
        phase = self._workflow.phase(name)
        readers = self._workflow.dependents(name) if phase.memory.handoff else ()
        return any(one.name not in self._ended for one in readers)


async def _stopped(running: Mapping[asyncio.Task[Any], Phase]) -> None:
    """Cancel what still runs, and wait until it has seen that."""
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)


def _sentence(error: BaseException) -> str:
    """What went wrong; of an error that is none of ours its kind too, which may be all that it says."""
    said = one_line(str(error))
    return said if isinstance(error, CommonplaceError) else f"{type(error).__name__}: {said}".removesuffix(": ")


def _lay(kept: dict[str, Kept], tier: str, block: MemoryBlock) -> None:
    """Let what a block says hold for a tier; shared knowledge is never evicted, whatever a default says."""
    before = kept.get(tier, NOTHING_SAID)
    most = None if tier == "semantic" else block.max_entries or before.max_entries
    kept[tier] = Kept(ttl=block.ttl or before.ttl, max_entries=most)

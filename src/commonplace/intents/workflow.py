"""A run of a workflow: its phases as intents, each as soon as those it depends on are done, several at once.

    with runner("memory.db") as work:
        outcome = await run(load("workflow.yml"), work, agents=[Researcher, Synthesizer])

A phase that fails does not stop the others; those that depend on it do not run, and the outcome says so.  The working
memory of a phase with ``handoff`` stays open until the phases that depend on it have completed; every other one is
archived when its phase ends.  A run that did not complete stays open, and ``resume`` goes on with it: see
``workflow_progress``.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from commonplace.intents.agent_memory import NOTHING_SAID, HandedOver, Kept, Rules
from commonplace.intents.assignments import Intent, Runner
from commonplace.intents.decorators import described
from commonplace.intents.intents import Intents
from commonplace.intents.workflow_agents import Cast
from commonplace.intents.workflow_dialect import TIER, MemoryBlock, Phase, Policy, Workflow
from commonplace.intents.workflow_progress import Progress, begun, resumed
from commonplace.model.errors import CommonplaceError, InvalidInput
from commonplace.model.records import EMPTY
from commonplace.model.values import Value
from commonplace.text.cleaning import one_line

log = logging.getLogger("commonplace")
log.addHandler(logging.NullHandler())  # else Python would write the whole traceback to the terminal


class Ended(Value):
    """What came of one phase."""

    phase: str
    agent: str
    outcome: str  #: completed | failed | cancelled | skipped
    result: Any = None  #: what the agent's handler returned
    error: str = ""  #: why it failed or did not run, in one sentence
    carried: bool = False  #: it completed before the run was resumed

    @property
    def completed(self) -> bool:
        """Whether phases that depend on it can run."""
        return self.outcome == "completed"


class Started(Value):
    """A run, before its first phase."""

    run: str  #: its id, by which it can be resumed
    again: Mapping[str, str] = {}  #: of one that is resumed: phases that had completed and run again, and why


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


def unheard(_started: Started) -> None:
    """Nobody wants to know."""


async def run(
    workflow: Workflow,
    runner: Runner,
    *,
    agents: Iterable[object] = (),
    inputs: Mapping[str, Any] = EMPTY,
    env: Mapping[str, str] | None = None,
    watch: Watch = unwatched,
    resume: str | None = None,
    started: Callable[[Started], None] = unheard,
) -> Outcome:
    """Run every phase; ``agents`` are classes with ``@Agent`` or instances, beside those that the file names.

    Nothing runs if an agent cannot be found.  ``watch`` is told of every phase as it starts, and what came of it.
    ``resume`` is the id of a run that did not complete (empty: the newest one), to go on with: what has completed does
    not run again.  ``started`` is told the id of the run.
    """
    cast = Cast(workflow, agents, env=env)
    begin = begun if resume is None else functools.partial(_resumed, resume)
    progress = await asyncio.to_thread(begin, runner.intents, workflow, inputs)
    return await _Run(workflow, runner, cast, progress, watch=watch).through(started)


def _resumed(id: str, intents: Intents, workflow: Workflow, inputs: Mapping[str, Any]) -> Progress:
    return resumed(intents, workflow, id, inputs)


def rules_of(workflow: Workflow, phase: Phase, declared: Rules) -> Rules:
    """What holds for a phase's memory: what it says itself, else the workflow, else the agent's own declaration."""
    top, own, agent = workflow.memory, phase.memory, workflow.agent(phase)
    tier = own.tier or top.tier or declared.tier
    kept = dict(declared.kept)
    _lay(kept, "episodic", MemoryBlock(max_entries=agent.capacity or workflow.capacity))
    _lay(kept, top.tier or TIER, top)
    _lay(kept, tier, MemoryBlock(ttl=own.ttl or top.ttl, max_entries=own.max_entries or top.max_entries))
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

    def __init__(self, workflow: Workflow, runner: Runner, cast: Cast, progress: Progress, *, watch: Watch) -> None:
        self._workflow = workflow
        self._runner = runner
        self._cast = cast
        self._progress = progress
        self._watch = watch
        self._ended: dict[str, Ended] = {}
        self._open: dict[str, str] = {}  # phase -> what came of it: tasks that are not archived yet

    async def through(self, started: Callable[[Started], None]) -> Outcome:
        """Run the phases, each when it can; whoever interrupts ends those that are running."""
        waiting = {name: self._workflow.phase(name) for wave in self._workflow.order() for name in wave}
        running: dict[asyncio.Task[Any], Phase] = {}
        outcome = Outcome(workflow=self._workflow.name, run=self._progress.run, phases=self._ended)
        try:
            await self._carry(waiting)
            started(Started(run=self._progress.run, again=self._progress.again))
            while waiting or running:
                for phase in self._ready(waiting):
                    running[asyncio.ensure_future(self._attended(phase))] = phase
                await self._archive()
                if running:
                    done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                    for task in [one for one in running if one in done]:  # a set has no order, people want one
                        self._end(running.pop(task), task)
        finally:
            await _stopped(running)
            try:
                await self._archive(whatever=True)
            finally:
                completed = len(self._ended) == len(self._workflow.phases) and outcome.completed
                await asyncio.to_thread(self._progress.close, completed=completed)
        return outcome

    async def _carry(self, waiting: dict[str, Phase]) -> None:
        """Take out what completed before the run was resumed."""
        if self._progress.attempt == 1:
            return
        for name, result in (await asyncio.to_thread(self._progress.done)).items():
            phase = waiting.pop(name)
            if await asyncio.to_thread(self._progress.is_open, phase):
                self._open[name] = "completed"
            self._note(phase, "completed", result=result, carried=True)

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
            policy=policy_of(self._workflow, phase).to_dict(),
            coordinator=self._progress.coordinator,
            rules=rules_of(self._workflow, phase, described(agent).rules),
            handed_over=[
                HandedOver(task=self._task(one), coordinator=self._progress.coordinator)
                for one in self._workflow.handed_to(phase)
            ],
        )
        self._open[phase.name] = "cancelled"  # unless it comes to an end of its own
        try:
            result = await self._runner.attend(agent, intent, memory)
        except SystemExit as error:  # the phase's end, not everybody's
            raise InvalidInput(f"it called sys.exit({error.code!r})") from error
        await asyncio.to_thread(self._progress.keep, phase, result)
        return result

    def _intent(self, phase: Phase) -> Intent:
        results = {name: self._ended[name].result for name in phase.depends_on}
        return Intent(
            id=self._task(phase),
            title=phase.title,
            description=phase.description,
            inputs=self._progress.inputs,
            results=results,
            parent=self._progress.run,
        )

    def _task(self, phase: Phase) -> str:
        return self._progress.task(phase)

    def _end(self, phase: Phase, task: asyncio.Task[Any]) -> None:
        """Say what came of a phase; an error is told in one sentence and logged whole."""
        if task.cancelled():
            self._note(phase, "cancelled", error="it was cancelled")
        elif error := task.exception():
            log.warning("the phase %r failed", phase.name, exc_info=error)
            self._note(phase, "failed", error=_sentence(error))
        else:
            self._note(phase, "completed", result=task.result())

    def _note(self, phase: Phase, outcome: str, *, result: Any = None, error: str = "", carried: bool = False) -> None:
        ended = Ended(
            phase=phase.name, agent=phase.assign, outcome=outcome, result=result, error=error, carried=carried
        )
        self._ended[phase.name] = ended
        if phase.name in self._open:
            self._open[phase.name] = outcome
        self._watch(ended)

    async def _archive(self, *, whatever: bool = False) -> None:
        """Finish the tasks of phases that have ended, but for those whose working memory others may still read."""
        over = [name for name in self._open if (whatever or name in self._ended) and not self._handed_over(name)]
        if over:
            await asyncio.to_thread(self._progress.check)  # else they are another process's
        for name in over:
            await self._runner.finish(self._task(self._workflow.phase(name)), self._open.pop(name))

    def _handed_over(self, name: str) -> bool:
        """Whether a phase that completed hands over to one that has not, and that may yet run again."""
        phase = self._workflow.phase(name)
        readers = self._workflow.dependents(name) if phase.memory.handoff and self._has_completed(name) else ()
        return any(not self._has_completed(one.name) for one in readers)

    def _has_completed(self, name: str) -> bool:
        return name in self._ended and self._ended[name].completed


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

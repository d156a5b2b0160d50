"""Run a workflow: its phases as intents, each as soon as those it depends on have completed, several at once.

    with runner("memory.db") as work:
        outcome = await run_workflow(load("workflow.yml"), work, agents=[Researcher, Synthesizer])

A phase that fails does not stop the others; those that depend on it do not run, and the outcome says so.  The working
memory of a phase with ``handoff`` stays open until the phases that depend on it have completed; every other one is
archived when its phase ends.  A run that did not complete stays open and can be resumed: see ``workflow_progress``.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from commonplace.agents.loop import ignore
from commonplace.agents.scheduler import CANCELLED, COMPLETED, FAILED, SKIPPED, Schedule, StepEnd
from commonplace.agents.tolerance import log
from commonplace.intents.agent_memory import NO_LIMITS, HandedOver, Rules, TierLimits
from commonplace.intents.assignments import Intent, Runner
from commonplace.intents.decorators import declaration_of
from commonplace.intents.workflow_agents import WorkflowAgents
from commonplace.intents.workflow_dialect import TIER, Phase, PolicyBlock, Workflow, WorkflowMemoryBlock
from commonplace.intents.workflow_progress import Progress, begin_run, resume_run
from commonplace.model.errors import CommonplaceError, InvalidInput
from commonplace.model.records import EMPTY
from commonplace.model.values import Value
from commonplace.text.cleaning import one_line


class PhaseEnd(Value):
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
        return self.outcome == COMPLETED


class RunStart(Value):
    """A run, before its first phase."""

    run: str  #: its id, by which it can be resumed
    again: Mapping[str, str] = {}  #: of one that is resumed: phases that had completed and run again, and why


class WorkflowOutcome(Value):
    """What came of a run."""

    workflow: str
    run: str  #: its id, and the task above those of its phases, which are called ``<run>.<phase>``
    phases: Mapping[str, PhaseEnd]  #: by name, in the order in which they ended

    @property
    def completed(self) -> bool:
        """Whether every phase was."""
        return all(phase.completed for phase in self.phases.values())


Watch = Callable[["Phase | PhaseEnd"], None]


async def run_workflow(
    workflow: Workflow,
    runner: Runner,
    *,
    agents: Iterable[object] = (),
    inputs: Mapping[str, Any] = EMPTY,
    env: Mapping[str, str] | None = None,
    watch: Watch = ignore,
    resume: str | None = None,
    started: Callable[[RunStart], None] = ignore,
) -> WorkflowOutcome:
    """Run every phase; ``agents`` are classes with ``@Agent`` or instances, in addition to those that the file names.

    Nothing runs if an agent cannot be found.  ``watch`` gets every phase as it starts, and what came of it.
    ``resume`` is the id of a run that did not complete (empty: the newest one); phases that completed do not run
    again.  ``started`` gets the id of the run.
    """
    cast = WorkflowAgents(workflow, agents, env=env)
    begin = begin_run if resume is None else functools.partial(resume_run, run=resume)
    progress = await asyncio.to_thread(begin, runner.intents, workflow, inputs=inputs)
    return await _WorkflowRun(workflow, runner, cast, progress, watch=watch).run(started)


def rules_of(workflow: Workflow, phase: Phase, declared: Rules) -> Rules:
    """Return the rules of a phase's memory: its own, else the workflow's, else those that the agent declares."""
    top, own, agent = workflow.memory, phase.memory, workflow.agent(phase)
    tier = own.tier or top.tier or declared.tier
    limits = dict(declared.limits)
    _apply_block(limits, "episodic", WorkflowMemoryBlock(max_entries=agent.capacity or workflow.capacity))
    _apply_block(limits, top.tier or TIER, top)
    _apply_block(
        limits, tier, WorkflowMemoryBlock(ttl=own.ttl or top.ttl, max_entries=own.max_entries or top.max_entries)
    )
    return declared.replace(
        namespace=own.namespace or top.namespace or declared.namespace,
        tier=tier,
        limits=limits,
        pinned_namespaces=declared.pinned_namespaces | set(agent.pinned_namespaces),
        semantic_namespaces=workflow.semantic_namespaces,
    )


def policy_of(workflow: Workflow, phase: Phase) -> PolicyBlock:
    """Return the policy of a phase's task."""
    return phase.policy.over(workflow.policy)


class _WorkflowRun:
    """One run, while it lasts."""

    def __init__(
        self, workflow: Workflow, runner: Runner, cast: WorkflowAgents, progress: Progress, *, watch: Watch
    ) -> None:
        self._workflow = workflow
        self._runner = runner
        self._cast = cast
        self._progress = progress
        self._watch = watch
        self._ended: dict[str, PhaseEnd] = {}
        self._open: dict[str, str] = {}  # phase -> what came of it: tasks that are not archived yet

    async def run(self, started: Callable[[RunStart], None]) -> WorkflowOutcome:
        """Run the phases; an interruption cancels those that are running."""
        names = [name for wave in self._workflow.order() for name in wave]
        outcome = WorkflowOutcome(workflow=self._workflow.name, run=self._progress.run, phases=self._ended)
        try:
            done = await self._carry()
            started(RunStart(run=self._progress.run, again=self._progress.again))
            needs = {name: self._workflow.phase(name).depends_on for name in names}
            await Schedule(needs, self._attend, done=done, ended=self._end, checkpoint=self._archive).run()
        finally:
            try:
                await self._archive(every=True)
            finally:
                completed = len(self._ended) == len(names) and outcome.completed
                await asyncio.to_thread(self._progress.close, completed=completed)
        return outcome

    async def _carry(self) -> dict[str, Any]:
        """Return the results of phases that completed before the run was resumed."""
        if self._progress.attempt == 1:
            return {}
        done = await asyncio.to_thread(self._progress.completed_results)
        for name, result in done.items():
            if await asyncio.to_thread(self._progress.is_open, self._workflow.phase(name)):
                self._open[name] = COMPLETED
            self._note(name, COMPLETED, result=result, carried=True)
        return done

    async def _attend(self, name: str, results: Mapping[str, Any]) -> Any:
        phase, coordinator = self._workflow.phase(name), self._progress.coordinator
        agent = self._cast.agent(phase)
        self._watch(phase)
        intent = Intent(
            id=self._progress.task(phase), title=phase.title, description=phase.description,
            inputs=self._progress.inputs, results=results, parent=self._progress.run,
        )  # fmt: skip
        handed_over = [
            HandedOver(task=self._progress.task(one), coordinator=coordinator)
            for one in self._workflow.handoffs_to(phase)
        ]
        memory = await self._runner.begin(
            agent, intent, policy=policy_of(self._workflow, phase).to_dict(), coordinator=coordinator,
            rules=rules_of(self._workflow, phase, declaration_of(agent).rules), handed_over=handed_over,
        )  # fmt: skip
        self._open[name] = CANCELLED  # unless it comes to an end of its own
        try:
            result = await self._runner.attend(agent, intent, memory)
        except SystemExit as error:  # the phase's end, not everybody's
            raise InvalidInput(f"it called sys.exit({error.code!r})") from error
        await asyncio.to_thread(self._progress.save_result, phase, result)
        return result

    def _end(self, end: StepEnd) -> None:
        """Report what came of a phase; an error is one sentence, and logged in full."""
        if end.outcome == FAILED:
            log.warning("the phase %r failed", end.step, exc_info=end.error)
        missing = " and ".join(map(repr, end.blocked_by))
        errors = {
            FAILED: _sentence(end.error),
            CANCELLED: "it was cancelled",
            SKIPPED: f"it was not run, because {missing} did not complete",
        }
        self._note(end.step, end.outcome, result=end.result, error=errors.get(end.outcome, ""))

    def _note(self, name: str, outcome: str, *, result: Any = None, error: str = "", carried: bool = False) -> None:
        agent = self._workflow.phase(name).assign
        ended = PhaseEnd(phase=name, agent=agent, outcome=outcome, result=result, error=error, carried=carried)
        self._ended[name] = ended
        if name in self._open:
            self._open[name] = outcome
        self._watch(ended)

    async def _archive(self, *, every: bool = False) -> None:
        """Finish the tasks of phases that have ended, but for those whose working memory others may still read."""
        over = [name for name in self._open if (every or name in self._ended) and not self._is_read_by_others(name)]
        if over:
            await asyncio.to_thread(self._progress.check)  # else they are another process's
        for name in over:
            await self._runner.finish(self._progress.task(self._workflow.phase(name)), self._open.pop(name))

    def _is_read_by_others(self, name: str) -> bool:
        """Return whether a phase that completed hands over to one that has not, and that may yet run again."""
        phase = self._workflow.phase(name)
        readers = self._workflow.dependents(name) if phase.memory.handoff and self._has_completed(name) else ()
        return any(not self._has_completed(one.name) for one in readers)

    def _has_completed(self, name: str) -> bool:
        return name in self._ended and self._ended[name].completed


def _sentence(error: BaseException | None) -> str:
    """Return an error in one sentence; one that is not ours with its type, which may be all that it says."""
    text = one_line(str(error))
    return text if isinstance(error, CommonplaceError) else f"{type(error).__name__}: {text}".removesuffix(": ")


def _apply_block(limits: dict[str, TierLimits], tier: str, block: WorkflowMemoryBlock) -> None:
    """Apply a block to a tier; shared knowledge is never evicted, so it ignores ``max_entries``."""
    before = limits.get(tier, NO_LIMITS)
    most = None if tier == "semantic" else block.max_entries or before.max_entries
    limits[tier] = TierLimits(ttl=block.ttl or before.ttl, max_entries=most)

"""Run the agents of a pipeline, each with the memory that its configuration gives it.

    with pipeline("release") as agent:
        await agent.run(name="reviewer", model="openai:gpt-5", memory={"enabled": True}, prompt="...")

A program and a file do the same thing: both become an ``AgentStep``.  What an agent saves is stored at once, so a run
that fails later keeps it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from commonplace.agents.loop import ModelLoop, ObservedToolCall, Watch, ignore
from commonplace.agents.models import load_model
from commonplace.agents.scheduler import Schedule
from commonplace.agents.verb_tools import VerbTool
from commonplace.ci.dialect import AgentStep, Pipeline, Step, TaskStep, agent_step
from commonplace.ci.registry import PipelineRegistry, open_registry
from commonplace.ci.verbs import answer_call, pipeline_tools
from commonplace.config.operator import key_hosts_for, require_operator
from commonplace.engine.memory import now_utc
from commonplace.model.errors import Forbidden, InvalidInput
from commonplace.model.ports import Clock
from commonplace.model.values import Value
from commonplace.providers.services import model_uses

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from commonplace.providers.services import KeyHosts


class StepResult(Value):
    """What came of one step."""

    step: Step
    output: str  #: the agent's last words; of a task nothing, since it writes for itself
    calls: tuple[ObservedToolCall, ...] = ()
    exit_code: int = 0  #: of a task
    truncated: bool = False  #: the model used up its tokens before its answer was complete


class TaskFailed(Exception):
    """A task ended with an exit code other than 0, which ends the run."""

    def __init__(self, job: str, result: StepResult) -> None:
        super().__init__(f"task {result.step.name!r} of job {job!r} failed with exit code {result.exit_code}")


def call_line(call: ObservedToolCall) -> str:
    """Return a call of a memory tool in one line; memories are counted and not repeated."""
    return f"{call.agent} called {call.tool}: {_outcome(call.answer)}"


def _outcome(answer: Mapping[str, Any]) -> str:
    if "error" in answer:
        return str(answer["error"])
    if "memories" in answer:
        count = len(answer["memories"])
        return f"{count} memory" if count == 1 else f"{count} memories"
    return "; ".join(["known already" if answer["deduped"] else "saved", *answer.get("redacted", [])])


class Agents:
    """The agents of one pipeline; called ``agent`` where it is used, because of how that reads."""

    def __init__(
        self,
        pipeline: str,
        registry: PipelineRegistry,
        *,
        env: Mapping[str, str],
        watch: Watch = ignore,
        key_hosts: KeyHosts = None,
    ) -> None:
        """Prepare a pipeline that is registered; one with a blank name has no memory.

        ``key_hosts`` is what the user allows a file; None: a program names addresses and keys.
        """
        self._key_hosts = key_hosts
        self.pipeline = pipeline.strip()
        self._registry = registry
        self._env = env
        self._watch = watch

    async def run(
        self,
        *,
        name: str,
        model: str | Model,
        prompt: str,
        memory: Mapping[str, Any] | None = None,
        image: str | None = None,
        platform: str | None = None,
        base_url: str | None = None,
        api_key_env: str | None = None,
    ) -> StepResult:
        """Run an agent to its end; ``memory={"enabled": True}`` lets it recall and save."""
        called = model if isinstance(model, str) else model.model_name
        step = agent_step(
            name=name, prompt=prompt, model=called, memory=memory, image=image, platform=platform,
            base_url=base_url, api_key_env=api_key_env,
        )  # fmt: skip
        return await self.step(step, model=model)

    async def step(self, step: AgentStep, *, model: str | Model | None = None) -> StepResult:
        """Run an agent as a file describes it."""
        calls: list[ObservedToolCall] = []

        def watch(call: ObservedToolCall) -> None:
            calls.append(call.replace(agent=step.name))
            self._watch(calls[-1])

        held = self.tools(step)
        loop = ModelLoop(
            step.name,
            load_model(
                model or step.model,
                base_url=step.base_url,
                api_key_env=step.api_key_env,
                env=self._env,
                key_hosts=self._key_hosts,
            ),
            tools=[tool.to_tool(partial(_answer, held, tool.name)) for tool in held],
            watch=watch,
        )
        reply = await loop.run(step.prompt)
        return StepResult(step=step, output=reply.output, calls=tuple(calls), truncated=reply.truncated)

    def tools(self, step: AgentStep) -> tuple[VerbTool, ...]:
        """Return the memory tools of an agent; none if its memory is off, or if it or the pipeline has no name."""
        if step.memory is None or not step.memory.enabled or not self.pipeline or not step.name:
            return ()
        held = self._registry.memory(self.pipeline, step.name, step.memory)
        return pipeline_tools(held, max_recall=step.memory.max_recall)


def _answer(held: tuple[VerbTool, ...], name: str, **arguments: Any) -> dict[str, Any]:
    return answer_call(held, name, arguments)


@contextmanager
def pipeline(
    name: str,
    *,
    store: str | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    watch: Watch = ignore,
) -> Iterator[Agents]:
    """Open a pipeline by name, in the store in the data folder or in one at a path, to run agents in it."""
    given = os.environ if env is None else env
    with open_registry(store, env=given, clock=clock) as registry:
        if name.strip():
            registry.register(name.strip())
        yield Agents(name, registry, env=given, watch=watch)


def _operator_uses(described: Pipeline) -> Iterator[tuple[str, str]]:
    """Yield what a pipeline decides that is the operator's business, each with its place; tasks have --allow-tasks."""
    for number, job in enumerate(described.jobs):
        for place, step in enumerate(job.plan):
            if isinstance(step, AgentStep):
                given = model_uses(step.model, base_url=step.base_url, api_key_env=step.api_key_env)
                yield from ((f"jobs[{number}].plan[{place}].{name}", what) for name, what in given)


class Run:
    """A run of a pipeline's file: every chosen job, step by step, until one fails."""

    def __init__(
        self, described: Pipeline, registry: PipelineRegistry, *, env: Mapping[str, str], watch: Watch = ignore
    ) -> None:
        """Register the pipeline; nothing runs yet.  Raises ``ConfigError`` for what a stranger's file may not say."""
        require_operator(described.file, _operator_uses(described), env)
        registry.register_file(described)
        self._described = described
        self._env = env
        self._agents = Agents(
            described.name, registry, env=env, watch=watch, key_hosts=key_hosts_for(described.file, env)
        )

    async def run(
        self,
        job: str | None = None,
        *,
        allow_tasks: bool = False,
        on_start: Callable[[str, Step], None] = ignore,
        on_end: Callable[[StepResult], None] = ignore,
    ) -> list[StepResult]:
        """Run the steps of one job or of all, one after the other, until one fails.

        Nothing runs if one of them is a task and ``allow_tasks`` is not given.  Raises what went wrong, and
        ``TaskFailed``.
        """
        steps = self._steps(job, allow_tasks=allow_tasks)

        async def run(number: int, _results: Mapping[int, StepResult]) -> StepResult:
            name, step = steps[number]
            on_start(name, step)
            result = await self._agents.step(step) if isinstance(step, AgentStep) else self._task(step)
            if result.exit_code:
                raise TaskFailed(name, result)
            on_end(result)
            return result

        needs = {number: range(number)[-1:] for number in range(len(steps))}  # each needs the one before it
        return list((await Schedule(needs, run, at_once=1, fail_fast=True).run()).values())

    def _steps(self, job: str | None, *, allow_tasks: bool) -> list[tuple[str, Step]]:
        """Return the steps with their jobs' names; refused as a whole if one of them may not run."""
        chosen = [(one.name, step) for one in self._described.select_jobs(job) for step in one.plan]
        for name, step in chosen:
            if isinstance(step, TaskStep) and not allow_tasks:
                reason = f"task {step.name!r} of job {name!r} would run {step.config.run.path!r} on this machine"
                raise Forbidden(f"{self._described.file}: {reason}; --allow-tasks allows it")
        return chosen

    def _task(self, step: TaskStep) -> StepResult:
        """Run a command where the pipeline runs; its output goes where ours goes."""
        run = step.config.run
        env = {**self._env, **step.config.params}
        try:
            done = subprocess.run([run.path, *run.args], cwd=run.dir, env=env, check=False)  # noqa: S603 - it was allowed
        except OSError as error:
            raise InvalidInput(f"task {step.name!r} cannot run {error.filename!r}: {error.strerror}") from error
        return StepResult(step=step, output="", exit_code=done.returncode)

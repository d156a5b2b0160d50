"""Agents of a pipeline at work, each with the memory of its own that its configuration gives it.

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
from typing import TYPE_CHECKING, Any

from commonplace.agents.models import offered, spoken, whole
from commonplace.agents.verb_tools import VerbTool
from commonplace.ci.dialect import AgentStep, Pipeline, Step, TaskStep, agent_step
from commonplace.ci.registry import Ledger, ledger
from commonplace.ci.verbs import answer_call, pipeline_tools
from commonplace.engine.memory import now_utc
from commonplace.model.errors import Forbidden, InvalidInput, ProviderError
from commonplace.model.ports import Clock
from commonplace.model.values import Value

if TYPE_CHECKING:
    from pydantic_ai import Tool as OfferedTool
    from pydantic_ai.models import Model

RETRIES = 3  # of a tool call that nobody can follow, such as of a tool that is not there: one is soon used up


class Call(Value):
    """One call of a memory tool."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any]

    def __str__(self) -> str:
        """The call in one quiet line; what was remembered is not repeated."""
        return f"{self.agent} called {self.tool}: {self._outcome()}"

    def _outcome(self) -> str:
        if "error" in self.answer:
            return str(self.answer["error"])
        if "memories" in self.answer:
            count = len(self.answer["memories"])
            return f"{count} memory" if count == 1 else f"{count} memories"
        told = "known already" if self.answer["deduped"] else "saved"
        return "; ".join([told, *self.answer.get("redacted", [])])


class Ran(Value):
    """What came of one step."""

    step: Step
    output: str  #: what the agent said at last; of a task nothing, it has written for itself
    calls: tuple[Call, ...] = ()
    exit_code: int = 0  #: of a task
    cut: bool = False  #: the model used up its tokens before it had said everything


Watch = Callable[[Call], None]


def unwatched(_call: Call) -> None:
    """Nobody looks on."""


class Agents:
    """The agents of one pipeline; called ``agent`` where it is used, because of how that reads."""

    def __init__(self, pipeline: str, known: Ledger, *, env: Mapping[str, str], watch: Watch = unwatched) -> None:
        """Of a pipeline that the ledger knows; a blank name is no pipeline, and has no memory."""
        self.pipeline = pipeline.strip()
        self._ledger = known
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
    ) -> Ran:
        """Run an agent to its end; ``memory={"enabled": True}`` lets it recall and save."""
        called = model if isinstance(model, str) else model.model_name
        step = agent_step(
            name=name, prompt=prompt, model=called, memory=memory, image=image, platform=platform,
            base_url=base_url, api_key_env=api_key_env,
        )  # fmt: skip
        return await self.step(step, model=model)

    async def step(self, step: AgentStep, *, model: str | Model | None = None) -> Ran:
        """Run an agent as a file says it."""
        who = spoken(model or step.model, base_url=step.base_url, api_key_env=step.api_key_env, env=self._env)
        from pydantic_ai import Agent  # noqa: PLC0415 - spoken() has said so if it is not there
        from pydantic_ai.exceptions import AgentRunError, UserError  # noqa: PLC0415

        calls: list[Call] = []
        agent = Agent(who.model, name=step.name or None, tools=self._offered(step, calls), retries=RETRIES)
        try:
            async with agent:
                result = await agent.run(step.prompt)
        except (AgentRunError, UserError) as error:
            failed = who.failure(error)
            raise ProviderError(f"agent {step.name!r}: {failed}") from failed
        cut = result.response.finish_reason == "length"
        return Ran(step=step, output=whole(result.output), calls=tuple(calls), cut=cut)

    def tools(self, step: AgentStep) -> tuple[VerbTool, ...]:
        """The memory tools of an agent: both, or none if its memory is off or nobody can say whose it would be."""
        if step.memory is None or not step.memory.enabled or not self.pipeline or not step.name:
            return ()
        held = self._ledger.memory(self.pipeline, step.name, step.memory)
        return pipeline_tools(held, max_recall=step.memory.max_recall)

    def _offered(self, step: AgentStep, calls: list[Call]) -> list[OfferedTool[None]]:
        """The same tools as PydanticAI wants them; a mistake is told to the model, which can mend it."""
        held = self.tools(step)

        def one(tool: VerbTool) -> OfferedTool[None]:
            def call(**arguments: Any) -> dict[str, Any]:
                made = Call(
                    agent=step.name, tool=tool.name, arguments=arguments, answer=answer_call(held, tool.name, arguments)
                )
                calls.append(made)
                self._watch(made)
                return dict(made.answer)

            # One after the other: who recalls and saves in one turn means it in that order.
            return offered(call, tool.name, tool.description, tool.parameters)

        return [one(tool) for tool in held]


@contextmanager
def pipeline(
    name: str,
    *,
    store: str | None = None,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    watch: Watch = unwatched,
) -> Iterator[Agents]:
    """Open a pipeline by name, in the store in the data folder or in one at a path, to run agents in it."""
    given = os.environ if env is None else env
    with ledger(store, env=given, clock=clock) as known:
        if name.strip():
            known.enter(name.strip())
        yield Agents(name, known, env=given, watch=watch)


class Run:
    """A run of a pipeline's file: every chosen job, step by step, until one fails."""

    def __init__(self, described: Pipeline, known: Ledger, *, env: Mapping[str, str], watch: Watch = unwatched) -> None:
        """Enter the pipeline; nothing runs yet."""
        known.enter_file(described)
        self._described = described
        self._env = env
        self._agents = Agents(described.name, known, env=env, watch=watch)

    def steps(self, job: str | None = None, *, allow_tasks: bool = False) -> Iterator[tuple[str, Step]]:
        """The steps to run, with their jobs' names; refused as a whole if one of them may not run."""
        chosen = [(one.name, step) for one in self._described.chosen(job) for step in one.plan]
        for name, step in chosen:
            if isinstance(step, TaskStep) and not allow_tasks:
                reason = f"task {step.name!r} of job {name!r} would run {step.config.run.path!r} on this machine"
                raise Forbidden(f"{self._described.file}: {reason}; --allow-tasks allows it")
        return iter(chosen)

    async def take(self, step: Step) -> Ran:
        """Run one step."""
        return await self._agents.step(step) if isinstance(step, AgentStep) else self._task(step)

    def _task(self, step: TaskStep) -> Ran:
        """Run a command where the pipeline runs; what it writes goes where ours goes."""
        run = step.config.run
        command = [run.path, *run.args]
        env = {**self._env, **step.config.params}
        try:
            done = subprocess.run(command, cwd=run.dir, env=env, check=False)  # noqa: S603 - it was allowed
        except OSError as error:
            raise InvalidInput(f"task {step.name!r} cannot run {error.filename!r}: {error.strerror}") from error
        return Ran(step=step, output="", exit_code=done.returncode)

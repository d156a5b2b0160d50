"""The pipeline dialect: Concourse-style jobs of agent and task steps, and the ``memory`` block of each agent.

A file and a call of ``agent.run`` pass the same checks and give the same values.  Nothing is run here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, field
from msgspec.structs import force_setattr

from commonplace.config.decode import At, ConfigBlock, Misfit, Required, check_name, decode, read_yaml
from commonplace.model.binding import CONTENT_BYTES_LIMIT, Binding
from commonplace.model.errors import InvalidInput
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

MAX_RECALL = 5
MAX_CONTENT_BYTES = 4096  # a lesson is short by design
MAX_RECALL_MOST = 1000  # more would be a dump, not a recall


class MemoryBlock(ConfigBlock):
    """What an agent may remember: the ``memory`` block.  Off by default; a number below one means the default."""

    enabled: bool = False
    max_recall: Annotated[int, Meta(le=MAX_RECALL_MOST)] = MAX_RECALL  #: memories that one recall returns at most
    max_content_bytes: Annotated[int, Meta(le=CONTENT_BYTES_LIMIT)] = MAX_CONTENT_BYTES  #: bytes of one memory at most

    def __post_init__(self) -> None:
        """Replace numbers below one by their defaults."""
        for name, default in (("max_recall", MAX_RECALL), ("max_content_bytes", MAX_CONTENT_BYTES)):
            if getattr(self, name) < 1:
                force_setattr(self, name, default)

    def bind(self, pipeline: str, agent: str) -> Binding:
        """What this agent of this pipeline may do: read and write its own memories, and no others."""
        scope = agent_scope(pipeline, agent)
        return Binding(
            channel=Channel.AGENT,
            writes={Kind.SEMANTIC: scope},
            reads=(scope,),
            content_bytes=self.max_content_bytes,
        )


class StepConfig(ConfigBlock):
    """Where a step is meant to run: carried, not acted on, as steps run where the command runs."""

    platform: str | None = None
    image: str | None = None


class AgentStep(ConfigBlock):
    """A model at work on a prompt."""

    name: str = field(name="agent")  #: whose memory it has; a blank name has none
    prompt: Required
    model: Required
    memory: MemoryBlock | None = None
    config: StepConfig = StepConfig()
    base_url: str | None = None  #: another address, which speaks OpenAI's protocol
    api_key_env: str | None = None  #: the variable that holds the key, if not the provider's own

    def __post_init__(self) -> None:
        """Check that memories can be stored under the name."""
        force_setattr(self, "name", self.name.strip())
        if self.name:
            check_name("agent", self.name, "agent")


class TaskCommand(ConfigBlock):
    """The program of a task."""

    path: Required
    args: tuple[str, ...] = ()
    dir: str | None = None  #: where it runs, from the working directory


class TaskConfig(StepConfig):
    """What a task runs."""

    run: TaskCommand
    params: Mapping[str, str] = {}  #: variables of its environment

    def __post_init__(self) -> None:
        """Check that every parameter can be a variable."""
        for name in self.params:
            if not name.strip() or "=" in name:
                raise Misfit("params", f"{name!r} cannot name a variable")


class TaskStep(ConfigBlock):
    """A command of the file's author; it runs on this machine, and only if the user of the pipeline allows it."""

    name: Required = field(name="task")
    config: TaskConfig


Step: TypeAlias = AgentStep | TaskStep


class _JobFile(ConfigBlock):
    name: Required
    plan: Annotated[tuple[Any, ...], Meta(min_length=1)]


class _PipelineFile(ConfigBlock):
    name: str = ""
    jobs: Annotated[tuple[_JobFile, ...], Meta(min_length=1)]


class PipelineJob(Value):
    """Steps, one after the other."""

    name: str
    plan: tuple[Step, ...]


class Pipeline(Value):
    """A file, read and checked."""

    name: str  #: what its memories are stored under
    file: str
    named: bool  #: the file says its name; else it is called after the file
    jobs: tuple[PipelineJob, ...]

    def select_jobs(self, job: str | None) -> tuple[PipelineJob, ...]:
        """The job of that name, or all of them."""
        if job is None:
            return self.jobs
        found = tuple(one for one in self.jobs if one.name == job)
        if not found:
            known = ", ".join(one.name for one in self.jobs)
            raise InvalidInput(f"{self.file} has no job {job!r}; it has {known}")
        return found


def pipeline_scope(pipeline: str) -> Scope:
    """Where everything of a pipeline lives; dropping it drops all of it."""
    return Scope.of(("pipeline", pipeline))


def agent_scope(pipeline: str, agent: str) -> Scope:
    """Where the memories of one agent of one pipeline live."""
    return Scope.of(("pipeline", pipeline), ("agent", agent))


def load(file: str) -> Pipeline:
    """Read a pipeline from its file."""
    return parse(read_yaml(file), file=file)


def parse(data: Any, *, file: str) -> Pipeline:
    """Check the data of a file: ``jobs`` with their plans, or the steps of a single plan."""
    at = At(file=file)
    stem = os.path.basename(file).partition(".")[0]
    if isinstance(data, list):
        data = {"jobs": [{"name": stem, "plan": data}]}
    described = decode(data, _PipelineFile, at)
    named = described.name.strip()
    jobs = tuple(_job(job, at.key("jobs").item(number)) for number, job in enumerate(described.jobs))
    names = [job.name for job in jobs]
    for number, name in enumerate(names):
        if name in names[:number]:
            raise at.key("jobs").item(number).key("name").error(f"{name!r} is the name of an earlier job")
    try:
        check_name("pipeline", named or stem, "name")
    except Misfit as error:
        raise error.at(at) from error
    return Pipeline(name=named or stem, file=file, named=bool(named), jobs=jobs)


def agent_step(
    *, name: str, prompt: str, model: str, memory: Any = None, image: str | None = None, platform: str | None = None,
    base_url: str | None = None, api_key_env: str | None = None,
) -> AgentStep:  # fmt: skip
    """Check what a program passes to ``agent.run``, as if it were in a file."""
    config = {"platform": platform, "image": image}
    data = {"agent": name, "prompt": prompt, "model": model, "memory": memory, "config": config}
    return decode(data | {"base_url": base_url, "api_key_env": api_key_env}, AgentStep, At(file="agent.run"))


def _job(job: _JobFile, at: At) -> PipelineJob:
    steps = (_step(step, at.key("plan").item(number)) for number, step in enumerate(job.plan))
    return PipelineJob(name=job.name, plan=tuple(steps))


def _step(data: Any, at: At) -> Step:
    keys = data if isinstance(data, Mapping) else {}
    if "agent" in keys:
        return decode(data, AgentStep, at)
    if "task" in keys:
        return decode(data, TaskStep, at)
    found = f"`{next(iter(keys))}:`" if keys else repr(data)
    raise at.error(f"a step is `agent:` or `task:`; {found} cannot be run here")

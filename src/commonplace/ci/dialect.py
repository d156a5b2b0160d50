"""The pipeline dialect: Concourse-style jobs of agent and task steps, and the ``memory`` block of each agent.

A file and a call of ``agent.run`` pass the same checks and give the same values.  Nothing is run here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, TypeAlias

from commonplace.config.decode import At, mapping, nameable, needed, text, word
from commonplace.model.binding import CONTENT_BYTES_MOST, Binding
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text import strict_yaml

MAX_RECALL = 5
MAX_CONTENT_BYTES = 4096  # a lesson is short by design
MAX_RECALL_MOST = 1000  # more would be a dump, not a recall
FILE_BYTES = 262_144  # prompts are long, and a pipeline has several
FILE_DEPTH = 12  # jobs, plan, steps, config, run and args already take eight
AGENT_KEYS = ("agent", "prompt", "model", "memory", "config", "base_url", "api_key_env")
TASK_KEYS = ("task", "config")


class MemoryBlock(Value):
    """What an agent may remember: the ``memory`` block.  Off unless it says otherwise."""

    enabled: bool = False
    max_recall: int = MAX_RECALL  #: memories that one recall brings back at most
    max_content_bytes: int = MAX_CONTENT_BYTES  #: bytes of one memory at most

    def bind(self, pipeline: str, agent: str) -> Binding:
        """What this agent of this pipeline may do: read and write its own memories, and see nobody else's."""
        scope = agent_scope(pipeline, agent)
        return Binding(
            channel=Channel.AGENT,
            writes={Kind.SEMANTIC: scope},
            reads=(scope,),
            content_bytes=self.max_content_bytes,
        )


class AgentStep(Value):
    """A model at work on a prompt."""

    name: str  #: whose memory it has; a blank name has none
    prompt: str
    model: str
    memory: MemoryBlock | None = None
    platform: str | None = None  #: carried, not acted on: agents run where the command runs
    image: str | None = None  #: carried likewise
    base_url: str | None = None  #: another address, which speaks OpenAI's protocol
    api_key_env: str | None = None  #: the variable that holds the key, if not the provider's own


class TaskStep(Value):
    """A command of the file's author; it runs on this machine, and only if whoever runs the pipeline allows it."""

    name: str
    path: str  #: the program
    args: tuple[str, ...] = ()
    dir: str | None = None  #: where it runs, from the working directory
    params: Mapping[str, str] = {}  #: variables of its environment
    platform: str | None = None
    image: str | None = None


Step: TypeAlias = AgentStep | TaskStep


class Job(Value):
    """Steps, one after the other."""

    name: str
    plan: tuple[Step, ...]


class Pipeline(Value):
    """A file, read and checked."""

    name: str  #: what its memories are kept under
    file: str
    named: bool  #: the file says its name; else it is called after the file
    jobs: tuple[Job, ...]

    def chosen(self, job: str | None) -> tuple[Job, ...]:
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
    try:
        with open(file, encoding="utf-8") as source:
            text = source.read(FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("cannot be read: it is not UTF-8", file=file) from error
    try:
        said = strict_yaml.load(text, file=file, max_bytes=FILE_BYTES, max_depth=FILE_DEPTH)
    except strict_yaml.YamlError as error:
        raise ConfigError(f"line {error.line}: {error.reason}", file=file) from error
    return parse(said, file=file)


def parse(said: Any, *, file: str) -> Pipeline:
    """Check what a file says: ``jobs`` with their plans, or the steps of a single plan."""
    at = At(file=file)
    stem = os.path.basename(file).partition(".")[0]
    if isinstance(said, list):
        said = {"jobs": [{"name": stem, "plan": said}]}
    top = mapping(said, at, ("name", "jobs"))
    jobs = tuple(_job(one, at.key("jobs").item(n)) for n, one in enumerate(_list(top.get("jobs"), at.key("jobs"))))
    names = [job.name for job in jobs]
    for n, name in enumerate(names):
        if name in names[:n]:
            raise at.key("jobs").item(n).key("name").error(f"{name!r} is the name of an earlier job")
    named = (text(top, "name", at) or "").strip()
    nameable("pipeline", named or stem, at.key("name"))
    return Pipeline(name=named or stem, file=file, named=bool(named), jobs=jobs)


def agent_step(
    *,
    name: str,
    prompt: str,
    model: str,
    memory: Any = None,
    image: str | None = None,
    platform: str | None = None,
    base_url: str | None = None,
    api_key_env: str | None = None,
) -> AgentStep:
    """Check what a program says when it calls ``agent.run``: the same as a file could say."""
    config = {"platform": platform, "image": image}
    said = {"agent": name, "prompt": prompt, "model": model, "memory": memory, "config": config}
    return _agent(said | {"base_url": base_url, "api_key_env": api_key_env}, At(file="agent.run"))


def _job(said: Any, at: At) -> Job:
    said = mapping(said, at, ("name", "plan"))
    plan = _list(said.get("plan"), at.key("plan"))
    steps = tuple(_step(step, at.key("plan").item(n)) for n, step in enumerate(plan))
    return Job(name=needed(said, "name", at), plan=steps)


def _step(said: Any, at: At) -> Step:
    if isinstance(said, dict) and "agent" in said:
        return _agent(said, at)
    if isinstance(said, dict) and "task" in said:
        return _task(said, at)
    what = f"`{next(iter(said))}:`" if isinstance(said, dict) and said else repr(said)
    raise at.error(f"a step is `agent:` or `task:`; {what} cannot be run here")


def _agent(said: Any, at: At) -> AgentStep:
    said = mapping(said, at, AGENT_KEYS)
    name = text(said, "agent", at)
    if name is None:
        raise at.key("agent").error("should be the agent's name")
    if name.strip():
        nameable("agent", name, at.key("agent"))
    config = mapping(said.get("config") or {}, at.key("config"), ("platform", "image"))
    return AgentStep(
        name=name.strip(),
        prompt=needed(said, "prompt", at),
        model=needed(said, "model", at),
        memory=memory_block(said.get("memory"), at.key("memory")),
        platform=text(config, "platform", at.key("config")),
        image=text(config, "image", at.key("config")),
        base_url=text(said, "base_url", at),
        api_key_env=text(said, "api_key_env", at),
    )


def memory_block(said: Any, at: At) -> MemoryBlock | None:
    """Check a ``memory`` block; an absent one is off, and a number below one means the default."""
    if said is None:
        return None
    said = mapping(said, at, MemoryBlock.fields)
    enabled = strict_yaml.truth(said.get("enabled", False))
    if enabled is None:
        raise at.key("enabled").error(f"should be true or false, not {said['enabled']!r}")
    return MemoryBlock(
        enabled=enabled,
        max_recall=_count(said, "max_recall", at, default=MAX_RECALL, most=MAX_RECALL_MOST),
        max_content_bytes=_count(
            said, "max_content_bytes", at, default=MAX_CONTENT_BYTES, most=CONTENT_BYTES_MOST
        ),
    )  # fmt: skip


def _task(said: Any, at: At) -> TaskStep:
    said = mapping(said, at, TASK_KEYS)
    inside = at.key("config")
    config = mapping(said.get("config"), inside, ("platform", "image", "params", "run"))
    run = mapping(config.get("run"), inside.key("run"), ("path", "args", "dir"))
    args = _list(run.get("args") or [], inside.key("run").key("args"), empty=True)
    params = mapping(config.get("params") or {}, inside.key("params"), None)
    for name in params:
        if not name.strip() or "=" in name:
            raise inside.key("params").error(f"{name!r} cannot name a variable")
    return TaskStep(
        name=needed(said, "task", at),
        path=needed(run, "path", inside.key("run")),
        args=tuple(word(arg, inside.key("run").key("args").item(n)) for n, arg in enumerate(args)),
        dir=text(run, "dir", inside.key("run")),
        params={name: word(value, inside.key("params").key(name)) for name, value in params.items()},
        platform=text(config, "platform", inside),
        image=text(config, "image", inside),
    )


def _list(said: Any, at: At, *, empty: bool = False) -> list[Any]:
    if not isinstance(said, list) or not (said or empty):
        raise at.error("should be a list" + ("" if empty else " with something in it"))
    return said


def _count(said: Mapping[str, Any], name: str, at: At, *, default: int, most: int) -> int:
    value = said.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int):
        raise at.key(name).error(f"should be a whole number, not {value!r}")
    if value > most:
        raise at.key(name).error(f"should be at most {most}, not {value}")
    return value if value > 0 else default

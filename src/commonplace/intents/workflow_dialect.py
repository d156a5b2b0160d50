"""The workflow dialect: phases that agents are assigned to, in the order of ``depends_on``, and the memory of each.

It reads the document's form (``memory`` and ``workflow``), its ``openintent`` and ``info`` header, and the form of
RFC-0015 (``plan``, ``memory_policy``, ``working_memory``, ``episodic_memory``).  Nothing is imported or run here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from graphlib import CycleError
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, field

from commonplace.config.decode import (
    At,
    ConfigBlock,
    Misfit,
    Required,
    check_name,
    decode,
    parse_yaml,
    read_yaml,
    waves,
)
from commonplace.model.values import Value

TIER = "episodic"  # the default
PHASES_MOST = 500  # more is a program
PHASE_BYTES = 480  # of a name: a task's may have 512, and that of the run stands before it
IMPORT = r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*$"

Tier: TypeAlias = Literal["working", "episodic", "semantic"]
Entries = Annotated[int, Meta(ge=1, le=1_000_000, description="a whole number of entries")]
Kilobytes = Annotated[int, Meta(ge=1, le=1_048_576, description="a whole number of kilobytes")]
Seconds = Annotated[int, Meta(ge=1, le=3_153_600_000, description="a whole number of seconds")]  # a hundred years
ImportPath = Annotated[str, Meta(pattern=IMPORT, description="an import path such as package.module:Class")]


class _Memory(ConfigBlock):
    """The keys that every ``memory`` block has."""

    namespace: str | None = None  #: where entries are stored and searched
    tier: Tier | None = None  #: of what is stored without one
    ttl: Seconds | None = None  #: how long an entry of this tier lives if it says nothing itself
    max_entries: Entries | None = None  #: of this tier: episodic evicts, working refuses

    def __post_init__(self) -> None:
        """Check the namespace, and that the tier can have a limit."""
        if self.tier == "semantic" and self.max_entries is not None:
            raise Misfit("max_entries", "cannot be kept here: semantic memory is never evicted")
        if self.namespace is not None:
            _check_namespace(self.namespace, "namespace")


class WorkflowMemoryBlock(_Memory):
    """A ``memory`` block of a phase; that of a whole workflow hands nothing on."""

    handoff: bool = False  #: the phases that depend on this one may read its working memory


class PolicyBlock(ConfigBlock):
    """What holds for the working memory of a task; None: the workflow's policy decides."""

    archive_on_completion: bool | None = None
    inherit_from_parent: bool | None = None  #: a sub-task reads what its parent stores
    max_entries: Entries | None = None
    max_total_size_kb: Kilobytes | None = None

    def over(self, other: PolicyBlock) -> PolicyBlock:
        """This one, and where it is silent, the other."""
        return PolicyBlock(**other.to_dict() | self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The fields that are set."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


class WorkingMemory(ConfigBlock):
    """RFC-0015's limits for the working memory of every task."""

    archive_on_completion: bool | None = None
    max_entries: Entries | None = field(name="max_entries_per_task", default=None)
    max_total_size_kb: Kilobytes | None = None


class EpisodicMemory(ConfigBlock):
    """RFC-0015's limit for the episodic memory of every agent."""

    capacity: Entries | None = field(name="capacity_per_agent", default=None)
    eviction_policy: Literal["lru"] = "lru"  #: the only one


class WorkflowMemory(_Memory):
    """The ``memory`` block of a workflow, in the document's form and in that of RFC-0015."""

    semantic_namespaces: tuple[str, ...] | None = None  #: the shared ones that may be used; None: any
    working_memory: WorkingMemory = WorkingMemory()
    episodic_memory: EpisodicMemory = EpisodicMemory()

    def __post_init__(self) -> None:
        """Check every namespace."""
        super().__post_init__()
        for number, name in enumerate(self.semantic_namespaces or ()):
            _check_namespace(name, f"semantic_namespaces[{number}]")


class AgentMemoryFile(ConfigBlock):
    """The ``episodic_memory`` of an agent."""

    capacity: Entries | None = None
    pinned_namespaces: tuple[str, ...] = ()


class WorkflowAgentFile(ConfigBlock):
    """An agent, as the file describes it; the last three keys are carried, not acted on."""

    use: ImportPath | None = None
    model: str | None = None
    prompt: str | None = None
    base_url: str | None = None
    api_key_env: str | None = None
    episodic_memory: AgentMemoryFile = AgentMemoryFile()
    description: str | None = None
    capabilities: tuple[str, ...] = ()
    permissions: str | None = None

    def __post_init__(self) -> None:
        """Check that it is a class or a model, and that a class brings everything itself."""
        if self.use and self.model:
            raise Misfit("", "should have `use` or `model`, not both: a class brings its own")
        for name in ("prompt", "base_url", "api_key_env"):
            if not self.model and getattr(self, name) is not None:
                raise Misfit(name, "needs a `model`")


class AgentBlock(Value):
    """An agent of the file: a class by its import path, one for a model to be, or a name that a program fills."""

    name: str
    use: str | None = None  #: ``package.module:Class``, of a class with ``@Agent``
    model: str | None = None
    prompt: str | None = None  #: the instructions of the model
    base_url: str | None = None  #: another address, which speaks OpenAI's protocol
    api_key_env: str | None = None  #: the variable that holds the key, if not the provider's own
    capacity: int | None = None  #: episodic entries that it keeps
    pinned_namespaces: tuple[str, ...] = ()  #: what it stores there is pinned


class PhaseFile(ConfigBlock):
    """A phase under ``workflow``."""

    title: str = ""
    description: str = ""
    assign: Required
    depends_on: tuple[str, ...] = ()
    memory: WorkflowMemoryBlock = WorkflowMemoryBlock()
    policy: PolicyBlock = field(name="memory_policy", default=PolicyBlock())
    outputs: tuple[str, ...] = ()  #: carried, not acted on

    def __post_init__(self) -> None:
        """Check that the agent can have memories."""
        check_name("agent", self.assign.strip(), "assign")


class TaskFile(PhaseFile):
    """A phase under ``plan``, as RFC-0015 writes it."""

    task: Required
    assign: Required = field(name="agent")


class Phase(PhaseFile):
    """One step: an agent and its assignment."""

    name: str
    path: str  #: its place in the file, for errors to name


class Info(ConfigBlock):
    """The header of the OpenIntent package."""

    name: str = ""
    version: str | None = None
    description: str | None = None


PHASES = "a mapping with a phase in it, such as `research: {assign: researcher}`"


class WorkflowFile(ConfigBlock):
    """A workflow file; exactly one of ``workflow`` and ``plan`` has the phases."""

    openintent: Annotated[str, Meta(pattern=r"^1(\.|$)", description="1.0")] | None = None
    info: Info = Info()
    name: str = ""
    version: str | None = None
    description: str | None = None
    memory: WorkflowMemory = WorkflowMemory()
    agents: Mapping[str, ImportPath | WorkflowAgentFile | None] = {}
    workflow: Annotated[Mapping[str, PhaseFile], Meta(description=PHASES)] | None = None
    plan: tuple[TaskFile, ...] | None = None

    def __post_init__(self) -> None:
        """Check that there are phases, in one form."""
        if (self.workflow is None) == (self.plan is None):
            raise Misfit("", "should have its phases under `workflow`, or under `plan` as RFC-0015 writes it")
        if not (self.workflow or self.plan):
            empty = ("workflow", PHASES) if self.plan is None else ("plan", "a list with a task in it")
            raise Misfit(empty[0], f"should be {empty[1]}")


class Workflow(Value):
    """A file, read and checked: every phase depends on phases that there are, and none on itself."""

    name: str
    file: str
    phases: tuple[Phase, ...]
    memory: WorkflowMemoryBlock = WorkflowMemoryBlock()
    policy: PolicyBlock = PolicyBlock()  #: of every phase that says nothing else
    capacity: int | None = None  #: episodic entries of every agent that says nothing else
    semantic_namespaces: tuple[str, ...] | None = None  #: the shared ones that may be used; None: any
    agents: Mapping[str, AgentBlock] = {}

    def phase(self, name: str) -> Phase:
        """The phase of that name."""
        return next(phase for phase in self.phases if phase.name == name)

    def dependents(self, name: str) -> tuple[Phase, ...]:
        """The phases that wait for this one."""
        return tuple(phase for phase in self.phases if name in phase.depends_on)

    def handoffs_to(self, phase: Phase) -> tuple[Phase, ...]:
        """The phases whose working memory this one may read."""
        return tuple(one for one in map(self.phase, phase.depends_on) if one.memory.handoff)

    def agent(self, phase: Phase) -> AgentBlock:
        """What the file says of a phase's agent."""
        known = self.agents.get(phase.assign)
        if known is None and re.search(IMPORT, phase.assign):
            return AgentBlock(name=phase.assign, use=phase.assign)
        return known or AgentBlock(name=phase.assign)

    def order(self) -> list[tuple[str, ...]]:
        """The phases in waves: everything in a wave depends on earlier waves only, and may run at once."""
        return waves({phase.name: phase.depends_on for phase in self.phases})


def load(file: str) -> Workflow:
    """Read a workflow from its file."""
    return parse(read_yaml(file), file=file)


def loads(text: str, *, file: str = "workflow.yml") -> Workflow:
    """Read a workflow from its text; ``file`` is what errors call it."""
    return parse(parse_yaml(text, file=file), file=file)


def parse(data: Any, *, file: str) -> Workflow:
    """Check the data of a file."""
    at = At(file=file)
    described = decode(data, WorkflowFile, at)
    memory = described.memory
    working = memory.working_memory
    try:
        workflow = Workflow(
            name=_name(described, file),
            file=file,
            phases=_phases(described),
            memory=WorkflowMemoryBlock(**{name: getattr(memory, name) for name in _Memory.__struct_fields__}),
            policy=PolicyBlock(**{name: getattr(working, name) for name in working.__struct_fields__}),
            capacity=memory.episodic_memory.capacity,
            semantic_namespaces=memory.semantic_namespaces,
            agents={name: _agent(name, agent) for name, agent in described.agents.items()},
        )
        _check_order(workflow)
    except Misfit as error:
        raise error.at(at) from error
    return workflow


def _name(described: WorkflowFile, file: str) -> str:
    """The workflow's name: that of the header, its own, or the file's."""
    stem = os.path.basename(file).partition(".")[0]
    name = (described.info.name or described.name or stem).strip()
    check_name("task", name, "info.name" if described.info.name else "name")
    return name


def _phases(described: WorkflowFile) -> tuple[Phase, ...]:
    phases = [_phase(name, f"workflow.{name}", block) for name, block in (described.workflow or {}).items()]
    for number, task in enumerate(described.plan or ()):
        if any(phase.name == task.task for phase in phases):
            raise Misfit(f"plan[{number}].task", f"{task.task!r} is the name of an earlier task")
        phases.append(_phase(task.task, f"plan[{number}]", task))
    if len(phases) > PHASES_MOST:
        raise Misfit("", f"has {len(phases)} phases; {PHASES_MOST} are the most")
    return tuple(phases)


def _phase(name: str, path: str, block: PhaseFile) -> Phase:
    check_name("task", name, path)
    if len(name.encode()) > PHASE_BYTES:
        raise Misfit(path, f"the name of a phase may have at most {PHASE_BYTES} bytes: {name[:40]!r}...")
    given = {key: getattr(block, key) for key in PhaseFile.__struct_fields__}
    texts = {"assign": block.assign.strip(), "title": block.title or name, "description": block.description.strip()}
    return Phase(name=name, path=path, **given | texts)


def _check_order(workflow: Workflow) -> None:
    """Refuse dependencies that are unknown, repeated or circular."""
    paths = {phase.name: f"{phase.path}.depends_on" for phase in workflow.phases}
    for phase in workflow.phases:
        for number, other in enumerate(phase.depends_on):
            path = f"{paths[phase.name]}[{number}]"
            if other not in paths:
                raise Misfit(path, f"there is no phase {other!r}; there are {', '.join(paths)}")
            if other in phase.depends_on[:number]:
                raise Misfit(path, f"names {other!r} twice")
    try:
        workflow.order()
    except CycleError as error:
        circle = error.args[1][::-1]  # from a phase to what it depends on
        raise Misfit(paths[circle[0]], f"is circular: {' -> '.join(circle)}") from error


def _check_namespace(name: str, path: str) -> None:
    """Refuse what cannot name a namespace: a workflow that is read can also be run."""
    check_name("namespace", name, path)
    if "*" in name:
        raise Misfit(path, f"{name!r} cannot name a namespace: a star stands for the rest of a name")


def _agent(name: str, given: str | WorkflowAgentFile | None) -> AgentBlock:
    check_name("agent", name, f"agents.{name}")
    if isinstance(given, str):
        return AgentBlock(name=name, use=given)
    described = given or WorkflowAgentFile()
    return AgentBlock(
        name=name,
        use=described.use,
        model=described.model,
        prompt=described.prompt,
        base_url=described.base_url,
        api_key_env=described.api_key_env,
        capacity=described.episodic_memory.capacity,
        pinned_namespaces=described.episodic_memory.pinned_namespaces,
    )

"""The workflow dialect: phases that agents are assigned to, in the order of ``depends_on``, and the memory of each.

It reads the document's form (``memory`` and ``workflow``), its ``openintent`` and ``info`` header, and the form of
RFC-0015 (``plan``, ``memory_policy``, ``working_memory``, ``episodic_memory``).  Nothing is imported or run here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from commonplace.config.decode import At, listed, mapping, nameable, needed, text, word
from commonplace.model.errors import ConfigError
from commonplace.model.values import Value
from commonplace.text import strict_yaml

TIERS = ("working", "episodic", "semantic")
TIER = "episodic"  # unless anybody says otherwise
FILE_BYTES = 262_144  # descriptions are long, and a workflow has several phases
FILE_DEPTH = 8
ENTRIES_MOST = 1_000_000  # more than one agent could ever look through
SIZE_KB_MOST = 1_048_576  # a gibibyte
TTL_MOST = 3_153_600_000  # seconds: a hundred years
PHASES_MOST = 500  # more is a program
PHASE_BYTES = 480  # of a name: a task's may have 512, and that of the run stands before it

TOP_KEYS = ("openintent", "info", "name", "version", "description", "memory", "agents", "workflow", "plan")
MEMORY_KEYS = ("namespace", "tier", "ttl", "max_entries")
PHASE_KEYS = ("title", "description", "assign", "depends_on", "memory", "memory_policy", "outputs")
TASK_KEYS = ("task", "agent", "title", "description", "depends_on", "memory", "memory_policy", "outputs")
POLICY_KEYS = ("archive_on_completion", "inherit_from_parent", "max_entries", "max_total_size_kb")
AGENT_KEYS = (
    "use", "model", "prompt", "base_url", "api_key_env", "episodic_memory", "description", "capabilities",
    "permissions",
)  # fmt: skip
_IMPORT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class MemoryBlock(Value):
    """A ``memory`` block: of the whole workflow, or of a phase."""

    namespace: str | None = None  #: where entries are kept and looked for
    tier: str | None = None  #: of what is stored without one
    ttl: int | None = None  #: seconds that an entry of this tier lives if it says nothing itself
    max_entries: int | None = None  #: of this tier: episodic evicts, working refuses
    handoff: bool = False  #: the phases that depend on this one may read its working memory


class Policy(Value):
    """What holds for the working memory of a task; None: the next one asked decides."""

    archive_on_completion: bool | None = None
    inherit_from_parent: bool | None = None  #: a sub-task reads what its parent keeps
    max_entries: int | None = None
    max_total_size_kb: int | None = None

    def over(self, other: Policy) -> Policy:
        """This one, and where it says nothing, the other."""
        return Policy(**other.said() | self.said())

    def said(self) -> dict[str, Any]:
        """What it says."""
        return {name: value for name in type(self).fields if (value := getattr(self, name)) is not None}


class AgentBlock(Value):
    """An agent of the file: a class by its import path, one for a model to be, or a name that a program fills."""

    name: str
    use: str | None = None  #: ``package.module:Class``, of a class with ``@Agent``
    model: str | None = None
    prompt: str | None = None  #: what the model is told about itself
    base_url: str | None = None  #: another address, which speaks OpenAI's protocol
    api_key_env: str | None = None  #: the variable that holds the key, if not the provider's own
    capacity: int | None = None  #: episodic entries that it keeps
    pinned_namespaces: tuple[str, ...] = ()  #: what it stores there is pinned


class Phase(Value):
    """One step: an agent and what it is assigned."""

    name: str
    path: str  #: where it stands in the file, for errors to name
    assign: str
    title: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    memory: MemoryBlock = MemoryBlock()
    policy: Policy = Policy()
    outputs: tuple[str, ...] = ()  #: carried, not acted on


class Workflow(Value):
    """A file, read and checked: every phase depends on phases that there are, and none on itself."""

    name: str
    file: str
    phases: tuple[Phase, ...]
    memory: MemoryBlock = MemoryBlock()
    policy: Policy = Policy()  #: of every phase that says nothing else
    capacity: int | None = None  #: episodic entries of every agent that says nothing else
    semantic_namespaces: tuple[str, ...] | None = None  #: the shared ones that may be used; None: any
    agents: Mapping[str, AgentBlock] = {}

    def phase(self, name: str) -> Phase:
        """The phase of that name."""
        return next(phase for phase in self.phases if phase.name == name)

    def dependents(self, name: str) -> tuple[Phase, ...]:
        """The phases that wait for this one."""
        return tuple(phase for phase in self.phases if name in phase.depends_on)

    def handed_to(self, phase: Phase) -> tuple[Phase, ...]:
        """The phases whose working memory this one may read."""
        return tuple(one for one in map(self.phase, phase.depends_on) if one.memory.handoff)

    def agent(self, phase: Phase) -> AgentBlock:
        """What the file says of a phase's agent."""
        known = self.agents.get(phase.assign)
        if known is None and _IMPORT.fullmatch(phase.assign):
            return AgentBlock(name=phase.assign, use=phase.assign)
        return known or AgentBlock(name=phase.assign)

    def order(self) -> list[tuple[str, ...]]:
        """The phases in waves: everything in a wave depends on earlier waves only, and may run at once."""
        waves: list[tuple[str, ...]] = []
        done: set[str] = set()
        while len(done) < len(self.phases):
            ready = tuple(p.name for p in self.phases if p.name not in done and done.issuperset(p.depends_on))
            waves.append(ready)
            done.update(ready)
        return waves


def load(file: str) -> Workflow:
    """Read a workflow from its file."""
    try:
        with open(file, encoding="utf-8") as source:
            text = source.read(FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=file) from error
    except UnicodeDecodeError as error:
        raise ConfigError("cannot be read: it is not UTF-8", file=file) from error
    return loads(text, file=file)


def loads(text: str, *, file: str = "workflow.yml") -> Workflow:
    """Read a workflow from its text; ``file`` is what errors call it."""
    try:
        said = strict_yaml.load(text, file=file, max_bytes=FILE_BYTES, max_depth=FILE_DEPTH)
    except strict_yaml.YamlError as error:
        raise ConfigError(f"line {error.line}: {error.reason}", file=file) from error
    return parse(said, file=file)


def parse(said: Any, *, file: str) -> Workflow:
    """Check what a file says."""
    at = At(file=file)
    top = mapping(said, at, TOP_KEYS)
    memory = mapping(top.get("memory") or {}, at.key("memory"), (*MEMORY_KEYS, *_RFC_KEYS))
    phases = _phases(top, at)
    _refuse_circles(phases, at)
    return Workflow(
        name=_name(top, at),
        file=file,
        phases=phases,
        memory=_memory(memory, at.key("memory")),
        policy=_working(memory, at.key("memory")),
        capacity=_episodic(memory, at.key("memory")),
        semantic_namespaces=_namespaces(memory, at.key("memory")),
        agents=_agents(top.get("agents") or {}, at.key("agents")),
    )


def _name(top: Mapping[str, Any], at: At) -> str:
    """The workflow's name: of the header, its own, or the file's; a header of a version that we know."""
    version = text(top, "openintent", at)
    if version is not None and version.partition(".")[0] != "1":
        raise at.key("openintent").error(f"should be 1.0, not {version!r}")
    info = mapping(top.get("info") or {}, at.key("info"), ("name", "version", "description"))
    for name in ("version", "description"):
        text(info, name, at.key("info"))
    for name in ("version", "description"):
        text(top, name, at)
    stem = os.path.basename(at.file).partition(".")[0]
    name = (text(info, "name", at.key("info")) or text(top, "name", at) or stem).strip()
    nameable("task", name, at.key("info").key("name") if info.get("name") else at.key("name"))
    return name


# Phases


def _phases(top: Mapping[str, Any], at: At) -> tuple[Phase, ...]:
    if ("workflow" in top) == ("plan" in top):
        raise at.error("should have its phases under `workflow`, or under `plan` as RFC-0015 writes it")
    phases = _of_workflow(top["workflow"], at) if "workflow" in top else _of_plan(top["plan"], at.key("plan"))
    names = [phase.name for phase in phases]
    if len(names) > PHASES_MOST:
        raise at.error(f"has {len(names)} phases; {PHASES_MOST} are the most")
    for phase in phases:
        here = At(file=at.file, path=phase.path).key("depends_on")
        for number, other in enumerate(phase.depends_on):
            if other not in names:
                raise here.item(number).error(f"there is no phase {other!r}; there are {', '.join(names)}")
            if other in phase.depends_on[:number]:
                raise here.item(number).error(f"says {other!r} twice")
    return phases


def _of_workflow(said: Any, at: At) -> tuple[Phase, ...]:
    inside = at.key("workflow")
    if not isinstance(said, Mapping) or not said:
        raise inside.error("should be a mapping with a phase in it, such as `research: {assign: researcher}`")
    return tuple(_phase(name, one, inside.key(name), PHASE_KEYS, "assign") for name, one in said.items())


def _of_plan(said: Any, at: At) -> tuple[Phase, ...]:
    phases: list[Phase] = []
    for number, one in enumerate(listed(said, at)):
        here = at.item(number)
        name = needed(mapping(one, here, TASK_KEYS), "task", here)
        if any(phase.name == name for phase in phases):
            raise here.key("task").error(f"{name!r} is the name of an earlier task")
        phases.append(_phase(name, one, here, TASK_KEYS, "agent"))
    if not phases:
        raise at.error("should be a list with a task in it")
    return tuple(phases)


def _phase(name: str, said: Any, at: At, known: Collection[str], assign: str) -> Phase:
    said = mapping(said, at, known)
    nameable("task", name, at)
    if len(name.encode()) > PHASE_BYTES:
        raise at.error(f"the name of a phase may have at most {PHASE_BYTES} bytes: {name[:40]!r}...")
    agent = needed(said, assign, at).strip()
    nameable("agent", agent, at.key(assign))
    memory = mapping(said.get("memory") or {}, at.key("memory"), (*MEMORY_KEYS, "handoff"))
    return Phase(
        name=name,
        path=at.path,
        assign=agent,
        title=text(said, "title", at) or name,
        description=(text(said, "description", at) or "").strip(),
        depends_on=_words(said, "depends_on", at),
        memory=_memory(memory, at.key("memory")),
        policy=_policy(said.get("memory_policy"), at.key("memory_policy")),
        outputs=_words(said, "outputs", at),
    )


def _refuse_circles(phases: Iterable[Phase], at: At) -> None:
    """Refuse a phase that would wait for itself, and say by which way."""
    left = {phase.name: phase for phase in phases}
    while ready := [name for name, phase in left.items() if not left.keys() & set(phase.depends_on)]:
        for name in ready:
            del left[name]
    if not left:
        return
    way: list[str] = []
    name = next(iter(left))
    while name not in way:
        way.append(name)
        name = next(other for other in left[name].depends_on if other in left)
    circle = " -> ".join([*way[way.index(name) :], name])
    raise at.replace(path=left[name].path).key("depends_on").error(f"goes round in a circle: {circle}")


# Memory

_RFC_KEYS = ("semantic_namespaces", "working_memory", "episodic_memory")


def _memory(said: Mapping[str, Any], at: At) -> MemoryBlock:
    tier = text(said, "tier", at)
    if tier is not None and tier not in TIERS:
        raise at.key("tier").error(f"should be one of {', '.join(TIERS)}, not {tier!r}")
    if tier == "semantic" and said.get("max_entries") is not None:
        raise at.key("max_entries").error("cannot be kept here: semantic memory is never evicted")
    namespace = text(said, "namespace", at)
    if namespace is not None:
        _namespace(namespace, at.key("namespace"))
    return MemoryBlock(
        namespace=namespace,
        tier=tier,
        ttl=_count(said, "ttl", at, what="seconds", most=TTL_MOST),
        max_entries=_count(said, "max_entries", at),
        handoff=_truth(said, "handoff", at) or False,
    )


def _policy(said: Any, at: At) -> Policy:
    said = mapping(said or {}, at, POLICY_KEYS)
    return Policy(
        archive_on_completion=_truth(said, "archive_on_completion", at),
        inherit_from_parent=_truth(said, "inherit_from_parent", at),
        max_entries=_count(said, "max_entries", at),
        max_total_size_kb=_count(said, "max_total_size_kb", at, what="kilobytes", most=SIZE_KB_MOST),
    )


def _working(said: Mapping[str, Any], at: At) -> Policy:
    inside = at.key("working_memory")
    known = ("archive_on_completion", "max_entries_per_task", "max_total_size_kb")
    block = mapping(said.get("working_memory") or {}, inside, known)
    return Policy(
        archive_on_completion=_truth(block, "archive_on_completion", inside),
        max_entries=_count(block, "max_entries_per_task", inside),
        max_total_size_kb=_count(block, "max_total_size_kb", inside, what="kilobytes", most=SIZE_KB_MOST),
    )


def _episodic(said: Mapping[str, Any], at: At) -> int | None:
    inside = at.key("episodic_memory")
    block = mapping(said.get("episodic_memory") or {}, inside, ("capacity_per_agent", "eviction_policy"))
    policy = text(block, "eviction_policy", inside)
    if policy not in (None, "lru"):
        raise inside.key("eviction_policy").error(f"should be lru, not {policy!r}: there is no other here")
    return _count(block, "capacity_per_agent", inside)


def _namespace(name: str, at: At) -> None:
    """Refuse what cannot name a namespace: what is read can also be run."""
    nameable("namespace", name, at)
    if "*" in name:
        raise at.error(f"{name!r} cannot name a namespace: a star stands for the rest of a name")


def _namespaces(said: Mapping[str, Any], at: At) -> tuple[str, ...] | None:
    if said.get("semantic_namespaces") is None:
        return None
    found = _words(said, "semantic_namespaces", at)
    for number, name in enumerate(found):
        _namespace(name, at.key("semantic_namespaces").item(number))
    return found


# Agents


def _agents(said: Any, at: At) -> dict[str, AgentBlock]:
    return {name: _agent(name, one, at.key(name)) for name, one in mapping(said, at, None).items()}


def _agent(name: str, said: Any, at: At) -> AgentBlock:
    nameable("agent", name, at)
    if isinstance(said, str):
        return AgentBlock(name=name, use=_import_path(said, at))
    said = mapping(said or {}, at, AGENT_KEYS)
    inside = at.key("episodic_memory")
    episodic = mapping(said.get("episodic_memory") or {}, inside, ("capacity", "pinned_namespaces"))
    use, model = text(said, "use", at), text(said, "model", at)
    if use and model:
        raise at.error("should have `use` or `model`, not both: a class brings its own")
    if not model:
        _refuse_without_model(said, at)
    for carried in ("description", "permissions"):
        text(said, carried, at)
    _words(said, "capabilities", at)
    return AgentBlock(
        name=name,
        use=_import_path(use, at.key("use")) if use else None,
        model=model,
        prompt=text(said, "prompt", at),
        base_url=text(said, "base_url", at),
        api_key_env=text(said, "api_key_env", at),
        capacity=_count(episodic, "capacity", inside),
        pinned_namespaces=_words(episodic, "pinned_namespaces", inside),
    )


def _refuse_without_model(said: Mapping[str, Any], at: At) -> None:
    for name in ("prompt", "base_url", "api_key_env"):
        if said.get(name) is not None:
            raise at.key(name).error("needs a `model` beside it")


def _import_path(said: str, at: At) -> str:
    if not _IMPORT.fullmatch(said):
        raise at.error(f"should be an import path such as package.module:Class, not {said!r}")
    return said


# What YAML gives, checked


def _words(said: Mapping[str, Any], name: str, at: At) -> tuple[str, ...]:
    here = at.key(name)
    value = said.get(name)
    return () if value is None else tuple(word(one, here.item(n)) for n, one in enumerate(listed(value, here)))


def _truth(said: Mapping[str, Any], name: str, at: At) -> bool | None:
    value = said.get(name)
    if value is None:
        return None
    found = strict_yaml.truth(value)
    if found is None:
        raise at.key(name).error(f"should be true or false, not {value!r}")
    return found


def _count(
    said: Mapping[str, Any], name: str, at: At, *, what: str = "entries", most: int = ENTRIES_MOST
) -> int | None:
    """A number of at least one: none of a thing would be no memory, and is better said by leaving it out."""
    value = said.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise at.key(name).error(f"should be a whole number of {what}, not {value!r}")
    if not 1 <= value <= most:
        bounds = f"at least 1, not {value}" if value < 1 else f"at most {most}, not {value}"
        raise at.key(name).error(f"should be {bounds}")
    return value

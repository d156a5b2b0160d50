"""The flow dialect: several agents in one file, which agent hands its answer to which, and the store they may share.

Each agent is a role file of its own.  Nothing is opened and no model is called here; unknown names, circles and chains
that are too long are refused before anything runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from graphlib import CycleError
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from commonplace.config.decode import At, ConfigBlock, Required, decode, read_yaml, waves
from commonplace.model.errors import ConfigError
from commonplace.model.values import Value
from commonplace.roles import dialect as roles
from commonplace.roles.dialect import (
    Backend,
    Count,
    Envelope,
    Metadata,
    ModelSettings,
    Name,
    Role,
    Security,
    SharedMemory,
)

KIND = "Flow"
DEPTH = 20  # agents, one after the other: more is a mistake, and costs one model each
AGENTS = 100

Names: TypeAlias = Annotated[str | tuple[Any, ...], Meta(description="an agent or a list of agents")]


class Sink(ConfigBlock):
    """To which agents an agent hands its answer."""

    type: Literal["delegate"]
    target: Names


class AgentEntry(ConfigBlock):
    """An agent of a flow file."""

    role: Required  #: its file, from the flow's folder
    sink: Sink | None = None
    needs: Names = ()


class SharedEntry(ConfigBlock):
    """The store that all agents share, once it is enabled; without a path it is called after the flow."""

    enabled: bool = False
    store_path: str = ""
    max_memories: Count = 1000
    store_backend: Backend = "sqlite"


class FlowSpec(ConfigBlock):
    """The ``spec`` of a flow file."""

    agents: Annotated[Mapping[Name, AgentEntry], Meta(min_length=1, max_length=AGENTS)]
    shared_memory: SharedEntry = SharedEntry()
    security: Security = Security()


class FlowFile(Envelope):
    """A flow file."""

    kind: Literal["Flow"]
    metadata: Metadata
    spec: FlowSpec


class FlowMember(Value):
    """One agent of a flow."""

    name: str  #: what the flow calls it
    role: Role
    targets: tuple[str, ...] = ()  #: the agents that get its answer
    needs: tuple[str, ...] = ()  #: the agents that finish before it starts


class Flow(Value):
    """Agents that hand on their answers."""

    name: str
    description: str = ""
    file: str  #: where it was read from; what an error names
    members: tuple[FlowMember, ...]  #: in the order of the file
    shared: SharedMemory | None = None  #: the store that all of them have; None: each has its own

    def member(self, name: str) -> FlowMember:
        """The agent of that name."""
        return next(member for member in self.members if member.name == name)

    def predecessors(self, name: str) -> list[str]:
        """The agents that hand their answer to it, in the order of the file."""
        return [member.name for member in self.members if name in member.targets]

    def starts(self) -> list[str]:
        """The agents that start: those that no other hands anything to."""
        return [member.name for member in self.members if not self.predecessors(member.name)]

    def reachable_from(self, *starts: str) -> list[str]:
        """The agents that run if these start, each after all that it waits for."""
        found = set(starts)
        for name in self.order():
            found |= {name} if found & set(self.predecessors(name)) else set()
        return [name for name in self.order() if name in found]

    def order(self) -> list[str]:
        """Every agent, after all that it waits for."""
        return [name for wave in self.waves() for name in wave]

    def waves(self) -> list[tuple[str, ...]]:
        """The agents in waves: each waits for earlier waves only."""
        return waves({member.name: [*self.predecessors(member.name), *member.needs] for member in self.members})

    def shared_role(self) -> Role:
        """The memory that all of them share, as a role of the flow's name: for commands that look at it."""
        if self.shared is None:
            reason = "is missing, so its agents share nothing; say `enabled: true` below it, or name a role's own file"
            raise ConfigError(reason, file=self.file, path="spec.shared_memory")
        return self.members[0].role.replace(name=self.name, file=self.file, flat=False)

    def with_options(self, *, model: ModelSettings | None = None, memory: bool = True) -> Flow:
        """The same flow with another model for all, or without memory."""

        def role(given: Role) -> Role:
            given = given.replace(model=model) if model else given
            return given if memory else given.replace(memory=None)

        return self.replace(members=tuple(member.replace(role=role(member.role)) for member in self.members))


def load(file: str) -> Role | Flow:
    """Read a role or a flow, by the kind of the file."""
    data = read_yaml(file)
    if isinstance(data, Mapping) and data.get("kind") == KIND:
        return parse(data, file=file)
    return roles.parse(data, file=file)


def parse(data: Any, *, file: str) -> Flow:
    """Check the data of a flow file, and read the roles that it names."""
    at = At(file=file)
    described = decode(data, FlowFile, at)
    name, spec = described.metadata.name, described.spec
    shared = _shared_memory(spec.shared_memory, name)
    members = tuple(_members(spec.agents, at.key("spec.agents")))
    if shared is not None:  # the path is the flow's, so its security counts
        members = tuple(
            member.replace(role=member.role.with_shared_memory(shared).replace(security=spec.security))
            for member in members
        )
    flow = Flow(
        name=name, description=described.metadata.description, file=file, members=members, shared=shared
    )  # fmt: skip
    _check_order(flow, at.key("spec.agents"))
    return flow


def _shared_memory(entry: SharedEntry, flow: str) -> SharedMemory | None:
    if not entry.enabled:
        return None
    path = entry.store_path or os.path.join("memory", f"{flow}-shared.db")
    return SharedMemory(store_path=path, max_memories=entry.max_memories, store_backend=entry.store_backend)


def _members(agents: Mapping[str, AgentEntry], at: At) -> Iterator[FlowMember]:
    folder = os.path.dirname(os.path.abspath(at.file))
    for name, entry in agents.items():
        role = roles.load(os.path.join(folder, entry.role))
        targets = _names(entry.sink.target if entry.sink else (), agents, at.key(f"{name}.sink.target"))
        needs = _names(entry.needs, agents, at.key(f"{name}.needs"))
        yield FlowMember(name=name, role=role, targets=targets, needs=needs)


def _names(given: str | tuple[Any, ...], agents: Mapping[str, AgentEntry], at: At) -> tuple[str, ...]:
    """One name or several, each of an agent of this flow."""
    names = (given,) if isinstance(given, str) else given
    for name in names:
        if not isinstance(name, str) or name not in agents:
            raise at.error(f"{name!r} is no agent here; there are {', '.join(agents)}")
    return tuple(dict.fromkeys(names))


def _check_order(flow: Flow, at: At) -> None:
    """Refuse circles, and chains that are too long."""
    try:
        depth = len(flow.waves())
    except CycleError as error:
        raise at.error(f"goes in a circle: {' -> '.join(error.args[1])}") from error
    if depth > DEPTH:
        raise at.error(f"has a chain of {depth} agents; at most {DEPTH} may be one after the other")

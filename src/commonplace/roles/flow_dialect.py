"""The flow dialect: several agents in one file, who hands what it says to whom, and the store that they may share.

Each agent is a role file of its own.  Nothing is opened and nobody is asked here; a name that leads nowhere, a circle
and a chain that is too long are refused before anything runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from commonplace.config.settings import checked
from commonplace.model.errors import ConfigError
from commonplace.model.values import Value
from commonplace.roles import dialect as roles
from commonplace.roles.dialect import ModelSettings, Role, SharedMemory
from commonplace.roles.envelope import mapping, named, needed, opened, said_in, section, text, text_of
from commonplace.roles.schema import SECURITY, SHARED_BY_FLOW

KIND = "Flow"
SPEC = ("agents", "shared_memory", "security")
AGENT = ("role", "sink", "needs")
SINK = ("type", "target")
DEPTH = 20  # agents, one after the other: more is a mistake, and costs one model each
AGENTS = 100


class Member(Value):
    """One agent of a flow."""

    name: str  #: what the flow calls it
    role: Role
    targets: tuple[str, ...] = ()  #: who is asked with what it says
    needs: tuple[str, ...] = ()  #: who has to be done before it begins


class Flow(Value):
    """Agents that hand on what they say."""

    name: str
    description: str = ""
    file: str  #: where it was read from; what an error names
    members: tuple[Member, ...]  #: in the order of the file
    shared: SharedMemory | None = None  #: the store that all of them have; None: each has its own

    def member(self, name: str) -> Member:
        """The agent that the flow calls so."""
        return next(member for member in self.members if member.name == name)

    def before(self, name: str) -> list[str]:
        """Who hands something to it, in the order of the file."""
        return [member.name for member in self.members if name in member.targets]

    def starts(self) -> list[str]:
        """Who is asked first: whoever is handed nothing."""
        return [member.name for member in self.members if not self.before(member.name)]

    def reached(self, *starts: str) -> list[str]:
        """Who gets to say something if these are asked, everybody after those that they wait for."""
        found = set(starts)
        for name in self.order():
            found |= {name} if found & set(self.before(name)) else set()
        return [name for name in self.order() if name in found]

    def order(self) -> list[str]:
        """Every agent, after all that it waits for; there is no circle, or the file would have been refused."""
        placed: list[str] = []
        waiting = {member.name: {*self.before(member.name), *member.needs} for member in self.members}
        while len(placed) < len(waiting):
            placed += [name for name in waiting if name not in placed and waiting[name] <= set(placed)]
        return placed

    def commons(self) -> Role:
        """The memory that all of them share, as a role of the flow's name: for commands that look at it."""
        if self.shared is None:
            reason = "is missing, so its agents share nothing; say `enabled: true` below it, or name a role's own file"
            raise ConfigError(reason, file=self.file, path="spec.shared_memory")
        return self.members[0].role.replace(name=self.name, file=self.file, flat=False)

    def changed(self, *, model: ModelSettings | None = None, memory: bool = True) -> Flow:
        """The same flow with another model for all, or without memory."""

        def role(given: Role) -> Role:
            given = given.replace(model=model) if model else given
            return given if memory else given.replace(memory=None)

        return self.replace(members=tuple(member.replace(role=role(member.role)) for member in self.members))


def load(file: str) -> Role | Flow:
    """Read a role or a flow, whichever the file says it is."""
    said = said_in(text_of(file), file=file)
    if isinstance(said, Mapping) and said.get("kind") == KIND:
        return parse(said, file=file)
    return roles.parse(said, file=file)


def parse(said: Any, *, file: str) -> Flow:
    """Check what a flow file says, and read the roles that it names."""
    metadata, spec = opened(said, file, kind=KIND, spec=SPEC)
    name = named(metadata, file, "metadata.")
    security = checked(section(spec, "security", file, "spec."), SECURITY, file, within="spec.security.")
    shared = _shared(section(spec, "shared_memory", file, "spec."), name, file)
    members = tuple(_members(spec, file))
    if shared is not None:
        restricted = security["tools"]["restrict_db_paths"]  # the path is the flow's, so its word counts
        members = tuple(
            member.replace(role=member.role.sharing(shared).replace(restrict_db_paths=restricted)) for member in members
        )
    flow = Flow(
        name=name, description=text(metadata, "description", file, "metadata."), file=file, members=members,
        shared=shared,
    )  # fmt: skip
    _straight(flow)
    return flow


def _shared(said: Mapping[str, Any], flow: str, file: str) -> SharedMemory | None:
    """The store of all; without a path it is called after the flow."""
    given = checked(said, SHARED_BY_FLOW, file, within="spec.shared_memory.")
    if not given.pop("enabled"):
        return None
    given["store_path"] = given["store_path"] or os.path.join("memory", f"{flow}-shared.db")
    return SharedMemory(**given)


def _members(spec: Mapping[str, Any], file: str) -> Iterator[Member]:
    said = section(spec, "agents", file, "spec.")
    if not said:
        raise ConfigError("is missing: a flow has at least one agent", file=file, path="spec.agents")
    if len(said) > AGENTS:
        raise ConfigError(f"has {len(said)} agents; at most {AGENTS} may be there", file=file, path="spec.agents")
    folder = os.path.dirname(os.path.abspath(file))
    for key, given in said.items():
        where = f"spec.agents.{key}"
        agent = mapping(given, file, where, AGENT)
        name = named({"name": key}, file, f"{where}.")
        role = roles.load(os.path.join(folder, needed(agent, "role", file, f"{where}.")))
        targets = _names(_sink(agent, file, where).get("target"), said, file, f"{where}.sink.target")
        needs = _names(agent.get("needs"), said, file, f"{where}.needs")
        yield Member(name=name, role=role, targets=targets, needs=needs)


def _sink(agent: Mapping[str, Any], file: str, where: str) -> Mapping[str, Any]:
    """To whom it hands on; nothing said: to nobody."""
    if agent.get("sink") is None:
        return {}
    sink = mapping(agent["sink"], file, f"{where}.sink", SINK)
    if (sort := sink.get("type")) != "delegate":
        raise ConfigError(f"should be delegate, not {sort!r}", file=file, path=f"{where}.sink.type")
    if not sink.get("target"):
        raise ConfigError("is missing", file=file, path=f"{where}.sink.target")
    return sink


def _names(said: Any, agents: Mapping[str, Any], file: str, path: str) -> tuple[str, ...]:
    """One name or a list of them, each of an agent of this flow."""
    names = [said] if isinstance(said, str) else said or []
    if not isinstance(names, list):
        raise ConfigError(f"should be an agent or a list of agents, not {said!r}", file=file, path=path)
    for name in names:
        if not isinstance(name, str) or name not in agents:
            raise ConfigError(f"{name!r} is no agent here; there are {', '.join(agents)}", file=file, path=path)
    return tuple(dict.fromkeys(names))


def _straight(flow: Flow) -> None:
    """Refuse circles, and chains that are too long."""
    waits = {member.name: [*flow.before(member.name), *member.needs] for member in flow.members}
    depths: dict[str, int] = {}
    while len(depths) < len(waits):
        free = [name for name in waits if name not in depths and depths.keys() >= set(waits[name])]
        if not free:
            raise ConfigError(f"goes in a circle: {_circle(waits, depths)}", file=flow.file, path="spec.agents")
        depths |= {name: 1 + max((depths[other] for other in waits[name]), default=0) for name in free}
    if max(depths.values()) > DEPTH:
        reason = f"has a chain of {max(depths.values())} agents; at most {DEPTH} may be one after the other"
        raise ConfigError(reason, file=flow.file, path="spec.agents")


def _circle(waits: Mapping[str, list[str]], free: Mapping[str, int]) -> str:
    """A circle among those that are not free, in the direction in which things are handed on."""
    walked: list[str] = []
    name = next(name for name in waits if name not in free)
    while name not in walked:
        walked.append(name)
        name = next(other for other in waits[name] if other not in free)
    return " -> ".join(reversed([*walked[walked.index(name) :], name]))

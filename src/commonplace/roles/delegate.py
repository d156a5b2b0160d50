"""Agents that ask other agents: each target of a role's delegate tool is a tool of its own, which runs the other role.

The other one starts afresh in this process, with its own prompt, its own model and its own memory, or with the store
that the tool says its targets share.  Circles and chains beyond ``max_depth`` are refused before anything runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from commonplace.agents.quietly import Tell
from commonplace.config.paths import home
from commonplace.model.errors import CommonplaceError, ConfigError
from commonplace.model.values import Value
from commonplace.roles.agent import Asked, Call, Conversation, Helper, RoleAgent, Watch
from commonplace.roles.dialect import DelegateTool, Role, environment, load
from commonplace.roles.memory import role_memory
from commonplace.text.cleaning import slug

PREFIX = "delegate_to_"
MOST = 200  # delegates of delegates, all together


class Target(Value):
    """An agent that may be asked, and those that it may ask in turn."""

    name: str
    tool: str
    description: str
    role: Role
    timeout_seconds: int
    targets: tuple[Target, ...] = ()


def targets(role: Role) -> tuple[Target, ...]:
    """Whom a role may ask, with everybody that they may ask."""
    return _targets(role, [role], [])


def _targets(role: Role, chain: Sequence[Role], met: list[str]) -> tuple[Target, ...]:
    every: list[Target] = []
    for number, tool in enumerate(role.tools):
        path, found = role.path(f"tools[{number}]"), list[Target]()
        for place, one in enumerate(tool.agents):
            where = f"{path}.agents[{place}]"
            target = _loaded(role, tool, one.role_file, where)
            _checked(role, [*chain, target], met, where)
            found.append(
                Target(
                    name=one.name, tool=PREFIX + slug(one.name), role=target, timeout_seconds=tool.timeout_seconds,
                    description=one.description or target.description or f"Ask the agent {one.name}.",
                    targets=_targets(target, [*chain, target], met),
                )
            )  # fmt: skip
        _shallow(role, tool, found, path)
        every += found
    _distinct(role, every)
    return tuple(every)


def _loaded(asking: Role, tool: DelegateTool, file: str, where: str) -> Role:
    """The role of a target, with the store that the tool says, and the asking one's model if it has none."""
    path = os.path.join(asking.folder, os.path.expanduser(file))
    if not os.path.isfile(path):
        raise ConfigError(f"{file!r} is not there", file=asking.file, path=f"{where}.role_file")
    role = load(path)
    role = role.replace(model=role.model or asking.model)
    if tool.shared_memory is None:
        return role
    return role.sharing(tool.shared_memory).replace(security=asking.security)  # whose path it is


def _checked(role: Role, chain: Sequence[Role], met: list[str], where: str) -> None:
    files = [os.path.realpath(one.file) for one in chain]
    if files[-1] in files[:-1]:
        circle = " -> ".join(one.name for one in chain)
        raise ConfigError(f"goes in a circle: {circle}", file=role.file, path=f"{where}.role_file")
    met.append(files[-1])
    if len(met) > MOST:
        raise ConfigError(f"leads to more than {MOST} delegates", file=role.file, path=where)


def _shallow(role: Role, tool: DelegateTool, found: Sequence[Target], path: str) -> None:
    """Refuse chains that are longer than the tool allows."""
    longest = max((_chain(target) for target in found), key=len)
    if len(longest) > tool.max_depth:
        shown = " -> ".join([role.name, *longest])
        reason = f"is {tool.max_depth}, and there are {len(longest)} below each other: {shown}"
        raise ConfigError(reason, file=role.file, path=f"{path}.max_depth")


def _chain(target: Target) -> list[str]:
    """The longest way down from a target."""
    return [target.name, *max((_chain(below) for below in target.targets), key=len, default=[])]


def _distinct(role: Role, found: Sequence[Target]) -> None:
    names = [target.tool for target in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"has two agents that would be {name!r}", file=role.file, path=role.path("tools"))


def helpers(found: Sequence[Target], *, env: Mapping[str, str], watch: Watch, tell: Tell) -> list[Helper]:
    """The tools that ask these; ``env`` is what is set, without any role's .env."""
    said: set[str] = set()

    def once(sentence: str) -> None:
        """Tell what is the same at every call the first time only."""
        if sentence not in said:
            said.add(sentence)
            tell(sentence)

    def helper(target: Target) -> Helper:
        async def ask(prompt: str) -> Asked:
            return await _asked(target, prompt, env=env, watch=watch, tell=once)

        return Helper(tool=target.tool, description=target.description, ask=ask)

    return [helper(target) for target in found]


async def _asked(target: Target, prompt: str, *, env: Mapping[str, str], watch: Watch, tell: Tell) -> Asked:
    """Run the other one; what goes wrong is a sentence for the one that asked, and its tokens count all the same."""
    asked: list[RoleAgent] = []
    try:
        with _agent(target, env=env, watch=watch, tell=tell) as agent:
            asked.append(agent)
            async with asyncio.timeout(target.timeout_seconds):
                answer = (await Conversation(agent, tell=tell).say(prompt)).output
    except TimeoutError:
        answer = f"Error: agent {target.name!r} did not answer within {target.timeout_seconds} seconds"
    except CommonplaceError as error:
        answer = f"Error: {error}"
    return Asked(answer=answer, tokens=sum(one.used for one in asked))


@contextmanager
def _agent(target: Target, *, env: Mapping[str, str], watch: Watch, tell: Tell) -> Iterator[RoleAgent]:
    def watched(call: Call) -> None:
        watch(call if call.agent else call.replace(agent=target.name))

    below = helpers(target.targets, env=env, watch=watched, tell=tell)
    if target.role.memory is None:
        merged = environment(target.role, env, home=home(env))
        yield RoleAgent(target.role, env=merged, watch=watched, helpers=below)
        return
    with role_memory(target.role, env=env) as held:
        for note in held.notes:
            tell(f"{target.name}: {note}")
        yield RoleAgent(target.role, held, env=held.env, watch=watched, helpers=below)

"""Agents that ask other agents: each target of a role's delegate tool is a tool of its own, which runs the other role.

The target starts afresh in this process, with its own prompt, model and memory, or with the store that the tool lets
its targets share.  Circles and chains beyond ``max_depth`` are refused before anything runs.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial

from commonplace.agents.loop import ObservedToolCall, Watch
from commonplace.agents.tolerance import Notify
from commonplace.model.errors import CommonplaceError, ConfigError
from commonplace.model.values import Value
from commonplace.roles.agent import DelegateAgent, RoleAgent, open_agent
from commonplace.roles.conversation import Conversation
from commonplace.roles.dialect import DelegateTool, Role, load
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
    """Return the agents that a role may ask, each with those that it may ask in turn."""
    return _targets(role, [role], [])


def _targets(role: Role, chain: Sequence[Role], met: list[str]) -> tuple[Target, ...]:
    every: list[Target] = []
    for number, tool in enumerate(role.tools):
        path, found = role.path(f"tools[{number}]"), list[Target]()
        for place, one in enumerate(tool.agents):
            where = f"{path}.agents[{place}]"
            target = _load(role, tool, one.role_file, where)
            _check_chain(role, [*chain, target], met, where)
            found.append(
                Target(
                    name=one.name, tool=PREFIX + slug(one.name), role=target, timeout_seconds=tool.timeout_seconds,
                    description=one.description or target.description or f"Ask the agent {one.name}.",
                    targets=_targets(target, [*chain, target], met),
                )
            )  # fmt: skip
        _check_depth(role, tool, found, path)
        every += found
    _check_names(role, every)
    return tuple(every)


def _load(asking: Role, tool: DelegateTool, file: str, where: str) -> Role:
    """Return the role of a target, with the tool's shared store, and the asking role's model if it has none."""
    path = os.path.join(asking.folder, os.path.expanduser(file))
    if not os.path.isfile(path):
        raise ConfigError(f"{file!r} does not exist", file=asking.file, path=f"{where}.role_file")
    role = load(path)
    role = role.replace(model=role.model or asking.model)
    if tool.shared_memory is None:
        return role
    return role.with_shared_memory(tool.shared_memory).replace(security=asking.security)  # whose path it is


def _check_chain(role: Role, chain: Sequence[Role], met: list[str], where: str) -> None:
    files = [os.path.realpath(one.file) for one in chain]
    if files[-1] in files[:-1]:
        circle = " -> ".join(one.name for one in chain)
        raise ConfigError(f"goes in a circle: {circle}", file=role.file, path=f"{where}.role_file")
    met.append(files[-1])
    if len(met) > MOST:
        raise ConfigError(f"leads to more than {MOST} delegates", file=role.file, path=where)


def _check_depth(role: Role, tool: DelegateTool, found: Sequence[Target], path: str) -> None:
    """Refuse chains that are longer than the tool allows."""
    longest = max((_chain(target) for target in found), key=len)
    if len(longest) > tool.max_depth:
        shown = " -> ".join([role.name, *longest])
        reason = f"is {tool.max_depth}, and there are {len(longest)} below each other: {shown}"
        raise ConfigError(reason, file=role.file, path=f"{path}.max_depth")


def _chain(target: Target) -> list[str]:
    """Return the longest chain below a target."""
    return [target.name, *max((_chain(below) for below in target.targets), key=len, default=[])]


def _check_names(role: Role, found: Sequence[Target]) -> None:
    names = [target.tool for target in found]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"has two agents that would be {name!r}", file=role.file, path=role.path("tools"))


def delegates(found: Sequence[Target], *, env: Mapping[str, str], watch: Watch, notify: Notify) -> list[DelegateAgent]:
    """Return the delegates that ask these targets; ``env`` is the process's, without any role's .env."""
    shown: set[str] = set()

    def notify_once(sentence: str) -> None:
        """Show a note that is the same at every call the first time only."""
        if sentence not in shown:
            shown.add(sentence)
            notify(sentence)

    def delegate(target: Target) -> DelegateAgent:
        ask = partial(_ask, target, env=env, watch=watch, notify=notify_once)
        return DelegateAgent(tool=target.tool, description=target.description, ask=ask)

    return [delegate(target) for target in found]


async def _ask(target: Target, prompt: str, *, env: Mapping[str, str], watch: Watch, notify: Notify) -> tuple[str, int]:
    """Run a target; an error is a sentence for the agent that asked, and its tokens count all the same."""

    def watch_target(call: ObservedToolCall) -> None:
        watch(call if call.agent else call.replace(agent=target.name))

    asked: list[RoleAgent] = []
    below = delegates(target.targets, env=env, watch=watch_target, notify=notify)
    try:
        with open_agent(target.role, env=env, watch=watch_target, delegates=below) as agent:
            asked.append(agent)
            for note in agent.notes:
                notify(f"{target.name}: {note}")
            async with asyncio.timeout(target.timeout_seconds):
                answer = (await Conversation(agent, notify=notify).say(prompt)).output
    except TimeoutError:
        answer = f"Error: agent {target.name!r} did not answer within {target.timeout_seconds} seconds"
    except CommonplaceError as error:
        answer = f"Error: {error}"
    return answer, sum(one.used for one in asked)

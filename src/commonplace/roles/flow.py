"""Run a flow: each agent is asked once, when all that it waits for have answered; several at once.

An agent's answer is the prompt of its targets.  The flow's answers are those of the agents without a target.  If one
fails, the flow fails, and no other is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from commonplace.agents.scheduler import Schedule
from commonplace.model.errors import ConfigError, ProviderError
from commonplace.model.ports import EmbedderIdentity
from commonplace.roles.flow_dialect import Flow
from commonplace.roles.memory import RoleMemory
from commonplace.roles.verbs import BREAK

Ask = Callable[[str, str], Awaitable[str]]  #: an agent's name and its prompt; returns its answer


async def run_flow(flow: Flow, prompt: str, ask: Ask, *, start: str | None = None) -> dict[str, str]:
    """Ask all agents, or one and those after it; returns the answers of those without a target."""
    reached = flow.reachable_from(start) if start else flow.reachable_from(*flow.starts())
    needs = {
        name: [other for other in reached if other in (*flow.predecessors(name), *flow.member(name).needs)]
        for name in reached
    }  # fmt: skip

    async def run(name: str, answers: Mapping[str, str]) -> str:
        handed = {other: answers[other] for other in flow.predecessors(name) if other in answers}
        return await ask(name, combine(name, handed) if handed else prompt)

    answers = await Schedule(needs, run, fail_fast=True).run()
    return {name: answers[name] for name in reached if not flow.member(name).targets}


def check_shared_embedder(flow: Flow, held: Mapping[str, RoleMemory]) -> None:
    """Refuse a shared store whose agents have different embedders: the first write would decide."""
    known: dict[str, EmbedderIdentity] = {}
    for name, memory in held.items() if flow.shared else ():
        with suppress(ProviderError):  # one that cannot be asked fails when it is
            known |= {name: memory.embedder.identity} if memory.embedder else {}
    for name, identity in known.items():
        first = next(iter(known))
        if identity != known[first]:
            both = f"agents {first!r} and {name!r} would embed with {known[first].name!r} and {identity.name!r}"
            reason = f"{both}; say the same `memory.embeddings` in both roles"
            raise ConfigError(reason, file=flow.file, path="spec.shared_memory")


def combine(name: str, answers: Mapping[str, str]) -> str:
    """Return several answers as one prompt, each below its agent's name; a single answer stays as it is."""
    spoken = {agent: text for agent, text in answers.items() if text.strip()}
    if not spoken:
        raise ProviderError(f"agent {name!r} received no prompt: {', '.join(answers)} answered nothing")
    if len(answers) == 1:
        return next(iter(spoken.values()))
    return BREAK.join(f"{agent}:\n{text}" for agent, text in spoken.items())

"""A flow at work: each agent is asked once, when everybody that it waits for has answered; who is free works at once.

What an agent says is the prompt of those that it hands on to.  What the flow says is what those say that hand on to
nobody.  If one fails, the flow fails, and nobody is asked any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from commonplace.model.errors import ConfigError, ProviderError
from commonplace.model.ports import EmbedderIdentity
from commonplace.roles.flow_dialect import Flow
from commonplace.roles.memory import RoleMemory
from commonplace.roles.verbs import BREAK

Ask = Callable[[str, str], Awaitable[str]]  #: an agent by its name, and what it is asked; what it says


async def handed_on(flow: Flow, prompt: str, ask: Ask, *, start: str | None = None) -> dict[str, str]:
    """Ask those that are handed nothing, or only one agent, and everybody after them; returns who said what at last."""
    turns: dict[str, asyncio.Task[str]] = {}

    async def turn(name: str) -> str:
        for other in flow.member(name).needs:
            if other in turns:
                await turns[other]
        said = {other: await turns[other] for other in flow.before(name) if other in turns}
        return await ask(name, together(name, said) if said else prompt)

    for name in flow.reached(start) if start else flow.reached(*flow.starts()):
        turns[name] = asyncio.ensure_future(turn(name))
    try:
        await asyncio.gather(*turns.values())
    finally:
        for task in turns.values():
            task.cancel()
        await asyncio.gather(*turns.values(), return_exceptions=True)
    return {name: task.result() for name, task in turns.items() if not flow.member(name).targets}


def agreeing(flow: Flow, held: Mapping[str, RoleMemory]) -> None:
    """Refuse a store in common whose agents would find things by different embedders: the first write would decide."""
    known: dict[str, EmbedderIdentity] = {}
    for name, memory in held.items() if flow.shared else ():
        with suppress(ProviderError):  # one that cannot be asked is found out when it is
            known |= {name: memory.embedder.identity} if memory.embedder else {}
    for name, identity in known.items():
        first = next(iter(known))
        if identity != known[first]:
            both = f"agents {first!r} and {name!r} would embed with {known[first].name!r} and {identity.name!r}"
            reason = f"{both}; say the same `memory.embeddings` in both roles"
            raise ConfigError(reason, file=flow.file, path="spec.shared_memory")


def together(name: str, said: Mapping[str, str]) -> str:
    """What several say, as one prompt: each with its name; what one alone says is as it is."""
    spoken = {who: text for who, text in said.items() if text.strip()}
    if not spoken:
        raise ProviderError(f"agent {name!r} was handed nothing: {', '.join(said)} said nothing")
    if len(said) == 1:
        return next(iter(spoken.values()))
    return BREAK.join(f"{who}:\n{text}" for who, text in spoken.items())

"""An agent by itself: turn after turn until it calls ``finish_task``, within the steps and tokens that its role allows.

What it says it has done becomes an episode; its session is saved once, at the end, however that comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from commonplace.agents.quietly import Tell, quietly
from commonplace.model.errors import Forbidden
from commonplace.model.records import EMPTY, Channel, Json, Kind
from commonplace.model.values import Value
from commonplace.roles.agent import Conversation, Hear, unheard
from commonplace.roles.memory import RoleMemory

CATEGORY = "autonomous_run"
UNRECORDED = "what the run came to was not recorded as an episode"

Step = Callable[[int, int], None]  #: which one begins, and how many there may be


class Outcome(Value):
    """How a run by itself ended."""

    summary: str | None  #: what it gave to finish_task; None: it was stopped
    steps: int
    tokens: int
    stopped: str = ""  #: why, as a sentence, if it did not finish


def unstepped(_step: int, _of: int) -> None:
    """Nobody counts along."""


async def autonomous(
    talk: Conversation,
    task: str,
    *,
    steps: int | None = None,
    tokens: int | None = None,
    hear: Hear = unheard,
    step: Step = unstepped,
) -> Outcome:
    """Work on a task until it is done or a limit is reached; ``steps`` and ``tokens`` take the place of the role's."""
    role = talk.agent.role
    most = steps or role.guardrails.max_iterations
    budget = tokens or role.guardrails.autonomous_token_budget
    before, prompt = talk.agent.used, task
    try:
        for number in range(1, most + 1):
            if number > 1:
                await asyncio.sleep(role.autonomy.iteration_delay_seconds)
            step(number, most)
            left = None if budget is None else budget - (talk.agent.used - before)
            try:
                turn = await talk.say(prompt, hear=hear, finishing=True, tokens=left)
            except Forbidden as error:  # its guardrails, in the middle of a step
                return Outcome(summary=None, steps=number, tokens=talk.agent.used - before, stopped=str(error))
            used = talk.agent.used - before
            if turn.finished is not None:
                return Outcome(summary=turn.finished, steps=number, tokens=used)
            if budget is not None and used >= budget:
                why = f"stopped: its {budget} tokens are used up, and finish_task was not called"
                return Outcome(summary=None, steps=number, tokens=used, stopped=why)
            prompt = role.autonomy.continuation_prompt
    finally:
        talk.save()
    why = f"stopped after {most} steps without a call of finish_task"
    return Outcome(summary=None, steps=most, tokens=talk.agent.used - before, stopped=why)


def capture(
    held: RoleMemory | None,
    summary: str,
    *,
    session: str,
    tell: Tell,
    category: str = CATEGORY,
    metadata: Mapping[str, Json] = EMPTY,
) -> None:
    """Record what a run came to, if there is a memory of what happened; that it fails is told and ends nothing."""
    if held is None or Kind.EPISODIC not in held.memory().binding.writes:
        return
    with quietly(UNRECORDED, tell=tell):
        held.memory(Channel.CAPTURE).remember(
            summary, kind=Kind.EPISODIC, category=category, metadata=metadata, ref=session
        )

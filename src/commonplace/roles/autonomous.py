"""Run an agent without a user until it calls ``finish_task``, within the steps and tokens that its role allows.

Its summary becomes an episode; its session is saved once, at the end, whether it finished or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from commonplace.agents.loop import OnText, ignore
from commonplace.agents.tolerance import Notify, tolerate
from commonplace.model.errors import Forbidden
from commonplace.model.records import EMPTY, Channel, Json, Kind
from commonplace.model.values import Value
from commonplace.roles.conversation import Conversation
from commonplace.roles.memory import RoleMemory

CATEGORY = "autonomous_run"
UNRECORDED = "the result of the run was not recorded as an episode"

OnStep = Callable[[int, int], None]  #: the step that begins, and how many there may be


class TaskEnd(Value):
    """How an autonomous run ended."""

    summary: str | None  #: what it passed to finish_task; None: it was stopped
    steps: int
    tokens: int
    stopped: str = ""  #: why, as a sentence, if it did not finish


async def work(
    talk: Conversation,
    task: str,
    *,
    steps: int | None = None,
    tokens: int | None = None,
    on_text: OnText = ignore,
    on_step: OnStep = ignore,
) -> TaskEnd:
    """Work on a task until it is done or a limit is reached; ``steps`` and ``tokens`` replace those of the role."""
    role = talk.agent.role
    most = steps or role.guardrails.max_iterations
    budget = tokens or role.guardrails.autonomous_token_budget
    before, prompt = talk.agent.used, task

    def end(number: int, summary: str | None = None, stopped: str = "") -> TaskEnd:
        return TaskEnd(summary=summary, steps=number, tokens=talk.agent.used - before, stopped=stopped)

    try:
        for number in range(1, most + 1):
            if number > 1:
                await asyncio.sleep(role.autonomy.iteration_delay_seconds)
            on_step(number, most)
            left = None if budget is None else budget - (talk.agent.used - before)
            try:
                reply = await talk.say(prompt, on_text=on_text, finishing=True, tokens=left)
            except Forbidden as error:  # its guardrails, in the middle of a step
                return end(number, stopped=str(error))
            if reply.finished is not None:
                return end(number, reply.finished)
            if budget is not None and talk.agent.used - before >= budget:
                return end(number, stopped=f"stopped: its {budget} tokens are used up, and finish_task was not called")
            prompt = role.autonomy.continuation_prompt
    finally:
        talk.save()
    return end(most, stopped=f"stopped after {most} steps without a call of finish_task")


def capture(
    held: RoleMemory | None,
    summary: str,
    *,
    session: str,
    notify: Notify,
    category: str = CATEGORY,
    metadata: Mapping[str, Json] = EMPTY,
) -> None:
    """Record a run as an episode, if the role writes episodes; a failure is reported and ends nothing."""
    if held is None or Kind.EPISODIC not in held.memory().binding.writes:
        return
    with tolerate(UNRECORDED, notify=notify):
        held.memory(Channel.CAPTURE).remember(
            summary, kind=Kind.EPISODIC, category=category, metadata=metadata, ref=session
        )

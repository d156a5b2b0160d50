"""An agent that waits: for the clock, for files, for calls.  One run at a time, in the order in which things happened.

A run that fails is told and ends nothing.  The first signal ends the daemon after the run that is under way, the second
one at once.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from commonplace.agents.quietly import Tell, quietly
from commonplace.model.errors import Forbidden
from commonplace.model.values import Value
from commonplace.roles.agent import Conversation, Hear, RoleAgent, unheard
from commonplace.roles.autonomous import autonomous, capture
from commonplace.roles.triggers import Event, Inbox, Source

CATEGORY = "daemon_run"
SAID = "Daemon trigger ({0}): {1}"
SAID_CHARS = 500  # of what an agent said, in its episode
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDING = "ends after the run that is under way; once more ends it at once"
FAILED = "the run of {0} failed"
DROPPED = "what was still waiting is not run: {0}"

Run = Callable[[Event], Awaitable[object]]


class Ran(Value):
    """What came of a run."""

    said: str | None  #: None: it was stopped before it had finished its task
    stopped: str = ""  #: why
    created: int = 0  #: facts that came of its end


class Worker:
    """The agent of a role as events run it: each has a conversation of its own, and leaves an episode."""

    def __init__(self, agent: RoleAgent, *, tell: Tell, hear: Hear = unheard) -> None:
        """``hear`` gets what the agent says, piece by piece."""
        self.agent = agent
        self._tell, self._hear = tell, hear
        self._used = 0  # tokens, since it began

    async def run(self, event: Event) -> Ran:
        """One run, with everything that belongs to its end; raises what went wrong with it."""
        talk, before = Conversation(self.agent, tell=self._tell), self.agent.used
        try:
            ran = await (self._alone if event.autonomous else self._once)(talk, event)
        except Exception:
            await _beside(talk.close)
            raise
        finally:
            self._used += self.agent.used - before
        moments = ("after_session", "after_autonomous") if event.autonomous else ()
        created: list[int] = []
        await _beside(lambda: created.append(talk.close(*moments)))
        return ran.replace(created=sum(created))

    async def _once(self, talk: Conversation, event: Event) -> Ran:
        turn = await talk.say(event.prompt, hear=self._hear, tokens=self._left())
        said = SAID.format(event.trigger, turn.output[:SAID_CHARS])
        await self._captured(talk, said, event, CATEGORY)
        return Ran(said=turn.output)

    async def _alone(self, talk: Conversation, event: Event) -> Ran:
        left, most = self._left(), self.agent.role.guardrails.autonomous_token_budget
        budget = min((some for some in (left, most) if some is not None), default=None)
        outcome = await autonomous(talk, event.prompt, tokens=budget, hear=self._hear)
        if outcome.summary is not None:
            await self._captured(talk, outcome.summary, event)
        return Ran(said=outcome.summary, stopped=outcome.stopped)

    async def _captured(self, talk: Conversation, said: str, event: Event, *category: str) -> None:
        named = {"category": category[0]} if category else {}
        metadata = {"trigger_type": event.trigger}
        await _beside(
            partial(capture, self.agent.held, said, session=talk.id, tell=self._tell, metadata=metadata, **named)
        )

    def _left(self) -> int | None:
        """The tokens that are left of what a daemon of this role may use; None: there is no limit."""
        budget = self.agent.role.guardrails.daemon_token_budget
        if budget is not None and self._used >= budget:
            raise Forbidden(f"the {budget} tokens of this daemon are used up; it runs nothing until it is started anew")
        return None if budget is None else budget - self._used


class Daemon:
    """Sources, and what is done with what they offer."""

    def __init__(self, sources: Sequence[Source], run: Run, *, tell: Tell, say: Tell) -> None:
        """``tell`` hears of trouble, ``say`` of what is waited for."""
        self._sources, self._run = sources, run
        self._tell, self._say = tell, say
        self._end = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._busy = False

    async def serve(self) -> None:
        """Wait, and run what comes, until somebody wants it to end.

        Raises what a source cannot go on without, and ``CancelledError`` if it had to end at once.
        """
        inbox = Inbox()
        watching = [asyncio.ensure_future(source.watch(inbox.offer, self._say)) for source in self._sources]
        ending = asyncio.ensure_future(self._end.wait())
        self._working = asyncio.ensure_future(self._work(inbox))
        try:
            with _signalled(self.stop):
                await asyncio.wait([ending, *watching], return_when=asyncio.FIRST_COMPLETED)
                if left := inbox.close():
                    self._tell(DROPPED.format(left))
                await self._working
        finally:
            ended = await _ended([*watching, ending, self._working])
        for error in ended:
            raise error

    def stop(self) -> None:
        """End after the run that is under way; the second time at once."""
        if self._end.is_set() and self._working is not None:
            self._working.cancel()
        elif self._busy:
            self._tell(ENDING)
        self._end.set()

    async def _work(self, inbox: Inbox) -> None:
        while (event := await inbox.take()) is not None:
            self._busy = True
            with quietly(FAILED.format(event.trigger), tell=self._tell):
                await self._run(event)
            self._busy = False


def served(daemon: Daemon) -> None:
    """Run a daemon to its end.  Raises ``KeyboardInterrupt`` if that came at once."""
    try:
        with asyncio.Runner() as runner:
            runner.run(daemon.serve())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _signalled(stop: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    with suppress(NotImplementedError, RuntimeError):  # on Windows, and outside of the main thread, there are none
        for number in SIGNALS:
            loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        with suppress(NotImplementedError, RuntimeError):
            for number in SIGNALS:
                loop.remove_signal_handler(number)


async def _ended(tasks: Sequence[asyncio.Future[Any]]) -> list[BaseException]:
    """End what still runs; returns what went wrong in any of it, but not that it was ended."""
    for task in tasks:
        task.cancel()
    came = await asyncio.gather(*tasks, return_exceptions=True)
    return [one for one in came if isinstance(one, BaseException) and not isinstance(one, asyncio.CancelledError)]


async def _beside(work: Callable[[], object]) -> None:
    """Do something that blocks, and never raises, while signals are heard; an end at once does not wait for it."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the loop is gone: somebody wanted the end at once
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="commonplace-beside", daemon=True).start()
    await done.wait()

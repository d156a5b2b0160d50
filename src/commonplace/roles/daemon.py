"""An agent that waits for the clock, for files and for calls.  One run at a time, in the order of the events.

A run that fails is reported and ends nothing.  The first signal ends the daemon after the current run, the second one
at once.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from commonplace.agents.loop import OnText, ignore
from commonplace.agents.tolerance import Notify, tolerate
from commonplace.model.errors import Forbidden
from commonplace.model.values import Value
from commonplace.roles import autonomous
from commonplace.roles.agent import RoleAgent
from commonplace.roles.conversation import Conversation
from commonplace.roles.triggers import EventQueue, TriggerEvent, TriggerSource

CATEGORY = "daemon_run"
EPISODE = "Daemon trigger ({0}): {1}"
EPISODE_CHARS = 500  # of the agent's answer
SIGNALS = (signal.SIGINT, signal.SIGTERM)
ENDING = "stopping after the current run; press again to stop at once"
FAILED = "the run of {0} failed"
DROPPED = "not run, still waiting: {0}"

Run = Callable[[TriggerEvent], Awaitable[object]]


class WorkerRun(Value):
    """What came of a run."""

    output: str | None  #: None: it was stopped before it had finished its task
    stopped: str = ""  #: why
    created: int = 0  #: facts that were consolidated at its end


class Worker:
    """The agent of a role as events run it: each has a conversation of its own, and leaves an episode."""

    def __init__(self, agent: RoleAgent, *, notify: Notify, on_text: OnText = ignore) -> None:
        """``on_text`` gets the agent's answers in pieces."""
        self.agent = agent
        self._notify, self._on_text = notify, on_text
        self._used = 0  # tokens, since it began

    async def run(self, event: TriggerEvent) -> WorkerRun:
        """Run the agent at an event, and close its conversation; raises what went wrong."""
        talk, before = Conversation(self.agent, notify=self._notify), self.agent.used
        try:
            ran = await (self._work if event.autonomous else self._answer)(talk, event)
        except Exception:
            await _in_thread(talk.close)
            raise
        finally:
            self._used += self.agent.used - before
        moments = ("after_session", "after_autonomous") if event.autonomous else ()
        created: list[int] = []
        await _in_thread(lambda: created.append(talk.close(*moments)))
        return ran.replace(created=sum(created))

    async def _answer(self, talk: Conversation, event: TriggerEvent) -> WorkerRun:
        reply = await talk.say(event.prompt, on_text=self._on_text, tokens=self._left())
        await self._capture(talk, EPISODE.format(event.trigger, reply.output[:EPISODE_CHARS]), event, CATEGORY)
        return WorkerRun(output=reply.output)

    async def _work(self, talk: Conversation, event: TriggerEvent) -> WorkerRun:
        left, most = self._left(), self.agent.role.guardrails.autonomous_token_budget
        budget = min((some for some in (left, most) if some is not None), default=None)
        ended = await autonomous.work(talk, event.prompt, tokens=budget, on_text=self._on_text)
        if ended.summary is not None:
            await self._capture(talk, ended.summary, event, autonomous.CATEGORY)
        return WorkerRun(output=ended.summary, stopped=ended.stopped)

    async def _capture(self, talk: Conversation, summary: str, event: TriggerEvent, category: str) -> None:
        await _in_thread(
            lambda: autonomous.capture(
                self.agent.held, summary, session=talk.id, notify=self._notify, category=category,
                metadata={"trigger_type": event.trigger},
            )
        )  # fmt: skip

    def _left(self) -> int | None:
        """Return the tokens that are left of the daemon's budget; None: there is no limit."""
        budget = self.agent.role.guardrails.daemon_token_budget
        if budget is not None and self._used >= budget:
            raise Forbidden(f"the daemon has used its {budget} tokens; restart it to run more")
        return None if budget is None else budget - self._used


class Daemon:
    """Sources of events, and what is run at each."""

    def __init__(self, sources: Sequence[TriggerSource], run: Run, *, notify: Notify, announce: Notify) -> None:
        """``notify`` gets what goes wrong, ``announce`` what is waited for."""
        self._sources, self._run = sources, run
        self._notify, self._announce = notify, announce
        self._end = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._busy = False

    async def serve(self) -> None:
        """Wait for events and run them until it is stopped.

        Raises what a source cannot go on without, and ``CancelledError`` if it had to end at once.
        """
        inbox = EventQueue()
        watching = [asyncio.ensure_future(source.watch(inbox.offer, self._announce)) for source in self._sources]
        ending = asyncio.ensure_future(self._end.wait())
        self._working = asyncio.ensure_future(self._work(inbox))
        try:
            with _handle_signals(self.stop):
                await asyncio.wait([ending, *watching], return_when=asyncio.FIRST_COMPLETED)
                if left := inbox.close():
                    self._notify(DROPPED.format(left))
                await self._working
        finally:
            errors = await _end([*watching, ending, self._working])
        for error in errors:
            raise error

    def stop(self) -> None:
        """End after the current run; the second time at once."""
        if self._end.is_set() and self._working is not None:
            self._working.cancel()
        elif self._busy:
            self._notify(ENDING)
        self._end.set()

    async def _work(self, inbox: EventQueue) -> None:
        while (event := await inbox.take()) is not None:
            self._busy = True
            with tolerate(FAILED.format(event.trigger), notify=self._notify):
                await self._run(event)
            self._busy = False


def serve(daemon: Daemon) -> None:
    """Run a daemon to its end.  Raises ``KeyboardInterrupt`` if it had to end at once."""
    try:
        with asyncio.Runner() as runner:
            runner.run(daemon.serve())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


@contextmanager
def _handle_signals(stop: Callable[[], None]) -> Iterator[None]:
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


async def _end(tasks: Sequence[asyncio.Future[Any]]) -> list[BaseException]:
    """Cancel what still runs; returns the errors of all, without the cancellations."""
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    return [one for one in results if isinstance(one, BaseException) and not isinstance(one, asyncio.CancelledError)]


async def _in_thread(work: Callable[[], object]) -> None:
    """Run something that blocks, and never raises, while signals are handled; an end at once does not wait for it."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def run() -> None:
        try:
            work()
        finally:
            with suppress(RuntimeError):  # the loop has ended at once
                loop.call_soon_threadsafe(done.set)

    threading.Thread(target=run, name="commonplace-daemon", daemon=True).start()
    await done.wait()

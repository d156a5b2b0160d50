"""Run steps that depend on each other: each as soon as what it needs has completed, several at once.

Flows, workflows and pipelines differ in what a step does, in what a failure means and in what is recorded; the order,
the limit, cancellation and results that are passed on are the same for all three and live here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from commonplace.model.values import Value

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

COMPLETED, FAILED, CANCELLED, SKIPPED = "completed", "failed", "cancelled", "skipped"


class StepEnd(Value):
    """What came of one step."""

    step: Any
    outcome: str  #: completed | failed | cancelled | skipped
    result: Any = None
    error: BaseException | None = None  #: why it failed
    blocked_by: tuple[Any, ...] = ()  #: of one that was skipped: what it needs and did not complete


async def _nothing() -> None:
    """Record nothing between steps."""


class Schedule(Generic[K, T]):
    """Steps to run once."""

    def __init__(
        self,
        needs: Mapping[K, Iterable[K]],
        run: Callable[[K, Mapping[K, T]], Awaitable[T]],
        *,
        done: Mapping[K, T] | None = None,
        at_once: int | None = None,
        fail_fast: bool = False,
        ended: Callable[[StepEnd], None] = lambda _end: None,
        checkpoint: Callable[[], Awaitable[None]] = _nothing,
    ) -> None:
        """``needs`` has every step after those that it needs; ``run`` gets a step and the results of what it needs.

        ``done`` are results of an earlier attempt: these steps do not run again.  A failure skips what needs the step
        and lets the others run; with ``fail_fast`` it cancels everything and is raised.  ``ended`` is called for every
        step; ``checkpoint`` is awaited whenever steps have ended and those that became ready have started.
        """
        earlier = done or {}
        self._needs = {step: tuple(before) for step, before in needs.items()}
        self._waiting = [step for step in self._needs if step not in earlier]
        self._ends = {step: StepEnd(step=step, outcome=COMPLETED, result=result) for step, result in earlier.items()}
        self._running: dict[asyncio.Task[T], K] = {}
        self._run = run
        self._most = at_once
        self._fail_fast = fail_fast
        self._ended = ended
        self._checkpoint = checkpoint

    async def run(self) -> dict[K, T]:
        """Run everything; returns the results of what completed.  Cancelling it cancels what is running."""
        try:
            while self._waiting or self._running:
                self._start()
                await self._checkpoint()
                if self._running:
                    done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                    for task in [task for task in self._running if task in done]:  # in the order of their start
                        self._finish(self._running.pop(task), task)
        finally:
            await self._cancel()
        return {step: end.result for step, end in self._ends.items() if end.outcome == COMPLETED}

    def _start(self) -> None:
        """Start what is ready; what can no longer run is skipped."""
        for step in list(self._waiting):
            ends = [self._ends.get(before) for before in self._needs[step]]
            blocked_by = tuple(end.step for end in ends if end and end.outcome != COMPLETED)
            if blocked_by:
                self._waiting.remove(step)
                self._end(StepEnd(step=step, outcome=SKIPPED, blocked_by=blocked_by))
            elif all(ends) and (self._most is None or len(self._running) < self._most):
                self._waiting.remove(step)
                results = {before: self._ends[before].result for before in self._needs[step]}
                self._running[asyncio.ensure_future(self._run(step, results))] = step

    def _finish(self, step: K, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self._end(StepEnd(step=step, outcome=CANCELLED))
        elif error := task.exception():
            self._end(StepEnd(step=step, outcome=FAILED, error=error))
        else:
            self._end(StepEnd(step=step, outcome=COMPLETED, result=task.result()))
        if self._fail_fast:
            task.result()

    def _end(self, end: StepEnd) -> None:
        self._ends[end.step] = end
        self._ended(end)

    async def _cancel(self) -> None:
        """Cancel what still runs, and wait until it has ended."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

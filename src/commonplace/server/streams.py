"""Streams of events: how many may be open, and one wait for new events on behalf of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from starlette.responses import Response, StreamingResponse

from commonplace.routes import RequestRefused
from commonplace.server.errors import RETRY_SECONDS
from commonplace.server.settings import ServerLimits

EVENTS = "text/event-stream"


class WaitForEvent(Protocol):
    """See ``Store.wait_for_event``."""

    def __call__(self, *, after: int, seconds: float) -> int:
        """Return the newest event number as soon as it is greater than ``after``, or when the time is over."""


class Streams:
    """The streams of a server.  Waiting has its own thread: the others are for verbs."""

    def __init__(self, wait_for_event: WaitForEvent, limits: ServerLimits) -> None:
        self._wait_for_event = wait_for_event
        self._limits = limits
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="events")
        self._waiting: asyncio.Future[int] | None = None
        self._newest = 0
        self._open = 0

    async def wait(self, seen: int) -> int:
        """Return the newest event number as soon as it is greater than ``seen``, or after the polling interval."""
        if self._newest <= seen:
            if self._waiting is None or self._waiting.done():
                wait = partial(self._wait_for_event, after=self._newest, seconds=self._limits.poll_seconds)
                self._waiting = asyncio.get_running_loop().run_in_executor(self._thread, wait)
            waiting = self._waiting
            await asyncio.wait([waiting])  # a stream that ends does not cancel the wait of the others
            self._newest = waiting.result()
        return self._newest

    async def response(self, parts: AsyncIterator[bytes]) -> Response:
        """Return a stream as a response, or refuse it while a status can still be sent."""
        if self._open >= self._limits.streams:
            raise RequestRefused(503, "FULL", "too many streams are open", headers={"Retry-After": str(RETRY_SECONDS)})
        first = await anext(parts)
        return StreamingResponse(self._count_open(first, parts), media_type=EVENTS)

    async def _count_open(self, first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._open += 1
        try:
            yield first
            async for part in rest:
                yield part
        finally:
            self._open -= 1

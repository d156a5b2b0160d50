"""Streams of events: how many may be open, in all and by one key, and one wait for new events on behalf of all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from commonplace.routes import RequestRefused
from commonplace.server.auth import NO_PRINCIPAL
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
        self._open: Counter[str] = Counter()  # by the id of the key

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

    async def response(self, parts: AsyncIterator[bytes], *, key: str) -> Response:
        """Return a stream as a response, or refuse it while a status can still be sent."""
        again = {"Retry-After": str(RETRY_SECONDS)}
        if self._open.total() >= self._limits.streams:
            raise RequestRefused(503, "FULL", "too many streams are open", headers=again)
        if key != NO_PRINCIPAL.key and self._open[key] >= self._limits.streams_of_one_key:
            message = f"this key has {self._open[key]} streams open, which is its share; close one of them"
            raise RequestRefused(429, "TOO_MANY_STREAMS", message, headers=again)
        self._open[key] += 1
        try:
            first = await anext(parts)
        except BaseException:
            self._close(key)
            raise
        return EventStream(_chained(first, parts), closed=partial(self._close, key))

    def _close(self, key: str) -> None:
        self._open[key] -= 1
        self._open += Counter()  # drops what is at zero


class EventStream(StreamingResponse):
    """A response that reports its end, even if its client was gone before it began."""

    def __init__(self, parts: AsyncIterator[bytes], *, closed: Callable[[], None]) -> None:
        super().__init__(parts, media_type=EVENTS)
        self._closed = closed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._closed()


async def _chained(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for part in rest:
        yield part

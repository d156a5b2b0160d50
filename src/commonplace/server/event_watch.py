"""Wait until the store has heard of something, once for every stream of events that a server has open."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from commonplace.intents.intents import Intents


class Watch:
    """Waits for all streams of a server at once, in a thread of its own: those of the verbs are for verbs."""

    def __init__(self, intents: Intents) -> None:
        self._intents = intents
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="watch")
        self._look: asyncio.Future[int] | None = None
        self._last = 0

    async def beyond(self, seen: int, seconds: float) -> int:
        """The number of the last event: as soon as it is greater than one that was seen, or when the time is over."""
        if self._last <= seen:
            if self._look is None or self._look.done():
                wait = partial(self._intents.wait_for_event, after=self._last, seconds=seconds)
                self._look = asyncio.get_running_loop().run_in_executor(self._thread, wait)
            look = self._look
            await asyncio.wait([look])  # who goes away does not take the look of the others along
            self._last = look.result()
        return self._last

"""Server-sent events: a page hears that memory has changed, and offers to show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import Response, StreamingResponse

from commonplace.page.doors import BrowserSession, PageHost
from commonplace.records import latest_change

POLL_SECONDS = 1.0
BEAT_SECONDS = 15.0  # between two signs of life
STREAMS = 20  # open at the same time; a browser has one for each of its tabs


class Live:
    """The streams that are open."""

    def __init__(self, host: PageHost) -> None:
        self._host = host
        self._open = 0

    def response(self, session: BrowserSession, is_valid: Callable[[], bool]) -> Response:
        """Return a stream; where too many are open, an answer after which a browser does not ask again."""
        if self._open >= STREAMS:
            return Response(status_code=204)
        return StreamingResponse(self._changes(session, is_valid), media_type="text/event-stream")

    async def _changes(self, session: BrowserSession, is_valid: Callable[[], bool]) -> AsyncIterator[bytes]:
        def look() -> str | None:
            if not is_valid():
                return None
            with self._host.open(session.visitor) as access:
                return latest_change(access.memory)

        self._open += 1
        try:
            seen, silent = await self._host.in_thread(look), 0.0
            yield b"retry: 5000\n\n"
            while seen is not None and not self._host.is_stopping():
                await asyncio.sleep(POLL_SECONDS)
                silent += POLL_SECONDS
                now = await self._host.in_thread(look)
                if now != seen:
                    seen, silent = now, 0.0
                    yield f"event: change\ndata: {now}\n\n".encode()
                elif silent >= BEAT_SECONDS:
                    silent = 0.0
                    yield b": still here\n\n"
        finally:
            self._open -= 1

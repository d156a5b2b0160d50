"""Limits of size and time for what clients send.

uvicorn never drops a client that stalls: half a header, half a body and a silent connection all stay open.
``StallTimeouts`` closes them, and ``read_limited`` refuses a body that is too large or too slow while it still can.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from commonplace.routes import RequestRefused
from commonplace.server.settings import ServerLimits

GRACE_SECONDS = 1.0  # after the body's time limit, for sending the refusal


class JoinedWrites:
    """A transport that sends consecutive writes as one: the head of an answer together with its body.

    uvicorn writes them one by one, and each would wake the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """See ``asyncio.WriteTransport``; it goes out before the loop waits for anything."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """See ``asyncio.BaseTransport``."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts:
            self._transport.write(b"".join(parts))


class StallTimeouts(H11Protocol):
    """The protocol of uvicorn, with time limits for what a client sends."""

    limits = ServerLimits()  # of the server in this process; ``protocol_with`` makes a class with others
    _waiting: asyncio.TimerHandle | None = None
    _waits_for: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See ``asyncio.Protocol``."""
        super().connection_made(JoinedWrites(transport, self.loop))  # type: ignore[arg-type]
        self._expect()

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        super().data_received(data)
        self._expect()

    def on_response_complete(self) -> None:
        """See ``H11Protocol``, which has a clock of its own for the time between two requests."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._stop_waiting()
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _expect(self) -> None:
        """Start the timer when another part of the request is due; single bytes do not restart it."""
        due = self.conn.their_state
        if due is self._waits_for:
            return
        self._stop_waiting()
        limits = self.limits
        seconds = {h11.IDLE: limits.header_seconds, h11.SEND_BODY: limits.body_seconds + GRACE_SECONDS}.get(due)
        if seconds is not None:
            self._waits_for = due
            self._waiting = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting, self._waits_for = None, None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def protocol_with(limits: ServerLimits) -> type[StallTimeouts]:
    """Return the protocol with these limits; uvicorn takes a class and makes an instance for every connection."""
    return type("StallTimeouts", (StallTimeouts,), {"limits": limits})


def declared_bytes(request: Request) -> int:
    """Return the declared length of the body; 0 if none is declared."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 20 else 0  # noqa: PLR2004


async def read_limited(request: Request, limits: ServerLimits) -> bytes:
    """Return the body; refuse one that is too large or too slow."""
    if declared_bytes(request) > limits.body_bytes:
        raise RequestRefused(413, "BODY_TOO_LARGE", f"a request takes at most {limits.body_bytes} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise RequestRefused(413, "BODY_TOO_LARGE", f"a request takes at most {limits.body_bytes} bytes")
    except TimeoutError:
        raise RequestRefused(
            408, "BODY_TOO_SLOW", f"the body was incomplete after {limits.body_seconds:g} seconds"
        ) from None
    except ClientDisconnect:
        raise RequestRefused(
            400, "INCOMPLETE", "the client closed the connection in the middle of its request"
        ) from None
    return bytes(body)

"""What a caller may ask of the server, held: how large, and how slowly.

uvicorn never drops a client that stalls: half a header, half a body and a connection that says nothing all stay open.
``Impatient`` closes them, and ``body_of`` answers whoever sends too much or too slowly, while it still can.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from commonplace.server.errors import Refused
from commonplace.server.settings import Limits

GRACE_SECONDS = 1.0  # that a connection is kept beyond the body's time, for the answer that says so


class Joined:
    """A transport that sends what is written in one go as one piece: the head of an answer together with its body.

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


class Impatient(H11Protocol):
    """The protocol of uvicorn, which waits for a client's bytes so long and no longer."""

    limits = Limits()  # of the server in this process; ``patience`` makes a class with others
    _waiting: asyncio.TimerHandle | None = None
    _waits_for: Any = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See ``asyncio.Protocol``."""
        super().connection_made(Joined(transport, self.loop))  # type: ignore[arg-type]
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
        """Start the clock when the client owes something new; bytes that trickle in do not start it again."""
        owes = self.conn.their_state
        if owes is self._waits_for:
            return
        self._stop_waiting()
        limits = self.limits
        patience = {h11.IDLE: limits.header_seconds, h11.SEND_BODY: limits.body_seconds + GRACE_SECONDS}.get(owes)
        if patience is not None:
            self._waits_for = owes
            self._waiting = self.loop.call_later(patience, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting, self._waits_for = None, None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def patience(limits: Limits) -> type[Impatient]:
    """The protocol with these limits: uvicorn takes a class, and makes one of it for every connection."""
    return type("Impatient", (Impatient,), {"limits": limits})


def declared(request: Request) -> int:
    """How long the body says that it is; 0 if it does not say."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 20 else 0  # noqa: PLR2004


async def body_of(request: Request, limits: Limits) -> bytes:
    """All of the body, or a refusal that says why not."""
    if declared(request) > limits.body_bytes:
        raise Refused(413, "BODY_TOO_LARGE", f"a request takes at most {limits.body_bytes} bytes")
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise Refused(413, "BODY_TOO_LARGE", f"a request takes at most {limits.body_bytes} bytes")
    except TimeoutError:
        raise Refused(408, "BODY_TOO_SLOW", f"the body was not there after {limits.body_seconds:g} seconds") from None
    except ClientDisconnect:
        raise Refused(400, "INCOMPLETE", "the client left in the middle of its request") from None
    return bytes(body)

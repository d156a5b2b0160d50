"""Limits of size and time for what clients send.

uvicorn never drops a client that stalls: half a header, half a body, a silent connection and an answer that is not read
all stay open.  ``StallTimeouts`` closes them, at their time or sooner if a new client would find no place, and
``read_limited`` refuses a body that is too large or too slow while it still can.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from typing import Any, ClassVar, TypeAlias

import h11
from starlette.requests import ClientDisconnect, Request
from uvicorn.protocols.http.h11_impl import H11Protocol

from commonplace.routes import RequestRefused
from commonplace.server.settings import ServerLimits

log = logging.getLogger("commonplace.http")
GRACE_SECONDS = 1.0  # after the body's time limit, for sending the refusal


class JoinedWrites:
    """A transport that sends consecutive writes as one: the head of an answer together with its body.

    uvicorn writes them one by one, and each would wake the client.  Beyond ``most`` bytes they go out at once, so that
    the transport can make a stream wait for its reader.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, most: int) -> None:
        self._transport = transport
        self._loop = loop
        self._most = most
        self._parts: list[bytes] = []
        self._bytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """See ``asyncio.WriteTransport``; it goes out before the loop waits for anything."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)
        self._bytes += len(data)
        if self._bytes > self._most:
            self._send()

    def close(self) -> None:
        """See ``asyncio.BaseTransport``."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        parts, self._parts, self._bytes = self._parts, [], 0
        if parts:
            self._transport.write(b"".join(parts))


Connections: TypeAlias = "OrderedDict[StallTimeouts, None]"


class StallTimeouts(H11Protocol):
    """The protocol of uvicorn, with time limits for what a client sends and reads."""

    limits = ServerLimits()  # of the server in this process; ``protocol_with`` makes a class with others
    silent: ClassVar[Connections] = OrderedDict()  # those that never sent a whole head, the oldest first
    resting: ClassVar[Connections] = OrderedDict()  # the others whose next bytes are awaited
    _waiting: asyncio.TimerHandle | None = None
    _waits_for: Any = None
    _reading: asyncio.TimerHandle | None = None
    _unread = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See ``asyncio.Protocol``."""
        most = self.limits.unread_bytes
        transport.set_write_buffer_limits(high=most)
        super().connection_made(JoinedWrites(transport, self.loop, most))  # type: ignore[arg-type]
        self._make_room()
        self._expect()

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        super().data_received(data)
        self._expect()

    def pause_writing(self) -> None:
        """See ``asyncio.Protocol``; from now on the client has to read."""
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        """See ``asyncio.Protocol``; the client has read."""
        super().resume_writing()
        self._stop_watching()

    def on_response_complete(self) -> None:
        """See ``H11Protocol``, which has a clock of its own for the time between two requests."""
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE:
            self._stop_waiting()
            self.resting[self] = None
        else:
            self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._stop_waiting()
        self._stop_watching()
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
            (self.resting if self.cycle else self.silent)[self] = None

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting, self._waits_for = None, None
        self.silent.pop(self, None)
        self.resting.pop(self, None)

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _make_room(self) -> None:
        """Close connections that are silent, the oldest first, rather than refuse this one."""
        while len(self.connections) >= self.limits.connections and (waiting := self.silent or self.resting):
            next(iter(waiting)).drop()

    def drop(self) -> None:
        """Close the connection now, whatever is left to send."""
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def _watch_reader(self) -> None:
        self._stop_watching()
        self._unread = self.transport.get_write_buffer_size()
        self._reading = self.loop.call_later(self.limits.unread_seconds, self._check_reader)

    def _stop_watching(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
        self._reading = None

    def _check_reader(self) -> None:
        """Drop a client that reads nothing, or next to nothing; closing would wait for it to read the rest."""
        if self._unread - self.transport.get_write_buffer_size() < self.limits.unread_bytes:
            log.warning("dropped a client that does not read")
            self.drop()
        else:
            self._watch_reader()


def protocol_with(limits: ServerLimits) -> type[StallTimeouts]:
    """Return the protocol with these limits; uvicorn takes a class and makes an instance for every connection."""
    own = {"limits": limits, "silent": OrderedDict(), "resting": OrderedDict()}
    return type("StallTimeouts", (StallTimeouts,), own)


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

"""A webhook: a small Starlette application that accepts the body of a call as a prompt; needs the extra ``daemon``.

A call is answered at once, before the agent runs.  With a secret a call has to prove that it knows it; without one
only this machine is served, and what a web page sends from a browser here is refused.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import socket
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from commonplace.roles.dialect import WebhookTrigger

BODY_BYTES = 262_144  # a prompt; more would fill any model's window
UNREAD_BYTES = 4_194_304  # of a body that is too long: read, so that the caller gets to see the answer
CALLS = 32  # at once; beyond that 503
PATIENCE_SECONDS = 10.0  # for a call, from its first byte to its last
MINUTE_SECONDS = 60.0
SIGNATURE = "X-Hub-Signature-256"  # as GitHub and others sign
LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")

Accept = Callable[[str], bool]  #: takes a prompt; returns whether there was room for it


@asynccontextmanager
async def webhook(
    trigger: WebhookTrigger, secret: str, accept: Accept, *, patience: float = PATIENCE_SECONDS
) -> AsyncIterator[str]:
    """Serve a trigger in this event loop until the context ends; it is the address.  Raises ``OSError``."""
    listening = _listen(trigger)
    config = uvicorn.Config(
        application(trigger, secret, accept), http=_patient(patience), ws="none", lifespan="off", log_config=None,
        log_level="error", access_log=False, server_header=False, proxy_headers=False, limit_concurrency=CALLS,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = _Server(config)
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        host = f"[{trigger.host}]" if ":" in trigger.host else trigger.host
        yield f"http://{host}:{listening.getsockname()[1]}{trigger.path}"
    finally:
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """A server that leaves signals to the daemon."""

    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # a context manager all the same
        """Install no handlers."""
        return nullcontext()


def _listen(trigger: WebhookTrigger) -> socket.socket:
    family = socket.getaddrinfo(trigger.host, trigger.port, type=socket.SOCK_STREAM)[0][0]
    return socket.create_server((trigger.host, trigger.port), family=family, backlog=CALLS)


def _patient(seconds: float) -> type[H11Protocol]:
    """Return uvicorn's protocol with a limit on how long a call may take; uvicorn itself never drops a stalled one."""

    class Patient(H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._limit = self.loop.call_later(seconds, transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._limit.cancel()
            super().connection_lost(exc)

    return Patient


def application(trigger: WebhookTrigger, secret: str, accept: Accept) -> Starlette:
    """Return the application of a trigger."""
    rate = _Rate(trigger.rate_limit_rpm)

    async def receive(request: Request) -> Response:
        body = await _read(request)
        _authorize(request, body, secret.encode())
        prompt = _prompt(body)
        rate.count()
        if not accept(prompt):
            raise HTTPException(503, "too much is waiting already")
        return _answer(202, {"status": "accepted"})

    async def refuse(_request: Request, error: Exception) -> Response:
        known = error if isinstance(error, HTTPException) else HTTPException(500)
        return _answer(known.status_code, {"error": known.detail}, known.headers)

    route = Route(unquote(trigger.path), receive, methods=[trigger.method])
    return Starlette(routes=[route], exception_handlers={HTTPException: refuse})


def _answer(status: int, content: dict[str, str], headers: Any = None) -> Response:
    return JSONResponse(content, status, headers={**(headers or {}), "Connection": "close"})


async def _read(request: Request) -> bytes:
    body, size = bytearray(), 0
    try:
        async for piece in request.stream():
            size += len(piece)
            body += piece if size <= BODY_BYTES else b""
            if size > UNREAD_BYTES:
                break
    except ClientDisconnect as error:
        raise HTTPException(408, "the body did not come") from error
    if size > BODY_BYTES:
        raise HTTPException(413, f"at most {BODY_BYTES} bytes are accepted")
    return bytes(body)


def _authorize(request: Request, body: bytes, secret: bytes) -> None:
    if secret and not _knows(request, body, secret):
        raise HTTPException(401, f"the secret, or a signature in {SIGNATURE}, is missing or wrong")
    if not secret and not _is_local(request):
        raise HTTPException(403, "without a secret only programs of this machine are answered")


def _knows(request: Request, body: bytes, secret: bytes) -> bool:
    """Return whether the caller knows the secret; how long that takes says nothing about it."""
    signature = "sha256=" + hmac.new(secret, body, "sha256").hexdigest()
    signed = hmac.compare_digest(request.headers.get(SIGNATURE, "").encode(errors="replace"), signature.encode())
    bearer = request.headers.get("Authorization", "").encode(errors="replace")
    return hmac.compare_digest(bearer, b"Bearer " + secret) or signed


def _is_local(request: Request) -> bool:
    """Return whether a program of this machine calls: a page in a browser has an origin, or calls another name."""
    host = re.sub(r":\d*$", "", request.headers.get("Host", ""))
    return "Origin" not in request.headers and host.lower() in LOCAL_NAMES


def _prompt(body: bytes) -> str:
    try:
        prompt = body.decode()
    except UnicodeDecodeError as error:
        raise HTTPException(400, f"the body is not UTF-8 at byte {error.start}") from error
    if not prompt.strip():
        raise HTTPException(400, "the body is blank")
    return prompt


class _Rate:
    """How many calls there were in the last minute."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: deque[float] = deque()

    def count(self) -> None:
        """Count a call; refuse it if there were too many."""
        now = time.monotonic()
        while self._calls and now - self._calls[0] >= MINUTE_SECONDS:
            self._calls.popleft()
        if len(self._calls) >= self._most:
            headers = {"Retry-After": str(int(MINUTE_SECONDS))}
            raise HTTPException(429, f"at most {self._most} calls a minute are accepted", headers)
        self._calls.append(now)

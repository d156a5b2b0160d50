"""The protocol over streamable HTTP, by the official SDK; needs the extra ``mcp``.

The surface is the same as on standard input and output.  Each request is checked before it is handled: its host, its
origin, its key, how long it takes to arrive and how large it is.  There are no sessions, so that nothing is held for a
client that went away, and every request needs the key.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import math
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import mcp_types as types
import uvicorn
from anyio import to_thread
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from commonplace.agents.surface import Surface
from commonplace.config.paths import is_loopback
from commonplace.engine.throttling import WrongKeys, network_of
from commonplace.mcp.protocol import NAME, TITLE, ProtocolError, handle
from commonplace.model.errors import InvalidInput, StoreError
from commonplace.version import VERSION

PATH = "/mcp"
BODY_BYTES = 4 * 1024 * 1024
HEAD_SECONDS, BODY_SECONDS = 5.0, 10.0  # in which a request has to arrive
HEAD_BYTES = 32_768
CONNECTION_LIMIT = 200
KEY_PREFIX = "cpm_"  # lets secret scanners find a leaked key

R = TypeVar("R", bound=BaseModel)


def serve(surface: Surface, *, host: str, port: int, key: str | None, notify: Callable[[str], None]) -> None:
    """Serve until interrupted; a ``key`` of None needs none and is allowed on loopback only."""
    if key is None and not is_loopback(host):
        raise InvalidInput(f"{host!r} can be reached from other machines, so a key is needed; leave out --no-token")
    with _listening(host, port) as listening:
        address = f"http://{_url_host(host)}:{listening.getsockname()[1]}{PATH}"
        notify(f"listening at {address}; stop with Ctrl-C")
        uvicorn.Server(config(app(surface, host=host, port=listening.getsockname()[1], key=key))).run([listening])


def new_key() -> str:
    """Return a new random key."""
    return KEY_PREFIX + secrets.token_urlsafe(32)


def app(surface: Surface, *, host: str, port: int, key: str | None) -> ASGIApp:
    """Return the surface as an application that checks its requests."""
    names = None if _is_anywhere(host) else {_url_host(host), *(_LOOPBACK if is_loopback(host) else ())}
    hosts = None if names is None else frozenset(f"{name}:{port}" for name in names)
    settings = TransportSecuritySettings(
        enable_dns_rebinding_protection=hosts is not None,  # the names of "every address" are unknown
        allowed_hosts=sorted(hosts or ()),
        allowed_origins=[f"http://{name}" for name in sorted(hosts or ())],
    )
    inner = _server(surface).streamable_http_app(
        streamable_http_path=PATH, stateless_http=True, json_response=True, max_request_body_size=BODY_BYTES,
        transport_security=settings, host=host,
    )  # fmt: skip
    return Guard(inner, hosts=hosts, key=key)


_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Guard:
    """Passes on the requests that are allowed."""

    def __init__(self, inner: ASGIApp, *, hosts: frozenset[str] | None, key: str | None) -> None:
        """``hosts`` are the allowed values of the Host header; None: any."""
        self._inner = inner
        self._hosts = hosts
        self._key = key
        self._wrong = WrongKeys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":  # the lifespan is the server's
            await self._inner(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers, network_of(scope["client"][0] if scope["client"] else None))
        if refusal is not None:
            await _refuse(send, *refusal)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read_body(receive)
        except TimeoutError:
            await _refuse(send, 408, "the request did not arrive in time")
            return
        if body is None:
            await _refuse(send, 413, f"a request may have at most {BODY_BYTES} bytes")
            return
        await self._inner(scope, _replay(body, receive), send)

    def _refusal(self, headers: Mapping[str, str], peer: str) -> tuple[int, str] | tuple[int, str, int] | None:
        if self._hosts is not None and headers.get("host", "").lower() not in self._hosts:
            return 421, "the Host header is not a name of this server"
        origin = headers.get("origin")
        if origin is not None and origin.removeprefix("http://") not in (self._hosts or ()):
            return 403, "requests from web pages are not allowed"
        given = headers.get("authorization", "")
        if self._key is None or _has_key(given, self._key):
            return None
        if given and (wait := self._wrong.seconds_left(peer)):
            seconds = math.ceil(wait)
            return 429, f"too many wrong keys came from your address; try again in {seconds} s", seconds
        if given:
            self._wrong.count_wrong(peer)
        return 401, "a key is needed: Authorization: Bearer KEY"


def _has_key(header: str, key: str) -> bool:
    scheme, _, given = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), key.encode())


async def _read_body(receive: Receive) -> bytes | None:
    """Return the body of a request; None if it is too large."""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > BODY_BYTES:
            return None
        more = message.get("more_body", False)
    return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that yields a body that has arrived already, then what comes after it."""
    whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return whole.pop() if whole else await receive()

    return receive_again


async def _refuse(send: Send, status: int, reason: str, wait: int = 0) -> None:
    body = reason.encode() + b"\n"
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b'Bearer realm="commonplace"')] if status == 401 else []  # noqa: PLR2004
    headers += [(b"retry-after", str(wait).encode())] if wait else []
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})


class TimedProtocol(H11Protocol):
    """Closes a connection whose next request does not arrive in time, whether half of it came or nothing."""

    def connection_made(self, transport: Any) -> None:
        """See ``asyncio.Protocol``."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._watch = self.loop.call_later(HEAD_SECONDS, self._check_idle)

    def on_response_complete(self) -> None:
        """See ``H11Protocol``."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def _check_idle(self) -> None:
        """Close the connection if no request is in progress and none has come in time."""
        busy = self.cycle is not None and not self.cycle.response_complete
        left = HEAD_SECONDS if busy else self._idle_since + HEAD_SECONDS - self.loop.time()
        if left > 0:
            self._watch = self.loop.call_later(left, self._check_idle)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._watch.cancel()
        super().connection_lost(exc)


def config(application: ASGIApp) -> uvicorn.Config:
    """Return how it is served: with timeouts and little logging."""
    return uvicorn.Config(
        application, http=TimedProtocol, ws="none", lifespan="on", log_level="warning", access_log=False,
        server_header=False, proxy_headers=False, h11_max_incomplete_event_size=HEAD_BYTES,
        limit_concurrency=CONNECTION_LIMIT, timeout_keep_alive=int(HEAD_SECONDS), timeout_graceful_shutdown=3,
    )  # fmt: skip


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=CONNECTION_LIMIT)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"cannot listen at {host}:{port}: {reason}") from error


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_anywhere(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


# The SDK's server over our surface


def _server(surface: Surface) -> Server[dict[str, Any]]:
    """Return a server whose answers are those of the stdio server."""

    def on(method: str, kind: type[R]) -> Callable[[Any, BaseModel | None], Awaitable[R]]:
        async def handle(_context: Any, params: BaseModel | None) -> R:
            sent = params.model_dump(by_alias=True, exclude_unset=True) if params else {}
            return kind.model_validate(await to_thread.run_sync(_handle, surface, method, sent))

        return handle

    resources: dict[str, Any] = {
        "on_list_resources": on("resources/list", types.ListResourcesResult),
        "on_list_resource_templates": on("resources/templates/list", types.ListResourceTemplatesResult),
        "on_read_resource": on("resources/read", types.ReadResourceResult),
    }
    prompts: dict[str, Any] = {
        "on_list_prompts": on("prompts/list", types.ListPromptsResult),
        "on_get_prompt": on("prompts/get", types.GetPromptResult),
    }
    return Server(
        NAME, version=VERSION, title=TITLE, instructions=surface.instructions,
        on_list_tools=on("tools/list", types.ListToolsResult), on_call_tool=on("tools/call", types.CallToolResult),
        **(resources if surface.read else {}), **(prompts if surface.prompts else {}),
    )  # fmt: skip


def _handle(surface: Surface, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return handle(surface, method, params)
    except ProtocolError as error:
        raise MCPError(error.code, str(error)) from error

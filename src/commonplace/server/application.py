"""The application: from a request to a verb and back.  The table of rooms decides what it serves.

``OriginCheck`` admits a request, then it is routed, read within its limits, and answered in a thread: the core is
synchronous.  A line of the log names the route and never the path, since paths hold keys; no header, no body and no
parameter is logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute

from commonplace.config.paths import is_loopback
from commonplace.model.errors import CommonplaceError
from commonplace.page import PageHost, Visitor, page_routes
from commonplace.records import MemoryAccess
from commonplace.routes import RequestRefused, Route, RouteAnswer, Streaming
from commonplace.server.auth import NO_PRINCIPAL, OriginCheck, Principal
from commonplace.server.errors import RETRY_SECONDS, error_response, failure_response
from commonplace.server.limits import declared_bytes, read_limited
from commonplace.server.openapi import document
from commonplace.server.requests import JSON, parse
from commonplace.server.rooms import ROOMS, ROUTES, Opener, Services
from commonplace.server.streams import EVENTS, Streams

log = logging.getLogger("commonplace.http")
T = TypeVar("T")
UNCHECKED_BYTES = 65_536  # of a body that is read before the key is checked
KEY = "commonplace.key"  # where a request carries the id of its key, for the log


class Application:
    """Answers requests; verbs run in its threads."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.limits = services.settings.limits
        self.threads = ThreadPoolExecutor(self.limits.threads, thread_name_prefix="verb")
        self.streams = Streams(services.intents.wait_for_event, self.limits)

    async def in_thread(self, verb: Callable[[], T]) -> T:
        """Run a verb where it may block; after the time limit the client gets an answer, and the verb runs on."""
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                return await asyncio.get_running_loop().run_in_executor(self.threads, verb)
        except TimeoutError:
            message = f"no answer within {self.limits.answer_seconds:g} seconds; a write may still be made"
            raise RequestRefused(503, "TOO_SLOW", message, headers={"Retry-After": str(RETRY_SECONDS)}) from None

    async def respond(self, opener: Opener, route: Route, request: Request) -> Response:
        """Return the response to a request."""
        try:
            if not route.open and _is_large(request):
                await self.in_thread(lambda: self.authenticate(route, request))
            raw = await read_limited(request, self.limits)
            if route.stream is not None and EVENTS in request.headers.get("accept", ""):
                return await self.stream(opener, route, request)
            return await self.in_thread(lambda: self.call(opener, route, request, raw))
        except (RequestRefused, CommonplaceError) as error:
            response = error_response(error)
            if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
                log.exception("%s failed", route.path)
            return response

    def authenticate(self, route: Route, request: Request) -> Principal:
        """Return whose request it is; refuse it without a valid key, or with one that may not do that."""
        check, peer = self.services.authenticator, request.client.host if request.client else None
        # A large body has its key checked twice, before it is read and after; it is one request.
        principal = check.identify(request.headers) if KEY in request.scope else check.admit(request.headers, peer)
        request.scope[KEY] = principal.key
        if principal.read_only and not route.is_read:
            message = f"this key is read-only, and {route.method} {route.path} writes; use a key without --read-only"
            raise RequestRefused(403, "READ_ONLY_KEY", message)
        return principal

    def call(self, opener: Opener, route: Route, request: Request, raw: bytes) -> Response:
        """Check the key, parse the body, call the verb, encode the answer: all that takes time, in one thread."""
        principal = NO_PRINCIPAL if route.open else self.authenticate(route, request)
        call = parse(route, request, raw)
        result = route.handle(opener(self.services, principal, call), call)
        answer = result if isinstance(result, RouteAnswer) else RouteAnswer(content=result)
        body = msgspec.json.encode(answer.content)
        return Response(body, answer.status, headers=dict(answer.headers), media_type=JSON)

    async def stream(self, opener: Opener, route: Route, request: Request) -> Response:
        """Return a stream of events."""
        assert route.stream is not None  # noqa: S101 - the caller has checked
        principal = await self.in_thread(lambda: self.authenticate(route, request))
        call = parse(route, request, b"")
        streaming = Streaming(
            in_thread=self.in_thread, is_allowed=lambda: self._is_still(principal, request),
            is_stopping=self.services.is_stopping, wait=self.streams.wait,
            heartbeat_seconds=self.limits.heartbeat_seconds,
        )  # fmt: skip
        caller = opener(self.services, principal, call)
        return await self.streams.response(route.stream(caller, call, streaming), key=principal.key)

    def _is_still(self, principal: Principal, request: Request) -> bool:
        try:
            return self.services.authenticator.identify(request.headers) == principal
        except RequestRefused:
            return False

    def endpoint(self, rows: Sequence[tuple[Opener, Route]]) -> StarletteRoute:
        """Return Starlette's route for all methods of one path."""
        by_method = {route.method: (opener, route) for opener, route in rows}

        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            opener, route = by_method["GET" if request.method == "HEAD" else request.method]
            response = await self.respond(opener, route, request)
            took, key = (time.perf_counter() - began) * 1000, request.scope.get(KEY, NO_PRINCIPAL.key)
            log.info("%s %s %d %.1fms key=%s", route.method, route.path, response.status_code, took, key)
            return response

        return StarletteRoute(rows[0][1].path, endpoint, methods=list(by_method))


def _is_large(request: Request) -> bool:
    """Tell whether the key has to be checked before the body is read."""
    return declared_bytes(request) > UNCHECKED_BYTES or "transfer-encoding" in request.headers


def application(services: Services, *, close: Callable[[], None]) -> Starlette:
    """Return the application over these services; ``close`` releases what they hold when the server stops."""
    serving = Application(services)
    by_path: dict[str, list[tuple[Opener, Route]]] = {}
    for opener, routes in ROOMS:
        for route in routes:
            by_path.setdefault(route.path, []).append((opener, route))
    described = msgspec.json.encode(document(ROUTES))

    async def openapi(_request: Request) -> Response:
        return Response(described, media_type=JSON)

    api = [StarletteRoute("/openapi.json", openapi), *map(serving.endpoint, by_path.values())]
    app = Starlette(
        routes=[*([] if services.settings.token else api), *page_routes(_page_host(serving))],
        middleware=[Middleware(OriginCheck, settings=services.settings)],
        exception_handlers={HTTPException: _handle_http_exception, Exception: _handle_failure},
        lifespan=_lifespan(serving, close),
    )
    app.router.redirect_slashes = False  # a redirect would repeat the Host that a client sent
    return app


def _page_host(serving: Application) -> PageHost:
    """Return what the page needs: keys, memories, threads and limits are those of the server."""
    services, settings = serving.services, serving.services.settings

    def admit(headers: Headers, peer: str | None) -> Visitor:
        check = services.authenticator
        found = check.identify(headers) if peer is None else check.admit(headers, peer)
        return Visitor(key=found.key, agent=found.agent, read_only=found.read_only)

    @contextmanager
    def open_memory(visitor: Visitor) -> Iterator[MemoryAccess]:
        if visitor.agent is not None:
            yield services.memory_access(visitor.agent)
            return
        with services.open_own() as access:
            yield access

    return PageHost(
        admit=admit, open=open_memory, in_thread=serving.in_thread, is_stopping=services.is_stopping,
        read=lambda request: read_limited(request, serving.limits), keys=settings.keys, token=settings.token,
        place=f"{settings.host} only" if is_loopback(settings.host) else settings.host,
    )  # fmt: skip


def _lifespan(
    serving: Application, close: Callable[[], None]
) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        serving.threads.shutdown(wait=True)  # a write in progress is finished
        serving.services.authenticator.close()
        close()

    return lifespan


async def _handle_http_exception(_request: Request, error: Exception) -> Response:
    """Return the response for an unknown path or method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = getattr(error, "headers", None) or {}
    name, message = {
        404: ("NO_SUCH_ROUTE", "there is no such route; /openapi.json lists them"),
        405: ("NO_SUCH_METHOD", "this route does not take that method"),
    }.get(status, ("REFUSED", "the request was refused"))
    return error_response(RequestRefused(status, name, message, headers=headers))


async def _handle_failure(_request: Request, _error: Exception) -> Response:
    return failure_response()

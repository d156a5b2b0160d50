"""The application: from a request to a verb and back.  What is in it is decided by the table and by nothing here.

A request is let in by ``Doors``, routed, read within its limits, and answered in a thread: the core is synchronous.  A
line of the log names the route and never the path, since paths hold keys; no header, no body, no parameter is logged.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from commonplace.intents import calls
from commonplace.intents import event_routes as events
from commonplace.intents import path_routes as paths
from commonplace.intents import rfc_routes as rest
from commonplace.intents import sdk_routes as flat
from commonplace.model.errors import CommonplaceError
from commonplace.records import routes as verbs
from commonplace.server import health
from commonplace.server.auth import NOBODY, Doors, principal
from commonplace.server.errors import RETRY_SECONDS, Refused, answer, failed
from commonplace.server.limits import body_of, declared
from commonplace.server.openapi import document
from commonplace.server.routing import Answer, Call, Principal, Route, Services, decoded_path, read_body, read_query

log = logging.getLogger("commonplace.http")
T = TypeVar("T")
SMALL_BYTES = 65_536  # a body of a stranger that is read before their key is looked at
JSON = "application/json"
EVENTS = "text/event-stream"
KEY = "commonplace.key"  # where a request keeps the id of its key, for the log

#: In the order in which they are matched: a literal stands before a name in the same place.
ROUTES: tuple[Route, ...] = (
    *health.ROUTES, *events.ROUTES, *rest.ROUTES, *flat.ROUTES, *paths.ROUTES, *calls.ROUTES, *verbs.ROUTES,
)  # fmt: skip


class Server:
    """The application and the threads in which its verbs run."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.limits = services.settings.limits
        self.threads = ThreadPoolExecutor(self.limits.threads, thread_name_prefix="verb")
        self.streams = 0

    async def in_thread(self, verb: Callable[[], T]) -> T:
        """Run a verb where it may block; past its time the caller gets an answer, and the verb ends by itself."""
        try:
            async with asyncio.timeout(self.limits.answer_seconds):
                return await asyncio.get_running_loop().run_in_executor(self.threads, verb)
        except TimeoutError:
            said = f"no answer within {self.limits.answer_seconds:g} seconds; a write may still be made"
            raise Refused(503, "TOO_SLOW", said, headers={"Retry-After": str(RETRY_SECONDS)}) from None

    async def answered(self, route: Route, request: Request) -> Response:
        """What a request comes to."""
        try:
            if not route.open and _is_large(request):
                await self.in_thread(lambda: self.allowed(request))
            raw = await body_of(request, self.limits)
            if route.stream is not None and EVENTS in request.headers.get("accept", ""):
                return await self.streamed(route, request)
            return await self.in_thread(lambda: self.called(route, request, raw))
        except (Refused, CommonplaceError) as error:
            told = answer(error)
            if told.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
                log.exception("%s failed", route.path)
            return told

    def allowed(self, request: Request) -> Principal:
        """Whose request it is; refused if nobody's."""
        who = principal(request.headers, self.services.keys, self.services.settings)
        request.scope[KEY] = who.key
        return who

    def call(self, route: Route, request: Request, who: Principal, body: Any) -> Call:
        """A request, read and allowed."""
        return Call(
            services=self.services, principal=who, path=decoded_path(request.path_params),
            query=read_query(request.scope["query_string"], route.query), body=body, headers=request.headers,
        )  # fmt: skip

    def called(self, route: Route, request: Request, raw: bytes) -> Response:
        """Check the key, read the body, ask the verb, write the answer: all that takes time, in one go."""
        who = NOBODY if route.open else self.allowed(request)
        result = route.handle(self.call(route, request, who, _body(route, request, raw)))
        told = result if isinstance(result, Answer) else Answer(content=result)
        return Response(msgspec.json.encode(told.content), told.status, headers=dict(told.headers), media_type=JSON)

    async def streamed(self, route: Route, request: Request) -> Response:
        """A stream of events, if there is room for one more."""
        who = await self.in_thread(lambda: self.allowed(request))
        call = self.call(route, request, who, None)
        events.started_after(call)  # refuses what cannot be read before the stream begins
        if self.streams >= self.limits.streams:
            raise Refused(503, "FULL", "too many streams are open", headers={"Retry-After": str(RETRY_SECONDS)})
        return StreamingResponse(self.counted(route, call, request), media_type=EVENTS)

    async def counted(self, route: Route, call: Call, request: Request) -> AsyncIterator[bytes]:
        """A stream that is counted while it lasts."""
        assert route.stream is not None  # noqa: S101 - whoever calls has looked
        self.streams += 1
        try:
            async for part in route.stream(call, self.in_thread, lambda: self.allowed(request)):
                yield part
        finally:
            self.streams -= 1

    def endpoint(self, routes: Sequence[Route]) -> StarletteRoute:
        """Starlette's route for all methods of one path."""
        by_method = {route.method: route for route in routes}

        async def endpoint(request: Request) -> Response:
            began = time.perf_counter()
            route = by_method["GET" if request.method == "HEAD" else request.method]
            response = await self.answered(route, request)
            took, key = (time.perf_counter() - began) * 1000, request.scope.get(KEY, NOBODY.key)
            log.info("%s %s %d %.1fms key=%s", route.method, route.path, response.status_code, took, key)
            return response

        return StarletteRoute(routes[0].path, endpoint, methods=list(by_method))


def _is_large(request: Request) -> bool:
    """Whether a body may be so long that nobody without a key should make us read it."""
    return declared(request) > SMALL_BYTES or "transfer-encoding" in request.headers


def _body(route: Route, request: Request, raw: bytes) -> Any:
    """The body in its type; one that nobody asked for is refused."""
    if route.body is None or (route.optional_body and not raw):
        if raw.strip() not in (b"", b"{}"):
            raise Refused(400, "INVALID_INPUT", "this route takes no body")
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(415, "NOT_JSON", f"the body must be {JSON}")
    return read_body(raw, route.body)


def application(services: Services, *, close: Callable[[], None]) -> Starlette:
    """The application over these services; ``close`` gives back what they hold when the server stops."""
    server = Server(services)
    by_path: dict[str, list[Route]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, []).append(route)
    told = msgspec.json.encode(document(ROUTES))

    async def openapi(_request: Request) -> Response:
        return Response(told, media_type=JSON)

    app = Starlette(
        routes=[StarletteRoute("/openapi.json", openapi), *map(server.endpoint, by_path.values())],
        middleware=[Middleware(Doors, settings=services.settings)],
        exception_handlers={HTTPException: _unrouted, Exception: _failed},
        lifespan=_lifespan(server, close),
    )
    app.router.redirect_slashes = False  # a redirect would repeat the Host that a client sent
    return app


def _lifespan(server: Server, close: Callable[[], None]) -> Callable[[Starlette], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        server.threads.shutdown(wait=True)  # a write that is under way is finished
        close()

    return lifespan


async def _unrouted(_request: Request, error: Exception) -> Response:
    """No such path, or no such method there."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = getattr(error, "headers", None) or {}
    name, said = {
        404: ("NO_SUCH_ROUTE", "there is no such route; /openapi.json lists them"),
        405: ("NO_SUCH_METHOD", "this route does not take that method"),
    }.get(status, ("REFUSED", "the request was refused"))
    return answer(Refused(status, name, said, headers=headers))


async def _failed(_request: Request, _error: Exception) -> Response:
    return failed()

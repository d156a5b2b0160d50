"""The routes of the page: sign in, views, forms, files; each answer with its security headers."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from urllib.parse import parse_qs, unquote

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from commonplace.model import errors
from commonplace.page.doors import PREFIX, BrowserSession, Doors, PageHost, require_form, require_own_page
from commonplace.page.live import Live
from commonplace.page.rendering import Renderer
from commonplace.page.views import ROUTES
from commonplace.page.visits import Answer, Go, Page, Text, View, Visit
from commonplace.routes import RequestRefused

log = logging.getLogger("commonplace.http")
STATIC = os.path.join(os.path.dirname(__file__), "static")
FILES = {
    "icon.svg": "image/svg+xml",
    "style.css": "text/css",
    "keys.js": "text/javascript",
    "htmx.min.js": "text/javascript",
}
FORM_FIELDS = 500
GZIP_BYTES = 500  # answers from this size on are compressed
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none, browsers send forms without the origin that is checked
}
#: What a view may raise, and what the answer's status is; of several that fit the first.
STATUSES: tuple[tuple[type[errors.CommonplaceError], int], ...] = (
    (errors.NotFound, 404), (errors.Conflict, 409), (errors.Forbidden, 403), (errors.InvalidInput, 400),
    (errors.ConfigError, 400), (errors.StoreBusy, 503), (errors.CommonplaceError, 500),
)  # fmt: skip
Endpoint = Callable[[Request], Awaitable[Response]]


class PageApplication:
    """Answers the requests of browsers."""

    def __init__(self, host: PageHost) -> None:
        self.host = host
        self.doors = Doors(host)
        self.streams = Live(host)
        self.renderer = Renderer(host)

    def routes(self) -> list[Route]:
        """Return the routes below the prefix."""
        views = [Route(path, self.view(by_method), methods=list(by_method)) for path, by_method in ROUTES.items()]
        return [
            Route("/enter", self.guarded(self.enter_by_link), methods=["GET"]),
            Route("/enter", self.guarded(self.enter_by_key), methods=["POST"]),
            Route("/leave", self.guarded(self.leave), methods=["POST"]),
            Route("/live", self.guarded(self.live), methods=["GET"]),
            Route("/static/{name}", self.guarded(self.file), methods=["GET"]),
            *views,
            Route("/{rest:path}", self.guarded(self.missing)),
        ]

    def guarded(self, endpoint: Endpoint) -> Endpoint:
        """Turn what an endpoint raises into a page that says it."""

        async def answer(request: Request) -> Response:
            try:
                return await endpoint(request)
            except (RequestRefused, errors.CommonplaceError) as error:
                return await self.refuse(request, error)

        return answer

    async def refuse(self, request: Request, error: RequestRefused | errors.CommonplaceError) -> Response:
        """Return the page of an error; whoever has not signed in may do so there."""
        if isinstance(error, RequestRefused):
            status, headers = error.status, error.headers
        else:
            status, headers = next(status for kind, status in STATUSES if isinstance(error, kind)), {}
        if status >= 500:  # noqa: PLR2004 - ours to look into
            log.error("a view failed", exc_info=error)
        asks = status in (401, 429) and self.host.token is None and self.host.keys
        session = None if status in (401, 429) else self.doors.session_of(request)
        html = self.renderer.error(str(error), status, session, asks_key=asks)
        plain = {name: text for name, text in headers.items() if name.lower() != "www-authenticate"}
        return HTMLResponse(html, status, headers=plain)

    def signed_in(self, request: Request) -> BrowserSession:
        """Return the session of a request."""
        session = self.doors.session_of(request)
        if session is None:
            ask = "open the link that `commonplace ui` printed" if self.host.token is not None else "sign in with a key"
            raise RequestRefused(401, "SIGN_IN", f"You are not signed in: {ask}.")
        request.scope["commonplace.key"] = session.visitor.key
        return session

    # Coming and going

    async def enter_by_link(self, request: Request) -> Response:
        """Sign in with the link of `commonplace ui`."""
        session = self.doors.enter_by_token(request.query_params.get("token", ""))
        return self._entered(request, session)

    async def enter_by_key(self, request: Request) -> Response:
        """Sign in with a key of the server."""
        require_own_page(request)
        key = (await self._form(request)).get("key", "").strip()
        peer = request.client.host if request.client else None
        session = await self.host.in_thread(lambda: self.doors.enter_by_key(key, peer))
        return self._entered(request, session)

    def _entered(self, request: Request, session: BrowserSession) -> Response:
        # Not a redirect: after one from another program, a strict cookie would not be sent.
        response = HTMLResponse(self.renderer.render(Page(template="entered.html"), session))
        self._set_cookie(request, response, session)
        return response

    def _set_cookie(self, request: Request, response: Response, session: BrowserSession) -> None:
        response.set_cookie(
            self.doors.cookie(request), session.id, path=PREFIX, httponly=True, samesite="strict",
            secure=request.url.scheme == "https",
        )  # fmt: skip

    async def leave(self, request: Request) -> Response:
        """Sign out."""
        require_own_page(request)
        session, form = self.signed_in(request), await self._form(request)
        require_form(session.replace(visitor=session.visitor.replace(read_only=False)), form)
        self.doors.leave(session)
        response = RedirectResponse(f"{PREFIX}/", 303)
        response.delete_cookie(self.doors.cookie(request), path=PREFIX)
        return response

    # Views

    def view(self, by_method: Mapping[str, View]) -> Endpoint:
        """Return the endpoint of a view and of its forms."""

        async def endpoint(request: Request) -> Response:
            session = await self.host.in_thread(lambda: self.signed_in(request))
            form: Mapping[str, str] = {}
            if request.method == "POST":
                require_own_page(request)
                form = await self._form(request)
                require_form(session, form)
            view = by_method["POST" if request.method == "POST" else "GET"]
            response: Response = await self.host.in_thread(lambda: self._answer(view, request, session, form))
            if self.doors.cookie(request) not in request.cookies:
                self._set_cookie(request, response, session)
            return response

        return self.guarded(endpoint)

    def _answer(self, view: View, request: Request, session: BrowserSession, form: Mapping[str, str]) -> Response:
        path = {name: unquote(part) for name, part in request.path_params.items()}
        query = parse_qs(request.url.query, max_num_fields=FORM_FIELDS)
        with self.host.open(session.visitor) as access:
            visit = Visit(access, session, self.host, here=_address(request), path=path, query=query, form=form)
            return self._response(view(visit), visit)

    def _response(self, answer: Answer, visit: Visit) -> Response:
        if isinstance(answer, Go):
            return RedirectResponse(answer.to, 303)
        if isinstance(answer, Text):
            return PlainTextResponse(answer.text)
        return HTMLResponse(self.renderer.view(answer, visit), answer.status)

    async def _form(self, request: Request) -> dict[str, str]:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            raise RequestRefused(415, "NOT_A_FORM", "this takes a form")
        raw = await self.host.read(request)
        try:
            found = parse_qs(raw.decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS)
        except (UnicodeDecodeError, ValueError):
            raise RequestRefused(400, "INVALID_INPUT", "the form cannot be read") from None
        return {name: "\n".join(texts).replace("\r\n", "\n") for name, texts in found.items()}

    # The rest

    async def live(self, request: Request) -> Response:
        """Stream the number of the latest change, for the script."""
        session = await self.host.in_thread(lambda: self.signed_in(request))
        return self.streams.response(session, lambda: self.doors.session_of(request) is not None)

    async def file(self, request: Request) -> Response:
        """Return a file of the package."""
        await self.host.in_thread(lambda: self.signed_in(request))
        name = request.path_params["name"]
        if name not in FILES:
            raise errors.NotFound("there is no such file")
        return Response(await self.host.in_thread(lambda: _read_static(name)), media_type=FILES[name])

    async def missing(self, request: Request) -> Response:
        """Refuse an address that leads nowhere."""
        await self.host.in_thread(lambda: self.signed_in(request))
        raise errors.NotFound("There is no such page.")


def _address(request: Request) -> str:
    """Return the address of a request on this server."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


@cache
def _read_static(name: str) -> bytes:
    with open(os.path.join(STATIC, name), "rb") as file:
        return file.read()


class _Headers:
    """Adds the security headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *given]}
            await send(message)

        await self.app(scope, receive, answer)


def page_routes(host: PageHost) -> list[Route | Mount]:
    """Return the routes under which a server mounts the page."""
    router = Router(routes=PageApplication(host).routes(), redirect_slashes=False)
    app = _Headers(GZipMiddleware(router, minimum_size=GZIP_BYTES))

    async def start(_request: Request) -> Response:
        return RedirectResponse(f"{PREFIX}/", 308)

    return [Route(PREFIX, start, methods=["GET"]), Mount(PREFIX, app=app)]

"""Who may call: the key of a request, the host it is sent to, the origin of the page that sends it.

A browser sends requests wherever a web page tells it to.  So the name in ``Host`` must be one of the server's, or a
page whose name was pointed at this machine could talk to it; and an ``Origin`` must be the server's own page or one
that the operator named.  Both are checked before anything is routed, on every method.
"""

from __future__ import annotations

import hmac
import logging
import math
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from commonplace.engine.rendering import iso
from commonplace.engine.throttling import RateLimit, WrongKeys, network_of
from commonplace.model.values import Value
from commonplace.routes import RequestRefused
from commonplace.server.errors import error_response
from commonplace.server.keys import Keys, digest
from commonplace.server.settings import ServerSettings

log = logging.getLogger("commonplace.http")
BEARER = "bearer "
SAFE = frozenset({"GET", "HEAD"})
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]{2,45})\]|([A-Za-z0-9._-]{1,253}))(?::[0-9]{1,5})?")


class Principal(Value):
    """Who calls."""

    key: str  #: the key's id, as the log shows it
    agent: str | None  #: the one agent it acts for; None: an operator, who acts for any
    read_only: bool = False


NO_PRINCIPAL = Principal(key="-", agent=None)
CHALLENGE = {"WWW-Authenticate": "Bearer"}


class OriginCheck:
    """Refuses requests for another host or from another site; the rest is routed by the raw path."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self.app = app
        self.names = settings.names
        self.header_bytes = settings.limits.header_bytes
        self.origins = frozenset(origin.lower().rstrip("/") for origin in settings.origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "http":
            try:
                self.measure(scope)
                self.check(Headers(scope=scope), scope["method"])
            except RequestRefused as refused:
                await error_response(refused)(scope, receive, send)
                return
            # In a decoded path a slash inside a name would look like one between names.
            scope = dict(scope) | {"path": scope["raw_path"].decode("ascii", "replace")}
        await self.app(scope, receive, send)

    def measure(self, scope: Scope) -> None:
        """Refuse headers that are too long: h11 limits only those that come in several pieces."""
        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size + len(scope["raw_path"]) + len(scope["query_string"]) > self.header_bytes:
            raise RequestRefused(
                431, "HEADERS_TOO_LARGE", f"a request's headers take at most {self.header_bytes} bytes"
            )

    def check(self, headers: Headers, method: str) -> None:
        """Refuse another host or another site."""
        asked = headers.getlist("host")
        found = _HOST.fullmatch(asked[0]) if len(asked) == 1 else None
        if found is None or (found[1] or found[2]).lower() not in self.names:
            raise RequestRefused(421, "WRONG_HOST", "unknown host name; allow it with --allow-host")
        for origin in headers.getlist("origin"):
            if origin.lower() not in {f"http://{asked[0].lower()}", *self.origins}:
                raise RequestRefused(
                    403, "WRONG_ORIGIN", "web pages of that origin are not allowed; allow them with --allow-origin"
                )
        if headers.get("sec-fetch-site") == "cross-site" and method not in SAFE and not headers.get("origin"):
            raise RequestRefused(403, "WRONG_ORIGIN", "another site may not write here")


class Authenticator:
    """Finds out whose request it is; slows down whoever sends wrong keys, and keys that call too often."""

    def __init__(self, keys: Keys, settings: ServerSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._settings = settings
        self._wrong = WrongKeys(clock=clock)
        self._rate = RateLimit(settings.rate, clock=clock)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="key-use")  # no request waits for it

    def admit(self, headers: Headers, peer: str | None) -> Principal:
        """Return whose request it is; refuse it without a valid key, or if too many came before it."""
        token = _token(headers)
        if not self._settings.keys or not token:
            return self.identify(headers)
        known, peer = digest(token), network_of(peer)
        if wait := self._wrong.seconds_left(peer, known):
            raise _refuse_for(wait, "TOO_MANY_WRONG_KEYS", "too many wrong keys came from your address")
        try:
            principal = self.identify(headers)
        except WrongKey:
            self._wrong.forget_right(known)
            self._wrong.count_wrong(peer)
            raise
        self._wrong.remember_right(known)
        if wait := self._rate.take(principal.key):
            message = f"this key makes more than {self._settings.rate:g} requests a second"
            raise _refuse_for(wait, "RATE_LIMITED", message)
        return principal

    def identify(self, headers: Headers) -> Principal:
        """Return whose request it is; refuse it without a valid key."""
        if not self._settings.keys:
            return NO_PRINCIPAL
        found = self._holder(_token(headers))
        acting = headers.get("x-agent-id")
        if found.agent is not None and acting is not None and _plain(acting) != found.agent:
            raise RequestRefused(403, "ACCESS_DENIED", "this key acts for another agent than X-Agent-ID names")
        return found

    def close(self) -> None:
        """Finish what is being written."""
        self._writer.shutdown(wait=True)

    def _holder(self, token: str | None) -> Principal:
        own = self._settings.key
        if token and own is not None and hmac.compare_digest(digest(token), digest(own)):
            return Principal(key="environment", agent=None)
        key = self._keys.holder(token) if token else None
        if key is None:
            raise WrongKey("UNAUTHORIZED", "Invalid or missing API key")
        if self._keys.is_expired(key):
            message = f"this API key expired at {iso(key.expires_at)}; make another one: commonplace keys create NAME"
            raise RequestRefused(401, "KEY_EXPIRED", message, headers=CHALLENGE)
        if self._keys.is_use_due(key):
            self._writer.submit(self._keys.write_use, key).add_done_callback(_log_failure)
        return Principal(key=key.id, agent=key.agent, read_only=key.read_only)


class WrongKey(RequestRefused):
    """No key, or none that this server has."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(401, error, message, headers=CHALLENGE)


def _refuse_for(seconds: float, error: str, message: str) -> RequestRefused:
    wait = math.ceil(seconds)
    message = f"{message}; try again in {wait} second{'' if wait == 1 else 's'}"
    return RequestRefused(429, error, message, headers={"Retry-After": str(wait)})


def _log_failure(writing: Future[None]) -> None:
    if writing.exception() is not None:
        log.warning("the last use of a key was not written", exc_info=writing.exception())


def _token(headers: Headers) -> str | None:
    """Return the key of a request, from either header; two that differ are none."""
    bearers: Iterable[str] = headers.getlist("authorization")
    given = {one[len(BEARER) :].strip() for one in bearers if one[: len(BEARER)].lower() == BEARER}
    given |= set(headers.getlist("x-api-key"))
    return given.pop() if len(given) == 1 else None


def _plain(header: str) -> str:
    """Return a header in UTF-8: names of agents may be in any script, but headers are read as Latin-1."""
    try:
        return header.encode("latin-1").decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        return header

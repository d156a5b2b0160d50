"""Who may look: one-time tokens and keys become a cookie, and every change needs the token of its form.

A browser sends a cookie wherever a web page tells it to.  So the cookie is ``SameSite=Strict``, each form holds a
token of its session, and a request that changes something has to come from a page of this very server.  The server
has checked ``Host`` and ``Origin`` before.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from starlette.datastructures import Headers
from starlette.requests import Request

from commonplace.model.values import Value
from commonplace.records import MemoryAccess
from commonplace.routes import RequestRefused

T = TypeVar("T")
PREFIX = "/ui"
TOKEN_BYTES = 32
SESSIONS = 200  # of browsers, at most; the one that was used least recently goes
SIGN_IN = "sign in first"
_OWN = frozenset(
    {"same-origin", "none"}
)  # what a browser says of requests of this site's pages, and of typed addresses


class Visitor(Value):
    """Whose browser it is, by the key that it signed in with."""

    key: str  #: the key's id, as the log shows it
    agent: str | None = None  #: the one agent it acts for; None: the owner of the memory
    read_only: bool = False


class PageHost(Value):
    """What the page needs of the server that mounts it."""

    admit: Callable[[Headers, str | None], Visitor]  #: whose key is in these headers; raises ``RequestRefused``
    open: Callable[[Visitor], AbstractContextManager[MemoryAccess]]
    in_thread: Callable[[Callable[[], Any]], Awaitable[Any]]
    read: Callable[[Request], Awaitable[bytes]]  #: the body, within the server's limits
    is_stopping: Callable[[], bool]
    keys: bool = True  #: whether a key is needed
    token: str | None = None  #: the one-time token of `commonplace ui`; then no key opens the page
    place: str = ""  #: where it can be reached from, for the foot of the page


class BrowserSession(Value):
    """A browser that has signed in."""

    id: str
    csrf: str  #: what every form of it holds
    visitor: Visitor
    key: str | None = None  #: checked with each request: a revoked key ends the session


class Doors:
    """The browsers that have signed in, in the memory of this process only."""

    def __init__(self, host: PageHost) -> None:
        self._host = host
        self._token = host.token
        self._sessions: dict[str, BrowserSession] = {}
        self._lock = threading.Lock()

    def cookie(self, request: Request) -> str:
        """Return the name of the cookie; cookies of one host are shared by its ports, so each has its own name."""
        return f"commonplace-{request.url.port or 80}"

    def enter_by_token(self, token: str) -> BrowserSession:
        """Return a session for the one-time token, which opens nothing again."""
        with self._lock:
            known, right = self._token, bool(self._token) and hmac.compare_digest(str(self._token), token)
            if right:
                self._token = None
        if known is None or not right:
            raise RequestRefused(401, "USED_LINK", "this link was used already; `commonplace ui` makes a new one")
        return self._begin(Visitor(key="ui"), None)

    def enter_by_key(self, key: str, peer: str | None) -> BrowserSession:
        """Return a session for a key of the server."""
        if self._host.token is not None:
            raise RequestRefused(401, "NO_KEYS", "this page is opened by the link that `commonplace ui` prints")
        return self._begin(self._host.admit(_header(key), peer), key)

    def session_of(self, request: Request) -> BrowserSession | None:
        """Return the session of a request; None if it has none that is valid."""
        with self._lock:
            found = self._sessions.pop(request.cookies.get(self.cookie(request), ""), None)
            if found is not None:
                self._sessions[found.id] = found  # the last one now
        if found is None and not self._host.keys and self._host.token is None:
            return self._begin(self._host.admit(Headers({}), None), None)
        if found is None or found.key is None:
            return found
        try:
            return found.replace(visitor=self._host.admit(_header(found.key), None))
        except RequestRefused as refused:
            if refused.status == 401:  # noqa: PLR2004 - the key was revoked, or has expired
                self.leave(found)
                return None
            raise

    def leave(self, session: BrowserSession) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session.id, None)

    def _begin(self, visitor: Visitor, key: str | None) -> BrowserSession:
        session = BrowserSession(
            id=secrets.token_urlsafe(TOKEN_BYTES), csrf=secrets.token_urlsafe(TOKEN_BYTES), visitor=visitor, key=key
        )
        with self._lock:
            self._sessions[session.id] = session
            while len(self._sessions) > SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return session


def require_own_page(request: Request) -> None:
    """Refuse a request that another page has made, also one of an origin that the API is open to."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    own = {f"{scheme}://{request.headers.get('host', '')}".lower() for scheme in ("http", "https")}
    if (origin is not None and origin.lower() not in own) or (site is not None and site not in _OWN):
        raise RequestRefused(403, "WRONG_ORIGIN", "only this page itself may do that")


def require_form(session: BrowserSession, form: Mapping[str, str]) -> None:
    """Refuse a change that does not come from a form of this session, and one by a key that only reads."""
    if not hmac.compare_digest(form.get("csrf", ""), session.csrf):
        message = "this form is from another sign-in; go back, reload the page and try again"
        raise RequestRefused(403, "WRONG_FORM", message)
    if session.visitor.read_only:
        raise RequestRefused(403, "READ_ONLY_KEY", "this key is read-only, so nothing can be changed with it")


def _header(key: str) -> Headers:
    return Headers({"x-api-key": key})

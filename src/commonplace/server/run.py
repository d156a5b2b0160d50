"""Start the server: open the store, bind the address, serve until a signal says stop."""

from __future__ import annotations

import logging
import os
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import uvicorn

from commonplace.app import configured_embedder, open_app, open_store, redaction_key_beside
from commonplace.config.paths import CONFIG
from commonplace.config.project import context
from commonplace.engine.memory import now_utc
from commonplace.intents.intents import Intents
from commonplace.model.errors import Forbidden, StoreError
from commonplace.model.values import Value
from commonplace.records.access import AccessTable, AppAccess
from commonplace.server.application import application
from commonplace.server.event_watch import Watch
from commonplace.server.keys import Keys
from commonplace.server.limits import patience
from commonplace.server.routing import Services
from commonplace.server.settings import VARIABLES, Server

ASYNCIO = "asyncio"
BACKLOG = 256  # connections that wait to be taken
HEADERS = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")]
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Opened(Value):
    """What a server works with."""

    intents: Intents
    keys: Keys
    desks: AccessTable
    close: Callable[[], None]


class Discreet(logging.Formatter):
    """A log in which an error says what it is and where, and never what it was about: that may be somebody's memory."""

    def formatException(self, ei: _Raised) -> str:  # noqa: N802 - its name is logging's
        """See ``logging.Formatter``."""
        kind, _, trace = ei
        return "".join(traceback.format_tb(trace)) + (kind.__name__ if kind else "")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - likewise
        """See ``logging.Formatter``; asyncio shows a failed task with the words of its error."""
        if record.name == ASYNCIO:
            record.message = "a task failed"
        return super().formatMessage(record)


class Stoppable(uvicorn.Server):
    """A server that a signal stops, and that then returns: the command says how it ended."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See ``uvicorn.Server``, which would raise the signal again when all is done."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def serve(settings: Server, env: Mapping[str, str], *, tell: Callable[[str], None], quiet: bool) -> int:
    """Serve until a signal says stop; returns the exit code."""
    opened = open_services(settings, env)
    if settings.keys and settings.key is None and not opened.keys.exist():
        opened.close()
        raise Forbidden(
            "there is no key yet, so nobody could call; `commonplace keys create NAME` makes one, "
            f"{VARIABLES['key']} brings one, and --no-keys serves everybody on this machine"
        )
    listening = bound(settings)
    server = Stoppable(uvicorn.Config(app=_starting, **options(settings)))
    services = Services(
        settings=settings, intents=opened.intents, keys=opened.keys, desk=opened.desks, clock=now_utc,
        watch=Watch(opened.intents), stopping=lambda: server.should_exit,
    )  # fmt: skip
    server.config.app = application(services, close=opened.close)
    logs(quiet=quiet)
    tell(f"serving {address(listening)}" + ("" if settings.keys else " without keys, to everybody on this machine"))
    server.run(sockets=[listening])
    tell("stopped")
    return 0


def open_services(settings: Server, env: Mapping[str, str]) -> Opened:
    """Open the store that is to be served: one that was named, or what the command sees from here."""
    if settings.store is None:
        place = open_app(env=env)
        store, embedder, secret, own = place.database, place.embedder, place.secret, AppAccess(place)
    else:
        where = context(os.getcwd(), env)
        store, own = open_store(settings.store, env=env), None
        embedder = configured_embedder(where.user_settings, env, file=os.path.join(where.home, CONFIG))
        secret = redaction_key_beside(settings.store)
    return Opened(
        intents=Intents(store, embedder=embedder, secret=secret, event_days=settings.event_days),
        keys=Keys(store), close=store.close,
        desks=AccessTable(store, clock=now_utc, embedder=embedder, secret=secret, own=own),
    )  # fmt: skip


def bound(settings: Server) -> socket.socket:
    """Take the address, or say who cannot have it."""
    try:
        [(family, kind, protocol, _, place), *_] = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return _listening(socket.socket(family, kind, protocol), place)
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"cannot serve at {settings.host}:{settings.port}: {why}") from error


def _listening(taken: socket.socket, place: Any) -> socket.socket:
    try:
        # What it accepts has this too: else each answer, written in two pieces, waits 40 ms for the first's receipt.
        taken.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(place)
        taken.listen(BACKLOG)
    except OSError:
        taken.close()
        raise
    return taken


def address(listening: socket.socket) -> str:
    """Where a client finds the server."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def options(settings: Server) -> dict[str, Any]:
    """The settings as uvicorn takes them."""
    limits = settings.limits
    return {
        "http": patience(limits), "ws": "none", "loop": "asyncio", "lifespan": "on", "interface": "asgi3",
        "log_config": None, "access_log": False, "server_header": False, "headers": HEADERS, "proxy_headers": False,
        "limit_concurrency": limits.connections, "timeout_keep_alive": limits.idle_seconds,
        "timeout_graceful_shutdown": limits.drain_seconds, "h11_max_incomplete_event_size": limits.header_bytes,
    }  # fmt: skip


def logs(*, quiet: bool) -> None:
    """Write what there is to say to standard error, without anybody's words in it."""
    handler = logging.StreamHandler()
    handler.setFormatter(Discreet("%(asctime)s %(levelname)s %(message)s"))
    requests = logging.WARNING if quiet else logging.INFO
    levels = {"commonplace.http": requests, "uvicorn.error": logging.WARNING, ASYNCIO: logging.ERROR}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


async def _starting(*_: Any) -> None:
    """Stand in for the application until the server knows the server that stops it."""

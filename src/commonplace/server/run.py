"""Start the server: open the store, bind the address, serve until a signal stops it."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import TracebackType
from typing import Any

import uvicorn

from commonplace.app import configured_embedder, open_app, open_store, redaction_key_for
from commonplace.config.paths import CONFIG
from commonplace.config.project import context
from commonplace.engine.memory import now_utc
from commonplace.intents import Intents
from commonplace.model.errors import Forbidden
from commonplace.page import opener_for_person
from commonplace.records import AccessTable, AppAccess
from commonplace.server.application import application
from commonplace.server.auth import Authenticator
from commonplace.server.keys import Keys
from commonplace.server.limits import protocol_with
from commonplace.server.listening import SocketFile, bind, url_of
from commonplace.server.rooms import Services
from commonplace.server.settings import VARIABLES, ServerSettings

ASYNCIO = "asyncio"
HEADERS = [("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")]
_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class DiscreetFormatter(logging.Formatter):
    """Logs the type and the place of an error and never its message, which may quote memory."""

    def formatException(self, ei: _Raised) -> str:  # noqa: N802 - its name is logging's
        """See ``logging.Formatter``."""
        kind, _, trace = ei
        return "".join(traceback.format_tb(trace)) + (kind.__name__ if kind else "")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - likewise
        """See ``logging.Formatter``; asyncio logs a failed task with the message of its error."""
        if record.name == ASYNCIO:
            record.message = "a task failed"
        return super().formatMessage(record)


class StoppableServer(uvicorn.Server):
    """Returns after a signal stopped it, so that the command can report how it ended."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See ``uvicorn.Server``, which would raise the signal again at the end."""
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def serve(settings: ServerSettings, env: Mapping[str, str], *, notify: Callable[[str], None], quiet: bool) -> int:
    """Serve until a signal stops it; return the exit code."""
    everybody = "you" if settings.socket else "every process on this machine"
    without = "" if settings.keys else f" without keys, to {everybody}"
    run(settings, env, started=lambda url: notify(f"serving {url}{without}"), quiet=quiet)
    notify("stopped")
    return 0


def run(settings: ServerSettings, env: Mapping[str, str], *, started: Callable[[str], None], quiet: bool) -> None:
    """Serve until a signal stops it; ``started`` is called with the address once it listens."""
    server = StoppableServer(uvicorn.Config(app=_starting, **uvicorn_options(settings)))
    services, close = open_services(settings, env, is_stopping=lambda: server.should_exit)
    if settings.keys and settings.key is None and not services.keys.exist():
        close()
        raise Forbidden(
            "there is no key yet, so every request would be refused; create one with `commonplace keys create NAME`, "
            f"set {VARIABLES['key']}, or use --no-keys to serve this machine without keys"
        )
    listening = bind(settings)
    server.config.app = application(services, close=close)
    configure_logs(quiet=quiet)
    file = SocketFile(listening)
    started(url_of(listening))
    try:
        server.run(sockets=[listening])
    finally:
        file.remove()


def open_services(
    settings: ServerSettings, env: Mapping[str, str], *, is_stopping: Callable[[], bool]
) -> tuple[Services, Callable[[], None]]:
    """Open the store: the one that is named, or that of the working directory; return also what closes it."""
    directory = os.getcwd()
    if settings.store is None:
        app = open_app(directory, env=env)
        store, embedder, secret, own = app.database, app.embedder, app.secret, AppAccess(app)
    else:
        where = context(directory, env)
        store, own = open_store(settings.store, env=env), None
        embedder = configured_embedder(where.user_settings, env, file=os.path.join(where.home, CONFIG))
        secret = redaction_key_for(settings.store)
    keys = Keys(store)
    access = AccessTable(store, clock=now_utc, embedder=embedder, secret=secret, own=own)
    services = Services(
        settings=settings, keys=keys, authenticator=Authenticator(keys, settings), is_stopping=is_stopping,
        intents=Intents(store, embedder=embedder, secret=secret, event_days=settings.event_days),
        memory_access=access,
        open_own=(lambda: nullcontext(access(None))) if own is None else opener_for_person(directory, env),
    )  # fmt: skip
    return services, store.close


def uvicorn_options(settings: ServerSettings) -> dict[str, Any]:
    """Return the settings as uvicorn takes them."""
    limits = settings.limits
    return {
        "http": protocol_with(limits), "ws": "none", "loop": "asyncio", "lifespan": "on", "interface": "asgi3",
        "log_config": None, "access_log": False, "server_header": False, "headers": HEADERS, "proxy_headers": False,
        "limit_concurrency": limits.connections, "timeout_keep_alive": limits.idle_seconds,
        "timeout_graceful_shutdown": limits.drain_seconds, "h11_max_incomplete_event_size": limits.header_bytes,
    }  # fmt: skip


def configure_logs(*, quiet: bool) -> None:
    """Log to standard error, without any content of memory."""
    handler = logging.StreamHandler()
    handler.setFormatter(DiscreetFormatter("%(asctime)s %(levelname)s %(message)s"))
    requests = logging.WARNING if quiet else logging.INFO
    levels = {"commonplace.http": requests, "uvicorn.error": logging.WARNING, ASYNCIO: logging.ERROR}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)


async def _starting(*_: Any) -> None:
    """Stand in for the application, which needs the server to know whether it is stopping."""

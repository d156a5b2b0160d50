"""The settings of ``commonplace serve``: environment variables and command options as one value.

Options win over variables.  Nothing below this reads the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from commonplace.config.paths import is_loopback
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.events import EVENT_DAYS, MAX_EVENT_DAYS
from commonplace.model.values import Value

ENVIRONMENT = "environment"  # what stands for the file in errors
PORT = 8000  # what clients of intent memory expect
PORT_MAX = 65_535
RATE = 300  # requests of one key in a second: a third of what one process answers, so that others are answered, too
RATE_MAX = 1_000_000
KEY_CHARS = 32  # of a key in the environment, at least: shorter ones can be guessed
VARIABLES: Mapping[str, str] = {
    "host": "COMMONPLACE_SERVE_HOST",
    "port": "COMMONPLACE_SERVE_PORT",
    "socket": "COMMONPLACE_SERVE_SOCKET",
    "key": "COMMONPLACE_SERVE_KEY",
    "hosts": "COMMONPLACE_SERVE_ALLOW_HOSTS",
    "origins": "COMMONPLACE_SERVE_ALLOW_ORIGINS",
    "body_bytes": "COMMONPLACE_SERVE_BODY_BYTES",
    "connections": "COMMONPLACE_SERVE_CONNECTIONS",
    "answer_seconds": "COMMONPLACE_SERVE_ANSWER_SECONDS",
    "event_days": "COMMONPLACE_SERVE_EVENT_DAYS",
    "rate": "COMMONPLACE_SERVE_RATE",
}
#: The variables that are numbers: the least and the greatest.
NUMBERS: Mapping[str, tuple[int, int]] = {
    "port": (1, PORT_MAX),
    "body_bytes": (1, 1 << 30),
    "connections": (1, 100_000),
    "answer_seconds": (1, 3600),
    "event_days": (0, MAX_EVENT_DAYS),
    "rate": (0, RATE_MAX),
}
LISTS = ("hosts", "origins")  # joined by commas in a variable; the options add to them


class ServerLimits(Value):
    """How much a client may send and ask for, and how long the server waits."""

    body_bytes: int = 4_194_304  #: of one request; a batch of a thousand small entries fits
    header_bytes: int = 32_768  #: of the request line and all headers
    header_seconds: float = 5.0  #: until a request's headers are complete; then the connection is closed
    body_seconds: float = 10.0  #: until a request's body is complete
    answer_seconds: float = 30.0  #: until a verb returns; then 503
    idle_seconds: int = 5  #: between two requests of one connection
    drain_seconds: int = 30  #: after SIGTERM, for requests in progress
    connections: int = 200  #: at the same time; beyond that 503
    threads: int = 16  #: in which verbs run; a store is the bottleneck long before
    streams: int = 50  #: of events, at the same time
    unread_seconds: float = 10.0  #: in which a client has to read ``unread_bytes`` of what waits for it
    unread_bytes: int = 65_536  #: that wait for a client; then nothing more is made for it until it has read
    poll_seconds: float = 0.5  #: between two checks for new events
    heartbeat_seconds: float = 15.0  #: between two signs of life on a silent stream of events

    @property
    def streams_of_one_key(self) -> int:
        """How many streams one key may have open: a quarter of all."""
        return max(1, self.streams // 4)


class ServerSettings(Value):
    """The settings of a server."""

    host: str = "127.0.0.1"
    port: int = PORT  #: 0: any free port
    socket: str | None = None  #: the path of a Unix socket, in place of host and port
    store: str | None = None  #: a file, or an address; None: the store of the working directory
    keys: bool = True  #: whether a key is required
    key: str | None = None  #: an operator's key from the environment
    hosts: tuple[str, ...] = ()  #: names that a Host header may hold besides the server's own
    origins: tuple[str, ...] = ()  #: of web pages that may call besides the server's own
    event_days: int = EVENT_DAYS  #: how long events are stored; 0: forever
    rate: int = RATE  #: requests of one key in a second; 0: any number
    token: str | None = None  #: of `commonplace ui`: it opens the page once, and there is nothing but the page
    limits: ServerLimits = ServerLimits()

    @property
    def names(self) -> frozenset[str]:
        """Every name that a Host header may hold."""
        own = {"127.0.0.1", "localhost", "::1"} if self.socket or is_loopback(self.host) else {self.host}
        return frozenset(name.lower() for name in {*own, *self.hosts})

    def _check(self) -> None:
        if not self.keys and not self.socket and not is_loopback(self.host):
            raise Forbidden(
                f"without keys only this machine may be served, and {self.host!r} can be reached from others"
            )


def read_settings(env: Mapping[str, str], **options: Any) -> ServerSettings:
    """Return the settings of environment and options; an option that is None was not given."""
    read = {field: _read(field, env[name]) for field, name in VARIABLES.items() if env.get(name)}
    limits = ServerLimits(**{field: read.pop(field) for field in ServerLimits.fields if field in read})
    lists = {field: tuple(dict.fromkeys((*read.get(field, ()), *(options.get(field) or ())))) for field in LISTS}
    given = {field: value for field, value in options.items() if value is not None}
    if given.get("socket") and ("host" in given or "port" in given):
        raise InvalidInput("--socket takes the place of --host and --port; give one or the other")
    if "host" in given or "port" in given:
        read.pop("socket", None)
    given = read | given | lists
    return ServerSettings(**given, limits=limits)


def _read(field: str, text: str) -> Any:
    """Return the text of a variable as its type."""
    if field in LISTS:
        return [part for part in map(str.strip, text.split(",")) if part]
    if field in NUMBERS:
        least, most = NUMBERS[field]
        if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise _wrong(field, f"must be a number from {least} to {most}, not {text!r}")
        return int(text)
    if field == "key" and len(text) < KEY_CHARS:
        raise _wrong(field, f"needs at least {KEY_CHARS} characters")
    return text


def _wrong(field: str, reason: str) -> ConfigError:
    return ConfigError(reason, file=ENVIRONMENT, path=VARIABLES[field])

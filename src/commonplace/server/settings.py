"""How ``commonplace serve`` is set up: the environment's variables and the command's options, as one value.

Options win over variables.  Below this nobody reads the environment.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from commonplace.model.errors import ConfigError, Forbidden
from commonplace.model.events import EVENT_DAYS, EVENT_DAYS_MOST
from commonplace.model.values import Value

ENVIRONMENT = "environment"  # what stands for the file in errors
PORT = 8000  # what clients of intent memory expect
PORT_MOST = 65_535
KEY_CHARS = 32  # of a key in the environment, at least: people think up shorter ones
VARIABLES: Mapping[str, str] = {
    "host": "COMMONPLACE_SERVE_HOST",
    "port": "COMMONPLACE_SERVE_PORT",
    "key": "COMMONPLACE_SERVE_KEY",
    "hosts": "COMMONPLACE_SERVE_ALLOW_HOSTS",
    "origins": "COMMONPLACE_SERVE_ALLOW_ORIGINS",
    "body_bytes": "COMMONPLACE_SERVE_BODY_BYTES",
    "connections": "COMMONPLACE_SERVE_CONNECTIONS",
    "answer_seconds": "COMMONPLACE_SERVE_ANSWER_SECONDS",
    "event_days": "COMMONPLACE_SERVE_EVENT_DAYS",
}


class Limits(Value):
    """How much one caller may ask of a server, and how long it waits for them."""

    body_bytes: int = 4_194_304  #: of one request; a batch of a thousand small entries fits
    header_bytes: int = 32_768  #: of the request line and all headers
    header_seconds: float = 5.0  #: until a request's headers are there; a silent connection is closed then too
    body_seconds: float = 10.0  #: until a request's body is there
    answer_seconds: float = 30.0  #: until a verb has an answer; then 503
    idle_seconds: int = 5  #: between two requests of one connection
    drain_seconds: int = 30  #: after SIGTERM, for what is under way
    connections: int = 200  #: at the same time; beyond that 503
    threads: int = 16  #: in which verbs run; a store is the bottleneck long before
    streams: int = 50  #: of events, at the same time
    poll_seconds: float = 0.5  #: between two looks for new events
    beat_seconds: float = 15.0  #: between two signs of life on a silent stream of events


class Server(Value):
    """A server as its operator wants it."""

    host: str = "127.0.0.1"
    port: int = PORT  #: 0: any that is free
    store: str | None = None  #: a file, or an address; None: what the command sees from here
    keys: bool = True  #: whether a key is asked for
    key: str | None = None  #: an operator's key from the environment
    hosts: tuple[str, ...] = ()  #: names under which it may be called besides its own
    origins: tuple[str, ...] = ()  #: of web pages that may call it besides its own
    event_days: int = EVENT_DAYS  #: for how long it is kept what happened; 0: for ever
    limits: Limits = Limits()

    @property
    def names(self) -> frozenset[str]:
        """Every name that a Host header may hold."""
        own = {"127.0.0.1", "localhost", "::1"} if is_loopback(self.host) else {self.host}
        return frozenset(name.lower() for name in {*own, *self.hosts})

    def _check(self) -> None:
        if not self.keys and not is_loopback(self.host):
            raise Forbidden(
                f"without keys only this machine may be served, and {self.host!r} can be reached from others"
            )


def server(env: Mapping[str, str], **options: Any) -> Server:
    """Read the environment, then what the command was told; an option that is None was not given."""
    told = {field: env[name] for field, name in VARIABLES.items() if env.get(name)}
    limits = Limits(
        **{
            field: _number(told.pop(field), VARIABLES[field], most)
            for field, most in (("body_bytes", 1 << 30), ("connections", 100_000), ("answer_seconds", 3600))
            if field in told
        }
    )
    given: dict[str, Any] = told | {field: value for field, value in options.items() if value is not None}
    if isinstance(given.get("port"), str):
        given["port"] = _number(given["port"], VARIABLES["port"], PORT_MOST)
    if isinstance(given.get("event_days"), str):
        given["event_days"] = _number(given["event_days"], VARIABLES["event_days"], EVENT_DAYS_MOST, least=0)
    for field in ("hosts", "origins"):
        given[field] = _listed(told.get(field, ""), options.get(field) or ())
    if len(given.get("key", " " * KEY_CHARS)) < KEY_CHARS:
        raise ConfigError(f"needs at least {KEY_CHARS} characters", file=ENVIRONMENT, path=VARIABLES["key"])
    return Server(**given, limits=limits)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _number(text: str, name: str, most: int, *, least: int = 1) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
        raise ConfigError(f"must be a number from {least} to {most}, not {text!r}", file=ENVIRONMENT, path=name)
    return int(text)


def _listed(told: str, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for part in (*map(str.strip, told.split(",")), *given) if part))

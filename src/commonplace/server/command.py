"""``commonplace serve`` and ``commonplace keys``: the HTTP server, and the keys that open it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click

from commonplace.app import machine_name, open_store
from commonplace.cli.commands import Command, Group
from commonplace.cli.dates import until
from commonplace.cli.session import F, json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.config.project import context
from commonplace.engine.memory import now_utc
from commonplace.engine.rendering import iso
from commonplace.install import hint
from commonplace.model.errors import InvalidInput
from commonplace.model.events import EVENT_DAYS, MAX_EVENT_DAYS
from commonplace.server.keys import Keys, ServerKey
from commonplace.server.settings import PORT_MAX, RATE, RATE_MAX, read_settings

ANY = "any agent"
LIBRARIES = ("starlette", "uvicorn", "msgspec", "h11", "anyio", "jinja2", "markupsafe")


@click.command(cls=Command)
@click.option("--host", metavar="ADDRESS", help="Address to listen on (default 127.0.0.1).")
@click.option("--port", metavar="N", type=click.IntRange(0, PORT_MAX), help="Port (default 8000; 0 = any free port).")
@click.option("--socket", metavar="PATH", help="Listen at a Unix socket that only you may open, not at a port.")
@click.option("--store", metavar="PATH", help="File or postgresql:// address (default: the store of this directory).")
@click.option("--no-keys", is_flag=True, help="Require no key. Only for a server that other machines cannot reach.")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="Accept requests for this host name, too.")
@click.option(
    "--allow-origin",
    "origins",
    metavar="ORIGIN",
    multiple=True,
    help="Accept web pages of this origin, too.",
)
@click.option(
    "--event-days",
    metavar="N",
    type=click.IntRange(0, MAX_EVENT_DAYS),
    help=f"Days to keep events (default {EVENT_DAYS}; 0 = forever).",
)
@click.option(
    "--rate",
    metavar="N",
    type=click.IntRange(0, RATE_MAX),
    help=f"Requests that one key may make in a second (default {RATE}; 0 = any number).",
)
@click.option("--quiet", is_flag=True, help="Do not log requests.")
def serve(*, no_keys: bool, quiet: bool, **given: Any) -> int:
    """Serve memory over HTTP: the API of intent memory, and the verbs of entries and records.

    Every request needs a key made by `commonplace keys create`, or the one in COMMONPLACE_SERVE_KEY.  SIGTERM and
    Ctrl-C finish the requests in progress.  /openapi.json describes every route.

    Examples:
      commonplace keys create laptop
      commonplace serve
      commonplace serve --no-keys --port 8765
      commonplace serve --socket ~/.commonplace.sock
    """
    settings = read_settings(os.environ, **given, keys=False if no_keys else None)
    try:
        from commonplace.server.run import serve as run  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise InvalidInput(f"{hint('the server is an extra', 'server')} ({error.name!r} is missing)") from error
    return run(settings, os.environ, notify=print_note, quiet=quiet)


@click.group(cls=Group)
def keys() -> None:
    """Make, list and revoke the keys of the server.

    A key is shown once, when it is made; the store holds only its SHA-256.  A key without an agent is an operator's and
    acts for any agent; a key with one sees what that agent may see.

    Examples:
      commonplace keys create laptop
      commonplace keys create researcher --agent research-agent
      commonplace keys revoke 3v9k2m4p7q
    """


def _store_option(command: F) -> F:
    """Give a command ``--store``."""
    text = "File or postgresql:// address (default: the store of this directory)."
    return click.option("--store", metavar="PATH", help=text)(command)


@keys.command()
@click.argument("name")
@click.option("--agent", metavar="ID", help="The one agent that the key acts for (default: any agent).")
@click.option(
    "--expires",
    metavar="WHEN",
    help="When it is refused from: a date, or a time from now such as 90d (default: never).",
)
@click.option("--read-only", is_flag=True, help="Let it read and stream events, and refuse its writes.")
@_store_option
@json_option
def create(
    name: str, *, agent: str | None, expires: str | None, read_only: bool, store: str | None, as_json: bool
) -> None:
    """Make a key and show it, once.

    NAME is for your own orientation.  Only the key is written to standard output, so that you can pipe it.

    Examples:
      commonplace keys create researcher --agent research-agent
      commonplace keys create dashboard --read-only --expires 90d
    """
    expires_at = None if expires is None else until(expires, now_utc())
    with _open_keys(store) as known:
        key, token = known.create(name, agent=agent, expires_at=expires_at, read_only=read_only)
    if as_json:
        print_json(_key_json(key) | {"key": token})
        return
    rights = "reads only, " if key.read_only else ""
    print_note(
        f"made key {key.id} ({key.name}) for {key.agent or ANY}; {rights}{_expiry(key, now_utc())}; "
        "it is shown only this once"
    )
    print_text(token)


@keys.command("list")
@_store_option
@json_option
def list_(store: str | None, as_json: bool) -> None:
    """List the keys, oldest first: id, date, expiry, rights, last use, agent and name.

    The last use is written at most once a minute.

    Example:
      commonplace keys list
    """
    with _open_keys(store) as known:
        found = known.list()
    if as_json:
        print_json({"keys": [_key_json(key) for key in found]})
    elif found:
        print_text("\n".join(_line(key, now_utc()) for key in found))
    else:
        print_note("there are no keys; create one with `commonplace keys create NAME`")


@keys.command()
@click.argument("id")
@_store_option
@json_option
def revoke(id: str, store: str | None, as_json: bool) -> None:
    """Revoke a key.  Takes effect with the next request, in every server on the store.

    ID is the first column of `commonplace keys list`.

    Example:
      commonplace keys revoke 3v9k2m4p7q
    """
    with _open_keys(store) as known:
        key = known.revoke(id)
    if as_json:
        print_json({"revoked": _key_json(key)})
    else:
        print_text(f"Revoked {key.id} ({key.name})")


@contextmanager
def _open_keys(place: str | None) -> Iterator[Keys]:
    """Open the keys of a store; by default of the store of the working directory."""
    where = context(os.getcwd(), os.environ)
    store = open_store(place or where.database, machine=lambda: machine_name(where.home))
    try:
        yield Keys(store)
    finally:
        store.close()


def _line(key: ServerKey, now: datetime) -> str:
    used = f"used {key.last_used_at:%Y-%m-%d %H:%M}" if key.last_used_at else "never used"
    rights = "reads" if key.read_only else "reads, writes"
    return "  ".join(
        (key.id, f"{key.created_at:%Y-%m-%d}", _expiry(key, now), rights, used, key.agent or ANY, key.name)
    )


def _expiry(key: ServerKey, now: datetime) -> str:
    if key.expires_at is None:
        return "never expires"
    return f"{'expired' if key.is_expired(now) else 'expires'} {key.expires_at:%Y-%m-%d %H:%M}"


def _key_json(key: ServerKey) -> dict[str, Any]:
    return {
        "id": key.id, "name": key.name, "agent": key.agent, "created_at": iso(key.created_at),
        "expires_at": iso(key.expires_at), "read_only": key.read_only, "last_used_at": iso(key.last_used_at),
    }  # fmt: skip

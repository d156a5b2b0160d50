"""``commonplace keys``: who may call the server, and for whom."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from commonplace.app import machine_name, open_store
from commonplace.cli.commands import Group
from commonplace.cli.session import F, json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.config.project import context
from commonplace.engine.rendering import iso
from commonplace.server.keys import Key, Keys

ANY = "any agent"


@click.group(cls=Group)
def keys() -> None:
    """Make, list and revoke the keys of the server.

    A key is shown once, when it is made; only its SHA-256 is kept, in the store that is served.  A key without an agent
    is an operator's and acts for any; one that is bound to an agent sees what that agent may see.

    Examples:
      commonplace keys create laptop
      commonplace keys create researcher --agent research-agent
      commonplace keys revoke 3v9k2m4p7q
    """


def _stored(command: F) -> F:
    """Give a command ``--store``."""
    said = "A file or a postgresql:// address, as with `commonplace serve`."
    return click.option("--store", metavar="PATH", help=said)(command)


@keys.command()
@click.argument("name")
@click.option("--agent", metavar="ID", help="The one agent that it acts for; an operator's key unless given.")
@_stored
@json_option
def create(name: str, agent: str | None, store: str | None, as_json: bool) -> None:
    """Make a key and show it, once.

    NAME is what you call it.  The key alone goes to standard output, so that it can be piped.

    Example:
      commonplace keys create researcher --agent research-agent
    """
    with _opened(store) as known:
        key, token = known.create(name, agent=agent)
    if as_json:
        print_json(_described(key) | {"key": token})
        return
    print_note(f"made key {key.id} ({key.name}) for {key.agent or ANY}; it is shown this once")
    print_text(token)


@keys.command("list")
@_stored
@json_option
def list_(store: str | None, as_json: bool) -> None:
    """List the keys, oldest first: never what they are, only what they are called.

    Example:
      commonplace keys list
    """
    with _opened(store) as known:
        found = known.list()
    if as_json:
        print_json({"keys": [_described(key) for key in found]})
    elif found:
        print_text("\n".join(f"{key.id}  {key.created_at:%Y-%m-%d}  {key.agent or ANY}  {key.name}" for key in found))
    else:
        print_note("there are no keys; `commonplace keys create NAME` makes one")


@keys.command()
@click.argument("id")
@_stored
@json_option
def revoke(id: str, store: str | None, as_json: bool) -> None:
    """Let a key open nothing any more.

    ID is what `commonplace keys list` shows.  It holds from the next request on, in every server on the store.

    Example:
      commonplace keys revoke 3v9k2m4p7q
    """
    with _opened(store) as known:
        key = known.revoke(id)
    if as_json:
        print_json({"revoked": _described(key)})
    else:
        print_text(f"Revoked {key.id} ({key.name})")


@contextmanager
def _opened(place: str | None) -> Iterator[Keys]:
    """The keys of a store; without one those of the store that the command sees from here."""
    where = context(os.getcwd(), os.environ)
    store = open_store(place or where.database, machine=lambda: machine_name(where.home))
    try:
        yield Keys(store)
    finally:
        store.close()


def _described(key: Key) -> dict[str, Any]:
    return {"id": key.id, "name": key.name, "agent": key.agent, "created_at": iso(key.created_at)}

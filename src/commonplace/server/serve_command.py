"""``commonplace serve``: memory over HTTP."""

from __future__ import annotations

import os
from typing import Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.terminal import print_note
from commonplace.model.errors import InvalidInput
from commonplace.model.events import EVENT_DAYS, EVENT_DAYS_MOST
from commonplace.server.settings import PORT_MOST, server

MISSING = "the server is an extra: pip install 'commonplace[server]' (it lacks {name!r})"


@click.command(cls=Command)
@click.option("--host", metavar="ADDRESS", help="Where to listen; 127.0.0.1, this machine alone, unless given.")
@click.option("--port", metavar="N", type=click.IntRange(0, PORT_MOST), help="The port; 8000 unless given, 0: any.")
@click.option(
    "--store", metavar="PATH", help="A file or a postgresql:// address; else what the command sees from here."
)
@click.option("--no-keys", is_flag=True, help="Ask nobody for a key; only for this machine alone.")
@click.option("--allow-host", "hosts", metavar="NAME", multiple=True, help="A further name that it may be called by.")
@click.option("--allow-origin", "origins", metavar="ORIGIN", multiple=True, help="Web pages that may call it, too.")
@click.option(
    "--event-days",
    metavar="N",
    type=click.IntRange(0, EVENT_DAYS_MOST),
    help=f"For how long it is kept what happened; {EVENT_DAYS} unless given, 0: for ever.",
)
@click.option("--quiet", is_flag=True, help="Write no line for each request.")
def serve(*, no_keys: bool, quiet: bool, **given: Any) -> int:
    """Serve memory over HTTP: the API of intent memory, and our own verbs.

    Every call needs a key of `commonplace keys create`, or the one in COMMONPLACE_SERVE_KEY.  SIGTERM and Ctrl-C finish
    what is under way.  /openapi.json says what can be called.

    Examples:
      commonplace keys create laptop
      commonplace serve
      commonplace serve --no-keys --port 8765
    """
    settings = server(os.environ, **given, keys=False if no_keys else None)
    try:
        from commonplace.server.run import serve as served  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "msgspec", "h11", "anyio"):
            raise
        raise InvalidInput(MISSING.format(name=error.name)) from error
    return served(settings, os.environ, tell=print_note, quiet=quiet)

"""``commonplace ui``: the page to look at memory, on this machine, in the browser."""

from __future__ import annotations

import os
import secrets
import sys
import webbrowser
from contextlib import suppress

import click

from commonplace.cli.commands import Command
from commonplace.cli.person import require_person
from commonplace.cli.terminal import print_note, print_text
from commonplace.install import hint
from commonplace.model.errors import InvalidInput
from commonplace.server.command import LIBRARIES
from commonplace.server.settings import PORT_MAX, ServerSettings

HOST = "127.0.0.1"
TOKEN_BYTES = 32


@click.command(cls=Command)
@click.option("--port", metavar="N", type=click.IntRange(0, PORT_MAX), default=0, help="Port (default: any free one).")
@click.option("--no-browser", is_flag=True, help="Print the link, and open no browser.")
def ui(port: int, *, no_browser: bool) -> int:
    """Open the page to look at memory: search, timeline, review, what was injected.

    It runs until Ctrl-C, can be reached from this machine only, and shows the memory of this directory.  The link opens
    it once, in one browser; whoever has it may read, change and erase.  `commonplace serve` has the same page under
    /ui, behind its keys.

    Examples:
      commonplace ui
      commonplace ui --no-browser --port 8777
    """
    require_person("opens the page, on which everything can be changed")
    return open_page(port=port, browse=not no_browser)


def open_page(*, port: int = 0, browse: bool = True) -> int:
    """Serve the page of this directory until Ctrl-C; return the exit code."""
    try:
        from commonplace.server.run import run  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise InvalidInput(f"{hint('the page is an extra', 'server')} ({error.name!r} is missing)") from error
    token = secrets.token_urlsafe(TOKEN_BYTES)

    def started(url: str) -> None:
        link = f"{url}/ui/enter?token={token}"
        print_text(link)
        sys.stdout.flush()  # a program that waits for the link gets it now
        print_note("the link works once; Ctrl-C stops the page")
        if browse:
            with suppress(webbrowser.Error):  # the link is on the screen
                webbrowser.open(link)

    run(ServerSettings(host=HOST, port=port, keys=False, token=token), os.environ, started=started, quiet=True)
    return 0

"""``commonplace hook`` for the help; hooks themselves run without click (``hook_process``)."""

from __future__ import annotations

import click

from commonplace.cli.commands import Command
from commonplace.hosts.hook_process import HELP, run_hook


@click.command(cls=Command, help=HELP)
@click.argument("event")
@click.option("--host", metavar="NAME", help="The agent: claude-code, codex, gemini, cursor, opencode.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="End after this time instead of the default.")
def hook(event: str, host: str | None, time_limit: float | None) -> None:
    """See ``HELP``."""
    named = ["--host", host] if host else []
    run_hook([event, *named, *(["--time-limit", str(time_limit)] if time_limit else [])])

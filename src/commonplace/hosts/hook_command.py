"""``commonplace hook`` as click sees it, for whoever asks what it does; the hook itself runs without click."""

from __future__ import annotations

import click

from commonplace.cli.commands import Command
from commonplace.hosts.hook_process import HELP, run_hook


@click.command(cls=Command, help=HELP)
@click.argument("event")
@click.option("--host", metavar="NAME", help="Which agent asks: claude-code, codex, gemini, cursor, opencode.")
@click.option("--time-limit", metavar="SECONDS", type=float, help="End after so many seconds instead of the usual.")
def hook(event: str, host: str | None, time_limit: float | None) -> None:
    """See ``HELP``."""
    named = ["--host", host] if host else []
    run_hook([event, *named, *(["--time-limit", str(time_limit)] if time_limit else [])])

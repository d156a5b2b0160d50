"""``commonplace learn``: what a host runs when a session starts.  It never fails its caller."""

from __future__ import annotations

import os
import subprocess
import sys

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.exits import OK
from commonplace.cli.session import json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.files.disk import open_log
from commonplace.learning.learn import OFF, LearnReport, skip_reason
from commonplace.learning.learn import learn_from_sessions as learn_here
from commonplace.learning.opening import open_workspace
from commonplace.learning.status import log_path
from commonplace.model.errors import CommonplaceError

_CHILD = "import sys; from commonplace.cli.main import main; sys.exit(main())"


@click.command(cls=Command)
@click.option("--background", is_flag=True, help="Return at once; learn in a background process.")
@click.option("--session-active", "active", metavar="ID", help="The session that is starting; it is skipped.")
@click.option(
    "--depth",
    type=click.IntRange(min=0),
    default=0,
    envvar="COMMONPLACE_DEPTH",
    help="Above 0: a subagent; nothing is learned.",
)
@click.option("--unsaved", is_flag=True, help="The session is not saved; nothing is learned.")
@json_option
def learn(background: bool, active: str | None, depth: int, unsaved: bool, as_json: bool) -> int:
    """Learn from finished sessions: extract records, then consolidate.

    Does nothing unless `memories.enabled` is true.  Problems are printed and shown by `commonplace status --jobs`; the
    exit code is 0 all the same, so that a session can always start.

    Examples:
      commonplace learn
      commonplace learn --background --session-active 0b1c
    """
    try:
        report = _run_learn(background=background, active=active, depth=depth, saved=not unsaved)
    except (CommonplaceError, OSError) as error:
        trouble = str(error) or type(error).__name__
        print_note(f"nothing was learned: {trouble}")
        report = LearnReport(skipped=trouble, troubles=(trouble,))
    _progress(report, started=background and report.skipped is None, as_json=as_json)
    return OK


def _run_learn(*, background: bool, active: str | None, depth: int, saved: bool) -> LearnReport:
    with open_app() as app:
        if app.where.place is None or not app.where.learning.enabled:
            return LearnReport(skipped=OFF)
        work = open_workspace(app)
        if not background:
            return learn_here(work, active=active, depth=depth, saved=saved)
        reason = skip_reason(work, depth=depth, saved=saved)
    if reason is None:
        _start(app.where.home, ["learn", *(["--session-active", active] if active else [])])
    return LearnReport(skipped=reason)


def _start(home: str, arguments: list[str]) -> None:
    """Start a detached process, which outlives this one."""
    log = open_log(log_path(home))
    try:
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", _CHILD, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(log)


def _progress(report: LearnReport, *, started: bool, as_json: bool) -> None:
    for trouble in report.troubles if not report.skipped else ():
        print_note(trouble)
    lines = ["learning continues in the background"] if started else report.lines
    if as_json:
        print_json(
            {"lines": lines, "skipped": report.skipped, "troubles": list(report.troubles), "background": started}
        )
    else:
        print_text("\n".join(line[:1].upper() + line[1:] for line in lines))

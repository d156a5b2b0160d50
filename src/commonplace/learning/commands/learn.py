"""``commonplace learn``: what a host runs when a session starts.  It never fails its caller."""

from __future__ import annotations

import os
from collections.abc import Collection

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.exits import OK
from commonplace.cli.session import json_option
from commonplace.cli.terminal import print_json, print_note, print_text
from commonplace.learning.background import DETACHED, alone, launch, out_of_time
from commonplace.learning.learn import OFF, LearnReport, skip_reason
from commonplace.learning.learn import learn_from_sessions as learn_here
from commonplace.learning.opening import open_workspace
from commonplace.model.errors import CommonplaceError

BUSY = "another process learns in this project"


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
@click.option("--ended", "ended", metavar="ID", multiple=True, help="A session that is over, however recent it is.")
@click.option(DETACHED, "detached", is_flag=True, hidden=True)
@click.option("--unsaved", is_flag=True, help="The session is not saved; nothing is learned.")
@json_option
def learn(
    *, background: bool, active: str | None, depth: int, unsaved: bool, ended: tuple[str, ...], detached: bool,
    as_json: bool,
) -> int:  # fmt: skip
    """Learn from finished sessions: extract records, then consolidate.

    Does nothing unless `memories.enabled` is true.  Problems are printed and shown by `commonplace status --jobs`; the
    exit code is 0 all the same, so that a session can always start.

    Examples:
      commonplace learn
      commonplace learn --background --session-active 0b1c
    """
    try:
        if detached:
            report = _learn_alone(active=active, depth=depth, ended=ended)
        else:
            report = _run_learn(background=background, active=active, depth=depth, saved=not unsaved, ended=ended)
    except (CommonplaceError, OSError) as error:
        trouble = str(error) or type(error).__name__
        print_note(f"nothing was learned: {trouble}")
        report = LearnReport(skipped=trouble, troubles=(trouble,))
    if report.skipped == BUSY:
        return OK  # the log has no word of it: nothing went wrong
    _progress(report, started=background and report.skipped is None, as_json=as_json)
    return OK


def _run_learn(
    *, background: bool, active: str | None, depth: int, saved: bool, ended: Collection[str]
) -> LearnReport:  # fmt: skip
    with open_app() as app:
        if app.where.place is None or not app.where.learning.enabled:
            return LearnReport(skipped=OFF)
        work = open_workspace(app)
        if not background:
            return learn_here(work, active=active, depth=depth, saved=saved, ended=ended)
        reason = skip_reason(work, depth=depth, saved=saved)
    if reason is None:
        named = [part for name in ended for part in ("--ended", name)]
        launch(
            app.where.home, os.getcwd(), ["learn", DETACHED, *(["--session-active", active] if active else []), *named]
        )
    return LearnReport(skipped=reason)


def _learn_alone(*, active: str | None, depth: int, ended: Collection[str]) -> LearnReport:
    """Learn as a process that a hook has started: one at a time in a project, and not for ever."""
    with open_app() as app:
        if app.where.project is None or not app.where.learning.enabled:
            return LearnReport(skipped=OFF)
        with alone(app.where.home, app.where.project) as is_free:
            if not is_free:
                return LearnReport(skipped=BUSY)
            return learn_here(open_workspace(app), active=active, depth=depth, ended=ended, stop=out_of_time())


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

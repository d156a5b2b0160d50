"""``commonplace rollback``: undo what came from one origin, or since a time."""

from __future__ import annotations

import click

from commonplace.cli import dates as moments
from commonplace.cli.commands import Command
from commonplace.cli.session import Session, confirm, json_option, open_session, scope_option
from commonplace.engine.rollback import ARCHIVE, Rollback, Undo, plan_rollback, roll_back
from commonplace.text.cleaning import one_line, plural
from commonplace.wire import encode

LINE_LETTERS = 80  # of a content in a preview


@click.command(cls=Command)
@click.option("--origin", metavar="REF", help="A session, file, address or channel, as `commonplace why` shows them.")
@click.option("--since", metavar="WHEN", help="A date, a date and time, or a time ago such as 12h, 7d, 2w.")
@click.option("--dry-run", is_flag=True, help="Only show what would be undone.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@scope_option
@json_option
def rollback(
    *, origin: str | None, since: str | None, dry_run: bool, yes: bool, scope: str | None, as_json: bool
) -> int:
    """Undo what came from one origin, or since a time.

    New records are archived, changed ones go back to the version before, replaced and archived ones come back.  What
    somebody else has changed since is left and listed.  Nothing is erased: `rollback --since` undoes a rollback.
    Erased records do not come back.

    Examples:
      commonplace rollback --origin agent --dry-run
      commonplace rollback --since 12h --yes
    """
    with open_session(scope, as_json=as_json) as session:
        moment = None if since is None else moments.start(since, session.app.clock())
        planned = plan_rollback(session.memory, origin=origin, since=moment)
        if dry_run or not planned.undone:
            _answer(session, planned, "Would undo")
            return 0
        question = f"{_shown(planned)}\nUndo {plural(len(planned.undone), 'record')}?"
        if not yes and not confirm(question):
            return 1
        _answer(session, roll_back(session.memory, origin=origin, since=moment), "Undone")
    return 0


def _answer(session: Session, rollback: Rollback, done: str) -> None:
    session.add_notes(*rollback.notes)
    if not rollback.undone:
        session.add_notes("nothing to undo")
    head = f"{done}: {plural(len(rollback.undone), 'record')}"
    session.answer(f"{head}\n{_shown(rollback)}" if rollback.undone or rollback.left else "", encode(rollback))


def _shown(rollback: Rollback) -> str:
    return "\n".join(_line(undo) for undo in (*rollback.undone, *rollback.left))


def _line(undo: Undo) -> str:
    text = one_line(undo.record.content)
    words = text if len(text) <= LINE_LETTERS else text[: LINE_LETTERS - 1].rstrip() + "…"
    if undo.to is not None:
        what = f"back to version {undo.to.version}"
    else:
        what = "archive" if undo.action == ARCHIVE else f"left: {undo.why}"
    return f"{undo.record.short}  {what}  {words}"

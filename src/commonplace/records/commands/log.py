"""``commonplace log``: what changed in memory and when it was used, newest first."""

from __future__ import annotations

from collections.abc import Sequence

import click

from commonplace.cli import dates
from commonplace.cli.commands import Command
from commonplace.cli.session import Session, json_option, open_session
from commonplace.records.activity import list_activity
from commonplace.records.insight_verbs import ACTIVITY_KINDS, Activity
from commonplace.text.cleaning import one_line, plural
from commonplace.wire import encode

LINE_LETTERS = 70


@click.command(cls=Command)
@click.option("--since", metavar="WHEN", help="Only what happened since then: a date, or 12h, 7d, 2w.")
@click.option(
    "--kind", "kinds", type=click.Choice(ACTIVITY_KINDS), multiple=True, help="Only activity of this kind; repeatable."
)
@click.option("--before", metavar="CURSOR", help="Only what comes after the page that ended with this cursor.")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Maximum number.")
@json_option
def log(since: str | None, kinds: Sequence[str], before: str | None, limit: int, as_json: bool) -> None:
    """List what changed in memory and when it was used, newest first.

    Changes come from the audit log, uses from the receipts of what sessions were shown.  `commonplace audit` lists the
    log itself, with the memories of other projects.

    Examples:
      commonplace log --since 7d
      commonplace log --kind superseded --kind archived --json
    """
    with open_session(as_json=as_json) as session:
        moment = None if since is None else dates.since(since, session.app.clock())
        found = list_activity(session.memory, kinds=kinds or ACTIVITY_KINDS, since=moment, before=before, limit=limit)
        if not found.activities:
            session.add_notes("Nothing happened.")
        if found.next:
            session.add_notes(f"there is more; --before {found.next} shows it")
        session.answer("\n".join(_line(session, one) for one in found.activities), encode(found))


def _line(session: Session, one: Activity) -> str:
    return f"{one.at:%Y-%m-%d %H:%M}  {_verb(one):<10}  {_what(session, one)}"


def _verb(one: Activity) -> str:
    return one.verb if one.kind == "other" else one.kind


def _what(session: Session, one: Activity) -> str:
    if one.session is not None:
        return f"{plural(len(one.shown), 'item')}, {one.tokens} tokens, session {one.session}"
    if one.id is None:
        return f"by {one.actor}"
    if one.record is None:
        return f"{one.id[:10]}  (erased), by {one.actor}"
    text = one_line(one.record.content)
    words = text if len(text) <= LINE_LETTERS else text[: LINE_LETTERS - 1].rstrip() + "…"
    return f"{one.id[:10]}  {one.record.category}, {session.app.where.label(one.record.scope)}  {words}"

"""``commonplace session``: list, show and delete indexed sessions."""

from __future__ import annotations

from textwrap import fill

import click

from commonplace.cli import dates
from commonplace.cli.commands import Group
from commonplace.cli.exits import ATTENTION
from commonplace.cli.session import confirm, json_option, open_session, table_lines
from commonplace.records.commands.forget import erase_and_report
from commonplace.records.erasure import session_target
from commonplace.records.sessions import find_session, list_sessions, show_session
from commonplace.records.verbs import SessionSummary
from commonplace.wire import encode

WIDTH = 100
INDENT = "    "
ID_CHARS = 36  # a UUID; longer names are cut in the list

_id = click.argument("id", metavar="ID")


@click.group(cls=Group)
def session() -> None:
    """List, show and delete indexed sessions.

    An ID can be shortened to any unique beginning.

    Examples:
      commonplace session list --since 7d
      commonplace session show 0b1c
      commonplace session delete 0b1c
    """


@session.command("list")
@click.option("--since", metavar="WHEN", help="Only sessions with a turn since then: a date, or 12h, 7d, 2w.")
@click.option("--host", metavar="NAME", help="Only sessions of this agent, such as claude-code.")
@click.option("--words", metavar="TEXT", help="Only sessions whose first words contain this.")
@click.option("--before", metavar="ID", help="Only sessions that come after this one in the list.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of sessions."
)
@json_option
def list_(
    *, since: str | None, host: str | None, words: str | None, before: str | None, limit: int, as_json: bool
) -> None:
    """List indexed sessions, newest first.

    Each with its agent, its last turn, the number of turns, whether it was learned from, and its first words.

    Examples:
      commonplace session list --host claude-code
      commonplace session list --since 2w --json
    """
    with open_session(as_json=as_json) as opened:
        moment = None if since is None else dates.since(since, opened.app.clock())
        found = list_sessions(opened.memory, since=moment, host=host, words=words, before=before, limit=limit + 1)
        if len(found) > limit:
            opened.add_notes(f"there are more than these {limit}; --limit shows more")
        if not found:
            opened.add_notes("No sessions; `commonplace index` and the hooks of `commonplace connect` index them.")
        shown = found[:limit]
        text = "\n".join(table_lines([_row(one) for one in shown])) if shown else ""
        opened.answer(text, {"sessions": [encode(one) for one in shown]})


def _row(one: SessionSummary) -> list[str]:
    learned = "learned" if one.learned else "-"
    return [one.id[:ID_CHARS], one.host or "file", f"{one.updated:%Y-%m-%d %H:%M}", str(one.turns), learned, one.title]


@session.command()
@_id
@json_option
def show(id: str, as_json: bool) -> None:
    """Show a session turn by turn, as it was indexed: without secrets and without what memory injected.

    Examples:
      commonplace session show 0b1c
      commonplace session show 0b1c --json
    """
    with open_session(as_json=as_json) as opened:
        shown = show_session(opened.memory, id)
        head = f"session {shown.session.id}, {shown.session.host or 'file'}, {shown.session.updated:%Y-%m-%d %H:%M}Z"
        turns = [
            f"#{turn.ref} {turn.speaker or 'unknown'}{f', {turn.at:%Y-%m-%d %H:%M}Z' if turn.at else ''}\n"
            + "\n".join(_wrapped(turn.text))
            for turn in shown.turns
        ]
        opened.answer("\n\n".join([head, *turns]), encode(shown))


def _wrapped(text: str) -> list[str]:
    """Wrap each line of a turn by itself: code keeps its lines."""
    options = {"width": WIDTH, "initial_indent": INDENT, "subsequent_indent": INDENT}
    lines = text.splitlines()
    return [fill(line, break_long_words=False, break_on_hyphens=False, **options) for line in lines]  # type: ignore[arg-type]  # a mapping of options


@session.command()
@_id
@click.option("--keep-approved", is_flag=True, help="Keep the records that you approved.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def delete(id: str, *, keep_approved: bool, yes: bool, as_json: bool) -> int:
    """Erase a session with everything that was made of it, for good.

    Its turns, notes, jobs and receipts, the records that were learned from it alone, and its lines in learned
    artifacts; in our own backups too.  Indexing its transcript again does not bring it back.  `commonplace forget
    --session ID --dry-run` shows what goes.

    Example:
      commonplace session delete 0b1c --yes
    """
    with open_session(as_json=as_json) as opened:
        opened.require_person("erases a session")
        document = find_session(opened.memory, id)
        if not yes and not confirm(f"Erase session {document.name} and everything that was made of it for good?"):
            return ATTENTION
        return erase_and_report(opened, session_target(document, keep_approved=keep_approved))

"""``commonplace used``: what a session was shown, and what of it it used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.session import Session, json_option, table_lines
from commonplace.engine.rendering import iso
from commonplace.learning.receipts import INJECTION, RECALL
from commonplace.learning.receipts import session_use as used_in
from commonplace.learning.use_totals import FATES, weekly_totals
from commonplace.model.errors import InvalidInput
from commonplace.model.uses import ItemUse, Receipt, SessionUse, WeekOfUse
from commonplace.text.cleaning import plain_line, plural
from commonplace.wire import encode

LINE_LETTERS = 80  # of what an item says


@click.command(cls=Command)
@click.argument("session", metavar="SESSION", required=False)
@click.option("--weeks", metavar="N", type=click.IntRange(1, 52), help="Show the totals of the last weeks instead.")
@json_option
def show_used(session: str | None, weeks: int | None, as_json: bool) -> None:
    """Show what a session was shown, and what of it was used; or totals for each week.

    Cited: the agent named a record by its id, an artifact by its memory:// address or path, or a turn by its reference.
    Echoed: it repeated the words only, which proves nothing.  The session has to be indexed for that.

    Examples:
      commonplace used 0b1c
      commonplace used --weeks 12
    """
    if (session is None) == (weeks is None):
        raise InvalidInput("name a session, or give --weeks N for the totals; one of the two")
    with open_app() as app:
        output = Session(app, app.memory, as_json=as_json)
        if session is None:
            totals = weekly_totals(app.memory, weeks=weeks or 1)
            output.answer("\n".join(table_lines(_rows(totals), numbers=6)), {"weeks": encode(totals)})
            return
        report = used_in(app.memory, session.removeprefix("session:"))
        if not report.indexed:
            output.add_notes(f"session {report.session!r} is not indexed, so what it used is not known")
        output.answer(_text(report), _to_json(report))


def _rows(weeks: Sequence[WeekOfUse]) -> list[list[str]]:
    """Return the table of the weeks: tokens by what became of the notes."""
    head = ["week of", "sessions", "tokens", *("cited", "echoed", "unused", "not known")]
    rows = [
        [f"{one.begins:%Y-%m-%d}", *map(str, (one.sessions, one.tokens, *(one.fates.get(fate, 0) for fate in FATES)))]
        for one in weeks
    ]
    return [head, *rows]


def _text(report: SessionUse) -> str:
    counts = _counts(report)
    recalls = _times(report, RECALL, "recall")
    head = f"Session {report.session}: " + "; ".join(
        [_times(report, INJECTION, "brief"), *([recalls] if recalls else [])]
    )
    lines = [f"{use.fate:8}{_line(use)}" for use in report.uses]
    lines += [f"{'cited':8}{url}  (was not shown)" for url in report.others]
    summed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    return "\n".join([head, *lines, summed])


def _times(report: SessionUse, what: str, name: str) -> str:
    """How often, when and how much; recalls only if there were any."""
    found = _of(report, what)
    if not found and what == RECALL:
        return ""
    shown = ", ".join(f"{receipt.at:%Y-%m-%d} ({receipt.tokens} tokens)" for receipt in found)
    return plural(len(found), name) + (f": {shown}" if shown else "")


def _of(report: SessionUse, what: str) -> list[Receipt]:
    return [receipt for receipt in report.shown if receipt.what == what]


def _line(use: ItemUse) -> str:
    item = use.item
    version = f" version {item.version}" if item.version is not None else ""
    now = "" if item.kind != "record" else _since(use)
    words = plain_line(use.text or "")
    words = words if len(words) <= LINE_LETTERS else words[: LINE_LETTERS - 1].rstrip() + "…"
    turns = ", ".join(f"#{ref}" for ref in (*use.cited, *use.echoed))
    return f"{item.id}{version}{now}" + (f"  {words}" if words else "") + (f"  (turn {turns})" if turns else "")


def _since(use: ItemUse) -> str:
    if use.current is None:
        return ", since forgotten"
    return "" if use.current == use.item.version else f", now {use.current}"


def _counts(report: SessionUse) -> dict[str, int]:
    states = [use.fate for use in report.uses]
    known = {state: states.count(state) for state in ("cited", "echoed", "unused")} if report.indexed else {}
    return {"shown": len(states), **known, "cited_unshown": len(report.others)}


def _to_json(report: SessionUse) -> dict[str, Any]:
    return {
        "session": report.session,
        "indexed": report.indexed,
        **{
            name: [{"receipt": one.name, "at": iso(one.at), "tokens": one.tokens} for one in _of(report, what)]
            for name, what in (("briefs", INJECTION), ("recalls", RECALL))
        },
        "items": [
            {
                "kind": use.item.kind,
                "id": use.item.id,
                "version": use.item.version,
                "current_version": use.current,
                "text": use.text,
                "state": use.fate,
                "cited_in": list(use.cited),
                "echoed_in": list(use.echoed),
            }
            for use in report.uses
        ],
        "cited_unshown": list(report.others),
        "counts": _counts(report),
    }

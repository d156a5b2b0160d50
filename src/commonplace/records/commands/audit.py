"""``commonplace audit``: who changed which record and when, and whether the log was altered."""

from __future__ import annotations

from typing import Any

import click

from commonplace.app import open_app
from commonplace.cli.commands import Group
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.session import Session, json_option, table_lines, to_seconds
from commonplace.engine.audit import verify_log
from commonplace.engine.rendering import iso
from commonplace.model.audit import AuditEntry
from commonplace.model.ids import SHORT
from commonplace.text.cleaning import plural
from commonplace.wire import encode

ALL = -1


@click.group(cls=Group)
def audit() -> None:
    """List and verify the audit log.

    Every change of a record is logged with the record's id and version, the time and who made it, and never with a word
    of it.  Each entry is chained to the one before under the key of your data folder.

    Examples:
      commonplace audit list --limit 20
      commonplace audit verify
    """


@audit.command("list")
@click.option("--record", metavar="ID", help="Only entries about this record, which may be erased.")
@click.option(
    "--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True, help="Maximum number of entries."
)
@json_option
def list_(record: str | None, limit: int, as_json: bool) -> None:
    """List entries of the audit log, newest last.

    Examples:
      commonplace audit list
      commonplace audit list --record 1m7gmb4480 --json
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        entries = app.store.audit_log(record=_whole_id(session, record), limit=ALL)[-limit:]
        if not entries:
            session.add_notes("No entries.")
        rows = [_row(entry) for entry in entries]
        text = "\n".join(table_lines(rows)) if rows else ""
        session.answer(text, {"entries": [encode(entry) for entry in entries]})


def _whole_id(session: Session, id: str | None) -> str | None:
    """The id that begins so in the log: erased records have entries too."""
    if id is None:
        return None
    logged = {one.record for one in session.app.store.audit_log(limit=ALL) if one.record and one.record.startswith(id)}
    return logged.pop() if len(logged) == 1 else id


def _row(entry: AuditEntry) -> list[str]:
    named = f"{entry.record[:SHORT]} version {entry.version}" if entry.record and entry.version else entry.record or ""
    came = f"from {entry.channel}" if entry.channel else ""
    return [str(entry.seq), to_seconds(iso(entry.at) or ""), entry.verb, f"by {entry.actor}", named, came]


@audit.command()
@json_option
def verify(as_json: bool) -> int:
    """Verify that no entry was changed, removed or moved.

    Notices any change of the log in the database, and a log whose end was cut off since this machine last wrote to it.
    Does not notice one who can read your data folder, where the key is, and writes the whole log anew.

    Example:
      commonplace audit verify
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        note = app.auditor.read()
        report = verify_log(
            app.store.audit_log(limit=ALL), app.auditor.key(), noted=note.seq, noted_digest=note.digest, lost=note.lost
        )
        session.add_notes(*report.problems)
        data: dict[str, Any] = {"entries": report.entries, "problems": list(report.problems)}
        entries = plural(report.entries, "entry")
        session.answer("" if report.problems else f"{entries}: nothing was altered.", data)
    return ATTENTION if report.problems else OK

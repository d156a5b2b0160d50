"""``commonplace index``: make sessions and tickets searchable, from files or from the history of a coding agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from commonplace.app import open_app
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, json_option
from commonplace.cli.terminal import short_path
from commonplace.learning import open_workspace
from commonplace.model.errors import InvalidInput
from commonplace.records.index import IndexReport
from commonplace.records.index import index as index_files
from commonplace.text.cleaning import plural

if TYPE_CHECKING:
    from commonplace.hosts import HistoryReport

TROUBLES_SHOWN = 20
LEFT = ("unchanged", "erased")  # of these nothing was indexed


@click.command(cls=Command)
@click.argument("paths", metavar="[PATH...]", nargs=-1)
@click.option("--session", metavar="ID", help="The name of the session; for a single file.")
@click.option("--host", metavar="NAME", help="Index the history of an agent: claude-code, codex, pi, gemini, opencode.")
@click.option("--all", "every", is_flag=True, help="With --host: every project, each into its own memory.")
@json_option
def index(paths: Sequence[str], session: str | None, host: str | None, every: bool, as_json: bool) -> int:
    """Make session transcripts and tickets searchable in this project.

    PATH is a transcript (.jsonl, one message a line), a ticket (.md), or a folder of them.  Only what is new is
    indexed.  Secrets are redacted.  Lines that cannot be read are reported and skipped; the exit code is then 1.

    --host indexes the sessions that a coding agent has saved instead: those of this project, or with --all those of
    every project.

    Examples:
      commonplace index sessions/ tickets/
      commonplace index run.jsonl --session 0b1c
      commonplace index --host claude-code --all
    """
    if host is not None:
        return _history(host, paths, session, every=every, as_json=as_json)
    if not paths or every:
        raise InvalidInput(
            "--all goes with --host" if every else "Missing argument: give a file or a folder, or an agent with --host"
        )
    with open_app() as app:
        output = Session(app, app.memory, as_json=as_json)
        with show_progress("Indexing messages") as progress:
            report = index_files(open_workspace(app), paths, session=session, progress=progress)
        output.add_notes(*_list_notes(report))
        output.answer(_summary(report), _json(report))
    return ATTENTION if report.troubles else OK


def _history(name: str, paths: Sequence[str], session: str | None, *, every: bool, as_json: bool) -> int:
    """Index what a coding agent has kept."""
    from commonplace.hosts import get_host, index_history  # noqa: PLC0415 - files need no host

    if paths or session is not None:
        raise InvalidInput("--host reads the history of the agent; it goes with neither PATH nor --session")
    host = get_host(name)
    if not host.KEEPS_LOGS:
        raise InvalidInput(f"{host.TITLE} saves no sessions that can be read")
    with open_app() as app:
        output = Session(app, app.memory, as_json=as_json)
        with (
            show_progress(f"Looking for sessions of {host.TITLE}") as look,
            show_progress("Indexing messages") as progress,
        ):
            past = index_history(app, host, every=every, progress=progress, look=lambda seen: look(seen, 0))
        for report in past.reports.values():
            output.add_notes(*_list_notes(report))
        output.answer(_past_text(host.TITLE, past), _past_json(past))
    return ATTENTION if past.troubles else OK


def _past_text(title: str, past: HistoryReport) -> str:
    lines = [f"Found {plural(past.sessions, 'session')} of {title}"]
    lines += [f"{name}: {_summary(report)}" for name, report in past.reports.items()]
    lines += [f"{plural(past.elsewhere, 'session')} of other projects; --all takes them too"] if past.elsewhere else []
    lines += [f"{plural(count, 'session')} left out that {why}" for why, count in past.unassigned.items()]
    if any(file.state not in LEFT for report in past.reports.values() for file in report.files):
        lines.append("`commonplace learn` makes records of them, where learning is on")
    return "\n".join(lines)


def _past_json(past: HistoryReport) -> Mapping[str, Any]:
    return {
        "sessions": past.sessions,
        "projects": {name: _json(report) for name, report in past.reports.items()},
        "elsewhere": past.elsewhere,
        "left_out": dict(past.unassigned),
    }


def _list_notes(report: IndexReport) -> list[str]:
    """What people should know besides: what could not be read, and what was taken out."""
    notes = [short_path(str(trouble)) for trouble in report.troubles[:TROUBLES_SHOWN]]
    if more := len(report.troubles) - TROUBLES_SHOWN:
        notes += [f"and {plural(more, 'more line')} like these; --json has them all"] if more > 0 else []
    notes += [f"{plural(count, 'secret')} ({kind}) removed" for kind, count in sorted(report.redactions.items())]
    return [*notes, *report.notes]


def _summary(report: IndexReport) -> str:
    states = Counter(file.state for file in report.files)
    kinds = Counter(file.kind for file in report.files if file.state not in LEFT)
    indexed = " and ".join(plural(kinds[kind], kind) for kind in kinds) or "nothing new"
    shown = ", ".join(f"{count} {state}" for state, count in states.items())
    chunks = sum(file.chunks for file in report.files)
    notes = [
        *(
            [f"{report.injected} messages had memory's own words in them, which were left out"]
            if report.injected
            else []
        ),
        *([f"{plural(report.filtered, 'tool result')} left out"] if report.filtered else []),
    ]
    return "\n".join([f"Indexed {indexed}: {plural(chunks, 'chunk')} ({shown or 'no files'})", *notes])


def _json(report: IndexReport) -> Mapping[str, Any]:
    return {
        "files": [
            {name: str(value) if name == "kind" else value for name, value in _fields(file)} for file in report.files
        ],
        "troubles": [dict(_fields(trouble)) for trouble in report.troubles],
        "redactions": dict(report.redactions),
        "injected": report.injected,
        "filtered": report.filtered,
        "erased": report.erased,
    }


def _fields(value: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(value, name)) for name in type(value).fields]

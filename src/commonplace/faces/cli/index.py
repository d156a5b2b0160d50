"""``commonplace index``: sessions and tickets become searchable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import click

from commonplace.faces.cli.commands import Told
from commonplace.faces.cli.exits import ATTENTION, OK
from commonplace.faces.cli.session import Session, counted, json_too, progress
from commonplace.faces.cli.terminal import near
from commonplace.opening import here, workplace
from commonplace.pipelines.index import IndexReport
from commonplace.pipelines.index import index as index_files

TROUBLES_SHOWN = 20


@click.command(cls=Told)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@click.option("--session", metavar="ID", help="What the session is called; for one file.")
@json_too
def index(paths: Sequence[str], session: str | None, as_json: bool) -> int:
    """Make session transcripts and tickets searchable in this project.

    PATH is a transcript (.jsonl, one message a line), a ticket (.md), or a folder of them.  What was indexed already is
    passed over; of a file that grew only what is new is taken.  Secrets are taken out first.  Lines that cannot be read
    are named, the rest is indexed, and the exit code is then 1.

    Examples:
      commonplace index sessions/ tickets/
      commonplace index run.jsonl --session 0b1c
    """
    with here() as place:
        heard = Session(place, place.memory, as_json=as_json)
        with progress("Indexing messages") as tell:
            report = index_files(workplace(place), paths, session=session, tell=tell)
        heard.tell(*_told(report))
        heard.answer(_summary(report), _json(report))
    return ATTENTION if report.troubles else OK


def _told(report: IndexReport) -> list[str]:
    """What people should know besides: what could not be read, and what was taken out."""
    said = [near(str(trouble)) for trouble in report.troubles[:TROUBLES_SHOWN]]
    if more := len(report.troubles) - TROUBLES_SHOWN:
        said += [f"and {counted(more, 'more line')} like these; --json has them all"] if more > 0 else []
    return said + [
        f"{counted(count, 'secret')} ({kind}) taken out" for kind, count in sorted(report.redactions.items())
    ]


def _summary(report: IndexReport) -> str:
    states = Counter(file.state for file in report.files)
    kinds = Counter(file.kind for file in report.files if file.state != "unchanged")
    taken = " and ".join(counted(kinds[kind], kind) for kind in kinds) or "nothing new"
    shown = ", ".join(f"{count} {state}" for state, count in states.items())
    chunks = sum(file.chunks for file in report.files)
    beside = [
        *(
            [f"{report.injected} messages had memory's own words in them, which were left out"]
            if report.injected
            else []
        ),
        *([f"{counted(report.filtered, 'tool result')} left out"] if report.filtered else []),
    ]
    return "\n".join([f"Indexed {taken}: {counted(chunks, 'chunk')} ({shown or 'no files'})", *beside])


def _json(report: IndexReport) -> Mapping[str, Any]:
    return {
        "files": [
            {name: str(value) if name == "kind" else value for name, value in _fields(file)} for file in report.files
        ],
        "troubles": [dict(_fields(trouble)) for trouble in report.troubles],
        "redactions": dict(report.redactions),
        "injected": report.injected,
        "filtered": report.filtered,
    }


def _fields(value: Any) -> list[tuple[str, Any]]:
    return [(name, getattr(value, name)) for name in type(value).fields]

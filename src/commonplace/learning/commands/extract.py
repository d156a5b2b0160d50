"""``commonplace extract``: extract records from sessions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.progress import show_progress
from commonplace.cli.session import json_option, open_session
from commonplace.cli.terminal import short_path
from commonplace.learning.extract import ExtractReport, UnfinishedSession, extract_sessions
from commonplace.learning.extract_host import commit_extraction, prepare_extraction
from commonplace.learning.opening import open_learning_workspace
from commonplace.model.errors import InvalidInput
from commonplace.model.jobs import Reason
from commonplace.text.cleaning import plural

NAMES_SHOWN = 5


@click.command(cls=Command)
@click.option(
    "--session", "names", metavar="ID", multiple=True, help="Only this session, however new or old; repeatable."
)
@click.option("--exclude", metavar="ID", help="Skip this session: it is still running.")
@click.option("--force", is_flag=True, help="Include sessions that are up to date, too new or too old.")
@click.option("--prepare", metavar="DIR", help="Write the prompts to files for a coding agent.")
@click.option("--commit", metavar="DIR", help="Check and save the answers of the agent.")
@json_option
def extract(
    *, names: Sequence[str], exclude: str | None, force: bool, prepare: str | None, commit: str | None, as_json: bool
) -> int:
    """Extract records from indexed sessions.

    Reads sessions that changed since the last run, are idle and not too old, as memories.mode says: by rules, with a
    model, or with your coding agent (--prepare, then --commit).  A session that fails is reported and tried again
    later; the exit code is then 1.

    Examples:
      commonplace extract
      commonplace extract --session 0b1c
      commonplace extract --prepare work/
      commonplace extract --commit work/
    """
    if prepare is not None and commit is not None:
        raise InvalidInput("give --prepare or --commit, not both")
    if commit is not None and (names or exclude or force):
        raise InvalidInput("--commit takes all answers of its folder; leave out --session, --exclude and --force")
    with open_session(as_json=as_json) as session:
        workspace = open_learning_workspace(session.app)
        given: dict[str, Any] = {"only": names or None, "exclude": exclude, "force": force}
        written: tuple[str, ...] = ()
        with show_progress("Extracting sessions") as progress:
            if commit is not None:
                report = commit_extraction(workspace, commit, progress=progress)
            elif prepare is not None:
                prepared = prepare_extraction(workspace, prepare, progress=progress, **given)
                report, written = prepared.report, prepared.sessions
            else:
                report = extract_sessions(workspace, progress=progress, **given)
        session.add_notes(*report.notes, *(f"{left.session}: {left.reason}" for left in report.failed))
        session.answer("\n".join(_lines(report, prepare, written)), _json(report) | {"prepared": list(written)})
    return OK if report.is_well else ATTENTION


def _lines(report: ExtractReport, folder: str | None, written: Sequence[str]) -> Iterator[str]:
    if folder is not None:
        yield f"Prepared {plural(len(written), 'session')}" + (
            f" in {short_path(folder)}; see README.md there" if written else ""
        )
    else:
        sessions = len(report.done) + len(report.empty)
        yield f"Extracted {plural(len(report.records), 'record')} from {plural(sessions, 'session')}"
    for done in report.done:
        details = [
            *([f"{done.held} held for review"] if done.held else []),
            *([f"{len(done.replaced)} replaced"] if done.replaced else []),
            *([f"{len(done.left_out)} left out: {', '.join(sorted(set(done.left_out)))}"] if done.left_out else []),
        ]
        yield f"  {done.session}: {plural(len(done.records), 'record')}" + (
            f" ({'; '.join(details)})" if details else ""
        )
    if report.empty:
        yield f"  nothing worth keeping: {_some(report.empty)}"
    for reason, names in _by_reason(report.skipped).items():
        yield f"  skipped, {reason}: {_some(names)}"
    if report.failed:
        yield f"  failed: {_some([left.session for left in report.failed])}"
    for kind, count in sorted(report.redactions.items()):
        yield f"  {plural(count, 'secret')} ({kind}) removed"


def _by_reason(skipped: Sequence[UnfinishedSession]) -> Mapping[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for left in skipped:
        error = f" ({left.error})" if left.error and left.reason != Reason.UP_TO_DATE else ""
        found[f"{left.reason}{error}"].append(left.session)
    return found


def _some(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _json(report: ExtractReport) -> dict[str, Any]:
    return {
        "done": [
            {
                "session": done.session, "records": list(done.records), "held": done.held,
                "replaced": list(done.replaced), "left_out": list(done.left_out),
            }
            for done in report.done
        ],
        "empty": list(report.empty),
        "skipped": [{"session": one.session, "reason": str(one.reason), "error": one.error} for one in report.skipped],
        "failed": [{"session": one.session, "reason": one.reason} for one in report.failed],
        "records": list(report.records),
        "redactions": dict(report.redactions),
    }  # fmt: skip

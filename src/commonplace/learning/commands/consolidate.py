"""``commonplace consolidate``: merge what was learned into MEMORY.md, a summary and skills."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from commonplace.app import App, open_app
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, json_option
from commonplace.cli.terminal import short_path
from commonplace.files import disk as files
from commonplace.files.disk import open_file, read_rest, reason
from commonplace.learning.consolidate import ConsolidateReport, commit_answers, describe, prepare_questions
from commonplace.learning.consolidate import consolidate_memory as run
from commonplace.learning.consolidate_receipts import undo_consolidation as take_back
from commonplace.learning.opening import open_learning_workspace, open_workspace
from commonplace.model.errors import InvalidInput
from commonplace.text.cleaning import plural

MANIFEST = "consolidate.json"  # what a folder of work was made from
NOTHING_NEW = ("up to date",)  # reasons to skip that need no action
ANSWER_BYTES = 4_194_304


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Show what would change as a diff; change nothing.")
@click.option("--force", is_flag=True, help="Run even if nothing is new; with --undo: even over later edits.")
@click.option("--undo", is_flag=True, help="Undo the last consolidation.")
@click.option("--prepare", metavar="DIR", help="Write the prompts to files for a coding agent.")
@click.option("--commit", metavar="DIR", help="Check and save the answers of the agent.")
@json_option
def consolidate(
    *, dry_run: bool, force: bool, undo: bool, prepare: str | None, commit: str | None, as_json: bool
) -> int:
    """Merge what this project has learned into MEMORY.md, memory_summary.md and skills.

    What you wrote or changed in these files stays.  A fact is only dropped with a reason, every run leaves a receipt,
    and the last run can be undone.  The exit code is 1 if it failed.

    Examples:
      commonplace consolidate --dry-run
      commonplace consolidate
      commonplace consolidate --undo
    """
    if sum(map(bool, (undo, prepare, commit))) > 1:
        raise InvalidInput("give one of --undo, --prepare and --commit")
    if dry_run and (undo or prepare is not None):
        raise InvalidInput("--dry-run goes with neither --undo nor --prepare")
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        if undo:
            return _undone(session, force=force)
        if prepare is not None:
            return _prepare_work(session, prepare)
        with show_progress("Consolidating") as progress:
            if commit is not None:
                report = _commit_work(app, commit, dry_run=dry_run)
            else:
                report = run(open_learning_workspace(app), dry_run=dry_run, force=force, progress=progress)
        return print_report(session, report)


def print_report(session: Session, report: ConsolidateReport) -> int:
    """Print a report; returns the exit code."""
    left = (f"{name} was edited meanwhile, or cannot be read, and was left as it is" for name in report.left)
    session.add_notes(*report.redactions, *left)
    session.answer(_text(report), report_json(report))
    needs = report.status == "failed" or (report.status == "skipped" and report.reason.startswith(_TROUBLE))
    return ATTENTION if needs else OK


_TROUBLE = ("out of tries", "waiting to be tried again")


def _text(report: ConsolidateReport) -> str:
    if report.status == "planned":
        return report.diff or "Nothing would change"
    if report.status in ("skipped", "failed"):
        return f"{report.status.capitalize()}: {report.reason}"
    lines = [describe(report).capitalize()]
    lines += [f"superseded: {one.old.content} -> {one.new.content} ({one.why})" for one in report.superseded]
    lines += [f"dropped: {one.text} ({one.reason})" for one in report.dropped]
    return "\n".join(lines)


def report_json(report: ConsolidateReport) -> dict[str, Any]:
    """A report for programs."""
    plain = ("status", "reason", "mode", "model", "tokens_in", "tokens_out", "extractions", "records", "carried")
    lists = ("written", "removed", "stale", "edited", "left", "disputed")
    return (
        {name: getattr(report, name) for name in plain}
        | {name: list(getattr(report, name)) for name in lists}
        | {
            "seconds": round(report.seconds, 3),
            "superseded": [{"old": one.old.id, "new": one.new.id, "why": one.why} for one in report.superseded],
            "dropped": [{"text": one.text, "reason": one.reason, "by": one.by} for one in report.dropped],
            "receipt": report.receipt,
            "diff": report.diff,
        }
    )


def _undone(session: Session, *, force: bool) -> int:
    done = take_back(open_workspace(session.app), force=force)
    session.add_notes(*(f"your own words in {name} stay" for name in done.theirs))
    text = (
        f"Took {done.receipt} back: {plural(len(done.written), 'artifact')} as before, "
        f"{len(done.removed)} removed, {plural(len(done.restored), 'record')} live again"
    )
    fields = ("written", "removed", "restored", "unmarked", "theirs")
    session.answer(text, {"receipt": done.receipt} | {name: list(getattr(done, name)) for name in fields})
    return OK


# Through a host's agent


def _prepare_work(session: Session, folder: str) -> int:
    made_from, questions = prepare_questions(open_learning_workspace(session.app))
    manifest = {"made_from": made_from, "parts": len(questions)}
    for number, question in enumerate(questions, start=1):
        body = f"{question.system}\n\n---\n\n{question.prompt}\n\n---\n\nWrite the answer to {answer_name(number)}.\n"
        files.replace(folder, f"consolidate-{number}.md", body.encode())
    files.replace(folder, MANIFEST, f"{json.dumps(manifest)}\n".encode())
    text = (
        f"Wrote {plural(len(questions), 'prompt')} to {short_path(os.path.abspath(folder))}; answer each "
        f"consolidate-N.md in consolidate-N.json, then `commonplace consolidate --commit {folder}`"
    )
    session.answer(text, {"folder": folder, "parts": len(questions)})
    return OK


def answer_name(number: int) -> str:
    """Where the answer to a prompt belongs."""
    return f"consolidate-{number}.json"


def _commit_work(app: App, folder: str, *, dry_run: bool) -> ConsolidateReport:
    manifest = _manifest(folder)
    answers = [_read(folder, answer_name(number)) for number in range(1, manifest["parts"] + 1)]
    return commit_answers(
        open_learning_workspace(app), answers, made_from=str(manifest["made_from"]), by="host", dry_run=dry_run
    )


def _manifest(folder: str) -> dict[str, Any]:
    try:
        manifest = json.loads(_read(folder, MANIFEST))
    except ValueError:
        manifest = None
    if not isinstance(manifest, dict) or not isinstance(manifest.get("parts"), int) or "made_from" not in manifest:
        raise InvalidInput(f"{os.path.join(folder, MANIFEST)!r} is not what --prepare wrote; prepare the work again")
    return manifest


def _read(folder: str, name: str) -> str:
    path = os.path.join(folder, name)
    try:
        with open_file(path, limit=ANSWER_BYTES) as file:
            return read_rest(file, limit=ANSWER_BYTES).decode()
    except FileNotFoundError:
        raise InvalidInput(f"{path!r} is missing: --prepare writes the work, an agent the answers") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path!r} cannot be read: {reason(error)}") from error

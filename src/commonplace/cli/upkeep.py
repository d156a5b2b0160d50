"""Commands that look after the store: what is in it, whether it is healthy, backups, vectors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from commonplace.app import App, open_app, salvage_database
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.person import require_person
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, confirm, json_option, open_session, table_lines, to_seconds
from commonplace.cli.terminal import print_json, print_text, short_path
from commonplace.config.project import ASSISTANT, PROJECT, context
from commonplace.engine.rendering import iso
from commonplace.hosts import hook_notes
from commonplace.learning import learning_notes, learning_status, learning_status_text
from commonplace.model.errors import InvalidInput, StoreDamaged, StoreError
from commonplace.model.ports import Growth, Repair, StoreProblem, Tally
from commonplace.records import FILES_CHECK, STORE_CHECK, back_up, backup_path, check_health, problem_of, repair_health
from commonplace.text.cleaning import plural
from commonplace.version import PRODUCT

_AHEAD_FEW = 10  # files to name
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@click.command(cls=Command)
@click.option("--all", "every", is_flag=True, help="Include other projects in this store.")
@click.option("--jobs", is_flag=True, help="Show the jobs of learning: pending, running, failed, skipped, and why.")
@click.option("--weeks", metavar="N", type=click.IntRange(1, 104), help="Show how much there was, week by week.")
@json_option
def status(every: bool, jobs: bool, weeks: int | None, as_json: bool) -> None:
    """Show what is stored where, how large it is, whether files and records are in sync, and problems.

    In a repository it also names the records that this checkout has and the main branch does not have so.

    Examples:
      commonplace status
      commonplace status --all --json
      commonplace status --jobs
      commonplace status --weeks 12
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        if jobs:
            seen = learning_status(app, every=every)
            return session.answer(learning_status_text(seen), seen)
        if weeks:
            grown = app.store.growth(app.binding.reads, until=app.clock(), step=timedelta(weeks=1), steps=weeks + 1)
            return session.answer(_growth_text(app, grown), _growth_json(app, grown))
        census = app.store.census(at=app.clock())
        tallies = [tally for tally in census if every or tally.scope in app.binding.reads]
        checks = check_health(app, quick=True)
        scopes = [_scope_json(app, name, checks) for name in (PROJECT, ASSISTANT)]
        problems = [problem for found in checks.values() for problem in found]
        session.add_notes(*app.where.hints, *learning_notes(app), *hook_notes(app.where.home))
        data = {
            "version": PRODUCT,
            "database": {"path": app.database.path, "bytes": app.database.size()},
            "scopes": [scope for scope in scopes if scope],
            "stored": [_tally_json(app, tally) for tally in tallies],
            "problems": [problem.what for problem in problems],
            "ahead_of_main": _ahead_json(app, session),
        }
        return session.answer(_status_text(data), data)


def _ahead_json(app: App, session: Session) -> Mapping[str, Any] | None:
    """The record files that the main branch does not have so; None where there is nothing to compare with."""
    try:
        ahead = app.ahead_of_main()
    except StoreError as error:
        session.add_notes(str(error))
        return None
    return None if ahead is None else {"new": list(ahead.new), "changed": list(ahead.changed)}


def _ahead_lines(ahead: Mapping[str, Sequence[str]] | None) -> list[str]:
    named = [f"  {path} ({what})" for what in ("new", "changed") for path in (ahead or {}).get(what, ())]
    if not named:
        return []
    more = [f"  and {len(named) - _AHEAD_FEW} more"] if len(named) > _AHEAD_FEW else []
    return ["", f"This checkout knows {plural(len(named), 'record')} that the main branch does not have so:",
            *named[:_AHEAD_FEW], *more]  # fmt: skip


def _growth_text(app: App, grown: Sequence[Growth]) -> str:
    rows = [
        [app.where.label(one.scope), one.what, " ".join(map(str, one.counts)), _size(one.bytes[-1])] for one in grown
    ]
    head = ["scope", "what", "at the end of each week, now last", "size now"]
    return "\n".join(table_lines([head, *rows], numbers=1)) if rows else "Nothing is stored yet."


def _growth_json(app: App, grown: Sequence[Growth]) -> Mapping[str, Any]:
    return {
        "rows": [
            {"scope": app.where.label(one.scope), "what": one.what, "counts": one.counts, "bytes": one.bytes}
            for one in grown
        ]
    }


def _scope_json(app: App, name: str, checks: Mapping[str, Sequence[StoreProblem]]) -> dict[str, Any] | None:
    scope = app.where.project if name == PROJECT else app.where.assistant
    if scope is None:
        return None
    folder = app.store.folders.get(scope)
    described: dict[str, Any] = {"name": name, "called": scope.name, "scope": str(scope)}
    described |= {"enabled": app.where.is_enabled(name), "folder": folder}
    if name == PROJECT:
        described["trusted"] = app.where.is_trusted
        described["foreign"] = app.where.foreign.get(scope)
    if folder:
        last = app.folders.checked_at(scope)
        described |= {"files": len(app.store.files(folder)), "in_sync": not checks[FILES_CHECK.format(name)]}
        described["last_sync"] = iso(datetime.fromtimestamp(last, UTC)) if last else None
    return described


def _tally_json(app: App, tally: Tally) -> dict[str, Any]:
    return {
        "scope": app.where.label(tally.scope),
        "kind": str(tally.what),
        "state": tally.state.value,
        "count": tally.count,
        "bytes": tally.bytes,
    }


def _status_text(data: Mapping[str, Any]) -> str:
    lines = [f"{data['version']}; database {short_path(data['database']['path'])}, {_size(data['database']['bytes'])}"]
    lines += ["", *map(_scope_line, data["scopes"])]
    rows = [[row["scope"], row["kind"], row["state"], str(row["count"]), _size(row["bytes"])] for row in data["stored"]]
    table = table_lines([["scope", "kind", "state", "count", "size"], *rows], numbers=2)
    lines += ["", *(table if rows else ["Nothing is stored yet."])]
    well = ["No problems seen; `commonplace doctor` checks everything."]
    lines += ["", *([f"problem: {short_path(what)}" for what in data["problems"]] or well)]
    lines += _ahead_lines(data["ahead_of_main"])
    return "\n".join(lines)


def _scope_line(scope: Mapping[str, Any]) -> str:
    head = f"{scope['name']} ({scope['called']}): "
    if not scope["enabled"]:
        return head + "switched off"
    if scope.get("foreign"):
        return head + f"{short_path(scope['foreign'])} is not trusted, so it is read as data from outside"
    if not scope["folder"]:
        return head + "no files here; `commonplace init` creates .commonplace/"
    step = "in sync" if scope["in_sync"] else "not in sync; run `commonplace sync`"
    last = f"; last sync {to_seconds(scope['last_sync'])}" if scope["last_sync"] else "; never synced"
    return head + f"{plural(scope['files'], 'file')} in {short_path(scope['folder'])}, {step}{last}"


def _size(count: float) -> str:
    for unit in _UNITS:
        if count < 1000 or unit == _UNITS[-1]:  # noqa: PLR2004 - of a unit make one of the next
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"


@click.command(cls=Command)
@click.option("--fix", is_flag=True, help="Repair it.  Nothing that can be read is lost; a damaged database is kept.")
@click.option("--quick", is_flag=True, help="Check only the newest rows, and files that changed.")
@click.option("--accept-loss", is_flag=True, help="Stop reporting writes that are missing since a crash.")
@json_option
def doctor(fix: bool, quick: bool, accept_loss: bool, as_json: bool) -> int:
    """Check the database, its full-text index, every row, the files against the rows, and who may read them.

    The exit code is 1 if there is a problem, or if a repair could not read everything that was stored.  Writes that a
    crash or another program took away are reported until you accept it.

    Examples:
      commonplace doctor
      commonplace doctor --quick
      commonplace doctor --fix
      commonplace doctor --accept-loss
    """
    if fix and quick:
        raise InvalidInput("--fix checks everything; leave out --quick")
    damage = _damage()
    if damage and not fix:
        return _print_report({STORE_CHECK: [problem_of(damage)]}, Repair(), as_json=as_json)
    repair = salvage_database(context(os.getcwd(), os.environ)) if damage else Repair()
    with open_app() as app:
        if accept_loss:
            require_person("accepts that writes are missing", app.where.user_settings)
            app.maintenance.accept_loss()
        with show_progress("Checking rows") as progress:
            checks = check_health(app, quick=quick, progress=progress)
            if fix and any(checks.values()):
                more = repair_health(app)
                repair = Repair(done=(*repair.done, *more.done), lost=(*repair.lost, *more.lost))
                checks = check_health(app, progress=progress)
    return _print_report(checks, repair, as_json=as_json)


def _print_report(checks: Mapping[str, Sequence[StoreProblem]], repair: Repair, *, as_json: bool) -> int:
    healthy = not any(checks.values())
    if as_json:
        described = {name: [{"what": p.what, "fixable": p.fixable} for p in found] for name, found in checks.items()}
        print_json({"healthy": healthy, "fixed": repair.done, "lost": repair.lost, "checks": described})
    else:
        lines = [*(f"fixed: {what}" for what in repair.done), *(f"lost: {what}" for what in repair.lost)]
        print_text("\n".join([*lines, *_check_lines(checks)]))
    return OK if healthy and not repair.lost else ATTENTION


def _check_lines(checks: Mapping[str, Sequence[StoreProblem]]) -> Iterator[str]:
    for name, problems in checks.items():
        yield f"{name}: {'ok' if not problems else ''}".rstrip()
        for problem in problems:
            yield f"  problem: {short_path(problem.what)}" + (" (--fix repairs it)" if problem.fixable else "")


def _damage() -> StoreDamaged | None:
    """The damage that prevents the database from being opened."""
    try:
        open_app().close()
    except StoreDamaged as error:
        return error
    return None


@click.command(cls=Command)
@json_option
def reembed(as_json: bool) -> None:
    """Embed everything anew, with the embedder that `embedder` in your config.yaml names.

    The old vectors answer until all new ones are built; then they are replaced at once.  If interrupted, run it again;
    it resumes where it stopped.

    Examples:
      commonplace reembed
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        with show_progress("Embedding") as progress:
            report = app.reembed(progress=progress)
        before = report.before.name if report.before else None
        text = f"{plural(report.embedded, 'text')} embedded; the vectors are now those of {report.now.name}"
        session.answer(text, {"embedded": report.embedded, "before": before, "now": report.now.name})


@click.command(cls=Command)
@click.argument("file", required=False)
@json_option
def backup(file: str | None, as_json: bool) -> None:
    """Copy the whole store to a new file; it may be in use.

    Without FILE the copy goes to the folder `backups` in the data folder.  No file is overwritten.

    Examples:
      commonplace backup
      commonplace backup /media/disk/memory.db
    """
    with open_session(as_json=as_json) as session:
        path, count = back_up(session.app, file)
        session.answer(
            f"Copied {plural(count, 'record')} to {short_path(os.path.abspath(path))}", {"path": path, "records": count}
        )


@click.command("restore-backup", cls=Command)
@click.argument("file")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def restore_backup(file: str, yes: bool, as_json: bool) -> int:
    """Restore a backup.  Markdown files are rewritten to match.

    What is stored now is backed up first, so that a restore can be undone.

    Example:
      commonplace restore-backup /media/disk/memory.db
    """
    with open_session(as_json=as_json) as session:
        session.require_person("replaces everything that is stored")
        if not yes and not confirm(f"Replace everything that is stored by {file}?"):
            return ATTENTION
        before = backup_path(session.app)
        session.app.maintenance.backup(before)
        try:
            count, notes = session.app.restore(file)
        except InvalidInput:  # it is no backup: nothing was changed, so there is nothing to undo
            os.unlink(before)
            raise
        session.add_notes(*notes, f"what was stored before is in {short_path(before)}")
        session.answer(f"Restored {plural(count, 'record')} from {file}", {"records": count, "before": before})
    return OK

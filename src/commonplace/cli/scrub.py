"""``commonplace scrub``: read everything that is stored with today's rules for secrets."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import click

from commonplace.app import BACKUPS, App, copier_of, open_app, open_store
from commonplace.cli.commands import Command
from commonplace.cli.exits import ATTENTION, OK
from commonplace.cli.progress import show_progress
from commonplace.cli.session import Session, confirm, json_option
from commonplace.cli.terminal import short_path
from commonplace.engine.scrubbing import ScrubResult, scrub
from commonplace.files.artifacts import ArtifactFolder
from commonplace.files.scrub import FileScrubber
from commonplace.hosts import saved_files
from commonplace.text.cleaning import plural

SHOWN = 200  # findings that are printed one by one


@click.command("scrub", cls=Command)
@click.option("--dry-run", is_flag=True, help="Show what would be replaced, and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def scrub_command(dry_run: bool, yes: bool, as_json: bool) -> int:
    """Replace secrets that were stored before today's rules knew them, everywhere and irreversibly.

    Reads every record with its versions, sessions, artifacts, receipts, jobs and events in the store, the Markdown
    files here, saved transcripts, and our own backups.  Prints the kind and the place of each secret, never the secret.
    If interrupted, run it again; it resumes where it stopped.  The exit code is 1 if something is left.

    Examples:
      commonplace scrub --dry-run
      commonplace scrub --yes
    """
    with open_app() as app:
        session = Session(app, app.memory, as_json=as_json)
        if not dry_run and not yes and not confirm("Replace every secret found, also in history and backups?"):
            return ATTENTION
        if not dry_run:
            session.add_notes(*map(short_path, app.folders.refresh()))
        with show_progress("Reading") as progress:
            done = scrub(copier_of(app.database), secret=app.secret, dry_run=dry_run, progress=progress)
        backups = [_scrub_backup(app, path, dry_run=dry_run) for path in _backups(app)]
        files = _scrub_files(app, dry_run=dry_run)
        if done.rewritten:
            app.catch_up()
        return _report(session, _join(done, backups, files), dry_run=dry_run)


def _scrub_files(app: App, *, dry_run: bool) -> FileScrubber:
    scrubber = FileScrubber(secret=app.secret, dry_run=dry_run)
    for scope in app.folders.scopes:
        scrubber.records(app.store, scope)
        if scope == app.where.project:
            folder = ArtifactFolder(store=app.store, scope=scope, folder=app.where.folders.get(scope))
            scrubber.artifacts(folder)
    for path in saved_files(app.where.home):
        scrubber.lines(path)
    return scrubber


def _backups(app: App) -> Iterator[str]:
    """Yield our own backups: they hold what was stored then."""
    yield from sorted(glob.glob(os.path.join(app.where.home, BACKUPS, "commonplace-*.db")))


def _scrub_backup(app: App, path: str, *, dry_run: bool) -> ScrubResult:
    with closing(open_store(path)) as backup:
        done = scrub(copier_of(backup), secret=app.secret, dry_run=dry_run)
    name = os.path.basename(path)
    return done.replace(found=tuple(one.replace(place=f"backup {name}: {one.place}") for one in done.found))


def _join(done: ScrubResult, backups: list[ScrubResult], files: FileScrubber) -> ScrubResult:
    parts = [done, *backups, ScrubResult(found=tuple(files.found), left=tuple(files.left))]
    return ScrubResult(
        found=tuple(one for part in parts for one in part.found),
        left=tuple(one for part in parts for one in part.left),
        items=sum(part.items for part in parts), rewritten=sum(part.rewritten for part in parts),
        pending=any(part.pending for part in parts),
    )  # fmt: skip


def _report(session: Session, done: ScrubResult, *, dry_run: bool) -> int:
    data: dict[str, Any] = {
        "dry_run": dry_run, "items": done.items, "rewritten": done.rewritten, "pending": done.pending,
        "found": [{"kind": one.kind, "place": one.place} for one in done.found], "left": list(done.left),
    }  # fmt: skip
    session.add_notes(*done.left)
    if done.pending:
        session.add_notes(
            "a reader still holds old bytes of the database; `doctor --fix` erases them when it has ended"
        )
    session.answer(_text(done, dry_run=dry_run), data)
    return ATTENTION if done.left or done.pending or (dry_run and done.found) else OK


def _text(done: ScrubResult, *, dry_run: bool) -> str:
    places = list(Counter((one.place, one.kind) for one in done.found).items())
    lines = [f"{short_path(place)}: {plural(count, 'secret')} ({kind})" for (place, kind), count in places[:SHOWN]]
    if len(places) > SHOWN:
        lines.append(f"... and {len(places) - SHOWN} more places; --json lists them all")
    verb = "Would replace" if dry_run else "Replaced"
    return "\n".join(
        [*lines, f"{verb} {plural(len(done.found), 'secret')} in {plural(done.items, 'item')} and the files here."]
    )

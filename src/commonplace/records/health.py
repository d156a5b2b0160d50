"""Whether a memory is well: checks of the store, the files and the permissions, repairs, and copies of the store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from commonplace.app import BACKUPS, COPY_SIDES, App
from commonplace.config.paths import CONFIG
from commonplace.config.project import ASSISTANT
from commonplace.files.permissions import Exposed, exposed, protect
from commonplace.model.errors import ADVICE, CommonplaceError, StoreDamaged, StoreError
from commonplace.model.ports import EmbedderIdentity, ProgressCallback, Repair, StoreProblem, no_progress
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import plural

STORE_CHECK = "database, full-text index and rows"
FILES_CHECK = "files of the {} memory"
RIGHTS_CHECK = "permissions of the data folder"
_EDITED = (ASSISTANT, CONFIG)  # what people edit by hand in the data folder
_EXPOSED_FEW = 10  # paths to name
_SIDES = ("", *COPY_SIDES)  # the files of a database


def check_health(
    app: App, *, quick: bool = False, progress: ProgressCallback = no_progress
) -> dict[str, list[StoreProblem]]:
    """Check everything; the problems by the name of the check.

    It reads all that is stored; with ``quick`` only the newest rows, and the files that seem to have changed.
    """
    checks = {STORE_CHECK: _try(lambda: app.maintenance.check(quick=quick, progress=progress))}
    checks[RIGHTS_CHECK] = _try(lambda: _find_exposed(app))
    for scope in app.folders.scopes:
        checked = partial(_apart, app, scope) if not (quick and _seems_unchanged(app, scope)) else list
        checks[FILES_CHECK.format(app.where.label(scope))] = _try(checked)
    if app.embedder and not quick:
        checks["vectors"] = _try(partial(_find_unembedded, app, app.embedder.identity))
    return checks


def _seems_unchanged(app: App, scope: Scope) -> bool:
    """Whether every record has a file and none has another date or size than when it was last seen."""
    records = sum(one.count for one in app.store.census() if one.scope == scope and isinstance(one.what, Kind))
    if records != len(app.store.files(app.store.folders[scope])):
        return False
    return app.folders.is_fresh(scope) or not app.folders.is_changed(scope)


def repair_health(app: App) -> Repair:
    """Repair what can be repaired."""
    repair = app.maintenance.repair()
    done = list(repair.done)
    if protected := protect(_exposed(app)):
        done.append(f"{plural(len(protected), 'path')} of the data folder closed to others")
    for scope in app.folders.scopes:
        report = app.folders.sync(scope)
        if not report.replace(troubles=(), missing=()).is_empty:
            done.append(f"the files and records of the {app.where.label(scope)} memory were synced")
    if filled := app.catch_up():
        done.append(f"{plural(filled, 'text')} embedded")
    return repair.replace(done=tuple(done))


def problem_of(error: CommonplaceError | ValueError | TypeError) -> StoreProblem:
    """Return an error of a check as what it has found; the advice to run this command is not given by it."""
    damaged = isinstance(error, StoreDamaged) or not isinstance(error, CommonplaceError)
    what = str(error).removesuffix(ADVICE)
    return StoreProblem(what=what if isinstance(error, CommonplaceError) else f"damaged: {what}", fixable=damaged)


def _try(check: Callable[[], Iterable[StoreProblem]]) -> list[StoreProblem]:
    """Make one check; damage that stops it is what it has found, and the others go on."""
    try:
        return list(check())
    except (CommonplaceError, ValueError, TypeError) as error:
        return [problem_of(error)]


def _find_exposed(app: App) -> Iterator[StoreProblem]:
    """What others on this machine may read or write of the data folder."""
    found = _exposed(app)
    for one in found[:_EXPOSED_FEW]:
        yield StoreProblem(what=one.reason, fixable=True)
    if len(found) > _EXPOSED_FEW:
        yield StoreProblem(what=f"and {plural(len(found) - _EXPOSED_FEW, 'other path')} likewise", fixable=True)


def _exposed(app: App) -> list[Exposed]:
    own = {app.database.path + side for side in _SIDES}  # the check of the store names them
    return [one for one in exposed(app.where.home, edited=_EDITED) if one.path not in own]


def _find_unembedded(app: App, wanted: EmbedderIdentity) -> Iterator[StoreProblem]:
    """What is found by its words only."""
    held = app.store.embedder()
    if held and held != wanted:
        what = f"the vectors come from {held.name!r}, the settings name {wanted.name!r}"
        yield StoreProblem(what=f"{what}; `commonplace reembed` changes over", fixable=False)
    elif lacking := app.store.count_unembedded(wanted):
        yield StoreProblem(what=f"{plural(lacking, 'text')} without a vector, found by words only", fixable=True)


def _apart(app: App, scope: Scope) -> Iterator[StoreProblem]:
    """What is wrong between the files of a scope and its records."""
    try:
        report, others = app.folders.preview(scope)
    except StoreError as error:
        yield StoreProblem(what=str(error), fixable=False)
        return
    for sentence in app.folders.sync_notes(scope, report.replace(redactions=())):
        yield StoreProblem(what=sentence, fixable=False)
    if others:
        what = "a file and its record are" if others == 1 else f"{others} files and their records are"
        yield StoreProblem(what=f"{what} not in sync", fixable=True)


# Copies


def back_up(app: App, path: str | None = None) -> tuple[str, int]:
    """Copy the store to a new file, without a path into the folder of backups; return the path and the records."""
    target = path or backup_path(app)
    return target, app.maintenance.backup(target)


def backup_path(app: App) -> str:
    """Return a path for a new backup."""
    folder = os.path.join(app.where.home, BACKUPS)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, f"commonplace-{app.clock():%Y%m%dT%H%M%S%f}Z.db")


def last_backup(app: App) -> datetime | None:
    """Return when the newest backup in the folder of backups was made."""
    folder = os.path.join(app.where.home, BACKUPS)
    names: Sequence[str] = os.listdir(folder) if os.path.isdir(folder) else ()
    paths = [os.path.join(folder, name) for name in names if not name.endswith(COPY_SIDES)]
    return max((datetime.fromtimestamp(os.stat(path).st_mtime, UTC) for path in paths), default=None)

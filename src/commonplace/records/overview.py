"""What a person wants to see of a memory as a whole: how much there is, what needs them, jobs, connected agents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace.app import App
from commonplace.config.project import ASSISTANT, PROJECT
from commonplace.files import disk
from commonplace.hosts import hook_troubles, list_connections
from commonplace.learning import EXTRACT_JOB, learning_status
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import NotFound
from commonplace.model.ports import Tally
from commonplace.model.queries import DocumentFilter
from commonplace.model.scopes import Scope
from commonplace.records.access import AppAccess, MemoryAccess
from commonplace.records.health import last_backup
from commonplace.records.health_verbs import (
    AgentList,
    JobList,
    JobReport,
    RecordFile,
    ScopeHealth,
    Status,
    Stored,
    Trouble,
)
from commonplace.records.insight_verbs import record_id
from commonplace.records.sessions import session_host
from commonplace.version import PRODUCT

FILE_BYTES = 4_000_000  # of a record's file; larger ones are not records
LOOKED_AT = 200  # of the newest sessions, for the last one of each agent
FAILED = ("failed", "exhausted")


def get_status(caller: MemoryAccess) -> Status:
    """Return what is stored where; of a store of its own, what the caller may read."""
    memory = caller.memory
    app = caller.app if isinstance(caller, AppAccess) else None
    tallies = [one for one in memory.store.census(at=memory.clock()) if one.scope in memory.binding.reads]
    return Status(
        version=PRODUCT, database=app.database.path if app else "", bytes=app.database.size() if app else 0,
        last_backup=last_backup(app) if app else None, scopes=tuple(_scopes(app)) if app else (),
        stored=tuple(_stored(caller, one) for one in tallies),
    )  # fmt: skip


def _stored(caller: MemoryAccess, one: Tally) -> Stored:
    named = caller.name_of(one.scope)
    return Stored(scope=named, kind=str(one.what), state=one.state, count=one.count, bytes=one.bytes)


def _scopes(app: App) -> Iterator[ScopeHealth]:
    for name, scope in ((PROJECT, app.where.project), (ASSISTANT, app.where.assistant)):
        if scope is not None:
            yield _scope(app, name, scope)


def _scope(app: App, name: str, scope: Scope) -> ScopeHealth:
    folder = app.store.folders.get(scope)
    checked = app.folders.checked_at(scope) if folder else None
    return ScopeHealth(
        name=name, called=scope.name, scope=str(scope), enabled=app.where.is_enabled(name), folder=folder,
        files=app.folders.count(scope) if folder else None,
        checked_at=datetime.fromtimestamp(checked, UTC) if checked else None,
    )  # fmt: skip


# What needs a person


def list_troubles(caller: MemoryAccess) -> list[Trouble]:
    """Return what needs a person, as far as one look shows it; ``check`` looks at everything."""
    if not isinstance(caller, AppAccess):
        return []
    app = caller.app
    caller.refresh()
    found = [one for scope in app.folders.scopes for one in _of_files(app, scope)]
    found += [Trouble(kind="folder", what=note) for note in app.where.trust_notes]
    found += [
        Trouble(kind="job", what=_job_text(job), key=job.key)
        for job in (list_jobs(app).jobs if _learns(app) else ())
        if job.state in FAILED
    ]
    return found


def _of_files(app: App, scope: Scope) -> Iterator[Trouble]:
    report, folder = app.folders.reports.get(scope), app.store.folders[scope]
    if report is None:
        return
    for one in report.troubles:
        kind = "conflict" if "conflict" in one.reason else "file"
        yield Trouble(kind=kind, what=one.reason, path=os.path.join(folder, one.path), line=one.line)
    if report.missing:
        what = f"{len(report.missing)} files are missing at once, so their records were not archived"
        yield Trouble(kind="missing", what=f"{what}: `commonplace sync --accept-missing` does", path=folder)


def _learns(app: App) -> bool:
    return app.where.project is not None and app.where.is_enabled(PROJECT)


def _job_text(job: JobReport) -> str:
    what = f"Learning from session {job.key}" if job.kind == EXTRACT_JOB else f"The job {job.kind} {job.key}"
    end = "is tried again later" if job.state == "failed" else "is not tried again until its input changes"
    return f"{what} failed: {job.error or 'the worker did not finish in time'}. It {end}."


def list_jobs(app: App) -> JobList:
    """Return the jobs of this project."""
    seen = learning_status(app)
    found = [_job(job) for job in seen["jobs"]]
    run = seen["last_run"]
    return JobList(
        learning=seen["learning"], mode=seen["mode"], jobs=tuple(found), trouble=seen["trouble"],
        skipped=tuple(f"{one['session']}: {one['reason']}" for one in seen["skipped"]),
        last_run=_moment(run["at"]) if run else None,
    )  # fmt: skip


def _job(job: Mapping[str, Any]) -> JobReport:
    moments: dict[str, Any] = {name: _moment(job[name]) for name in ("started_at", "finished_at", "retry_at")}
    words: dict[str, Any] = {name: job[name] for name in ("kind", "key", "scope", "state", "error", "tries_left")}
    return JobReport(**words, **moments)


def _moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def list_agents(app: App) -> AgentList:
    """Return every coding agent that is known."""
    root = app.where.place.root if app.where.place else None
    troubles: Sequence[str] = hook_troubles(app.where.home)
    seen = _last_sessions(app)
    found = [one.replace(last_session=seen.get(one.name)) for one in list_connections(app.env, project=root)]
    return AgentList(agents=tuple(found), hook_troubles=tuple(troubles))


def _last_sessions(app: App) -> dict[str, datetime]:
    """Return when something was last said in a session of each agent, of the newest sessions."""
    where = DocumentFilter(
        scopes=frozenset(app.binding.reads), kinds=frozenset({DocumentKind.SESSION.value})
    )  # fmt: skip
    seen: dict[str, datetime] = {}
    for one in app.store.documents(where, limit=LOOKED_AT):
        if host := session_host(one):
            seen.setdefault(host, one.updated_at)
    return seen


# Files


def read_record_file(app: App, id: str) -> RecordFile:
    """Return the file of a record."""
    record = app.memory.get(record_id(id))
    path = app.store.references([record]).get(record.id)
    if path is None:
        raise NotFound(f"record {record.short} has no file here")
    try:
        return RecordFile(path=path, text=disk.read_text(path, limit=FILE_BYTES))
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{path} cannot be read: {disk.reason(error)}") from error

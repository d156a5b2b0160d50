"""Capture the sessions of a host: index their transcripts, queue them for extraction, and learn from them.

This is the way of ``commonplace index`` and ``commonplace learn``: redacted, in batches, with leases.  If interrupted,
the next run does the rest.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from commonplace.app import App, open_app
from commonplace.config.project import PROJECT, Context, context
from commonplace.hosts.registry import Host, HostTranscript
from commonplace.hosts.transcripts import log_source, transcript_header
from commonplace.learning import (
    EXTRACT_JOB,
    Workspace,
    extract_sessions,
    open_learning_workspace,
    open_workspace,
    session_watermark,
)
from commonplace.model.changes import Enqueue
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput
from commonplace.model.jobs import Job
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import DocumentFilter
from commonplace.model.values import Value
from commonplace.records import Indexed, IndexProblem, IndexReport, index_logs


def capture(
    app: App, host: Host, payload: Mapping[str, Any], env: Mapping[str, str], *, note: Callable[[str], None]
) -> str | None:
    """Index the transcript that a hook's input speaks of, and queue it; returns what the session is called."""
    found = host.transcript(payload, env)
    if found is None or app.where.project is None or not app.where.is_enabled(PROJECT):
        return None
    work = open_workspace(app)
    report = index_logs(work, [log_source(host, found)])
    for trouble in report.troubles:
        note(str(trouble))
    queue(app, work, report.files)
    return report.files[0].name if report.files else None


def queue(app: App, work: Workspace, files: Sequence[Indexed]) -> None:
    """Say that these sessions wait to be extracted, where learning is on."""
    names = frozenset(file.name for file in files if file.state not in ("unchanged", "erased"))
    if not names or not app.where.learning.enabled:
        return
    where = DocumentFilter(scopes=frozenset({work.scope}), kinds=frozenset({DocumentKind.SESSION.value}), names=names)
    documents = app.store.documents(where, limit=len(names))
    jobs = [
        Job(scope=work.scope, kind=EXTRACT_JOB, key=one.name, watermark=session_watermark(one)) for one in documents
    ]
    app.store.apply([Enqueue(job=job) for job in jobs])


def learn(app: App, session: str, *, note: Callable[[str], None]) -> None:
    """Extract from one session that is over, then put what is known together."""
    from commonplace.learning import consolidate_memory  # noqa: PLC0415 - only an end needs it

    work = open_learning_workspace(app)
    report = extract_sessions(work, only=[session])
    for left in report.failed:
        note(f"session {left.session} was not extracted: {left.reason}")
    if report.done:
        done = consolidate_memory(work)
        if done.status == "failed":
            note(f"consolidation: {done.reason}")


# The history that is on disk


class HistoryReport(Value):
    """What came of a host's history."""

    sessions: int  #: found on disk
    reports: Mapping[str, IndexReport]  #: by the project's name
    elsewhere: int = 0  #: of other projects, which were not asked for
    unassigned: Mapping[str, int] = {}  #: why, and how many: sessions of no project, or of one that is gone

    @property
    def troubles(self) -> tuple[IndexProblem, ...]:
        """What could not be read, in all projects."""
        return tuple(trouble for report in self.reports.values() for trouble in report.troubles)


def index_history(
    app: App,
    host: Host,
    *,
    every: bool,
    progress: ProgressCallback = no_progress,
    look: Callable[[int], None] = lambda _: None,
) -> HistoryReport:
    """Index the history of a host: this project's sessions, or with ``every`` all of them, each in its own project."""
    sorter = _Sorter(app.env)
    groups: dict[str, list[HostTranscript]] = {}
    for number, found in enumerate(host.history(app.env), start=1):
        look(number)
        sorter.sort(host, found, groups)
    own = app.where.project.name if app.where.project else None
    if own is None and not every:
        raise InvalidInput("there is no project here; `commonplace init` makes one, and --all means every project")
    meant = groups if every else {name: found for name, found in groups.items() if name == own}
    reports = {
        name: _index_transcripts(sorter.folders[name], app, host, meant[name], progress) for name in sorted(meant)
    }
    count = sum(map(len, groups.values()))
    return HistoryReport(
        sessions=count + sum(sorter.unassigned.values()),
        reports=reports,
        elsewhere=count - sum(map(len, meant.values())),
        unassigned=dict(sorter.unassigned),
    )


class _Sorter:
    """Which project a session belongs to: that of the folder in which it ran."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._known: dict[str, Context | str] = {}
        self.folders: dict[str, str] = {}  # one for each project
        self.unassigned: Counter[str] = Counter()

    def sort(self, host: Host, found: HostTranscript, groups: dict[str, list[HostTranscript]]) -> None:
        """Put one where it belongs."""
        try:
            cwd = found.cwd or transcript_header(host, found).get("cwd")
        except (OSError, InvalidInput):
            self.unassigned["cannot be read"] += 1
            return
        where = self._context(cwd) if isinstance(cwd, str) else "do not say where they ran"
        if isinstance(where, str):
            self.unassigned[where] += 1
            return
        name = where.project.name if where.project else ""
        self.folders.setdefault(name, str(cwd))
        groups.setdefault(name, []).append(found)

    def _context(self, cwd: str) -> Context | str:
        if cwd not in self._known:
            self._known[cwd] = self._look_up_context(cwd)
        return self._known[cwd]

    def _look_up_context(self, cwd: str) -> Context | str:
        if not os.path.isdir(cwd):
            return "ran in folders that are gone"
        try:
            where = context(cwd, self._env)
        except (ConfigError, Forbidden):
            return "belong to projects whose settings cannot be followed"
        if where.project is None:
            return "ran outside of any project"
        return where if where.is_enabled(PROJECT) else "belong to projects whose memory is switched off"


def _index_transcripts(
    folder: str, app: App, host: Host, found: Sequence[HostTranscript], progress: ProgressCallback
) -> IndexReport:
    with open_app(folder, env=app.env, clock=app.clock, embedder=app.embedder) as theirs:
        work = open_workspace(theirs)
        report = index_logs(work, _logs(host, found), progress=progress)
        queue(theirs, work, report.files)
        return report


def _logs(host: Host, found: Sequence[HostTranscript]) -> Iterator[Any]:
    for one in found:
        try:
            yield log_source(host, one)
        except OSError:
            continue  # it was removed since it was found

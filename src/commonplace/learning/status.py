"""What learning has to do, does, failed at and skipped, as ``status --jobs`` shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace.app import App
from commonplace.config.project import PROJECT
from commonplace.engine.rendering import iso
from commonplace.learning.learn import OFF, last_run
from commonplace.learning.opening import open_workspace
from commonplace.learning.refused import refused_requests
from commonplace.model.jobs import JobState, Status
from commonplace.model.scopes import Scope

ORDER = ("failed", "exhausted", "running", "pending", "done")  # what needs attention comes first
LOG = "learn.log"  # where learning in the background writes
TAIL_BYTES = 2_000
SHOWN_DONE = 5  # jobs that are done are counted; so many are named


_TROUBLE = "commonplace: "  # how everything but an answer begins
_NOTHING = "Nothing was learned: "


def learning_status(app: App, *, every: bool = False) -> dict[str, Any]:
    """Every job, what the last run skipped and why, and what went wrong; for programs."""
    project = app.where.project if app.where.is_enabled(PROJECT) else None
    scopes = _scopes(app) if every else [project] if project else []
    states = [_job(app, state) for state in app.store.jobs(scopes, now=app.clock())] if scopes else []
    run = last_run(open_workspace(app)) if project else None
    return {
        "learning": app.where.learning.enabled,
        "mode": app.where.learning.mode,
        "jobs": sorted(states, key=lambda job: (ORDER.index(job["state"]), job["kind"], job["key"])),
        "last_run": {"at": run["at"], "lines": run["lines"], "troubles": run["troubles"]} if run else None,
        "skipped": list(run["skipped"]) if run else [],
        "trouble": _background_trouble(app, run),
    }


def _scopes(app: App) -> list[Scope]:
    return sorted({tally.scope for tally in app.store.census()} | set(app.binding.reads), key=str)


def _job(app: App, state: JobState) -> dict[str, Any]:
    return {
        "scope": app.where.label(state.job.scope),
        "kind": state.job.kind,
        "key": state.job.key,
        "state": state_of(state),
        "error": state.error,
        "tries_left": state.tries_left,
        "retry_at": iso(state.retry_at),
        "started_at": iso(state.started_at),
        "finished_at": iso(state.finished_at),
        "until": iso(state.until),
    }


def state_of(state: JobState) -> str:
    """The state of a job in one word."""
    if state.leased:
        return "running"
    if state.done is not None and state.done >= state.job.watermark:
        return "done"
    if state.tries_left <= 0:
        return "exhausted"
    return "failed" if state.status in (Status.ERROR, Status.RUNNING) else "pending"


def _background_trouble(app: App, run: Mapping[str, Any] | None) -> str | None:
    """What prevented the report of a background run, unless a later run has reported."""
    found = last_trouble(app.where.home)
    if found is None or run is None:
        return found
    written = datetime.fromtimestamp(os.path.getmtime(log_path(app.where.home)), UTC)
    return found if written > datetime.fromisoformat(run["at"]) else None


def learning_status_text(seen: Mapping[str, Any]) -> str:
    """The same for people."""
    lines = [f"learning: on, by {seen['mode']}" if seen["learning"] else OFF]
    lines += list(_job_lines(seen["jobs"]))
    if not seen["jobs"]:
        lines.append("no jobs yet")
    lines += [f"skipped: session {one['session']}: {one['reason']}" for one in seen["skipped"]]
    if run := seen["last_run"]:
        lines.append(f"last run {run['at'][:19]}Z: {'; '.join(run['lines'])}")
        lines += [f"trouble: {one}" for one in run["troubles"]]
    return "\n".join([*lines, *([f"trouble: {seen['trouble']}"] if seen["trouble"] else [])])


def _job_lines(jobs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    done = [job for job in jobs if job["state"] == "done"]
    for job in [*(job for job in jobs if job["state"] != "done"), *done[:SHOWN_DONE]]:
        yield f"{job['state']}: {job['kind']} {job['key']}{_detail(job)}"
    if len(done) > SHOWN_DONE:
        yield f"done: {len(done) - SHOWN_DONE} more"


def _detail(job: Mapping[str, Any]) -> str:
    if job["state"] == "running":
        return f", since {job['started_at'][:19]}Z, lease until {job['until'][:19]}Z"
    reason = f": {job['error'] or 'the worker did not finish before its lease ran out'}"
    if job["state"] == "failed":
        again = f"from {job['retry_at'][:19]}Z on" if job["retry_at"] else "at the next start"
        return f"{reason}; it is tried again {again}, {job['tries_left']} tries left"
    if job["state"] == "exhausted":
        return f"{reason}; it is not tried again until its input changes or --force is given"
    return f", {job['finished_at'][:19]}Z" if job["state"] == "done" and job["finished_at"] else ""


def learning_notes(app: App) -> list[str]:
    """Sentences for the plain status: if learning needs attention, and what was not kept though the user asked."""
    project = app.where.project
    if project is None or not app.where.is_enabled(PROJECT) or not app.where.learning.enabled:
        return []
    return [*_job_notes(app), *refused_requests(app)]


def _job_notes(app: App) -> list[str]:
    seen = learning_status(app)
    bad = [job for job in seen["jobs"] if job["state"] in ("failed", "exhausted")]
    trouble = f"{len(bad)} jobs of learning failed" if bad else seen["trouble"] and "learning is in trouble"
    return [f"{trouble}; `commonplace status --jobs` shows why"] if trouble else []


# The log of the background


def log_path(home: str) -> str:
    """The log of learning in the background, in the data folder."""
    return os.path.join(home, LOG)


def last_trouble(home: str) -> str | None:
    """The last line of the log if it is an error: what prevented the report of a background run."""
    try:
        with open(log_path(home), "rb") as file:
            file.seek(max(0, os.path.getsize(log_path(home)) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return None
    found = [line.strip() for line in lines if line.strip()]
    ended = found[-1] if found else ""
    is_trouble = ended.startswith((_NOTHING, _TROUBLE)) or ended.partition(":")[0].endswith("Error")
    return ended.removeprefix(_NOTHING).removeprefix(_TROUBLE) if is_trouble else None

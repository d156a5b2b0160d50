"""Learning in a process of its own: detached from whoever starts it, one at a time in a project, and bounded.

The hooks of a connected host start it where a model does the thinking, because a session waits for no model.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager

from commonplace.app import App
from commonplace.engine.rendering import keyed_digest
from commonplace.files.disk import open_log
from commonplace.learning.consolidate_receipts import KIND as CONSOLIDATE_JOB
from commonplace.learning.extract import EXTRACT_JOB
from commonplace.learning.status import log_path
from commonplace.model.jobs import JobState
from commonplace.model.scopes import Scope

try:
    import fcntl
except ImportError:  # no such locks on this system: leases keep the work apart all the same
    fcntl = None  # type: ignore[assignment]

SECONDS = 600.0  # after which a background run begins no further session; an answer has a limit of its own
NAMED = 64  # sessions that are named to it, the newest
DETACHED = "--detached"
_CHILD = "import sys; from commonplace.cli.main import main; sys.exit(main())"
_SHELL = '"$@" &'  # the shell ends at once, so the process belongs to nobody who could wait for it or end it


def start_learning(app: App, *, active: str | None = None, ended: Collection[str] = ()) -> bool:
    """Start learning if anything waits for it and no process is at it; returns whether one was started.

    ``ended`` are sessions that are over, however recently they changed; ``active`` is left alone.
    """
    scope = app.where.project
    if scope is None or not (waiting := _waiting(app, scope, active)) or is_learning(app.where.home, scope):
        return False
    names = [state.job.key for state in waiting if state.job.kind == EXTRACT_JOB]
    chosen = [name for name in names if not ended or name in ended][:NAMED]
    active_option = ["--session-active", active] if active else []
    launch(app.where.home, app.where.place.root if app.where.place else os.getcwd(), [
        "learn", DETACHED, *active_option, *(part for name in chosen for part in ("--ended", name)),
    ])  # fmt: skip
    return True


def _waiting(app: App, scope: Scope, active: str | None) -> list[JobState]:
    """The jobs of learning that can be tried now."""
    now = app.clock()

    def waits(state: JobState) -> bool:
        is_done = state.done is not None and state.done >= state.job.watermark
        backs_off = state.retry_at is not None and state.retry_at > now
        return not (is_done or backs_off or state.leased) and state.tries_left > 0

    ours = [one for one in app.store.jobs([scope], now=now) if one.job.kind in (EXTRACT_JOB, CONSOLIDATE_JOB)]
    return [one for one in ours if one.job.key != active and waits(one)]


def launch(home: str, folder: str, arguments: Sequence[str]) -> None:
    """Start the command in a folder, in a session of its own; it outlives this process and writes to the log."""
    log = open_log(log_path(home))
    try:
        subprocess.run(  # noqa: S603 - our own program
            ["/bin/sh", "-c", _SHELL, "sh", sys.executable, "-c", _CHILD, *arguments], stdin=subprocess.DEVNULL,
            stdout=log, stderr=log, cwd=folder, start_new_session=True, check=False,
        )  # fmt: skip
    finally:
        os.close(log)


def out_of_time() -> Callable[[], bool]:
    """A function that says whether a background run that begins now has used up its time."""
    until = time.monotonic() + SECONDS
    return lambda: time.monotonic() > until


# One at a time


@contextmanager
def alone(home: str, scope: Scope) -> Iterator[bool]:
    """Whether this is the one process that learns in a project in the background, as long as the block lasts."""
    descriptor = os.open(_lock_path(home, scope), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield _take(descriptor)
    finally:
        os.close(descriptor)


def is_learning(home: str, scope: Scope) -> bool:
    """Whether a process learns in a project in the background."""
    with alone(home, scope) as is_free:
        return not is_free


def _lock_path(home: str, scope: Scope) -> str:
    folder = os.path.join(home, "learning")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return os.path.join(folder, f"{keyed_digest(str(scope), b'')}.lock")


def _take(descriptor: int) -> bool:
    if fcntl:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True

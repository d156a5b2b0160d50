"""The life of a job: claim it, keep the claim alive while the work takes, note a failure, finish with the changes.

A worker claims a job, works inside ``hold``, and ends it by a ``Finish`` among the changes that it writes: they land
together, or not at all if another worker has taken the job over in between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from commonplace.model.changes import Enqueue, Fail, Heartbeat
from commonplace.model.errors import CommonplaceError, LeaseLost, StoreError
from commonplace.model.jobs import Claim, Job, Skipped
from commonplace.model.ports import Clock, Store

BEATS = 3  # in one lease: two may be missed
ERROR_CHARS = 500  # of what went wrong; a provider can be wordy
AT_ONCE = timedelta(0)


def claim(store: Store, job: Job, *, lease: timedelta, clock: Clock, force: bool = False) -> Claim | Skipped:
    """Take a job, or return why not; with ``force`` also one that is up to date or out of tries."""
    if force:
        store.apply([Enqueue(job=job, force=True)])
    return store.claim(job, lease=lease, now=clock())


@contextmanager
def hold(
    store: Store,
    claim: Claim,
    *,
    lease: timedelta,
    clock: Clock,
    every: timedelta | None = None,
    retry_after: timedelta = AT_ONCE,
    clean: Callable[[str], str] = str,
) -> Iterator[None]:
    """Renew a claim while the block works; if the block raises, note the job as failed and raise on.

    A failed job may be claimed again after ``retry_after``, one that was interrupted at once.  ``clean`` removes
    secrets from the error, ``every`` is the time between two renewals (default: a third of the lease).
    """
    over = threading.Event()

    def renew() -> None:
        while not over.wait((every or lease / BEATS).total_seconds()):
            try:
                store.apply([Heartbeat(claim=claim, until=clock() + lease)])
            except (LeaseLost, StoreError):  # the end of the job finds out, and reports it
                return

    beat = threading.Thread(target=renew, name=f"heartbeat of {claim.job.key}", daemon=True)
    beat.start()
    try:
        yield
    except LeaseLost:  # the worker that holds it now reports its own end
        raise
    except (CommonplaceError, OSError) as error:
        _fail(store, claim, clean(str(error)), clock, retry_after)
        raise
    except KeyboardInterrupt:
        _fail(store, claim, "interrupted", clock, AT_ONCE)
        raise
    finally:
        over.set()
        beat.join()


def _fail(store: Store, claim: Claim, error: str, clock: Clock, retry_after: timedelta) -> None:
    now = clock()
    with suppress(LeaseLost, StoreError):  # the error that is raised on says more
        store.apply([Fail(claim=claim, error=error[:ERROR_CHARS], retry_at=now + retry_after, at=now)])

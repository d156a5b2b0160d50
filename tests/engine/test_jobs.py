"""The life of a job: claimed, kept alive while the work takes, failed with a reason, finished with the changes."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from commonplace.engine import jobs
from commonplace.model.changes import Finish
from commonplace.model.errors import LeaseLost, ProviderError
from commonplace.model.jobs import Claim, Job, Reason, Skipped, Status

LEASE = timedelta(seconds=60)


@pytest.fixture
def job(make):
    """A job in Ada's scope."""
    return Job(scope=make.scope, kind="work", key="w", watermark=1)


@pytest.fixture
def claim(store, clock, job):
    """Claim the job."""

    def claim(**options):
        return jobs.claim(store, job, lease=LEASE, clock=clock, **options)

    return claim


@pytest.fixture
def state(store, clock, make):
    """Where the job stands."""
    return lambda: store.jobs([make.scope], now=clock())[0]


def test_a_job_is_finished_with_its_changes(store, clock, claim, state, make):
    """Both land together; then it is up to date, unless somebody insists."""
    held = claim()
    with jobs.hold(store, held, lease=LEASE, clock=clock):
        store.apply([make.put("made"), Finish(claim=held, at=clock())])
    assert (state().status, store.measure(make.where()).count) == (Status.DONE, 1)
    assert claim() == Skipped(reason=Reason.UP_TO_DATE)
    assert isinstance(claim(force=True), Claim)


def test_a_failure_is_noted_without_its_secrets_and_raised(store, clock, claim, state):
    """The job can be claimed again after the time that was given, not before."""
    with (
        pytest.raises(ProviderError, match="key hunter2"),
        jobs.hold(
            store, claim(), lease=LEASE, clock=clock, retry_after=timedelta(minutes=5),
            clean=lambda text: text.replace("hunter2", "***"),
        ),
    ):  # fmt: skip
        raise ProviderError("key hunter2 is wrong" + "!" * jobs.ERROR_CHARS)
    assert (state().status, state().error[:16], len(state().error)) == (
        Status.ERROR, "key *** is wrong", jobs.ERROR_CHARS,
    )  # fmt: skip
    assert claim().reason is Reason.BACKING_OFF
    clock.forward(timedelta(minutes=5))
    assert isinstance(claim(), Claim)


def test_who_interrupts_may_try_again_at_once(store, clock, claim, state):
    """However long a failure would wait."""
    with (
        pytest.raises(KeyboardInterrupt),
        jobs.hold(store, claim(), lease=LEASE, clock=clock, retry_after=timedelta(hours=1)),
    ):
        raise KeyboardInterrupt
    assert state().error == "interrupted"
    assert isinstance(claim(), Claim)


def test_a_claim_is_renewed_while_the_work_takes(store, clock, claim, state):
    """Nobody else can take it, however often its lease would have ended."""
    beaten = threading.Event()

    class Heard:
        """The store, and a sign for every renewal."""

        def apply(self, changes):
            done = store.apply(changes)
            beaten.set()
            return done

    with jobs.hold(Heard(), claim(), lease=LEASE, clock=clock, every=timedelta(milliseconds=1)):
        clock.forward(LEASE)
        for _ in range(2):  # the first may have begun before
            beaten.clear()
            assert beaten.wait(30)
        assert state().until == clock() + LEASE
        assert claim().reason is Reason.RUNNING
    assert not [thread for thread in threading.enumerate() if thread.name == "heartbeat of w"]


def test_who_has_lost_the_job_fails_nobody_elses(store, clock, claim, state, make):
    """Its changes are undone, and the new holder's claim stands."""
    lost = claim()
    clock.forward(2 * LEASE)
    taken = claim()
    with pytest.raises(LeaseLost), jobs.hold(store, lost, lease=LEASE, clock=clock):
        store.apply([make.put("late"), Finish(claim=lost, at=clock())])
    assert (state().status, store.measure(make.where()).count) == (Status.RUNNING, 0)
    store.apply([Finish(claim=taken, at=clock())])

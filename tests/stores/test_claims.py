"""``Store.claim``, ``Finish``, ``Fail`` and ``Heartbeat``: one worker at a time, fenced, with tries and a watermark."""

from datetime import timedelta

import pytest

from commonplace.model.changes import Enqueue, Fail, Finish, Heartbeat
from commonplace.model.errors import LeaseLost
from commonplace.model.jobs import TRIES, Claim, Job, JobState, Reason, Skipped, Status
from commonplace.model.queries import Order
from commonplace.model.scopes import Scope

LEASE = timedelta(minutes=5)


@pytest.fixture
def take(store, make):
    """Claim a job now; whatever is not said is plain."""

    def take(watermark=1, **fields):
        job = Job(**{"scope": make.scope, "kind": "extract", "key": "s1", "watermark": watermark} | fields)
        return store.claim(job, lease=LEASE, now=make.clock())

    return take


def failed(claim, make, after=timedelta(0)):
    """The change that ends a claim badly."""
    return Fail(claim=claim, error="no model", retry_at=make.clock() + after)


def test_a_new_job_is_claimed_until_its_lease_ends(take, make):
    """A claim names the job, the moment at which it ends and a token."""
    claim = take()
    assert isinstance(claim, Claim)
    assert (claim.job.key, claim.until) == ("s1", make.clock() + LEASE)
    assert claim.token


def test_a_running_job_is_not_claimed_again(take):
    """One worker at a time has a job."""
    take()
    assert take() == Skipped(reason=Reason.RUNNING)


@pytest.mark.parametrize("other", [{"scope": Scope.parse("user:bob")}, {"kind": "index"}, {"key": "s2"}])
def test_jobs_are_told_apart_by_scope_kind_and_key(take, other):
    """Another scope, kind or key is another job."""
    first, second = take(), take(**other)
    assert isinstance(second, Claim)
    assert first.token != second.token


def test_a_finished_job_is_up_to_date(store, take):
    """What is done for a watermark need not be done for it or for an older one."""
    store.apply([Finish(claim=take(watermark=5))])
    assert take(watermark=5) == Skipped(reason=Reason.UP_TO_DATE)
    assert take(watermark=4) == Skipped(reason=Reason.UP_TO_DATE)


def test_a_newer_watermark_is_new_work(store, take):
    """When there is more to do the job can be claimed again."""
    store.apply([Finish(claim=take(watermark=5))])
    claim = take(watermark=6)
    assert isinstance(claim, Claim)
    store.apply([Finish(claim=claim)])
    assert take(watermark=6) == Skipped(reason=Reason.UP_TO_DATE)


def test_work_that_arrives_meanwhile_is_done_afterwards(store, take):
    """A watermark that came while the job ran is not taken for done."""
    claim = take(watermark=1)
    assert take(watermark=2) == Skipped(reason=Reason.RUNNING)
    store.apply([Finish(claim=claim)])
    assert isinstance(take(watermark=2), Claim)


def test_a_failed_job_waits_until_it_may_be_tried_again(store, take, make):
    """Until the moment of the next try a claim is skipped, with the error that was."""
    store.apply([failed(take(), make, after=LEASE)])
    assert take() == Skipped(reason=Reason.BACKING_OFF, error="no model")
    make.clock.forward(LEASE - timedelta(microseconds=1))
    assert take() == Skipped(reason=Reason.BACKING_OFF, error="no model")
    make.clock.forward(timedelta(microseconds=1))
    assert isinstance(take(), Claim)


def test_a_job_that_keeps_failing_runs_out_of_tries(store, take, make):
    """After the last try nobody gets it, and the reason is kept."""
    for _ in range(TRIES):
        store.apply([failed(take(), make)])
    assert take() == Skipped(reason=Reason.EXHAUSTED, error="no model")
    make.clock.forward(timedelta(days=365))
    assert take() == Skipped(reason=Reason.EXHAUSTED, error="no model")


def test_a_newer_watermark_starts_afresh(store, take, make):
    """New input gives a job that ran out all its tries again, at once."""
    for _ in range(TRIES):
        store.apply([failed(take(), make, after=-LEASE)])
    store.apply([failed(take(watermark=2), make, after=LEASE)])
    assert take(watermark=2) == Skipped(reason=Reason.BACKING_OFF, error="no model")
    for _ in range(TRIES):
        store.apply([failed(take(watermark=3), make)])
    assert take(watermark=3).reason is Reason.EXHAUSTED


def test_success_gives_the_tries_back(store, take, make):
    """Failures of earlier input do not count against later input."""
    for watermark in range(1, 4):
        for _ in range(TRIES - 1):
            store.apply([failed(take(watermark), make)])
        store.apply([Finish(claim=take(watermark))])
    assert take(watermark=3) == Skipped(reason=Reason.UP_TO_DATE)


def test_a_lease_that_ran_out_can_be_taken_over(take, make):
    """At the very moment the lease ends another worker may have the job, with another token."""
    first = take()
    make.clock.forward(LEASE - timedelta(microseconds=1))
    assert take() == Skipped(reason=Reason.RUNNING)
    make.clock.forward(timedelta(microseconds=1))
    second = take()
    assert isinstance(second, Claim)
    assert second.token != first.token


def test_a_takeover_counts_as_a_try(take, make):
    """A job that kills its workers ends, and says why."""
    for _ in range(TRIES):
        assert isinstance(take(), Claim)
        make.clock.forward(LEASE)
    skipped = take()
    assert skipped.reason is Reason.EXHAUSTED
    assert "lease" in skipped.error


@pytest.mark.parametrize(
    "end", [lambda c, _: Finish(claim=c), failed, lambda c, m: Heartbeat(claim=c, until=m.clock())]
)
def test_a_claim_that_was_lost_writes_nothing(store, take, make, end):
    """A worker that lost its lease is told so, and everything else of its apply is undone."""
    stale = take()
    make.clock.forward(LEASE)
    fresh = take()
    with pytest.raises(LeaseLost, match="extract:s1"):
        store.apply([make.put(), end(stale, make), make.put("more")])
    assert store.find(make.anything(), order=Order.ID, limit=9) == []
    store.apply([make.put(), Finish(claim=fresh)])


def test_a_job_is_ended_once(store, take, make):
    """A claim that was ended cannot be ended again, well or badly."""
    for key, end in {"well": lambda claim: Finish(claim=claim), "badly": lambda claim: failed(claim, make)}.items():
        claim = take(key=key)
        store.apply([end(claim)])
        with pytest.raises(LeaseLost):
            store.apply([Finish(claim=claim)])


def test_a_lease_that_ran_out_unnoticed_still_holds(store, take, make):
    """Nobody else took the job, so its work is not thrown away."""
    claim = take()
    make.clock.forward(10 * LEASE)
    store.apply([make.put(), Finish(claim=claim)])
    assert take() == Skipped(reason=Reason.UP_TO_DATE)


def test_an_exhausted_takeover_fences_the_old_worker_off(store, take, make):
    """A job that was declared dead cannot be finished by the one who comes back late."""
    for _ in range(TRIES):
        claim = take()
        make.clock.forward(LEASE)
    assert take().reason is Reason.EXHAUSTED
    with pytest.raises(LeaseLost):
        store.apply([Finish(claim=claim)])


def test_a_heartbeat_holds_a_claim_for_longer(store, take, make):
    """While it beats nobody takes the job over."""
    claim = take()
    for _ in range(5):
        make.clock.forward(LEASE / 2)
        store.apply([Heartbeat(claim=claim, until=make.clock() + LEASE)])
    assert take() == Skipped(reason=Reason.RUNNING)
    store.apply([Finish(claim=claim)])


def test_a_forged_claim_is_no_claim(store, take):
    """Only the token that was handed out ends a job."""
    claim = take()
    with pytest.raises(LeaseLost):
        store.apply([Finish(claim=claim.replace(token="0" * 32))])
    with pytest.raises(LeaseLost):
        store.apply([Finish(claim=claim.replace(job=claim.job.replace(key="other")))])
    store.apply([Finish(claim=claim)])


def test_the_claim_is_for_the_newest_watermark(store, take):
    """Whoever comes with older input does the newest work that was asked for."""
    store.apply([Enqueue(job=take(watermark=5).job.replace(key="s2", watermark=9))])
    assert take(watermark=2, key="s2").job.watermark == 9


def test_what_is_asked_for_while_a_job_runs_is_due_after_it(store, take, make):
    """The run that is under way did not see it."""
    claim = take(watermark=1)
    store.apply([Enqueue(job=claim.job, force=True)])
    store.apply([Finish(claim=claim)])

    [state] = store.jobs([make.scope], now=make.clock())
    assert (state.status, state.done, state.job.watermark) == (Status.PENDING, 1, 2)
    assert isinstance(take(watermark=1), Claim)


@pytest.mark.parametrize(("force", "due"), [(True, True), (False, False)])
def test_work_that_is_done_can_be_asked_for_again(store, take, *, force, due):
    """By force only: the same watermark alone is no work."""
    claim = take(watermark=3)
    store.apply([Finish(claim=claim), Enqueue(job=claim.job, force=force)])
    assert isinstance(take(watermark=3), Claim) == due


def test_asking_by_force_gives_the_tries_back(store, take, make):
    """A job that was given up can be tried again, at once, and once."""
    for _ in range(TRIES):
        claim = take()
        store.apply([failed(claim, make)])
    store.apply([Enqueue(job=claim.job, force=True)])
    store.apply([Finish(claim=take())])
    assert take() == Skipped(reason=Reason.UP_TO_DATE)


def test_jobs_can_be_listed(store, take, make):
    """Each with what became of it, by kind and key; other scopes' are not shown."""
    done, bad = take(), take(key="s0")
    take(scope=Scope.parse("user:bob"))
    began, ended = make.clock(), make.clock.forward()
    store.apply([Finish(claim=done, at=ended), failed(bad, make, after=LEASE).replace(at=ended)])
    times = {"started_at": began, "finished_at": ended}

    assert store.jobs([make.scope], now=make.clock()) == [
        JobState(
            job=bad.job, status=Status.ERROR, tries_left=TRIES - 1, error="no model", retry_at=ended + LEASE, **times
        ),
        JobState(job=done.job, status=Status.DONE, done=1, **times),
    ]
    assert isinstance(take(key="s3"), Claim)
    assert store.jobs([make.scope], now=make.clock())[-1].until == ended + LEASE


def test_a_job_is_leased_until_its_lease_ends(store, take, make):
    """Whoever lists it sees whether somebody is at it; a worker that died is, until its time is over."""
    take()
    [state] = store.jobs([make.scope], now=make.clock.now + LEASE - timedelta(microseconds=1))
    [later] = store.jobs([make.scope], now=make.clock.now + LEASE)
    assert (state.leased, later.leased) == (True, False)
    assert state.status is later.status is Status.RUNNING

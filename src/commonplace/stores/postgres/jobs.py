"""Jobs inside a transaction: taken by one, fenced by a token, tried a few times, and listed for whoever asks.

Several machines share them, and clocks differ: by whose a lease runs is the store's choice.  By the database's, moments
that a caller names are taken for what they are to the caller, so long from now, and never compared with another clock.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from commonplace.model.changes import Enqueue, Fail, Finish, Heartbeat, Outcome
from commonplace.model.errors import LeaseLost
from commonplace.model.jobs import TRIES, Claim, Job, JobState, Reason, Skipped
from commonplace.model.scopes import Scope
from commonplace.stores.postgres.connection import Db, every, first, run
from commonplace.stores.postgres.filters import scopes_sql
from commonplace.stores.postgres.scopes import scope_row
from commonplace.stores.rows import JOBS, JOBS_ORDER, job_at, micros, moment

_CLOCK = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"  # the transaction's own may be long past
#: Also locks the job's row, so that of two who claim it one waits for the other's answer.
_ASKED = (
    "insert into job as j (scope, kind, key, status, tries_left, input) values (?, ?, ?, 'pending', ?, ?)"
    " on conflict (scope, kind, key) do update set"
    " tries_left = case when excluded.input > j.input then excluded.tries_left else j.tries_left end,"
    " retry_at = case when excluded.input > j.input then null else j.retry_at end,"
    " input = greatest(j.input, excluded.input)"
    f" returning status, lease_until, retry_at, tries_left, error, input, done, {_CLOCK}"
)
_THIS = "(scope, kind, key) = (?, ?, ?)"
_OF_CLAIM = "scope = (select id from scope where path = ?) and kind = ? and key = ? and token = ?"


def take(db: Db, job: Job, *, lease: timedelta, now: datetime | None) -> Claim | Skipped:
    """Claim a job inside a transaction; by the database's clock unless another one's time is given."""
    key = (scope_row(db, job.scope), job.kind, job.key)
    asked = first(db, _ASKED, (*key, TRIES, job.watermark))
    status, until, retry_at, tries, error, newest, done, clock = asked or (None,) * 8
    now = now or moment(clock)
    if done is not None and done >= newest:
        return Skipped(reason=Reason.UP_TO_DATE)
    if status == "running" and until > micros(now):
        return Skipped(reason=Reason.RUNNING)
    if status == "running":  # its worker died or froze: that was a try, or a job that kills its worker never ends
        tries, error = tries - 1, "the worker did not finish before its lease ran out"
        run(db, f"update job set status = 'error', tries_left = ?, error = ? where {_THIS}", (tries, error, *key))
    if tries <= 0:
        return Skipped(reason=Reason.EXHAUSTED, error=error)
    if retry_at is not None and retry_at > micros(now):
        return Skipped(reason=Reason.BACKING_OFF, error=error)
    claim = Claim(job=job.replace(watermark=newest), token=os.urandom(16).hex(), until=now + lease)
    sql = f"update job set status = 'running', token = ?, lease_until = ?, started_at = ? where {_THIS}"
    run(db, sql, (claim.token, micros(claim.until), micros(now), *key))
    return claim


def by_the_database(db: Db, change: Finish | Fail | Heartbeat) -> Finish | Fail | Heartbeat:
    """The same by the database's clock.

    A job ends now, may be tried again as long from now as its worker says, and a beat holds it for as long again as it
    was claimed for: what the worker's clock shows does not matter.
    """
    claim = change.claim
    sql = f"select {_CLOCK}, (select started_at from job j where {_OF_CLAIM})"
    [(clock, started)] = every(db, sql, _claimed(claim))
    now, began = moment(clock), moment(started)
    match change:
        case Finish():
            return change.replace(at=change.at and now)
        case Fail():
            wait = change.retry_at - change.at if change.at else None
            return change if wait is None else change.replace(at=now, retry_at=now + wait)
        case Heartbeat():  # without a start there is no such job, and whoever beats for it hears of that
            return change.replace(until=now + (claim.until - began)) if began else change


def _owned(db: Db, claim: Claim, assignments: str, values: Sequence[Any]) -> Outcome:
    """Change a job only as the one who holds it; a lease that ran out holds until somebody else takes the job."""
    sql = f"update job set {assignments} where {_OF_CLAIM} and status = 'running'"
    if run(db, sql, (*values, *_claimed(claim))) == 0:
        raise LeaseLost(f"the job {claim.job.kind}:{claim.job.key} was taken over; nothing was written")
    return Outcome()


def _claimed(claim: Claim) -> tuple[str, ...]:
    return str(claim.job.scope), claim.job.kind, claim.job.key, claim.token


def enqueue(db: Db, change: Enqueue) -> Outcome:
    """Raise a job's watermark, with force beyond what was done; a job that runs goes on and is due again after."""
    job = change.job
    key = (scope_row(db, job.scope), job.kind, job.key)
    run(db, _ASKED, (*key, TRIES, job.watermark))
    if change.force:
        seen = "status = 'running' or input <= coalesce(done, input - 1)"
        due = f"case when {seen} then greatest(input, done) + 1 else input end"  # greatest leaves out what is null
        run(db, f"update job set input = {due}, tries_left = ?, retry_at = null where {_THIS}", (TRIES, *key))
    return Outcome()


def finish(db: Db, change: Finish) -> Outcome:
    """End a job well."""
    sql = (
        "status = case when input > ? then 'pending' else 'done' end, token = null, lease_until = null,"
        " retry_at = null, error = null, done = ?, tries_left = ?, finished_at = ?"
    )
    done = change.claim.job.watermark
    return _owned(db, change.claim, sql, (done, done, TRIES, micros(change.at)))


def fail(db: Db, change: Fail) -> Outcome:
    """End a job badly."""
    sql = (
        "status = 'error', token = null, lease_until = null, retry_at = ?, error = ?, tries_left = tries_left - 1,"
        " finished_at = ?"
    )
    return _owned(db, change.claim, sql, (micros(change.retry_at), change.error, micros(change.at)))


def heartbeat(db: Db, change: Heartbeat) -> Outcome:
    """Hold a job for longer."""
    return _owned(db, change.claim, "lease_until = ?", (micros(change.until),))


def states(db: Db, scopes: Collection[Scope], now: datetime | None) -> list[JobState]:
    """Where each job of these scopes stands; by the database's clock unless another one's time is given."""
    condition, values = scopes_sql(scopes, "j.scope")
    sql = f"{JOBS.format(now=f'coalesce(?::bigint, {_CLOCK})')} where {condition} {JOBS_ORDER}"
    return [job_at(row) for row in every(db, sql, [micros(now), *values])]

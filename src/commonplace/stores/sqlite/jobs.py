"""Jobs inside a transaction: taken by one, fenced by a token, tried a few times, and listed for whoever asks."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import apsw

from commonplace.model.changes import Enqueue, Fail, Finish, Heartbeat, Outcome
from commonplace.model.errors import LeaseLost
from commonplace.model.jobs import TRIES, Claim, Job, JobState, Reason, Skipped
from commonplace.model.scopes import Scope
from commonplace.stores.rows import JOBS, JOBS_ORDER, job_at, micros, scopes_sql
from commonplace.stores.sqlite.connection import every, first, scope_row

_ASKED = (
    "insert into job (scope, kind, key, status, tries_left, input) values (?, ?, ?, 'pending', ?, ?)"
    " on conflict do update set tries_left = iif(excluded.input > input, excluded.tries_left, tries_left),"
    " retry_at = iif(excluded.input > input, null, retry_at), input = max(input, excluded.input)"
)
_THIS = "(scope, kind, key) = (?, ?, ?)"


def take(db: apsw.Connection, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
    """Claim a job inside a transaction."""
    key = (scope_row(db, job.scope), job.kind, job.key)
    db.execute(_ASKED, (*key, TRIES, job.watermark))
    sql = f"select status, lease_until, retry_at, tries_left, error, input, done from job where {_THIS}"
    status, until, retry_at, tries, error, newest, done = first(db, sql, key) or (None,) * 7
    if done is not None and done >= newest:
        return Skipped(reason=Reason.UP_TO_DATE)
    if status == "running" and until > micros(now):
        return Skipped(reason=Reason.RUNNING)
    if status == "running":  # its worker died or froze: that was a try, or a job that kills its worker never ends
        tries, error = tries - 1, "the worker did not finish before its lease ran out"
        sql = f"update job set status = 'error', tries_left = ?, error = ? where {_THIS}"
        db.execute(sql, (tries, error, *key))
    if tries <= 0:
        return Skipped(reason=Reason.EXHAUSTED, error=error)
    if retry_at is not None and retry_at > micros(now):
        return Skipped(reason=Reason.BACKING_OFF, error=error)
    claim = Claim(job=job.replace(watermark=newest), token=os.urandom(16).hex(), until=now + lease)
    sql = f"update job set status = 'running', token = ?, lease_until = ?, started_at = ? where {_THIS}"
    db.execute(sql, (claim.token, micros(claim.until), micros(now), *key))
    return claim


def _owned(db: apsw.Connection, claim: Claim, assignments: str, values: Sequence[Any]) -> Outcome:
    """Change a job only as the one who holds it; a lease that ran out holds until somebody else takes the job."""
    key = (str(claim.job.scope), claim.job.kind, claim.job.key)
    sql = (
        f"update job set {assignments} where scope = (select id from scope where path = ?) and kind = ? and key = ?"
        " and token = ? and status = 'running'"
    )
    db.execute(sql, (*values, *key, claim.token))
    if db.changes() == 0:
        raise LeaseLost(f"the job {claim.job.kind}:{claim.job.key} was taken over; nothing was written")
    return Outcome()


def enqueue(db: apsw.Connection, change: Enqueue) -> Outcome:
    """Raise a job's watermark, with force beyond what was done; a job that runs goes on and is due again after."""
    job = change.job
    key = (scope_row(db, job.scope), job.kind, job.key)
    db.execute(_ASKED, (*key, TRIES, job.watermark))
    if change.force:
        seen = "status = 'running' or input <= coalesce(done, input - 1)"
        due = f"iif({seen}, max(input, coalesce(done, input)) + 1, input)"
        sql = f"update job set input = {due}, tries_left = ?, retry_at = null where {_THIS}"
        db.execute(sql, (TRIES, *key))
    return Outcome()


def finish(db: apsw.Connection, change: Finish) -> Outcome:
    """End a job well."""
    sql = (
        "status = iif(input > ?, 'pending', 'done'), token = null, lease_until = null, retry_at = null, error = null,"
        " done = ?, tries_left = ?, finished_at = ?"
    )
    done = change.claim.job.watermark
    return _owned(db, change.claim, sql, (done, done, TRIES, micros(change.at)))


def fail(db: apsw.Connection, change: Fail) -> Outcome:
    """End a job badly."""
    sql = (
        "status = 'error', token = null, lease_until = null, retry_at = ?, error = ?, tries_left = tries_left - 1,"
        " finished_at = ?"
    )
    return _owned(db, change.claim, sql, (micros(change.retry_at), change.error, micros(change.at)))


def heartbeat(db: apsw.Connection, change: Heartbeat) -> Outcome:
    """Hold a job for longer."""
    return _owned(db, change.claim, "lease_until = ?", (micros(change.until),))


def states(db: apsw.Connection, scopes: Collection[Scope], now: datetime) -> list[JobState]:
    """Where each job of these scopes stands."""
    condition, values = scopes_sql(frozenset(scopes), "j.scope")
    sql = f"{JOBS.format(now='?')} where {condition} {JOBS_ORDER}"
    return [job_at(row) for row in every(db, sql, [micros(now), *values])]

"""Jobs inside a transaction: taken by one, fenced by a token, tried a few times, and listed for whoever asks."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from commonplace.domain.changes import Enqueue, Fail, Finish, Heartbeat, Outcome
from commonplace.domain.errors import LeaseLost
from commonplace.domain.jobs import TRIES, Claim, Job, JobState, Reason, Skipped, Status
from commonplace.domain.scopes import Scope
from commonplace.stores.postgres_connection import Db, every, first, run
from commonplace.stores.postgres_filters import scopes_sql
from commonplace.stores.postgres_scopes import scope_row
from commonplace.stores.rows import micros, moment, scope_at

#: Also locks the job's row, so that of two who claim it one waits for the other's answer.
_ASKED = (
    "insert into job as j (scope, kind, key, status, tries_left, input) values (?, ?, ?, 'pending', ?, ?)"
    " on conflict (scope, kind, key) do update set"
    " tries_left = case when excluded.input > j.input then excluded.tries_left else j.tries_left end,"
    " retry_at = case when excluded.input > j.input then null else j.retry_at end,"
    " input = greatest(j.input, excluded.input)"
    " returning status, lease_until, retry_at, tries_left, error, input, done"
)
_THIS = "(scope, kind, key) = (?, ?, ?)"


def take(db: Db, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
    """Claim a job inside a transaction."""
    key = (scope_row(db, job.scope), job.kind, job.key)
    asked = first(db, _ASKED, (*key, TRIES, job.watermark))
    status, until, retry_at, tries, error, newest, done = asked or (None,) * 7
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


def _owned(db: Db, claim: Claim, assignments: str, values: Sequence[Any]) -> Outcome:
    """Change a job only as the one who holds it; a lease that ran out holds until somebody else takes the job."""
    key = (str(claim.job.scope), claim.job.kind, claim.job.key)
    sql = (
        f"update job set {assignments} where scope = (select id from scope where path = ?) and kind = ? and key = ?"
        " and token = ? and status = 'running'"
    )
    if run(db, sql, (*values, *key, claim.token)) == 0:
        raise LeaseLost(f"the job {claim.job.kind}:{claim.job.key} was taken over; nothing was written")
    return Outcome()


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


def states(db: Db, scopes: Collection[Scope]) -> list[JobState]:
    """Where each job of these scopes stands."""
    condition, values = scopes_sql(scopes, "j.scope")
    names = "j.status, j.done, j.tries_left, j.error, j.started_at, j.finished_at, j.lease_until, j.retry_at"
    sql = (
        f"select s.path, j.kind, j.key, j.input, {names} from job j join scope s on s.id = j.scope"
        f" where {condition} order by j.kind, j.key, s.path"
    )
    return [_state(row) for row in every(db, sql, values)]


def _state(row: Sequence[Any]) -> JobState:
    path, kind, key, watermark, status, done, tries, error, started, finished, until, retry = row
    return JobState(
        job=Job(scope=scope_at(path), kind=kind, key=key, watermark=watermark), status=Status(status), done=done,
        tries_left=tries, error=error, started_at=moment(started), finished_at=moment(finished), until=moment(until),
        retry_at=moment(retry),
    )  # fmt: skip

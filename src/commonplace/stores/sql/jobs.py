"""Jobs inside a transaction: claimed by one, fenced by a token, tried a few times, and listed.

Several machines may share them, and clocks differ: a database whose own clock decides (``Db.clock``) is given no time.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from commonplace.model.changes import DeleteJobs, Enqueue, Fail, Finish, Heartbeat, Outcome
from commonplace.model.errors import LeaseLost
from commonplace.model.jobs import TRIES, Claim, Job, JobState, Reason, Skipped, Status
from commonplace.model.processes import is_dead, process_name
from commonplace.model.scopes import Scope
from commonplace.stores.rows import micros, moment, scope_at
from commonplace.stores.sql.filters import scope_row, scopes_sql

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

#: Also locks the job's row, so that of two who claim it one waits for the other's answer.
_REQUEST = (
    "insert into job as j (scope, kind, key, status, tries_left, input) values (?, ?, ?, 'pending', ?, ?)"
    " on conflict (scope, kind, key) do update set"
    " tries_left = case when excluded.input > j.input then excluded.tries_left else j.tries_left end,"
    " retry_at = case when excluded.input > j.input then null else j.retry_at end,"
    " input = case when excluded.input > j.input then excluded.input else j.input end"
    " returning status, lease_until, retry_at, tries_left, error, input, done, token"
)
_THIS = "(scope, kind, key) = (?, ?, ?)"
OF_CLAIM = "scope = (select id from scope where path = ?) and kind = ? and key = ? and token = ?"
_STATES = (
    "select s.path, j.kind, j.key, j.input, j.status, j.done, j.tries_left, j.error, j.started_at, j.finished_at,"
    " j.lease_until, j.retry_at, coalesce(j.lease_until > coalesce(cast(? as bigint), {clock}), false)"
    " from job j join scope s on s.id = j.scope where {condition} order by j.kind, j.key, s.path"
)


def claim(db: Db, job: Job, *, lease: timedelta, now: datetime | None) -> Claim | Skipped:
    """Claim a job; by the database's clock unless a time is given."""
    key = [scope_row(db, job.scope), job.kind, job.key]
    requested = db.first(f"{_REQUEST}, {db.clock}", [*key, TRIES, job.watermark])
    status, until, retry_at, tries, error, newest, done, token, clock = requested or (None,) * 9
    now = now or moment(clock)
    if done is not None and done >= newest:
        return Skipped(reason=Reason.UP_TO_DATE)
    if status == "running" and until > micros(now) and not is_dead(token.partition("/")[0]):
        return Skipped(reason=Reason.RUNNING)
    if status == "running":  # its worker died or froze: that was a try, or a job that kills its worker never ends
        tries, error = tries - 1, "the worker did not finish before its lease ran out"
        db.run(f"update job set status = 'error', tries_left = ?, error = ? where {_THIS}", [tries, error, *key])
    if tries <= 0:
        return Skipped(reason=Reason.EXHAUSTED, error=error)
    if retry_at is not None and retry_at > micros(now):
        return Skipped(reason=Reason.BACKING_OFF, error=error)
    claim = Claim(
        job=job.replace(watermark=newest), token=f"{process_name()}/{os.urandom(16).hex()}", until=now + lease
    )
    sql = f"update job set status = 'running', token = ?, lease_until = ?, started_at = ? where {_THIS}"
    db.run(sql, [claim.token, micros(claim.until), micros(now), *key])
    return claim


def enqueue(db: Db, change: Enqueue) -> Outcome:
    """Raise a job's watermark, with force beyond what was done; a job that runs goes on and is due again after."""
    job = change.job
    key = [scope_row(db, job.scope), job.kind, job.key]
    db.every(_REQUEST, [*key, TRIES, job.watermark])
    if change.force:
        seen = "status = 'running' or input <= coalesce(done, input - 1)"
        due = f"case when {seen} then (case when done > input then done else input end) + 1 else input end"
        db.run(f"update job set input = {due}, tries_left = ?, retry_at = null where {_THIS}", [TRIES, *key])
    return Outcome()


def finish(db: Db, change: Finish) -> Outcome:
    """End a job successfully."""
    sql = (
        "status = case when input > ? then 'pending' else 'done' end, token = null, lease_until = null,"
        " retry_at = null, error = null, done = ?, tries_left = ?, finished_at = ?"
    )
    done = change.claim.job.watermark
    return _update_claimed(db, change.claim, sql, [done, done, TRIES, micros(change.at)])


def fail(db: Db, change: Fail) -> Outcome:
    """End a job with an error."""
    sql = (
        "status = 'error', token = null, lease_until = null, retry_at = ?, error = ?, tries_left = tries_left - 1,"
        " finished_at = ?"
    )
    return _update_claimed(db, change.claim, sql, [micros(change.retry_at), change.error, micros(change.at)])


def heartbeat(db: Db, change: Heartbeat) -> Outcome:
    """Extend a lease."""
    return _update_claimed(db, change.claim, "lease_until = ?", [micros(change.until)])


def _update_claimed(db: Db, claim: Claim, assignments: str, values: Sequence[Any]) -> Outcome:
    """Change a job only as its holder; a lease that ran out holds until another worker claims the job."""
    sql = f"update job set {assignments} where {OF_CLAIM} and status = 'running'"
    if db.run(sql, [*values, *claim_values(claim)]) == 0:
        raise LeaseLost(f"the job {claim.job.kind}:{claim.job.key} was taken over; nothing was written")
    return Outcome()


def claim_values(claim: Claim) -> tuple[str, ...]:
    """Return the values of ``OF_CLAIM``."""
    return str(claim.job.scope), claim.job.kind, claim.job.key, claim.token


def states(db: Db, scopes: Collection[Scope], now: datetime | None) -> list[JobState]:
    """Return the state of each job of these scopes; by the database's clock unless a time is given."""
    condition, values = scopes_sql(db, scopes, "j.scope")
    sql = _STATES.format(clock=db.clock, condition=condition)
    return [_state(row) for row in db.every(sql, [micros(now), *values])]


def _state(row: Sequence[Any]) -> JobState:
    path, kind, key, watermark, status, done, tries, error, started, finished, until, retry, leased = row
    return JobState(
        job=Job(scope=scope_at(path), kind=kind, key=key, watermark=watermark), status=Status(status), done=done,
        tries_left=tries, error=error, started_at=moment(started), finished_at=moment(finished), until=moment(until),
        retry_at=moment(retry), leased=bool(leased),
    )  # fmt: skip


def delete(db: Db, change: DeleteJobs) -> Outcome:
    """Erase jobs of a scope by their keys."""
    scopes, paths = scopes_sql(db, [change.scope], "scope")
    keys, values = db.among("key", change.keys)
    rows = db.every(f"select kind, key from job where {scopes} and {keys} order by kind, key", [*paths, *values])
    db.run(f"delete from job where {scopes} and {keys}", [*paths, *values])
    return Outcome(gone=tuple(f"{kind} {key}" for kind, key in rows))

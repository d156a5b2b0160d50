"""Jobs: work that one process at a time may do, with a lease, a token, tries and a watermark."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from commonplace.model.scopes import Scope
from commonplace.model.values import Value

TRIES = 3  # for one watermark; a newer watermark resets them


class Job(Value):
    """A piece of work: (scope, kind, key) is its identity, the watermark is how new its input is."""

    scope: Scope
    kind: str
    key: str
    watermark: int


class Claim(Value):
    """The right to do a job until the lease ends; the token fences off earlier holders."""

    job: Job
    token: str
    until: datetime


class Status(StrEnum):
    """The status of a job."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    ERROR = "error"


class Reason(StrEnum):
    """Why a job was not claimed."""

    UP_TO_DATE = "up to date"
    RUNNING = "running elsewhere"
    BACKING_OFF = "waiting to be tried again"
    EXHAUSTED = "out of tries"


class JobState(Value):
    """The state of a job, for status reports."""

    job: Job  #: with the newest watermark that was queued
    status: Status
    done: int | None = None  #: the watermark of the last success
    tries_left: int = TRIES
    error: str | None = None  #: of the last try, if it failed
    started_at: datetime | None = None  #: when it was last claimed
    finished_at: datetime | None = None  #: when it last ended, done or failed
    until: datetime | None = None  #: the end of the lease, while it runs
    leased: bool = False  #: whether a worker holds it, by the clock of the leases
    retry_at: datetime | None = None  #: not before then


class Skipped(Value):
    """The job was not claimed, which is no error."""

    reason: Reason
    error: str | None = None  #: of the last try, if one failed

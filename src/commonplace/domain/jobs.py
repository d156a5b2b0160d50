"""Jobs: work that one process at a time may do, with a lease, a token, tries and a watermark."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from commonplace.domain.scopes import Scope
from commonplace.domain.values import Value

TRIES = 3  # of one watermark; a newer watermark starts afresh


class Job(Value):
    """A piece of work: (scope, kind, key) is its identity, the watermark says how new its input is."""

    scope: Scope
    kind: str
    key: str
    watermark: int


class Claim(Value):
    """The right to do a job until the lease ends; the token fences off whoever held it before."""

    job: Job
    token: str
    until: datetime


class Reason(StrEnum):
    """Why a job was not claimed."""

    UP_TO_DATE = "up to date"
    RUNNING = "running elsewhere"
    BACKING_OFF = "waiting to be tried again"
    EXHAUSTED = "out of tries"


class Skipped(Value):
    """The job was not claimed, which is no error."""

    reason: Reason
    error: str | None = None  #: of the last try, if one failed

"""Retention of events: writes erase old events now and then.

There is no background job.  Each writer checks and erases a batch at a time in a separate transaction.  Several
processes on one store may all do it; the one with the shortest retention decides.  Archives stay: they have no other
copy.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from commonplace.model.changes import TrimEvents
from commonplace.model.errors import InvalidInput, StoreError
from commonplace.model.events import MAX_EVENT_DAYS
from commonplace.model.ports import Clock, Store

LOOK_EVERY = timedelta(minutes=1)  # a check that finds nothing costs as little as a read
TRIM_MOST = 1000  # events per check; it takes some milliseconds, and the next write resumes


class Retention:
    """Erases old events of one store."""

    def __init__(self, store: Store, clock: Clock, *, days: int) -> None:
        """Keep events for that many days (0 = forever)."""
        if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= MAX_EVENT_DAYS:
            raise InvalidInput(f"event_days must be 0 (forever) to {MAX_EVENT_DAYS}, not {days!r}")
        self._store = store
        self._clock = clock
        self._length = timedelta(days=days)
        self._looked: datetime | None = None

    def look(self) -> None:
        """Erase a batch of old events, unless this process checked recently and found no more."""
        now = self._clock()
        rested = self._looked is None or not self._looked <= now < self._looked + LOOK_EVERY
        if not self._length or not rested:
            return
        self._looked = now  # first: other threads need not check as well
        try:
            [outcome] = self._store.apply([TrimEvents(before=now - self._length, limit=TRIM_MOST)])
        except StoreError:  # the write itself is done; the next one checks again
            return
        if outcome.more:
            self._looked = None

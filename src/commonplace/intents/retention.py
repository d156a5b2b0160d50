"""How long what happened is kept: old events are erased now and then, in the course of a write.

There is no sweeper.  Whoever writes looks, and erases a batch at a time in a transaction of its own.  Several processes
on one store may all do it; the one that keeps events for the shortest time decides.  Archives stay: they are kept
nowhere else.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from commonplace.model.changes import TrimEvents
from commonplace.model.errors import InvalidInput, StoreError
from commonplace.model.events import EVENT_DAYS_MOST
from commonplace.model.ports import Clock, Store

LOOK_EVERY = timedelta(minutes=1)  # a look that finds nothing costs as little as a read
TRIM_MOST = 1000  # events of one look; it takes some milliseconds, and the next write goes on


class Retention:
    """Erases old events of one store."""

    def __init__(self, store: Store, clock: Clock, *, days: int) -> None:
        """Keep events for that many days; 0: for ever."""
        if isinstance(days, bool) or not isinstance(days, int) or not 0 <= days <= EVENT_DAYS_MOST:
            raise InvalidInput(f"events are kept for 0 (for ever) to {EVENT_DAYS_MOST} days, not for {days!r}")
        self._store = store
        self._clock = clock
        self._length = timedelta(days=days)
        self._looked: datetime | None = None

    def look(self) -> None:
        """Erase a batch of what is old, unless somebody here has looked a moment ago and there was no more."""
        now = self._clock()
        rested = self._looked is None or not self._looked <= now < self._looked + LOOK_EVERY
        if not self._length or not rested:
            return
        self._looked = now  # first: other threads need not look as well
        try:
            [outcome] = self._store.apply([TrimEvents(before=now - self._length, most=TRIM_MOST)])
        except StoreError:  # what was to be written is written; the next write looks again
            return
        if outcome.more:
            self._looked = None

"""Wait for events: on one connection of its own, which listens on the channel of the store.

A notification that comes while no one waits stays on that connection until someone does.  A connection that breaks, or
that the server refuses, is no error here: a caller looks for events in any case, and the next one opens a new one.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

import psycopg

from commonplace.model.errors import StoreError
from commonplace.stores.postgres.connection import Connections, quote_name, translate_errors
from commonplace.stores.postgres.dialect import CHANNEL, PostgresDb


class EventListener:
    """Listens for one store.  Several threads may wait; one has the connection, and the others wait as long."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._db: PostgresDb | None = None
        self._pid = os.getpid()
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def listening(self, seconds: float) -> Iterator[Callable[[], None]]:
        """Listen from now on; the callable that is yielded waits for a notification, until those seconds are over."""
        if self._pid != os.getpid():  # the socket is the parent's: it is neither used nor closed here
            _inherited.append(self._db)
            self._db, self._pid, self._turn = None, os.getpid(), threading.Lock()
        end = time.monotonic() + seconds
        if not self._turn.acquire(timeout=max(0.0, seconds)):
            yield lambda: None
            return
        try:
            db = self._open()
            yield lambda: self._wait(db, end) if db else time.sleep(max(0.0, end - time.monotonic()))
        finally:
            self._turn.release()

    def close(self) -> None:
        """Close the connection, unless a thread is listening on it."""
        if self._pid == os.getpid() and self._turn.acquire(blocking=False):
            self._drop()
            self._turn.release()

    def _open(self) -> PostgresDb | None:
        """Return the connection; None where it cannot be opened, as when the server takes no more."""
        if self._db is None or self._db.closed:
            self._drop()
            try:
                with translate_errors(self._connections.name):
                    self._db = self._connections.apart()
                    [(channel,)] = self._db.every(f"select {CHANNEL}")
                    self._db.execute(f"listen {quote_name(channel)}".encode())
            except StoreError:  # the caller, who looks at the store, gets the error
                self._drop()
        return self._db

    def _wait(self, db: PostgresDb, end: float) -> None:
        try:
            for _ in db.notifies(timeout=max(0.0, end - time.monotonic()), stop_after=1):
                pass
        except psycopg.OperationalError:
            self._drop()

    def _drop(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()


_inherited: list[PostgresDb | None] = []  # connections of a parent process, which are not ours to close

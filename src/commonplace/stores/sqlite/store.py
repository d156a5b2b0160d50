"""The embedded store: one SQLite file, any number of processes, no daemon.  ``:memory:`` is the in-memory store.

Transactions are here; the rules are those of every store (``sql``), what SQLite does in its own way is in ``dialect``,
locks and connections are in ``connection``, checks and backups in ``upkeep``.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import apsw

from commonplace.model.changes import Change, Delete, DeleteChunks, DeleteDocuments, DropScope, Outcome
from commonplace.model.errors import StoreError
from commonplace.model.jobs import Claim, Job, Skipped
from commonplace.stores.sql import changes as rules
from commonplace.stores.sql.store import NOT_DURABLE, SqlStore
from commonplace.stores.sqlite.connection import (
    APPLICATION_ID,
    CHECKPOINT_SECONDS,
    GroupCommit,
    Pool,
    WriterLock,
    prepare,
    translate_errors,
)
from commonplace.stores.sqlite.dialect import BUSY_MS, SqliteDb
from commonplace.version import PRODUCT

if TYPE_CHECKING:
    from commonplace.model.items import Item

LOOK_SECONDS = 0.1  # between two looks for an event; a look takes some 20 microseconds
NEWEST = 7  # the number of the last script in migrations/
#: Changes by which a user wants words to be gone.  Making room (Trim, what has expired) is none: it happens with
#: every write to a full memory, and its bytes are overwritten where they lie, by secure_delete, as of any row.
_ERASING = (Delete, DeleteChunks, DeleteDocuments, DropScope)


class SqliteStore(SqlStore):
    """A store in one file."""

    def __init__(self, path: str, *, vec: str | None = None) -> None:
        """Open the store at that path, making it if there is none.

        ``vec`` is where sqlite-vec lies, if nearness is to be found with its help; the answers are the same.
        """
        self._vec = vec
        self.path = path if path == ":memory:" else os.path.abspath(path)
        self._pool = Pool(on_disk=path != ":memory:")
        self._lock = None if path == ":memory:" else WriterLock(self.path + ".lock")
        self._commits = GroupCommit()
        self._private = threading.RLock()  # :memory: has one connection; all threads wait for it
        with self.using():
            pass

    # Reading

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """See ``Store``.  No file notifies another process of a write: it is looked at now and then."""
        end = time.monotonic() + seconds
        while True:
            last = self._last_event()
            left = end - time.monotonic()
            if last > after or left <= 0:
                return last
            time.sleep(min(LOOK_SECONDS, left))

    # Writing

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        if not changes:
            return []
        durable = not all(isinstance(change, NOT_DURABLE) for change in changes)

        def make(db: SqliteDb) -> tuple[list[Outcome], list[bool], tuple[int, str] | None]:
            outcomes, erased = _make(db, changes)
            return outcomes, erased, self._append_audit(db, changes, outcomes, durable=durable)

        if self._lock is None:
            with self.writing(durable=durable) as db:
                outcomes, erased, last = make(db)
        else:
            with translate_errors(self.path):
                outcomes, erased, last = self._commits.run(self.writing, make, durable=durable)
        self._note_audit(last)
        if any(erased) and not self._try_scrub():
            outcomes = [outcome.replace(erasing=was) for outcome, was in zip(outcomes, erased, strict=True)]
        return outcomes

    def _try_scrub(self) -> bool:
        """Scrub and return whether the bytes are gone too: the records are, even if the disk fails now."""
        try:
            return self.scrub()
        except StoreError:
            return False

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        from commonplace.stores.sql import jobs  # noqa: PLC0415 - no recall claims one

        with self.writing(durable=True) as db:
            return jobs.claim(db, job, lease=lease, now=now)

    def mark_erasing(self, db: SqliteDb) -> None:
        """See ``SqlStore``: an upkeep or the next erasure finishes it if this process dies."""
        db.execute("insert or replace into meta values ('erasing', 1)")

    def scrub(self) -> bool:
        """Remove erased bytes from every file; False while a reader needs the old ones."""
        if self._lock is None:
            return True
        from commonplace.stores.sqlite.upkeep import wipe  # noqa: PLC0415 - only erasing needs it

        with self.using() as db, self._lock.hold():
            db.set_busy_timeout(int(CHECKPOINT_SECONDS * 1000))
            try:
                row = db.first("pragma wal_checkpoint(truncate)")
                if row is None or row[0]:
                    return False
                with db.writing(durable=False):
                    wipe(db, self.path)
                    db.execute("delete from meta where key = 'erasing'")
            except apsw.BusyError:
                return False
            finally:
                db.set_busy_timeout(BUSY_MS)
        return True

    def load_items(self, db: SqliteDb, items: Sequence[Item], *, gone: Collection[Item]) -> None:
        from commonplace.stores.sqlite.items import load  # noqa: PLC0415 - only what moves a store needs it

        load(db, items, gone=gone)

    # The file

    def size(self) -> int:
        """Return how many bytes its files take up."""
        paths = [self.path + side for side in ("", "-wal", "-shm")]
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))

    def read_mark(self) -> tuple[str, int] | None:
        """Return the store's name and the number of the last durable write, as noted beside the database."""
        return self._lock.read_mark() if self._lock else None

    @contextlib.contextmanager
    def exclude_writers(self) -> Iterator[None]:
        """Keep every writer out; for upkeep."""
        with self._lock.hold() if self._lock else self._private:
            yield

    def reopen(self) -> None:
        """Open a database that was replaced as a whole: migrate it and note its last number anew."""
        self.close()
        with self.writing(durable=True):
            pass

    def close(self) -> None:
        self._pool.close()
        if self._lock:
            self._lock.close()

    # Connections

    @contextlib.contextmanager
    def using(self) -> Iterator[SqliteDb]:
        """Borrow a connection; errors of the driver are translated."""
        waiting = self._private if self._lock is None else contextlib.nullcontext()
        with waiting, translate_errors(self.path), self._pool.lend(self._open) as db:
            yield db

    @contextlib.contextmanager
    def reading(self) -> Iterator[SqliteDb]:
        """See one state of the store throughout."""
        with self.using() as db, db.reading():
            yield db

    @contextlib.contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqliteDb]:
        """Open a transaction in turn with all other writers; a durable one is numbered and on disk when it ends."""
        with self.using() as db:
            if self._lock is None:
                with db.writing(durable=durable):
                    yield db
                return
            with self._lock.hold():
                with db.writing(durable=durable):
                    yield db
                    number = _count(db) if durable else None
                if number:
                    self._lock.mark(*number)

    def _connect(self) -> SqliteDb:
        return SqliteDb(self.path, vec=self._vec)

    def _open(self) -> SqliteDb:
        if self._lock is not None:
            _make_file(self.path)
        db = self._connect()
        try:
            if _identity(db) != (APPLICATION_ID, NEWEST):
                with self._lock.hold() if self._lock else contextlib.nullcontext():
                    prepare(db, self.path, _scripts(), fills={3: SqliteDb.encode_vectors}, product=PRODUCT)
        except BaseException:
            db.close()
            raise
        return db


def _scripts() -> list[str]:
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    scripts = []
    for number in range(1, NEWEST + 1):
        with open(os.path.join(folder, f"{number:04d}.sql"), encoding="utf-8") as file:
            scripts.append(file.read())
    return scripts


def _identity(db: SqliteDb) -> tuple[int, int]:
    return int(db.pragma("application_id")), int(db.pragma("user_version"))


def _make_file(path: str) -> None:
    """Make the file private from the first byte; SQLite gives its side files the same rights."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)) if not os.path.exists(path) else None
    except OSError as error:
        raise StoreError(f"the store {path!r} cannot be made: {error.strerror}") from error


def _make(db: SqliteDb, changes: Sequence[Change]) -> tuple[list[Outcome], list[bool]]:
    """Make changes inside a transaction; return what came of each, and whether bytes are to vanish for it."""
    outcomes = [rules.make(db, change) for change in changes]
    rules.pin_checkouts(db, changes, outcomes)
    erased = [_erases(*pair) for pair in zip(changes, outcomes, strict=True)]
    if any(erased):
        db.execute("insert or replace into meta values ('erasing', 1)")
    return outcomes, erased


def _erases(change: Change, outcome: Outcome) -> bool:
    """Return whether bytes are to vanish; a dropped scope names its records only, and may have held documents."""
    expired = isinstance(change, Delete) and change.emit is not None and change.emit == "memory.expired"
    return isinstance(change, DropScope) or (isinstance(change, _ERASING) and bool(outcome.gone) and not expired)


def _count(db: SqliteDb) -> tuple[str, int]:
    """Number a durable write; the store's own name goes with the number."""
    sql = (
        "update meta set value = value + 1 where key = 'sequence'"
        " returning (select value from meta where key = 'store'), value"
    )
    [(store, sequence)] = db.every(sql)
    return str(store), int(sequence)

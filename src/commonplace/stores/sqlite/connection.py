"""Connections to one SQLite file: pooled, locked fairly, errors translated, migrated.

No daemon stands between the processes that share a store, so every connection carries the whole contract: a write takes
the lock file first (so that writers are served evenly instead of by luck), then the database's own lock, and is on disk
when it returns.  Nothing here knows what a record is.
"""

from __future__ import annotations

import contextlib
import os
import threading
from _weakrefset import WeakSet  # `weakref` costs a recall two milliseconds, and threading has loaded this already
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import apsw

from commonplace.model.errors import (
    CommonplaceError,
    InvalidInput,
    SchemaTooNew,
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreReadOnly,
)
from commonplace.stores.sqlite.dialect import SqliteDb
from commonplace.stores.sqlite.lock import WAIT_SECONDS

Fill: TypeAlias = Callable[[SqliteDb], None]
Work: TypeAlias = Callable[[SqliteDb], Any]
Writing: TypeAlias = Callable[..., contextlib.AbstractContextManager[SqliteDb]]

APPLICATION_ID = 0x436F6D6D  # "Comm"
MAX_SHARED_WRITES = 64  # writes in one transaction: other processes wait as long as it takes
FORK_SECONDS = 5.0  # how long a fork waits for other threads to give their connections back
CHECKPOINT_SECONDS = 1.0  # how long an erasure waits for readers to let the log be emptied


class Pool:
    """The connections of one store, each lent to one thread at a time.  None of them is open while the process forks.

    SQLite counts its locks by process: a forked child takes those of its parent for its own, and the parent, which then
    believes itself alone, removes the log from under the child.  Acknowledged writes of a third process were lost so.
    """

    def __init__(self, *, on_disk: bool) -> None:
        self._on_disk = on_disk  # what is in memory is copied whole
        self._idle: list[SqliteDb] = []
        self._lent = 0
        self._torn = False
        self._guard = threading.Condition()
        _pools.add(self)

    @contextlib.contextmanager
    def lend(self, opened: Callable[[], SqliteDb], is_current: Callable[[SqliteDb], bool]) -> Iterator[SqliteDb]:
        """Lend a connection: an idle one, or a new one; one to a file that was replaced is closed."""
        with self._guard:
            if self._torn:
                raise StoreError("this process was forked in the middle of a read or write and cannot use the store")
            connection = self._idle.pop() if self._idle else None
            while connection is not None and not is_current(connection):
                connection.close()
                connection = self._idle.pop() if self._idle else None
            self._lent += 1
        try:
            connection = connection or opened()
            yield connection
        finally:
            with self._guard:
                self._lent -= 1
                self._idle += [connection] if connection else []
                self._guard.notify_all()

    def close(self) -> None:
        """Close what is not lent."""
        with self._guard:
            while self._idle:
                self._idle.pop().close()

    def rest(self) -> None:
        """Before a fork: wait until nothing is lent, close everything, and lend nothing until it is over."""
        self._guard.acquire()
        self._guard.wait_for(lambda: not self._lent, timeout=FORK_SECONDS)
        if self._on_disk:
            self.close()

    def wake(self, *, child: bool) -> None:
        """After a fork: lend again, unless a connection came along into the child."""
        if child:
            self._guard, self._torn = threading.Condition(), self._torn or (self._on_disk and self._lent > 0)
        else:
            self._guard.release()


_pools: WeakSet[Pool] = WeakSet()
_resting: list[Pool] = []
_forking = threading.Lock()


def _before_fork() -> None:
    _forking.acquire()
    _resting.extend(_pools)
    for pool in _resting:
        pool.rest()


def _after_fork(*, child: bool) -> None:
    while _resting:
        _resting.pop().wake(child=child)
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(child=False),
        after_in_child=lambda: _after_fork(child=True),
    )


class SharedWrite:
    """One caller's part of a shared transaction: what to do, and what came of it."""

    def __init__(self, work: Work, *, durable: bool) -> None:
        self.work = work
        self.durable = durable
        self.result: Any = None
        self.error: BaseException | None = None
        self.settled = False  #: once woken: it was made or refused; else it is its turn to lead
        self.woken = threading.Event()

    def make(self, db: SqliteDb, *, alone: bool) -> None:
        """Do it whole or not at all; what it raises is its caller's alone, unless the transaction ended with it."""
        if alone:
            self.result = self.work(db)
            return
        db.execute("savepoint turn")
        try:
            self.result = self.work(db)
        except _OWN as error:
            if not db.in_transaction:
                raise
            self.error = error
            db.execute("rollback to turn")
        db.execute("release turn")

    def take_result(self) -> Any:
        """Return the result to its caller, or raise the error."""
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error  # it knows the frames that know it: until that is noticed, what failed would stay open

    def abandon(self, error: BaseException) -> None:
        """Note that the transaction failed as a whole; an error that was this one's own stays."""
        if self.error is None:  # each raises an error of their own, and what stopped the leader did not stop them
            shared = isinstance(error, StoreError)
            self.error = type(error)(*error.args) if shared else StoreBusy("a write was given up with another one")
            self.error.__cause__ = error


#: What a turn may raise without ending the transaction for the others.
_OWN = (CommonplaceError, apsw.Error, ValueError, TypeError, ArithmeticError)


class GroupCommit:
    """Threads that write at once share one transaction, and with it one wait for the disk: the slow part of a write.

    The first to come leads: it does the work of all that wait, each in a savepoint, and commits.  No one gets a result
    before that.  Who comes meanwhile waits, and the first of them leads the next.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: list[SharedWrite] = []
        self._led = False
        self._pid = os.getpid()

    def run(self, writing: Writing, work: Work, *, durable: bool) -> Any:
        """Do some work in a transaction, which ``writing`` opens; when it returns, that is committed."""
        if self._pid != os.getpid():  # a forked child: the thread that led is not here to continue
            self._guard, self._waiting, self._led, self._pid = threading.Lock(), [], False, os.getpid()
        turn = SharedWrite(work, durable=durable)
        with self._guard:
            self._waiting.append(turn)
            leads, self._led = not self._led, True
        if not leads and not turn.woken.wait(WAIT_SECONDS):
            self._leave(turn)
        if not turn.settled:
            self._lead(writing)
        return turn.take_result()

    def _leave(self, turn: SharedWrite) -> None:
        """Give up waiting, unless the leader has begun with it."""
        with self._guard:
            if turn in self._waiting and not turn.woken.is_set():
                self._waiting.remove(turn)
                raise StoreBusy(f"other threads have been writing for {WAIT_SECONDS:.0f} s")
        turn.woken.wait()

    def _lead(self, writing: Writing) -> None:
        """Make what waits; the caller's own is the first of it."""
        with self._guard:
            turns, self._waiting = self._waiting[:MAX_SHARED_WRITES], self._waiting[MAX_SHARED_WRITES:]
        try:
            with writing(durable=any(turn.durable for turn in turns)) as db:
                for turn in turns:
                    turn.make(db, alone=len(turns) == 1)
        except BaseException as error:
            for turn in turns[1:]:  # the first is the caller's own: this raises for it
                turn.abandon(error)
            raise
        finally:
            with self._guard:
                self._led = bool(self._waiting)
                if self._waiting:
                    self._waiting[0].woken.set()
            for turn in turns:
                turn.settled = True
                turn.woken.set()


#: What an error of the driver means, first match first; the cause stays.
_ERRORS: tuple[tuple[Any, type[CommonplaceError], str], ...] = (
    (apsw.BusyError, StoreBusy, "the store {0!r} is locked; nothing was changed"),
    ((apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError), StoreDamaged,
     "the store {0!r} is damaged ({1}); run `commonplace doctor`"),
    (UnicodeEncodeError, InvalidInput,
     "text with half a character in it, a lone surrogate, can be neither kept nor found"),
    (apsw.FullError, StoreError, "the disk of {0!r} is full; nothing was changed"),
    (apsw.ReadOnlyError, StoreReadOnly, "the store {0!r} cannot be written to; nothing was changed"),
    ((apsw.CantOpenError, PermissionError, FileNotFoundError, IsADirectoryError), StoreError,
     "the store {0!r} cannot be opened: {1}"),
    (apsw.Error, StoreError, "the store {0!r} failed: {1}"),
)  # fmt: skip


@contextlib.contextmanager
def translate_errors(path: str) -> Iterator[None]:
    """Translate errors of the driver."""
    try:
        yield
    except CommonplaceError:  # one of ours may be a ``PermissionError`` as well
        raise
    except (apsw.Error, UnicodeError, OSError) as error:
        for kinds, translated, message in _ERRORS:
            if isinstance(error, kinds):
                raise translated(message.format(path, error)) from error
        raise


def prepare(db: SqliteDb, path: str, scripts: list[str], *, fills: Mapping[int, Fill], product: str) -> None:
    """Bring a store to the newest schema, each step in one transaction; refuse one that is newer.

    What a script cannot work out itself is filled in after it, by its number.  The caller holds the writer lock, so of
    two processes that migrate one waits.
    """
    with translate_errors(path):
        version = int(db.pragma("user_version"))
        if version == 0 and not db.execute("select 1 from sqlite_schema").fetchone():
            db.execute("pragma page_size = 8192")  # a vector of 256 floats then wastes little of a page
            db.execute("pragma journal_mode = wal")
            db.execute(f"pragma application_id = {APPLICATION_ID}")
        elif int(db.pragma("application_id")) != APPLICATION_ID:
            raise StoreError(f"{path!r} is a database, but not a Commonplace store")
        if version > len(scripts):
            raise _too_new(db, path, version, len(scripts), product)
        for number, script in enumerate(scripts[version:], start=version + 1):
            with db.writing(durable=True):
                db.every(script)
                if number in fills:
                    fills[number](db)
                _name_store(db, product)
                db.execute(f"pragma user_version = {number}")


def _name_store(db: SqliteDb, product: str) -> None:
    """Name the store and number its writes from 0, in the transaction that makes it: a crash leaves none without."""
    rows = [("store", os.urandom(8).hex()), ("sequence", 0)]
    db.executemany("insert or ignore into meta values (?, ?)", rows)
    db.execute("insert or replace into meta values ('written_by', ?)", (product,))


def _too_new(db: SqliteDb, path: str, found: int, known: int, product: str) -> SchemaTooNew:
    writer = db.first("select value from meta where key = 'written_by'")
    return SchemaTooNew(
        f"the store {path!r} was written by {writer[0] if writer else 'a later Commonplace'} (schema {found}); "
        f"this is {product} (schema {known}). Nothing was changed."
    )

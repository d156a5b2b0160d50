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

from commonplace.model.changes import Change, Delete, DeleteChunks, DeleteDocuments, DropScope, Outcome, Touch
from commonplace.model.errors import StoreBusy, StoreError, StoreReadOnly, StoreReplaced
from commonplace.model.jobs import Claim, Job, Skipped
from commonplace.model.ports import Tally
from commonplace.model.queries import State
from commonplace.model.records import Kind
from commonplace.stores.rows import micros, scope_at
from commonplace.stores.sql import changes as rules
from commonplace.stores.sql.store import NOT_DURABLE, SqlStore
from commonplace.stores.sqlite.connection import (
    APPLICATION_ID,
    CHECKPOINT_SECONDS,
    GroupCommit,
    Pool,
    prepare,
    translate_errors,
)
from commonplace.stores.sqlite.dialect import BUSY_MS, SqliteDb
from commonplace.stores.sqlite.lock import WriterLock
from commonplace.stores.sqlite.place import (
    LOG,
    can_write,
    file_id,
    has_log,
    inode_of,
    is_log_doubtful,
    read_uri,
    set_foreign_log_aside,
)
from commonplace.version import PRODUCT

if TYPE_CHECKING:
    from commonplace.model.items import Item

LOOK_SECONDS = 0.1  # between two looks for an event; a look takes some 20 microseconds
MAX_UNCOUNTED = 1_000  # recalls that wait to be counted; older ones are not counted
LOST = "lost"  # under which a store remembers that writes are missing: alone its own, with a name another store's
NEWEST = 8  # the number of the last script in migrations/
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
        self._place: tuple[int, int] | None = None  # the file that is open
        self._untold: set[str] = set()  # who does not know yet that it was replaced
        self._reads_only = False
        self._copy: str | None = None  # a folder with a copy, where the file cannot be opened as it is
        self._uncounted: list[Touch] = []  # recalls that the next write counts
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

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        """See ``Store``; from the counts that triggers keep, so it takes as long in a large store as in a small one."""
        sql = (
            "select s.path, k.kind, k.state, k.count, k.bytes, k.scope from stock k join scope s on s.id = k.scope"
            " where k.count > 0"
        )
        expired = (
            "select scope, kind, count(*), sum(length(cast(content as blob))) from record"
            " where expires_at is not null and expires_at <= ? and archived_at is null and held = 0 group by 1, 2"
        )

        def count(db: SqliteDb) -> list[Tally]:
            counted = {(scope, kind, state): (path, n, size) for path, kind, state, n, size, scope in db.every(sql)}
            for scope, kind, n, size in db.every(expired, [micros(at)]) if at else ():
                path, live, held = counted.pop((scope, kind, State.LIVE.value))
                counted |= {(scope, kind, State.LIVE.value): (path, live - n, held - size)} if live > n else {}
                counted[scope, kind, State.EXPIRED.value] = path, n, size
            kinds = {kind.value: kind for kind in Kind}
            rows = [(path, kind, state, n, size) for (_, kind, state), (path, n, size) in counted.items()]
            return [
                Tally(scope=scope_at(path), what=kinds.get(kind, kind), state=State(state), count=n, bytes=size)
                for path, kind, state, n, size in sorted(rows)
            ]

        with self.reading() as db:
            return count(db)

    # Writing

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        if not changes:
            return []
        durable = not all(isinstance(change, NOT_DURABLE) for change in changes)

        def make(db: SqliteDb) -> tuple[list[Outcome], list[bool], tuple[int, str] | None]:
            _make(db, self._take_uncounted())
            outcomes, erased = _make(db, changes)
            return outcomes, erased, self._append_audit(db, changes, outcomes, durable=durable)

        if self._lock is None or self._is_impatient:
            try:
                with self.writing(durable=durable) as db:
                    outcomes, erased, last = make(db)
            except StoreBusy:
                return self._count_later(changes)
        else:
            with translate_errors(self.path):
                outcomes, erased, last = self._commits.run(self.writing, make, durable=durable)
        self._note_audit(last)
        if any(erased) and not self._try_scrub():
            outcomes = [outcome.replace(erasing=was) for outcome, was in zip(outcomes, erased, strict=True)]
        return outcomes

    def _count_later(self, changes: Sequence[Change]) -> list[Outcome]:
        """Leave the counting of recalls to the next write of this process; raise the error for anything else."""
        touches = [change for change in changes if isinstance(change, Touch)]
        if len(touches) < len(changes):
            raise  # noqa: PLE0704 - called while the error is handled
        self._uncounted = [*self._uncounted, *touches][-MAX_UNCOUNTED:]
        return [Outcome() for _ in changes]

    def _take_uncounted(self) -> list[Touch]:
        taken, self._uncounted = self._uncounted, []
        return taken

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
        mark = self._lock.read_mark() if self._lock else None
        return mark[:2] if mark else None

    @contextlib.contextmanager
    def exclude_writers(self) -> Iterator[None]:
        """Keep every writer out; for upkeep."""
        with self._lock.hold() if self._lock else self._private:
            yield

    def reopen(self) -> None:
        """Open a database that was replaced as a whole: migrate it and note its last number anew."""
        self.close()
        self.forget_mark()
        with self.writing(durable=True):
            pass

    def forget_mark(self) -> None:
        """Miss nothing of what was here before; the next write notes its own number."""
        if self._lock:
            with self._lock.hold():
                self._lock.mark("-", 0, 0)

    def require_current(self) -> None:
        """See ``Store``; whoever asks is told once."""
        with self.using():
            pass
        self._tell_replaced("check")

    def close(self) -> None:
        if self._uncounted:
            with contextlib.suppress(StoreError), self.without_waiting():
                self.apply(self._take_uncounted())
        self._pool.close()
        self._place = None
        self._untold.clear()
        if self._lock:
            self._lock.close()
        if self._copy is not None:
            import shutil  # noqa: PLC0415 - only what cannot be opened in its place is copied

            shutil.rmtree(self._copy, ignore_errors=True)
            self._copy = None

    # Connections

    @contextlib.contextmanager
    def using(self) -> Iterator[SqliteDb]:
        """Borrow a connection; errors of the driver are translated."""
        waiting = self._private if self._lock is None else contextlib.nullcontext()
        with waiting, translate_errors(self.path), self._pool.lend(self._open, self._is_current) as db:
            yield db

    @contextlib.contextmanager
    def reading(self) -> Iterator[SqliteDb]:
        """See one state of the store throughout."""
        with self.using() as db, db.reading():
            yield db

    @contextlib.contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[SqliteDb]:
        """Open a transaction in turn with all other writers; a durable one is numbered and on disk when it ends.

        A caller that does not wait (``without_waiting``) gets ``StoreBusy`` at once if somebody else is writing.
        """
        with self.using() as db:
            if self._lock is None:
                with db.writing(durable=durable):
                    yield db
                return
            if self._reads_only:
                raise StoreReadOnly(f"the store {self.path!r} can only be read here; nothing was changed")
            with self._lock.hold(wait=not self._is_impatient), self._own_wait(db):
                self._refuse_replaced(db)
                with db.writing(durable=durable):
                    yield db
                    number = self._count(db) if durable else None
                if number:
                    self._lock.mark(*number, inode_of(db.place))

    @contextlib.contextmanager
    def _own_wait(self, db: SqliteDb) -> Iterator[None]:
        """Wait for the database's own lock, which another program may hold, as long as the caller waits."""
        if not self._is_impatient:
            yield
            return
        db.set_busy_timeout(0)
        try:
            yield
        finally:
            db.set_busy_timeout(BUSY_MS)

    def _count(self, db: SqliteDb) -> tuple[str, int]:
        """Number a durable write; the store's own name goes with the number."""
        sql = (
            "update meta set value = value + 1 where key = 'sequence'"
            " returning (select value from meta where key = 'store'), value"
        )
        [(store, sequence)] = db.every(sql)
        mark = self._lock.read_mark() if self._lock else None
        if mark is not None and (mark[0] != store or mark[1] >= sequence) and mark[1]:
            remember_loss(db, mark[0], mark[1] if mark[0] != store else mark[1] - sequence + 1, own=mark[0] == store)
            self.add_notice(
                f"writes are missing that were made to {self.path!r} before; `commonplace doctor` says which"
            )
        return str(store), int(sequence)

    def _connect(self, path: str, *, reads_only: bool = False) -> SqliteDb:
        return SqliteDb(path, vec=self._vec, reads_only=reads_only)

    def _open(self) -> SqliteDb:
        if self._lock is None:
            return self._prepared(self._connect(self.path))
        if self._reads_only or not can_write(self.path):
            return self._open_for_reading()
        _make_file(self.path)
        if is_log_doubtful(self.path, self._lock):
            with self._lock.hold():
                aside = set_foreign_log_aside(self.path, self._lock)
            if aside:
                self.add_notice(f"the log beside {self.path!r} is another database's: it was set aside as {aside!r}")
        db = self._prepared(self._connect_to_file())
        if self._place not in (None, db.place):
            self._untold = {"write", "check"}
        self._place = db.place
        return db

    def _connect_to_file(self) -> SqliteDb:
        """Open the file that lies there, and know which one it is."""
        while True:
            place = file_id(self.path)
            db = self._connect(self.path)
            db.place = file_id(self.path)
            if place is not None and place == db.place:
                return db
            db.close()
            _make_file(self.path)

    def _prepared(self, db: SqliteDb, *, lock: bool = True) -> SqliteDb:
        """Return a connection to a store of the newest schema."""
        try:
            if _identity(db) != (APPLICATION_ID, NEWEST):
                with self._lock.hold() if self._lock and lock else contextlib.nullcontext():
                    prepare(db, self.path, _scripts(), fills=_FILLS, product=PRODUCT)
        except BaseException:
            db.close()
            raise
        return db

    def _open_for_reading(self) -> SqliteDb:
        """Open a store that cannot be written to: as it is, or a copy if it has a log to replay, or an older schema."""
        self._reads_only = True
        self.add_notice(f"{self.path!r} can only be read here, so nothing is saved or counted")
        if self._copy is None and not has_log(self.path):
            db = self._connect(read_uri(self.path), reads_only=True)
            if _identity(db) == (APPLICATION_ID, NEWEST):
                return db
            db.close()
        if self._copy is None:
            import shutil  # noqa: PLC0415 - see close
            import tempfile  # noqa: PLC0415 - likewise

            self._copy = tempfile.mkdtemp(prefix="commonplace-")
            for side in ("", LOG) if has_log(self.path) else ("",):
                shutil.copyfile(self.path + side, os.path.join(self._copy, "copy.db" + side))
        return self._prepared(self._connect(os.path.join(self._copy, "copy.db")), lock=False)

    # The file that lies there

    def _is_current(self, db: SqliteDb) -> bool:
        if db.place is None or file_id(self.path) == db.place:
            return True
        if not db.is_replaced:  # by what comes next, which may even have the same number
            db.is_replaced, self._place, self._untold = True, None, {"write", "check"}
        return False

    def _refuse_replaced(self, db: SqliteDb) -> None:
        """Refuse to write into a file that is not there any more, and once into the one that lies there instead."""
        if not self._is_current(db):
            self._untold.discard("write")
            raise StoreReplaced(_REPLACED.format(self.path))
        self._tell_replaced("write")

    def _tell_replaced(self, whom: str) -> None:
        if whom in self._untold:
            self._untold.discard(whom)
            raise StoreReplaced(_REPLACED.format(self.path))


def _fill_hashes(db: SqliteDb) -> None:
    from commonplace.stores.sql.hashes import fill_hashes  # noqa: PLC0415 - once in the life of a store

    fill_hashes(db)


_FILLS = {3: SqliteDb.encode_vectors, 8: _fill_hashes}
_REPLACED = (
    "the database {0!r} was removed or replaced by another program while it was open; nothing was written."
    " What lies there now is open from here on: look, and try again"
)


def remember_loss(db: SqliteDb, store: str, count: int, *, own: bool) -> None:
    """Remember that writes are missing until a person has accepted it, whatever is written meanwhile."""
    if own:
        sql = "insert into meta values (?, ?) on conflict (key) do update set value = value + excluded.value"
        db.execute(sql, (LOST, count))
    else:
        db.execute("insert or ignore into meta values (?, ?)", (f"{LOST} {store}", count))


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

"""Check, repair, back up and restore a SQLite store.

The database's own check does not notice a flipped bit in a text or a lost end of the log, so every row carries a hash
and the number of the last write is noted beside the file as well.
"""

from __future__ import annotations

import contextlib
import os
import stat
from array import array
from collections.abc import Iterator
from struct import unpack_from

import apsw

from commonplace.model.errors import InvalidInput, StoreDamaged, StoreError
from commonplace.model.ports import ProgressCallback, Repair, StoreProblem, no_progress
from commonplace.stores.codes import code_for_entry
from commonplace.stores.sql.hashes import accept_altered, hash_problems
from commonplace.stores.sql.vectors import COMING, PRESENT, embedder
from commonplace.stores.sqlite.connection import APPLICATION_ID, translate_errors
from commonplace.stores.sqlite.dialect import FLOAT_BYTES, SqliteDb
from commonplace.stores.sqlite.lock import NETWORKED, WriterLock, file_system
from commonplace.stores.sqlite.place import file_id, free_path, inode_of
from commonplace.stores.sqlite.salvage import carry, remove_files
from commonplace.stores.sqlite.store import LOST, SqliteStore, remember_loss

QUICK_ROWS = 200  # of each table, the newest: what a quick check looks at
SAFE_SQLITE = (3, 51, 3)  # earlier ones can damage a database that several processes write to

_MADE_ANEW = ("vector", "usage")  # tables whose loss loses nothing that anybody has written

_COUNTS = "select bucket, count(*), sum(length) from entry group by bucket"
_ENTRY = ("bucket", "length", "expires", "kind", "category")
_HELD = "select id, docs, length from bucket where docs <> 0 or length <> 0"
_STOCK = """
  select scope, kind, iif(archived_at is not null, 'archived', iif(held = 1, 'held', 'live')) as state,
         count(*), sum(length(cast(content as blob))) from record group by 1, 2, 3
  union all select d.scope, d.kind, 'live', count(*), sum(coalesce(length(cast(d.content as blob)), 0)
         + coalesce((select sum(length(cast(c.text as blob))) from chunk c where c.document = d.row), 0))
         from document d group by 1, 2
"""
_ENTRIES = """
  select row * 4 as id, scope * 4 + iif(archived_at is null and held = 0, 0, 3) as bucket, length,
         expires_at as expires, kind, category from record
  union all select row * 4 + 1, scope * 4 + 1, length, null, null, null from chunk
  union all select row * 4 + 2, scope * 4 + 2, length, expires_at, kind, category from version
"""


class SqliteMaintenance:
    """Checks, repairs and backs up one store."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def check(self, *, quick: bool = False, progress: ProgressCallback = no_progress) -> list[StoreProblem]:
        try:
            with self.store.using() as db:
                if quick:
                    found = [*hash_problems(db, last=QUICK_ROWS), *self._mark(db)]
                else:
                    found = [
                        *self._structure(db),
                        *self._index(db),
                        *hash_problems(db, progress=progress),
                        *self._vectors(db),
                        *self._mark(db),
                    ]
        except StoreDamaged as error:
            found = [StoreProblem(what=str(error), fixable=True)]
        return [*found, *self._surroundings()]

    def repair(self) -> Repair:
        salvaged = self._salvage() if self._is_damaged() else Repair()
        done = list(salvaged.done)
        with self.store.writing(durable=True) as db:
            db.execute("insert into entry_fts (entry_fts) values ('rebuild')")
            db.execute(f"delete from entry where id not in (select id from ({_ENTRIES}))")
            db.execute(
                f"insert or ignore into entry select id, bucket, length, expires, kind, category from ({_ENTRIES})"
            )
            columns = "bucket = w.bucket, length = w.length, expires = w.expires, kind = w.kind, category = w.category"
            wrong = " or ".join(f"entry.{name} is not w.{name}" for name in _ENTRY)
            db.execute(f"update entry set {columns} from ({_ENTRIES}) w where w.id = entry.id and ({wrong})")
            db.execute("delete from bucket")
            db.execute(f"insert into bucket {_COUNTS}")
            db.execute("delete from stock")
            db.execute(f"insert into stock {_STOCK}")
            if _misfits(db):
                db.encode_vectors()
                done.append("the codes of vectors were made anew")
            altered = accept_altered(db)
        done.append("the full-text index and its statistics were built anew")
        for path in self._files():
            os.chmod(path, 0o600)
        if self.store.scrub():
            done.append("the write-ahead log was emptied")
        kept = [one for one, has_file in altered if has_file]
        lost = [one for one, has_file in altered if not has_file]
        return Repair(done=(*done, *kept), lost=(*salvaged.lost, *lost))

    def backup(self, path: str) -> int:
        target = os.path.abspath(path)
        if os.path.exists(target):
            raise InvalidInput(f"{path!r} is there already; a backup overwrites nothing")
        temporary = f"{target}.{os.getpid()}.part"
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with self.store.using() as db:
                count = _copy(db, temporary)
            os.rename(temporary, target)
            settle(os.path.dirname(target))
        except OSError as error:
            raise StoreError(f"the backup {path!r} cannot be written: {error.strerror}") from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        return count

    def restore(self, path: str) -> int:
        with opened_backup(path) as source, self.store.using() as db, self.store.exclude_writers():
            with db.backup("main", source, "main") as copying:
                copying.step(-1)
            count = _count_records(db)
        self.store.reopen()
        return count

    # Checks

    def _structure(self, db: SqliteDb) -> Iterator[StoreProblem]:
        for (line,) in db.every("pragma integrity_check(5)"):
            if line != "ok":
                yield StoreProblem(what=f"the database is damaged: {line}", fixable=True)
        for table, *_ in db.every("pragma foreign_key_check"):
            yield StoreProblem(what=f"a row of {table!r} belongs to nothing", fixable=False)
        if apsw.sqlite_lib_version() and _version(apsw.sqlite_lib_version()) < SAFE_SQLITE:
            yield StoreProblem(
                what=f"SQLite {apsw.sqlite_lib_version()} is not safe with several processes", fixable=False
            )

    def _index(self, db: SqliteDb) -> Iterator[StoreProblem]:
        try:
            db.execute("begin")
            db.execute("insert into entry_fts (entry_fts, rank) values ('integrity-check', 1)")
        except apsw.CorruptError:
            yield StoreProblem(what="the full-text index does not agree with the records", fixable=True)
        finally:
            db.execute("rollback")
        wrong = f"select count(*) from (select * from entry except select * from ({_ENTRIES}))"
        lacking = f"select count(*) from (select * from ({_ENTRIES}) except select * from entry)"
        if any(db.every(sql)[0][0] for sql in (wrong, lacking)):
            yield StoreProblem(what="what can be searched is not what is stored", fixable=True)
        if sorted(db.every(_COUNTS)) != sorted(db.every(_HELD)):
            yield StoreProblem(what="the statistics of the full-text index are wrong", fixable=True)
        if sorted(db.every("select * from stock where count <> 0 or bytes <> 0")) != sorted(db.every(_STOCK)):
            yield StoreProblem(what="the counts that `status` shows are wrong", fixable=True)

    def _vectors(self, db: SqliteDb) -> Iterator[StoreProblem]:
        if wrong := _misfits(db):
            yield StoreProblem(
                what=f"{wrong} vectors have no code that fits: what is near may not be found", fixable=True
            )

    def _mark(self, db: SqliteDb) -> Iterator[StoreProblem]:
        mark = self.store.read_mark()
        held = dict(db.every("select key, value from meta where key in ('store', 'sequence')"))
        if mark and mark[0] == held.get("store") and mark[1] > int(held.get("sequence", 0)):
            lost = mark[1] - int(held.get("sequence", 0))
            yield StoreProblem(what=f"the last {lost} writes are missing: the end of the log was lost", fixable=False)
        yield from self._remembered(db)
        if db.first("select 1 from meta where key = 'erasing'"):
            yield StoreProblem(
                what="an erasure waits for a reader to finish; old bytes are still in the log", fixable=True
            )

    def _remembered(self, db: SqliteDb) -> Iterator[StoreProblem]:
        """Losses that no person has accepted yet."""
        accept = "`commonplace doctor --accept-loss` accepts that"
        for key, count in db.every("select key, value from meta where key = ? or key glob ?", (LOST, f"{LOST} *")):
            what = f"{count} writes are missing: the end of the log was lost; {accept}"
            if key != LOST:
                what = f"another database, with {count} writes, was here before this one; {accept}"
            yield StoreProblem(what=what, fixable=False)

    def accept_loss(self) -> int:
        with self.store.writing(durable=True):
            pass  # what is missing now is noted with it
        with self.store.writing(durable=True) as db:
            return db.run("delete from meta where key = ? or key glob ?", (LOST, f"{LOST} *"))

    def _surroundings(self) -> Iterator[StoreProblem]:
        for path in self._files():
            if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
                yield StoreProblem(what=f"others may read {path!r}", fixable=True)
        kind = file_system(self.store.path)
        if kind in NETWORKED:
            yield StoreProblem(
                what=f"{self.store.path!r} is on a network file system ({kind}): not safe", fixable=False
            )

    def _files(self) -> list[str]:
        sides = ("", "-wal", "-shm", ".lock")
        return [path for side in sides if os.path.exists(path := self.store.path + side)]

    # Repairs

    def _is_damaged(self) -> bool:
        try:
            with self.store.using() as db:
                return db.every("pragma integrity_check(1)") != [("ok",)]
        except StoreDamaged:
            return True

    def _salvage(self) -> Repair:
        with self.store.exclude_writers():
            self.store.close()
            return _salvage_locked(self.store.path, self.store.read_mark())


def salvage(path: str) -> Repair:
    """Carry what can be read of a database that cannot even be opened into a new one in its place."""
    lock = WriterLock(path + ".lock")
    try:
        with lock.hold():
            return _salvage_locked(path, lock.read_mark())
    finally:
        lock.close()


def _salvage_locked(path: str, mark: tuple[str, int, int] | tuple[str, int] | None) -> Repair:
    """Copy what can be read into a new file; the damaged one stays beside it."""
    aside = free_path(f"{path}.damaged")
    fresh = SqliteStore(free_path(f"{path}.salvaged"))
    carried = carry(path, fresh)
    with fresh.writing() as db:  # the numbers of writes go on from the last one that was acknowledged
        held = dict(db.every("select key, value from meta where key in ('store', 'sequence')"))
        if mark and mark[0] == held["store"] and mark[1] > int(held["sequence"]):
            remember_loss(db, mark[0], mark[1] - int(held["sequence"]), own=True)
            db.note("sequence", mark[1])
        held = dict(db.every("select key, value from meta where key in ('store', 'sequence')"))
    fresh.scrub()
    fresh.close()
    for side in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + side, aside + side)
    os.rename(fresh.path, path)
    remove_files(fresh.path)
    settle(os.path.dirname(path))
    WriterLock(path + ".lock").mark(str(held["store"]), int(held["sequence"]), inode_of(file_id(path)))
    done = [f"what could be read was carried over to a new database; the damaged one is {aside!r}"]
    if not any(one.read for one in carried):
        return Repair(done=tuple(done), lost=("no row could be read; what has files comes back from them",))
    lost = [one.sentence for one in carried if one.lost and one.table not in _MADE_ANEW]
    return Repair(done=(*done, *(one.sentence for one in carried)), lost=tuple(lost))


# Erased bytes: ``secure_delete`` overwrites a row that is deleted, but not the copies that were left behind when pages
# were split and rows moved from one to another: one erased text in some fifty could still be read in the file.  No
# reader ever looks at those bytes, so they can be overwritten in place.

_INNER, _LEAVES = (2, 5), (10, 13)  # the first byte of a page that holds rows; every other page begins with a 0
_MAX_PAGES = 2 << 24  # from here on the number of a following page could be taken for that first byte
_ZEROS = bytes(65_536)  # the largest page


def wipe(db: apsw.Connection, path: str) -> None:
    """Overwrite all bytes that belong to no row.

    Call in a write transaction that has changed nothing yet and will change something, with the log emptied before it:
    then the file is complete, no one else writes, and all other connections forget their copies of its pages.
    """
    size, pages = int(db.pragma("page_size")), int(db.pragma("page_count"))
    if pages >= _MAX_PAGES:
        return
    file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        for number in range(1, pages):  # the first page holds the schema
            page = file.xRead(size, number * size)
            for start, end in _slack(page):
                if page[start:end] != _ZEROS[: end - start]:
                    file.xWrite(_ZEROS[: end - start], number * size + start)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
    db.execute("pragma shrink_memory")  # this connection forgets its copies too


def _slack(page: bytes) -> Iterator[tuple[int, int]]:
    """Where a page holds no row: before the first one, and in each gap between two.  What makes no sense ends it."""
    if page[0] not in _INNER + _LEAVES:
        return
    gap, cells, content = unpack_from(">HHH", page, 1)
    start, end = (12 if page[0] in _INNER else 8) + 2 * cells, content or 65_536
    while start <= end <= len(page):
        yield start, end
        if not end <= gap <= len(page) - 4:
            return
        following, size = unpack_from(">HH", page, gap)
        start, end, gap = gap + 4, gap + size, following


# Codes of vectors


def _misfits(db: SqliteDb) -> int:
    """Count vectors without a code that fits, or of a wrong length, or of no entry; and codes of no vector."""
    wanted = "select e.bucket, e.id, e.expires, e.kind, e.category from vector v join entry e on e.id = v.entry"
    held = "select bucket, id, expires, kind, category from code"
    [(astray,)] = db.every(f"select count(*) from (select * from ({held}) except select * from ({wanted}))")
    return int(astray) + sum(1 for entry, data, code, length in _pairs(db) if not _fits(entry, data, code, length))


def _pairs(db: SqliteDb) -> Iterator[tuple[int, bytes, bytes | None, int]]:
    coded = "vector v left join code c on c.bucket = v.bucket and c.id = v.entry"
    for sql, keys in (
        (f"select v.entry, v.data, c.data from {coded}", PRESENT),
        ("select entry, data, code from beside", COMING),
    ):
        identity = embedder(db, keys)
        for entry, data, code in db.execute(sql):
            yield entry, data, code, FLOAT_BYTES * identity.dimensions if identity else 0


def _fits(entry: int, data: bytes, code: bytes | None, length: int) -> bool:
    try:
        return len(data) == length and code == code_for_entry(entry, array("f", data))
    except (ValueError, TypeError, OverflowError):  # its bytes are no numbers any more
        return False


# Copies


def _copy(db: apsw.Connection, path: str) -> int:
    """Copy a database into an empty file, complete and verified."""
    with translate_errors(path):
        target = apsw.Connection(path)
        try:
            with target.backup("main", db, "main") as copying:
                copying.step(-1)
            target.execute("pragma journal_mode = delete")  # one file, nothing beside it
            name = os.urandom(8).hex()  # its own: no log of the store it was made of may be replayed over it
            target.execute("update meta set value = ? where key = 'store'", [name])
            if list(target.execute("pragma integrity_check(1)")) != [("ok",)]:
                raise StoreDamaged(f"the copy {path!r} is damaged; run `commonplace doctor`")
            count = _count_records(target)
        finally:
            target.close()
    settle(path)
    return count


def finish_file(path: str) -> None:
    """Leave one file, without side files, flushed to the disk."""
    with translate_errors(path):
        db = apsw.Connection(path)
        try:
            db.execute("pragma journal_mode = delete")
            if list(db.execute("pragma integrity_check(1)")) != [("ok",)]:
                raise StoreDamaged(f"the copy {path!r} is damaged")
        finally:
            db.close()
    for side in (".lock", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + side)
    settle(path)


@contextlib.contextmanager
def opened_backup(path: str) -> Iterator[apsw.Connection]:
    """Open a backup for reading; refuse a file that is none, or is damaged."""
    if not os.path.isfile(path):
        raise InvalidInput(f"there is no backup {path!r}")
    with translate_errors(path):
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if int(db.pragma("application_id")) != APPLICATION_ID:
                raise InvalidInput(f"{path!r} is not a backup of Commonplace")
            damage = next(db.execute("pragma quick_check(1)"), None)
            if damage is None or damage[0] != "ok":
                raise StoreDamaged(f"the backup {path!r} is damaged ({damage}); nothing was changed")
            yield db
        finally:
            db.close()


def _count_records(db: apsw.Connection) -> int:
    [(count,)] = db.execute("select count(*) from record")
    return int(count)


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def settle(path: str) -> None:
    """Flush a file, or the list of a folder's files, to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)

"""Looking after a SQLite store: check everything, mend what can be mended, copy it, put a copy back.

The database's own check does not notice a flipped bit in a text or a lost end of the log, so every row carries a hash
and the number of the last write is kept beside the file as well.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

import apsw

from commonplace.model.changes import Load
from commonplace.model.errors import InvalidInput, StoreDamaged, StoreError
from commonplace.model.ports import Problem
from commonplace.model.records import Record
from commonplace.model.values import Value
from commonplace.stores.rows import FIELDS, row_hash, row_record, select_list
from commonplace.stores.sqlite import vectors
from commonplace.stores.sqlite.connection import APPLICATION_ID, every, first, mapped
from commonplace.stores.sqlite.store import SqliteStore

SAFE_SQLITE = (3, 51, 3)  # earlier ones can damage a database that several processes write to
NETWORKED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afpfs", "davfs")  # no shared memory there

_COUNTS = "select bucket, count(*), sum(length) from entry group by bucket"
_HELD = "select id, docs, length from bucket where docs <> 0 or length <> 0"
_ENTRIES = """
  select row * 4 as id, scope * 4 + iif(archived_at is null and held = 0, 0, 3) as bucket, length,
         expires_at as expires, kind, category from record
  union all select row * 4 + 1, scope * 4 + 1, length, null, null, null from chunk
  union all select row * 4 + 2, scope * 4 + 2, length, expires_at, kind, category from version
"""


class SqliteKeeper:
    """Looks after one store."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    def check(self) -> list[Problem]:
        """See ``Keeper``."""
        try:
            with self.store.using() as connection:
                found = [*self._structure(connection.db), *self._index(connection.db), *self._hashes(connection.db)]
                found += [*self._vectors(connection.db), *self._mark(connection.db)]
        except StoreDamaged as error:
            found = [Problem(what=str(error), fixable=True)]
        return [*found, *self._surroundings()]

    def repair(self) -> list[str]:
        """See ``Keeper``."""
        done = []
        if self._is_damaged():
            done.append(self._salvage())
        with self.store.writing(durable=True) as db:
            db.execute("insert into entry_fts (entry_fts) values ('rebuild')")
            db.execute(f"delete from entry where id not in (select id from ({_ENTRIES}))")
            db.execute(
                f"insert or ignore into entry select id, bucket, length, expires, kind, category from ({_ENTRIES})"
            )
            db.execute("delete from bucket")
            db.execute(f"insert into bucket {_COUNTS}")
            if vectors.misfits(db):
                vectors.encode_all(db)
                done.append("the codes of vectors were made anew")
            done += [_accepted(db, altered) for altered in list(_altered(db))]
        done.append("the full-text index and its statistics were built anew")
        for path in self._files():
            os.chmod(path, 0o600)
        if self.store.scrub():
            done.append("the write-ahead log was emptied")
        return done

    def backup(self, path: str) -> int:
        """See ``Keeper``."""
        target = os.path.abspath(path)
        if os.path.exists(target):
            raise InvalidInput(f"{path!r} is there already; a backup overwrites nothing")
        temporary = f"{target}.{os.getpid()}.part"
        try:
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with self.store.using() as connection:
                count = _copied(connection.db, temporary)
            os.rename(temporary, target)
            settle(os.path.dirname(target))
        except OSError as error:
            raise StoreError(f"the backup {path!r} cannot be written: {error.strerror}") from error
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        return count

    def restore(self, path: str) -> int:
        """See ``Keeper``."""
        with opened_backup(path) as source, self.store.using() as connection, self.store.locked():
            with connection.db.backup("main", source, "main") as copying:
                copying.step(-1)
            count = _records(connection.db)
        self.store.reopen()
        return count

    # Checks

    def _structure(self, db: apsw.Connection) -> Iterator[Problem]:
        for (line,) in every(db, "pragma integrity_check(5)"):
            if line != "ok":
                yield Problem(what=f"the database is damaged: {line}", fixable=True)
        for table, *_ in every(db, "pragma foreign_key_check"):
            yield Problem(what=f"a row of {table!r} belongs to nothing", fixable=False)
        if apsw.sqlite_lib_version() and _version(apsw.sqlite_lib_version()) < SAFE_SQLITE:
            yield Problem(what=f"SQLite {apsw.sqlite_lib_version()} is not safe with several processes", fixable=False)

    def _index(self, db: apsw.Connection) -> Iterator[Problem]:
        try:
            db.execute("begin")
            db.execute("insert into entry_fts (entry_fts, rank) values ('integrity-check', 1)")
        except apsw.CorruptError:
            yield Problem(what="the full-text index does not agree with the records", fixable=True)
        finally:
            db.execute("rollback")
        wrong = f"select count(*) from (select * from entry except select * from ({_ENTRIES}))"
        lacking = f"select count(*) from (select * from ({_ENTRIES}) except select * from entry)"
        if any(int((first(db, sql) or (0,))[0]) for sql in (wrong, lacking)):
            yield Problem(what="what can be searched is not what is stored", fixable=True)
        if sorted(every(db, _COUNTS)) != sorted(every(db, _HELD)):
            yield Problem(what="the statistics of the full-text index are wrong", fixable=True)

    def _hashes(self, db: apsw.Connection) -> Iterator[Problem]:
        for altered in _altered(db):
            what = f"version {altered.version} of record {altered.record!r} is not what was written: its hash is wrong"
            yield Problem(what=what, fixable=True)

    def _vectors(self, db: apsw.Connection) -> Iterator[Problem]:
        if wrong := vectors.misfits(db):
            yield Problem(what=f"{wrong} vectors have no code that fits: what is near may not be found", fixable=True)

    def _mark(self, db: apsw.Connection) -> Iterator[Problem]:
        marked = self.store.marked()
        held = dict(every(db, "select key, value from meta where key in ('store', 'sequence')"))
        if marked and marked[0] == held.get("store") and marked[1] > int(held.get("sequence", 0)):
            lost = marked[1] - int(held.get("sequence", 0))
            yield Problem(what=f"the last {lost} writes are missing: the end of the log was lost", fixable=False)
        if first(db, "select 1 from meta where key = 'erasing'"):
            yield Problem(what="an erasure waits for a reader to finish; old bytes are still in the log", fixable=True)

    def _surroundings(self) -> Iterator[Problem]:
        for path in self._files():
            if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
                yield Problem(what=f"others may read {path!r}", fixable=True)
        kind = _mounted(self.store.path)
        if kind in NETWORKED:
            yield Problem(what=f"{self.store.path!r} is on a network file system ({kind}): not safe", fixable=False)

    def _files(self) -> list[str]:
        sides = ("", "-wal", "-shm", ".lock")
        return [path for side in sides if os.path.exists(path := self.store.path + side)]

    # Repairs

    def _is_damaged(self) -> bool:
        try:
            with self.store.using() as connection:
                return every(connection.db, "pragma integrity_check(1)") != [("ok",)]
        except StoreDamaged:
            return True

    def _salvage(self) -> str:
        """Carry what can be read over into a new file; the damaged one is kept beside it."""
        aside = _free(f"{self.store.path}.damaged")
        fresh = SqliteStore(_free(f"{self.store.path}.salvaged"))
        with self.store.locked():
            saved = 0
            for versions, terms in _readable(self.store.path):
                fresh.apply([Load(versions=versions, terms=terms)])
                saved += 1
            fresh.scrub()
            fresh.close()
            self.store.close()
            for side in ("", "-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self.store.path + side, aside + side)
            os.rename(fresh.path, self.store.path)
        for side in ("-wal", "-shm", ".lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh.path + side)
        return f"{saved} records were carried over to a new database; the damaged one is {aside!r}"


class Altered(Value):
    """A row that is not what was written."""

    table: str
    row: int
    record: str
    version: int
    hash: str  #: what its hash would have to be


def _altered(db: apsw.Connection) -> Iterator[Altered]:
    names = ", ".join(f"t.{field}" for field in FIELDS)
    for table in ("record", "version"):
        sql = f"select {names}, t.hash, s.path, t.row from {table} t join scope s on s.id = t.scope order by t.row"
        for *fields, held, path, row in db.execute(sql):
            if (now := row_hash(fields, str(path))) != held:
                version = int(fields[FIELDS.index("version")])
                yield Altered(table=table, row=int(row), record=str(fields[0]), version=version, hash=now)


def _accepted(db: apsw.Connection, altered: Altered) -> str:
    """Take an altered row for what it is now, and let its file, if it has one, have the last word at the next sync."""
    db.execute(f"update {altered.table} set hash = ? where row = ?", (altered.hash, altered.row))
    held = first(db, "select 1 from file where record = ?", (altered.record,))
    if altered.table == "version" or not held:
        return (
            f"version {altered.version} of record {altered.record!r} was damaged and has no file: it stays as it is now"
        )
    db.execute("delete from file where record = ?", (altered.record,))
    return f"record {altered.record!r} was damaged: its file has the last word at the next sync"


def _readable(path: str) -> Iterator[tuple[tuple[Record, ...], tuple[tuple[str, ...], ...]]]:
    """Every record of a damaged database that can still be read, one by one."""
    try:
        db = apsw.Connection(path)
        most = int((first(db, "select max(row) from record") or (0,))[0] or 0)
    except apsw.Error:
        return
    sql = (
        f"select r.terms, {select_list('r')} from record r join scope s on s.id = r.scope"
        " left join usage u on u.record = r.row where r.row = ?"
    )
    for row in range(1, most + 1):
        with contextlib.suppress(apsw.Error, StoreDamaged, UnicodeError):
            found = first(db, sql, (row,))
            if found:
                yield (row_record(found[1:]),), (tuple(str(found[0]).split()),)
    db.close()


def _copied(db: apsw.Connection, path: str) -> int:
    """Copy a database into an empty file, whole and verified."""
    with mapped(path):
        target = apsw.Connection(path)
        try:
            with target.backup("main", db, "main") as copying:
                copying.step(-1)
            target.execute("pragma journal_mode = delete")  # one file, nothing beside it
            if every(target, "pragma integrity_check(1)") != [("ok",)]:
                raise StoreDamaged(f"the copy {path!r} is damaged; run `commonplace doctor`")
            count = _records(target)
        finally:
            target.close()
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
    return count


@contextlib.contextmanager
def opened_backup(path: str) -> Iterator[apsw.Connection]:
    """A backup that is one, and is whole; for reading."""
    if not os.path.isfile(path):
        raise InvalidInput(f"there is no backup {path!r}")
    with mapped(path):
        db = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            if int(db.pragma("application_id")) != APPLICATION_ID:
                raise InvalidInput(f"{path!r} is not a backup of Commonplace")
            damage = first(db, "pragma quick_check(1)")
            if damage is None or damage[0] != "ok":
                raise StoreDamaged(f"the backup {path!r} is damaged ({damage}); nothing was changed")
            yield db
        finally:
            db.close()


def _records(db: apsw.Connection) -> int:
    return int((first(db, "select count(*) from record") or (0,))[0])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _free(path: str) -> str:
    """The path, or the first numbered one that nothing stands at."""
    number, free = 0, path
    while os.path.exists(free):
        number += 1
        free = f"{path}-{number}"
    return free


def settle(folder: str) -> None:
    """Bring to the disk which files a folder has."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)


def _mounted(path: str) -> str | None:
    """The kind of file system a path is on, where that can be read."""
    try:
        with open("/proc/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return None
    around = [(point, kind) for point, kind in mounts if os.path.commonpath([path, point]) == point]
    return max(around, key=lambda mount: len(mount[0]), default=(None, None))[1]

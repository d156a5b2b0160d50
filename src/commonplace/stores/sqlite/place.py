"""Where a database lies: which file it is, whose log lies beside it, and how it is opened where nothing can be written.

A name is not a file: somebody may remove the database or move another one to its place while programs have it open,
and SQLite would then write into a file that nobody sees, or replay the log of the old file over the new one.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from commonplace.stores.sqlite.lock import WriterLock

LOG, SHARED = "-wal", "-shm"
UNRECOVERED = ".other"  # what is added to the name of a log that belongs to another file


def file_id(path: str) -> tuple[int, int] | None:
    """Return what tells a file from every other one that may come to lie there; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def inode_of(place: tuple[int, int] | None) -> int:
    """Return the number of a file, as marks note it."""
    return place[1] if place else 0


def can_write(path: str) -> bool:
    """Return whether a database can be written to: its folder takes a log, and its file changes."""
    if os.path.exists(path):
        return os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)
    return True  # whether it can be made is seen when it is


def has_log(path: str) -> bool:
    """Return whether a log with something in it lies beside a database."""
    try:
        return os.stat(path + LOG).st_size > 0
    except OSError:
        return False


def is_log_doubtful(path: str, lock: WriterLock) -> bool:
    """Return whether the log beside a database was written for another file than the one that lies there."""
    mark = lock.read_mark() if has_log(path) else None
    return mark is not None and mark[2] not in (0, inode_of(file_id(path)))


def set_foreign_log_aside(path: str, lock: WriterLock) -> str | None:
    """Move a log away that is not of this database; return where it is.  Call while the lock is held.

    A folder that was copied or moved has other files and the same store: its log is replayed if that gives a sound
    store of that name.  A backup has a name of its own, so no log is ever replayed over one.
    """
    mark = lock.read_mark()
    if mark is None or not is_log_doubtful(path, lock):
        return None
    if _name(path) in (None, mark[0]) and _is_own_log(path, mark[0]):  # None: all of it is in the log
        lock.mark(mark[0], mark[1], inode_of(file_id(path)))
        return None
    aside = free_path(path + LOG + UNRECOVERED)
    os.rename(path + LOG, aside)
    with contextlib.suppress(FileNotFoundError):  # it is of that log; who still has it open keeps it
        os.rename(path + SHARED, free_path(path + SHARED + UNRECOVERED))
    return aside


def free_path(path: str) -> str:
    """Return the path, or the first numbered one that nothing lies at."""
    number, free = 0, path
    while os.path.exists(free):
        number += 1
        free = f"{path}-{number}"
    return free


def _is_own_log(path: str, name: str) -> bool:
    """Return whether a copy of a database and the log beside it is a sound store of that name."""
    import shutil  # noqa: PLC0415 - it happens once in the life of a copied folder
    import tempfile  # noqa: PLC0415 - likewise

    with tempfile.TemporaryDirectory(prefix="commonplace-", dir=os.path.dirname(path)) as folder:
        copy = os.path.join(folder, "copy.db")
        for side in ("", LOG):
            shutil.copyfile(path + side, copy + side)
        try:
            db = apsw.Connection(copy)
            try:
                held = db.execute("select value from meta where key = 'store'").fetchall()
                sound = db.execute("pragma quick_check(1)").fetchall() == [("ok",)]
            finally:
                db.close()
        except (apsw.Error, UnicodeError):
            return False
    return sound and held == [(name,)]


def _name(path: str) -> str | None:
    """Return the store's name as the file itself has it, without its log."""
    try:
        db = apsw.Connection(read_uri(path), flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            row = db.execute("select value from meta where key = 'store'").fetchall()
        finally:
            db.close()
    except (apsw.Error, UnicodeError):
        return None
    return str(row[0][0]) if row else None


def read_uri(path: str) -> str:
    """Return a path as SQLite opens it where nothing changes: without its log, and without locks."""
    from urllib.parse import quote  # noqa: PLC0415 - a store that can be written to is opened by its path

    return f"file:{quote(path)}?mode=ro&immutable=1"

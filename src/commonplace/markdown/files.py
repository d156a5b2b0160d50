"""Files of a mirrored folder: listed, read and replaced so that no reader ever sees half of one."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

try:
    import fcntl
except ImportError:  # Windows: files are written one after the other within a process only
    fcntl = None  # type: ignore[assignment]

from commonplace.domain.errors import StoreError

TEMPORARY = ".tmp-"  # how a file that is being written begins; never a record
LEFTOVER_SECONDS = 3600  # a temporary file older than this was left by a process that died


@contextlib.contextmanager
def locked(folder: str) -> Iterator[None]:
    """One process at a time writes files there: an older version never lands on a newer one."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if fcntl:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def listed(folder: str) -> Iterator[tuple[str, int]]:
    """Path and stamp of every Markdown file of the folder, one level deep; links and hidden files are not ours.

    Plain tuples: this looks at every file before a recall.
    """
    for category in os.scandir(folder):
        if category.is_dir(follow_symlinks=False) and not category.name.startswith("."):
            for entry in os.scandir(category.path):
                name = entry.name
                if name.endswith(".md") and not name.startswith(".") and entry.is_file(follow_symlinks=False):
                    yield f"{category.name}/{name}", _stamp(entry.stat(follow_symlinks=False))


def stamp(folder: str, path: str) -> int | None:
    """A file's stamp; None if it is not there."""
    try:
        return _stamp(os.lstat(os.path.join(folder, path)))
    except OSError:
        return None


def read(folder: str, path: str) -> tuple[bytes, int]:
    """A file's bytes and its stamp; never through a link."""
    descriptor = os.open(os.path.join(folder, path), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return file.read(), _stamp(os.fstat(descriptor))


def replace(folder: str, path: str, data: bytes) -> int:
    """Write a file beside its place, then move it there; returns its stamp.

    The bytes are on disk before the name is: after a power cut the old file is there or the new one, whole.  The caller
    makes the name durable with ``settle`` before it relies on it.
    """
    target = os.path.join(folder, path)
    temporary = os.path.join(os.path.dirname(target), f"{TEMPORARY}{os.urandom(8).hex()}")
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
            stamp = _stamp(os.fstat(descriptor))
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise StoreError(f"{target!r} cannot be written: {error.strerror}") from error
    return stamp


def remove(folder: str, path: str) -> None:
    """Remove a file, if it is there."""
    try:
        os.unlink(os.path.join(folder, path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{os.path.join(folder, path)!r} cannot be removed: {error.strerror}") from error


def settle(folder: str, categories: set[str]) -> None:
    """Make the names in these subfolders durable."""
    for category in categories:
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(os.path.join(folder, category), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def sweep(folder: str) -> int:
    """Remove temporary files that a dead process left behind; returns how many."""
    oldest = time.time() - LEFTOVER_SECONDS
    removed = 0
    for category in os.scandir(folder):
        for entry in os.scandir(category.path) if category.is_dir(follow_symlinks=False) else ():
            if entry.name.startswith(TEMPORARY) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)
                removed += 1
    return removed


def _stamp(status: os.stat_result) -> int:
    """The same size, time and place on disk are taken for the same bytes."""
    return (status.st_mtime_ns * 1_000_003 + status.st_ino * 8191 + status.st_size) & 0x7FFF_FFFF_FFFF_FFFF

"""The file in which writers queue, and which holds what is known of the store from outside of it."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator

from commonplace.model.errors import StoreBusy, StoreError, StoreReadOnly

try:
    import fcntl
except ImportError:  # Windows: the database's own lock still serialises writers, only less evenly
    fcntl = None  # type: ignore[assignment]

WAIT_SECONDS = 30.0  # how long a writer waits for its turn
POLL_SECONDS = (0.0005, 0.004)  # between two looks at the lock file; random, so that no writer is always first
MOUNTS = "/proc/mounts"  # where Linux lists its file systems
NETWORKED = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afpfs", "davfs", "ceph", "glusterfs")
FORCE = "COMMONPLACE_NETWORK_STORE"  # set to 1: write on a network file system all the same
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
MARK_BYTES = 100  # and more than a mark has
_FIELDS = 3  # of a mark


class WriterLock:
    """The file in which writers queue, and which holds the store's high-water mark.

    The mark is the number of the last durable write, with the inode of the database that it was made to.  It lies
    outside of the database, so that a store which reopens below it is known to have lost its end, and a log that lies
    beside another file than its own is known not to belong to it.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._threads = threading.Lock()
        self._descriptor: int | None = None
        self._pid = os.getpid()

    @contextlib.contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        """Hold the lock for one transaction; never across a call to a model.  Without ``wait`` it is tried once."""
        seconds = WAIT_SECONDS if wait else 0.0
        deadline = time.monotonic() + seconds
        self._own()
        if not self._threads.acquire(timeout=seconds):
            raise StoreBusy(f"another thread has been writing to {self.path!r} for {seconds:.0f} s")
        try:
            descriptor = self._open()
            self._lock(descriptor, deadline)
            try:
                yield
            finally:
                if fcntl:
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def mark(self, store: str, number: int, inode: int) -> None:
        """Note the number of the write that was just committed; call while the lock is held."""
        with contextlib.suppress(OSError):  # the write is made: a mark that falls behind must not say otherwise
            os.pwrite(self._open(), f"{store} {number:020d} {inode:020d}\n".encode(), 0)

    def read_mark(self) -> tuple[str, int, int] | None:
        """Return the store and the number that were last noted, and the inode of its file: 0 if it was not noted."""
        try:
            text = self._read().decode("ascii", "replace").split()
        except OSError:
            return None
        if len(text) not in (_FIELDS - 1, _FIELDS) or not all(part.isdecimal() for part in text[1:]):
            return None
        return text[0], int(text[1]), int(text[2]) if len(text) == _FIELDS else 0

    def close(self) -> None:
        """Close the file, unless a thread is writing just now."""
        self._own()
        if self._threads.acquire(blocking=False):
            self._drop()
            self._threads.release()

    def _open(self) -> int:
        self._own()
        if self._descriptor is None:
            refuse_network(self.path)
            try:
                self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                kind = StoreReadOnly if error.errno in _READ_ONLY else StoreError
                what = "cannot be written to" if kind is StoreReadOnly else "cannot be opened"
                raise kind(f"the store {self.path!r} {what}: {error.strerror}; nothing was changed") from error
        return self._descriptor

    def _read(self) -> bytes:
        if self._descriptor is not None and self._pid == os.getpid():
            return os.pread(self._descriptor, MARK_BYTES, 0)
        with open(self.path, "rb") as file:  # not as `_open`: a store that can only be read has a mark, too
            return file.read(MARK_BYTES)

    def _drop(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _own(self) -> None:
        """Start afresh in a forked child: the thread that held the lock is not here to release it."""
        if self._pid != os.getpid():
            self._drop()
            self._threads, self._pid = threading.Lock(), os.getpid()

    def _lock(self, descriptor: int, deadline: float) -> None:
        while fcntl:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise StoreBusy(f"another process is writing to {self.path!r}; nothing was changed") from None
                import random  # noqa: PLC0415 - loads hashlib and more, and only a writer that waits needs it

                time.sleep(random.uniform(*POLL_SECONDS))  # noqa: S311 - a turn in a queue, not a secret
            except OSError as error:
                raise StoreError(
                    f"{self.path!r} cannot be locked ({error.strerror}), so nothing was written: a file system without"
                    " locks, such as some network drives, cannot hold a store; move it to a local disk"
                ) from error
            else:
                return


def refuse_network(path: str) -> None:
    """Refuse to write on a network file system, where locks and shared memory do not hold, unless it is forced."""
    kind = file_system(path)
    if kind in NETWORKED and os.environ.get(FORCE) != "1":
        raise StoreReadOnly(
            f"{path!r} is on a network file system ({kind}), where two machines would damage the store; nothing was"
            f" written.  Move it to a local disk, use a PostgreSQL store, or set {FORCE}=1 if one machine alone uses it"
        )


def file_system(path: str) -> str | None:
    """Return the kind of file system a path is on, where that can be read."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="replace") as file:
            mounts = [line.split()[1:3] for line in file]
    except OSError:
        return None
    place = os.path.realpath(path)
    points = [(point.replace("\\040", " ").rstrip("/") + "/", kind) for point, kind in mounts]
    around = [(len(point), number, kind) for number, (point, kind) in enumerate(points) if place.startswith(point)]
    return max(around)[2] if around else None  # of several at one place the last one lies on top

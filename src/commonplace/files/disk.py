"""List, read and replace files of a folder so that no reader ever sees half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import stat as modes
import time
from collections.abc import Collection, Iterator
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: files are written one after the other within a process only
    fcntl = None  # type: ignore[assignment]

from commonplace.model.errors import StoreBusy, StoreError

TEMPORARY = ".tmp-"  # how a file that is being written begins; never a record
LOCK_SECONDS = 30.0  # how long a writer waits for the lock; its holder is stopped or dead by then
POLL_SECONDS = 0.002
LEFTOVER_SECONDS = 3600  # a temporary file older than this was left by a process that died
FEW = 16  # files that are flushed one after the other
FLUSHERS = 8  # at once
LOG_BYTES = 65_536  # a longer log begins anew
OTHERS = frozenset({"prompts", "rollout_summaries", "skills"})  # folders of a project that hold no records


@contextlib.contextmanager
def folder_lock(folder: str, *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Hold the lock under which files of the folder are written: an older version never overwrites a newer one."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(f"the folder {folder!r} cannot be used: {error.strerror}") from error
    try:
        _wait_for(descriptor, folder, seconds)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, folder: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while fcntl:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise StoreBusy(f"another process has been writing to {folder!r} for {seconds:g} s") from None
            time.sleep(POLL_SECONDS)
        except OSError as error:
            raise StoreError(f"{folder!r} cannot be locked: {error.strerror}; is it on a network?") from error
        else:
            return


def list_files(folder: str) -> Iterator[tuple[str, int]]:
    """Path and stamp of every Markdown file of the folder, one level deep; links and hidden files are not ours.

    Plain tuples: this looks at every file before a recall.
    """
    for category in _inside(folder):
        if category.is_dir(follow_symlinks=False) and not category.name.startswith(".") and category.name not in OTHERS:
            inside = f"{category.name}/"
            for entry in _inside(category.path):
                name = entry.name
                if name[-3:] == ".md" and name[0] != "." and entry.is_file(follow_symlinks=False):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # it was just removed or moved
                        continue
                    yield inside + name, _stamp(status)


def stamp(folder: str, path: str) -> int | None:
    """A file's stamp; None if it is missing."""
    try:
        return _stamp(os.lstat(os.path.join(folder, path)))
    except OSError:
        return None


def open_file(path: str, *, limit: int | None = None, links: bool = True) -> BinaryIO:
    """Open a file for reading; one that is no plain file, or has more bytes than ``limit``, is not opened.

    Raises an ``OSError`` that says so.  A pipe is not waited for, and a device is not touched.
    """
    _check(os.stat(path, follow_symlinks=links), limit, or_link=not links)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW)
    file = open(os.open(path, flags), "rb")  # noqa: SIM115 - the caller closes it
    try:
        _check(os.fstat(file.fileno()), limit)  # it may be another one meanwhile
    except OSError:
        file.close()
        raise
    return file


def _check(status: os.stat_result, limit: int | None, *, or_link: bool = False) -> None:
    if not modes.S_ISREG(status.st_mode) and not (or_link and modes.S_ISLNK(status.st_mode)):
        raise OSError(errno.EINVAL, "it is not a regular file")
    if limit is not None and status.st_size > limit:
        raise OSError(errno.EFBIG, f"it has {status.st_size} bytes, and at most {limit} are read")


def read_rest(file: BinaryIO, *, limit: int) -> bytes:
    """Return what an open file holds, which may have grown since it was opened; more than ``limit`` is refused."""
    data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit} bytes")
    return data


def read_text(path: str, *, limit: int) -> str:
    """Return the text of a file of at most ``limit`` bytes, with every end of a line as a line feed."""
    with open_file(path, limit=limit) as file:
        return read_rest(file, limit=limit).decode().replace("\r\n", "\n").replace("\r", "\n")


def reason(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file cannot be read, as the end of a sentence."""
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or str(error)


def read(folder: str, path: str, *, limit: int) -> tuple[bytes, int]:
    """A file's bytes and its stamp; never through a link, and none that is larger than the limit."""
    with open_file(os.path.join(folder, path), limit=limit, links=False) as file:
        return read_rest(file, limit=limit), _stamp(os.fstat(file.fileno()))


def read_known(folder: str, paths: Collection[str], *, limit: int = 4 * 1024 * 1024) -> dict[str, bytes]:
    """Return the contents of those of these files that can be read."""
    found: dict[str, bytes] = {}
    for path in paths:
        with contextlib.suppress(OSError):
            found[path] = read(folder, path, limit=limit)[0]
    return found


def replace(folder: str, path: str, data: bytes) -> int:
    """Write a temporary file, then rename it; returns its stamp.

    No reader ever sees half of it.  A power cut before ``flush_files`` may still leave an empty file or the old one.
    For a file that people edit see ``swap``: this one writes over whatever is there.
    """
    target = os.path.join(folder, path)
    temporary, stamp = write_temporary(folder, path, data)
    try:
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise StoreError(f"{target!r} cannot be written: {error.strerror}") from error
    return stamp


def write_temporary(folder: str, path: str, data: bytes) -> tuple[str, int]:
    """Write a file next to where it belongs; return where it is, and its stamp."""
    target, inside = os.path.join(folder, path), os.path.dirname(path)
    if inside and os.path.islink(os.path.join(folder, inside)):  # `list_files` would not find it there
        raise StoreError(f"{target!r} cannot be written: its folder is a link")
    temporary = os.path.join(os.path.dirname(target), f"{TEMPORARY}{os.urandom(8).hex()}")
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            return temporary, _stamp(os.fstat(descriptor))
    except OSError as error:
        with contextlib.suppress(OSError):  # it is not there, or the next sync removes it
            os.unlink(temporary)
        raise StoreError(f"{target!r} cannot be written: {error.strerror}") from error


def remove(folder: str, path: str) -> None:
    """Remove a file, if it exists."""
    try:
        os.unlink(os.path.join(folder, path))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StoreError(f"{os.path.join(folder, path)!r} cannot be removed: {error.strerror}") from error


def open_log(path: str) -> int:
    """Open a log for appending; one that got too long begins anew.  Returns its descriptor."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
        flags |= os.O_TRUNC
    return os.open(path, flags, 0o600)


def flush_files(folder: str, written: Collection[str], removed: Collection[str]) -> None:
    """Flush files to disk, contents before names: many at once cost hardly more than one."""
    paths = [os.path.join(folder, path) for path in written]
    if len(paths) < FEW:
        for path in paths:
            _flush_file(path)
    else:  # a disk that is asked for many at once writes them together, one after the other it waits for each
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - only what writes many files needs it

        with ThreadPoolExecutor(FLUSHERS, thread_name_prefix="flush") as pool:
            list(pool.map(_flush_file, paths))
    for category in {os.path.dirname(path) for path in (*written, *removed)}:
        _flush(os.path.join(folder, category), os.O_RDONLY | os.O_DIRECTORY)


def _flush_file(path: str) -> None:
    _flush(path, os.O_RDONLY | os.O_NOFOLLOW)


def _flush(path: str, flags: int) -> None:
    with contextlib.suppress(FileNotFoundError):  # it was removed meanwhile
        descriptor = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def list_temporary(folder: str) -> list[str]:
    """The temporary files in the folders of records, by their paths."""
    own = [one for one in _inside(folder) if one.is_dir(follow_symlinks=False) and one.name not in OTHERS]
    return [f"{one.name}/{entry.name}" for one in own for entry in _inside(one.path)
            if entry.name.startswith(TEMPORARY)]  # fmt: skip


def _inside(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder, which may be removed meanwhile."""
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"the folder {folder!r} cannot be read: {error.strerror}") from error


def _stamp(status: os.stat_result) -> int:
    """Size, time and inode in one number: equal stamps are taken for equal bytes."""
    return (status.st_mtime_ns * 1_000_003 + status.st_ino * 8191 + status.st_size) & 0x7FFF_FFFF_FFFF_FFFF


def free_path(folder: str, path: str) -> str:
    """The path, or one like it that is free: no file overwrites another record's, which a person may have edited."""
    stem, number, candidate = path.removesuffix(".md"), 1, path
    while os.path.lexists(os.path.join(folder, candidate)):
        number += 1
        candidate = f"{stem}-{number}.md"
    return candidate

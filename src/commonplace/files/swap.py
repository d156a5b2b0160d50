"""Replace or remove a file only if it still is what was read: an edit that somebody saves meanwhile survives.

Comparing before replacing leaves a gap in which an edit is lost.  So the new file is put in place first, by an atomic
exchange (Linux) or by moving the old one aside (elsewhere), and what came out is compared: if it is not what was read,
it goes back.  Whoever replaces files of a folder holds its lock, so a temporary file that lies there while the lock is
held was left by a process that died: ``rescue`` puts an edit in it back.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Collection
from functools import cache
from hashlib import sha256
from typing import Any

from commonplace.files import disk
from commonplace.model.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows has no leases
    fcntl = None  # type: ignore[assignment]

EXCHANGE, NO_REPLACE = 2, 1  # flags of renameat2
NAME_BYTES = 255  # of the longest name of a file
MAX_BYTES = 64 * 1024 * 1024  # nothing that we write is as large
SHORT = 16  # digits of a digest in the name of a file that was moved aside
_AT_FDCWD, _F_SETSIG = -100, 10  # as Linux has them
_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM, errno.EXDEV})


def replace_unchanged(folder: str, path: str, data: bytes, *, expect: str | None) -> int | None:
    """Write a file if what is there still has this digest (None: if nothing is there); return its stamp.

    None: somebody else has saved it since; theirs is there, and nothing was changed.
    """
    target = os.path.join(folder, path)
    temporary, stamp = disk.write_temporary(folder, path, data)
    try:
        placed = _create(temporary, target) if expect is None else _replace(temporary, target, data, expect)
    except OSError as error:
        raise StoreError(f"{target!r} cannot be written: {error.strerror}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    return stamp if placed else None


def remove_unchanged(folder: str, path: str, *, expect: str) -> bool:
    """Remove a file if it still has this digest; return whether it is gone."""
    target = os.path.join(folder, path)
    aside = _aside(target, "", expect)
    try:
        os.rename(target, aside)
        if not is_settled(aside, expect):
            _put_back(aside, target)
            return False
        os.unlink(aside)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise StoreError(f"{target!r} cannot be removed: {error.strerror}") from error
    return True


def move_unless_taken(folder: str, path: str, to: str) -> bool:
    """Move a file, if it exists and nothing is where it goes; return whether it was moved."""
    source, target = os.path.join(folder, path), os.path.join(folder, to)
    try:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        return _create(source, target)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(f"{source!r} cannot be moved: {error.strerror}") from error


def rescue(folder: str, temporary: Collection[str]) -> list[str]:
    """Clean up after processes that died; call while the folder's lock is held.  Returns the paths put back.

    A file that was moved aside goes back to its place.  If that is taken, and what was moved aside is neither what we
    had read nor what we wrote, it is somebody's edit: it gets a name of its own, and the next sync shows it.
    """
    return [path for entry in temporary if (path := _rescue(folder, entry))]


def is_aside(name: str) -> bool:
    """Whether a temporary file of that name may hold what was in the place of another one."""
    return name.startswith(disk.TEMPORARY) and "-" in name.removeprefix(disk.TEMPORARY)


def _rescue(folder: str, path: str) -> str | None:
    category, name = os.path.split(path)
    temporary = os.path.join(folder, path)
    digests, _, original = name.removeprefix(disk.TEMPORARY).partition("-")
    _, new, expected, *_ = [*digests.split("."), "", ""]
    target = os.path.join(category, original)
    found = _digest(temporary)
    if found is None or not original or found == new:  # not what anybody else has written
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    elif _create(temporary, os.path.join(folder, target)):
        return target
    elif found != expected:
        return os.path.join(category, _keep_beside(temporary, os.path.join(folder, target)))
    else:
        os.unlink(temporary)
    return None


def _digest(path: str) -> str | None:
    """The short digest of a file; None if there is nothing in it: its writer died, or the power failed."""
    try:
        with disk.open_file(path, limit=MAX_BYTES, links=False) as file:
            data = file.read()
    except FileNotFoundError:
        return None
    except OSError:  # whatever it is, it is not ours
        return ""
    return sha256(data).hexdigest()[:SHORT] if data.strip(b"\0") else None


def is_settled(path: str, digest: str) -> bool:
    """Whether a file has this digest and nobody has it open to write to it."""
    try:
        with disk.open_file(path, limit=MAX_BYTES, links=False) as file:
            return not _is_being_written(file.fileno()) and sha256(file.read()).hexdigest() == digest
    except OSError:
        return False


def _is_being_written(descriptor: int) -> bool:
    """Whether another process has the file open for writing: then it grants no lease for reading."""
    if fcntl is None or not hasattr(fcntl, "F_SETLEASE"):
        return False
    from signal import SIGURG  # noqa: PLC0415 - only a write to a folder needs it

    try:
        fcntl.fcntl(descriptor, _F_SETSIG, SIGURG)  # sent if somebody opens it just now; the default would end us
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN  # other errors: the file system has no leases
    return False


def _replace(temporary: str, target: str, data: bytes, expect: str) -> bool:
    ours = sha256(data).hexdigest()
    aside = _aside(target, ours, expect)
    os.rename(temporary, aside)  # a name that says where what comes out of the exchange belongs
    try:
        exchanged = _exchange(aside, target)
    except OSError as error:
        os.unlink(aside)
        if isinstance(error, FileNotFoundError):  # somebody has removed or renamed it
            return False
        raise
    if not exchanged:
        os.rename(aside, temporary)
        return _replace_by_moving(temporary, target, ours, expect)
    if is_settled(aside, expect):
        os.unlink(aside)
        return True
    _exchange_back(aside, target, ours)
    return False


def _exchange_back(aside: str, target: str, ours: str) -> None:
    """Put back what came out; if ours was replaced meanwhile as well, the later one stays and the first one is kept."""
    try:
        _exchange(aside, target)
    except FileNotFoundError:  # ours was removed meanwhile
        _put_back(aside, target)
        return
    if not is_settled(aside, ours):
        _exchange(aside, target)
        _keep_beside(aside, target)
    else:
        os.unlink(aside)


def _replace_by_moving(temporary: str, target: str, ours: str, expect: str) -> bool:
    """Without an exchange: for a moment there is no file, and ``rescue`` puts it back if this process dies then."""
    aside = _aside(target, ours, expect)
    try:
        os.rename(target, aside)
    except FileNotFoundError:
        return False
    if not is_settled(aside, expect):
        _put_back(aside, target)
        return False
    placed = _create(temporary, target)
    os.unlink(aside)
    return placed


def _put_back(aside: str, target: str) -> None:
    if not _create(aside, target):  # somebody has saved another one
        _keep_beside(aside, target)


def _keep_beside(aside: str, target: str) -> str:
    """Give a file that is nobody's leftover a name of its own next to the one that took its place."""
    folder, name = os.path.split(target)
    while not _create(aside, os.path.join(folder, free := disk.free_path(folder, name))):
        continue
    return free


def _create(source: str, target: str) -> bool:
    """Move a file to where nothing is; False if something is there."""
    try:
        if not _rename(source, target, NO_REPLACE):
            os.link(source, target, follow_symlinks=False)
            os.unlink(source)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED or os.path.lexists(target):
            raise
        os.rename(source, target)  # neither exchange nor hard links: a gap of microseconds is left
    return True


def _aside(target: str, ours: str, expect: str) -> str:
    folder, name = os.path.split(target)
    known = f"{os.urandom(4).hex()}.{ours[:SHORT]}.{expect[:SHORT]}"
    aside = f"{disk.TEMPORARY}{known}-{name}"
    return os.path.join(folder, aside if len(os.fsencode(aside)) <= NAME_BYTES else f"{disk.TEMPORARY}{known}-saved.md")


def _exchange(one: str, other: str) -> bool:
    """Exchange two files in one step; False where the system cannot."""
    return _rename(one, other, EXCHANGE)


def _rename(one: str, other: str, flag: int) -> bool:
    call = _renameat2()
    if call is None:
        return False
    import ctypes  # noqa: PLC0415 - only a write to a folder needs it

    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), one, None, other)


@cache
def _renameat2() -> Callable[..., Any] | None:
    """The system call, where the system's library has it: Linux."""
    import ctypes  # noqa: PLC0415 - see _rename

    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return call

"""The files of artifacts: found, read, replaced and removed inside one folder, never through a link out of it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Iterator

from commonplace.files import disk as files
from commonplace.model.errors import InvalidInput, StoreError

FILE_BYTES = 1_048_576  # a larger one is not read: nobody wrote it by hand
DEPTH = 5  # skills/<name>/scripts/<folder>/<file>
_PART = re.compile(r"[A-Za-z0-9._-]+")


def checked(name: str) -> str:
    """An artifact's name as a path inside the folder; refuses whatever could lead out of it."""
    parts = name.split("/")
    if len(parts) > DEPTH or any(not _PART.fullmatch(part) or part.strip(".") == "" for part in parts):
        raise InvalidInput(f"{name!r} cannot be the path of an artifact")
    return name


def found(folder: str, *, under: str) -> Iterator[str]:
    """The files below one folder of the folder, by their paths; links and hidden files are not ours."""
    try:
        entries = sorted(os.scandir(os.path.join(folder, under)), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        path = f"{under}/{entry.name}"
        if entry.name.startswith(".") or not _PART.fullmatch(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False) and path.count("/") < DEPTH - 1:
            yield from found(folder, under=path)
        elif entry.is_file(follow_symlinks=False):
            yield path


def read(folder: str, name: str) -> bytes | None:
    """The bytes of an artifact's file; None if there is none, or none that is ours to read."""
    if _leads_out(folder, name):
        return None
    try:
        return None if is_large(folder, name) else files.read(folder, name)[0]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{os.path.join(folder, name)!r} cannot be read: {error.strerror}") from error


def is_large(folder: str, name: str) -> bool:
    """Whether a file there has more bytes than are read; whoever wrote it, it is not to be written over."""
    try:
        return os.lstat(os.path.join(folder, name)).st_size > FILE_BYTES
    except OSError:
        return False


def is_there(folder: str, name: str) -> bool:
    """Whether anything is at that path, readable or not."""
    return os.path.lexists(os.path.join(folder, name))


def replace(folder: str, name: str, data: bytes) -> int:
    """Put an artifact's file in its place, whole; returns its stamp."""
    if _leads_out(folder, name):
        raise StoreError(f"{os.path.join(folder, name)!r} is not written: a link leads out of {folder!r}")
    return files.replace(folder, name, data)


def remove(folder: str, name: str) -> None:
    """Remove an artifact's file, and the folders that it leaves empty."""
    if _leads_out(folder, name):
        return
    files.remove(folder, name)
    parent = os.path.dirname(name)
    while parent:
        try:
            os.rmdir(os.path.join(folder, parent))
        except OSError:  # something else is in there, or it is gone
            return
        parent = os.path.dirname(parent)


def sweep(folder: str, *, under: Collection[str]) -> None:
    """Remove temporary files that a dead process left behind, there and below these folders."""
    oldest = time.time() - files.LEFTOVER_SECONDS
    inside = [folder, *(path for name in under for path, _, _ in os.walk(os.path.join(folder, name)))]
    for path in inside:
        for entry in os.scandir(path):
            if entry.name.startswith(files.TEMPORARY) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                files.remove(path, entry.name)


def _leads_out(folder: str, name: str) -> bool:
    """Whether a folder on the way is a link."""
    parts = checked(name).split("/")
    return any(os.path.islink(os.path.join(folder, *parts[:depth])) for depth in range(1, len(parts) + 1))

"""Artifacts as files: a project's artifacts in the store and the folder in which people read and edit them.

The store has the text; the folder is the people's copy.  For every file the digest of what was last written there is
noted, so that a file that a person changed is told from one that a dead process never got to write.  ``learned.md`` is
somebody else's: it is not written here.  No file is read or written through a link that leads out of the folder.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Protocol

from commonplace.engine.forgetting import Erasure, without_erased_names
from commonplace.files import disk as files
from commonplace.files import swap
from commonplace.model.changes import Change, DropFiles, PutFiles
from commonplace.model.documents import Document, DocumentKind, FileState
from commonplace.model.errors import Forbidden, InvalidInput, StoreError
from commonplace.model.ports import Store
from commonplace.model.queries import DocumentFilter
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

MEMORY, SUMMARY, RAW, LEARNED = "MEMORY.md", "memory_summary.md", "raw_memories.md", "learned.md"
WOVEN = (MEMORY, SUMMARY)  # in these a person's blocks and ours stand side by side
SKILLS, ROLLOUTS = "skills", "rollout_summaries"
EVERYTHING = 1_000_000  # a limit that no project reaches
_NOTED = "#artifacts"  # after a folder's name: what was written there
FILE_BYTES = 1_048_576  # a larger one is not read: nobody wrote it by hand
DEPTH = 5  # skills/<name>/scripts/<folder>/<file>
_IS_LINK = frozenset({errno.ELOOP, errno.EMLINK})  # how systems report that a name is a link
_IS_MISSING = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_PART = re.compile(r"[A-Za-z0-9._-]+")


class TooLarge(InvalidInput):
    """A file that is larger than any artifact."""


class ArtifactPlace(Protocol):
    """Where the artifacts of one project are."""

    @property
    def store(self) -> Store:
        """Where their texts are."""

    @property
    def scope(self) -> Scope:
        """The project's."""

    @property
    def folder(self) -> str | None:
        """Where they are written as files; None: nowhere."""


class ArtifactFolder(Value):
    """The least that is an ``ArtifactPlace``."""

    store: Store
    scope: Scope
    folder: str | None


class PublishReport(Value):
    """What was written to the folder."""

    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left: tuple[str, ...] = ()  #: changed by a person and not taken in yet


def stored_artifacts(place: ArtifactPlace) -> dict[str, Document]:
    """The artifacts of the project in the store, by name."""
    where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.ARTIFACT.value}))
    return {one.name: one for one in place.store.documents(where, limit=EVERYTHING)}


# One file


def check_name(name: str) -> str:
    """An artifact's name as a path inside the folder; refuses whatever could lead out of it."""
    parts = name.split("/")
    if len(parts) > DEPTH or any(not _PART.fullmatch(part) or part.strip(".") == "" for part in parts):
        raise InvalidInput(f"{name!r} cannot be the path of an artifact")
    return name


def list_files(folder: str, *, under: str) -> Iterator[str]:
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
            yield from list_files(folder, under=path)
        elif entry.is_file(follow_symlinks=False):
            yield path


def read(folder: str, name: str) -> bytes | None:
    """The bytes of an artifact's file; None if it is missing, too large, or behind a link."""
    try:
        found = read_strictly(folder, check_name(name))
    except (Forbidden, TooLarge):
        return None
    return None if found is None else found[0]


def read_strictly(folder: str, name: str) -> tuple[bytes, datetime] | None:
    """A file's bytes and when it was last written; None if it is missing.

    Opened from the folder downwards: raises ``Forbidden`` for a link at any step, and ``TooLarge``.
    """
    *folders, last = name.split("/")
    opened: list[int] = []
    try:
        opened.append(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for part in folders:
            opened.append(_open_inside(opened[-1], part, os.O_DIRECTORY, name))
        opened.append(_open_inside(opened[-1], last, os.O_NONBLOCK, name))
        return _content(opened[-1], name)
    except Forbidden:
        raise
    except OSError as error:
        if error.errno in _IS_LINK:
            raise _forbidden(name) from None
        if error.errno in _IS_MISSING:
            return None
        raise StoreError(f"{os.path.join(folder, name)!r} cannot be read: {error.strerror}") from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _open_inside(inside: int, part: str, flags: int, name: str) -> int:
    if stat.S_ISLNK(os.stat(part, dir_fd=inside, follow_symlinks=False).st_mode):
        raise _forbidden(name)
    return os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=inside)


def _forbidden(name: str) -> Forbidden:
    return Forbidden(
        f"memory://root/{name} goes through a symbolic link and so could escape memory root; it is refused"
    )


def _content(descriptor: int, name: str) -> tuple[bytes, datetime] | None:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return None
    if status.st_size > FILE_BYTES:
        raise TooLarge(f"the file of memory://root/{name} has {status.st_size} bytes; at most {FILE_BYTES} are read")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(FILE_BYTES), datetime.fromtimestamp(status.st_mtime, UTC)


def is_large(folder: str, name: str) -> bool:
    """Whether a file there has more bytes than are read; whoever wrote it, it is not to be written over."""
    try:
        return os.lstat(os.path.join(folder, name)).st_size > FILE_BYTES
    except OSError:
        return False


def exists(folder: str, name: str) -> bool:
    """Whether anything is at that path, readable or not."""
    return os.path.lexists(os.path.join(folder, name))


def replace(folder: str, name: str, data: bytes, *, was: bytes | None) -> int | None:
    """Put an artifact's file in its place, whole; returns its stamp.

    None: it is not what it ``was`` any more (None: there was none), so it stays as a person has left it.
    """
    if _leads_out(folder, name):
        raise StoreError(f"{os.path.join(folder, name)!r} is not written: a link leads out of {folder!r}")
    return swap.replace_unchanged(folder, name, data, expect=None if was is None else digest_of(was))


def remove(folder: str, name: str, *, expect: str) -> bool:
    """Remove an artifact's file that has this digest, and folders that it leaves empty; return whether it is gone."""
    if _leads_out(folder, name) or not swap.remove_unchanged(folder, name, expect=expect):
        return False
    parent = os.path.dirname(name)
    while parent:
        try:
            os.rmdir(os.path.join(folder, parent))
        except OSError:  # something else is in there, or it is gone
            break
        parent = os.path.dirname(parent)
    return True


def remove_leftovers(folder: str, *, under: Collection[str]) -> None:
    """Remove temporary files that a dead process left behind, there and below these folders; call under the lock."""
    oldest = time.time() - files.LEFTOVER_SECONDS
    inside = [folder, *(path for name in under for path, _, _ in os.walk(os.path.join(folder, name)))]
    for path in inside:
        for entry in os.scandir(path):
            if swap.is_aside(entry.name):
                swap.rescue(folder, [os.path.relpath(entry.path, folder)])
            elif entry.name.startswith(files.TEMPORARY) and entry.stat(follow_symlinks=False).st_mtime < oldest:
                files.remove(path, entry.name)


def _leads_out(folder: str, name: str) -> bool:
    """Whether a folder on the way is a link."""
    parts = check_name(name).split("/")
    return any(os.path.islink(os.path.join(folder, *parts[:depth])) for depth in range(1, len(parts) + 1))


# The folder


def publish(place: ArtifactPlace) -> PublishReport:
    """Bring the files up to what is stored; a file that a person changed meanwhile is left for the next run."""
    if place.folder is None:
        return PublishReport()
    os.makedirs(place.folder, mode=0o700, exist_ok=True)
    with files.folder_lock(place.folder):
        remove_leftovers(place.folder, under=(SKILLS, ROLLOUTS))
        return _publish(place, place.folder)


def _publish(place: ArtifactPlace, folder: str) -> PublishReport:
    stored, noted = stored_artifacts(place), noted_files(place)
    done = PublishReport()
    states: list[FileState] = []
    for name, one in sorted(stored.items()):
        if name == LEARNED:
            continue
        data, state = as_bytes(one.content or ""), noted.get(name)
        there = read(folder, name)
        changed = there is not None and there != data and not is_noted(there, state)
        if changed or is_large(folder, name):
            done = done.replace(left=(*done.left, name))
            continue
        if there == data and is_noted(data, state):
            continue
        stamp = files.stamp(folder, name) or 0 if there == data else replace(folder, name, data, was=there)
        if stamp is None:  # a person has saved it since it was read
            done = done.replace(left=(*done.left, name))
            continue
        done = done.replace(written=(*done.written, name))
        states.append(FileState(path=name, record=name, version=0, digest=digest_of(data), stamp=stamp))
    gone = sorted(noted.keys() - stored.keys())
    for name in gone:
        if is_noted(read(folder, name), noted[name]) and remove(folder, name, expect=noted[name].digest):
            done = done.replace(removed=(*done.removed, name))
    if states or gone:
        files.flush_files(folder, [state.path for state in states], ())
        changes: list[Change] = [PutFiles(folder=folder_key(folder), files=tuple(states))]
        place.store.apply([*changes, DropFiles(folder=folder_key(folder), paths=frozenset(gone))])
    return done


def erase(place: ArtifactPlace, erasure: Erasure) -> PublishReport:
    """Bring the files up to an erasure; of one that a person changed only what names erased records is taken out."""
    done = publish(place)
    for name in {*done.left, *WOVEN}:
        _erase_in_file(place, name, erasure)
    return done


def _erase_in_file(place: ArtifactPlace, name: str, erasure: Erasure) -> None:
    """Take what names erased records out of a file, and leave the rest of it for the next run as it is."""
    if place.folder is None:
        return
    with files.folder_lock(place.folder), suppress(UnicodeDecodeError):  # it is no text of ours
        while (was := read(place.folder, name)) is not None:
            left = without_erased_names(was.decode(), erasure)
            data = as_bytes(left) if left else b""
            if left == was.decode() or replace(place.folder, name, data, was=was) is not None:
                return


def as_bytes(text: str) -> bytes:
    """An artifact's text as the bytes of its file."""
    return f"{text}\n".encode()


def is_noted(data: bytes | None, state: FileState | None) -> bool:
    """Whether a file has the bytes that were last written there."""
    return data is not None and state is not None and digest_of(data) == state.digest


def noted_files(place: ArtifactPlace) -> dict[str, FileState]:
    """What was last written to the folder, by path."""
    if place.folder is None:
        return {}
    return {state.path: state for state in place.store.files(folder_key(place.folder))}


def folder_key(folder: str) -> str:
    """The name under which the store notes what was written to a folder."""
    return os.path.realpath(folder) + _NOTED


def digest_of(data: bytes) -> str:
    """The digest by which a file is known."""
    return sha256(data).hexdigest()

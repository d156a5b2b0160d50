"""MirroredStore: a store that also writes a file for every record of some scopes.

The database owns identity, version and use; the folder is the people's copy.  Files are written after the commit, and
noted in the database after that: a process that dies in between leaves work that the next sync finishes, never a record
that looks deleted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.files import disk as files
from commonplace.model.changes import Change, Delete, DropFiles, DropScope, Outcome, PutFiles, Trim
from commonplace.model.documents import FileState
from commonplace.model.errors import StoreError
from commonplace.model.ids import is_id
from commonplace.model.ports import Store
from commonplace.model.records import CATEGORIES, Record
from commonplace.model.scopes import Scope

if TYPE_CHECKING:
    _Port = Store  # so type checkers know what ``__getattr__`` passes on
else:
    _Port = object

ERASING = (Delete, DropScope, Trim)
UNNOTED_MOST = 64  # files written before their states are noted in one go


class MirroredStore(_Port):
    """A store with a folder of Markdown beside it for each of some scopes."""

    def __init__(self, store: Store, folders: Mapping[Scope, str]) -> None:
        """Mirror the records of these scopes into these folders, which must exist."""
        self.store = store
        self.folders = {scope: os.path.realpath(folder) for scope, folder in folders.items()}
        self._written: dict[str, dict[str, FileState]] = {}  # folder -> path -> state, not noted yet
        self._removed: dict[str, set[str]] = {}
        self._guard = threading.RLock()

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """Make the changes, then bring the files of what changed up to date."""
        if self._written and any(isinstance(change, ERASING) for change in changes):
            self.settle()  # or, if we die now, the file of an erased record could not be recognised as a leftover
        outcomes = self.store.apply(changes)
        try:
            self._update_files(changes, outcomes)
        except StoreError as error:  # not as StoreBusy: a retry would make the changes twice
            raise StoreError(
                f"{error}; the store was changed all the same; `commonplace sync` updates the files"
            ) from error
        return outcomes

    def _update_files(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        with self._guard:
            for change, outcome in zip(changes, outcomes, strict=True):
                for record in outcome.records:
                    folder = self.folders.get(record.scope)
                    if folder and record.category in CATEGORIES and not record.is_file_proposal:  # as `plan.has_file`
                        self.write(folder, record.id)
                if isinstance(change, ERASING):  # what else is gone is no record: a document, a tombstone
                    self._remove_files(outcome.gone)
            if sum(map(len, self._written.values())) >= UNNOTED_MOST:
                self.settle()

    def write(self, folder: str, id: str, *, at: str | None = None, to: str | None = None) -> None:
        """Write the current version of a record to its file, keeping the comments that people added.

        ``at`` is the path of the file, given by a caller that has read it: without it a file with an edit that was not
        synced yet is left for the next sync.  ``to`` is the path where it belongs, if that is another.
        """
        with self._guard, files.folder_lock(folder):
            record = self.store.get(id)
            if at is not None and not _exists(folder, at):
                at = to = None  # another process has moved it since it was read
            if record is None or (at is None and self._is_edited(folder, id)):
                return
            known = at or self._path(folder, id)
            if at is None and record.version > 1 and not _exists(folder, known):
                stray = self._unnoted(folder, [id]).get(id)
                if stray and known:  # a person has renamed it, and perhaps more: the next sync looks
                    return
                # Another process or thread wrote it: it has not noted it yet, or did so between the two looks.
                known = stray or self._path(folder, id)
            belongs = to is not None and os.path.dirname(to) == record.category  # it may have changed meanwhile
            self._write(folder, record, known, to if belongs else None)

    def _write(self, folder: str, record: Record, at: str | None, to: str | None) -> None:
        from hashlib import sha256  # noqa: PLC0415 - a recall writes no file and must start without both

        from commonplace.files.codec import encode  # noqa: PLC0415

        target = to or _target_path(at, record)
        # If the file is there already, another process has moved it meanwhile.
        moved = target != at and not _is_file_of(folder, target, record.id)
        target = files.free_path(folder, target) if moved else target
        text = _text(folder, at if moved else target)
        data = encode(record, previous=text)
        if moved and at is not None:
            files.move(folder, at, target)  # first: a process that dies here leaves one file of the record, not two
        if text is None or data != text.encode():
            stamp = files.replace(folder, target, data)
        else:
            _, stamp = _read(folder, target)
        state = FileState(
            path=target, record=record.id, version=record.version, digest=sha256(data).hexdigest(), stamp=stamp
        )
        self._written.setdefault(folder, {})[target] = state
        for stale in {at, self._path(folder, record.id)} - {None, target}:
            self.remove(folder, str(stale))

    def remove(self, folder: str, path: str) -> None:
        """Remove a file and its state."""
        files.remove(folder, path)
        self._written.get(folder, {}).pop(path, None)
        self._removed.setdefault(folder, set()).add(path)

    def settle(self) -> None:
        """Flush written files to disk and note them; only then does a missing file count as deleted by a person."""
        with self._guard:
            written, self._written = self._written, {}
            removed, self._removed = self._removed, {}
        changes: list[Change] = []
        for folder in written.keys() | removed.keys():
            states = written.get(folder, {})
            files.flush_files(folder, states.keys(), removed.get(folder, ()))
            changes.append(DropFiles(folder=folder, paths=frozenset(removed.get(folder, set()) - states.keys())))
            changes.append(PutFiles(folder=folder, files=tuple(states.values())))
        self.store.apply(changes)

    def references(self, ids: Collection[str]) -> dict[str, str]:
        """The file of each of these records, as a path that leads there."""
        found: dict[str, str] = {}
        for folder in self.folders.values():
            states = [*self.store.files(folder, records=ids), *self._written.get(folder, {}).values()]
            found |= {state.record: os.path.join(folder, state.path) for state in states if state.record in ids}
        return found

    def close(self) -> None:
        """Note what was written, then close the store."""
        if self._written or self._removed:
            self.settle()
        self.store.close()

    def __getattr__(self, name: str) -> Any:
        """Everything else that a store does is done by the store behind this one."""
        return getattr(self.store, name)

    # Where files are

    def _path(self, folder: str, id: str) -> str | None:
        unnoted = [state.path for state in self._written.get(folder, {}).values() if state.record == id]
        return next(iter(unnoted or [state.path for state in self.store.files(folder, records=[id])]), None)

    def _is_edited(self, folder: str, id: str) -> bool:
        """Whether a record's file is not what was last written or read there."""
        from hashlib import sha256  # noqa: PLC0415 - see _write

        own = [state for state in self._written.get(folder, {}).values() if state.record == id]
        for state in own or self.store.files(folder, records=[id]):
            if files.stamp(folder, state.path) not in (None, state.stamp):
                try:
                    return sha256(_read(folder, state.path)[0]).hexdigest() != state.digest
                except OSError:  # unknown, so it is left as it is
                    return True
        return False

    def _unnoted(self, folder: str, ids: Collection[str]) -> dict[str, str]:
        """The files of records that lie where nothing is noted: renamed by a person, or just written by a process."""
        wanted = [name for name in ids if is_id(name)]
        known = {state.path for state in self.store.files(folder)} if wanted else set()
        strays = [path for path, _ in files.list_files(folder) if path not in known] if wanted else []
        return {name: path for path in strays for name in wanted if _is_file_of(folder, path, name)}

    def _remove_files(self, ids: Sequence[str]) -> None:
        for folder in self.folders.values() if ids else ():
            paths = {name: self._path(folder, name) for name in ids}
            strays = self._unnoted(folder, [name for name, path in paths.items() if not _exists(folder, path)])
            for path in [*paths.values(), *strays.values()]:
                if path is not None:
                    self.remove(folder, path)


def _target_path(before: str | None, record: Record) -> str:
    """A file keeps the name that it has, in the folder of its category."""
    from commonplace.files.codec import file_name  # noqa: PLC0415 - see _write

    return file_name(record) if before is None else f"{record.category}/{os.path.basename(before)}"


def _exists(folder: str, path: str | None) -> bool:
    return path is not None and os.path.lexists(os.path.join(folder, path))


def _is_file_of(folder: str, path: str, id: str) -> bool:
    """Whether the file has the id of this record."""
    return f"id: {id}\n" in (_text(folder, path) or "")


def _read(folder: str, path: str) -> tuple[bytes, int]:
    from commonplace.files.codec import FILE_BYTES  # noqa: PLC0415 - see _write

    return files.read(folder, path, limit=FILE_BYTES)


def _text(folder: str, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return _read(folder, path)[0].decode()
    except (OSError, UnicodeDecodeError):
        return None

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
from commonplace.model.changes import (
    Archive,
    Change,
    Delete,
    DropFiles,
    DropScope,
    FromCheckout,
    Load,
    MarkConsolidated,
    Outcome,
    Put,
    PutFiles,
    Restore,
    Supersede,
    Trim,
)
from commonplace.model.documents import HIDDEN, FileState, shown_in, shown_state
from commonplace.model.errors import StoreError
from commonplace.model.ids import is_id
from commonplace.model.ports import Store
from commonplace.model.queries import ANY_STATE, Filter, Match, Order, Query, Survey, Vector
from commonplace.model.records import Record
from commonplace.model.scopes import Scope

if TYPE_CHECKING:
    _Port = Store  # so type checkers know what ``__getattr__`` passes on
else:
    _Port = object

ERASING = (Delete, DropScope, Trim)
CHANGING = (Put, Load, Archive, Restore, Supersede)
UNNOTED_MOST = 64  # files written before their states are noted in one go
MANY = 16  # new records of one transaction that are written together


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
        made = [*self._forward(changes), *map(self._on_shown, changes)]
        places = [FromCheckout(scope=scope, folder=folder) for scope, folder in self.folders.items()]
        changing = any(isinstance(change, CHANGING) for change in changes)
        outcomes = self.store.apply([*made, *(places if changing else ())])
        outcomes = outcomes[len(made) - len(changes) : len(made)]
        try:
            self._update_files(changes, outcomes)
        except StoreError as error:  # not as StoreBusy: a retry would make the changes twice
            raise StoreError(
                f"{error}; the store was changed all the same; `commonplace sync` updates the files"
            ) from error
        return outcomes

    def _update_files(self, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
        new = [one for one in map(self._new_record, changes, outcomes) if one is not None]
        if len(new) >= MANY:
            self._write_new(new)
        skipped = {record.id for record in new} if len(new) >= MANY else set()
        with self._guard:
            for change, outcome in zip(changes, outcomes, strict=True):
                for record in () if isinstance(change, MarkConsolidated) else outcome.records:  # no file says it
                    if record.id in skipped:
                        continue
                    folder = self.folders.get(record.scope)
                    if folder and record.has_file:
                        self.write(folder, record.id)
                if isinstance(change, ERASING):  # what else is gone is no record: a document, a tombstone
                    self._remove_files(outcome.gone)
            if sum(map(len, self._written.values())) >= UNNOTED_MOST:
                self.settle()

    # What the files of a folder show

    def get(self, id: str) -> Record | None:
        """Return a record in the version that its file here shows; one that has none here as it is elsewhere."""
        record = self.store.get(id)
        return None if record is None else self._as_shown([record])[0]

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        """See ``Store``.  Records in all states are those of the store: what keeps house has to see all of it."""
        if (where.prefix is not None or where.part is not None) and not where.versions:
            return self._as_shown(self.store.find(where, order=order, limit=limit))
        return self.store.find(self._viewed(where), order=order, limit=limit)

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:  # noqa: D102 - see ``find``
        return self.store.match(self._viewed(where), query, limit=limit)

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:  # noqa: D102 - see ``find``
        return self.store.nearest(self._viewed(where), vector, limit=limit)

    def survey(  # noqa: D102 - see ``find``
        self, where: Filter, query: Query, vector: Vector | None, *, limit: int
    ) -> Survey:
        return self.store.survey(self._viewed(where), query, vector, limit=limit)

    def shown(self, folder: str, records: Collection[str] | None = None) -> dict[str, int]:
        """The records of which a folder shows another version than the current one, with that; 0: it has none."""
        return {state.record: state.version for state in self.store.files(shown_in(folder), records=records)}

    def _viewed(self, where: Filter) -> Filter:
        """A filter for what the files of these scopes' folders show."""
        if where.versions or where.as_of is not None or where.states == ANY_STATE:
            return where
        folders = [self.folders[scope] for scope in where.scopes if scope in self.folders]
        views = frozenset(shown_in(folder) for folder in folders if self.shown(folder))
        return where.replace(views=views) if views else where

    def _as_shown(self, records: Sequence[Record]) -> list[Record]:
        """The same records, each in the version that its file shows."""
        return [self._version_shown(record) or record for record in records]

    def _version_shown(self, record: Record) -> Record | None:
        """The version of a record that its file shows, if that is not the current one."""
        folder = self.folders.get(record.scope)
        version = self.shown(folder, [record.id]).get(record.id, HIDDEN) if folder else HIDDEN
        if version in (HIDDEN, record.version):
            return None
        where = Filter(
            scopes=frozenset({record.scope}), at=record.updated_at, states=ANY_STATE, ids=frozenset({record.id}),
            versions=True,
        )  # fmt: skip
        found = self.store.find(where, order=Order.ID, limit=record.version)
        return next((one for one in found if one.version == version), None)

    def _on_shown(self, change: Change) -> Change:
        """A new version of what the file shows follows on the current one: whoever wrote it has seen the file."""
        if not isinstance(change, Put) or not change.expect or change.record.scope not in self.folders:
            return change
        shown = self.shown(self.folders[change.record.scope], [change.record.id]).get(change.record.id)
        current = self.store.get(change.record.id) if shown == change.expect else None
        return change if current is None else change.replace(expect=current.version)

    def _forward(self, changes: Sequence[Change]) -> list[Change]:
        """Make what the file shows the current version of each record that is changed as a whole."""
        ids: list[str] = []
        for change in changes:
            if isinstance(change, Archive | Restore):
                ids += change.where.ids or ()
            elif isinstance(change, Supersede):
                ids.append(change.id)
        return [put for id_ in dict.fromkeys(ids) if (put := self._forward_one(id_)) is not None]

    def _forward_one(self, id: str) -> Change | None:
        from commonplace.engine.admission import search_terms  # noqa: PLC0415 - only a checkout that differs needs it

        current = self.store.get(id)
        shown = self._version_shown(current) if current else None
        if current is None or shown is None:
            return None
        record = shown.replace(updated_at=current.updated_at, version=current.version)
        return Put(record=record, terms=tuple(search_terms(record)), expect=current.version)

    # Files

    def _new_record(self, change: Change, outcome: Outcome) -> Record | None:
        """Return the record that a change has made, if it is new and has a file."""
        if not isinstance(change, Put) or outcome.deduped or not outcome.records:
            return None
        record = outcome.records[0]
        return record if record.version == 1 and record.scope in self.folders and record.has_file else None

    def _write_new(self, records: Sequence[Record]) -> None:
        """Write the files of many new records; what another process has deleted or changed meanwhile gets none here."""
        for folder in {self.folders[record.scope] for record in records}:
            ids = frozenset(record.id for record in records if self.folders[record.scope] == folder)
            with self._guard, files.folder_lock(folder):
                for record in self._unchanged([record for record in records if record.id in ids]):
                    self._write_first(folder, record)
        self.settle()

    def _write_first(self, folder: str, record: Record) -> None:
        """Write the first file of a record; one whose name is taken is looked at more closely."""
        from commonplace.files import swap  # noqa: PLC0415 - see _write
        from commonplace.files.codec import encode, file_name  # noqa: PLC0415 - see _write

        target, data = file_name(record), encode(record, previous=None)
        stamp = swap.replace_unchanged(folder, target, data, expect=None)
        if stamp is None:
            self.write(folder, record.id)
            return
        state = FileState(path=target, record=record.id, version=record.version, digest=_digest(data), stamp=stamp)
        self._written.setdefault(folder, {})[target] = state

    def _unchanged(self, records: Sequence[Record]) -> list[Record]:
        """Return those of some new records that are in the store as they were made."""
        where = Filter(
            scopes=frozenset(record.scope for record in records), at=records[0].updated_at, states=ANY_STATE,
            ids=frozenset(record.id for record in records),
        )  # fmt: skip
        return [record for record in self.store.find(where, order=Order.ID, limit=-1) if record.version == 1]

    def write(
        self, folder: str, id: str, *, at: str | None = None, to: str | None = None, expect: str | None = None
    ) -> bool:
        """Write the current version of a record to its file, keeping the comments that people added.

        ``at`` is the path of the file, given by a caller that has read it, and ``expect`` the digest of what it read,
        or what was last noted.  ``to`` is the path where it belongs, if that is another.  A file with an edit that was
        not synced yet, or that is saved meanwhile, stays as it is for the next sync: the answer is then False.
        """
        with self._guard, files.folder_lock(folder):
            record = self.store.get(id)  # the current version: this folder shows it from now on
            if at is not None and not _exists(folder, at):
                at = to = expect = None  # another process has moved it since it was read
            if record is None:
                return True
            known = at or self._path(folder, id)
            if at is None and record.version > 1 and not _exists(folder, known):
                stray = self._unnoted(folder, [id]).get(id)
                if stray and known:  # a person has renamed it, and perhaps more: the next sync looks
                    return False
                # Another process or thread wrote it: it has not noted it yet, or did so between the two looks.
                known = stray or self._path(folder, id)
            belongs = to is not None and os.path.dirname(to) == record.category  # it may have changed meanwhile
            return self._write(folder, record, known, to if belongs else None, expect)

    def _write(self, folder: str, record: Record, at: str | None, to: str | None, expect: str | None) -> bool:
        from commonplace.files import swap  # noqa: PLC0415 - a recall writes no file and must start without these
        from commonplace.files.codec import encode  # noqa: PLC0415

        target = to or _target_path(at, record)
        # If the file is there already, another process has moved it meanwhile.
        moved = target != at and not _is_file_of(folder, target, record.id)
        target = files.free_path(folder, target) if moved else target
        source = at if moved and at is not None else target
        found = _read_known(folder, source)
        if found is not None and found[1] != (expect or self._noted_digest(folder, record.id, source) or found[1]):
            return False
        data = encode(record, previous=None if found is None else found[0].decode())
        if moved and at is not None and found is not None:  # first: a process that dies here leaves one file of it
            swap.move_unless_taken(folder, at, target)
        stamp: int | None
        if found is None or data != found[0]:
            stamp = swap.replace_unchanged(folder, target, data, expect=None if found is None else found[1])
        else:
            stamp = files.stamp(folder, target) if source != target else found[2]
        if stamp is None:
            return False
        state = FileState(path=target, record=record.id, version=record.version, digest=_digest(data), stamp=stamp)
        for stale in {at, self._path(folder, record.id)} - {None, target}:
            self._remove_stale(folder, record.id, str(stale))
        self._written.setdefault(folder, {})[target] = state
        return True

    def _remove_stale(self, folder: str, id: str, path: str) -> None:
        """Remove what a file that was moved has left at its old path, unless somebody has saved it there again."""
        if noted := self._noted_digest(folder, id, path):
            self.remove(folder, path, expect=noted)

    def rename(self, folder: str, id: str, *, at: str, to: str) -> str:
        """Rename the file of a record; return where it is then.  A name that was taken meanwhile is not overwritten."""
        from commonplace.files import swap  # noqa: PLC0415 - see _write

        with self._guard, files.folder_lock(folder):
            self.settle()
            known = next((state for state in self.store.files(folder, records=[id]) if state.path == at), None)
            if known is None or not swap.move_unless_taken(folder, at, to):
                return os.path.join(folder, at)
            self._written.setdefault(folder, {})[to] = known.replace(path=to)
            self._removed.setdefault(folder, set()).add(at)
            self.settle()
        return os.path.join(folder, to)

    def remove(self, folder: str, path: str, *, expect: str | None = None) -> bool:
        """Remove a file and its state; one that has not the digest ``expect`` any more stays for the next sync."""
        from commonplace.files import swap  # noqa: PLC0415 - see _write

        if expect is None:
            files.remove(folder, path)
        elif not swap.remove_unchanged(folder, path, expect=expect):
            return False
        self._written.get(folder, {}).pop(path, None)
        self._removed.setdefault(folder, set()).add(path)
        return True

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
            changes += self._shown_by(folder, {state.record: state.version for state in states.values()})
        self.store.apply(changes)

    def _shown_by(self, folder: str, written: Mapping[str, int]) -> list[Change]:
        """Note that files which were written show what they say, where something else was noted meanwhile."""
        changes: list[Change] = []
        for id_ in self.shown(folder, written.keys()) if written else ():
            current = self.store.get(id_)
            if current is None or current.version == written[id_]:
                changes.append(DropFiles(folder=shown_in(folder), paths=frozenset({id_})))
            else:
                changes.append(PutFiles(folder=shown_in(folder), files=(shown_state(id_, written[id_]),)))
        return changes

    def references(self, records: Collection[Record]) -> dict[str, str]:
        """The file of each of these records that says what the record says, as a path that leads there."""
        versions = {record.id: record.version for record in records}
        found: dict[str, str] = {}
        for folder in self.folders.values():
            states = [*self.store.files(folder, records=versions.keys()), *self._written.get(folder, {}).values()]
            found |= {
                state.record: os.path.join(folder, state.path)
                for state in states
                if state.version == versions.get(state.record)
            }
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

    def _noted_digest(self, folder: str, id: str, path: str) -> str | None:
        """The digest of what was last written or read of a record at a path."""
        own = self._written.get(folder, {}).get(path)
        states = [own] if own else self.store.files(folder, records=[id])
        return next((state.digest for state in states if state.path == path), None)

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


def _read_known(folder: str, path: str) -> tuple[bytes, str, int] | None:
    """A file's bytes, their digest and its stamp; None if there is no file.  What cannot be read has no digest."""
    try:
        data, stamp = _read(folder, path)
        data.decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        return b"", "", 0
    return data, _digest(data), stamp


def _digest(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 - see _write

    return sha256(data).hexdigest()


def _text(folder: str, path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return _read(folder, path)[0].decode()
    except (OSError, UnicodeDecodeError):
        return None

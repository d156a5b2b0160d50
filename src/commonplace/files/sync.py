"""Sync a folder of Markdown and its records.

The work is planned in ``plan``, which is pure, and done here, through the same gate as every other write.  A missing
folder is an error, and many files missing at once are reported and left: neither is taken for a deletion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256

from commonplace.engine.admission import Admitted, admit
from commonplace.files import disk as files
from commonplace.files.codec import FileTrouble, apply_file, decode
from commonplace.files.mirror import MirroredStore
from commonplace.files.plan import (
    Action,
    Add,
    Drop,
    FoundFile,
    Missing,
    Note,
    Remove,
    Trouble,
    Update,
    Write,
    plan,
)
from commonplace.model.binding import Binding
from commonplace.model.changes import Archive, Change, DropFiles, Load, Put, PutFiles, Restore
from commonplace.model.documents import FileState
from commonplace.model.errors import Conflict, InvalidInput, StoreError
from commonplace.model.ids import SHORT, is_id, is_prefix, new_id
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import CATEGORIES, Channel, Draft, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding

GROUP = 500  # actions per commit: bounded work under the lock
EVERYTHING = 10_000_000  # a limit that no scope reaches
VANISHED = "#vanished"  # after a folder's name: what was archived because its file was gone from there
LOCK_SECONDS = 10.0  # how long a sync waits for another one
TRIES = 5  # of a sync that others keep overtaking
MISSING_FEW = 3  # so many files may be missing without a question
MISSING_SHARE = 0.5  # beyond that, this share of all


class SyncReport(Value):
    """What a sync did."""

    added: tuple[str, ...] = ()  #: paths whose records are new
    changed: tuple[str, ...] = ()  #: paths whose records were updated
    archived: tuple[str, ...] = ()  #: ids whose files had vanished
    restored: tuple[str, ...] = ()  #: ids whose files came back after that
    written: tuple[str, ...] = ()  #: ids whose files were written
    removed: tuple[str, ...] = ()  #: paths whose records had been erased
    missing: tuple[str, ...] = ()  #: paths that vanished together; nothing was done about them
    troubles: tuple[Trouble, ...] = ()  #: files that could not be read
    redactions: tuple[tuple[str, Finding], ...] = ()  #: secrets taken out, by path

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to do and nothing to report."""
        return self == SyncReport()


class _File(Value):
    """A file that has to be written after the commit."""

    record: str
    at: str  #: where it is
    to: str  #: where it belongs


def rewrite_files(store: MirroredStore, scope: Scope, before: Sequence[FileState], *, now: datetime) -> None:
    """Rewrite the files of a scope to match its records, after a backup was restored; ``before`` are the old states."""
    folder = store.folders[scope]
    where = Filter(scopes=frozenset({scope}), at=now, states=ANY_STATE)
    paths = {state.record: state.path for state in (*store.files(folder), *before)}
    for record in store.find(where, order=Order.ID, limit=EVERYTHING):
        store.write(folder, record.id, at=paths.get(record.id))
    store.settle()
    for path in {state.path for state in before} - {state.path for state in store.files(folder)}:
        store.remove(folder, path)
    store.settle()


class Syncer:
    """One folder and its scope, for one sync."""

    def __init__(
        self,
        store: MirroredStore,
        scope: Scope,
        binding: Binding,
        *,
        clock: Callable[[], datetime],
        secret: Callable[[], bytes],
    ) -> None:
        self.store = store
        self.scope = scope
        self.folder = store.folders[scope]
        self.binding = binding.replace(channel=Channel.FILE, also_writes=frozenset({scope}))
        self.clock = clock
        self.secret = secret
        self.report = SyncReport()
        self.overtaken = False  # a record was changed between the read and the commit: read again

    def make_plan(self, *, accept_missing: bool = False) -> list[Action]:
        """Read the folder and plan; files that are missing together are only noted in the report."""
        self._require_folder()
        self.store.settle()
        known = self.store.files(self.folder)
        actions = plan(seen=self._find_files(known), known=known, records=self._records(), history=self._history)
        return actions if accept_missing else self._without_mass_deletion(actions, len(known))

    def preview(self) -> tuple[SyncReport, int]:
        """What a run would report, and how many actions it would take; nothing is changed."""
        actions = self.make_plan()
        for action in actions:
            if isinstance(action, Add | Update | Trouble):  # the gate refuses some, which no plan can know
                self._prepare(action, [], [])
        refused = {trouble.path for trouble in self.report.troubles}
        return self.report, sum(action.path not in refused for action in actions)

    def run(
        self, *, accept_missing: bool = False, progress: ProgressCallback = no_progress, wait: float = LOCK_SECONDS
    ) -> SyncReport:
        """Read, plan and act; one process at a time, or a new file would become a record of each."""
        self._require_folder()
        with files.folder_lock(os.path.dirname(self.folder), seconds=wait):
            for _ in range(TRIES):
                self.overtaken = False
                self.report = self.report.replace(troubles=(), missing=())  # they are reported anew
                self._once(accept_missing=accept_missing, progress=progress)
                if not self.overtaken:
                    break
            files.remove_leftovers(self.folder)
        return self.report

    def _once(self, *, accept_missing: bool, progress: ProgressCallback) -> None:
        actions = self.make_plan(accept_missing=accept_missing)
        for start in range(0, len(actions), GROUP):
            progress(start, len(actions))
            self._do(actions[start : start + GROUP])
        progress(len(actions), len(actions))
        self.store.settle()

    # Reading

    def _require_folder(self) -> None:
        if not os.path.isdir(self.folder):
            raise StoreError(f"the folder {self.folder!r} is missing; its records were left as they are")

    def _find_files(self, known: Sequence[FileState]) -> list[FoundFile]:
        states = {state.path: state for state in known}
        listed = dict(files.list_files(self.folder))
        looks = [self._read_file(path, stamp, states.get(path)) for path, stamp in sorted(listed.items())]
        return [seen for seen in (*looks, *map(self._found_link, sorted(states.keys() - listed.keys()))) if seen]

    def _found_link(self, path: str) -> FoundFile | None:
        """A file that was replaced by a link, or whose folder was: that is no deletion."""
        place = os.path.join(self.folder, path)
        if not os.path.lexists(place) or not (os.path.islink(place) or os.path.islink(os.path.dirname(place))):
            return None
        trouble = Trouble(path=path, line=1, reason="is a link, or in a folder that is one; only plain files are read")
        return FoundFile(path=path, digest="", stamp=0, trouble=trouble)

    def _read_file(self, path: str, stamp: int, state: FileState | None) -> FoundFile | None:
        if state is not None and state.stamp == stamp:
            return FoundFile(path=path, digest=state.digest, stamp=stamp)
        try:
            data, read_stamp = files.read(self.folder, path)
        except OSError as error:
            trouble = Trouble(path=path, line=1, reason=f"cannot be read: {error.strerror}")
            return FoundFile(path=path, digest="", stamp=stamp, trouble=trouble)
        if not data.strip(b"\0") and self._is_torn(path, state):
            return None
        digest = sha256(data).hexdigest()
        try:
            return FoundFile(path=path, digest=digest, stamp=read_stamp, parsed=decode(data, path=path))
        except FileTrouble as error:
            trouble = Trouble(path=path, line=error.line, reason=error.reason)
            return FoundFile(path=path, digest=digest, stamp=read_stamp, trouble=trouble)

    def _is_torn(self, path: str, state: FileState | None) -> bool:
        """Whether an empty file was being written when the power failed, and was not emptied by a person."""
        if state is not None:
            record = self.store.get(state.record)
            return record is not None and record.version != state.version
        short = path.removesuffix(".md").rpartition("--")[2]
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, prefix=short)
        return len(short) == SHORT and is_prefix(short) and bool(self.store.find(where, order=Order.ID, limit=1))

    def _records(self) -> dict[str, Record]:
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE)
        return {record.id: record for record in self.store.find(where, order=Order.ID, limit=EVERYTHING)}

    def _history(self, id: str) -> Sequence[Record]:
        where = Filter(
            scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, ids=frozenset({id}), versions=True
        )
        return self.store.find(where, order=Order.ID, limit=EVERYTHING)[1:]

    def _without_mass_deletion(self, actions: Sequence[Action], known: int) -> list[Action]:
        """Hold back archiving if many files are missing at once: more likely another branch or a mistake."""
        gone = [action for action in actions if isinstance(action, Missing)]
        if len(gone) <= max(MISSING_FEW, known * MISSING_SHARE):
            return list(actions)
        self.report = self.report.replace(missing=tuple(action.path for action in gone))
        return [action for action in actions if not isinstance(action, Missing)]

    # Doing

    def _do(self, actions: Sequence[Action]) -> None:
        """Do one group in one commit; if one action conflicts, do each by itself."""
        before = self.report
        try:
            self._commit(actions)
        except Conflict as conflict:
            self.report = before
            if len(actions) > 1:
                for action in actions:
                    self._do([action])
            elif isinstance(actions[0], Update) and conflict.holder == actions[0].record.id:
                self.overtaken = True
            else:
                self._report(troubles=Trouble(path=actions[0].path, line=1, reason=str(conflict)))

    def _commit(self, actions: Sequence[Action]) -> None:
        """The records in one transaction, then their files."""
        changes: list[Change] = []
        writes: list[_File] = []
        for action in actions:
            self._prepare(action, changes, writes)
        self.store.store.apply(changes)
        for file in writes:
            self.store.write(self.folder, file.record, at=file.at, to=file.to)

    def _prepare(self, action: Action, changes: list[Change], writes: list[_File]) -> None:
        match action:
            case Add():
                self._add(action, changes, writes)
            case Update():
                self._update(action, changes, writes)
            case Note():
                changes.append(PutFiles(folder=self.folder, files=(_state(action),)))
            case Write():
                if self._came_back(action.record):
                    changes.append(Restore(where=self._only(action.record), at=self.clock()))
                    self._report(restored=action.record.id)
                writes.append(_File(record=action.record.id, at=action.old_path or action.path, to=action.path))
                self._report(written=action.record.id)
            case Missing():
                changes += [Archive(where=self._only(action.record), at=self.clock()), self._drop(action.path)]
                changes.append(PutFiles(folder=self.folder + VANISHED, files=(_missing_state(action),)))
                self._report(archived=action.record.id)
            case Remove():
                self.store.remove(self.folder, action.path)
                self._report(removed=action.path)
            case Drop():
                changes.append(self._drop(action.path))
            case Trouble():
                self._report(troubles=action)

    def _came_back(self, record: Record) -> bool:
        """Whether a file that exists again was missing, and its record has not changed since."""
        if record.archived_at is None:
            return False
        gone = self.store.files(self.folder + VANISHED, records=[record.id])
        return any(state.version == record.version for state in gone)

    def _only(self, record: Record) -> Filter:
        return Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, ids=frozenset({record.id}))

    def _add(self, action: Add, changes: list[Change], writes: list[_File]) -> None:
        """Make a record of a new file, with the dates and the version in its frontmatter."""
        parsed, now = action.parsed, self.clock()
        free = parsed.id and is_id(parsed.id) and self.store.get(parsed.id) is None
        created = parsed.created_at or now
        fresh = Record(
            id=parsed.id if parsed.id and free else new_id(now),
            scope=self.scope,
            kind=parsed.kind or CATEGORIES.get(parsed.category or "", Kind.SEMANTIC),
            content=parsed.content,
            source=parsed.source or Source(channel=Channel.FILE, ref=action.path),
            trust=Trust.USER if parsed.trust is None else parsed.trust,
            version=max(1, parsed.version or 1),
            created_at=created,
            updated_at=parsed.updated_at or created,
        )
        from_file = apply_file(fresh, parsed)
        admitted = self._admit(from_file, action.path)
        if admitted is None:
            return
        record = admitted.record.replace(
            version=fresh.version, updated_at=fresh.updated_at, source=from_file.source, trust=from_file.trust
        )
        changes.append(Load(versions=(record,), terms=(admitted.terms,)))
        writes.append(_File(record=record.id, at=action.path, to=action.home))
        self._report(added=action.path)

    def _update(self, action: Update, changes: list[Change], writes: list[_File]) -> None:
        """Make a changed file the next version of its record."""
        before = action.record
        admitted = self._admit(apply_file(before, action.parsed), action.path)
        if admitted is None:
            return
        after = admitted.record
        if after.content == before.content and after.value == before.value:
            approved = before.approved_at if after.category == before.category else None
            after = after.replace(source=before.source, trust=before.trust, approved_at=approved)
        else:
            after = after.replace(source=Source(channel=Channel.FILE, ref=action.path, parents=before.source.parents))
        changes.append(Put(record=after, terms=admitted.terms, expect=before.version))
        writes.append(_File(record=before.id, at=action.path, to=action.home))
        self._report(changed=action.path)

    def _admit(self, from_file: Record, path: str) -> Admitted | None:
        """Admit a record from a file; what the gate does not judge stays as in the file."""
        draft = Draft(**{name: getattr(from_file, name) for name in Draft.fields if name in Record.fields}, ref=path)
        try:
            admitted = admit(draft, binding=self.binding, id=from_file.id, now=self.clock(), secret=self.secret())
        except InvalidInput as error:
            self._report(troubles=Trouble(path=path, line=1, reason=str(error)))
            return None
        for finding in admitted.redactions:
            self._report(redactions=(path, finding))
        record = admitted.record.replace(
            created_at=from_file.created_at,
            archived_at=from_file.archived_at,
            superseded_by=from_file.superseded_by,
            consolidated_at=from_file.consolidated_at,
        )
        return admitted.replace(record=record)

    def _drop(self, path: str) -> DropFiles:
        return DropFiles(folder=self.folder, paths=frozenset({path}))

    def _report(self, **what: object) -> None:
        self.report = self.report.replace(
            **{field: (*getattr(self.report, field), value) for field, value in what.items()}
        )


def _missing_state(action: Missing) -> FileState:
    """The version of a record that was archived because its file was missing; it identifies a file that comes back."""
    return FileState(
        path=action.record.id, record=action.record.id, version=action.record.version + 1, digest="", stamp=0
    )


def _state(note: Note) -> FileState:
    return FileState(
        path=note.path, record=note.record.id, version=note.record.version, digest=note.digest, stamp=note.stamp
    )

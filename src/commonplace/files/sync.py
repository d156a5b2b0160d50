"""Bring a folder of Markdown and its records together.

What has to be done is planned purely (``files/plan.py``) and done here, through the same gate as every other write.
An absent folder is an error, and many files gone at once are asked about: neither is taken for a wish to delete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256

from commonplace.engine.admission import Admitted, admit
from commonplace.files import disk as files
from commonplace.files.codec import FileTrouble, amended, decode
from commonplace.files.mirror import MirroredStore
from commonplace.files.plan import (
    Action,
    Add,
    Drop,
    Gone,
    Note,
    Remove,
    Seen,
    Trouble,
    Write,
    plan,
)
from commonplace.files.plan import Change as Edited
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
LOCK_SECONDS = 10.0  # so long a sync waits for another one
TRIES = 5  # of a sync that others keep overtaking
MISSING_FEW = 3  # so many files may vanish without asking
MISSING_SHARE = 0.5  # beyond that, this share of all


class Report(Value):
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
    def quiet(self) -> bool:
        """Whether there was nothing to do and nothing to say."""
        return self == Report()


class _File(Value):
    """A file that has to be written after the commit."""

    record: str
    at: str  #: where it is
    to: str  #: where it belongs


def follow(store: MirroredStore, scope: Scope, before: Sequence[FileState], *, now: datetime) -> None:
    """Make the files of a scope what its records say, whatever they said ``before``: a backup was put back."""
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
        self.report = Report()
        self.overtaken = False  # somebody changed a record between the look and the commit: look again

    def planned(self, *, accept_missing: bool = False) -> list[Action]:
        """Look and plan, and do nothing yet; files that vanished together are only noted in the report."""
        self._must_be_there()
        self.store.settle()
        known = self.store.files(self.folder)
        actions = plan(seen=self._seen(known), known=known, records=self._records(), history=self._history)
        return actions if accept_missing else self._asked(actions, len(known))

    def foreseen(self) -> tuple[Report, int]:
        """What a run would say, with what it could not do, and how much it would do; nothing is done."""
        actions = self.planned()
        for action in actions:
            if isinstance(action, Add | Edited | Trouble):  # the gate refuses some, which no plan can know
                self._prepare(action, [], [])
        refused = {trouble.path for trouble in self.report.troubles}
        return self.report, sum(action.path not in refused for action in actions)

    def run(
        self, *, accept_missing: bool = False, tell: ProgressCallback = no_progress, wait: float = LOCK_SECONDS
    ) -> Report:
        """Look, plan, do; one process at a time, or a new file would become a record of each."""
        self._must_be_there()
        with files.locked(os.path.dirname(self.folder), seconds=wait):
            for _ in range(TRIES):
                self.overtaken = False
                self.report = self.report.replace(troubles=(), missing=())  # they are told anew
                self._once(accept_missing=accept_missing, tell=tell)
                if not self.overtaken:
                    break
            files.sweep(self.folder)
        return self.report

    def _once(self, *, accept_missing: bool, tell: ProgressCallback) -> None:
        actions = self.planned(accept_missing=accept_missing)
        for start in range(0, len(actions), GROUP):
            tell(start, len(actions))
            self._do(actions[start : start + GROUP])
        tell(len(actions), len(actions))
        self.store.settle()

    # Looking

    def _must_be_there(self) -> None:
        if not os.path.isdir(self.folder):
            raise StoreError(f"the folder {self.folder!r} is not there; its records were left as they are")

    def _seen(self, known: Sequence[FileState]) -> list[Seen]:
        states = {state.path: state for state in known}
        listed = dict(files.listed(self.folder))
        looks = [self._look(path, stamp, states.get(path)) for path, stamp in sorted(listed.items())]
        return [seen for seen in (*looks, *map(self._linked, sorted(states.keys() - listed.keys()))) if seen]

    def _linked(self, path: str) -> Seen | None:
        """A file in whose place, or whose folder's, somebody has put a link: that is no wish to delete."""
        place = os.path.join(self.folder, path)
        if not os.path.lexists(place) or not (os.path.islink(place) or os.path.islink(os.path.dirname(place))):
            return None
        trouble = Trouble(path=path, line=1, reason="is a link, or in a folder that is one; only plain files are read")
        return Seen(path=path, digest="", stamp=0, trouble=trouble)

    def _look(self, path: str, stamp: int, state: FileState | None) -> Seen | None:
        if state is not None and state.stamp == stamp:
            return Seen(path=path, digest=state.digest, stamp=stamp)
        try:
            data, read_stamp = files.read(self.folder, path)
        except OSError as error:
            trouble = Trouble(path=path, line=1, reason=f"cannot be read: {error.strerror}")
            return Seen(path=path, digest="", stamp=stamp, trouble=trouble)
        if not data.strip(b"\0") and self._was_cut_off(path, state):
            return None
        digest = sha256(data).hexdigest()
        try:
            return Seen(path=path, digest=digest, stamp=read_stamp, said=decode(data, path=path))
        except FileTrouble as error:
            trouble = Trouble(path=path, line=error.line, reason=error.reason)
            return Seen(path=path, digest=digest, stamp=read_stamp, trouble=trouble)

    def _was_cut_off(self, path: str, state: FileState | None) -> bool:
        """Whether an empty file is one that we were writing when the power failed, and nobody's wish."""
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

    def _asked(self, actions: Sequence[Action], known: int) -> list[Action]:
        """Many files gone at once are more likely another branch or a mistake than a wish."""
        gone = [action for action in actions if isinstance(action, Gone)]
        if len(gone) <= max(MISSING_FEW, known * MISSING_SHARE):
            return list(actions)
        self.report = self.report.replace(missing=tuple(action.path for action in gone))
        return [action for action in actions if not isinstance(action, Gone)]

    # Doing

    def _do(self, actions: Sequence[Action]) -> None:
        """One group in one commit; if one action cannot be done, each by itself, so that the others are."""
        before = self.report
        try:
            self._commit(actions)
        except Conflict as conflict:
            self.report = before
            if len(actions) > 1:
                for action in actions:
                    self._do([action])
            elif isinstance(actions[0], Edited) and conflict.holder == actions[0].record.id:
                self.overtaken = True
            else:
                self._tell(troubles=Trouble(path=actions[0].path, line=1, reason=str(conflict)))

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
                self._take_in(action, changes, writes)
            case Edited():
                self._take_over(action, changes, writes)
            case Note():
                changes.append(PutFiles(folder=self.folder, files=(_state(action),)))
            case Write():
                if self._came_back(action.record):
                    changes.append(Restore(where=self._only(action.record), at=self.clock()))
                    self._tell(restored=action.record.id)
                writes.append(_File(record=action.record.id, at=action.old_path or action.path, to=action.path))
                self._tell(written=action.record.id)
            case Gone():
                changes += [Archive(where=self._only(action.record), at=self.clock()), self._dropped(action.path)]
                changes.append(PutFiles(folder=self.folder + VANISHED, files=(_vanished(action),)))
                self._tell(archived=action.record.id)
            case Remove():
                self.store.remove(self.folder, action.path)
                self._tell(removed=action.path)
            case Drop():
                changes.append(self._dropped(action.path))
            case Trouble():
                self._tell(troubles=action)

    def _came_back(self, record: Record) -> bool:
        """Whether a file that is there again had vanished, and nothing has happened to its record since."""
        if record.archived_at is None:
            return False
        gone = self.store.files(self.folder + VANISHED, records=[record.id])
        return any(state.version == record.version for state in gone)

    def _only(self, record: Record) -> Filter:
        return Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, ids=frozenset({record.id}))

    def _take_in(self, action: Add, changes: list[Change], writes: list[_File]) -> None:
        """A file that no record stands behind becomes one, with whatever past it tells of."""
        said, now = action.said, self.clock()
        free = said.id and is_id(said.id) and self.store.get(said.id) is None
        created = said.created_at or now
        fresh = Record(
            id=said.id if said.id and free else new_id(now),
            scope=self.scope,
            kind=said.kind or CATEGORIES.get(said.category or "", Kind.SEMANTIC),
            content=said.content,
            source=said.source or Source(channel=Channel.FILE, ref=action.path),
            trust=Trust.USER if said.trust is None else said.trust,
            version=max(1, said.version or 1),
            created_at=created,
            updated_at=said.updated_at or created,
        )
        told = amended(fresh, said)
        admitted = self._admit(told, action.path)
        if admitted is None:
            return
        record = admitted.record.replace(
            version=fresh.version, updated_at=fresh.updated_at, source=told.source, trust=told.trust
        )
        changes.append(Load(versions=(record,), terms=(admitted.terms,)))
        writes.append(_File(record=record.id, at=action.path, to=action.home))
        self._tell(added=action.path)

    def _take_over(self, action: Edited, changes: list[Change], writes: list[_File]) -> None:
        """A file that a person changed is the record's next version."""
        before = action.record
        admitted = self._admit(amended(before, action.said), action.path)
        if admitted is None:
            return
        after = admitted.record
        if after.content == before.content and after.value == before.value:
            after = after.replace(source=before.source, trust=before.trust)
        else:
            after = after.replace(source=Source(channel=Channel.FILE, ref=action.path, parents=before.source.parents))
        changes.append(Put(record=after, terms=admitted.terms, expect=before.version))
        writes.append(_File(record=before.id, at=action.path, to=action.home))
        self._tell(changed=action.path)

    def _admit(self, told: Record, path: str) -> Admitted | None:
        """Through the gate; what a gate does not judge is kept as the file tells it."""
        draft = Draft(
            content=told.content, category=told.category, kind=told.kind, scope=self.scope, key=told.key,
            value=told.value, tags=told.tags, metadata=told.metadata, pinned=told.pinned, held=told.held,
            occurred_at=told.occurred_at, expires_at=told.expires_at, ref=path,
        )  # fmt: skip
        try:
            admitted = admit(draft, binding=self.binding, id=told.id, now=self.clock(), secret=self.secret())
        except InvalidInput as error:
            self._tell(troubles=Trouble(path=path, line=1, reason=str(error)))
            return None
        for finding in admitted.redactions:
            self._tell(redactions=(path, finding))
        record = admitted.record.replace(
            created_at=told.created_at,
            archived_at=told.archived_at,
            superseded_by=told.superseded_by,
            consolidated_at=told.consolidated_at,
        )
        return admitted.replace(record=record)

    def _dropped(self, path: str) -> DropFiles:
        return DropFiles(folder=self.folder, paths=frozenset({path}))

    def _tell(self, **what: object) -> None:
        self.report = self.report.replace(
            **{field: (*getattr(self.report, field), value) for field, value in what.items()}
        )


def _vanished(action: Gone) -> FileState:
    """Which version of a record was archived because its file was gone: by that a file that comes back is known."""
    return FileState(
        path=action.record.id, record=action.record.id, version=action.record.version + 1, digest="", stamp=0
    )


def _state(note: Note) -> FileState:
    return FileState(
        path=note.path, record=note.record.id, version=note.record.version, digest=note.digest, stamp=note.stamp
    )

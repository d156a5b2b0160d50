"""Sync a folder of Markdown and its records.

The work is planned in ``plan``, which is pure, and done here, through the same gate as every other write.  A missing
folder is an error, and many files missing at once are reported and left: neither is taken for a deletion.

**A read writes no file that Git tracks.**  A sync before a read (``writes=False``) takes edits in and notes which
version each file shows.  Of files that Git does not track it also gives new ones their id and takes secrets out.  All
else that has to be written waits for `commonplace sync`, or for a write of the record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from hashlib import sha256

from commonplace.engine.admission import Admitted, Gate, admit
from commonplace.engine.tombstones import find_erased, text_digest
from commonplace.files import disk as files
from commonplace.files import swap
from commonplace.files.codec import (
    FILE_BYTES,
    FileTrouble,
    ParsedFile,
    apply_file,
    clean_path,
    decode,
    matches_record,
    redact_comments,
)
from commonplace.files.external import Judge, apply_external, is_proposed, proposal_of, without_claims
from commonplace.files.mirror import MirroredStore
from commonplace.files.plan import (
    Action,
    Add,
    Drop,
    FoundFile,
    Hide,
    Leave,
    Missing,
    Note,
    Remove,
    Trouble,
    Update,
    Write,
    plan,
)
from commonplace.files.strays import find_strays
from commonplace.git.provenance import FileOrigin
from commonplace.git.tracking import TrackedFiles, tracked_files
from commonplace.model.binding import Binding
from commonplace.model.changes import Archive, Change, DropFiles, FromCheckout, Load, Put, PutFiles, Restore
from commonplace.model.documents import HIDDEN, FileState, shown_in, shown_state
from commonplace.model.errors import Conflict, InvalidInput, StoreError
from commonplace.model.ids import SHORT, is_id, is_prefix, moment_of, new_id
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
    hidden: tuple[str, ...] = ()  #: paths of files that this checkout does not have; their records stay elsewhere
    vanished: tuple[str, ...] = ()  #: paths of the files of those that were archived
    alike: tuple[tuple[str, str, tuple[str, str]], ...] = ()  #: paths, and ids, of new files and what says the same
    unwritten: tuple[str, ...] = ()  #: paths of files that were not written because a read does not
    restored: tuple[str, ...] = ()  #: ids whose files came back after that
    written: tuple[str, ...] = ()  #: ids whose files were written
    removed: tuple[str, ...] = ()  #: paths whose records had been erased
    missing: tuple[str, ...] = ()  #: paths that vanished together; nothing was done about them
    erased: tuple[str, ...] = ()  #: paths of files that hold what a person has erased; they were left as they are
    troubles: tuple[Trouble, ...] = ()  #: files that could not be read
    external: tuple[str, ...] = ()  #: paths whose records are external: they came by Git, from others
    proposed: tuple[str, ...] = ()  #: paths whose change waits for review, because it came by Git, from others
    notes: tuple[str, ...] = ()  #: why Git could not be asked, as sentences
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
    digest: str | None = None  #: of what was read there; None: it was not read
    version: int | None = None  #: the version of the record that is what was read there, if one was made of it


class _UncleanFile(Value):
    """A file with secrets in its comments or its name."""

    path: str
    to: str  #: its name without them
    data: bytes  #: without those in comments
    findings: tuple[Finding, ...]


def rewrite_files(store: MirroredStore, scope: Scope, before: Sequence[FileState], *, now: datetime) -> None:
    """Rewrite the files of a scope to match its records, after a backup was restored; ``before`` are the old states."""
    folder = store.folders[scope]
    where = Filter(scopes=frozenset({scope}), at=now, states=ANY_STATE)
    paths = {state.record: state.path for state in (*store.files(folder), *before)}
    digests = {state.path: state.digest for state in before}
    for record in store.find(where, order=Order.ID, limit=EVERYTHING):
        path = paths.get(record.id)
        store.write(folder, record.id, at=path, expect=digests.get(path or ""))
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
        judge: Judge,
        archives: bool = True,
        writes: bool = True,
        restores: bool = False,
    ) -> None:
        """``judge`` finds out which files are the user's word.

        ``archives``: whether a missing file archives its record; it does in one folder of each project.  ``writes``:
        whether files that Git tracks may be written; no read may.  ``restores``: whether live records that have no file
        here get one.
        """
        self.restores = restores
        self.archives = archives
        self.writes = writes
        self.store = store
        self._tracked = TrackedFiles()
        self.scope = scope
        self.folder = store.folders[scope]
        self.binding = binding.replace(channel=Channel.FILE, also_writes=frozenset({scope}))
        self.clock = clock
        self.secret = secret
        self.judge = judge
        self.report = SyncReport()
        self._records: dict[str, Record] = {}
        self._shown: dict[str, Record | None] = {}
        self._read: dict[str, tuple[bytes, FoundFile]] = {}  # the files that were read, by path
        self._origins: dict[str, FileOrigin] = {}  # of the files that are new or changed, by path
        self._unclean: list[_UncleanFile] = []  # files that name secrets where no record is made of it
        self.overtaken = False  # a record was changed between the read and the commit: read again

    def make_plan(self, *, accept_missing: bool = False) -> list[Action]:
        """Read the folder and plan; files that are missing together are only noted in the report."""
        self._require_folder()
        self.store.settle()
        known = self.store.files(self.folder)
        self._records, self._read = self._load_records(), {}
        for state in known:
            if state.record not in self._records:  # erased; or damaged, and then this says so: its file must stay
                self.store.get(state.record)
        seen = self._find_files(known)
        paths = {*(file.path for file in seen), *(state.path for state in known)}
        self._tracked = tracked_files(self.folder, paths)
        self._shown = self._load_shown()
        if self.restores:
            self._shown = {id_: version for id_, version in self._shown.items() if version is not None}
        actions = plan(
            seen=seen,
            known=known,
            records=self._records,
            history=self._history,
            erased=self._is_erased,
            shown=self._shown,
            branches=self._tracked.in_repository and not self.restores,
            tracked=self._tracked.tracked,
        )
        if self.writes:  # a read says nothing about files that are none of its business
            actions += find_strays(self.folder)
        if self.restores:
            actions = [self._written_back(action) for action in actions]
        self._origins = self._find_origins([action for action in actions if isinstance(action, Add | Update)])
        return actions if accept_missing else self._without_mass_deletion(actions, len(known))

    def preview(self) -> tuple[SyncReport, int]:
        """What a run would report, and how many actions it would take; nothing is changed."""
        actions = self.make_plan()
        for action in actions:
            if isinstance(action, Add | Update | Trouble):  # the gate refuses some, which no plan can know
                self._prepare(action, [], [])
        self.report = self.report.replace(erased=tuple(one.path for one in actions if isinstance(one, Leave)))
        refused = {*(trouble.path for trouble in self.report.troubles), *self.report.erased}
        apart = [action for action in actions if not isinstance(action, Note)]  # those agree: only the time is another
        return self.report, sum(action.path not in refused for action in apart)

    def run(
        self, *, accept_missing: bool = False, progress: ProgressCallback = no_progress, wait: float = LOCK_SECONDS
    ) -> SyncReport:
        """Read, plan and act; one process at a time, or a new file would become a record of each."""
        self._require_folder()
        with files.folder_lock(os.path.dirname(self.folder), seconds=wait):
            for _ in range(TRIES):
                self.overtaken = False
                self.report = self.report.replace(troubles=(), missing=(), erased=())  # they are reported anew
                self._once(accept_missing=accept_missing, progress=progress)
                if not self.overtaken:
                    break
        return self.report

    def _once(self, *, accept_missing: bool, progress: ProgressCallback) -> None:
        with files.folder_lock(self.folder):  # no one is writing there: what lies about was left by the dead
            swap.rescue(self.folder, files.list_temporary(self.folder))
        actions = self.make_plan(accept_missing=accept_missing)
        if self._clean_files():
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
            data, read_stamp = files.read(self.folder, path, limit=FILE_BYTES)
        except OSError as error:
            trouble = Trouble(path=path, line=1, reason=f"cannot be read: {error.strerror}")
            return FoundFile(path=path, digest="", stamp=stamp, trouble=trouble)
        if not data.strip(b"\0") and self._is_torn(path, state):
            return None
        digest = sha256(data).hexdigest()
        try:
            parsed = decode(data, path=path)
            self._note_unclean(path, data, known=state is not None)
            found = FoundFile(path=path, digest=digest, stamp=read_stamp, parsed=parsed)
        except FileTrouble as error:
            trouble = Trouble(path=path, line=error.line, reason=error.reason)
            return FoundFile(path=path, digest=digest, stamp=read_stamp, trouble=trouble)
        self._read[path] = data, found
        return found

    def _note_unclean(self, path: str, data: bytes, *, known: bool) -> None:
        """Note a file whose comments hold secrets, or whose name does; a known name has passed before."""
        gate = Gate(self.secret())
        cleaned = redact_comments(data, lambda text: gate.text(text, what="a comment"))
        to = path if known else clean_path(path, lambda name: gate.text(name, what="the name of a file"))
        if gate.findings:
            self._unclean.append(_UncleanFile(path=path, to=to, data=cleaned, findings=tuple(gate.findings)))

    def _clean_files(self) -> bool:
        """Rewrite and rename the files that were noted; return whether there were any."""
        noted, self._unclean = self._unclean, []
        cleaned = False
        for file in noted:
            digest = self._read[file.path][1].digest
            to = file.to if file.to == file.path else files.free_path(self.folder, file.to)
            if not self._may_write(file.path):
                self._report(unwritten=file.path)
                continue
            with files.folder_lock(self.folder):
                if to != file.path:
                    swap.move_unless_taken(self.folder, file.path, to)
                stamp = swap.replace_unchanged(self.folder, to, file.data, expect=digest)
            if stamp is None:  # a person has saved it again: it is looked at again
                self.overtaken = True
                continue
            cleaned = True
            for finding in file.findings:
                self._report(redactions=(to, finding))
        return cleaned or self.overtaken

    def _is_torn(self, path: str, state: FileState | None) -> bool:
        """Whether an empty file was being written when the power failed, and was not emptied by a person."""
        if state is not None:
            record = self.store.store.get(state.record)
            return record is not None and record.version != state.version
        short = path.removesuffix(".md").rpartition("--")[2]
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, prefix=short)
        return len(short) == SHORT and is_prefix(short) and bool(self.store.store.find(where, order=Order.ID, limit=1))

    def _find_origins(self, actions: Sequence[Add | Update]) -> dict[str, FileOrigin]:
        """Where new and changed files come from; what a record already was is trusted as it was then."""
        found: dict[str, FileOrigin] = {}
        for action in actions:
            trusts = self._trusts_of(action) if isinstance(action, Update) else []
            if trusts:
                found[action.path] = FileOrigin(trust=max(trusts))
        unknown = {action.path: self._read[action.path][0] for action in actions if action.path not in found}
        found |= self.judge(unknown) if unknown else {}
        self._report_each(notes={origin.reason for origin in found.values() if origin.reason})
        return found

    def _trusts_of(self, action: Update) -> list[Trust]:
        """How far the versions of the record that say what the file says were trusted."""
        versions = self._history(action.record.id)
        return [version.trust for version in versions if matches_record(action.parsed, version)]

    def _load_records(self) -> dict[str, Record]:
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE)
        return {record.id: record for record in self.store.store.find(where, order=Order.ID, limit=EVERYTHING)}

    def _load_shown(self) -> dict[str, Record | None]:
        """The records of which this folder shows an earlier version, or, None, nothing."""
        states = {state.record: state.version for state in self.store.files(shown_in(self.folder))}
        wanted = {id_: version for id_, version in states.items() if id_ in self._records and version != HIDDEN}
        where = Filter(
            scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, ids=frozenset(wanted), versions=True
        )
        found = self.store.store.find(where, order=Order.ID, limit=EVERYTHING) if wanted else []
        shown: dict[str, Record | None] = {id_: None for id_, version in states.items() if version == HIDDEN}
        return shown | {
            one.id: one
            for one in found
            if one.version == wanted[one.id] and one.version != self._records[one.id].version
        }

    def _may_write(self, path: str) -> bool:
        return self.writes or path not in self._tracked.tracked

    def _history(self, id: str) -> Sequence[Record]:
        where = Filter(
            scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, ids=frozenset({id}), versions=True
        )
        return self.store.store.find(where, order=Order.ID, limit=EVERYTHING)[1:]

    def _is_erased(self, parsed: ParsedFile) -> bool:
        """Whether a person has erased the record that a file names, or one that said the same here."""
        own = {parsed.id} if parsed.id else set()
        digests = {*own, text_digest(self.scope, parsed.content, self.secret())}
        return bool(find_erased(self.store, digests))

    def _without_mass_deletion(self, actions: Sequence[Action], known: int) -> list[Action]:
        """Hold back archiving if many files are missing at once: more likely a mistake.

        What a checkout does not have for a reason of its own is hidden there, and not archived.
        """
        gone = [action for action in actions if isinstance(action, Missing) and not self._is_of_checkout(action)]
        if len(gone) <= max(MISSING_FEW, known * MISSING_SHARE):
            return list(actions)
        self.report = self.report.replace(missing=tuple(action.path for action in gone))
        return [action for action in actions if action not in gone]

    def _written_back(self, action: Action) -> Action:
        """Write the file of a record that is missing, instead of archiving or hiding it."""
        return Write(record=action.record, path=action.path) if isinstance(action, Missing) else action

    def _is_of_checkout(self, action: Missing) -> bool:
        """Whether a file is missing because this checkout does not have it.

        It does not if it is another clone or worktree, if Git does not track it here, as on another branch, if a sparse
        checkout leaves it out, or if the folder shows another version than the current one.
        """
        git, path = self._tracked, action.path
        by_git = git.in_repository and (path not in git.tracked or path in git.left_out)
        return not self.archives or by_git or action.record.id in self._shown

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
        self.store.store.apply([*changes, FromCheckout(scope=self.scope, folder=self.folder)])
        for path in [action.path for action in actions if isinstance(action, Add | Update | Note)]:
            stamp = files.stamp(self.folder, path)
            if stamp is not None and path in self._read and stamp != self._read[path][1].stamp:
                self.overtaken = True  # a person has saved it again
        for file in writes:
            if not self.store.write(self.folder, file.record, at=file.at, to=file.to, expect=file.digest):
                self._note_overtaken(file)

    def _note_overtaken(self, file: _File) -> None:
        """Read a file again that a person has saved since it was read; the record is what the file said then.

        Without this note a person who takes an edit back would find it made all the same: the file would say what the
        record was before, and so nothing new.
        """
        self.overtaken = True
        if file.digest is not None and file.version is not None:
            path = file.at if os.path.lexists(os.path.join(self.folder, file.at)) else file.to
            state = FileState(path=path, record=file.record, version=file.version, digest=file.digest, stamp=0)
            self.store.store.apply([PutFiles(folder=self.folder, files=(state,))])

    def _prepare(  # noqa: C901, PLR0912 - one case per action
        self, action: Action, changes: list[Change], writes: list[_File]
    ) -> None:
        match action:
            case Add():
                self._add(action, changes, writes)
            case Update():
                self._update(action, changes, writes)
            case Note():
                self._note(action, changes)
            case Write() if not self._may_write(action.old_path or action.path) or self._is_new(action):
                self._leave_unwritten(action, changes)
            case Write():
                if self._came_back(action.record):
                    changes.append(Restore(where=self._only(action.record), at=self.clock()))
                    self._report(restored=action.record.id)
                at = action.old_path or action.path
                writes.append(_File(record=action.record.id, at=at, to=action.path, digest=self._digest_read(at)))
                self._report(written=action.record.id)
            case Missing() if os.path.lexists(os.path.join(self.folder, action.path)):
                self.overtaken = True  # an editor that removes the file before it writes it anew
            case Missing() if self._tracked.is_locked:
                pass  # Git has not come to write it
            case Missing() if self._is_of_checkout(action):
                changes += [self._drop(action.path), self._show(action.record.id, HIDDEN)]
                self._report(hidden=action.path)
            case Hide():
                changes.append(self._show(action.record.id, HIDDEN))
            case Missing():
                changes += [Archive(where=self._only(action.record), at=self.clock()), self._drop(action.path)]
                changes.append(PutFiles(folder=self.folder + VANISHED, files=(_missing_state(action),)))
                self._report(archived=action.record.id, vanished=action.path)
            case Remove() if not self._may_write(action.path):
                self._report(unwritten=action.path)
            case Remove():
                if self.store.remove(self.folder, action.path, expect=action.digest):
                    self._report(removed=action.path)
                else:
                    self.overtaken = True
            case Leave():
                self._report(erased=action.path)
            case Drop():
                changes.append(self._drop(action.path))
            case Trouble():
                self._report(troubles=action)

    def _note(self, action: Note, changes: list[Change]) -> None:
        """Note that a file says what a version of its record says; the folder shows that version from now on."""
        said, current = action.record, self._records[action.record.id]
        if self._came_back(current) and said.archived_at is None:
            changes.append(Restore(where=self._only(current), at=self.clock()))
            self._report(restored=said.id)
            said = current.replace(version=current.version + 1)
        elif said.version != current.version:
            changes.append(self._show(said.id, said.version))
        elif said.id in self._shown:
            changes.append(DropFiles(folder=shown_in(self.folder), paths=frozenset({said.id})))
        changes.append(PutFiles(folder=self.folder, files=(_state(action.replace(record=said)),)))

    def _show(self, id: str, version: int) -> PutFiles:
        return PutFiles(folder=shown_in(self.folder), files=(shown_state(id, version),))

    def _is_new(self, action: Write) -> bool:
        """Whether a write would make a file where there is none, which no read does in a repository."""
        at = os.path.join(self.folder, action.old_path or action.path)
        return not self.writes and self._tracked.in_repository and not os.path.lexists(at)

    def _leave_unwritten(self, action: Write, changes: list[Change]) -> None:
        """Leave a file as it is, and know it from now on, if it says what its record says."""
        path = action.old_path or action.path
        if action.said is not None:
            changes.append(self._leave_file(path, action.said))
            if action.record.id in self._shown and self._records[action.record.id].version == action.said.version:
                changes.append(DropFiles(folder=shown_in(self.folder), paths=frozenset({action.record.id})))
        self._report(unwritten=path)

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
        origin, now = self._origins[action.path], self.clock()
        is_external = origin.trust is Trust.EXTERNAL
        parsed = without_claims(action.parsed, action.path, origin, now=now) if is_external else action.parsed
        from_file = apply_file(self._fresh(parsed, action.path, now), parsed)
        admitted = self._admit(from_file, action.path, ref=from_file.source.ref)
        if admitted is None:
            return
        ref = from_file.source.ref and admitted.record.source.ref
        record = admitted.record.replace(
            version=from_file.version, updated_at=from_file.updated_at, source=from_file.source.replace(ref=ref),
            trust=from_file.trust,
        )  # fmt: skip
        changes.append(Load(versions=(record,), terms=(admitted.terms,)))
        if is_external:
            changes.append(self._leave_file(action.path, record))
            self._report(external=action.path)
        else:
            self._plan_write(action, record, changes, writes)
        self._report(added=action.path)
        self._note_alike(action.path, record)

    def _note_alike(self, path: str, record: Record) -> None:
        """Note another live record that says the same, as when two people have added one fact."""
        words = record.content.split()
        for other in self._records.values():
            if (
                other.archived_at is None
                and not other.held
                and other.id != record.id
                and other.content.split() == words
            ):
                known = self.store.files(self.folder, records=[other.id])
                self._report(alike=(path, known[0].path if known else other.short, (record.id, other.id)))
                return

    def _plan_write(self, action: Add | Update, record: Record, changes: list[Change], writes: list[_File]) -> None:
        """Write the file of a record that was made of it, if it does not say all of it; else note it as it is."""
        parsed = action.parsed.replace(category=action.parsed.category or record.category)
        says_all = self._read[action.path][1].parsed
        is_whole = says_all is not None and bool(says_all.id) and action.home == action.path
        if (is_whole and matches_record(parsed, record)) or not self._may_write(action.path):
            changes.append(self._leave_file(action.path, record))
            if not (is_whole and matches_record(parsed, record)):
                self._report(unwritten=action.path)
            return
        writes.append(
            _File(
                record=record.id, at=action.path, to=action.home, digest=self._digest_read(action.path),
                version=record.version,
            )
        )  # fmt: skip

    def _fresh(self, parsed: ParsedFile, path: str, now: datetime) -> Record:
        """The record that a new file begins as."""
        free = parsed.id and is_id(parsed.id) and self.store.store.get(parsed.id) is None
        created = parsed.created_at or (min(moment_of(parsed.id), now) if parsed.id and free else now)
        return Record(
            id=parsed.id if parsed.id and free else new_id(now),
            scope=self.scope,
            kind=parsed.kind or CATEGORIES.get(parsed.category or "", Kind.SEMANTIC),
            content=parsed.content,
            source=parsed.source or Source(channel=Channel.FILE, ref=path),
            trust=Trust.USER if parsed.trust is None else parsed.trust,
            version=max(1, parsed.version or 1),
            created_at=created,
            updated_at=parsed.updated_at or created,
            consolidated_at=parsed.consolidated_at,
        )

    def _update(self, action: Update, changes: list[Change], writes: list[_File]) -> None:
        """Make a changed file the next version of its record."""
        before, trust = action.record, self._origins[action.path].trust
        if trust is Trust.EXTERNAL:
            self._update_external(action, changes)
            return
        admitted = self._admit(apply_file(before, action.parsed), action.path)
        if admitted is None:
            return
        after = admitted.record
        if after.content == before.content and after.value == before.value:
            approved = before.approved_at if after.category == before.category else None
            after = after.replace(source=before.source, trust=before.trust, approved_at=approved)
        else:
            source = Source(channel=Channel.FILE, ref=action.path, parents=before.source.parents)
            after = after.replace(source=source, trust=min(trust, after.trust))
        version = self._records[before.id].version
        changes.append(Put(record=after, terms=admitted.terms, expect=version))
        self._plan_write(action, after.replace(version=version + 1), changes, writes)
        self._report(changed=action.path)

    def _update_external(self, action: Update, changes: list[Change]) -> None:
        """Take in a file that is not the user's word: it changes an external record, and proposes to change others."""
        before, path, now = action.record, action.path, self.clock()
        origin = self._origins[path]
        if before.trust is not Trust.EXTERNAL:
            self._propose(proposal_of(before, action.parsed, path, origin, id=new_id(now), now=now), action, changes)
            return
        after = apply_external(before, action.parsed, path, origin)
        admitted = None if after == before else self._admit(after, path)
        if admitted is None:
            changes.append(self._leave_file(path, before))
            return
        record = admitted.record.replace(source=after.source, trust=Trust.EXTERNAL)
        version = self._records[before.id].version
        changes.append(Put(record=record, terms=admitted.terms, expect=version))
        changes.append(self._leave_file(path, before.replace(version=version + 1)))
        self._report(changed=path, external=path)

    def _propose(self, wanted: Record, action: Update, changes: list[Change]) -> None:
        """Store a proposal once, however often its file comes and goes."""
        before = action.record
        admitted = self._admit(wanted, action.path)
        if admitted is not None:
            record = admitted.record.replace(source=wanted.source, trust=wanted.trust)
            if not is_proposed(record, [before, *self._records.values()]):
                changes.append(Put(record=record, terms=admitted.terms))
                self._report(proposed=action.path)
        changes.append(self._leave_file(action.path, before))

    def _leave_file(self, path: str, record: Record) -> PutFiles:
        """Note a file as it is, so that it is neither read again nor written."""
        found = self._read[path][1]
        state = FileState(
            path=path, record=record.id, version=record.version, digest=found.digest, stamp=found.stamp
        )  # fmt: skip
        return PutFiles(folder=self.folder, files=(state,))

    def _admit(self, from_file: Record, path: str, *, ref: str | None = None) -> Admitted | None:
        """Admit a record from a file; what the gate does not judge stays as in the file."""
        fields = {name: getattr(from_file, name) for name in Draft.fields if name in Record.fields}
        draft = Draft(**fields, ref=ref or path)
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

    def _digest_read(self, path: str) -> str | None:
        """The digest of a file that this sync has read."""
        return self._read[path][1].digest if path in self._read else None

    def _drop(self, path: str) -> DropFiles:
        return DropFiles(folder=self.folder, paths=frozenset({path}))

    def _report_each(self, **what: Collection[object]) -> None:
        for field, values in what.items():
            for value in values:
                self._report(**{field: value})

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

"""The Markdown folders of a memory: notice what people edited, sync it, and recall after that.

To know whether people edited a folder, every file has to be checked, which for ten thousand of them costs more than the
rest of a recall.  So a check of a large folder leaves a mark: when it began, and how many files there were.  While the
mark is fresh only the folders themselves are checked: their times change with every file that is added, removed or
replaced.  A file that was written in place, in a large folder, within that time, is noticed when its record is recalled
(``is_edited``), else with the next whole check.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.memory import Memory
from commonplace.engine.recall import Recall
from commonplace.engine.rendering import redaction_notes
from commonplace.files import disk
from commonplace.files.mirror import MirroredStore
from commonplace.model.binding import Binding
from commonplace.model.errors import StoreError, StoreReadOnly
from commonplace.model.ports import Clock, ProgressCallback, no_progress
from commonplace.model.queries import Filter, Hit, Order, State
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.cleaning import plural

if TYPE_CHECKING:
    from commonplace.files.external import Judge
    from commonplace.files.foreign import ForeignFolder
    from commonplace.files.sync import Syncer, SyncReport

FEW = 1_000  # files that are checked one by one before every recall: a few milliseconds
SHOWN_ERASED = 3
FRESH_SECONDS = 60  # how long a mark is valid
COARSE_NS = 20_000_000  # folders' times have ticks of a few milliseconds
RECALL_WAIT_SECONDS = 0.5  # how long a recall waits for another process that syncs the same files
SYNC_WAIT_SECONDS = 10.0
SYNCING = "syncing-"  # how the note of a sync begins, among the marks


class Unfinished:
    """A sync that is under way, as a file with the process that makes it: who comes later sees that it died.

    It has committed records then, perhaps, whose vectors are missing.
    """

    def __init__(self, folder: str) -> None:
        from commonplace.model.processes import process_name  # noqa: PLC0415 - a recall without edits needs it not

        self._folder = folder
        self._path = os.path.join(folder, f"{SYNCING}{process_name()}")
        self._dead: list[str] = []

    def __enter__(self) -> Self:
        with suppress(OSError):  # without the note, vectors that are missing then wait for `doctor --fix`
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return self

    def others(self) -> list[str]:
        """Return the notes of processes that are dead."""
        from commonplace.model.processes import is_dead  # noqa: PLC0415 - see above

        found = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        names = [name for name in found if name.startswith(SYNCING)]
        self._dead = [name for name in names if is_dead(name.removeprefix(SYNCING))]
        return self._dead

    def __exit__(self, kind: object, *_: object) -> None:
        for path in [self._path, *(os.path.join(self._folder, name) for name in self._dead if kind is None)]:
            with suppress(OSError):
                os.unlink(path)


class RecallAnswer(Value):
    """What was recalled, with the file of each record."""

    recall: Recall
    references: Mapping[str, str]  #: by the hit's id
    notes: tuple[str, ...] = ()  #: what the caller should know, as sentences

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits, best first."""
        return self.recall.hits


class Folders:
    """The folders of a mirrored store, as one caller may read and sync them."""

    def __init__(
        self, store: MirroredStore, binding: Binding, *, clock: Clock, secret: Callable[[], bytes], marks: str,
        label: Callable[[Scope], str], on_change: Callable[[], object], judge_of: Callable[[Scope], Judge],
        foreign: Mapping[Scope, str] = MappingProxyType({}), further: Collection[Scope] = (),
    ) -> None:  # fmt: skip
        """``marks`` is a folder for marks; ``label`` names a scope; a sync that changed records calls ``on_change``.

        ``judge_of`` gives what finds out where the files of a scope come from.  ``foreign`` are folders that are read
        as data from outside and never written to.  The folder of a scope in ``further`` is another clone or worktree of
        its project: files that are missing there archive nothing.
        """
        self._further = further
        self._foreign = foreign
        self.store = store
        self.binding = binding
        self.marks = marks
        self._clock = clock
        self._secret = secret
        self._label = label
        self._on_change = on_change
        self._judge_of = judge_of
        self.reports: dict[
            Scope, SyncReport
        ] = {}  #: of the last sync of each scope; a file that cannot be read is in each

    @property
    def scopes(self) -> list[Scope]:
        """The scopes that have files here."""
        return [scope for scope in self.binding.reads if scope in self.store.folders]

    # Recall and sync

    def recall(self, memory: Memory, query: str, **options: Any) -> RecallAnswer:
        """Recall after a check of the files: fresh edits are found; ``options`` are those of ``Memory.recall``."""
        mirrored = [scope for scope in memory.binding.reads if scope in self.store.folders]
        fresh = [scope for scope in mirrored if self.is_fresh(scope)]
        changed = [scope for scope in mirrored if scope not in fresh and self.is_changed(scope)]
        notes = [note for scope in changed for note in self._sync_quietly(scope)]
        foreign = [folder for scope in memory.binding.reads for folder in self._open_foreign(scope)]
        notes += [note for folder in foreign for note in self._read_foreign(folder)]
        recall = memory.recall(query, **options)
        if edited := [scope for scope in fresh if self.is_edited(scope, _ids(recall))]:
            notes += [note for scope in edited for note in self._sync_quietly(scope)]
            recall = memory.recall(query, **options)
        references = self.store.references([hit.record for hit in recall.hits if hit.record])
        for parent in self._proposed_for(references) if references else ():
            references.pop(parent, None)  # its file may say what waits for review
        for folder in foreign:
            references |= folder.references(_ids(recall))
        return RecallAnswer(recall=recall, references=references, notes=(*dict.fromkeys(notes), *recall.notes))

    def _proposed_for(self, ids: Collection[str]) -> Iterator[str]:
        """Those of these records for which a change that a file made waits for review."""
        where = Filter(
            scopes=frozenset(self.scopes), at=self._clock(), states=frozenset({State.HELD}), parents=frozenset(ids)
        )
        for one in self.store.store.find(where, order=Order.ID, limit=len(ids)):
            yield from one.source.parents if one.is_file_proposal else ()

    def refresh(
        self, scopes: Collection[Scope] | None = None, *, progress: ProgressCallback = no_progress
    ) -> list[str]:
        """Take in what people have edited; no file that Git tracks is written.  Returns what they should know.

        Of the scopes that have files here all are looked at, unless some are named.
        """
        foreign = [folder for scope in self.binding.reads for folder in self._open_foreign(scope)]
        notes = [note for folder in foreign for note in self._read_foreign(folder)]
        looked_at = self.scopes if scopes is None else scopes
        for scope in [scope for scope in looked_at if self.is_changed(scope)]:
            with suppress(StoreReadOnly):  # what is stored can be read all the same, and the store's own notice says so
                notes += self.sync_notes(scope, self.sync(scope, progress=progress, writes=False))
        return notes

    def _open_foreign(self, scope: Scope) -> Iterator[ForeignFolder]:
        """The folder of a scope that nobody trusts, if it is one."""
        if scope in self._foreign:
            from commonplace.files.foreign import ForeignFolder  # noqa: PLC0415 - one's own project needs none

            folder = self._foreign[scope]
            yield ForeignFolder(self.store.store, scope, folder, self.binding, clock=self._clock, secret=self._secret)

    def _read_foreign(self, folder: ForeignFolder) -> Iterator[str]:
        """Read what has changed in a folder that nobody trusts; yields what people should know."""
        if folder.is_changed():
            report = folder.read()
            self._on_change()
            yield from (f"{os.path.join(folder.folder, one.path)}:{one.line}: {one.reason}" for one in report.troubles)

    def sync(
        self,
        scope: Scope,
        *,
        accept_missing: bool = False,
        progress: ProgressCallback = no_progress,
        wait: float = SYNC_WAIT_SECONDS,
        writes: bool = True,
        restores: bool = False,
    ) -> SyncReport:
        """Sync the files and records of one scope; ``progress`` is called with the progress.

        Before a read ``writes`` is false: then no file is written that Git tracks.  ``restores`` writes a file for each
        live record that has none here.
        """
        began = time.time_ns()
        with Unfinished(self.marks) as unfinished:
            report = self._syncer(scope, writes=writes, restores=restores).run(
                accept_missing=accept_missing, progress=progress, wait=wait
            )
            self.reports[scope] = report
            self.mark(scope, began, len(self.store.files(self.store.folders[scope])))
            if report.added or report.changed or report.restored or unfinished.others():
                self._on_change()
        return report

    def preview(self, scope: Scope) -> tuple[SyncReport, int]:
        """What a sync of the scope would report, and how many files and records it would change."""
        return self._syncer(scope).preview()

    def sync_notes(self, scope: Scope, report: SyncReport) -> Iterator[str]:
        """What people should know of a sync, as sentences."""
        folder = self.store.folders[scope]
        for trouble in report.troubles:
            yield f"{os.path.join(folder, trouble.path)}:{trouble.line}: {trouble.reason}"
        if report.missing:
            yield (
                f"{len(report.missing)} files of the {self._label(scope)} memory are missing at once; "
                "their records were not archived. `commonplace sync --accept-missing` archives them, "
                "`commonplace sync --write` writes the files back"
            )
        if report.vanished:
            gone = f"{_named(report.vanished)} is gone, so it was archived"
            yield f"{gone}; `commonplace record restore {report.archived[0]}` brings it back"
        if report.hidden:
            absent = f"{_named(report.hidden)} is not in this checkout, so it is not recalled here"
            yield f"{absent}; `commonplace sync --write` writes it back"
        for path, other, ids in report.alike:
            yield (
                f"{path} says the same as {other}; `commonplace record merge {' '.join(ids)}` makes one record of them"
            )
        if report.erased:
            shown = ", ".join(os.path.join(folder, path) for path in report.erased[:SHOWN_ERASED])
            more = f" and {len(report.erased) - SHOWN_ERASED} more" if len(report.erased) > SHOWN_ERASED else ""
            yield (
                f"{shown}{more}: you have erased what this says, so it was not revived; the file was left as it is."
                " `commonplace forget --allow ID` lets it come back"
            )
        yield from external_notes(report)
        for path, finding in report.redactions:
            found = os.path.join(folder, path)
            yield from (f"{found}: {note}" for note in redaction_notes([finding]))

    def _sync_quietly(self, scope: Scope) -> Iterable[str]:
        try:
            with self.store.without_waiting():
                report = self.sync(scope, wait=RECALL_WAIT_SECONDS, writes=False)
        except StoreReadOnly:  # the store's own notice says so
            return []
        except StoreError as error:  # what is stored can be recalled all the same
            return [f"the files of the {self._label(scope)} memory were not synced: {error}"]
        return self.sync_notes(scope, report)

    def _syncer(self, scope: Scope, *, writes: bool = True, restores: bool = False) -> Syncer:
        from commonplace.files.sync import Syncer  # noqa: PLC0415 - a recall without edited files must not load it

        return Syncer(
            self.store, scope, self.binding, clock=self._clock, secret=self._secret, judge=self._judge_of(scope),
            archives=scope not in self._further, writes=writes, restores=restores,
        )  # fmt: skip

    # Checks

    def is_changed(self, scope: Scope) -> bool:
        """Whether a file of the scope differs from what was last noted; checks every file."""
        began = time.time_ns()
        folder = self.store.folders[scope]
        known = self.store.file_stamps(folder)
        try:
            seen = dict(disk.list_files(folder))
        except StoreError:  # the sync then reports why it cannot be read
            return True
        if not os.path.isdir(folder) or seen != known:
            return True
        self.mark(scope, began, len(seen))
        self.reports.pop(scope, None)
        return False

    def is_edited(self, scope: Scope, ids: Collection[str]) -> bool:
        """Whether the file of one of these records differs from what was last noted."""
        folder = self.store.folders[scope]
        return any(disk.stamp(folder, state.path) != state.stamp for state in self.store.files(folder, records=ids))

    def is_fresh(self, scope: Scope) -> bool:
        """Whether the last whole check holds: the folder is large, and neither time passed nor a file changed."""
        try:
            with open(self._mark_path(scope), encoding="utf-8") as file:
                count = int(file.read() or 0)
            began = os.stat(self._mark_path(scope)).st_mtime_ns
            return (
                count > FEW
                and 0 <= time.time_ns() - began < FRESH_SECONDS * 1_000_000_000
                and _newest(self.store.folders[scope]) < began - COARSE_NS
            )
        except (OSError, ValueError):
            return False

    def checked_at(self, scope: Scope) -> float | None:
        """When every file of the scope was last checked, in seconds since 1970."""
        try:
            return os.stat(self._mark_path(scope)).st_mtime
        except OSError:
            return None

    def count(self, scope: Scope) -> int:
        """Return how many files of the scope there were at the last whole check."""
        try:
            with open(self._mark_path(scope), encoding="utf-8") as file:
                return int(file.read())
        except (OSError, ValueError):
            return len(self.store.files(self.store.folders[scope]))

    def mark(self, scope: Scope, began: int, count: int) -> None:
        """Note a whole check after which files and records agree; without its mark the next recall is only slower."""
        try:
            path = self._mark_path(scope)
            os.makedirs(self.marks, mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(str(count))
            os.utime(path, ns=(began, began))
        except OSError:
            return

    def _mark_path(self, scope: Scope) -> str:
        """Named after the folder's place on disk: a folder that is made anew is newer than any mark."""
        place = os.stat(self.store.folders[scope])
        return os.path.join(self.marks, f"{place.st_dev:x}-{place.st_ino:x}")


def external_notes(report: SyncReport) -> Iterator[str]:
    """What came by Git and is not the user's word, as sentences."""
    if report.external:
        yield (
            f"{_named(report.external)} came by Git and is not your own; recall shows it as external "
            "until you approve it: `commonplace review`"
        )
    if report.proposed:
        yield (
            f"{_named(report.proposed)} was changed by Git and not by you; your text stays and the change waits "
            "until you approve it: `commonplace review`"
        )
    yield from report.notes


def _named(paths: Sequence[str]) -> str:
    """The first path, and how many there are besides it."""
    rest = len(paths) - 1
    return f"{paths[0]} (and {plural(rest, 'other file')})" if rest else paths[0]


def _ids(recall: Recall) -> list[str]:
    return [hit.id for hit in recall.hits if hit.record]


def _newest(folder: str) -> int:
    """When a file of the folder was last added, removed or replaced."""
    inside = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    return max(os.stat(path).st_mtime_ns for path in (folder, *inside))

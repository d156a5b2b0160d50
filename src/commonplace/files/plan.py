"""Decide what a sync has to do.  Pure: no disk and no store; ``sync`` carries it out.

A file is the record whose id it says; a file without an id is the record that was at its path.  A file that says what
any version of its record says is a checkout of that version: the folder then shows that version, and nothing else
changes.  Else the file is an edit of the version that the folder shows, and becomes the next one.  When in doubt a
record is kept and written again, never archived: only a file that vanished while its record stood still archives it.

Carrying out an action leaves the folder and the known states so that planning again asks for nothing but trouble:
``Add``, ``Update``, ``Note`` and ``Write`` note the state of the file where it then is, all others forget the state of
their path.  A file that belongs elsewhere is renamed first, before its words are taken or written, and states are
forgotten last: so there are never two files of one record, and a process that dies in the middle leaves a folder from
which the next plan continues.  No two actions write to one path, none writes over the file of another record, and none
touches a file in trouble or the record that it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias, assert_never

from commonplace.files.codec import ParsedFile, file_name, matches_record
from commonplace.model.documents import FileState
from commonplace.model.errors import InvalidInput
from commonplace.model.ids import SHORT
from commonplace.model.records import CATEGORIES, Channel, Record
from commonplace.model.values import Value

History: TypeAlias = Callable[[str], Sequence[Record]]
IsErased: TypeAlias = Callable[[ParsedFile], bool]

ALIKE_MOST = 8  # files with the same words that are compared with one record
_NAMES = ", ".join(CATEGORIES)


class Add(Value):
    """Make a record of a new file."""

    path: str
    parsed: ParsedFile  #: with its category; with an id only if no record has it
    home: str  #: where the file belongs: ``path``, or the folder of its category


class Update(Value):
    """Update a record from its file."""

    path: str
    parsed: ParsedFile  #: with its category
    record: Record  #: as it is now
    home: str  #: where the file belongs afterwards


class Note(Value):
    """The file says what a version of its record says: note its state, and that the folder shows this version."""

    path: str
    digest: str
    stamp: int
    record: Record  #: in that version


class Write(Value):
    """Write a record's file."""

    record: Record
    path: str
    old_path: str | None = None  #: where it was, to be renamed from if it is there
    said: Record | None = None  #: the version that the file says already; it lacks its id or its place


class Missing(Value):
    """The file is missing: archive its record."""

    path: str
    record: Record


class Hide(Value):
    """The folder was never synced and has no file of the record: it is none of this checkout."""

    path: str  #: the id of the record
    record: Record


class Remove(Value):
    """The record was erased, or has no folder here any more: remove its file."""

    path: str
    digest: str  #: of the file: one that a person has saved since stays


class Leave(Value):
    """The file holds what a person has erased, by its id or by its text: it is named, and left as it is."""

    path: str


class Drop(Value):
    """There is no file any more and nothing to do about it: forget its state."""

    path: str


class Trouble(Value):
    """A file that a person has to look at; it and its record stay as they are."""

    path: str
    line: int
    reason: str


Action: TypeAlias = Add | Update | Note | Write | Missing | Hide | Remove | Leave | Drop | Trouble


class FoundFile(Value):
    """A Markdown file of the folder.  Neither parsed nor in trouble: not read, because it is unchanged."""

    path: str  #: relative to the folder, with forward slashes
    digest: str
    stamp: int
    parsed: ParsedFile | None = None
    trouble: Trouble | None = None

    def _check(self) -> None:
        if self.parsed and self.trouble:
            raise InvalidInput(f"{self.path!r} can be read or be in trouble, not both")


def plan(
    *,
    seen: Sequence[FoundFile],
    known: Sequence[FileState],
    records: Mapping[str, Record],
    history: History,
    erased: IsErased = lambda _: False,
    shown: Mapping[str, Record | None] = MappingProxyType({}),
    branches: bool = False,
    tracked: Collection[str] = (),
) -> list[Action]:
    """Return the actions in the order in which to do them: by sort, then by path; the troubles are last.

    ``records`` are all of the scope, in any state; those of other categories than ours are to the folder as if they
    were not there.  ``history`` gives the earlier versions of one, newest first; ``erased`` tells whether a person has
    erased what a file says.  ``shown`` are the records of which the folder shows an earlier version, or, None, nothing.
    ``branches``: the folder is one of a repository, which may lack files because another branch has them; ``tracked``
    are the paths that Git put there, or may have put there.
    """
    folder = _Folder(seen=seen, known=known, records=records, erased=erased, shown=shown, tracked=tracked)
    actions: list[Action] = [*folder.troubles]
    for path, owner in sorted(folder.owners.items()):
        actions += _for_file(folder, path, owner, history)
    actions += _for_missing_files(folder)
    actions += _for_new_records(folder, hides=branches and bool(folder.owners) and not known)
    return sorted(actions, key=_sort_key)


class _Folder:
    """A folder: which file belongs to which record, which records must not change, which paths are taken."""

    def __init__(
        self,
        *,
        seen: Sequence[FoundFile],
        known: Sequence[FileState],
        records: Mapping[str, Record],
        erased: IsErased,
        shown: Mapping[str, Record | None],
        tracked: Collection[str],
    ) -> None:
        self.tracked = tracked
        self.is_erased = erased
        self.shown = shown
        self.seen = {file.path: file for file in seen}
        self.known = {state.path: state for state in known}
        self.current = {name: record for name, record in records.items() if record.has_file}
        self.records = {name: shown.get(name) or record for name, record in self.current.items()}
        self.absent = {state.record for state in known} | records.keys() - self.records.keys()
        self.absent -= self.records.keys()  # erased, or none of this folder's: their files go
        self.states: dict[str, list[FileState]] = {}  # by record
        for state in sorted(known, key=lambda state: state.path):
            self.states.setdefault(state.record, []).append(state)
        self.troubles = [trouble for file in seen if (trouble := _trouble(file))]
        self.owners: dict[str, str | None] = {}  # path -> record; None: a new one
        self.held: set[str] = set()  # records that have a file
        self._taken = {path.casefold() for path in (*self.seen, *self.known)}  # on some disks A.md is a.md
        self._assign({trouble.path for trouble in self.troubles})
        self.protected = self._protected()  # records of files in trouble
        self._adopt_files()

    def _assign(self, blocked: set[str]) -> None:
        claims: dict[str | None, list[str]] = {}
        for path in sorted(self.seen.keys() - blocked):
            claims.setdefault(self._claimed_id(self.seen[path]), []).append(path)
        silent = claims.pop(None, [])
        for claimed, paths in claims.items():
            if claimed is not None:
                self._settle(claimed, paths, blocked)
        for path in silent:
            state = self.known.get(path)
            self._assign_file(path, state.record if state and state.record not in self.held else None)

    def _assign_file(self, path: str, owner: str | None) -> None:
        self.owners[path] = owner
        if owner is not None:
            self.held.add(owner)

    def _claimed_id(self, file: FoundFile) -> str | None:
        state = self.known.get(file.path)
        if file.parsed is None:
            if state is None or state.digest != file.digest:
                raise InvalidInput(f"{file.path!r} was not read, and is not as it was known")
            return state.record
        is_ours = file.parsed.id in self.records or file.parsed.id in self.absent
        return file.parsed.id if is_ours or state is None else None  # a foreign id in a known file is a slip

    def _settle(self, claimed: str, paths: list[str], blocked: set[str]) -> None:
        """Give the id to one file; the others are in trouble.  Copies of an absent record are looked at one by one."""
        homes = [state.path for state in self.states.get(claimed, ())]
        unreadable = [path for path in homes if path in blocked]  # it keeps its id while nobody can read it
        if claimed in self.absent or (len(paths) == 1 and not unreadable):
            for path in paths:
                self._assign_file(path, claimed)
            return
        keeper = unreadable[0] if unreadable else min(paths, key=lambda path: self._mismatch(path, claimed))
        if not unreadable:
            self._assign_file(keeper, claimed)
        reason = f"has the same id as {keeper}; delete its id line to make it a record of its own"
        self.troubles += [Trouble(path=path, line=1, reason=reason) for path in paths if path != keeper]

    def _mismatch(self, path: str, claimed: str) -> tuple[bool, bool, bool, str]:
        """How little a file looks like the one that the record has, the least first."""
        state, parsed, record = self.known.get(path), self.seen[path].parsed, self.records.get(claimed)
        is_known = state is not None and state.record == claimed
        is_right = (
            parsed is not None
            and record is not None
            and matches_record(parsed, record)
            and _folder(path) == record.category
        )
        return not is_known, not is_right, _short(path) != claimed[:SHORT], path

    def _protected(self) -> set[str]:
        """The records of the files in trouble, also of those that were renamed and cannot say their id."""
        protected: set[str] = set()
        shorts: set[str] = set()
        for trouble in self.troubles:
            parsed = self.seen[trouble.path].parsed
            if trouble.path in self.known:
                protected.add(self.known[trouble.path].record)
            elif parsed is None:
                shorts.add(_short(trouble.path))
            if parsed and parsed.id:
                protected.add(parsed.id)
        return protected | ({name for name in self.records if name[:SHORT] in shorts} if shorts else set())

    def _adopt_files(self) -> None:
        """A new file that says just what a record without a file is, is its file.

        It was renamed and has lost its id, or whoever added it died before writing the id into it.
        """
        fresh: dict[str, list[str]] = {}  # by text, since comparing each with each would take minutes
        for path, owner in self.owners.items():
            parsed = self.seen[path].parsed
            if parsed and owner not in self.records and not self.is_leftover(path, owner):
                fresh.setdefault(_words(parsed.content), []).append(path)
        for record in list(_records_without_file(self)) if fresh else ():
            paths = fresh.get(_words(record.content), [])
            found = next((path for path in paths[:ALIKE_MOST] if matches_record(self.as_new(path), record)), None)
            if found:
                paths.remove(found)
                self._assign_file(found, record.id)

    def is_leftover(self, path: str, owner: str | None) -> bool:
        """Whether a file is just what an erased record left behind."""
        return any(state.digest == self.seen[path].digest for state in self.states.get(owner or "", ()))

    def as_new(self, path: str) -> ParsedFile:
        """What a file says if it is a new record's: the id of an erased one is not used again."""
        parsed = self.seen[path].parsed
        if parsed is None:
            raise InvalidInput(f"{path!r} was not read")
        return parsed.replace(
            id=None if parsed.id in self.absent else parsed.id, category=parsed.category or _folder(path)
        )

    def free(self, path: str, *, own: str | None = None) -> str:
        """The path, or one like it that nothing has; from now on it is taken."""
        stem, number, candidate = path.removesuffix(".md"), 1, path
        while candidate != own and candidate.casefold() in self._taken:
            number += 1
            candidate = f"{stem}-{number}.md"
        self._taken.add(candidate.casefold())
        return candidate

    def home(self, path: str, category: str) -> str:
        """Where a file belongs: it keeps its name, in the folder of its category."""
        return self.free(path if _folder(path) == category else f"{category}/{path.rpartition('/')[2]}", own=path)


def _trouble(file: FoundFile) -> Trouble | None:
    """What is wrong with a file by itself, or with where it is."""
    if file.trouble:
        return file.trouble.replace(path=file.path)
    if _folder(file.path) not in CATEGORIES:
        return Trouble(path=file.path, line=1, reason=f"is not in the folder of a category; move it to one of {_NAMES}")
    category = file.parsed.category if file.parsed else None
    if category is not None and category not in CATEGORIES:
        return Trouble(path=file.path, line=1, reason=f"category must be one of {_NAMES}, not {category[:40]!r}")
    return None


def _for_file(folder: _Folder, path: str, owner: str | None, history: History) -> Iterator[Action]:
    """What to do about a file that is there."""
    file = folder.seen[path]
    record = folder.records.get(owner) if owner else None
    if record is not None:
        yield from _for_record_file(folder, file, record, history)
    elif folder.is_leftover(path, owner):
        yield Remove(path=path, digest=file.digest)
    elif file.parsed and folder.is_erased(file.parsed):
        yield Leave(path=path)  # it came back by Git, or a person has put it there: it is theirs
    else:
        parsed = folder.as_new(path)
        yield Add(path=path, parsed=parsed, home=folder.home(path, parsed.category or _folder(path)))


def _for_record_file(folder: _Folder, file: FoundFile, record: Record, history: History) -> Iterator[Action]:
    """What to do about a file whose record is there."""
    states = folder.states.get(record.id, [])
    state = next((state for state in states if state.path == file.path), None)
    if file.parsed is None or (state and state.digest == file.digest):
        if state and state.version != record.version:
            yield _write(folder, file.path, record)
        elif state and state.stamp != file.stamp:
            yield _note(file, record)
        return
    ancestor = state or next(iter(states), None)
    category = _category(file.parsed, file.path, record, ancestor)
    parsed = folder.as_new(file.path).replace(category=category)
    said = _version_said(folder, file, parsed, record, history)
    if said is not None and _is_complete(file, parsed, said):
        yield (
            _write(folder, file.path, record) if _is_unwritten(folder, file.path, said, ancestor) else _note(file, said)
        )
    elif said is not None and said is folder.current[record.id]:
        yield _write(folder, file.path, record, said)  # it lacks its id, or its place
    elif said is not None:
        yield _note(file, said)
    elif folder.is_erased(parsed):
        yield Leave(path=file.path)
    else:
        yield Update(path=file.path, parsed=parsed, record=record, home=folder.home(file.path, category))


def _category(parsed: ParsedFile, path: str, record: Record, ancestor: FileState | None) -> str:
    """The category that a file says: in its frontmatter, or by the folder into which it was moved."""
    before = _folder(ancestor.path) if ancestor else record.category
    unedited = parsed.category in (None, record.category, before)
    moved = before != _folder(path) if ancestor else parsed.id is not None  # without an id it comes from nowhere
    return _folder(path) if parsed.category is None or (moved and unedited) else parsed.category


def _version_said(
    folder: _Folder, file: FoundFile, parsed: ParsedFile, shown: Record, history: History
) -> Record | None:
    """The version of a record that a file says: the one that the folder shows, the current one, or the newest."""
    current = folder.current[shown.id]
    if matches_record(parsed, shown):
        return shown
    if _was_taken_in(parsed, current):
        return current
    if shown.version != current.version and _says(file, parsed, current):
        return current
    return next((one for one in history(shown.id) if one.version != current.version and _says(file, parsed, one)), None)


def _was_taken_in(parsed: ParsedFile, current: Record) -> bool:
    """Whether a record is what its file says, but for where it comes from: a sync died before it wrote the file."""
    behind = parsed.version is not None and parsed.version < current.version
    if not behind or current.source.channel is not Channel.FILE:
        return False
    return matches_record(parsed.replace(source=current.source, trust=current.trust), current)


def _says(file: FoundFile, parsed: ParsedFile, version: Record) -> bool:
    """Whether a file says that version; in the folder of its category, a category that it does not state is that."""
    at_home = file.parsed is not None and file.parsed.category is None and _folder(file.path) == version.category
    return matches_record(parsed.replace(category=version.category) if at_home else parsed, version)


def _is_complete(file: FoundFile, parsed: ParsedFile, said: Record) -> bool:
    """Whether a file has its id, and is in the folder of its category."""
    stated = file.parsed.category if file.parsed else None
    return bool(parsed.id) and _folder(file.path) == said.category and stated in (None, said.category)


def _is_unwritten(folder: _Folder, path: str, said: Record, ancestor: FileState | None) -> bool:
    """Whether a file is older than its record because whoever changed that has not come to write it.

    A file that nobody has noted may be that too, unless Git has put it there.
    """
    current = folder.current[said.id].version
    if said.id in folder.shown or said.version == current:
        return False
    return (
        path not in folder.tracked
        if ancestor is None
        else ancestor.version <= said.version and (ancestor.version < current)
    )


def _write(folder: _Folder, path: str, record: Record, said: Record | None = None) -> Write:
    home = folder.home(path, record.category)
    return Write(record=record, path=home, old_path=path if home != path else None, said=said)


def _note(file: FoundFile, record: Record) -> Note:
    return Note(path=file.path, digest=file.digest, stamp=file.stamp, record=record)


def _for_missing_files(folder: _Folder) -> Iterator[Action]:
    """What to do about files that are not there any more, or have given their place to another record's."""
    for owner, states in sorted(folder.states.items()):
        record = folder.records.get(owner)
        lost = [state for state in states if state.path not in folder.seen]
        if record is not None and owner not in folder.held:
            if owner in folder.protected:
                continue
            if record.archived_at is None:
                yield _for_missing_file(folder, lost.pop() if lost else None, record)
        yield from (Drop(path=state.path) for state in lost)


def _for_missing_file(folder: _Folder, state: FileState | None, record: Record) -> Action:
    """A file that was deleted archives its record.

    But a record that has changed since is wanted and written again, as is one whose place another record's file took.
    """
    if state is None:
        return Write(record=record, path=folder.free(file_name(record)))
    if record.version == state.version:
        return Missing(path=state.path, record=record)
    home = folder.home(state.path, record.category)
    return Write(record=record, path=home, old_path=state.path if home != state.path else None)


def _for_new_records(folder: _Folder, *, hides: bool) -> Iterator[Action]:
    for record in _records_without_file(folder):
        if record.id not in folder.states and record.id not in folder.shown:
            yield (
                Hide(path=record.id, record=record)
                if hides
                else Write(record=record, path=folder.free(file_name(record)))
            )


def _records_without_file(folder: _Folder) -> Iterator[Record]:
    """Records that should have a file and have none."""
    for owner, record in sorted(folder.records.items()):
        if record.archived_at is None and owner not in folder.held and owner not in folder.protected:
            yield record


def _folder(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _words(content: str) -> str:
    return " ".join(content.split())


def _short(path: str) -> str:
    """The beginning of an id that a file's name ends with."""
    return path.removesuffix(".md").rpartition("--")[2][:SHORT]


def _sort_key(action: Action) -> tuple[int, str, str]:
    """Forgetting comes last: a state is what an erased text, or a renamed file's change, is recognised by."""
    match action:
        case Remove():
            rank = 0
        case Note():
            rank = 1
        case Add() | Update() | Write() | Missing() | Hide():
            rank = 2
        case Drop():
            rank = 3
        case Leave() | Trouble():
            rank = 4
        case _:
            assert_never(action)
    return rank, action.path, type(action).__name__

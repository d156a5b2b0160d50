"""What a sync has to do, decided from what was seen.  Pure: no disk and no store; others carry it out.

A file is the record whose id it says; a file without an id is the record that was at its path.  The last known state
of a file is the ancestor that tells who changed since: the file, the record or both.  If both did, the file wins and
the store's history keeps the other.  When in doubt a record is kept and written again, never archived: only a file that
vanished while its record stood still archives it.

Carrying out an action leaves the folder and the known states so that planning again asks for nothing but trouble:
``Add``, ``Change``, ``Note`` and ``Write`` note the state of the file where it then is, all others forget the state of
their path.  A file that belongs elsewhere is renamed first, before its words are taken or written, and states are
forgotten last: so there are never two files of one record, and whoever dies in the middle leaves a folder from which
the next plan goes on.  No two actions write to one path, none writes over the file of another record, and none touches
a file in trouble or the record that it is of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias, assert_never

from commonplace.files.codec import Said, agrees, file_name
from commonplace.model.documents import FileState
from commonplace.model.errors import InvalidInput
from commonplace.model.ids import SHORT
from commonplace.model.records import CATEGORIES, Record
from commonplace.model.values import Value

History: TypeAlias = Callable[[str], Sequence[Record]]

ALIKE_MOST = 8  # files with the same words that are compared with one record
_FIVE = ", ".join(CATEGORIES)


class Add(Value):
    """Make a record of a new file."""

    path: str
    said: Said  #: with its category; with an id only if no record has it
    home: str  #: where the file belongs: ``path``, or the folder of its category


class Change(Value):
    """Change a record to what its file says."""

    path: str
    said: Said  #: with its category
    record: Record  #: as it is now
    home: str  #: where the file belongs afterwards


class Note(Value):
    """File and record agree: note the file's state."""

    path: str
    digest: str
    stamp: int
    record: Record


class Write(Value):
    """Write a record's file."""

    record: Record
    path: str
    old_path: str | None = None  #: where it was, to be renamed from if it is there


class Gone(Value):
    """The file vanished: archive its record."""

    path: str
    record: Record


class Remove(Value):
    """The record was erased, or has no folder here any more: remove its file."""

    path: str


class Drop(Value):
    """There is no file any more and nothing to do about it: forget its state."""

    path: str


class Trouble(Value):
    """A file that a person has to look at; it and its record stay as they are."""

    path: str
    line: int
    reason: str


Action: TypeAlias = Add | Change | Note | Write | Gone | Remove | Drop | Trouble


class Seen(Value):
    """A Markdown file of the folder.  Neither said nor trouble: not read, because it is as it was known."""

    path: str  #: relative to the folder, with forward slashes
    digest: str
    stamp: int
    said: Said | None = None
    trouble: Trouble | None = None

    def _check(self) -> None:
        if self.said and self.trouble:
            raise InvalidInput(f"{self.path!r} can be read or be in trouble, not both")


def plan(
    *, seen: Sequence[Seen], known: Sequence[FileState], records: Mapping[str, Record], history: History
) -> list[Action]:
    """Say what has to be done, in the order in which to do it: by sort, then by path; the troubles are last.

    ``records`` are all of the scope, in any state; those of other categories than the five are to the folder as if they
    were not there.  ``history`` gives the versions of one.
    """
    picture = _Picture(seen=seen, known=known, records=records)
    actions: list[Action] = [*picture.troubles]
    for path, owner in sorted(picture.owners.items()):
        actions += _seen(picture, path, owner, history)
    actions += _not_seen(picture)
    actions += _never_written(picture)
    return sorted(actions, key=_place)


class _Picture:
    """Who is where: which file is which record's, which records must not be touched, which paths are taken."""

    def __init__(self, *, seen: Sequence[Seen], known: Sequence[FileState], records: Mapping[str, Record]) -> None:
        self.seen = {file.path: file for file in seen}
        self.known = {state.path: state for state in known}
        self.records = {name: record for name, record in records.items() if record.category in CATEGORIES}
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
        self.shielded = self._shielded()  # records of files in trouble
        self._adopt()

    def _assign(self, blocked: set[str]) -> None:
        claims: dict[str | None, list[str]] = {}
        for path in sorted(self.seen.keys() - blocked):
            claims.setdefault(self._said_id(self.seen[path]), []).append(path)
        silent = claims.pop(None, [])
        for claimed, paths in claims.items():
            if claimed is not None:
                self._settle(claimed, paths, blocked)
        for path in silent:
            state = self.known.get(path)
            self._own(path, state.record if state and state.record not in self.held else None)

    def _own(self, path: str, owner: str | None) -> None:
        self.owners[path] = owner
        if owner is not None:
            self.held.add(owner)

    def _said_id(self, file: Seen) -> str | None:
        state = self.known.get(file.path)
        if file.said is None:
            if state is None or state.digest != file.digest:
                raise InvalidInput(f"{file.path!r} was not read, and is not as it was known")
            return state.record
        is_ours = file.said.id in self.records or file.said.id in self.absent
        return file.said.id if is_ours or state is None else None  # a foreign id in a known file is a slip

    def _settle(self, claimed: str, paths: list[str], blocked: set[str]) -> None:
        """Give the id to one file; the others are in trouble.  Copies of an absent record are looked at one by one."""
        homes = [state.path for state in self.states.get(claimed, ())]
        unreadable = [path for path in homes if path in blocked]  # it keeps its id while nobody can read it
        if claimed in self.absent or (len(paths) == 1 and not unreadable):
            for path in paths:
                self._own(path, claimed)
            return
        keeper = unreadable[0] if unreadable else min(paths, key=lambda path: self._strangeness(path, claimed))
        if not unreadable:
            self._own(keeper, claimed)
        reason = f"has the same id as {keeper}; delete its id line to make it a record of its own"
        self.troubles += [Trouble(path=path, line=1, reason=reason) for path in paths if path != keeper]

    def _strangeness(self, path: str, claimed: str) -> tuple[bool, bool, bool, str]:
        """How little a file looks like the one that the record has, the least first."""
        state, said, record = self.known.get(path), self.seen[path].said, self.records.get(claimed)
        is_known = state is not None and state.record == claimed
        is_right = said is not None and record is not None and agrees(said, record) and _folder(path) == record.category
        return not is_known, not is_right, _short(path) != claimed[:SHORT], path

    def _shielded(self) -> set[str]:
        """The records of the files in trouble, also of those that were renamed and cannot say their id."""
        shielded: set[str] = set()
        shorts: set[str] = set()
        for trouble in self.troubles:
            said = self.seen[trouble.path].said
            if trouble.path in self.known:
                shielded.add(self.known[trouble.path].record)
            elif said is None:
                shorts.add(_short(trouble.path))
            if said and said.id:
                shielded.add(said.id)
        return shielded | ({name for name in self.records if name[:SHORT] in shorts} if shorts else set())

    def _adopt(self) -> None:
        """A new file that says just what a record without a file is, is its file.

        It was renamed and has lost its id, or whoever added it died before writing the id into it.
        """
        fresh: dict[str, list[str]] = {}  # by text, since comparing each with each would take minutes
        for path, owner in self.owners.items():
            said = self.seen[path].said
            if said and owner not in self.records and not self.is_forgotten(path, owner):
                fresh.setdefault(_words(said.content), []).append(path)
        for record in list(_fileless(self)) if fresh else ():
            paths = fresh.get(_words(record.content), [])
            found = next((path for path in paths[:ALIKE_MOST] if agrees(self.as_new(path), record)), None)
            if found:
                paths.remove(found)
                self._own(found, record.id)

    def is_forgotten(self, path: str, owner: str | None) -> bool:
        """Whether a file is just what an erased record left behind."""
        return any(state.digest == self.seen[path].digest for state in self.states.get(owner or "", ()))

    def as_new(self, path: str) -> Said:
        """What a file says if it is a new record's: the id of an erased one is not used again."""
        said = self.seen[path].said
        if said is None:
            raise InvalidInput(f"{path!r} was not read")
        return said.replace(id=None if said.id in self.absent else said.id, category=said.category or _folder(path))

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


def _trouble(file: Seen) -> Trouble | None:
    """What is wrong with a file by itself, or with where it is."""
    if file.trouble:
        return file.trouble.replace(path=file.path)
    if _folder(file.path) not in CATEGORIES:
        return Trouble(path=file.path, line=1, reason=f"is not in the folder of a category; move it to one of {_FIVE}")
    category = file.said.category if file.said else None
    if category is not None and category not in CATEGORIES:
        return Trouble(path=file.path, line=1, reason=f"category must be one of {_FIVE}, not {category[:40]!r}")
    return None


def _seen(picture: _Picture, path: str, owner: str | None, history: History) -> Iterator[Action]:
    """What to do about a file that is there."""
    file = picture.seen[path]
    record = picture.records.get(owner) if owner else None
    if record is not None:
        yield from _kept(picture, file, record, history)
    elif picture.is_forgotten(path, owner):
        yield Remove(path=path)
    else:
        said = picture.as_new(path)
        yield Add(path=path, said=said, home=picture.home(path, said.category or _folder(path)))


def _kept(picture: _Picture, file: Seen, record: Record, history: History) -> Iterator[Action]:
    """What to do about a file whose record is there."""
    states = picture.states.get(record.id, [])
    state = next((state for state in states if state.path == file.path), None)
    if file.said is None or (state and state.digest == file.digest):
        if state and state.version != record.version:
            yield _write(picture, file.path, record)
        elif state and state.stamp != file.stamp:
            yield _note(file, record)
        return
    ancestor = state or next(iter(states), None)
    category = _category(file.said, file.path, record, ancestor)
    said = picture.as_new(file.path).replace(category=category)
    at_home = _folder(file.path) == record.category  # then being there is no edit, whoever moved it
    in_agreement = agrees(said, record)
    if in_agreement and at_home and said.id and file.said.category in (None, record.category):
        yield _note(file, record)
    elif in_agreement or _is_stale(file.said if at_home else said, record, ancestor, history):
        yield _write(picture, file.path, record)  # it lacks its id, or its place, or what has happened since
    else:
        yield Change(path=file.path, said=said, record=record, home=picture.home(file.path, category))


def _category(said: Said, path: str, record: Record, ancestor: FileState | None) -> str:
    """The category that a file says: in its frontmatter, or by the folder into which it was moved."""
    before = _folder(ancestor.path) if ancestor else record.category
    unedited = said.category in (None, record.category, before)
    moved = before != _folder(path) if ancestor else said.id is not None  # without an id it comes from nowhere
    return _folder(path) if said.category is None or (moved and unedited) else said.category


def _is_stale(said: Said, record: Record, ancestor: FileState | None, history: History) -> bool:
    """Whether the file says what the record once was, and only the record has changed.

    With an ancestor: what it was then (a person changed a comment, or the name), or the later version that it says it
    is (whoever wrote it died before noting it).  Without: any earlier version (a clone that lay still).
    """
    if ancestor and ancestor.version == record.version:
        return False
    earlier = [version for version in history(record.id) if version.version < record.version]
    if ancestor:
        own = said.version if said.version and said.version > ancestor.version else ancestor.version
        earlier = [version for version in earlier if version.version in (ancestor.version, own)]
    return any(agrees(said, version) for version in earlier)


def _write(picture: _Picture, path: str, record: Record) -> Write:
    home = picture.home(path, record.category)
    return Write(record=record, path=home, old_path=path if home != path else None)


def _note(file: Seen, record: Record) -> Note:
    return Note(path=file.path, digest=file.digest, stamp=file.stamp, record=record)


def _not_seen(picture: _Picture) -> Iterator[Action]:
    """What to do about files that are not there any more, or have given their place to another record's."""
    for owner, states in sorted(picture.states.items()):
        record = picture.records.get(owner)
        lost = [state for state in states if state.path not in picture.seen]
        if record is not None and owner not in picture.held:
            if owner in picture.shielded:
                continue
            if record.archived_at is None:
                yield _vanished(picture, lost.pop() if lost else None, record)
        yield from (Drop(path=state.path) for state in lost)


def _vanished(picture: _Picture, state: FileState | None, record: Record) -> Action:
    """A file that was deleted archives its record.

    But a record that has changed since is wanted and written again, as is one whose place another record's file took.
    """
    if state is None:
        return Write(record=record, path=picture.free(file_name(record)))
    if record.version == state.version:
        return Gone(path=state.path, record=record)
    home = picture.home(state.path, record.category)
    return Write(record=record, path=home, old_path=state.path if home != state.path else None)


def _never_written(picture: _Picture) -> Iterator[Action]:
    for record in _fileless(picture):
        if record.id not in picture.states:
            yield Write(record=record, path=picture.free(file_name(record)))


def _fileless(picture: _Picture) -> Iterator[Record]:
    """Records that should have a file and have none."""
    for owner, record in sorted(picture.records.items()):
        if record.archived_at is None and owner not in picture.held and owner not in picture.shielded:
            yield record


def _folder(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _words(content: str) -> str:
    return " ".join(content.split())


def _short(path: str) -> str:
    """The beginning of an id that a file's name ends with."""
    return path.removesuffix(".md").rpartition("--")[2][:SHORT]


def _place(action: Action) -> tuple[int, str, str]:
    """Forgetting comes last: a state is what an erased text, or a renamed file's change, is recognised by."""
    match action:
        case Remove():
            rank = 0
        case Note():
            rank = 1
        case Add() | Change() | Write() | Gone():
            rank = 2
        case Drop():
            rank = 3
        case Trouble():
            rank = 4
        case _:
            assert_never(action)
    return rank, action.path, type(action).__name__

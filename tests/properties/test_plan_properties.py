"""Sync twice = sync once, over any folder that people, agents and erasures have left behind."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import assert_never

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.files.codec import FileTrouble, ParsedFile, apply_file, decode, encode
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
from commonplace.model.documents import FileState
from commonplace.model.records import CATEGORIES, Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
FOLDERS = [*CATEGORIES, *CATEGORIES, "drafts", ""]


class World:
    """A folder, a store and the states between them, all in dicts, and an executor of plans that is as plain."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.records: dict[str, Record] = {}
        self.versions: dict[str, list[Record]] = {}
        self.known: dict[str, FileState] = {}
        self.shown: dict[str, Record | None] = {}
        self.branches = False
        self.tick = 0

    def now(self) -> datetime:
        self.tick += 1
        return START + timedelta(seconds=self.tick)

    def put(self, record: Record) -> Record:
        present = self.records.get(record.id, record)
        kept = record.replace(version=present.version + 1, updated_at=self.now())
        self.records[kept.id] = kept
        self.shown.pop(kept.id, None)
        self.versions.setdefault(kept.id, []).append(kept)
        return kept

    def new(self, content: str, category: str = "decisions", *, id: str | None = None) -> Record:
        number = len(self.versions)
        return Record(
            id=id or f"1{number:09d}{number:010d}",
            scope=Scope.of(("project", "app")),
            kind=CATEGORIES.get(category, Kind.SEMANTIC),
            category=category,
            content=content,
            source=Source(channel=Channel.USER),
            trust=Trust.USER,
            created_at=START,
            updated_at=START,
        )

    def plan(self) -> list[Action]:
        return plan(
            seen=[self.look(path) for path in self.files],
            known=list(self.known.values()),
            records=self.records,
            history=lambda one: list(reversed(self.versions[one])),
            shown=self.shown,
            branches=self.branches,
        )

    def look(self, path: str) -> FoundFile:
        digest, stamp = str(zlib.crc32(self.files[path])), len(self.files[path])
        state = self.known.get(path)
        if state and (state.digest, state.stamp) == (digest, stamp):
            return FoundFile(path=path, digest=digest, stamp=stamp)
        try:
            return FoundFile(path=path, digest=digest, stamp=stamp, parsed=decode(self.files[path], path=path))
        except FileTrouble as error:
            trouble = Trouble(path=path, line=error.line, reason=error.reason)
            return FoundFile(path=path, digest=digest, stamp=stamp, trouble=trouble)

    def sync(self) -> list[Action]:
        actions = self.plan()
        for action in actions:
            self.carry_out(action)
        return actions

    def carry_out(self, action: Action) -> None:  # noqa: C901, PLR0912 - one case per action
        match action:
            case Add():
                self.write(self.put(self.added(action.parsed)), action.home, action.path)
            case Update():
                self.write(self.put(apply_file(action.record, action.parsed)), action.home, action.path)
            case Write():
                self.write(action.record, action.path, action.old_path or action.path)
            case Note():
                self.note(action.path, action.record)
                if action.record.version == self.records[action.record.id].version:
                    self.shown.pop(action.record.id, None)
                else:
                    self.shown[action.record.id] = action.record
            case Hide():
                self.shown[action.record.id] = None
            case Leave():
                pass
            case Missing():
                self.put(action.record.replace(archived_at=self.now()))
                del self.known[action.path]
            case Remove():
                del self.files[action.path]
                self.known.pop(action.path, None)
            case Drop():
                assert action.path not in self.files
                del self.known[action.path]
            case Trouble():
                pass
            case _:
                assert_never(action)

    def die(self, after: int, *, written: bool) -> None:
        """Sync, but die in the middle: some actions are done, one has reached the store, and perhaps its file."""
        actions = self.plan()
        for action in actions[:after]:
            self.carry_out(action)
        for action in actions[after : after + 1]:
            self.begin(action, written=written)

    def begin(self, action: Action, *, written: bool) -> None:
        match action:
            case Add():
                self.move(action.path, action.home)
                self.half_write(self.put(self.added(action.parsed)), action.home, written=written)
            case Update():
                self.move(action.path, action.home)
                self.half_write(self.put(apply_file(action.record, action.parsed)), action.home, written=written)
            case Write():
                self.move(action.old_path or action.path, action.path)
                self.half_write(action.record, action.path, written=written)
            case Missing():
                self.put(action.record.replace(archived_at=self.now()))

    def move(self, path: str, to: str) -> None:
        if path in self.files:
            self.files[to] = self.files.pop(path)

    def half_write(self, record: Record, path: str, *, written: bool) -> None:
        """Write a file, or not even that, and do not come to note it."""
        if written:
            self.files[path] = encode(record)

    def added(self, parsed: ParsedFile) -> Record:
        return apply_file(self.new(parsed.content, parsed.category or "", id=parsed.id), parsed)

    def write(self, record: Record, path: str, before: str) -> None:
        text = self.files.pop(before, b"").decode()
        self.known.pop(before, None)
        assert path not in self.files, "a plan never writes over another file"
        self.files[path] = encode(record, previous=text or None)
        self.note(path, record)

    def note(self, path: str, record: Record) -> None:
        digest, stamp = str(zlib.crc32(self.files[path])), len(self.files[path])
        self.known[path] = FileState(path=path, record=record.id, version=record.version, digest=digest, stamp=stamp)


Step = Callable[[World], None]


def on_file(act: Callable[[World, str], object]) -> st.SearchStrategy[Step]:
    """A step on the nth file, if there is one."""

    def step(number: int) -> Step:
        return lambda world: world.files and act(world, sorted(world.files)[number % len(world.files)])

    return st.builds(step, st.integers(0, 5))


def on_record(act: Callable[[World, Record], object]) -> st.SearchStrategy[Step]:
    """A step on the nth record, if there is one."""

    def step(number: int) -> Step:
        return lambda world: world.records and act(world, sorted(world.records.items())[number % len(world.records)][1])

    return st.builds(step, st.integers(0, 5))


def save(world: World, path: str, data: bytes) -> None:
    world.files[path] = data


def name(path: str) -> str:
    return path.rpartition("/")[2]


def swap(world: World, path: str) -> None:
    other = max(world.files)
    world.files[path], world.files[other] = world.files[other], world.files[path]


def without(world: World, path: str, key: bytes) -> None:
    world.files[path] = b"".join(row for row in world.files[path].splitlines(True) if not row.startswith(key + b":"))


def check_out(world: World, path: str) -> None:
    """What another branch has there: the first version of a record."""
    state = world.known.get(path)
    if state and state.record in world.records:
        world.files[path] = encode(world.versions[state.record][0])


def erase(world: World, record: Record) -> None:
    del world.records[record.id]


WORDS = st.sampled_from(["use pnpm", "ship on friday", "never", "always", "\n<<<<<<< HEAD", "x"])
STEPS = st.one_of(
    st.builds(
        lambda folder, stem, words: lambda world: save(world, f"{folder}/{stem}.md".lstrip("/"), words.encode()),
        st.sampled_from(FOLDERS),
        st.sampled_from("ab"),
        WORDS,
    ),
    st.builds(
        lambda words, category: lambda world: world.put(world.new(words, category)),
        WORDS,
        st.sampled_from([*list(CATEGORIES)[:3], "general"]),
    ),
    WORDS.flatmap(lambda words: on_file(lambda world, path: save(world, path, world.files[path] + words.encode()))),
    on_file(lambda world, path: save(world, path, world.files[path].replace(b"id:", b"# why\nid:"))),
    on_file(lambda world, path: save(world, path, world.files[path].replace(b"id:", b"tags: {\nid:"))),
    on_file(lambda world, path: save(world, path, world.files[path].replace(b"id:", b"category: principles\nid:", 1))),
    on_file(lambda world, path: save(world, path, b"all new")),
    on_file(lambda world, path: without(world, path, b"category")),
    on_file(lambda world, path: without(world, path, b"archived")),
    on_file(lambda world, path: world.files.pop(path)),
    on_file(lambda world, path: world.known.pop(path, None)),
    on_file(lambda world, path: world.move(path, f"{path[:-3]}-renamed.md")),
    st.sampled_from(FOLDERS).flatmap(
        lambda folder: on_file(lambda world, path: world.move(path, f"{folder}/{name(path)}".removeprefix("/")))
    ),
    WORDS.flatmap(lambda words: on_record(lambda world, record: world.put(record.replace(content=words)))),
    st.sampled_from([*list(CATEGORIES)[:3], "general"]).flatmap(
        lambda category: on_record(lambda world, record: world.put(record.replace(category=category)))
    ),
    on_record(lambda world, record: world.put(record.replace(archived_at=world.now()))),
    on_record(lambda world, record: world.put(record.replace(archived_at=None))),
    on_record(erase),
    st.just(World.sync),
    st.just(World.sync),
    on_file(check_out),
    st.builds(lambda after, written: lambda world: world.die(after, written=written), st.integers(0, 3), st.booleans()),
)
ORDERLY = st.lists(STEPS, min_size=2, max_size=16)
DISORDER = st.one_of(
    on_file(swap),
    on_file(lambda world, path: save(world, f"decisions/copy-{name(path)}", world.files[path])),
    on_file(lambda world, path: without(world, path, b"id")),
)
HISTORIES = st.lists(STEPS | STEPS | DISORDER, min_size=2, max_size=16)


def lived_in(steps: list[Step]) -> World:
    """A folder with three records, as each of the steps left it."""
    world = World()
    for words in ("tabs", "spaces", "neither"):
        world.put(world.new(words))
    for step in (World.sync, *steps):
        step(world)
    return world


def of_trouble(world: World, actions: list[Action]) -> set[str]:
    """The records whose known file is in trouble."""
    return {
        world.known[action.path].record
        for action in actions
        if isinstance(action, Trouble) and action.path in world.known
    }


@given(HISTORIES)
@settings(max_examples=600, deadline=None)
def test_planning_after_a_sync_asks_for_nothing_but_trouble(steps):
    """Sync twice = sync once."""
    world = lived_in(steps)
    troubles = [action for action in world.sync() if isinstance(action, Trouble)]
    again = world.plan()
    assert all(isinstance(action, Trouble) for action in again)
    assert {action.path for action in again} <= {action.path for action in troubles}


@given(HISTORIES)
@settings(max_examples=300, deadline=None)
def test_no_record_ever_disappears(steps):
    """A sync adds, changes and archives; what it changes stays in the history."""
    world = lived_in(steps)
    before = dict(world.records)
    world.sync()
    assert before.keys() <= world.records.keys()
    assert all(record in world.versions[record.id] for record in before.values())


@given(HISTORIES)
@settings(max_examples=300, deadline=None)
def test_a_file_in_trouble_stays_and_leaves_its_record_untouched(steps):
    """Nothing that a person has yet to look at is written over, and its last good version is still served."""
    world = lived_in(steps)
    files, records = dict(world.files), dict(world.records)
    troubled = of_trouble(world, world.plan())
    actions = world.sync()
    assert all(world.files[action.path] == files[action.path] for action in actions if isinstance(action, Trouble))
    assert all(world.records.get(one) == records.get(one) for one in troubled - files_elsewhere(actions))


def files_elsewhere(actions: list[Action]) -> set[str]:
    """The records that another, readable file speaks for."""
    return {action.record.id for action in actions if isinstance(action, Note | Update)}


@given(HISTORIES, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_a_plan_does_not_depend_on_the_order_in_which_files_are_listed(steps, random):
    """The same folder gives the same plan."""
    world = lived_in(steps)
    first = world.plan()
    for things in (world.files, world.known, world.records):
        items = list(things.items())
        random.shuffle(items)
        things.clear()
        things.update(items)
    assert world.plan() == first


@given(HISTORIES)
@settings(max_examples=200, deadline=None)
def test_a_lost_database_is_rebuilt_from_the_files(steps):
    """After a sync every readable file alone brings its record back, word for word and with its id."""
    world = lived_in(steps)
    world.sync()
    troubled = {action.path for action in world.plan()}
    rebuilt = World()
    rebuilt.files = {path: data for path, data in world.files.items() if path not in troubled}
    rebuilt.sync()
    for state in world.known.values():
        if state.path in rebuilt.files:
            said = world.shown.get(state.record) or world.records[state.record]
            assert rebuilt.records[state.record].content == said.content


@given(ORDERLY, st.integers(0, 4), st.booleans())
@settings(max_examples=300, deadline=None)
def test_a_sync_that_died_is_finished_by_the_next(steps, after, written):
    """Wherever it died: the same records in the end, none twice, and no more trouble than without."""
    world, twin = lived_in(steps), lived_in(steps)
    twin.sync()
    world.die(after, written=written)
    world.sync()
    assert sorted(told(world)) == sorted(told(twin))
    assert {action.path for action in world.plan()} == {action.path for action in twin.plan()}


def told(world: World) -> list[tuple[str, str, bool]]:
    return [(record.content, record.category, record.archived_at is None) for record in world.records.values()]

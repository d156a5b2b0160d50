"""Files and rows stay together: through crashes, between clones, between processes, and without the database."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from commonplace.engine.admission import search_terms
from commonplace.files.codec import decode, matches_record
from commonplace.files.external import judge_as_hand_edits
from commonplace.files.mirror import UNNOTED_MOST
from commonplace.files.sync import Syncer
from commonplace.model.changes import Archive, Delete, Put
from commonplace.model.errors import NotFound, StoreBusy
from commonplace.model.queries import ANY_STATE, Filter, State
from commonplace.model.records import Channel, Kind, Source
from stands import agree

QUESTIONS = [
    "pnpm", "which package manager", "deploy", "deploy the server", "how do we deploy on Fridays?", "E1234",
    "useEffect", "tests first", "concise responses", "snake_case", "日本語", "red build", "nothing of the kind", "",
    "not npm in this repo",
]  # fmt: skip


def fill(opened):
    """A little of everything: categories, scopes, options, versions, states."""
    memory, assistant = opened.memory, opened.where.assistant
    pnpm = memory.remember(
        "Use pnpm, not npm", category="decisions", tags=["js"], metadata={"aliases": ["package manager"]}
    )
    memory.remember(
        "Deploy with make release; never on Fridays", category="procedures", key="deploy", value={"cmd": ["make"]}
    )
    memory.remember("useEffect runs twice in dev: E1234", category="incidents", pinned=True)
    memory.remember("the build is red", category="incidents", expires_at=opened.clock().replace(year=2040))
    memory.remember("日本語のドキュメント", category="principles", metadata={"team": "docs", "tags": ["x"]})
    memory.remember("Prefer concise responses", category="preferences", scope=assistant)
    memory.remember("snake_case everywhere", category="preferences", scope=assistant, occurred_at=opened.clock())
    memory.update(pnpm.record.id, content="Use pnpm, not npm, in this repo")
    memory.archive(memory.remember("We deploy by FTP", category="decisions").record.id)
    memory.hold(memory.remember("deploy on a whim", category="decisions").record.id)
    old = memory.remember("The server runs node 16", category="decisions").record
    memory.remember("The server runs node 20", category="decisions", supersedes=old.id, occurred_at=opened.clock())
    agent = opened.where.bind(Channel.AGENT)
    type(memory)(opened.store, agent, clock=opened.clock).remember(
        "Tests first, then deploy the server", category="principles"
    )


def answers(opened):
    """What every question gives: what, with which score, in which order, and why."""
    found = {question: opened.memory.recall(question, count=False).hits for question in QUESTIONS}
    return {
        question: [(hit.id, hit.score, hit.parts, hit.text, hit.record.category, hit.record.trust) for hit in hits]
        for question, hits in found.items()
    }


def everything(opened):
    """Every record, in whatever state, as the files here show it."""
    return {record.id: opened.memory.get(record.id) for record in opened.memory.list(states=State, limit=10_000)}


def said_by_files(records):
    """The same records without what only the database knows."""
    day = min(record.created_at for record in records.values()).replace(microsecond=0)
    plain = {"version": 1, "source": Source(channel=Channel.FILE), "updated_at": day, "created_at": day}
    return {key: record.replace(**plain) for key, record in records.items()}


def assert_agreement(opened):
    """Every record of a mirrored scope has one file that says what it is, and no file is left over."""
    for scope, folder in opened.store.folders.items():
        records = {key: record for key, record in everything(opened).items() if record.scope == scope}
        seen = {}
        for path in sorted(Path(folder).glob("*/*.md")):
            said = decode(path.read_bytes(), path=path.name)
            assert said.id not in seen, f"{path} and {seen[said.id]}"
            seen[said.id] = path
            assert matches_record(said, records[said.id]), path
            assert path.parent.name == records[said.id].category
        live = {record.id for record in opened.memory.list(scopes=[scope], limit=10_000)}
        assert live <= seen.keys() <= records.keys()


def test_a_lost_database_is_rebuilt_from_the_files(desk):
    """The same questions give the same hits with the same scores in the same order; each record is what it was."""
    opened = desk.open()
    fill(opened)
    opened.catch_up()
    before, records = answers(opened), everything(opened)
    desk.close()
    for path in (desk.root / "home").glob("commonplace.db*"):
        path.unlink()

    again = desk.open()
    for scope in again.store.folders:
        again.folders.sync(scope)
    assert answers(again) == before
    assert said_by_files(everything(again)) == said_by_files(records)
    assert_agreement(again)


def test_a_rebuilt_database_leaves_the_files_alone(desk, tree):
    """Reading everything in again changes no byte."""
    opened = desk.open()
    fill(opened)
    desk.close()
    before = tree()
    for path in (desk.root / "home").glob("commonplace.db*"):
        path.unlink()
    again = desk.open()
    again.folders.sync(again.where.project)

    assert tree() == before
    assert again.folders.sync(again.where.project).is_empty


def test_sync_twice_is_sync_once(desk, folder, tree):
    """After one sync there is nothing to do, and the second changes neither file nor record."""
    opened = desk.open()
    fill(opened)
    (folder / "decisions" / "mine.md").write_text("We deploy on Fridays\n")
    first = opened.folders.sync(opened.where.project)
    state = tree(), everything(opened)

    assert first.added == ("decisions/mine.md",)
    assert opened.folders.sync(opened.where.project).is_empty
    assert (tree(), everything(opened)) == state


# Who dies between the commit and the files


def only(opened, record):
    """A filter that means one record."""
    return Filter(scopes=frozenset({record.scope}), at=opened.clock(), states=ANY_STATE, ids=frozenset({record.id}))


def put(opened, record, **fields):
    """The next version of a record, or its first."""
    after = record.replace(updated_at=opened.clock(), **fields)
    return Put(record=after, terms=search_terms(after), expect=record.version)


CRASHES = {
    "an update": lambda opened, record: put(opened, record, content="the newest words"),
    "a new title and category": lambda opened, record: put(
        opened, record, content="the newest words", category="procedures", kind=Kind.PROCEDURAL
    ),
    "an archive": lambda opened, record: Archive(where=only(opened, record), at=opened.clock()),
    "a forgetting": lambda opened, record: Delete(where=only(opened, record)),
    "a new record": lambda opened, record: put(opened, record.replace(id="0" * 20, version=0), content="new words"),
}


@pytest.mark.parametrize("change", CRASHES.values(), ids=CRASHES)
def test_a_crash_before_the_file_heals(opened, kept, sync, change):
    """What was committed is written by the next sync, whoever does it, and the newest words are not lost."""
    record, _ = kept("the first words")
    opened.database.apply([change(opened, record)])
    wanted = everything(opened)
    report = sync()

    assert set(report.written) <= wanted.keys()
    assert bool(report.written) == (record.id in wanted)
    assert everything(opened) == wanted
    assert (report.troubles, report.added, report.changed, report.archived) == ((), (), (), ())
    assert_agreement(opened)
    assert sync().is_empty


def test_a_crash_after_the_file_heals(desk, opened):
    """A file that was written but not noted is its record's, and no new one."""
    record = opened.memory.remember("Use pnpm", category="decisions").record
    opened.memory.update(record.id, content="Use pnpm 10")
    other = desk.open()
    report = other.folders.sync(other.where.project)

    assert report.is_empty
    assert [live.id for live in other.memory.list()] == [record.id]
    assert_agreement(other)


def test_a_crash_while_a_file_moves_heals(opened, kept):
    """The file lies in its new folder and still says what it said: it is written anew, and nothing is undone."""
    record, path = kept()
    opened.database.apply([put(opened, record, category="principles")])
    (path.parents[1] / "principles").mkdir()
    path.rename(path.parents[1] / "principles" / path.name)
    report = opened.folders.sync(opened.where.project)

    assert (report.troubles, report.added, report.changed) == ((), (), ())
    assert opened.memory.get(record.id).category == "principles"
    assert_agreement(opened)


def test_many_crashes_are_no_vanishing(opened, sync):
    """Records whose files were never written are written, not archived."""
    for number in range(8):
        record = opened.memory.remember(f"note {number}", category="decisions").record
        opened.database.apply(
            [put(opened, record.replace(id=f"{number:020}", version=0), content=f"unwritten {number}")]
        )

    assert sync().archived == ()
    assert len(opened.memory.list()) == 16
    assert_agreement(opened)


def test_files_are_noted_in_groups_and_at_the_end(desk, opened, folder):
    """A few writes are noted together; whoever leaves notes the rest."""
    for number in range(UNNOTED_MOST - 1):
        opened.memory.remember(f"note {number}", category="decisions")
    assert opened.store.files(str(folder)) == []
    opened.memory.remember("one more", category="decisions")
    assert len(opened.store.files(str(folder))) == UNNOTED_MOST
    opened.memory.remember("the last one", category="decisions")
    opened.close()
    assert len(desk.open().store.files(str(folder))) == UNNOTED_MOST + 1


def test_a_record_changed_during_a_sync_is_looked_at_again(desk, opened, kept, edit, clock):
    """Somebody updates a record after the look and before the commit: the file wins, and nothing is lost."""
    record, path = kept("the first words")
    edit(path, "the first words", "the person's words")
    rival, asked = desk.open(), []

    def interrupted():
        asked.append(clock())
        if len(asked) == 2:  # the records are read, and the edit is on its way through the gate
            rival.database.apply([put(rival, record, content="the rival's words")])
        return clock()

    syncer = Syncer(
        opened.store, opened.where.project, opened.binding, clock=interrupted, secret=bytes, judge=judge_as_hand_edits
    )
    report = syncer.run()

    assert (report.troubles, len(report.changed)) == ((), 1)
    said = [past.content for past in opened.memory.history(record.id)]
    assert said == ["the person's words", "the rival's words", "the first words"]
    assert_agreement(opened)


def test_a_backup_that_is_put_back_takes_the_files_along(opened, desk, kept, sync, tree):
    """What was written since is gone, what was changed is as it was, on disk as in the store."""
    first, _ = kept("the first words")
    opened.maintenance.backup(str(desk.root / "backup.db"))
    before = tree()
    opened.memory.update(first.id, content="other words")
    kept("written since")

    assert opened.restore(str(desk.root / "backup.db")) == (1, ())
    assert tree() == before
    assert sync().is_empty


# Two clones


@pytest.fixture
def clones(desk):
    """Two clones of one repository on one machine, opened."""
    desk.folder("clone")
    return desk.open(), desk.open("clone")


def test_clones_share_and_do_not_archive_each_other(clones):
    """A record made in one is written into the other, and a folder without its file is no wish to archive it."""
    one, two = clones
    record = one.memory.remember("Use pnpm", category="decisions").record
    two.folders.sync(two.where.project)
    one.folders.sync(one.where.project)

    assert two.memory.get(record.id) == one.memory.get(record.id) == record
    for opened in clones:
        assert_agreement(opened)


def test_an_edit_in_one_clone_stays_there(clones, clock, edit):
    """Each clone answers what its own files say; Git brings an edit to the other."""
    one, two = clones
    record = one.memory.remember("Use pnpm", category="decisions").record
    two.folders.sync(two.where.project)
    one.store.settle()
    edit(Path(one.store.references([record])[record.id]), "pnpm", "yarn")
    clock.forward()
    one.folders.sync(one.where.project)
    two.folders.sync(two.where.project)

    for opened, content in zip(clones, ("Use yarn", "Use pnpm"), strict=True):
        assert_agreement(opened)
        assert opened.memory.get(record.id).content == content
        assert [hit.text for hit in opened.recall("use").hits] == [content]


def test_forgetting_in_one_clone_removes_the_file_of_the_other(clones):
    """An erased record does not come back from another clone."""
    one, two = clones
    record = one.memory.remember("Use pnpm", category="decisions").record
    two.folders.sync(two.where.project)
    one.memory.forget(record.id)
    two.folders.sync(two.where.project)

    for opened in clones:
        assert_agreement(opened)
        with pytest.raises(NotFound):
            opened.memory.get(record.id)


def test_deleting_a_file_in_one_clone_leaves_the_other(clones, clock):
    """It is archived there; the other clone still has its file."""
    one, two = clones
    record = one.memory.remember("Use pnpm", category="decisions").record
    two.folders.sync(two.where.project)
    one.store.settle()
    Path(one.store.references([record])[record.id]).unlink()
    clock.forward()
    one.folders.sync(one.where.project)
    two.folders.sync(two.where.project)

    assert one.memory.list() == []
    assert two.memory.list() == [record]
    assert two.folders.sync(two.where.project).is_empty
    assert one.folders.sync(one.where.project).is_empty


def test_a_copy_with_older_files_learns_what_is_new(desk, opened, kept, clock):
    """A copy without Git that lay still is brought up to date; it undoes nothing."""
    record, path = kept("the first words")
    folder = desk.folder("clone")
    (folder / "decisions").mkdir()
    (folder / "decisions" / path.name).write_bytes(path.read_bytes())
    clock.forward()
    opened.memory.update(record.id, content="the newest words")
    clone = desk.open("clone")
    clone.folders.sync(clone.where.project)

    assert opened.memory.get(record.id).content == "the newest words"
    assert clone.memory.get(record.id).content == "the newest words"
    assert_agreement(clone)


def test_two_peoples_edits_merged_by_git_wait_for_a_person(desk, clock, edit):
    """What git could not merge is reported in each clone, and nothing of it is remembered until it is resolved."""
    origin, paths = desk.root / "origin.git", {}
    git(desk.root, "init", "-q", "--bare", "-b", "main", str(origin))
    for name in ("ada", "bo"):
        git(desk.root, "clone", "-q", str(origin), name)
        if name == "ada":
            desk.folder("ada/sub", "github.com/acme/merged")
            made = desk.open("ada/sub").memory.remember("Use pnpm, not npm", category="decisions").record
            git(desk.root / "ada", "add", "."), git(desk.root / "ada", "commit", "-qm", "memory")
            git(desk.root / "ada", "push", "-q", "origin", "HEAD:main")
        paths[name] = next((desk.root / name).glob("sub/.commonplace/decisions/*.md"))
        edit(paths[name], "Use pnpm", f"Use what {name} likes")
        git(desk.root / name, "commit", "-qam", name)
    git(desk.root / "ada", "push", "-q", "origin", "HEAD:main")
    git(desk.root / "bo", "pull", "-q", "--no-rebase", "origin", "main", fails=True)

    agree(desk.root / "bo/sub", desk.root / "home")
    bo = desk.open("bo/sub")
    [trouble] = bo.folders.sync(bo.where.project).troubles
    assert "git conflict markers" in trouble.reason
    assert not any("<<<" in past.content for past in bo.memory.history(made.id))
    git(desk.root / "bo", "checkout", "-q", "--theirs", str(paths["bo"]))
    clock.forward()
    resolved = bo.folders.sync(bo.where.project)
    assert resolved.troubles == ()
    assert resolved.proposed == (f"decisions/{paths['bo'].name}",), "the other person's text is a proposal"
    edit(paths["bo"], "Use what ada likes", "Use what both like")
    assert bo.folders.sync(bo.where.project).changed == resolved.proposed
    assert bo.memory.get(made.id).content == "Use what both like, not npm"


def git(folder, *arguments, fails=False):
    """Run git as somebody, who has no settings of their own."""
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    env = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], env=env, capture_output=True, check=not fails)
    assert bool(done.returncode) == fails


# Several at once


def test_another_process_finds_a_file_that_is_not_noted_yet(desk, opened):
    """Who updates or forgets a record whose writer is still busy writes to its file, and leaves no second one."""
    updated = opened.memory.remember("first title", category="decisions").record
    forgotten = opened.memory.remember("another title", category="decisions").record
    other = desk.open()
    other.memory.update(updated.id, content="second title")
    other.memory.forget(forgotten.id)
    other.store.settle()
    third = desk.open()

    assert_agreement(third)
    assert third.folders.sync(third.where.project).troubles == ()
    assert opened.folders.sync(opened.where.project).troubles == ()
    assert_agreement(third)
    with pytest.raises(NotFound):
        third.memory.get(forgotten.id)


PROGRAM = """
import sys
from commonplace.app import open_app
number = sys.argv[1]
with open_app(sys.argv[2]) as opened:
    memory, mine = opened.memory, []
    for step in range(12):
        mine.append(memory.remember(f"note {number} {step}", category="decisions").record.id)
        memory.remember(f"by {number} in step {step}", category="decisions", key="shared")
        if step % 3 == 0:
            memory.update(mine[step // 2], content=f"renamed {number} {step}")
        if step % 4 == 1:
            memory.reclassify(mine[step // 2], "principles")
        if step % 5 == 2:
            memory.forget(mine.pop(0))
            mine.insert(0, mine[0])
        if step % 6 == 5:
            opened.folders.sync(opened.where.project)
"""


def run(desk, program, *arguments, count):
    """Run a program in several processes at once; every one of them must end well."""
    env = os.environ | desk.env
    command = [sys.executable, "-c", program]
    running = [
        subprocess.Popen([*command, str(n), str(desk.root / "shop"), *arguments], env=env, stderr=subprocess.PIPE)
        for n in range(count)
    ]
    said = [process.communicate(timeout=120)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * count, "\n".join(said)


def test_processes_at_work_leave_files_and_rows_in_agreement(desk, opened):
    """Writers, editors and syncs side by side lose nothing, and one sync is enough."""
    run(desk, PROGRAM, count=3)
    report = opened.folders.sync(opened.where.project)

    assert report.troubles == ()
    assert_agreement(opened)
    assert opened.folders.sync(opened.where.project).is_empty
    [shared] = [record for record in everything(opened).values() if record.key == "shared"]
    assert shared.version == 36


SYNC = """
import sys
from commonplace.app import open_app
with open_app(sys.argv[2]) as opened:
    opened.folders.sync(opened.where.project)
"""


def test_processes_that_sync_at_once_make_one_record_of_a_file(desk, opened, folder):
    """A new file is added once, however many look at it."""
    (folder / "decisions").mkdir()
    for number in range(20):
        (folder / "decisions" / f"{number}.md").write_text(f"note number {number}\n")
    run(desk, SYNC, count=3)

    assert sorted(record.content for record in everything(opened).values()) == sorted(
        f"note number {n}" for n in range(20)
    )
    assert_agreement(opened)


def test_threads_share_one_memory(opened):
    """Writers, readers and syncs in one process get along."""
    failures = []

    def work(number):
        try:
            for step in range(8):
                record = opened.memory.remember(f"note {number} {step}", category="decisions").record
                opened.memory.update(record.id, content=f"note {number} {step} again")
                assert opened.recall(f"note {number} {step}").hits
                if step % 4 == 3:
                    opened.folders.sync(opened.where.project)
        except BaseException as error:  # noqa: BLE001 - told below, in the thread that can fail the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert failures == []
    opened.folders.sync(opened.where.project)
    assert len(everything(opened)) == 24
    assert_agreement(opened)


def test_a_sync_does_not_wait_forever(folder):
    """If somebody holds the folder, that is said."""
    fcntl = pytest.importorskip("fcntl")
    from commonplace.files import disk as files  # noqa: PLC0415 - used here only

    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with (
        pytest.raises(StoreBusy, match="another process has been writing to"),
        files.folder_lock(str(folder), seconds=0.01),
    ):
        pass
    os.close(descriptor)

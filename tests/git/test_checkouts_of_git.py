"""Branches, worktrees, merges and losses on real Git: what memory answers, and what `git status` says afterwards."""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

import pytest

from commonplace.cli.merge_file import merge_file
from commonplace.config.writing import GIT_ATTRIBUTES, GIT_IGNORE
from commonplace.files.codec import decode
from commonplace.git.branches import AheadOfMain
from commonplace.git.driver import COMMAND, install_driver
from commonplace.model.queries import State

MEMORY = ".commonplace"


@pytest.fixture
def shop(ada):
    """Ada's project, with what `init` writes."""
    (ada.folder / MEMORY / ".gitattributes").write_text(GIT_ATTRIBUTES)
    (ada.folder / MEMORY / ".gitignore").write_text(GIT_IGNORE)
    command = os.path.join(os.path.dirname(sys.executable), "commonplace")
    ada.configure(f'[merge "commonplace"]\n\tdriver = {command} merge-file %O %A %B\n')
    ada.git("add", "-A")
    ada.git("commit", "-qm", "attributes")
    return Checkout(ada)


class Checkout:
    """One working tree of one person: what they do there, and what memory says."""

    def __init__(self, person, folder=None):
        self.person, self.folder = person, folder or person.folder

    def git(self, *arguments, **options):
        """Run Git here."""
        self.person.close()
        return self.person.git(*arguments, at=self.folder, **options)

    @property
    def app(self):
        """The memory, opened here."""
        self.person.clock.forward()
        return self.person.open(self.folder)

    def add(self, text, category="procedures", **options):
        """Add a record by command."""
        with self.app as app:
            return app.memory.remember(text, category=category, **options).record

    def update(self, record, **changes):
        """Change a record by command."""
        with self.app as app:
            app.folders.refresh()
            return app.memory.update(record.id, **changes).record

    def commit(self, message="memory"):
        """Commit everything."""
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def sync(self, **options):
        """Run `commonplace sync`."""
        with self.app as app:
            return app.folders.sync(app.where.project, **options)

    def answers(self, question=""):
        """What recall answers; it leaves `git status` alone and cites only files that say so."""
        before = self.git("status", "--porcelain")
        with self.app as app:
            found = app.recall(question, count=False)
            app.folders.refresh()
            listed = {one.content for one in app.memory.list(scopes=[app.where.project], limit=100)}
        for hit in found.hits:
            path = found.references[hit.id]
            assert path.startswith(str(self.folder)), path
            assert decode(Path(path).read_bytes(), path=path).content == hit.text
        assert self.git("status", "--porcelain") == before
        texts = {hit.text for hit in found.hits}
        assert question or texts == listed
        return texts

    def file_of(self, record):
        """The file of a record here."""
        [path] = (self.folder / MEMORY).glob(f"*/*--{record.short}.md")
        return path

    def edit(self, record, old, new):
        """Change a record's file by hand."""
        path = self.file_of(record)
        path.write_text(path.read_text().replace(old, new))

    def versions(self, record):
        """How many versions the store has of a record."""
        with self.app as app:
            return len(app.memory.history(record.id))


def test_each_branch_answers_what_its_files_say(shop):
    """Going back and forth makes no versions, and a record that another branch added is not there."""
    record = shop.add("Deploy on Fridays")
    shop.commit()
    shop.git("checkout", "-qb", "feature")
    shop.edit(record, "Fridays", "Mondays")
    shop.add("Ship with make ship")
    shop.commit()
    assert shop.answers() == {"Deploy on Mondays", "Ship with make ship"}
    for _ in range(2):
        shop.git("checkout", "-q", "main")
        assert shop.answers() == {"Deploy on Fridays"}
        assert shop.answers("mondays ship") == set()
        shop.git("checkout", "-q", "feature")
        assert shop.answers() == {"Deploy on Mondays", "Ship with make ship"}
    assert shop.versions(record) == 2


def test_a_write_on_one_branch_follows_on_what_that_branch_says(shop):
    """A tag that is given on main does not bring the feature branch's words into main's file."""
    record = shop.add("Deploy on Fridays")
    shop.commit()
    shop.git("checkout", "-qb", "feature")
    shop.edit(record, "Fridays", "Mondays")
    shop.commit()
    shop.answers()
    shop.git("checkout", "-q", "main")
    shop.answers()
    shop.update(record, tags=["ops"])
    assert "Deploy on Fridays" in shop.file_of(record).read_text()
    assert shop.answers() == {"Deploy on Fridays"}
    with shop.app as app:
        app.memory.archive(record.id)
    assert "Deploy on Fridays" in shop.file_of(record).read_text()
    assert shop.answers() == set()


def test_independent_edits_merge_and_a_real_conflict_is_named(shop):
    """A tag here and a word there; then two words for one."""
    record = shop.add("Deploy on Fridays", tags=["ci"])
    shop.commit()
    shop.git("checkout", "-qb", "feature")
    shop.update(record, content="Deploy on Mondays")
    shop.commit()
    shop.git("checkout", "-q", "main")
    shop.update(record, tags=["ci", "ops"])
    shop.commit()
    shop.git("merge", "-q", "--no-edit", "feature")
    assert shop.answers() == {"Deploy on Mondays"}
    with shop.app as app:
        assert app.memory.get(record.id).tags == {"ci", "ops"}
    shop.git("checkout", "-qb", "third", "main~1")
    shop.update(record, content="Deploy on Sundays")
    shop.commit()
    shop.git("merge", "-q", "main", check=False)
    assert "<<<<<<< " in shop.file_of(record).read_text()
    with shop.app as app:
        [note] = app.recall("deploy").notes
        assert "has git conflict markers" in note
        assert app.memory.get(record.id).content == "Deploy on Sundays"


def test_files_merge_without_the_driver(shop):
    """Where it is not configured Git merges the lines, which hold no bookkeeping."""
    (shop.person.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
    record = shop.add("Deploy on Fridays\n\n\nand look at the graphs", tags=["ci"])
    shop.commit()
    shop.git("checkout", "-qb", "feature")
    shop.update(record, content="Deploy on Fridays\n\n\nand look at the logs")
    shop.commit()
    shop.git("checkout", "-q", "main")
    shop.update(record, tags=["ops"])
    shop.commit()
    shop.git("merge", "-q", "--no-edit", "feature")
    assert shop.answers() == {"Deploy on Fridays\n\n\nand look at the logs"}


def test_a_driver_that_is_not_found_merges_the_lines(shop):
    """As where Git is run outside of the virtual environment that has the command."""
    (shop.person.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
    install_driver(str(shop.folder))
    record = shop.add("Deploy on Fridays")
    shop.commit()
    shop.git("checkout", "-qb", "feature")
    shop.update(record, content="Deploy on Mondays")
    shop.commit()
    shop.git("checkout", "-q", "main")
    shop.update(record, content="Deploy on Sundays")
    shop.commit()
    plain = os.pathsep.join([os.path.dirname(shutil.which("git") or ""), "/bin"])
    shop.git("merge", "-q", "feature", check=False, PATH=plain)
    assert "<<<<<<< " in shop.file_of(record).read_text()


def test_init_configures_the_driver_once(shop):
    """Next to whatever the configuration holds already."""
    (shop.person.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.com\n")
    before = (shop.folder / ".git" / "config").read_text()
    assert install_driver(str(shop.folder))
    assert not install_driver(str(shop.folder))
    assert (shop.folder / ".git" / "config").read_text().startswith(before)
    assert shop.git("config", "merge.commonplace.driver") == COMMAND
    assert merge_file.name == "merge-file"
    attributes = shop.git("check-attr", "merge", ".commonplace/decisions/x.md", ".commonplace/skills/x.md")
    assert attributes.splitlines() == [
        ".commonplace/decisions/x.md: merge: commonplace", ".commonplace/skills/x.md: merge: unspecified",
    ]  # fmt: skip


def test_a_worktree_shows_its_own_files(shop):
    """A write in one does not touch the files of the other, nor what is answered there."""
    record = shop.add("Deploy on Fridays")
    shop.commit()
    tree = Checkout(shop.person, shop.person.root / "tree")
    shop.git("worktree", "add", "-q", tree.folder, "-b", "feature")
    shop.person.trust(folder=tree.folder)
    assert tree.answers() == {"Deploy on Fridays"}
    tree.update(record, content="Deploy on Mondays")
    tree.add("Ship with make ship")
    assert shop.answers() == {"Deploy on Fridays"}
    assert shop.sync().written == ()
    assert tree.answers() == {"Deploy on Mondays", "Ship with make ship"}
    tree.commit()
    shop.git("merge", "-q", "feature")
    assert shop.answers() == {"Deploy on Mondays", "Ship with make ship"}
    shop.file_of(record).unlink()
    assert shop.sync().archived == (record.id,)
    assert tree.answers() == {"Deploy on Mondays", "Ship with make ship"}


def test_what_git_clean_took_is_written_back(shop):
    """Nothing is lost silently: what is gone is named, and one command writes it back."""
    records = [shop.add(f"Lesson {number}", "principles") for number in range(5)]
    shop.git("clean", "-qfdx", MEMORY)
    report = shop.sync()
    assert (len(report.hidden), report.archived, shop.answers()) == (5, (), set())
    with shop.app as app:
        [note] = [note for note in app.folders.sync_notes(app.where.project, report) if "not in this checkout" in note]
        assert "commonplace sync --write" in note
    assert len(shop.sync(restores=True).written) == 5
    assert shop.answers() == {one.content for one in records}


def test_a_sparse_checkout_archives_nothing(shop):
    """What it leaves out is hidden, and comes back with its files."""
    shop.add("Deploy on Fridays")
    shop.add("Use pnpm", "decisions")
    shop.commit()
    shop.git("sparse-checkout", "set", "--no-cone", "/*", "!/.commonplace/decisions/")
    assert shop.answers() == {"Deploy on Fridays"}
    with shop.app as app:
        assert app.memory.list(states=[State.ARCHIVED]) == []
    shop.git("sparse-checkout", "disable")
    assert shop.answers() == {"Deploy on Fridays", "Use pnpm"}


def test_two_people_who_add_one_fact_are_offered_to_merge_it(shop, server, machine):
    """The second file that says the same is named, with the command that makes one record of both."""
    bob = machine("bob").clone(server)
    bob.trust()
    theirs = Checkout(bob)
    theirs.add("Use pnpm", "decisions", tags=["js"])
    theirs.commit()
    theirs.git("push", "-q", "origin", "HEAD:bob")
    mine = shop.add("Use pnpm", "decisions")
    shop.commit()
    shop.git("fetch", "-q")
    shop.git("merge", "-q", "--no-edit", "origin/bob")
    report = shop.sync()
    assert [ids[1] for _, _, ids in report.alike] == [mine.id]
    with shop.app as app:
        notes = list(app.folders.sync_notes(app.where.project, report))
    assert any(f"commonplace record merge {report.alike[0][2][0]} {mine.id}" in note for note in notes)


def test_files_that_are_not_read_are_named(shop):
    """Loose, nested and misnamed files, each with what to do; a recall says nothing about them."""
    folder = shop.folder / MEMORY
    (folder / "decisions" / "sub").mkdir(parents=True)
    for name in ("loose.md", "decisions/sub/n.md", "decisions/n.txt", "README.md", ".hidden.md"):
        (folder / name).write_text("words")
    assert [one.path for one in shop.sync().troubles] == ["decisions/n.txt", "decisions/sub/n.md", "loose.md"]
    with shop.app as app:
        assert app.recall("words").notes == ()


def test_old_files_lose_their_bookkeeping_with_the_next_write(shop):
    """A file in the earlier format is read as it is, and is not touched by a read."""
    record = shop.add("Deploy on Fridays")
    path = shop.file_of(record)
    old = (
        f"---\nid: {record.id}\ncategory: procedures\ncreated: 2026-01-01T12:00:00Z\nupdated: 2026-01-02T12:00:00Z\n"
        "source: user\ntrust: user\naliases: []\nkeywords: []\ntags: []\n# mine\nversion: 4\n---\n\nDeploy on Fridays\n"
    )
    path.write_text(old)
    shop.commit()
    assert shop.answers() == {"Deploy on Fridays"}
    assert path.read_text() == old
    shop.update(record, tags=["ops"])
    text = path.read_text()
    assert text.startswith(f"---\nid: {record.id}\n")
    assert not {"version", "updated", "source", "trust", "aliases", "category"} & {
        row.partition(":")[0] for row in text.splitlines()
    }
    assert "# mine\n" in text


def test_status_shows_what_this_branch_knows_and_main_does_not(shop):
    """New and changed records, committed or not; on main itself there are none."""
    kept, changed = shop.add("Use pnpm", "decisions"), shop.add("Deploy on Fridays")
    shop.commit()
    with shop.app as app:
        names = [Path(one).name for one in app.ahead_of_main().new]
    assert names == [shop.file_of(kept).name, shop.file_of(changed).name]
    shop.git("push", "-q")
    with shop.app as app:
        assert app.ahead_of_main() == AheadOfMain()
    shop.git("checkout", "-qb", "feature")
    shop.update(changed, content="Deploy on Mondays")
    shop.commit()
    added = shop.add("Ship with make ship")
    with shop.app as app:
        ahead = app.ahead_of_main()
    assert ahead.new == (f"procedures/{shop.file_of(added).name}",)
    assert ahead.changed == (f"procedures/{shop.file_of(changed).name}",)


# Anything that people do with Git


STEPS = ("edit", "update", "add", "commit", "branch", "switch", "switch", "merge", "stash", "pop", "rm")


def do_something(shop, chance, known):  # noqa: C901 - one case per step
    """One step of a day."""
    branches = shop.git("branch", "--format=%(refname:short)").split()
    step = chance.choice(STEPS)
    files = list((shop.folder / MEMORY).glob("*/*.md"))
    if step == "edit" and files:
        path = chance.choice(files)
        path.write_text(path.read_text().replace("Note", f"Note {chance.randrange(9)}", 1))
    elif step == "update" and shop.answers():
        with shop.app as app:
            live = app.memory.list(scopes=[app.where.project])
            app.memory.update(chance.choice(live).id, tags=[f"t{chance.randrange(9)}"])
    elif step == "add":
        known.append(shop.add(f"Note {len(known)}"))
    elif step == "commit":
        shop.git("add", "-A")
        shop.git("commit", "-qm", "step", check=False)
    elif step == "branch":
        shop.git("checkout", "-qb", f"b{len(branches)}", check=False)
    elif step == "switch":
        shop.git("checkout", "-q", chance.choice(branches), check=False)
    elif step == "merge":
        shop.git("merge", "-q", "--no-edit", chance.choice(branches), check=False)
        if shop.git("ls-files", "-u"):
            shop.git("merge", "--abort", check=False)
    elif step == "stash":
        shop.git("stash", "-q", "-u", check=False)
    elif step == "pop":
        shop.git("stash", "pop", "-q", check=False)
        if shop.git("ls-files", "-u"):
            shop.git("reset", "-q", "--hard")
    elif files:
        shop.git("rm", "-qf", chance.choice(files), check=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_a_read_never_writes_a_tracked_file(shop, seed):
    """Random branches, merges, stashes and edits: reads change no status, and cite only what files say."""
    chance = random.Random(seed)
    known = [shop.add(f"Note {number}") for number in range(3)]
    shop.commit()
    tree = Checkout(shop.person, shop.person.root / "tree")
    shop.git("worktree", "add", "-q", tree.folder, "-b", "elsewhere")
    shop.person.trust(folder=tree.folder)
    for _ in range(25):
        place = chance.choice([shop, shop, tree])
        do_something(place, chance, known)
        for seen in (shop, tree):
            texts = seen.answers()
            said = {decode(path.read_bytes(), path=str(path)).content for path in (seen.folder / MEMORY).glob("*/*.md")}
            assert texts == said, "the memory of a checkout is what its files say"


def test_an_erased_record_that_an_old_commit_brings_is_reported_and_not_revived(shop):
    """Its tombstone recognises it; the file is left to the person."""
    record = shop.add("The merger is called Bluebird")
    shop.commit()
    path = shop.file_of(record)
    with shop.app as app:
        app.memory.forget(record.id)
    assert not path.exists()
    shop.commit("forget")
    shop.git("checkout", "-q", "HEAD~1", "--", MEMORY)
    assert shop.answers("bluebird") == set()
    assert [Path(one).name for one in shop.sync().erased] == [path.name]
    assert path.exists()


def test_a_fortnight_of_two_people(shop, bob):  # noqa: PLR0915 - a day after the other
    """Branches, worktrees, rebase, stash, conflict, revert, force-push, clean and a moved folder, day by day."""
    ada = shop.person
    ada.trust("bob@example.com"), bob.trust("ada@example.com")
    bob.configure((ada.home / ".gitconfig").read_text().partition("[merge")[2].join(["[merge", ""]))
    bobs = Checkout(bob)

    # Ada writes two records; Bob pulls them.
    pnpm, deploy = shop.add("Use pnpm", "decisions", tags=["ci"]), shop.add("Deploy on Fridays")
    shop.commit()
    shop.git("push", "-q")
    bobs.git("pull", "-q")
    assert shop.answers() == bobs.answers() == {"Use pnpm", "Deploy on Fridays"}

    # A worktree for a feature: each shows its own files.
    tree = Checkout(ada, ada.root / "tree")
    shop.git("worktree", "add", "-q", tree.folder, "-b", "feature")
    ada.trust("bob@example.com", folder=tree.folder)
    tree.update(deploy, content="Deploy on Mondays")
    tree.add("Ship with make ship")
    tree.commit()
    assert tree.answers() == {"Use pnpm", "Deploy on Mondays", "Ship with make ship"}
    assert shop.answers() == {"Use pnpm", "Deploy on Fridays"}

    # Bob tags a record while Ada changes its words: a rebase brings both.
    bobs.update(pnpm, tags=["ci", "js"])
    bobs.commit()
    bobs.git("push", "-q")
    shop.update(pnpm, content="Use pnpm 9")
    shop.commit()
    shop.git("pull", "-q", "--rebase")
    shop.git("push", "-q")
    assert shop.answers() == {"Use pnpm 9", "Deploy on Fridays"}
    with shop.app as app:
        assert app.memory.get(pnpm.id).tags == {"ci", "js"}
    tree.git("rebase", "-q", "main")
    assert tree.answers() == {"Use pnpm 9", "Deploy on Mondays", "Ship with make ship"}

    # A stash takes an edit away and brings it back.
    shop.edit(deploy, "Fridays", "Tuesdays")
    assert "Deploy on Tuesdays" in shop.answers()
    shop.git("stash", "-q")
    assert "Deploy on Fridays" in shop.answers()
    shop.git("stash", "pop", "-q")
    assert "Deploy on Tuesdays" in shop.answers()
    shop.git("checkout", "-q", "--", ".")
    assert "Deploy on Fridays" in shop.answers()

    # Both change the same words: the file is named, the last text answers, and what is resolved counts.
    bobs.git("pull", "-q")
    bobs.update(deploy, content="Deploy on Wednesdays")
    bobs.commit()
    bobs.git("push", "-q")
    shop.git("merge", "-q", "--no-edit", "feature")
    assert shop.answers() == {"Use pnpm 9", "Deploy on Mondays", "Ship with make ship"}
    shop.git("pull", "-q", "--no-rebase", "--no-edit", check=False)
    report = shop.sync()
    assert [(one.path, "conflict" in one.reason) for one in report.troubles] == [
        (str(shop.file_of(deploy).relative_to(shop.folder / MEMORY)), True)
    ]
    with shop.app as app:
        assert app.memory.get(deploy.id).content == "Deploy on Mondays"
    text = shop.file_of(deploy).read_text()
    shop.file_of(deploy).write_text(text.partition("<<<<<<<")[0] + "Deploy on Mondays or Wednesdays\n")
    shop.commit("merge")
    shop.git("push", "-q")
    assert shop.answers() == {"Use pnpm 9", "Deploy on Mondays or Wednesdays", "Ship with make ship"}
    bobs.git("pull", "-q")
    assert "Deploy on Mondays or Wednesdays" in {path.read_text().splitlines()[-1] for path in files_of(bobs)}

    # A revert takes a record away, and reverting that brings it back.
    shop.add("Rewrite it in Rust", "decisions")
    shop.commit("rust")
    shop.git("revert", "--no-edit", "HEAD")
    assert "Rewrite it in Rust" not in shop.answers()
    shop.git("revert", "--no-edit", "HEAD")
    assert "Rewrite it in Rust" in shop.answers()
    shop.git("reset", "-q", "--hard", "HEAD~3")
    assert "Rewrite it in Rust" not in shop.answers()

    # Bob pushes a branch, and pushes another one over it.
    bobs.git("checkout", "-qb", "topic")
    bobs.add("Cache for an hour", "decisions")
    bobs.commit("topic")
    bobs.git("push", "-q", "-u", "origin", "topic")
    shop.git("fetch", "-q")
    shop.git("checkout", "-q", "topic")
    assert "Cache for an hour" in shop.answers()
    bobs.git("reset", "-q", "--hard", "HEAD~1")
    bobs.add("Log in JSON lines", "decisions")
    bobs.commit("topic")
    bobs.git("push", "-q", "--force")
    shop.git("fetch", "-q")
    shop.git("reset", "-q", "--hard", "origin/topic")
    assert {"Cache for an hour", "Log in JSON lines"} & shop.answers() == {"Log in JSON lines"}
    shop.git("checkout", "-q", "main")
    whole = {"Use pnpm 9", "Deploy on Mondays or Wednesdays", "Ship with make ship"}
    assert shop.answers() == whole

    # What was never committed is cleaned away: it is named, and written back.
    shop.add("A draft", "principles")
    shop.git("clean", "-qfdx")
    assert len(shop.sync().hidden) == 1
    assert shop.answers() == whole
    shop.sync(restores=True)
    assert "A draft" in shop.answers()

    # The folder moves; the worktree is repaired.
    ada.close()
    shop.folder = shop.folder.rename(shop.folder.with_name("moved"))
    ada.folder = shop.folder
    shop.git("worktree", "repair", tree.folder)
    ada.trust("bob@example.com")
    assert "Deploy on Mondays or Wednesdays" in shop.answers()
    assert tree.answers() == {"Use pnpm 9", "Deploy on Mondays", "Ship with make ship"}
    assert tree.git("status", "--porcelain") == ""


def files_of(checkout):
    """Every record's file of a checkout."""
    return sorted((checkout.folder / MEMORY).glob("*/*.md"))

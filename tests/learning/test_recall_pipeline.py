"""Recall before a run: edited files are found, every answer says where it comes from."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from commonplace.engine.rendering import prompt, snippets
from commonplace.engine.transcripts import Turn
from commonplace.files import disk as files
from commonplace.files.folders import FEW, FRESH_SECONDS
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import StoreError


def texts(brief):
    """What was found, in order."""
    return [hit.text for hit in brief.hits]


def test_every_hit_leads_back_to_its_origin(opened, kept):
    """A record to its file, a session to its turn."""
    record, path = kept()
    opened.memory.index(DocumentKind.SESSION, "0b1c", [Turn(ref="4", text="we chose pnpm")])
    brief = opened.recall("pnpm")

    assert brief.references == {record.id: str(path)}
    assert {hit.id for hit in brief.hits} == {record.id, "session:0b1c#4"}
    for rendered in (snippets(brief.hits, brief.references), prompt(brief.hits, brief.references, secret=b"a key")):
        assert str(path) in rendered
        assert "session:0b1c#4" in rendered


def test_a_file_that_is_not_noted_yet_is_a_reference_too(opened):
    """What was written a moment ago can be opened."""
    record = opened.memory.remember("Use pnpm", category="decisions").record

    assert Path(opened.recall("pnpm").references[record.id]).is_file()


def test_what_was_just_edited_is_found(opened, kept, edit):
    """Nobody has to say sync."""
    record, path = kept()
    edit(path, "pnpm", "yarn")

    assert texts(opened.recall("yarn")) == ["Use yarn, not npm"]
    assert texts(opened.recall("pnpm")) == ["Use yarn, not npm"]  # by its meaning
    assert opened.memory.get(record.id).version == 2


def test_new_and_deleted_files_are_noticed(opened, kept, folder):
    """A file that came is found, one that went is not."""
    _, path = kept()
    path.unlink()
    (folder / "decisions" / "mine.md").write_text("We deploy on Fridays")

    assert texts(opened.recall("pnpm deploy")) == ["We deploy on Fridays"]


def test_both_folders_are_looked_at(opened, desk):
    """The user's own files are files too."""
    mine = desk.root / "home" / "assistant" / "preferences"
    mine.mkdir(parents=True)
    (mine / "short.md").write_text("Prefer concise responses")

    assert texts(opened.recall("concise")) == ["Prefer concise responses"]


def test_a_broken_file_is_a_note_and_the_rest_is_answered(opened, kept, edit):
    """The note names path and line; it is told again until it is mended."""
    _, path = kept()
    kept("Deploy on Mondays")
    edit(path, "\nid: ", "\ntags: [a, b\nid: ")

    for _ in range(2):
        brief = opened.recall("deploy pnpm")
        assert set(texts(brief)) == {"Deploy on Mondays", "Use pnpm, not npm"}
        assert brief.notes[0].startswith(f"{path}:3: frontmatter is not YAML")


def test_many_missing_files_are_a_note(opened, kept):
    """Their records are still answered."""
    for number in range(5):
        kept(f"note number {number}")[1].unlink()
    brief = opened.recall("note")

    assert len(brief.hits) == 5
    assert brief.notes == (
        (
            "5 files of the project memory are missing at once; their records were not archived. "
            "`commonplace sync --accept-missing` archives them, `commonplace sync --write` writes the files back"
        ),
    )


def test_a_secret_in_a_file_is_a_note(opened, folder):
    """Whoever typed it learns that it is gone, and from where."""
    (folder / "decisions").mkdir()
    path = folder / "decisions" / "login.md"
    path.write_text("The password is hunter2secretX and stays")
    [note] = opened.recall("stays").notes

    assert note.startswith(f"{path}: a secret (password) was removed; [secret:password:")
    assert "hunter2secretX" not in path.read_text()


def test_a_folder_that_is_gone_does_not_silence_the_memory(opened, kept, folder):
    """What is stored is answered, with a note; nothing is archived."""
    record, _ = kept()
    shutil.rmtree(folder)
    brief = opened.recall("pnpm")

    assert texts(brief) == ["Use pnpm, not npm"]
    assert "were not synced: the folder" in brief.notes[0]
    assert opened.memory.get(record.id).archived_at is None


def test_a_folder_that_is_gone_cannot_be_written_to(opened, folder):
    """A write says so in our words."""
    shutil.rmtree(folder)

    with pytest.raises(StoreError, match="cannot be used: No such file"):
        opened.memory.remember("Use pnpm", category="decisions")


def test_a_recall_does_not_wait_for_a_sync_that_hangs(opened, kept, folder):
    """Somebody else is at the files: what is stored is answered, with a note."""
    kept()
    (folder / "decisions" / "new.md").write_text("another thing")
    with files.folder_lock(str(folder.parent)):
        brief = opened.recall("pnpm")

    assert texts(brief) == ["Use pnpm, not npm"]
    assert "another process has been writing to" in brief.notes[0]
    assert texts(opened.recall("another thing")) == ["another thing"]


def test_options_are_those_of_recall(opened, kept):
    """Limit, budget, filters and the past can be asked for here as there."""
    kept("one deploy", category="decisions")
    kept("two deploy", category="procedures")

    assert texts(opened.recall("deploy", categories=["procedures"])) == ["two deploy"]
    assert len(opened.recall("deploy", limit=1).hits) == 1
    assert opened.recall("deploy", budget=1).hits == ()
    assert opened.recall("deploy").recall.query == "deploy"


def test_nothing_is_looked_at_twice_for_nothing(opened, kept, tree):
    """A recall without edits changes no file and no record."""
    record, _ = kept()
    opened.recall("pnpm")
    before = tree()
    opened.recall("pnpm")

    assert tree() == before
    assert opened.memory.get(record.id).version == 1


@pytest.mark.parametrize(
    ("count", "ago", "touched", "fresh"),
    [
        (FEW + 1, 1, 100, True),
        (FEW, 1, 100, False),
        (FEW + 1, FRESH_SECONDS + 1, 200, False),
        (FEW + 1, -5, 100, False),
        (FEW + 1, 1, 1, False),
        (FEW + 1, 1, 0, False),
    ],
)
def test_a_whole_look_stands_for_a_while(opened, folder, count, ago, *, touched, fresh):
    """Of a large folder, for a minute, and only if nothing came or went since it began."""
    now = time.time_ns()
    (folder / "decisions").mkdir()
    for path in (folder, folder / "decisions"):
        os.utime(path, ns=(now - touched * 10**9, now - touched * 10**9))
    opened.folders.mark(opened.where.project, now - ago * 10**9, count)

    assert opened.folders.is_fresh(opened.where.project) == fresh
    assert opened.folders.checked_at(opened.where.project) == pytest.approx(now / 1e9 - ago, abs=0.01)


def test_before_the_first_look_there_is_none(opened):
    """Nothing is taken for granted."""
    assert opened.folders.checked_at(opened.where.project) is None
    assert not opened.folders.is_fresh(opened.where.project)


def test_a_note_says_whose_files_it_is_about(opened, desk):
    """The project's and the user's own are called by their names."""
    for number in range(5):
        opened.memory.remember(f"mine {number}", category="preferences", scope=opened.where.assistant)
    opened.store.settle()
    for path in (desk.root / "home" / "assistant" / "preferences").iterdir():
        path.unlink()

    assert opened.recall("mine").notes[0].startswith("5 files of the assistant memory are missing at once")


@pytest.fixture
def crowd(opened, folder):
    """A folder with more files than are looked at one by one before every recall."""
    (folder / "decisions").mkdir()
    for number in range(FEW + 5):
        path = folder / "decisions" / f"{number}.md"
        path.write_text(f"---\nid: {number:020}\ncreated: 2026-01-01\nversion: 1\n---\n\nnote number {number}\n")
        os.utime(path, (1e9, 1e9))
    opened.folders.sync(opened.where.project)
    for marked in (folder, folder / "decisions"):
        os.utime(marked, (1e9, 1e9))
    return folder / "decisions"


@pytest.mark.slow
def test_in_a_large_folder_edits_are_found_all_the_same(opened, crowd, edit):
    """What came, went or was replaced is noticed by its folder; what was edited in place, when it is recalled."""
    assert opened.folders.is_fresh(opened.where.project)
    edit(crowd / "7.md", "note number 7", "note number 7 as amended")
    assert texts(opened.recall("note number 7"))[0] == "note number 7 as amended"
    (crowd / "new.md").write_text("a brand new thing")
    assert texts(opened.recall("brand new thing"))[:1] == ["a brand new thing"]
    (crowd / "9.md").unlink()
    assert "note number 9" not in texts(opened.recall("note number 9"))

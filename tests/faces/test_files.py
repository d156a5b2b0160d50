"""Markdown files and records, brought together by ``sync`` and by every command that needs it."""

from __future__ import annotations

import os
import shutil

import pytest

from commonplace.files import folders as look
from stands import rows


@pytest.fixture
def folder(cli):
    """The project's folder of files."""
    return cli.folder / "work/.commonplace"


def test_a_file_made_by_hand_becomes_a_record(cli, folder):
    """A plain Markdown file in the folder of a category is taken in, found, and given an id."""
    (folder / "decisions").mkdir()
    (folder / "decisions/mine.md").write_text("We deploy on Fridays\n")
    assert cli.ok("sync").lines[0] == "project: 1 added"
    assert cli.recall("fridays") == ["We deploy on Fridays"]
    assert (folder / "decisions/mine.md").read_text().startswith("---\nid: 1")


def test_a_sync_tells_what_it_did(cli, folder, pnpm):
    """Added, changed, archived: people read numbers, programs read names."""
    gone = cli.add("To be gone", "incidents")
    with open(pnpm["path"], "a") as file:
        file.write("And yarn.\n")
    os.unlink(gone["path"])
    (folder / "principles").mkdir()
    (folder / "principles/new.md").write_text("Measure first\n")
    report = cli.ok("sync", "--json").json["scopes"]["project"]
    assert (report["added"], len(report["changed"]), report["archived"]) == (["principles/new.md"], 1, [gone["id"]])
    assert cli.ok("sync").lines == ["project: in sync", "assistant: in sync"]


def test_one_scope_can_be_synced_alone(cli):
    """--scope leaves the other memory alone."""
    assert cli.ok("sync", "--scope", "assistant").lines == ["assistant: in sync"]


def test_a_file_that_vanished_archives_its_record(cli, pnpm):
    """R41: a deleted file is out of recall; its record can be brought back, with its file."""
    os.unlink(pnpm["path"])
    assert cli.recall("pnpm") == []
    assert cli.get(pnpm["id"])["state"] == "archived"
    cli.ok("record", "restore", pnpm["id"])
    assert os.path.exists(pnpm["path"])


def test_a_file_that_came_back_is_told(cli, pnpm):
    """A sync says that the record is live again, to people and to programs."""
    os.rename(pnpm["path"], cli.folder / "away.md")
    cli.ok("sync")
    os.rename(cli.folder / "away.md", pnpm["path"])
    report = cli.ok("sync", "--json").json["scopes"]["project"]
    assert (report["restored"], cli.get(pnpm["id"])["state"]) == ([pnpm["id"]], "live")


def test_many_files_gone_at_once_are_asked_about(cli, folder):
    """A branch without the folder's files is not a wish to delete: records stay until it is accepted."""
    ids = [cli.add(f"Lesson {number}", "principles")["id"] for number in range(8)]
    shutil.rmtree(folder / "principles")
    done = cli("sync")
    assert (done.code, "--accept-missing" in done.err) == (1, True)
    assert cli.get(ids[0])["state"] == "live"
    assert cli.ok("sync", "--accept-missing").lines[0] == "project: 8 archived"
    assert cli.get(ids[0])["state"] == "archived"


TROUBLES = {
    "broken YAML": ("---\ncategory: [decisions\n---\n\nkraken\n", 3),
    "unknown category": ("---\ncategory: gossip\n---\n\nkraken\n", 1),
    "bad date": ("---\ncategory: decisions\noccurred: soon\n---\n\nkraken\n", 3),
    "conflict markers": ("<<<<<<< HEAD\nkraken\n=======\nleviathan\n>>>>>>> other\n", 1),
    "blank": ("---\ncategory: decisions\n---\n\n\n", 4),
    "no end": ("---\ncategory: decisions\nkraken\n", 1),
}


@rows("trouble", TROUBLES)
def test_a_file_in_trouble_is_named_and_everything_else_goes_on(cli, folder, pnpm, trouble):
    """R41: path and line are told, the file stays as it is, and recall, list and add work."""
    text, line = TROUBLES[trouble]
    (folder / "decisions/bad.md").write_text(text)
    done = cli("sync")
    assert done.code == 1
    assert ".commonplace/decisions/bad.md:" in done.err
    assert f"bad.md:{line}: " in done.err
    assert cli.recall("pnpm") == [pnpm["content"]]
    assert "bad.md:" in cli.ok("recall", "pnpm").err
    assert "bad.md:" in cli.ok("record", "list", "--json").json["notes"][0]
    assert cli.add("Still working", "incidents")
    assert (folder / "decisions/bad.md").read_text() == text


def test_a_conflicted_file_of_a_record_leaves_the_record(cli, pnpm):
    """While a merge is not resolved the record stays as it was; resolving it is the next version."""
    whole = open_text(pnpm["path"])
    write_text(
        pnpm["path"], whole.replace(pnpm["content"], "<<<<<<< HEAD\nUse pnpm\n=======\nUse yarn\n>>>>>>> theirs")
    )
    assert cli.recall("pnpm") == [pnpm["content"]]
    write_text(pnpm["path"], whole.replace(pnpm["content"], "Use yarn"))
    assert cli.recall("yarn") == ["Use yarn"]
    assert cli.get(pnpm["id"])["version"] == 2


def open_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def test_a_secret_in_a_file_is_taken_out_and_told(cli, folder):
    """A secret that somebody pasted into a file is gone from it after the next look."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (folder / "procedures").mkdir()
    (folder / "procedures/login.md").write_text(f"Log in with {secret}\n")
    done = cli.ok("sync")
    assert ".commonplace/procedures/login.md: a secret (github-pat) was removed" in done.err
    assert secret not in (folder / "procedures/login.md").read_text()


def test_the_database_is_rebuilt_from_the_files(cli, pnpm):
    """R25: with the database deleted the same question has the same answer."""
    cli.add("Deploy with make ship", "procedures", "--alias", "release")
    cli.ok("record", "archive", cli.add("Old news", "incidents")["id"])
    asked = ["pnpm", "release", "news"]
    before = [cli.recall(question) for question in asked]
    for path in cli.home.glob("commonplace.db*"):
        path.unlink()
    assert [cli.recall(question) for question in asked] == before
    assert cli.get(pnpm["id"])["created_at"][:23] == pnpm["created_at"][:23], "to the millisecond, as its id says"


def test_comments_of_people_stay(cli, pnpm):
    """A comment in the frontmatter survives what commands do to the record."""
    write_text(pnpm["path"], open_text(pnpm["path"]).replace("tags: [js]", "# ask Ada first\ntags: [js]"))
    cli.ok("record", "update", pnpm["id"], "Use yarn")
    assert "# ask Ada first\ntags: [js]" in open_text(pnpm["path"])


def test_a_large_folder_is_looked_at_in_whole_once_a_minute(cli, monkeypatch):
    """Between two whole looks new, vanished and replaced files are noticed at once, and edited ones when recalled."""
    monkeypatch.setattr(look, "FEW", 3)
    monkeypatch.setattr(look, "COARSE_NS", 0)
    kept = [cli.add(f"Lesson {number} on krakens", "principles") for number in range(6)]
    cli.recall("krakens")
    cli.recall("krakens")
    write_text(kept[0]["path"], open_text(kept[0]["path"]).replace("krakens", "krakens and squids"))
    assert "Lesson 0 on krakens and squids" in cli.recall("krakens")
    (cli.folder / "work/.commonplace/principles/new.md").write_text("A file on squids\n")
    assert "A file on squids" in cli.recall("squids")
    os.unlink(kept[1]["path"])
    assert "Lesson 1 on krakens" not in cli.recall("krakens")


def test_a_record_is_not_written_through_a_link(cli, folder):
    """A category's folder that is a link is neither read nor written: the record is told of, and stays live."""
    (cli.folder / "elsewhere").mkdir()
    (folder / "decisions").symlink_to(cli.folder / "elsewhere")
    done = cli("record", "add", "Use pnpm", "--category", "decisions")
    assert (done.code, "its folder is a link" in done.err, os.listdir(cli.folder / "elsewhere")) == (6, True, [])
    assert "was changed all the same; `commonplace sync` updates the files" in done.err
    assert cli.recall("pnpm") == ["Use pnpm"]
    (folder / "decisions").unlink()
    assert cli.ok("sync").lines[0] == "project: 1 written"


@pytest.mark.parametrize("moved", ["the file", "its folder"])
def test_a_link_in_the_place_of_a_file_is_no_wish_to_delete(cli, folder, pnpm, moved):
    """What is there, but not as a plain file, is named; its record stays as it is."""
    there = pnpm["path"] if moved == "the file" else str(folder / "decisions")
    shutil.move(there, cli.folder / "moved")
    os.symlink(cli.folder / "moved", there)
    assert cli.recall("pnpm") == [pnpm["content"]]
    done = cli("sync")
    assert (done.code, "only plain files are read" in done.err) == (1, True)
    assert cli.get(pnpm["id"])["state"] == "live"


def test_a_version_that_no_store_can_count_is_trouble(cli, folder):
    """A number that is too large is told with its line, and the files beside it are taken in."""
    (folder / "decisions").mkdir()
    (folder / "decisions/one.md").write_text(f"---\nversion: {2**64}\n---\n\nkraken\n")
    (folder / "decisions/two.md").write_text("leviathan\n")
    done = cli("sync")
    assert (done.code, done.lines[0]) == (1, "project: 1 added, 1 not readable")
    assert "one.md:2: version must be a whole number" in done.err


def test_what_keeps_a_file_from_being_written_is_named(cli, folder):
    """A file where a folder should be: the message names the record's file, not one in between."""
    (folder / "decisions").write_text("not a folder\n")
    done = cli("record", "add", "Use pnpm", "--category", "decisions")
    assert (done.code, "/decisions/use-pnpm--" in done.err) == (6, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_does_not_keep_anybody_from_asking(cli, folder, pnpm):
    """What is stored answers, with a word about the folder; doctor calls it a problem."""
    (folder / "decisions").chmod(0)
    try:
        done = cli.ok("recall", "pnpm")
        told = cli("doctor")
    finally:
        (folder / "decisions").chmod(0o700)
    assert (pnpm["content"] in done.out, "cannot be read: Permission denied" in done.err) == (True, True)
    assert (told.code, "cannot be read: Permission denied" in told.out) == (1, True)

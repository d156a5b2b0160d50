"""Watching over the store: status, doctor, backup, restore."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import apsw
import pytest


@pytest.mark.usefixtures("pnpm")
def test_status_says_what_is_stored_where(cli):
    """A row for each scope, kind and state, with count and size, by the names that people use."""
    cli.add("Deploy with make ship", "procedures")
    cli.add("Prefer short answers", "preferences", "--scope", "assistant")
    cli.ok("record", "archive", cli.add("Old news", "incidents")["id"])
    rows = [line.split()[:4] for line in cli.ok("status").lines]
    for row in (
        ["project", "semantic", "live", "1"],
        ["project", "procedural", "live", "1"],
        ["project", "episodic", "archived", "1"],
        ["assistant", "semantic", "live", "1"],
    ):
        assert row in rows


def test_status_for_programs(cli, pnpm):
    """The same as JSON: database, scopes with their files, what is stored, problems."""
    data = cli.ok("status", "--json").json
    assert data["database"]["bytes"] > 0
    assert [scope["name"] for scope in data["scopes"]] == ["project", "assistant"]
    project = data["scopes"][0]
    assert (project["files"], project["in_sync"], project["enabled"]) == (1, True, True)
    assert data["stored"] == [
        {"scope": "project", "kind": "semantic", "state": "live", "count": 1, "bytes": len(pnpm["content"])}
    ]
    assert data["problems"] == []


def test_status_sees_files_that_were_edited(cli, pnpm):
    """It says truthfully whether files and records are in step right now, and changes neither."""
    cli.ok("sync")
    assert "in sync; last sync 20" in cli.ok("status").out
    with open(pnpm["path"], "a") as file:
        file.write("And yarn.\n")
    out = cli.ok("status").out
    assert "not in sync" in out
    assert "problem: a file and its record are not in sync" in out
    assert "not in sync" in cli.ok("status").out


@pytest.mark.usefixtures("pnpm")
def test_status_shows_other_projects_when_asked(cli):
    """--all counts what other projects of this store hold, by their names."""
    cli.at(cli.folder / "other")
    cli.ok("init")
    assert cli.ok("status", "--json").json["stored"] == []
    assert cli.ok("status", "--all", "--json").json["stored"][0]["scope"].startswith("project:local")


def test_status_of_an_empty_store(cli):
    """Nothing stored is said as such."""
    assert "Nothing is stored yet." in cli.ok("status").out


@pytest.mark.usefixtures("pnpm")
def test_a_healthy_store_passes(cli):
    """Every check says ok, and the exit code is 0."""
    done = cli.ok("doctor")
    assert len(done.lines) == 5
    assert all(line.endswith(": ok") for line in done.lines)
    assert cli.ok("doctor", "--json").json["healthy"] is True


def test_doctor_finds_and_mends_files_out_of_step(cli, pnpm):
    """Files against rows: an edited file is a problem until --fix has read it."""
    with open(pnpm["path"], "a") as file:
        file.write("And yarn.\n")
    done = cli("doctor")
    assert (done.code, "(--fix repairs it)" in done.out) == (1, True)
    assert "fixed: " in cli.ok("doctor", "--fix").out
    assert cli.recall("yarn")


@pytest.mark.usefixtures("pnpm")
def test_doctor_names_what_it_cannot_mend(cli):
    """A file that only a person can put right stays a problem, with its path and line."""
    (cli.folder / "work/.commonplace/decisions/bad.md").write_text("---\nid: [\n---\n\nx\n")
    done = cli("doctor", "--fix")
    assert done.code == 1
    assert "problem: .commonplace/decisions/bad.md:" in done.out
    [problem] = cli("doctor", "--json").json["checks"]["files of the project memory"]
    assert problem["fixable"] is False


def test_doctor_says_what_a_sync_would_refuse(cli):
    """A file that the gate does not let in is a problem that --fix does not claim to mend."""
    folder = cli.folder / "work/.commonplace/decisions"
    folder.mkdir()
    (folder / "lapsing.md").write_text("---\nexpires: 2030-01-01\n---\n\nUse pnpm\n")
    done = cli("doctor", "--fix")
    assert done.code == 1
    assert "lapsing.md:1: decisions are permanent; only incidents can expire" in done.out
    assert not any(word in done.out for word in ("synced", "--fix repairs", "not in sync"))


def test_doctor_sees_files_that_are_gone_at_once(cli):
    """Records whose files were lost together are kept; that they have none is a problem all the same."""
    for number in range(5):
        cli.add(f"Lesson {number}", "principles")
    shutil.rmtree(cli.folder / "work/.commonplace/principles")
    done = cli("doctor")
    assert (done.code, "5 files of the project memory are missing at once" in done.out) == (1, True)
    assert cli.ok("status", "--json").json["problems"]


def test_doctor_sees_a_record_whose_file_was_never_written(cli):
    """The files alone look as they did; only compared with the records they are not in step."""
    folder = cli.folder / "work/.commonplace/decisions"
    folder.symlink_to(cli.folder)
    assert cli("record", "add", "Use pnpm", "--category", "decisions").code == 6
    folder.unlink()
    assert "a file and its record are not in sync" in cli("doctor").out
    assert cli.ok("status", "--json").json["scopes"][0]["in_sync"] is False
    assert "were synced" in cli.ok("doctor", "--fix").out


@pytest.mark.usefixtures("pnpm")
def test_doctor_finds_and_mends_open_files(cli):
    """A database that others may read is a problem that can be mended."""
    os.chmod(cli.home / "commonplace.db", 0o644)
    assert "others may read" in cli("doctor").out
    assert "others may read" in cli.ok("status").out
    cli.ok("doctor", "--fix")
    assert (cli.home / "commonplace.db").stat().st_mode & 0o777 == 0o600


def test_doctor_mends_a_full_text_index(cli, pnpm):
    """An index that lost its entries is found and built anew."""
    with apsw.Connection(str(cli.home / "commonplace.db")) as db:
        db.execute("insert into entry_fts (entry_fts) values ('delete-all')")
    db.close()
    assert cli("doctor").code == 1
    cli.ok("doctor", "--fix")
    assert cli.recall("pnpm") == [pnpm["content"]]


def test_a_database_whose_beginning_is_garbage_is_told_and_mended(cli, pnpm):
    """Its list of tables is that of every store, so all rows behind it are read; the damaged file is kept."""
    for side in ("", "-wal", "-shm"):
        if os.path.exists(path := f"{cli.home}/commonplace.db{side}"):
            with open(path, "r+b") as file:
                file.write(b"\x00garbage" * 512)
    done = cli("recall", "pnpm")
    assert (done.code, "commonplace doctor" in done.err) == (6, True)
    assert (cli("doctor").code, "(--fix repairs it)" in cli("doctor").out) == (1, True)
    fixed = cli.ok("doctor", "--fix")
    assert (".damaged" in fixed.out, "records: 1 carried over" in fixed.out) == (True, True)
    assert cli.ok("doctor").code == 0
    assert cli.recall("pnpm") == [pnpm["content"]]


def test_doctor_counts_what_it_could_not_read(cli, pnpm):
    """What is lost is told by table, with exit code 1 once; then all is well, and the damaged file is kept."""
    cli.add("Use ruff", "decisions")
    path = Path(cli.home) / "commonplace.db"
    with closing(apsw.Connection(str(path))) as db:
        db.pragma("wal_checkpoint(truncate)")
        [(root,)] = db.execute("select rootpage from sqlite_schema where name = 'audit'")
    data = bytearray(path.read_bytes())
    data[(root - 1) * 8192 : root * 8192] = b"x" * 8192
    path.write_bytes(data)
    done = cli("doctor", "--fix")
    assert done.code == 1
    assert "fixed: records: 2 carried over" in done.lines
    assert [line for line in done.lines if line.startswith("lost: entries of the audit log")]
    assert bytes(data) == (Path(cli.home) / "commonplace.db.damaged").read_bytes()
    assert cli.ok("doctor").code == 0
    assert cli.recall("pnpm") == [pnpm["content"]]


def test_a_backup_is_restored_with_its_files(cli, pnpm):
    """What was there at the backup is there again, in rows and in files, and what came later is gone.

    What was erased since stays erased: a backup does not bring it back.
    """
    gone = cli.add("To be deleted", "incidents")
    cli.ok("backup", cli.folder / "copy.db")
    cli.ok("record", "update", pnpm["id"], "Use yarn")
    cli.ok("record", "delete", gone["id"], "--yes")
    later = cli.add("Came later", "incidents")
    done = cli.ok("restore", cli.folder / "copy.db", "--yes", "--json")
    assert done.json["records"] == 1
    assert "1 record of the backup not revived" in done.err
    assert cli.get(pnpm["id"])["content"] == pnpm["content"]
    assert cli.recall("deleted") == []
    assert not os.path.exists(gone["path"])
    assert cli("record", "get", later["id"]).code == 1
    assert not os.path.exists(later["path"])
    assert cli.ok("sync").lines == ["project: in sync", "assistant: in sync"]


@pytest.mark.usefixtures("pnpm")
def test_a_restore_can_be_undone(cli):
    """What a restore replaced is in a backup of its own."""
    cli.ok("backup", cli.folder / "copy.db")
    later = cli.add("Came later", "incidents")
    before = cli.ok("restore", cli.folder / "copy.db", "--yes", "--json").json["before"]
    cli.ok("restore", before, "--yes")
    assert cli.get(later["id"])["content"] == "Came later"
    assert os.path.exists(later["path"])


@pytest.mark.usefixtures("pnpm")
def test_a_backup_overwrites_nothing(cli):
    """A file that is there stays as it is."""
    (cli.folder / "copy.db").write_text("precious")
    assert cli("backup", cli.folder / "copy.db").code == 2
    assert (cli.folder / "copy.db").read_text() == "precious"
    assert cli("backup", cli.folder / "no/such/folder/copy.db").code == 6


@pytest.mark.usefixtures("pnpm")
def test_a_backup_without_a_name_goes_to_the_data_folder(cli):
    """Each one gets a name of its own."""
    paths = {cli.ok("backup", "--json").json["path"] for _ in range(2)}
    assert len(paths) == 2
    assert all(path.startswith(str(cli.home / "backups")) for path in paths)


@pytest.mark.parametrize("file", ["missing.db", "not-one.db"])
def test_only_a_backup_is_restored(cli, pnpm, file):
    """A file that is not there, or is something else, changes nothing."""
    (cli.folder / "work/not-one.db").write_text("hello")
    assert cli("restore", file, "--yes").code in {2, 6}
    assert cli.get(pnpm["id"])


def test_a_restore_that_is_refused_leaves_no_copy(cli):
    """Nothing took the place of what is there, so there is nothing to undo."""
    assert cli("restore", "missing.db", "--yes").code == 2
    assert list((cli.home / "backups").iterdir()) == []


@pytest.mark.usefixtures("pnpm")
def test_a_restore_asks(cli):
    """Where nobody can be asked, nothing is replaced without --yes."""
    cli.ok("backup", cli.folder / "copy.db")
    assert cli("restore", cli.folder / "copy.db").code == 2


WRITER = """
import sys
from contextlib import closing
from pathlib import Path
from commonplace.app import open_app
with open_app() as place:
    for number in range(10_000):
        place.memory.remember(f"Lesson {number} of writer", category="principles")
        print(number, flush=True)
"""


@pytest.mark.usefixtures("pnpm")
def test_a_backup_is_whole_while_another_process_writes(cli):
    """A copy made in the midst of writing opens, passes every check and holds what was written before it."""
    with subprocess.Popen([sys.executable, "-c", WRITER], stdout=subprocess.PIPE, text=True) as writer:
        try:
            for _ in range(20):
                writer.stdout.readline()
            counts = [cli.ok("backup", cli.folder / f"copy{n}.db", "--json").json["records"] for n in range(3)]
        finally:
            writer.kill()
    assert 20 <= counts[0] <= counts[1] <= counts[2]
    cli.moves_to(cli.folder / "fresh")
    cli.at(cli.folder / "elsewhere")
    assert cli.ok("restore", cli.folder / "copy2.db", "--yes", "--json").json["records"] == counts[2]
    assert cli.ok("doctor").code == 0


def opened(path, mode):
    """Give others rights on a file or folder, which is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text("x", encoding="utf-8")
    path.chmod(mode)
    return path


EXPOSED = [
    ("redaction.key", 0o640, "read"), ("redaction.key", 0o604, "read"), ("backups/old.db", 0o644, "read"),
    ("hook.log", 0o666, "write to"), ("taken-down/one.jsonl", 0o644, "read"), ("shown/one.jsonl", 0o604, "read"),
    (".", 0o777, "write to"), (".", 0o770, "write to"), ("backups", 0o777, "write to"),
    ("config.yaml", 0o666, "write to"), ("assistant/decisions/x.md", 0o662, "write to"),
]  # fmt: skip


@pytest.mark.usefixtures("pnpm")
@pytest.mark.parametrize(("name", "mode", "what"), EXPOSED)
def test_doctor_closes_the_data_folder_to_others(cli, name, mode, what):
    """Keys, backups and files of hooks may not be read by others, and nothing may be written by them."""
    if name.endswith(".md"):
        cli.add("Prefer short answers", "preferences", "--scope", "assistant")
        path = next((cli.home / "assistant").rglob("*.md"))
        path.chmod(mode)
    elif name == "backups":
        (cli.home / name).mkdir(exist_ok=True)
        path = opened(cli.home / name, mode)
    else:
        path = opened(cli.home / name, mode)
    if name == "config.yaml":
        path.write_text("", encoding="utf-8")
    found = cli("doctor")

    assert found.code == 1
    assert f"others may {what} '" in found.out
    assert f"{path.name}' (mode {mode:o}) (--fix repairs it)" in found.out
    fixed = cli.ok("doctor", "--fix")
    assert "fixed: 1 path of the data folder closed to others" in fixed.out
    assert path.stat().st_mode & 0o022 == 0
    assert cli.ok("doctor").code == 0


@pytest.mark.usefixtures("pnpm")
def test_what_people_edit_by_hand_may_have_the_rights_that_editors_give(cli):
    """The data folder keeps others away from it; a link is not followed out of it."""
    cli.add("Prefer short answers", "preferences", "--scope", "assistant")
    next((cli.home / "assistant").rglob("*.md")).chmod(0o644)
    opened(cli.home / "config.yaml", 0o644).write_text("", encoding="utf-8")
    outside = opened(cli.folder / "outside", 0o666)
    (cli.home / "link").symlink_to(outside)
    cli.ok("doctor")
    cli.ok("doctor", "--fix")
    assert outside.stat().st_mode & 0o777 == 0o666


@pytest.mark.usefixtures("pnpm")
def test_doctor_names_a_few_of_many_paths(cli):
    """And counts the rest."""
    for number in range(30):
        opened(cli.home / "shown" / f"{number}.jsonl", 0o644)
    assert "and 20 other paths likewise" in cli("doctor").out
    assert "30 paths of the data folder closed to others" in cli.ok("doctor", "--fix").out

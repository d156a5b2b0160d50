"""Export and import: records with their past, as JSON Lines."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stands import agree, rows

COMMAND = str(Path(sys.executable).with_name("commonplace"))


@pytest.fixture
def rich(cli, pnpm):
    """Records with versions, use, dates, an archived one, and one of the user's own."""
    cli.ok("record", "update", pnpm["id"], "Use yarn", "--alias", "package manager")
    cli.ok("recall", "yarn")
    cli.add("The proxy is down", "incidents", "--expires", "2030-01-01", "--occurred", "2026-01-02", "--source", "T-1")
    cli.ok("record", "archive", cli.add("Old news", "incidents")["id"])
    cli.add("Prefer short answers", "preferences", "--scope", "assistant", "--pin")
    return cli


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_an_export_is_lossless(rich):
    """Versions, dates, sources and use: imported into an empty store and exported again it is the same text."""
    exported = rich.ok("export").out
    shutil.copy(rich.home / "redaction.key", rich.moves_to(rich.folder / "fresh"))
    agree(Path.cwd())
    for path in (rich.folder / "work/.commonplace").glob("*/*.md"):
        path.unlink()
    agree(rich.folder / "work")
    assert (
        rich.ok(
            "import",
            "-",
            stdin=exported.encode(),
        ).out
        == "Imported 4 records (0 duplicates).\n"
    )
    assert rich.ok("export").out == exported
    assert rich.recall("package manager") == ["Use yarn"]


def test_importing_twice_changes_nothing(rich):
    """What is there already stays as it is, byte for byte."""
    rich.ok("export", "memory.jsonl")
    before = rich.ok("export").out
    for _ in range(2):
        done = rich.ok("import", "memory.jsonl", "--json").json
        assert (done["added"], done["duplicates"]) == (0, 4)
    assert rich.ok("export").out == before


def test_an_import_writes_files(rich):
    """Imported records have their Markdown like all others."""
    exported = rich.ok("export").out
    rich.ok("clear", "--scope", "project", "--force")
    rich.ok("import", "-", stdin=exported.encode())
    assert len(list((rich.folder / "work/.commonplace").glob("*/*.md"))) == 3
    assert rich.ok("sync").lines[0] == "project: in sync"


def test_an_export_may_be_of_one_scope(rich):
    """--scope exports one memory alone."""
    records = lines(rich.ok("export", "--scope", "assistant").out)[1:-1]
    assert [record["content"] for record in records] == ["Prefer short answers"]


def test_an_export_to_a_file_is_private_and_whole(rich):
    """The file is 0600, replaced at once, and nothing is left beside it."""
    done = rich.ok("export", "memory.jsonl")
    assert (done.out, "Exported 4 records to memory.jsonl." in done.err) == ("", True)
    path = rich.folder / "work/memory.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lines(path.read_text())[0]["format"] == "commonplace-records"
    rich.ok("export", "memory.jsonl")
    assert [item.name for item in path.parent.iterdir() if item.name.startswith("memory")] == ["memory.jsonl"]
    assert rich("export", "no/such/folder/x.jsonl").code == 6


def test_an_import_goes_where_it_is_told(rich):
    """--scope takes the records of another project into this one."""
    exported = rich.ok("export", "--scope", "project").out
    rich.moves_to(rich.folder / "fresh")
    rich.at(rich.folder / "other")
    rich.ok("init")
    done = rich("import", "-", stdin=exported.encode())
    assert (done.code, "--scope" in done.err) == (4, True)
    rich.ok("import", "-", "--scope", "project", stdin=exported.encode())
    assert rich.recall("package manager") == ["Use yarn"]


@rows(
    "text, message",
    [
        ("", "is not an export of Commonplace"),
        ("hello\n", ":1: not JSON"),
        ('{"format": "other"}\n', "is not an export of Commonplace"),
        ('{"format": "commonplace-records", "version": 99}\n', "version 99"),
        ('{"format": "commonplace-records", "version": 1}\n{"id": "x"}\n', ":2: not a record"),
        ('{"format": "commonplace-records", "version": 1}\n[]\n', ":2: not a record: it must be an object, not []"),
        ('{"format": "commonplace-records", "version": 1}\nnull\n', ":2: not a record"),
        ("\xff\xfe", "not UTF-8"),
    ],
)
def test_a_file_that_is_no_export_is_refused(cli, text, message):
    """The line is named, and nothing is kept."""
    done = cli("import", "-", stdin=text.encode("latin-1"))
    assert (done.code, message in done.err) == (2, True)
    assert cli.ok("record", "list").out == ""


def test_one_bad_line_keeps_nothing(rich):
    """An import is whole or not at all."""
    exported = rich.ok("export").out
    rich.ok("clear", "--scope", "project", "--force")
    bad = exported.replace('"kind": "episodic"', '"kind": "nonsense"', 1)
    assert rich("import", "-", stdin=bad.encode()).code == 2
    assert rich.ok("record", "list", "--scope", "project", "--state", "all").out == ""


def test_a_file_that_is_not_there_is_told(cli):
    """A missing file is one sentence."""
    done = cli("import", "missing.jsonl")
    assert (done.code, done.err) == (2, "commonplace: 'missing.jsonl' cannot be read: No such file or directory\n")


def test_a_secret_in_an_import_is_taken_out(rich):
    """Imported records pass the same gate as all others."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    exported = rich.ok("export").out
    rich.ok("clear", "--scope", "assistant", "--force")
    done = rich.ok("import", "-", stdin=exported.replace("Prefer short answers", f"Prefer {secret}").encode())
    assert "github-pat" in done.err
    assert secret not in rich.ok("export").out


def test_an_export_is_utf_8_whatever_the_terminal_speaks(rich, monkeypatch):
    """What goes through a pipe can be imported again."""
    kept = rich.add("Le café ferme à minuit", "incidents")
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    done = subprocess.run([COMMAND, "export"], capture_output=True, check=True)
    assert kept["content"] in done.stdout.decode()


def test_an_export_may_go_to_a_pipe(rich):
    """A named pipe is written to, not replaced by a file."""
    pipe = rich.folder / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        rich.ok("export", pipe)
        out, _ = reader.communicate(timeout=60)
    assert len(lines(out.decode())) == 1 + 4 + 1
    assert pipe.is_fifo()


def test_an_export_through_a_link_leaves_the_link(rich):
    """The file that a link leads to is replaced, whole."""
    (rich.folder / "link").symlink_to("real.jsonl")
    rich.ok("export", rich.folder / "link")
    assert (rich.folder / "link").is_symlink()
    assert len(lines((rich.folder / "real.jsonl").read_text())) == 1 + 4 + 1


@pytest.mark.parametrize("file", ["no/such/folder", "."])
def test_an_export_that_cannot_be_written_names_its_file(rich, file):
    """The message names what was typed, and nothing half written stays behind."""
    done = rich("export", file)
    assert (done.code, f"'{file}' cannot be written" in done.err) == (6, True)
    assert list(rich.folder.rglob("*.part")) == []


def test_an_import_takes_a_mark_of_byte_order(rich):
    """What an editor or a shell of Windows puts before the first line is no part of it."""
    exported = rich.ok("export").out
    assert (
        rich.ok("import", "-", stdin=b"\xef\xbb\xbf" + exported.encode()).out == "Imported 0 records (4 duplicates).\n"
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("trust", "god", "trust must be one of external, agent, user, not 'god'"),
        ("tags", ["", 5], "each of tags must be a string, not 5"),
    ],
)
def test_what_is_wrong_with_a_record_is_said_of_what_was_written(rich, field, value, message):
    """The sentence names the value in the file, in the words of the file."""
    header, first, *_ = lines(rich.ok("export").out)
    done = rich("import", "-", stdin="\n".join(map(json.dumps, (header, first | {field: value}))).encode())
    assert (done.code, message in done.err) == (2, True)


def test_a_blank_tag_is_not_imported(rich):
    """As with every other write, a tag without a letter is none."""
    header, first, *_ = lines(rich.ok("export").out)
    other = first | {"id": first["id"][:-1] + ("0" if first["id"][-1] != "0" else "1"), "tags": ["", "kept"]}
    other.pop("versions", None)
    rich.ok("import", "-", stdin="\n".join(map(json.dumps, (header, other))).encode())
    assert rich.get(other["id"])["tags"] == ["kept"]

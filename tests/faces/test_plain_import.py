"""``commonplace import`` of plain data: rows and notes become records, bad rows are named, twice is once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commonplace.engine.writer import Writer
from stands import rows

LINES = """\
{"text": "Tea is at four", "mood": "calm", "tags": ["x"]}
{"text": ""}
not json
{"content": "Port 8080 is the API", "category": "stack decision", "created_at": "2026-01-02"}
{"text": "Mia is nine", "key": "mia"}
{"text": "Mia is ten", "key": "mia"}
["no object"]
"""
FILES = {
    "rows.jsonl": (LINES, 3, ["rows.jsonl:2", "rows.jsonl:3", "rows.jsonl:6", "rows.jsonl:7"]),
    "rows.csv": (
        'text,category,tags,owner\n"Use pnpm",decisions,"js,build",mia\nNo,x,y,z,too many\n\n"two\nlines",facts,,\n',
        2, ["rows.csv:3"],
    ),
    "rows.tsv": ("note\tteam\nThe office is in Rome\tops\n", 1, []),
    "semicolons.csv": ("text;n\nThe garden is in Bari;3\n", 1, []),
    "rows.json": ('[{"text": "one"},\n {"text": "two", "n": 3},\n "three",\n {"nope": 1}]', 3, ["rows.json:4"]),
    "broken.json": ('[{"text": "first"},\n {"text": "second"', 1, ["broken.json:2"]),
}  # fmt: skip


def imported(cli, *arguments):
    """What an import says to programs."""
    return json.loads(cli.ok("import", *arguments, "--json").out)


@rows("name", FILES)
def test_plain_rows_become_records_and_bad_ones_are_named_by_line(outside, name):
    """Each good row is a record; each bad one is reported with its line and costs nothing but itself."""
    text, added, bad = FILES[name]
    (Path() / name).write_text(text, encoding="utf-8")
    done = imported(outside, name, "--scope", "assistant")
    assert (done["added"], [":".join(one.split(":")[:2]) for one in done["left_out"]]) == (added, bad)
    again = imported(outside, name, "--scope", "assistant")
    assert (again["added"], again["duplicates"]) == (0, added)
    for one in json.loads(outside.ok("list", "--json").out)["records"]:
        outside.ok("record", "delete", one["id"], "--yes")


def listed(cli):
    """The records, by their words."""
    return {one["content"]: one for one in json.loads(cli.ok("list", "--json").out)["records"]}


def test_columns_say_what_they_are_and_unknown_ones_become_metadata(outside):
    """Category, tags, key and dates are understood; the rest is kept with the record."""
    (Path() / "rows.jsonl").write_text(LINES)
    outside.ok("import", "rows.jsonl")
    found = listed(outside)
    assert (found["Tea is at four"]["tags"], found["Tea is at four"]["metadata"]) == (["x"], {"mood": "calm"})
    port = found["Port 8080 is the API"]
    assert (port["category"], port["metadata"], port["created_at"][:10]) == (
        "decisions", {"category": "stack decision"}, "2026-01-02",
    )  # fmt: skip
    assert (found["Mia is nine"]["key"], found["Mia is nine"]["trust"]) == ("mia", "external")


def test_a_folder_of_notes_is_imported(outside):
    """One record a note, with the tags and titles of its frontmatter; a long one is cut at its paragraphs."""
    notes = Path() / "notes"
    (notes / "sub").mkdir(parents=True)
    (notes / "ship.md").write_text("---\ntitle: Deploying\ntags: [ops]\nauthor: ada\n---\n\nRun `make ship`.\n")
    (notes / "sub/office.md").write_text("# Office\n\nThe office is in Rome.\n")
    (notes / "empty.md").write_text("")
    (notes / "broken.md").write_text("---\ntags: [a\n---\n\nx\n")
    (notes / "long.md").write_text(
        "".join(f"Machine {n} of the hall stands in row {n} by the door.\n\n" for n in range(500))
    )
    done = imported(outside, "notes")
    assert done["added"] == 502
    assert sorted(one.split(":")[0] for one in done["left_out"]) == ["broken.md", "empty.md"]
    found = {one["content"]: one for one in json.loads(outside.ok("list", "--json", "--limit", "600").out)["records"]}
    ship = found["Run `make ship`."]
    assert (ship["tags"], ship["metadata"]["aliases"], ship["metadata"]["author"]) == (["ops"], ["Deploying"], "ada")
    assert "# Office\n\nThe office is in Rome." in found
    assert imported(outside, "notes")["added"] == 0


def test_strict_imports_nothing_if_a_row_is_bad(outside):
    """All reasons are given at once."""
    (Path() / "rows.jsonl").write_text(LINES)
    done = outside("import", "rows.jsonl", "--strict")
    assert (done.code, outside.ok("list").out) == (2, "")
    assert all(f"rows.jsonl:{line}" in done.err for line in (2, 3, 6, 7))


def test_a_dry_run_shows_and_writes_nothing(outside):
    """What would come in, and which rows would not."""
    (Path() / "rows.jsonl").write_text(LINES)
    done = outside.ok("import", "rows.jsonl", "--dry-run")
    assert "decisions: Port 8080 is the API" in done.out
    assert "would leave out: rows.jsonl:3" in done.err
    assert outside.ok("list").out == ""


def test_standard_input_is_read(outside):
    """A pipe is a file without a name."""
    done = outside("import", "-", stdin=b'{"text": "one"}\n{"text": "two"}\n')
    assert (done.code, done.out) == (0, "Imported 2 records (0 duplicates).\n")


def test_an_interrupted_import_resumes(outside, monkeypatch):
    """What was written stays; the second run adds the rest."""
    (Path() / "rows.jsonl").write_text("".join(f'{{"text": "row {n}"}}\n' for n in range(1200)))
    interrupted = Interrupted()
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "apply", interrupted)
        assert outside("import", "rows.jsonl").code == 130
    assert interrupted.calls == 2
    done = imported(outside, "rows.jsonl")
    assert (done["added"], done["duplicates"]) == (700, 500)


class Interrupted:
    """A write sequence that somebody stops at the second batch."""

    def __init__(self):
        self.calls, self.real = 0, Writer.apply

    def __get__(self, writer, kind):
        def apply(changes):
            self.calls += 1
            if self.calls > 1:
                raise KeyboardInterrupt
            return self.real(writer, changes)

        return apply


@pytest.mark.parametrize("text", ["hello world\n", "a,b\n1,2\n"])
def test_what_nothing_reads_is_refused_with_what_would_be(outside, text):
    """The error lists what can be imported."""
    (Path() / "x.txt").write_text(text)
    done = outside("import", "x.txt")
    assert done.code == 2
    assert "JSON Lines, a JSON array, CSV with a header" in done.err


def test_many_records_get_their_files(outside):
    """Each is where people look for it, and a sync has nothing to do."""
    (Path() / "rows.jsonl").write_text("".join(f'{{"text": "row {n}"}}\n' for n in range(600)))
    outside.ok("import", "rows.jsonl")
    assert len(list((outside.home / "assistant" / "facts").glob("*.md"))) == 600
    assert "added" not in outside.ok("sync").out

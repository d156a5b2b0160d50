"""What people see: results at the width of the terminal, and what programs read from the same commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import commonplace
from commonplace.cli.progress import Progress, describe, duration
from commonplace.cli.screen import Screen, age, columns, wrap
from commonplace.model.queries import Hit
from stands import rows

NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)
SCREENS = Path(__file__).parents[1] / "fixtures" / "screens"
TEXT = (
    "Deploy the billing service with `make ship-397` after the smoke tests pass, and watch the error rate for ten"
    " minutes before you go home"
)


@pytest.fixture
def hits(tmp_path):
    """Hits with what screens have trouble with: long words, wide letters, joined pictures, what moves the cursor."""
    with commonplace.open(tmp_path / "x.db", clock=lambda: NOW - timedelta(hours=2)) as memory:
        texts = [TEXT, "日本語のテキスト" * 6, "👩‍👩‍👧 family", "x" * 130]
        return [
            Hit(score=0.93 - number / 10, record=memory.remember(text, category="procedures", tags=["ops"]).record)
            for number, text in enumerate(texts)
        ]


def drawn(hits, width, *, colored=False):
    """The screen of these hits, without what differs each time."""
    screen = Screen(now=NOW, width=width, colored=colored)
    blocks = [
        screen.result(hit, label="project", query="billing deploys", path="a.md", show_path=False) for hit in hits
    ]
    text = "\n\n".join(blocks)
    for hit in hits:
        text = text.replace(hit.record.brief_id, "short")
    return text


@rows("width", [80, 40])
def test_a_screen_is_as_it_was_agreed(hits, width):
    """The committed screens are what is drawn; COMMONPLACE_WRITE_SCREENS=1 draws them anew."""
    file = SCREENS / f"search-{width}.txt"
    text = drawn(hits, width) + "\n"
    if os.environ.get("COMMONPLACE_WRITE_SCREENS"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text


@rows("width", [20, 33, 40, 80, 120])
def test_no_line_is_wider_than_the_screen(hits, width):
    """Neither words nor the line below them, whatever letters there are."""
    assert all(columns(line) <= width for line in drawn(hits, width).splitlines())


def test_matching_words_stand_out_and_the_rest_stands_back(hits):
    """Bold where a word of the question is, in any form; dim what is about the record; a link to its file."""
    text = drawn(hits[:1], 80, colored=True)
    assert "\x1b[1mDeploy\x1b[0m the \x1b[1mbilling\x1b[0m service" in text
    assert "\x1b[2m  procedures · project · 2 hours ago · #ops · \x1b]8;;file://" in text
    assert text.count("\x1b[1m") == 2


def test_nothing_of_a_record_moves_the_cursor():
    """What acts instead of being read is shown as JSON would write it."""
    screen = Screen(now=NOW, width=80, colored=True)
    assert screen.text("say \x1b[31mred", "") == ["say \\u001b[31mred"]
    [line] = screen.meta(["facts", "#\x1b[2J"], "short", None, "0.5")
    assert "\x1b[2J" not in line


AGES = {"just now": 59, "1 minute ago": 60, "2 hours ago": 7300, "1 day ago": 90_000, "13 days ago": 13 * 86_400,
        "3 weeks ago": 22 * 86_400, "4 months ago": 130 * 86_400, "2 years ago": 800 * 86_400}  # fmt: skip


@rows("said", AGES)
def test_ages_are_said_as_people_say_them(said):
    """Seconds count for nothing, days for a fortnight."""
    assert age(NOW - timedelta(seconds=AGES[said]), NOW) == said


def test_a_moment_to_come_is_a_date():
    """Nothing happened before it happens."""
    assert age(NOW + timedelta(days=2), NOW) == "on 2026-11-21"


def test_words_are_wrapped_whole():
    """A word is cut only if it is wider than the screen."""
    assert list(wrap("one two three", 7)) == ["one two", "three"]
    assert list(wrap("abcdefghij", 4)) == ["abcd", "efgh", "ij"]
    assert list(wrap("日本語", 4)) == ["日本", "語"]


# The command


@pytest.fixture
def kept(cli):
    """Two records to look at."""
    cli.add(TEXT, "procedures", "--tag", "ops")
    cli.add("Use pnpm, not npm", "decisions")
    return cli


def test_programs_get_a_line_per_record_with_tabs(kept):
    """Score, id, category, scope, date, tags, words, file; of a list id, category, scope, date, state, tags ..."""
    [line] = kept.ok("search", "billing").lines
    score, id_, category, scope, date, tags, text, path = line.split("\t")
    assert (category, scope, tags, text) == ("procedures", "project", "ops", TEXT)
    assert re.fullmatch(r"[01]\.\d\d", score)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", date)
    assert (len(id_), Path(path).exists()) == (20, True)
    listed = kept.ok("list").lines
    assert [one.split("\t")[1:3] + one.split("\t")[4:7] for one in listed] == [
        ["decisions", "project", "live", "", "Use pnpm, not npm"], ["procedures", "project", "live", "ops", TEXT],
    ]  # fmt: skip


def test_a_terminal_of_forty_columns_gets_lines_of_forty(kept):
    """COMMONPLACE_FORCE_TTY draws for a terminal where there is none."""
    kept.env(COMMONPLACE_FORCE_TTY="40", NO_COLOR="1")
    for command in (["search", "billing"], ["list"]):
        lines = kept.ok(*command).lines
        assert all(columns(line) <= 40 for line in lines), lines
        assert "procedures · project · just now" in " ".join(lines)
    assert any(".commonplace/procedures/" in line for line in kept.ok("list", "--paths").lines)
    assert "\x1b[1m" in kept.ok("--color", "always", "search", "billing").out


def test_the_short_id_that_is_shown_is_accepted(kept):
    """Five letters name the record, for every command."""
    kept.env(COMMONPLACE_FORCE_TTY="100", NO_COLOR="1")
    short = kept.ok("search", "billing").lines[2].split(" · ")[-1].split()[0]
    assert len(short) == 5
    assert TEXT in kept.ok("show", short).out
    assert kept.ok("record", "pin", short, "--json").json["records"][0]["id"].endswith(short)


def test_a_record_has_one_shape_in_every_answer(kept):
    """What `list` and `show` print of a record is what `search` has under `record`, but for how often it was used."""
    [hit] = kept.ok("search", "billing", "--json").json["hits"]
    listed = next(one for one in kept.ok("list", "--json").json["records"] if one["id"] == hit["id"])
    shown = kept.ok("show", hit["id"], "--json").json
    assert listed.keys() - hit["record"].keys() == {"usage"}
    assert all(shown[name] == value == listed[name] for name, value in hit["record"].items())


ERRORS = {
    "NotFound": (["show", "zzzzz", "--json"], 1), "InvalidInput": (["list", "--category", "x", "--json"], 2),
}  # fmt: skip


@rows("kind", ERRORS)
def test_errors_are_json_where_answers_are(cli, kind):
    """The kind, the sentence and the exit code, beside the sentence for people."""
    arguments, code = ERRORS[kind]
    done = cli(*arguments)
    error = done.json["error"]
    assert (done.code, error["kind"], error["exit"]) == (code, kind, code)
    assert error["message"] in done.err


def test_reading_a_store_that_does_not_exist_creates_nothing(outside, tmp_path):
    """A typo in --store is an error that names it, not an empty memory."""
    missing = tmp_path / "nowhere" / "x.db"
    for command in (["recall", "x"], ["list"], ["show", "x"], ["status"], ["record", "list"], ["export"]):
        done = outside("--store", missing, *command)
        assert done.code == 2, (command, done)
        assert str(missing) in done.err
    assert not missing.parent.exists()
    assert outside("--store", missing, "add", "x", "--category", "facts").code == 0


def test_where_tells_the_places_and_makes_none(outside):
    """The data folder by itself; each place by name; all as JSON."""
    outside.moves_to(outside.folder / "elsewhere")
    assert outside.ok("where").out == f"{outside.folder / 'elsewhere'}\n"
    places = outside.ok("where", "--json").json
    assert (places["store"], places["project"]) == (str(outside.folder / "elsewhere/commonplace.db"), None)
    assert not Path(places["store"]).exists()
    assert outside("where", "project").code == 1


@rows("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_script(outside, shell):
    """The script asks the command for what could come next."""
    assert "_COMMONPLACE_COMPLETE" in outside.ok("completion", shell).out


OFFERS = {
    "commonplace sh": "show", "commonplace add x --category dec": "decisions", "commonplace list --tag o": "ops",
    "commonplace completion ba": "bash",
}  # fmt: skip


def completed(words):
    """What the command offers bash for a line that was begun."""
    env = os.environ | {
        "_COMMONPLACE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1),
    }  # fmt: skip
    command = Path(sys.executable).with_name("commonplace")
    done = subprocess.run([command], env=env, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_commands_categories_tags_and_ids_are_completed(kept):
    """What was begun is offered to its end."""
    for line, offer in OFFERS.items():
        assert offer in completed(line), line
    ids = {one["id"][-5:] for one in kept.ok("list", "--json").json["records"]}
    assert set(completed("commonplace show ")) == ids
    assert completed(f"commonplace show {min(ids)[:3]}") == [min(ids)]


# Long work


def test_progress_says_how_much_how_fast_and_how_long(capsys):
    """A bar on a terminal; elsewhere a line every ten seconds, and none for what is quick."""
    assert describe("Importing", 500, 2000, 5.0, bar=True) == (
        "Importing: 500 of 2,000 █████░░░░░░░░░░░░░░░ (25%), 100 a second, 15 s left"
    )
    assert describe("Reading", 500, 0, 5.0, bar=False) == "Reading: 500, 100 a second"
    assert [duration(one) for one in (9, 75, 3700)] == ["9 s", "1 min 15 s", "1 h 01 min"]
    moments = iter([0.0, 1.0, 9.0, 10.5, 12.0, 21.0])
    progress = Progress("Importing", drawn=False, silent=False, clock=lambda: next(moments))
    for done in (1, 2, 3, 4, 5):
        progress(done, 5)
    assert [line.partition(" (")[0] for line in capsys.readouterr().err.splitlines()] == [
        "commonplace: Importing: 3 of 5", "commonplace: Importing: 5 of 5",
    ]  # fmt: skip

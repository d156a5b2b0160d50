"""``commonplace record``: what can be done to a record by hand."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from stands import rows

CATEGORIES = ["decisions", "procedures", "principles", "incidents", "preferences", "facts"]
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def editor(cli):
    """Let a tiny script be the editor; it is given the file to edit."""

    def editor(script):
        path = cli.folder / "editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        cli.env(EDITOR=path)

    return editor


# Adding


@rows("category", CATEGORIES)
def test_a_record_is_added_in_each_category(cli, category):
    """R32, R19, R22: a new record has an id, a row and a file in the folder of its category."""
    record = cli.add(f"Something about {category}", category)
    path = cli.folder / "work/.commonplace" / category
    assert record["path"] == str(next(path.glob(f"*{record['id'][:10]}.md")))
    assert cli.get(record["id"])["category"] == category
    assert cli.recall(f"something about {category}")[0] == f"Something about {category}"


def test_a_plain_fact_is_no_decision(cli):
    """Who owns what has a category, a folder and its place in the brief of a task that it bears on."""
    fact = cli.add("Grace owns billing", "facts")
    assert (fact["category"], fact["kind"]) == ("facts", "semantic")
    assert "/.commonplace/facts/grace-owns-billing--" in fact["path"]
    assert "Grace owns billing" in cli.ok("brief", "--task", "fix the billing page").out


@pytest.mark.parametrize("category", ["news", "Decisions", "decision", ""])
def test_any_other_category_is_refused_with_the_list(cli, category):
    """R19: exactly these categories; the message names them, and nothing is kept."""
    done = cli("record", "add", "x", "--category", category)
    assert done.code == 2
    assert ", ".join(CATEGORIES) in done.err
    assert cli.ok("record", "list", "--json").json["records"] == []


def test_a_category_has_to_be_given(cli):
    """Every record has exactly one category, and nobody guesses it."""
    done = cli("record", "add", "x")
    assert done.code == 2
    assert ", ".join(CATEGORIES) in done.err


def test_the_file_says_what_the_record_says(cli):
    """R23: aliases and keywords, then the content; category and date are in the path and the id (decision 47)."""
    record = cli.add(
        "Ship on Mondays", "procedures", "--alias", "release day", "--keyword", "calendar", "--source", "T-1"
    )
    with open(record["path"]) as file:
        head, body = file.read().removeprefix("---\n").split("---\n", 1)
    assert f"id: {record['id']}" in head
    for line in ("ref: T-1", "aliases: [release day]", "keywords: [calendar]"):
        assert line in head
    assert head.count("\n") == 4, "nothing that folder, id, database and Git know"
    assert body == "\nShip on Mondays\n"


def test_every_option_of_add_is_kept(cli):
    """Tags, aliases, keywords, dates, pin, key and source are in the record."""
    options = [
        "--tag",
        "a",
        "--tag",
        "b",
        "--alias",
        "x y",
        "--keyword",
        "z",
        "--pin",
        "--key",
        "port",
        "--source",
        "T-1",
    ]
    record = cli.add(
        "The port is 8080", "incidents", *options, "--occurred", "2026-01-02", "--expires", "2026-12-01T09:30Z"
    )
    assert record["tags"] == ["a", "b"]
    assert record["metadata"] == {"aliases": ["x y"], "keywords": ["z"]}
    assert (record["pinned"], record["key"], record["source"]["ref"]) == (True, "port", "T-1")
    assert (record["occurred_at"], record["expires_at"]) == ("2026-01-02T00:00:00Z", "2026-12-01T09:30:00Z")


@pytest.mark.parametrize(("text", "seconds"), [("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)])
def test_an_expiry_may_be_a_duration(cli, text, seconds):
    """R20: a temporary incident says how long it lasts."""
    record = cli.add("The proxy is down", "incidents", "--expires", text)
    lasts = time.mktime(time.strptime(record["expires_at"][:19], "%Y-%m-%dT%H:%M:%S")) - time.mktime(
        time.strptime(record["created_at"][:19], "%Y-%m-%dT%H:%M:%S")
    )
    assert lasts == pytest.approx(seconds, abs=1)


@pytest.mark.parametrize("category", ["decisions", "procedures", "principles", "preferences"])
def test_only_incidents_expire(cli, category):
    """R20: the other four categories are permanent."""
    done = cli("record", "add", "x", "--category", category, "--expires", "7d")
    assert (done.code, "permanent" in done.err) == (2, True)


def test_the_text_may_come_by_pipe(cli):
    """A dash reads standard input, many lines and all."""
    done = cli.ok("record", "add", "-", "--category", "procedures", "--json", stdin="1. build\n2. shíp\n".encode())
    assert done.json["content"] == "1. build\n2. shíp"


def test_without_a_text_the_editor_opens(cli, editor):
    """What is saved above the line is kept; what stands below it is not."""
    editor('printf "Written in an editor\\n\\n# with a heading\\n" | cat - "$1" > "$1.new" && mv "$1.new" "$1"')
    done = cli.ok("record", "add", "--category", "principles", "--json")
    assert done.json["content"] == "Written in an editor\n\n# with a heading"


def test_an_editor_that_saves_nothing_keeps_nothing(cli, editor):
    """Leaving the editor without saving is no record."""
    editor("true")
    done = cli("record", "add", "--category", "principles")
    assert (done.code, "nothing was saved" in done.err) == (2, True)


def test_without_text_and_editor_nothing_waits_forever(cli):
    """Where there is neither a terminal nor an editor, the ways to give a text are told."""
    done = cli("record", "add", "--category", "principles")
    assert (done.code, "EDITOR" in done.err) == (2, True)


def test_an_editor_that_fails_is_told(cli, editor):
    """An editor that cannot be started or dies is one sentence."""
    editor("exit 3")
    done = cli("record", "add", "--category", "principles")
    assert (done.code, done.err.count("\n")) == (2, 1)


def test_the_same_again_is_not_kept_twice(cli, pnpm):
    """A live record that says the same is the answer."""
    again = cli.add(pnpm["content"])
    assert (again["id"], again["deduped"]) == (pnpm["id"], True)
    assert "Exists already" in cli.ok("record", "add", pnpm["content"], "--category", "decisions").out


def test_a_key_that_is_taken_gets_a_new_version(cli):
    """There is one record of a key, and its last value counts."""
    first = cli.add("The port is 8080", "decisions", "--key", "port")
    second = cli.add("The port is 9090", "decisions", "--key", "port")
    assert (second["id"], second["version"]) == (first["id"], 2)


def test_a_secret_is_taken_out_and_told(cli):
    """A secret is in no file and no row; people read of it on standard error, programs in the answer."""
    done = cli.ok("record", "add", f"Log in with {SECRET} please", "--category", "procedures", "--json")
    assert [found["kind"] for found in done.json["redactions"]] == ["github-pat"]
    assert done.json["redactions"][0]["mark"] in done.json["content"]
    assert done.json["redactions"][0]["mark"] in done.err
    assert done.json["notes"]
    assert not holds(cli.folder, SECRET)


def test_control_characters_are_dropped_and_told(cli):
    """What could fool a terminal is not kept."""
    done = cli.ok("record", "add", "red \x1b[31malert\x07", "--category", "incidents", "--json")
    assert done.json["content"] == "red [31malert"
    assert "2 control characters" in done.err


def test_superseding_keeps_the_old_one(cli, pnpm):
    """The old fact is archived and says what replaced it."""
    done = cli.ok("record", "add", "Use bun", "--category", "decisions", "--supersedes", pnpm["id"][:12], "--json").json
    assert done["superseded"] == pnpm["id"]
    old = cli.get(pnpm["id"])
    assert (old["state"], old["superseded_by"]) == ("archived", done["id"])
    assert f"superseded by {done['id']}" in cli.ok("record", "get", pnpm["id"]).out


def test_people_read_where_it_was_kept(cli):
    """The answer names the id, the category, the memory and the file, from where they are."""
    out = cli.ok("record", "add", "Use pnpm", "--category", "decisions").out
    assert out.startswith("Added 1")
    assert "(decisions, project, .commonplace/decisions/use-pnpm--" in out


# Changing


def test_an_update_keeps_what_is_not_named(cli, pnpm):
    """R33: new words, the rest as it was; the old words are not found any more."""
    after = cli.ok("record", "update", pnpm["id"], "Use yarn everywhere", "--json").json
    assert (after["content"], after["tags"], after["category"]) == ("Use yarn everywhere", ["js"], "decisions")
    assert (after["id"], after["version"], after["created_at"]) == (pnpm["id"], 2, pnpm["created_at"])
    assert cli.recall("pnpm") == []
    assert "Use yarn everywhere" in Path(after["path"]).read_text()


@pytest.mark.parametrize(
    ("options", "field", "value"),
    [
        (["--tag", "x", "--tag", "y"], "tags", ["x", "y"]),
        (["--tag", ""], "tags", []),
        (["--add-tag", "x"], "tags", ["js", "x"]),
        (["--add-tag", "x", "--remove-tag", "js"], "tags", ["x"]),
        (["--alias", "package manager"], "metadata", {"aliases": ["package manager"]}),
        (["--keyword", "k", "--alias", "a"], "metadata", {"aliases": ["a"], "keywords": ["k"]}),
        (["--occurred", "2026-01-02"], "occurred_at", "2026-01-02T00:00:00Z"),
    ],
)
def test_metadata_is_updated_alone(cli, pnpm, options, field, value):
    """R33: an option changes its own field, and the words stay."""
    after = cli.ok("record", "update", pnpm["id"], *options, "--json").json
    assert after[field] == value
    assert (after["content"], after["version"]) == (pnpm["content"], 2)


def test_an_expiry_is_set_and_lifted(cli):
    """A temporary incident can become permanent, and the other way round."""
    record = cli.add("The proxy is down", "incidents", "--expires", "7d")
    assert cli.ok("record", "update", record["id"], "--no-expiry", "--json").json["expires_at"] is None
    assert (
        cli.ok("record", "update", record["id"], "--expires", "2030-01-01", "--json")
        .json["expires_at"]
        .startswith("2030")
    )


def test_an_alias_replaces_and_keeps_other_metadata(cli):
    """Naming aliases leaves keywords alone; an empty one leaves none."""
    record = cli.add("The port is 8080", "decisions", "--alias", "a", "--keyword", "k")
    assert cli.ok("record", "update", record["id"], "--alias", "b", "--json").json["metadata"] == {
        "aliases": ["b"],
        "keywords": ["k"],
    }
    assert cli.ok("record", "update", record["id"], "--alias", "", "--json").json["metadata"].get("aliases", []) == []


def test_expect_refuses_another_version(cli, pnpm):
    """--expect makes an update conditional; the conflict says which version is there."""
    assert cli.ok("record", "update", pnpm["id"], "Use yarn", "--expect", "1", "--json").json["version"] == 2
    done = cli("record", "update", pnpm["id"], "Use bun", "--expect", "1")
    assert (done.code, "is at version 2, not 1" in done.err) == (3, True)
    assert cli.get(pnpm["id"])["content"] == "Use yarn"


def test_an_update_may_come_by_pipe_or_editor(cli, pnpm, editor):
    """A dash reads standard input; --edit opens the content in an editor."""
    assert cli.ok("record", "update", pnpm["id"], "-", "--json", stdin=b"Use yarn").json["content"] == "Use yarn"
    editor('sed -i s/yarn/bun/ "$1"')
    assert cli.ok("record", "update", pnpm["id"], "--edit", "--json").json["content"] == "Use bun"


def test_an_update_that_changes_nothing_says_so(cli, pnpm):
    """The same words again make no version; naming nothing at all is a mistake."""
    assert cli.ok("record", "update", pnpm["id"], pnpm["content"], "--json").json["version"] == 1
    assert f"Nothing changed in {pnpm['id']}, which is at version" in (
        cli.ok("record", "update", pnpm["id"], pnpm["content"]).out
    )
    assert cli("record", "update", pnpm["id"]).code == 2


def test_a_hand_edit_is_not_lost_to_an_update(cli, pnpm):
    """A file that was just edited is read before the command writes to it."""
    with open(pnpm["path"], "a") as file:
        file.write("Ask Ada about it.\n")
    after = cli.ok("record", "update", pnpm["id"], "--add-tag", "x", "--json").json
    assert after["content"].endswith("Ask Ada about it.")
    assert after["tags"] == ["js", "x"]


def test_reclassifying_moves_the_file_and_keeps_the_id(cli, pnpm):
    """R34, R21: the record has its new category, its file lies there and nowhere else."""
    after = cli.ok("record", "reclassify", pnpm["id"], "principles", "--json").json
    assert (after["id"], after["category"]) == (pnpm["id"], "principles")
    assert "/principles/" in after["path"]
    assert os.path.exists(after["path"])
    assert not os.path.exists(pnpm["path"])
    assert cli.recall("pnpm", "--category", "principles")
    assert cli("record", "reclassify", pnpm["id"], "news").code == 2


def test_archiving_takes_out_of_recall_and_keeps_the_file(cli, pnpm):
    """R35: not recalled, not listed, but there: its file, its content, its way back."""
    assert "Archived" in cli.ok("record", "archive", pnpm["id"]).out
    assert cli.recall("pnpm") == []
    assert "pnpm" not in cli.ok("record", "list").out
    assert os.path.exists(pnpm["path"])
    assert cli.get(pnpm["id"])["state"] == "archived"
    assert cli.ok("record", "restore", pnpm["id"], "--json").json["records"][0]["state"] == "live"
    assert cli.recall("pnpm") == [pnpm["content"]]


def test_an_earlier_version_comes_back_as_a_new_one(cli, pnpm):
    """Nothing of the history is lost by going back."""
    cli.ok("record", "update", pnpm["id"], "Use yarn")
    [after] = cli.ok("record", "restore", pnpm["id"], "--version", "1", "--json").json["records"]
    assert (after["content"], after["version"]) == (pnpm["content"], 3)
    assert cli("record", "restore", pnpm["id"], "--version", "9").code == 1


@pytest.mark.parametrize(
    ("verb", "back", "field"), [("pin", "unpin", "pinned"), ("hold", "release", "held")], ids=["pin", "hold"]
)
def test_a_record_is_pinned_and_held_and_let_go(cli, pnpm, verb, back, field):
    """Each mark is set and taken off again, and programs see it."""
    assert cli.ok("record", verb, pnpm["id"], "--json").json["records"][0][field] is True
    assert field.removesuffix("d") in cli.ok("record", "get", pnpm["id"]).out
    assert cli.ok("record", back, pnpm["id"], "--json").json["records"][0][field] is False


def test_what_is_held_is_not_recalled(cli, pnpm):
    """A held record waits for a person."""
    cli.ok("record", "hold", pnpm["id"])
    assert cli.recall("pnpm") == []
    assert pnpm["id"][:10] in cli.ok("record", "list", "--state", "held").out
    cli.ok("record", "release", pnpm["id"])
    assert cli.recall("pnpm") == [pnpm["content"]]


@rows("verb", ["archive", "restore", "pin", "unpin", "hold", "release"])
def test_several_ids_are_done_together_or_not_at_all(cli, pnpm, verb):
    """One mistyped id stops all of it before it begins."""
    other = cli.add("Deploy on Mondays", "procedures")
    assert len(cli.ok("record", verb, pnpm["id"], other["id"], "--json").json["records"]) == 2
    versions = [cli.get(record["id"])["version"] for record in (pnpm, other)]
    assert cli("record", verb, pnpm["id"], "zzzz").code == 1
    assert [cli.get(record["id"])["version"] for record in (pnpm, other)] == versions


# Erasing


def test_deleting_leaves_no_byte(cli, pnpm):
    """R36: row, versions, full text and file are gone, and so is every byte of them; the id stays in the audit log."""
    cli.ok("record", "update", pnpm["id"], "Use quokkamanager, not wombatinstaller")
    cli.ok("recall", "quokkamanager")
    assert holds(cli.folder, "quokkamanager")
    assert cli.ok("record", "delete", pnpm["id"], "--yes", "--json").json["erased"] == [pnpm["id"]]
    for words in ("quokkamanager", "wombatinstaller", "pnpm"):
        assert not holds(cli.folder, words), words
    assert [one["verb"] for one in cli.ok("audit", "list", "--record", pnpm["id"], "--json").json["entries"]] == [
        "put", "update", "erase",
    ]  # fmt: skip
    assert cli("record", "get", pnpm["id"]).code == 1


def holds(folder, words):
    """Whether any file below the folder has these bytes."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "redaction.key"]
    return any(words.lower().encode() in path.read_bytes().lower() or words in path.name for path in paths)


def test_deleting_erases_in_our_own_backups(cli, pnpm):
    """A backup that was made before is rewritten without it, and is whole."""
    other = cli.add("Deploy on Mondays", "procedures")
    made = cli.ok("backup", "--json").json["path"]
    assert "Erased in 1 backup" in cli.ok("record", "delete", pnpm["id"], "--yes").lines
    assert not holds(cli.home, "pnpm")
    assert cli.ok("restore", made, "--yes", "--json").json["records"] == 1
    assert cli.get(other["id"])["content"] == "Deploy on Mondays"


def test_deleting_asks_and_does_not_guess(cli, pnpm):
    """Where nobody can be asked, nothing is erased without --yes."""
    done = cli("record", "delete", pnpm["id"])
    assert (done.code, "--yes" in done.err, pnpm["content"] in done.err) == (2, True, True)
    assert cli.get(pnpm["id"])["state"] == "live"


def test_several_are_deleted_or_none(cli, pnpm):
    """Ids are looked up before the first is erased."""
    other = cli.add("Deploy on Mondays", "procedures")
    assert cli("record", "delete", pnpm["id"], "zzzz", "--yes").code == 1
    assert cli.get(pnpm["id"])
    done = cli.ok("record", "delete", pnpm["id"], other["id"], "--yes")
    assert done.lines[:2] == [f"Erased {pnpm['id']}", f"Erased {other['id']}"]
    assert done.lines[2].startswith("Receipt ")


# Reading


def test_a_list_is_newest_first_and_can_be_narrowed(cli, pnpm):
    """R37: all records, or those of a category, a tag, a scope."""
    cli.add("Deploy on Mondays", "procedures")
    cli.add("Prefer short answers", "preferences", "--scope", "assistant")
    listed = [record["content"] for record in cli.ok("record", "list", "--json").json["records"]]
    assert listed == ["Prefer short answers", "Deploy on Mondays", pnpm["content"]]
    for option, value in (("--category", "decisions"), ("--tag", "js")):
        assert [record["id"] for record in cli.ok("record", "list", option, value, "--json").json["records"]] == [
            pnpm["id"]
        ]
    assert len(cli.ok("record", "list", "--scope", "assistant").lines) == 1
    assert cli("record", "list", "--category", "news").code == 2


@pytest.mark.usefixtures("pnpm")
def test_a_list_says_when_there_is_more(cli):
    """--limit cuts, and the cut is told."""
    cli.add("Deploy on Mondays", "procedures")
    done = cli.ok("record", "list", "--limit", "1")
    assert (len(done.lines), "--limit shows more" in done.err) == (1, True)
    assert "more" not in cli.ok("record", "list", "--limit", "2").err


def test_a_list_by_state(cli, pnpm):
    """Every record is in exactly one state, and each state can be listed."""
    ids = {"live": pnpm["id"]}
    ids["archived"] = cli.add("one", "incidents")["id"]
    ids["held"] = cli.add("two", "incidents")["id"]
    ids["expired"] = cli.add("three", "incidents", "--expires", "2020-01-01")["id"]
    cli.ok("record", "archive", ids["archived"])
    cli.ok("record", "hold", ids["held"])
    for state, meant in ids.items():
        assert [record["id"] for record in cli.ok("record", "list", "--state", state, "--json").json["records"]] == [
            meant
        ]
        assert f"\t{state}\t" in cli.ok("record", "list", "--state", state).out
    assert len(cli.ok("record", "list", "--state", "all").lines) == 4


def test_a_list_of_nothing_is_no_error(cli):
    """An empty list is told on standard error."""
    done = cli.ok("record", "list")
    assert (done.out, "No records." in done.err) == ("", True)


def test_get_shows_everything(cli, pnpm):
    """R38: the full content, its source, its versions, its use and its file."""
    cli.ok("record", "update", pnpm["id"], "Use yarn\n\nbecause of workspaces")
    cli.ok("recall", "yarn")
    out = cli.ok("record", "get", pnpm["id"]).out
    assert out.endswith("\n\nUse yarn\n\nbecause of workspaces\n")
    for fact in (
        pnpm["id"],
        "decisions (semantic)",
        "user; trust user",
        "2 (2",
        "; 1 (2",
        "recalled once",
        ".commonplace/d",
    ):
        assert fact in out


def test_get_for_programs_has_the_versions(cli, pnpm):
    """The answer holds the record, its state, its path and every version."""
    cli.ok("record", "update", pnpm["id"], "Use yarn")
    record = cli.get(pnpm["id"])
    assert [version["content"] for version in record["versions"]] == ["Use yarn", pnpm["content"]]
    assert (record["state"], record["path"], record["usage"]["recalls"]) == ("live", pnpm["path"], 0)


def test_history_shows_every_version(cli, pnpm):
    """Newest first, with date, category and source."""
    cli.ok("record", "update", pnpm["id"], "Use yarn")
    out = cli.ok("record", "history", pnpm["id"]).out
    assert out.index("version 2") < out.index("Use yarn") < out.index("version 1") < out.index("Use pnpm")
    assert [version["version"] for version in cli.ok("record", "history", pnpm["id"], "--json").json["versions"]] == [
        2,
        1,
    ]


@rows("verb", ["get", "history", "archive", "restore", "pin", "unpin", "hold", "release", "delete"])
def test_an_unknown_id_is_a_clear_error(cli, verb):
    """R38: there is no such record, said in one sentence."""
    done = cli("record", verb, "0123456789", *(["--yes"] if verb == "delete" else []))
    assert done == (1, "", "commonplace: there is no record '0123456789'\n")


def test_an_id_may_be_shortened(cli, pnpm):
    """Any beginning that no other record shares means the record; one that others share is refused with them."""
    assert cli.get(pnpm["id"][:1])["id"] == pnpm["id"]
    other = cli.add("Deploy on Mondays", "procedures")
    assert cli.get(other["id"][:10])["id"] == other["id"]
    done = cli("record", "get", pnpm["id"][:1])
    assert done.code == 2
    assert pnpm["id"] in done.err
    assert other["id"] in done.err


def test_a_scope_narrows_where_an_id_is_looked_for(cli, pnpm):
    """A record of the project does not exist in the assistant's memory."""
    assert cli.ok("record", "get", pnpm["id"], "--scope", "project", "--json").json["id"] == pnpm["id"]
    for verb in ("get", "archive", "history"):
        assert cli("record", verb, pnpm["id"], "--scope", "assistant").code == 1


@pytest.mark.usefixtures("pnpm")
def test_files_are_private(cli):
    """Folders are 0700 and files 0600, whatever the umask."""
    before = os.umask(0o022)
    try:
        cli.add("Prefer short answers", "preferences", "--scope", "assistant")
        cli.ok("backup")
    finally:
        os.umask(before)
    for path in [*cli.home.rglob("*"), *(cli.folder / "work/.commonplace").rglob("*"), cli.home]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "command", ["record add - --category decisions", "recall -", "clear --scope project", "import -"]
)
def test_closed_standard_input_is_empty_standard_input(cli, command):
    """A process that was started without one gets a sentence, or an answer, and no traceback."""
    done = cli.start(*command.split(), preexec_fn=lambda: os.close(0))
    assert done.code in (0, 2)
    assert "Traceback" not in done.err


def test_a_list_has_one_line_for_each_record(cli):
    """Whatever a tag holds."""
    cli.add("Use pnpm", "decisions", "--tag", "two\nlines")
    assert len(cli.ok("record", "list").lines) == 1


@pytest.mark.parametrize(
    "options", [["new words", "--edit"], ["--expires", "3d", "--no-expiry"], ["--expires", ""], ["--occurred", ""]]
)
def test_an_update_that_contradicts_itself_changes_nothing(cli, editor, options):
    """Neither half is followed; a date that an empty variable left blank is none."""
    editor("echo other > $1")
    kept = cli.add("The proxy is down", "incidents")
    assert cli("record", "update", kept["id"], *options).code == 2
    assert cli.get(kept["id"])["version"] == 1


@pytest.mark.parametrize("option", ["--expires", "--occurred"])
def test_a_blank_date_is_no_date(cli, option):
    """An incident that was to lapse is not kept for ever instead."""
    done = cli("record", "add", "The proxy is down", "--category", "incidents", option, "")
    assert (done.code, "'' is not a date" in done.err) == (2, True)
    assert cli("recall", "proxy", "--as-of", "").code == 2

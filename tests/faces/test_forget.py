"""``forget`` and ``session``: erased by session, source, subject or question, everywhere on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from commonplace.hosts.hook_files import log_trouble, note_shown, write_message
from stands import agree

COMMAND = str(Path(sys.executable).with_name("commonplace"))
TALK = [
    ("user", "We decided to use the zebrafish database for project falcon."),
    ("assistant", "Noted: the zebrafish database it is, for project falcon."),
    ("user", "Always run make check before you push."),
]


@pytest.fixture
def learner(outside):
    """A project that learns."""
    outside.ok("init")
    path = outside.folder / "work" / ".commonplace" / "config.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("memories:\n  enabled: false", "memories:\n  enabled: true"), encoding="utf-8")
    agree(outside.folder / "work")
    return outside


@pytest.fixture
def transcript(outside):
    """Write a transcript outside of the project and return its path."""

    def transcript(name, *turns):
        lines = [{"session": name, "started": "2026-01-03T10:00:00Z"}]
        lines += [{"role": role, "content": text, "time": "2026-01-03T10:00:00Z"} for role, text in turns or TALK]
        path = outside.folder / "transcripts" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        return path

    return transcript


@pytest.fixture
def learned(learner, transcript):
    """A session that was indexed, extracted and consolidated; and a record beside it."""
    learner.add("Use pnpm, not npm", "decisions")
    learner.ok("index", transcript("0b1c"))
    learner.ok("extract", "--session", "0b1c")
    learner.ok("consolidate")
    return learner


def left(cli, *needles):
    """The files of the data folder and the project in which one of these words still stands, also in their names."""
    found = []
    for folder in (cli.home, cli.folder / "work"):
        for path in folder.rglob("*"):
            data = path.read_bytes().lower() if path.is_file() else b""
            found += [(path.name, one) for one in needles if one.encode() in data or one in path.name.lower()]
    return found


def ids(cli, *words):
    """The ids of records by their texts."""
    records = cli.ok("record", "list", "--state", "all", "--json").json["records"]
    return [one["id"] for one in records if any(word in one["content"] for word in words)]


# Sessions


def test_sessions_are_listed_with_what_a_person_needs_to_know_them(learned, transcript):
    """Id, agent, last turn, number of turns, whether it was learned from, first words."""
    learned.ok("index", transcript("other", ("user", "What is the weather like today?")))
    one, first = sorted(learned.ok("session", "list", "--json").json["sessions"], key=lambda listed: listed["turns"])
    assert (first["id"], first["turns"], first["learned"], first["title"]) == ("0b1c", 3, True, TALK[0][1])
    assert (one["id"], one["learned"]) == ("other", False)
    assert ["0b1c", "file"] in [line.split()[:2] for line in learned.ok("session", "list").lines]
    assert learned.ok("session", "list", "--since", "2026-01-04", "--json").json["sessions"] == []
    assert learned.ok("session", "list", "--host", "claude-code", "--json").json["sessions"] == []


def test_a_session_is_shown_turn_by_turn(learned):
    """By a beginning of its id; wrapped for people, whole for programs."""
    shown = learned.ok("session", "show", "0b", "--json").json
    assert [(one["speaker"], one["text"]) for one in shown["turns"]] == TALK
    assert "#1 user, 2026-01-03 10:00Z" in learned.ok("session", "show", "0b1c").lines
    assert "session list" in learned("session", "show", "zzz").err


def test_a_session_is_deleted_with_everything_that_was_made_of_it(learned):
    """Turns, records, notes, synopsis, raw memory, artifacts' lines, receipts, jobs, in our backups too."""
    learned.ok("brief", "--session", "0b1c")
    learned.ok("backup")
    assert len(left(learned, "zebrafish")) >= 6
    done = learned.ok("session", "delete", "0b1c", "--yes", "--json").json
    assert (len(done["erased"]), done["counts"]["sessions"], done["pending"]) == (2, 1, False)
    assert [(one["erased"] > 0, one["trouble"]) for one in done["backups"]] == [(True, None)]
    assert left(learned, "zebrafish", "falcon", "make check", "0b1c") == []
    assert learned.recall("zebrafish") == []
    assert learned.recall("package manager npm") == ["Use pnpm, not npm"]
    assert "Use pnpm" in (learned.folder / "work" / ".commonplace" / "MEMORY.md").read_text(encoding="utf-8")
    assert learned.ok("doctor").code == 0


def test_deleting_a_session_asks(learned):
    """Where nobody can be asked, nothing is erased."""
    assert learned("session", "delete", "0b1c").code == 2
    assert learned.recall("zebrafish")


def test_what_hooks_have_written_of_a_session_goes_with_it(learned):
    """What it was shown, a transcript that we keep for a host, lines of the log; those of others stay."""
    home, key = str(learned.home), b"k"
    for session in ("0b1c", "other"):
        note_shown(home, session, [], tokens=1, query="zebrafish", secret=key)
        write_message(home, session, "user", f"zebrafish of {session}", cwd=home, secret=lambda: key)
        log_trouble(home, f"session {session} was not extracted: busy")
    learned.ok("session", "delete", "0b1c", "--yes")
    assert len(os.listdir(learned.home / "shown")) == 1
    assert [path.read_text().count("zebrafish of other") for path in (learned.home / "taken-down").iterdir()] == [1]
    assert "0b1c" not in (learned.home / "hook.log").read_text()
    assert "other" in (learned.home / "hook.log").read_text()


def test_a_record_with_another_origin_stays_without_its_words(learned, transcript):
    """Two sessions have said it: with one of them erased it leads to the other one, in every version."""
    learned.ok("index", transcript("second", ("user", TALK[0][1]), ("user", "Deploys happen on Mondays, always.")))
    learned.ok("extract", "--session", "second")
    [id_] = ids(learned, "zebrafish")
    learned.ok("session", "delete", "0b1c", "--yes")
    record = learned.get(id_)
    assert "zebrafish" in record["content"]
    assert "0b1c" not in json.dumps(record)
    assert left(learned, "0b1c", "make check") == []


def test_work_that_was_prepared_of_a_session_goes_with_it(learner, transcript):
    """The prompt for an agent holds the whole transcript."""
    config = learner.folder / "work" / ".commonplace" / "config.yaml"
    config.write_text(config.read_text(encoding="utf-8").replace("mode: rules", "mode: host"), encoding="utf-8")
    agree(config.parents[1])
    learner.ok("index", transcript("0b1c"))
    learner.ok("extract", "--prepare", learner.home / "extract" / "shop", "--session", "0b1c")
    assert left(learner, "zebrafish")
    learner.ok("session", "delete", "0b1c", "--yes")
    assert left(learner, "zebrafish") == []


# Coming back


def test_no_door_brings_an_erased_session_back(learned, transcript):
    """Not its transcript, a copy under another name, an export, a checkout, a backup; each says so."""
    memory = learned.folder / "work" / ".commonplace"
    learned.ok("export", learned.folder / "out.jsonl")
    learned.ok("backup", learned.folder / "copy.db")
    shutil.copytree(memory, learned.folder / "checkout")
    receipt = learned.ok("session", "delete", "0b1c", "--yes", "--json").json["receipt"]

    again = learned.ok("index", transcript("0b1c"))
    assert "1 session not revived" in again.err
    copy = learned.ok("index", learned.folder / "transcripts" / "0b1c.jsonl", "--session", "copy")
    assert "3 turns not revived" in copy.err
    assert learned.ok("session", "list", "--json").json["sessions"] == []
    imported = learned.ok("import", learned.folder / "out.jsonl", "--json")
    assert (imported.json["added"], "2 records not revived" in imported.err) == (0, True)
    shutil.copytree(learned.folder / "checkout", memory, dirs_exist_ok=True)
    synced = learned.ok("sync", "--json")
    assert "you have erased what this says" in synced.err
    restored = learned.ok("restore", learned.folder / "copy.db", "--yes")
    assert "2 records, 1 session of the backup not revived" in restored.err
    for done in (again, copy, imported):
        assert f"`commonplace forget --allow {receipt}`" in done.err
    assert learned.recall("zebrafish") == []
    assert ids(learned, "zebrafish", "make check") == []


def test_a_file_that_comes_back_by_git_is_left_where_it_is(cli, pnpm, git):
    """It is the person's file: named with every sync, not revived, not removed; its text under a new id neither."""
    git("init")
    git("add", ".commonplace")
    git("commit", "-m", "memory")
    cli.ok("record", "delete", pnpm["id"], "--yes")
    git("checkout", ".")
    assert os.path.exists(pnpm["path"])
    for _ in range(2):
        done = cli.ok("sync")
        assert done.lines[0] == "project: 1 erased and not revived"
        assert os.path.basename(pnpm["path"]) in done.err
    assert os.path.exists(pnpm["path"])
    new = cli.folder / "work" / ".commonplace" / "decisions" / "new.md"
    new.write_text(f"{pnpm['content']}\n", encoding="utf-8")
    assert cli.ok("sync").lines[0] == "project: 2 erased and not revived"
    assert cli.recall("pnpm") == []
    cli.ok("forget", "--allow", pnpm["id"])
    new.unlink()
    cli.ok("sync")
    assert cli.recall("pnpm") == [pnpm["content"]]


def test_files_in_another_worktree_go_too(cli, pnpm, git):
    """One that was changed there since is its person's, and is named at the next sync there."""
    git("init")
    git("add", ".commonplace")
    git("commit", "-m", "memory")
    git("worktree", "add", "-b", "other", cli.folder / "tree")
    kept = cli.add("Deploy on Mondays", "procedures")
    cli.at(cli.folder / "tree")
    agree(cli.folder / "tree")
    cli.ok("sync")
    there = cli.folder / "tree" / ".commonplace" / os.path.relpath(pnpm["path"], cli.folder / "work" / ".commonplace")
    assert there.exists()
    cli.at(cli.folder / "work")
    cli.ok("record", "delete", pnpm["id"], "--yes")
    assert not there.exists()
    assert cli.get(kept["id"])


def test_an_erasure_is_taken_back_by_its_receipt_a_record_or_a_session(learned, transcript):
    """And then the old transcript brings back what it says."""
    receipt = learned.ok("session", "delete", "0b1c", "--yes", "--json").json["receipt"]
    assert learned("forget", "--allow", "nothing").code == 1
    assert learned.ok("forget", "--allow", "0b1c", "--json").json["lifted"] >= 1
    assert learned.ok("index", transcript("0b1c"), "--json").json["erased"] == 0
    learned.ok("forget", "--allow", receipt)
    learned.ok("extract", "--session", "0b1c", "--force")
    assert ids(learned, "zebrafish")


# By source, subject, question


def test_a_source_goes_with_all_that_came_from_it(cli):
    """A file of another tool: its facts, and it does not come in again."""
    path = cli.folder / "work" / "AGENTS.md"
    path.write_text("# Rules\n\n- Always use the zebrafish formatter here\n- Never push on Fridays\n", encoding="utf-8")
    cli.ok("import", "--from", "agents-md", "AGENTS.md")
    cli.add("Use pnpm, not npm", "decisions")
    assert len(cli.ok("forget", "--source", "AGENTS.md", "--yes", "--json").json["erased"]) == 2
    assert ids(cli, "zebrafish", "Fridays") == []
    path.write_text("# Rules\n\n- The zebrafish formatter is required\n", encoding="utf-8")
    assert "1 record not revived" in cli.ok("import", "--from", "agents-md", "AGENTS.md").err
    assert ids(cli, "pnpm")


def test_a_channel_is_a_source_that_stays_open(cli):
    """Everything that was imported goes; the next import is welcome."""
    path = cli.folder / "work" / "AGENTS.md"
    path.write_text("# Rules\n\n- Always use the zebrafish formatter here\n", encoding="utf-8")
    cli.ok("import", "--from", "agents-md", "AGENTS.md")
    cli.ok("forget", "--source", "import", "--yes")
    assert ids(cli, "zebrafish") == []
    path.write_text("# Rules\n\n- Something else entirely is the rule\n", encoding="utf-8")
    cli.ok("import", "--from", "agents-md", "AGENTS.md")
    assert ids(cli, "Something else")


def test_a_subject_goes_wherever_it_is_spoken_of(learned, pnpm_alias):
    """Records by text, alias and earlier version, single turns of a session, lines of artifacts; the rest stays."""
    done = learned.ok("forget", "--subject", "project falcon", "--yes", "--json").json
    assert (len(done["erased"]), done["counts"]["turns"]) == (2, 2)
    assert pnpm_alias in done["erased"]
    assert left(learned, "falcon", "zebrafish") == []
    shown = learned.ok("session", "show", "0b1c", "--json").json
    assert [one["text"] for one in shown["turns"]] == [TALK[2][1]]
    assert ids(learned, "make check")


@pytest.fixture
def pnpm_alias(learned):
    """A record that speaks of the subject in an alias only, and has an earlier version."""
    record = learned.add("The red one is first", "decisions", "--alias", "falcon, the project")
    learned.ok("record", "update", record["id"], "The blue one is first")
    return record["id"]


def test_a_subject_without_a_word_of_its_own_is_refused(cli):
    """It would mean everything."""
    assert "names no subject" in cli("forget", "--subject", "what is it", "--yes").err


def test_a_question_s_hits_are_shown_numbered_and_chosen(cli, pnpm):
    """With --yes all above the score; without a terminal nothing."""
    cli.add("Deploy on Mondays", "procedures")
    done = cli("forget", "--query", "which package manager, npm?")
    assert (done.code, "  1  1.00" in done.err, "--yes" in done.err) == (2, True, True)
    assert cli.ok("forget", "--query", "npm", "--yes", "--json").json["erased"] == [pnpm["id"]]
    assert cli("forget", "--query", "npm", "--min-score", "0.99", "--yes").code == 1


def test_the_turns_a_record_was_learned_from_are_named_or_erased(learned):
    """Recall still finds them, and says so unless --turns is given."""
    [decision], [rule] = ids(learned, "zebrafish"), ids(learned, "make check")
    assert "recall still finds" in learned.ok("forget", rule, "--yes").err
    assert learned.recall("make check")
    assert "recall still finds" not in learned.ok("forget", decision, "--turns", "--yes").err
    assert [text for text in learned.recall("zebrafish database") if text == TALK[0][1]] == []


# Preview and receipt


def test_a_dry_run_shows_what_would_go_and_changes_nothing(learned):
    """Counts, first words, where."""
    before = left(learned, "zebrafish")
    learned.ok("backup")
    done = learned.ok("forget", "--session", "0b1c", "--dry-run")
    assert done.lines[0] == "This would be erased:"
    for line in ("  2 records", "  1 session", "  1 note of a session", "  in 1 backup of ours as well"):
        assert line in done.lines
    data = learned.ok("forget", "--session", "0b1c", "--dry-run", "--json").json
    assert (len(data["records"]), "session:0b1c" in data["documents"], data["backups"]) == (2, True, 1)
    assert len(left(learned, "zebrafish")) == len(before) + 1


def test_a_receipt_says_what_went_and_holds_no_word(cli, pnpm):
    """Who, when, how many; listed for people and for programs."""
    done = cli.ok("forget", pnpm["id"], "--yes")
    assert done.lines[0] == f"Erased {pnpm['id']}"
    [listed] = cli.ok("forget", "--receipts", "--json").json["receipts"]
    assert (listed["by"], listed["records"], listed["counts"]) == ("user ada", [pnpm["id"]], {"records": 1})
    assert listed["id"] in done.out
    assert cli.ok("forget", "--receipts").lines[0].endswith("user ada  1 record")
    assert left(cli, "pnpm") == []


def test_a_backup_that_cannot_be_rewritten_is_named(cli, pnpm):
    """A person has to remove it."""
    broken = cli.home / "backups" / "broken.db"
    broken.parent.mkdir()
    broken.write_bytes(b"pnpm" * 4096)
    done = cli.ok("forget", pnpm["id"], "--yes", "--json")
    assert "broken.db may still hold it" in done.err
    assert done.json["backups"][0]["trouble"]


def test_nothing_meant_is_nothing_erased(cli, pnpm):
    """An unknown id, session or source, and no target at all."""
    assert cli("forget", "zzzzzzzzzz", "--yes").code == 1
    assert cli("forget", "--session", "zzz", "--yes").code == 1
    assert cli("forget", "--source", "nowhere.md", "--yes").code == 1
    assert "say what to forget" in cli("forget").err
    assert cli.get(pnpm["id"])


def test_a_checkout_after_a_restore_is_no_leftover(cli, pnpm):
    """The backup knew the file; that it is just what was written there then is no reason to remove it."""
    cli.ok("backup", cli.folder / "copy.db")
    shutil.copy2(pnpm["path"], cli.folder / "kept.md")
    cli.ok("forget", pnpm["id"], "--yes")
    cli.ok("restore", cli.folder / "copy.db", "--yes")
    shutil.copy2(cli.folder / "kept.md", pnpm["path"])
    assert cli.ok("sync").lines[0] == "project: 1 erased and not revived"
    assert os.path.exists(pnpm["path"])


def test_a_ticket_is_forgotten_as_a_session_is(cli):
    """By its id, and its file does not bring it back."""
    ticket = cli.folder / "tickets" / "T-7.md"
    ticket.parent.mkdir()
    ticket.write_text("# Zebrafish tank leaks\n\nThe tank of the zebrafish leaks at night.\n", encoding="utf-8")
    cli.ok("index", ticket)
    name = cli.ok("recall", "zebrafish", "--format", "json").json["hits"][0]["id"].partition("#")[0]
    assert cli.ok("forget", "--session", name, "--yes", "--json").json["counts"] == {"tickets": 1}
    assert "1 ticket not revived" in cli.ok("index", ticket).err
    assert left(cli, "zebrafish") == []


def test_a_reader_that_holds_old_bytes_is_reported(cli, pnpm):
    """Gone from every answer, pending on the disk until it has ended."""
    reader = apsw.Connection(str(cli.home / "commonplace.db"))
    reader.execute("begin")
    reader.execute("select count(*) from record").fetchall()
    done = cli.ok("forget", pnpm["id"], "--yes", "--json")
    assert (done.json["pending"], "doctor --fix" in done.err) == (True, True)
    assert cli.recall("pnpm") == []
    reader.close()
    cli.ok("doctor", "--fix")
    assert left(cli, "pnpm") == []


def test_an_erasure_over_mcp_reaches_the_backups_too(cli, pnpm):
    """Of what an agent saved, the model's tool has the same reach as the command; of a person's word it asks."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "remember", "arguments": {"content": "The zebra is striped", "category": "incidents"}}
    cli.start("mcp", stdin=json.dumps(call) + "\n")
    [own] = ids(cli, "zebra")
    cli.ok("backup")
    for id_ in (own, pnpm["id"]):
        call["params"] = {"name": "forget", "arguments": {"id": id_, "confirm": True}}
        done = cli.start("mcp", stdin=json.dumps(call) + "\n")
        assert id_[:10] in done.out
    assert left(cli, "zebra") == []
    assert "Held for review" in done.out
    assert cli.get(pnpm["id"])["state"] == "live"


def test_a_record_that_a_person_has_rewritten_keeps_their_words_alone(learned):
    """The session goes, and with it the earlier version that it told; the person's version is the record."""
    [id_] = ids(learned, "zebrafish")
    learned.ok("record", "update", id_, "The database is chosen per team")
    learned.ok("session", "delete", "0b1c", "--yes")
    record = learned.get(id_)
    assert [one["content"] for one in record["versions"]] == ["The database is chosen per team"]
    assert learned.recall("database per team") == ["The database is chosen per team"]
    assert left(learned, "zebrafish", "0b1c") == []
    assert learned.ok("doctor").code == 0


def type_at(terminal, answers, *arguments):
    """Run the command on a terminal, type an answer whenever it has asked, and return what the screen shows."""
    command = subprocess.Popen([COMMAND, *arguments], stdin=terminal[1], stdout=terminal[1], stderr=terminal[1])
    os.close(terminal[1])
    shown = b""
    with contextlib.suppress(OSError):  # the other side has closed it: the command has ended
        while data := os.read(terminal[0], 65_536):
            shown += data
            if answers and shown.rstrip().endswith((b":", b"]:")):
                os.write(terminal[0], f"{answers.pop(0)}\n".encode())
    command.wait(timeout=60)
    os.close(terminal[0])
    assert answers == [], shown
    return command.returncode, shown.decode()


def test_a_person_chooses_hits_by_number_and_confirms(cli, pnpm):
    """On a terminal: the hits, the question which, the preview, the question whether."""
    other = cli.add("Use npm for the docs only", "decisions")
    code, shown = type_at(pty.openpty(), ["2", "n"], "forget", "--query", "npm")
    assert (code, "  1  " in shown, "this will be erased:" in shown, "1 record" in shown) == (1, True, True, True)
    assert sorted(cli.recall("npm")) == sorted([pnpm["content"], other["content"]])
    code, shown = type_at(pty.openpty(), ["all", "y"], "forget", "--query", "npm")
    assert (code, "Receipt" in shown) == (0, True)
    assert cli.recall("npm") == []

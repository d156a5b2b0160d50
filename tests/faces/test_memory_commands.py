"""The commands of learning: memory, consolidate, learn, status --jobs; the real command, the real messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stands import agree

COMMAND = str(Path(sys.executable).with_name("commonplace"))

FOLDER = Path(".commonplace")


def switch(on=True, **more):
    """Switch learning on, sessions of whatever age."""
    settings = FOLDER / "config.yaml"
    text = settings.read_text(encoding="utf-8").split("# learning from sessions")[0].split("memories:")[0]
    lines = ["memories:", f"  enabled: {'true' if on else 'false'}", "  minRolloutIdleHours: 0"]
    lines += [f"  {name}: {value}" for name, value in more.items()]
    settings.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")
    agree(FOLDER.absolute().parent)


@pytest.fixture
def learning(cli):
    """A project that learns."""
    switch()
    return cli


def session(cli, name, text):
    """Index a session in which a user says this."""
    path, yesterday = Path(f"{name}.jsonl"), (datetime.now(UTC) - timedelta(days=1)).isoformat()
    path.write_text(json.dumps({"role": "user", "content": text, "time": yesterday}) + "\n")
    cli.ok("index", path)


def test_memory_without_a_word_is_view(learning):
    """The payload that a session is shown, with its guidance."""
    learning.add("Use pnpm, not npm")
    learning.ok("consolidate")
    shown = learning.ok("memory").out

    assert shown == learning.ok("memory", "view").out
    assert "# Memory Guidance" in shown
    assert "Use pnpm, not npm" in shown


def test_an_empty_payload_is_a_warning(cli):
    """In the words of the document, also while learning is off."""
    warning = "Memory payload is empty (memories disabled or no memory summary found)."
    assert warning in cli.ok("memory", "view").err
    switch()
    assert warning in cli.ok("memory", "view").err


@pytest.mark.parametrize("verb", ["clear", "reset"])
def test_clear_and_reset_delete_what_was_learned(learning, verb):
    """One message for both; what people wrote stays."""
    session(learning, "s1", "We use pnpm in this repository, not npm.")
    learning.add("Tea is at four")
    learning.ok("learn")
    assert "pnpm" in (FOLDER / "MEMORY.md").read_text()
    done = learning.ok("memory", verb, "--yes")

    assert done.out == "Memory data cleared and system prompt refreshed.\n"
    assert not (FOLDER / "MEMORY.md").exists()
    assert learning.recall("tea")[0] == "Tea is at four"
    assert "stay" in done.err


def test_clear_asks_first(learning):
    """Where nobody can be asked, nothing is erased."""
    learning.add("Use pnpm, not npm")
    learning.ok("consolidate")
    done = learning("memory", "clear")
    assert done.code == 2
    assert "There is no terminal to ask on; --yes says yes" in done.err
    assert (FOLDER / "MEMORY.md").exists()


@pytest.mark.parametrize("verb", ["enqueue", "rebuild"])
def test_enqueue_and_rebuild_force_consolidation(learning, verb):
    """At the next start-up, even if nothing has changed."""
    learning.add("Use pnpm, not npm")
    learning.ok("learn")
    assert learning.ok("memory", verb).out == "Memory consolidation enqueued.\n"
    assert "pending: consolidate memory" in learning.ok("status", "--jobs").out
    assert "Unchanged by rules" in learning.ok("learn").out


def test_a_wrong_word_gets_the_usage(cli):
    """One sentence, exit code 2."""
    done = cli("memory", "wipe")
    assert done.code == 2
    assert "Usage: commonplace memory view|clear|reset|enqueue|rebuild" in done.err


def test_consolidate_is_forbidden_while_learning_is_off(cli):
    """One switch, off by default."""
    done = cli("consolidate")
    assert done.code == 4
    assert "memories.enabled: true" in done.err
    assert cli.ok("learn").out.startswith("Nothing was learned: learning is switched off")


def test_consolidate_shows_a_diff_does_it_and_takes_it_back(learning):
    """--dry-run, the run itself, --undo; each also as JSON."""
    learning.add("Use pnpm, not npm")
    assert "+- Use pnpm, not npm" in learning.ok("consolidate", "--dry-run").out
    assert not (FOLDER / "MEMORY.md").exists()
    done = learning.ok("consolidate", "--json").json
    assert (done["status"], done["written"]) == ("consolidated", ["MEMORY.md", "memory_summary.md"])
    undone = learning.ok("consolidate", "--undo", "--json").json
    assert undone["receipt"] == done["receipt"]
    assert not (FOLDER / "MEMORY.md").exists()
    assert learning("consolidate", "--undo").code == 1


@pytest.mark.parametrize("other", [["--undo"], ["--prepare", "work"]])
def test_a_dry_run_changes_nothing_or_is_refused(learning, other):
    """What cannot be only shown is not done instead."""
    learning.add("Use pnpm, not npm")
    receipt = learning.ok("consolidate", "--json").json["receipt"]
    done = learning("consolidate", "--dry-run", *other)
    assert (done.code, "--dry-run" in done.err) == (2, True)
    assert learning.ok("consolidate", "--undo", "--json").json["receipt"] == receipt


def test_undo_over_an_edit_is_a_conflict(learning):
    """Exit code 3, and the file is named."""
    learning.add("Use pnpm, not npm")
    learning.ok("consolidate")
    with (FOLDER / "MEMORY.md").open("a") as file:
        file.write("\nMine.\n")
    done = learning("consolidate", "--undo")
    assert done.code == 3
    assert "MEMORY.md was edited since" in done.err
    learning.ok("consolidate", "--undo", "--force")


def test_a_failed_consolidation_is_no_success(cli):
    """No model is set up: the exit code and status say so."""
    switch(mode="model")
    cli.add("Use pnpm, not npm")
    done = cli("consolidate")
    assert done.code == 1
    assert done.out.startswith("Failed: ")
    jobs = cli.ok("status", "--jobs").out
    assert "failed: consolidate memory: " in jobs
    assert "2 tries left" in jobs
    assert "it is tried again from 20" in jobs
    assert "failed; `commonplace status --jobs` shows why" in cli.ok("status").err
    assert cli("consolidate").code == 1  # it waits to be tried again, which is not "nothing to do"


def test_jobs_are_told_to_programs(learning):
    """State, reason and when it is tried again."""
    session(learning, "s1", "We use pnpm in this repository, not npm.")
    learning.ok("learn", "--session-active", "s1")
    seen = learning.ok("status", "--jobs", "--json").json
    assert seen["skipped"] == [{"session": "s1", "reason": "under way"}]
    learning.ok("learn")
    seen = learning.ok("status", "--jobs", "--json").json
    assert {(job["kind"], job["key"], job["state"]) for job in seen["jobs"]} == {
        ("extract", "s1", "done"), ("consolidate", "memory", "done"),
    }  # fmt: skip


def test_a_host_prepares_and_commits(cli):
    """No key at all: files out, files in, the same gate."""
    switch(mode="host")
    record = cli.add("Use pnpm, not npm")
    assert "Wrote 1 prompt" in cli.ok("consolidate", "--prepare", "work").out
    assert "Use pnpm, not npm" in Path("work/consolidate-1.md").read_text()
    assert "consolidate-1.json' is missing" in cli("consolidate", "--commit", "work").err
    answer = {"memory_md": f"## Decisions\n\n- Use pnpm (record {record['id'][:10]})", "memory_summary": "- pnpm"}
    Path("work/consolidate-1.json").write_text(json.dumps(answer | {"skills": []}))
    cli.ok("consolidate", "--commit", "work")
    assert "- Use pnpm (record" in (FOLDER / "MEMORY.md").read_text()


def test_learn_never_breaks_its_caller(learning):
    """A store that cannot be opened is told, and the exit code is 0."""
    learning.add("Use pnpm, not npm")
    database = learning.home / "commonplace.db"
    database.write_bytes(b"this is no database" * 100)
    done = learning("learn")
    assert done.code == 0
    assert "nothing was learned" in done.err


def test_subagents_and_unsaved_sessions_learn_nothing(learning):
    """By option and by environment."""
    assert "a subagent does not learn" in learning.ok("learn", "--depth", 1).out
    assert "not saved" in learning.ok("learn", "--unsaved").out
    learning.env(COMMONPLACE_DEPTH="2")
    assert "a subagent does not learn" in learning.ok("learn").out


def reaped():
    """The process that ended and was waited for by nobody; 0 if there is none."""
    try:
        return os.waitpid(-1, os.WNOHANG)[0]
    except ChildProcessError:
        return 0


def test_learning_in_the_background_outlives_its_caller(learning):
    """It returns at once, the work is done a moment later, and no zombie is left."""
    session(learning, "s1", "We use pnpm in this repository, not npm.")
    began = time.monotonic()
    done = subprocess.run([COMMAND, "learn", "--background"], capture_output=True, text=True, check=True, timeout=30)
    assert "continues in the background" in done.stdout
    deadline = time.monotonic() + 30
    while not (FOLDER / "MEMORY.md").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "pnpm" in (FOLDER / "MEMORY.md").read_text(), time.monotonic() - began
    assert reaped() == 0


def test_two_starts_at_once_learn_once(learning):
    """Both succeed, one does the work."""
    session(learning, "s1", "We use pnpm in this repository, not npm.")
    both = [subprocess.Popen([COMMAND, "learn", "--json"], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [json.loads(one.communicate(timeout=60)[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert sum("extracted 1 record " in line for one in told for line in one["lines"]) == 1
    assert len(learning.ok("record", "list", "--json").json["records"]) == 1


def test_a_deleted_record_leaves_no_byte(learning):
    """Not in the database, the artifacts, the receipts or the files, as soon as `record delete` returns."""
    record = learning.add("The tunnel is under the xylophonequokka", "procedures")
    learning.add("Use pnpm, not npm")
    learning.ok("consolidate")
    assert "xylophonequokka" in Path(".commonplace/MEMORY.md").read_text(encoding="utf-8")
    learning.ok("record", "delete", record["id"], "--yes")

    files = [path for folder in (learning.folder, Path.cwd()) for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if b"xylophonequokka" in path.read_bytes()] == []
    assert "Use pnpm, not npm" in Path(".commonplace/MEMORY.md").read_text(encoding="utf-8")


def test_clearing_the_project_clears_its_artifacts(learning):
    """The files of what was consolidated go with the records."""
    learning.add("Use pnpm, not npm")
    learning.ok("consolidate")
    learning.ok("clear", "--scope", "project", "--force")
    assert not Path(".commonplace/MEMORY.md").exists()
    assert not Path(".commonplace/memory_summary.md").exists()

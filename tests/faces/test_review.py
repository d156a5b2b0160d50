"""``review``, ``why``, ``rollback`` and ``audit`` through the command: what a person sees and decides."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest
from tests.faces.conftest import COMMAND

from commonplace.records import VERBS
from commonplace.records.access import open_project
from commonplace.records.texts import render_erased, render_updated

TOOLS = {verb.name: verb for verb in VERBS}


@pytest.fixture
def agent(cli):  # noqa: ARG001 - in its project
    """Call a verb as an agent in this project does over MCP."""

    def agent(name, **arguments):
        with open_project() as caller:
            return TOOLS[name](caller, **arguments)

    return agent


@pytest.fixture
def proposed(agent, pnpm):
    """A change of a person's record that waits."""
    return agent("update", id=pnpm["id"], content="Use yarn, not npm, in this repository").record


@pytest.fixture
def procedure(agent):
    """A procedure that an agent stored."""
    return agent("remember", content="Release: tag, build, publish", category="procedures").record


def waiting(cli, *options):
    """The ids of what waits."""
    return [one["record"]["id"] for one in cli.ok("review", "list", "--json", *options).json["waiting"]]


def test_the_model_is_told_that_its_change_waits(agent, pnpm):
    """In one sentence, with the id of the proposal; it has no way to approve it."""
    with open_project() as caller:
        changed = agent("update", id=pnpm["id"], content="Use yarn")
        text = render_updated(caller, changed)
        erased = render_erased(caller, agent("forget", id=pnpm["id"], confirm=True))

    assert text == (
        f"Held for review: record {pnpm['id'][:10]} is trusted more than agent, so this waits for review as"
        f" {changed.record.short} and nothing has changed yet."
    )
    assert erased.startswith("Held for review: record ")
    assert not any(TOOLS[name].is_tool for name in ("review", "approve", "reject", "why"))


def test_what_waits_is_listed_with_its_reason(cli, proposed, procedure, pnpm):
    """For people in two lines each, for programs with what a yes would do."""
    text = cli.ok("review", "list").out
    listed = cli.ok("review", "list", "--json").json["waiting"]

    assert f"it would change record {pnpm['id'][:10]}, which is trusted more" in text
    assert "nobody has approved it (trust agent): it is shown as data only" in text
    assert [(one["record"]["id"], one["action"]) for one in listed] == [
        (proposed.id, "update"), (procedure.id, "approve"),
    ]  # fmt: skip
    assert listed[0]["target"]["content"] == pnpm["content"]
    assert waiting(cli, "--origin", "import") == []


def test_a_proposal_is_shown_as_a_difference(cli, proposed):
    """What goes, what comes, and from where."""
    text = cli.ok("review", "show", proposed.short).out
    assert "-Use pnpm, not npm, in this repository\n+Use yarn, not npm, in this repository" in text
    assert "origin    agent; trust agent" in text


def test_approving_makes_the_change(cli, proposed, pnpm):
    """And nothing waits any more."""
    done = cli.ok("review", "approve", proposed.short, "--json").json["approved"]
    assert (done[0]["record"]["id"], cli.get(pnpm["id"])["content"]) == (
        pnpm["id"],
        "Use yarn, not npm, in this repository",
    )
    assert waiting(cli) == []


def test_rejecting_changes_nothing(cli, proposed, pnpm):
    """The proposal is archived."""
    cli.ok("review", "reject", proposed.id)
    assert cli.get(pnpm["id"])["content"] == pnpm["content"]
    assert cli.get(proposed.id)["state"] == "archived"


def test_a_record_is_approved_in_other_words(cli, procedure):
    """They are the person's own then."""
    cli.ok("review", "edit", procedure.id, "Release: tag and publish")
    after = cli.get(procedure.id)
    assert (after["content"], after["trust"], after["source"]["channel"]) == (
        "Release: tag and publish",
        "user",
        "user",
    )


@pytest.mark.usefixtures("proposed", "procedure")
def test_one_origin_is_decided_at_once(cli):
    """All that came by it; without a terminal only with a yes on the command line."""
    assert "--yes" in cli("review", "approve", "--origin", "agent").err
    assert len(cli.ok("review", "approve", "--origin", "agent", "--yes", "--json").json["approved"]) == 2
    assert waiting(cli) == []


def test_releasing_is_approving(cli, procedure):
    """``record release`` still does it."""
    cli.ok("record", "hold", procedure.id)
    cli.ok("record", "release", procedure.id)
    assert cli.get(procedure.id)["approved_at"] is not None


@pytest.mark.parametrize("arguments", [["approve"], ["approve", "--all", "--origin", "agent"], ["reject"]])
@pytest.mark.usefixtures("procedure")
def test_what_is_meant_has_to_be_said(cli, arguments):
    """By id, all of it, or one origin."""
    done = cli("review", *arguments)
    assert (done.code, "one of the three" in done.err) == (2, True)


def test_without_a_terminal_nobody_is_asked(cli):
    """The commands that need none are named."""
    done = cli("review")
    assert (done.code, "review list" in done.err) == (2, True)


def test_a_person_decides_one_by_one(cli, proposed, procedure, agent, pnpm):
    """On a terminal: skip, approve, reject, quit."""
    other = agent("remember", content="Always deploy from main", category="principles").record
    left = agent("remember", content="Prefer short names", category="preferences").record
    mine, theirs = pty.openpty()
    process = subprocess.Popen([COMMAND, "review"], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    os.write(mine, b"s\na\nr\nq\n")
    out, _ = process.communicate(timeout=60)

    assert (process.returncode, b"(1 of 4)" in out, b"[a]pprove" in out) == (0, True, True)
    assert cli.get(pnpm["id"])["content"] == pnpm["content"]
    assert cli.get(procedure.id)["approved_at"] is not None
    assert cli.get(other.id)["state"] == "archived"
    assert waiting(cli) == [proposed.id, left.id]


# Where it comes from, and back


def test_why_leads_back_to_what_was_approved_by_whom(cli, procedure):
    """Every version with its channel and trust, and the decision."""
    cli.ok("review", "approve", procedure.id)
    text = cli.ok("why", procedure.id).out
    chain = cli.ok("why", procedure.id, "--json").json["chain"]

    assert "from agent; trust agent, approved" in text
    assert "approve 20" in text
    assert "by user" in text
    assert [act["verb"] for act in chain[0]["acts"]] == ["put", "approve"]


def test_a_rollback_is_shown_done_and_undone(cli, procedure, pnpm):
    """A preview first; the same command brings it back."""
    assert "archive  Release" in cli.ok("rollback", "--origin", "agent", "--dry-run").out
    assert cli.get(procedure.id)["state"] == "live"
    assert cli("rollback", "--origin", "agent").code == 2
    cli.ok("rollback", "--origin", "agent", "--yes")
    assert (cli.get(procedure.id)["state"], cli.get(pnpm["id"])["state"]) == ("archived", "live")

    last = cli.ok("audit", "list", "--json").json["entries"][-1]
    assert last["verb"] == "rollback"
    cli.ok("rollback", "--since", last["at"], "--yes")
    assert cli.get(procedure.id)["state"] == "live"


def test_the_log_says_who_did_what(cli, proposed, pnpm):
    """A person, an agent, an import, an export; and that nothing was altered."""
    cli.ok("review", "reject", proposed.id)
    cli.ok("export", "out.jsonl")
    cli.ok("import", "out.jsonl")
    entries = cli.ok("audit", "list", "--json").json["entries"]

    assert [(one["verb"], one["actor"]) for one in entries] == [
        ("put", "user"), ("put", "agent"), ("reject", "user"), ("export", "user"), ("import", "user"),
    ]  # fmt: skip
    assert "5 entries: nothing was altered." in cli.ok("audit", "verify").out
    assert pnpm["content"] not in json.dumps(entries)


@pytest.mark.usefixtures("pnpm")
def test_an_altered_log_is_reported(cli):
    """Also one whose end was cut off, by the note in the data folder."""
    note = cli.home / "audit"
    number, *rest = note.read_text().split(" ", 1)
    note.write_text(" ".join([f"{int(number) + 1:020d}", *rest]))
    done = cli("audit", "verify", "--json")
    assert (done.code, done.json["problems"]) == (1, ["entry 2 is missing: the end of the log was cut off"])


@pytest.mark.usefixtures("pnpm")
def test_a_restored_backup_is_no_altered_log(cli):
    """The log is as long as it was then, and says that it was restored."""
    cli.ok("backup", "copy.db")
    cli.add("Deploy on Mondays")
    cli.ok("restore", "copy.db", "--yes")
    assert cli.ok("audit", "list", "--json").json["entries"][-1]["verb"] == "restore-backup"
    cli.ok("audit", "verify")


# What leaves


def test_what_is_committed_holds_neither_your_own_records_nor_what_nobody_approved(cli, procedure, pnpm):
    """Unless asked; and it says how many were left out."""
    cli.add("I like short answers", "preferences", "--scope", "assistant")
    done = cli.ok("export", "--to", "agents-md")
    text = Path("AGENTS.md").read_text(encoding="utf-8")

    assert (pnpm["content"] in text, procedure.content in text, "short answers" in text) == (True, False, False)
    assert "left out 1 record of your own memory; --with-assistant writes them too" in done.err
    assert "left out 1 record that nobody has approved" in done.err

    cli.ok("review", "approve", procedure.id)
    cli.ok("export", "--to", "agents-md", "--with-assistant")
    text = Path("AGENTS.md").read_text(encoding="utf-8")
    assert (procedure.content in text, "short answers" in text) == (True, True)


@pytest.mark.usefixtures("pnpm")
def test_an_option_that_does_not_go_with_a_plain_export_is_refused(cli):
    """It would do nothing there."""
    assert cli("export", "out.jsonl", "--with-assistant").code == 2

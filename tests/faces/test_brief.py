"""`commonplace brief`: the block that a session starts with."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stands import agree

LOADED = "import sys; from commonplace.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"


@pytest.fixture
def ticket(cli):
    """Write a ticket."""

    def ticket(text="---\nid: T-1\ntitle: Package manager\n---\nWhich one, npm or pnpm?\n"):
        path = cli.folder / "work" / "T-1.md"
        path.write_text(text)
        return path

    return ticket


def test_nothing_to_say_is_nothing_and_a_note(cli):
    """An empty answer is no failure, and says why it is empty."""
    done = cli.ok("brief", "--task", "deploy")

    assert done.out == ""
    assert done.err == "commonplace: memory is empty: no summary and no records\n"


@pytest.mark.usefixtures("pnpm")
def test_a_task_is_answered_with_a_block(cli):
    """The guidance, then the notes that bear on the task."""
    out = cli.ok("brief", "--task", "which package manager, npm?").out

    assert out.startswith('<memory seal="')
    assert "# Memory Guidance" in out
    assert "Use pnpm, not npm, in this repository" in out


@pytest.mark.usefixtures("pnpm")
def test_a_ticket_is_a_task(cli, ticket):
    """Its title and its words are the question."""
    assert "Use pnpm" in cli.ok("brief", "--ticket", ticket()).out


def test_programs_get_every_item(cli, pnpm):
    """The block with its records, their versions, and the receipt."""
    answer = cli.ok("brief", "--task", "npm", "--session", "s1", "--json").json

    assert [(one["id"], one["version"], one["part"]) for one in answer["records"]] == [(pnpm["id"], 1, "matching")]
    assert answer["text"].startswith("<memory")
    assert answer["receipt"].startswith("injection/s1/")


@pytest.mark.usefixtures("pnpm")
def test_without_a_session_the_receipt_is_for_an_unknown_one(cli):
    """What was shown is never without a receipt, unless somebody only looks."""
    cli.ok("brief", "--peek")
    assert cli("used", "unknown").code == 1
    cli.ok("brief")
    assert "1 brief" in cli.ok("used", "unknown").out


@pytest.mark.usefixtures("pnpm")
def test_two_processes_write_the_same_bytes(cli):
    """A brief is the same a moment later, in another process, though the first one left a receipt."""
    assert cli.start("brief", "--task", "npm").out == cli.start("brief", "--task", "npm").out


def test_a_budget_holds_for_all_of_it(cli):
    """A block of 2,375 tokens has at most the 9,500 characters that a hook may pass on."""
    for number in range(60):
        cli.add(f"Fact {number}: " + "deploy the service carefully " * 30)
    out = cli.ok("brief", "--task", "deploy the service", "--budget", "2375").out

    assert 3000 < len(out) <= 9500


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--task", "x", "--ticket", "y"], 2, "give --task or --ticket"),
        (["--ticket", "nowhere.md"], 2, "'nowhere.md' cannot be read"),
        (["--budget", "0"], 2, "--budget"),
        (["--budget", "20"], 2, "too small"),
        (["--session", " "], 2, "cannot name a session"),
    ],
)
@pytest.mark.usefixtures("pnpm")
def test_a_mistake_is_one_sentence(cli, arguments, code, words):
    """Nothing is written to standard output, and the sentence names the thing."""
    done = cli("brief", *arguments)

    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert done.err.count("\n") == 1


@pytest.mark.usefixtures("pnpm")
def test_rules_of_ones_own_that_cannot_be_used_are_a_settings_mistake(cli):
    """The file is named."""
    prompts = cli.folder / "work" / ".commonplace" / "prompts"
    prompts.mkdir()
    (prompts / "read_path.md").write_text("Be good.")
    agree(cli.folder / "work")
    done = cli("brief")

    assert done.code == 5
    assert "read_path.md: has no place for the summary" in done.err


@pytest.mark.usefixtures("pnpm")
def test_a_recall_loads_nothing_of_the_brief():
    """The command that runs on every prompt does not pay for this one."""
    command = [sys.executable, "-c", LOADED, "recall", "npm", "--format", "prompt"]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split()
    ours = {"commonplace.learning.brief_layout", "commonplace.learning.brief", "commonplace.learning.addresses"}

    assert {*modules} & {*ours, "commonplace.learning.receipts"} == set()
    assert "commonplace.engine.rendering" in modules

"""One person in their own repository, on two machines: what is asked of them, at a real terminal with real Git."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

COMMAND = str(Path(sys.executable).with_name("commonplace"))
QUESTION = r"[?.] \[y/N\]: "
APPLY, TRUST = "Apply these changes", "Trust this folder"
ASK = "May the agent be asked, once in a session, to save what was settled? It costs one more message of its model"


class Machine:
    """A machine of Ada's: a home of its own and a clone of her project."""

    def __init__(self, root: Path, server: Path) -> None:
        self.home, self.folder = root / "home", root / "shop"
        self.home.mkdir(parents=True)
        (self.home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@example.org\n")
        self.env = {"HOME": str(self.home), "USER": "ada", "PATH": os.environ["PATH"], "TERM": "dumb"}
        self.git("clone", "-q", str(server), str(self.folder), at=root)

    def git(self, *arguments, at=None):
        """Run Git as she does."""
        subprocess.run(["git", *arguments], cwd=at or self.folder, env=self.env, check=True, capture_output=True)

    def says(self, *arguments, answer="y"):
        """Type a command, and answer its questions; returns what it printed and what it asked."""
        child = pexpect.spawn(
            COMMAND, list(arguments), cwd=str(self.folder), env=self.env, encoding="utf-8", timeout=60
        )
        asked, text = [], ""
        while child.expect([QUESTION, pexpect.EOF]) == 0:
            text += child.before
            asked.append(child.before.splitlines()[-1])
            child.sendline(answer)
        child.close()
        assert child.exitstatus in ((0, 1) if answer == "n" else (0,)), text + child.before
        return text + child.before, asked

    def asks(self, *arguments):
        """What a command asks."""
        return self.says(*arguments)[1]

    def pushes(self):
        """Commit everything and push it."""
        self.git("add", "-A"), self.git("commit", "-qm", "memory"), self.git("push", "-q")


@pytest.fixture
def machines(tmp_path):
    """Two machines of one person, and the server between them."""
    server = tmp_path / "server.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(server)], check=True)
    return Machine(tmp_path / "one", server), Machine(tmp_path / "two", server)


@pytest.mark.slow
def test_the_everyday_path_asks_once_on_each_machine(machines):
    """Nothing at the machine where the project is made; one yes where it came by Git; nothing ever after."""
    one, two = machines
    for arguments in (
        ["init"], ["add", "Releases are approved by Ada", "--category", "decisions"], ["recall", "releases"], ["sync"],
    ):  # fmt: skip
        assert one.asks(*arguments) == []
    assert one.asks("connect", "claude-code") == [APPLY, ASK]  # of the host's own settings, and what it may cost
    note = next((one.folder / ".commonplace" / "decisions").glob("*.md"))
    note.write_text(note.read_text().replace("by Ada", "by Ada and Grace"))
    assert "by Ada and Grace" in one.says("recall", "releases")[0]
    one.pushes()

    two.git("pull", "-q")
    assert two.asks("connect", "claude-code") == [APPLY, TRUST]
    said, asked = two.says("recall", "who approves releases?", "--format", "prompt")
    assert ("trust user" in said, asked) == (True, [])
    assert two.asks("add", "The harbor database is Postgres 16", "--category", "decisions") == []
    two.pushes()

    one.git("pull", "-q")
    said, asked = one.says("recall", "harbor", "--format", "prompt")
    assert ("trust user" in said, "not trusted" in said, asked) == (True, False, [])
    said, asked = one.says("review", "list")
    assert ("Nothing waits for review" in said, asked) == (True, [])
    for machine in machines:
        said, asked = machine.says("connect", "claude-code")
        assert ("Nothing to change" in said, asked) == (True, [])


@pytest.mark.slow
def test_connecting_in_a_folder_that_came_by_git_asks_for_the_yes(machines):
    """Also where the coding agent is connected already; a no leaves the folder a stranger, and says how to go on."""
    one, two = machines
    assert one.asks("init") == []
    one.pushes()
    two.git("pull", "-q")
    assert two.says("connect", "claude-code", answer="n")[1] == [APPLY]
    said, asked = two.says("connect", "claude-code", "--yes")
    assert ("run `commonplace trust`" in " ".join(said.split()), asked) == (True, [])
    said, asked = two.says("connect", "claude-code", answer="n")
    assert ("run `commonplace trust`" in " ".join(said.split()), asked) == (True, [TRUST])
    assert two.asks("connect", "claude-code") == [TRUST]


@pytest.mark.slow
def test_settings_that_change_under_the_question_are_not_agreed_to(machines):
    """An agent could write others while a person reads."""
    one, _ = machines
    assert one.asks("init") == []
    config = one.folder / ".commonplace" / "config.yaml"
    text = config.read_text()
    config.write_text(text.replace("recall_limit: 10", "recall_limit: 9"))
    child = pexpect.spawn(COMMAND, ["trust"], cwd=str(one.folder), env=one.env, encoding="utf-8", timeout=60)
    child.expect(QUESTION)
    config.write_text(text.replace("recall_limit: 10", "recall_limit: 8"))
    child.sendline("y")
    child.expect(pexpect.EOF)
    assert "changed while you were asked" in child.before
    assert "config.yaml changed since you trusted this folder" in " ".join(one.says("recall", "x")[0].split())

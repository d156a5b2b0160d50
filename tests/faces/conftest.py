"""The command, in a project of its own with a data folder of its own: called in this process, or started for real."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from commonplace.cli.main import run
from commonplace.model import ids
from stands import agree, scripts_of_the_user

COMMAND = str(Path(sys.executable).with_name("commonplace"))


class Done(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The answer, as a program reads it."""
        return json.loads(self.out)

    @property
    def lines(self):
        """The answer, line by line."""
        return self.out.splitlines()


class Cli:
    """The command in this process; every call opens and closes the store as a process would."""

    def __init__(self, folder, capsys, monkeypatch):
        self.folder, self.home = folder, folder / "home"
        monkeypatch.setattr(ids, "_last_ms", 0)  # an earlier test's clock may have been ahead
        self.capsys, self.monkeypatch = capsys, monkeypatch

    def __call__(self, *arguments, stdin=b""):
        """Run a command, whatever it comes to."""
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        return Done(code, out, err)

    def ok(self, *arguments, stdin=b""):
        """Run a command that must succeed."""
        done = self(*arguments, stdin=stdin)
        assert done.code == 0, done
        return done

    def add(self, text, category="decisions", *options):
        """Keep a record; returns it as a program reads it."""
        return self.ok("record", "add", text, "--category", category, "--json", *options).json

    def get(self, id):
        """Read a record as a program does."""
        return self.ok("record", "get", id, "--json").json

    def recall(self, question, *options):
        """Ask; returns the texts found, best first."""
        return [hit["text"] for hit in self.ok("recall", question, "--format", "json", *options).json["hits"]]

    def moves_to(self, home):
        """Use another data folder, with scripts of the user's own in it too; returns it."""
        scripts_of_the_user(home)
        self.env(COMMONPLACE_HOME=home)
        return home

    def configure(self, text):
        """Write the settings of the project here, and say yes to them."""
        Path(".commonplace", "config.yaml").write_text(text, encoding="utf-8")
        agree(Path.cwd())

    def at(self, folder):
        """Go to a folder, making it if need be."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.monkeypatch.chdir(folder)
        return Path(folder)

    def env(self, **variables):
        """Set variables of the environment."""
        for name, value in variables.items():
            self.monkeypatch.setenv(name, str(value))

    def start(self, *arguments, stdin="", **options):
        """Run the command as a process of its own."""
        done = subprocess.run(
            [COMMAND, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            **options,
        )
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def outside(tmp_path, capsys, monkeypatch):
    """The command in a folder that belongs to no project."""
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "home"))
    scripts_of_the_user(tmp_path / "home")
    monkeypatch.setenv("USER", "ada")
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    cli = Cli(tmp_path, capsys, monkeypatch)
    cli.at(tmp_path / "work")
    return cli


@pytest.fixture
def cli(outside):
    """The command in a project."""
    outside.ok("init")
    return outside


@pytest.fixture
def git(outside):
    """Run git as somebody."""

    def git(*arguments):
        someone = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"]
        subprocess.run(
            ["git", *someone, *map(str, arguments)], check=True, capture_output=True, cwd=outside.folder / "work"
        )

    return git


@pytest.fixture
def pnpm(cli):
    """A record to work with."""
    return cli.add("Use pnpm, not npm, in this repository", "decisions", "--tag", "js")

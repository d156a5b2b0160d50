"""The fault programme: everything that can go wrong, done to a real memory, and what came of it as a table.

``scripts/faults`` runs it.  Each module does one sort of damage and returns a ``Result``; the tests in ``tests/crash``
call the same functions with small counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from commonplace.config.paths import find
from commonplace.config.trust_registry import trust_folder

ENV_NAMES = ("PATH", "LANG", "LD_LIBRARY_PATH", "COMMONPLACE_TEST_POSTGRES", "TMPDIR")


@dataclass
class Result:
    """What came of one fault."""

    fault: str
    tries: int = 0
    violations: list[str] = field(default_factory=list)  #: sentences, one for each
    note: str = ""  #: what was measured besides

    def expect(self, holds, what):
        """Note a violation unless something holds."""
        if not holds:
            self.violations.append(what)


class World:
    """A data folder and a project of their own, in which commands and programs run as their user."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.project = self.folder / "shop"
        self.home = self.folder / "home"
        self.env = {name: os.environ[name] for name in ENV_NAMES if name in os.environ}
        self.env |= {"HOME": str(self.folder), "COMMONPLACE_HOME": str(self.home), "USER": "ada"}
        (self.project / ".commonplace").mkdir(parents=True)
        self.home.mkdir()
        (self.project / ".commonplace" / "config.yaml").write_text("project: github.com/acme/shop\n")
        (self.home / "config.yaml").write_text("scripts_speak_as: user\n")
        trust_folder(find(str(self.project)), str(self.home), "github.com/acme/shop")

    @property
    def database(self):
        """The store's file."""
        return self.home / "commonplace.db"

    def run(self, *words, check=False, **options):
        """Run the command; return what became of it."""
        options = {"capture_output": True, "timeout": 300} | options
        return subprocess.run(self.command(*words), cwd=self.project, env=self.env, check=check, **options)

    def command(self, *words):
        """The command with these words."""
        return [os.path.join(os.path.dirname(sys.executable), "commonplace"), *words]

    def ok(self, *words, **options):
        """Run a command that has to succeed; return what it printed."""
        done = self.run(*words, **options)
        assert done.returncode == 0, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout.decode()

    def start(self, program, *words, **options):
        """Start a Python program in the project."""
        command = [sys.executable, "-c", program, *map(str, words)]
        return subprocess.Popen(command, cwd=self.project, env=self.env, **options)

"""A person with coding agents: a home, a project, and the real command, started as agents start it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from stands import agree

COMMAND = str(Path(sys.executable).with_name("commonplace"))
SAID = "Use pnpm, not npm, in this repo."  # what a session says, and the next one should know


class Done(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The answer, as a program reads it."""
        return json.loads(self.out)


class Person:
    """Somebody's machine: every agent's files lie in a home of their own."""

    def __init__(self, folder):
        self.home, self.work, self.data = folder / "person", folder / "work", folder / "data"
        for made in (self.home, self.work):
            made.mkdir()
        self.env = {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), "/usr/bin", "/bin"]),
            "HOME": str(self.home), "COMMONPLACE_HOME": str(self.data), "USER": "ada", "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }  # fmt: skip

    def __call__(self, *arguments, stdin="", cwd=None, timeout=60, **env):
        """Run the command, whatever it comes to."""
        done = subprocess.run(
            [COMMAND, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=timeout, check=False,
            cwd=cwd or self.work, env=self.env | env,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *arguments, **options):
        """Run a command that must succeed."""
        done = self(*arguments, **options)
        assert done.code == 0, done
        return done

    def learns(self):
        """Make the project, and let it learn."""
        self.ok("init")
        config = self.work / ".commonplace" / "config.yaml"
        before, _, after = config.read_text().partition("memories:")
        config.write_text(f"{before}memories:{after.replace('enabled: false', 'enabled: true', 1)}")
        agree(self.work, self.data)
        return self

    def hook(self, event, said, *options, **env):
        """Run a hook as an agent does, with time for a busy machine; returns what its answer shows the model."""
        done = self.ok("hook", event, "--time-limit", "50", *options, stdin=json.dumps(said), **env)
        return done.json if done.out else {}

    @property
    def log(self):
        """What hooks had trouble with."""
        path = self.data / "hook.log"
        return path.read_text() if path.exists() else ""

    def file(self, path, text):
        """Write a file in the person's home."""
        target = self.home / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def lines(self, path, *objects):
        """Write a file of JSON lines in the person's home."""
        return self.file(path, "".join(f"{json.dumps(one)}\n" for one in objects))


@pytest.fixture
def person(tmp_path):
    """A person with an empty folder to work in."""
    return Person(tmp_path)

"""People with machines of their own, real Git between them, and a project whose memory travels with it."""

from __future__ import annotations

import os
import subprocess

import pytest

from commonplace.app import open_app
from commonplace.config.paths import find
from commonplace.config.trust_registry import set_authors, trust_folder
from commonplace.model.records import Trust

RECORD = "---\ntags: []\n---\n\n{text}\n"
PATH = ".commonplace/decisions/{name}.md"


class Machine:
    """One machine of a person: a home with Git's settings, a data folder, and clones."""

    def __init__(self, root, email, clock):
        self.root, self.email, self.clock = root, email, clock
        self.home = root / "home"
        self.home.mkdir(parents=True)
        self.configure(f"[user]\n\tname = {email.split('@')[0].title()}\n\temail = {email}\n")
        self.folder = root / "shop"
        self._app = None

    def configure(self, text):
        """Write the user's own settings of Git."""
        with open(self.home / ".gitconfig", "a", encoding="utf-8") as file:
            file.write(text)

    @property
    def env(self):
        """What a process on this machine knows."""
        return {
            "HOME": str(self.home), "COMMONPLACE_HOME": str(self.root / "data"), "USER": "somebody",
            "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1",
        }  # fmt: skip

    def git(self, *arguments, at=None, check=True, **variables):
        """Run Git as the person does, in their clone."""
        command = ["git", "-C", str(at or self.folder), "-c", "protocol.file.allow=always", *map(str, arguments)]
        done = subprocess.run(command, env=self.env | variables, check=False, capture_output=True, text=True)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(self, name, text):
        """Write a record's file by hand."""
        path = self.folder / PATH.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(RECORD.format(text=text), encoding="utf-8")
        return path

    def commit(self, *names_and_texts, message="memory", **variables):
        """Write records and commit them."""
        for name, text in names_and_texts:
            self.write(name, text)
        self.git("add", "-A", at=self.folder)
        self.git("commit", "-qm", message, **variables)
        return self.git("rev-parse", "HEAD")

    def trust(self, *authors, signed=False, folder=None):
        """Say yes to the clone, and to authors."""
        trust = trust_folder(find(str(folder or self.folder)), self.env["COMMONPLACE_HOME"], "github.com/acme/shop")
        set_authors(trust, authors, signed=signed)

    def open(self, folder=None):
        """Open the memory of the clone; what was open is closed."""
        self.close()
        self._app = open_app(str(folder or self.folder), env=self.env, clock=self.clock, embedder=None)
        return self._app

    def close(self):
        """Close what is open."""
        if self._app is not None:
            self._app.close()
            self._app = None

    def sync(self, folder=None):
        """Sync the clone's memory, as a recall with changed files does."""
        self.clock.forward()
        app = self.open(folder)
        return app.folders.sync(app.where.project)

    def live(self):
        """What the memory knows: the trust of each live record, by its words."""
        app = self._app or self.open()
        return {one.content: one.trust for one in app.memory.list(scopes=[app.where.project], limit=1000)}

    def waiting(self):
        """What waits for review: the words of each held record, with those that it would replace."""
        from commonplace.model.queries import State  # noqa: PLC0415 - a name for one use

        app = self._app or self.open()
        held = app.memory.list(states=[State.HELD], limit=1000)
        return {one.content: [app.memory.get(parent).content for parent in one.source.parents] for one in held}

    def start(self):
        """Make the project: a repository with settings and one commit."""
        self.folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        (self.folder / ".commonplace").mkdir()
        (self.folder / ".commonplace" / "config.yaml").write_text("project: github.com/acme/shop\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "the project")
        return self

    def clone(self, url, *options):
        """Clone the project."""
        self.git("clone", "-q", *options, url, self.folder, at=self.root)
        return self


@pytest.fixture
def machine(tmp_path, clock):
    """Make machines; what was opened on them is closed."""
    made = []

    def machine(name, email=None):
        made.append(Machine(tmp_path / name, email or f"{name}@example.com", clock))
        return made[-1]

    yield machine
    for one in made:
        one.close()


@pytest.fixture
def server(tmp_path):
    """A place to push to."""
    path = tmp_path / "server.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    return path


@pytest.fixture
def ada(machine, server):
    """Ada has the project, trusts it, and has pushed it."""
    ada = machine("ada").start()
    ada.git("remote", "add", "origin", server)
    ada.git("push", "-q", "-u", "origin", "main")
    ada.git("remote", "set-head", "origin", "main")
    ada.trust()
    return ada


@pytest.fixture
def bob(machine, server, ada):  # noqa: ARG001 - she has pushed
    """Bob has a clone of Ada's project, and trusts the folder."""
    bob = machine("bob").clone(server)
    bob.trust()
    return bob


USER, EXTERNAL = Trust.USER, Trust.EXTERNAL

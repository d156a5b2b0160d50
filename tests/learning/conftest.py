"""A project with its Markdown, a home of its own, and a person who edits files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.config.learning import Learning
from commonplace.learning import open_workspace
from commonplace.learning.extract import extract_sessions
from commonplace.records.index import index
from stands import agree

sys.path.insert(0, os.path.dirname(__file__))  # so that tests find ``learners`` by name


class MemoryAccess:
    """Where a person works: folders with a .commonplace/, one data folder, and whatever was opened there."""

    def __init__(self, root, clock):
        self.root = root
        self.clock = clock
        self._opened = []

    def folder(self, name="shop", project="github.com/acme/shop"):
        """Make a project's folder; two with one identity are two clones of it."""
        made = self.root / name / ".commonplace"
        made.mkdir(parents=True)
        (made / "config.yaml").write_text(f"project: {project}\n")
        agree(self.root / name, self.root / "home")
        return made

    @property
    def env(self):
        """What a process knows that works here."""
        return {"COMMONPLACE_HOME": str(self.root / "home"), "USER": "ada", "HOME": str(self.root / "ada")}

    def open(self, name="shop", **options):
        """Open what is at a folder; it is closed when the test ends."""
        opened = open_app(str(self.root / name), env=self.env, **{"clock": self.clock} | options)
        self._opened.append(opened)
        return opened

    def close(self):
        """Close everything."""
        while self._opened:
            self._opened.pop().close()


@pytest.fixture
def desk(tmp_path, clock):
    """A desk with one project's folder on it."""
    made = MemoryAccess(tmp_path, clock)
    made.folder()
    yield made
    made.close()


@pytest.fixture
def opened(desk):
    """The project, opened."""
    return desk.open()


@pytest.fixture
def folder(desk):
    """The project's folder of Markdown."""
    return desk.root / "shop" / ".commonplace"


@pytest.fixture
def sync(opened, clock):
    """Bring the project's files and records together, a second later."""

    def sync(**options):
        clock.forward()
        return opened.folders.sync(opened.where.project, **options)

    return sync


@pytest.fixture
def kept(opened):
    """Remember something and say where its file is."""

    def kept(content="Use pnpm, not npm", *, category="decisions", **options):
        record = opened.memory.remember(content, category=category, **options).record
        opened.store.settle()
        return record, Path(opened.store.references([record])[record.id])

    return kept


@pytest.fixture
def add_line(edit):
    """Write a line at the top of a file's frontmatter, as a person does."""
    return lambda path, line: edit(path, "\nid: ", f"\n{line}\nid: ")


@pytest.fixture
def edit():
    """Change a file as a person does: some words for others, at a later time than before."""

    def edit(path, old, new):
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")
        later = path.stat().st_mtime_ns + 1_000_000
        os.utime(path, ns=(later, later))

    return edit


@pytest.fixture
def tree(folder):
    """Every file of the folder but its settings, by its path, with its text."""

    def tree():
        found = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "config.yaml")
        return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found}

    return tree


@pytest.fixture
def place(opened):
    """The project, ready to learn: by rules, from sessions of whatever age."""
    return open_workspace(opened).replace(learning=Learning(enabled=True, min_rollout_idle_hours=0))


@pytest.fixture
def indexed(place, tmp_path):
    """Index a session of that name with this text."""

    def indexed(name, text, place=place):
        path = tmp_path / "sessions" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return index(place, [str(path)])

    return indexed


@pytest.fixture
def learn(place, indexed, clock):
    """Index a session and extract from it, a second later; returns the report."""

    def learn(name, text, place=place, **options):
        indexed(name, text, place)
        clock.forward()
        return extract_sessions(place, **options)

    return learn

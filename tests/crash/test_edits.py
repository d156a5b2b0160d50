"""Files that people save while syncs and agents write them: no edit is lost."""

from __future__ import annotations

import pytest

from commonplace.app import open_app
from faults.edits import edits_against_writers
from stands import Clock, agree


@pytest.mark.parametrize("portable", [False, True])
@pytest.mark.parametrize("tries", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_edits_survive_syncs_and_agents(tmp_path, portable, tries):
    """With the exchange of two files, and where the system has none."""
    result = edits_against_writers(tmp_path, tries, portable=portable)
    assert result.violations == []
    assert result.tries == tries


class Person:
    """Does something in the middle of a sync: when it has read the files and reports how far it is."""

    def __init__(self, act):
        self.act = act

    def __call__(self, *_):
        act, self.act = self.act, None
        if act:
            act()


@pytest.fixture
def shop(tmp_path):
    """A project with one decision, and its file."""
    (tmp_path / "shop" / ".commonplace").mkdir(parents=True)
    (tmp_path / "shop" / ".commonplace" / "config.yaml").write_text("project: github.com/acme/shop\n")
    agree(tmp_path / "shop", tmp_path / "home")
    env = {"COMMONPLACE_HOME": str(tmp_path / "home"), "USER": "ada", "HOME": str(tmp_path)}
    with open_app(str(tmp_path / "shop"), env=env, clock=Clock()) as app:
        record = app.memory.remember("Use pnpm", category="decisions").record
        app.store.settle()
        [file] = (tmp_path / "shop" / ".commonplace" / "decisions").iterdir()
        yield app, record, file


def first_edit(shop, then):
    """Change the decision to yarn, and let a person do something to its file while that is synced."""
    app, record, file = shop
    file.write_text(file.read_text().replace("pnpm", "yarn"))
    app.folders.sync(app.where.project, progress=Person(lambda: file.write_text(then(file.read_text()))))
    return [version.content for version in reversed(app.memory.history(record.id))]


def test_a_second_save_during_a_sync_is_the_next_version(shop):
    """The first one is kept as well: it was read."""
    assert first_edit(shop, lambda text: text.replace("yarn", "bun")) == ["Use pnpm", "Use yarn", "Use bun"]
    assert "Use bun" in shop[2].read_text()


def test_an_edit_that_is_taken_back_during_a_sync_is_taken_back(shop):
    """The file then says what the record was before the sync, and that is no reason to write over it."""
    assert first_edit(shop, lambda text: text.replace("yarn", "pnpm"))[:2] == ["Use pnpm", "Use yarn"]
    assert shop[0].memory.get(shop[1].id).content == "Use pnpm"
    assert "Use pnpm" in shop[2].read_text()


def test_a_file_that_is_written_anew_during_a_sync_archives_nothing(shop):
    """Some editors remove a file before they write it."""
    app, record, file = shop
    text = file.read_text()
    file.unlink()
    report = app.folders.sync(app.where.project, progress=Person(lambda: file.write_text(text)))
    assert report.archived == ()
    assert app.memory.get(record.id).archived_at is None

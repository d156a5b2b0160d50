"""One execution of an agent: recall before it; index, then extract, after it."""

from __future__ import annotations

import os

import pytest

from commonplace.app import open_app
from commonplace.cli.main import run
from commonplace.learning.execution import Execution
from commonplace.model.queries import DocumentFilter
from stands import agree

CONVENTION = "We use pnpm, not npm, in this repo."


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project in which learning is on."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USER", "ada")
    monkeypatch.chdir(tmp_path)
    assert run(["init"]) == 0
    config = tmp_path / ".commonplace" / "config.yaml"
    config.write_text(config.read_text().replace("  enabled: false", "  enabled: true"))
    agree(tmp_path)
    return tmp_path


def executed(task, *said, **options):
    """Execute a task in which the user says this; returns the execution."""
    with open_app() as place:
        with Execution(place, task, **options) as execution:
            for text in said:
                execution.say("user", text)
                execution.say("assistant", "Done.")
        return execution


def sessions():
    """The sessions that were taken in, by name."""
    with open_app() as place:
        where = DocumentFilter(scopes=frozenset({place.where.project}), kinds=frozenset({"session"}))
        return [document.name for document in place.store.documents(where, limit=9)]


@pytest.mark.usefixtures("project")
def test_the_next_execution_starts_with_what_the_last_one_learned():
    """R01: three pipelines run by themselves; nobody selects anything."""
    first = executed("set up the lint step", CONVENTION, session="s1")
    assert (first.brief, len(first.records)) == ("", 1)

    second = executed("install the packages with npm", session="s2")
    assert CONVENTION in second.brief
    assert sessions() == ["s1"]  # nothing was said in the second


@pytest.mark.usefixtures("project")
def test_an_execution_that_fails_is_indexed_and_not_learned_from():
    """Its own error is its own; what was said can be found all the same."""
    begun = []

    def fail(place):
        with Execution(place, "divide", session="s1") as execution:
            begun.append(execution)
            execution.say("user", CONVENTION)
            raise ZeroDivisionError

    with open_app() as place, pytest.raises(ZeroDivisionError):
        fail(place)
    assert (sessions(), begun[0].records) == (["s1"], ())


def test_learning_that_is_off_takes_the_session_in_only(project):
    """It is off by default."""
    config = project / ".commonplace" / "config.yaml"
    config.write_text(config.read_text().replace("  enabled: true", "  enabled: false", 1))
    agree(project)

    assert executed("lint", CONVENTION, session="s1").records == ()
    assert sessions() == ["s1"]


@pytest.mark.usefixtures("project")
def test_memory_that_fails_ends_no_execution():
    """The trouble is told."""
    with open_app() as place:
        place.memory.remember(CONVENTION, category="decisions")
        with Execution(place, "pnpm", budget=1) as execution:
            execution.say("user", "\ud800 is not valid Unicode")
        recalled, taken = execution.notes

    assert recalled.startswith("nothing was recalled: ")
    assert taken.startswith("the session was not indexed: ")


@pytest.mark.usefixtures("project")
def test_a_secret_in_an_execution_is_told():
    """It is taken out before anything is kept."""
    execution = executed("deploy", "the password is hunter2-Tr0ub4dor", session="s1")

    assert any("was removed from the session" in note for note in execution.notes)

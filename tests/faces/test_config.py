"""``commonplace config``: read, change and edit settings without opening or spoiling the file."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFIG = Path(".commonplace/config.yaml")


@pytest.fixture
def project(outside):
    """A project of a person who types commands."""
    outside.ok("init")
    return outside


def test_learning_is_switched_on_by_one_command_and_takes_effect(project):
    """No editor, no second yes; comments stay and the change is read back."""
    before = CONFIG.read_text()
    assert "memories.enabled is true" in project.ok("config", "set", "memories.enabled", "true").out
    assert project.ok("config", "get", "memories.enabled").out == "true\n"
    assert "No session waits" in project.ok("learn").out
    after = CONFIG.read_text()
    assert before.count("#") == after.count("#")
    assert len(before.splitlines()) == len(after.splitlines())


def test_a_setting_is_looked_for_in_the_project_then_in_ones_own(project):
    """And --scope says which, where both have it."""
    project.ok("config", "set", "embedder", "none")
    project.ok("config", "set", "enabled", "false", "--scope", "assistant")
    assert project.ok("config", "get", "enabled").out == "true\n"
    assert project.ok("config", "get", "enabled", "--scope", "assistant").out == "false\n"
    shown = project.ok("config", "get", "--json").json
    assert (shown["assistant"]["embedder"], shown["project"]["memories.mode"]) == ("none", "rules")


def test_unset_goes_back_to_the_default(project):
    """The line stays, without a value."""
    project.ok("config", "set", "recall_limit", "3")
    assert "recall_limit is 10" in project.ok("config", "unset", "recall_limit").out
    assert "\nrecall_limit:\n" in CONFIG.read_text()


WRONG = {
    ("memories.mod", "model"): "did you mean 'memories.mode'?",
    ("memories.mode", "models"): "should be one of rules, model, host, not 'models'",
    ("recall_limit", "0"): "recall_limit should be between 1 and 1000, not 0",
    ("xyzzy", "1"): "`commonplace config get` lists",
}


@pytest.mark.parametrize(("given", "reason"), WRONG.items())
def test_what_is_wrong_is_said_and_nothing_is_changed(project, given, reason):
    """The sentence names the setting and the way out."""
    before = CONFIG.read_text()
    done = project("config", "set", *given)
    assert done.code != 0
    assert reason in done.err
    assert CONFIG.read_text() == before


def test_outside_of_a_project_its_settings_are_refused_with_the_way_out(outside):
    """One's own can be changed anywhere, also before there is a file."""
    assert "`commonplace init` makes one here" in outside("config", "set", "memories.enabled", "true").err
    assert "embedder is none" in outside.ok("config", "set", "embedder", "none").out


def test_an_agent_changes_no_settings(project):
    """What an agent may do is decided by them."""
    project.env(CLAUDECODE="1")
    done = project("config", "set", "memories.mode", "model")
    assert "changes settings, which only a person may do" in done.err
    assert project.ok("config", "get", "memories.mode").out == "rules\n"


def test_settings_that_came_by_a_pull_are_not_agreed_to_by_a_change(project):
    """The change that waits is looked at first."""
    CONFIG.write_text(CONFIG.read_text().replace("personal_data: allow", "personal_data: mask"))
    assert "run `commonplace trust` first" in project("config", "set", "recall_limit", "3").err


def test_the_editor_saves_only_what_is_right(project):
    """A mistake is named with its place, and the file stays as it was."""
    before = CONFIG.read_text()
    project.env(EDITOR="sed -i s/recall_limit/recal_limit/")
    assert "recal_limit: unknown setting" in project("config", "edit").err
    assert CONFIG.read_text() == before
    project.env(EDITOR="sed -i 's/^recall_limit: 10/recall_limit: 7/'")
    assert "Saved" in project.ok("config", "edit").out
    assert project.ok("config", "get", "recall_limit").out == "7\n"

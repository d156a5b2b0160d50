"""Changing one setting in a file that a person has laid out: everything else stays, or nothing is changed."""

# ruff: noqa: E501 - a file and what becomes of it are read against each other

from __future__ import annotations

import pytest

from commonplace.config.editing import value_of, with_value
from commonplace.config.settings import MEMORIES, PROJECT, parse, template
from commonplace.model.errors import ConfigError, InvalidInput

NEW = template(PROJECT, {"project": "x"}, title="Settings.")


def changed(text, name, value):
    """The text with one setting changed."""
    return with_value(text, name, value, file="config.yaml")


def test_a_new_file_changes_in_one_line_and_keeps_its_comments():
    """The comment behind the value stays in its column."""
    after = changed(NEW, "memories.enabled", True)
    pairs = [(old, new) for old, new in zip(NEW.split("\n"), after.split("\n"), strict=True) if old != new]
    assert pairs == [
        ("  enabled: false                     # turns learning on", "  enabled: true                      # turns learning on")
    ]  # fmt: skip
    assert changed(after, "memories.enabled", False) == NEW


LAYOUTS = {
    "nothing": ("", "memories.mode", "model", "memories:\n  mode: model\n"),
    "a value in quotes": ('project: "a # b" # mine\n', "project", "c", "project: c       # mine\n"),
    "a key in quotes": ('"recall_limit": 3\n', "recall_limit", 4, "recall_limit: 4\n"),
    "another indent": ("memories:\n    mode: host\n", "memories.enabled", True, "memories:\n    mode: host\n    enabled: true\n"),
    "a block without lines": ("memories:\nenabled: true\n", "memories.mode", "model", "memories:\n  mode: model\nenabled: true\n"),
    "the same name above": ("enabled: true\nmemories:\n  enabled: false\n", "memories.enabled", True, "enabled: true\nmemories:\n  enabled: true\n"),
    "the same name below": ("memories:\n  enabled: false\nenabled: true\n", "enabled", False, "memories:\n  enabled: false\nenabled: false\n"),
    "line ends of Windows": ("recall_limit: 3\r\nenabled: true\r\n", "recall_limit", 4, "recall_limit: 4\r\nenabled: true\r\n"),
    "back to the default": ("recall_limit: 3 # few\n", "recall_limit", None, "recall_limit:   # few\n"),
    "no line end": ("enabled: true", "recall_limit", 4, "enabled: true\n\nrecall_limit: 4\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "name", "value", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_a_setting_is_changed_where_it_is(before, name, value, after):
    """Whatever the layout, the file says the new value and all that it said before."""
    made = changed(before, name, value)
    assert made.replace('"recall_limit"', "recall_limit") == after
    assert parse(made, "x")


@pytest.mark.parametrize(
    "text", ["memories: {enabled: false}\n", "project: |\n  two\n  lines\nmemories: {}\n", "a: [1\n"]
)
def test_what_cannot_be_changed_line_by_line_is_left_alone(text):
    """The error names the file and the way out; no half-changed file is returned."""
    with pytest.raises(ConfigError, match=r"config\.yaml"):
        changed(text, "memories.enabled", True)


def test_a_value_is_checked_as_the_file_would_be():
    """With the name, what is wrong and what would be right."""
    mode = next(one for one in MEMORIES.settings if one.name == "mode")
    hours = next(one for one in MEMORIES.settings if one.name == "minRolloutIdleHours")
    assert value_of("model", mode, "memories.mode") == "model"
    assert value_of("3", hours, "memories.minRolloutIdleHours") == 3
    assert value_of("", mode, "memories.mode") is None
    with pytest.raises(InvalidInput, match=r"memories\.mode should be one of rules, model, host, not 'x'"):
        value_of("x", mode, "memories.mode")
    with pytest.raises(InvalidInput, match="should be a whole number, not 'many'"):
        value_of("many", hours, "memories.minRolloutIdleHours")

"""Nothing is offered that the reference does not tell."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

import commonplace
from commonplace.config import settings
from commonplace.engine.memory import Memory
from stands import rows

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


@rows("setting", [*settings.PROJECT, *settings.USER])
def test_every_setting_is_documented(setting):
    """Each key of both settings files has its line."""
    assert f"`{setting.name}`" in page("settings")


@rows("verb", [name for name in vars(Memory) if not name.startswith("_")])
def test_every_verb_is_documented(verb):
    """Each verb of Memory has its line."""
    assert f"`{verb}" in page("python")


@rows("name", [name for name in commonplace.__all__ if not name.startswith("_")])
def test_every_public_name_is_documented(name):
    """Each public name is explained."""
    assert f"`{name}" in page("python")


def commands():
    """Every command with its options, as they are typed."""
    root = importlib.import_module("commonplace.cli.commands").root
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        inner = command.commands.items() if isinstance(command, click.Group) else [("", command)]
        for part, leaf in inner:
            options = [option for param in leaf.params for option in param.opts if option.startswith("--")]
            yield f"commonplace {name} {part}".strip(), options


@rows("command, options", list(commands()))
def test_every_command_and_option_is_documented(command, options):
    """Each command has its part in the reference, and each option its line there."""
    _, found, rest = page("command").partition(f"### `{command}")
    part = rest.partition("\n### ")[0]
    assert found
    assert [option for option in options if option not in part] == []

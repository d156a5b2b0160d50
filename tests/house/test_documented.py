"""Nothing is offered that the reference does not tell."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

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


def test_the_reference_of_commands_is_their_help():
    """Each command has its part there and each option its line; `scripts/command-reference` writes the page anew."""
    script = run_path(str(REFERENCE.parents[1] / "scripts" / "command-reference"))
    assert page("command") == script["page"]()

"""The attacks of ``bench/clone_safe.py`` that matter most, as tests: each with real Git, processes and a listener."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from clone_machine import Machine, attempt
from clone_safe import CHECKS

ATTACKS = (
    "project-identity",
    "models-api-key-env",
    "record-trust",
    "prompts-read-path",
    "artifacts",
    "link-folder",
    "branch-config",
    "nested",
    "archive-gitdir",
    "git-commands",
    "git-odd-files",
    "replaced-clone",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_repository_achieves_nothing(name):
    """Nothing shown, changed, sent or run; the reason names what was."""
    [check] = [one for one in CHECKS if one.name == name]
    machine = Machine()
    try:
        assert attempt(check, machine) == ""
    finally:
        machine.close()

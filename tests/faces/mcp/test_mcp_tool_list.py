"""The list of tools is derived once and stored beside the byte code, as long as no code has changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from commonplace.mcp import tool_list_cache
from commonplace.mcp.protocol import handle
from commonplace.mcp.tool_list_cache import load_or_derive
from commonplace.records import records_surface

TOOLS = [{"name": "recall"}]
LISTED = """
import json, sys
from commonplace.mcp.protocol import handle
from commonplace.records.surface import records_surface
tools = handle(records_surface(), "tools/list", {})["tools"]
print(json.dumps([tools, "commonplace.wire" in sys.modules]))
"""


@pytest.fixture(autouse=True)
def _writes_byte_code(monkeypatch):
    """As Python does unless it is told not to."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def never():
    """A derivation that must not be needed."""
    raise AssertionError


def test_what_was_derived_once_is_read_from_then_on(tmp_path):
    """The second process derives nothing."""
    path = str(tmp_path / "tools.json")
    assert load_or_derive(path, lambda: TOOLS) == TOOLS
    assert load_or_derive(path, never) == TOOLS
    assert [file.name for file in tmp_path.iterdir()] == ["tools.json"]


def test_changed_code_is_derived_from_again(tmp_path, monkeypatch):
    """A module that is newer, or another version, makes what is stored worthless."""
    path = tmp_path / "tools.json"
    load_or_derive(str(path), list)
    stored = json.loads(path.read_text())
    file = next(iter(stored["modules"]))
    stored["modules"][file][0] -= 1
    path.write_text(json.dumps(stored))
    assert load_or_derive(str(path), lambda: TOOLS) == TOOLS
    assert load_or_derive(str(path), never) == TOOLS
    monkeypatch.setattr(tool_list_cache, "VERSION", "another")
    assert load_or_derive(str(path), list) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "5", '{"version": 1}', '{"modules": 3}', "\ufeff"])
def test_a_damaged_file_is_replaced(tmp_path, content):
    """Whatever lies there, the tools are right."""
    path = tmp_path / "tools.json"
    path.write_text(content)
    assert load_or_derive(str(path), lambda: TOOLS) == TOOLS
    assert load_or_derive(str(path), never) == TOOLS


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path):
    """An installation that belongs to somebody else derives the list each time."""
    path = str(tmp_path / "missing" / "tools.json")
    assert [load_or_derive(path, lambda: TOOLS) for _ in range(2)] == [TOOLS, TOOLS]


def test_who_wants_no_byte_code_gets_no_list_either(tmp_path, monkeypatch):
    """PYTHONDONTWRITEBYTECODE is respected."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert load_or_derive(str(tmp_path / "tools.json"), lambda: TOOLS) == TOOLS
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_starts_again_lists_the_same_tools_without_deriving_them(tmp_path):
    """The second process does not even load what the schemas are made with."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    command = [sys.executable, "-c", LISTED]
    (first, derived), (second, again) = (
        json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout) for _ in range(2)
    )
    assert (derived, again) == (True, False)
    assert first == second == handle(records_surface().replace(tool_list=None), "tools/list", {})["tools"]

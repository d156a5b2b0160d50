"""Autonomous memory, phase 1, in the words of its document: which sessions are processed, and with which settings.

Consolidation, injection and reading have their own files.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.cli.main import run
from stands import agree, scripts_of_the_user


class Machine:
    """A project on a machine; the command is called in this process."""

    def __init__(self, root, capsys, monkeypatch):
        self.root, self.capsys = root, capsys
        self.config = root / "shop" / ".commonplace" / "config.yaml"
        for name, value in {"COMMONPLACE_HOME": str(root / "home"), "USER": "ada", "HOME": str(root)}.items():
            monkeypatch.setenv(name, value)
        scripts_of_the_user(root / "home")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        (root / "shop").mkdir()
        monkeypatch.chdir(root / "shop")
        self("init")
        self.settings("")

    def __call__(self, *arguments, code=0):
        """Run the command; returns what it says."""
        self.capsys.readouterr()
        returned = run([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        assert returned == code, (returned, out, err)
        return err if code else out

    def settings(self, text):
        """Paste YAML into the configuration."""
        self.config.write_text(f"project: github.com/acme/shop\n{text}")
        agree(self.root / "shop")

    def session(self, name, *texts, hours=24.0):
        """A session that ended so many hours ago."""
        moment = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
        said = [{"role": "user", "content": text, "time": moment} for text in texts]
        path = self.root / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(one)}\n" for one in said))
        self("index", path)
        return path

    def extract(self, *options):
        """Run phase 1; returns the report."""
        return json.loads(self("extract", "--json", *options))


@pytest.fixture
def machine(tmp_path, capsys, monkeypatch):
    """A machine with a project."""
    return Machine(tmp_path, capsys, monkeypatch)


ON = "memories:\n  enabled: true\n"
PNPM = "Use pnpm, not npm, in this repo."


def test_disabled_by_default_enable_via_config(machine):
    """Disabled by default; memories.enabled: true in the configuration is the one master switch."""
    machine.session("a", PNPM)
    assert "switched off" in machine("extract", code=4)
    machine.settings(ON)
    assert len(machine.extract()["records"]) == 1


def test_sessions_too_recent_too_old_or_active_are_skipped(machine):
    """Sessions that are too recent, too old, or currently active are skipped."""
    machine.settings(ON)
    for name, hours in {"recent": 11, "old": 31 * 24, "active": 24, "past": 24}.items():
        machine.session(name, PNPM, hours=hours)
    report = machine.extract("--exclude", "active")

    assert [taken["session"] for taken in report["done"]] == ["past"]
    assert {left["session"] for left in report["skipped"]} == {"recent", "old", "active"}


def test_the_documented_settings_decide(machine):
    """maxRolloutAgeDays, minRolloutIdleHours and maxRolloutsPerStartup."""
    machine.settings(f"{ON}  maxRolloutAgeDays: 2\n  minRolloutIdleHours: 1\n  maxRolloutsPerStartup: 1\n")
    for name, hours in {"a": 72, "b": 0.5, "c": 2, "d": 3}.items():
        machine.session(name, PNPM, hours=hours)
    first, second = machine.extract(), machine.extract()

    assert [taken["session"] for taken in first["done"] + second["done"]] == ["c", "d"]
    assert {left["reason"] for left in second["skipped"]} == {
        "older than 2 days", "active in the last 1 hours", "up to date",
    }  # fmt: skip


def test_each_session_that_has_changed_since_it_was_last_processed(machine):
    """A session is processed again when it changes, and not before."""
    machine.settings(ON)
    machine.session("a", PNPM)
    assert len(machine.extract()["done"]) == 1
    assert machine.extract()["done"] == []
    machine.session("a", PNPM, "Never commit directly to main.")
    assert len(machine.extract()["records"]) == 1


def test_unknown_settings_are_refused_with_file_and_path(machine):
    """A misspelt name is an error, not a default: nobody can agree to it."""
    machine.config.write_text("project: github.com/acme/shop\nmemories:\n  enabeld: true\n")

    assert "config.yaml: memories.enabeld: unknown setting" in machine("trust", "--yes", code=5)


def test_prompts_can_be_replaced_by_the_user(machine):
    """Extraction is driven by static prompt files, which a project can override."""
    machine.settings(ON)
    machine.session("a", PNPM)
    prompts = machine.config.parent / "prompts"
    prompts.mkdir()
    (prompts / "stage_one_system.md").write_text("Write down what the gardener said.")
    agree(machine.root / "shop")
    machine("extract", "--prepare", "todo")
    [prompt] = (machine.root / "shop" / "todo").glob("a-*/prompt.md")

    assert prompt.read_text().startswith("Write down what the gardener said.")
    assert PNPM in prompt.read_text()

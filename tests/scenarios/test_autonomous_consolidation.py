"""Autonomous memory, phase two, in the words of its document and of the checklist made from it."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from commonplace.cli.main import run
from commonplace.config.learning import Models
from stands import agree

sys.path.insert(0, str(Path(__file__).parents[1]))
from stands import scripts_of_the_user
from workshop import Scripted, Shop, reply

FOLDER = Path(".commonplace")


@pytest.fixture
def commonplace(tmp_path, capsys, monkeypatch):
    """The command in a project whose settings are those that the document shows."""
    monkeypatch.setenv("COMMONPLACE_HOME", str(tmp_path / "home"))
    scripts_of_the_user(tmp_path / "home")
    monkeypatch.setenv("USER", "ada")
    (tmp_path / "shop" / ".commonplace").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")

    def commonplace(*arguments, code=0):
        capsys.readouterr()
        assert run([str(argument) for argument in arguments]) == code
        return "".join(capsys.readouterr())

    return commonplace


def settle(text):
    """Write the project's settings."""
    (FOLDER / "config.yaml").write_text(f"project: acme/shop\n{text}", encoding="utf-8")
    agree(FOLDER.parent)


def sessions(commonplace, **said):
    """Index sessions of yesterday in which a user says this."""
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for name, text in said.items():
        line = {"role": "user", "content": text, "time": yesterday}
        Path(f"{name}.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
        commonplace("index", f"{name}.jsonl")


def test_disabled_by_default_and_enabled_by_one_switch(commonplace):
    """`memories: enabled: true` is all that the document asks for."""
    settle("")
    sessions(commonplace, s1="We use pnpm in this repository, not npm.")
    assert "switched off" in commonplace("learn")
    assert not (FOLDER / "MEMORY.md").exists()

    settle("memories:\n  enabled: true\n")
    assert "extracted 1 record from 1 session" in commonplace("learn").lower()
    assert "pnpm" in (FOLDER / "MEMORY.md").read_text(encoding="utf-8")


def test_phase_2_writes_the_three_outputs(commonplace):
    """MEMORY.md, memory_summary.md, and skills, each in its own subdirectory; read by memory:// URLs."""
    settle("memories:\n  enabled: true\n")
    commonplace("record", "add", "Deploy: 1. build 2. push 3. watch", "--category", "procedures")
    sessions(commonplace, s1="We use pnpm in this repository, not npm.")
    commonplace("learn")

    assert "pnpm" in commonplace("read", "memory://root")
    assert "# Memory\n" in commonplace("read", "memory://root/MEMORY.md")
    assert "name: deploy" in commonplace("read", "memory://root/skills/deploy/SKILL.md")


def test_clear_and_reset_delete_all_memory_data_and_generated_artifacts(commonplace):
    """Of this project; another one keeps its own."""
    settle("memories:\n  enabled: true\n")
    sessions(commonplace, s1="We use pnpm in this repository, not npm.")
    commonplace("learn")
    assert "Memory data cleared and system prompt refreshed." in commonplace("memory", "clear", "--yes")
    assert "not found" in commonplace("read", "memory://root/MEMORY.md", code=1)
    assert "Memory payload is empty" in commonplace("memory", "view")


def test_phase_2_only_when_dirty(tmp_path, clock):
    """By watermark: a second start skips, a changed session does not."""
    shop = Shop(tmp_path, clock)
    shop.extracted("s1", "raw")
    assert shop.run().status == "consolidated"
    assert shop.run().reason == "up to date"
    shop.extracted("s1", "raw, grown")
    assert shop.run().status == "consolidated"
    shop.store.close()


def test_earlier_knowledge_does_not_vanish_with_its_session(tmp_path, clock):
    """MEMORY.md is an input: what an old session taught stays when only new ones are read."""
    shop = Shop(tmp_path, clock, max_raw_memories_for_global=3)
    for number in range(9):
        record = shop.keep(f"Lesson number {number} was learned")
        shop.extracted(f"s{number}", f"raw {number}", records=[record.id])
        shop.run()
    assert all(f"Lesson number {number} was learned" in shop.text() for number in range(9))
    assert len([name for name in shop.files if name.startswith("rollout_summaries/")]) == 3
    shop.store.close()


def test_stale_skill_directories_from_prior_runs_are_pruned_automatically(tmp_path, clock):
    """With their scripts; what the reply does not have is removed."""
    ship = {"name": "ship", "content": "Do it.", "scripts": [{"path": "go.sh", "content": "echo"}]}
    brew = {"name": "brew", "content": "Boil it."}
    shop = Shop(tmp_path, clock, model=Scripted(reply("- x", skills=[ship]), reply("- x", skills=[brew])))
    shop.keep("Ship: Do it. Run echo")
    shop.keep("Brew: Boil it.")
    shop.run()
    assert (shop.folder / "skills/ship/scripts/go.sh").exists()
    shop.run(force=True)
    assert [path.name for path in (shop.folder / "skills").iterdir()] == ["brew"]
    shop.store.close()


def test_all_output_is_scanned_for_secrets_before_being_written_to_disk(tmp_path, clock):
    """Also slugs, intermediate files and receipts."""
    secret = "AKIA" + "QYLPMN5HHHFPZAM2"
    shop = Shop(tmp_path, clock)
    shop.extracted("s1", f"the key is {secret}", summary=f"about {secret}", slug=secret)
    shop.run()
    assert secret.lower() not in repr((shop.files, shop.artifacts)).lower()
    shop.store.close()


def test_if_smol_is_not_configured_phase_2_falls_back_to_the_default_role():
    """The role of the document, resolved by the settings."""
    assert Models(default="openai:a").of("smol") == "openai:a"
    assert Models(default="openai:a", smol="openai:b").of("smol") == "openai:b"


def test_the_prompt_is_a_static_file_that_the_user_can_replace(commonplace):
    """`prompts/consolidation.md` of the project comes before ours."""
    settle("memories:\n  enabled: true\n  mode: host\n")
    commonplace("record", "add", "Use pnpm, not npm", "--category", "decisions")
    (FOLDER / "prompts").mkdir()
    (FOLDER / "prompts" / "consolidation.md").write_text("Our own words.\n\n---\n\n{{memory_md}}\n", encoding="utf-8")
    agree(FOLDER.parent)
    commonplace("consolidate", "--prepare", "work")
    assert Path("work/consolidate-1.md").read_text(encoding="utf-8").startswith("Our own words.")

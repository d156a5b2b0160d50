"""The blocks ``memories`` and ``models`` as values."""

from __future__ import annotations

import pytest

from commonplace.config import settings
from commonplace.config.learning import Learning, Models
from commonplace.config.project import context
from stands import agree


@pytest.fixture
def where(tmp_path):
    """Look around in a project with these settings."""

    def where(text):
        (tmp_path / ".commonplace").mkdir(exist_ok=True)
        (tmp_path / ".commonplace" / "config.yaml").write_text(f"project: a\n{text}")
        agree(tmp_path, tmp_path / "home")
        return context(str(tmp_path), {"COMMONPLACE_HOME": str(tmp_path / "home"), "USER": "ada"})

    return where


def test_without_settings_everything_has_its_default(where):
    """The defaults of the file and of the value are the same."""
    assert where("").learning == Learning()
    assert where("").models == Models()


def test_every_field_has_a_name_in_the_file():
    """No field can be left unset by mistake, and none is set by no one."""
    assert len(settings.MEMORIES.settings) == len(Learning.fields)
    assert {setting.name for setting in settings.MODELS.settings} == set(Models.fields)


def test_what_is_said_arrives(where):
    """The documents' names become ours."""
    learning = where("memories:\n  enabled: true\n  stage1Concurrency: 2\n  phase1InputTokenLimit: 900\n").learning

    assert learning == Learning(enabled=True, stage1_concurrency=2, phase1_input_token_limit=900)


def test_the_small_model_falls_back_to_the_default_one(where):
    """If smol is not configured, the default role is used."""
    assert where("models:\n  default: openai:a\n").models.of("smol") == "openai:a"
    assert where("models:\n  default: openai:a\n  smol: openai:b\n").models.of("smol") == "openai:b"
    assert where("models:\n  smol: openai:b\n").models.of("default") is None

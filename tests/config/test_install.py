"""The command that adds an extra is right for how this copy was installed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from commonplace.install import DISTRIBUTION, hint, install_command

ROOT = Path(__file__).parents[2]
ASK = "from commonplace.install import install_command; print(install_command('server'))"


class Installation:
    """A folder that looks to Python as an environment with this package in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.site = folder / "site"
        self.info = self.site / f"{DISTRIBUTION.replace('-', '_')}-0.0.dist-info"
        self.info.mkdir(parents=True)
        (self.info / "METADATA").write_text(f"Name: {DISTRIBUTION}\nVersion: 0.0\n")

    def came_from(self, **origin: object) -> None:
        """Note what the installer was given."""
        (self.info / "direct_url.json").write_text(json.dumps(origin))

    def command(self) -> str:
        """Ask what this installation would say."""
        program = f"import sys; sys.prefix = {str(self.folder)!r}; sys.path.insert(0, {str(self.site)!r}); {ASK}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        return done.stdout.strip()


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path / "environment")


def test_from_the_index_pip_gets_the_name_that_is_ours(installation):
    """Never the plain name, which is somebody else's program."""
    assert installation.command() == "pip install 'commonplace-memory[server]'"


def test_a_clone_is_installed_again_from_its_folder(installation, tmp_path):
    """Editable or not, as it was."""
    clone = tmp_path / "a clone"
    clone.mkdir()
    installation.came_from(url=clone.as_uri(), dir_info={"editable": True})
    assert installation.command() == f"pip install -e '{clone}[server]'"
    installation.came_from(url=clone.as_uri(), dir_info={})
    assert installation.command() == f"pip install '{clone}[server]'"


def test_a_wheel_is_named_by_its_file_and_a_repository_by_its_address(installation, tmp_path):
    """What is gone from the disk comes from the index."""
    wheel = tmp_path / "one.whl"
    wheel.write_bytes(b"")
    installation.came_from(url=wheel.as_uri(), archive_info={})
    assert installation.command() == f"pip install 'commonplace-memory[server] @ {wheel.as_uri()}'"
    wheel.unlink()
    assert installation.command() == "pip install 'commonplace-memory[server]'"
    installation.came_from(url="https://git.example/commonplace.git", vcs_info={"vcs": "git", "commit_id": "0" * 40})
    assert (
        installation.command() == "pip install 'commonplace-memory[server] @ git+https://git.example/commonplace.git'"
    )


def test_tools_of_pipx_and_uv_are_installed_again_by_them(installation):
    """Their environments have no pip of the user's."""
    (installation.folder / "pipx_metadata.json").write_text("{}")
    assert installation.command() == "pipx install --force 'commonplace-memory[server]'"
    (installation.folder / "uv-receipt.toml").write_text("")
    assert installation.command() == "uv tool install --force 'commonplace-memory[server]'"


def test_this_very_environment_can_run_what_the_hint_says():
    """The folder in it is this checkout."""
    said = hint("more is needed", "server")
    assert said == f"more is needed: {install_command('server')}"
    assert shlex.split(install_command("server"))[-1] == f"{ROOT}[server]"


def test_metadata_and_hints_have_one_name():
    """And every extra that a hint names exists."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["name"] == DISTRIBUTION
    sources = [path for path in (ROOT / "src").rglob("*.py") if path.name != "install.py"]
    assert [str(path) for path in sources if "pip install" in path.read_text(encoding="utf-8")] == []

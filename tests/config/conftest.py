"""Folders and repositories to look around from; git is real, and knows nobody's own settings."""

from __future__ import annotations

import os
import subprocess

import pytest

NOBODY = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


@pytest.fixture
def git():
    """Run git in a folder and return what it says."""

    def git(folder, *arguments):
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = ["git", "-C", os.fspath(folder), *arguments]
        return subprocess.run(command, env=env | NOBODY, check=True, capture_output=True, text=True).stdout.strip()

    return git


@pytest.fixture
def repository(tmp_path, git):
    """Make a repository with one commit, and a remote if one is named."""

    def repository(name="app", remote=None):
        folder = tmp_path / name
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        git(folder, "commit", "-q", "--allow-empty", "-m", f"the first commit of {name}")
        if remote:
            git(folder, "remote", "add", "origin", remote)
        return folder

    return repository

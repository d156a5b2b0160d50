"""Pipelines end to end: the real command runs them, and their model is a service here that records what it is asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loopback import LoopbackServer, calls, says
from stands import scripts_of_the_user

COMMAND = str(Path(sys.executable).with_name("commonplace"))
LESSON = "always run go fmt before building"

RELEASE = """\
jobs:
  - name: review
    plan:
      - agent: reviewer
        model: openai:gpt-5
        prompt: |
          Before you start, call recall_memory to reuse prior lessons. When
          you discover a convention or known fix, call save_memory with a
          short description and tags.
        memory:
          enabled: true
        config: {platform: linux, image: alpine}
  - name: build
    plan:
      - agent: builder
        model: openai:gpt-5
        prompt: Build it.
        memory: {enabled: true}
      - agent: reporter
        model: openai:gpt-5
        prompt: Say how it went.
"""


def model(request):
    """A model that recalls first, saves when it recalled nothing, and then says what it knows."""
    messages = request.body["messages"]
    prompt, said = request.prompt, [json.loads(one["content"]) for one in messages if one["role"] == "tool"]
    if "tools" not in request.body:
        return says("All is well.")
    if not said:
        return calls(("recall_memory", {"query": "how do we build?"}))
    lesson = LESSON if prompt.startswith("Before") else "build with make release"
    if len(said) == 1 and not said[0]["memories"]:
        return calls(("save_memory", {"content": lesson, "tags": ["convention"]}))
    known = [one["content"] for one in said[0]["memories"]]
    return says(f"I remembered: {known[0]}" if known else "I learned something.")


@pytest.fixture
def command(tmp_path):
    """Run the real command, with the model at an address."""

    def command(address, *arguments):
        env = os.environ | {"COMMONPLACE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
        scripts_of_the_user(tmp_path / "home")
        env |= {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": "sk-test"}
        done = subprocess.run(
            [COMMAND, "pipeline", *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done

    return command


@pytest.mark.slow
def test_a_second_run_uses_what_the_first_one_saved(tmp_path, command):
    """Two agents with memory and one without, run twice: what the model is sent the second time has the lessons."""
    (tmp_path / "release.yml").write_text(RELEASE)
    with LoopbackServer(answers=model) as server:
        first = command(server.base_url, "run", "release.yml")
        asked = len(server.chats)
        second = command(server.base_url, "run", "release.yml")

    assert first.stdout.splitlines() == ["I learned something.", "I learned something.", "All is well."]
    assert second.stdout.splitlines() == [
        f"I remembered: {LESSON}",
        "I remembered: build with make release",
        "All is well.",
    ]
    assert "commonplace: reviewer called save_memory: saved" in first.stderr
    assert "commonplace: builder called recall_memory: 1 memory" in second.stderr
    results = [one for chat in server.chats[asked:] for one in chat.body["messages"] if one["role"] == "tool"]
    assert [[memory["content"] for memory in json.loads(one["content"])["memories"]] for one in results] == [
        [LESSON],
        ["build with make release"],
    ]
    offered = [[tool["function"]["name"] for tool in chat.body.get("tools", [])] for chat in server.chats[asked:]]
    assert offered == [["recall_memory", "save_memory"]] * 4 + [[]]


@pytest.mark.slow
def test_a_deleted_pipeline_starts_empty(tmp_path, command):
    """Run, delete, run: the second run learns anew; what was learned is shown in between."""
    (tmp_path / "release.yml").write_text(RELEASE)
    with LoopbackServer(answers=model) as server:
        command(server.base_url, "run", "release.yml", "--job", "review")
        shown = command(server.base_url, "memory", "release", "reviewer").stdout
        command(server.base_url, "delete", "release", "--yes")
        again = command(server.base_url, "run", "release.yml", "--job", "review")

    assert re.fullmatch(rf"reviewer: {LESSON} \[convention\] \(\d{{4}}-\d\d-\d\d, not recalled yet\)\n", shown)
    assert again.stdout == "I learned something.\n"

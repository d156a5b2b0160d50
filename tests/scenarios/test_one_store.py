"""One store, every face: what one system keeps is where the others can share it, and nowhere else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.ci.dialect import MemoryBlock
from commonplace.ci.registry import open_registry
from commonplace.intents.client import Client
from commonplace.model.records import Channel
from stands import scripts_of_the_user

COMMAND = str(Path(sys.executable).with_name("commonplace"))
FACT = "The staging database is called harbor-2"


@pytest.fixture
def shop(tmp_path):
    """A project on a machine of its own."""
    folder = tmp_path / "shop"
    folder.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("COMMONPLACE_")}
    scripts_of_the_user(tmp_path / "home")
    env |= {"COMMONPLACE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "USER": "ada"}

    def commonplace(*arguments, stdin=None, start=False):
        options = {"cwd": folder, "env": env, "text": True, "stderr": subprocess.PIPE}
        if start:
            return subprocess.Popen([COMMAND, *arguments], **options)
        done = subprocess.run([COMMAND, *arguments], input=stdin, stdout=subprocess.PIPE, check=False, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    commonplace("init")
    return folder, env, commonplace


def over_mcp(commonplace, tool, **arguments):
    """Call one tool as a host does."""
    offer = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": offer},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": tool, "arguments": arguments}},
    ]
    said = commonplace("mcp", stdin="".join(json.dumps(line) + "\n" for line in lines)).splitlines()
    return next(answer["result"] for line in said if (answer := json.loads(line)).get("id") == 2)


def over_http(commonplace, path, **body):
    """Call one route of a server that is started for it."""
    server = commonplace("serve", "--no-keys", "--port", "0", start=True)
    try:
        found = re.search(r"serving (\S+)", server.stderr.readline())
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(found[1] + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_a_record_of_one_face_is_found_through_all_of_them(shop):
    """The command keeps it; the library, MCP and HTTP find it, and what MCP keeps the command finds."""
    folder, env, commonplace = shop
    commonplace("record", "add", FACT, "--category", "decisions")

    with open_app(str(folder), env=env, channel=Channel.AGENT) as place:
        assert place.recall("name of the staging database").recall.hits[0].text == FACT
    assert FACT in json.dumps(over_mcp(commonplace, "recall", query="staging database name"))
    assert (
        over_http(commonplace, "/v1/records/recall", query="staging database name")["hits"][0]["record"]["content"]
        == FACT
    )

    over_mcp(commonplace, "remember", content="Deploys happen on Mondays", category="procedures")
    assert "Deploys happen on Mondays" in commonplace("recall", "when do we deploy?")


def test_systems_that_share_a_store_see_nothing_of_each_other(shop):
    """A record, a pipeline's memory and an agent's entry lie in one file, and each is found only in its own system."""
    folder, env, commonplace = shop
    commonplace("record", "add", "The lighthouse of the project is red", "--category", "decisions")
    with open_registry(env=env) as pipelines:
        pipelines.register("release")
        memory = pipelines.memory("release", "reviewer", MemoryBlock(enabled=True))
        memory.remember("The lighthouse of the pipeline is green")
    with open_app(str(folder), env=env) as place:
        database = place.where.database
    with Client(database) as client:
        value = {"said": "The lighthouse of the agent is blue"}
        client.memory.store(agent_id="keeper", key="lighthouse", value=value, tier="episodic")
        found = client.memory.recall(agent_id="keeper", query="lighthouse")
        assert [entry.value for entry in found] == [value]
        assert client.memory.recall(agent_id="another", query="lighthouse") == []

    shown = commonplace("recall", "lighthouse")
    assert "red" in shown
    assert not {"green", "blue"} & set(re.findall(r"\w+", shown))
    with open_registry(env=env) as pipelines:
        memory = pipelines.memory("release", "reviewer", MemoryBlock(enabled=True))
        assert [hit.text for hit in memory.recall("lighthouse")] == ["The lighthouse of the pipeline is green"]
        other = pipelines.memory("release", "writer", MemoryBlock(enabled=True))
        assert list(other.recall("lighthouse")) == []
    assert list(Path(env["COMMONPLACE_HOME"]).glob("*.db")) == [Path(database)]

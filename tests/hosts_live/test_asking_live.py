"""The real coding agents ask their model to save what was settled, and what it saves is a record with its quote.

They run from a folder that `scripts/hosts` fills, in a home of their own, with a made-up key and a model server on this
machine that follows a script.  Without ``COMMONPLACE_HOSTS`` the tests are skipped.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

from hosts.conftest import Person
from loopback import LoopbackServer, calls, says

HOSTS = os.environ.get("COMMONPLACE_HOSTS", "")
SAID = "We decided to keep invoices in integer cents, because floats rounded wrongly in March."
QUOTE = "keep invoices in integer cents"
FACT = "Invoices are kept in integer cents because floats rounded wrongly."
SECONDS = 240  # some agents take a minute to start on a busy machine
PORT = "43917"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HOSTS, reason="COMMONPLACE_HOSTS names no folder of agents")]


def scripted(tool):
    """A model that saves one fact when it is asked to, and says that it is done otherwise."""

    def answer(request):
        body = request.body
        last = json.dumps((body.get("messages") or body.get("input") or body.get("contents") or [""])[-1])
        if "[commonplace: before you stop]" not in last:
            return says("Done.")
        session = re.search(r'session: \\+"([^"\\]+)', last)[1]
        return calls((tool, {"content": FACT, "category": "decisions", "quote": QUOTE, "session": session}))

    return answer


@pytest.fixture
def person(tmp_path):
    """Somebody whose agents are asked, with everything in one home: agents hand few variables on."""
    made = Person(tmp_path)
    made.env.pop("COMMONPLACE_HOME")
    made.data = made.home / ".local" / "share" / "commonplace"
    made.data.mkdir(parents=True)
    (made.data / "config.yaml").write_text("scripts_speak_as: user\n")
    made.env["PATH"] += os.pathsep + os.path.dirname(shutil.which("node"))
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example"]
    subprocess.run([*git, "init", "-q"], cwd=made.work, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=made.work, check=True)
    return made


def program(host):
    """The program of an agent."""
    return str(Path(HOSTS) / host / "node_modules" / ".bin" / host)


def runs(person, *command, **env):
    """Run an agent to its end."""
    subprocess.run(
        command, cwd=person.work, env=person.env | env, stdin=subprocess.DEVNULL, capture_output=True, check=True,
        timeout=SECONDS,
    )  # fmt: skip


def claude(person, server):
    """Claude Code."""
    env = {"ANTHROPIC_BASE_URL": server.root_url, "ANTHROPIC_API_KEY": "sk-ant-x", "DISABLE_AUTOUPDATER": "1"}
    env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    runs(person, program("claude"), "-p", SAID, "--allowedTools", "mcp__commonplace__remember", **env)


def codex(person, server):
    """Codex, whose hooks a person trusts in its terminal; here by the option for automation."""
    config = person.home / ".codex" / "config.toml"
    head = 'model="gpt-5-codex"\nmodel_provider="loop"\napproval_policy="never"\nsandbox_mode="danger-full-access"\n'
    tail = f'[model_providers.loop]\nname="loop"\nbase_url="{server.base_url}"\nenv_key="KEY"\nwire_api="responses"\n'
    trust = f'[projects."{person.work}"]\ntrust_level="trusted"\n'
    config.write_text(f"{head}{config.read_text()}\n{tail}{trust}")
    runs(person, program("codex"), "exec", "--dangerously-bypass-hook-trust", SAID, KEY="x")


def gemini(person, server):
    """Gemini CLI."""
    file = person.home / ".gemini" / "settings.json"
    settings = json.loads(file.read_text())
    settings["security"] = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}
    file.write_text(json.dumps(settings))
    env = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": server.root_url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
    runs(person, program("gemini"), "-p", SAID, "--yolo", "-m", "gemini-2.5-flash", **env)


def opencode(person, server):
    """OpenCode as a server; `opencode run` ends before its plugin can ask anything."""
    file = person.home / ".config" / "opencode" / "opencode.json"
    settings = json.loads(file.read_text())
    options = {"baseURL": server.base_url, "apiKey": "x"}
    models = {"m": {"name": "m", "tool_call": True}}
    loop = {"npm": "@ai-sdk/openai-compatible", "name": "loop", "options": options, "models": models}
    file.write_text(json.dumps(settings | {"provider": {"loop": loop}, "model": "loop/m", "small_model": "loop/m"}))
    if (own := Path.home() / ".npmrc").exists():  # it installs a library of its own when it starts
        shutil.copy(own, person.home / ".npmrc")
    command = [program("opencode"), "serve", "--port", PORT, "--hostname", "127.0.0.1"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = subprocess.Popen(command, cwd=person.work, env=person.env | {"OPENCODE_DISABLE_AUTOUPDATE": "1"}, **quiet)
    try:
        session = wait_for(lambda: post("/session", {}))["id"]
        post(f"/session/{session}/message", {"parts": [{"type": "text", "text": SAID}]})
        wait_for(lambda: records(person))
    finally:
        running.terminate()
        running.wait(30)


def post(path, body):
    """Ask the server of OpenCode; None while it does not answer."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.loads(answer.read() or b"null")
    except OSError:
        return None


def wait_for(condition):
    """Wait until something is there."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def records(person):
    """What an agent has saved."""
    found = person.ok("record", "list", "--json").json["records"]
    return [record for record in found if record["source"]["channel"] == "agent"]


TOOLS = {
    "claude": ("claude-code", claude, "mcp__commonplace__remember"),
    "codex": ("codex", codex, "mcp__commonplace/remember"),
    "gemini": ("gemini", gemini, "mcp_commonplace_remember"),
    "opencode": ("opencode", opencode, "commonplace_remember"),
}


@pytest.mark.parametrize("host", TOOLS)
def test_the_real_agent_saves_what_was_settled_with_its_quote(person, host):
    """One message, one record as the agent's word, and the message is no memory."""
    if not os.path.exists(program(host)):
        pytest.skip(f"{host} is not in {HOSTS}")
    name, run, tool = TOOLS[host]
    person.ok("connect", name, "--yes", "--ask-agent")
    with LoopbackServer(answers=scripted(tool)) as server:
        run(person, server)
        asked = [one for one in server.chats if "[commonplace: before you stop]" in json.dumps(one.body)]
    [record] = records(person)
    assert asked
    assert (record["content"], record["trust"], record["metadata"]["quote"]) == (FACT, "agent", QUOTE)
    assert "before you stop" not in person("recall", "this session may have settled things later sessions need").out
    assert [one["content"] for one in person.ok("record", "list", "--json").json["records"]] == [FACT]

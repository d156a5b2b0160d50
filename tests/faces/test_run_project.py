"""``commonplace run`` inside a project that learns: the memory that connected agents have, and what was said stays."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from commonplace.app import open_app
from commonplace.records import VERBS, AppAccess
from commonplace.records.verbs import read
from faces.test_run import KEYS
from loopback import LoopbackServer, calls, says
from stands import agree

SAID = "We decided to keep invoices in integer cents, because floats rounded wrongly in March."
ROLE = "name: {name}\nrole: You help.\nmodel: {{provider: local, name: m, base_url: '{url}'}}\n{memory}"
MEMORY = "memory: {semantic: {max_memories: 1000}, embeddings: {provider: local}}\n"


@pytest.fixture
def server():
    """A model that says what it is told to say."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def cli(outside, server):
    """The command in a project that learns, beside a role with a memory of its own and one without."""
    for key in KEYS:
        outside.monkeypatch.delenv(key, raising=False)
    work = outside.folder / "work"
    outside.ok("init")
    (work / "role.yaml").write_text(ROLE.format(name="assistant", url=server.base_url, memory=MEMORY))
    (work / "plain.yaml").write_text(ROLE.format(name="plain", url=server.base_url, memory=""))
    agree(work)
    outside.ok("config", "set", "memories.enabled", "true")
    return outside


def instructions(request):
    """What stands before the conversation in a request."""
    return request.system


@pytest.mark.parametrize("role", ["role.yaml", "plain.yaml"])
def test_an_agent_starts_with_the_brief_of_its_project(cli, server, role):
    """Whether it has a memory of its own or not; outside of the project it has none."""
    cli.add("Use pnpm, not npm")
    cli.ok("consolidate")
    server.add("hello", "hello")
    cli.ok("run", role, "-p", "hi")
    assert "# Memory Guidance" in instructions(server.chats[0])
    assert "Use pnpm, not npm" in instructions(server.chats[0])
    cli.ok("config", "set", "memories.enabled", "false")
    cli.ok("run", role, "-p", "hi")
    assert "pnpm" not in instructions(server.chats[1])


def test_without_memory_there_is_no_brief(cli, server):
    """--no-memory means all of it."""
    cli.add("Use pnpm, not npm")
    server.add("hello")
    cli.ok("run", "plain.yaml", "-p", "hi", "--no-memory")
    assert "pnpm" not in json.dumps(server.chats[0].body)


def test_every_address_of_the_brief_can_be_opened_by_the_reading_tool(cli, server):
    """The summary, MEMORY.md, a skill and each record; an address that leads nowhere is an answer too."""
    cli.add("Release: 1. run the tests 2. tag 3. push the tag", "procedures")
    cli.add("Use pnpm, not npm")
    cli.ok("consolidate")
    cli.add("Grace owns billing", "facts")
    brief = cli.ok("brief").out
    addresses = {one.rstrip(".)`,") for one in re.findall(r"memory://[\w./-]+", brief) if "<" not in one}
    addresses -= {"memory://root/skills/"}
    opened = sorted(addresses | {"memory://root/skills/release/SKILL.md", "memory://root/nothing.md"})
    assert any(re.fullmatch(r"memory://[0-9a-z]{10}", one) for one in opened)
    server.add(calls(*(("read", {"uri": one}) for one in opened)), "done")
    cli.ok("run", "plain.yaml", "-p", "read it all")
    answers = [one["content"] for one in server.chats[1].body["messages"] if one["role"] == "tool"]
    assert len(answers) == len(opened)
    failed = [one for one, answer in zip(opened, answers, strict=True) if not answer.startswith("<memory seal=")]
    assert failed == ["memory://root/nothing.md"]
    with open_app() as app:  # the tool `read` over MCP is this verb
        assert all(read(AppAccess(app), one).text for one in addresses)
        assert "read" in {verb.name for verb in VERBS}


def test_a_conversation_is_learned_from_and_the_next_one_has_it(cli, server):
    """By rules, at its end; a single answer is no session and leaves nothing."""
    server.add("noted", "hello", "hello")
    cli.ok("run", "role.yaml", "-p", "We decided to deploy with Helm, because Ansible was slow.")
    assert cli.ok("record", "list", "--json").json["records"] == []
    cli.ok("run", "role.yaml", "-i", stdin=f"{SAID}\n/quit\n".encode())
    [record] = cli.ok("record", "list", "--json").json["records"]
    assert (record["source"]["channel"], "integer cents" in record["content"]) == ("extraction", True)
    cli.ok("run", "plain.yaml", "-p", "hi")
    assert "integer cents" in instructions(server.chats[-1])


def test_with_a_model_it_is_learned_from_in_a_process_of_its_own(cli, server):
    """The conversation ends at once; the record is there a moment later."""
    config = Path(".commonplace/config.yaml")
    models = f"models:\n  default: openai:m\n  base_url: {server.base_url}\n"
    text = config.read_text().replace("mode: rules", "mode: model").partition("\nmodels:")[0]
    config.write_text(f"{text}\n{models}")
    agree(Path.cwd(), Path.cwd().parent / "home")
    with open(Path.cwd().parent / "home" / "config.yaml", "a", encoding="utf-8") as file:
        file.write(f"key_hosts: OPENAI_API_KEY@{server.base_url.split('/')[2]}\n")
    cli.env(OPENAI_API_KEY="sk-x")
    record = {"content": "Invoices are in cents", "category": "decisions", "quote": SAID, "turns": [1]}
    made = {"rollout_summary": "cents", "rollout_slug": "cents", "raw_memory": "- cents", "records": [record]}
    memory = {"memory_md": "# Memory\n\n- Invoices are in cents", "memory_summary": "cents", "skills": []}
    server.add("noted", says(json.dumps(made)), says(json.dumps(memory)))
    cli.ok("run", "plain.yaml", "-i", stdin=f"{SAID}\n/quit\n".encode())
    deadline = time.monotonic() + 60
    while not Path(".commonplace/MEMORY.md").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "Invoices are in cents" in Path(".commonplace/MEMORY.md").read_text()


def test_the_memory_of_the_project_has_its_slash_commands(cli, server):
    """View shows the brief, enqueue asks for a consolidation, clear project erases after a yes."""
    server.add("noted")
    cli.ok("run", "plain.yaml", "-i", stdin=f"{SAID}\n/quit\n".encode())
    lines = ["/memory view", "/memory clear", "y", "/memory view", "/memory rebuild", "/quit", ""]
    done = cli.ok("run", "plain.yaml", "-i", stdin="\n".join(lines).encode())
    shown = done.out + done.err
    assert shown.count("integer cents") > 0
    assert "Memory consolidation enqueued." in shown
    assert "Memory data cleared and system prompt refreshed." in shown
    assert cli.ok("record", "list", "--json").json["records"] == []
    assert "pending: consolidate memory" in cli.ok("status", "--jobs").out


def test_where_no_project_learns_the_commands_say_so(cli):
    """With the way to one that does."""
    cli.ok("config", "set", "memories.enabled", "false")
    done = cli.ok("run", "role.yaml", "-i", stdin=b"/memory enqueue\n/quit\n")
    assert "config set memories.enabled true" in done.err + done.out

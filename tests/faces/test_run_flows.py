"""``commonplace run`` with a flow file, with --daemon and with a role that delegates: what is said and refused."""

from __future__ import annotations

import json

import pytest

from loopback import LoopbackServer, calls, fails
from stands import agree, rows


@pytest.fixture
def server():
    """A model that says what it is told to say."""
    with LoopbackServer() as server:
        yield server


class Folder:
    """Role and flow files, written as JSON, which is YAML."""

    def __init__(self, cli, server):
        self.cli, self.server, self.folder = cli, server, cli.folder / "work"

    def role(self, name, **said):
        """Write a role."""
        model = {"provider": "local", "name": name, "base_url": self.server.base_url}
        role = {"name": name, "role": f"You are {name}.", "model": model} | said
        (self.folder / f"{name}.yaml").write_text(json.dumps(role))

    def flow(self, *, shared=True, **sinks):
        """Write a flow of roles by what comes after them."""
        agents = {
            name: {"role": f"{name}.yaml"} | ({"sink": {"type": "delegate", "target": after}} if after else {})
            for name, after in sinks.items()
        }
        spec = {"agents": agents, "shared_memory": {"enabled": shared}}
        (self.folder / "flow.yaml").write_text(json.dumps({"kind": "Flow", "metadata": {"name": "f"}, "spec": spec}))


@pytest.fixture
def folder(outside, server):
    """A folder with two roles and a flow of them."""
    folder = Folder(outside, server)
    agree(folder.folder)
    folder.role("a", memory={"embeddings": {"provider": "local"}})
    folder.role("b", memory={"embeddings": {"provider": "local"}})
    folder.flow(a=["b"], b=[])
    return folder


def test_a_flow_says_what_its_last_agent_says(folder, server):
    """The answer alone is on standard output; who has answered and what was done is beside it."""
    server.add(calls(("remember", {"content": "Tea"})), "noted", "The end")
    done = folder.cli.ok("run", "flow.yaml", "-p", "Go")
    assert done.out == "The end\n"
    lines = done.err.splitlines()
    assert lines[0].startswith("· a: remember: Remembered (id=")
    assert lines[1:] == ["· a has answered", "· b has answered"]
    assert server.chats[2].prompt == "noted"


def test_several_last_agents_are_told_apart(folder, server):
    """Each has its name above what it says."""
    folder.flow(a=[], b=[])
    server.add("one", "one")
    assert folder.cli.ok("run", "flow.yaml", "-p", "Go").out == "a:\none\nb:\none\n"


def test_a_flow_runs_with_another_model_and_without_memory(folder, server):
    """Both hold for all agents, and nothing is kept."""
    folder.cli.env(OPENAI_API_KEY="sk-test", OPENAI_BASE_URL=server.base_url)
    server.add("one", "two")
    assert folder.cli.ok("run", "flow.yaml", "-p", "Go", "--model", "openai:gpt-9", "--no-memory").out == "two\n"
    assert {chat.body["model"] for chat in server.chats} == {"gpt-9"}
    assert not any("tools" in chat.body for chat in server.chats)
    assert not (folder.cli.home / "memory").exists()


def test_what_a_flow_shares_can_be_looked_at_by_its_file(folder, server):
    """The memory commands take a flow for the store of all; one that shares nothing is told so."""
    server.add(calls(("remember", {"content": "Tea", "category": "drinks"})), "noted", "The end")
    folder.cli.ok("run", "flow.yaml", "-p", "Go")
    assert "[semantic:drinks]" in folder.cli.ok("memory", "list", "flow.yaml").out
    folder.cli.ok("memory", "clear", "flow.yaml", "--force")
    assert folder.cli.ok("memory", "list", "flow.yaml").out == "No memories found.\n"
    folder.flow(shared=False, a=["b"], b=[])
    done = folder.cli("memory", "list", "flow.yaml")
    assert (done.code, "spec.shared_memory: is missing, so its agents share nothing" in done.err) == (5, True)


def test_a_flow_whose_agent_fails_fails_with_its_reason(folder, server):
    """One sentence, and the exit code of a provider that failed."""
    server.add(fails(400, "no such model"))
    done = folder.cli("run", "flow.yaml", "-p", "Go")
    assert (done.code, done.out) == (6, "")
    assert done.err.startswith("commonplace: agent 'a': the model 'endpoint:a' answered 400: no such model")


@rows(
    "arguments, code, said",
    [
        (["flow.yaml"], 2, "a flow needs something to do: pass --prompt TEXT, or --daemon"),
        (["flow.yaml", "-i"], 2, "a flow runs with --prompt or --daemon: leave out -i, -a and --resume"),
        (["flow.yaml", "--daemon"], 5, "flow.yaml: spec.agents: have no triggers"),
        (["a.yaml", "--daemon"], 5, "a.yaml: triggers: is missing, so a daemon would wait for ever"),
        (["a.yaml", "--daemon", "-p", "x"], 2, "--daemon waits for its triggers: leave out --prompt, -i, -a and"),
        (["round.yaml", "-p", "x"], 5, "round.yaml: tools[0].agents[0].role_file: goes in a circle: round -> round"),
        (["tick.yaml", "--daemon"], 5, "tick.yaml: triggers[0].schedule: 'often' is not a schedule"),
        (["open.yaml", "--daemon"], 5, "open.yaml: triggers[0].host: '0.0.0.0' can be reached from elsewhere"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(folder, arguments, code, said):
    """Nothing is asked and nothing waits."""
    round_ = {"type": "delegate", "agents": [{"name": "round", "role_file": "round.yaml"}]}
    folder.role("round", tools=[round_])
    folder.role("tick", triggers=[{"type": "cron", "schedule": "often", "prompt": "x"}])
    folder.role("open", triggers=[{"type": "webhook", "host": "0.0.0.0"}])
    done = folder.cli("run", *arguments)
    assert (done.code, said in done.err) == (code, True), done.err
    assert len(done.err.splitlines()) == 1
    assert folder.server.chats == []


def test_a_circle_in_a_flow_is_an_error_of_its_file(folder):
    """It is found before any store is made."""
    folder.flow(a=["b"], b=["a"])
    done = folder.cli("run", "flow.yaml", "-p", "Go")
    assert done.code == 5
    assert "flow.yaml: spec.agents: goes in a circle: " in done.err
    assert not (folder.cli.home / "memory").exists()


def test_what_an_agent_asks_another_is_shown_in_quiet_lines(folder, server):
    """First what the other one did, with its name, then what it answered."""
    asks = {"type": "delegate", "agents": [{"name": "b", "role_file": "b.yaml"}]}
    folder.role("boss", tools=[asks])
    server.add(calls(("delegate_to_b", {"prompt": "x"})), calls(("remember", {"content": "Tea"})), "kept", "done")
    done = folder.cli.ok("run", "boss.yaml", "-p", "Go")
    assert done.out == "done\n"
    first, second = done.err.splitlines()
    assert first.startswith("· b: remember: Remembered (id=")
    assert second == "· delegate_to_b: kept"

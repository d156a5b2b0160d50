"""Agents that ask other agents: a tool for each, run where the other's file says, with a store in common if so."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import ExitStack

import pytest

from commonplace.model.errors import ConfigError
from commonplace.model.records import Kind
from commonplace.roles.agent import RoleAgent, call_line
from commonplace.roles.conversation import Conversation
from commonplace.roles.delegate import delegates, targets
from commonplace.roles.dialect import load
from commonplace.roles.memory import role_memory
from loopback import LoopbackServer, calls, fails, hangs, says
from stands import agree, rows

SHARED = {"store_path": "team.db", "max_memories": 50}


class Team:
    """Role files in a folder, whose models are at one address, and somebody who talks with the first."""

    def __init__(self, folder, server, opened):
        self.folder, self.server, self.opened = folder, server, opened
        self.env = {"COMMONPLACE_HOME": str(folder / "home")}
        agree(folder, self.env["COMMONPLACE_HOME"])
        self.calls, self.told = [], []

    def writes(self, file, *asks, **said):
        """Write a role that may ask others."""
        name = said.get("name", file)
        model = {"provider": "local", "name": name, "base_url": self.server.base_url}
        role = {"name": name, "role": f"You are {name}.", "model": model}
        if asks:
            tool = {"type": "delegate", "agents": [{"name": one, "role_file": f"{one}.yaml"} for one in asks]}
            role["tools"] = [tool | said.pop("tool", {})]
        (self.folder / f"{file}.yaml").write_text(json.dumps(role | said))

    def role(self, name="boss"):
        """Read a role."""
        return load(str(self.folder / f"{name}.yaml"))

    def agent(self, name="boss"):
        """The agent of a role, with those that it may ask."""
        role = self.role(name)
        asked = delegates(targets(role), env=self.env, watch=self.calls.append, notify=self.told.append)
        held = self.opened.enter_context(role_memory(role, env=self.env)) if role.memory else None
        return RoleAgent(role, held, env=self.env, watch=self.calls.append, delegates=asked)

    def say(self, prompt, name="boss"):
        """One turn."""
        return asyncio.run(Conversation(self.agent(name), notify=self.told.append).say(prompt))

    def asked(self, name):
        """What the model of an agent was asked, in order."""
        return [chat for chat in self.server.chats if chat.body["model"] == name]


@pytest.fixture
def server():
    """Models that do what their agent's name says, unless there is a script."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def team(tmp_path, server):
    """A folder for roles."""
    with ExitStack() as opened:
        yield Team(tmp_path, server, opened)


def test_every_agent_that_may_be_asked_is_a_tool(team, server):
    """Its name says whom it asks, its description is the file's, else the role's own."""
    team.writes("boss", "helper", "Fact Finder")
    team.writes("helper", description="Helps with anything")
    team.writes("Fact Finder", name="fact-finder")
    server.add("hello")
    team.say("hi")
    tools = {tool["function"]["name"]: tool["function"] for tool in server.chats[0].body["tools"]}
    assert list(tools) == ["delegate_to_helper", "delegate_to_fact_finder"]
    assert tools["delegate_to_helper"]["description"] == "Helps with anything"
    assert tools["delegate_to_helper"]["parameters"]["required"] == ["prompt"]


def test_the_other_one_answers_with_its_own_words_and_its_own_model(team, server):
    """It starts afresh: it is told its own role and the question, and nothing of the conversation."""
    team.writes("boss", "helper")
    team.writes("helper")
    server.add(calls(("delegate_to_helper", {"prompt": "What is 6 x 7?"})), "42", "It is 42.")
    boss = team.agent()
    assert asyncio.run(Conversation(boss, notify=team.told.append).say("Ask somebody")).output == "It is 42."
    [asked] = team.asked("helper")
    assert [message["content"] for message in asked.body["messages"]] == ["You are helper.", "What is 6 x 7?"]
    assert team.asked("boss")[1].body["messages"][-1]["content"] == "42"
    assert [call_line(call) for call in team.calls] == ["delegate_to_helper: 42"]
    assert boss.used == 3 * 18


def test_what_one_that_was_asked_remembers_another_recalls(team, server):
    """With a shared store the targets have one memory; the one that asks has its own."""
    team.writes("boss", "finder", "writer", tool={"shared_memory": SHARED}, memory={})
    team.writes("finder", memory={"max_sessions": 3})
    team.writes("writer")
    server.add(
        calls(("delegate_to_finder", {"prompt": "find"})),
        calls(("remember", {"content": "Tea is grown in Assam", "category": "tea"})), "found",
        calls(("delegate_to_writer", {"prompt": "write"})),
        calls(("recall", {"query": "tea"})), "written", "done",
    )  # fmt: skip
    team.say("Go")
    recalled = team.asked("writer")[1].body["messages"][-1]["content"]
    assert "Tea is grown in Assam" in recalled
    assert recalled.startswith("[Type: semantic | Category: tea | ")
    assert (team.folder / "home" / "team.db").exists()
    assert list(team.agent().memory.list()) == []
    assert [call_line(call) for call in team.calls if call.agent][1] == "writer: recall: 1 memory"


def test_one_with_the_same_path_shares_too(team, server):
    """Whoever asks is in it when its own role says the same store."""
    team.writes("boss", "finder", tool={"shared_memory": SHARED}, memory={"store_path": "team.db"})
    team.writes("finder")
    server.add(
        calls(("delegate_to_finder", {"prompt": "find"})), calls(("remember", {"content": "Assam"})), "found",
        calls(("recall", {"query": "Assam"})), "done",
    )  # fmt: skip
    team.say("Go")
    assert "Assam" in team.asked("boss")[2].body["messages"][-1]["content"]


def test_each_has_its_own_memory_and_procedures_where_nothing_is_shared(team, server):
    """A role that has a memory uses it as it does when it runs alone."""
    team.writes("boss", "helper", memory={})
    team.writes("helper", memory={})
    with role_memory(team.role("helper"), env=team.env) as held:
        held.memory().remember("Be brief", kind=Kind.PROCEDURAL, category="style")
    server.add(calls(("delegate_to_helper", {"prompt": "hi"})), "hello", "done")
    team.say("Go")
    assert "- [style] Be brief" in team.asked("helper")[0].system
    assert "Be brief" not in team.asked("boss")[0].system


def test_one_that_is_asked_may_ask_others(team, server):
    """A chain within the limit works, and every call is told with who made it."""
    team.writes("boss", "middle")
    team.writes("middle", "last")
    team.writes("last")
    server.add(
        calls(("delegate_to_middle", {"prompt": "a"})), calls(("delegate_to_last", {"prompt": "b"})), "deep", "higher",
        "top",
    )  # fmt: skip
    assert team.say("Go").output == "top"
    assert [call_line(call) for call in team.calls] == ["middle: delegate_to_last: deep", "delegate_to_middle: higher"]


def test_several_that_are_asked_at_once_work_at_once(team):
    """Nobody waits for somebody else's model, and both write to one store."""

    def answer(request):
        messages = request.body["messages"]
        if request.body["model"] == "boss":
            both = calls(("delegate_to_a", {"prompt": "x"}), ("delegate_to_b", {"prompt": "y"}))
            return "done" if messages[-1]["role"] == "tool" else both
        if messages[-1]["role"] == "tool":
            return says("kept", delay_s=0.3)
        return calls(("remember", {"content": f"by {request.body['model']}"}))

    with LoopbackServer(answers=answer) as server:
        team.server = server
        for name in ("a", "b"):
            team.writes(name)
        team.writes("boss", "a", "b", tool={"shared_memory": SHARED})
        team.say("Go")
    assert server.busiest == 2
    with role_memory(targets(team.role())[0].role, env=team.env) as held:
        assert {record.content for record in held.memory().list()} == {"by a", "by b"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (fails(400, "no such model"), "Error: agent 'helper': the model 'endpoint:helper' answered 400: no such model"),
        (hangs(), "Error: agent 'helper' did not answer within 1 seconds"),
    ],
)
def test_one_that_fails_is_told_to_the_one_that_asked(team, server, answer, said):
    """The run goes on: the model reads what went wrong."""
    team.writes("boss", "helper", tool={"timeout_seconds": 1})
    team.writes("helper")
    server.add(calls(("delegate_to_helper", {"prompt": "x"})), answer, "I could not")
    assert team.say("Go").output == "I could not"
    assert team.asked("boss")[1].body["messages"][-1]["content"].startswith(said)


@rows("arguments", [{}, {"task": "x"}, {"prompt": 5}, {"prompt": " "}, {"prompt": None}, "[]"])
def test_a_call_that_asks_nothing_is_told_to_the_one_that_made_it(team, server, arguments):
    """The run goes on, and the other one is not asked."""
    team.writes("boss", "helper")
    team.writes("helper")
    server.add(calls(("delegate_to_helper", arguments)), "sorry")
    assert team.say("Go").output == "sorry"
    assert team.asked("helper") == []


def test_one_without_a_key_is_told_to_the_one_that_asked(team, server):
    """What to set is in the sentence."""
    team.writes("boss", "helper")
    team.writes("helper", model="anthropic:claude")
    server.add(calls(("delegate_to_helper", {"prompt": "x"})), "I could not")
    team.say("Go")
    assert "set the environment variable ANTHROPIC_API_KEY" in team.asked("boss")[1].body["messages"][-1]["content"]


def test_one_without_a_model_speaks_with_that_of_the_one_that_asks(team, server):
    """A role that names none is run by whoever asks."""
    team.writes("boss", "helper")
    team.writes("helper", model=None)
    server.add(calls(("delegate_to_helper", {"prompt": "x"})), "fine", "done")
    assert team.say("Go").output == "done"
    assert len(team.asked("boss")) == 3


def test_its_keys_are_those_beside_its_own_file(team, server):
    """A ``.env`` of the one that asks is not the other's."""
    (team.folder / "other").mkdir()
    (team.folder / "other" / ".env").write_text("MY_KEY=theirs\n")
    (team.folder / ".env").write_text("MY_KEY=ours\n")
    team.writes("boss", "other/helper", tool={"agents": [{"name": "helper", "role_file": "other/helper.yaml"}]})
    team.writes("other/helper", name="helper", model={
        "provider": "local", "name": "helper", "base_url": server.base_url, "api_key_env": "MY_KEY"})  # fmt: skip
    server.add(calls(("delegate_to_helper", {"prompt": "x"})), "fine", "done")
    team.say("Go")
    assert team.asked("helper")[0].headers["authorization"] == "Bearer theirs"


def test_a_circle_is_refused_before_anybody_is_asked(team):
    """The way round is told, with the file in which it closes."""
    team.writes("boss", "middle")
    team.writes("middle", "boss")
    said = r"middle\.yaml: tools\[0\]\.agents\[0\]\.role_file: goes in a circle: boss -> middle -> boss"
    with pytest.raises(ConfigError, match=said):
        team.agent()


def test_a_chain_that_is_longer_than_allowed_is_refused(team):
    """Three below each other are fine unless the role says less."""
    for name, *asks in (["boss", "one"], ["one", "two"], ["two", "three"], ["three"]):
        team.writes(name, *asks)
    assert team.agent()
    team.writes("boss", "one", tool={"max_depth": 2})
    said = "tools[0].max_depth: is 2, and there are 3 below each other: boss -> one -> two -> three"
    with pytest.raises(ConfigError, match=re.escape(said)):
        team.agent()


def test_each_tool_limits_its_own_chains(team):
    """A second tool that allows less does not judge those of the first."""
    for name, *asks in (["one", "two"], ["two"], ["three"]):
        team.writes(name, *asks)
    deep = {"type": "delegate", "agents": [{"name": "one", "role_file": "one.yaml"}]}
    flat = {"type": "delegate", "max_depth": 1, "agents": [{"name": "three", "role_file": "three.yaml"}]}
    team.writes("boss", tools=[deep, flat])
    assert [target.name for target in targets(team.role())] == ["one", "three"]


def test_what_is_the_same_at_every_call_is_told_once(team, server):
    """Which embedder serves is no news the second time."""
    team.writes("boss", "helper")
    team.writes("helper", memory={})
    server.add(calls(("delegate_to_helper", {"prompt": "x"})), "a", calls(("delegate_to_helper", {"prompt": "y"})), "b")
    server.add("done")
    team.say("Go")
    [told] = team.told
    assert told.startswith("helper: memories are embedded by the local embedder")


@pytest.mark.parametrize(
    ("asks", "said"),
    [
        (["nobody"], "tools[0].agents[0].role_file: 'nobody.yaml' does not exist"),
        (["helper", "helper"], "tools: has two agents that would be 'delegate_to_helper'"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_its_place(team, asks, said):
    """A file that is not there, and two that could not be told apart."""
    team.writes("boss", *asks)
    team.writes("helper")
    with pytest.raises(ConfigError, match=re.escape(said)):
        team.agent()


def test_a_shared_store_outside_of_the_data_folder_is_allowed_by_whoever_names_it(team, tmp_path):
    """The path is the asking role's, so its word counts, and not that of the one that is asked."""
    outside = {"store_path": str(tmp_path / "elsewhere.db")}
    team.writes("boss", "helper", tool={"shared_memory": outside})
    team.writes("helper", security={"tools": {"restrict_db_paths": False}})
    [target] = targets(team.role())
    with pytest.raises(ConfigError, match="is outside of the data folder"):
        target.role.store(str(tmp_path / "home"))
    team.writes("boss", "helper", tool={"shared_memory": outside}, security={"tools": {"restrict_db_paths": False}})
    [target] = targets(team.role())
    assert target.role.store(str(tmp_path / "home")) == outside["store_path"]

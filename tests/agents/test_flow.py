"""A flow at work: who is asked when, with what, and what one of them remembers for all."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from commonplace.model.errors import ConfigError, ProviderError
from commonplace.roles.agent import RoleAgent
from commonplace.roles.conversation import Conversation
from commonplace.roles.dialect import EmbeddingSettings, Role
from commonplace.roles.flow import check_shared_embedder, combine, run_flow
from commonplace.roles.flow_dialect import Flow, FlowMember, load
from commonplace.roles.memory import role_memory
from loopback import LoopbackServer, calls
from stands import agree

ROLE = Role(name="x", file="x.yaml", prompt="You help.", model=None)


def flow(*, needs=None, **sinks):
    """A flow of agents by what comes after them."""
    needs = needs or {}
    members = [
        FlowMember(name=name, role=ROLE, targets=tuple(after), needs=needs.get(name, ()))
        for name, after in sinks.items()
    ]
    return Flow(name="f", file="flow.yaml", members=tuple(members))


class Agents:
    """Agents that repeat what they are asked, with their name, and remember in which order they began and ended."""

    def __init__(self, **said):
        self.said, self.log = said, []

    async def __call__(self, name, prompt):
        self.log.append(f"+{name}")
        await asyncio.sleep(0.01)
        self.log.append(f"-{name}")
        told = self.said.get(name, f"{name}({prompt})")
        if isinstance(told, Exception):
            raise told
        return told


def run(given, ask, **options):
    """Run a flow with one prompt."""
    return asyncio.run(run_flow(given, "go", ask, **options))


def test_what_one_says_is_what_the_next_is_asked():
    """The last one's answer is the flow's."""
    assert run(flow(a=["b"], b=["c"], c=[]), Agents()) == {"c": "c(b(a(go)))"}


def test_whoever_is_free_works_at_once_and_the_one_after_waits_for_all():
    """A diamond: the two in the middle are asked at the same time, the last one once, with both by name."""
    agents = Agents()
    said = run(flow(a=["b", "c"], b=["d"], c=["d"], d=[]), agents)
    assert said == {"d": "d(b:\nb(a(go))\n\n---\n\nc:\nc(a(go)))"}
    assert agents.log[:4] == ["+a", "-a", "+b", "+c"]
    assert agents.log[-2:] == ["+d", "-d"]


def test_everybody_at_an_end_is_heard_in_the_order_of_the_file():
    """Two that hand on to nobody are two answers."""
    assert run(flow(a=["c"], b=[], c=[]), Agents()) == {"b": "b(go)", "c": "c(a(go))"}


def test_who_needs_somebody_waits_without_being_told_anything():
    """``needs`` is an order and no message."""
    agents = Agents()
    assert run(flow(a=[], b=[], needs={"a": ("b",)}), agents)["a"] == "a(go)"
    assert agents.log == ["+b", "-b", "+a", "-a"]


def test_a_flow_may_begin_in_the_middle():
    """A trigger of one agent asks that one and those after it; it waits for nobody who is not asked."""
    agents = Agents()
    given = flow(a=["b"], b=["c"], c=[], other=[], needs={"b": ("other",)})
    assert run(given, agents, start="b") == {"c": "c(b(go))"}
    assert "+a" not in agents.log


def test_one_that_fails_ends_the_flow_and_nobody_is_asked_any_more():
    """The reason is its own."""
    agents = Agents(a=ProviderError("no key"))
    with pytest.raises(ProviderError, match="no key"):
        run(flow(a=["b"], b=[]), agents)
    assert agents.log == ["+a", "-a"]


def test_nothing_is_not_handed_on():
    """An agent that says nothing leaves the next one nothing to do, unless others say something."""
    with pytest.raises(ProviderError, match="agent 'b' received no prompt: a answered nothing"):
        run(flow(a=["b"], b=[]), Agents(a=" "))
    assert combine("d", {"b": "", "c": "tea"}) == "c:\ntea"


class Newsroom:
    """A flow file with two roles that share a store."""

    def __init__(self, folder, server):
        self.folder, self.env = folder, {"COMMONPLACE_HOME": str(folder / "home")}
        agree(folder, self.env["COMMONPLACE_HOME"])
        model = {"provider": "local", "name": "m", "base_url": server.base_url}
        members = {"finder": {"sink": {"type": "delegate", "target": "writer"}}, "writer": {}}
        for name, said in members.items():
            (folder / f"{name}.yaml").write_text(json.dumps({"name": name, "role": f"{name}.", "model": model}))
            said["role"] = f"{name}.yaml"
        spec = {"agents": members, "shared_memory": {"enabled": True}}
        (folder / "flow.yaml").write_text(json.dumps({"kind": "Flow", "metadata": {"name": "news"}, "spec": spec}))
        self.flow = load(str(folder / "flow.yaml"))

    def held(self, name):
        """What an agent of the flow remembers."""
        return role_memory(self.flow.member(name).role, env=self.env)


@pytest.fixture
def server():
    """A model that says what it is told to say."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def newsroom(tmp_path, server):
    """Two agents with one memory."""
    return Newsroom(tmp_path, server)


def test_what_one_agent_of_a_flow_remembers_another_recalls(newsroom, server):
    """In the same run, by the tools that sharing gave them."""
    server.add(
        calls(("remember", {"content": "Tea is grown in Assam"})), "found it",
        calls(("recall", {"query": "Assam"})), "The tea of Assam",
    )  # fmt: skip
    with ExitStack() as opened:
        agents = {
            name: RoleAgent(newsroom.flow.member(name).role, opened.enter_context(newsroom.held(name)), env={})
            for name in newsroom.flow.order()
        }

        async def ask(name, prompt):
            return (await Conversation(agents[name], notify=print).say(prompt)).output

        assert run(newsroom.flow, ask) == {"writer": "The tea of Assam"}
    assert "Tea is grown in Assam" in server.chats[3].body["messages"][-1]["content"]
    assert server.chats[2].prompt == "found it"


def test_agents_that_would_embed_differently_cannot_share_a_store(newsroom, server):
    """It is said before anything is written; without a shared store everybody may have their own."""
    members = []
    for member in newsroom.flow.members:
        settings = EmbeddingSettings(
            provider="local" if member.name == "finder" else "ollama", base_url="", model="" if not members else "m",
        )  # fmt: skip
        memory = member.role.memory.replace(embeddings=settings)
        members.append(member.replace(role=member.role.replace(memory=memory)))
    newsroom.flow = newsroom.flow.replace(members=tuple(members))
    newsroom.env["OLLAMA_HOST"] = server.root_url
    with newsroom.held("finder") as finder, newsroom.held("writer") as writer:
        held = {"finder": finder, "writer": writer}
        with pytest.raises(ConfigError, match=r"agents 'finder' and 'writer' would embed with '.*' and 'ollama:m"):
            check_shared_embedder(newsroom.flow, held)
        check_shared_embedder(newsroom.flow.replace(shared=None), held)
        check_shared_embedder(newsroom.flow, {"finder": finder})


WRITER = """
import sys
from commonplace.roles.memory import role_memory
from commonplace.roles.flow_dialect import load
from commonplace.agents import answer_call
from commonplace.roles import role_tools
file, name = sys.argv[1:]
with role_memory(load(file).member(name).role) as held:
    offered = role_tools(held.memory())
    for number in range(10):
        said = answer_call(offered, "remember", {"content": f"fact {number} of {name} {sys.argv}"})
        assert said.startswith("Remembered (id="), said
"""


@pytest.mark.slow
def test_processes_that_share_a_store_lose_nothing(newsroom):
    """Two agents in two processes write at once, from the first moment on, and both see everything."""
    command = [sys.executable, "-c", WRITER, str(newsroom.folder / "flow.yaml")]
    env = os.environ | newsroom.env
    working = [subprocess.Popen([*command, name], env=env) for name in ("finder", "writer")]
    assert [process.wait(60) for process in working] == [0, 0]
    for name in ("finder", "writer"):
        with newsroom.held(name) as held:
            records = held.memory().list(limit=100)
            assert len({record.id for record in records}) == 20
            assert held.memory().recall("fact 7 of finder").hits

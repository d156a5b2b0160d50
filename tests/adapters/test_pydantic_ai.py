"""Commonplace as a capability of a PydanticAI agent: tools, and what is known before the run."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from commonplace.adapters.pydantic_ai import CommonplaceMemory, toolset
from commonplace.app import open_app
from commonplace.model.records import Channel
from stands import agree


@pytest.fixture
def place(tmp_path):
    """A project of an agent, with a memory of its own."""
    shop = tmp_path / "shop"
    (shop / ".commonplace").mkdir(parents=True)
    (shop / ".commonplace" / "config.yaml").write_text("project: github.com/acme/shop\n")
    agree(shop, tmp_path / "home")
    env = {"COMMONPLACE_HOME": str(tmp_path / "home"), "USER": "ada", "HOME": str(tmp_path)}
    with open_app(str(shop), env=env, channel=Channel.AGENT) as opened:
        yield opened


def run(agent, prompt):
    """Run an agent on a loop that is closed again, which ``run_sync`` leaves open."""
    return asyncio.run(agent.run(prompt))


class Said:
    """A model that does what it is told and keeps what it was sent."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.instructions = []
        self.tools = []

    def __call__(self, messages, info):
        self.instructions.append(info.instructions or "")
        self.tools.append([tool.name for tool in info.function_tools])
        self.messages = messages
        return ModelResponse(parts=[self.answers.pop(0)])


def test_an_agent_remembers_for_the_next_one(place):
    """What one run keeps with its tool stands before the model of the next one, quoted as data."""
    fact = {"content": "Deploys go out on Tuesdays, never on Fridays.", "category": "principles"}
    model = Said(ToolCallPart("remember", fact), TextPart("done"), TextPart("Tuesday"))
    for prompt in ("Remember when we deploy", "When do we deploy?"):
        run(Agent(FunctionModel(model), capabilities=[CommonplaceMemory(place)]), prompt)
    assert {"remember", "recall", "get", "update", "forget", "read"} <= set(model.tools[0])
    assert "Tuesdays" not in model.instructions[0]
    assert "Deploys go out on Tuesdays" in model.instructions[2]
    assert model.instructions[2].startswith("<memory seal=")


def test_within_a_run_the_injected_text_stays_the_same(place):
    """A fact that is kept in mid-run does not move the beginning of the prompt: caches hold."""
    place.memory.remember("The cache is Redis 7.", category="decisions")
    fact = {"content": "The cache listens on port 6380.", "category": "decisions"}
    model = Said(ToolCallPart("remember", fact), TextPart("done"))
    run(Agent(FunctionModel(model), capabilities=[CommonplaceMemory(place)]), "What is our cache?")
    assert model.instructions[0] == model.instructions[1]
    assert "Redis 7" in model.instructions[0]


def test_a_wrong_argument_comes_back_as_words(place):
    """The model is told what is wrong, and the run goes on."""
    model = Said(ToolCallPart("get", {"id": "nothing-like-it"}), TextPart("done"))
    result = run(Agent(FunctionModel(model), capabilities=[CommonplaceMemory(place)]), "Look it up")
    assert result.output == "done"
    assert "there is no record 'nothing-like-it'" in str(model.messages)


def test_tools_alone_bring_no_instructions(place):
    """An agent that wants only the tools takes the toolset."""
    place.memory.remember("The cache is Redis 7.", category="decisions")
    model = Said(ToolCallPart("recall", {"query": "cache"}), TextPart("Redis"))
    run(Agent(FunctionModel(model), toolsets=[toolset(place)]), "What is our cache?")
    assert "Redis" not in model.instructions[0]
    assert "Redis 7" in str(model.messages)


def test_trouble_with_memory_ends_no_run(place):
    """A store that cannot be read is noted, and the agent answers without it."""
    capability = CommonplaceMemory(place)
    place.memory.remember("The cache is Redis 7.", category="decisions")
    place.store.close()
    with open(place.where.database, "wb") as file:
        file.write(b"this is no database" * 1000)
    model = Said(TextPart("I do not know"))
    assert run(Agent(FunctionModel(model), capabilities=[capability]), "What?").output == "I do not know"
    assert capability.notes


def test_runs_at_the_same_time_each_keep_their_own_text(place):
    """Two runs of one agent in turns: what each was given stays the same, however the other goes on."""
    place.memory.remember("The cache is Redis 7.", category="decisions")
    place.memory.remember("Deploys go out on Tuesdays.", category="principles")
    seen = []

    async def answer(messages, info):
        seen.append((len(messages), info.instructions))
        await turn.wait()
        fact = {"content": f"The cache and deploys: fact {len(seen)}", "category": "decisions"}
        called = ToolCallPart("remember", fact)
        return ModelResponse(parts=[called if len(messages) == 1 else TextPart("done")])

    async def go():
        nonlocal turn
        turn = asyncio.Barrier(2)
        agent = Agent(FunctionModel(answer), capabilities=[CommonplaceMemory(place)])
        await asyncio.gather(agent.run("What is our cache?"), agent.run("When do we deploy?"))

    turn = None
    asyncio.run(go())
    first, second = ({said for length, said in seen if length == size} for size in (1, 3))
    assert len(first) == 2
    assert first == second

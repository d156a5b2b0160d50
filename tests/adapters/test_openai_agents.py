"""The session of the OpenAI Agents SDK: what the SDK's own session answers, safely shared."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from agents import Agent, Runner, SessionSettings, SQLiteSession, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message
from hypothesis import given, settings
from hypothesis import strategies as st

import commonplace
from commonplace.adapters.openai_agents import CommonplaceSession

ITEMS = st.lists(
    st.sampled_from(
        [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [{"type": "output_text", "text": " hi \n"}]},
            {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": ""},
        ]
    ),
    max_size=3,
)
ACTS = st.lists(st.one_of(st.tuples(st.just("add_items"), ITEMS), st.just(("pop_item",)), st.just(("clear_session",))))


@settings(deadline=None, max_examples=40)
@given(ACTS, st.none() | st.integers(0, 4))
def test_it_answers_as_the_sdks_own_session_does(acts, limit):
    """Any run of adding, taking back and clearing: the same items in the same order."""

    async def go():
        theirs, ours = SQLiteSession("s"), CommonplaceSession("s", commonplace.open(":memory:"))
        for name, *told in acts:
            assert await getattr(ours, name)(*told) == await getattr(theirs, name)(*told)
        found = await ours.get_items(limit), await theirs.get_items(limit)
        theirs.close()
        return found

    ours, theirs = asyncio.run(go())
    assert ours == theirs


def test_it_is_a_session():
    """The SDK's protocol is met, and its settings are read."""
    session = CommonplaceSession("s", commonplace.open(":memory:"), settings=SessionSettings(limit=1))
    assert isinstance(session, Session)
    asyncio.run(session.add_items([{"role": "user", "content": text} for text in ("one", "two")]))
    assert [item["content"] for item in asyncio.run(session.get_items())] == ["two"]
    assert len(asyncio.run(session.get_items(5))) == 2


def test_a_run_goes_on_where_another_one_ended(tmp_path):
    """A real runner with a scripted model: the second run sends what was said in the first."""
    set_tracing_disabled(disabled=True)
    model = ScriptedModel([[assistant_message("Noted.")], [assistant_message("Ada.")]])
    agent = Agent(name="helper", model=model)

    def ask(text):
        with commonplace.open(str(tmp_path / "memory.db")) as memory:
            return asyncio.run(Runner.run(agent, text, session=CommonplaceSession("s", memory))).final_output

    assert (ask("My name is Ada"), ask("Who am I?")) == ("Noted.", "Ada.")
    with commonplace.open(str(tmp_path / "memory.db")) as memory:
        items = asyncio.run(CommonplaceSession("s", memory).get_items())
        assert asyncio.run(CommonplaceSession("other", memory).get_items()) == []
    assert [item["role"] for item in items] == ["user", "assistant", "user", "assistant"]


def test_a_secret_is_not_kept():
    """What is said passes the gate that every write passes."""
    session = CommonplaceSession("s", commonplace.open(":memory:"))
    asyncio.run(session.add_items([{"role": "user", "content": "my password is hunter2-Sesame-99x"}]))
    assert "hunter2" not in str(asyncio.run(session.get_items()))


WORKER = """
import asyncio, sys, commonplace
from commonplace.adapters.openai_agents import CommonplaceSession
with commonplace.open(sys.argv[1]) as memory:
    session = CommonplaceSession("s", memory)
    for number in range(20):
        asyncio.run(session.add_items([{"role": "user", "content": f"{sys.argv[2]} {number}"}]))
"""


def test_two_processes_add_at_once(tmp_path):
    """Nothing is lost, and each one's items stay in their order."""
    path = str(tmp_path / "memory.db")
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, path, name]) for name in "ab"]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    with commonplace.open(path) as memory:
        said = [item["content"] for item in asyncio.run(CommonplaceSession("s", memory).get_items())]
    for name in "ab":
        assert [text for text in said if text.startswith(name)] == [f"{name} {number}" for number in range(20)]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_of_nothing_gives_nothing(limit):
    """No number of items is asked for, none come."""
    session = CommonplaceSession("s", commonplace.open(":memory:"))
    asyncio.run(session.add_items([{"role": "user", "content": "one"}]))
    assert asyncio.run(session.get_items(limit)) == []

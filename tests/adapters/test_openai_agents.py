"""The session of the OpenAI Agents SDK: what the SDK's own session answers, safely shared."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from base64 import b64encode
from random import Random

import pytest
from agents import Agent, Runner, SessionSettings, SQLiteSession, set_tracing_disabled
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message
from hypothesis import given, settings
from hypothesis import strategies as st

import commonplace
from commonplace.adapters.openai_agents import CommonplaceSession
from commonplace.model.queries import Filter
from commonplace.model.scopes import Scope
from commonplace.text.words import plan

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
from commonplace.model.queries import Filter
from commonplace.model.scopes import Scope
from commonplace.text.words import plan
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


TOKEN = "xylophonequokka"
SCOPE = Scope.of(("agent", "openai-agents"), ("task", "s"))
SAID = [{"role": "user", "content": text} for text in ("Tea is at four", f"The tunnel is under the {TOKEN}")]


def test_what_is_taken_back_leaves_no_byte(shared):
    """Nor in what memory has written of it; what else was said stays there."""
    session = CommonplaceSession("s", shared.memory)
    asyncio.run(session.add_items(SAID))
    shared.tell(SCOPE)
    assert shared.left(TOKEN)
    assert asyncio.run(session.pop_item()) == SAID[1]

    assert shared.left(TOKEN) == []
    assert shared.left("Tea is at four") != []
    assert asyncio.run(session.get_items()) == SAID[:1]
    assert len(shared.erasures) == 1  # whoever keeps files that repeat it is told


def test_a_cleared_session_leaves_no_byte_and_takes_few_rounds(shared):
    """Archived items and what memory has written go too, however many there are."""
    session = CommonplaceSession("s", shared.memory)
    asyncio.run(session.add_items(SAID * 20))
    shared.tell(SCOPE)
    shared.archive(SCOPE)
    shared.rounds.clear()
    asyncio.run(session.clear_session())

    assert len(shared.rounds) <= 3
    assert (shared.left(TOKEN), shared.left("Tea is at four"), shared.records(SCOPE)) == ([], [], [])
    assert len(shared.erasures) == 1


def test_a_picture_is_kept_bit_for_bit():
    """Chance writes "pw+" in base64, and that is no password; a text in base64 is still looked into."""
    session = CommonplaceSession("s", commonplace.open(":memory:"))
    noise = b64encode(Random(7).randbytes(30_000)).decode()
    url = f"data:image/png;base64,{noise[:2000]}/pw+{noise[2000:]}"
    picture = {"role": "user", "content": [{"type": "input_image", "image_url": url}]}
    sealed = {"type": "reasoning", "encrypted_content": "gAAAA" + noise.translate({43: 45, 47: 95}), "summary": []}
    told = b64encode(f"{'é' * 1001} {'AKIA' + 'Q3EGRZ7N2XKLMWPD'}".encode()).decode()
    asyncio.run(session.add_items([picture, sealed, {"role": "user", "content": told}]))

    *same, other = asyncio.run(session.get_items())
    assert same == [picture, sealed]
    assert told not in str(other)


def test_a_very_long_item_is_kept_whole():
    """No answer of a tool ends a run because memory will not take it; it is found by how it begins."""
    memory = commonplace.open(":memory:")
    session = CommonplaceSession("s", memory)
    item = {"type": "function_call_output", "call_id": "1", "output": "elephants " + "word " * 300_000}
    blank = {"role": "user", "content": " " * 500_000}
    asyncio.run(session.add_items([item, blank]))
    assert asyncio.run(session.get_items()) == [item, blank]
    scope = Filter(scopes=frozenset({SCOPE}), at=memory.clock())
    assert memory.store.match(scope, plan("elephants"), limit=1)


def test_items_are_embedded_like_everything_that_is_stored():
    """Through the one write sequence: a store adopts the embedder, and no item lacks a vector."""
    memory = commonplace.open(":memory:")
    asyncio.run(CommonplaceSession("s", memory).add_items([{"role": "user", "content": "the automobile"}]))
    assert memory.store.count_unembedded(memory.embedder.identity) == 0

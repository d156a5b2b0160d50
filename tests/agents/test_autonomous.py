"""An agent by itself: until it says that it is done, or until its limits say so."""

from __future__ import annotations

import asyncio
import warnings
from contextlib import ExitStack

import pytest

from commonplace.model.errors import ProviderError
from commonplace.model.records import Channel, Kind
from commonplace.roles.agent import RoleAgent
from commonplace.roles.autonomous import capture, work
from commonplace.roles.conversation import Conversation
from commonplace.roles.dialect import parse
from commonplace.roles.memory import role_memory
from loopback import LoopbackServer, calls, fails

DONE = calls(("finish_task", {"summary": "Deployed v2.1 to staging."}))


class Place:
    """A role with its memory in a folder, and a model at an address."""

    def __init__(self, folder, server, opened):
        self.folder, self.server, self.opened = folder, server, opened
        self.more, self.told, self.steps = {}, [], []

    @property
    def role(self):
        """The role as a file would say it."""
        model = {"provider": "local", "name": "m", "base_url": self.server.base_url}
        said = {"name": "worker", "role": "You work.", "model": model, "memory": {}}
        return parse(said | self.more, file="role.yaml")

    @property
    def held(self):
        """What the agent remembers."""
        return self.opened.enter_context(role_memory(self.role, env={"COMMONPLACE_HOME": str(self.folder)}))

    def talk(self):
        """A new conversation."""
        return Conversation(RoleAgent(self.role, self.held, env={}), notify=self.told.append)

    def work(self, talk=None, **limits):
        """Work on a task."""
        counted = lambda number, of: self.steps.append((number, of))  # noqa: E731 - one line says it
        return asyncio.run(work(talk or self.talk(), "Deploy", on_step=counted, **limits))


@pytest.fixture
def server():
    """A model that says what it is told to say."""
    with LoopbackServer() as server:
        yield server


@pytest.fixture
def place(tmp_path, server):
    """A role with a memory."""
    with ExitStack() as opened:
        yield Place(tmp_path, server, opened)


def test_it_works_until_it_calls_finish_task(place, server):
    """Between two steps it is told to go on; the tool is offered, and its summary is the outcome."""
    server.add("I built it", "I tested it", DONE)
    outcome = place.work()
    assert (outcome.summary, outcome.steps, outcome.tokens, outcome.stopped) == ("Deployed v2.1 to staging.", 3, 54, "")
    assert [chat.prompt for chat in server.chats] == ["Deploy", *[place.role.autonomy.continuation_prompt] * 2]
    assert "finish_task" in [tool["function"]["name"] for tool in server.chats[0].body["tools"]]
    assert place.steps == [(1, 10), (2, 10), (3, 10)]


def test_finishing_warns_about_nothing(place, server):
    """The framework understands what the tool returns."""
    server.add(DONE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert place.work().summary


def test_what_is_called_beside_finish_task_is_done_too(place, server):
    """A memory that is saved in the last step is saved."""
    server.add(calls(("remember", {"content": "Staging needs a VPN"}), *DONE.tools))
    place.work()
    assert [record.content for record in place.held.memory().list()] == ["Staging needs a VPN"]


def test_a_summary_without_words_is_asked_for_again(place, server):
    """The model is told what is missing, and the next one counts."""
    server.add(calls(("finish_task", {"summary": " "})), DONE)
    outcome = place.work()
    assert (outcome.summary, outcome.steps) == ("Deployed v2.1 to staging.", 1)
    assert "summary is required" in str(server.chats[1].body["messages"])


def test_it_stops_after_as_many_steps_as_its_role_allows(place, server):
    """The limit of the role holds, and one that is given takes its place."""
    place.more = {"guardrails": {"max_iterations": 2}}
    server.add(*["going on"] * 5)
    assert place.work().stopped == "stopped after 2 steps without a call of finish_task"
    assert place.work(steps=3).steps == 3
    assert len(server.chats) == 5


def test_it_stops_when_its_tokens_are_used_up(place, server):
    """No step begins when nothing is left, and one that needs more than is left is stopped."""
    server.add(*["going on"] * 5)
    assert place.work(tokens=18).stopped == "stopped: its 18 tokens are used up, and finish_task was not called"
    outcome = place.work(tokens=20)
    assert (outcome.steps, outcome.summary) == (2, None)
    assert "was stopped by its guardrails" in outcome.stopped
    assert len(server.chats) == 3


def test_its_session_is_saved_once_at_the_end_and_can_be_resumed(place, server):
    """One session has every step."""
    server.add("I built it", DONE)
    place.work()
    [saved] = place.held.sessions.all()
    assert (saved.messages, saved.preview) == (5, "Deploy")
    assert place.talk().resume() == 5


def test_its_session_is_saved_if_it_fails(place, server):
    """What was done before the failure can be gone on with."""
    server.add("I built it", fails(400, "no"))
    with pytest.raises(ProviderError):
        place.work()
    assert [saved.messages for saved in place.held.sessions.all()] == [2]


def test_its_summary_becomes_an_episode(place):
    """The episode has its category, is an agent's word, and says from which session it is."""
    capture(place.held, "Deployed v2.1.", session="a1b2", notify=place.told.append)
    [record] = place.held.memory().list()
    assert (record.kind, record.category, record.content) == (Kind.EPISODIC, "autonomous_run", "Deployed v2.1.")
    assert (record.source.channel, record.source.ref) == (Channel.CAPTURE, "a1b2")
    assert place.told == []


def test_no_episode_is_kept_where_episodes_are_off(place):
    """A kind that is switched off is not written, and nobody is bothered."""
    place.more = {"memory": {"episodic": {"enabled": False}}}
    capture(place.held, "Deployed v2.1.", session="a1b2", notify=place.told.append)
    capture(None, "Deployed v2.1.", session="a1b2", notify=place.told.append)
    assert list(place.held.memory().list()) == []
    assert place.told == []


def test_an_episode_that_cannot_be_kept_is_told_and_ends_nothing(place):
    """What went wrong is one sentence."""
    capture(place.held, "x" * 20_000, session="a1b2", notify=place.told.append)
    [told] = place.told
    assert told.startswith("the result of the run was not recorded as an episode: ")


@pytest.mark.parametrize(
    ("consolidation", "moments", "created"),
    [
        ({}, ["after_session"], 1),
        ({"interval": "after_autonomous"}, ["after_session"], 0),
        ({"interval": "after_autonomous"}, ["after_session", "after_autonomous"], 1),
        ({"interval": "manual"}, ["after_session", "after_autonomous"], 0),
        ({"enabled": False}, ["after_session", "after_autonomous"], 0),
    ],
)
def test_episodes_become_facts_when_the_role_says_so(place, server, consolidation, moments, created):
    """The end of a conversation is one moment, the end of a run by itself is both."""
    place.more = {"memory": {"consolidation": consolidation}}
    server.add("fact: staging needs a VPN [1]")
    capture(place.held, "Deployed through the VPN.", session="a1b2", notify=place.told.append)
    assert place.talk().close(*moments) == created
    assert len(server.chats) == created
    assert place.told == []


def test_a_consolidation_that_fails_is_told_and_the_episodes_wait(place, server):
    """It is never taken for nothing to do, and the next one has the same episodes (defect 12 is its neighbour)."""
    server.add(fails(400, "no"), "fact: staging needs a VPN [1]")
    capture(place.held, "Deployed through the VPN.", session="a1b2", notify=place.told.append)
    assert place.talk().close("after_session") == 0
    [told] = place.told
    assert told.startswith("episodes were not consolidated, and wait for the next time: ")
    assert "answered 400: no" in told
    assert place.talk().close("after_session") == 1


def test_ending_a_conversation_keeps_only_the_newest_sessions(place):
    """Sessions are counted, not turns."""
    place.more = {"memory": {"max_sessions": 2}}
    for name in ("a", "b", "c"):
        place.held.sessions.save(name, [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": name}]}])
    place.talk().close()
    assert [saved.id for saved in place.held.sessions.all()] == ["c", "b"]

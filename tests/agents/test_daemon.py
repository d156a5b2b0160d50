"""An agent that waits: every run is kept, none ends the daemon, and signals do what they should."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack, suppress

import pytest

from commonplace.model.errors import ConfigError, Forbidden, ProviderError, StoreError
from commonplace.model.records import Channel, Kind
from commonplace.roles.agent import RoleAgent
from commonplace.roles.autonomous import capture
from commonplace.roles.conversation import Conversation
from commonplace.roles.daemon import Daemon, Worker, serve
from commonplace.roles.dialect import parse
from commonplace.roles.memory import role_memory
from commonplace.roles.triggers import TriggerEvent
from loopback import LoopbackServer, calls, fails, hangs

DONE = calls(("finish_task", {"summary": "The report is written."}))
TICK = TriggerEvent(trigger="cron", prompt="Report")
FILE = TriggerEvent(trigger="file_watch", prompt="File changed: a.md")
ALONE = TriggerEvent(trigger="webhook", prompt="Work", autonomous=True)


class Scripted:
    """A source that offers what it is given, then waits; or fails."""

    def __init__(self, *events, error=None):
        self.events, self.error, self.answers = events, error, []

    async def watch(self, offer, tell):
        """See ``TriggerSource``."""
        tell("scripted")
        self.answers += [offer(event) for event in self.events]
        if self.error:
            raise self.error
        await asyncio.Event().wait()


class Full:
    """A store on a disk that is full."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def apply(self, _changes):
        """Fail."""
        raise StoreError("the disk is full")


class Place:
    """A role with its memory in a folder, and a model at an address."""

    def __init__(self, folder, server, opened):
        self.folder, self.server, self.opened = folder, server, opened
        self.more, self.told, self.said = {}, [], []

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

    def worker(self):
        """The agent, as events run it."""
        return Worker(RoleAgent(self.role, self.held, env={}), notify=self.told.append)

    def run(self, *events, worker=None):
        """Run events, one after the other; returns what came of each."""
        worker = worker or self.worker()

        async def every():
            return [await worker.run(event) for event in events]

        return asyncio.run(every())

    def live(self, *sources, run=None, runs=None):
        """Run a daemon until it has run as much as expected."""
        worker, count = self.worker() if run is None else None, 0

        async def counted(event):
            nonlocal count
            try:
                await (run or worker.run)(event)
            finally:
                count += 1
                if count == runs:
                    daemon.stop()

        daemon = Daemon(sources, counted, notify=self.told.append, announce=self.said.append)
        serve(daemon)

    def episodes(self):
        """What was recorded, oldest first."""
        return list(reversed(self.held.memory().list(kinds=[Kind.EPISODIC])))


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


def test_a_run_leaves_an_episode_in_the_documents_words(place, server):
    """Text, category and the trigger's type are the specification's; the source is a capture."""
    server.add("All quiet.", "Read it.")
    assert [ran.output for ran in place.run(TICK, FILE)] == ["All quiet.", "Read it."]
    first, second = place.episodes()
    assert (first.content, first.category) == ("Daemon trigger (cron): All quiet.", "daemon_run")
    assert (second.content, second.category) == ("Daemon trigger (file_watch): Read it.", "daemon_run")
    assert [dict(one.metadata) for one in (first, second)] == [{"trigger_type": "cron"}, {"trigger_type": "file_watch"}]
    assert first.source.channel == Channel.CAPTURE


def test_of_what_was_said_five_hundred_characters_are_recorded(place, server):
    """A long answer is cut."""
    server.add("x" * 700)
    place.run(TICK)
    [record] = place.episodes()
    assert record.content == f"Daemon trigger (cron): {'x' * 500}"


def test_the_same_outcome_again_is_no_second_episode(place, server):
    """What is known is not kept twice; the same words of another trigger are something else."""
    server.add(*["All quiet."] * 3)
    place.run(TICK, TICK, FILE)
    assert [one.content for one in place.episodes()] == [
        "Daemon trigger (cron): All quiet.", "Daemon trigger (file_watch): All quiet.",
    ]  # fmt: skip


def test_a_run_knows_nothing_of_the_one_before_it_but_what_was_remembered(place, server):
    """Each has a conversation of its own, and procedures stand before every one of them."""
    server.add(calls(("learn_procedure", {"content": "Be brief"})), "noted", "again")
    place.run(TICK, TICK)
    assert [message["role"] for message in server.chats[2].body["messages"] if message["role"] != "system"] == ["user"]
    assert "- [general] Be brief" in server.chats[2].system


def test_a_plain_run_saves_no_session_and_never_consolidates(place, server):
    """As the document says: its end is the end of no session."""
    server.add("fine", "fine too")
    ran = place.run(TICK, FILE)
    assert place.held.sessions.all() == []
    assert [one.created for one in ran] == [0, 0]
    assert len(server.chats) == 2


@pytest.mark.parametrize(("interval", "created"), [("after_session", 1), ("after_autonomous", 1), ("manual", 0)])
def test_a_run_by_itself_leaves_its_summary_and_consolidates_at_its_interval(place, server, interval, created):
    """It is the end of a run by itself; the episode has its trigger's type as well."""
    place.more = {"memory": {"consolidation": {"interval": interval}}}
    server.add("working", DONE, "fact: reports are written [1]")
    [ran] = place.run(ALONE)
    assert (ran.output, ran.created) == ("The report is written.", created)
    [record] = place.episodes()
    assert (record.content, record.category) == ("The report is written.", "autonomous_run")
    assert dict(record.metadata) == {"trigger_type": "webhook"}
    assert len(place.held.sessions.all()) == 1


def test_a_run_by_itself_that_is_stopped_says_why_and_records_nothing(place, server):
    """There is no summary to record."""
    place.more = {"guardrails": {"max_iterations": 1}}
    server.add("working")
    [ran] = place.run(ALONE)
    assert (ran.output, ran.stopped) == (None, "stopped after 1 steps without a call of finish_task")
    assert place.episodes() == []


@pytest.mark.parametrize("answer", ["fine", fails(400, "no")])
def test_old_sessions_go_after_every_trigger(place, server, answer):
    """Sessions are counted, not turns; a run that fails prunes as well."""
    place.more = {"memory": {"max_sessions": 2}}
    for name in ("a", "b", "c", "d"):
        place.held.sessions.save(name, [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": name}]}])
    server.add(answer)
    place.live(Scripted(TICK), runs=1)
    assert [saved.id for saved in place.held.sessions.all()] == ["d", "c"]


def test_a_run_that_fails_is_told_and_the_next_one_runs(place, server):
    """Whatever a provider or a store says, the daemon stays."""
    server.add(fails(400, "no such model"), "fine")
    place.live(Scripted(TICK, FILE), runs=2)
    assert place.told[0].startswith(
        "the run of cron failed: agent 'worker': the model 'endpoint:m' answered 400: no such model"
    )
    assert [one.content for one in place.episodes()] == ["Daemon trigger (file_watch): fine"]


def test_an_episode_that_cannot_be_kept_is_told_and_ends_nothing(place, server):
    """The answer is an answer all the same."""
    server.add("fine")
    held = place.held
    worker = Worker(RoleAgent(place.role, held, env={}), notify=place.told.append)
    held.store = Full(held.store)
    assert place.run(TICK, worker=worker)[0].output == "fine"
    assert place.told == ["the result of the run was not recorded as an episode: the disk is full"]


def test_two_triggers_at_once_both_run_one_after_the_other(place, server):
    """Their prompts come in order, and never two at a time."""
    server.add(*["fine"] * 4)
    place.live(Scripted(TICK, FILE), Scripted(TICK.replace(prompt="Other"), ALONE.replace(autonomous=False)), runs=4)
    assert sorted(chat.prompt for chat in server.chats) == sorted([TICK.prompt, FILE.prompt, "Other", "Work"])
    assert server.busiest == 1


def test_nothing_is_recorded_where_episodes_are_off_or_there_is_no_memory(place, server):
    """It runs all the same."""
    place.more = {"memory": {"episodic": {"enabled": False}}}
    server.add("fine", "fine")
    assert place.run(TICK)[0].output == "fine"
    assert place.episodes() == []
    role = place.role.replace(memory=None)
    worker = Worker(RoleAgent(role, env={}), notify=place.told.append)
    assert place.run(TICK, worker=worker)[0].output == "fine"


def test_the_tokens_of_a_daemon_are_limited_as_a_whole(place, server):
    """What is used up is used up until it is started anew."""
    place.more = {"guardrails": {"daemon_token_budget": 36}}
    server.add("fine", DONE, "fact: none [1]", "never")
    worker = place.worker()
    place.run(TICK, ALONE, worker=worker)
    asked = len(server.chats)
    with pytest.raises(Forbidden, match="the daemon has used its 36 tokens"):
        place.run(TICK, worker=worker)
    assert len(server.chats) == asked


@pytest.mark.parametrize("event", [TICK, ALONE])
@pytest.mark.parametrize("ends", [fails(400, "no"), calls(("list_memories", {}))])
def test_a_run_that_fails_has_used_tokens_too(place, server, event, ends):
    """One that a guardrail stops, or the provider: else a daemon that always fails could run for ever."""
    place.more = {"guardrails": {"daemon_token_budget": 30, "max_tool_calls": 1}}
    server.add(calls(("list_memories", {})), ends, calls(("list_memories", {})), ends, "never")
    worker = place.worker()
    for _ in range(2):
        with suppress(ProviderError, Forbidden):
            place.run(event, worker=worker)
    asked = len(server.chats)
    with pytest.raises(Forbidden, match="the daemon has used its 30 tokens"):
        place.run(event, worker=worker)
    assert len(server.chats) == asked


def test_the_first_signal_lets_the_run_under_way_end_and_drops_what_waits(place):
    """What was running is recorded; what was not is told by number."""

    async def run(event):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        place.said.append(event.prompt)

    place.live(Scripted(TICK, FILE), run=run)
    assert place.said == ["scripted", "Report"]
    assert place.told == [
        "stopping after the current run; press again to stop at once", "not run, still waiting: 1",
    ]  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_it_at_once(place, server, number):
    """A model that does not answer is given up on."""
    server.add(hangs())

    async def run(event):
        for wait in (0.05, 0.1):
            asyncio.get_running_loop().call_later(wait, os.kill, os.getpid(), number)
        await place.worker().run(event)

    with pytest.raises(KeyboardInterrupt):
        place.live(Scripted(TICK), run=run)
    assert place.told[0].startswith("stopping after the current run")
    assert place.episodes() == []


def test_a_daemon_that_only_waits_ends_with_the_first_signal(place):
    """There is nothing to wait for."""

    async def ended():
        daemon = Daemon([Scripted()], print, notify=place.told.append, announce=place.said.append)
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.wait_for(daemon.serve(), 5)

    asyncio.run(ended())
    assert (place.said, place.told) == (["scripted"], [])


def test_a_source_that_cannot_go_on_ends_the_daemon_with_its_reason(place, server):
    """Half a daemon would be worse than none; the run under way is finished."""
    server.add("fine")
    with pytest.raises(ConfigError, match="port is taken"):
        place.live(Scripted(TICK), Scripted(error=ConfigError("port is taken", file="role.yaml")), runs=9)


def test_episodes_of_a_daemon_become_facts_at_the_end_of_a_conversation(place, server):
    """What a plain run recorded waits for the next one that consolidates."""
    server.add("The backup took an hour.", "fact: the backup takes an hour [1]")
    place.run(TICK)
    capture(None, "nothing", session="s", notify=place.told.append)
    talk = Conversation(RoleAgent(place.role, place.held, env={}), notify=place.told.append)
    assert talk.close("after_session") == 1
    assert "[daemon_run]" in server.chats[1].prompt

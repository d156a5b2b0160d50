"""What happened to entries, as a list and as a stream: O37 on the wire, across processes."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from commonplace.intents.intents import Caller, Intents

SAID_SECONDS = 10  # a stream polls twice a second; a machine at work may take its time


@pytest.fixture
def call(served, agent):
    """The key of one agent."""
    return served.http(served.key(agent, agent=agent))


def put(call, agent, key, value="the value", **options):
    """Keep a value under a key."""
    return call.put(f"/api/v1/agents/{agent}/memory/n/{key}", json={"value": value, **options})


def events(call, **asked):
    """The list of events."""
    response = call.get("/api/v1/memory/events", params=asked)
    assert response.status_code == 200, response.text
    return response.json()


class Stream:
    """A stream of events, read line by line."""

    def __init__(self, server, key, **headers):
        self.client = httpx.Client(base_url=server.url, timeout=SAID_SECONDS)
        given = {"X-API-Key": key, "Accept": "text/event-stream", **headers}
        self.request = self.client.stream("GET", "/api/v1/memory/events", headers=given)
        self.response = self.request.__enter__()
        self.lines = self.response.iter_lines()

    def next(self):
        """The next event: its id, type and data."""
        found = {}
        for line in self.lines:
            name, _, text = line.partition(": ")
            found[name] = text
            if not line and "data" in found:
                return int(found.get("id", 0)), found["event"], json.loads(found["data"])
        return None

    def close(self):
        """Go away."""
        self.response.close()
        self.client.close()


@pytest.fixture
def stream(served):
    """Open streams, which are closed at the end."""
    opened = []

    def stream(key, server=served, **headers):
        opened.append(Stream(server, key, **headers))
        return opened[-1]

    yield stream
    for one in opened:
        one.close()


def test_what_happens_is_told_without_the_value(call, agent):
    """Created, updated, expired and deleted, each with the names and versions of the RFC."""
    put(call, agent, "a", tags=["x"])
    put(call, agent, "a", "another value")
    call.delete(f"/api/v1/agents/{agent}/memory/n/a")
    put(call, agent, "b", ttl_seconds=1)
    time.sleep(1.1)
    put(call, agent, "c")
    told = events(call)["events"]

    assert [(one["type"].removeprefix("memory."), one["key"]) for one in told] == [
        ("created", "a"), ("updated", "a"), ("deleted", "a"), ("created", "b"), ("expired", "b"), ("created", "c"),
    ]  # fmt: skip
    assert (told[1]["version"], told[1]["previous_version"]) == (2, 1)
    assert (told[0]["agent_id"], told[0]["namespace"], told[0]["memory_type"]) == (agent, "n", "episodic")
    assert told[0]["tags"] == ["x"]
    assert "value" not in json.dumps(told)


def test_an_archive_tells_how_much_it_holds_and_not_what(call, agent):
    """The values are asked for by name, of those who may see them."""
    task = f"t-{agent}"
    call.post("/v1/intents/begin_task", json={"task": task, "agent_id": agent})
    body = {"agent_id": agent, "key": "k", "value": "the value", "memory_type": "working", "scope": {"task_id": task}}
    call.post("/api/v1/memory", json=body)
    call.post("/v1/intents/finish_task", json={"task": task})
    last = events(call)["events"][-1]

    assert (last["type"], last["task_id"], last["entries_archived"]) == ("memory.archived", task, 1)
    assert "the value" not in json.dumps(last)


def test_a_list_goes_on_where_the_last_one_ended(call, agent):
    """`next` is what `after` should be."""
    for key in ("a", "b", "c"):
        put(call, agent, key)
    first = events(call, limit=2)
    rest = events(call, after=first["next"])

    assert [one["key"] for one in first["events"]] == ["a", "b"]
    assert [one["key"] for one in rest["events"]] == ["c"]
    assert events(call, after=rest["next"]) == {"events": [], "next": rest["next"], "events_floor": 0}


def test_an_agent_hears_of_its_own_entries_only(served, call, agent):
    """Neither in a list of its own nor by asking for another's."""
    put(call, agent, "a")
    stranger = served.http(served.key("stranger", agent=f"{agent}-stranger"))

    assert events(stranger)["events"] == []
    assert events(stranger, agent_id=agent)["events"] == []
    assert agent in [one["agent_id"] for one in events(served.http(), limit=1000)["events"]]


def test_a_stream_tells_what_happens_and_is_resumed(served, call, agent, stream):
    """A client that was cut off says what it had last, and misses nothing."""
    key = served.key("listener", agent=agent)
    put(call, agent, "a")
    first = stream(key)
    seen, kind, told = first.next()
    put(call, agent, "b")
    assert first.next()[2]["key"] == "b"
    first.close()
    put(call, agent, "c")
    again = stream(key, **{"Last-Event-ID": str(seen)})

    assert (kind, told["key"], told["id"]) == ("memory.created", "a", seen)
    assert [again.next()[2]["key"] for _ in range(2)] == ["b", "c"]


def test_a_stream_needs_a_key_and_a_place_to_start(served, stream):
    """What cannot be read is said before the stream begins."""
    assert stream("wrong").response.status_code == 401
    assert stream(served.operator, **{"Last-Event-ID": "x"}).response.status_code == 400


def test_a_revoked_key_ends_its_stream(served, agent, stream):
    """At the next look, not at the next connection."""
    key, token = served.keys.create("short", agent=agent)
    listening = stream(token)
    served.keys.revoke(key.id)

    assert listening.next() is None


def test_two_servers_on_one_store_hear_of_each_other(serve, stream, agent):
    """What one writes, the other tells."""
    first, second = serve(), serve()
    listening = stream(first.operator, server=first)
    put(second.http(), agent, "a")

    assert listening.next()[2]["key"] == "a"


def past(server, agent, keys, *, days):
    """Keep entries as they were kept that many days ago; returns the numbers of what was told of them."""
    memory = Intents(server.opened, clock=lambda: datetime.now(UTC) - timedelta(days=days), event_days=0)
    for key in keys:
        memory.store(Caller(), agent, key, 1, tier="episodic")
    return [event.seq for event in memory.events(Caller(), agent=agent, limit=1000)]


def test_what_is_too_old_is_no_longer_told(serve, agent, stream):
    """A list says up to where only archives are left; a stream that is resumed before that says so first."""
    server = serve("--event-days", "7")
    numbers = past(server, agent, "abc", days=8)
    call = server.http()
    assert events(call)["events_floor"] == 0
    put(call, agent, "d")
    told = events(call, after=numbers[0])
    assert ([one["key"] for one in told["events"]], told["events_floor"]) == (["d"], numbers[-1])

    resumed = stream(server.operator, server=server, **{"Last-Event-ID": str(numbers[0])})
    assert resumed.next() == (0, "memory.missed", {"events_floor": numbers[-1]})
    assert resumed.next()[2]["key"] == "d"
    for start in ({}, {"Last-Event-ID": str(numbers[-1])}):
        assert stream(server.operator, server=server, **start).next()[2]["key"] == "d"


def test_a_server_can_keep_what_happened_for_ever(serve, agent):
    """With 0 days nothing is erased."""
    server = serve(COMMONPLACE_SERVE_EVENT_DAYS="0")
    past(server, agent, "abc", days=999)
    call = server.http()
    put(call, agent, "d")
    assert ([one["key"] for one in events(call)["events"]], events(call)["events_floor"]) == (["a", "b", "c", "d"], 0)

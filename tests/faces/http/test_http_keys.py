"""What a key may do, until when, and when it was last used."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from openintent.exceptions import OpenIntentError

from commonplace.intents import EVENT_ROUTES, RFC_ROUTES, SDK_ROUTES
from commonplace.intents import VERBS as INTENT_VERBS
from commonplace.records import VERBS as RECORD_VERBS
from commonplace.server.keys import Keys

PATH = "/api/v1/memory/namespaces"


@pytest.fixture(scope="module")
def reader(served):
    """Call the server with a key that may only read."""
    return served.http(served.keys.create("dashboard", read_only=True)[1])


@pytest.mark.parametrize("room", ["intents", "records"])
def test_a_read_only_key_calls_what_reads_and_nothing_that_writes(reader, room):
    """The declaration of a verb decides, before its arguments are looked at."""
    for verb in {"intents": INTENT_VERBS, "records": RECORD_VERBS}[room]:
        response = reader.post(f"/v1/{room}/{verb.name}", json={"no": "such argument"})
        assert response.json()["error"] == ("INVALID_INPUT" if verb.reads else "READ_ONLY_KEY"), verb
        assert response.status_code == (400 if verb.reads else 403)


def test_a_read_only_key_reads_every_route_and_writes_none(reader):
    """The routes of the public client and of the RFC likewise; the refusal says which route writes."""
    for route in (*RFC_ROUTES, *SDK_ROUTES, *EVENT_ROUTES):
        response = reader.request(route.method, route.path.replace(":path", ""))
        assert (response.status_code == 403) == (route.method != "GET"), route.path
        if response.status_code == 403:
            assert f"{route.method} {route.path} writes" in response.json()["message"]


def test_a_read_only_key_gets_answers_and_events(served, reader, agent):
    """Reading is all of it: a recall, an entry, a stream."""
    served.http().put(f"/api/v1/agents/{agent}/memory/n/k", json={"value": "owls hunt at night"})

    assert reader.get(f"/api/v1/agents/{agent}/memory/n/k").json()["value"] == "owls hunt at night"
    assert reader.post("/v1/records/recall", json={"query": "owls"}).status_code == 200
    with reader.stream("GET", "/api/v1/memory/events", headers={"Accept": "text/event-stream"}) as stream:
        assert next(stream.iter_lines()) == "retry: 1000"


def test_an_expired_key_is_refused_with_the_date(served):
    """It was right once, so it is not taken for a guess; its stream would end, too."""
    then = datetime.now(UTC) - timedelta(days=2)
    past = Keys(served.opened, clock=lambda: then)
    _, token = past.create("old", expires_at=then + timedelta(days=1))
    answers = [served.http(token).get(PATH) for _ in range(12)]

    assert {(answer.status_code, answer.json()["error"]) for answer in answers} == {(401, "KEY_EXPIRED")}
    assert f"expired at {then + timedelta(days=1):%Y-%m-%d}" in answers[0].json()["message"]


def test_a_key_with_a_date_works_until_then(served):
    """From the clock of the server."""
    _, token = served.keys.create("new", expires_at=datetime.now(UTC) + timedelta(days=1))
    assert served.http(token).get(PATH).status_code == 200


def test_the_last_use_of_a_key_is_written(serve):
    """After the first request; a server that stops has written it."""
    server = serve()
    key, token = server.keys.create("laptop")
    assert server.keys.list()[-1].last_used_at is None
    before = datetime.now(UTC)
    assert server.http(token).get(PATH).status_code == 200
    server.opened, opened = None, server.opened  # still asked after the server has stopped
    server.stop()
    used = {one.id: one.last_used_at for one in server.keys.list()}[key.id]
    opened.close()

    assert before - timedelta(seconds=1) < used < datetime.now(UTC)


def test_the_public_client_reads_with_a_read_only_key(served, agent):
    """It gets the refusal of a write as its own error, with the sentence."""
    made = served.sdk(agent).create_memory(agent, "n", "k", {"text": "owls"})
    client = served.sdk(agent, key=served.keys.create("reader", read_only=True)[1])
    assert client.get_memory(made.id).value == {"text": "owls"}
    with pytest.raises(OpenIntentError) as refused:
        client.create_memory(agent, "n", "k2", {"text": "owls"})
    assert "read-only" in refused.value.response["message"]

"""The routes of declared verbs: a verb's arguments and result are what its route takes and returns."""

from __future__ import annotations

import pytest

from commonplace.intents import VERBS
from commonplace.model.values import Value
from commonplace.routes import Call
from commonplace.server.openapi import document
from commonplace.server.rooms import ROUTES
from commonplace.server.verb_routes import routes_of
from commonplace.verbs import verb
from commonplace.wire import schema_of


class Sum(Value):
    """A number and where it comes from."""

    total: int
    note: str | None = None


@verb(reads=True)
def add(caller: int, numbers: list[int], *, note: str | None = None) -> Sum:
    """Add numbers.

    Args:
        caller: What is there already.
        numbers: What is added.
        note: Why.
    """
    return Sum(total=caller + sum(numbers), note=note)


def test_a_verb_has_a_route_that_calls_it():
    """Its path is the room's, its body the arguments, its answer the result; nothing is written twice."""
    [route] = routes_of("sums", [add])
    call = Call(path={}, query=None, body={"numbers": [1, 2], "note": "why"}, headers={})
    operation = document([route])["paths"]["/v1/sums/add"]["post"]

    assert (route.method, route.summary) == ("POST", "Add numbers.")
    assert route.handle(4, call) == {"total": 7, "note": "why"}
    assert operation["requestBody"]["content"]["application/json"]["schema"] == add.parameters()
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    assert answer == schema_of(Sum) | {"required": ["total"]}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_verb_of_intent_memory_is_served(verb):
    """Under its own name, with its own schema."""
    [route] = [route for route in ROUTES if route.path == f"/v1/intents/{verb.name}"]
    assert route.body_schema == verb.parameters()


def test_a_mistake_is_answered_with_a_sentence(http, agent):
    """What is missing, unknown or of another type is named."""

    def message(**body):
        response = http.post("/v1/intents/store", json=body)
        assert response.status_code == 400
        return response.json()["message"]

    named = {"agent_id": agent, "key": "k", "value": 1}
    assert "key" in message(agent_id=agent, value=1)
    assert "takes no 'colour'" in message(**named, colour="red")
    assert "tier must be one of working, episodic, semantic, not 'long'" in message(**named, tier="long")
    assert "expires_at must be a date" in message(**named, expires_at="soon")


def test_entries_are_changed_and_erased_by_id_too(http, agent):
    """What the public routes do by id, the verbs do under their own names."""

    def verb(name, **given):
        response = http.post(f"/v1/intents/{name}", json=given)
        assert response.status_code == 200, response.text
        return response.json()

    entry = verb("store", agent_id=agent, key="k", value={"a": 1}, tags=["x"])
    changed = verb("update", id=entry["id"], version=1, value=None)
    assert (changed["version"], changed["value"], changed["tags"]) == (2, None, ["x"])
    assert verb("entry", id=entry["id"]) == changed
    assert verb("summary", agent_id=agent)["episodic_count"] == 1
    assert verb("erase", id=entry["id"]) is None
    assert [event["type"] for event in verb("events", agent_id=agent)["events"]] == [
        "memory.created", "memory.updated", "memory.deleted",
    ]  # fmt: skip
    assert http.post("/v1/intents/entry", json={"id": entry["id"]}).status_code == 404


def test_a_name_that_holds_a_secret_is_refused_over_http(serve):
    """In a sentence without it, and nothing of it reaches the folder of the server."""
    server, canary = serve(), "ghp_" + "q7Rt2Yx9Lm" * 3 + "Kd4Wz8"
    for name in ("agent_id", "task", "namespace"):
        body = {"agent_id": "ada", "key": "k", "value": 1, "tier": "working", name: canary}
        answer = server.http().post("/v1/intents/store", json=body)
        assert answer.status_code == 400, answer.text
        assert "holds a secret (github-pat)" in answer.text
        assert canary not in answer.text
    server.stop()

    assert not [path for path in server.folder.rglob("*") if path.is_file() and canary.encode() in path.read_bytes()]

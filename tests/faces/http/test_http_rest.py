"""RFC-0015 as it was written, and the paths of the MCP tools: O31 to O36, and O39."""

from __future__ import annotations

import time

import pytest


class Calls:
    """Calls of one caller, for one agent."""

    def __init__(self, http, agent):
        self.http, self.agent = http, agent

    def keep(self, key, value=None, **fields):
        """Create an entry; returns it."""
        given = {"agent_id": self.agent, "namespace": "n", "key": key, "value": value, "memory_type": "episodic"}
        response = self.http.post("/api/v1/memory", json=given | fields)
        assert response.status_code == 200, response.text
        return response.json()

    def keys(self, **asked):
        """The keys of a list."""
        response = self.http.get("/api/v1/memory", params={"agent_id": self.agent} | asked)
        assert response.status_code == 200, response.text
        return [entry["key"] for entry in response.json()["entries"]]


@pytest.fixture
def calls(http, agent):
    """An operator who calls for an agent."""
    return Calls(http, agent)


@pytest.fixture
def bound(served):
    """Somebody who calls with the key of one agent."""

    def bound(agent):
        return Calls(served.http(served.key(agent, agent=agent)), agent)

    return bound


def test_a_list_says_how_many_there_are(calls):
    """The envelope of the RFC: entries, total, limit and offset."""
    for number in range(3):
        calls.keep(f"k{number}")
    page = calls.http.get("/api/v1/memory", params={"agent_id": calls.agent, "limit": 2, "offset": 1}).json()

    assert [entry["key"] for entry in page["entries"]] == ["k1", "k0"]
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 1)


def test_every_filter_filters(calls):
    """Each of the RFC's parameters, by itself."""
    task = f"t-{calls.agent}"
    calls.keep("a", tags=["x", "y"], namespace="team.api")
    calls.keep("b", tags=["y"], namespace="team.web", pinned=True)
    middle = calls.keep("c", tags=["z"], namespace="other")["updated_at"]
    calls.keep("d", memory_type="working", scope={"task_id": task, "intent_id": "i1"})

    assert calls.keys(namespace="team.api") == ["a"]
    assert calls.keys(namespace="team.*") == ["b", "a"]
    assert calls.keys(key="c") == ["c"]
    assert calls.keys(memory_type="working") == ["d"]
    assert calls.keys(tags="x,y") == ["a"]
    assert calls.keys(tags_any="x,z") == ["c", "a"]
    assert calls.keys(**{"scope.task_id": task, "memory_type": "working"}) == ["d"]
    assert calls.keys(**{"scope.intent_id": "i1"}) == ["d"]
    assert calls.keys(pinned="true") == ["b"]
    assert calls.keys(updated_after=middle) == ["d"]
    assert calls.keys(updated_before=middle) == ["b", "a"]


def test_a_private_list_needs_an_agent(http):
    """An operator who names nobody is asked whose entries are meant."""
    assert http.get("/api/v1/memory", params={"memory_type": "episodic"}).status_code == 400


def test_a_batch_is_all_or_nothing(calls):
    """New and known entries together; one that cannot be kept keeps the others out."""
    calls.keep("known", 1)
    entry = {"agent_id": calls.agent, "namespace": "n", "memory_type": "episodic"}
    both = [entry | {"key": "known", "value": 2}, entry | {"key": "new", "value": 3}]
    kept = calls.http.post("/api/v1/memory/batch", json={"entries": both}).json()["entries"]
    bad = [entry | {"key": "third", "value": 4}, entry | {"key": "known", "value": 5, "version": 1}]
    refused = calls.http.post("/api/v1/memory/batch", json={"entries": bad})

    assert [(one["key"], one["value"], one["version"]) for one in kept] == [("known", 2, 2), ("new", 3, 1)]
    assert (refused.status_code, refused.json()["current_version"]) == (409, 2)
    assert calls.keys() == ["new", "known"]


def test_a_batch_is_deleted_by_a_filter(calls):
    """In the parameters or in the body, but never by nothing at all."""
    for key, tag in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "z")):
        calls.keep(key, tags=[tag])
    gone = calls.http.delete("/api/v1/memory/batch", params={"agent_id": calls.agent, "tags": "x"}).json()
    also = calls.http.request("DELETE", "/api/v1/memory/batch", json={"agent_id": calls.agent, "tags": ["y"]}).json()

    assert (gone["deleted"], also["deleted"]) == (2, 1)
    assert calls.keys() == ["d"]
    assert calls.http.delete("/api/v1/memory/batch").status_code == 400
    assert calls.keys() == ["d"]


def test_a_namespace_belongs_to_who_wrote_first(bound, agent):
    """Others read what is shared, and write only when they are let; permissions are the administrator's."""
    owner, reader, space = bound(f"{agent}-owner"), bound(f"{agent}-reader"), f"space-{agent}"
    owner.keep("fact", 1, memory_type="semantic", namespace=space)
    write = {"agent_id": reader.agent, "namespace": space, "key": "mine", "value": 2, "memory_type": "semantic"}
    path = f"/api/v1/memory/namespaces/{space}"

    assert reader.keys(namespace=space) == ["fact"]
    assert reader.http.post("/api/v1/memory", json=write).json()["error"] == "ACCESS_DENIED"
    assert reader.http.patch(path, json={"permissions": {"default": "write"}}).status_code == 403
    grants = {"default": "none", "allow": [{"agent": reader.agent, "access": "write"}]}
    granted = owner.http.patch(path, json={"permissions": grants}).json()["permissions"]
    assert {"agent": reader.agent, "access": "write"} in granted["allow"]
    assert reader.http.post("/api/v1/memory", json=write).status_code == 200


def test_a_closed_namespace_is_not_there_for_others(bound, agent):
    """Neither in lists nor by id, nor among the names of namespaces."""
    owner, stranger, space = bound(f"{agent}-owner"), bound(f"{agent}-stranger"), f"closed-{agent}"
    fact = owner.keep("fact", 1, memory_type="semantic", namespace=space)
    path = f"/api/v1/memory/namespaces/{space}"
    assert owner.http.patch(path, json={"permissions": {"default": "none"}}).status_code == 200

    assert stranger.keys(namespace=space) == []
    assert stranger.http.get(f"/api/v1/memory/{fact['id']}").json()["error"] == "ENTRY_NOT_FOUND"
    assert space not in stranger.http.get("/api/v1/memory/namespaces").json()["namespaces"]
    assert space in owner.http.get("/api/v1/memory/namespaces").json()["namespaces"]
    assert stranger.http.get(path).status_code == 404
    assert owner.http.get(path).json()["permissions"]["default"] == "none"


def test_a_summary_counts(calls):
    """Working and episodic entries, pins, tasks and the namespaces that can be read."""
    calls.keep("a", "x" * 100, pinned=True)
    calls.keep("b")
    calls.keep("w", memory_type="working", scope={"task_id": f"t-{calls.agent}"})
    calls.keep("s", memory_type="semantic", namespace=f"s-{calls.agent}")
    told = calls.http.get(f"/api/v1/agents/{calls.agent}/memory/summary").json()

    assert told["working"]["entry_count"] == 1
    assert told["working"]["tasks_with_memory"] == [f"t-{calls.agent}"]
    assert (told["episodic"]["entry_count"], told["episodic"]["pinned_count"]) == (2, 1)
    assert told["episodic"]["capacity"] == 1000
    assert told["episodic"]["total_size_kb"] >= 0.1
    assert told["episodic"]["oldest_entry"] < told["episodic"]["newest_entry"]
    assert f"s-{calls.agent}" in told["semantic_namespaces_accessible"]


def test_a_key_can_stand_in_the_path(calls):
    """Put twice is one entry with two versions; a slash in a key is part of it; a list is a list."""
    base = f"/api/v1/agents/{calls.agent}/memory/notes"
    first = calls.http.put(f"{base}/a%2Fb", json={"value": {"n": 1}})
    second = calls.http.put(f"{base}/a%2Fb", json={"value": {"n": 2}}, headers={"If-Match": '"1"'})

    assert (first.json()["version"], second.json()["version"]) == (1, 2)
    assert second.json()["key"] == "a/b"
    assert calls.http.get(f"{base}/a/b").json()["value"] == {"n": 2}
    assert [entry["key"] for entry in calls.http.get(base).json()] == ["a/b"]
    assert calls.http.delete(f"{base}/a%2Fb").json() == {"status": "deleted"}
    assert calls.http.get(f"{base}/a%2Fb").status_code == 404


def test_a_time_to_live_is_kept(calls):
    """After its seconds an entry is in no answer any more."""
    path = f"/api/v1/agents/{calls.agent}/memory/notes/brief"
    entry = calls.http.put(path, json={"value": 1, "ttl_seconds": 1}).json()
    assert calls.http.get(path).status_code == 200
    time.sleep(1.1)

    assert calls.http.get(path).status_code == 404
    assert calls.http.get(f"/api/v1/memory/{entry['id']}").status_code == 404
    assert calls.keys(memory_type="episodic") == []


def test_a_value_has_at_most_64_kb(calls):
    """Refused with the limit in the sentence, and nothing is stored."""
    body = {"agent_id": calls.agent, "namespace": "n", "key": "k", "value": {"text": "x" * 66_000}}
    refused = calls.http.post("/api/v1/memory", json=body)

    assert refused.status_code == 400
    assert "65536" in refused.json()["message"]
    assert calls.http.post("/api/v1/memory", json=body | {"value": {"text": "x" * 60_000}}).status_code == 200


def test_a_full_task_says_how_full(calls):
    """429, with what there is and what there may be."""
    task = f"t-{calls.agent}"
    begun = {"task": task, "agent_id": calls.agent, "policy": {"max_entries": 2}}
    assert calls.http.post("/v1/intents/begin_task", json=begun).json()["status"] == "active"
    for key in ("a", "b"):
        calls.keep(key, memory_type="working", scope={"task_id": task})
    body = {"agent_id": calls.agent, "key": "c", "value": 1, "memory_type": "working", "scope": {"task_id": task}}
    refused = calls.http.post("/api/v1/memory", json=body)

    assert refused.status_code == 429
    assert refused.json()["error"] == "CAPACITY_EXCEEDED"
    assert refused.json()["most"] == 2


def test_a_foreign_agent_sees_nothing(bound, agent):
    """Not by id, not by key, not in lists, not in counts, not in summaries; and it can write and delete nothing."""
    owner, thief = bound(f"{agent}-owner"), bound(f"{agent}-thief")
    secret = owner.keep("plan", {"text": "the secret plan"})
    by_id, by_key = f"/api/v1/memory/{secret['id']}", f"/api/v1/agents/{owner.agent}/memory/n/plan"
    question = {"agent_id": owner.agent, "query": "secret plan"}

    for path in (by_id, by_key):
        assert thief.http.get(path).json()["error"] == "ENTRY_NOT_FOUND"
        assert thief.http.delete(path).json()["error"] == "ENTRY_NOT_FOUND"
    assert thief.http.patch(by_id, json={"value": 1}, headers={"If-Match": "1"}).status_code == 404
    assert thief.http.put(by_key, json={"value": 1}).status_code == 403
    for path in (f"/api/v1/agents/{owner.agent}/memory", f"/api/v1/agents/{owner.agent}/memory/n"):
        assert thief.http.get(path).json() == []
    page = thief.http.get("/api/v1/memory", params={"agent_id": owner.agent}).json()
    assert (page["entries"], page["total"]) == ([], 0)
    assert thief.http.post("/v1/intents/recall", json=question).json() == []
    assert thief.http.get(f"/api/v1/agents/{owner.agent}/memory/summary").status_code == 403
    assert owner.http.get(by_id).json()["version"] == 1


def test_what_is_foreign_and_what_is_not_there_look_the_same(bound, agent):
    """A guess at an id tells a stranger nothing: the answers differ in nothing but the id that was asked for."""
    owner, thief = bound(f"{agent}-owner"), bound(f"{agent}-thief")
    there = owner.keep("plan")["id"]
    gone = owner.keep("other")["id"]
    owner.http.delete(f"/api/v1/memory/{gone}")
    answers = [thief.http.get(f"/api/v1/memory/{one}") for one in (there, gone)]

    told = [(answer.status_code, answer.text.replace(there, "ID").replace(gone, "ID")) for answer in answers]
    assert told[0] == told[1]


def test_the_verbs_have_their_own_names_too(calls):
    """What our remote client calls: store, get, recall, pin, list, batch, forget."""
    body = {"agent_id": calls.agent, "key": "owl", "value": "owls hunt at night", "tier": "episodic", "tags": ["bird"]}

    def verb(name, **given):
        response = calls.http.post(f"/v1/intents/{name}", json=given)
        assert response.status_code == 200, response.text
        return response.json()

    named = {"agent_id": calls.agent, "key": "owl"}
    assert verb("store", **body)["version"] == 1
    assert verb("store", **body, version=1)["version"] == 2
    assert verb("get", **named)["value"] == "owls hunt at night"
    assert [one["key"] for one in verb("recall", agent_id=calls.agent, query="night hunters")] == ["owl"]
    assert verb("pin", **named)["pinned"] is True
    assert verb("unpin", **named)["pinned"] is False
    assert verb("list", agent_id=calls.agent, tags=["bird"])["total"] == 1
    assert [one["key"] for one in verb("batch", items=[body, body | {"key": "jay"}])] == ["owl", "jay"]
    assert verb("forget", **named) is None


def test_a_task_is_taken_over_and_ended(bound, calls, agent):
    """Who takes it over reads what was noted, and at its end nothing of it is left in lists."""
    first, second, task = bound(f"{agent}-1"), bound(f"{agent}-2"), f"t-{agent}"
    calls.http.post("/v1/intents/begin_task", json={"task": task, "agent_id": first.agent})
    first.keep("step", 1, memory_type="working", scope={"task_id": task})
    asked = {"agent_id": second.agent, "task": task, "tier": "working"}
    before = second.http.post("/v1/intents/list", json=asked).json()["total"]
    assigned = calls.http.post("/v1/intents/assign_task", json={"task": task, "agent_id": second.agent}).json()
    after = second.http.post("/v1/intents/list", json=asked).json()["entries"]
    ended = second.http.post("/v1/intents/finish_task", json={"task": task, "outcome": "completed"}).json()

    assert before == 0
    assert (assigned["assigned"], assigned["former"]) == (second.agent, [first.agent])
    assert [(entry["key"], entry["agent"]) for entry in after] == [("step", first.agent)]
    assert ended["status"] == "completed"
    assert second.http.post("/v1/intents/list", json=asked).json()["total"] == 0
    archive = second.http.post("/v1/intents/task_archive", json={"task": task}).json()
    assert [(one["agent"], one["entries"][0]["key"]) for one in archive] == [(first.agent, "step")]
    assert calls.http.post("/v1/intents/erase_task", json={"task": task}).json() is None
    assert calls.http.post("/v1/intents/task_archive", json={"task": task}).status_code == 404

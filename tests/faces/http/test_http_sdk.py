"""The public client drives the server unmodified, synchronously and asynchronously: O24 to O30 on the wire."""

from __future__ import annotations

import asyncio
from datetime import datetime

import pytest
from openintent.exceptions import ConflictError, NotFoundError, OpenIntentError, ValidationError
from openintent.models import MemoryPriority, MemoryType

from stands import rows

FIELDS = {
    "id", "agent_id", "namespace", "key", "value", "memory_type", "version", "scope", "tags", "ttl", "pinned",
    "priority", "sensitivity", "curated_by", "created_at", "updated_at", "expires_at",
}  # fmt: skip


class Both:
    """The same five calls of one client or the other."""

    def __init__(self, served, kind):
        self.served, self.kind = served, kind

    def __call__(self, verb, *arguments, api_key=None, **named):
        """Make one call; an asynchronous client lives as long as it."""
        if self.kind == "sync":
            return getattr(self.served.sdk(key=api_key), verb)(*arguments, **named)

        async def call():
            async with self.served.async_sdk(key=api_key) as client:
                return await getattr(client, verb)(*arguments, **named)

        return asyncio.run(call())


@pytest.fixture(params=["sync", "async"])
def sdk(served, request):
    """Both clients, one after the other."""
    return Both(served, request.param)


@pytest.fixture
def kept(sdk, agent):
    """An entry to work with."""
    return sdk("create_memory", agent, "notes", "finding", {"text": "please keep"}, memory_type="episodic", tags=["a"])


def test_an_entry_is_created_read_listed_changed_and_deleted(sdk, agent, kept):
    """The five calls, in the order in which people make them."""
    read = sdk("get_memory", kept.id)
    [listed] = sdk("list_memory", agent)
    changed = sdk("update_memory", kept.id, 1, value={"text": "kept"})
    sdk("delete_memory", kept.id)

    assert (kept.version, kept.memory_type, kept.tags) == (1, MemoryType.EPISODIC, ["a"])
    assert read.value == listed.value == {"text": "please keep"}
    assert (changed.version, changed.value, changed.tags) == (2, {"text": "kept"}, ["a"])
    with pytest.raises(NotFoundError):
        sdk("get_memory", kept.id)


def test_every_field_is_always_there(http, agent):
    """The client defaults what is missing, other clients may not; times have a zone that Python 3.10 reads."""
    body = {"agent_id": agent, "namespace": "n", "key": "k", "value": {"a": 1}}
    created = http.post("/api/v1/memory", json=body)
    entry = created.json()

    assert entry.keys() == FIELDS
    assert created.headers["etag"] == '"1"'
    assert (entry["memory_type"], entry["priority"], entry["scope"]) == ("working", "normal", None)
    for name in ("created_at", "updated_at"):
        assert entry[name].endswith("+00:00")
        assert len(entry[name]) in (25, 32)
        assert datetime.fromisoformat(entry[name]).tzinfo


def test_options_of_create_are_kept(sdk, agent):
    """Scope, tags, ttl, pin, priority and sensitivity come back as they went in."""
    given = {
        "scope": {"task_id": f"task-{agent}", "intent_id": "i"}, "tags": ["b", "a"], "ttl": "duration:PT1H",
        "pinned": True, "priority": "high", "sensitivity": "internal",
    }  # fmt: skip
    entry = sdk("create_memory", agent, "n", "k", {}, memory_type="working", **given)

    assert (entry.scope.task_id, entry.scope.intent_id) == (f"task-{agent}", "i")
    assert (entry.tags, entry.ttl, entry.pinned) == (["a", "b"], "duration:PT1H", True)
    assert (entry.priority, entry.sensitivity.value) == (MemoryPriority.HIGH, "internal")
    assert (entry.expires_at - entry.created_at).total_seconds() == pytest.approx(3600, abs=1)


def test_a_wrong_key_is_an_error_of_its_status(sdk):
    """401, with the reference server's words."""
    with pytest.raises(OpenIntentError) as caught:
        sdk("get_memory", "x", api_key="wrong")
    assert caught.value.status_code == 401
    assert caught.value.response["detail"] == "Invalid or missing API key"


def test_an_unknown_id_is_not_found(sdk, kept):
    """For every verb, a change included."""
    sdk("delete_memory", kept.id)
    for verb, arguments in (("get_memory", ()), ("update_memory", (1,)), ("delete_memory", ())):
        with pytest.raises(NotFoundError):
            sdk(verb, kept.id, *arguments)


def test_a_stale_version_is_a_conflict_with_the_current_one(sdk, kept):
    """A value with "please" in it does not make it a conflict about leases."""
    sdk("update_memory", kept.id, 1, value={"text": "please release"})
    with pytest.raises(ConflictError) as caught:
        sdk("update_memory", kept.id, 1, value={"text": "other"})
    assert caught.value.current_version == 2
    assert caught.value.response["error"] == "VERSION_MISMATCH"


def test_a_key_with_lease_in_it_is_no_trap_either(sdk, agent):
    """The sentence of a conflict names the key, unless that would be misread."""
    sdk("create_memory", agent, "n", "release-notes", {}, memory_type="episodic")
    with pytest.raises(ConflictError) as caught:
        sdk("create_memory", agent, "n", "release-notes", {}, memory_type="episodic")
    assert caught.value.current_version == 1
    assert "lease" not in str(caught.value.response).lower()


def test_a_second_create_of_a_key_is_a_conflict(sdk, agent, kept):
    """There are never two rows, and nothing is overwritten by accident."""
    with pytest.raises(ConflictError) as caught:
        sdk("create_memory", agent, "notes", "finding", {"text": "other"}, memory_type="episodic")
    assert caught.value.current_version == 1
    assert [entry.id for entry in sdk("list_memory", agent)] == [kept.id]


def test_a_change_without_a_version_is_refused(http, sdk, kept):
    """428: somebody who has not read it cannot know what is overwritten."""
    assert sdk("get_memory", kept.id).version == 1
    assert http.patch(f"/api/v1/memory/{kept.id}", json={}).status_code == 428


@pytest.mark.parametrize("form", ["{}", '"{}"', 'W/"{}"'])
def test_if_match_takes_every_form(http, agent, form):
    """Plain as the public client sends it, quoted as HTTP has it."""
    body = {"agent_id": agent, "namespace": "n", "key": "k", "value": 1}
    entry = http.post("/api/v1/memory", json=body).json()
    changed = http.patch(f"/api/v1/memory/{entry['id']}", json={}, headers={"If-Match": form.format(1)})

    assert changed.json()["version"] == 2
    again = http.patch(f"/api/v1/memory/{entry['id']}", json={}, headers={"If-Match": form.format(1)})
    assert (again.status_code, again.json()["current_version"]) == (409, 2)
    assert http.patch(f"/api/v1/memory/{entry['id']}", json={}, headers={"If-Match": "*"}).status_code == 400


@rows(
    "wrong", [{"memory_type": "long"}, {"priority": "urgent"}, {"sensitivity": "top"}, {"ttl": "soon"}, {"tag": ["a"]}]
)
def test_what_could_not_be_read_back_is_refused(sdk, agent, wrong):
    """No tier, priority, sensitivity or option that the client's types do not know is ever stored."""
    with pytest.raises(ValidationError) as caught:
        sdk("create_memory", agent, "n", "k", {}, **wrong)
    assert caught.value.errors == [caught.value.message]
    assert sdk("list_memory", agent) == []


def test_a_list_is_filtered_ordered_and_cut(sdk, agent):
    """Namespace, type, all of the tags, limit and offset, newest first."""
    for number in range(4):
        tags = ["even" if number % 2 == 0 else "odd", "all"]
        space = "low" if number < 2 else "high"
        sdk("create_memory", agent, space, f"k{number}", {"n": number}, memory_type="episodic", tags=tags)
    sdk("create_memory", agent, "low", "w", {"n": 9}, memory_type="working")

    def keys(**asked):
        return [entry.key for entry in sdk("list_memory", agent, **asked)]

    assert keys(memory_type="episodic") == ["k3", "k2", "k1", "k0"]
    assert keys(namespace="low", memory_type="episodic") == ["k1", "k0"]
    assert keys(tags=["even", "all"]) == ["k2", "k0"]
    assert keys(tags=["even", "odd"]) == []
    assert keys(memory_type="episodic", limit=2) == ["k3", "k2"]
    assert keys(memory_type="episodic", limit=2, offset=3) == ["k0"]
    assert len(keys(limit=5000)) == 5


def test_a_change_keeps_what_it_does_not_name(sdk, kept):
    """Tags and pin stay; an empty change is a version all the same, as in the reference."""
    pinned = sdk("update_memory", kept.id, 1, pinned=True)
    empty = sdk("update_memory", kept.id, 2)

    assert (pinned.value, pinned.tags, pinned.pinned) == (kept.value, ["a"], True)
    assert (empty.version, empty.value, empty.pinned) == (3, kept.value, True)


@rows("field", ["key", "agent_id", "namespace", "memory_type", "id"])
def test_what_cannot_change_is_refused(sdk, kept, field):
    """A change of identity is a mistake, and the entry stays as it is."""
    with pytest.raises(ValidationError):
        sdk("update_memory", kept.id, 1, **{field: "x"})
    assert sdk("get_memory", kept.id).version == 1


@pytest.mark.parametrize("value", ["text", 1.5, True, None, ["a", {"b": None}], {"ü": "日本語 🦉"}])
def test_a_value_is_any_json(http, agent, value):
    """Strings, numbers and null too."""
    body = {"agent_id": agent, "namespace": "n", "key": "k", "value": value, "tier": "episodic", "ttl": 60}
    entry = http.post("/api/v1/memory", json=body).json()

    assert http.get(f"/api/v1/memory/{entry['id']}").json()["value"] == value
    assert (entry["memory_type"], entry["ttl"]) == ("episodic", 60)


def test_names_in_other_scripts_are_names(sdk):
    """A space and a script that is not Latin in an agent's id, as the client puts them into paths."""
    name = "søk agent 日本"
    sdk("create_memory", name, "n", f"k-{sdk.kind}", {"a": 1}, memory_type="episodic")
    assert f"k-{sdk.kind}" in [entry.key for entry in sdk("list_memory", name)]

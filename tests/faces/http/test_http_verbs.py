"""Our own verbs over HTTP: recall, records, brief; of the place and of an agent."""

from __future__ import annotations

import pytest


@pytest.fixture
def call(served, agent):
    """The key of one agent: a memory of its own."""
    return served.http(served.key(agent, agent=agent))


@pytest.fixture
def kept(call):
    """A record to work with."""
    return call.post("/v1/records", json={"content": "Owls hunt at night", "category": "birds", "tags": ["owl"]}).json()


def test_a_record_is_kept_found_changed_and_erased(call, kept):
    """The life of a record."""
    one = kept["record"]["id"]
    [hit] = call.post("/v1/recall", json={"query": "what hunts at night?", "explain": True}).json()["hits"]
    changed = call.patch(f"/v1/records/{one}", json={"content": "Owls hunt at dusk"}, headers={"If-Match": '"1"'})
    versions = call.get(f"/v1/records/{one}/history").json()["versions"]
    erased = call.delete(f"/v1/records/{one}").json()

    assert (hit["id"], hit["text"], hit["reference"]) == (one, "Owls hunt at night", f"memory://{one}")
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=0.01)
    assert changed.json()["record"]["version"] == 2
    assert [version["content"] for version in versions] == ["Owls hunt at dusk", "Owls hunt at night"]
    assert erased["erased"] == [one]
    assert call.get(f"/v1/records/{one}").status_code == 404


def test_the_same_said_twice_is_kept_once(call, kept):
    """The answer says so, and gives the one that is there."""
    again = call.post("/v1/records", json={"content": "Owls hunt at night", "category": "birds"}).json()
    assert (again["deduped"], again["record"]["id"]) == (True, kept["record"]["id"])


def test_a_stale_version_is_a_conflict(call, kept):
    """With the version that is there."""
    path = f"/v1/records/{kept['record']['id']}"
    call.patch(path, json={"tags": ["a"]})
    stale = call.patch(path, json={"tags": ["b"]}, headers={"If-Match": "1"})
    assert (stale.status_code, stale.json()["current_version"]) == (409, 2)


def test_records_are_listed_archived_and_restored(call, kept):
    """What is archived is in no list but the one that asks for it."""
    path = f"/v1/records/{kept['record']['id']}"
    assert call.post(f"{path}/archive").json()["state"] == "archived"
    assert call.get("/v1/records").json()["records"] == []
    assert [one["state"] for one in call.get("/v1/records?state=archived").json()["records"]] == ["archived"]
    assert call.post(f"{path}/restore").json()["state"] == "live"
    assert len(call.get("/v1/records?category=birds&tag=owl&kind=semantic").json()["records"]) == 1


def test_an_agents_memory_is_its_own(served, kept):
    """Another agent finds nothing of it, and names of others change nothing; an operator may look."""
    path = f"/v1/records/{kept['record']['id']}"
    owner = kept["record"]["scope"].partition("/")[0].partition(":")[2]
    other = served.http(served.key("other", agent=f"{owner}-other"))

    assert other.get(path).status_code == 404
    assert other.get(f"{path}?agent={owner}").status_code == 404
    assert other.post("/v1/recall", json={"query": "owls", "agent": owner}).json()["hits"] == []
    assert served.http().get(f"{path}?agent={owner}").json()["content"] == "Owls hunt at night"
    assert served.http().get(path).status_code == 404


def test_trust_comes_from_the_key(served, kept):
    """What an agent writes is an agent's word, what an operator writes is a person's."""
    mine = served.http().post("/v1/records", json={"content": f"said by {served.url}"}).json()
    assert (kept["record"]["trust"], mine["record"]["trust"]) == ("agent", "user")


def test_a_secret_is_taken_out_and_not_repeated(call):
    """The answer says what kind it was."""
    told = call.post("/v1/records", json={"content": "the password is hunter2hunter2", "category": "general"})
    assert told.json()["redactions"]
    assert "hunter2" not in told.text


def test_a_brief_is_quoted_as_data(call, kept):
    """The block that a session starts with, and what it was made from."""
    told = call.post("/v1/brief", json={"task": "night hunters", "budget": 2000}).json()

    assert told["text"].startswith("<memory seal=")
    assert "Owls hunt at night" in told["text"]
    assert [one["id"] for one in told["records"]] == [kept["record"]["id"]]


def test_without_a_store_the_server_has_what_the_command_has(here):
    """The project's records with their Markdown: what one keeps, the other finds, and edited files count."""
    here.command("record", "add", "Use pnpm, not npm", "--category", "decisions")
    call = here.http()
    told = call.post("/v1/records", json={"content": "Deploy on Tuesdays", "category": "procedures"}).json()
    [file] = here.work.rglob("deploy-on-tuesdays--*.md")
    file.write_text(file.read_text().replace("Tuesdays", "Thursdays"))

    assert "Thursdays" in here.command("recall", "when do we deploy?")
    hits = call.post("/v1/recall", json={"query": "npm or pnpm?"}).json()["hits"]
    assert hits[0]["text"] == "Use pnpm, not npm"
    assert call.get(f"/v1/records/{told['record']['id']}").json()["content"] == "Deploy on Thursdays"
    assert call.post("/v1/records", json={"content": "x", "category": "birds"}).status_code == 400
    own = {"content": "Be brief", "category": "preferences", "scope": "assistant"}
    assert call.post("/v1/records", json=own).json()["record"]["scope"] == "user:ada"
    assert "Use pnpm" in call.post("/v1/brief", json={"task": "npm", "session": "s1"}).json()["text"]
    assert "1 brief" in here.command("used", "s1")

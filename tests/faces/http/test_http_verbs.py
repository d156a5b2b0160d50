"""The verbs of the records system over HTTP: of the served store and of an agent."""

from __future__ import annotations

import pytest

from commonplace.records import VERBS


class Records:
    """A caller of the verbs."""

    def __init__(self, http, agent=None):
        self.http, self.parameters = http, {"agent": agent} if agent else {}

    def send(self, verb, **arguments):
        """Call a verb, whatever comes of it."""
        return self.http.post(f"/v1/records/{verb}", json=arguments, params=self.parameters)

    def __call__(self, verb, **arguments):
        """Call a verb that must succeed; returns its result."""
        answer = self.send(verb, **arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
def call(served, agent):
    """The key of one agent: a memory of its own."""
    return Records(served.http(served.key(agent, agent=agent)))


@pytest.fixture
def kept(call):
    """A record to work with."""
    return call("remember", content="Owls hunt at night", category="birds", tags=["owl"])["record"]


def test_every_verb_has_a_route(call):
    """A verb that is declared can be called."""
    missing = [verb.name for verb in VERBS if call.send(verb.name, nothing="at all").status_code != 400]
    assert missing == []


def test_a_record_is_kept_found_changed_and_erased(call, kept):
    """The life of a record."""
    one = kept["id"]
    [hit] = call("recall", query="what hunts at night?", explain=True)["hits"]
    changed = call("update", id=one, content="Owls hunt at dusk", expect_version=1)
    versions = call("history", id=one)["versions"]
    erased = call("forget", id=one, confirm=True)

    assert (hit["record"]["id"], hit["record"]["content"]) == (one, "Owls hunt at night")
    assert (hit["rank"], hit["uri"]) == (1, f"memory://record/{one}")
    assert sum(hit["parts"].values()) == pytest.approx(hit["score"], abs=0.01)
    assert changed["record"]["version"] == 2
    assert [version["content"] for version in versions] == ["Owls hunt at dusk", "Owls hunt at night"]
    assert (erased["erased"], erased["pending"]) == ([one], False)
    assert call.send("remember", content="owls hunt at dusk", category="birds").status_code == 403
    assert call.send("get", id=one).status_code == 404


def test_the_same_said_twice_is_kept_once(call, kept):
    """The answer says so, and gives the one that is there."""
    again = call("remember", content="Owls hunt at night", category="birds")
    assert (again["deduped"], again["record"]["id"]) == (True, kept["id"])


def test_a_stale_version_is_a_conflict(call, kept):
    """With the version that is there."""
    call("update", id=kept["id"], tags=["a"])
    stale = call.send("update", id=kept["id"], tags=["b"], expect_version=1)
    assert (stale.status_code, stale.json()["current_version"]) == (409, 2)


def test_nothing_is_erased_without_confirmation(call, kept):
    """The answer says what would be erased."""
    refused = call.send("forget", id=kept["id"])
    assert refused.status_code == 400
    assert f"{kept['id']} (birds, " in refused.json()["message"]
    assert call("get", id=kept["id"])["state"] == "live"


def test_records_are_listed_archived_and_restored(call, kept):
    """What is archived is in no list but the one that asks for it."""
    assert call("archive", id=kept["id"])["state"] == "archived"
    assert call("list") == {"records": [], "more": False, "file_notes": []}
    assert [one["state"] for one in call("list", state="archived")["records"]] == ["archived"]
    assert call("restore", id=kept["id"])["state"] == "live"
    assert len(call("list", categories=["birds"], tags=["owl"], kinds=["semantic"])["records"]) == 1


def test_a_field_can_be_cleared_and_a_record_pinned(call, kept):
    """Null is a value where a field may be empty; a pin is a change like any other."""
    dated = call("update", id=kept["id"], occurred_at="2026-05-01")["record"]
    assert dated["occurred_at"] == "2026-05-01T00:00:00Z"
    assert call("update", id=kept["id"], occurred_at=None)["record"]["occurred_at"] is None
    assert call("pin", id=kept["id"])["record"]["pinned"]
    assert not call("unpin", id=kept["id"])["record"]["pinned"]
    refusal = call.send("update", id=kept["id"], content=None).json()["message"]
    assert refusal.startswith("update needs at least one of content")


def test_an_agents_memory_is_its_own(served, kept):
    """Another agent finds nothing of it, and names of others change nothing; an operator may look."""
    owner = kept["scope"].partition("/")[0].partition(":")[2]
    key = served.key("other", agent=f"{owner}-other")

    for other in (Records(served.http(key)), Records(served.http(key), agent=owner), Records(served.http())):
        assert other.send("get", id=kept["id"]).status_code == 404
        assert other("recall", query="owls hunt at night")["hits"] == []
    assert Records(served.http(), agent=owner)("get", id=kept["id"])["record"]["content"] == "Owls hunt at night"


def test_trust_comes_from_the_key(served, kept):
    """What an agent writes is an agent's word, what an operator writes is a person's."""
    mine = Records(served.http())("remember", content=f"said by {served.url}")
    assert (kept["trust"], mine["record"]["trust"]) == ("agent", "user")


def test_a_secret_is_removed_and_not_repeated(call):
    """The answer says what kind it was."""
    saved = call("remember", content="the password is hunter2hunter2", category="general")
    assert saved["redactions"]
    assert "hunter2" not in str(saved)


def test_a_brief_is_quoted_as_data(call, kept):
    """The block that a session starts with, and what it was made from."""
    brief = call("brief", task="night hunters", budget=2000)

    assert brief["text"].startswith("<memory seal=")
    assert "Owls hunt at night" in brief["text"]
    assert [one["id"] for one in brief["records"]] == [kept["id"]]


def test_an_address_is_read_whole(call, kept):
    """As the command reads it."""
    page = call("read", uri=f"memory://record/{kept['id']}")
    assert "Owls hunt at night" in page["text"]
    assert (page["content_type"], page["trust"]) == ("text/markdown", "agent")
    assert call.send("read", uri="memory://root/../x").status_code == 403


def test_without_a_store_the_server_has_what_the_command_has(here):
    """The project's records with their Markdown: what one keeps, the other finds, and edited files count."""
    here.command("record", "add", "Use pnpm, not npm", "--category", "decisions")
    call = Records(here.http())
    saved = call("remember", content="Deploy on Tuesdays", category="procedures")
    [file] = here.work.rglob("deploy-on-tuesdays--*.md")
    file.write_text(file.read_text().replace("Tuesdays", "Thursdays"))

    assert "Thursdays" in here.command("recall", "when do we deploy?")
    hits = call("recall", query="npm or pnpm?", scope="project")["hits"]
    assert hits[0]["record"]["content"] == "Use pnpm, not npm"
    assert call("get", id=saved["record"]["id"])["record"]["content"] == "Deploy on Thursdays"
    assert call.send("remember", content="x", category="birds").status_code == 400
    own = call("remember", content="Be brief", category="preferences", scope="assistant")
    assert own["record"]["scope"] == "user:ada"
    assert "Use pnpm" in call("brief", task="npm", session="s1")["text"]
    call("recall", query="pnpm", session="s1")
    used = here.command("used", "s1")
    assert "1 brief" in used
    assert "1 recall" in used

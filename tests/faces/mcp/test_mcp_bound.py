"""Servers with an agent bound: the seeds' own tools, on that agent's memory and nobody else's."""

from __future__ import annotations

import json

import pytest

from commonplace.ci import pipeline_surface
from commonplace.engine.rendering import remove_fenced
from commonplace.intents import intent_surface
from commonplace.roles import role_surface

ROLE = """\
apiVersion: initrunner/v1
kind: Agent
metadata:
  name: {name}
spec:
  role: You help.
  memory:
    embeddings: {{provider: local}}
{more}"""
PIPELINE = """\
name: release
jobs:
  - name: review
    plan:
      - agent: reviewer
        prompt: Review it.
        model: openai:gpt-5-mini
        memory: {enabled: true, max_recall: 3, max_content_bytes: 200}
      - agent: writer
        prompt: Write it.
        model: openai:gpt-5-mini
      - agent: tester
        prompt: Test it.
        model: openai:gpt-5-mini
        memory: {enabled: true}
"""


@pytest.fixture
def role(outside):
    """Write a role, and say where."""

    def role(name="helper", more=""):
        path = outside.folder / "work" / f"{name}.yaml"
        path.write_text(ROLE.format(name=name, more=more), encoding="utf-8")
        return path

    return role


@pytest.fixture
def pipeline(outside):
    """A pipeline of which two agents remember."""
    path = outside.folder / "work" / "release.yml"
    path.write_text(PIPELINE, encoding="utf-8")
    return path


@pytest.fixture(params=["stdio", "http"])
def bound(request):
    """Connect with a role or an agent bound, over each transport."""

    def bound(*options):
        connect = request.getfixturevalue(f"over_{request.param}")
        if request.param == "stdio":
            return connect(*options)
        given = dict(zip(options[::2], options[1::2], strict=True))
        match given:
            case {"--role": file}:
                return connect(role_surface(file))
            case {"--pipeline": file, "--agent": agent}:
                return connect(pipeline_surface(file, agent))
        return connect(intent_surface(given["--agent"], given.get("--namespace")))

    return bound


def test_a_role_has_its_own_tools(bound, role):
    """Their names are the document's, and each says whether it reads, writes or erases."""
    with bound("--role", str(role())) as talk:
        tools = {tool.name: tool for tool in talk.list_tools().tools}
        assert talk.server_capabilities.resources is None
    assert tools.keys() >= {
        "remember", "learn_procedure", "record_episode", "recall", "list_memories", "forget", "update",
    }  # fmt: skip
    reading = {name for name, tool in tools.items() if tool.annotations.read_only_hint}
    assert reading == {"recall", "list_memories"}
    assert tools["forget"].annotations.destructive_hint
    assert all("secrets" in tools[name].description for name in ("remember", "learn_procedure", "record_episode"))


def test_a_role_remembers_through_every_tool(bound, role):
    """Each kind is kept, found, listed, corrected and erased."""
    with bound("--role", str(role())) as talk:
        kept = talk.text("remember", content="The user likes tea", category="preferences")
        assert kept.startswith("Remembered (id=")
        assert talk.text("learn_procedure", content="Warm the pot first").startswith("Learned procedure (id=")
        assert talk.text("record_episode", content="The kettle broke").startswith("Recorded episode (id=")
        found = talk.text("recall", query="what does the user like?", memory_types=["semantic"])
        assert "The user likes tea" in found
        assert "Type: semantic | Category: preferences" in found
        assert "tea" not in remove_fenced(found)
        known = kept.partition("id=")[2].partition(",")[0]
        assert talk.text("update", id=known, content="The user likes coffee").startswith(f"Updated (id={known}")
        assert "coffee" in talk.text("list_memories", memory_type="semantic")
        assert talk.done("forget", id=known) == {"result": f"Forgot (id={known})"}
        assert "coffee" not in talk.text("list_memories")


def test_a_kind_that_is_off_has_no_tool(role):
    """A role without procedures offers none to learn."""
    surface = role_surface(str(role(more="    procedural: {enabled: false}\n")))
    assert "learn_procedure" not in {tool.name for tool in surface.tools()}


def test_two_roles_do_not_see_each_other(bound, role):
    """Whose memory it is was said when the server was started; no argument says it again."""
    with bound("--role", str(role("one"))) as talk:
        talk.done("remember", content="One's own secret hobby is chess")
        assert "takes no 'scope'" in talk.refused("remember", content="x", scope="two")
    with bound("--role", str(role("two"))) as talk:
        assert "No memories stored yet." in talk.text("recall", query="chess")


def test_a_mistake_of_a_model_is_a_sentence(bound, role):
    """It can be acted on."""
    with bound("--role", str(role())) as talk:
        assert "content is required" in talk.refused("remember")
        assert "each of memory_types must be one of" in talk.refused("recall", query="x", memory_types=["facts"])
        assert "there is no record" in talk.refused("forget", id="0000000000")


def test_a_pipeline_agent_saves_and_recalls_its_lessons(bound, pipeline):
    """Both tools have the document's answers as data, and what is recalled stands between marks as text."""
    with bound("--pipeline", str(pipeline), "--agent", "reviewer") as talk:
        assert {tool.name for tool in talk.list_tools().tools} == {"save_memory", "recall_memory"}
        lesson = {"content": "The lint step needs Node 22", "tags": ["ci"]}
        assert talk.done("save_memory", **lesson) == {"saved": True, "deduped": False}
        assert talk.done("save_memory", **lesson) == {"saved": True, "deduped": True}
        found = talk.call("recall_memory", query="lint")
        [memory] = found.structured_content["memories"]
        assert (memory["content"], memory["tags"], memory["recall_count"]) == (lesson["content"], ["ci"], 1)
        assert lesson["content"] in found.content[0].text
        assert lesson["content"] not in remove_fenced(found.content[0].text)
        assert "exceeds max 200 bytes" in talk.refused("save_memory", content="x" * 201)


def test_an_agent_of_a_pipeline_sees_its_own_lessons_only(bound, pipeline):
    """Its neighbour's are not there, whatever it asks."""
    with bound("--pipeline", str(pipeline), "--agent", "reviewer") as talk:
        talk.done("save_memory", content="Only the reviewer knows this")
    with bound("--pipeline", str(pipeline), "--agent", "tester") as talk:
        assert talk.done("recall_memory", query="reviewer") == {"memories": []}


def test_a_deleted_pipeline_takes_nothing_more(bound, pipeline, outside):
    """A server that outlives its pipeline cannot leave lessons for the next one of that name."""
    with bound("--pipeline", str(pipeline), "--agent", "reviewer") as talk:
        talk.done("save_memory", content="Before it was deleted")
        outside.ok("pipeline", "delete", "release", "--yes")
        assert "there is no pipeline 'release'" in talk.refused("save_memory", content="After it was deleted")


@pytest.mark.parametrize(
    ("agent", "code", "said"),
    [("nobody", 2, "its agents are: reviewer, tester, writer"), ("writer", 5, "is off for the agent 'writer'")],
)
def test_an_agent_that_cannot_remember_is_refused_at_the_start(outside, pipeline, agent, code, said):
    """The command says why and serves nothing."""
    done = outside("mcp", "--pipeline", pipeline, "--agent", agent)
    assert (done.code, done.out) == (code, "")
    assert said in done.err


def test_a_role_without_a_memory_is_refused_at_the_start(outside):
    """The command says what is missing."""
    path = outside.folder / "work" / "role.yaml"
    path.write_text(json.dumps({"name": "x", "role": "y"}), encoding="utf-8")
    done = outside("mcp", "--role", path)
    assert done.code == 5
    assert "memory" in done.err


def test_an_intent_agent_keeps_values_under_keys(bound, outside):
    """What it keeps has a version, is found by words and by tags, read by key, pinned and erased."""
    assert outside
    with bound("--agent", "researcher", "--namespace", "research") as talk:
        assert [tool.name for tool in talk.list_tools().tools] == ["store", "recall", "get", "pin", "forget"]
        kept = talk.done("store", key="rival", value={"name": "Acme"}, tags=["market"])
        assert (kept["version"], kept["tier"], kept["namespace"]) == (1, "episodic", "research")
        assert talk.done("store", key="rival", value="Acme and Globex", tags=["market"])["version"] == 2
        found = talk.call("recall", query="who are Acme and Globex?", tags=["market"])
        assert [one["key"] for one in found.structured_content["result"]] == ["rival"]
        assert "Globex" in found.structured_content["memory"] == found.content[0].text
        assert "Globex" not in json.dumps(found.structured_content["result"])
        assert "Globex" not in remove_fenced(found.content[0].text)
        assert talk.done("get", key="rival")["version"] == 2
        assert talk.done("pin", key="rival")["pinned"]
        assert talk.done("forget", key="rival") == {"result": None}
        assert "rival" in talk.refused("get", key="rival")


def test_an_intent_agent_that_is_late_hears_the_version(bound, outside):
    """Two writers of one key: the second one is told what is there."""
    assert outside
    with bound("--agent", "researcher") as talk:
        talk.done("store", key="rival", value="Acme", version=0)
        assert "version 1" in talk.refused("store", key="rival", value="Globex", version=0)


def test_intent_agents_share_what_they_share_and_nothing_else(bound, outside):
    """Shared knowledge of a namespace is read by the next agent; its own entries are not."""
    assert outside
    with bound("--agent", "one", "--namespace", "research") as talk:
        talk.done("store", key="shared", value="water is wet", tier="semantic")
        talk.done("store", key="own", value="my own water bottle")
    with bound("--agent", "two", "--namespace", "research") as talk:
        assert [one["key"] for one in talk.done("recall", query="water")["result"]] == ["shared"]
        assert "own" in talk.refused("get", key="own")
        assert "takes no 'agent'" in talk.refused("recall", agent="one")

"""Flow files: several agents in one file, and the store that they share."""

from __future__ import annotations

import re

import pytest

from commonplace.model.errors import ConfigError
from commonplace.roles.dialect import MemorySettings, Role, model_settings
from commonplace.roles.flow_dialect import DEPTH, Flow, load
from stands import rows

DOCUMENT = """\
apiVersion: initrunner/v1
kind: Flow
metadata:
  name: newsroom
  description: Someone looks things up, someone writes
spec:
  shared_memory:
    enabled: true
  agents:
    researcher:
      role: roles/researcher.yaml
      sink:
        type: delegate
        target: writer
    writer:
      role: roles/writer.yaml
      needs:
        - researcher
"""
RESEARCHER = "name: researcher\nrole: You look things up.\nmemory: {semantic: {max_memories: 7}, max_sessions: 3}\n"
WRITER = "name: writer\nrole: You write.\n"


@pytest.fixture
def flow(tmp_path):
    """Write a flow with its roles, and read it."""
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "researcher.yaml").write_text(RESEARCHER)
    (tmp_path / "roles" / "writer.yaml").write_text(WRITER)

    def write(text=DOCUMENT):
        (tmp_path / "flow.yaml").write_text(text)
        return load(str(tmp_path / "flow.yaml"))

    return write


def agents(**sinks):
    """A flow of agents by what comes after them; each is the writer."""
    lines = ["kind: Flow", "metadata: {name: f}", "spec:", "  agents:"]
    for name, after in sinks.items():
        sink = f", sink: {{type: delegate, target: [{', '.join(after)}]}}" if after else ""
        lines.append(f"    {name}: {{role: roles/writer.yaml{sink}}}")
    return "\n".join(lines) + "\n"


def test_a_flow_is_read_with_its_roles(flow):
    """Names, order and who hands on to whom are the file's."""
    read = flow()
    assert isinstance(read, Flow)
    assert (read.name, [member.name for member in read.members]) == ("newsroom", ["researcher", "writer"])
    assert [member.role.name for member in read.members] == ["researcher", "writer"]
    assert (read.member("researcher").targets, read.member("writer").needs) == (("writer",), ("researcher",))
    assert (read.starts(), read.order()) == (["researcher"], ["researcher", "writer"])


def test_whoever_shares_has_one_store_and_one_limit_and_keeps_the_rest(flow):
    """The default path is called after the flow; a role without a memory gets one."""
    read, home = flow(), "/data"
    stores = {member.role.store(home) for member in read.members}
    assert stores == {"/data/memory/newsroom-shared.db"}
    assert {member.role.scope(home) for member in read.members} == {read.members[0].role.scope(home)}
    researcher, writer = (member.role.memory for member in read.members)
    assert (researcher.semantic.keep, researcher.max_sessions) == (1000, 3)
    assert writer == MemorySettings(store_path="memory/newsroom-shared.db")


def test_the_shared_store_may_be_named_and_limited(flow):
    """Path and limit are the flow's; outside of the data folder it has to be allowed, by the flow."""
    said = "enabled: true\n    store_path: team.db\n    max_memories: 5"
    read = flow(DOCUMENT.replace("enabled: true", said))
    assert {member.role.store("/data") for member in read.members} == {"/data/team.db"}
    assert {member.role.memory.semantic.keep for member in read.members} == {5}
    outside = DOCUMENT.replace("enabled: true", "enabled: true\n    store_path: /srv/team.db")
    with pytest.raises(ConfigError, match="is outside of the data folder"):
        flow(outside).members[0].role.store("/data")
    allowed = outside.replace("  agents:", "  security: {tools: {restrict_db_paths: false}}\n  agents:")
    assert flow(allowed).members[1].role.store("/data") == "/srv/team.db"


@pytest.mark.parametrize("said", ["enabled: false", "enabled: false\n    store_path: team.db"])
def test_without_sharing_everybody_has_what_is_theirs(flow, said):
    """The flag decides, and it is off unless it is said."""
    researcher, writer = (member.role for member in flow(DOCUMENT.replace("enabled: true", said)).members)
    assert researcher.store("/data") == "/data/memory/researcher.db"
    assert writer.memory is None


def test_a_file_is_what_its_kind_says(flow, tmp_path):
    """A role is read as before."""
    flow()
    assert isinstance(load(str(tmp_path / "roles" / "writer.yaml")), Role)


def test_a_flow_can_be_run_with_another_model_or_without_memory(flow):
    """It holds for every agent."""
    changed = flow().with_options(model=model_settings("openai:gpt-9", file="x"), memory=False)
    assert {member.role.model.name for member in changed.members} == {"gpt-9"}
    assert {member.role.memory for member in changed.members} == {None}


def test_who_is_reached_is_whoever_comes_after(flow):
    """From the middle only the rest; from the start everybody, each after those before it."""
    read = flow(agents(d=[], a=["b", "c"], b=["d"], c=["d"], alone=[]))
    assert read.starts() == ["a", "alone"]
    assert read.reachable_from("b") == ["b", "d"]
    assert read.reachable_from("a") == ["a", "b", "c", "d"]
    assert read.predecessors("d") == ["b", "c"]


@rows(
    "text, said",
    [
        (
            DOCUMENT.replace("target: writer", "target: nobody"),
            "spec.agents.researcher.sink.target: 'nobody' is no agent",
        ),
        (
            DOCUMENT.replace("        - researcher", "        - nobody"),
            "spec.agents.writer.needs: 'nobody' is no agent",
        ),
        (
            DOCUMENT.replace("target: writer", "target: [[writer]]"),
            "spec.agents.researcher.sink.target: ['writer'] is no agent here; there are researcher",
        ),
        (
            DOCUMENT.replace("        - researcher", "        - researcher: now"),
            "spec.agents.writer.needs: {'researcher': 'now'} is no agent here",
        ),
        (DOCUMENT.replace("type: delegate", "type: mail"), "spec.agents.researcher.sink.type: should be delegate"),
        (DOCUMENT.replace("        target: writer\n", ""), "spec.agents.researcher.sink.target: is missing"),
        (
            DOCUMENT.replace("needs:", "wants:"),
            "spec.agents.writer.wants: unknown key; valid keys: role, sink, needs",
        ),
        (DOCUMENT.replace("enabled: true", "enable: true"), "spec.shared_memory.enable: unknown key"),
        (DOCUMENT.replace("roles/writer.yaml", "roles/none.yaml"), "roles/none.yaml: cannot be read"),
        (DOCUMENT.replace("name: newsroom", "name: ../x"), "metadata.name: should be letters"),
        (DOCUMENT[: DOCUMENT.index("  agents:")], "spec.agents: is missing"),
        (agents(a=["b"], b=["c"], c=["a"]), "spec.agents: goes in a circle: "),
        (agents(a=["a"]), "spec.agents: goes in a circle: a -> a"),
        (agents(**{f"a{at}": [f"a{at + 1}"] for at in range(DEPTH)}, **{f"a{DEPTH}": []}), "has a chain of 21 agents"),
    ],
)
def test_a_flow_that_leads_nowhere_is_refused(flow, text, said):
    """With the file, the place and what is allowed."""
    with pytest.raises(ConfigError, match=re.escape(said)):
        flow(text)


def test_a_circle_is_told_in_the_direction_of_what_is_handed_on(flow):
    """Whoever reads it finds it in the file."""
    with pytest.raises(ConfigError, match=r"(b -> c -> b|c -> b -> c)"):
        flow(agents(a=["b"], b=["c"], c=["b", "d"], d=[]))


def test_what_waits_for_those_after_it_is_a_circle_too(flow):
    """``needs`` is waiting like any other."""
    with pytest.raises(ConfigError, match="goes in a circle"):
        flow(DOCUMENT.replace("        target: writer\n", "        target: writer\n      needs: [writer]\n"))


def test_many_ways_to_the_same_end_take_no_time(flow):
    """Layers in which everybody hands on to everybody are judged by agents, not by ways."""
    layers = [[f"l{layer}n{at}" for at in range(5)] for layer in range(DEPTH)]
    sinks = {name: after for layer, after in zip(layers, [*layers[1:], []], strict=True) for name in layer}
    assert len(flow(agents(**sinks)).order()) == 5 * DEPTH

"""Workflows as files: what is taken, what is refused, and in which words."""

from __future__ import annotations

import textwrap

import pytest

from commonplace.intents.workflow_dialect import AgentBlock, PolicyBlock, WorkflowMemoryBlock, load, loads
from commonplace.model.errors import ConfigError
from stands import rows

# The document's own example, as it stands there, and one in the form of RFC-0015.
DOCUMENT = """\
memory:
  namespace: project-alpha
  tier: episodic
  ttl: 2592000          # 30 days
  max_entries: 5000

workflow:
  research:
    assign: researcher
    memory:
      tier: working     # Override for this phase
      handoff: true     # Pass working memory to next phase

  synthesis:
    assign: synthesizer
    depends_on: [research]
    memory:
      tier: episodic
"""
RFC = """\
name: monthly-close
version: "1.0"

memory:
  semantic_namespaces:
    - house_rules
    - tax_rules
    - ledger_terms
  working_memory:
    archive_on_completion: true
    max_entries_per_task: 50
  episodic_memory:
    capacity_per_agent: 500
    eviction_policy: lru

agents:
  bookkeeper:
    capabilities: [invoices]
    permissions: private
    episodic_memory:
      capacity: 200
      pinned_namespaces: [habits]
  collector:
    capabilities: [spreadsheets]
    permissions: private

plan:
  - task: collect-figures
    agent: collector
    memory_policy:
      archive_on_completion: true
      inherit_from_parent: false
    outputs: [figures]

  - task: write-invoices
    agent: bookkeeper
    depends_on: [collect-figures]
    memory_policy:
      archive_on_completion: true
      max_entries: 100
    outputs: [invoices]
"""


def test_the_documents_example_is_read_as_it_stands():
    """Top-level memory, a phase that overrides its tier and hands over, and one that depends on it."""
    workflow = loads(DOCUMENT, file="launch.yml")
    research, synthesis = workflow.phases
    assert workflow.name == "launch"
    assert workflow.memory == WorkflowMemoryBlock(
        namespace="project-alpha", tier="episodic", ttl=2592000, max_entries=5000
    )
    assert (research.assign, research.memory) == ("researcher", WorkflowMemoryBlock(tier="working", handoff=True))
    assert (synthesis.depends_on, synthesis.memory) == (("research",), WorkflowMemoryBlock(tier="episodic"))
    assert workflow.handoffs_to(synthesis) == (research,)


def test_the_block_of_the_rfc_is_read_as_it_stands():
    """Shared namespaces, limits of working memory and of each agent, pinned namespaces, a plan with policies."""
    workflow = loads(RFC)
    assert workflow.name == "monthly-close"
    assert workflow.semantic_namespaces == ("house_rules", "tax_rules", "ledger_terms")
    assert (workflow.policy, workflow.capacity) == (PolicyBlock(archive_on_completion=True, max_entries=50), 500)
    billing = AgentBlock(name="bookkeeper", capacity=200, pinned_namespaces=("habits",))
    assert workflow.agents["bookkeeper"] == billing
    gather, process = workflow.phases
    assert gather.policy == PolicyBlock(archive_on_completion=True, inherit_from_parent=False)
    assert process.policy.over(workflow.policy) == PolicyBlock(archive_on_completion=True, max_entries=100)
    assert workflow.order() == [("collect-figures",), ("write-invoices",)]


def test_the_header_of_that_package_is_taken():
    """Its version and the workflow's name and description; another version is refused."""
    header = 'openintent: "1.0"\ninfo: {name: "ETL Pipeline", version: "2.1.0", description: every night}\n'
    assert loads(header + "workflow: {a: {assign: x, title: Extract}}").name == "ETL Pipeline"
    with pytest.raises(ConfigError, match=r"openintent: should be 1.0, not '2.0'"):
        loads('openintent: "2.0"\nworkflow: {a: {assign: x}}')


def test_phases_that_wait_for_nothing_run_at_once():
    """A wave holds whatever depends on earlier waves only, in the order of the file."""
    early = "d: {assign: x, depends_on: [b, c]}, a: {assign: x}"
    late = "b: {assign: x, depends_on: [a]}, c: {assign: x}"
    assert loads(f"workflow: {{{early}, {late}}}").order() == [("a", "c"), ("b",), ("d",)]


def test_an_agent_is_a_class_a_model_or_a_name():
    """By import path, long or short or where it is assigned; by a model and a prompt; or left to a program."""
    workflow = loads(
        textwrap.dedent("""\
        agents:
          one: shop.agents:One
          two: {use: shop.agents:Two}
          three: {model: openai:gpt-5, prompt: You are brief., base_url: "http://x/v1", api_key_env: KEY}
        workflow:
          a: {assign: one}
          b: {assign: two}
          c: {assign: three}
          d: {assign: "shop.agents:Four"}
          e: {assign: somebody}
        """)
    )
    blocks = [workflow.agent(phase) for phase in workflow.phases]
    assert [block.use for block in blocks] == ["shop.agents:One", "shop.agents:Two", None, "shop.agents:Four", None]
    assert (blocks[2].model, blocks[2].prompt, blocks[2].api_key_env) == ("openai:gpt-5", "You are brief.", "KEY")
    assert blocks[4] == AgentBlock(name="somebody")


PHASE = "workflow: {a: {assign: x}}\n"
RFC_KEYS = "working_memory, episodic_memory"


@rows("text, path, reason", [
        ("workflow: {a: {assign: x, depends_on: [b]}, b: {assign: y, depends_on: [a]}}", "workflow.a.depends_on",
         "is circular: a -> b -> a"),
        ("workflow: {a: {assign: x, depends_on: [a]}}", "workflow.a.depends_on", "is circular: a -> a"),
        ("workflow: {c: {assign: x, depends_on: [b]}, b: {assign: y, depends_on: [b]}}", "workflow.b.depends_on",
         "is circular: b -> b"),
        ("workflow: {a: {assign: x, depends_on: [resarch]}}", "workflow.a.depends_on[0]",
         "there is no phase 'resarch'; there are a"),
        ("workflow: {a: {assign: x}, b: {assign: x, depends_on: [a, a]}}", "workflow.b.depends_on[1]",
         "names 'a' twice"),
        ("workflow: {a: {assign: x, depends_on: b}}", "workflow.a.depends_on", "should be a list"),
        ("workflow: {a: {}}", "workflow.a.assign", "is missing"),
        (f"plan: [{{task: {'é' * 240}x, agent: y}}]", "plan[0]",
         f"the name of a phase may have at most 480 bytes: {'é' * 40!r}..."),
        ("workflow: {a: {assign: x, retry: {}}}", "workflow.a.retry",
         "unknown key; valid keys: title, description, assign, depends_on, memory, memory_policy, outputs"),
        ("workflow: {}", "workflow",
         "should be a mapping with a phase in it, such as `research: {assign: researcher}`"),
        ("plan: []", "plan", "should be a list with a task in it"),
        ("plan: [{task: a, agent: x}, {task: a, agent: x}]", "plan[1].task", "'a' is the name of an earlier task"),
        (f"plan: []\n{PHASE}", "", "should have its phases under `workflow`, or under `plan` as RFC-0015 writes it"),
        ("workflow: {a: {assign: x, memory: {tier: long}}}", "workflow.a.memory.tier",
         "should be one of working, episodic, semantic, not 'long'"),
        ("workflow: {a: {assign: x, memory: {handoff: 3}}}", "workflow.a.memory.handoff",
         "should be true or false, not 3"),
        ("workflow: {a: {assign: x, memory_policy: {max_entries: 0}}}", "workflow.a.memory_policy.max_entries",
         "should be between 1 and 1000000, not 0"),
        (f"memory: {{ttl: 30d}}\n{PHASE}", "memory.ttl", "should be a whole number of seconds, not '30d'"),
        (f"memory: {{ttl: -1}}\n{PHASE}", "memory.ttl", "should be between 1 and 3153600000, not -1"),
        (f"memory: {{max_entries: many}}\n{PHASE}", "memory.max_entries",
         "should be a whole number of entries, not 'many'"),
        (f"memory: {{max_entries: 9999999}}\n{PHASE}", "memory.max_entries",
         "should be between 1 and 1000000, not 9999999"),
        (f"memory: {{tier: semantic, max_entries: 5}}\n{PHASE}", "memory.max_entries",
         "cannot be kept here: semantic memory is never evicted"),
        (f"memory: {{namespace: ''}}\n{PHASE}", "memory.namespace",
         "'' cannot name a namespace: it is blank or holds control characters"),
        (f"memory: {{namespace: 'team-*'}}\n{PHASE}", "memory.namespace",
         "'team-*' cannot name a namespace: a star stands for the rest of a name"),
        (f"memory: {{semantic_namespaces: [a, '*']}}\n{PHASE}", "memory.semantic_namespaces[1]",
         "'*' cannot name a namespace: a star stands for the rest of a name"),
        (f"memory: {{handoff: true}}\n{PHASE}", "memory.handoff",
         "unknown key; valid keys: namespace, tier, ttl, max_entries, semantic_namespaces, " + RFC_KEYS),
        (f"memory: {{episodic_memory: {{eviction_policy: fifo}}}}\n{PHASE}", "memory.episodic_memory.eviction_policy",
         "should be lru, not 'fifo'"),
        (f"agents: {{x: {{model: test, use: 'a:B'}}}}\n{PHASE}", "agents.x",
         "should have `use` or `model`, not both: a class brings its own"),
        (f"agents: {{x: {{prompt: hello}}}}\n{PHASE}", "agents.x.prompt", "needs a `model`"),
        (f"agents: {{x: nonsense}}\n{PHASE}", "agents.x",
         "should be an import path such as package.module:Class, not 'nonsense'"),
        (f"llm: {{}}\n{PHASE}", "llm",
         "unknown key; valid keys: openintent, info, name, version, description, memory, agents, workflow, plan"),
    ])  # fmt: skip
def test_what_cannot_be_followed_is_said_with_its_path(text, path, reason):
    """One sentence, with the file and the place in it."""
    with pytest.raises(ConfigError) as raised:
        loads(text, file="launch.yml")
    assert (raised.value.file, raised.value.path, raised.value.reason) == ("launch.yml", path, reason)


def test_the_longest_name_of_a_phase_is_read():
    """What is read can also be run: the run's own name stands before it."""
    assert loads(f"workflow: {{{'x' * 480}: {{assign: y}}}}").phases[0].name == "x" * 480


def test_a_file_that_is_no_workflow_is_said_so(tmp_path):
    """It is not there, it is not YAML, it is a list."""
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        load(str(tmp_path / "none.yml"))
    with pytest.raises(ConfigError, match="line 2: is not YAML"):
        loads("workflow: {")
    with pytest.raises(ConfigError, match="should be a mapping with"):
        loads("[]")


def test_a_long_chain_of_phases_is_read_and_too_many_are_refused():
    """Depth costs no stack; more than 500 phases are a program."""

    def chain(count):
        first = "  p0: {assign: x}\n"
        return (
            "workflow:\n" + first + "".join(f"  p{n}: {{assign: x, depends_on: [p{n - 1}]}}\n" for n in range(1, count))
        )

    assert len(loads(chain(500)).order()) == 500
    with pytest.raises(ConfigError, match="has 501 phases; 500 are the most"):
        loads(chain(501))

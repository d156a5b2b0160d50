"""Agents and workflows of the intent memory document, end to end: its examples as they stand, the real command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopback import LoopbackServer, calls, says
from stands import rows

COMMAND = str(Path(sys.executable).with_name("commonplace"))

# The document's examples, verbatim but for the import line; what they call besides stands above them.
LEARNING = """\
from commonplace.intents import Agent, on_assignment

async def research(description, context):
    return {"about": description, "knew": [f"{m.key}: {m.value['about']}" for m in context]}

@Agent("learning-agent",
    memory="episodic",            # Default tier for this agent
    memory_namespace="research"   # Namespace for shared access
)
class LearningAgent:

    @on_assignment
    async def handle(self, intent):
        # Recall past findings
        past = await self.memory.recall(tags=["research"])

        # Do work informed by past experience
        findings = await research(intent.description, context=past)

        # Store for future recall
        await self.memory.store(
            key=f"research-{intent.id}",
            value=findings,
            tags=["research", intent.title]
        )

        return {"findings": findings}
"""
STATEFUL = """\
from commonplace.intents import Agent, on_assignment

def process(value):
    return value["partial"].upper()

@Agent("stateful-worker", memory="working")
class StatefulWorker:

    @on_assignment
    async def handle(self, intent):
        # Store intermediate results in working memory
        await self.memory.store(
            key="step-1-result",
            value={"partial": "data"},
            tier="working"
        )

        # Later steps can read working memory
        step1 = await self.memory.get(key="step-1-result")

        # Working memory is archived when task completes
        return {"final_result": process(step1.value)}
"""
DECLARED = """\
from commonplace.intents import Agent, on_assignment
from commonplace.intents import Memory

@Memory(
    namespace="research",
    tier="episodic",
    ttl=86400 * 30,     # 30-day TTL
    max_entries=1000     # LRU eviction after 1000 entries
)
class ResearchMemory:
    findings = {"tags": ["research"], "pinned": True}
    sources = {"tags": ["sources"]}

@Agent("declared", memory=ResearchMemory)
class Declared:

    @on_assignment
    async def handle(self, intent):
        one = await self.memory.store("findings", {"n": 1})
        two = await self.memory.store("sources", {"n": 2})
        return [[e.namespace, e.tier, e.ttl, e.pinned, list(e.tags)] for e in (one, two)]
"""
WORKFLOW = """\
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
TEAM = """\
from commonplace.intents import Agent, on_assignment

@Agent("researcher")
class Researcher:
    @on_assignment
    async def handle(self, intent):
        kept = await self.memory.store("competitors", ["Acme", "Globex"])
        return {"tier": kept.tier, "namespace": kept.namespace, "topic": intent.inputs.get("topic")}

@Agent("synthesizer")
class Synthesizer:
    @on_assignment
    async def handle(self, intent):
        handed = await self.memory.recall(tier="working")
        kept = await self.memory.store("report", {"leaders": (await self.memory.get("competitors")).value})
        return {"from": [f"{m.agent}/{m.key}" for m in handed], "tier": kept.tier, "ttl": kept.ttl,
                "value": kept.value}
"""


@pytest.fixture
def folder(tmp_path):
    """Where a user has a workflow and a file of agents."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def command(tmp_path, folder):
    """Run the real command, and return what it wrote and its exit code."""

    def command(*arguments, code=0, **variables):
        env = {"COMMONPLACE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = subprocess.run(
            [COMMAND, "workflow", *arguments], cwd=folder, env=env | variables, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done

    return command


@pytest.fixture
def alone(folder, command):
    """Run the one agent of a file on one phase, and return what its handler returned."""

    def alone(module, agent, **phase):
        (folder / "agents.py").write_text(module)
        (folder / "one.yml").write_text(json.dumps({"workflow": {"only": {"assign": agent} | phase}}))
        done = command("run", "one.yml", "--agents", "agents.py", "--json")
        return json.loads(done.stdout)["phases"]["only"]["result"]

    return alone


def test_an_agent_learns_from_one_intent_to_the_next(alone):
    """The document's learning agent finds in its second assignment what it stored in its first."""
    first = alone(LEARNING, "learning-agent", title="tea", description="prices of tea")
    second = alone(LEARNING, "learning-agent", title="coffee", description="prices of coffee")
    assert first["findings"] == {"about": "prices of tea", "knew": []}
    [known] = second["findings"]["knew"]
    assert known.startswith("research-")
    assert known.endswith(": prices of tea")


def test_a_later_step_reads_working_memory(alone):
    """The document's stateful worker."""
    assert alone(STATEFUL, "stateful-worker") == {"final_result": "DATA"}


def test_a_declaration_is_enforced(alone):
    """The document's ResearchMemory: namespace, tier and ttl of every entry, tags and pin of the keys that it names."""
    assert alone(DECLARED, "declared") == [
        ["research", "episodic", 2592000, True, ["research"]],
        ["research", "episodic", 2592000, False, ["sources"]],
    ]


def test_the_documents_workflow_hands_working_memory_on(folder, command):
    """As it stands, with two classes of agents: the second reads what the first kept, and keeps by the defaults."""
    (folder / "launch.yml").write_text(WORKFLOW)
    (folder / "team.py").write_text(TEAM)
    done = command("run", "launch.yml", "--agents", "team.py", "--input", "topic=tea")
    research, synthesis = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert json.loads(research) == {"tier": "working", "namespace": "project-alpha", "topic": "tea"}
    assert json.loads(synthesis) == {
        "from": ["researcher/competitors"],
        "tier": "episodic",
        "ttl": 2592000,
        "value": {"leaders": ["Acme", "Globex"]},
    }
    assert done.stderr.splitlines() == [
        "commonplace: research: assigned to 'researcher'",
        "commonplace: synthesis: assigned to 'synthesizer'",
    ]


def test_without_the_word_nothing_is_handed_on(folder, command):
    """The same workflow less ``handoff``: the second phase fails on what it cannot find, and says so."""
    (folder / "launch.yml").write_text(WORKFLOW.replace("handoff: true", "handoff: false"))
    (folder / "team.py").write_text(TEAM)
    done = command("run", "launch.yml", "--agents", "team.py", code=1)
    said = "there is no entry 'competitors' of 'synthesizer' in the namespace 'project-alpha'"
    assert done.stderr.splitlines()[-2] == f"commonplace: synthesis failed: {said}"


def test_a_check_says_what_would_run(folder, command):
    """In which order, by whom, with which memory; nothing is imported."""
    (folder / "launch.yml").write_text(WORKFLOW)
    assert command("check", "launch.yml").stdout.splitlines() == [
        "1. research: researcher, working memory in project-alpha; hands over to synthesis",
        "2. synthesis: synthesizer, episodic memory in project-alpha; after research",
    ]
    assert json.loads(command("check", "launch.yml", "--json").stdout) == {
        "workflow": "launch",
        "waves": [["research"], ["synthesis"]],
    }


def test_a_phase_that_fails_is_said_and_what_depends_on_it_is_left_out(folder, command):
    """The exit code is 1, and a program reads the same in JSON; no traceback is shown."""
    failing = TEAM.replace(
        'kept = await self.memory.store("competitors", ["Acme", "Globex"])', "raise OSError('offline')"
    )
    (folder / "launch.yml").write_text(WORKFLOW)
    (folder / "team.py").write_text(failing)
    done = command("run", "launch.yml", "--agents", "team.py", "--json", code=1)
    assert done.stderr.splitlines()[1:-1] == [
        "commonplace: research failed: OSError: offline",
        "commonplace: synthesis was left out: it was not run, because 'research' did not complete",
    ]
    said = json.loads(done.stdout)
    assert not said["completed"]
    assert [(name, one["outcome"]) for name, one in said["phases"].items()] == [
        ("research", "failed"),
        ("synthesis", "skipped"),
    ]


def test_what_a_program_reads_is_json(folder, command):
    """Numbers that JSON does not know are told as text."""
    (folder / "odd.py").write_text(
        "from commonplace.intents import Agent, on_assignment\n\n@Agent('odd')\nclass Odd:\n    @on_assignment\n"
        "    async def handle(self, intent):\n        return {'mean': float('nan'), 'most': [float('inf')]}\n"
    )
    (folder / "odd.yml").write_text("workflow: {only: {assign: odd}}")
    done = command("run", "odd.yml", "--agents", "odd.py", "--json")
    said = json.loads(done.stdout, parse_constant=pytest.fail)
    assert said["phases"]["only"]["result"] == {"mean": "NaN", "most": ["Infinity"]}


HINT = "declare it under `agents`, or give its module with --agents"


@rows("text, arguments, said", [
        (WORKFLOW.replace("assign: researcher", "assign: researcher\n    depends_on: [synthesis]"), [],
         "launch.yml: workflow.research.depends_on: is circular: research -> synthesis -> research"),
        (WORKFLOW.replace("[research]", "[reserch]"), [],
         "launch.yml: workflow.synthesis.depends_on[0]: there is no phase 'reserch'; there are research, synthesis"),
        (WORKFLOW.replace("tier: working", "tier: wroking"), [],
         "launch.yml: workflow.research.memory.tier: should be one of working, episodic, semantic, not 'wroking'"),
        (WORKFLOW, [], f"launch.yml: workflow.research.assign: there is no agent 'researcher': {HINT}"),
        (WORKFLOW, ["--agents", "nothing.py"], "there is no file 'nothing.py'"),
        (WORKFLOW, ["--input", "topic"], "--input should be NAME=TEXT, not 'topic'"),
    ])  # fmt: skip
def test_a_mistake_is_one_sentence(folder, command, text, arguments, said):
    """With the file and the place in it, and its exit code; nothing has run."""
    (folder / "launch.yml").write_text(text)
    done = command("run", "launch.yml", *arguments, code=2 if arguments else 5)
    assert (done.stdout, done.stderr) == ("", f"commonplace: {said}\n")


DESCRIBED = """\
openintent: "1.0"
info: {name: "Market study", version: "1.0.0"}
agents:
  researcher: {model: "openai:gpt-5", prompt: You look things up.}
  synthesizer: {model: "openai:gpt-5", prompt: You write., episodic_memory: {capacity: 200}}
workflow:
  research:
    title: Competitors
    assign: researcher
    memory: {tier: working, handoff: true}
  synthesis:
    assign: synthesizer
    depends_on: [research]
"""


def model(request):
    """A model that notes what it finds, then finds what was noted, then remembers that it did."""
    told = [json.loads(one["content"]) for one in request.body["messages"] if one["role"] == "tool"]
    if request.system == "You look things up.":
        return says("Done.") if told else calls(("remember", {"key": "leader", "value": "Acme", "tags": ["market"]}))
    if not told:
        return calls(("recall", {"tags": ["market"]}))
    if len(told) == 1:
        return calls(("remember", {"key": "report", "value": told[0]["memories"][0]["value"]}))
    return says(f"{told[1]['tier']} memory has the report: {told[0]['memories'][0]['value']}.")


@pytest.mark.slow
def test_models_described_in_the_file_hand_memory_on(folder, command):
    """No Python at all: two models at an address, of which the second reads what the first noted."""
    (folder / "study.yml").write_text(DESCRIBED)
    with LoopbackServer(answers=model) as server:
        address = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-test"}
        done = command("run", "study.yml", **address)
    assert done.stdout.splitlines() == ["research: Done.", "synthesis: episodic memory has the report: Acme."]
    offered = [tool["function"]["name"] for tool in server.chats[0].body["tools"]]
    assert offered == ["remember", "recall", "forget"]


RESUMED = """\
import asyncio, os, sys
from commonplace.intents import Agent, Intent, on_assignment, runner

async def main(name, store):
    @Agent(name, memory="working", memory_namespace="invoices")
    class Worker:
        @on_assignment
        async def handle(self, intent):
            before = [(one.agent, one.value["done"]) for one in await self.memory.recall(key="progress")]
            done = max([done for _, done in before], default=0)
            while done < 40:
                done += 1
                await self.memory.store("progress", {"done": done})
                if name == "first" and done == 23:
                    print("here", flush=True)
                    await asyncio.sleep(3600)
            return before, done

    with runner(store) as work:
        print(await work.assign(Worker(), Intent(id="invoices-june", title="Process the invoices")))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow
def test_an_agent_takes_over_from_one_that_was_killed(tmp_path):
    """Another process, another agent, the same intent: it goes on from the predecessor's last step."""
    store = str(tmp_path / "memory.db")
    first = subprocess.Popen([sys.executable, "-c", RESUMED, "first", store], stdout=subprocess.PIPE, text=True)
    assert first.stdout.readline() == "here\n"
    first.kill()
    first.wait()
    first.stdout.close()
    second = subprocess.run(
        [sys.executable, "-c", RESUMED, "second", store], capture_output=True, text=True, check=True, timeout=60
    )
    assert second.stdout == "([('first', 23)], 40)\n"


@pytest.mark.slow
def test_an_interrupted_run_ends_what_was_at_work(tmp_path, folder):
    """Ctrl-C: the exit code is 130, and the working memory of the phase is archived as cancelled."""
    (folder / "launch.yml").write_text("workflow: {only: {assign: waits}}")
    (folder / "team.py").write_text(
        "import asyncio\nfrom commonplace.intents import Agent, on_assignment\n\n"
        "@Agent('waits', memory='working')\nclass Waits:\n    @on_assignment\n"
        "    async def handle(self, intent):\n        await self.memory.store('half', 1)\n"
        "        print('here', flush=True)\n        await asyncio.sleep(3600)\n"
    )
    env = os.environ | {"COMMONPLACE_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    store = str(tmp_path / "own.db")
    arguments = [COMMAND, "workflow", "run", "launch.yml", "--agents", "team.py", "--store", store]
    running = subprocess.Popen(
        arguments, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "here\n"
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told.splitlines()[-1]) == (130, "commonplace: interrupted")
    asked = (
        "from commonplace.intents import open_intents\nfrom commonplace.intents.entries import Caller\n"
        f"with open_intents({store!r}) as held:\n"
        "    print([event.detail['outcome'] for event in held.events(Caller()) if event.detail])"
    )
    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == (
        "['cancelled']\n"
    )

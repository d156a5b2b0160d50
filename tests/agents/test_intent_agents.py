"""Agents as classes: their memory while they work, what is declared about it, and intents from start to end."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from openintent.agents import Agent as SdkAgent
from openintent.agents import on_assignment as sdk_on_assignment
from openintent.llm import ContextAssembler, ProtocolToolExecutor

import commonplace.intents
from commonplace.intents import Agent, Intent, Memory, assign, on_assignment, runner
from commonplace.intents.entries import Caller
from commonplace.intents.openintent_sdk import equip
from commonplace.model.errors import CommonplaceError, Conflict, Forbidden, InvalidInput, NotFound
from stands import rows

OPERATOR = Caller()


@pytest.fixture
def work(tmp_path, clock):
    """Agents at work on a store of their own, by a clock moved by hand."""
    with runner(str(tmp_path / "memory.db"), clock=clock, env={"COMMONPLACE_HOME": str(tmp_path)}) as work:
        yield work


def agent_of(handle, id="worker", **options):
    """An agent whose handler is that function of it and the intent."""

    @Agent(id, **options)
    class Worker:
        @on_assignment
        async def handle(self, intent):
            return await handle(self, intent)

    return Worker()


@pytest.fixture
def does(work):
    """Let an agent do one thing, and return what came of it."""

    def does(handle, *, title="a thing", **options):
        return asyncio.run(work.assign(agent_of(handle, **options), Intent(title=title)))

    return does


def archived(work):
    """What was archived of working memory, newest last: who and which keys."""
    events = work.intents.events(OPERATOR, limit=1000)
    found = [event for event in events if event.what == "memory.archived"]
    return [sorted(one["key"] for one in event.detail["snapshot"]) for event in found]


def test_nothing_is_loaded_before_it_is_used():
    """Importing the package costs next to nothing; a name that it has not is told as such."""
    program = (
        "import sys, commonplace.intents; print([name for name in sys.modules if name.startswith('commonplace.e')])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
        commonplace.intents.Agnet  # noqa: B018 - the access is the test


@rows("name", ["Agent", "Intent", "Memory", "Runner", "assign", "on_assignment", "runner"])
def test_every_public_name_is_there_and_told(name):
    """What programs with agents import is on the page of agents and workflows."""
    assert name in commonplace.intents.__all__
    assert getattr(commonplace.intents, name).__name__ == name
    page = Path(__file__).parents[2] / "docs" / "workflows.md"
    assert re.search(rf"`@?{name}\b|\b{name}\(", page.read_text(encoding="utf-8"))


# @Agent


def test_what_is_stored_without_a_tier_goes_where_the_agent_says(does):
    """The default tier and namespace are the agent's; a call may name others."""

    async def handle(self, _intent):
        own = await self.memory.store("a", 1)
        scratch = await self.memory.store("b", 2, tier="working")
        shared = await self.memory.store("c", 3, tier="semantic", namespace="team")
        return [(one.tier, one.namespace, one.agent) for one in (own, scratch, shared)]

    assert does(handle, memory="episodic", memory_namespace="research") == [
        ("episodic", "research", "worker"),
        ("working", "research", "worker"),
        ("semantic", "team", "worker"),
    ]


def test_an_agent_that_says_nothing_has_episodic_memory(does):
    """That is the tier of whoever names none."""

    async def handle(self, _intent):
        return (await self.memory.store("a", 1)).tier

    assert does(handle) == "episodic"


def test_recall_takes_words_tags_a_key_and_a_limit(does, clock):
    """All tags are wanted; without a query the newest come first."""

    async def handle(self, _intent):
        await self.memory.store("red", {"fruit": "apples grow on trees"}, tags=["a", "b"])
        clock.forward()
        await self.memory.store("blue", {"fruit": "berries grow on shrubs"}, tags=["a"])
        found = [
            await self.memory.recall(tags=["a", "b"]),
            await self.memory.recall(key="blue"),
            await self.memory.recall(query="where do apples grow?", limit=1),
            await self.memory.recall(),
        ]
        return [[one.get("key") for one in some] for some in found]

    assert does(handle, memory="episodic") == [["red"], ["blue"], ["red"], ["blue", "red"]]


def test_a_namespace_keeps_equal_keys_apart(does):
    """An agent finds in its namespace what it stored there, and in another what it stored there."""

    async def handle(self, _intent):
        await self.memory.store("k", "mine")
        await self.memory.store("k", "other", namespace="elsewhere")
        here, there = await self.memory.get("k"), await self.memory.get("k", namespace="elsewhere")
        return here.value, there.value, [one.value for one in await self.memory.recall()]

    assert does(handle, memory_namespace="research") == ("mine", "other", ["mine"])


def test_entries_are_pinned_unpinned_and_forgotten(does):
    """Each verb works on the key of the agent's own namespace."""

    async def handle(self, _intent):
        await self.memory.store("k", 1)
        pinned = (await self.memory.pin("k")).pinned
        unpinned = (await self.memory.unpin("k")).pinned
        await self.memory.forget("k")
        with pytest.raises(NotFound):
            await self.memory.get("k")
        return pinned, unpinned

    assert does(handle, memory_namespace="research") == (True, False)


def test_a_stale_version_is_a_conflict(does):
    """The version that was read must be the one that is there."""

    async def handle(self, _intent):
        first = await self.memory.store("k", 1)
        await self.memory.store("k", 2)
        with pytest.raises(Conflict) as raised:
            await self.memory.store("k", 3, version=first.version)
        return raised.value.current

    assert does(handle) == 2


def test_an_agent_that_is_not_at_work_has_no_memory():
    """What it would belong to is not known yet; the sentence says so."""
    with pytest.raises(InvalidInput, match="the agent 'worker' is not at work"):
        agent_of(None).memory  # noqa: B018 - the access is the test


def test_outside_of_a_task_there_is_no_working_memory(work):
    """What an agent remembers and shares is there without one."""

    async def handle():
        memory = work.memory(agent_of(None, memory_namespace="research"))
        await memory.store("k", 1)
        with pytest.raises(InvalidInput, match="'worker' has no task, so it has no working memory"):
            await memory.store("k", 2, tier="working")
        return (await memory.get("k")).value

    assert asyncio.run(handle()) == 1


def test_one_instance_may_work_on_several_intents_at_once(work):
    """Each has its own working memory, whoever is at work in between."""

    async def handle(self, intent):
        await self.memory.store("step", intent.title)
        await asyncio.sleep(0)
        return (await self.memory.get("step")).value

    async def both():
        agent = agent_of(handle, memory="working")
        return await asyncio.gather(*(work.assign(agent, Intent(title=title)) for title in ("one", "two")))

    assert asyncio.run(both()) == ["one", "two"]


@rows("declare, said", [
        (lambda: Agent("a", memory="long"), "'long' is not a tier; use one of working, episodic, semantic"),
        (lambda: Agent(""), "'' cannot name a agent: it is blank or holds control characters"),
        (lambda: Agent(dict), "@Agent needs the agent's id, such as @Agent('researcher'), not <class 'dict'>"),
        (lambda: Memory(dict), "@Memory needs a namespace, such as @Memory('research'), not <class 'dict'>"),
        (lambda: Agent("a", memory=dict), "dict declares no memory: put @Memory(namespace) above the class"),
        (lambda: Memory("n", tier="semantic", max_entries=5),
         "max_entries does not apply to semantic memory, which is never evicted"),
        (lambda: Memory("n", ttl=0), "a ttl of 0 would expire at once"),
        (lambda: Memory("n", max_entries=0), "max_entries must be at least 1, not 0"),
        (lambda: Memory("n")(type("M", (), {"findings": {"tag": ["x"]}})),
         "M.findings says 'tag'; there are key, tags, pinned, tier, ttl, priority, sensitivity"),
        (lambda: Memory("n")(type("M", (), {"findings": 3})),
         "M.findings should be a mapping with key, tags, pinned, tier, ttl, priority, sensitivity, not 3"),
        (lambda: Memory("n")(type("M", (), {"findings": {"tags": "research"}})),
         "M.findings should have a list of texts for tags, not 'research'"),
        (lambda: Agent("a")(type("M", (), {"memory": 1})),
         "the agent 'a' cannot have a `memory` of its own: M.memory is taken"),
        (lambda: on_assignment(dict.get), "dict.get must be `async def`: its memory is awaited"),
    ])  # fmt: skip
def test_a_declaration_that_cannot_be_kept_is_refused_where_it_is_made(declare, said):
    """One sentence that names the thing."""
    with pytest.raises(InvalidInput) as raised:
        declare()
    assert str(raised.value) == said


def test_what_is_no_agent_cannot_be_assigned_anything(work):
    """A class without the decorator, and one without a handler."""
    with pytest.raises(InvalidInput, match="dict is no agent: put @Agent"):
        asyncio.run(work.assign({}, Intent(title="x")))
    with pytest.raises(InvalidInput, match="the agent 'idle' has no method with @on_assignment; it needs one"):
        asyncio.run(work.assign(Agent("idle")(type("Idle", (), {}))(), Intent(title="x")))


def test_shared_memory_is_for_those_who_are_permitted(work):
    """Whoever writes first administers; the others read, until somebody says who may do what."""

    async def shares():
        first, second = (work.memory(agent_of(None, id=name, memory_namespace="team")) for name in ("a", "b"))
        await first.store("specs", {"version": "3.0"}, tier="semantic")
        with pytest.raises(Forbidden, match="'b' may not write to the namespace 'team'"):
            await second.store("specs", {"version": "4.0"}, tier="semantic")
        work.permit("team", default="none", allow={"b": "write"})
        written = await second.store("specs", {"version": "4.0"}, tier="semantic")
        with pytest.raises(NotFound):
            await first.get("specs")
        return written.version

    assert asyncio.run(shares()) == 2


# @Memory


@Memory(namespace="research", tier="episodic", ttl=86400 * 30, max_entries=3)
class ResearchMemory:
    """As the document declares it, but for the number."""

    findings = {"tags": ["research"], "pinned": True}  # noqa: RUF012 - the document's form
    sources = {"tags": ["sources"]}  # noqa: RUF012
    reports = {"key": "report-{id}", "tags": ["report"], "ttl": 60}  # noqa: RUF012


def test_templates_give_their_tags_and_pins_to_their_keys(does):
    """By the attribute's name, or by a key with names in braces; a call adds its tags."""

    async def handle(self, _intent):
        kept = [await self.memory.store(key, 1, tags=["own"]) for key in ("findings", "sources", "report-7", "report")]
        return [(one.tags, one.pinned, one.namespace) for one in kept]

    assert does(handle, memory=ResearchMemory) == [
        (("own", "research"), True, "research"),
        (("own", "sources"), False, "research"),
        (("own", "report"), False, "research"),
        (("own",), False, "research"),
    ]


def test_a_declared_ttl_ends_what_says_nothing_itself(does, clock):
    """After thirty days it is gone; a template's or a call's own ttl comes first; other tiers have none."""

    async def handle(self, _intent):
        await self.memory.store("plain", 1)
        await self.memory.store("report-1", 2)
        await self.memory.store("kept", 3, tier="semantic")
        clock.forward(timedelta(minutes=2))
        early = sorted(one.key for one in await self.memory.recall())
        clock.forward(timedelta(days=30))
        return early, sorted(one.key for one in await self.memory.recall())

    assert does(handle, memory=ResearchMemory) == (["kept", "plain"], ["kept"])


def test_declared_entries_give_way_to_newer_ones_but_for_the_pinned(does, clock):
    """At three entries the one that was used longest ago goes; what a template pins stays."""

    async def handle(self, _intent):
        for key in ("findings", "one", "two", "three", "four"):
            clock.forward()
            await self.memory.store(key, key)
        return sorted(one.key for one in await self.memory.recall(tier="episodic"))

    assert does(handle, memory=ResearchMemory) == ["findings", "four", "three"]


def test_declared_working_entries_are_refused_when_there_are_too_many(does):
    """Working memory evicts nothing: the task's policy says no."""

    @Memory(namespace="n", tier="working", max_entries=1)
    class Small:
        """One note."""

    async def handle(self, _intent):
        await self.memory.store("one", 1)
        with pytest.raises(CommonplaceError) as raised:
            await self.memory.store("two", 2)
        return type(raised.value).__name__

    assert does(handle, memory=Small) == "CapacityExceeded"


# Intents


def test_working_memory_is_archived_when_the_intent_is_completed(work):
    """It is in no recall any more, and the archive has it; what is episodic stays."""

    async def handle(self, intent):
        await self.memory.store("step", {"n": 1}, tier="working")
        await self.memory.store("lesson", {"n": 2}, tier="episodic")
        return intent.id

    agent = agent_of(handle)
    task = asyncio.run(work.assign(agent, Intent(title="t", id="t-1")))
    assert work.intents.task(OPERATOR, task).status == "completed"
    assert [one.key for one in asyncio.run(work.memory(agent).recall())] == ["lesson"]
    assert archived(work) == [["step"]]


def test_working_memory_is_archived_when_the_handler_fails(work):
    """The error goes on to whoever assigned it."""

    async def handle(self, _intent):
        await self.memory.store("step", 1)
        raise ZeroDivisionError("no way")

    with pytest.raises(ZeroDivisionError, match="no way"):
        asyncio.run(work.assign(agent_of(handle, memory="working"), Intent(title="t", id="t-1")))
    assert work.intents.task(OPERATOR, "t-1").status == "failed"
    assert archived(work) == [["step"]]


def test_working_memory_is_archived_when_the_work_is_cancelled(work):
    """A task of the event loop that is cancelled cancels its intent."""

    async def cancelled():
        begun = asyncio.Event()

        async def handle(self, _intent):
            await self.memory.store("step", 1)
            begun.set()
            await asyncio.sleep(3600)

        working = asyncio.ensure_future(work.assign(agent_of(handle, memory="working"), Intent(title="t", id="t-1")))
        await begun.wait()
        working.cancel()
        await asyncio.wait([working])
        return working.cancelled()

    assert asyncio.run(cancelled())
    assert work.intents.task(OPERATOR, "t-1").status == "cancelled"
    assert archived(work) == [["step"]]


def test_an_agent_that_takes_over_reads_what_its_predecessor_kept(work):
    """It goes on from there, writes its own, and changes nothing of the other's; an agent besides sees nothing."""
    intent = Intent(title="t", id="t-1")

    async def breaks(self, _intent):
        await self.memory.store("progress", {"done": 23})
        raise RuntimeError("the machine went down")

    async def goes_on(self, _intent):
        [before] = await self.memory.recall(key="progress")
        await self.memory.store("progress", {"done": before.value["done"] + 1})
        mine = await self.memory.get("progress")
        both = await self.memory.recall(key="progress")
        return before.agent, mine.agent, sorted((one.agent, one.value["done"]) for one in both)

    with pytest.raises(RuntimeError):
        asyncio.run(work.assign(agent_of(breaks, id="first", memory="working"), intent, leave_open=True))
    with pytest.raises(NotFound):
        work.intents.get(Caller(agent="stranger"), "first", "progress", tier="working", task="t-1")
    taken = asyncio.run(work.assign(agent_of(goes_on, id="second", memory="working"), intent))

    assert taken == ("first", "second", [("first", 23), ("second", 24)])
    assert archived(work) == [["progress"], ["progress"]]


def test_a_new_instance_of_the_same_agent_goes_on_with_its_own(work):
    """A restart is a takeover by oneself: it may write what it wrote."""
    intent = Intent(title="t", id="t-1")

    async def breaks(self, _intent):
        await self.memory.store("n", 1)
        raise RuntimeError("gone")

    async def goes_on(self, _intent):
        return (await self.memory.store("n", (await self.memory.get("n")).value + 1)).version

    with pytest.raises(RuntimeError):
        asyncio.run(work.assign(agent_of(breaks, memory="working"), intent, leave_open=True))
    assert asyncio.run(work.assign(agent_of(goes_on, memory="working"), intent)) == 2


def test_who_was_replaced_writes_no_more(work):
    """The one that still runs is refused; what it wrote before stays readable for its successor."""
    intent = Intent(title="t", id="t-1")

    async def replaced():
        old, new = agent_of(None, id="old", memory="working"), agent_of(None, id="new", memory="working")
        was = await work.begin(old, intent)
        await was.store("k", 1)
        now = await work.begin(new, intent)
        with pytest.raises(Forbidden):
            await was.store("k", 2)
        return (await now.get("k")).value

    assert asyncio.run(replaced()) == 1


def test_who_was_replaced_cannot_end_what_is_another_agents(work):
    """It comes to its end all the same, is told so, and the intent stays open."""
    intent = Intent(title="t", id="t-1")

    async def slow(_self, _intent):
        await work.begin(agent_of(None, id="new"), intent)
        return "late"

    async def breaks(self, given):
        await slow(self, given)
        raise ZeroDivisionError

    with pytest.raises(Forbidden, match="'worker' may not end the task 't-1'"):
        asyncio.run(work.assign(agent_of(slow), intent))
    with pytest.raises(ZeroDivisionError):
        asyncio.run(work.assign(agent_of(breaks), intent))
    assert work.intents.task(OPERATOR, "t-1").status == "active"


def test_an_intent_that_is_over_is_not_assigned_again(work):
    """Its memory is archived; what comes next is another intent."""

    async def handle(_self, _intent):
        return None

    intent = Intent(title="t", id="t-1")
    asyncio.run(work.assign(agent_of(handle), intent))
    with pytest.raises(Conflict, match="the intent 't-1' is completed"):
        asyncio.run(work.assign(agent_of(handle), intent))


@pytest.mark.parametrize(("policy", "seen"), [({"inherit_from_parent": True}, ["plan"]), (None, [])])
def test_a_part_of_the_work_reads_the_whole_where_its_policy_says_so(work, policy, seen):
    """A handler gives a part to another agent, which reads the working memory above it, or does not."""

    async def helps(self, intent):
        found = [one.key for one in await self.memory.recall(tier="working")]
        if found:
            with pytest.raises(Forbidden, match="'helper' may not write for 'lead'"):
                await self.memory.forget("plan", tier="working")
        return intent.parent, found

    async def leads(self, _intent):
        await self.memory.store("plan", "first this, then that")
        return await assign(agent_of(helps, id="helper", memory="working"), Intent(title="part"), policy=policy)

    lead = agent_of(leads, id="lead", memory="working")
    assert asyncio.run(work.assign(lead, Intent(title="whole", id="t-1"))) == ("t-1", seen)


def test_who_gives_a_part_of_the_work_may_look_at_it(work):
    """The one that gave it is its coordinator, and reads what is kept for it while it lasts."""

    async def looks(self, _intent):
        part, begun, seen = Intent(title="part", id="part"), asyncio.Event(), asyncio.Event()

        async def helps(helper, _intent):
            await helper.memory.store("half", 1)
            begun.set()
            await seen.wait()

        helping = asyncio.ensure_future(assign(agent_of(helps, id="helper", memory="working"), part))
        await begun.wait()
        found = [(one.key, one.agent) for one in await self.memory.recall(tier="working", task="part")]
        seen.set()
        await helping
        return found

    assert asyncio.run(work.assign(agent_of(looks), Intent(title="whole"))) == [("half", "helper")]


# The public package's agents


@pytest.fixture
def analyst(work):
    """An agent of that package, whose memory is ours."""

    @SdkAgent("analyst", memory="episodic")
    class Analyst:
        @sdk_on_assignment
        async def handle(self, intent):
            return intent

    agent = Analyst("http://127.0.0.1:9", "key")
    equip(agent, work, namespace="research")
    return agent


def test_an_agent_of_the_public_package_remembers(analyst):
    """Its own ``self.memory`` stores, recalls, gets, pins and forgets; entries have attributes and ``get``."""

    async def uses():
        await analyst.memory.store(key="k", value={"n": 1}, tags=["t"])
        await analyst.memory.store("text", "a plain text", ["t"], tier="episodic")
        [one] = await analyst.memory.recall(key="k", tags=["t"])
        pinned = await analyst.memory.pin("k")
        await analyst.memory.forget("text")
        return one.key, one.get("value"), one.namespace, pinned.pinned, len(await analyst.memory.recall(limit=10))

    assert asyncio.run(uses()) == ("k", {"n": 1}, "research", True, 1)


def test_the_model_loop_of_the_public_package_remembers(analyst):
    """The tools that it gives to a model store and find, and what they answer is JSON."""

    async def uses():
        tools = ProtocolToolExecutor(analyst)
        stored = await tools.execute("remember", {"key": "market", "value": "Acme leads the market", "tags": ["m"]})
        found = await tools.execute("recall", {"query": "who leads the market?", "limit": 5})
        told = await ContextAssembler.build_context_messages(analyst)
        return stored, json.loads(json.dumps(found, default=str))["memories"], told

    stored, [found], told = asyncio.run(uses())
    assert "Relevant memories:\n  [market]: Acme leads the market" in told[0]["content"]
    assert stored == {"status": "stored", "key": "market"}
    assert (found["key"], found["value"], found["tags"]) == ("market", "Acme leads the market", ["m"])


def test_what_is_no_agent_of_that_package_is_said_so(work):
    """One sentence."""
    with pytest.raises(InvalidInput, match="dict is no agent of the openintent package"):
        equip({}, work)

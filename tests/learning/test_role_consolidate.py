"""What happens to a known fact that an episode contradicts: the model proposes, the code decides, nothing is lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from commonplace.engine.memory import Memory
from commonplace.engine.writer import Writer
from commonplace.model.ports import ModelAnswer
from commonplace.model.queries import State
from commonplace.model.records import Channel, Kind
from commonplace.roles.consolidate import Fact, consolidate, parse_answer
from commonplace.roles.dialect import MemorySettings, Role
from stands import rows

ROLE = Role(name="a", file="a", prompt="hi", model=None, memory=MemorySettings())


class Speaker:
    """A model that says one thing, and keeps what it was asked."""

    name, window = "test:speaker", None

    def __init__(self, answer):
        self.answer, self.system, self.prompt = answer, "", ""

    def ask(self, system, prompt, *, max_tokens, effort="low"):
        """Say it."""
        del max_tokens, effort
        self.system, self.prompt = system, prompt
        return ModelAnswer(text=self.answer, model=self.name)


@pytest.fixture
def memory(store, clock):
    """The memory of a role as its agent sees it, or as somebody else does."""

    def memory(channel=Channel.AGENT):
        return Memory(store, ROLE.bind(channel, home="/data"), clock=clock)

    return memory


@pytest.fixture
def dark(memory, clock):
    """A fact, and an episode after it that contradicts it."""
    kept = memory().remember("The user prefers dark mode.", category="preference", kind=Kind.SEMANTIC).record
    clock.forward(timedelta(days=1))
    memory().remember("The user asked for light mode from now on.", kind=Kind.EPISODIC)
    return kept


@pytest.fixture
def consolidated(store, clock):
    """Consolidate with a model that answers so."""

    def consolidated(answer):
        model = answer if isinstance(answer, Speaker) else Speaker(answer)
        binding = ROLE.bind(Channel.CONSOLIDATION, home="/data")
        return consolidate(Writer(store, clock=clock), binding, model, most=20)

    return consolidated


LIGHT = "preference: The user prefers light mode. [1] replaces K1"


def facts(memory):
    """What is known now."""
    return [record.content for record in memory().list(kinds=[Kind.SEMANTIC])]


def test_a_fact_that_holds_no_longer_makes_way(memory, store, dark, consolidated):
    """The new one is recalled; the old one is kept, with the link to it; the new one has the link to its episode."""
    done = consolidated(LIGHT)
    assert (done.created, done.replaced, facts(memory)) == (1, 1, ["The user prefers light mode."])
    [new] = memory().list(kinds=[Kind.SEMANTIC])
    [episode] = memory().list(kinds=[Kind.EPISODIC])
    assert (store.get(dark.id).superseded_by, new.source.parents) == (new.id, (episode.id,))
    assert store.get(dark.id).content == "The user prefers dark mode."


@pytest.mark.usefixtures("dark")
def test_the_model_is_shown_which_facts_it_may_name(consolidated):
    """Known facts have numbers, and the model is told how to use them."""
    model = Speaker("")
    consolidated(model)
    assert "- preference: The user prefers dark mode. K1" in model.prompt
    assert "replaces K2" in model.system


def test_the_past_still_knows_what_was_true_then(memory, dark, clock, consolidated):
    """Asked as of the day before, the old fact is the answer."""
    clock.forward()
    consolidated(LIGHT)
    found = memory().recall("which mode does the user prefer?", as_of=dark.created_at, kinds=[Kind.SEMANTIC])
    assert [hit.text for hit in found] == ["The user prefers dark mode."]


def test_a_fact_that_a_person_told_stays(memory, clock, consolidated):
    """What is trusted more is not replaced; the new fact stands beside it."""
    memory(Channel.USER).remember("I prefer dark mode.", kind=Kind.SEMANTIC)
    clock.forward()
    memory().remember("Light mode was asked for.", kind=Kind.EPISODIC)
    done = consolidated(LIGHT)
    assert (done.created, done.replaced, set(facts(memory))) == (
        1, 0, {"I prefer dark mode.", "The user prefers light mode."},
    )  # fmt: skip


def test_a_pinned_fact_stays(memory, dark, consolidated):
    """Whoever pinned it wants it."""
    memory(Channel.USER).pin(dark.id)
    assert (consolidated(LIGHT).replaced, len(facts(memory))) == (0, 2)


def test_an_older_episode_replaces_no_newer_fact(memory, clock, consolidated):
    """What happened before the fact was told cannot end it."""
    memory().remember("Light mode was asked for.", kind=Kind.EPISODIC)
    clock.forward(timedelta(days=1))
    memory().remember("The user prefers dark mode.", kind=Kind.SEMANTIC)
    assert (consolidated(LIGHT).replaced, len(facts(memory))) == (0, 2)


@pytest.mark.parametrize("number", ["K0", "K2", "K99"])
def test_a_number_that_names_nothing_replaces_nothing(memory, dark, consolidated, number):
    """The fact is kept, and so is the one that was there."""
    assert consolidated(LIGHT.replace("K1", number)).replaced == 0
    assert dark.content in facts(memory)


def test_a_fact_that_is_known_replaces_nothing(memory, store, dark, consolidated):
    """Saying a known fact again ends none: neither itself nor another one."""
    done = consolidated("preference: The user prefers dark mode. [1] replaces K1")
    assert (done.created, done.known, done.replaced) == (0, 1, 0)
    assert store.get(dark.id).state(dark.updated_at) is State.LIVE
    assert len(facts(memory)) == 1


def test_one_fact_is_replaced_once(memory, store, dark, consolidated):
    """Two lines that name the same fact: the first takes its place, the second is kept beside."""
    done = consolidated(f"{LIGHT}\npreference: The user wants high contrast. [1] replaces K1")
    assert (done.created, done.replaced) == (2, 1)
    assert store.get(store.get(dark.id).superseded_by).content == "The user prefers light mode."
    assert len(facts(memory)) == 2


@rows(
    "line, fact",
    [
        ("fact: It rains [1] replaces K2", Fact(category="fact", content="It rains", episodes=(1,), replaces=2)),
        ("fact: It rains (replaces K2) [1]", Fact(category="fact", content="It rains", episodes=(1,), replaces=2)),
        ("fact: It rains [1], replaces k2.", Fact(category="fact", content="It rains", episodes=(1,), replaces=2)),
        ("fact: It rains replaces [K2]", Fact(category="fact", content="It rains", replaces=2)),
        ("fact: Tea replaces coffee", Fact(category="fact", content="Tea replaces coffee")),
        ("fact: K2 is a mountain", Fact(category="fact", content="K2 is a mountain")),
        ("fact: See note [7]", Fact(category="fact", content="See note [7]")),
    ],
)
def test_what_a_line_replaces_is_read_as_models_write_it(line, fact):
    """Before or after the numbers of episodes, with brackets or without; other words stay words."""
    assert parse_answer(line, 2) == ((fact,), ())

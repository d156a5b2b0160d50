"""Recall on the few records of a young store."""

from __future__ import annotations

import itertools
import math

import pytest
from tests.engine.conftest import Meanings

import commonplace
from commonplace.engine.embedding import UNRELATED
from commonplace.model.ports import EmbedderIdentity
from commonplace.providers.local import LocalEmbedder
from commonplace.text.question import Want, holds, parse_question, wanted_answers
from commonplace.text.tools import named_groups

FACTS = (
    "The bins go out on Tuesday evening.", "Karim pays the electricity.", "Quiet hours start at ten.",
    "The washing machine leaks if it is overloaded.", "Lotte is allergic to cashews.", "Use pnpm, not npm",
    "Roses are pruned when forsythia blooms.", "The hose freezes, drain it in November.",
)  # fmt: skip


@pytest.fixture
def young():
    """A store of eight facts."""
    with commonplace.open(":memory:") as memory:
        for fact in FACTS:
            memory.remember(fact)
        yield memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("whose job is the power bill?", FACTS[1]),
        ("how much laundry can I put in at once?", FACTS[3]),
        ("right time to cut back the roses?", FACTS[6]),
        ("what do I do with the water pipe before winter?", FACTS[7]),
        ("which package manager?", FACTS[5]),
        ("which package manager do we use?", FACTS[5]),
    ],
)
def test_a_question_in_other_words_is_answered(young, question, answer):
    """The first day is when somebody decides whether to go on."""
    assert young.recall(question, count=False)[0].text == answer


@pytest.mark.parametrize("question", ["how tall is the tower?", "what colour is the door?", "how deep is the well?"])
def test_what_the_store_does_not_know_is_not_answered(young, question):
    """Something is always nearest."""
    assert young.recall(question, count=False).hits == ()


def test_of_many_that_match_alike_none_is_hidden():
    """The line that is relative to the store hides no record that has what was asked for."""
    with commonplace.open(":memory:") as memory:
        for number in range(12):
            memory.remember(f"deploy number {number} went to the staging server")
        assert len(memory.recall("deploy staging", limit=20).hits) == 12


def test_hits_come_in_the_order_of_their_score(young):
    """As printed."""
    for question in ("who pays for electricity and when?", "use", "what happens on Tuesday or in November?"):
        scores = [hit.score for hit in young.recall(question, count=False)]
        assert scores == sorted(scores, reverse=True)


def test_the_examples_of_the_help_find_each_other():
    """Typed one after the other, into a store that has nothing else."""
    with commonplace.open(":memory:") as memory:
        memory.remember("Use pnpm, not npm", category="decisions")
        assert [hit.text for hit in memory.recall("which package manager?")] == ["Use pnpm, not npm"]


def test_a_note_is_found_by_its_number():
    """The number beside its word, not the number somewhere; in quotation marks and without."""
    with commonplace.open(":memory:") as memory:
        for number in range(1, 100):
            memory.remember(f"Note {number} is about item {number * 7}")
        for question in ('"note 77"', "note 77", "what does note 77 say?"):
            assert memory.recall(question, count=False)[0].text == "Note 77 is about item 539"


_numbers = itertools.count()


class Shifted(Meanings):
    """An embedder of which all texts are near each other: a part of every vector is the same."""

    chance = None

    def __init__(self, *alike, name):
        super().__init__(*alike, name=name)
        self.identity = EmbedderIdentity(name=name, dimensions=513)

    def _vector(self, text):
        own = super()._vector(text)
        return [math.sqrt(0.3) * number for number in own[:512]] + [math.sqrt(0.7)]


@pytest.mark.parametrize("count", [8, 60])
def test_the_line_is_measured_for_each_embedder(through, count):
    """Where every two texts have a cosine of 0.7, a paraphrase is found and what is unrelated is not."""
    embedder = Shifted("car automobile", name=f"shifted-{next(_numbers)}")  # a name is measured once in a process
    memory = through(embedder=embedder)
    for number in range(count):
        memory.remember(f"thing{number} other{number} word{number}", category="facts")
    memory.remember("the automobile", category="facts")

    assert [hit.text for hit in memory.recall("car")][:1] == ["the automobile"]
    assert memory.recall("spaceship").hits == ()
    assert [text for text, query in embedder.asked if query] == ["car", *UNRELATED, "spaceship"]


def test_the_built_in_embedder_knows_its_own_chance():
    """What it says is what is measured."""
    first, *others = LocalEmbedder().embed(UNRELATED)
    cosines = [sum(a * b for a, b in zip(first, other, strict=True)) for other in others]
    assert sum(cosines) / len(cosines) == pytest.approx(LocalEmbedder.chance, abs=0.06)


@pytest.mark.parametrize(
    ("question", "wants"),
    [
        ("how many employees do we have?", {Want.NUMBER}),
        ("what colour is the door?", {Want.COLOUR}),
        ("when do we ship?", {Want.TIME}),
        ("whom do I ask?", {Want.PERSON}),
        ("how do we deploy?", set()),
        ("which database?", set()),
    ],
)
def test_a_question_says_what_sort_of_answer_it_wants(question, wants):
    """As far as its words say so."""
    assert wanted_answers(question) == wants


@pytest.mark.parametrize(
    ("text", "want", "has"),
    [
        ("We ship on Fridays.", Want.TIME, True),
        ("We ship by train.", Want.TIME, False),
        ("Ada owns billing.", Want.PERSON, True),
        ("Billing is paid by Ada.", Want.PERSON, True),
        ("Billing is old.", Want.PERSON, False),
        ("Half an hour", Want.NUMBER, True),
        ("The door is blue.", Want.COLOUR, True),
        ("The door is 3 m wide.", Want.COLOUR, False),
    ],
)
def test_a_text_has_an_answer_of_that_sort_or_not(text, want, has):
    """A name is a word with a capital letter that does not begin a sentence, unless it does something."""
    assert holds(text, want) is has


@pytest.mark.parametrize(
    ("question", "named"),
    [("Which package manager?", {"package", "manager"}), ("the test runner", {"test", "runner"}), ("a manager", set())],
)
def test_a_sort_of_tool_is_recognised(question, named):
    """By the words that people use for it."""
    assert set(named_groups(question)) == named


@pytest.mark.parametrize(
    ("question", "phrases"),
    [("note 77, item 5", ("note 77", "item 5")), ('"Note 7"', ("note 7",)), ("at 5", ())],
)
def test_a_number_belongs_to_the_word_before_it(question, phrases, clock):
    """Both have to be found beside each other."""
    assert parse_question(question, speakers=(), now=clock()).phrases == phrases


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What did you tell me about Rome?", True),
        ("Which hotel did you recommend?", True),
        ("In our previous conversation, what was the name?", True),
        ("What did I tell you about Rome?", False),
        ("Where did Ada go?", False),
    ],
)
def test_a_question_for_what_an_assistant_said_is_recognised(question, told, clock):
    """By its words."""
    assert parse_question(question, speakers=(), now=clock()).of_assistant is told

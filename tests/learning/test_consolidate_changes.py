"""A consolidation by a model costs what changed: one small call for a day, however much is remembered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from commonplace.learning.learn import enqueue_consolidation
from commonplace.model.changes import Supersede
from commonplace.model.errors import ProviderError
from commonplace.text.cleaning import estimate_tokens

sys.path.insert(0, str(Path(__file__).parents[1]))
from workshop import Scripted, Shop, reply

THINGS = [
    "billing",
    "search",
    "login",
    "export",
    "import",
    "mail",
    "chart",
    "invoice",
    "report",
    "cache",
    "queue",
    "upload",
]
COLOURS = [
    "amber",
    "azure",
    "coral",
    "ivory",
    "khaki",
    "lilac",
    "mauve",
    "olive",
    "pearl",
    "ruby",
    "sepia",
    "teal",
    "umber",
    "wheat",
    "zinc",
]


def repeat(prompt):
    """A model that repeats what it is shown, and what is new."""
    lines = [line for line in prompt.splitlines() if line.startswith("- ")]
    return reply("## Decisions\n\n" + "\n".join(lines or ["- nothing"]), "What matters.")


@pytest.fixture
def old(tmp_path, clock):
    """A project whose model has put 180 facts together already."""
    shop = Shop(tmp_path, clock, model=Scripted(repeat))
    for colour in COLOURS:
        for thing in THINGS:
            shop.keep(f"The {colour} {thing} service is owned by team {colour}-{thing}")
    assert shop.run().status == "consolidated"
    shop.model.asked.clear()
    yield shop
    shop.store.close()


def sent(shop):
    """The tokens of everything that was sent."""
    return sum(estimate_tokens(system + prompt) for system, prompt in shop.model.asked)


def test_a_day_of_work_is_one_small_call_and_nothing_else_moves(old):
    """The new facts and their neighbours are shown; the other facts stay word for word."""
    before = set(old.text().splitlines())
    for number in range(12):
        old.keep(f"The coral login service now has rule number {number} for its tokens")
    old.extracted("s1", "- rules of the login", records=["x"])
    report = old.run()

    [(_, prompt)] = old.model.asked
    assert report.status == "consolidated"
    assert sent(old) < 4_000  # of at most 32,000
    assert "team coral-login" in prompt
    assert "team zinc-upload" not in prompt
    after = old.text()
    assert before <= set(after.splitlines())
    assert all(f"rule number {number} " in after for number in range(12))


def test_with_nothing_new_nothing_is_asked(old):
    """Also if somebody has asked for a consolidation: what was paid for is not paid again."""
    before = old.files
    assert old.run().status == "skipped"
    enqueue_consolidation(old.place)
    assert old.run().status == "unchanged"
    assert old.model.asked == []
    assert old.files == before


def test_a_person_who_forces_it_has_everything_thought_over(old):
    """In parts, of which none shows more than one answer can repeat."""
    old.run(force=True)
    shown = "".join(prompt for _, prompt in old.model.asked)
    assert len(old.model.asked) > 1
    assert all(f"team {colour}-{thing}" in shown for colour in COLOURS for thing in THINGS)
    assert all(estimate_tokens(prompt) < 8_000 for _, prompt in old.model.asked)


def test_a_fact_that_was_replaced_is_not_carried_along(old):
    """What holds no longer leaves MEMORY.md, though it was not shown."""
    record = next(record for content, record in old.records.items() if "zinc upload" in content)
    other = old.keep("The zinc upload service is owned by nobody")
    old.store.apply([Supersede(id=record.id, by=other.id, at=other.created_at, now=other.created_at)])
    old.run()
    assert "team zinc-upload" not in old.text()
    assert "owned by nobody" in old.text()


def test_a_part_that_fails_is_asked_once_more(old):
    """The second answer counts, and both are paid."""
    old.keep("The coral login service has a new rule")
    old.model.answers = ["Sorry, what?", repeat]
    report = old.run()
    assert (report.status, report.failed_parts, report.tokens_in) == ("consolidated", (), 20)
    assert "Your last answer could not be used: the answer is not a JSON object" in old.model.asked[1][1]


@pytest.mark.parametrize("failure", ["half of it: {", ProviderError("429: too many requests")], ids=["cut", "busy"])
def test_what_was_paid_for_is_kept_when_a_later_part_fails(old, failure):
    """The parts that were answered are used, the others stay as they were, and the failure is reported."""
    before = set(old.text().splitlines())
    old.keep("The coral login service has a new rule")
    old.model.answers = [lambda prompt: repeat(prompt).replace("is owned by", "belongs to"), failure]
    report = old.run(force=True)
    after = old.text()
    assert report.status == "consolidated"
    assert report.failed_parts
    assert "belongs to" in after
    assert before & set(after.splitlines())
    assert "has a new rule" in after

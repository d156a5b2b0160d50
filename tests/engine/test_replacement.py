"""Statements that replace each other, that both hold, and that a person is asked about."""

import json
from pathlib import Path

import pytest
from tests.stands import rows

from commonplace.text.frames import read_frame
from commonplace.text.replacement import Relation, compare

SETS = Path(__file__).parents[2] / "bench" / "sets" / "closures"


def pairs(name):
    """The labelled pairs of a set."""
    return [json.loads(line) for line in (SETS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@rows(
    "clause, subject, attribute, value",
    [
        ("The API listens on port 8080 now.", "API", "listen on", "port 8080"),
        ("Remember that our cloud provider is Hetzner.", "cloud provider", "be", "Hetzner"),
        ("Session tokens expire after 30 minutes.", "Session tokens", "expir after", "30 minutes"),
        ("The model we fine-tune is Qwen.", "model we fine-tune", "be", "Qwen"),
    ],
)
def test_a_frame_has_subject_attribute_and_value(clause, subject, attribute, value):
    """A clause is read as a value of something in some respect."""
    frame = read_frame(clause)
    assert (frame.subject, frame.attribute, frame.value) == (subject, attribute, value)


def test_a_frame_keeps_the_condition_that_it_is_said_under():
    """A condition is part of what a clause says, and what is no statement is none."""
    assert read_frame("If the build fails, call Ben.").condition == "If the build fails"
    assert read_frame("Well, hm") is None


@pytest.mark.parametrize("name", ["dev", "own"])
def test_of_the_labelled_pairs_95_in_100_close_and_1_in_100_wrongly(name):
    """The labelled pairs are decided as they are labelled."""
    found = [(pair["label"], compare(pair["old"], pair["new"])) for pair in pairs(name)]
    replaced = [relation is Relation.REPLACES for label, relation in found if label == "replaces"]
    others = [relation is Relation.REPLACES for label, relation in found if label != "replaces"]
    assert sum(replaced) >= 0.95 * len(replaced)
    assert sum(others) <= 0.01 * len(others)


@rows(
    "old, new",
    [
        ("We use Postgres for the orders service.", "We use Redis for the orders service."),
        ("We deploy to AWS.", "We also deploy to Azure."),
        ("If the build fails, call Ben.", "If the deploy fails, call Ana."),
        ("We visited Lisbon in 2023.", "We visited Porto in 2024."),
        ("Internal docs are in the wiki.", "External docs are in the wiki."),
        ("The campaign budget is 6,500.", "The campaign budget for print ads is 1,200."),
        ("The login service has rule number 1 for its tokens.", "The login service has rule number 2 for its tokens."),
    ],
)
def test_what_both_can_hold_replaces_nothing(old, new):
    """Another subject, another condition, an addition and an event close nothing."""
    assert compare(old, new) is Relation.NONE


@rows(
    "old, new",
    [
        ("The cache is Redis 7", "The cache is Memcached, no longer Redis"),
        ("The rate limit is 100 requests per minute.", "The rate limit is 600 requests per minute."),
        ("We squash merges.", "We no longer squash merges."),
        ("The database is Postgres 15.", "The database was upgraded: it is Postgres 17 now."),
    ],
)
def test_what_contradicts_replaces(old, new):
    """The same subject with another value closes the older one."""
    assert compare(old, new) is Relation.REPLACES


def test_the_same_in_another_order_is_the_same():
    """The same words in another order say the same."""
    assert compare("Never push to main.", "Do not push to main, ever.") is Relation.SAME


def test_what_only_looks_like_it_is_asked_about():
    """Where the reader is not sure it asks."""
    assert compare("The mascot is a fox.", "The mascot is an otter.") is Relation.MAY_REPLACE

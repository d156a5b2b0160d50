"""Ranked lists into one: tiers, boosts, ties, budgets."""

from __future__ import annotations

import pytest

from commonplace.domain.documents import Chunk, DocumentKind
from commonplace.domain.queries import Hit, Match
from commonplace.domain.records import Trust
from commonplace.domain.scopes import Scope
from commonplace.engine.ranking import PINNED, UNTRUSTED, fuse, within
from commonplace.engine.text import estimate_tokens

HERE = Scope.of(("project", "here"))


def chunk(text="said", *, trust=Trust.AGENT):
    """A piece of a session."""
    return Chunk(scope=HERE, kind=DocumentKind.SESSION, document="s", seq=0, ref="1", text=text, trust=trust)


def test_nothing_found_is_nothing_ranked():
    """Two empty lists are an empty list."""
    assert fuse([], [], limit=10) == []


def test_the_best_by_words_alone_scores_one(make):
    """Without vectors full text is the whole score."""
    [hit] = fuse([Match(score=7.5, record=make())], [], limit=10)

    assert (hit.score, hit.parts, hit.similarity) == (1.0, (("words", 1.0),), None)


def test_whoever_has_every_word_stands_above_whoever_has_not(make):
    """A tier of its own, whatever the scores."""
    whole, partial = make("whole"), make("partial")
    hits = fuse([Match(score=9, record=partial, coverage=0.99), Match(score=0.1, record=whole)], [], limit=10)

    assert [hit.record for hit in hits] == [whole, partial]
    assert hits[0].score > 0.5 > hits[1].score


def test_within_a_tier_score_and_coverage_decide(make):
    """Of two that lack words, the one with more of them and the better score is first."""
    more, less = make("more"), make("less")
    hits = fuse([Match(score=2, record=less, coverage=0.3), Match(score=2, record=more, coverage=0.6)], [], limit=10)

    assert [hit.record for hit in hits] == [more, less]


def test_words_and_meaning_have_half_each(make):
    """With vectors both lists count alike, and each hit says its cosine."""
    both, word, meaning = make("both"), make("word"), make("meaning")
    lexical = [Match(score=4, record=both), Match(score=4, record=word)]
    semantic = [Match(score=0.9, record=both), Match(score=0.5, record=meaning), Match(score=0.1, record=word)]
    hits = fuse(lexical, semantic, limit=10)

    assert [(hit.record, hit.score, hit.similarity) for hit in hits] == [
        (both, 1.0, 0.9),
        (word, 0.5, 0.1),
        (meaning, pytest.approx(0.25), 0.5),
    ]


def test_a_single_cosine_counts_as_it_is(make):
    """There is nothing to compare it with; one that points away counts nothing."""
    [near] = fuse([], [Match(score=0.8, record=make())], limit=10)
    [far] = fuse([], [Match(score=-0.8, record=make())], limit=10)

    assert (near.score, far.score) == (0.4, 0.0)


def test_a_pin_lifts_by_a_little(make):
    """A bounded share of what the text earned: it decides between near equals and nothing else."""
    pinned, plain = make("pinned", pinned=True), make("plain")
    near = fuse([Match(score=9.9, record=pinned), Match(score=10, record=plain)], [], limit=10)
    far = fuse([Match(score=5, record=pinned), Match(score=10, record=plain)], [], limit=10)

    assert [hit.record for hit in near] == [pinned, plain]
    assert [hit.record for hit in far] == [plain, pinned]
    assert dict(far[1].parts)["pinned"] == pytest.approx(PINNED * 0.8)


def test_a_score_never_exceeds_one(make):
    """The best that there can be is one, pinned or not."""
    [hit] = fuse([Match(score=3, record=make(pinned=True))], [], limit=10)

    assert hit.score == 1.0


@pytest.mark.parametrize("outside", [True, False], ids=["record", "chunk"])
def test_what_comes_from_outside_stands_a_little_lower(make, outside):
    """Text of unknown origin loses a bounded share."""
    foreign = {"record": make(trust=Trust.EXTERNAL)} if outside else {"chunk": chunk(trust=Trust.EXTERNAL)}
    ours = make("ours")
    hits = fuse([Match(score=4, **foreign), Match(score=4, record=ours)], [], limit=10)

    assert [hit.score for hit in hits] == [1.0, pytest.approx(1 - UNTRUSTED)]
    assert hits[0].record == ours
    assert dict(hits[1].parts)["from outside"] == pytest.approx(-UNTRUSTED)


def test_what_was_said_in_a_session_loses_nothing():
    """An agent's own words are not from outside."""
    [hit] = fuse([Match(score=4, chunk=chunk(trust=Trust.AGENT))], [], limit=10)

    assert (hit.score, hit.parts) == (1.0, (("words", 1.0),))


def test_ties_are_decided_by_id(make):
    """Equal scores stand in the order of their ids, however they came in."""
    records = [make(str(number)) for number in range(5)]
    matches = [Match(score=1, record=record) for record in records]

    assert [hit.record for hit in fuse(matches, [], limit=9)] == records
    assert fuse(matches[::-1], [], limit=9) == fuse(matches, [], limit=9)


def test_the_limit_is_applied_after_ranking(make):
    """What is cut is what ranks last."""
    matches = [Match(score=score, record=make(str(score))) for score in (1, 5, 3)]

    assert [hit.text for hit in fuse(matches, [], limit=2)] == ["5", "3"]


def test_without_a_budget_everything_fits(make):
    """None is no limit."""
    hits = [Hit(score=1, record=make("x" * 10_000))]

    assert within(hits, None) == hits


def test_what_does_not_fit_makes_room(make):
    """A long hit is left out, a shorter one behind it is taken, and the budget holds."""
    texts = ["a" * 40, "b" * 400, "c" * 40, "d" * 44]
    kept = within([Hit(score=1, record=make(text)) for text in texts], 20)

    assert [hit.text[0] for hit in kept] == ["a", "c"]
    assert sum(estimate_tokens(hit.text) for hit in kept) == 20


def test_chunks_are_paid_for_too(make):
    """The budget counts what is shown, whatever it is."""
    assert within([Hit(score=1, chunk=chunk("word " * 100)), Hit(score=1, record=make("a b"))], 5)[0].text == "a b"

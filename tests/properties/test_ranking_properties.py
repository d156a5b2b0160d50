"""Ranking: what holds for any lists at all."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.domain.documents import Chunk, DocumentKind
from commonplace.domain.queries import Hit, Match
from commonplace.domain.records import Channel, Kind, Record, Source, Trust
from commonplace.domain.scopes import Scope
from commonplace.engine.ranking import MEANING, PINNED, UNTRUSTED, fuse, within
from commonplace.engine.render import explanation
from commonplace.engine.text import estimate_tokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = Scope.of(("project", "here"))
calm = settings(deadline=None)


@st.composite
def things(draw):
    """A record or a chunk, of any trust, pinned or not."""
    number = draw(st.integers(0, 9))
    trust = draw(st.sampled_from(Trust))
    if draw(st.booleans()):
        chunk = Chunk(
            scope=HERE, kind=DocumentKind.SESSION, document="s", seq=number, ref=str(number), text="t", trust=trust
        )
        return {"chunk": chunk}
    record = Record(
        id=f"{number:020}", scope=HERE, kind=Kind.SEMANTIC, content="t", source=Source(channel=Channel.USER),
        trust=trust, pinned=draw(st.booleans()), created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    return {"record": record}


def matches(scores, coverage):
    """Some matches, each thing once."""
    one = st.builds(
        lambda thing, score, covered: Match(score=score, coverage=covered, **thing), things(), scores, coverage
    )
    return st.lists(one, max_size=8, unique_by=lambda match: match.id)


LEXICAL = matches(st.floats(0, 50), st.just(1.0) | st.floats(0, 1))
SEMANTIC = matches(st.floats(-1, 1), st.just(1.0))


@calm
@given(LEXICAL, SEMANTIC)
def test_the_parts_add_up_to_the_score(lexical, semantic):
    """Every score can be explained, and lies between nothing and one."""
    for hit in fuse(lexical, semantic, limit=20):
        assert isclose(hit.score, sum(part for _, part in hit.parts), abs_tol=1e-9)
        assert 0 <= hit.score <= 1
        assert explanation(hit).startswith(f"{hit.score:.3f} = ")


@calm
@given(LEXICAL, SEMANTIC, st.randoms(use_true_random=False), st.integers(1, 20))
def test_the_order_is_by_score_then_id_and_nothing_else(lexical, semantic, random, limit):
    """The same matches give the same hits, however they came in; a shorter list is the beginning of a longer one."""
    hits = fuse(lexical, semantic, limit=20)
    random.shuffle(lexical)
    random.shuffle(semantic)

    assert fuse(lexical, semantic, limit=20) == hits
    assert fuse(lexical, semantic, limit=limit) == hits[:limit]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@calm
@given(LEXICAL)
def test_every_word_is_a_tier_of_its_own(lexical):
    """By their words alone, those that have every word stand at one half or above, the others at most there."""
    for hit in fuse(lexical, [], limit=20):
        found = next(match for match in lexical if match.id == hit.id)
        words = dict(hit.parts).get("words", 0.0)
        assert words >= 0.5 if found.coverage >= 1 else words <= 0.5


@calm
@given(LEXICAL, SEMANTIC)
def test_boosts_are_bounded(lexical, semantic):
    """A pin and an origin move a hit by a small share of what its text earned, and never from nothing."""
    for hit in fuse(lexical, semantic, limit=20):
        parts = dict(hit.parts)
        base = parts.get("words", 0.0) + parts.get("meaning", 0.0)
        assert 0 <= base <= 1 + 1e-9
        assert 0 <= parts.get("pinned", 0.0) <= base * PINNED + 1e-9
        assert -base * UNTRUSTED - 1e-9 <= parts.get("from outside", 0.0) <= 0
        assert parts.get("meaning", 0.0) <= MEANING


@calm
@given(LEXICAL, SEMANTIC)
def test_everything_found_is_there_once(lexical, semantic):
    """Fusing loses nothing and repeats nothing; who was near says how near."""
    hits = fuse(lexical, semantic, limit=20)

    assert {hit.id for hit in hits} == {match.id for match in (*lexical, *semantic)}
    assert len({hit.id for hit in hits}) == len(hits)
    assert {hit.id: hit.similarity for hit in hits if hit.similarity is not None} == {
        match.id: match.score for match in semantic
    }


TEXTS = st.lists(st.text("ab 日本", min_size=1, max_size=60), max_size=8)


@calm
@given(TEXTS, st.integers(0, 60))
def test_a_budget_holds_and_is_used(texts, budget):
    """What is kept fits, stands in order, and nothing that was left out would still have fit."""
    chunks = [
        Chunk(scope=HERE, kind=DocumentKind.SESSION, document="s", seq=n, ref=str(n), text=text, trust=Trust.USER)
        for n, text in enumerate(texts)
    ]
    hits = [Hit(score=1, chunk=chunk) for chunk in chunks]
    kept = within(hits, budget)

    left = budget - sum(estimate_tokens(hit.text) for hit in kept)
    assert left >= 0
    assert kept == [hit for hit in hits if hit in kept]
    assert all(estimate_tokens(hit.text) > left for hit in hits if hit not in kept)

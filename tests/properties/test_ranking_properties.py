"""Ranking: what holds for any survey at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import isclose

from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.engine import ranking
from commonplace.engine.ranking import distinct, rank, within
from commonplace.engine.rendering import explanation
from commonplace.model.documents import Chunk, DocumentKind
from commonplace.model.queries import Candidate, Hit, Survey
from commonplace.model.records import Channel, Kind, Record, Source, Trust, Usage
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.periods import Period
from commonplace.text.question import ParsedQuestion, Profile

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
SCOPES = [Scope.of(("project", "here")), Scope.of(("project", "there"))]
WORDS = 3  # of every question here
TEXTS = ["", "thanks", "why?", "we met yesterday, in May 2025", "key " * 59, "page " * 61]
SLACK = 1e-9
calm = settings(deadline=None)

#: Parts that say why a text bears on a question; all others are shares of what these add up to.
EVIDENCE = {"words", "reach", "session", "meaning", "context", "every word", "who", "when", "day", "mentioned"}
#: The most that they can be: the first five make 1, however they are shared.
MOST_EVIDENCE = 1 + ranking.EVERY + ranking.WHO + ranking.WHEN + ranking.DAY + ranking.MENTIONED
#: What boosts can add to the evidence or take from it, as a share of it.
MOST_BOOST = max(
    ranking.LONG + max(ranking.DATES, ranking.PINNED + ranking.USED),
    ranking.RECENT + ranking.KEPT + ranking.PINNED + ranking.USED,
)
LEAST_BOOST = ranking.UNTRUSTED + ranking.ASKS + ranking.ASSISTANT

moments = st.none() | st.builds(lambda days: NOW - days * DAY, st.integers(-10, 30_000))


@st.composite
def chunks(draw):
    """A turn of one of a few sessions, in one of two scopes, of any length, speaker and trust."""
    seq = draw(st.integers(0, 5))
    return Chunk(
        scope=draw(st.sampled_from(SCOPES)), kind=DocumentKind.SESSION, document=draw(st.sampled_from("st")), seq=seq,
        ref=str(seq), text=draw(st.sampled_from(TEXTS)), trust=draw(st.sampled_from(Trust)),
        speaker=draw(st.sampled_from(["", "user", "assistant", "tool", "Ada", "Bob"])), occurred_at=draw(moments),
    )  # fmt: skip


@st.composite
def records(draw):
    """A record, pinned or not, used or not."""
    return Record(
        id=f"{draw(st.integers(0, 9)):020}", scope=SCOPES[0], kind=Kind.SEMANTIC, content=draw(st.sampled_from(TEXTS)),
        source=Source(channel=Channel.USER), trust=draw(st.sampled_from(Trust)), pinned=draw(st.booleans()),
        usage=Usage(recalls=draw(st.integers(0, 50))), created_at=NOW, updated_at=NOW, occurred_at=draw(moments),
    )  # fmt: skip


@st.composite
def candidates(draw):
    """A record or a turn, with some of the words, and with a vector or none."""
    thing = {"chunk": draw(chunks())} if draw(st.booleans()) else {"record": draw(records())}
    worths = st.just(0.0) | st.floats(0.001, 20)
    similarity = draw(st.none() | st.floats(-1, 1))
    together = draw(st.none() | st.floats(-1, 1)) if similarity is not None and "chunk" in thing else None
    words = tuple(draw(st.lists(worths, min_size=WORDS, max_size=WORDS)))
    return Candidate(**thing, words=words, similarity=similarity, together=together)


def place(candidate):
    """What is seen is seen once."""
    return (candidate.id, str((candidate.record or candidate.chunk).scope))


surveys = st.builds(
    lambda seen, rarities: Survey(candidates=tuple(seen), rarities=tuple(rarities)),
    st.lists(candidates(), max_size=12, unique_by=place),
    st.lists(st.floats(0.01, 9), min_size=WORDS, max_size=WORDS),
)
questions = st.builds(
    lambda profile, names, times, when: ParsedQuestion(
        text="?", profile=profile, names=frozenset(names), periods=tuple(times), when=when
    ),
    st.sampled_from(Profile),
    st.sets(st.sampled_from(["ada", "bob"])),
    st.lists(
        st.builds(
            lambda back, days: Period(start=NOW - back * DAY, end=NOW + (days - back) * DAY, exact=days == 1),
            st.integers(-5, 400),
            st.sampled_from([1, 7, 365]),
        ),
        max_size=2,
    ),
    st.booleans(),
)


def evidence(hit, profile):
    """What speaks for a hit, before boosts and before scores are brought to 0..1."""
    return sum(part for name, part in hit.parts if name in EVIDENCE) * ranking.BEST[profile]


@calm
@given(surveys, questions)
def test_the_parts_add_up_to_the_score(survey, asked):
    """Every score can be explained, and lies between nothing and one."""
    for hit in rank(survey, asked, limit=20):
        assert isclose(hit.score, sum(part for _, part in hit.parts), abs_tol=SLACK)
        assert 0 <= hit.score <= 1 + SLACK
        assert len({name for name, _ in hit.parts}) == len(hit.parts)
        assert explanation(hit).startswith(f"{hit.score:.3f} = ")


@calm
@given(surveys, questions, st.randoms(use_true_random=False), st.integers(1, 20))
def test_the_order_is_by_score_then_id_and_nothing_else(survey, asked, random, limit):
    """The same survey gives the same hits, however it came in; a shorter list is the beginning of a longer one."""
    hits = rank(survey, asked, limit=20)
    shuffled = list(survey.candidates)
    random.shuffle(shuffled)

    assert rank(survey.replace(candidates=tuple(shuffled)), asked, limit=20) == hits
    assert rank(survey, asked, limit=limit) == hits[:limit]
    for better, worse in pairwise(hits):
        assert better.score >= worse.score - SLACK


@calm
@given(surveys, questions)
def test_what_is_ranked_was_seen_and_stands_there_once(survey, asked):
    """Nothing is made up or repeated; who was near says how near; whoever has a word of the question is there."""
    hits = rank(survey, asked, limit=20)
    seen = {place(one): one for one in survey.candidates}
    found = [(hit.id, str((hit.record or hit.chunk).scope)) for hit in hits]

    assert len(set(found)) == len(found)
    assert [hit.similarity for hit in hits] == [seen[one].similarity for one in found]
    assert {key for key, one in seen.items() if any(one.words)} <= set(found)


@calm
@given(surveys, questions)
def test_boosts_are_bounded_shares_of_the_evidence(survey, asked):
    """They add or take a stated share at the most, and lift nothing from nothing."""
    for hit in rank(survey, asked, limit=20):
        base = evidence(hit, asked.profile)
        boosts = [(name, part) for name, part in hit.parts if name not in EVIDENCE | {"above one"}]
        moved = sum(part for _, part in boosts) * ranking.BEST[asked.profile]
        assert 0 <= base <= MOST_EVIDENCE + SLACK
        assert LEAST_BOOST * base - SLACK <= moved <= MOST_BOOST * base + SLACK
        assert LEAST_BOOST > -1  # so that nothing is ever below nothing


@calm
@given(surveys, questions)
def test_each_profile_has_its_own_boosts(survey, asked):
    """Recency, records and every word count in a working context only, what answers are like in questions only."""
    names = {name for hit in rank(survey, asked, limit=20) for name, _ in hit.parts}
    others = {
        Profile.RECALL: {"recent", "record", "every word"},
        Profile.WORKING: {"length", "asks", "dates", "assistant"},
    }
    assert names.isdisjoint(others[asked.profile])


@calm
@given(surveys, questions, st.lists(st.floats(0.001, 20), min_size=WORDS, max_size=WORDS))
def test_in_a_working_context_all_words_stand_above_half_of_them(survey, asked, worths):
    """A record that has every word is above all records that lack half of them and more, whatever else they have."""
    whole = Record(
        id="z" * 20, scope=SCOPES[0], kind=Kind.SEMANTIC, content="whole", source=Source(channel=Channel.IMPORT),
        trust=Trust.EXTERNAL, created_at=NOW, updated_at=NOW, occurred_at=NOW - 40_000 * DAY,
    )  # fmt: skip
    seen = (*survey.candidates, Candidate(record=whole, words=tuple(worths), similarity=-1.0))
    working = asked.replace(profile=Profile.WORKING, periods=(), names=frozenset())
    hits = rank(Survey(candidates=seen, rarities=(1.0,) * WORDS), working, limit=20)
    better = [hit.id for hit in hits[: [hit.id for hit in hits].index(whole.id)] if hit.record]
    lacking = {one.id for one in survey.candidates if one.record and sum(map(bool, one.words)) <= WORDS / 2}
    assert lacking.isdisjoint(better)


@calm
@given(surveys, questions)
def test_collapsing_loses_nothing(survey, asked):
    """Whatever is left out is named by one that stays, once, and stays out when it is done again."""
    hits = rank(survey, asked, limit=20)
    kept = distinct(hits)

    assert sorted([hit.id for hit in kept] + [other for hit in kept for other in hit.alike]) == sorted(
        hit.id for hit in hits
    )
    assert [hit.replace(alike=()) for hit in kept] == [
        hit for hit in hits if hit in [k.replace(alike=()) for k in kept]
    ]
    assert [hit.text for hit in distinct(kept)] == [hit.text for hit in kept]


SAID = st.lists(st.text("ab 日本", min_size=1, max_size=60), max_size=8)


@calm
@given(SAID, st.integers(0, 60))
def test_a_budget_holds_and_is_used(texts, budget):
    """What is kept fits, stands in order, and nothing that was left out would still have fit."""
    said = [
        Chunk(scope=SCOPES[0], kind=DocumentKind.SESSION, document="s", seq=n, ref=str(n), text=text, trust=Trust.USER)
        for n, text in enumerate(texts)
    ]
    hits = [Hit(score=1, chunk=chunk) for chunk in said]
    kept = within(hits, budget)

    left = budget - sum(estimate_tokens(hit.text) for hit in kept)
    assert left >= 0
    assert kept == [hit for hit in hits if hit in kept]
    assert all(estimate_tokens(hit.text) > left for hit in hits if hit not in kept)

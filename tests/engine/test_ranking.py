"""What a store saw into one ranked list: evidence, context, names, times, boosts, near-duplicates, budgets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from commonplace.engine import ranking
from commonplace.engine.ranking import distinct, rank, within
from commonplace.model.documents import Chunk, DocumentKind
from commonplace.model.queries import Candidate, Hit, Survey
from commonplace.model.records import Trust, Usage
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.periods import periods
from commonplace.text.question import ParsedQuestion, Profile
from stands import rows

HERE, THERE = Scope.of(("project", "here")), Scope.of(("project", "there"))
MAY = datetime(2023, 5, 17, 12, tzinfo=UTC)
DAY = timedelta(days=1)
QUESTION = ParsedQuestion(text="?", profile=Profile.RECALL)
WORK = ParsedQuestion(text="", profile=Profile.WORKING)
BOTH = pytest.mark.parametrize("asked", [QUESTION, WORK], ids=["recall", "working"])


def chunk(text="so it was said", seq=0, document="s", **fields):
    """A turn of a session."""
    given = {"scope": HERE, "kind": DocumentKind.SESSION, "ref": str(seq), "trust": Trust.AGENT}
    return Chunk(document=document, seq=seq, text=text, **given | fields)


def saw(thing, *words, **fields):
    """Something that was seen, with the worth of each word of the question in it."""
    found = {"chunk": thing} if isinstance(thing, Chunk) else {"record": thing}
    return Candidate(words=tuple(map(float, words)), **found, **fields)


def ranked(*candidates, asked=QUESTION, rarities=None, limit=99):
    """The hits of a survey; words are equally rare unless said otherwise."""
    rare = rarities or [1.0] * max((len(one.words) for one in candidates), default=0)
    return rank(Survey(candidates=candidates, rarities=tuple(rare)), asked, limit=limit)


def texts(hits):
    """What the hits say, best first."""
    return [hit.text for hit in hits]


def scores(hits):
    """What each scores, by what it says."""
    return {hit.text: hit.score for hit in hits}


def part(hits, text, name):
    """A part of a hit's score; 0 if it has none of that name."""
    [hit] = [hit for hit in hits if hit.text == text]
    return dict(hit.parts).get(name, 0.0)


# Words and meaning


def test_nothing_seen_is_nothing_ranked():
    """An empty survey gives no hits."""
    assert ranked() == []


@BOTH
def test_the_best_that_there_can_be_scores_one(make, asked):
    """Every word, nearest, longest: 1, with vectors and without."""
    best, other = make("both words are here"), make("one")
    for near, far in ((None, None), (0.9, 0.3)):
        hits = ranked(saw(best, 3, 3, similarity=near), saw(other, 1, 0, similarity=far), asked=asked)
        assert hits[0].record == best
        assert hits[0].score == pytest.approx(1)
        assert hits[0].similarity == near


@BOTH
def test_every_word_stands_above_half_of_them(make, asked):
    """Two words of equal worth: who has both is first, however near in meaning the other one is."""
    both, half = make("both"), make("half")
    for near, far in ((None, None), (0.9, 0.89)):
        hits = ranked(saw(both, 1, 1, similarity=far), saw(half, 2, 0, similarity=near), asked=asked)
        assert texts(hits) == ["both", "half"]


def test_in_a_working_context_no_boost_lifts_half_of_the_words_above_all_of_them(make):
    """The weaker one is newest, pinned, used, nearest and the best by its one word; the other is old and foreign."""
    whole = make("whole", trust=Trust.EXTERNAL, occurred_at=MAY)
    half = make("half", pinned=True, usage=Usage(recalls=99), occurred_at=MAY + DAY)
    between = [make(f"n{number}", occurred_at=MAY + DAY / 24 * number) for number in range(1, 20)]
    crowd = [saw(record, 0, 0, similarity=0.5) for record in between]
    hits = ranked(saw(whole, 0.1, 0.1, similarity=0.0), saw(half, 4, 0, similarity=0.9), *crowd, asked=WORK)
    assert texts(hits)[:2] == ["whole", "half"]
    assert part(hits, "whole", "every word") == pytest.approx(ranking.EVERY / ranking.BEST[Profile.WORKING])


def test_a_rare_word_reaches_farther(make):
    """Of two that have one word each, alike in worth, the one with the rare word is first."""
    hits = ranked(saw(make("common"), 1, 0), saw(make("rare"), 0, 1), rarities=[0.2, 3])
    assert texts(hits) == ["rare", "common"]


def test_a_unique_word_stands_above_what_is_near_in_meaning(make):
    """An exact name that one record has leads, though another record is nearer."""
    for asked in (QUESTION, WORK):
        hits = ranked(saw(make("E1234"), 5, similarity=0.3), saw(make("errors"), 0, similarity=0.9), asked=asked)
        assert texts(hits) == ["E1234", "errors"]


def test_what_has_no_vector_is_weighed_by_its_words_alone(make):
    """A vector that is pending costs nothing: words, reach and session then make the whole."""
    hits = ranked(saw(make("bare"), 1), saw(make("near"), 1, similarity=0.9), saw(make("far"), 1, similarity=0.1))
    assert scores(hits)["bare"] == pytest.approx(scores(hits)["near"])
    assert scores(hits)["far"] < scores(hits)["bare"]
    assert {name for name, _ in hits[0].parts} <= {"words", "reach", "session", "length", "meaning", "context"}


def test_meaning_counts_between_the_farthest_and_the_nearest(make):
    """The farthest gets nothing for it, the nearest all, the middle half."""
    hits = ranked(*(saw(make(name), similarity=cosine) for name, cosine in (("a", 0.3), ("b", 0.5), ("c", 0.7))))
    shares = [part(hits, name, "meaning") * ranking.BEST[Profile.RECALL] / ranking.MEANING for name in "abc"]
    assert shares == pytest.approx([0, 0.5, 1])


def test_cosines_that_are_close_count_nearly_alike(make):
    """Of two one is always nearer; by a hundredth, that decides next to nothing."""
    hits = ranked(saw(make("a"), similarity=0.50), saw(make("b"), similarity=0.51))
    assert part(hits, "a", "meaning") == pytest.approx(part(hits, "b", "meaning") * (1 - 0.01 / ranking.SPAN))


def test_a_single_cosine_counts_as_it_is(make):
    """There is nothing to compare it with."""
    [near] = ranked(saw(make(), similarity=0.8))
    assert near.score == pytest.approx(0.8 * (ranking.MEANING + ranking.CONTEXT))


def test_what_has_nothing_to_do_with_the_question_is_left_out(make):
    """Something is always nearest; without a word, a time or some nearness it is no answer."""
    hits = ranked(saw(make("far"), 0, similarity=0.05), saw(make("away"), 0, similarity=-0.8), saw(make("bare"), 0))
    assert hits == []
    line = ranking.CHANCE + ranking.MEANT * (1 - ranking.CHANCE)
    assert texts(ranked(saw(make("near"), 0, similarity=line + 0.001))) == ["near"]
    assert texts(ranked(saw(make("near"), 0, similarity=line - 0.001))) == []


# The order


@BOTH
def test_ties_are_decided_by_id(make, asked):
    """Equal scores stand in the order of their ids, however they came in."""
    records = [make(str(number)) for number in range(5)]
    candidates = [saw(record, 1) for record in records]
    assert [hit.record for hit in ranked(*candidates, asked=asked)] == records
    assert ranked(*candidates[::-1], asked=asked) == ranked(*candidates, asked=asked)


def test_sessions_of_one_name_in_two_scopes_stand_by_scope():
    """Their turns have the same id; the order is the same all the same."""
    one, two = saw(chunk("a b"), 1), saw(chunk("c d", scope=THERE), 1)
    assert texts(ranked(one, two)) == texts(ranked(two, one)) == ["a b", "c d"]


def test_the_limit_is_applied_after_ranking(make):
    """What is cut is what ranks last; a shorter list is the beginning of a longer one."""
    candidates = [saw(make(str(worth)), worth) for worth in (1, 5, 3)]
    assert texts(ranked(*candidates, limit=2)) == ["5", "3"]
    assert ranked(*candidates, limit=2) == ranked(*candidates)[:2]


# Context


def test_an_answer_is_found_through_the_question_before_it():
    """A turn that has no word of its own leans on the turn before it; so does the one after that, less."""
    turns = [chunk("Where is the key?", 0), chunk("under the mat", 1), chunk("I see", 2), chunk("bye now", 3)]
    hits = ranked(*(saw(turn, 4.0 * (turn.seq == 0)) for turn in turns))
    first, second = ranking.BEFORE
    worths = [part(hits, turn.text, "words") for turn in turns]
    assert worths == pytest.approx([worths[0], first * worths[0], second * worths[0], 0])
    assert part(hits, "under the mat", "reach") == part(hits, "Where is the key?", "reach") > 0
    assert texts(hits)[-1] == "bye now"


def test_a_turn_lends_a_little_to_the_one_before_it():
    """What is said next counts for words, not for reach."""
    hits = ranked(saw(chunk("under it", 0), 0), saw(chunk("the mat", 1), 4))
    assert part(hits, "under it", "words") == pytest.approx(ranking.AFTER * part(hits, "the mat", "words"))
    assert part(hits, "under it", "reach") == 0


def test_the_words_of_a_question_may_be_spread_over_two_turns():
    """A word in the turn before and a word in the turn itself make both."""
    hits = ranked(saw(chunk("the key", 0), 1, 0), saw(chunk("the mat", 1), 0, 1), saw(chunk("a key", 5), 1, 0))
    assert part(hits, "the mat", "reach") == pytest.approx(2 * part(hits, "a key", "reach"))


@pytest.mark.parametrize("long", [0, 1], ids=["the one before", "itself"])
def test_only_short_turns_lend(long):
    """A page stands for itself: it neither lends nor leans."""
    page = "page " * (ranking.SHORT_WORDS + 1)
    said = ["asked", "answered"]
    said[long] = page
    hits = ranked(saw(chunk(said[0], 0), 4), saw(chunk(said[1], 1), 0))
    assert part(hits, said[1], "words") == part(hits, said[1], "reach") == 0
    just = "page " * ranking.SHORT_WORDS
    hits = ranked(saw(chunk(just, 0), 4), saw(chunk("answered", 1), 0))
    assert part(hits, "answered", "words") > 0


def test_a_long_turn_between_two_short_ones_breaks_the_chain():
    """What stands before the page does not reach over it."""
    page = "page " * (ranking.SHORT_WORDS + 1)
    hits = ranked(saw(chunk("asked", 0), 4), saw(chunk(page, 1), 0), saw(chunk("answered", 2), 0))
    assert part(hits, "answered", "words") == 0


@pytest.mark.parametrize(
    "apart",
    [{"document": "t"}, {"scope": THERE}, {"kind": DocumentKind.TICKET}],
    ids=["document", "scope", "kind"],
)
def test_nothing_is_lent_across_documents(apart):
    """A turn of another session, scope or ticket has nothing from this one, whatever its place."""
    mine, other = saw(chunk("asked", 0), 4), saw(chunk("answered", 1, **apart), 1)
    lent = ranked(mine, saw(chunk("answered", 1), 1))
    assert part(ranked(mine, other), "answered", "words") < part(lent, "answered", "words")
    assert part(ranked(mine, other), "answered", "session") < part(lent, "answered", "session")


def test_records_lend_nothing(make):
    """A record stands for itself."""
    hits = ranked(saw(make("one"), 4), saw(make("two"), 1))
    assert part(hits, "two", "words") == pytest.approx(part(hits, "one", "words") / 4)


def test_two_turns_taken_together_count_as_context():
    """With a vector of its own and of the turn before it, a turn counts by both together."""
    before = saw(chunk("asked", 0), 0, similarity=0.8)
    after = saw(chunk("answered", 1), 0, similarity=0.4, together=0.7)
    far = saw(chunk("elsewhere", 7), 1, similarity=0.2)
    hits = ranked(before, after, far)
    best = ranking.BEST[Profile.RECALL]
    assert part(hits, "answered", "meaning") * best == pytest.approx(ranking.MEANING * (0.4 - 0.2) / 0.6)
    assert part(hits, "answered", "context") * best == pytest.approx(ranking.CONTEXT * (0.7 - 0.2) / 0.6)
    assert part(hits, "asked", "context") * best == pytest.approx(ranking.CONTEXT)


def test_a_session_counts_by_its_best_three_turns():
    """A turn of a session that is about the question stands above the like of it in one that is not."""
    about = [saw(chunk(f"about {seq}", seq * 9, "about"), worth) for seq, worth in enumerate((4, 4, 4, 0, 0))]
    aside = [saw(chunk(f"aside {seq}", seq * 9, "aside"), worth) for seq, worth in enumerate((4, 0, 0, 0))]
    brief = [saw(chunk(f"brief {seq}", seq * 9, "brief"), 4) for seq in range(3)]
    hits = ranked(*about, *aside, *brief)
    assert part(hits, "aside 0", "session") == pytest.approx(part(hits, "about 0", "session") / 3)
    assert part(hits, "about 3", "session") == part(hits, "about 0", "session") == part(hits, "brief 0", "session")
    assert scores(hits)["about 0"] > scores(hits)["aside 0"]


# Names


def test_whom_the_question_names_is_preferred_softly():
    """Of two who say the same the one that is named is first, but not before somebody who says more of it."""
    asked = QUESTION.replace(names=frozenset({"ada"}))
    said = [saw(chunk("by Bob", 0, "b", speaker="Bob"), 1, 1), saw(chunk("by Ada", 0, "c", speaker="Ada"), 1, 1)]
    hits = ranked(*said, asked=asked)
    assert texts(hits) == ["by Ada", "by Bob"]
    assert part(hits, "by Ada", "who") == pytest.approx(ranking.WHO / ranking.BEST[Profile.RECALL])
    weaker = saw(chunk("by Ada", 0, "c", speaker="Ada"), 0, 1)
    assert texts(ranked(said[0], weaker, asked=asked)) == ["by Bob", "by Ada"]


def test_of_two_names_neither_is_preferred():
    """Who asks about two people wants to hear both."""
    said = [saw(chunk(f"by {name}", 0, name, speaker=name), 1) for name in ("Ada", "Bob", "Cy")]
    hits = ranked(*said, asked=QUESTION.replace(names=frozenset({"ada", "bob"})))
    assert len(set(scores(hits).values())) == 1


def test_a_record_that_names_them_is_of_them_too(make):
    """A record has no speaker; of two alike the one that speaks of the person is first."""
    asked = QUESTION.replace(names=frozenset({"ada lovelace"}))
    hits = ranked(saw(make("Bob's team owns search"), 1), saw(make("Ada's team owns billing"), 1), asked=asked)
    assert texts(hits) == ["Ada's team owns billing", "Bob's team owns search"]


# Times


def test_what_is_from_the_time_that_is_meant_comes_first(make):
    """Of two alike the one from that month is first; one from that day stands above both."""
    said = {name: saw(make(name, occurred_at=at), 1) for name, at in (("may", MAY), ("july", MAY + 60 * DAY))}
    asked = QUESTION.replace(periods=tuple(periods("in May 2023", MAY + 90 * DAY)))
    hits = ranked(*said.values(), asked=asked)
    assert texts(hits) == ["may", "july"]
    assert (part(hits, "may", "when") > 0, part(hits, "may", "day"), part(hits, "july", "when")) == (True, 0, 0)
    on_that_day = QUESTION.replace(periods=tuple(periods("on 17 May 2023", MAY)))
    assert part(ranked(*said.values(), asked=on_that_day), "may", "day") > 0


def test_a_day_beside_counts_as_that_day(make):
    """Days are remembered badly, and time zones differ."""
    asked = QUESTION.replace(periods=tuple(periods("on 18 May 2023", MAY)))
    hits = ranked(
        saw(make("before", occurred_at=MAY), 1), saw(make("long before", occurred_at=MAY - DAY), 1), asked=asked
    )
    assert part(hits, "before", "day") > 0 == part(hits, "before", "when") == part(hits, "long before", "day")


def test_what_tells_of_that_time_counts_a_little():
    """Said in June, but about May."""
    turn = chunk("last month I moved", 0, occurred_at=MAY + 20 * DAY)
    asked = QUESTION.replace(periods=tuple(periods("in May 2023", MAY + 90 * DAY)))
    hits = ranked(saw(turn, 1), saw(chunk("moved", 0, "t", occurred_at=MAY + 20 * DAY), 1), asked=asked)
    assert part(hits, "last month I moved", "mentioned") == pytest.approx(
        ranking.MENTIONED / ranking.BEST[Profile.RECALL]
    )
    assert part(hits, "moved", "mentioned") == 0


def test_a_turn_without_a_date_is_from_no_time():
    """It is neither preferred nor refused."""
    [hit] = ranked(saw(chunk(), 1), asked=QUESTION.replace(periods=tuple(periods("yesterday", MAY))))
    assert {"when", "day", "mentioned"}.isdisjoint(name for name, _ in hit.parts)


# Boosts


@BOTH
def test_a_pin_lifts_by_a_little(make, asked):
    """A bounded share of what the text earned: it decides between near equals and nothing else."""
    pinned, plain = make("pinned", pinned=True), make("plain")
    assert texts(ranked(saw(pinned, 9.9), saw(plain, 10), asked=asked)) == ["pinned", "plain"]
    assert texts(ranked(saw(pinned, 5), saw(plain, 10), asked=asked)) == ["plain", "pinned"]


@BOTH
def test_what_was_used_often_stands_a_little_higher(make, asked):
    """Ten recalls count, more count no more; fewer count nothing, so that asking again gives the same scores."""
    much = ranking.MUCH_USED
    records = {times: make(f"used {times}", usage=Usage(recalls=times)) for times in (0, much - 1, much, 999)}
    hits = ranked(*(saw(record, 1, 0) for record in records.values()), saw(make("better"), 2, 2), asked=asked)
    used = {times: part(hits, f"used {times}", "used") for times in records}
    assert used[0] == used[much - 1] == 0 < used[much] == pytest.approx(used[999])
    assert texts(hits)[0] == "better"


@BOTH
@pytest.mark.parametrize("kind", ["record", "chunk"])
def test_what_comes_from_outside_stands_a_little_lower(make, asked, kind):
    """Text of unknown origin loses a bounded share."""
    foreign = make("foreign", trust=Trust.EXTERNAL) if kind == "record" else chunk("foreign", trust=Trust.EXTERNAL)
    ours = make("ours") if kind == "record" else chunk("ours", document="z")
    hits = ranked(saw(foreign, 4), saw(ours, 4), asked=asked)
    assert texts(hits) == ["ours", "foreign"]
    assert part(hits, "foreign", "from outside") < 0 == part(hits, "ours", "from outside")


def test_the_newest_counts_in_a_working_context_only(make):
    """Of two alike the newer one is first there; a question about the past does not care."""
    old, new = saw(make("old", occurred_at=MAY), 1), saw(make("new", occurred_at=MAY + DAY), 1)
    assert texts(ranked(old, new, asked=WORK)) == ["new", "old"]
    assert texts(ranked(old, new)) == ["old", "new"]
    assert part(ranked(old, new), "new", "recent") == 0


def test_a_record_comes_before_what_was_said_in_a_working_context_only(make):
    """What was learned stands above the like of it in a session; a question about the past has no such bias."""
    said, kept = saw(chunk("said " * 60, occurred_at=MAY), 1), saw(make("kept " * 60, occurred_at=MAY), 1)
    share = part(ranked(said, kept, asked=WORK), kept.record.content, "record")
    assert texts(ranked(said, kept, asked=WORK))[0] == kept.record.content
    assert 0 < share <= ranking.KEPT
    assert part(ranked(said, kept), kept.record.content, "record") == 0


def test_small_talk_is_left_out_of_a_working_context():
    """Whoever asks is shown the turns around a turn; whoever is at work is not."""
    turns = [saw(chunk("the key", 0), 1), saw(chunk("I see", 1), 0), saw(chunk("bye", 2), 0)]
    assert len(ranked(*turns)) == 3
    assert texts(ranked(*turns, asked=WORK)) == ["the key"]


def test_recency_halves_with_every_ten_newer_ones(make):
    """It counts sessions, not days."""
    records = [make(f"n{number}", occurred_at=MAY - 1000 * DAY * number) for number in range(21)]
    hits = ranked(*(saw(record, 1) for record in records), saw(make("whole", occurred_at=MAY), 9), asked=WORK)
    recent = [part(hits, f"n{number}", "recent") for number in (0, 10, 20)]
    assert recent == pytest.approx([recent[0], recent[0] / 2, recent[0] / 4])
    assert recent[0] > 0


def test_all_turns_of_a_session_are_equally_recent():
    """A session is as new as its last turn; what has no date is the oldest."""
    turns = [chunk(f"turn {seq}", seq * 9, "s", occurred_at=MAY + seq * DAY) for seq in range(2)]
    others = [chunk("between", 0, "t", occurred_at=MAY + DAY / 2), chunk("some time", 0, "u")]
    hits = ranked(*(saw(turn, 1, 0) for turn in (*turns, *others)), saw(chunk("best", 0, "v"), 9, 9), asked=WORK)
    recent = [part(hits, text, "recent") for text in ("turn 0", "turn 1", "between", "some time")]
    assert recent[0] == pytest.approx(recent[1])
    assert recent[1] > recent[2] > recent[3] > 0


def test_before_1970_there_were_years_too(make):
    """Of two old times the later one is newer, and either is newer than none at all."""
    years = {year: make(str(year), occurred_at=datetime(year, 1, 1, tzinfo=UTC)) for year in (1950, 1960)}
    candidates = [*(saw(record, 1) for record in years.values()), saw(chunk("never"), 1)]
    assert texts(ranked(*candidates, asked=WORK)) == ["1960", "1950", "never"]


PRIORS = {
    "length": (chunk("a longer text of more words than that", 0, "x"), chunk("thanks", 0, "y")),
    "asks": (chunk("the key is here", 0, "x"), chunk("the key is where?", 0, "y")),
    "assistant": (chunk("by me", 0, "x", speaker="user"), chunk("by it", 0, "y", speaker="Assistant")),
}


@pytest.mark.parametrize("name", PRIORS)
def test_priors_count_for_questions_about_the_past_only(name):
    """Longer texts, texts that do not ask and people are likelier answers; a working context has no such bias."""
    better, worse = PRIORS[name]
    candidates = [saw(worse, 1), saw(better, 1)]
    assert texts(ranked(*candidates)) == [better.text, worse.text]
    assert {name for hit in ranked(*candidates, asked=WORK) for name, _ in hit.parts}.isdisjoint(PRIORS)


def test_words_of_time_count_if_the_question_wants_a_time():
    """Who asks when is told by "yesterday" and by a year."""
    said = [saw(chunk("we met there", 0, "x"), 1), saw(chunk("we met yesterday", 0, "y"), 1)]
    assert texts(ranked(*said, asked=QUESTION.replace(when=True)))[0] == "we met yesterday"
    assert part(ranked(*said), "we met yesterday", "dates") == 0


def test_a_record_is_an_answer_whatever_its_length(make):
    """It was kept to be one: a short record loses nothing to a long one."""
    hits = ranked(saw(make("short"), 1), saw(make("long " * 99), 1))
    assert len(set(scores(hits).values())) == 1


# Near-duplicates


def hits_of(make, *said):
    """Hits in this order."""
    return [Hit(score=1 - number / 10, record=make(text)) for number, text in enumerate(said)]


def test_what_says_the_same_but_for_small_words_is_named_by_the_better_one(make):
    """The best of them stays and names the others."""
    said = "Deploy the server on Fridays"
    hits = hits_of(make, said, "something else", "deploy server on fridays!", said.upper())
    kept = distinct(hits)
    assert texts(kept) == [said, "something else"]
    assert kept[0].alike == (hits[2].id, hits[3].id)
    assert kept[1] == hits[1]
    assert distinct(kept) == kept


@rows("other", ["not", "8081", "staging", "never", "only", "other"])
def test_a_number_or_a_no_more_is_another_thing(make, other):
    """However long the text is in which they differ: one of the two may be the truth."""
    long = (
        "the api of the shop runs behind the gateway on port 8080 and is restarted by the cron job every night at two"
    )
    said = (long, f"{long} {other}")
    assert texts(distinct(hits_of(make, *said))) == list(said)


def test_a_chunk_that_says_what_a_record_says_is_named_too(make):
    """It does not matter what they are."""
    hits = [*hits_of(make, "use pnpm"), Hit(score=0.5, chunk=chunk("Use pnpm"))]
    [kept] = distinct(hits)
    assert (kept.record.content, kept.alike) == ("use pnpm", ("session:s#0",))


def test_short_texts_that_differ_in_a_word_are_two(make):
    """A word is much of a short text."""
    said = ("deploy on monday", "deploy on tuesday")
    assert texts(distinct(hits_of(make, *said))) == list(said)


# Budgets


def test_without_a_budget_everything_fits(make):
    """None is no limit."""
    hits = [Hit(score=1, record=make("x" * 10_000))]

    assert within(hits, None) == hits


def test_what_does_not_fit_makes_room(make):
    """A long hit is left out, a shorter one behind it is taken, and the budget holds."""
    said = ["a" * 40, "b" * 400, "c" * 40, "d" * 44]
    kept = within([Hit(score=1, record=make(text)) for text in said], 20)

    assert [hit.text[0] for hit in kept] == ["a", "c"]
    assert sum(estimate_tokens(hit.text) for hit in kept) == 20


def test_chunks_are_paid_for_too(make):
    """The budget counts what is shown, whatever it is."""
    assert within([Hit(score=1, chunk=chunk("word " * 100)), Hit(score=1, record=make("a b"))], 5)[0].text == "a b"


# How far a hit bears on a question


def bearing(*candidates, weights, texts=200, **options):
    """How far each hit bears on a question, by what it says."""
    rare = tuple(3.0 for _ in weights)
    survey = Survey(candidates=candidates, rarities=rare, texts=texts)
    return {hit.text: hit.bears for hit in rank(survey, WORK, limit=9, weights=weights, **options)}


def test_a_note_that_answers_bears_on_a_question_more_than_one_that_shares_a_verb(make):
    """Common words count for less, whatever their rarity in a store; they alone are no match."""
    shares, answers = saw(make("go"), 3, 0, similarity=0.1), saw(make("deploy"), 0, 3, similarity=0.3)

    assert list(bearing(shares, answers, weights=(0.3, 1.0))) == ["deploy"]
    assert bearing(shares, weights=(0.3, 0.3)) != {}  # unless the question has nothing else


def test_how_far_a_hit_bears_does_not_depend_on_what_else_is_found(make):
    """Scores compare hits of one answer; this compares answers."""
    one, better = saw(make("one"), 3, 0, similarity=0.3), saw(make("both"), 3, 3, similarity=0.9)

    alone = bearing(one, weights=(1.0, 1.0))["one"]
    assert bearing(one, better, weights=(1.0, 1.0))["one"] == pytest.approx(alone)


def test_a_word_in_a_young_store_bears_as_in_a_large_one(make):
    """Among two texts no word is rare: it counts as it would among a hundred."""
    in_two = Survey(candidates=(saw(make("deploy"), 0.7, similarity=0.2),), rarities=(0.7,), texts=2)
    [hit] = rank(in_two, WORK, limit=1, weights=(1.0,))

    assert hit.bears > 0.3


def test_the_line_for_meaning_is_that_of_the_embedder(make):
    """Of one embedder texts that have nothing in common have a cosine of 0.7: 0.75 says nothing there."""
    near = saw(make("near"), 0, similarity=0.75)

    assert bearing(near, weights=(1.0,), chance=0.7) == {}
    assert list(bearing(near, weights=(1.0,), chance=0.1)) == ["near"]


def test_what_a_question_quotes_leads(make):
    """Word for word, whatever else a text has of it."""
    asked = QUESTION.replace(phrases=("note 77",))
    for text in ("Note 77 is about cats", "a note, 77"):
        hits = ranked(saw(make("77 times, note"), 3, 3), saw(make(text), 3, 3), asked=asked)
        assert texts(hits)[0] == text


def test_what_an_assistant_said_counts_where_it_is_asked_for():
    """Asked what "you told me", it is no question about one's own words."""
    told = chunk("the answer was forty two", 0, speaker="assistant")
    asked = [QUESTION, QUESTION.replace(of_assistant=True)]
    penalties = [dict(ranked(saw(told, 3, 0), asked=one)[0].parts).get("assistant", 0.0) for one in asked]

    assert penalties[0] < 0
    assert penalties[1] == 0


def test_a_standing_instruction_counts_where_its_topic_fits(make):
    """Of two notes about the same thing, who says how it is to be done leads; an assistant's word is no instruction."""
    plain, rule = saw(make("tests of the API are slow"), 3), saw(make("Always mock tests of the API"), 3)

    assert texts(ranked(plain, rule, asked=WORK))[0] == "Always mock tests of the API"
    by_machine = chunk("From now on everything is fine", 0, speaker="assistant")
    assert "instruction" not in dict(ranked(saw(by_machine, 3))[0].parts)

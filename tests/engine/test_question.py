"""What a question asks about, whom it names, which time it means, and what sort of question it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.question import Profile, parse_question
from stands import rows

NOW = datetime(2023, 7, 12, tzinfo=UTC)
PEOPLE = ["Ada Lovelace", "Bob", "assistant", "tool", "user", "User", ""]


def asked(text, speakers=PEOPLE, **options):
    """Ask now, of sessions in which these people speak."""
    return parse_question(text, speakers=speakers, now=NOW, **options)


@rows(
    "text",
    [
        "When did Ada move the build?",
        "how do we deploy",
        "What broke",
        "it broke yesterday?",
        "remind me of it",
        "why?",
    ],
)
def test_a_question_is_about_the_past(text):
    """It ends with a question mark or begins as questions do."""
    assert asked(text).profile is Profile.RECALL


@rows("text", ["deploy staging", "fix the build. Then rest", "E1234", "", "  ", "whatever works"])
def test_anything_else_is_what_somebody_is_at(text):
    """A message, a ticket, a few words."""
    assert asked(text).profile is Profile.WORKING


def test_whoever_knows_the_profile_says_so():
    """The form of the text decides only if nobody does."""
    assert asked("why?", profile=Profile.WORKING).profile is Profile.WORKING
    assert asked("deploy", profile=Profile.RECALL).profile is Profile.RECALL


@rows(
    "text, names, left",
    [
        ("Where did Ada move?", {"ada lovelace"}, "Where did move?"),
        ("where did lovelace move?", {"ada lovelace"}, "where did move?"),
        ("What is Bob's dog called?", {"bob"}, "What is dog called?"),
        ("What is Bob\u2019s dog called?", {"bob"}, "What is dog called?"),
        ("Did (Bob) and Ada meet?", {"bob", "ada lovelace"}, "Did and meet?"),
        ("Where is the bobsleigh?", set(), "Where is the bobsleigh?"),
        ("What did Cy say?", set(), "What did Cy say?"),
    ],
)
def test_names_are_told_from_words(text, names, left):
    """Whoever speaks in the sessions is named, by any of their names, and not searched as a word."""
    read = asked(text)
    assert (read.names, read.text) == (names, left)


@pytest.mark.parametrize("text", ["What did the assistant say?", "which user?", "the tool failed"])
def test_roles_are_no_names(text):
    """User, assistant and tool are nobody in particular, in whatever letters; the words stay."""
    assert (asked(text).names, asked(text).text) == (frozenset(), text)


@pytest.mark.parametrize("text", ["Who is Ada?", "Bob", "What about Bob and Ada?", "Ada Lovelace"])
def test_a_question_about_nothing_but_somebody_keeps_the_name(text):
    """What would be left says only how it is asked; so the name is searched after all."""
    assert asked(text).text == text
    assert asked(text).names


@rows(
    "text, when",
    [
        ("When did it break?", True),
        ("How long did it take?", True),
        ("What year was it?", True),
        ("What time is it?", True),
        ("What broke?", False),
        ("How did it break?", False),
        ("tell me when", False),
        ("", False),
    ],
)
def test_some_questions_want_a_time(text, when):
    """When, how long, what date."""
    assert asked(text).when is when


def test_the_times_of_a_question_are_read_as_of_now():
    """Yesterday is the day before it is asked."""
    assert [period.start.day for period in asked("what broke yesterday?").periods] == [11]
    assert asked("what broke?").periods == ()


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4))
def test_any_text_is_a_legal_question(text, speakers):
    """Nothing is refused; what is left of a question comes from it; names are those of speakers."""
    read = asked(text, speakers)
    assert set(read.text.split()) <= set(text.split())
    assert read.names <= {name.lower() for name in speakers}
    assert bool(read.text.split()) == bool(text.split())

"""The part of a long text that matches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.engine.rendering import snippets
from commonplace.model.queries import Hit
from commonplace.text.excerpt import matching_start, terms_of

LONG = "Background about the build. " * 40


@pytest.mark.parametrize(
    ("text", "question", "begins"),
    [
        (f"{LONG}Start it with --numbat-mode. {LONG}", "numbat mode", "Start it"),
        (f"{LONG}word {'x' * 90} numbat", "numbats", "numbat"),
        (f"The numbat is here. {LONG}The numbat is there.", "numbat", "The numbat is here"),
        (f"A numbat. {LONG}The wombat eats the numbat.", "wombat and numbat", "The wombat"),
        (LONG, "numbat", "Background"),
        ("short numbat", "numbat", "short"),
        (f"{LONG}numbat", "", "Background"),
    ],
)
def test_it_begins_where_most_of_the_question_is(text, question, begins):
    """At the sentence, or at a word; a beginning that is as good is kept."""
    assert text[matching_start(text, terms_of(question), 160) :].startswith(begins)


@given(st.text(max_size=2000), st.text(max_size=40), st.integers(1, 300))
def test_any_text_has_a_part(text, question, most):
    """It begins inside of the text."""
    assert 0 <= matching_start(text, terms_of(question), most) <= max(0, len(text) - 1)


def test_a_snippet_shows_what_matched(make):
    """Not the first hundred and sixty characters."""
    line = snippets([Hit(score=1, record=make(f"{LONG}Start it with --numbat-mode."))], {}, question="numbat")

    assert "  …Start it with --numbat-mode." in line

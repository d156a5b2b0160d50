"""Phrases between quotation marks are found word for word."""

from __future__ import annotations

import pytest

import commonplace
from commonplace.engine.recall import phrases_in
from stands import rows


@pytest.fixture
def notes():
    """Many notes that have the words of a phrase, and one that has the phrase."""
    with commonplace.open(":memory:") as memory:
        memory.remember_many([f"Folder note {n} about subject {n % 97}" for n in range(1000)])
        yield memory


def test_what_has_the_quoted_phrase_comes_first(notes):
    """Of all that have its words the one that has them together; the others follow."""
    found = notes.recall('"note 77"', limit=5)
    assert found[0].text == "Folder note 77 about subject 77"
    assert len(found) == 5
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert sum(part for _, part in found[0].parts) == pytest.approx(found[0].score)


def test_a_phrase_ends_where_words_end(notes):
    """`note 7` is no part of `note 77`, and case and blanks do not matter."""
    assert notes.recall('"NOTE   7"', limit=1)[0].text == "Folder note 7 about subject 7"


def test_every_phrase_counts(notes):
    """Two phrases are both wanted."""
    assert notes.recall('"note 177" "subject 80"', limit=1)[0].text == "Folder note 177 about subject 80"


def test_a_phrase_that_nothing_has_raises_nothing(notes):
    """The words still find what they find; the marks themselves move a meaning by a hair."""
    quoted = notes.recall('"77 note folder"', limit=5)
    assert len(quoted) == 5
    assert "phrase" not in {name for hit in quoted for name, _ in hit.parts}
    assert quoted[0].id == notes.recall("77 note folder", limit=1)[0].id


PHRASES = {'say "one two" and "three"': ["one two", "three"], 'a 5" pipe': [], "“so”": ["so"], '""': [], "x": []}


@rows("query", PHRASES)
def test_phrases_are_what_is_between_marks(query):
    """A single mark is an inch."""
    assert phrases_in(query) == PHRASES[query]

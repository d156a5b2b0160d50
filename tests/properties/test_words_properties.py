"""Turning text into terms: what holds for any text at all."""

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from commonplace.text.stem import stem
from commonplace.text.words import QUERY_WORDS, TERM_CHARS, plan, terms

# Any code point, lone surrogates among them; and text that is mostly joints, so that every reader has its turn.
ANYTHING = st.text(st.characters(exclude_categories=()))
JOINED = st.text(
    "abXYZ019__--..//::@@##++'',, \u2019\u00e9\u0130\u00df\u0301東\u0e19\u0e49\u06f3🎉🇩\u200d\u200b\x00\x80\x81\ud800"
)
CODE = st.lists(
    st.sampled_from(
        ["foo", "Bar", "2024-05-17", "v2.1", "3,000", "don't", "main.py", "::", "/", ".", "-", "T10:30", "s", " "]
    ),
    max_size=12,
).map("".join)
TEXT = ANYTHING | JOINED | CODE
ASCII = st.text(st.characters(max_codepoint=127)) | CODE
MARKS = frozenset("_-./:@#+")


def is_allowed(char):
    """Tell whether a term may hold a character."""
    if char.isascii():
        return char in MARKS or char.isalnum()
    return unicodedata.category(char)[0] in "LNM" or unicodedata.category(char) == "So"


@given(TEXT)
@example("a" * 63 + "-b")
@example("a" * 63 + "@b")
def test_every_term_obeys_the_rules_the_stores_rely_on(text):
    """Short, folded, without spaces or control characters, and with no mark at its ends that a sentence could add."""
    for term in terms(text):
        assert 0 < len(term) <= TERM_CHARS
        assert term == term.casefold()
        assert all(is_allowed(char) for char in term)
        assert term.strip(".:-") == term


@given(TEXT)
def test_every_term_of_a_question_obeys_them_too(text):
    """A question asks in the terms that are stored."""
    words = plan(text).words

    assert all(way and all(way) for word in words for way in word.terms)
    assert {term for word in words for way in word.terms[:1] for term in way} <= set(terms(text))


@given(TEXT)
def test_a_text_is_found_by_its_own_words(text):
    """Every word of a question has an alternative in a text that says the same."""
    held = set(terms(text))

    assert all(any(held.issuperset(way) for way in word.terms) for word in plan(text).words)


@given(TEXT)
def test_a_text_with_terms_can_be_asked_for(text):
    """A question is without words only when there is nothing to find by it."""
    assert bool(plan(text).words) == bool(terms(text))


@given(TEXT)
def test_a_question_stays_small(text):
    """At most sixty-four words, and no two alike."""
    words = plan(text).words

    assert len(words) <= QUERY_WORDS
    assert len({word.terms for word in words}) == len(words)


@given(ASCII)
def test_terms_read_again_are_there_again(text):
    """What is not a plain word is its own spelling; a plain word may lose one more ending."""
    found = terms(text)
    again = set(terms(" ".join(found)))

    assert {term if not term.isalpha() else stem(term) for term in found} <= again


@given(st.lists(TEXT, max_size=4))
def test_texts_apart_give_the_terms_of_both(texts):
    """Nothing reaches across a space, so a record's fields can be read as one text."""
    assert terms("\n".join(texts)) == [term for text in texts for term in terms(text)]


@given(ANYTHING | JOINED)
def test_equivalent_spellings_give_the_same_terms(text):
    """An accent composed or apart is the same accent."""
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


@given(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1))
def test_a_stem_is_no_longer_than_its_word(word):
    """It is made of letters, begins as the word does, and is never empty."""
    found = stem(word)

    assert found.isalpha()
    assert found.islower()
    assert found[0] == word[0]
    assert len(found) <= len(word)

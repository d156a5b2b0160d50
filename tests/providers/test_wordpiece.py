"""Our tokenizer against the original's: words, pieces, and what has none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_tokens import TOKENS

from commonplace.providers.local import FILE, _Table
from commonplace.providers.wordpiece import LONGEST_WORD, pieces, words
from stands import rows


@pytest.fixture(scope="module")
def table():
    """The vocabulary that is shipped."""
    return _Table(FILE)


def entry(table, number):
    """The text of a vocabulary entry."""
    begin, end = table.texts_at + table._start(number), table.texts_at + table._start(number + 1)
    return table.data[begin:end].decode()


def tokens(table, text):
    """The pieces of a text as the original names them."""
    found = [pieces(word, table.find) for word in words(text)]
    return " ".join(entry(table, number) for numbers in found for number in numbers or [100])


@rows("text, expected", TOKENS)
def test_a_text_is_cut_as_the_original_cuts_it(table, text, expected):
    """Every reference text has the very pieces that the original gives it."""
    assert tokens(table, text) == expected


def test_every_entry_finds_itself(table):
    """A text can have every entry but the special ones, which it cannot."""
    found = [table.find(entry(table, number).encode()) for number in range(30522)]
    assert found == [None] * 999 + list(range(999, 30522))


def test_what_is_not_in_the_vocabulary_is_not_found(table):
    """Neither a word nor a prefix of one nor nothing at all."""
    assert [table.find(text) for text in (b"", b"zzzzqqq", b"##", b"[UNK]", b"the ", b"\xff")] == [None] * 6


def test_a_word_too_long_has_no_pieces(table):
    """One character more than the original takes."""
    assert pieces("a" * LONGEST_WORD, table.find)
    assert pieces("a" * (LONGEST_WORD + 1), table.find) == []


@given(st.text())
def test_words_are_clean(text):
    """No word holds a blank or an upper-case ASCII letter, and cutting again changes nothing."""
    found = words(text)
    assert all(word and not any(character.isspace() for character in word) for word in found)
    assert words(" ".join(found)) == found

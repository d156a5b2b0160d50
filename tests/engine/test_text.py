"""Text as it is kept: cleaned, cut, measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.model.errors import InvalidInput
from commonplace.text.cleaning import CHUNK_CHARS, chunks, clean, estimate_tokens, one_line, slug
from stands import rows

ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


def test_a_lone_surrogate_is_refused_with_its_place():
    """Bytes that were not UTF-8 are named, not kept half."""
    with pytest.raises(InvalidInput, match="the note is not valid Unicode at character 3: its bytes were not UTF-8"):
        clean("abc\udcff", what="the note")


@given(ANYTHING)
def test_cleaning_twice_is_cleaning_once(text):
    """What was cleaned stays as it is."""
    once, _ = clean(text, what="it")

    assert clean(once, what="it") == (once, 0)


@given(ANYTHING)
def test_only_what_is_invisible_is_dropped(text):
    """Every printable character that goes in comes out."""
    kept, _ = clean(text, what="it")

    printable = "".join(char for char in text if char.isprintable())
    assert "".join(char for char in kept if char.isprintable()).strip() == printable.strip()


@given(st.text("ab. \n", max_size=400), st.integers(6, 40))
def test_chunks_lose_nothing_but_space(text, most):
    """Together the pieces say what the text said, and none is longer than allowed or blank."""
    pieces = list(chunks(text, most=most))

    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() and len(piece) <= most for piece in pieces if len(text) > most)


@rows(
    "text, pieces",
    [
        ("short", ["short"]),
        ("", []),
        ("one two\n\nthree four", ["one two", "three four"]),
        ("one two\nthree four", ["one two", "three four"]),
        ("It is so. And that", ["It is so.", "And that"]),
        ("one two three four", ["one two three", "four"]),
        ("x" * 20, ["x" * 14, "x" * 6]),
    ],
)
def test_a_text_is_cut_where_it_pauses(text, pieces):
    """At a blank line, else a line end, else a sentence, else a space, else anywhere."""
    assert list(chunks(text, most=14)) == pieces


def test_an_ordinary_turn_is_one_chunk():
    """What fits is not cut."""
    assert list(chunks("word " * (CHUNK_CHARS // 5 - 1))) == ["word " * (CHUNK_CHARS // 5 - 1)]


@rows("text, tokens", [("", 0), ("a", 1), ("four", 1), ("fives", 2), ("日本語", 3), ("日本語 ok", 4)])
def test_tokens_are_estimated(text, tokens):
    """A quarter of the letters; each letter of a script without spaces."""
    assert estimate_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one", "one"),
        ("one\n two \n\n three", "one ⏎ two ⏎ three"),
        ("one\u2028two\u2029three", "one ⏎ two ⏎ three"),
        ("one\r\ntwo\x0bthree\x85four", "one ⏎ two ⏎ three ⏎ four"),
    ],
)
def test_a_line_is_one_line_to_everybody(text, line):
    """Whatever anybody takes for a line end is shown as one."""
    assert one_line(text) == line


@given(ANYTHING)
def test_a_slug_is_plain(text):
    """Letters, digits and single underscores, and never nothing."""
    assert slug(text).replace("_", "a").isascii()
    assert slug(slug(text)) == slug(text) != ""

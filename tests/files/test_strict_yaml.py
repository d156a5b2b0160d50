"""YAML without surprises: what is taken, what is refused and where, and what is written."""

from __future__ import annotations

import pytest
import yaml

from commonplace.model.errors import InvalidInput
from commonplace.text import strict_yaml
from commonplace.text.strict_yaml import YamlError, dump, dump_scalar, load, load_with_lines, truth
from stands import rows

TYPED = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
    "0": 0,
    "-12": -12,
    "1.5": 1.5,
    "-0.25": -0.25,
    "1.0e+16": 1e16,
}
STAYS_TEXT = [
    *("no", "yes", "on", "off", "y", "True", "NULL", "1.10", "1.", ".5", "1e5", "1e+16", "007", "+1", "-0", "0x1F"),
    *("0o17", "1_000", "12:30:00", "2024-05-17", "2024-05-17 10:00:00", ".inf", ".nan", "1.0e+999", "9" * 5000),
]
REFUSED = {
    "an anchor": ("a: 1\nb: &x 1\n", 2, "anchor or an alias"),
    "an alias": ("a: *x\n", 1, "anchor or an alias"),
    "a tag": ("a: 1\nb: !!python/name:os.system x\n", 2, "uses a tag"),
    "a harmless tag": ("a: !!str 1\n", 1, "uses a tag"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", 3, "says 'a' twice"),
    "a key twice, quoted once": ("1: x\n'1': y\n", 2, "says '1' twice"),
    "a second document": ("a: 1\n---\nb: 2\n", 2, "more than one document"),
    "a list for a key": ("a: 1\n? [b, c]\n: d\n", 2, "a key must be text"),
    "depth": ("a: [[[[[[[[1]]]]]]]]\n", 1, "deeper than 8"),
    "no YAML at all": ("a: 1\nb: [1, 2\nc: 3\n", 3, "is not YAML"),
    "a tab for indentation": ("a:\n\t- b\n", 2, "is not YAML"),
    "NUL": ("a: 1\nb: \0\n", 2, "U+0000"),
    "a line end that only some see": ("a: 1\nb: x\u2028y\n", 2, "U+2028"),
    "half a character": ("a: \ud800\n", 1, "U+D800"),
    "NUL as an escape": ('a: 1\nb: "\\0"\n', 2, "escape for NUL"),
}


@rows("text, value", TYPED.items())
def test_a_plain_word_is_what_it_prints_as(text, value):
    """Numbers, true, false and null are read as such if they would be written the same way."""
    read = load(f"key: {text}\n", file="x.md")["key"]
    assert (read, type(read)) == (value, type(value))


@rows("text", STAYS_TEXT)
def test_whatever_would_be_written_differently_stays_text(text):
    """No word changes under a person's hands."""
    assert load(f"key: {text}\n", file="x.md") == {"key": text}


def test_a_quoted_word_is_text():
    """Quotes say so."""
    assert load("a: '1'\nb: \"true\"\n", file="x.md") == {"a": "1", "b": "true"}


def test_keys_are_text():
    """A number or a word of YAML as a key is the text that was written; a merge key is a key."""
    assert load("1: a\nnull: b\n1.10: c\n<<: {d: 1}\n", file="x.md") == {
        "1": "a",
        "null": "b",
        "1.10": "c",
        "<<": {"d": 1},
    }


def test_an_empty_text_is_nothing():
    """No document, or one with comments only, is None."""
    assert load("", file="x.md") is None
    assert load("# nothing\n", file="x.md") is None


def test_windows_lines_and_a_byte_order_mark_are_read():
    """What Windows editors add is not seen."""
    assert load_with_lines("\ufeffa: 1\r\nb: 2\r\n", file="x.md") == ({"a": 1, "b": 2}, {"a": 1, "b": 2})


@rows("text, line, reason", REFUSED.values())
def test_what_is_refused_is_refused_with_its_line(text, line, reason):
    """The error names the file, the line within that file, and the reason."""
    with pytest.raises(YamlError) as caught:
        load(text, file="x.md", first_line=11)
    assert (caught.value.file, caught.value.line) == ("x.md", line + 10)
    assert reason in caught.value.reason
    assert str(caught.value) == f"x.md:{line + 10}: {caught.value.reason}"


@rows("text, line, reason", REFUSED.values())
def test_the_loader_in_python_refuses_the_same(text, line, reason):
    """Where PyYAML was built without its C library nothing else is taken; a line may be one off."""
    with pytest.raises(YamlError) as caught:
        in_python(text)
    assert abs(caught.value.line - line) <= 1
    assert reason in caught.value.reason


def test_the_loader_in_python_refuses_an_escape_beyond_unicode():
    """The C library says that it is not YAML; the other one would make a number error of it."""
    for text in ('a: 1\nb: "\\UFFFFFFFF"\n', 'a: 1\nb: "\\ud800"\n'):
        with pytest.raises(YamlError, match=r"x\.md:2: "):
            in_python(text)


def in_python(text):
    """Read a text as it is read where PyYAML has no C library."""
    strict_yaml._refuse(text, file="x.md", first_line=1, max_bytes=1000)
    return strict_yaml._build(text, yaml.SafeLoader, strict_yaml._Builder(file="x.md", first_line=1, max_depth=8))


def test_an_alias_bomb_is_refused_at_its_first_anchor():
    """Nothing is multiplied before it is refused."""
    rows = [
        "a: &a [x, x, x]",
        *(f"{key}: &{key} [*{before}, *{before}]" for before, key in zip("abcdefg", "bcdefgh", strict=True)),
    ]
    with pytest.raises(YamlError, match=r"x\.md:1: uses an anchor"):
        load("\n".join(rows), file="x.md")


@pytest.mark.parametrize("text", ["[" * 60_000, "{a: " * 15_000, "- " * 30_000, "? " * 30_000])
def test_depth_is_refused_before_it_is_built(text):
    """A text of brackets neither exhausts the stack nor takes time."""
    with pytest.raises(YamlError):
        load(text, file="x.md")


def test_size_is_limited_in_bytes():
    """What is too large is refused before it is read."""
    assert load("a: " + "é" * 10, file="x.md", max_bytes=23)
    with pytest.raises(YamlError, match="larger than 22 bytes"):
        load("a: " + "é" * 10, file="x.md", max_bytes=22)


def test_the_lines_of_the_outermost_keys_are_told():
    """A schema can say where it was not followed."""
    text = "# first\na:\n  b: 1\n\nc: [\n  1]\nd: 2\n"
    assert load_with_lines(text, file="x.md", first_line=5)[1] == {"a": 6, "c": 9, "d": 11}


@rows("value, told", [(True, True), ("Yes", True), ("OFF", False), ("no", False), ("maybe", None), (1, None)])
def test_where_a_schema_wants_yes_or_no_people_may_write_it_their_way(value, told):
    """The words are text to the reader, and an answer to who asks a question."""
    assert truth(value) is told


@rows("text", ["use pnpm", "a/b.c", "it's", "naïve", "日本語", "1kjmekwhbby1d6cnd627", "a (b)", "a - b"])
def test_a_harmless_text_is_written_plain(text):
    """Most texts need no quotes."""
    assert dump_scalar(text) == text


@rows(
    "text",
    [*STAYS_TEXT[:-1], "", " a", "a ", "a: b", "a #b", "a,b", "[a]", "- a", "*a", "@a", "null", "~", "n", "=", "<<"],
)
def test_a_text_that_some_reader_takes_for_something_else_is_quoted(text):
    """Readers of YAML 1.1 and of 1.2 both get the text."""
    written = dump_scalar(text)
    assert written.startswith('"')
    assert load(written, file="x.md") == yaml.safe_load(written) == text


def test_what_cannot_be_seen_is_escaped_and_what_can_is_not():
    """Controls and turns of direction show; letters of any script stay readable."""
    assert (
        dump_scalar("é:\x1b\x7f\x85\u2028\u202e\ufeff\U000e0041")
        == '"é:\\u001b\\u007f\\u0085\\u2028\\u202e\\ufeff\\U000e0041"'
    )


def test_lists_and_mappings_are_written_in_one_line():
    """Lists as people write them, mappings as JSON with sorted keys."""
    assert dump(["a b", "c, d", 1, True, None, []]) == '[a b, "c, d", 1, true, null, []]'
    assert dump({"b": ["x", 1e16], "a": {"c": None}}) == '{"a": {"c": null}, "b": ["x", 1.0e+16]}'


def test_a_key_that_is_too_long_for_yaml_is_written_out():
    """A reader looks no further than 1,024 letters for a colon, unless it is told that a key comes."""
    value = {"k" * 3000: [1]}
    assert load(dump(value), file="x.md") == value


@rows(
    "value", [float("nan"), float("inf"), {1, 2}, b"x", "a\0b", "\ud800", [[[[[[[[[1]]]]]]]]], {"a": {"b": object()}}]
)
def test_what_could_not_be_read_again_is_not_written(value):
    """Only JSON goes out, no deeper than it may come in."""
    with pytest.raises(InvalidInput):
        dump(value)

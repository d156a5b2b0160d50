"""JSON with comments is changed where it is meant, and nowhere else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.hosts import jsonc
from commonplace.model.errors import InvalidInput
from stands import rows

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=4)


def ours(value):
    """What we put there."""
    return value == {"ours": [1, 2]}


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.sampled_from([None, 1, 4, "\t"]))
def test_any_json_is_read_as_the_library_reads_it(value, indent):
    """However it is laid out."""
    assert jsonc.parse(json.dumps(value, indent=indent)).value == value


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.sampled_from([None, 2, "\t"]))
def test_what_is_put_in_and_taken_out_leaves_the_same_words(value, indent):
    """And while it is there, everything else says what it said."""
    value.pop("key", None)
    text = json.dumps(value, indent=indent)
    with_it = jsonc.insert(text, ("key", "inner"), {"ours": [1, 2]}, listed=False)
    assert jsonc.parse(with_it).value == value | {"key": {"inner": {"ours": [1, 2]}}}
    without = jsonc.remove(with_it, ("key", "inner"), ours, listed=False)
    assert jsonc.prune(without, [("key",)]) == text


@settings(max_examples=100, deadline=None)
@given(st.lists(VALUES, max_size=4), st.integers(0, 4))
def test_a_member_of_a_list_goes_from_wherever_it_stands(others, at):
    """First, last, alone or between."""
    listed = [*others[:at], {"ours": [1, 2]}, *others[at:]]
    text = json.dumps({"list": listed}, indent=2)
    left = jsonc.parse(jsonc.remove(text, ("list",), ours, listed=True)).value
    assert left == {"list": [one for one in listed if not ours(one)]}


def test_comments_beside_what_goes_stay():
    """They are somebody's."""
    text = '{\n  "a": 1, // one\n  // two\n  "ours": {"ours": [1, 2]}, // three\n  "b": 2 /* four */\n}'
    left = jsonc.remove(text, ("ours",), ours, listed=False)
    assert jsonc.parse(left).value == {"a": 1, "b": 2}
    assert all(word in left for word in ("// one", "// two", "// three", "/* four */"))


@rows(
    "text",
    [
        "",
        "{",
        '{"a" 1}',
        '{"a": }',
        "[1 2]",
        '{"a": 1} x',
        "{a: 1}",
        "'a'",
        '{"a": "\n"}',
        "/* open",
        "[" * 300,
        '"\\x"',
        "{,}",
    ],
)
def test_what_is_no_json_is_refused_with_its_line(text):
    """Whatever it is."""
    with pytest.raises(InvalidInput, match="is not JSON at line"):
        jsonc.parse(text)

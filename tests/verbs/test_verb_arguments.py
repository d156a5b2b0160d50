"""The arguments of a verb go out as the JSON that its own check reads: what the remote client sends."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, get_args

import pytest

from commonplace.model.errors import InvalidInput
from commonplace.model.records import Json
from commonplace.model.values import UNSET, Value
from commonplace.verbs import ArgumentsOf, verb
from commonplace.wire import Items, decode, decode_known, encode

NOON = datetime(2026, 5, 31, 12, tzinfo=UTC)


class Policy(Value):
    """What a task allows."""

    most: int = 1


@verb
def store(
    caller: None, key: str, value: Json, tags: Collection[str] = (), *, at: datetime | None = None, note: str = UNSET
) -> None:
    """Store a value."""


@verb
def batch(caller: None, items: Annotated[Sequence[Annotated[Mapping[str, Any], ArgumentsOf(store)]], Items(2)]) -> None:
    """Store values."""


@verb
def begin(caller: None, policy: Policy | Mapping[str, Any] | None = None) -> None:
    """Begin a task."""


def test_arguments_come_back_as_they_went_out():
    """Dates, sets and null are the same on the other side; what was not given stays out."""
    given = {"key": "k", "value": None, "tags": {"b", "a"}, "at": NOON, "note": UNSET}
    sent = json.loads(json.dumps(store.encode(given)))
    found = store.check(sent)
    assert sent.keys() == {"key", "value", "tags", "at"}
    assert (found["value"], sorted(found["tags"]), found["at"]) == (None, ["a", "b"], NOON)
    assert store.encode({"key": "k", "value": 1, "at": None}) == {"key": "k", "value": 1}


@pytest.mark.parametrize("wrong", [{"tags": None}, {"key": None}, {"at": datetime(2026, 5, 31)}])  # noqa: DTZ001 - the test
def test_what_the_type_does_not_admit_is_refused_before_it_is_sent(wrong):
    """None where it is no value, and a date without a zone."""
    with pytest.raises(InvalidInput):
        store.encode({"key": "k", "value": 1} | wrong)


def test_any_json_is_not_made_json_of():
    """A set in a value is no list: whoever writes the JSON refuses it."""
    assert store.encode({"key": "k", "value": {1}})["value"] == {1}
    assert batch.encode({"items": [{"key": "k", "value": {1}, "at": NOON}]}) == {
        "items": [{"key": "k", "value": {1}, "at": encode(NOON)}]
    }


def test_a_list_of_arguments_has_their_schema_and_its_limit():
    """A batch is described by the verb that it repeats."""
    schema = batch.parameters()["properties"]["items"]
    assert (schema["items"]["properties"], schema["maxItems"]) == (store.parameters()["properties"], 2)
    with pytest.raises(InvalidInput, match="items must be a list"):
        batch.check({"items": [{}, {}, {}]})


def test_of_several_types_the_value_travels():
    """A caller may give a mapping; in JSON it is the value's object."""
    assert begin.parameters()["properties"]["policy"]["properties"]["most"] == {"type": "integer"}
    assert begin.check({"policy": {"most": 3}}) == {"policy": Policy(most=3)}
    assert begin.encode({"policy": Policy(most=3)}) == begin.encode({"policy": {"most": 3}}) == {"policy": {"most": 3}}


@pytest.mark.parametrize("words", [Literal["b", "a"], Literal["a", "b"]])
def test_words_are_named_in_the_order_of_their_own_type(words):
    """Equal literals may list their words in another order."""
    with pytest.raises(InvalidInput, match=f"it must be one of {', '.join(get_args(words))}, not 'c'"):
        decode(words, "c")


class Part(Value):
    """A part of an answer."""

    name: str


class Whole(Value):
    """An answer."""

    parts: tuple[Part, ...]
    note: Json = None


def test_what_a_newer_server_adds_is_left_out():
    """A client that does not know a field yet reads the rest; any JSON is left alone."""
    sent = {"parts": [{"name": "a", "later": 1}], "note": {"later": 2}, "later": 3}
    assert decode_known(Whole, sent) == Whole(parts=(Part(name="a"),), note={"later": 2})

"""Types as JSON Schema, JSON as values, values as JSON: one table serves every face."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

from commonplace.model.errors import InvalidInput
from commonplace.model.ids import new_id
from commonplace.model.records import Channel, Json, Kind, Record, Source, Trust, Usage
from commonplace.model.scopes import Scope
from commonplace.model.values import UNSET, Value
from commonplace.wire import Range, decode, encode, field_hints, schema_of

if TYPE_CHECKING:
    from nowhere import Unknown

MAY = datetime(2026, 5, 31, 12, tzinfo=UTC)


class Color(StrEnum):
    """Some words."""

    RED = "red"
    BLUE = "blue"


class Inner(Value):
    """A value in a value."""

    count: int
    note: str | None = None


class Outer(Inner):
    """A value with fields of many types."""

    kind: Kind
    inner: Inner | None = None
    lost: Unknown = None  # a name for type checkers only
    either: int | str = 1
    extra: str = UNSET


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (None.__class__, {"type": "null"}),
        (Annotated[float, Range(low=0)], {"type": "number", "minimum": 0}),
        (Annotated[int | None, Range(1, 5)], {"type": "integer", "minimum": 1, "maximum": 5}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Color, {"type": "string", "enum": ["red", "blue"]}),
        (Trust, {"type": "string", "enum": ["external", "agent", "user"]}),
        (datetime, {"type": "string", "format": "date-time"}),
        (timedelta, {"type": "number"}),
        (Scope, {"type": "string"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (frozenset[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (tuple[str, int], {"type": "array", "items": {}}),
        (list, {"type": "array", "items": {}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (dict, {"type": "object", "additionalProperties": {}}),
        (Json, {}),
        (Any, {}),
        (int | str, {}),
    ],
)
def test_a_type_has_a_schema(hint, schema):
    """What cannot be said in our small part of JSON Schema is any JSON."""
    assert schema_of(hint) == schema


def test_an_optional_type_admits_null_where_it_is_asked_for():
    """Arguments leave null out; fields of results name it."""
    assert schema_of(str | None) == {"type": "string"}
    assert schema_of(str | None, nullable=True) == {"type": ["string", "null"]}
    assert schema_of(Color | None, nullable=True) == {"type": ["string", "null"], "enum": ["red", "blue", None]}


def test_a_value_has_the_schema_of_its_fields():
    """Inherited fields come first; a type that is unknown at run time is any JSON."""
    inner = {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "note": {"type": ["string", "null"]}},
        "required": ["count"],
        "additionalProperties": False,
    }
    assert schema_of(Inner) == inner
    schema = schema_of(Outer)
    assert list(schema["properties"]) == ["count", "note", "kind", "inner", "lost", "either", "extra"]
    assert schema["required"] == ["count", "kind"]
    assert schema["properties"]["inner"] == inner | {"type": ["object", "null"]}
    assert schema["properties"]["lost"] == {}
    assert field_hints(Outer)["lost"] is Any
    assert field_hints(Outer) is field_hints(Outer)


@pytest.mark.parametrize(
    ("hint", "sent", "value"),
    [
        (str, "x", "x"),
        (int, 3, 3),
        (int, 3.0, 3),
        (float, 3, 3.0),
        (bool, False, False),
        (str | None, None, None),
        (type(None), None, None),
        (Color, "red", Color.RED),
        (Trust, "user", Trust.USER),
        (Literal["a", "b"], "b", "b"),
        (datetime, "2026-05-31T12:00:00Z", MAY),
        (datetime, "2026-05-31T12:00:00", MAY),
        (datetime, "2026-05-31", MAY.replace(hour=0)),
        (timedelta, 90, timedelta(seconds=90)),
        (Scope, "project:x", Scope.of(("project", "x"))),
        (list[int], [1, 2], [1, 2]),
        (Sequence[Color], ["red"], [Color.RED]),
        (frozenset[str], ["a"], frozenset({"a"})),
        (tuple[int, ...], [1], (1,)),
        (Mapping[str, timedelta], {"a": 1}, {"a": timedelta(seconds=1)}),
        (Inner, {"count": 1}, Inner(count=1)),
        (list[Inner], [{"count": 1, "note": None}], [Inner(count=1)]),
        (Json, {"any": [1, None]}, {"any": [1, None]}),
        (Any, None, None),
    ],
)
def test_json_becomes_a_value(hint, sent, value):
    """Whole floats count as whole numbers; a date without a zone is in UTC."""
    decoded = decode(hint, sent, name="it")
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(
    ("hint", "sent", "sentence"),
    [
        (str, 1, "it must be a string, not 1"),
        (str, None, "it must be a string, not None"),
        (int, "1", "it must be a whole number, not '1'"),
        (int, 1.5, "it must be a whole number, not 1.5"),
        (int, True, "it must be a whole number, not True"),
        (float, True, "it must be a number, not True"),
        (bool, 1, "it must be true or false, not 1"),
        (type(None), 1, "it must be null, not 1"),
        (Annotated[int, Range(low=1)], 0, "it must be a whole number of at least 1, not 0"),
        (Annotated[float, Range(0, 1)], 2, "it must be a number from 0 to 1, not 2"),
        (Color, "green", "it must be one of red, blue, not 'green'"),
        (Color, 7, "it must be one of red, blue, not 7"),
        (Literal["a", "b"], "c", "it must be one of a, b, not 'c'"),
        (Literal["a", "b"], ["a"], "it must be one of a, b, not ['a']"),
        (datetime, "soon", "it must be a date such as 2026-05-31T12:00:00Z, not 'soon'"),
        (datetime, 5, "it must be a date such as 2026-05-31T12:00:00Z, not 5"),
        (timedelta, "1h", "it must be a number, not '1h'"),
        (timedelta, 1e300, "it must be a number of seconds, not 1e+300"),
        (Scope, 5, "it must be a string, not 5"),
        (list[int], 5, "it must be a list, not 5"),
        (list[int], "12", "it must be a list, not '12'"),
        (list[int], [1, "2"], "each of it must be a whole number, not '2'"),
        (Mapping[str, int], [], "it must be an object, not []"),
        (Mapping[str, int], {"a": "b"}, "it.a must be a whole number, not 'b'"),
        (Inner, 5, "it must be an object, not 5"),
        (Inner, {}, "it needs 'count'"),
        (Inner, {"count": 1, "more": 2}, "it takes no 'more'; it takes count, note"),
        (Inner, {"count": "x"}, "it.count must be a whole number, not 'x'"),
        (str, ["x" * 100], "it must be a string, not ['" + "x" * 58 + "..."),
    ],
)
def test_what_does_not_fit_gets_a_sentence(hint, sent, sentence):
    """It names the place and what would be right, and shows only a beginning of what was sent."""
    with pytest.raises(InvalidInput) as refused:
        decode(hint, sent, name="it")
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("value", "json"),
    [
        (None, None),
        (1.5, 1.5),
        (Color.RED, "red"),
        (Trust.USER, "user"),
        (MAY, "2026-05-31T12:00:00Z"),
        (MAY.astimezone(timezone(timedelta(hours=2))), "2026-05-31T14:00:00+02:00"),
        (timedelta(minutes=1), 60.0),
        (Scope.of(("project", "a/b")), "project:a%2Fb"),
        (frozenset({"b", "a"}), ["a", "b"]),
        ((1, Color.BLUE), [1, "blue"]),
        ({"a": MAY, "b": UNSET}, {"a": "2026-05-31T12:00:00Z"}),
        (
            Outer(count=1, kind=Kind.SEMANTIC),
            {"count": 1, "note": None, "kind": "semantic", "inner": None, "lost": None, "either": 1},
        ),
    ],
)
def test_a_value_becomes_json(value, json):
    """Fields by name, except those that are unset."""
    assert encode(value) == json
    assert type(encode(value)) is type(json)


def test_what_a_record_has_not_is_null():
    """Nothing is left out, and nothing is made up."""
    record = Record(
        id=new_id(MAY), scope=Scope.of(("user", "ada")), kind=Kind.SEMANTIC, content="x", created_at=MAY,
        updated_at=MAY, source=Source(channel=Channel.USER), trust=Trust.USER,
    )  # fmt: skip
    sent = encode(record)
    assert list(sent) == list(Record.fields)
    assert {name for name, value in sent.items() if value is None} == {
        *("key", "value", "occurred_at", "expires_at", "archived_at", "superseded_by", "consolidated_at"),
        "approved_at",
    }


def test_a_record_makes_the_round_trip():
    """What the engine stores needs no shape of its own to travel."""
    record = Record(
        id=new_id(MAY), scope=Scope.of(("user", "ada")), kind=Kind.SEMANTIC, content="x", tags=frozenset({"b", "a"}),
        metadata={"aliases": ["y"]}, source=Source(channel=Channel.USER, parents=("p",)), trust=Trust.USER,
        created_at=MAY, updated_at=MAY, value={"a": [1]}, key="k", pinned=True, occurred_at=MAY, expires_at=MAY,
        archived_at=MAY, superseded_by=new_id(MAY), consolidated_at=MAY, usage=Usage(recalls=2, last_recalled_at=MAY),
    )  # fmt: skip
    sent = encode(record)
    assert sent["usage"] == {"recalls": 2, "last_recalled_at": "2026-05-31T12:00:00Z"}
    assert sent["tags"] == ["a", "b"]
    assert sent["trust"] == "user"
    assert sent["source"] == {"channel": "user", "ref": None, "parents": ["p"]}
    assert decode(Record, sent, name="record") == record

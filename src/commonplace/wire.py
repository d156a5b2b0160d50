"""Typed values as JSON, and back: the JSON Schema of a type, its decoder with sentences for mistakes, its encoder.

A table of codecs knows strings, numbers, booleans, dates, durations, enums, literals, scopes, lists, mappings and our
own values; any other type is any JSON.  Faces use it for the arguments and results of verbs.

What is made for models differs in three ways: fields that are ``QUOTED`` are left out, because models read words of
memory between the marks of a quotation only; fields that have their default are left out, because every token counts;
and ``Choices`` are the only words that a model may choose from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum, IntEnum
from functools import cache
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import QUOTED, UNSET, Value

Schema: TypeAlias = Mapping[str, Any]
Prepared: TypeAlias = "tuple[Any, bool, Any, list[Mark], Codec]"  # a type, taken apart for the decoder
V = TypeVar("V", bound=Value)
PREVIEW_CHARS = 60  # of a value in a sentence about it


class Mark:
    """A limit of a type, given in ``Annotated``."""

    def schema(self, *, for_models: bool) -> dict[str, Any]:
        """Return the limit as JSON Schema."""

    def allows(self, value: Any) -> bool:
        """Tell whether a value is within the limit."""


class Range(Mark):
    """The least and the greatest number allowed: ``Annotated[int, Range(1, 50)]``."""

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        self.low = low
        self.high = high

    def schema(self, *, for_models: bool) -> dict[str, Any]:  # noqa: ARG002, D102 - see Mark
        limits = {"minimum": self.low, "maximum": self.high}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def allows(self, value: Any) -> bool:  # noqa: D102 - see Mark
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


class Length(Mark):
    """The greatest number of characters allowed: ``Annotated[str, Length(512)]``; ``least`` is the smallest."""

    def __init__(self, most: int, *, least: int = 0) -> None:
        self.most = most
        self.least = least

    def schema(self, *, for_models: bool) -> dict[str, Any]:  # noqa: ARG002, D102 - see Mark
        return {"maxLength": self.most} | ({"minLength": self.least} if self.least else {})

    def allows(self, value: Any) -> bool:  # noqa: D102 - see Mark
        return self.least <= len(value) <= self.most


class Items(Mark):
    """The greatest number of items allowed: ``Annotated[Sequence[str], Items(1000)]``."""

    def __init__(self, most: int) -> None:
        self.most = most

    def schema(self, *, for_models: bool) -> dict[str, Any]:  # noqa: ARG002, D102 - see Mark
        return {"maxItems": self.most}

    def allows(self, value: Any) -> bool:  # noqa: D102 - see Mark
        return len(value) <= self.most


class Choices(Mark):
    """The words that models choose from; a program may use others: ``Annotated[str, Choices("red", "blue")]``."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def schema(self, *, for_models: bool) -> dict[str, Any]:  # noqa: D102 - see Mark
        return {"enum": list(self.words)} if for_models else {}

    def allows(self, value: Any) -> bool:  # noqa: ARG002, D102 - the verb refuses words that mean nothing to it
        return True


def object_schema(properties: Mapping[str, Schema], required: Collection[str]) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def preview(value: object) -> str:
    """Return a value as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= PREVIEW_CHARS else f"{text[:PREVIEW_CHARS]}..."


def schema_of(hint: Any, *, nullable: bool = False, for_models: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a type.  An optional type admits null only where ``nullable`` says so."""
    inner, optional = _without_none(hint)
    base, marks = _split_annotated(inner)
    schema = codec_of(base).schema(base, for_models)
    for mark in _limits(marks):
        schema |= mark.schema(for_models=for_models)
    if optional and nullable and "type" in schema:
        schema["type"] = [schema["type"], "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    return schema


def decode(hint: Any, value: Any, *, name: str = "") -> Any:
    """Return JSON as a value of a type; raise ``InvalidInput`` with a sentence that names what would be right.

    Without a name the sentence is about the fields alone, for callers that say themselves where the value stands.
    """
    return _decode(_prepare(hint), value, name)


def decode_known(kind: type[V], value: Any) -> V:
    """Return JSON as a value of a type; fields of other programs and of later versions are passed over."""
    found: V = decode(kind, _without_unknown_fields(kind, value))
    return found


def _without_unknown_fields(hint: Any, value: Any) -> Any:
    base = _prepare(hint)[2]
    if isinstance(value, list):
        return [_without_unknown_fields(_item(base), item) for item in value]
    if isinstance(value, Mapping) and isinstance(base, type) and issubclass(base, Value):
        hints = field_hints(base)
        return {key: _without_unknown_fields(hints[key], item) for key, item in value.items() if key in hints}
    return value


def _prepare(hint: Any) -> Prepared:  # not cached by equality: equal literals may list their words in another order
    inner, optional = _without_none(hint)
    base, marks = _split_annotated(inner)
    return inner, optional, base, _limits(marks), codec_of(base)


def _decode(prepared: Prepared, value: Any, name: str) -> Any:
    inner, optional, base, marks, codec = prepared
    if value is None and optional:
        return None
    decoded = codec.decode(base, value, name)
    if decoded is _UNFIT or not all(mark.allows(decoded) for mark in marks):
        raise InvalidInput(f"{name or 'it'} must be {_describe(schema_of(inner))}, not {preview(value)}")
    return decoded


def encode(value: Any, *, for_models: bool = False) -> Any:
    """Return a value as JSON: fields by name, dates as ISO 8601, enums by their words, sets in order."""
    kind: Any = type(value)
    return codec_of(kind).encode(value, for_models)


def encode_as(hint: Any, value: Any) -> Any:
    """Return an argument of a type as JSON.  What may be any JSON stays as it is: ``json`` refuses the rest."""
    base, marks = _split_annotated(_without_none(hint)[0])
    encoders = [mark.encode for mark in marks if hasattr(mark, "encode")]
    if encoders:
        return encoders[0](value)
    if codec_of(base) is _ANY:
        return value
    if isinstance(value, Collection) and not isinstance(value, str | bytes | Mapping | Value):
        return [encode_as(_item(base), item) for item in value]
    return encode(value)


def value_schema(kind: type[Value], for_models: bool = False) -> dict[str, Any]:
    """Return the schema of a value: every field, required unless it has a default."""
    hints = field_hints(kind)
    names = [name for name in hints if not (for_models and is_quoted(hints[name]))]
    properties = {name: schema_of(hints[name], nullable=True, for_models=for_models) for name in names}
    return object_schema(properties, [name for name in names if name not in kind.defaults])


def admits_null(hint: Any) -> bool:
    """Tell whether null is a value of a type."""
    inner, optional = _without_none(hint)
    return optional or codec_of(_split_annotated(inner)[0]) is _ANY


def is_quoted(hint: Any) -> bool:
    """Tell whether a field holds words of memory."""
    return QUOTED in _split_annotated(hint)[1]


def field_hints(kind: type[Value]) -> dict[str, Any]:
    """Return the type of each field; one whose name cannot be resolved at run time counts as any JSON."""
    known = _HINTS.get(kind)
    if known is None:
        known = {
            name: _resolve(annotation, vars(sys.modules[base.__module__]))
            for base in reversed(kind.__mro__)
            for name, annotation in vars(base).get("__annotations__", {}).items()
            if name in kind.fields
        }
        _HINTS[kind] = known
    return known


_HINTS: dict[type[Value], dict[str, Any]] = {}
_PREPARED: dict[type[Value], dict[str, Prepared]] = {}
_AS_IS = frozenset({str, int, float, bool, type(None)})  # most fields; a call for each would double the time
_UNFIT: Any = object()  # what a decoder returns for a value of another type


# Codecs


class Codec:
    """How the types of one family look in JSON."""

    def __init__(
        self,
        schema: Callable[[Any, bool], dict[str, Any]],
        decode: Callable[[Any, Any, str], Any],
        encode: Callable[[Any, bool], Any],
    ) -> None:
        """Join the three functions of a family.

        Args:
            schema: From the type, and whether it is for models, to its JSON Schema.
            decode: From type, JSON and the argument's name to a value; ``_UNFIT`` where the JSON is of another type.
            encode: From a value, and whether it is for models, to JSON.
        """
        self.schema = schema
        self.decode = decode
        self.encode = encode


@cache  # a page of entries asks a thousand times
def codec_of(base: Any) -> Codec:
    """Return the codec of a type, the first family in the table that it belongs to."""
    kind = get_origin(base) or base
    if kind is Literal:
        return _LITERAL
    if isinstance(kind, type):
        for family, codec in _CODECS.items():
            if issubclass(kind, family):
                return codec
    return _ANY


def _same(value: Any, _for_models: bool) -> Any:
    return value


def _plain(name: str) -> Codec:
    """Return the codec of a type that JSON has too."""

    def fit(base: type, value: Any, _: str) -> Any:
        if base is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if base is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        fits = isinstance(value, base) and (base is bool or not isinstance(value, bool))
        return value if fits else _UNFIT

    return Codec(lambda _base, _for_models: {"type": name}, fit, _same)


def _literal(base: Any, value: Any, _: str) -> Any:
    return value if isinstance(value, str) and value in get_args(base) else _UNFIT


def _word(member: Enum) -> str:
    return member.name.lower() if isinstance(member, IntEnum) else str(member.value)


def _member(base: type[Enum], value: Any, _: str) -> Any:
    return next((member for member in base if _word(member) == value), _UNFIT)


def _moment(_base: Any, value: Any, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a date such as 2026-05-31T12:00:00Z, not {preview(value)}") from None


def _moment_json(moment: datetime, _for_models: bool) -> str:
    if moment.tzinfo is None:
        raise InvalidInput(f"{moment.isoformat()} has no time zone; use an aware datetime")
    return moment.isoformat().replace("+00:00", "Z")


def _duration(_base: Any, value: Any, name: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _UNFIT
    try:
        return timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{name} must be a number of seconds, not {preview(value)}") from None


def _scope(_base: Any, value: Any, _: str) -> Any:
    return Scope.parse(value) if isinstance(value, str) else _UNFIT


def _value(base: type[Value], value: Any, name: str) -> Any:
    if not isinstance(value, Mapping):
        return _UNFIT
    hints = field_hints(base)
    if unknown := [key for key in value if key not in hints]:
        raise InvalidInput(f"{name or 'it'} takes no {preview(unknown[0])}; it takes {', '.join(hints)}")
    if missing := [key for key in base.fields if key not in base.defaults and key not in value]:
        raise InvalidInput(f"{name or 'it'} needs {', '.join(map(repr, missing))}")
    inside = f"{name}." if name else ""
    fields = _PREPARED.get(base) or _PREPARED.setdefault(base, {key: _prepare(hint) for key, hint in hints.items()})
    return base(**{key: _decode(fields[key], item, f"{inside}{key}") for key, item in value.items()})


def _value_json(value: Value, for_models: bool) -> dict[str, Any]:
    names = type(value).fields if not for_models else _shown_to_models(value)
    return {
        name: item if type(item) in _AS_IS else encode(item, for_models=for_models)
        for name in names
        if (item := getattr(value, name)) is not UNSET
    }


def _shown_to_models(value: Value) -> list[str]:
    hints, defaults = field_hints(type(value)), type(value).defaults
    unquoted = [name for name in type(value).fields if not is_quoted(hints[name])]
    return [name for name in unquoted if name not in defaults or getattr(value, name) != defaults[name]]


def _item(base: Any) -> Any:
    """Return the type of what a list or mapping holds."""
    arguments = [argument for argument in get_args(base) if argument is not ...]
    if issubclass(get_origin(base) or base, Mapping):
        arguments = arguments[1:]
    return arguments[0] if len(arguments) == 1 else Any


def _mapping(base: Any, value: Any, name: str) -> Any:
    if not isinstance(value, Mapping):
        return _UNFIT
    inner = _prepare(_item(base))
    return {str(key): _decode(inner, item, f"{name}.{key}") for key, item in value.items()}


def _mapping_json(value: Mapping[Any, Any], for_models: bool) -> dict[str, Any]:
    return {str(key): encode(item, for_models=for_models) for key, item in value.items() if item is not UNSET}


def _many(base: Any, value: Any, name: str) -> Any:
    if not isinstance(value, list):
        return _UNFIT
    inner = _prepare(_item(base))
    items = [_decode(inner, item, f"each of {name}") for item in value]
    kind = get_origin(base) or base
    return kind(items) if issubclass(kind, tuple | frozenset | set) else items


def _many_json(value: Collection[Any], for_models: bool) -> list[Any]:
    items = [encode(item, for_models=for_models) for item in value]
    return sorted(items) if isinstance(value, set | frozenset) else items


def _of_items(kind: str, key: str) -> Callable[[Any, bool], dict[str, Any]]:
    return lambda base, for_models: {
        "type": kind,
        key: schema_of(_item(base), nullable=True, for_models=for_models),
    }


_ANY = Codec(lambda _base, _for_models: {}, lambda _base, value, _name: value, _same)
_LITERAL = Codec(lambda base, _: {"type": "string", "enum": list(get_args(base))}, _literal, _same)
_CODECS: Mapping[type, Codec] = {  # the first that fits: an enum of words is a string too
    Enum: Codec(
        lambda base, _: {"type": "string", "enum": [_word(member) for member in base]},
        _member,
        lambda member, _: _word(member),
    ),
    bool: _plain("boolean"),
    int: _plain("integer"),
    float: _plain("number"),
    str: _plain("string"),
    datetime: Codec(
        lambda _base, _: {"type": "string", "format": "date-time"},
        _moment,
        _moment_json,
    ),
    timedelta: Codec(lambda _base, _: {"type": "number"}, _duration, lambda span, _: span.total_seconds()),
    Scope: Codec(lambda _base, _: {"type": "string"}, _scope, lambda scope, _: str(scope)),
    Value: Codec(value_schema, _value, _value_json),
    Mapping: Codec(_of_items("object", "additionalProperties"), _mapping, _mapping_json),
    Collection: Codec(_of_items("array", "items"), _many, _many_json),
    type(None): Codec(
        lambda _base, _: {"type": "null"}, lambda _base, value, _name: _UNFIT if value is not None else None, _same
    ),
}


# Types and sentences


def _resolve(annotation: Any, names: dict[str, Any]) -> Any:
    holder = type("Annotated", (), {"__annotations__": {"it": annotation}})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)["it"]
    except NameError:
        return Any


def _without_none(hint: Any) -> tuple[Any, bool]:
    """Return a type without None, and whether None was part of it.

    A choice of several types is any JSON, unless one of them is a value of ours: then that is what travels.
    """
    base, marks = _split_annotated(hint)
    if get_origin(base) not in (Union, UnionType):
        return hint, False
    rest = [choice for choice in get_args(base) if choice is not type(None)]
    optional = len(rest) < len(get_args(base))
    values = [choice for choice in rest if isinstance(choice, type) and issubclass(choice, Value)]
    inner = rest[0] if len(rest) == 1 else values[0] if len(values) == 1 else Any
    for mark in marks:
        inner = Annotated[inner, mark]
    return inner, optional


def _split_annotated(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if isinstance(hint, str | ForwardRef):  # an alias such as Json, whose text is not evaluated: any JSON
        return Any, ()
    if get_origin(hint) is not Annotated:
        return hint, ()
    base, *marks = get_args(hint)
    inner, more = _split_annotated(base)
    return inner, (*more, *marks)


def _limits(marks: Collection[Any]) -> list[Mark]:
    return [mark for mark in marks if isinstance(mark, Mark)]


def _describe(schema: Schema) -> str:
    """Return what a schema allows, in words."""
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    kind = schema["type"]
    if kind == "string" and "maxLength" in schema:
        between = f"{schema['minLength']} to" if "minLength" in schema else "at most"
        return f"a string of {between} {schema['maxLength']} characters"
    if kind in _WORDS:
        return _WORDS[kind]
    low, high = schema.get("minimum"), schema.get("maximum")
    between = "" if low is None else f" from {low} to {high}" if high is not None else f" of at least {low}"
    return ("a whole number" if kind == "integer" else "a number") + between


_WORDS = {"string": "a string", "boolean": "true or false", "array": "a list", "object": "an object", "null": "null"}

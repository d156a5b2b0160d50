"""Tools that are declared by a schema instead of a verb: those of intent memory, until they are verbs too.

The little of JSON Schema that they use is checked here, since a model learns from the sentence that it gets back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value

SHOWN = 60  # letters of a value in a sentence about it

Schema = Mapping[str, Any]


class Told(Value):
    """What a tool answers."""

    text: str  #: for a model that reads
    data: Mapping[str, Any]  #: the same for a program, as the tool's output schema says


class Offer(Value):
    """One tool."""

    name: str
    title: str
    description: str  #: when to use it, and when not: a constant, no word of memory is ever in it
    parameters: Schema  #: of its arguments
    output: Schema  #: of ``Told.data``
    reads: bool = False  #: it changes nothing that anybody would call memory
    destroys: bool = False  #: what it takes away does not come back
    repeats: bool = False  #: twice is as good as once
    handle: Callable[[Mapping[str, Any]], Told]  #: with checked arguments; raises ``CommonplaceError``

    def call(self, sent: object) -> Told:
        """Check the arguments and call it."""
        return self.handle(checked(self.name, self.parameters, sent))


def fields(required: Sequence[str] = (), **properties: Schema) -> dict[str, Any]:
    """The schema of an object with these fields and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def checked(name: str, schema: Schema, sent: object) -> dict[str, Any]:
    """What a model sent for these arguments, if it may be that; null is as good as nothing.

    Raises ``InvalidInput`` with a sentence that says what would be right.
    """
    if not isinstance(sent, Mapping):
        raise InvalidInput(f"the arguments of {name} should be an object, not {_shown(sent)}")
    known = schema["properties"]
    if unknown := [key for key in sent if key not in known]:
        takes = f"it takes {', '.join(known)}" if known else "it takes nothing"
        raise InvalidInput(f"{name} takes no {_shown(unknown[0])}; {takes}")
    given = {key: value for key, value in sent.items() if value is not None}
    if missing := [key for key in schema["required"] if key not in given]:
        raise InvalidInput(f"{name} needs {', '.join(map(repr, missing))}")
    return {key: _checked(key, known[key], value) for key, value in given.items()}


def _checked(name: str, schema: Schema, value: Any) -> Any:
    kind = schema.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _fits(schema, value):
        raise InvalidInput(f"{name} must be {_wanted(schema)}, not {_shown(value)}")
    if kind == "array":
        return [_checked(f"each of {name}", schema["items"], item) for item in value]
    return value


def _fits(schema: Schema, value: Any) -> bool:
    match schema.get("type"):
        case "string":
            return isinstance(value, str) and value in schema.get("enum", (value,))
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            low, high = schema.get("minimum", value), schema.get("maximum", value)
            return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        case "array":
            return isinstance(value, list)
        case "object":
            return isinstance(value, dict)
        case _:
            return True  # whatever JSON can say


def _wanted(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    if schema["type"] == "integer":
        low, high = schema.get("minimum"), schema.get("maximum")
        between = "" if low is None else f" from {low} to {high}" if high is not None else f" of at least {low}"
        return f"a whole number{between}"
    return {"string": "a string", "boolean": "true or false", "array": "a list", "object": "an object"}[schema["type"]]


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."

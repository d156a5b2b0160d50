"""Immutable values with named fields: what a frozen, keyword-only, slotted dataclass is, without its start-up cost.

The command runs as a hook on every prompt.  Importing ``dataclasses`` and letting it write the methods of some thirty
classes costs more than a whole recall (docs/design/decisions.md has the figures), so the methods here are written once,
for all values, and work from the field names.  Type checkers treat a subclass of ``Value`` as a dataclass.
"""

from __future__ import annotations

from typing import Any, Self, dataclass_transform

UNSET: Any = object()  #: the default of an argument whose omission means "leave it as it is"
QUOTED = "quoted"  #: marks a field with words of memory: models see them between marks only


class _ValueType(type):
    """Turn annotations into slots and remember defaults, before the class exists."""

    fields: tuple[str, ...]
    defaults: dict[str, object]

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _ValueType:
        inherited = tuple(field for base in bases for field in getattr(base, "fields", ()))
        own = tuple(namespace.get("__annotations__", ()))
        defaults = {key: value for base in bases for key, value in getattr(base, "defaults", {}).items()}
        defaults |= {field: namespace.pop(field) for field in own if field in namespace}
        namespace |= {"__slots__": own, "fields": inherited + own, "defaults": defaults}
        return super().__new__(mcls, name, bases, namespace)


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
class Value(metaclass=_ValueType):
    """A value: fields by keyword, compared by content, changed only by ``replace``."""

    def __init__(self, **given: Any) -> None:
        fields = type(self).fields
        merged = given if len(given) == len(fields) else type(self).defaults | given
        if len(merged) != len(fields):
            raise TypeError(self._misfit(merged))
        put = object.__setattr__
        try:
            for field in fields:
                put(self, field, merged[field])
        except KeyError:
            raise TypeError(self._misfit(merged)) from None
        self._check()

    def _misfit(self, merged: dict[str, object]) -> str:
        missing = [field for field in type(self).fields if field not in merged]
        extra = [field for field in merged if field not in type(self).fields]
        return f"{type(self).__name__}: missing {missing}, unexpected {extra}"

    def _check(self) -> None:
        """Validate the fields: subclasses raise ``InvalidInput`` here."""

    def replace(self, **changes: Any) -> Self:
        """Return the same value with some fields changed."""
        return type(self)(**{field: getattr(self, field) for field in type(self).fields} | changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON takes it: dates as text, enumerations as their words, values inside as dicts."""
        from commonplace.lazy import load  # noqa: PLC0415 - no recall needs it

        encoded: dict[str, Any] = load("wire:encode")(self)
        return encoded

    def __setattr__(self, name: str, value: object) -> None:
        message = f"{type(self).__name__} is immutable; use replace({name}=...)"
        raise AttributeError(message)

    def __delattr__(self, name: str) -> None:
        message = f"{type(self).__name__} is immutable"
        raise AttributeError(message)

    def _key(self) -> tuple[object, ...]:
        return tuple([getattr(self, field) for field in type(self).fields])

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field}={getattr(self, field)!r}" for field in type(self).fields)
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), {field: getattr(self, field) for field in type(self).fields})


def _rebuild(kind: type[Value], fields: dict[str, object]) -> Value:
    return kind(**fields)

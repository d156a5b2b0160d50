"""What YAML gives, checked where it stands: what is wrong is told with the file, its place in it, what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.model.scopes import Scope
from commonplace.model.values import Value


class At(Value):
    """A place in a file, for errors to name."""

    file: str
    path: str = ""

    def key(self, name: str) -> At:
        """The place of a key below it."""
        return self.replace(path=f"{self.path}.{name}" if self.path else name)

    def item(self, number: int) -> At:
        """The place of an item of the list there."""
        return self.replace(path=f"{self.path}[{number}]")

    def error(self, reason: str) -> ConfigError:
        """What is wrong there."""
        return ConfigError(reason, file=self.file, path=self.path)


def mapping(said: Any, at: At, known: Collection[str] | None) -> Mapping[str, Any]:
    """A mapping whose keys are all known, wherever there is a list of them."""
    if not isinstance(said, Mapping):
        raise at.error("should be a mapping" + (f" with {', '.join(known)}" if known else ""))
    for name in said:
        if known is not None and name not in known:
            raise at.key(str(name)).error(f"is not known here; there are {', '.join(known)}")
    return said


def listed(said: Any, at: At) -> list[Any]:
    """A list, which may be empty."""
    if not isinstance(said, list):
        raise at.error("should be a list")
    return said


def text(said: Mapping[str, Any], name: str, at: At) -> str | None:
    """A text below a key, if there is one."""
    value = said.get(name)
    return None if value is None else word(value, at.key(name))


def needed(said: Mapping[str, Any], name: str, at: At) -> str:
    """A text below a key that must be there."""
    value = text(said, name, at)
    if not (value or "").strip():
        raise at.key(name).error("is missing")
    return str(value)


def word(value: Any, at: At) -> str:
    """Text; a number that somebody wrote without quotes is text too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise at.error(f"should be text, not {value!r}")
    return str(value)


def nameable(kind: str, name: str, at: At) -> None:
    """Refuse a name under which nothing could be kept, where it is said."""
    try:
        Scope.of((kind, name))
    except InvalidInput as error:
        raise at.error(str(error)) from error

"""Change one setting in a settings file, and nothing else in it: comments, order and layout stay.

A file is changed line by line and read again: if anything but the one setting would be different, it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.config import settings
from commonplace.config.settings import Schema, Setting, SettingGroup
from commonplace.model.errors import ConfigError, InvalidInput
from commonplace.text.suggest import suggestion

SEPARATOR = "."  # between the name of a block and that of a setting in it
_VALUE = r"""(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^#\r]*?)"""
_REST = rf"[ \t]*:(?P<gap>[ \t]*){_VALUE}(?P<space>[ \t]*)(?P<comment>(?<=[ \t])\#[^\r]*)?(?P<end>\r?)$"
_WORDS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_UNSET = frozenset({"", "null"})


def setting_named(name: str, schema: Schema) -> Setting:
    """The setting of a name such as ``recall_limit`` or ``memories.enabled``; raises ``InvalidInput``."""
    found = dict(named_settings(schema))
    if name not in found:
        near = suggestion(name, found) or f"; `commonplace config get` lists {len(found)}"
        raise InvalidInput(f"{name!r} is not a setting{near}")
    return found[name]


def named_settings(schema: Schema) -> list[tuple[str, Setting]]:
    """Every setting with its whole name, in the order of the file."""
    found: list[tuple[str, Setting]] = []
    for one in schema:
        if isinstance(one, SettingGroup):
            found += [(f"{one.name}{SEPARATOR}{inner.name}", inner) for inner in one.settings]
        else:
            found.append((one.name, one))
    return found


def value_of(text: str, setting: Setting, name: str) -> Any:
    """A value as somebody types it; None for the default.  Raises ``InvalidInput`` if it is none of the setting."""
    plain = text.strip()
    if plain in _UNSET:
        return None
    value: Any = plain
    if setting.kind is bool:
        value = _WORDS.get(plain.lower(), plain)
    elif setting.kind in (int, float):
        value = _number(plain, setting.kind)
    try:
        return settings.check({setting.name: value}, (setting,), "")[setting.name]
    except ConfigError as error:
        raise InvalidInput(f"{name} {error.reason}") from None


def _number(text: str, kind: type) -> Any:
    try:
        return kind(text)
    except ValueError:
        return text


def get_value(loaded: Mapping[str, Any], name: str) -> Any:
    """The value of a setting among loaded ones."""
    block, _, leaf = name.rpartition(SEPARATOR)
    return (loaded[block] if block else loaded)[leaf]


def with_value(text: str, name: str, value: Any, *, file: str) -> str:
    """Return the text of a settings file with one setting changed.  None means its default.

    Raises ``ConfigError`` if the file cannot be read, or is laid out so that more than that would change.
    """
    block, _, leaf = name.rpartition(SEPARATOR)
    before = settings.parse(text, file)
    after = _set_line(text, block, leaf, settings.to_yaml(value))
    try:
        is_right = settings.parse(after, file) == _expected(before, block, leaf, value)
    except ConfigError:
        is_right = False
    if not is_right:
        raise ConfigError(
            "is laid out in a way that cannot be changed here; `commonplace config edit` opens it", file=file, path=name
        )
    return after


def _expected(before: Mapping[str, Any], block: str, leaf: str, value: Any) -> dict[str, Any]:
    if not block:
        return {**before, leaf: value}
    inside = before.get(block)
    return {**before, block: {**(inside if isinstance(inside, Mapping) else {}), leaf: value}}


def _set_line(text: str, block: str, leaf: str, value: str) -> str:
    lines = text.split("\n")
    if not block:
        place = _find(lines, leaf, indented=False)
        return (
            _at_the_end(lines, [f"{leaf}: {value}".rstrip()]) if place is None else _changed(lines, place, leaf, value)
        )
    start = _find(lines, block, indented=False)
    if start is None:
        return _at_the_end(lines, [f"{block}:", f"  {leaf}: {value}".rstrip()])
    end = _end_of_block(lines, start)
    place = _find(lines[:end], leaf, indented=True, start=start + 1)
    if place is not None:
        return _changed(lines, place, leaf, value)
    last = max(number for number in range(start, end) if lines[number].strip())
    line = f"{_indent(lines[start + 1 : end])}{leaf}: {value}".rstrip()
    return "\n".join([*lines[: last + 1], line, *lines[last + 1 :]])


def _find(lines: Sequence[str], name: str, *, indented: bool, start: int = 0) -> int | None:
    key = re.compile(rf"{'[ ]+' if indented else ''}([\"']?){re.escape(name)}\1{_REST}")
    return next((number for number in range(start, len(lines)) if key.match(lines[number])), None)


def _end_of_block(lines: Sequence[str], start: int) -> int:
    inside = range(start + 1, len(lines))
    return next((number for number in inside if lines[number].strip() and lines[number][0] not in " #"), len(lines))


def _indent(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip() and not line.lstrip().startswith("#")), "  ")
    return first[: len(first) - len(first.lstrip(" "))] or "  "


def _changed(lines: Sequence[str], place: int, name: str, value: str) -> str:
    """The text with another value in a line; a comment behind it stays, in its column if there is room."""
    found = re.match(rf"(?P<head>[ ]*([\"']?){re.escape(name)}\2){_REST}", lines[place])
    if found is None:
        return "\n".join(lines)
    line = f"{found['head']}: {value}".rstrip()
    if found["comment"]:
        line = f"{line:<{found.start('comment') - 1}} {found['comment']}"
    return "\n".join([*lines[:place], f"{line}{found['end']}", *lines[place + 1 :]])


def _at_the_end(lines: Sequence[str], added: Sequence[str]) -> str:
    text = "\n".join(lines).rstrip()
    return "\n".join([*([text, ""] if text else []), *added, ""])

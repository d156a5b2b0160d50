"""Change single settings in the text of a file that people edit: comments, order and all other lines stay."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from commonplace.config.settings import read_values, to_yaml
from commonplace.model.errors import ConfigError

_VALUE = r"""(?P<value>[ \t]*(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^#\n]*?))(?=[ \t]+#|[ \t\r]*$)"""


def with_settings(text: str, changes: Mapping[str, Any], *, file: str) -> str:
    """Return the text with these settings, each by its name or as ``group.name``; None takes the default again.

    What comes out is read again: where a value is written in a way that one line cannot replace, this raises.
    """
    wanted = {name: value for name, value in read_values(text, file).items() if value is not None}
    changed = text
    for name, value in changes.items():
        changed = _with_setting(changed, name, value)
        wanted = _with_value(wanted, name, value)
    if not _says(changed, _filled(wanted)):
        names = ", ".join(changes)
        raise ConfigError(f"{names} is written there in a form that only you can change; edit the file", file=file)
    return changed


def _says(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return _filled(read_values(text, "")) == wanted
    except ConfigError:
        return False


def _with_setting(text: str, name: str, value: Any) -> str:
    group, _, key = name.rpartition(".")
    lines = text.split("\n")
    if not group:
        return "\n".join(_with_line(lines, range(len(lines)), "", key, value))
    start = next((n for n, line in enumerate(lines) if re.match(rf"([\"']?){group}\1[ \t]*:", line)), None)
    if start is None:
        return text if value is None else f"{text.rstrip()}\n\n{group}:\n  {key}: {to_yaml(value)}\n".lstrip("\n")
    end = next((n for n, line in enumerate(lines[start + 1 :], start + 1) if re.match(r"[^\s#]", line)), len(lines))
    inside = next((line for line in lines[start + 1 : end] if re.match(r"[ ]+[^\s#]", line)), "  ")
    indent = inside[: len(inside) - len(inside.lstrip(" "))]
    return "\n".join(_with_line(lines, range(start + 1, end), indent, key, value))


def _with_line(lines: list[str], within: range, indent: str, key: str, value: Any) -> list[str]:
    """Change the line of a key within a range; without one, add it: below its group, or at the end of the file."""
    pattern = re.compile(rf"^{indent}([\"']?){key}\1[ \t]*:{_VALUE}")
    line = f"{indent}{key}: {to_yaml(value)}".rstrip()
    for number in within:
        if pattern.match(lines[number]):
            return [*lines[:number], pattern.sub(lambda _: line, lines[number], count=1), *lines[number + 1 :]]
    if value is None:
        return lines
    if indent:
        return [*lines[: within.start], line, *lines[within.start :]]
    above = "\n".join(lines).rstrip()
    return [*above.split("\n"), line, ""] if above else [line, ""]


def _with_value(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    group, _, key = name.rpartition(".")
    if not group:
        return {**values, key: value}
    return {**values, group: {**(values.get(group) or {}), key: value}}


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is said, without what is said to be empty."""
    inner = {name: _filled(value) if isinstance(value, dict) else value for name, value in values.items()}
    return {name: value for name, value in inner.items() if value not in (None, {})}

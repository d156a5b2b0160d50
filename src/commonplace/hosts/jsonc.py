"""JSON with comments, changed in place: what is not meant keeps its bytes, comments and order included.  Pure.

Settings of editors and agents are written by people.  Reading them into values and writing those out again would lose
comments and layout, so a text is only ever cut and joined at the places that a scan of it names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value

Path = tuple[str, ...]
Steps = tuple[str | int, ...]  # keys of objects, and numbers of what is in a list

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_FIRST_INDENT = re.compile(r"\n([ \t]+)[^\s]")
DEEP = 200  # objects in objects: no settings file is nested so deeply


class Node(Value):
    """A value and where it stands."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()  #: of an object or a list

    def member(self, key: str) -> Member | None:
        """The member of an object with that key; of several equal keys the last one counts."""
        return next((one for one in reversed(self.members) if one.key == key), None)


class Member(Value):
    """One thing in an object or a list."""

    key: str | None
    start: int  #: of its key, or of the value if it has none
    node: Node
    comma: int | None = None  #: where the comma after it is


def parse(text: str) -> Node:
    """Scan a text; raises ``InvalidInput`` with the line."""
    at = _skip(text, 0)
    node = _value(text, at, 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, _skip(text, node.end), "there is more after its end")
    return node


def insert(text: str, path: Path, value: Any, *, listed: bool) -> str:
    """Return the text with a value at a path, or appended to the list there; missing containers are created."""
    node = parse(text)
    for depth, key in enumerate(path):
        _is(node, dict, path[:depth])
        member = node.member(key)
        if member is None:
            inner = _wrap(path[depth + 1 :], [value] if listed else value)
            return _add_member(text, node, key, inner)
        node = member.node
    if not listed:
        raise InvalidInput(f"has {'.'.join(path)} already, which is not ours")
    _is(node, list, path)
    return _add_member(text, node, None, value)


def missing(text: str, path: Path) -> list[Path]:
    """Which containers on the way to a path are not there."""
    node: Node | None = parse(text)
    absent: list[Path] = []
    for depth, key in enumerate(path, start=1):
        member = node.member(key) if node else None
        node = member.node if member else None
        if node is None:
            absent.append(path[:depth])
    return absent


def length(text: str, path: Path) -> int:
    """How much is in the list at a path; nothing if there is none."""
    node = _at(parse(text), path)
    return len(node.members) if node and isinstance(node.value, list) else 0


def remove(text: str, path: Steps, meant: Callable[[Any], bool], *, listed: bool) -> str:
    """Return the text without the member at a path, or without the matching members of the list there."""
    while True:
        node = _at(parse(text), path if listed else path[:-1])
        if node is None:
            return text
        keys = [None if listed else path[-1]]
        found = next((n for n, one in enumerate(node.members) if one.key in keys and meant(one.node.value)), None)
        if found is None:
            return text
        text = _without(text, node, found)


def prune(text: str, paths: Sequence[Path]) -> str:
    """Return the text without those of these containers that are empty, innermost first."""
    for path in sorted(paths, key=len, reverse=True):
        text = remove(text, path, lambda value: value in ({}, []), listed=False)
    return text


# Scanning


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEEP:
        raise _wrong(text, at, "is nested too deeply")
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _container(text, at, depth)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if not found:
        raise _wrong(text, at, "a value is expected")
    return Node(start=at, end=found.end(), value=_plain(text, found))


def _plain(text: str, found: re.Match[str]) -> Any:
    try:
        return json.loads(found[0])
    except ValueError:
        raise _wrong(text, found.start(), "is no value") from None


def _container(text: str, at: int, depth: int) -> Node:
    is_object = text[at] == "{"
    close = "}" if is_object else "]"
    members: list[Member] = []
    cursor = _skip(text, at + 1)
    while text[cursor : cursor + 1] != close:
        if members and members[-1].comma is None:
            raise _wrong(text, cursor, f"a comma or {close} is expected")
        member = _member(text, cursor, depth, is_object=is_object)
        cursor = _skip(text, member.node.end)
        if text[cursor : cursor + 1] == ",":
            member = member.replace(comma=cursor)
            cursor = _skip(text, cursor + 1)
        members.append(member)
    values = [one.node.value for one in members]
    value: Any = dict(zip([one.key for one in members], values, strict=True)) if is_object else values
    return Node(start=at, end=cursor + 1, value=value, members=tuple(members))


def _member(text: str, at: int, depth: int, *, is_object: bool) -> Member:
    if not is_object:
        return Member(key=None, start=at, node=_value(text, at, depth + 1))
    key = _STRING.match(text, at)
    if not key:
        raise _wrong(text, at, "a key is expected")
    colon = _skip(text, key.end())
    if text[colon : colon + 1] != ":":
        raise _wrong(text, colon, "a colon is expected")
    return Member(key=str(_plain(text, key)), start=at, node=_value(text, _skip(text, colon + 1), depth + 1))


def _skip(text: str, at: int) -> int:
    """Behind spaces and comments."""
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _wrong(text: str, at: int, what: str) -> InvalidInput:
    return InvalidInput(f"is not JSON at line {text.count(chr(10), 0, at) + 1}: {what}")


def _at(node: Node, path: Steps) -> Node | None:
    for key in path:
        member = _inside(node, key)
        if member is None:
            return None
        node = member.node
    return node


def _inside(node: Node, key: str | int) -> Member | None:
    if isinstance(key, str):
        return node.member(key) if isinstance(node.value, dict) else None
    return node.members[key] if isinstance(node.value, list) and key < len(node.members) else None


def _is(node: Node, kind: type, path: Path) -> None:
    if not isinstance(node.value, kind):
        named = "an object" if kind is dict else "a list"
        raise InvalidInput(f"has {'.'.join(path) or 'something'} that is not {named}")


# Joining and cutting


def _wrap(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _add_member(text: str, node: Node, key: str | None, value: Any) -> str:
    """Return the text with one more member, formatted like the others."""
    head = f"{json.dumps(key, ensure_ascii=False)}: " if key is not None else ""
    inside = text[node.start : node.end]
    if node.members and "\n" not in inside:
        at = node.members[-1].node.end
        return f"{text[:at]}, {head}{json.dumps(value, ensure_ascii=False)}{text[at:]}"
    end, unit = "\r\n" if "\r\n" in text else "\n", _unit(text)
    outer = _indent(text, node.start)
    inner = outer + unit
    written = head + json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", end + inner)
    if node.members:
        at = node.members[-1].node.end
        return f"{text[:at]},{end}{inner}{written}{text[at:]}"
    rest = text[node.start + 1 :]
    closing = "" if "\n" in inside else end + outer
    return f"{text[: node.start + 1]}{end}{inner}{written}{closing}{rest}"


def _unit(text: str) -> str:
    found = _FIRST_INDENT.search(text)
    return found[1] if found else "  "


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _without(text: str, node: Node, number: int) -> str:
    """Return the text without one member; comments next to it stay."""
    member = node.members[number]
    before = node.members[number - 1] if number else None
    after = node.members[number + 1] if number + 1 < len(node.members) else None
    if before and before.comma is not None:
        if not text[before.comma + 1 : member.start].strip():
            return text[: before.node.end] + text[before.node.end : before.comma] + text[member.node.end :]
        return text[: before.comma] + text[before.comma + 1 : member.start] + text[member.node.end :]
    if after and member.comma is not None:
        plain = not text[member.comma + 1 : after.start].strip()
        return text[: member.start] + text[after.start if plain else member.comma + 1 :]
    end = member.node.end if member.comma is None else member.comma + 1
    inner = text[node.start + 1 : member.start] + text[end : node.end - 1]
    return text[: node.start + 1] + (inner if inner.strip() else "") + text[node.end - 1 :]


def as_text(value: Mapping[str, Any]) -> str:
    """A new file."""
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"

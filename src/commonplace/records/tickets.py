"""Tickets: Markdown with an id, a title, a description and notes, read into parts that can be referred to.  Pure."""

from __future__ import annotations

import os
import re

from commonplace.model.errors import InvalidInput
from commonplace.model.values import Value
from commonplace.text import strict_yaml

DESCRIPTION = "description"  # what stands before the first section
_FRONT = re.compile(r"\A(?:[ \t]*\n)*---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"\A\s*#[ \t]+(\S.*)(?:\n|\Z)")
_SECTION = re.compile(r"^##[ \t]+(\S.*)$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


class TicketTrouble(InvalidInput):
    """A file that cannot be read as a ticket."""

    def __init__(self, reason: str, *, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class Ticket(Value):
    """A ticket."""

    id: str
    title: str | None
    parts: tuple[tuple[str, str], ...]  #: a name for each, such as ``description`` or ``notes``, and its text


def read(data: bytes, *, path: str) -> Ticket:
    """Parse a ticket; without an id of its own it has the name of its file.  Raises ``TicketTrouble``."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise TicketTrouble("is not UTF-8", line=data[: error.start].count(b"\n") + 1) from error
    front = _FRONT.match(text)
    fields = _front(front[1], path=path, line=text[: front.start(1)].count("\n") + 1) if front else {}
    body = text[front.end() :] if front else text
    heading = _TITLE.match(body)
    title = fields.get("title") or (heading[1].strip() if heading else None)
    parts = [(name, fields[name]) for name in (DESCRIPTION, "notes") if fields.get(name)]
    parts += _sections(body[heading.end() :] if heading else body)
    if title:
        parts = [("title", title), *parts] if not parts else [(parts[0][0], f"{title}\n\n{parts[0][1]}"), *parts[1:]]
    name = fields.get("id") or os.path.splitext(os.path.basename(path))[0]
    return Ticket(id=name, title=title, parts=tuple(parts))


def _front(head: str, *, path: str, line: int) -> dict[str, str]:
    """Return the fields of a frontmatter that are text or numbers; other fields belong to other tools."""
    try:
        fields = strict_yaml.load(head, file=path, first_line=line)
    except strict_yaml.YamlError as error:
        raise TicketTrouble(f"frontmatter {error.reason}", line=error.line) from error
    if fields is not None and not isinstance(fields, dict):
        raise TicketTrouble("frontmatter should be lines of `key: value`", line=line)
    return {key: str(value) for key, value in (fields or {}).items() if isinstance(value, str | int | float)}


def _sections(body: str) -> list[tuple[str, str]]:
    """Return the description, then each section under its heading; a heading inside of code is none."""
    shown = _FENCE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), body)
    heads = list(_SECTION.finditer(shown))
    ends = [head.start() for head in heads] + [len(body)]
    parts = [(DESCRIPTION, body[: ends[0]].strip())]
    for head, end in zip(heads, ends[1:], strict=True):
        name = re.sub(r"[^a-z0-9]+", "-", body[head.start(1) : head.end(1)].lower()).strip("-") or "section"
        parts.append((name, body[head.start() : end].strip()))
    return [(name, text) for name, text in parts if text]

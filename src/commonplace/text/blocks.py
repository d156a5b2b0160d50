"""A Markdown text as blocks, which can be compared, moved and taken out one by one.  Pure.

A block is a heading, a list item with its indented lines, a fenced piece of code, or a paragraph.  What is written of a
record names it behind its words, as ``record <the beginning of its id>``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from commonplace.model.values import Value

#: Stands first in MEMORY.md, and is nobody's.
INTRO = (
    "What this project remembers, put together by Commonplace. Whatever you write or change here stays as you leave it."
)
_HEADING = re.compile(r"(#{1,6})\s+\S")
_ITEM = re.compile(r"\A(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_REFERENCE = re.compile(r"\brecord ([0-9a-hjkmnp-tv-z]{10})(?![0-9a-z])")
_BESIDE = re.compile(r"\s*\((?:record [0-9a-z]{10}|session:)[^()]*\)\s*$")


class Block(Value):
    """One piece of a Markdown text, and the headings of ours that it stands under."""

    path: tuple[str, ...]  #: heading lines, outermost first
    text: str

    @property
    def level(self) -> int:
        """How deep a heading it is; 0: none."""
        found = _HEADING.match(self.text)
        return len(found[1]) if found else 0

    @property
    def is_item(self) -> bool:
        """Whether it belongs to a list."""
        return bool(_ITEM.match(self.text))


class Owned(Value):
    """A block that a person wrote or changed."""

    path: tuple[str, ...]
    after: str  #: the block before it; empty: it comes first under its heading
    text: str


def blocks(text: str, owned: Collection[Owned] = ()) -> list[Block]:
    """Cut a text into blocks; a heading of a person's own does not change what stands under ours."""
    theirs = {(one.path, one.text) for one in owned}
    path: tuple[str, ...] = ()
    found: list[Block] = []
    for piece in _pieces(text):
        heading = _HEADING.match(piece)
        if heading and (path, piece) not in theirs:
            level = len(heading[1])
            path = tuple(line for line in path if level_of(line) < level)
            found.append(Block(path=path, text=piece))
            path = (*path, piece)
        else:
            found.append(Block(path=path, text=piece))
    return found


def level_of(line: str) -> int:
    """How deep a heading is, by its line."""
    return len(line) - len(line.lstrip("#"))


def _pieces(text: str) -> Iterator[str]:
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        end = _end(lines, at)
        yield "\n".join(lines[at:end]).rstrip()
        at = end


def _end(lines: Sequence[str], at: int) -> int:
    """Where the block that begins here ends."""
    if _HEADING.match(lines[at]):
        return at + 1
    if fence := _FENCE.match(lines[at]):
        closing = (number for number in range(at + 1, len(lines)) if _closes(lines[number], fence[1]))
        if (closed := next(closing, None)) is not None:
            return closed + 1  # one that nobody has closed is a paragraph: it must not swallow what follows later
    end = at + 1
    if _ITEM.match(lines[at]):
        while end < len(lines) and (_continues(lines, end) or (lines[end].strip() and not _begins(lines[end]))):
            end += 1
        return end
    while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
        end += 1
    return end


def _closes(line: str, fence: str) -> bool:
    """Whether a line ends a piece of code: nothing but the same sign, as many of them at least."""
    return line.startswith(fence) and not line.strip().strip(fence[0])


def _begins(line: str) -> bool:
    return bool(_HEADING.match(line) or _ITEM.match(line) or _FENCE.match(line))


def _continues(lines: Sequence[str], at: int) -> bool:
    """Whether a line is indented, or blank before one that is."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at < len(lines) and lines[at][0] in " \t"


def joined(found: Sequence[Block]) -> str:
    """Blocks as one text: items close together, everything else apart."""
    parts: list[str] = []
    before: Block | None = None
    for block in found:
        if before is not None:
            parts.append("\n" if block.is_item and before.is_item else "\n\n")
        parts.append(block.text)
        before = block
    return "".join(parts)


def without_empty(made: Sequence[Block], theirs: Collection[str] = ()) -> list[Block]:
    """Headings under which nothing is left are left out, unless a person wrote them."""
    filled = {block.path[: depth + 1] for block in made if not block.level for depth in range(len(block.path))}
    filled |= {block.path[: depth + 1] for block in made if block.text in theirs for depth in range(len(block.path))}
    return [block for block in made if not block.level or block.text in theirs or (*block.path, block.text) in filled]


def references(text: str) -> set[str]:
    """The records that a text names, by the beginnings of their ids."""
    return set(_REFERENCE.findall(text))


def unreferenced(text: str) -> str:
    """A block's own words, without the marker of a list and what stands behind it in brackets."""
    words = _BESIDE.sub("", text)
    return _ITEM.sub("", words).strip()


#: Text that could close the block that memory is shown in, or pose as a turn of the conversation.
_POSING = re.compile(
    r"<(?=\s*[/|]?\s*(?:memory|system|user|assistant|human|tool|instructions?|im_start|im_end)\b)", re.IGNORECASE
)


def escape_tags(text: str) -> str:
    """A text that cannot close the block it is shown in, nor pose as a turn of the conversation."""
    return _POSING.sub("&lt;", text)

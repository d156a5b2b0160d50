"""A Markdown text as blocks, which can be compared, moved and removed one by one.  Pure.

A block is a heading, a list item with its indented lines, a fenced piece of code, or a paragraph.  A block
written from a record ends with a reference to it: ``record <the beginning of its id>``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from commonplace.model.values import Value

#: The first paragraph of MEMORY.md; it belongs to no record and no person.
INTRO = (
    "What this project remembers, put together by Commonplace. Whatever you write or change here stays as you leave it."
)
_HEADING = re.compile(r"(#{1,6})\s+\S")
_ITEM = re.compile(r"\A(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_REFERENCE = re.compile(r"\brecord ([0-9a-hjkmnp-tv-z]{10})(?![0-9a-z])")
_REFERENCE_AT_END = re.compile(r"\s*\((?:record [0-9a-z]{10}|session:)[^()]*\)\s*$")


class Block(Value):
    """One piece of a Markdown text, and the generated headings above it."""

    path: tuple[str, ...]  #: heading lines, outermost first
    text: str

    @property
    def level(self) -> int:
        """The level of a heading; 0 if it is none."""
        found = _HEADING.match(self.text)
        return len(found[1]) if found else 0

    @property
    def is_item(self) -> bool:
        """Whether it belongs to a list."""
        return bool(_ITEM.match(self.text))


class OwnedBlock(Value):
    """A block that a person wrote or changed."""

    path: tuple[str, ...]
    after: str  #: the block before it; empty: it comes first under its heading
    text: str


def blocks(text: str, owned: Collection[OwnedBlock] = ()) -> list[Block]:
    """Split a text into blocks; a heading that a person wrote does not change the path of the blocks below it."""
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
    """Return the level of a heading line."""
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
    """Return the line after the block that begins here."""
    if _HEADING.match(lines[at]):
        return at + 1
    if fence := _FENCE.match(lines[at]):
        closing = (number for number in range(at + 1, len(lines)) if _closes(lines[number], fence[1]))
        if (closed := next(closing, None)) is not None:
            return closed + 1  # an unclosed fence is a paragraph: it must not swallow what is added later
    end = at + 1
    if _ITEM.match(lines[at]):
        while end < len(lines) and (_continues(lines, end) or (lines[end].strip() and not _begins(lines[end]))):
            end += 1
        return end
    while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
        end += 1
    return end


def _closes(line: str, fence: str) -> bool:
    """Whether a line closes a fence: only the same character, at least as often."""
    return line.startswith(fence) and not line.strip().strip(fence[0])


def _begins(line: str) -> bool:
    return bool(_HEADING.match(line) or _ITEM.match(line) or _FENCE.match(line))


def _continues(lines: Sequence[str], at: int) -> bool:
    """Whether a line is indented, or blank before one that is."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at < len(lines) and lines[at][0] in " \t"


def join_blocks(found: Sequence[Block]) -> str:
    """Join blocks to one text: list items without a blank line between them, all else with one."""
    parts: list[str] = []
    before: Block | None = None
    for block in found:
        if before is not None:
            parts.append("\n" if block.is_item and before.is_item else "\n\n")
        parts.append(block.text)
        before = block
    return "".join(parts)


def without_empty(made: Sequence[Block], theirs: Collection[str] = ()) -> list[Block]:
    """Return the blocks without empty headings; those that a person wrote stay."""
    filled = {block.path[: depth + 1] for block in made if not block.level for depth in range(len(block.path))}
    filled |= {block.path[: depth + 1] for block in made if block.text in theirs for depth in range(len(block.path))}
    return [block for block in made if not block.level or block.text in theirs or (*block.path, block.text) in filled]


def references(text: str) -> set[str]:
    """Return the records that a text names, by the beginnings of their ids."""
    return set(_REFERENCE.findall(text))


def strip_reference(text: str) -> str:
    """Return a block's words without its list marker and the reference at its end."""
    words = _REFERENCE_AT_END.sub("", text)
    return _ITEM.sub("", words).strip()


#: Text that could close the block that memory is shown in, or pose as a turn of the conversation.
_POSING = re.compile(
    r"<(?=\s*[/|]?\s*(?:memory|system|user|assistant|human|tool|instructions?|im_start|im_end)\b)", re.IGNORECASE
)


def escape_tags(text: str) -> str:
    """A text that cannot close the block it is shown in, nor pose as a turn of the conversation."""
    return _POSING.sub("&lt;", text)

"""Artifacts as blocks of Markdown: what a person wrote in them, and how it is woven into the next text.  Pure.

A block is a heading, a list item with its indented lines, a fenced piece of code, or a paragraph.  A person's edit is
found by comparing blocks with the text that was last written: a block that is new or changed is theirs from then on and
kept word for word; a block of ours that they took out is struck and does not come back while it says the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256

from commonplace.domain.values import Value

_HEADING = re.compile(r"(#{1,6})\s+\S")
_ITEM = re.compile(r"\A(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r"(`{3,}|~{3,})")
_REFERENCE = re.compile(r"\brecord ([0-9a-hjkmnp-tv-z]{10})(?![0-9a-z])")
_BESIDE = re.compile(r"\s*\((?:record [0-9a-z]{10}|session:)[^()]*\)\s*$")
#: Text that could close the block that memory is shown in, or pose as a turn of the conversation.
_POSING = re.compile(
    r"<(?=\s*[/|]?\s*(?:memory|system|user|assistant|human|tool|instructions?|im_start|im_end)\b)", re.IGNORECASE
)


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


class Edits(Value):
    """What a person has done to a text over time."""

    owned: tuple[Owned, ...] = ()
    struck: frozenset[str] = frozenset()  #: digests of blocks of ours that they took out

    @property
    def texts(self) -> tuple[str, ...]:
        """The words that are theirs."""
        return tuple(one.text for one in self.owned)


def blocks(text: str, owned: Collection[Owned] = ()) -> list[Block]:
    """Cut a text into blocks; a heading of a person's own does not change what stands under ours."""
    theirs = {(one.path, one.text) for one in owned}
    path: tuple[str, ...] = ()
    found: list[Block] = []
    for piece in _pieces(text):
        heading = _HEADING.match(piece)
        if heading and (path, piece) not in theirs:
            level = len(heading[1])
            path = tuple(line for line in path if _level(line) < level)
            found.append(Block(path=path, text=piece))
            path = (*path, piece)
        else:
            found.append(Block(path=path, text=piece))
    return found


def _level(line: str) -> int:
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
        closing = (number for number in range(at + 1, len(lines)) if lines[number].startswith(fence[1]))
        return next(closing, len(lines) - 1) + 1
    end = at + 1
    if _ITEM.match(lines[at]):
        while end < len(lines) and (_continues(lines, end) or (lines[end].strip() and not _begins(lines[end]))):
            end += 1
        return end
    while end < len(lines) and lines[end].strip() and not _begins(lines[end]):
        end += 1
    return end


def _begins(line: str) -> bool:
    return bool(_HEADING.match(line) or _ITEM.match(line) or _FENCE.match(line))


def _continues(lines: Sequence[str], at: int) -> bool:
    """Whether a line is indented, or blank before one that is."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    return at < len(lines) and lines[at][0] in " \t"


def joined(found: Sequence[Block]) -> str:
    """Blocks as one text: items close together, everything else apart."""
    text = ""
    for number, block in enumerate(found):
        if number:
            close = block.is_item and found[number - 1].is_item
            text += "\n" if close else "\n\n"
        text += block.text
    return text


def digest(text: str) -> str:
    """What a block says, in few characters."""
    return sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def said(text: str) -> str:
    """What a block says in its own words, in few characters: whatever stands behind it in brackets."""
    return digest(unreferenced(text))


def edited(base: str, file: str, before: Edits, *, strike: bool = True) -> Edits:
    """What a person has done by now: ``base`` is what was last written, ``file`` what is there.

    Without ``strike`` the base is only a guess: what is missing in the file was perhaps never there.
    """
    ours, theirs = blocks(base, before.owned), blocks(file, before.owned)
    was_owned = set(before.texts)
    new, gone = _compared([block.text for block in ours], [block.text for block in theirs])
    kept = {number for number, block in enumerate(theirs) if block.text in was_owned}
    owned = _owned(theirs, new | kept)
    stay = was_owned | {block.text for block in theirs}
    out = [ours[number].text for number in gone if not ours[number].level and ours[number].text not in stay]
    struck = {said(text) for text in out} if strike else set[str]()
    back = {said(block.text) for block in theirs}
    return Edits(owned=owned, struck=frozenset((before.struck | struck) - back))


def _compared(ours: Sequence[str], theirs: Sequence[str]) -> tuple[set[int], set[int]]:
    """Which of theirs are new, and which of ours are gone."""
    new, gone = set[int](), set[int]()
    for what, i, j, k, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what != "equal":
            gone |= set(range(i, j))
            new |= set(range(k, end))
    known = set(ours)
    return {number for number in new if theirs[number] not in known}, gone  # what only moved is still ours


def _owned(found: Sequence[Block], numbers: Collection[int]) -> tuple[Owned, ...]:
    """The person's blocks with their places; a heading of theirs ends what it stands in."""
    owned: list[Owned] = []
    path: tuple[str, ...] = ()
    before = ""
    for number, block in enumerate(found):
        if number in numbers:
            owned.append(Owned(path=path, after=before, text=block.text))
        elif block.level:
            path = (*(line for line in path if _level(line) < block.level), block.text)
            before = ""
            continue
        before = block.text
    return tuple(owned)


def woven(generated: str, edits: Edits) -> str:
    """The next text: what was made, less what a person struck, with what they wrote where they wrote it."""
    held = {name for text in edits.texts for name in references(text)}
    made = [block for block in blocks(generated) if block.level or not _is_theirs(block, edits, held)]
    for one in edits.owned:
        _insert(made, one)
    return joined(_without_empty(made, edits))


def _is_theirs(block: Block, edits: Edits, held: Collection[str]) -> bool:
    """Whether a block is struck, or a person has put it into their own words."""
    named = references(block.text)
    return said(block.text) in edits.struck or (bool(named) and named <= set(held))


def _insert(made: list[Block], one: Owned) -> None:
    start, end = _section(made, one.path)
    block = Block(path=one.path, text=one.text)
    if block.level:
        deep = next((depth for depth, line in enumerate(one.path) if _level(line) >= block.level), len(one.path))
        made.insert(_after(made, one.path[: deep + 1]), block)  # or what is ours would come to stand under it
        return
    anchors = (n + 1 for n, other in enumerate(made) if other.path == one.path and other.text == one.after)
    made.insert(start if not one.after else next(anchors, end), block)


def _section(made: list[Block], path: tuple[str, ...]) -> tuple[int, int]:
    """Where the blocks right under these headings begin and end; the headings are made if they are not there."""
    start = 0
    for depth, heading in enumerate(path):
        above = path[:depth]
        found = (n for n, block in enumerate(made) if block.level and block.text == heading and block.path == above)
        at = next(found, None)
        if at is None:
            at = _after(made, above)
            made.insert(at, Block(path=above, text=heading))
        start = at + 1
    end = start
    while end < len(made) and made[end].path == path and not _opens(made, end):
        end += 1
    return start, end


def _opens(made: Sequence[Block], at: int) -> bool:
    """Whether a heading has blocks of its own under it, or is one of ours."""
    block = made[at]
    return bool(block.level) and at + 1 < len(made) and made[at + 1].path == (*block.path, block.text)


def _after(made: Sequence[Block], path: tuple[str, ...]) -> int:
    """Behind everything under these headings."""
    inside = [n for n, block in enumerate(made) if block.path[: len(path)] == path]
    return inside[-1] + 1 if inside else len(made)


def _without_empty(made: Sequence[Block], edits: Edits) -> list[Block]:
    """Headings of ours under which nothing is left are left out."""
    theirs = set(edits.texts)
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


def harmless(text: str) -> str:
    """A text that cannot close the block it is shown in, nor pose as a turn of the conversation."""
    return _POSING.sub("&lt;", text)

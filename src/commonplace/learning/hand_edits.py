"""Artifacts as blocks of Markdown: what a person wrote in them, and how it is woven into the next text.  Pure.

A person's edit is found by comparing blocks with the text that was last written: a block that is new or changed is
theirs from then on and kept word for word; a block of ours that they took out is struck and does not come back while it
says the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from hashlib import sha256

from commonplace.model.values import Value
from commonplace.text.blocks import (
    Block,
    OwnedBlock,
    blocks,
    join_blocks,
    level_of,
    references,
    strip_reference,
    without_empty,
)


class Edits(Value):
    """What a person has done to a text over time."""

    owned: tuple[OwnedBlock, ...] = ()
    struck: frozenset[str] = frozenset()  #: digests of blocks of ours that they took out

    @property
    def texts(self) -> tuple[str, ...]:
        """The words that are theirs."""
        return tuple(one.text for one in self.owned)


def block_digest(text: str) -> str:
    """A digest of the content of a block."""
    return sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def content_digest(text: str) -> str:
    """A digest of a block without its references in brackets."""
    return block_digest(strip_reference(text))


def find_edits(base: str, file: str, before: Edits, *, strike: bool = True) -> Edits:
    """The edits of a person so far: ``base`` is what was last written, ``file`` what the file has now.

    Without ``strike`` the base is only a guess: what is missing in the file was perhaps never there.
    """
    ours, theirs = blocks(base, before.owned), blocks(file, before.owned)
    was_owned = set(before.texts)
    new, gone = _compare_blocks([block.text for block in ours], [block.text for block in theirs])
    known = {number for number, block in enumerate(theirs) if block.text in was_owned}
    owned = _to_owned_blocks(theirs, new | known)
    stay = was_owned | {block.text for block in theirs}
    out = [ours[number].text for number in gone if not ours[number].level and ours[number].text not in stay]
    struck = {content_digest(text) for text in out} if strike else set[str]()
    back = {content_digest(block.text) for block in theirs}
    return Edits(owned=owned, struck=frozenset((before.struck | struck) - back))


def _compare_blocks(ours: Sequence[str], theirs: Sequence[str]) -> tuple[set[int], set[int]]:
    """Which of theirs are new, and which of ours are gone."""
    new, gone = set[int](), set[int]()
    for what, i, j, k, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what != "equal":
            gone |= set(range(i, j))
            new |= set(range(k, end))
    known = set(ours)
    return {number for number in new if theirs[number] not in known}, gone  # what only moved is still ours


def _to_owned_blocks(found: Sequence[Block], numbers: Collection[int]) -> tuple[OwnedBlock, ...]:
    """The person's blocks with their places; a heading of theirs ends the section it is in."""
    owned: list[OwnedBlock] = []
    path: tuple[str, ...] = ()
    before = ""
    for number, block in enumerate(found):
        if number in numbers:
            owned.append(OwnedBlock(path=path, after=before, text=block.text))
        elif block.level:
            path = (*(line for line in path if level_of(line) < block.level), block.text)
            before = ""
            continue
        before = block.text
    return tuple(owned)


def merge_edits(generated: str, edits: Edits) -> str:
    """The next text: what was made, less what a person struck, with what they wrote where they wrote it."""
    held = {name for text in edits.texts for name in references(text)}
    made = blocks(generated)
    if held or edits.struck:
        made = [block for block in made if block.level or not _is_theirs(block, edits, held)]
    for one in edits.owned:
        _insert(made, one)
    return join_blocks(without_empty(made, set(edits.texts)))


def _is_theirs(block: Block, edits: Edits, held: set[str]) -> bool:
    """Whether a block is struck, or a person has put it into their own words."""
    named = references(block.text)
    return (bool(named) and named <= held) or (bool(edits.struck) and content_digest(block.text) in edits.struck)


def _insert(made: list[Block], one: OwnedBlock) -> None:
    start, end = _section(made, one.path)
    block = Block(path=one.path, text=one.text)
    if block.level:
        deep = next((depth for depth, line in enumerate(one.path) if level_of(line) >= block.level), len(one.path))
        made.insert(_after(made, one.path[: deep + 1]), block)  # or our blocks would end up under it
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

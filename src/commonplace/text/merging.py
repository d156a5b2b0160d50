"""Merge two texts that were made of one: line by line, with both texts between marks where they disagree.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from commonplace.model.values import Value

OURS, BETWEEN, THEIRS = "<<<<<<< ", "=======", ">>>>>>> "


class MergedText(Value):
    """What came out of a merge."""

    lines: tuple[str, ...]  #: each with its end
    conflicts: int = 0


def merge_lines(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str], *, names: tuple[str, str] = ("ours", "theirs")
) -> MergedText:
    """Merge lines.  A passage that only one side has changed, or both alike, is taken; another one is a conflict."""
    lines: list[str] = []
    conflicts = 0
    for before, mine, other in _passages(base, ours, theirs):
        if other in (mine, before):
            lines += mine
        elif mine == before:
            lines += other
        else:
            conflicts += 1
            lines += in_conflict(mine, other, names)
    return MergedText(lines=tuple(lines), conflicts=conflicts)


def in_conflict(ours: Sequence[str], theirs: Sequence[str], names: tuple[str, str]) -> list[str]:
    """Return both passages between the marks that Git uses."""
    return [f"{OURS}{names[0]}\n", *_ended(ours), f"{BETWEEN}\n", *_ended(theirs), f"{THEIRS}{names[1]}\n"]


def _ended(lines: Sequence[str]) -> list[str]:
    return [line if line.endswith("\n") else f"{line}\n" for line in lines]


def _passages(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Cut the three texts where both sides have kept the same lines; each passage with what became of it."""
    at = mine = other = 0
    for start, in_ours, in_theirs, size in _kept_by_both(base, ours, theirs):
        yield list(base[at:start]), list(ours[mine:in_ours]), list(theirs[other:in_theirs])
        same = list(base[start : start + size])
        yield same, same, same
        at, mine, other = start + size, in_ours + size, in_theirs + size
    yield list(base[at:]), list(ours[mine:]), list(theirs[other:])


def _kept_by_both(
    base: Sequence[str], ours: Sequence[str], theirs: Sequence[str]
) -> Iterator[tuple[int, int, int, int]]:
    """The runs of lines of the base that both sides have: where they begin in each, and how many they are."""
    mine = SequenceMatcher(None, base, ours, autojunk=False).get_matching_blocks()
    other = SequenceMatcher(None, base, theirs, autojunk=False).get_matching_blocks()
    first = second = 0
    while first < len(mine) and second < len(other):
        one, two = mine[first], other[second]
        start, end = max(one.a, two.a), min(one.a + one.size, two.a + two.size)
        if start < end:
            yield start, one.b + start - one.a, two.b + start - two.a, end - start
        if one.a + one.size <= two.a + two.size:
            first += 1
        else:
            second += 1

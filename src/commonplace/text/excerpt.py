"""Find the part of a long text that matches some words, so that it can be shown in place of its beginning.  Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from collections.abc import Set as AbstractSet

from commonplace.text.words import plan, terms

LEAD = 60  # characters before the first match: the sentence around it
_WORD = re.compile(r"\S+")
_BREAK = re.compile(r"\n|(?<=[.!?;:])\s")


def terms_of(question: str) -> frozenset[str]:
    """Return the terms that mark a match of a question: those of its words that say something."""
    return frozenset(term for word in plan(question).words for ways in word.terms for term in ways)


def matching_start(text: str, wanted: AbstractSet[str], most: int) -> int:
    """Return where the part of a text begins that has the most of some terms; 0 if its beginning is as good.

    The part has at most ``most`` characters and begins at a sentence or a word.
    """
    if len(text) <= most or not wanted:
        return 0
    places = [(found.start(), hit) for found in _WORD.finditer(text) if (hit := wanted & set(terms(found[0])))]
    beginning = _count(places, 0, most)
    starts = [_start(text, at) for at, _ in places]
    best = max(starts, key=lambda at: (_count(places, at, most), -at), default=0)
    return best if _count(places, best, most) > beginning else 0


def _count(places: Collection[tuple[int, Collection[str]]], start: int, most: int) -> int:
    """How many different terms are in the part of a text."""
    return len({term for at, found in places if start <= at < start + most for term in found})


def _start(text: str, at: int) -> int:
    """Where a part may begin that has a match at a place: at its sentence if that is near, else at a word before it."""
    earliest = max(0, at - LEAD)
    breaks = [found.end() for found in _BREAK.finditer(text, earliest, at)]
    if breaks:
        return breaks[-1]
    space = text.find(" ", earliest, at)
    return 0 if earliest == 0 else space + 1 if space >= 0 else at

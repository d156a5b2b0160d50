"""Word diffs, three-way merges and marked matches: text in pieces that a template escapes one by one.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from commonplace.model.values import Value
from commonplace.text.words import plan, terms

WORDS = 4000  # of both texts; longer ones are compared line by line
CONTEXT_CHARS = 320  # of a text before its first match, before it is left out
EXCERPT_CHARS = 700
_PIECES = re.compile(r"\s+|[\w'\u2019-]+|[^\w\s]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")


class Piece(Value):
    """A part of a text: same, ins, del or mark."""

    kind: str
    text: str


def word_diff(before: str, after: str) -> list[Piece]:
    """Return how a text became another one: what stayed, what was deleted, what was inserted."""
    old, new = _pieces(before, after)
    found: list[Piece] = []
    for kind, a, b, c, d in _opcodes(old, new):
        if kind == "equal":
            found.append(Piece(kind="same", text="".join(old[a:b])))
            continue
        found += [Piece(kind="del", text="".join(old[a:b]))] if b > a else []
        found += [Piece(kind="ins", text="".join(new[c:d]))] if d > c else []
    return _joined(found)


def _joined(found: list[Piece]) -> list[Piece]:
    """Join changes between which only blanks stayed: `a b` to `c d` is one change, not two."""
    joined: list[Piece] = []
    gone = added = ""
    for number, piece in enumerate(found):
        inner = piece.kind == "same" and (gone or added) and number + 1 < len(found) and not piece.text.strip()
        if inner and "\n" not in piece.text:
            gone, added = gone + piece.text, added + piece.text
        elif piece.kind == "same":
            joined += _change(gone, added)
            gone = added = ""
            joined.append(piece)
        else:
            gone, added = gone + piece.text * (piece.kind == "del"), added + piece.text * (piece.kind == "ins")
    return joined + _change(gone, added)


def _change(gone: str, added: str) -> list[Piece]:
    return [Piece(kind=kind, text=text) for kind, text in (("del", gone), ("ins", added)) if text]


def _pieces(*texts: str) -> list[list[str]]:
    cut = [_PIECES.findall(text) for text in texts]
    if sum(map(len, cut)) > WORDS:
        return [_LINES.findall(text) for text in texts]
    return cut


def _opcodes(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def merge(base: str, theirs: str, mine: str) -> str | None:
    """Return a text with both changes; None if they change the same words."""
    start, left, right = _pieces(base, theirs, mine)
    changes = [*_changes(start, left), *_changes(start, right)]
    changes = list(dict.fromkeys(sorted(changes)))  # the same change twice is one
    merged: list[str] = []
    place = 0
    for begin, end, words in changes:
        if begin < place or (begin == place and merged and _touches(changes, begin, end)):
            return None
        merged += [*start[place:begin], *words]
        place = end
    return "".join([*merged, *start[place:]])


def _touches(changes: Sequence[tuple[int, int, tuple[str, ...]]], begin: int, end: int) -> bool:
    """Whether another change begins or ends where this one does: their order would be a guess."""
    same = [(a, b) for a, b, _ in changes if (a <= begin <= b or a <= end <= b)]
    return len(same) > 1


def _changes(start: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    for kind, a, b, c, d in _opcodes(start, other):
        if kind != "equal":
            yield a, b, tuple(other[c:d])


def marked(text: str, query: str) -> list[Piece]:
    """Return the part of a text that matches a question best, with the matching words marked."""
    wanted = {term for word in plan(query).words for choice in word.terms for term in choice}
    shown = _excerpt(text, wanted)
    return [Piece(kind="mark" if _matches(piece, wanted) else "same", text=piece) for piece in _PIECES.findall(shown)]


def _matches(piece: str, wanted: set[str]) -> bool:
    return bool(wanted) and not piece.isspace() and not wanted.isdisjoint(terms(piece))


def _excerpt(text: str, wanted: set[str]) -> str:
    if len(text) <= EXCERPT_CHARS:
        return text
    first = next((found.start() for found in _PIECES.finditer(text) if _matches(found[0], wanted)), 0)
    begin = max(0, first - CONTEXT_CHARS // 2) if first > CONTEXT_CHARS else 0
    begin = text.find(" ", begin) + 1 if begin else 0
    return (
        ("… " if begin else "")
        + text[begin : begin + EXCERPT_CHARS]
        + ("…" if begin + EXCERPT_CHARS < len(text) else "")
    )

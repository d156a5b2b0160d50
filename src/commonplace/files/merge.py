"""Merge the file of a record that two branches have changed: key by key, then the text line by line.  Pure.

Two people who add different tags, or of whom one changes a tag and the other the words, do not disagree.  Where they
do, both texts stay in the file between the marks of Git, which no sync takes for a record.  Bookkeeping of files in the
earlier format never disagrees: it is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.files.codec import MACHINERY, FileTrouble, FrontMatter, read_front
from commonplace.model.values import Value
from commonplace.text.merging import in_conflict, merge_lines
from commonplace.text.strict_yaml import dump

LISTS = ("tags", "aliases", "keywords")  # merged as sets: what either side has added or taken out
_EMPTY = FrontMatter(keys={}, rows={}, comments=(), body="")


class MergedFile(Value):
    """What came out of a merge of three files."""

    data: bytes
    conflicts: int


def merge_files(base: bytes, ours: bytes, theirs: bytes, *, names: tuple[str, str] = ("ours", "theirs")) -> MergedFile:
    """Merge two versions of a file; of one that is no record's the lines are merged.  ``base`` may be empty."""
    try:
        before = read_front(base) if base.strip() else _EMPTY
        mine, other = read_front(ours), read_front(theirs)
    except (FileTrouble, UnicodeDecodeError):
        return _merge_as_lines(base, ours, theirs, names)
    if mine.keys.get("id") != other.keys.get("id"):
        return _merge_as_lines(base, ours, theirs, names)
    head, conflicts = _merge_heads(before, mine, other, names)
    body = merge_lines(*(one.body.splitlines(keepends=True) for one in (before, mine, other)), names=names)
    text = f"---\n{''.join(head)}---\n{''.join(body.lines)}"
    return MergedFile(data=text.encode(), conflicts=conflicts + body.conflicts)


def _merge_as_lines(base: bytes, ours: bytes, theirs: bytes, names: tuple[str, str]) -> MergedFile:
    texts = [data.decode("utf-8", "surrogateescape").splitlines(keepends=True) for data in (base, ours, theirs)]
    merged = merge_lines(*texts, names=names)
    return MergedFile(data="".join(merged.lines).encode("utf-8", "surrogateescape"), conflicts=merged.conflicts)


def _merge_heads(
    before: FrontMatter, mine: FrontMatter, other: FrontMatter, names: tuple[str, str]
) -> tuple[list[str], int]:
    """The lines of the merged frontmatter, in our order, then theirs; and how many keys are in conflict."""
    lines: list[str] = []
    conflicts = 0
    for key in dict.fromkeys([*mine.keys, *other.keys]):
        merged = _merge_key(key, before, mine, other)
        if merged is None:
            conflicts += 1
            merged = in_conflict(mine.rows.get(key, ()), other.rows.get(key, ()), names)
        lines += merged
    known = {*before.comments, *mine.comments}
    return [*lines, *(row for row in other.comments if row.strip() and row not in known)], conflicts


def _merge_key(key: str, before: FrontMatter, mine: FrontMatter, other: FrontMatter) -> Sequence[str] | None:
    """The lines of one key; none if it is gone; None if the two sides disagree."""
    rows, theirs = mine.rows.get(key, ()), other.rows.get(key, ())
    values = [one.keys.get(key) for one in (before, mine, other)]
    if values[1] == values[2] or values[2] == values[0]:
        return rows
    if values[1] == values[0]:
        return theirs
    if key in LISTS:
        return _merge_lists(key, *map(_texts, values))
    return () if key in MACHINERY else None


def _merge_lists(key: str, before: Sequence[str], mine: Sequence[str], other: Sequence[str]) -> Sequence[str]:
    """What is left of the list and what either side has added."""
    kept = [one for one in mine if one in other or one not in before]
    merged = [*kept, *(one for one in other if one not in before and one not in kept)]
    return (f"{key}: {dump(merged)}\n",) if merged else ()


def _texts(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [] if value is None else [str(value)]

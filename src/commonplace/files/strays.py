"""Files in a folder of records that are not read, each with what to do about it: no file is ignored without a word."""

from __future__ import annotations

import os
from collections.abc import Iterator

from commonplace.files.disk import OTHERS
from commonplace.files.plan import Trouble
from commonplace.model.records import CATEGORIES

#: Files of a project's own, and what learning writes there.
KNOWN = frozenset(
    {"config.yaml", "README.md", "MEMORY.md", "memory_summary.md", "raw_memories.md", "learned.md", "learned"}
)
MOST = 200  # that are named
DEPTH = 8
_NAMES = ", ".join(CATEGORIES)


def find_strays(folder: str) -> list[Trouble]:
    """Return the files that no sync reads, but for hidden ones and those that are no records."""
    found = sorted(_strays(folder, "", DEPTH), key=lambda one: one.path)
    return found[:MOST]


def _strays(folder: str, inside: str, depth: int) -> Iterator[Trouble]:
    try:
        entries = [entry for entry in os.scandir(os.path.join(folder, inside)) if not entry.name.startswith(".")]
    except OSError as error:
        yield Trouble(path=inside or ".", line=1, reason=f"cannot be looked into: {error.strerror}")
        return
    for entry in entries:
        path = f"{inside}/{entry.name}" if inside else entry.name
        if entry.is_dir(follow_symlinks=False):
            if depth and path not in OTHERS:
                yield from _strays(folder, path, depth - 1)
        elif reason := _reason(path) or _reason_of_link(path, is_link=entry.is_symlink()):
            yield Trouble(path=path, line=1, reason=reason)


def _reason_of_link(path: str, *, is_link: bool) -> str | None:
    """Why a link in place of a record's file is not read."""
    is_record = path.endswith(".md") and path.partition("/")[0] in CATEGORIES
    return "is a link, so it is not read; put the file itself there" if is_link and is_record else None


def _reason(path: str) -> str | None:
    """Why a file is not read; None if it is, or is none of ours."""
    parts = path.split("/")
    if len(parts) == 1:
        is_record = path.endswith(".md") and path not in KNOWN
        return f"is in no folder of a category, so it is not read; move it to one of {_NAMES}" if is_record else None
    if parts[0] not in CATEGORIES and not path.endswith(".md"):
        return None
    if len(parts) > 2:  # noqa: PLR2004 - a category and a name
        where = parts[0] if parts[0] in CATEGORIES else f"one of {_NAMES}"
        return f"is in a folder within a folder, so it is not read; move it to {where}"
    if not path.endswith(".md"):
        return "is not read, because its name does not end in .md; rename it"
    return None

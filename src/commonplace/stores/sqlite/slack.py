"""Wipe what lies between the rows of a SQLite file.

``secure_delete`` overwrites a row that is deleted, but not the copies that were left behind when pages were split and
rows moved from one to another: one erased text in some fifty could still be read in the file.  No reader ever looks at
those bytes, so they can be overwritten in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from

import apsw

_INNER, _LEAVES = (2, 5), (10, 13)  # the first byte of a page that holds rows; every other page begins with a 0
_PAGES_MOST = 2 << 24  # from here on the number of a following page could be taken for that first byte
_ZEROS = bytes(65_536)  # the largest page


def wipe(db: apsw.Connection, path: str) -> None:
    """Overwrite all bytes that belong to no row.

    Call in a write transaction that has changed nothing yet and will change something, with the log emptied before it:
    then the file is whole, nobody else writes, and all other connections forget their copies of its pages.
    """
    size, pages = int(db.pragma("page_size")), int(db.pragma("page_count"))
    if pages >= _PAGES_MOST:
        return
    file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0])
    try:
        for number in range(1, pages):  # the first page holds the schema
            page = file.xRead(size, number * size)
            for start, end in _slack(page):
                if page[start:end] != _ZEROS[: end - start]:
                    file.xWrite(_ZEROS[: end - start], number * size + start)
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
    db.execute("pragma shrink_memory")  # this connection forgets its copies too


def _slack(page: bytes) -> Iterator[tuple[int, int]]:
    """Where a page holds no row: before the first one, and in each gap between two.  What makes no sense ends it."""
    if page[0] not in _INNER + _LEAVES:
        return
    gap, cells, content = unpack_from(">HHH", page, 1)
    start, end = (12 if page[0] in _INNER else 8) + 2 * cells, content or 65_536
    while start <= end <= len(page):
        yield start, end
        if not end <= gap <= len(page) - 4:
            return
        following, size = unpack_from(">HH", page, gap)
        start, end, gap = gap + 4, gap + size, following

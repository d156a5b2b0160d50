"""Who else may read or write the data folder: keys, backups and the files of hooks are for their owner alone.

Records and settings are edited by hand, and editors make files that others may read; the data folder itself keeps
others away from those.  Nobody else may write them: what they say counts as the user's own word.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress

from commonplace.model.values import Value

PRIVATE = 0o077  # neither read nor written by others
UNWRITTEN = 0o022  # not written by others


class Exposed(Value):
    """A file or folder that others may use."""

    path: str
    mode: int  #: as it is
    mask: int  #: the rights that others must not have

    @property
    def reason(self) -> str:
        """What others may do with it, as a sentence."""
        others = "write to" if self.mode & self.mask & UNWRITTEN else "read"
        return f"others may {others} {self.path!r} (mode {self.mode:o})"


def exposed(folder: str, *, edited: Collection[str]) -> list[Exposed]:
    """Return what others may use of a data folder; ``edited`` are the names in it that people edit by hand."""
    found = [_look(folder, UNWRITTEN)]
    for entry in _entries(folder):
        found += _below(entry, UNWRITTEN if entry.name in edited else PRIVATE)
    return [one for one in found if one is not None]


def protect(found: Collection[Exposed]) -> list[str]:
    """Take those rights away; return the paths where that worked."""
    done = []
    for one in found:
        with suppress(OSError):  # it belongs to somebody else, and the next check names it again
            os.chmod(one.path, one.mode & ~one.mask)
            done.append(one.path)
    return done


def _below(entry: os.DirEntry[str], mask: int) -> Iterator[Exposed | None]:
    if entry.is_symlink():
        return
    if not entry.is_dir():
        yield _look(entry.path, mask)
        return
    yield _look(entry.path, UNWRITTEN)
    for inner in _entries(entry.path):
        yield from _below(inner, mask)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # it is missing, or not ours to list
        return []


def _look(path: str, mask: int) -> Exposed | None:
    with suppress(FileNotFoundError):  # it was removed meanwhile
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        return Exposed(path=path, mode=mode, mask=mask) if mode & mask else None
    return None

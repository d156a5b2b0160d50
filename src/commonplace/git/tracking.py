"""Which files Git has in its index, read from the index's own file: no Git is run, so it may be asked anywhere."""

from __future__ import annotations

import os
from collections.abc import Collection

from commonplace.git.index import Unreadable, read_index
from commonplace.git.objects import id_bytes
from commonplace.git.refs import is_locked
from commonplace.git.repository import Repository, repository_at
from commonplace.model.values import Value


class TrackedFiles(Value):
    """What Git knows of some files of a folder."""

    in_repository: bool = False
    is_locked: bool = False  #: Git is changing the working tree just now; then all of them are tracked
    tracked: frozenset[str] = frozenset()  #: those that are in the index
    left_out: frozenset[str] = frozenset()  #: those of them that a sparse checkout leaves out of the working tree


def tracked_files(folder: str, paths: Collection[str]) -> TrackedFiles:
    """Look up files, given by their paths in the folder.  Of an index that cannot be read all are tracked."""
    repository = enclosing_repository(folder)
    if repository is None:
        return TrackedFiles()
    if is_locked(repository):
        return TrackedFiles(in_repository=True, is_locked=True, tracked=frozenset(paths))
    inside = os.path.relpath(os.path.realpath(folder), os.path.realpath(repository.root)).replace(os.sep, "/")
    names = {path if inside == "." else f"{inside}/{path}": path for path in paths}
    try:
        index = os.path.join(repository.own, "index")
        staged = read_index(index, names.keys(), id_bytes=id_bytes(repository)) if names else {}
    except Unreadable:
        return TrackedFiles(in_repository=True, tracked=frozenset(paths))
    return TrackedFiles(
        in_repository=True,
        tracked=frozenset(names[name] for name in staged),
        left_out=frozenset(names[name] for name, entries in staged.items() if all(one.is_left_out for one in entries)),
    )


def enclosing_repository(folder: str) -> Repository | None:
    """Return the repository that a folder is in, if it is in one."""
    place, before = os.path.realpath(folder), ""
    while place != before:
        if (found := repository_at(place)) is not None:
            return found
        place, before = os.path.dirname(place), place
    return None

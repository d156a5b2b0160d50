"""Have people changed the files since they were last looked at?

To know, every file has to be looked at, which for ten thousand of them costs more than the rest of a recall.  So a look
at a large folder leaves a mark: when it began, and how many files there were.  While the mark is fresh only the folders
themselves are asked: they know of every file that came, went or was replaced.  A file that was written in place, in a
large folder, within that time, is noticed when its record is recalled (``edited``), else with the next whole look.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from commonplace.files import disk as files
from commonplace.files.mirror import MirroredStore
from commonplace.model.errors import StoreError
from commonplace.model.scopes import Scope

FEW = 1_000  # files that are looked at one by one before every recall: a few milliseconds
FRESH_SECONDS = 60  # so long a mark is believed
COARSE_NS = 20_000_000  # folders' times are kept in ticks of a few milliseconds


class Look:
    """Looks at the folders of a store; its marks lie in the data folder."""

    def __init__(self, store: MirroredStore, marks: str) -> None:
        self.store = store
        self.marks = marks

    def differs(self, scope: Scope) -> bool:
        """Whether a file of the scope is not what was last noted."""
        began = time.time_ns()
        folder = self.store.folders[scope]
        known = {state.path: state.stamp for state in self.store.files(folder)}
        try:
            seen = dict(files.listed(folder))
        except StoreError:  # whoever syncs then says why it cannot be read
            return True
        if not os.path.isdir(folder) or seen != known:
            return True
        self.mark(scope, began, len(seen))
        return False

    def edited(self, scope: Scope, ids: Collection[str]) -> bool:
        """Whether the file of one of these records is not what was last noted."""
        folder = self.store.folders[scope]
        return any(files.stamp(folder, state.path) != state.stamp for state in self.store.files(folder, records=ids))

    def is_fresh(self, scope: Scope) -> bool:
        """Whether the last whole look still stands: the folder is large, and neither time nor a file came since."""
        try:
            with open(self._path(scope), encoding="utf-8") as file:
                count = int(file.read() or 0)
            began = os.stat(self._path(scope)).st_mtime_ns
            return (
                count > FEW
                and 0 <= time.time_ns() - began < FRESH_SECONDS * 1_000_000_000
                and _newest(self.store.folders[scope]) < began - COARSE_NS
            )
        except (OSError, ValueError):
            return False

    def last(self, scope: Scope) -> float | None:
        """When every file of the scope was last looked at, in seconds since 1970."""
        try:
            return os.stat(self._path(scope)).st_mtime
        except OSError:
            return None

    def mark(self, scope: Scope, began: int, count: int) -> None:
        """Note a whole look that found nothing, or whose findings were dealt with; a mark that is lost is only slow."""
        try:
            path = self._path(scope)
            os.makedirs(self.marks, mode=0o700, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.write(str(count))
            os.utime(path, ns=(began, began))
        except OSError:
            return

    def _path(self, scope: Scope) -> str:
        """Named after the folder's place on disk: a folder that is made anew is newer than any mark."""
        place = os.stat(self.store.folders[scope])
        return os.path.join(self.marks, f"{place.st_dev:x}-{place.st_ino:x}")


def _newest(folder: str) -> int:
    """When a file of the folder last came, went or was replaced."""
    inside = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    return max(os.stat(path).st_mtime_ns for path in (folder, *inside))

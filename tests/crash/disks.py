"""A disk between SQLite and the files, that can be told to fail and that remembers what was written to it.

SQLite's own tests do this in C; APSW lets a VFS be written in Python.  Such a VFS has no shared memory, so a connection
on it has the file to itself (``locking_mode = exclusive``); everything else is as always.
"""

import contextlib
import os

import apsw


class Disk(apsw.VFS):
    """Stands before the real file system as SQLite's default, until it is removed."""

    def __init__(self):
        self.calls = 0  #: that change something, so far
        self.failing = {}  #: which of them fails, and how
        self.ever_after = None  #: how every call fails from the failing one on
        self.log = []  #: everything that happened, in order
        super().__init__("disk", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name for it
        """Open a file whose calls come by here."""
        return File(self, name, flags)

    def xDelete(self, name, sync):  # noqa: N802
        """Remove a file."""
        self.happens("delete", os.path.basename(name))
        super().xDelete(name, sync)

    def happens(self, what, *details):
        """Note a call that changes something, or let it fail."""
        self.calls += 1
        if self.calls in self.failing:
            error, sticky = self.failing[self.calls]
            self.ever_after = error if sticky else self.ever_after
            raise error("injected")
        if self.ever_after:
            raise self.ever_after("injected, again")
        self.log.append((what, *details))

    def fail(self, after, error, *, sticky):
        """Let the call fail that comes after so many more."""
        self.failing, self.ever_after = {self.calls + after: (error, sticky)}, None

    def mend(self):
        """Let nothing fail any more."""
        self.failing, self.ever_after = {}, None


class File(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk, name, flags):
        self.disk, self.name = disk, os.path.basename(name.filename() if isinstance(name, apsw.URIFilename) else name)
        super().__init__("unix", name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        """Write at an offset."""
        self.disk.happens("write", self.name, offset, bytes(data))
        super().xWrite(data, offset)

    def xTruncate(self, size):  # noqa: N802
        """Cut the file."""
        self.disk.happens("cut", self.name, size)
        super().xTruncate(size)

    def xSync(self, flags):  # noqa: N802
        """Bring it to the platter."""
        self.disk.happens("sync", self.name)
        super().xSync(flags)


@contextlib.contextmanager
def inserted():
    """Put a disk between SQLite and the files for as long as the block lasts."""
    disk = Disk()
    apsw.connection_hooks.append(_alone)
    try:
        yield disk
    finally:
        apsw.connection_hooks.remove(_alone)
        disk.unregister()


def _alone(db):
    db.pragma("locking_mode", "exclusive")

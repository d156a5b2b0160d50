"""Auditor: who writes, the key of the audit log's chain, and the note outside of the database of how far it goes.

The chain shows what was changed, removed or moved inside of the log.  That its end was cut off shows only because the
number and the digest of the last entry are noted in a file of the data folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from commonplace.model.values import Value

_WIDTH = 20  # of a number in the file: every note has the same length, and is written in one go


class AuditNote(Value):
    """How far the log went when it was last written from this machine."""

    seq: int = 0
    digest: str = ""
    lost: int = 0  #: so many entries at its end were found missing


class Auditor:
    """What a store needs to write its audit log."""

    def __init__(self, *, actor: str, key: Callable[[], bytes], clock: Callable[[], datetime], path: str) -> None:
        """Write as ``actor``; ``path`` is the file of the note."""
        self.actor = actor
        self.key = key
        self.clock = clock
        self.path = path

    def read(self) -> AuditNote:
        """Return the note; an empty one if there is none."""
        try:
            with open(self.path, encoding="ascii") as file:
                parts = file.read().split()
        except FileNotFoundError:
            return AuditNote()
        return AuditNote(seq=int(parts[0]), digest=parts[1], lost=int(parts[2])) if len(parts) > 2 else AuditNote()  # noqa: PLR2004 - number, digest, lost

    def forget(self) -> None:
        """Forget how far the log goes, after the store was replaced as a whole."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def note(self, seq: int, digest: str, *, lost: int = 0) -> None:
        """Note how far the log goes now; call it after the commit, so that the note is never ahead of the log."""
        text = f"{seq:0{_WIDTH}d} {digest} {lost:0{_WIDTH}d}\n"
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(file, text.encode("ascii"), 0)
        finally:
            os.close(file)

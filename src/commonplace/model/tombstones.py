"""Tombstones: what is left of something erased, so that an old copy of it is recognised and stays out.

A tombstone holds no content: the id of a record, which is random, or a digest under the key of the data folder.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from commonplace.model.values import Value


class BuriedKind(StrEnum):
    """What a tombstone stands for."""

    RECORD = "record"  #: a record's id
    TEXT = "text"  #: the text of a record, in one scope
    SESSION = "session"  #: the name of a session or a ticket, in one scope
    TURN = "turn"  #: a piece of a session or a ticket, in one scope
    SOURCE = "source"  #: a file, an address or an import, in one scope


class Tombstone(Value):
    """A mark that something was erased."""

    digest: str  #: what it is recognised by
    erasure: str  #: the receipt of the erasure that left it
    kind: BuriedKind
    owner: str  #: the record's id, or the digest of the session: what a person names to lift it
    at: datetime  #: when it was erased

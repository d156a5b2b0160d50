"""Documents: the sources and renderings of memory.  They have chunks; chunks are searchable and never records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from commonplace.model.errors import InvalidInput
from commonplace.model.records import EMPTY, Json, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import QUOTED, Value


class DocumentKind(StrEnum):
    """What a document is."""

    SESSION = "session"
    TICKET = "ticket"
    ARTIFACT = "artifact"
    EXTRACTION = "extraction"  #: the extract of one session, before consolidation
    RECEIPT = "receipt"  #: the report of one pipeline run, or of what one session was shown
    ERASURE = "erasure"  #: the receipt of an erasure


class Document(Value):
    """A session, a ticket, or a text derived from them.

    (scope, kind, name) is its identity, its digest says whether it changed.
    """

    scope: Scope
    kind: DocumentKind
    name: str  #: a session id, a ticket id, an artifact's path
    digest: str  #: of what it was made from; the same digest again is no change
    content: str | None = None  #: the text of an artifact; a session's text is in its chunks
    metadata: Mapping[str, Json] = EMPTY
    source: Source
    trust: Trust
    created_at: datetime
    updated_at: datetime

    def _check(self) -> None:
        if not self.name.strip():
            raise InvalidInput("a document needs a name")
        if self.created_at.tzinfo is None or self.updated_at.tzinfo is None:
            raise InvalidInput(f"document {self.name!r} has a date without a time zone")


class Chunk(Value):
    """A piece of a document that is searched on its own."""

    scope: Scope
    kind: DocumentKind  #: of its document
    document: str  #: its document's name
    seq: int  #: its place in the document, from 0
    ref: str  #: where in the document, such as a turn: stable when the document grows
    text: Annotated[str, QUOTED]
    speaker: Annotated[str, QUOTED] = ""  #: user, assistant, tool, or a name; empty: unknown
    occurred_at: datetime | None = None
    trust: Trust

    @property
    def id(self) -> str:
        """A reference that leads back to its origin, such as ``session:0b1c#4``."""
        return f"{self.kind}:{self.document}#{self.ref}"

    def _check(self) -> None:
        if self.occurred_at is not None and self.occurred_at.tzinfo is None:
            raise InvalidInput(f"chunk {self.id!r} has a date without a time zone")


SHOWN = "#shown"  # after a folder's name: what its files show that is not the current version of a record
CHECKOUT = "#checkout"  # after a folder's name: the scope that it is a checkout of
HIDDEN = 0  # the version of a record that a checkout has no file of


class FileState(Value):
    """What a mirrored folder last held for one record: the common ancestor of a file and its record."""

    path: str  #: relative to the folder
    record: str
    version: int  #: the record's, when the file was written or read
    digest: str  #: of the file's bytes
    stamp: int  #: of its size and time of change: the same stamp is taken for the same bytes


def shown_in(folder: str) -> str:
    """Return the name of the list of what the files of a folder show instead of the current versions."""
    return folder + SHOWN


def shown_state(record: str, version: int) -> FileState:
    """Return the entry of that list for one record; ``HIDDEN``: the folder has no file of it."""
    return FileState(path=record, record=record, version=version, digest="", stamp=0)

"""Everything that can happen to a store, as data.

A write is a value before it is an effect: it can be logged, tried again and tested.  The union is closed; a store
matches every case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from commonplace.model.documents import Chunk, Document, FileState
from commonplace.model.jobs import Claim, Job
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import DocumentFilter, Filter, Order, Vector
from commonplace.model.records import Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

if TYPE_CHECKING:  # no recall tells anybody anything
    from commonplace.model.events import Event, Happened

Terms: TypeAlias = tuple[str, ...]


class Put(Value):
    """Keep a record: a new one, or the next version of one."""

    record: Record
    terms: Terms  #: what it is found by
    vector: Vector | None = None  #: None: none yet; an embedder may catch up
    expect: int = 0  #: 0: it must be new; n: it must be at version n
    dedupe: bool = False  #: drop the write if a live record of the same scope and kind says the same
    tell: bool = False  #: note it as an event


class Load(Value):
    """Take a record over with its past, exactly as it was elsewhere; what is already as new stays."""

    versions: tuple[Record, ...]  #: oldest first; the last one is the present
    terms: tuple[Terms, ...]  #: one for each version
    vector: Vector | None = None


class Archive(Value):
    """Take records out of recall and keep them."""

    where: Filter
    at: datetime


class Restore(Value):
    """Bring archived records back."""

    where: Filter
    at: datetime


class Supersede(Value):
    """Close a record's validity because another one replaces it, and keep it."""

    id: str
    by: str
    at: datetime  #: from when on the other one holds
    now: datetime


class Require(Value):
    """Continue only if the records meant are as they were read; else raise ``Conflict``."""

    where: Filter
    count: int | None = None  #: there are so many, in whatever version
    digest: str | None = None  #: ``versions_digest`` of them: none was added, changed or removed


def versions_digest(versions: Iterable[tuple[str, int]]) -> str:
    """Hash the ids and versions of records, in whatever order they come."""
    from hashlib import sha256  # noqa: PLC0415 - only writes need it; recall must start without

    return sha256("\n".join(f"{id_} {version}" for id_, version in sorted(versions)).encode()).hexdigest()


class Delete(Value):
    """Erase records for good: rows, versions, index, vectors, and what was derived from them alone."""

    where: Filter
    tell: Happened | None = None  #: note it for each of them, as this


class Consolidated(Value):
    """Mark records as taken up by a consolidation, or take the mark back."""

    ids: tuple[str, ...]
    at: datetime | None  #: None: no consolidation has taken them up, after all


class Touch(Value):
    """Count a recall of each record.  No version changes, and losing it in a power cut is no loss."""

    ids: tuple[str, ...]
    at: datetime


class Trim(Value):
    """Erase all but ``keep`` of the records meant, first in ``order`` first.  Pinned ones count and stay."""

    where: Filter
    keep: int
    order: Order
    spare: tuple[str, ...] = ()  #: ids that count and stay as well: what makes the room necessary is not what goes
    tell: bool = False  #: note it for each of them


class Cap(Value):
    """Go on only if there are no more of the records meant than that; else ``CapacityExceeded``."""

    where: Filter
    below: tuple[Scope, ...] = ()  #: what lies in these and below them is meant too, whoever made the scopes meanwhile
    most: int | None = None  #: records
    most_bytes: int | None = None  #: of what they say


class Emit(Value):
    """Note an event that no other change tells."""

    event: Event


class TrimEvents(Value):
    """Erase what was told before a moment, earliest first, so many events at once; what holds an archive stays.

    Numbers are in the order in which things happened: what comes before something old is old, whatever its clock said.
    """

    before: datetime
    most: int  #: events that are looked at


class DropScope(Value):
    """Erase a scope with everything in it and below it."""

    scope: Scope


class SetVectors(Value):
    """Give texts the vectors that they lacked; one that has changed meanwhile, or is gone, gets none.

    Vectors of the store's embedder fill gaps; a store that has none takes this one.  Those of another embedder are kept
    beside the ones in use, in place of what was begun for a third.
    """

    identity: EmbedderIdentity
    vectors: Mapping[str, Vector]  #: by the reference of what ``Store.unembedded`` listed


class SwitchEmbedder(Value):
    """Put the vectors that were built beside in the place of those in use.

    Raises ``Conflict`` while any text lacks its vector, and then nothing changes.
    """

    identity: EmbedderIdentity


class AdoptEmbedder(Value):
    """Say which embedder the store's vectors come from; the first one stays."""

    identity: EmbedderIdentity


class PutDocument(Value):
    """Keep a document with its chunks, in place of the one of the same name."""

    document: Document
    chunks: tuple[Chunk, ...] = ()
    terms: tuple[Terms, ...] = ()  #: one for each chunk
    vectors: Mapping[int, Vector] = {}  #: by the chunk's seq


class AppendChunks(Value):
    """Let a document grow: its chunks stay, these follow them.  The document is as it is after that.

    Raises ``NotFound`` if there is no such document, ``Conflict`` if it is not what it was when it was read.
    """

    document: Document
    chunks: tuple[Chunk, ...]  #: numbered on from the last one
    terms: tuple[Terms, ...]  #: one for each chunk
    vectors: Mapping[int, Vector] = {}  #: by the chunk's seq
    expect_digest: str  #: of the document as it was read


class DeleteDocuments(Value):
    """Erase documents with their chunks."""

    where: DocumentFilter


class TrimDocuments(Value):
    """Erase all but the newest ``keep`` of the documents meant."""

    where: DocumentFilter
    keep: int


class PutFiles(Value):
    """Note what a mirrored folder now holds."""

    folder: str
    files: tuple[FileState, ...]


class DropFiles(Value):
    """Forget what a mirrored folder held at these paths."""

    folder: str
    paths: frozenset[str]


class Enqueue(Value):
    """Say that a job has work: its watermark rises, its tries start afresh.  It runs when somebody claims it."""

    job: Job
    force: bool = False  #: also if the watermark is no newer than what was done


class Finish(Value):
    """End a claimed job well.  A claim that was lost raises ``LeaseLost`` and undoes the whole ``apply``."""

    claim: Claim
    at: datetime | None = None  #: when it ended


class Fail(Value):
    """End a claimed job badly: it may be claimed again from ``retry_at`` on, while tries are left."""

    claim: Claim
    error: str
    retry_at: datetime
    at: datetime | None = None  #: when it ended


class Heartbeat(Value):
    """Hold a claim for longer."""

    claim: Claim
    until: datetime


Change: TypeAlias = (
    Put
    | Load
    | Archive
    | Restore
    | Supersede
    | Require
    | Delete
    | Consolidated
    | Touch
    | Trim
    | Cap
    | Emit
    | TrimEvents
    | DropScope
    | SetVectors
    | SwitchEmbedder
    | AdoptEmbedder
    | PutDocument
    | AppendChunks
    | DeleteDocuments
    | TrimDocuments
    | PutFiles
    | DropFiles
    | Enqueue
    | Finish
    | Fail
    | Heartbeat
)


class Outcome(Value):
    """What one change did."""

    records: tuple[
        Record, ...
    ] = ()  #: as they are now, of those that changed (for a dropped write: the one that is there)
    gone: tuple[str, ...] = ()  #: ids that were erased
    deduped: bool = False  #: the write was dropped: a live record says the same
    erasing: bool = False  #: erased from every answer, but a reader keeps the old bytes in the log for now
    more: bool = False  #: there may be more of the same to erase

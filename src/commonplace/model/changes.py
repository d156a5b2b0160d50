"""Everything that can happen to a store, as data.

A write is a value before it is an effect: it can be logged, retried and tested.  The union is closed; a store
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

if TYPE_CHECKING:  # no recall emits an event
    from commonplace.model.events import Event, Happened

Terms: TypeAlias = tuple[str, ...]


class Put(Value):
    """Store a record: a new one, or the next version of one."""

    record: Record
    terms: Terms  #: what it is found by
    vector: Vector | None = None  #: None: it has none yet and can be given one later
    expect: int = 0  #: 0: it must be new; n: it must be at version n
    dedupe: bool = False  #: drop the write if a live record of the same scope and kind has the same content
    emit: bool = False  #: record an event


class Load(Value):
    """Load a record with its history, exactly as it was elsewhere; one that is as new or newer here stays."""

    versions: tuple[Record, ...]  #: oldest first; the last one is the present
    terms: tuple[Terms, ...]  #: one for each version
    vector: Vector | None = None


class Archive(Value):
    """Archive records: they are no longer recalled, and stay stored."""

    where: Filter
    at: datetime


class Restore(Value):
    """Restore archived records."""

    where: Filter
    at: datetime


class Supersede(Value):
    """Archive a record because another one replaces it."""

    id: str
    by: str
    at: datetime  #: from when on the other one is valid
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
    emit: Happened | None = None  #: record this event for each of them


class Consolidated(Value):
    """Mark records as consolidated, or remove the mark."""

    ids: tuple[str, ...]
    at: datetime | None  #: None: remove the mark


class Touch(Value):
    """Count a recall of each record.  No version changes, and a power cut may lose it."""

    ids: tuple[str, ...]
    at: datetime


class Trim(Value):
    """Evict all but ``keep`` of the records meant, first in ``order`` first.  Pinned ones count and stay."""

    where: Filter
    keep: int
    order: Order
    spare: tuple[str, ...] = ()  #: ids that count and stay as well: the new record is not what is evicted
    emit: bool = False  #: record an event for each of them


class Cap(Value):
    """Continue only if the records meant are within a limit; else raise ``CapacityExceeded``."""

    where: Filter
    below: tuple[Scope, ...] = ()  #: these and all scopes below them are meant too, also those made meanwhile
    most: int | None = None  #: records
    most_bytes: int | None = None  #: of their content


class Emit(Value):
    """Record an event that no other change records."""

    event: Event


class TrimEvents(Value):
    """Erase events from before a moment, earliest first, so many at once; archives stay.

    Numbers are in the order in which things happened: what comes before an old event is old, whatever its time.
    """

    before: datetime
    most: int  #: events to look at


class DropScope(Value):
    """Erase a scope with everything in it and below it."""

    scope: Scope


class SetVectors(Value):
    """Give texts the vectors that they lack; one that has changed meanwhile, or is gone, gets none.

    Vectors of the store's embedder fill gaps; a store that has no embedder adopts this one.  Those of another embedder
    are stored beside the ones in use, and replace what was begun for a third.
    """

    identity: EmbedderIdentity
    vectors: Mapping[str, Vector]  #: by the reference of what ``Store.unembedded`` listed


class SwitchEmbedder(Value):
    """Replace the vectors in use by those that were built beside them.

    Raises ``Conflict`` while any text lacks its vector; then nothing changes.
    """

    identity: EmbedderIdentity


class AdoptEmbedder(Value):
    """Set the embedder that the store's vectors come from; the first one stays."""

    identity: EmbedderIdentity


class PutDocument(Value):
    """Store a document with its chunks; replaces the one of the same name."""

    document: Document
    chunks: tuple[Chunk, ...] = ()
    terms: tuple[Terms, ...] = ()  #: one for each chunk
    vectors: Mapping[int, Vector] = {}  #: by the chunk's seq


class AppendChunks(Value):
    """Append chunks to a document, and replace its other fields.

    Raises ``NotFound`` if there is no such document, ``Conflict`` if it was changed since it was read.
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
    """Save the state of files in a mirrored folder."""

    folder: str
    files: tuple[FileState, ...]


class DropFiles(Value):
    """Delete the state of these files of a mirrored folder."""

    folder: str
    paths: frozenset[str]


class Enqueue(Value):
    """Request a job: its watermark rises, its tries start afresh.  It runs when a worker claims it."""

    job: Job
    force: bool = False  #: also if the watermark is no newer than what was done


class Finish(Value):
    """End a claimed job successfully.  A lost claim raises ``LeaseLost`` and undoes the whole ``apply``."""

    claim: Claim
    at: datetime | None = None  #: when it ended


class Fail(Value):
    """End a claimed job with an error: it may be claimed again from ``retry_at`` on, while tries are left."""

    claim: Claim
    error: str
    retry_at: datetime
    at: datetime | None = None  #: when it ended


class Heartbeat(Value):
    """Extend a claim."""

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
    deduped: bool = False  #: the write was dropped: a live record has the same content
    erasing: bool = False  #: erased from every answer, but old bytes are in the log until a reader ends
    more: bool = False  #: there may be more of the same to erase

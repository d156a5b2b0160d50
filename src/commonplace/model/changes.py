"""Every change of a store, as data.

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

if TYPE_CHECKING:  # a recall emits no events and erases nothing
    from commonplace.model.events import Event, EventKind
    from commonplace.model.tombstones import Tombstone

Terms: TypeAlias = tuple[str, ...]


class Put(Value):
    """Store a record: a new one, or the next version of one."""

    record: Record
    terms: Terms  #: its search terms
    vector: Vector | None = None  #: None: none yet; an embedder may add it later
    expect: int = 0  #: 0: it must be new; n: it must be at version n
    dedupe: bool = False  #: drop the write if a live record of the same scope and kind says the same
    emit: bool = False  #: record an event


class Load(Value):
    """Import a record with its earlier versions, exactly as they were; a record that is as new already stays."""

    versions: tuple[Record, ...]  #: oldest first; the last one is current
    terms: tuple[Terms, ...]  #: one for each version
    vector: Vector | None = None


class Archive(Value):
    """Exclude records from recall without deleting them."""

    where: Filter
    at: datetime


class Restore(Value):
    """Restore archived records."""

    where: Filter
    at: datetime


class Supersede(Value):
    """End a record's validity because another one replaces it; it stays stored."""

    id: str
    by: str
    at: datetime  #: since when the other one is valid
    now: datetime


class Require(Value):
    """Continue only if the matching records are as they were read; else raise ``Conflict``."""

    where: Filter
    count: int | None = None  #: so many must match, in any version
    digest: str | None = None  #: ``versions_digest`` of them: none was added, changed or removed


def versions_digest(versions: Iterable[tuple[str, int]]) -> str:
    """Hash the ids and versions of records, in any order."""
    from hashlib import sha256  # noqa: PLC0415 - only writes need it; recall must start without

    return sha256("\n".join(f"{id_} {version}" for id_, version in sorted(versions)).encode()).hexdigest()


class Delete(Value):
    """Erase records irreversibly: rows, versions, index, vectors, and what was derived from them alone."""

    where: Filter
    emit: EventKind | None = None  #: record this event for each of them


class MarkConsolidated(Value):
    """Mark records as consolidated, or remove the mark."""

    ids: tuple[str, ...]
    at: datetime | None  #: None: remove the mark


class Touch(Value):
    """Count a recall of each record.  No version changes; the count may be lost in a power cut."""

    ids: tuple[str, ...]
    at: datetime


class Trim(Value):
    """Erase all but ``keep`` of the matching records, first in ``order`` first.  Pinned ones count and stay."""

    where: Filter
    keep: int
    order: Order
    spare: tuple[str, ...] = ()  #: ids that count and stay as well, such as the records just written
    emit: bool = False  #: record an event for each of them


class Cap(Value):
    """Continue only if no more records match than these limits; else raise ``CapacityExceeded``."""

    where: Filter
    below: tuple[Scope, ...] = ()  #: also count these scopes and all below them, new ones too
    max_records: int | None = None
    max_bytes: int | None = None  #: of their contents


class Emit(Value):
    """Record an event that no other change records."""

    event: Event


class Audit(Value):
    """Name the act that this transaction is in the audit log: every record it changes is noted under this verb.

    Without records there is one entry: an export changes nothing.
    """

    verb: str


class TrimEvents(Value):
    """Erase events from before a moment, earliest first, at most ``limit`` at once; archives stay.

    The order is that of the event numbers, not of the clocks: an event with a smaller number than an old one is old.
    """

    before: datetime
    limit: int  #: events to look at


class DropScope(Value):
    """Erase a scope with everything in it and below it."""

    scope: Scope


class SetVectors(Value):
    """Store missing vectors; a text that was changed or deleted meanwhile gets none.

    Vectors of the store's embedder fill gaps; a store without one adopts this one.  Those of another embedder are kept
    apart from the ones in use, and replace those of a third.
    """

    identity: EmbedderIdentity
    vectors: Mapping[str, Vector]  #: by ``UnembeddedText.ref``


class SwitchEmbedder(Value):
    """Replace the vectors in use by those of the new embedder.

    Raises ``Conflict`` while any text lacks its vector; then nothing changes.
    """

    identity: EmbedderIdentity


class AdoptEmbedder(Value):
    """Set the embedder of the store's vectors; the first one stays."""

    identity: EmbedderIdentity


class PutDocument(Value):
    """Store a document with its chunks; it replaces the one of the same name."""

    document: Document
    chunks: tuple[Chunk, ...] = ()
    terms: tuple[Terms, ...] = ()  #: one for each chunk
    vectors: Mapping[int, Vector] = {}  #: by the chunk's seq


class AppendChunks(Value):
    """Append chunks to a document; ``document`` is its new state.

    Raises ``NotFound`` if there is no such document, ``Conflict`` if it has changed since it was read.
    """

    document: Document
    chunks: tuple[Chunk, ...]  #: numbered on from the last one
    terms: tuple[Terms, ...]  #: one for each chunk
    vectors: Mapping[int, Vector] = {}  #: by the chunk's seq
    expect_digest: str  #: of the document as it was read


class DeleteDocuments(Value):
    """Erase documents with their chunks."""

    where: DocumentFilter


class DeleteChunks(Value):
    """Erase some chunks of one document; the others keep their numbers."""

    document: Document  #: its new state
    seqs: frozenset[int]
    expect_digest: str  #: of the document as it was read; else ``Conflict``


class TrimDocuments(Value):
    """Erase all but the newest ``keep`` of the matching documents."""

    where: DocumentFilter
    keep: int


class PutFiles(Value):
    """Record what a mirrored folder now holds."""

    folder: str
    files: tuple[FileState, ...]


class DropFiles(Value):
    """Delete the state of these files of a mirrored folder."""

    folder: str
    paths: frozenset[str]


class FromCheckout(Value):
    """Say that a transaction is made from one folder of a scope, of which there may be several: clones, worktrees.

    The records that it changes are current in this folder.  In every other folder of the scope a record that it adds is
    hidden, and one that it changes stays as the folder's file shows it, until that folder is synced.
    """

    scope: Scope
    folder: str


class Enqueue(Value):
    """Queue a job: its watermark rises, its tries are reset.  It runs when a worker claims it."""

    job: Job
    force: bool = False  #: even if the watermark is not newer than the last success


class DeleteJobs(Value):
    """Erase jobs, whatever their state; the worker of one that runs has lost its lease."""

    scope: Scope
    keys: frozenset[str]


class Finish(Value):
    """Mark a claimed job as done.  A lost claim raises ``LeaseLost`` and undoes the whole ``apply``."""

    claim: Claim
    at: datetime | None = None  #: when it ended


class Fail(Value):
    """Mark a claimed job as failed: it may be claimed again from ``retry_at`` on, while tries are left."""

    claim: Claim
    error: str
    retry_at: datetime
    at: datetime | None = None  #: when it ended


class Heartbeat(Value):
    """Extend the lease of a claim."""

    claim: Claim
    until: datetime


class PutTombstones(Value):
    """Store tombstones; one that is stored already stays as it is."""

    tombstones: tuple[Tombstone, ...]


class LiftTombstones(Value):
    """Erase the tombstones that have one of these digests, owners or erasures."""

    digests: frozenset[str] = frozenset()
    owners: frozenset[str] = frozenset()
    erasures: frozenset[str] = frozenset()


class RequireUnerased(Value):
    """Continue only if none of these digests has a tombstone; else raise ``ErasedBefore``."""

    digests: frozenset[str]


Change: TypeAlias = (
    Put
    | Load
    | Archive
    | Restore
    | Supersede
    | Require
    | Delete
    | MarkConsolidated
    | Touch
    | Trim
    | Cap
    | Emit
    | Audit
    | TrimEvents
    | DropScope
    | SetVectors
    | SwitchEmbedder
    | AdoptEmbedder
    | PutDocument
    | AppendChunks
    | DeleteDocuments
    | DeleteChunks
    | TrimDocuments
    | PutFiles
    | DropFiles
    | FromCheckout
    | Enqueue
    | Finish
    | Fail
    | Heartbeat
    | DeleteJobs
    | PutTombstones
    | LiftTombstones
    | RequireUnerased
)


class Outcome(Value):
    """What one change did."""

    records: tuple[
        Record, ...
    ] = ()  #: as they are now, of those that changed (for a dropped write: the one that is there)
    gone: tuple[str, ...] = ()  #: ids that were erased
    deduped: bool = False  #: the write was dropped: a live record says the same
    erasing: bool = False  #: no answer holds it any more, but an open reader keeps the old bytes in the log for now
    more: bool = False  #: there may be more of the same to erase

"""What the verbs that write return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from commonplace.model.records import Record
from commonplace.model.values import Value

if TYPE_CHECKING:  # no recall removes secrets
    from commonplace.redact.redaction import Finding


class WriteResult(Value):
    """The result of a write."""

    record: Record
    deduped: bool = False  #: a live record had the same text and is returned instead
    redactions: tuple[Finding, ...] = ()  #: secrets that were removed before anything was written
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences
    superseded: Record | None = None  #: the record whose validity was closed
    held_for: str | None = None  #: the id of the record that would be changed: ``record`` is a proposal for review


class IndexResult(Value):
    """The result of indexing a session or a ticket."""

    redactions: tuple[Finding, ...] = ()  #: secrets that were removed before anything was written
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences


class ForgetResult(Value):
    """The result of erasing records."""

    ids: tuple[str, ...]  #: the record, and what was derived from it alone
    pending: bool = False  #: gone from every answer, but a reader still holds old bytes of the file; tried again later
    receipt: str | None = None  #: the receipt, where a tombstone was left
    held: Record | None = None  #: the proposal that waits for review; then nothing was erased
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences


class BulkResult(Value):
    """The result of writing many records: one result for each that was given and not refused, in order."""

    results: tuple[WriteResult, ...]
    refused: tuple[str, ...] = ()  #: why the others were, each with its place, as sentences
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences

    @property
    def added(self) -> int:
        """How many are new."""
        return sum(not one.deduped for one in self.results)

    @property
    def duplicates(self) -> int:
        """How many were there already."""
        return len(self.results) - self.added

    def __iter__(self) -> Iterator[WriteResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> WriteResult:
        return self.results[index]


class LearnResult(Value):
    """The result of learning from messages."""

    records: tuple[Record, ...]  #: that were added, live or held for review
    known: tuple[str, ...] = ()  #: ids of records that say the same already
    replaced: tuple[str, ...] = ()  #: ids of records whose validity ends
    left_out: tuple[str, ...] = ()  #: why, for each statement that came to nothing
    redactions: tuple[Finding, ...] = ()  #: secrets that were removed before anything was written
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

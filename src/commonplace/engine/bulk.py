"""Many writes at once: ``remember_many``, which writes in batches, and a transaction, which writes all or nothing.

Both check everything before the first write, and embed the texts of a batch together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.arguments import NewRecord, to_changes, to_new_draft
from commonplace.engine.edits import edit_record, outranks, readmit
from commonplace.engine.results import BulkResult, WriteResult
from commonplace.engine.writer import trims
from commonplace.model.changes import Archive, Change, Outcome
from commonplace.model.errors import Forbidden, InvalidInput, StoreError
from commonplace.model.records import Draft, Record

if TYPE_CHECKING:
    from commonplace.engine.admission import Admitted
    from commonplace.engine.memory import Memory

BATCH = 500  # records of one transaction: enough to embed together, few to lose to a power cut
SHOWN = 5  # of what is wrong, in one error


def remember_many(memory: Memory, records: Iterable[NewRecord], *, skip_invalid: bool) -> BulkResult:
    """Store many records; see ``Memory.remember_many``."""
    drafts, refused = _check_all(memory, records, skip_invalid=skip_invalid)
    results: list[WriteResult] = []
    notes: dict[str, None] = {}
    for batch in _batches(drafts):
        if isinstance(batch, Draft):
            results.append(memory._remember(batch))  # noqa: SLF001 - a key is looked up, record by record
            continue
        written = memory.writer.apply([admitted.put(dedupe=True) for admitted in batch])
        results += _results(written.outcomes, batch)
        notes |= dict.fromkeys(written.notes)
    if results:
        memory.writer.apply(_limits(memory, [one.record for one in results]))
    return BulkResult(results=tuple(results), refused=tuple(refused), notes=tuple(notes))


def _check_all(
    memory: Memory, records: Iterable[NewRecord], *, skip_invalid: bool
) -> tuple[list[Admitted | Draft], list[str]]:
    """Pass every record through the gate; returns what may be written, and why the others may not."""
    if isinstance(records, str | bytes) or not isinstance(records, Iterable):
        raise InvalidInput("records takes a list; write remember_many([text]) for a single one")
    passed: list[Admitted | Draft] = []
    refused: list[str] = []
    for number, item in enumerate(records):
        try:
            draft = to_new_draft(item, memory.binding)
            admitted = memory._admit(draft)  # noqa: SLF001 - one engine
            passed.append(admitted if draft.key is None else draft)
        except (InvalidInput, Forbidden, LookupError) as error:
            refused.append(f"record {number}: {error}")
    if refused and not skip_invalid:
        more = f"; and {len(refused) - SHOWN} more" if len(refused) > SHOWN else ""
        raise InvalidInput(f"nothing was stored: {'; '.join(refused[:SHOWN])}{more}")
    return passed, refused


def _batches(drafts: Iterable[Admitted | Draft]) -> Iterator[list[Admitted] | Draft]:
    """Yield records that are written together, and those with a key alone, in the order in which they were given."""
    batch: list[Admitted] = []
    for one in drafts:
        if isinstance(one, Draft):
            if batch:
                yield batch
            batch = []
            yield one
            continue
        batch.append(one)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _results(outcomes: Iterable[Outcome], given: Sequence[Admitted]) -> list[WriteResult]:
    return [
        WriteResult(
            record=outcome.records[0], deduped=outcome.deduped, redactions=admitted.redactions, notes=admitted.notes
        )
        for outcome, admitted in zip(outcomes, given, strict=False)
    ]


def _limits(memory: Memory, records: Iterable[Record]) -> list[Change]:
    """Return the changes that erase what is over the limits of the memory, once for each kind that was written."""
    places = {(record.scope, record.kind): record.updated_at for record in records}
    return [change for (scope, kind), now in places.items() for change in trims(memory.binding, scope, [kind], now)]


class Transaction:
    """Writes that are collected in a ``with`` block and made together at its end; after an error none is made.

    What is collected is not seen by reads of the memory until then.  ``result`` has the outcome afterwards.  A record
    that another process changes meanwhile raises ``Conflict``, and nothing is written.
    """

    def __init__(self, memory: Memory) -> None:
        self.result: BulkResult | None = None
        self._memory = memory
        self._changes: list[Change] = []
        self._puts: list[tuple[int, Admitted]] = []
        self._touched: set[str] = set()

    def remember(self, content: str = "", **fields: Any) -> Record:
        """Add a record, with the arguments of ``Memory.remember``; returns it as it will be unless it exists."""
        supersedes = fields.pop("supersedes", None)
        draft = to_new_draft({"content": content, **fields}, self._memory.binding)
        admitted = self._memory._admit(draft)  # noqa: SLF001 - one engine
        if supersedes is not None:
            from commonplace.model.changes import Supersede  # noqa: PLC0415 - few writes replace

            old, new = self._own(supersedes), admitted.record
            at = new.occurred_at or new.created_at
            self._changes.append(Supersede(id=old.id, by=new.id, at=at, now=new.created_at))
            return self._put(admitted, dedupe=False)
        if draft.key is None:
            return self._put(admitted, dedupe=True)
        if f"key {draft.key}" in self._touched:
            raise InvalidInput(f"the key {draft.key!r} is written twice in one transaction; write it once")
        self._touched.add(f"key {draft.key}")
        holder = self._memory._holder(admitted.record)  # noqa: SLF001 - one engine
        return self._put(admitted, dedupe=False) if holder is None else self._next(self._own(holder.id), admitted)

    def update(self, id: str, **fields: Any) -> Record:
        """Change fields of a record, with the arguments of ``Memory.update``; returns it as it will be."""
        before = self._own(id)
        expect = fields.pop("expect", None)
        if expect not in (None, before.version):
            raise InvalidInput(f"record {before.id!r} is at version {before.version}, not {expect}")
        after = edit_record(self._memory, before, to_changes(fields))
        return self._next(before, readmit(self._memory, after, before))

    def archive(self, id: str) -> None:
        """Remove a record from recall without erasing it."""
        record = self._own(id)
        self._changes.append(Archive(where=self._memory._only(record), at=self._memory.clock()))  # noqa: SLF001

    def _own(self, id: str) -> Record:
        """Return a record that this transaction may change, and has not changed yet."""
        record = self._memory._writable(id)  # noqa: SLF001 - one engine
        if outranks(record, self._memory):
            raise Forbidden(f"record {record.id!r} is a person's; a change of it waits for review, outside of this")
        if record.id in self._touched:
            raise InvalidInput(f"record {record.id!r} is changed twice in one transaction; change it once")
        self._touched.add(record.id)
        return record

    def _next(self, before: Record, admitted: Admitted) -> Record:
        after = admitted.record.replace(id=before.id, created_at=before.created_at)
        return self._put(admitted.replace(record=after), dedupe=False, expect=before.version)

    def _put(self, admitted: Admitted, *, dedupe: bool, expect: int = 0) -> Record:
        self._puts.append((len(self._changes), admitted))
        self._changes.append(admitted.put(expect=expect, dedupe=dedupe))
        return admitted.record

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            self.commit()

    def commit(self) -> BulkResult:
        """Make all writes in one transaction; the ``with`` block does it."""
        if self.result is not None:
            raise StoreError("this transaction was made already; begin another one")
        limits = _limits(self._memory, [admitted.record for _, admitted in self._puts])
        written = self._memory.writer.apply([*self._changes, *limits])
        outcomes = [written.outcomes[at] for at, _ in self._puts]
        results = _results(outcomes, [admitted for _, admitted in self._puts])
        self.result = BulkResult(results=tuple(results), notes=written.notes)
        return self.result

"""Carry records between stores and files: every export, import and migration is one stream of items.

A source yields items one at a time: a store, the lines of an export, the entries of another tool's file.  A sink takes
them in batches.  An import reads its source to the end before it writes: one bad line, and nothing is written.  What it
has read waits in a temporary file, so memory stays flat however long the source is.  Repeating a transfer changes
nothing.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from itertools import islice
from tempfile import SpooledTemporaryFile
from typing import Any, TypeAlias, TypeVar

from commonplace.engine.admission import Gate, check_fits_file, check_scope, search_terms, secret_name, tag_personal
from commonplace.engine.embedding import catch_up, check_embedder
from commonplace.engine.memory import Memory
from commonplace.engine.replacing import changes_for
from commonplace.engine.tombstones import refusal_notes, without_erased_records
from commonplace.engine.writer import UNEMBEDDED, Writer, trims
from commonplace.model.changes import Audit, Load, Put
from commonplace.model.errors import (
    Conflict,
    DimensionMismatch,
    EmbeddingModelChanged,
    Forbidden,
    InvalidInput,
    ProviderError,
    StoreError,
)
from commonplace.model.items import Item, ItemCopier, digest
from commonplace.model.ports import ProgressCallback, Store, no_progress
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Draft, Record
from commonplace.model.scopes import Scope
from commonplace.model.tombstones import Tombstone
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.cleaning import one_line, slug

ALL = -1
BATCH = 500  # records read or written at a time
MOVED_BATCH = 100  # items of one transaction of a migration: little is repeated after an interruption
SPOOL_BYTES = 4 * 1024 * 1024  # of what waits to be written; beyond that it waits on disk
SHOWN = 20  # reasons in one error
T = TypeVar("T")


class Arrival(Value):
    """A new record that a file brings."""

    place: str  #: where it stands in its file: errors begin with it
    draft: Draft  #: with a ``ref``: it comes in once, however the record is changed afterwards
    created_at: datetime | None = None  #: None, or a date to come: now
    consolidated_at: datetime | None = None


class History(Value):
    """A record with its earlier versions, which keeps its id, its dates and its use."""

    place: str  #: where it stands in its file
    versions: tuple[Record, ...]  #: oldest first; the last one is the present


class Unreadable(Value):
    """A place of a file that holds nothing that could be read."""

    place: str
    reason: str


Incoming: TypeAlias = Arrival | History | Unreadable


class ImportResult(Value):
    """The result of an import."""

    added: int = 0
    duplicates: int = 0  #: in the store already, as new or newer
    blank: int = 0  #: entries without content
    left_out: tuple[str, ...] = ()  #: the reason for each that was refused
    evicted: int = 0  #: over the limit of their kind, oldest first
    redactions: tuple[Finding, ...] = ()
    erased: int = 0  #: left out, because a person has erased them
    refusals: tuple[str, ...] = ()  #: the same as a sentence
    unembedded: str | None = None  #: why some have no vector yet

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know besides, as sentences."""
        return (*self.refusals, *((f"{UNEMBEDDED}: {self.unembedded}",) if self.unembedded else ()))


def histories(store: Store, scopes: frozenset[Scope], *, now: datetime) -> Iterator[tuple[Record, ...]]:
    """Yield every record of some scopes in the order of their ids, each with its versions, oldest first."""
    where = Filter(scopes=scopes, at=now, states=ANY_STATE)
    while page := store.find(where, order=Order.ID, limit=BATCH):
        versions: dict[str, list[Record]] = {record.id: [record] for record in page}
        changed = frozenset(record.id for record in page if record.version > 1)
        earlier = where.replace(after=None, ids=changed, versions=True)
        for version in store.find(earlier, order=Order.ID, limit=ALL) if changed else ():
            if version.version < versions[version.id][0].version:
                versions[version.id].append(version)
        yield from (tuple(sorted(found, key=lambda one: one.version)) for found in versions.values())
        where = where.replace(after=page[-1].id)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield items in lists of that size; the last one may be shorter."""
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def parse_json(text: str, place: str) -> Any:
    """Return what a text holds as JSON; raise ``InvalidInput`` naming its place.  NaN and infinity are no JSON."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{place}: not JSON: {error}") from error
    except RecursionError:
        raise InvalidInput(f"{place}: not JSON: it is nested too deeply") from None


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number")


# Into a store through the gate


def import_items(
    memory: Memory,
    items: Iterable[Incoming],
    *,
    into: Scope | None = None,
    lenient: bool = False,
    strict: bool = False,
    progress: ProgressCallback = no_progress,
) -> ImportResult:
    """Write what a source yields, all of it or nothing; ``into``: everything goes to that scope.

    ``lenient`` leaves out an entry that the gate refuses, with its reason; else it refuses the whole source.
    ``strict`` reads all of it, and then refuses it if there is a reason.
    """
    intake = _Intake(memory, into, lenient=lenient)
    writer = Writer(memory.store, clock=memory.clock, secret=memory.secret)  # vectors come last, all in one go
    with SpooledTemporaryFile(max_size=SPOOL_BYTES) as spool:
        for change in intake.changes(items):
            pickle.dump(change, spool, protocol=pickle.HIGHEST_PROTOCOL)
            intake.read += 1
        if strict and intake.left_out:
            more = len(intake.left_out) - SHOWN
            reasons = [*intake.left_out[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
            raise InvalidInput(f"nothing was imported: {'; '.join(reasons)}")
        spool.seek(0)
        waiting = (pickle.load(spool) for _ in range(intake.read))  # noqa: S301 - our own values, from our own file
        done = 0
        for batch in batches(waiting, BATCH):
            wanted, refused = without_erased_records(memory.store, batch, memory.secret())
            intake.erased += refused
            intake.present += sum(outcome.deduped for outcome in writer.apply([*wanted, Audit(verb="import")]).outcomes)
            done += len(batch)
            progress(done, intake.read)
    _close_replaced(memory, writer, intake.arrived)
    now, written = memory.clock(), memory.binding.writes.items()
    limits = [change for kind, scope in written for change in trims(memory.binding, scope, [kind], now)]
    evicted = sum(len(outcome.gone) for outcome in writer.apply(limits).outcomes)
    return intake.report().replace(evicted=evicted, unembedded=_embed(memory, progress))


def _close_replaced(memory: Memory, writer: Writer, arrived: Mapping[str, Scope]) -> None:
    """Close what new records contradict, here or among themselves; a record of a person's waits for one."""
    changes = changes_for(memory.store, set(arrived.values()), arrived, now=memory.clock()) if arrived else []
    for batch in batches(changes, BATCH):
        writer.apply(batch)


class _Intake:
    """The gate of one import: what passes becomes a change, what does not is counted."""

    def __init__(self, memory: Memory, into: Scope | None, *, lenient: bool) -> None:
        self._memory, self._into, self._lenient = memory, into, lenient
        self._gate = Gate(memory.secret())
        self.read = self.present = self.blank = self.repeated = 0
        self.left_out: list[str] = []
        self.arrived: dict[str, Scope] = {}  # new records and where they go
        self.erased: list[Tombstone] = []

    def report(self) -> ImportResult:
        """Return what was counted."""
        return ImportResult(
            added=self.read - self.present - len(self.erased), duplicates=self.present + self.repeated,
            blank=self.blank, left_out=tuple(self.left_out), redactions=tuple(self._gate.findings),
            erased=len(self.erased), refusals=refusal_notes(self.erased, "record"),
        )  # fmt: skip

    def changes(self, items: Iterable[Incoming]) -> Iterator[Put | Load]:
        """Yield the change that writes each item, unless there is nothing to write."""
        for batch in batches(items, BATCH):
            held = self._find_held([item.versions[-1].id for item in batch if isinstance(item, History)])
            yield from self._batch_changes(batch, held)

    def _find_held(self, ids: Iterable[str]) -> dict[str, Record]:
        """Return the records with these ids that are here already."""
        scopes, known = frozenset(self._memory.binding.reads), frozenset(ids)
        where = Filter(scopes=scopes, at=self._memory.clock(), states=ANY_STATE, ids=known)
        found = self._memory.store.find(where, order=Order.ID, limit=ALL) if known else ()
        return {record.id: record for record in found}

    def _batch_changes(self, items: Iterable[Incoming], held: Mapping[str, Record]) -> Iterator[Put | Load]:
        for item in items:
            if isinstance(item, Unreadable):
                self.left_out.append(f"{item.place}: {item.reason}")
            elif isinstance(item, History):
                present = item.versions[-1]
                here = held.get(present.id, present)
                if present.trust < here.trust and present.version > here.version:
                    self.left_out.append(f"{item.place}: record {present.short} is here, and is trusted more")
                    continue
                yield self._load(item)
            elif not item.draft.content.strip() and not self._lenient:
                self.blank += 1
            elif self._is_known(item.draft):
                self.repeated += 1
            elif put := self._put(item):
                yield put

    def _is_known(self, draft: Draft) -> bool:
        """Whether a new record came in before, or its key has the same words."""
        if draft.ref is not None and draft.ref in self._known_refs:
            return True
        return draft.key is not None and self._known_keys.get(draft.key) == draft.content.strip()

    @cached_property
    def _known_refs(self) -> set[str | None]:
        """Return the references that came in before, also those of records that were edited or archived since."""
        scopes = frozenset({self._into} if self._into else self._memory.binding.writes.values())
        found = histories(self._memory.store, scopes, now=self._memory.clock())
        return {version.source.ref for versions in found for version in versions}

    @cached_property
    def _known_keys(self) -> dict[str, str]:
        """Return what the live records with a key say, and those that this import brings."""
        scopes = frozenset({self._into} if self._into else self._memory.binding.writes.values())
        where = Filter(scopes=scopes, at=self._memory.clock())
        found = self._memory.store.find(where, order=Order.ID, limit=ALL)
        return {record.key: record.content for record in found if record.key}

    def _put(self, item: Arrival) -> Put | None:
        draft = item.draft.replace(scope=self._into)
        if draft.key is not None and draft.key in self._known_keys:
            self.left_out.append(f"{item.place}: another record has the key {draft.key!r}")
            return None
        try:
            passed = self._memory.writer.admit(draft, self._memory.binding)
        except (InvalidInput, Forbidden) as error:
            if self._lenient and isinstance(error, InvalidInput):
                self.left_out.append(f"{item.place}: {error}")
                return None
            raise InvalidInput(f"{item.place}: {error}") from error
        if draft.ref is not None:
            self._known_refs.add(draft.ref)
        if draft.key is not None:
            self._known_keys[draft.key] = passed.record.content
        self._gate.findings += passed.redactions
        # A date to come would be the newest for ever, and would never be evicted.
        created = min(item.created_at or passed.record.created_at, passed.record.created_at)
        record = passed.record.replace(created_at=created, consolidated_at=item.consolidated_at)
        self.arrived[record.id] = record.scope
        return Put(record=record, terms=passed.terms, dedupe=True)

    def _load(self, item: History) -> Load:
        scope = self._into or item.versions[-1].scope
        if not self._memory.binding.may_write(scope):
            raise Forbidden(f"{item.place}: holds a record of {scope}, which is not kept here; use --scope to place it")
        try:
            passed = tuple(self._admit_version(version, scope) for version in item.versions)
        except InvalidInput as error:
            raise InvalidInput(f"{item.place}: not a record: {error}") from error
        return Load(versions=passed, terms=tuple(search_terms(version) for version in passed))

    def _admit_version(self, record: Record, scope: Scope) -> Record:
        """Return a version as the gate lets it through; one that was clean when it was exported stays as it is."""
        gate = Gate(self._memory.secret(), personal=self._memory.binding.personal.get(scope, "allow"))
        source, key = record.source, record.key
        metadata = gate.json(dict(record.metadata), what="the metadata")
        content = gate.text(record.content, what="the content", name=secret_name(key, record.content))
        if not content:
            raise InvalidInput("the content is blank")
        passed = record.replace(
            scope=check_scope(scope),
            category=self._category(record.category),
            content=content,
            key=None if key is None else one_line(gate.text(key, what="the key")) or None,
            value=gate.json(record.value, what="the value", name=secret_name(key, record.value)),
            tags=frozenset(gate.text(tag, what="a tag") for tag in record.tags if tag.strip()),
            metadata=metadata if isinstance(metadata, dict) else {},
            source=source.replace(ref=None if source.ref is None else gate.text(source.ref, what="the reference")),
        )
        passed = tag_personal(passed, gate.personal)
        check_fits_file(passed)
        self._gate.findings += gate.findings
        return passed

    def _category(self, category: str) -> str:
        """Return a category; one that holds a secret becomes the slug of what is left."""
        kept = self._gate.text(category, what="the category")
        return category if kept == category else slug(kept)


def _embed(memory: Memory, progress: ProgressCallback) -> str | None:
    """Embed what came in; return why it has no vectors, if that fails: words find it until then."""
    try:
        if memory.embedder and memory.store.count_unembedded(memory.embedder.identity):
            check_embedder(memory.store, memory.embedder)
            catch_up(memory.store, memory.embedder, progress=progress)
    except (ProviderError, EmbeddingModelChanged, DimensionMismatch) as error:
        return str(error)
    return None


# From store to store


class MigrationResult(Value):
    """The result of a migration."""

    items: int  #: that both hold now
    written: int  #: of them, by this run
    erased: int  #: that only the target had
    records: int
    digest: str  #: of everything that both hold


def migrate(
    source: ItemCopier, target: ItemCopier, *, replace: bool = False, progress: ProgressCallback = no_progress
) -> MigrationResult:
    """Make the target hold exactly what the source holds, and compare both as a whole.

    Both are read in one order, side by side.  What the target lacks or has otherwise is written, what only the target
    has is erased; so an interrupted migration is resumed by running it again.  Others may use the source meanwhile: one
    state of it is carried.  A target with other content is refused unless it may be replaced.
    """
    if source.name == target.name:
        raise InvalidInput(f"{source.name!r} cannot be moved to itself")
    _check_free(source, target, replace=replace)
    written = erased = 0
    with source.reading() as items:
        seen = _CountedItems(items, progress, source.count())
        for batch in batches(_differences(iter(seen), target.items()), MOVED_BATCH):
            new, gone = [ours for ours, _ in batch if ours], [theirs for ours, theirs in batch if theirs and not ours]
            target.write(new, gone=gone, copy_source=source.name)
            written, erased = written + len(new), erased + len(gone)
    if digest(target.items()) != seen.digest:
        raise StoreError(
            f"{target.name!r} does not hold what {source.name!r} held: another process wrote to it. Run it again."
        )
    target.write([], copy_source=None)
    return MigrationResult(items=seen.items, written=written, erased=erased, records=seen.records, digest=seen.digest)


def _check_free(source: ItemCopier, target: ItemCopier, *, replace: bool) -> None:
    if replace or target.copy_source() == source.name or not target.count():
        target.write([], copy_source=source.name)
        return
    with source.reading() as items:
        if digest(items) == digest(target.items()):  # it was moved before
            return
    raise Conflict(f"{target.name!r} holds something else already; nothing was moved")


class _CountedItems:
    """The items of a source, counted and hashed as they pass."""

    def __init__(self, items: Iterator[Item], progress: ProgressCallback, of: int) -> None:
        self._items, self._progress, self._of = items, progress, of
        self._whole = sha256()
        self.items = self.records = 0

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self._whole.update(sha256(item.encoded).digest())
            self.items += 1
            self.records += item.sort == "record"
            self._progress(self.items, self._of)
            yield item

    @property
    def digest(self) -> str:
        """Everything that passed, in one number."""
        return self._whole.hexdigest()


def _differences(ours: Iterator[Item], theirs: Iterator[Item]) -> Iterator[tuple[Item | None, Item | None]]:
    """Yield what two stores have at the same place where it is not the same; None: one has nothing there."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.place < other.place):
            yield one, None
            one = next(ours, None)
        elif one is None or other.place < one.place:
            yield None, other
            other = next(theirs, None)
        else:
            if one.encoded != other.encoded:
                yield one, other
            one, other = next(ours, None), next(theirs, None)

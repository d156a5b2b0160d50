"""Erasure on a person's request: what is meant, what follows from it, the tombstones, the receipt.

``select`` follows provenance from what is named to everything made of it: a session's turns to the records, notes and
artifacts that were learned from them, a source to the records that came from it.  A record with another origin besides
stays, without what it had from the erased one.  ``carry_out`` erases in one transaction and leaves tombstones and a
receipt, both without content.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from commonplace.engine.forgetting import EVERYTHING, Erasure, Removal, RemovedTurns, erase, with_derived
from commonplace.engine.tombstones import (
    INDEXED,
    Burial,
    document_digest,
    normal_form,
    record_digests,
    repeats_turn,
)
from commonplace.model.changes import Change, DropFiles, PutDocument, PutTombstones
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.ids import new_id
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import CEILING, Channel, Json, Record, Source
from commonplace.model.scopes import Scope
from commonplace.model.tombstones import Tombstone
from commonplace.model.values import Value
from commonplace.text.cleaning import plural
from commonplace.text.words import plan, terms

if TYPE_CHECKING:
    from commonplace.model.ports import Store

RECEIPT = "erasure/"  # what the names of receipts begin with
LOOKED_UP = 64  # records with the same words that are compared with an erased text
LOOKED_UP_WORDS = 8
#: What a record has from the place that it was learned from, besides its text.
LEARNED_FIELDS = ("quote", "evidence")


class Target(Value):
    """What a person wants erased."""

    ids: frozenset[str] = frozenset()  #: of records
    sessions: frozenset[str] = frozenset()  #: names of sessions and tickets
    turns: frozenset[str] = frozenset()  #: such as ``session:0b1c#4``
    sources: frozenset[str] = frozenset()  #: files, addresses, channels, hosts
    subjects: tuple[frozenset[str], ...] = ()  #: the terms of each
    texts: frozenset[str] = frozenset()  #: of records, in normal form
    keep_approved: bool = False  #: records that a person wrote or approved stay, without what they had from a session


class ErasureReceipt(Value):
    """Proof of an erasure, without a word of what was erased."""

    id: str
    at: datetime
    by: str
    records: tuple[str, ...] = ()  #: ids
    counts: Mapping[str, int] = {}  #: of each sort of thing
    digests: tuple[str, ...] = ()  #: of the texts and names, under the key of the data folder
    pending: bool = False  #: gone from every answer, but a reader still holds old bytes of the file


# What is meant


def select(store: Store, target: Target, scopes: Collection[Scope], now: datetime) -> Removal:
    """Return what a target means in some scopes, with everything that was made of it."""
    sought = _Selection(store, target, frozenset(scopes), now)
    documents, turns = sought.documents(), sought.turns()
    led = _Origins(documents, turns)
    records, rewritten = sought.records(led)
    chunks = (*sought.chunks_of(documents), *(chunk for one in turns for chunk in one.chunks))
    texts = (*(chunk.text for chunk in chunks), *sought.lost)
    return Removal(
        records=tuple(records), rewritten=tuple(rewritten), documents=tuple(documents), turns=tuple(turns),
        texts=texts, subjects=target.subjects,
    )  # fmt: skip


class _Origins:
    """The sessions and turns that go, as the origin of records."""

    def __init__(self, documents: Iterable[Document], turns: Iterable[RemovedTurns]) -> None:
        self._whole = {f"{one.kind}:{one.name}" for one in documents}
        self._turns = {f"{chunk.id.partition('#')[0]}#{_turn(chunk)}" for one in turns for chunk in one.chunks}

    def led_to(self, ref: str | None) -> bool:
        """Whether a reference leads into them."""
        if not ref:
            return False
        document, _, turn = ref.rpartition("#") if "#" in ref else (ref, "", "")
        return document in self._whole or f"{document}#{turn.partition('.')[0]}" in self._turns


class _Selection:
    """One look at a store."""

    def __init__(self, store: Store, target: Target, scopes: frozenset[Scope], now: datetime) -> None:
        self._store, self._target, self._scopes = store, target, scopes
        self._where = Filter(scopes=scopes, at=now, states=ANY_STATE)
        indexed = DocumentFilter(scopes=scopes, kinds=frozenset(kind.value for kind in INDEXED))
        self._indexed = store.documents(indexed, limit=EVERYTHING)
        self._whole: list[Document] = []
        self.lost: list[str] = []  #: texts of versions that go while their record stays

    # Sessions and tickets

    def documents(self) -> list[Document]:
        """Return the sessions and tickets that go whole."""
        target = self._target
        self._whole = [
            one for one in self._indexed
            if one.name in target.sessions or f"{one.kind}:{one.name}" in target.sessions
            or target.sources & document_sources(one)
        ]  # fmt: skip
        return self._whole

    def turns(self) -> list[RemovedTurns]:
        """Return the turns that go of the others; a document of which no turn is left goes whole."""
        if not (self._target.turns or self._target.subjects):
            return []
        found: list[RemovedTurns] = []
        for document in [one for one in self._indexed if one not in self._whole]:
            chunks = self.chunks_of([document])
            meant = {_turn(chunk) for chunk in chunks if self._is_meant(chunk)}
            meant |= self._turns_on_subject(chunks)
            gone = tuple(chunk for chunk in chunks if _turn(chunk) in meant)
            if gone and len(gone) == len(chunks):
                self._whole.append(document)
            elif gone:
                found.append(RemovedTurns(document=document, chunks=gone))
        return found

    def _is_meant(self, chunk: Chunk) -> bool:
        return bool(self._target.turns & {chunk.id, f"{chunk.id.partition('#')[0]}#{_turn(chunk)}"})

    def _turns_on_subject(self, chunks: Iterable[Chunk]) -> set[str]:
        if not self._target.subjects:
            return set()
        said: dict[str, set[str]] = {}
        for chunk in chunks:
            said.setdefault(_turn(chunk), set()).update(terms(chunk.text))
        return {turn for turn, words in said.items() if _speaks(words, self._target.subjects)}

    def chunks_of(self, documents: Iterable[Document]) -> list[Chunk]:
        """Return the chunks of some documents."""
        return [chunk for one in documents for chunk in self._store.chunks(_only(one), limit=EVERYTHING)]

    # Records

    def records(self, led: _Origins) -> tuple[list[Record], list[tuple[Record, ...]]]:
        """Return the records that go, and those that stay with what is left of their versions."""
        others = self._other_origins(led)
        gone: list[Record] = []
        rewritten: list[tuple[Record, ...]] = []
        for versions in self._histories():
            left = self._left_of(versions, led, others.get(versions[-1].id, False))
            if left is None:
                gone.append(versions[-1])
            elif left != versions:
                rewritten.append(left)
        ids = with_derived(self._store, frozenset(one.id for one in gone), self._where) if gone else frozenset()
        return gone, [versions for versions in rewritten if versions[-1].id not in ids]

    def _histories(self) -> Iterator[tuple[Record, ...]]:
        """Yield each record with its versions, oldest first."""
        found: dict[str, list[Record]] = {}
        where = self._where.replace(versions=True)
        if not (self._target.replace(ids=frozenset()) != Target() or self._whole):  # ids alone need no look at others
            where = where.replace(ids=self._target.ids)
        for version in self._store.find(where, order=Order.ID, limit=EVERYTHING):
            found.setdefault(version.id, []).append(version)
        yield from (tuple(sorted(versions, key=lambda one: one.version)) for versions in found.values())

    def _other_origins(self, led: _Origins) -> Mapping[str, bool]:
        """Return the records that a session which stays has told as well."""
        where = DocumentFilter(scopes=self._scopes, kinds=frozenset({DocumentKind.EXTRACTION.value}))
        found: dict[str, bool] = {}
        for one in self._store.documents(where, limit=EVERYTHING):
            listed = one.metadata.get("records")
            if not led.led_to(f"{DocumentKind.SESSION}:{one.name}") and isinstance(listed, list):
                found |= dict.fromkeys(map(str, listed), True)
        return found

    def _left_of(self, versions: tuple[Record, ...], led: _Origins, elsewhere: bool) -> tuple[Record, ...] | None:
        """Return what is left of a record; None: nothing."""
        present = versions[-1]
        if self._is_named(present):
            return None
        refs = _origins_of(present)
        kept = elsewhere or (self._target.keep_approved and present.has_authority)
        if led.led_to(present.source.ref) and all(map(led.led_to, refs)) and not kept:
            return None
        staying = [one for one in versions if self._stays(one, present, led)]
        self.lost += [one.content for one in versions if one not in staying]
        cleaned = tuple(_without_origins(one, led) for one in staying)
        if cleaned == versions:
            return versions
        last = cleaned[-1].replace(version=present.version + 1)  # a new version: the store takes no older one
        return (*cleaned[:-1], last)

    def _is_named(self, record: Record) -> bool:
        target = self._target
        return (
            record.id in target.ids
            or bool(target.texts and normal_form(record.content) in target.texts)
            or bool(target.sources & record_sources(record))
            or bool(target.subjects and _speaks(record_terms(record), target.subjects))
        )

    def _stays(self, version: Record, present: Record, led: _Origins) -> bool:
        """Whether an earlier version stays: its words are not those of what goes."""
        if version is present:
            return True
        foreign = led.led_to(version.source.ref) and not led.led_to(present.source.ref)
        return not foreign and not self._is_named(version.replace(id=present.id))


def _turn(chunk: Chunk) -> str:
    """The turn that a chunk is a piece of."""
    return chunk.ref.partition(".")[0]


def _only(document: Document) -> DocumentFilter:
    kinds, names = frozenset({document.kind.value}), frozenset({document.name})
    return DocumentFilter(scopes=frozenset({document.scope}), kinds=kinds, names=names)


def _speaks(words: Collection[str], subjects: Iterable[frozenset[str]]) -> bool:
    return any(subject <= set(words) for subject in subjects)


def _origins_of(record: Record) -> list[str]:
    evidence = record.metadata.get("evidence")
    listed = [str(one) for one in evidence] if isinstance(evidence, list) else []
    return [*([record.source.ref] if record.source.ref else []), *listed]


def _without_origins(record: Record, led: _Origins) -> Record:
    """Return a record without what it had from a place that goes: the quote, the evidence, the reference."""
    origins = _origins_of(record)
    left = [ref for ref in dict.fromkeys(origins) if not led.led_to(ref)]
    if len(left) == len(dict.fromkeys(origins)):
        return record
    metadata: dict[str, Json] = {name: item for name, item in record.metadata.items() if name not in LEARNED_FIELDS}
    if left and "evidence" in record.metadata:
        metadata["evidence"] = list[Json](left)
    source = record.source
    ref = next(iter(left), None) if led.led_to(source.ref) else source.ref
    return record.replace(metadata=metadata, source=source.replace(ref=ref))


def record_terms(record: Record) -> set[str]:
    """Return every term that a record says anywhere: its text, its names, its quote."""
    texts = [record.content, record.key or "", *record.tags, _texts(record.value), _texts(record.metadata)]
    return set(terms("\n".join(texts)))


def _texts(value: Any) -> str:
    if isinstance(value, str):
        return value
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return "\n".join(filter(None, map(_texts, inside)))


def record_sources(record: Record) -> frozenset[str]:
    """Return the names of where a record came from: its channel, its reference, its file."""
    ref, file = record.source.ref or "", record.metadata.get("file")
    names = {record.source.channel.value, ref, ref.partition("#")[0], file if isinstance(file, str) else ""}
    return frozenset(names - {""})


def document_sources(document: Document) -> frozenset[str]:
    """Return the names of where a session or a ticket came from: its file, its host."""
    named = {document.metadata.get(name) for name in ("file", "host")} | {f"{document.kind}:{document.name}"}
    return frozenset(str(one) for one in named if one)


# Erasing


class Eraser:
    """Erases what was selected, as one caller may."""

    def __init__(
        self, store: Store, *, reads: Sequence[Scope], secret: Callable[[], bytes], clock: Callable[[], datetime],
        by: str,
    ) -> None:  # fmt: skip
        self._store, self._reads, self._secret, self._clock, self._by = store, tuple(reads), secret, clock, by

    def carry_out(self, removal: Removal, *, sources: Collection[str] = ()) -> tuple[ErasureReceipt, Erasure]:
        """Erase it in one transaction; return the receipt, and what files must no longer say."""
        now, scopes = self._clock(), {*self._reads, *removal.scopes}
        work = _Work(self._store, removal, now, scopes=scopes, secret=self._secret(), by=self._by)
        outcome, erasure = erase(
            self._store, removal, reads=self._reads, now=now, bury=lambda found: work.bury(found, sources)
        )
        receipt = work.receipt(outcome.gone)
        return receipt.replace(pending=outcome.erasing), erasure


class _Work:
    """One erasure: its tombstones and its receipt."""

    def __init__(
        self, store: Store, removal: Removal, now: datetime, *, scopes: Collection[Scope], secret: bytes, by: str
    ) -> None:
        self._store, self._removal, self._now, self._by = store, removal, now, by
        self._secret, self._scopes = secret, scopes
        self.id = new_id(now)
        self._digests: tuple[str, ...] = ()

    def bury(self, erasure: Erasure, sources: Collection[str]) -> list[Change]:
        """Return the changes that leave tombstones and the receipt."""
        removal = self._removal
        burial = Burial(self.id, at=self._now, scopes=self._scopes, secret=self._secret)
        versions = self._versions(erasure.ids)
        burial.records(versions, living=self._living(versions, erasure.ids))
        for document in removal.documents:
            burial.document(document)
            burial.turns(document, self._store.chunks(_only(document), limit=EVERYTHING))
        for turns in removal.turns:
            burial.turns(turns.document, turns.chunks)
        for ref in sources:
            burial.source(ref)
        self._digests = tuple(sorted({one.digest for one in burial.tombstones} - erasure.ids))
        receipt = receipt_document(self.receipt(sorted(erasure.ids)), min(removal.scopes, key=str))
        return [PutTombstones(tombstones=burial.tombstones), PutDocument(document=receipt)]

    def receipt(self, gone: Collection[str]) -> ErasureReceipt:
        """Return the receipt."""
        counts = {
            "records": len(gone),
            "rewritten records": len(self._removal.rewritten),
            "sessions": sum(one.kind is DocumentKind.SESSION for one in self._removal.documents),
            "tickets": sum(one.kind is DocumentKind.TICKET for one in self._removal.documents),
            "turns": len({(one.document.name, _turn(chunk)) for one in self._removal.turns for chunk in one.chunks}),
        }
        return ErasureReceipt(
            id=self.id, at=self._now, by=self._by, records=tuple(gone), digests=self._digests,
            counts={name: count for name, count in counts.items() if count},
        )  # fmt: skip

    def _versions(self, ids: frozenset[str]) -> list[Record]:
        scopes = frozenset(self._scopes)
        where = Filter(scopes=scopes, at=self._now, states=ANY_STATE, ids=ids, versions=True)
        return self._store.find(where, order=Order.ID, limit=EVERYTHING) if ids else []

    def _living(self, versions: Iterable[Record], gone: Collection[str]) -> set[tuple[Scope, str]]:
        """Return the erased texts that another record still says, by scope: there they stay sayable."""
        where = Filter(scopes=frozenset(self._scopes), at=self._now, states=ANY_STATE)
        found: set[tuple[Scope, str]] = set()
        for text in {normal_form(one.content) for one in versions}:
            words = sorted(plan(text).words, key=lambda word: len(word.text), reverse=True)[:LOOKED_UP_WORDS]
            query = plan(text).replace(words=tuple(words))
            same = [match.record for match in self._store.match(where, query, limit=LOOKED_UP) if match.record]
            found |= {(one.scope, text) for one in same if one.id not in gone and normal_form(one.content) == text}
        return found


def receipt_document(receipt: ErasureReceipt, scope: Scope) -> Document:
    """Return a receipt as it is stored."""
    metadata: dict[str, Json] = {
        "by": receipt.by, "records": list[Json](receipt.records), "counts": dict(receipt.counts),
        "digests": list[Json](receipt.digests),
    }  # fmt: skip
    return Document(
        scope=scope, kind=DocumentKind.ERASURE, name=f"{RECEIPT}{receipt.id}", digest=receipt.id, metadata=metadata,
        source=Source(channel=Channel.USER), trust=CEILING[Channel.USER], created_at=receipt.at, updated_at=receipt.at,
    )  # fmt: skip


def list_receipts(store: Store, scopes: Collection[Scope]) -> list[ErasureReceipt]:
    """Return the receipts of erasures in some scopes, newest first."""
    where = DocumentFilter(scopes=frozenset(scopes), kinds=frozenset({DocumentKind.ERASURE.value}))
    return [_to_receipt(one) for one in store.documents(where, limit=EVERYTHING)]


def _to_receipt(document: Document) -> ErasureReceipt:
    held: Any = document.metadata
    return ErasureReceipt(
        id=document.name.removeprefix(RECEIPT), at=document.created_at, by=held["by"], records=tuple(held["records"]),
        counts=held["counts"], digests=tuple(held["digests"]),
    )  # fmt: skip


def erased_texts(store: Store, removal: Removal, now: datetime) -> frozenset[str]:
    """Return the texts of the records that go, in normal form, of all their versions."""
    ids = frozenset(record.id for record in removal.records)
    where = Filter(scopes=removal.scopes, at=now, states=ANY_STATE, ids=ids, versions=True)
    found = store.find(where, order=Order.ID, limit=EVERYTHING) if ids else []
    return frozenset(normal_form(one.content) for one in found)


def revived(store: Store, scopes: Collection[Scope], secret: bytes, now: datetime) -> Target:
    """Return what a store holds although it was erased, as after a backup was restored."""
    left = {one.digest: one for one in store.tombstones()}
    if not left:
        return Target()
    where = Filter(scopes=frozenset(scopes), at=now, states=ANY_STATE, versions=True)
    found = store.find(where, order=Order.ID, limit=EVERYTHING)
    ids = {one.id for one in found if not record_digests([one], secret).isdisjoint(left)}
    sessions, turns = _revived_documents(store, scopes, left, secret)
    return Target(ids=frozenset(ids), sessions=sessions, turns=turns)


def _revived_documents(
    store: Store, scopes: Collection[Scope], left: Mapping[str, Tombstone], secret: bytes
) -> tuple[frozenset[str], frozenset[str]]:
    where = DocumentFilter(scopes=frozenset(scopes), kinds=frozenset(kind.value for kind in INDEXED))
    documents = store.documents(where, limit=EVERYTHING)
    whole = {one.name for one in documents if document_digest(one.scope, one.name, secret) in left}
    turns = {
        chunk.id for one in documents if one.name not in whole for chunk in store.chunks(_only(one), limit=EVERYTHING)
        if repeats_turn(chunk, secret, left)
    }  # fmt: skip
    return frozenset(whole), frozenset(turns)


# A backup that is restored


def read_erasures(store: Store) -> tuple[Change, ...]:
    """Return the changes that store every tombstone and receipt again, for a store that is about to be replaced."""
    scopes, kinds = frozenset(store.scopes()), frozenset({DocumentKind.ERASURE.value})
    receipts = store.documents(DocumentFilter(scopes=scopes, kinds=kinds), limit=EVERYTHING) if scopes else []
    return PutTombstones(tombstones=tuple(store.tombstones())), *(PutDocument(document=one) for one in receipts)


def drop_file_states(store: Store, names: frozenset[str]) -> None:
    """Forget where these records and artifacts had files: paths hold words, and what returns is no leftover."""
    for folder in store.mirrored_folders():
        paths = frozenset(one.path for one in store.files(folder, records=names))
        if paths:
            store.apply([DropFiles(folder=folder, paths=paths)])


def keep_erased(
    store: Store, erasures: Sequence[Change], *, secret: bytes, now: datetime
) -> tuple[int, Erasure | None, tuple[str, ...]]:
    """Erase what a restored backup has brought back; return how many records went, what files must not say, notes."""
    store.apply(erasures)
    scopes = store.scopes()
    target = revived(store, scopes, secret, now) if scopes else Target()
    if target == Target():
        return 0, None, ()
    removal = select(store, target, scopes, now)
    outcome, erasure = erase(store, removal, reads=scopes, now=now)
    drop_file_states(store, erasure.ids)
    said = [f"{plural(len(outcome.gone), 'record')}"] if outcome.gone else []
    said += [plural(len(removal.documents), "session")] if removal.documents else []
    said += [f"turns of {plural(len(removal.turns), 'session')}"] if removal.turns else []
    note = f"{', '.join(said)} of the backup not revived, because you have erased it since"
    return len(outcome.gone), erasure, (note,)

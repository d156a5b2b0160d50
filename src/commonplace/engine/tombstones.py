"""Recognise an old copy of what a person has erased, at every door.

A record is known by its id and by its text, a session by its name and by its turns, a source by its name.  Ids are
random and stand as they are; everything else is a digest under the key of the data folder, for one scope: so no word
can be guessed back, and what one memory has erased another one may still be given.

Only a person brings something back: by writing the same text again, or by ``commonplace forget --allow``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from commonplace.engine.rendering import keyed_digest
from commonplace.model.changes import AppendChunks, Change, Load, Put, PutDocument
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.records import Channel, Record
from commonplace.model.scopes import Scope
from commonplace.model.tombstones import BuriedKind, Tombstone
from commonplace.text.cleaning import plural

if TYPE_CHECKING:
    from commonplace.model.ports import Store

DIGEST_BYTES = 16
TURN_CHARS = 24  # of a turn at least to be recognised by its text alone: "yes, go on" is said in every session
INDEXED = frozenset({DocumentKind.SESSION, DocumentKind.TICKET})
W = TypeVar("W", Put, Load)


def normal_form(text: str) -> str:
    """Return a text without what makes no difference: spaces, capitals and the full stop."""
    return " ".join(text.split()).casefold().rstrip(".!")


# Digests


def text_digest(scope: Scope, text: str, secret: bytes) -> str:
    """Return what the text of a record is recognised by, in one scope."""
    return _digest(BuriedKind.TEXT, scope, normal_form(text), secret)


def document_digest(scope: Scope, name: str, secret: bytes) -> str:
    """Return what a session or a ticket is recognised by."""
    return _digest(BuriedKind.SESSION, scope, name, secret)


def turn_digest(scope: Scope, text: str, secret: bytes) -> str | None:
    """Return what a turn is recognised by, in whatever session; None for one that says too little."""
    plain = normal_form(text)
    return _digest(BuriedKind.TURN, scope, plain, secret) if len(plain) >= TURN_CHARS else None


def source_digest(scope: Scope, ref: str, secret: bytes) -> str:
    """Return what a source is recognised by: what stands before the ``#`` of a reference."""
    return _digest(BuriedKind.SOURCE, scope, ref.partition("#")[0], secret)


def _digest(kind: BuriedKind, scope: Scope, text: str, secret: bytes) -> str:
    return keyed_digest(f"{kind}\x1f{scope}\x1f{text}", secret, size=DIGEST_BYTES)


def record_digests(versions: Iterable[Record], secret: bytes) -> frozenset[str]:
    """Return everything that a record could be recognised by: its id, its texts and its sources."""
    found: set[str] = set()
    for record in versions:
        found |= {record.id, text_digest(record.scope, record.content, secret)}
        if record.source.ref and record.source.channel is not Channel.USER:
            found.add(source_digest(record.scope, record.source.ref, secret))
    return frozenset(found)


# At the writer


class WriteCheck:
    """What a transaction would store, by digests: what may have been erased, and what a person writes anew."""

    def __init__(self, changes: Iterable[Change], secret: bytes) -> None:
        self.others: set[str] = set()  #: of agents, imports, files, sessions: refused if they were erased
        self.typed: set[str] = set()  #: of a person: their word counts, and lifts the tombstone
        for change in changes:
            if isinstance(change, Put):
                record = change.record
                mine = self.typed if record.source.channel is Channel.USER else self.others
                mine.add(text_digest(record.scope, record.content, secret))
            elif isinstance(change, Load):
                self.others |= record_digests(change.versions, secret)
            elif isinstance(change, PutDocument | AppendChunks) and change.document.kind in INDEXED:
                self.others.add(document_digest(change.document.scope, change.document.name, secret))

    @property
    def digests(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self.others | self.typed)


# At the doors


def find_erased(store: Store, digests: Collection[str]) -> Mapping[str, Tombstone]:
    """Return the tombstones that these digests have, the latest of each."""
    return {one.digest: one for one in store.tombstones(digests)} if digests else {}


def record_erased(store: Store, versions: Sequence[Record], secret: bytes) -> Tombstone | None:
    """Return the tombstone of a record that comes from outside, by its id, a text or its source."""
    return next(iter(find_erased(store, record_digests(versions, secret)).values()), None)


def without_erased_records(store: Store, changes: Sequence[W], secret: bytes) -> tuple[list[W], list[Tombstone]]:
    """Return the changes that store nothing erased, and a tombstone for each of the others."""
    digests = [record_digests(_versions(change), secret) for change in changes]
    erased = find_erased(store, frozenset().union(*digests))
    left = [change for change, own in zip(changes, digests, strict=True) if own.isdisjoint(erased)]
    refused = [next(erased[one] for one in own if one in erased) for own in digests if not own.isdisjoint(erased)]
    return left, refused


def _versions(change: Put | Load) -> Sequence[Record]:
    return change.versions if isinstance(change, Load) else (change.record,)


def document_erased(store: Store, document: tuple[Scope, str], secret: bytes) -> Tombstone | None:
    """Return the tombstone of a session or a ticket, by its name."""
    digest = document_digest(*document, secret)
    return find_erased(store, [digest]).get(digest)


def without_erased_turns(
    store: Store, chunks: Sequence[Chunk], secret: bytes
) -> tuple[tuple[Chunk, ...], list[Tombstone]]:
    """Return the chunks that repeat no erased turn, and the tombstones of the others.

    A turn that was said after the erasure is a new one, whatever it repeats.
    """
    digests = (turn_digest(chunk.scope, chunk.text, secret) for chunk in chunks)
    erased = find_erased(store, frozenset(one for one in digests if one))
    if not erased:
        return tuple(chunks), []
    found = [repeats_turn(chunk, secret, erased) for chunk in chunks]
    left = tuple(chunk for chunk, tombstone in zip(chunks, found, strict=True) if tombstone is None)
    return left, [tombstone for tombstone in found if tombstone]


def repeats_turn(chunk: Chunk, secret: bytes, erased: Mapping[str, Tombstone]) -> Tombstone | None:
    """Return the tombstone of the turn that a chunk repeats, unless it was said since."""
    tombstone = erased.get(turn_digest(chunk.scope, chunk.text, secret) or "")
    said_since = tombstone is not None and chunk.occurred_at is not None and chunk.occurred_at > tombstone.at
    return None if said_since else tombstone


def refusal_notes(tombstones: Sequence[Tombstone], what: str) -> tuple[str, ...]:
    """Return one sentence on what was not revived, if anything was; ``what`` names one of it."""
    if not tombstones:
        return ()
    erasures = sorted({one.erasure for one in tombstones})
    shown, more = ", ".join(erasures[:2]), len(erasures) - 2
    others = f" and {plural(more, 'more erasure')}" if more > 0 else ""
    why = f"because you have erased it ({shown}{others})"
    way = f"`commonplace forget --allow {erasures[0]}` lets it come back"
    return (f"{plural(len(tombstones), what)} not revived, {why}; {way}",)


# What an erasure leaves


class Burial:
    """Makes the tombstones of one erasure."""

    def __init__(self, erasure: str, *, at: datetime, scopes: Collection[Scope], secret: bytes) -> None:
        """``scopes`` are the memories in which nothing of it comes back."""
        self.erasure, self.at = erasure, at
        self._scopes, self._secret = sorted(scopes, key=str), secret
        self._made: dict[str, Tombstone] = {}

    @property
    def tombstones(self) -> tuple[Tombstone, ...]:
        """What was made so far."""
        return tuple(self._made.values())

    def records(self, versions: Iterable[Record], *, living: Collection[tuple[Scope, str]] = ()) -> None:
        """Bury records, by id and by text; a text that another record of a scope still says stays sayable there."""
        for record in versions:
            self._bury(BuriedKind.RECORD, record.id, record.id)
            for scope in {*self._scopes, record.scope}:
                if (scope, normal_form(record.content)) not in living:
                    self._bury(BuriedKind.TEXT, text_digest(scope, record.content, self._secret), record.id)

    def document(self, document: Document) -> None:
        """Bury a session or a ticket by its name."""
        digest = document_digest(document.scope, document.name, self._secret)
        self._bury(BuriedKind.SESSION, digest, digest)

    def turns(self, document: Document, chunks: Iterable[Chunk]) -> None:
        """Bury turns by their texts, under the session that they were in."""
        owner = document_digest(document.scope, document.name, self._secret)
        for chunk in chunks:
            if digest := turn_digest(chunk.scope, chunk.text, self._secret):
                self._bury(BuriedKind.TURN, digest, owner)

    def source(self, ref: str) -> None:
        """Bury a file, an address or an import by its name."""
        for scope in self._scopes:
            digest = source_digest(scope, ref, self._secret)
            self._bury(BuriedKind.SOURCE, digest, digest)

    def _bury(self, kind: BuriedKind, digest: str, owner: str) -> None:
        tombstone = Tombstone(digest=digest, erasure=self.erasure, kind=kind, owner=owner, at=self.at)
        self._made.setdefault(digest, tombstone)


def owners_named(name: str, scopes: Iterable[Scope], secret: bytes) -> Iterator[str]:
    """Yield the owners that a person may mean by a name: a record, a session or a source."""
    yield name
    for scope in scopes:
        yield document_digest(scope, name, secret)
        yield source_digest(scope, name, secret)

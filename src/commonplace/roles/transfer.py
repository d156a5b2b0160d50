"""A role's memories out and in as one JSON array: the document's shape, and when an episode was consolidated.

A file is read to its end before anything of it is kept, and keeping it twice changes nothing.  Vectors are not in it:
whoever takes it in embeds it anew.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from commonplace.engine.admission import Admitted, admit
from commonplace.model.binding import Binding
from commonplace.model.changes import AdoptEmbedder, Change, Put, Trim
from commonplace.model.errors import Forbidden, InvalidInput, ProviderError
from commonplace.model.ids import new_id
from commonplace.model.ports import Clock, Embedder, Store, Tell, silent
from commonplace.model.queries import Filter, Order
from commonplace.model.records import Draft, Json, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding

BATCH = 50  # embedded and kept at a time
MOST = 10_000_000  # all there are
KINDS = {kind.value: kind for kind in (Kind.EPISODIC, Kind.SEMANTIC, Kind.PROCEDURAL)}
GENERAL = "general"


class Imported(Value):
    """What came of an import."""

    kept: int = 0
    present: int = 0  #: said already
    blank: int = 0  #: entries without content
    evicted: int = 0  #: over the limit of their kind, oldest first
    redactions: tuple[Finding, ...] = ()
    unembedded: str | None = None  #: why some have no vector yet


def exported(store: Store, scope: Scope, *, now: datetime) -> list[dict[str, Json]]:
    """Every live memory, newest first."""
    where = Filter(scopes=frozenset({scope}), at=now, kinds=frozenset(KINDS.values()))
    return [entry_of(record) for record in store.find(where, order=Order.NEWEST, limit=MOST)]


def entry_of(record: Record) -> dict[str, Json]:
    """A memory as a file has it."""
    entry: dict[str, Json] = {
        "id": record.id,
        "content": record.content,
        "category": record.category,
        "created_at": record.created_at.astimezone(UTC).isoformat(),
        "memory_type": record.kind.value,
        "metadata": dict(record.metadata) or None,
    }
    if record.consolidated_at is not None:  # else its facts would be made a second time elsewhere
        entry["consolidated_at"] = record.consolidated_at.astimezone(UTC).isoformat()
    return entry


def imported(
    store: Store,
    text: str,
    *,
    binding: Binding,
    scope: Scope,
    clock: Clock,
    embedder: Embedder | None = None,
    secret: bytes = b"",
    tell: Tell = silent,
) -> Imported:
    """Keep what a file holds, under new ids.  Raises ``InvalidInput`` naming the record, and then keeps nothing."""
    return keep(
        store, read(text), binding=binding, scope=scope, clock=clock, embedder=embedder, secret=secret, tell=tell
    )


def keep(
    store: Store,
    entries: Sequence[Entry],
    *,
    binding: Binding,
    scope: Scope,
    clock: Clock,
    embedder: Embedder | None = None,
    secret: bytes = b"",
    tell: Tell = silent,
) -> Imported:
    """Keep memories from elsewhere, under new ids; see ``imported``."""
    given = [entry for entry in entries if entry.content.strip()]
    admitted = [_admitted(entry, binding, scope, clock, secret) for entry in given]
    present, trouble = 0, None
    for start in range(0, len(admitted), BATCH):
        batch = admitted[start : start + BATCH]
        puts, failed = _puts(batch, embedder if trouble is None else None)
        trouble = trouble or failed
        present += sum(outcome.deduped for outcome in store.apply(puts))
        tell(start + len(batch), len(admitted))
    outcomes = store.apply(_trims(binding, scope, clock()))
    return Imported(
        kept=len(admitted) - present, present=present, blank=len(entries) - len(given), unembedded=trouble,
        evicted=sum(len(outcome.gone) for outcome in outcomes),
        redactions=tuple(finding for one in admitted for finding in one.redactions),
    )  # fmt: skip


class Entry(Value):
    """One memory of a file, checked."""

    number: int  #: its place in the file, from 0
    content: str
    category: str
    kind: Kind
    created_at: datetime | None
    consolidated_at: datetime | None
    metadata: dict[str, Json]
    ref: str | None = None  #: what it was elsewhere, if that has a name


def read(text: str) -> list[Entry]:
    """The memories of a file, in its order, all of them checked."""
    try:
        said = json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"the file is not JSON: {error}") from error
    except RecursionError:
        raise InvalidInput("the file is not JSON that anybody wrote: it is nested too deeply") from None
    if not isinstance(said, list):
        raise InvalidInput("Expected a JSON array of memory objects.")
    return [checked(number, one) for number, one in enumerate(said)]


def checked(number: int, said: Any) -> Entry:
    """One memory, if it is one.  Raises ``InvalidInput`` naming it."""
    if not isinstance(said, dict):
        raise wrong(number, f"expected an object, not {said!r}")
    content, category = said.get("content", ""), said.get("category") or GENERAL
    if not isinstance(content, str) or not isinstance(category, str):
        raise wrong(number, "content and category should be text")
    kind = said.get("memory_type") or Kind.SEMANTIC.value
    if kind not in KINDS:
        raise wrong(number, f"unknown memory_type {kind!r}. Use: {', '.join(KINDS)}")
    metadata = said.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise wrong(number, "metadata should be an object or null")
    dates = [_moment(number, name, said.get(name)) for name in ("created_at", "consolidated_at")]
    return Entry(
        number=number, content=content, category=category, kind=KINDS[kind], metadata=metadata,
        created_at=dates[0], consolidated_at=dates[1],
    )  # fmt: skip


def _moment(number: int, name: str, said: Any) -> datetime | None:
    """A date; one without a zone is taken as UTC, which is what every export writes."""
    if said is None or said == "":
        return None
    try:
        moment = datetime.fromisoformat(said)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise wrong(number, f"{name} should be an ISO 8601 date, not {said!r}") from None


def wrong(number: int, reason: str) -> InvalidInput:
    """What is wrong with one memory."""
    return InvalidInput(f"Record {number}: {reason}")


def _admitted(entry: Entry, binding: Binding, scope: Scope, clock: Clock, secret: bytes) -> Admitted:
    """What comes from a file passes the gate that everything passes, and keeps its dates."""
    draft = Draft(
        content=entry.content, category=entry.category, kind=entry.kind, metadata=entry.metadata, scope=scope,
        ref=entry.ref,
    )  # fmt: skip
    now = clock()
    if entry.kind not in binding.writes:
        raise wrong(entry.number, f"{entry.kind} memory is switched off in this role")
    try:
        done = admit(draft, binding=binding, id=new_id(now), now=now, secret=secret)
    except (InvalidInput, Forbidden) as error:
        raise wrong(entry.number, str(error)) from error
    # A date to come would be the newest for ever, and would never be evicted.
    dated = done.record.replace(created_at=min(entry.created_at or now, now), consolidated_at=entry.consolidated_at)
    return done.replace(record=dated)


def _puts(batch: Sequence[Admitted], embedder: Embedder | None) -> tuple[list[Change], str | None]:
    """What keeps a batch, and why it has no vectors if it has none."""
    vectors: Sequence[Sequence[float] | None] = [None] * len(batch)
    adopting: list[Change] = []
    trouble = None
    if embedder is not None:
        try:
            vectors = embedder.embed([one.record.content for one in batch])
            adopting = [AdoptEmbedder(identity=embedder.identity)]
        except ProviderError as error:
            trouble = str(error)
    puts = [
        Put(record=one.record, terms=one.terms, vector=vector, dedupe=True)
        for one, vector in zip(batch, vectors, strict=True)
    ]
    return [*adopting, *puts], trouble


def _trims(binding: Binding, scope: Scope, now: datetime) -> list[Change]:
    return [
        Trim(
            where=Filter(scopes=frozenset({scope}), at=now, kinds=frozenset({kind})), keep=limit.keep, order=limit.order
        )
        for kind, limit in binding.limits.items()
    ]

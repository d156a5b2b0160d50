"""Trace a record back: its versions, the turns and files that it rests on, its parents, and what people decided."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.engine.memory import Memory
from commonplace.model.documents import Chunk
from commonplace.model.errors import NotFound
from commonplace.model.origins import AuditedAct, Origin, OriginRecord, OriginStep, QuotedTurn
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Record

DEEPEST = 20  # generations of parents
ALL = -1
_INDEXED = ("session", "ticket")


def trace_origin(memory: Memory, id: str) -> Origin:
    """Return the chain of a record's origin, each record once; raise ``NotFound`` if there is no such record."""
    first = _trace(memory, memory.history(id), 0)
    chain, level = {first.id: first}, [first]
    for depth in range(1, DEEPEST + 1):
        names = dict.fromkeys(name for one in level for name in one.parents if name not in chain)
        level = [_parent(memory, name, depth) for name in names]
        chain |= {one.id: one for one in level}
    return Origin(record=first.id, chain=tuple(chain.values()))


def list_replaced(memory: Memory, record: Record) -> list[Record]:
    """Return the records that one has replaced, newest first."""
    where = Filter(
        scopes=frozenset(memory.binding.reads), at=memory.clock(), states=ANY_STATE,
        superseded_by=frozenset({record.id}),
    )  # fmt: skip
    return memory.store.find(where, order=Order.NEWEST, limit=ALL)


def _trace(memory: Memory, versions: Sequence[Record], depth: int) -> OriginRecord:
    record = versions[0]
    quote = record.metadata.get("quote")
    parents = dict.fromkeys(parent for version in versions for parent in version.source.parents)
    return OriginRecord(
        id=record.id, depth=depth, steps=tuple(_step(version) for version in versions),
        quote=quote if isinstance(quote, str) else None, turns=tuple(_turn(memory, ref) for ref in _refs(versions)),
        parents=tuple(parents), acts=tuple(_acts(memory, record)),
    )  # fmt: skip


def _parent(memory: Memory, id: str, depth: int) -> OriginRecord:
    try:
        return _trace(memory, memory.history(id), depth)
    except NotFound:
        return OriginRecord(id=id, depth=depth, erased=True)


def _step(version: Record) -> OriginStep:
    return OriginStep(
        record=version.id, version=version.version, at=version.updated_at, channel=version.source.channel,
        ref=version.source.ref, trust=version.trust, approved_at=version.approved_at,
        superseded_by=version.superseded_by,
    )  # fmt: skip


def _refs(versions: Sequence[Record]) -> list[str]:
    """The turns that any version rests on."""
    named = [version.source.ref for version in versions]
    for version in versions:
        evidence = version.metadata.get("evidence")
        named += map(str, evidence) if isinstance(evidence, list) else []
    return [ref for ref in dict.fromkeys(named) if ref and ref.partition(":")[0] in _INDEXED]


def _turn(memory: Memory, ref: str) -> QuotedTurn:
    """Return what a turn said, as far as the session is here."""
    kind, _, rest = ref.partition(":")
    name, _, place = rest.rpartition("#") if "#" in rest else (rest, "", "")
    where = DocumentFilter(
        scopes=frozenset(memory.binding.reads), kinds=frozenset({kind}), names=frozenset({name})
    )  # fmt: skip
    pieces = [one for one in memory.store.chunks(where, limit=ALL) if place and _is_at(one, place)]
    if not pieces:
        return QuotedTurn(ref=ref)
    first = pieces[0]
    text = "\n".join(piece.text for piece in pieces)
    return QuotedTurn(ref=ref, text=text, speaker=first.speaker, occurred_at=first.occurred_at, trust=first.trust)


def _is_at(chunk: Chunk, place: str) -> bool:
    return chunk.ref == place or chunk.ref.startswith(f"{place}.")


def _acts(memory: Memory, record: Record) -> list[AuditedAct]:
    found = memory.store.audit_log(record=record.id, limit=ALL)
    return [AuditedAct(verb=one.verb, at=one.at, actor=one.actor, version=one.version) for one in found]

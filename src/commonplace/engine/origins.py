"""Trace a record back: its versions, the turns and files that it rests on, its parents, and what people decided."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.engine.memory import Memory
from commonplace.model.documents import Chunk
from commonplace.model.errors import NotFound
from commonplace.model.origins import AuditedAct, Origin, OriginStep, QuotedTurn
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Record

DEEPEST = 20  # generations of parents: deeper ones are named only
ALL = -1
_INDEXED = ("session", "ticket")


def trace_origin(memory: Memory, id: str, *, deepest: int = DEEPEST) -> Origin:
    """Return the chain of a record's origin; raise ``NotFound`` if there is no such record."""
    versions = memory.history(id)
    record = versions[0]
    parents, gone = _parents(memory, versions, deepest)
    quote = record.metadata.get("quote")
    return Origin(
        record=record.id, steps=tuple(_step(version) for version in versions),
        quote=quote if isinstance(quote, str) else None, turns=tuple(_turn(memory, ref) for ref in _refs(versions)),
        parents=parents, gone=gone, acts=tuple(_acts(memory, record)),
    )  # fmt: skip


def _step(version: Record) -> OriginStep:
    return OriginStep(
        record=version.id, version=version.version, at=version.updated_at, channel=version.source.channel,
        ref=version.source.ref, trust=version.trust, approved_at=version.approved_at,
        superseded_by=version.superseded_by,
    )  # fmt: skip


def _parents(memory: Memory, versions: Sequence[Record], deepest: int) -> tuple[tuple[Origin, ...], tuple[str, ...]]:
    """Return the origins of the parents of any version, and the ids of those that were erased."""
    found: list[Origin] = []
    gone: list[str] = []
    for name in dict.fromkeys(parent for version in versions for parent in version.source.parents):
        try:
            found.append(trace_origin(memory, name, deepest=deepest - 1) if deepest else Origin(record=name, steps=()))
        except NotFound:
            gone.append(name)
    return tuple(found), tuple(gone)


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

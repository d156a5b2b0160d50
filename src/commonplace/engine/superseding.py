"""Writes that close another record: because the new one contradicts it, or because the caller says so."""

# ruff: noqa: SLF001 - one engine

from __future__ import annotations

from commonplace.engine import replacing
from commonplace.engine.admission import Admitted
from commonplace.engine.memory import Memory, _result
from commonplace.engine.results import WriteResult
from commonplace.engine.review import SUPERSEDE, HeldChange, settle
from commonplace.model.records import Record


def put_in_time(memory: Memory, admitted: Admitted) -> WriteResult:
    """Store a record, and close what it contradicts; one that is older than what contradicts it joins the past."""
    now = admitted.record.created_at
    rivals = replacing.find_rivals(memory.store, admitted.record, now=now)
    if rivals == replacing.Rivals() or rivals.same:
        return memory._put(admitted, dedupe=True)
    new = replacing.naming(admitted.record, rivals)
    put = memory._puts(admitted.replace(record=new), expect=0)
    before = [replacing.closing(old, new, now=now) for old in rivals.closes]
    after = [replacing.closing(new, rivals.closed_by, now=now)] if rivals.closed_by else []
    written = memory.writer.apply([*before, *put, *after])
    result = _result(written.outcomes[len(before)], admitted, written.notes)
    return result.replace(
        record=written.outcomes[-1].records[0] if after else result.record,
        superseded=written.outcomes[0].records[0] if before else None,
        notes=(*result.notes, *replacing.notes_of(new, rivals)),
    )


def supersede(memory: Memory, old: Record, admitted: Admitted) -> WriteResult:
    """Replace a fact, unless the new one is trusted less: then it is held for review and the old one stays."""
    memory._may_write(old.scope)
    new = admitted.record
    if new.held or new.authority < old.authority:
        return _hold(memory, old, admitted)
    there = replacing.find_rivals(memory.store, new, now=new.created_at).same
    if there and there.id != old.id and there.authority >= old.authority:  # it was stored, and asked about
        closed = settle(memory, there, old)
        return WriteResult(record=memory.get(there.id), deduped=True, superseded=closed)
    close = replacing.closing(old, new, now=new.created_at)  # closed first: the new one may take over its key
    written = memory.writer.apply([close, *memory._puts(admitted, expect=0)])
    ended, put, *_ = written.outcomes
    return _result(put, admitted, written.notes).replace(superseded=ended.records[0])


def _hold(memory: Memory, old: Record, admitted: Admitted) -> WriteResult:
    new = admitted.record
    why = "" if new.held else f"it is trusted less than {old.short}, so "
    note = f"{why}it is held for review and replaces nothing yet"
    change = HeldChange(action=SUPERSEDE, target=old.id, version=old.version)
    held = new.replace(held=True, metadata=change.metadata(new.metadata))
    return memory._put(admitted.replace(record=held, notes=(*admitted.notes, note)))

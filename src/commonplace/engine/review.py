"""What waits for a person, and what comes of their yes or no.

Three sorts of things wait: records that are held, changes that were proposed by a caller who is trusted less than the
record that they would change, and live records that tell agents what to do without a person's authority.  A proposed
change is a held record that names its target (``HeldChange``); it is derived from the target and erased with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.engine.edits import edit_record, readmit, require_person
from commonplace.model.changes import Archive, Audit, Change, Put, Supersede
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import PROPOSAL, Channel, Draft, Json, Record
from commonplace.model.values import Value

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory
    from commonplace.engine.results import ForgetResult, WriteResult

UPDATE, SUPERSEDE, ARCHIVE, FORGET = "update", "supersede", "archive", "forget"
#: The fields of a record that an update can name.
FIELDS = ("content", "tags", "metadata", "value", "occurred_at", "expires_at", "pinned", "category")
ALL = -1


class HeldChange(Value):
    """What a held record would do to another one."""

    action: str  #: update, supersede, archive or forget; of a live record only supersede: both hold until a person says
    target: str  #: the id of the other one
    version: int  #: which version of it was changed
    named: tuple[str, ...] = ()  #: the fields that an update changes

    @classmethod
    def of(cls, record: Record) -> HeldChange | None:
        """Return the change that a record proposes; None: it proposes none."""
        found = record.metadata.get(PROPOSAL)
        if isinstance(found, dict) and not record.held and found.get("action") != SUPERSEDE:
            return None
        if not isinstance(found, dict) or found.get("action") not in (UPDATE, SUPERSEDE, ARCHIVE, FORGET):
            return None
        target, version, fields = found.get("target"), found.get("version"), found.get("fields")
        if not isinstance(target, str) or not isinstance(version, int):
            return None
        named = tuple(field for field in FIELDS if field in fields) if isinstance(fields, list) else ()
        return cls(action=str(found["action"]), target=target, version=version, named=named)

    def metadata(self, others: Mapping[str, Json]) -> dict[str, Json]:
        """Return the metadata of a record that proposes this, with what else it has."""
        mine: dict[str, Json] = {"action": self.action, "target": self.target, "version": self.version}
        return {**others, PROPOSAL: mine | ({"fields": list[Json](self.named)} if self.named else {})}


class WaitingRecord(Value):
    """A record that waits for a person, and why."""

    record: Record
    why: str  #: one sentence
    change: HeldChange | None = None
    target: Record | None = None  #: what the change would change, as it is now


class ReviewResult(Value):
    """What came of an approval."""

    record: Record | None  #: the record as it is now; None: it was erased
    erased: tuple[str, ...] = ()
    pending: bool = False  #: see ``ForgetResult``
    notes: tuple[str, ...] = ()


# What waits


def list_waiting(
    memory: Memory, *, origin: str | None = None, after: str | None = None, limit: int = ALL
) -> list[WaitingRecord]:
    """Return what waits for review: what is held first, each oldest first.

    ``origin`` limits it to a channel, or to what refers to a source; ``after`` is the id of a record in the list.
    """
    found = _find_waiting(memory, limit=limit if origin is None and after is None else ALL)
    chosen = [record for record in found if origin is None or comes_from(record, origin)]
    at = next((place for place, record in enumerate(chosen, start=1) if record.id == after), 0)
    return [_waiting(memory, record) for record in (chosen[at:] if limit == ALL else chosen[at : at + limit])]


def _find_waiting(memory: Memory, *, limit: int) -> list[Record]:
    where = Filter(
        scopes=frozenset(memory.binding.reads), at=memory.clock(), waiting=True, states=frozenset({State.HELD})
    )
    held = memory.store.find(where, order=Order.OLDEST, limit=limit)
    left = limit if limit == ALL else limit - len(held)
    live = where.replace(states=frozenset({State.LIVE}))
    asked = (
        [one for one in memory.store.find(live, order=Order.OLDEST, limit=ALL) if _asks(memory, one)] if left else []
    )
    return [*held, *(asked if left == ALL else asked[:left])]


def _asks(memory: Memory, record: Record) -> bool:
    """Whether a live record still waits: one that may replace another does not once that one has ended."""
    if not record.has_authority and (record.is_instruction or PROPOSAL not in record.metadata):
        return True
    target = _target(memory, HeldChange.of(record))
    return target is not None and target.archived_at is None


def find_waiting(memory: Memory, id: str) -> WaitingRecord:
    """Return one record that waits; raise ``InvalidInput`` if it does not."""
    record = memory.get(id)
    if record.archived_at is not None or not (record.waits or not record.has_authority):
        raise InvalidInput(f"record {record.id!r} does not wait for review")
    return _waiting(memory, record)


def comes_from(record: Record, origin: str) -> bool:
    """Whether a record comes by that channel, or from that source: a session, a turn of it, a file, an address."""
    if origin in tuple(Channel):
        return record.source.channel == origin
    evidence = record.metadata.get("evidence")
    refs = [record.source.ref, *(map(str, evidence) if isinstance(evidence, list) else [])]
    return any(ref is not None and _is_part_of(ref, origin) for ref in refs)


def _is_part_of(ref: str, origin: str) -> bool:
    names = (ref, ref.partition(":")[2]) if ref.startswith(("session:", "ticket:")) else (ref,)
    return any(name == origin or name.startswith((f"{origin}#", f"{origin}/")) for name in names)


def _waiting(memory: Memory, record: Record) -> WaitingRecord:
    change = HeldChange.of(record)
    target = _target(memory, change)
    return WaitingRecord(record=record, why=_why(record, change, target), change=change, target=target)


def _target(memory: Memory, change: HeldChange | None) -> Record | None:
    if change is None:
        return None
    try:
        return memory.get(change.target)
    except NotFound:
        return None


def _why(record: Record, change: HeldChange | None, target: Record | None) -> str:
    if change is not None:
        what = {UPDATE: "change", SUPERSEDE: "replace", ARCHIVE: "archive", FORGET: "erase"}[change.action]
        if not record.held and target is not None:
            return f"it may replace record {target.short}: approve it to close that one, or keep both"
        if target is None:
            return f"it would {what} record {change.target[:10]}, which is gone"
        trusted = "a person approved" if target.approved_at else "is trusted more"
        since = f"; it has changed since version {change.version}" if target.version != change.version else ""
        return f"it would {what} record {target.short}, which {trusted}{since}"
    if record.held:
        return f"it is held ({record.trust_mark}, from {record.source.channel})"
    if record.is_instruction:
        return f"it tells agents what to do and nobody has approved it ({record.trust_mark}): it is shown as data only"
    return "it came with a file from elsewhere"


# Proposing


def propose_update(
    memory: Memory, before: Record, after: Record, fields: Iterable[str], *, ref: str | None = None
) -> WriteResult:
    """Hold a change of a more trusted record for review; the record stays as it is."""
    named = tuple(field for field in FIELDS if field in set(fields))
    change = HeldChange(action=UPDATE, target=before.id, version=before.version, named=named)
    draft = Draft(
        content=after.content, category=after.category, kind=after.kind, scope=before.scope, value=after.value,
        tags=after.tags, metadata=change.metadata(after.metadata), ref=ref, parents=(before.id,), pinned=after.pinned,
        held=True, occurred_at=after.occurred_at, expires_at=after.expires_at,
    )  # fmt: skip
    return _hold(memory, draft, before)


def propose_end(memory: Memory, before: Record, action: str) -> WriteResult:
    """Hold the wish to archive or erase a more trusted record for review; the record stays as it is."""
    change = HeldChange(action=action, target=before.id, version=before.version)
    what = {ARCHIVE: "archive", FORGET: "erase"}[action]
    draft = Draft(
        content=f"Proposal to {what} record {before.id}", category=before.category, kind=before.kind,
        scope=before.scope, metadata=change.metadata({}), parents=(before.id,), held=True,
    )  # fmt: skip
    return _hold(memory, draft, before)


def _hold(memory: Memory, draft: Draft, before: Record) -> WriteResult:
    """Put a proposal, unless the same one waits already."""
    from commonplace.engine.results import WriteResult  # noqa: PLC0415 - no recall reviews

    admitted = memory.writer.admit(draft, memory.binding, parent_trust=before.trust)
    there = next((one for one in _proposals(memory, before) if _proposes_the_same(one, admitted.record)), None)
    written = memory.writer.apply([] if there else [admitted.put()])
    record = there or written.outcomes[0].records[0]
    by = memory.binding.channel.value
    trusted = "was approved by a person" if before.approved_at else f"is trusted more than {by}"
    note = f"record {before.short} {trusted}, so this waits for review as {record.short} and nothing has changed yet"
    return WriteResult(
        record=record, deduped=there is not None, redactions=admitted.redactions, held_for=before.id,
        notes=(*admitted.notes, note, *written.notes),
    )  # fmt: skip


def _proposals(memory: Memory, target: Record) -> Sequence[Record]:
    where = _only(memory, target).replace(ids=None, states=frozenset({State.HELD}), parents=frozenset({target.id}))
    return memory.store.find(where, order=Order.ID, limit=ALL)


def _proposes_the_same(one: Record, other: Record) -> bool:
    return all(getattr(one, field) == getattr(other, field) for field in FIELDS)


# Deciding


def approve(memory: Memory, record: Record, *, alone: bool = False) -> ReviewResult:
    """Make a record a person's word: release it, approve its words, or make the change that it proposes.

    ``alone`` approves the words of one that would replace another, and leaves that one as it is: both hold.
    """
    require_person(memory, record)
    if record.archived_at is not None:
        raise InvalidInput(f"record {record.id!r} is archived; restore it first")
    change = HeldChange.of(record)
    if alone and change is not None and change.action != SUPERSEDE:
        raise InvalidInput(f"record {record.id!r} proposes to {change.action} another one: approve or reject it")
    if alone:
        return ReviewResult(record=_approve_words(memory, record, ()))
    target = _target(memory, change)
    if change is None or (change.action == SUPERSEDE and target is None):
        return ReviewResult(record=_approve_words(memory, record, ()))
    if target is None:
        raise NotFound(f"record {change.target!r}, which this would change, is gone; reject {record.short}")
    if change.action == SUPERSEDE:
        return _approve_replacement(memory, record, target)
    if change.action == UPDATE:
        return _approve_update(memory, record, change, target)
    return _approve_end(memory, record, change, target)


def release(memory: Memory, record: Record) -> Record:
    """Approve a record; refuse one whose approval would erase another, since then nothing could be returned."""
    change = HeldChange.of(record)
    if change is not None and change.action == FORGET:
        raise InvalidInput(f"record {record.id!r} proposes to erase a record; `commonplace review approve` does that")
    done = approve(memory, record)
    return done.record or record


def _approve_words(memory: Memory, record: Record, first: Sequence[Change]) -> Record:
    from commonplace.engine.admission import search_terms  # noqa: PLC0415 - only writes need the gate

    others = {name: value for name, value in record.metadata.items() if name != PROPOSAL}
    settled = record.has_authority and not record.held
    if settled and len(others) == len(record.metadata):
        if first:
            memory.store.apply(first)
        return record
    now = memory.clock()
    approved = record.approved_at if settled else now
    after = record.replace(held=False, approved_at=approved, updated_at=now, metadata=others)
    put = Put(record=after, terms=search_terms(after), expect=record.version)
    written = memory.writer.apply([*first, put, Audit(verb="approve")])
    return written.outcomes[len(first)].records[0]


def _approve_replacement(memory: Memory, record: Record, old: Record) -> ReviewResult:
    if old.superseded_by is not None:
        note = f"record {old.short} was replaced by {old.superseded_by[:10]} already"
        return ReviewResult(record=_approve_words(memory, record, ()), notes=(note,))
    close = Supersede(id=old.id, by=record.id, at=record.occurred_at or record.created_at, now=memory.clock())
    return ReviewResult(record=_approve_words(memory, record, [close]))


def settle(memory: Memory, record: Record, old: Record) -> Record:
    """Close what a live record was found to replace; return the closed one.  No words are approved with that."""
    others = {name: value for name, value in record.metadata.items() if name != PROPOSAL}
    close = Supersede(id=old.id, by=record.id, at=record.occurred_at or record.created_at, now=memory.clock())
    after = record.replace(metadata=others, updated_at=memory.clock())
    from commonplace.engine.admission import search_terms  # noqa: PLC0415 - only writes need the gate

    put = Put(record=after, terms=search_terms(after), expect=record.version)
    changed = [put] if len(others) != len(record.metadata) else []
    return memory.writer.apply([close, *changed]).outcomes[0].records[0]


def _approve_update(memory: Memory, record: Record, change: HeldChange, target: Record) -> ReviewResult:
    """Make the proposed change; the words keep their author and are approved."""
    named: dict[str, Any] = {field: getattr(record, field) for field in change.named}
    if "metadata" in named:
        named["metadata"] = {name: value for name, value in record.metadata.items() if name != PROPOSAL}
    admitted = readmit(memory, edit_record(memory, target, named), target)
    now, after = memory.clock(), admitted.record
    source, trust = target.source, target.trust
    if (after.content, after.value) != (target.content, target.value):
        source, trust = record.source.replace(parents=target.source.parents), min(record.trust, target.trust)
    after = after.replace(source=source, trust=trust, approved_at=now, updated_at=now)
    put = admitted.replace(record=after).put(expect=target.version)
    written = memory.writer.apply([put, _close(record, target, memory), Audit(verb="approve")])
    return ReviewResult(record=written.outcomes[0].records[0], notes=(*admitted.notes, *written.notes))


def _approve_end(memory: Memory, record: Record, change: HeldChange, target: Record) -> ReviewResult:
    if change.action == FORGET:
        gone: ForgetResult = memory.forget(target.id)
        return ReviewResult(record=None, erased=gone.ids, pending=gone.pending)
    end = Archive(where=_only(memory, target), at=memory.clock())
    memory.store.apply([end, _close(record, target, memory), Audit(verb="approve")])
    return ReviewResult(record=memory.get(target.id))


def _only(memory: Memory, record: Record) -> Filter:
    return Filter(scopes=frozenset({record.scope}), at=memory.clock(), states=ANY_STATE, ids=frozenset({record.id}))


def _close(record: Record, target: Record, memory: Memory) -> Supersede:
    """The change that ends a proposal that was carried out."""
    now = memory.clock()
    return Supersede(id=record.id, by=target.id, at=now, now=now)


def replace(memory: Memory, old: Record, new: Record) -> Record:
    """Close a record because another one, which is approved with that, replaces it; return the new one."""
    require_person(memory, old)
    require_person(memory, new)
    if old.id == new.id or old.superseded_by is not None or new.archived_at is not None:
        raise InvalidInput(f"record {new.short} cannot replace {old.short}: both have to be there, and be two")
    close = Supersede(id=old.id, by=new.id, at=new.occurred_at or new.created_at, now=memory.clock())
    if new.has_authority and not new.held:
        memory.store.apply([close])
        return new
    return _approve_words(memory, new, [close])


def merge(memory: Memory, record: Record, into: Record, content: str) -> Record:
    """Give one of two records the words of both, and close the other; return the one that stays."""
    require_person(memory, record)
    require_person(memory, into)
    if record.id == into.id or into.archived_at is not None:
        raise InvalidInput(f"record {record.short} cannot be merged into {into.short}: it has to be another live one")
    merged = memory.update(into.id, content=content).record
    stays = _approve_words(memory, merged, ())
    memory.store.apply([_close(record, stays, memory)])
    return stays


def reject(memory: Memory, record: Record) -> Record:
    """Archive what waits; a proposed change is not made.  Raises ``InvalidInput`` if the record does not wait."""
    require_person(memory, record)
    find_waiting(memory, record.id)
    memory.store.apply([Archive(where=_only(memory, record), at=memory.clock()), Audit(verb="reject")])
    return memory.get(record.id)

"""Activity: what changed in memory and when it was used, newest first: the audit log and the receipts as one list."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from heapq import merge

from commonplace.engine.memory import Memory
from commonplace.learning import list_receipts
from commonplace.model.audit import AuditEntry
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Record
from commonplace.model.uses import Receipt
from commonplace.records.insight_verbs import ACTIVITY_KINDS, Activity, ActivityLog

#: What the audit log calls an act, by the kind of activity that it is; every other verb is "other".
_KINDS = {"put": "added", "import": "added", "update": "changed", "supersede": "superseded", "archive": "archived"}
_USES = {"injection": "injected", "recall": "recalled"}
ALL = -1


def list_activity(
    memory: Memory, *, kinds: Collection[str] = ACTIVITY_KINDS, before: str | None = None,
    since: datetime | None = None, limit: int,
) -> ActivityLog:  # fmt: skip
    """Return what happened, newest first; ``before`` is the cursor that the page before gave."""
    seq, at = _read_cursor(before)
    acts = [one for one in _acts(memory, kinds, seq, limit + 1) if since is None or one.at >= since]
    uses = [one for one in _uses(memory, kinds, at) if since is None or one.at >= since]
    both = list(merge(acts, uses[: limit + 1], key=lambda one: one.at, reverse=True))
    shown = both[:limit]
    cursor = _cursor(shown, seq) if len(both) > limit else None
    return ActivityLog(activities=tuple(_with_records(memory, shown)), next=cursor)


def latest_change(memory: Memory) -> str:
    """Return a word that differs after every change of a record, and after every use that left a receipt."""
    entry = next(iter(memory.store.latest_audit(memory.binding.reads, limit=1)), None)
    where = DocumentFilter(scopes=frozenset(memory.binding.reads))
    newest = next(iter(memory.store.documents(where, limit=1)), None)
    return f"{entry.seq if entry else 0}-{int(newest.updated_at.timestamp() * 1000) if newest else 0}"


def _acts(memory: Memory, kinds: Collection[str], before: int | None, limit: int) -> list[Activity]:
    named = [verb for verb, kind in _KINDS.items() if kind in kinds]
    wanted = None if "other" in kinds else named
    if wanted is not None and not wanted:
        return []
    found = memory.store.latest_audit(memory.binding.reads, before=before, verbs=wanted, limit=limit)
    acts = [_act(entry) for entry in found]
    return [one for one in acts if one.kind in kinds]


def _act(entry: AuditEntry) -> Activity:
    return Activity(
        seq=entry.seq, at=entry.at, kind=_KINDS.get(entry.verb, "other"), verb=entry.verb, id=entry.record,
        version=entry.version, actor=entry.actor, channel=entry.channel,
    )  # fmt: skip


def _uses(memory: Memory, kinds: Collection[str], before: datetime | None) -> list[Activity]:
    if not {"injected", "recalled"} & {*kinds}:
        return []
    found = [_use(receipt) for receipt in list_receipts(memory)]
    chosen = [one for one in found if one.kind in kinds and (before is None or one.at < before)]
    return sorted(chosen, key=lambda one: one.at, reverse=True)


def _use(receipt: Receipt) -> Activity:
    return Activity(
        at=receipt.at, kind=_USES[receipt.what], verb=receipt.what, session=receipt.session, tokens=receipt.tokens,
        shown=tuple(item.id for item in receipt.items), receipt=receipt.name,
    )  # fmt: skip


def _with_records(memory: Memory, activities: Sequence[Activity]) -> list[Activity]:
    """Add the records that acts are about, as they were then and before; one that is gone stays without."""
    ids = frozenset(one.id for one in activities if one.id is not None)
    if not ids:
        return list(activities)
    where = Filter(scopes=frozenset(memory.binding.reads), at=memory.clock(), states=ANY_STATE, ids=ids, versions=True)
    versions = {(one.id, one.version): one for one in memory.store.find(where, order=Order.ID, limit=ALL)}
    present: dict[str, Record] = {}
    for (id_, _), record in versions.items():
        present[id_] = record if id_ not in present or record.version > present[id_].version else present[id_]
    return [_with_record(one, versions, present) for one in activities]


def _with_record(one: Activity, versions: dict[tuple[str, int], Record], present: dict[str, Record]) -> Activity:
    if one.id is None:
        return one
    record = versions.get((one.id, one.version or 0)) or present.get(one.id)
    before = versions.get((one.id, (one.version or 0) - 1)) if one.kind == "changed" else None
    return one.replace(record=record, before=None if before is None else before.content)


def _cursor(shown: Sequence[Activity], seq: int | None) -> str:
    acts = [one.seq for one in shown if one.seq]
    last = acts[-1] if acts else seq
    return f"{last or 0}-{int(shown[-1].at.timestamp() * 1_000_000)}"


def _read_cursor(text: str | None) -> tuple[int | None, datetime | None]:
    if not text:
        return None, None
    seq, _, at = text.partition("-")
    if not (seq.isdecimal() and at.isdecimal() and len(text) < 40):  # noqa: PLR2004 - two numbers
        raise InvalidInput(f"{text[:40]!r} is not a place in this list; leave it out to begin with the newest")
    return int(seq) or None, datetime.fromtimestamp(int(at) / 1_000_000, UTC)

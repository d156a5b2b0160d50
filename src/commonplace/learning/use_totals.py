"""What sessions were shown and what became of it: one line for each session, and totals for each week."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

from commonplace.engine.memory import Memory
from commonplace.learning.receipts import agent_turns, item_use, list_receipts
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.queries import DocumentFilter
from commonplace.model.uses import Receipt, SessionShown, WeekOfUse

FATES = ("cited", "echoed", "unused", "shown")
REMEMBERED = 2000  # sessions whose counts stay in the memory of this process; they hold no words
ALL = -1


_lock = threading.Lock()
_known: dict[tuple[object, ...], Mapping[str, int]] = {}


def list_shown(memory: Memory, *, before: datetime | None = None, limit: int) -> list[SessionShown]:
    """Return the sessions that were shown something, the last one first."""
    sessions = sorted(_by_session(list_receipts(memory)).values(), key=lambda found: found[-1].at, reverse=True)
    chosen = [found for found in sessions if before is None or found[-1].at < before][:limit]
    indexed = _indexed(memory, [found[0].session for found in chosen])
    return [
        SessionShown(
            session=found[0].session, at=found[-1].at, tokens=sum(one.tokens for one in found), times=len(found),
            counts=_counts(memory, found, indexed.get(found[0].session)),
        )
        for found in chosen
    ]  # fmt: skip


def weekly_totals(memory: Memory, *, weeks: int) -> list[WeekOfUse]:
    """Return the last weeks, the oldest first, this one included."""
    monday = _monday(memory.clock())
    first = monday - timedelta(weeks=weeks - 1)
    receipts = [one for one in list_receipts(memory) if _monday(one.at) >= first]
    indexed = _indexed(memory, {one.session for one in receipts})
    totals = {first + timedelta(weeks=number): Counter[str]() for number in range(weeks)}
    sessions: dict[date, set[str]] = {week: set() for week in totals}
    for (week, session), found in _by_week(receipts).items():
        sessions[week].add(session)
        totals[week] += _shared(sum(one.tokens for one in found), _counts(memory, found, indexed.get(session)))
    return [
        WeekOfUse(begins=week, tokens=fates.total(), sessions=len(sessions[week]), fates=dict(fates))
        for week, fates in totals.items()
    ]


def _monday(at: datetime) -> date:
    day = at.date()
    return day - timedelta(days=day.weekday())


def _by_session(receipts: Sequence[Receipt]) -> dict[str, list[Receipt]]:
    found: dict[str, list[Receipt]] = {}
    for one in sorted(receipts, key=lambda one: one.at):
        found.setdefault(one.session, []).append(one)
    return found


def _by_week(receipts: Sequence[Receipt]) -> dict[tuple[date, str], list[Receipt]]:
    found: dict[tuple[date, str], list[Receipt]] = {}
    for one in receipts:
        found.setdefault((_monday(one.at), one.session), []).append(one)
    return found


def _shared(tokens: int, counts: Mapping[str, int]) -> Counter[str]:
    """Share tokens out by what became of the items; the rest of the division goes to the last sort."""
    whole = sum(counts.values())
    if not whole:
        return Counter({"unused": tokens})
    shares = Counter({fate: tokens * count // whole for fate, count in counts.items() if count})
    shares[max(shares, key=FATES.index)] += tokens - shares.total()
    return shares


def _indexed(memory: Memory, names: Sequence[str] | set[str]) -> dict[str, Document]:
    if not names:
        return {}
    where = DocumentFilter(
        scopes=frozenset(memory.binding.reads), kinds=frozenset({DocumentKind.SESSION}), names=frozenset(names)
    )
    return {one.name: one for one in memory.store.documents(where, limit=ALL)}


def _counts(memory: Memory, receipts: Sequence[Receipt], session: Document | None) -> Mapping[str, int]:
    """Count the items of some receipts of one session by what became of them."""
    key = (tuple(sorted(one.name for one in receipts)), session.digest if session else None)
    with _lock:
        known = _known.get(key)
    if known is not None:
        return known
    items = {(item.kind, item.id, item.version): item for receipt in receipts for item in receipt.items}
    if session is None:
        found: Mapping[str, int] = {"shown": len(items)}
    else:
        where = DocumentFilter(
            scopes=frozenset({session.scope}), kinds=frozenset({session.kind}), names=frozenset({session.name})
        )
        turns = agent_turns(memory.store, where)
        found = Counter(item_use(memory, item, turns, known=True).fate for item in items.values())
    with _lock:
        _known[key] = found
        while len(_known) > REMEMBERED:
            del _known[next(iter(_known))]
    return found

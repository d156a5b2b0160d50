"""Verbs that look back: what happened in memory, where a record was used, what it replaced.

``verbs`` lists them with the others; models are offered none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, get_args

from commonplace.model.records import Record
from commonplace.model.uses import RebuiltBlock, SessionShown, SessionUse, WeekOfUse
from commonplace.model.values import QUOTED, Value
from commonplace.verbs import verb
from commonplace.wire import Length, Range

if TYPE_CHECKING:  # with the first call: the MCP server loads this while its host waits
    from commonplace.records.access import MemoryAccess

SCHEME = "memory://"
RECORD = f"{SCHEME}record/"


class Similar(Value):
    """Records that say about the same as another one."""

    records: tuple[Record, ...]


class Replacement(Value):
    """The record that stays."""

    record: Record


class MadeRecord(Value):
    """A record that was learned from a session."""

    record: Record
    turns: tuple[str, ...]  #: of that session, on which it rests


class MadeFrom(Value):
    """The records that were learned from a session."""

    records: tuple[MadeRecord, ...]


class ShownSessions(Value):
    """Sessions that were shown something of memory, the last one first."""

    sessions: tuple[SessionShown, ...]
    more: bool  #: there are more than these


class UseOfSession(Value):
    """What a session was shown, and what became of it."""

    use: SessionUse
    blocks: tuple[RebuiltBlock | None, ...]  #: one for each receipt; None: it was a recall


class WeeksOfUse(Value):
    """Totals for each week, the oldest first."""

    weeks: tuple[WeekOfUse, ...]


ActivityKind: TypeAlias = Literal["added", "changed", "superseded", "archived", "recalled", "injected", "other"]
ACTIVITY_KINDS: tuple[ActivityKind, ...] = get_args(ActivityKind)


class Activity(Value):
    """One change of a record, or one use of memory."""

    at: datetime
    kind: str  #: added, changed, superseded, archived, recalled, injected or other
    verb: str  #: what the audit log calls it, or the sort of the receipt
    seq: int = 0  #: in the audit log; 0: it is a use
    id: str | None = None  #: of the record that was changed
    record: Record | None = None  #: as it was then; None: it is gone, or none was changed
    before: Annotated[str | None, QUOTED] = None  #: what it said before, if it was changed
    version: int | None = None
    actor: str | None = None
    channel: str | None = None
    session: str | None = None  #: of a use
    tokens: int | None = None
    shown: tuple[str, ...] = ()  #: records, turns and artifacts that were shown
    receipt: str | None = None


class ActivityLog(Value):
    """What happened, newest first."""

    activities: tuple[Activity, ...]
    next: str | None = None  #: where the next page begins; None: there is none


class RecordUse(Value):
    """One time at which a session was shown a record."""

    at: datetime
    session: str
    what: str  #: injection or recall
    version: int | None  #: of the record, as it was shown
    fate: str  #: cited, echoed, unused, or shown: the session is not indexed
    turns: tuple[str, ...] = ()  #: that cite or echo it


class RecordUses(Value):
    """Where a record was shown, newest first."""

    uses: tuple[RecordUse, ...]


class Replaced(Value):
    """The records that one has replaced, newest first."""

    records: tuple[Record, ...]


@verb(reads=True, offers=())
def log(
    caller: MemoryAccess,
    *,
    kinds: Sequence[ActivityKind] = ACTIVITY_KINDS,
    since: datetime | None = None,
    before: str | None = None,
    limit: Annotated[int, Range(1, 1000)] = 50,
) -> ActivityLog:
    """List what changed in memory and when it was used, newest first.

    Args:
        kinds: Only activity of these kinds.
        since: Only what happened since then.
        before: Only what comes after the page whose `next` this is.
        limit: Return at most this many.
    """
    from commonplace.records.activity import list_activity  # noqa: PLC0415 - see the module

    caller.refresh()
    return list_activity(caller.memory, kinds=kinds, since=since, before=before, limit=limit)


@verb(reads=True, offers=())
def uses(caller: MemoryAccess, id: str, *, limit: Annotated[int, Range(1, 100)] = 20) -> RecordUses:
    """List the sessions that were shown a record, newest first, and what they made of it.

    Args:
        id: The id of the record, or a beginning of it that no other record shares.
        limit: Return at most this many.
    """
    from commonplace.learning import record_uses  # noqa: PLC0415 - see the top

    found = record_uses(caller.memory, caller.memory.get(record_id(id)).id, limit=limit)
    return RecordUses(
        uses=tuple(
            RecordUse(
                at=receipt.at, session=receipt.session, what=receipt.what, version=use.item.version, fate=use.fate,
                turns=use.cited or use.echoed,
            )
            for receipt, use in found
        )
    )  # fmt: skip


@verb(reads=True, offers=())
def replaced(caller: MemoryAccess, id: str) -> Replaced:
    """List the records that a record has replaced, newest first.

    Args:
        id: The id of the record, or a beginning of it that no other record shares.
    """
    from commonplace.engine.origins import list_replaced  # noqa: PLC0415 - see the top

    return Replaced(records=tuple(list_replaced(caller.memory, caller.memory.get(record_id(id)))))


@verb(reads=True, offers=())
def similar(caller: MemoryAccess, id: str, *, limit: Annotated[int, Range(1, 20)] = 3) -> Similar:
    """List live records of the same memory that say about the same, the nearest first.

    Args:
        id: The id of the record, or a beginning of it that no other record shares.
        limit: Return at most this many.
    """
    from commonplace.engine.similar import find_similar  # noqa: PLC0415 - see the top

    return Similar(records=tuple(find_similar(caller.memory, caller.memory.get(record_id(id)), limit=limit)))


@verb(repeats=True, offers=())
def replace(caller: MemoryAccess, id: str, *, by: str) -> Replacement:
    """Close a record because another one replaces it, and approve that one: a person's decision.

    Args:
        id: The id of the record that is no longer true.
        by: The id of the record that replaces it.
    """
    from commonplace.engine import review  # noqa: PLC0415 - see the top

    old, new = (caller.memory.get(record_id(one)) for one in (id, by))
    return Replacement(record=review.replace(caller.memory, old, new))


@verb(repeats=True, offers=())
def merge(caller: MemoryAccess, id: str, *, into: str, content: Annotated[str, Length(1_048_576)]) -> Replacement:
    """Make one record of two: the second gets the words of both, and the first is closed; a person's decision.

    Args:
        id: The id of the record that ends.
        into: The id of the record that stays.
        content: All of its new words.
    """
    from commonplace.engine import review  # noqa: PLC0415 - see the top

    ends, stays = (caller.memory.get(record_id(one)) for one in (id, into))
    return Replacement(record=review.merge(caller.memory, ends, stays, content))


@verb(reads=True, offers=())
def made_from(caller: MemoryAccess, id: str) -> MadeFrom:
    """List the records that were learned from a session, with the turns that they rest on.

    Args:
        id: The id of the session, or a beginning of it that no other session shares.
    """
    from commonplace.records.sessions import find_session, list_made  # noqa: PLC0415 - see the top

    return MadeFrom(records=tuple(list_made(caller.memory, find_session(caller.memory, id))))


@verb(reads=True, offers=())
def shown(
    caller: MemoryAccess, *, before: datetime | None = None, limit: Annotated[int, Range(1, 200)] = 20
) -> ShownSessions:
    """List the sessions that were shown something of memory, the last one first, with what became of it.

    Args:
        before: Only sessions that were last shown something before then.
        limit: Return at most this many.
    """
    from commonplace.learning import list_shown  # noqa: PLC0415 - see the top

    found = list_shown(caller.memory, before=before, limit=limit + 1)
    return ShownSessions(sessions=tuple(found[:limit]), more=len(found) > limit)


@verb(reads=True, offers=())
def used(caller: MemoryAccess, session: str) -> UseOfSession:
    """Return what a session was shown, the blocks rebuilt from the versions of that time, and what became of it.

    Args:
        session: The id of the session.
    """
    from commonplace.learning import session_use  # noqa: PLC0415 - see the top

    use = session_use(caller.memory, session)
    return UseOfSession(use=use, blocks=tuple(caller.rebuild(receipt) for receipt in use.shown))


@verb(reads=True, offers=())
def use_by_week(caller: MemoryAccess, *, weeks: Annotated[int, Range(1, 52)] = 12) -> WeeksOfUse:
    """Return how many tokens sessions were shown in each week, by what became of them.

    Args:
        weeks: How many weeks, this one included.
    """
    from commonplace.learning import weekly_totals  # noqa: PLC0415 - see the top

    return WeeksOfUse(weeks=tuple(weekly_totals(caller.memory, weeks=weeks)))


def record_id(given: str) -> str:
    """Return an id, from however a model writes it."""
    text = given.strip()
    for prefix in (RECORD, SCHEME, "#"):
        text = text.removeprefix(prefix)
    return text

"""Events: who changed which entry, how and when; never the contents.

The store writes an event in the transaction of its change, so that none is missing and none is wrong.  Old events are
erased (``TrimEvents``), except archives, which are stored nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from commonplace.model.records import EMPTY, Json, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

EVENT_DAYS = 30  # to keep events; a subscriber that was away for longer reads everything again
MAX_EVENT_DAYS = 36_500


class EventKind(StrEnum):
    """The kinds of events."""

    CREATED = "memory.created"
    UPDATED = "memory.updated"
    DELETED = "memory.deleted"
    EXPIRED = "memory.expired"
    EVICTED = "memory.evicted"
    ARCHIVED = "memory.archived"  #: the working memory of a task, at its end


class Event(Value):
    """One change of an entry."""

    seq: int = 0  #: assigned by the store, ascending
    what: EventKind
    at: datetime
    scope: Scope
    record: str | None = None  #: the id; None: it is about several
    kind: Kind | None = None
    key: str | None = None
    version: int | None = None  #: after a write: the new one; else the last one
    previous: int | None = None  #: the version before, if there was one
    tags: tuple[str, ...] = ()
    detail: Mapping[str, Json] = EMPTY  #: of an archive: what it held

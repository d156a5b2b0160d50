"""Origin: where a record comes from, back to the turn, the file or the call."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from commonplace.model.records import Channel, Trust
from commonplace.model.values import QUOTED, Value


class QuotedTurn(Value):
    """A turn of a session, or a part of a ticket, on which a record rests."""

    ref: str  #: such as session:0b1c#4
    text: Annotated[str, QUOTED] | None = None  #: None: the session is not here any more
    speaker: Annotated[str | None, QUOTED] = None
    occurred_at: datetime | None = None
    trust: Trust | None = None


class OriginStep(Value):
    """One version of a record: who made it, how, and from what."""

    record: str
    version: int
    at: datetime
    channel: Channel
    ref: Annotated[str | None, QUOTED] = None  #: the session and turn, file, address or call
    trust: Trust
    approved_at: datetime | None = None
    superseded_by: str | None = None


class AuditedAct(Value):
    """One entry of the audit log about a record."""

    verb: str
    at: datetime
    actor: str
    version: int | None = None


class OriginRecord(Value):
    """One record of a chain: its versions, what it rests on, and what became of it."""

    id: str
    depth: int  #: 0: the record asked about; 1: its parents; and so on
    erased: bool = False  #: then nothing else is known
    steps: tuple[OriginStep, ...] = ()  #: of its versions, newest first
    quote: Annotated[str | None, QUOTED] = None  #: the words that it was extracted from
    turns: tuple[QuotedTurn, ...] = ()  #: what it rests on
    parents: tuple[str, ...] = ()  #: ids of the records that it was derived from
    acts: tuple[AuditedAct, ...] = ()  #: what the audit log says about it, oldest first


class Origin(Value):
    """The chain of a record's origin, the record first."""

    record: str
    chain: tuple[OriginRecord, ...]

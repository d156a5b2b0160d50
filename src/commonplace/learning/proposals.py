"""What a reader of sessions finds: facts with their quotes, and requests to remember that come to nothing."""

from __future__ import annotations

from datetime import datetime

from commonplace.model.records import Trust
from commonplace.model.values import Value


class Proposal(Value):
    """A durable fact that a reader found, before the gate."""

    content: str  #: the fact as one sentence, in the speaker's words
    category: str  #: decisions | procedures | principles | incidents | preferences
    scope: str  #: project | assistant
    quote: str  #: the exact words it rests on: a substring of a turn's text
    refs: tuple[str, ...]  #: the turn of the quote first, then the one that confirmed it
    subject: str | None  #: a slug of what it is about, if clear: a later fact about the same can replace it
    occurred_at: datetime | None
    trust: Trust  #: at most what extraction can give
    by_user: bool = True  #: it rests on the user's own words
    asked: bool = False  #: the user asked to have it remembered
    founded: bool = True  #: its quote, or at least a turn that it names, is in the session


class RefusedRequest(Value):
    """Something that the user asked to have remembered and that is not kept."""

    quote: str  #: the words of the request
    ref: str  #: the turn
    reason: str


class SessionFindings(Value):
    """What a session states for good, and what of the user's requests comes to nothing."""

    proposals: tuple[Proposal, ...]
    refused: tuple[RefusedRequest, ...] = ()

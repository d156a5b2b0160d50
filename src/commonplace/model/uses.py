"""What sessions were shown of memory, and what became of it: receipts, and the reports made from them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated

from commonplace.model.values import QUOTED, Value


class ShownItem(Value):
    """One thing that a session was shown."""

    kind: str  #: record, turn or artifact
    id: str  #: a record's id, a turn's reference, an artifact's address
    version: int | None = None  #: of a record, as it was shown
    digest: str = ""  #: of the words that were shown, under this store's key


class Receipt(Value):
    """One receipt: what was shown at one time."""

    name: str
    what: str  #: injection or recall
    session: str
    at: datetime
    tokens: int
    items: tuple[ShownItem, ...]
    order: tuple[str, ...] = ()  #: ids of the notes, as they were shown
    parts: Mapping[str, str] = {}  #: the part of the block of each note; empty: an early receipt
    scores: Mapping[str, float] = {}  #: of the notes that matched a task
    starts: Mapping[str, int] = {}  #: from where on long notes were shown, if not from their beginning
    newer: Mapping[str, str] = {}  #: the addresses of newer notes, by the older one that was marked
    summary_budget: int = 0
    block: str | None = None  #: the digest of the whole block; None: an early receipt, which has none


class ItemUse(Value):
    """What became of an item."""

    item: ShownItem
    text: Annotated[str | None, QUOTED]  #: its words as they were shown; None: they are no longer stored
    current: int | None = None  #: the version that a record has now; None: it is gone, or is no record
    cited: tuple[str, ...] = ()  #: the turns that name it
    echoed: tuple[str, ...] = ()  #: the turns that repeat its words without naming it
    known: bool = True  #: whether the turns of the session are known

    @property
    def fate(self) -> str:
        """What became of it in one word: cited, echoed or unused; shown, where that is not known."""
        return "shown" if not self.known else "cited" if self.cited else "echoed" if self.echoed else "unused"


class SessionUse(Value):
    """What one session was shown and what it made of it."""

    session: str
    shown: tuple[Receipt, ...]  #: oldest first
    uses: tuple[ItemUse, ...]  #: one for each item
    others: tuple[str, ...] = ()  #: addresses that it cited without having been shown them
    indexed: bool  #: whether its turns are known; if not, its use is unknown


class SessionShown(Value):
    """What one session was shown, in numbers."""

    session: str
    at: datetime  #: the last time
    tokens: int
    times: int  #: briefs and recalls
    counts: Mapping[str, int]  #: of cited, echoed and unused items; of shown ones, where the session is not indexed


class WeekOfUse(Value):
    """What all sessions of a week were shown, in tokens."""

    begins: date  #: a Monday
    tokens: int
    sessions: int
    fates: Mapping[str, int]  #: tokens by what became of the notes; the rules of a brief are shared out with them


class RebuiltBlock(Value):
    """A block as far as it can be made again."""

    text: Annotated[str, QUOTED]
    matches: bool | None  #: whether it is what the agent received; None: the receipt has no digest of the whole
    erased: tuple[str, ...] = ()  #: ids of what was shown and is not stored any more
    changed: tuple[str, ...] = ()  #: ids of what is stored in other words than those that were shown

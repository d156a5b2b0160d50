"""Find the newer of some records that speaks of the same thing as an older one, though nobody linked them.  Pure.

``replacement`` says what one statement does to another, and is careful: it closes facts.  Here an older record is only
marked, so that words in common are enough: of what the shorter one says, most is in the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from commonplace.model.records import Kind, Record
from commonplace.model.values import Value
from commonplace.text.claims import GENERIC, LIGHT, PREPOSITION_STEMS, stems_of
from commonplace.text.replacement import STATEMENT_CHARS, Relation, compare

SHARED = 0.6  # of the words of the shorter one, from which on two records speak of the same thing
SHARED_WORDS = 2  # one word in common is chance


class Newer(Value):
    """A newer record, and what it does to the older one."""

    record: Record
    replaces: bool  #: it takes the older one's place; else both may hold, and the older one is marked


class NewerRecords:
    """Some records, and which of them has a newer one among them."""

    def __init__(self, records: Iterable[Record]) -> None:
        known = {record.id: record for record in records if _states_something(record)}
        self._words = {id_: _words(record) for id_, record in known.items()}
        self._with: defaultdict[str, list[Record]] = defaultdict(list)
        for id_, record in known.items():
            for word in self._words[id_]:
                self._with[word].append(record)

    def of(self, old: Record) -> Newer | None:
        """Return the newest record that speaks of the same thing as this one and is trusted no less; None: none is."""
        mine = self._words.get(old.id)
        if mine is None:
            return None
        near = {record.id: record for word in mine for record in self._with[word] if _may_replace(old, record)}
        found = [newer for record in near.values() if (newer := self._compare(old, record)) is not None]
        return max(found, key=lambda one: (one.replaces, said_at(one.record), one.record.id), default=None)

    def _compare(self, old: Record, new: Record) -> Newer | None:
        relation = compare(old.content, new.content)
        if relation in (Relation.REPLACES, Relation.SAME):
            return Newer(record=new, replaces=old.scope == new.scope)
        mine, theirs = self._words[old.id], self._words[new.id]
        shared = len(mine & theirs)
        alike = shared >= SHARED_WORDS and shared >= SHARED * min(len(mine), len(theirs))
        return Newer(record=new, replaces=False) if alike or relation is Relation.MAY_REPLACE else None


def said_at(record: Record) -> datetime:
    """Return when what a record says was true or happened, else when it was written."""
    return record.occurred_at or record.created_at


def _may_replace(old: Record, new: Record) -> bool:
    """Whether one was said after the other, by somebody who is trusted no less, and is of the same sort."""
    return (
        (said_at(new), new.id) > (said_at(old), old.id)
        and new.authority >= old.authority
        and (old.kind is Kind.PROCEDURAL) is (new.kind is Kind.PROCEDURAL)
    )


def _states_something(record: Record) -> bool:
    """Whether it says what holds: an incident happened, whatever came after; a document is too long to compare."""
    return record.kind is not Kind.EPISODIC and len(record.content) <= STATEMENT_CHARS


def _words(record: Record) -> frozenset[str]:
    return stems_of(record.content) - LIGHT - GENERIC - PREPOSITION_STEMS

"""Choose what a brief shows: what holds always, what matches the task, what is new.  Pure.

Of two records that speak of one thing the newer one comes first; the older one is left out where the newer one replaces
it, else marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

from commonplace.engine.newer import NewerRecords, said_at
from commonplace.engine.tombstones import normal_form
from commonplace.learning.addresses import SCHEME
from commonplace.learning.brief_layout import ITEM_CHARS, SHORT_ITEM_CHARS, Note, Part, limit_external
from commonplace.model.queries import Hit
from commonplace.model.records import Record, Trust
from commonplace.text.excerpt import matching_start, terms_of

STANDING = ("preferences", "principles")  # the categories that hold whatever the task is, most important first
UNAPPROVED_NOTES = 10  # of what no person wrote or approved at most so many stand in a brief
NEWEST_NOTES = 20  # without a task
NEWEST_BESIDE_TASK = 2  # with one: the task is what the session is about
NEW = timedelta(days=3)  # before the newest of all: what is new beside a task
SURE_NOTES = 12  # the best that match a task; those after them only if they bear on it
BEARS = 0.3


class BriefChooser:
    """Chooses among some records and turns; each is chosen for one part only."""

    def __init__(self, task: str, hits: Sequence[Hit], others: Iterable[Record]) -> None:
        records = {record.id: record for record in others} | {hit.id: hit.record for hit in hits if hit.record}
        self._hits, self._terms = hits, terms_of(task)
        self._newer = NewerRecords(records.values())
        self._chosen: set[str] = set()
        self._texts: set[str] = set()
        self.passed_over = 0  #: notes from outside that were left out because they were too many

    def standing(self, records: Iterable[Record]) -> Iterator[Note]:
        """Choose what the user wants and what holds in the project, most important first; nothing from outside."""
        ranked = sorted(records, key=_importance)
        for part, approved, most in ((Part.STANDING, True, len(ranked)), (Part.UNAPPROVED, False, UNAPPROVED_NOTES)):
            fit = [one for one in ranked if one.has_authority is approved and one.authority is not Trust.EXTERNAL]
            yield from [note for record in fit if (note := self._note(Hit(score=1.0, record=record), part))][:most]

    def matching(self, *, limit: int) -> list[Note]:
        """Choose what matches the task, best first."""
        if not self._hits:
            return []
        left = [hit for hit in self._with_newer() if hit.id not in self._chosen]
        near = [hit for place, hit in enumerate(left) if place < SURE_NOTES or hit.bears >= BEARS]
        hits, passed = limit_external(near, limit=limit)
        self.passed_over += passed
        return [note for hit in hits if (note := self._note(hit, Part.MATCHING))]

    def newest(self, records: Sequence[Record], *, beside_task: bool) -> list[Note]:
        """Choose what is new by when it was said; beside a task only what is of the last days.

        Rules that nobody has approved have their own part, and are in no other unless they match.
        """
        since = max((said_at(record) for record in records), default=None)
        fresh = [record for record in records if not beside_task or (since and said_at(record) > since - NEW)]
        left = [Hit(score=1.0, record=record) for record in fresh if record.id not in self._chosen and _is_news(record)]
        hits, passed = limit_external(left, limit=NEWEST_BESIDE_TASK if beside_task else NEWEST_NOTES)
        self.passed_over += 0 if beside_task else passed
        return [note for hit in hits if (note := self._note(hit, Part.NEWEST))]

    def _with_newer(self) -> Iterator[Hit]:
        """The hits in their order, each newer record no later than the older one that it speaks of."""
        scores = {hit.id: hit for hit in self._hits}
        told: set[str] = set()
        for hit in self._hits:
            newer = self._newer.of(hit.record) if hit.record else None
            if newer and newer.record.id in scores and newer.record.id not in told:
                told.add(newer.record.id)
                yield scores[newer.record.id].replace(score=max(hit.score, scores[newer.record.id].score))
            if hit.id not in told:
                told.add(hit.id)
                yield hit

    def _note(self, hit: Hit, part: Part) -> Note | None:
        """Return a hit as a note; None if it is chosen already, or replaced by a newer one."""
        text, newer = normal_form(hit.text), self._newer.of(hit.record) if hit.record else None
        if hit.id in self._chosen or text in self._texts or (newer and newer.replaces):
            return None
        self._chosen |= {hit.id, *_evidence(hit.record)}
        self._texts.add(text)
        most = ITEM_CHARS if part is Part.MATCHING else SHORT_ITEM_CHARS
        address = f"{SCHEME}{newer.record.short}" if newer else None
        return Note(hit=hit, part=part, start=matching_start(hit.text, self._terms, most), newer=address)


def _is_news(record: Record) -> bool:
    return record.has_authority or record.category not in STANDING


def _importance(record: Record) -> tuple[bool, int, int, float, str]:
    """What stands first: what is pinned, what a person said, preferences, then the newest."""
    rank = STANDING.index(record.category) if record.category in STANDING else len(STANDING)
    return not record.pinned, -record.authority, rank, -said_at(record).timestamp(), record.id


def _evidence(record: Record | None) -> list[str]:
    """The turns that a record was made from: they say it once more."""
    told = record.metadata.get("evidence") if record else None
    return [one for one in told if isinstance(one, str)] if isinstance(told, list) else []

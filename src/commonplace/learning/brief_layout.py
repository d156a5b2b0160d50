"""The block that a session starts with: rules, summary, what holds always, what matches the task, what is new.  Pure.

Only the rules are meant to be followed; everything else is quoted as data, with its source, date and trust.  The same
material makes the same bytes: there are dates in it and no ages, and nothing asks a clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from commonplace.engine.rendering import (
    fence,
    hit_line,
    keyed_digest,
    pause,
    quoted_line,
    quoted_lines,
    record_line,
    standing_line,
)
from commonplace.engine.tombstones import normal_form
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import Hit
from commonplace.model.records import Record, Trust
from commonplace.model.values import Value
from commonplace.text.cleaning import estimate_tokens

ITEM_CHARS = 1200  # of one note: as much as a chunk has; a longer one is cut, with the address of the rest
SHORT_ITEM_CHARS = 400  # of one that no task asked for
STANDING_TOKENS = 1000  # what holds always has so much of its own, and what the other parts leave
STANDING_SHARE = 0.75  # ... but no more of a small budget: a task is shown something too
OUTSIDE_PARTS = 3  # at most one part in so many of what is recalled may come from outside
SUMMARY = "{{memory_summary}}"  # what the rules must contain: there the summary goes
NOTHING = "(none yet)"
LESSONS = "Lessons:"


class Part(StrEnum):
    """The parts of a brief that are made of notes, in their order."""

    STANDING = "standing"
    MATCHING = "matching"
    UNAPPROVED = "unapproved"
    NEWEST = "newest"


HEADS: Mapping[Part, str] = {
    Part.STANDING: "What holds always, written or approved by the user, most important first:",
    Part.MATCHING: "Notes that match the task, best first:",
    Part.UNAPPROVED: "Preferences and rules that the user has not approved:",
    Part.NEWEST: "New, by when it was said:",
}
TEXTS = "texts"  # the summary and the lessons, which have their place in the rules
#: What each part gets of the tokens that the standing part leaves, at least, as far as it needs them.
SHARES: Mapping[str, float] = {TEXTS: 0.35, Part.MATCHING: 0.4, Part.UNAPPROVED: 0.1, Part.NEWEST: 0.15}


class ShownText(Value):
    """An artifact, as it is shown."""

    url: str  #: where the whole of it is
    text: str
    updated_at: datetime | None
    by: str  #: the channel by which it came
    trust: Trust


class Note(Value):
    """A record or a turn in one part of a brief."""

    hit: Hit
    part: Part
    start: int = 0  #: from where on it is shown, if it is too long for all of it
    newer: str | None = None  #: the address of a newer record that speaks of the same thing

    @property
    def id(self) -> str:
        """The id of the record or turn."""
        return self.hit.id

    def line(self, references: Mapping[str, str]) -> str:
        """Return the note as one quoted line."""
        record, newer = self.hit.record, self.newer
        if record is None or self.part is Part.MATCHING:
            return hit_line(self.hit, references, most=ITEM_CHARS, start=self.start, newer=newer)
        written = standing_line if self.part is Part.STANDING else record_line
        return written(record, references[record.id], most=SHORT_ITEM_CHARS, start=self.start, newer=newer)


class BriefMaterial(Value):
    """Everything that may be shown."""

    rules: str  #: with a place for the summary
    summary: ShownText | None = None
    lessons: ShownText | None = None
    notes: tuple[Note, ...] = ()  #: of all parts, each in its order
    references: Mapping[str, str]  #: by the hit's or record's id

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show but rules."""
        return not (self.summary or self.lessons or self.notes)

    def of(self, part: Part) -> tuple[Note, ...]:
        """Return the notes of one part."""
        return tuple(note for note in self.notes if note.part is part)


class RenderedBrief(Value):
    """The block, and what of the material is in it."""

    text: str = ""  #: empty: memory is empty
    tokens: int = 0  #: about so many
    texts: tuple[ShownText, ...] = ()
    texts_budget: int = 0  #: what the summary and the lessons could fill
    shown: tuple[Note, ...] = ()
    notes: tuple[str, ...] = ()  #: what was cut or left out, as sentences

    def of(self, part: Part) -> tuple[Note, ...]:
        """Return the notes of one part."""
        return tuple(note for note in self.shown if note.part is part)

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What is shown, as hits."""
        return tuple(note.hit for note in self.shown)


def render_brief(
    material: BriefMaterial,
    *,
    secret: bytes,
    budget: int | None,
    summary_budget: int,
    standing_budget: int | None = STANDING_TOKENS,
) -> RenderedBrief:
    """Build the block within a budget of tokens; the summary and the lessons share one of their own.

    ``standing_budget`` is what the standing part may fill where the other parts need the rest.  Raises ``InvalidInput``
    if not even the rules fit.
    """
    if SUMMARY not in material.rules:
        raise InvalidInput(f"the rules have no place for the summary: {SUMMARY} is missing")
    if material.is_empty:
        return RenderedBrief()
    filling = _Filling(material, _room(material, budget), summary_budget, standing_budget).fill()
    body = _body(material, filling.texts_shown, {part: filling.lines(part) for part in Part})
    block = fence([body], secret)
    return RenderedBrief(
        text=block, tokens=estimate_tokens(block), texts=filling.texts, texts_budget=filling.texts_budget,
        shown=tuple(note for part in Part for note, _ in filling.fitted[part]), notes=filling.notes(),
    )  # fmt: skip


class _Filling:
    """The parts as far as they fit, one after the other; what one does not need is left to the next ones."""

    def __init__(
        self, material: BriefMaterial, room: int | None, summary_budget: int, standing_budget: int | None
    ) -> None:
        self.material, self.room, self.texts_budget = material, room, summary_budget
        self.standing_budget = standing_budget
        self.fitted: dict[Part, list[tuple[Note, str]]] = {part: [] for part in Part}
        self.repeated: set[str] = set()
        self.texts_shown, self.texts = NOTHING, tuple[ShownText, ...]()
        self._troubles: tuple[str, ...] = ()

    def fill(self) -> Self:
        """Fit the standing part, then the summary, then the others, each within its share and what is left over."""
        lines = {part: [(note, self._line(note)) for note in self.material.of(part)] for part in Part}
        own = self._standing_room(_cost(lines[Part.STANDING]))
        used = self._fit(Part.STANDING, lines[Part.STANDING], own)
        left = None if self.room is None else self.room - used
        grants = allocate(left, {TEXTS: self._texts_cost()} | {part: _cost(lines[part]) for part in _OTHERS}, SHARES)
        spare = 0 if left is None else left - sum(grants.values())
        spare += self._fill_texts(grants[TEXTS])
        for part in _OTHERS:
            room = None if left is None else grants[part] + spare
            used = self._fit(part, [one for one in lines[part] if not self._is_repeated(one[0])], room)
            spare = 0 if room is None else room - used
        unused = [one for one in lines[Part.STANDING] if one not in self.fitted[Part.STANDING]]
        if self.room is not None:
            self._fit(Part.STANDING, [one for one in unused if not self._is_shown(one[0])], spare)
        return self

    def lines(self, part: Part) -> list[str]:
        """Return the lines of a part."""
        return [line for _, line in self.fitted[part]]

    def notes(self) -> tuple[str, ...]:
        """Return what was cut or left out, as sentences."""
        left = len(self.material.notes) - sum(map(len, self.fitted.values())) - len(self.repeated)
        return (*self._troubles, *([f"{left} of the notes did not fit into the budget"] if left else []))

    def _line(self, note: Note) -> str:
        return note.line(self.material.references)

    def _standing_room(self, cost: int) -> int | None:
        if self.room is None or self.standing_budget is None:
            return self.standing_budget
        others = bool(self.material.of(Part.MATCHING) or self.material.of(Part.NEWEST) or self._texts_cost())
        return min(cost, self.standing_budget, int(self.room * (STANDING_SHARE if others else 1)))

    def _fit(self, part: Part, lines: Sequence[tuple[Note, str]], room: int | None) -> int:
        """Add the lines that fit, in order; one that does not makes way for a shorter one.  Returns their cost."""
        used = 0
        for note, line in lines:
            cost = estimate_tokens(f"{line}\n")
            if room is None or used + cost <= room:
                self.fitted[part].append((note, line))
                used += cost
        return used

    def _texts_cost(self) -> int:
        shown = [text for text in (self.material.summary, self.material.lessons) if text]
        return min(self.texts_budget, sum(estimate_tokens(f"{_quotation(text)}\n") for text in shown))

    def _fill_texts(self, room: int) -> int:
        """Fit the summary, then the lessons, without the lines that stand already; returns what they leave."""
        standing = [note.hit.record for note, _ in self.fitted[Part.STANDING] if note.hit.record]
        self.texts_budget = room = min(room, self.texts_budget)
        shown, texts, troubles = [], [], []
        for head, text in (("", self.material.summary), (LESSONS, self.material.lessons)):
            told = None if text is None else text.replace(text=_without(text.text, standing))
            if text is None or told is None or not told.text.strip():
                continue
            excerpt, was_cut = cut_to_tokens(_quotation(told), room, f"[cut here; all of it: {text.url}]")
            if was_cut:
                troubles.append(f"{text.url} was {'cut' if excerpt else 'left out'}: it does not fit")
            if excerpt:
                shown += [head, excerpt] if head else [excerpt]
                texts.append(text)
            room -= estimate_tokens(f"{excerpt}\n")
        self.texts_shown, self.texts, self._troubles = "\n".join(shown) or NOTHING, tuple(texts), tuple(troubles)
        return max(0, room)

    def _is_repeated(self, note: Note) -> bool:
        """Whether a note says what is shown above it already."""
        if self._is_shown(note) or _says(self.texts_shown, note.hit.record):
            self.repeated.add(f"{note.part} {note.id}")
            return True
        return False

    def _is_shown(self, note: Note) -> bool:
        return any(note.id == other.id for lines in self.fitted.values() for other, _ in lines)


_OTHERS = (Part.MATCHING, Part.UNAPPROVED, Part.NEWEST)


def allocate(room: int | None, wants: Mapping[str, int], shares: Mapping[str, float]) -> dict[str, int]:
    """Share out tokens: everybody gets what they want, or else their share of what the others leave."""
    if room is None or sum(wants.values()) <= room:
        return dict(wants)
    grants: dict[str, int] = {}
    open_ = dict(wants)
    while open_:
        whole = sum(shares[name] for name in open_)
        offers = {name: int(room * shares[name] / whole) for name in open_}
        content = [name for name, want in open_.items() if want <= offers[name]]
        if not content:
            return grants | offers
        for name in content:
            grants[name] = open_.pop(name)
            room -= grants[name]
    return grants


def _without(text: str, records: Sequence[Record]) -> str:
    """A text without the lines that say what some records say, and without headings of which nothing is left."""
    plain = {normal_form(record.content) for record in records}
    marks = tuple(f"(record {record.short};" for record in records)
    kept: list[str] = []
    for line in text.splitlines():
        bare = normal_form(re.sub(r"^\s*[-*]\s+(?:[a-z]+:\s+)?|\s*\(record [^()]*\)\s*$", "", line))
        if bare and (bare in plain or any(mark in line for mark in marks)):
            continue
        if line.startswith("#"):
            _drop_empty_heading(kept)
        kept.append(line)
    _drop_empty_heading(kept)
    return "\n".join(kept)


def _drop_empty_heading(kept: list[str]) -> None:
    at = len(kept)
    while at and not kept[at - 1].strip():
        at -= 1
    if at and kept[at - 1].startswith("## "):
        del kept[at - 1 :]


def _says(shown: str, record: Record | None) -> bool:
    """Whether a shown text names a record, or has all of its words."""
    if record is None:
        return False
    return f"(record {record.short};" in shown or normal_form(quoted_line(record.content)) in _plain(shown)


def _plain(shown: str) -> str:
    return normal_form(shown.replace("\n> ", " "))


def limit_external(hits: Sequence[Hit], *, limit: int) -> tuple[list[Hit], int]:
    """The best hits, of which at most a third come from outside; and how many of those were passed over."""
    chosen = list(hits[:limit])
    inside = [hit for hit in hits if not _from_outside(hit)]
    while sum(map(_from_outside, chosen)) * OUTSIDE_PARTS > len(chosen):
        last = next(hit for hit in reversed(chosen) if _from_outside(hit))
        chosen = [hit for hit in chosen if hit is not last]
        spare = next((hit for hit in inside if hit not in chosen), None)
        if spare is not None:
            chosen.append(spare)
    passed = sum(map(_from_outside, hits[:limit])) - sum(map(_from_outside, chosen))
    return chosen, passed


def shown_items(query: str, hits: Sequence[Hit], *, secret: bytes, tokens: int) -> dict[str, Any]:
    """What was recalled and shown, as a receipt notes it: ids, versions and digests, and no word of it."""
    digest = {hit.id: keyed_digest(hit.text, secret) for hit in hits}
    records = [hit.record for hit in hits if hit.record]
    return {
        "query": keyed_digest(query, secret),
        "budget": None,
        "tokens": tokens,
        "records": [{"id": one.id, "version": one.version, "digest": digest[one.id]} for one in records],
        "turns": [{"id": hit.id, "digest": digest[hit.id]} for hit in hits if hit.chunk],
        "artifacts": [],
    }


def cut_to_tokens(text: str, tokens: int, mark: str) -> tuple[str, bool]:
    """The beginning of a text that fits, with the mark where it ends; and whether it was cut.

    It ends at a line, else between two words, else between two characters as people see them.  Where not even the mark
    fits, nothing is left.
    """
    if estimate_tokens(text) <= tokens:
        return text, False
    room = tokens - estimate_tokens(f"\n{mark}")
    if room <= 0:
        return "", True
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(text[:middle]) <= room else (low, middle - 1)
    return f"{text[: pause(text, low)].rstrip()}\n{mark}", True


def _from_outside(hit: Hit) -> bool:
    found = hit.record or hit.chunk
    return found is None or found.trust is Trust.EXTERNAL


def _room(material: BriefMaterial, budget: int | None) -> int | None:
    """Return what is left of a budget after everything that is always shown."""
    if budget is None:
        return None
    frame = fence([_body(material, f"{NOTHING}\n{LESSONS}", {part: [""] for part in Part if material.of(part)})], b"")
    room = budget - estimate_tokens(frame) - 1
    if room < 0:
        raise InvalidInput(f"a budget of {budget} tokens is too small: the rules alone take {budget - room}")
    return room


def _cost(lines: Sequence[tuple[object, str]]) -> int:
    return sum(estimate_tokens(f"{line}\n") for _, line in lines)


def _quotation(text: ShownText) -> str:
    when = f"{text.updated_at:%Y-%m-%d}" if text.updated_at else "undated"
    head = f"[{text.url}, {when}, from {text.by}, trust {text.trust.name.lower()}]"
    return f"{quoted_line(head)}\n{quoted_lines(text.text)}"


def _body(material: BriefMaterial, texts_shown: str, parts: Mapping[Part, Sequence[str]]) -> str:
    """The rules with the summary in its place, once: what the summary says is not searched for places."""
    before, _, after = material.rules.strip().partition(SUMMARY)
    notes = ["\n".join([HEADS[part], *lines]) for part, lines in parts.items() if lines]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join([f"{before}{texts_shown}{after}", *notes]))

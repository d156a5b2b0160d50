"""The block that a session starts with: rules, the summary, procedures, and notes that match the task.  Pure.

Only the rules are meant to be followed; everything else is quoted as data, with its source, date and trust.  The same
material makes the same bytes: there are dates in it and no ages, and nothing asks a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from commonplace.engine.rendering import fence, hit_line, keyed_digest, pause, quoted_line, quoted_lines, record_line
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import Hit
from commonplace.model.records import Record, Trust
from commonplace.model.values import Value
from commonplace.text.cleaning import estimate_tokens

PROCEDURES = 20  # the newest
ITEM_CHARS = 1200  # of one note: as much as a chunk has; a longer one is cut, with the address of the rest
RECALLED_SHARE = 0.5  # of what a budget leaves after the rules, at most; what is not used is left to the summary
PROCEDURES_SHARE = 0.25  # likewise
OUTSIDE_PARTS = 3  # at most one part in so many of what is recalled may come from outside
SUMMARY = "{{memory_summary}}"  # what the rules must contain: there the summary goes
NOTHING = "(none yet)"
LESSONS = "Lessons:"
PROCEDURES_HEAD = "Procedures of this project and of its user, newest first:"
RECALLED_HEAD = "Notes that match the task, best first:"
NEWEST_HEAD = "Newest notes:"

T = TypeVar("T")


class ShownText(Value):
    """An artifact, as it is shown."""

    url: str  #: where the whole of it is
    text: str
    updated_at: datetime | None
    by: str  #: the channel by which it came
    trust: Trust


class BriefMaterial(Value):
    """Everything that may be shown."""

    rules: str  #: with a place for the summary
    summary: ShownText | None = None
    lessons: ShownText | None = None
    procedures: tuple[Record, ...] = ()  #: newest first
    hits: tuple[Hit, ...] = ()  #: best first
    asked: bool = True  #: the hits answer a question; else they are the newest
    references: Mapping[str, str]  #: by the hit's or record's id

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show but rules."""
        return not (self.summary or self.lessons or self.procedures or self.hits)


class RenderedBrief(Value):
    """The block, and what of the material is in it."""

    text: str = ""  #: empty: memory is empty
    tokens: int = 0  #: about so many
    texts: tuple[ShownText, ...] = ()
    procedures: tuple[Record, ...] = ()
    hits: tuple[Hit, ...] = ()
    notes: tuple[str, ...] = ()  #: what was cut or left out, as sentences


def render_brief(material: BriefMaterial, *, secret: bytes, budget: int | None, summary_budget: int) -> RenderedBrief:
    """Build the block within a budget of tokens; the summary and the lessons share one of their own.

    Raises ``InvalidInput`` if not even the rules fit.
    """
    if SUMMARY not in material.rules:
        raise InvalidInput(f"the rules have no place for the summary: {SUMMARY} is missing")
    if material.is_empty:
        return RenderedBrief()
    room = _room(material, budget)
    hits = _fitting(
        material.hits, lambda hit: hit_line(hit, material.references, most=ITEM_CHARS), _share(room, RECALLED_SHARE)
    )
    procedures = _fitting(
        material.procedures,
        lambda record: record_line(record, material.references[record.id], most=ITEM_CHARS),
        _share(room, PROCEDURES_SHARE),
    )
    left = summary_budget if room is None else min(summary_budget, room - _cost(hits) - _cost(procedures))
    texts_shown, texts, notes = _summary_and_lessons(material, left)
    body = _body(material, texts_shown, [line for _, line in procedures], [line for _, line in hits])
    block = fence([body], secret)
    return RenderedBrief(
        text=block, tokens=estimate_tokens(block), texts=texts,
        procedures=tuple(record for record, _ in procedures), hits=tuple(hit for hit, _ in hits),
        notes=(*notes, *_left_out(material, hits, procedures)),
    )  # fmt: skip


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
    frame = fence([_body(material, f"{NOTHING}\n{LESSONS}", [""], [""])], b"")
    room = budget - estimate_tokens(frame) - 1
    if room < 0:
        raise InvalidInput(f"a budget of {budget} tokens is too small: the rules alone take {budget - room}")
    return room


def _share(room: int | None, share: float) -> int | None:
    return None if room is None else int(room * share)


def _fitting(items: Sequence[T], line: Callable[[T], str], room: int | None) -> list[tuple[T, str]]:
    """The items that fit, in order; one that does not makes way for a shorter one."""
    fitting: list[tuple[T, str]] = []
    for item in items:
        written = line(item)
        cost = estimate_tokens(f"{written}\n")
        if room is None or cost <= room:
            fitting.append((item, written))
            room = None if room is None else room - cost
    return fitting


def _cost(lines: Sequence[tuple[object, str]]) -> int:
    return sum(estimate_tokens(f"{line}\n") for _, line in lines)


def _summary_and_lessons(material: BriefMaterial, tokens: int) -> tuple[str, tuple[ShownText, ...], tuple[str, ...]]:
    """The summary, then the lessons, within one budget; which of them are shown; and what was cut."""
    texts_shown, shown, notes = [], [], []
    for head, text in (("", material.summary), (LESSONS, material.lessons)):
        if text is None:
            continue
        excerpt, was_cut = cut_to_tokens(_quotation(text), tokens, f"[cut here; all of it: {text.url}]")
        if was_cut:
            notes.append(f"{text.url} was {'cut' if excerpt else 'left out'}: it does not fit")
        if excerpt:
            texts_shown += [head, excerpt] if head else [excerpt]
            shown.append(text)
        tokens -= estimate_tokens(f"{excerpt}\n")
    return "\n".join(texts_shown) or NOTHING, tuple(shown), tuple(notes)


def _quotation(text: ShownText) -> str:
    when = f"{text.updated_at:%Y-%m-%d}" if text.updated_at else "undated"
    head = f"[{text.url}, {when}, from {text.by}, trust {text.trust.name.lower()}]"
    return f"{quoted_line(head)}\n{quoted_lines(text.text)}"


def _body(material: BriefMaterial, texts_shown: str, procedures: Sequence[str], hits: Sequence[str]) -> str:
    """The rules with the summary in its place, once: what the summary says is not searched for places."""
    before, _, after = material.rules.strip().partition(SUMMARY)
    parts = [f"{before}{texts_shown}{after}"]
    if procedures:
        parts.append("\n".join([PROCEDURES_HEAD, *procedures]))
    if hits:
        parts.append("\n".join([RECALLED_HEAD if material.asked else NEWEST_HEAD, *hits]))
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts))


def _left_out(material: BriefMaterial, hits: Sequence[object], procedures: Sequence[object]) -> list[str]:
    left = len(material.hits) - len(hits) + len(material.procedures) - len(procedures)
    return [f"{left} of the notes did not fit into the budget"] if left else []

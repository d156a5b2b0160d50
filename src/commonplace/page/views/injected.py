"""Injected: what agents received from memory and what they did with it: per week, per session, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.page.visits import Answer, Page, Text, Visit

LISTED = 15
WEEKS = 12
TOP, BOTTOM = 16, 132  # of the chart, in pixels
FATES = ("cited", "echoed", "unused", "shown")
STEPS = (1, 2, 3, 5)  # of the axis, times a power of ten


def show(visit: Visit) -> Answer:
    """Show the weeks, the sessions, and one of them."""
    listed = visit.ask("shown", before=_moment(visit.get("before")), limit=LISTED)
    weeks = visit.ask("use_by_week", weeks=WEEKS).weeks
    context: dict[str, Any] = {
        "listed": listed, "weeks": weeks, "chart": chart(weeks), "totals": _totals(weeks), "use": None,
        "last": listed.sessions[-1].at.isoformat() if listed.sessions else "",
    }  # fmt: skip
    if visit.path.get("id"):
        context |= _opened(visit)
    return Page(template="injected.html", context=context, live=not visit.get("before"))


def plain(visit: Visit) -> Answer:
    """Return the blocks that a session received, as plain text."""
    found = visit.ask("used", visit.path["id"])
    return Text(text="\n\n".join(block.text for block in found.blocks if block))


def _opened(visit: Visit) -> dict[str, Any]:
    found = visit.ask("used", visit.path["id"])
    uses = {use.item.id: use for use in found.use.uses}
    shown = [
        {"receipt": receipt, "block": block, "lines": _lines(block.text, uses) if block else [],
         "items": [uses[item.id] for item in receipt.items if item.id in uses]}
        for receipt, block in zip(found.use.shown, found.blocks, strict=True)
    ]  # fmt: skip
    counts = {fate: sum(use.fate == fate for use in found.use.uses) for fate in FATES}
    return {"use": found.use, "shown": shown[::-1], "counts": counts, "opened": visit.path["id"]}


def _lines(text: str, uses: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a block: a note by itself with what became of it, the rest in pieces as they are."""
    parts: list[dict[str, Any]] = []
    for line in text.split("\n"):
        use = next((use for name, use in uses.items() if line.startswith("- [") and _names(line, name)), None)
        if use is not None or not parts or parts[-1]["use"] is not None:
            parts.append({"use": use, "text": line})
        else:
            parts[-1]["text"] += f"\n{line}"
    return parts


def _names(line: str, id: str) -> bool:
    return line.endswith((f"(memory://{id[:10]})", f"({id})"))


def chart(weeks: Sequence[Any]) -> dict[str, Any]:
    """Return the stacked bars of the weeks, and the lines of the axis."""
    most = max((week.tokens for week in weeks), default=0)
    step = _step(most)
    height = (BOTTOM - TOP) / (3 * step)
    bars = []
    for place, week in enumerate(weeks):
        reached, stacks = float(BOTTOM) - 1, []
        for fate in FATES:
            tall = week.fates.get(fate, 0) * height
            reached -= tall
            if tall:
                css = "u-unused" if fate == "shown" else f"u-{fate}"
                stacks.append({"css": css, "y": reached, "height": max(tall - 1, 0.5)})
        bars.append({"week": week, "x": 1 + place * 100 / len(weeks), "stacks": stacks})
    axis = [{"y": BOTTOM - number * step * height, "value": number * step} for number in range(4)]
    return {"bars": bars, "axis": axis, "width": 76 / len(weeks) if weeks else 6}


def _step(most: int) -> int:
    """Return a round third of the axis."""
    power = 1
    while True:
        for step in STEPS:
            if 3 * step * power >= most:
                return step * power
        power *= 10


def _totals(weeks: Sequence[Any]) -> dict[str, Any]:
    """Return the figures of this week, and the shares of the week before to compare with."""
    now, before = weeks[-1], weeks[-2]
    shares = {fate: (_share(now, fate), _share(before, fate)) for fate in ("cited", "echoed", "unused")}
    return {"tokens": now.tokens, "sessions": now.sessions, "shares": shares}


def _share(week: Any, fate: str) -> int | None:
    known = week.tokens - week.fates.get("shown", 0)
    return round(100 * week.fates.get(fate, 0) / known) if known > 0 else None


def _moment(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a place in this list") from None
    if found is not None and found.tzinfo is None:
        raise InvalidInput(f"{text[:40]!r} is not a place in this list")
    return found

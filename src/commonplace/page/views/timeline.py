"""Timeline: by day, newest first, what changed in memory and when it was used."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.page.differences import word_diff
from commonplace.page.visits import Answer, Page, Visit

SHOWN = 50
#: The kinds of activity: what people read, and its icon.
KINDS = {
    "added": ("Added", "plus"), "changed": ("Changed", "edit"), "superseded": ("Superseded", "replace"),
    "archived": ("Archived", "archive"), "recalled": ("Recalled", "search"), "injected": ("Injected", "inject"),
    "other": ("Approved, restored, deleted", "check"),
}  # fmt: skip
#: What the audit log calls an act, as people read it; other acts are shown as they are called.
ACTS = {
    "approve": "Approved", "reject": "Rejected", "restore": "Restored", "erase": "Deleted", "evict": "Evicted",
    "rollback": "Rolled back", "export": "Exported", "restore-backup": "Backup restored", "import": "Imported",
}  # fmt: skip


def show(visit: Visit) -> Answer:
    """Show what happened."""
    chosen = [kind for kind in visit.every("k") if kind] or list(KINDS)
    if unknown := [kind for kind in chosen if kind not in KINDS]:
        raise InvalidInput(f"k is one of {', '.join(KINDS)}, not {unknown[0][:40]!r}")
    found = visit.ask("log", kinds=chosen, before=visit.get("before") or None, limit=SHOWN)
    shown = [{"at": day[0].at, "entries": [_entry(one) for one in day]} for day in _by_day(found.activities)]
    context: dict[str, Any] = {
        "kinds": KINDS, "chosen": chosen, "days": shown, "next": found.next, "before": visit.get("before"),
    }  # fmt: skip
    return Page(template="timeline.html", context=context, live=not visit.get("before"))


def _by_day(activities: Sequence[Any]) -> list[list[Any]]:
    return [list(group) for _, group in groupby(activities, key=lambda one: one.at.astimezone().date())]


def _entry(one: Any) -> dict[str, Any]:
    name, icon = KINDS[one.kind]
    if one.kind == "other":
        name, icon = ACTS.get(one.verb, one.verb.capitalize()), "trash" if one.verb == "erase" else "check"
    held = one.kind == "added" and one.record is not None and one.record.held
    changed = one.before and one.record and one.before != one.record.content
    pieces = word_diff(one.before, one.record.content) if changed else None
    name, icon = ("Held", "hold") if held else (name, icon)
    return {"one": one, "name": name, "icon": icon, "held": held, "pieces": pieces}

"""What was learned last, as the next session is told of it: one line with a date and numbers, no word of a session."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from commonplace.app import App
from commonplace.config.project import PROJECT
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Json
from commonplace.text.cleaning import plural

LEARNED_DAYS = 7  # what is older is no news
LOOKED_AT = 50  # extractions, the newest
NEW, HELD = "new", "held"  # where an extraction's metadata has how many records it made, and how many of them wait


def learned_counts(records: int, held: int) -> Mapping[str, Json]:
    """The counts of one extraction, as its metadata has them."""
    return {NEW: records, HELD: held}


def learned_notice(app: App) -> str | None:
    """What the last day of learning came to; the same bytes until more is learned, so that prompt caches hold."""
    project = app.where.project
    if project is None or not app.where.is_enabled(PROJECT):
        return None
    where = DocumentFilter(scopes=frozenset({project}), kinds=frozenset({DocumentKind.EXTRACTION.value}))
    since = app.clock() - timedelta(days=LEARNED_DAYS)
    found = [one for one in app.store.documents(where, limit=LOOKED_AT) if one.updated_at >= since and _count(one, NEW)]
    if not found:
        return None
    day = max(one.updated_at for one in found).date()
    last = [one for one in found if one.updated_at.date() == day]
    records, held = (sum(_count(one, name) for one in last) for name in (NEW, HELD))
    waits = f", {held} of them held for review (`commonplace review`)" if held else ""
    return f"Learned on {day} from {plural(len(last), 'session')}: {plural(records, 'record')}{waits}."


def _count(document: Document, name: str) -> int:
    value = document.metadata.get(name)
    return value if isinstance(value, int) else 0

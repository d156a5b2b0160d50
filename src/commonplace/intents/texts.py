"""How a model sees the results of the verbs: values are quoted as data between marks, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from commonplace.engine.rendering import STANDING, fence, quoted_line
from commonplace.intents.entries import Entry

NOTHING_FOUND = "Nothing found."


def entries_text(access: Any, entries: Sequence[Entry]) -> str:
    """Render entries, one line each."""
    return fence([STANDING, *map(_line, entries)], access.secret()) if entries else NOTHING_FOUND


def entry_text(access: Any, entry: Entry) -> str:
    """Render one entry."""
    return entries_text(access, [entry])


def stored_text(_access: Any, entry: Entry) -> str:
    """Render what was written, without its value."""
    pinned = ", pinned" if entry.pinned else ""
    return f"Stored {entry.key!r} ({entry.tier}, namespace {entry.namespace}, version {entry.version}{pinned})."


def erased_text(_access: Any, _result: None) -> str:
    """Confirm that an entry was erased."""
    return "Erased."


def _line(entry: Entry) -> str:
    value = entry.value if isinstance(entry.value, str) else json.dumps(entry.value, ensure_ascii=False)
    tags = "".join(f", #{tag}" for tag in entry.tags)
    about = f"{entry.tier}, {entry.updated_at:%Y-%m-%d}, version {entry.version}{tags}"
    return quoted_line(f"- [{about}] {entry.key}: {value}")

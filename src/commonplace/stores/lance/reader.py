"""Read a LanceDB store of role memory that another program wrote.  Nothing in it is changed, and nothing is judged.

The tables are ``memories`` and ``sessions``, or the same with an underscore before them, as the document has it; either
may be missing, since a store without facts or without conversations lacks one.  Vectors are not read: an import
embeds anew.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from commonplace.model.errors import InvalidInput
from commonplace.stores.lance.index import ERRORS, SUFFIX, require_library

MEMORIES, SESSIONS = "memories", "sessions"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    MEMORIES: ("id", "content", "category", "created_at", "memory_type", "metadata_json", "consolidated_at"),
    SESSIONS: ("session_id", "agent_name", "timestamp", "messages_json"),
}


def tables(folder: str) -> dict[str, Sequence[Mapping[str, Any]]]:
    """Return every row of both tables.  Raises ``InvalidInput`` naming what is missing or cannot be read."""
    if not os.path.isdir(folder):
        raise InvalidInput(f"there is no LanceDB store {folder!r}: a folder is expected")
    require_library()
    there = {name: _find_table(folder, name) for name in COLUMNS}
    if not any(there.values()):
        found = ", ".join(_names(folder)) or "none"
        raise InvalidInput(f"{folder!r} is no store of role memory: no table {MEMORIES!r} or {SESSIONS!r}, but {found}")
    return {name: _rows(folder, table, COLUMNS[name]) if table else () for name, table in there.items()}


def _find_table(folder: str, name: str) -> str | None:
    return next((table for table in (name, f"_{name}") if table in _names(folder)), None)


def _names(folder: str) -> list[str]:
    """Return the tables: asking LanceDB itself would make the folder, if it were not there."""
    found = [name for name in os.listdir(folder) if name.endswith(SUFFIX)]
    return sorted(name.removesuffix(SUFFIX) for name in found)


def _rows(folder: str, table: str, columns: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    import lancedb  # noqa: PLC0415 - an extra that takes seconds to load

    try:
        opened = lancedb.connect(folder).open_table(table)
        missing = [column for column in columns if column not in opened.schema.names]
        if not missing:
            rows: list[Mapping[str, Any]] = opened.search().select(list(columns)).to_arrow().to_pylist()
            return rows
    except ERRORS as error:
        raise InvalidInput(f"the table {table!r} of {folder!r} cannot be read: {error}") from error
    held = ", ".join(opened.schema.names)
    raise InvalidInput(f"the table {table!r} of {folder!r} has no column {missing[0]!r}, but {held}")

"""What prompts were shown, noted as cheaply as can be: one line in a file of the data folder, no lock, no store.

A receipt of every prompt would cost more than the prompt's whole recall and would wait for whoever writes to the store.
So the hook of a prompt only takes the digests; the next stop, compaction or end makes one receipt of them all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace.engine.rendering import keyed_digest
from commonplace.learning import shown_items
from commonplace.model.queries import Hit

if TYPE_CHECKING:
    from commonplace.app import App

FOLDER = "shown"
KINDS = ("records", "turns", "artifacts")


def note(home: str, session: str, hits: Sequence[Hit], *, tokens: int, query: str, secret: bytes) -> None:
    """Note what a prompt was shown; raises ``OSError``."""
    line = shown_items(query, hits, secret=secret, tokens=tokens)
    path = _path(home, session)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
    finally:
        os.close(descriptor)


def receipt(place: App, session: str) -> str | None:
    """Make one receipt of what the prompts of a session were shown since the last; returns its name."""
    from commonplace.learning import save_receipt  # noqa: PLC0415 - no prompt saves one

    path = _path(place.where.home, session)
    taken = f"{path}.taken"  # what is noted meanwhile begins a new file
    if not os.path.exists(taken):
        with suppress(FileNotFoundError):
            os.rename(path, taken)
    lines = _lines(taken)
    if not lines:
        return None
    name = save_receipt(place, _together(lines), session=session)
    os.unlink(taken)
    return name


def _lines(path: str) -> list[Mapping[str, Any]]:
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def _together(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What several prompts were shown, each thing once."""
    items = {kind: {repr(one): one for line in lines for one in line.get(kind, ())} for kind in KINDS}
    return {
        "query": lines[-1]["query"],
        "budget": None,
        "tokens": sum(line["tokens"] for line in lines),
        **{kind: list(found.values()) for kind, found in items.items()},
    }


def _path(home: str, session: str) -> str:
    return os.path.join(home, FOLDER, f"{keyed_digest(session, b'')}.jsonl")

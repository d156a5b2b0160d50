"""Where learning in the background says what it has to say, and the last words that were trouble."""

from __future__ import annotations

import os

LOG = "learn.log"
LOG_BYTES = 65_536  # a longer one begins anew
TAIL_BYTES = 2_000
_TROUBLE = "commonplace: "  # how everything but an answer begins
_NOTHING = "Nothing was learned: "


def log_path(home: str) -> str:
    """The file, in the data folder."""
    return os.path.join(home, LOG)


def last_trouble(home: str) -> str | None:
    """The last line, if it is no answer: whatever kept a background run from keeping its own report."""
    try:
        with open(log_path(home), "rb") as file:
            file.seek(max(0, os.path.getsize(log_path(home)) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return None
    said = [line.strip() for line in lines if line.strip()]
    ended = said[-1] if said else ""
    is_trouble = ended.startswith((_NOTHING, _TROUBLE)) or ended.partition(":")[0].endswith("Error")
    return ended.removeprefix(_NOTHING).removeprefix(_TROUBLE) if is_trouble else None

"""The log of what hooks had trouble with: ``commonplace status`` shows it.  Nothing here raises.

A hook tells its host nothing of its trouble, so this is where a person finds it.  A line is a moment, a host, an event
and a sentence; no word of a prompt or a transcript is in it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

LOG = "hook.log"
LOG_BYTES = 65_536  # a longer one begins anew
SHOWN_SECONDS = 7 * 86_400  # so long a trouble is of interest
LINE_CHARS = 500


def log_path(home: str) -> str:
    """The file, in the data folder."""
    return os.path.join(home, LOG)


def note(home: str, what: str) -> None:
    """Write down a trouble, if that can be done: a full disk is no reason to fail."""
    line = " ".join(what.split())[:LINE_CHARS]
    path = log_path(home)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with suppress(OSError):
        os.makedirs(home, mode=0o700, exist_ok=True)
        if os.path.exists(path) and os.path.getsize(path) > LOG_BYTES:
            flags |= os.O_TRUNC
        descriptor = os.open(path, flags, 0o600)
        try:
            moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
            os.write(descriptor, f"{moment} {line}\n".encode(errors="backslashreplace"))
        finally:
            os.close(descriptor)


def troubles(home: str) -> list[str]:
    """The troubles of the last days, oldest first, each with its moment."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - SHOWN_SECONDS))
    try:
        with open(log_path(home), encoding="utf-8", errors="replace") as file:
            return [line.strip() for line in file if line.strip() and line >= since]
    except OSError:
        return []


def told(home: str) -> list[str]:
    """One sentence for the status, if hooks had trouble."""
    found = troubles(home)
    if not found:
        return []
    many = "once" if len(found) == 1 else f"{len(found)} times"
    return [f"hooks had trouble {many} in the last days, last at {found[-1]} ({log_path(home)})"]

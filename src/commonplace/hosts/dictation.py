"""What is said to a host that keeps no transcript which we could read: its hooks take it down, redacted."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress

from commonplace.engine.admission import Gate
from commonplace.engine.rendering import keyed_digest, unfenced

FOLDER = "taken-down"
KEPT_SECONDS = 30 * 86_400  # after the last word; it is indexed by then
NAME_CHARS = 100
TAKEN_CHARS = 200_000  # of a message: a hook that looks for secrets in more than that has no time left to answer


def path_of(home: str, session: str) -> str:
    """The file of a session; whatever the session is called, it is a name in our folder."""
    plain = session if session.replace("-", "").isalnum() and len(session) <= NAME_CHARS else keyed_digest(session, b"")
    return os.path.join(home, FOLDER, f"{plain}.jsonl")


def take_down(home: str, session: str, role: str, said: str, *, cwd: str, secret: Callable[[], bytes]) -> None:
    """Add one message; raises ``OSError``."""
    path = path_of(home, session)
    new = not os.path.exists(path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if new:
        sweep(home)
    told = Gate(secret()).text(_beginning(unfenced(said)), what="the message")
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    lines = [{"session": session, "cwd": cwd, "started": moment}] if new else []
    written = [json.dumps(line) for line in [*lines, {"role": role, "content": told, "time": moment}]]
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in written))


def _beginning(said: str) -> str:
    """Of a very long message what comes first, up to a blank: half of a secret would not be known as one."""
    words = said.strip()
    return words if len(words) <= TAKEN_CHARS else words[:TAKEN_CHARS].rsplit(maxsplit=1)[0]


def sweep(home: str) -> None:
    """Remove what nobody has added to for long."""
    folder, oldest = os.path.join(home, FOLDER), time.time() - KEPT_SECONDS
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)

"""Files that hooks write to the data folder, as cheaply as can be: no lock, no store.

- ``hook.log``: what went wrong.  A hook reports no trouble to its host, so this is where a person finds it, and
  ``commonplace status`` shows it.  A line is a time, a host, an event and a sentence; no word of a prompt or a
  transcript is in it.
- ``shown/``: what prompts were shown.  A receipt of every prompt would cost more than the prompt's whole recall and
  would wait for other writers.  So the hook of a prompt only notes digests; the next stop, compaction or end makes one
  receipt of them.
- ``taken-down/``: transcripts, redacted, of hosts that keep none that we could read.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from commonplace.files.disk import open_log, replace

if TYPE_CHECKING:
    from commonplace.app import App
    from commonplace.model.queries import Hit

LOG = "hook.log"
LOG_SHOWN_SECONDS = 7 * 86_400  # how long a trouble is of interest
LINE_CHARS = 500
SHOWN = "shown"
KINDS = ("records", "turns", "artifacts")
TRANSCRIPTS = "taken-down"
TRANSCRIPT_SECONDS = 30 * 86_400  # after the last message; it is indexed by then
NAME_CHARS = 100
MESSAGE_CHARS = 200_000  # a hook that looks for secrets in more than that has no time left to answer


# Troubles


def log_path(home: str) -> str:
    """The log, in the data folder."""
    return os.path.join(home, LOG)


def log_trouble(home: str, what: str) -> None:
    """Log a trouble if that can be done: a full disk is no reason to fail."""
    line = " ".join(what.split())[:LINE_CHARS]
    with suppress(OSError):
        os.makedirs(home, mode=0o700, exist_ok=True)
        descriptor = open_log(log_path(home))
        try:
            os.write(descriptor, f"{_now()} {line}\n".encode(errors="backslashreplace"))
        finally:
            os.close(descriptor)


def hook_troubles(home: str) -> list[str]:
    """The troubles of the last days, oldest first, each with its time."""
    since = _now(ago=LOG_SHOWN_SECONDS)
    try:
        with open(log_path(home), encoding="utf-8", errors="replace") as file:
            return [line.strip() for line in file if line.strip() and line >= since]
    except OSError:
        return []


def hook_notes(home: str) -> list[str]:
    """One sentence for the status, if hooks had trouble."""
    found = hook_troubles(home)
    if not found:
        return []
    many = "once" if len(found) == 1 else f"{len(found)} times"
    return [f"hooks had trouble {many} in the last days, last at {found[-1]} ({log_path(home)})"]


# What prompts were shown


def note_shown(home: str, session: str, hits: Sequence[Hit], *, tokens: int, query: str, secret: bytes) -> None:
    """Note what a prompt was shown; raises ``OSError``."""
    import json  # noqa: PLC0415 - nothing else here needs it at a prompt

    from commonplace.learning import shown_items  # noqa: PLC0415 - likewise

    path = _shown_path(home, session)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    _append(path, json.dumps(shown_items(query, hits, secret=secret, tokens=tokens)))


def save_shown_receipt(app: App, session: str) -> str | None:
    """Save one receipt of what the prompts of a session were shown since the last one; returns its name."""
    from commonplace.learning import save_receipt  # noqa: PLC0415 - no prompt saves one

    path = _shown_path(app.where.home, session)
    taken = f"{path}.taken"  # what is noted meanwhile begins a new file
    if not os.path.exists(taken):
        with suppress(FileNotFoundError):
            os.rename(path, taken)
    lines = _shown_lines(taken)
    if not lines:
        return None
    name = save_receipt(app, _merge_lines(lines), session=session)
    os.unlink(taken)
    return name


def _shown_lines(path: str) -> list[Mapping[str, Any]]:
    import json  # noqa: PLC0415 - see note_shown

    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []


def _merge_lines(lines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What several prompts were shown, each thing once."""
    items = {kind: {repr(one): one for line in lines for one in line.get(kind, ())} for kind in KINDS}
    return {
        "query": lines[-1]["query"],
        "budget": None,
        "tokens": sum(line["tokens"] for line in lines),
        **{kind: list(found.values()) for kind, found in items.items()},
    }


def _shown_path(home: str, session: str) -> str:
    from commonplace.engine.rendering import keyed_digest  # noqa: PLC0415 - a trouble is logged without it

    return os.path.join(home, SHOWN, f"{keyed_digest(session, b'')}.jsonl")


# Transcripts


def transcript_path(home: str, session: str) -> str:
    """Return the path of a session's transcript; any session id becomes a safe name in our folder."""
    from commonplace.engine.rendering import keyed_digest  # noqa: PLC0415 - see _shown_path

    plain = session if _is_plain(session) else keyed_digest(session, b"")
    return os.path.join(home, TRANSCRIPTS, f"{plain}.jsonl")


def _is_plain(session: str) -> bool:
    """Return whether a session id can be the name of a file as it is: short, of letters and digits, and no secret."""
    from commonplace.redact.redaction import redact  # noqa: PLC0415 - see _shown_path

    return session.replace("-", "").isalnum() and len(session) <= NAME_CHARS and not redact(session).findings


def saved_files(home: str) -> list[str]:
    """Return the files with text that hooks have written: the transcripts and the log."""
    folder = os.path.join(home, TRANSCRIPTS)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    paths = [*(os.path.join(folder, name) for name in names), log_path(home)]
    return [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]


def write_message(home: str, session: str, role: str, text: str, *, cwd: str, secret: Callable[[], bytes]) -> None:
    """Add one message to the transcript of a session, redacted; raises ``OSError``."""
    import json  # noqa: PLC0415 - see note_shown

    from commonplace.engine.admission import Gate  # noqa: PLC0415 - most hosts keep their own transcripts
    from commonplace.engine.rendering import remove_fenced  # noqa: PLC0415 - likewise

    path = transcript_path(home, session)
    new = not os.path.exists(path)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    if new:
        remove_old_transcripts(home)
    gate = Gate(secret())
    content = gate.text(_beginning(remove_fenced(text)), what="the message")
    about = {"session": gate.text(session, what="the session"), "cwd": gate.text(cwd, what="the folder")}
    lines = [{**about, "started": _now()}] if new else []
    _append(path, *map(json.dumps, [*lines, {"role": role, "content": content, "time": _now()}]))


def _beginning(text: str) -> str:
    """The beginning of a very long message, up to a blank: half of a secret would not be recognised."""
    words = text.strip()
    return words if len(words) <= MESSAGE_CHARS else words[:MESSAGE_CHARS].rsplit(maxsplit=1)[0]


def remove_old_transcripts(home: str) -> None:
    """Remove transcripts to which nothing was added for long."""
    folder, oldest = os.path.join(home, TRANSCRIPTS), time.time() - TRANSCRIPT_SECONDS
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                os.unlink(entry.path)


# Erasure


def forget_session_files(home: str, sessions: Collection[str]) -> list[str]:
    """Remove what hooks have written about some sessions; return the paths of what was removed or rewritten."""
    done = []
    for session in sorted(sessions):
        shown = _shown_path(home, session)
        for path in (shown, f"{shown}.taken", transcript_path(home, session)):
            with suppress(FileNotFoundError):
                os.unlink(path)
                done.append(path)
    folder = os.path.join(home, SHOWN)
    others = [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []
    return done + [path for path in (*others, log_path(home)) if sessions and _drop_lines(path, sessions)]


def _drop_lines(path: str, sessions: Collection[str]) -> bool:
    """Remove the lines of a file that name one of these sessions; return whether there were any."""
    import re  # noqa: PLC0415 - see note_shown

    named = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sessions))})(?![\w-])")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = list(file)
    except FileNotFoundError:
        return False
    left = [line for line in lines if not named.search(line)]
    if len(left) == len(lines):
        return False
    replace(os.path.dirname(path), os.path.basename(path), "".join(left).encode("utf-8", "surrogateescape"))
    return True


def _append(path: str, *lines: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, "".join(f"{line}\n" for line in lines).encode())
    finally:
        os.close(descriptor)


def _now(*, ago: float = 0) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))

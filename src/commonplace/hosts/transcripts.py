"""Translate the transcripts of hosts to our form, line by line, while they are indexed.

Nothing is written down on the way and no file is ever held whole: the longest line is what memory holds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import IO, Any

from commonplace.files.disk import open_file
from commonplace.hosts.registry import Host, HostTranscript, host_name
from commonplace.records import LINE_BYTES, Log, file_stamp

BLOCK_BYTES = 1024 * 1024

#: Tools whose results are kept are called so by us; hosts have names of their own for them.
SHELLS = frozenset(
    {"shell", "exec_command", "container.exec", "local_shell", "shell_command", "run_shell_command", "bashexecution"}
)
OTHERS = {"read_file": "read", "read_many_files": "read", "search_file_content": "grep", "grep_search": "grep"}


class TranscriptLines:
    """Lines of our form, made as they are asked for; see ``pipelines.index.Lines``."""

    def __init__(self, make: Callable[[], Iterator[Mapping[str, Any]]]) -> None:
        self._make = make
        self._begin()

    def _begin(self) -> None:
        self._lines, self._left, self._at = self._make(), b"", 0

    def seek(self, offset: int, /) -> int:
        """See ``Lines``."""
        if offset < self._at:
            self._begin()
        while self._at < offset and self.read(min(BLOCK_BYTES, offset - self._at)):
            pass
        return self._at

    def read(self, size: int, /) -> bytes:
        """See ``Lines``; at most the rest of one line at once."""
        if not self._left:
            line = next((one for one in self._lines if "role" in one or "session" in one), None)  # no nameless heading
            self._left = b"" if line is None else _format_line(line).encode() + b"\n"
        taken, self._left = self._left[:size], self._left[size:]
        self._at += len(taken)
        return taken

    readline = read


def _format_line(line: Mapping[str, Any]) -> str:
    """A line of ours.  Programs that count in UTF-16 cut letters in two: a half is no reason to lose the message."""
    text = json.dumps(line)
    if "\\ud" not in text:
        return text
    whole = json.dumps(line, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.dumps(json.loads(whole))


def log_source(host: Host, found: HostTranscript) -> Log:
    """A host's transcript, to be indexed."""
    status = os.stat(found.path)
    return Log(
        path=found.path, session=found.session, stamp=found.stamp or file_stamp(status),
        modified=datetime.fromtimestamp(status.st_mtime, UTC), host=host_name(host),
        lines=lambda: _reading(host, found),
    )  # fmt: skip


@contextmanager
def _reading(host: Host, found: HostTranscript) -> Iterator[TranscriptLines]:
    yield TranscriptLines(lambda: host.lines(found))


def transcript_header(host: Host, found: HostTranscript) -> Mapping[str, Any]:
    """The header of a transcript: its session, and where it ran."""
    first = next(host.lines(found), {})
    return first if "role" not in first else {}


def json_lines(path: str) -> Iterator[Mapping[str, Any]]:
    """Every JSON object of a file of lines; what is no object, or is still being written, is passed over."""
    with open_file(path) as file:
        while data := file.readline(LINE_BYTES + 1):
            if len(data) > LINE_BYTES:
                _pass_line(file, data)
                continue
            entry = _object(data)
            if entry is not None:
                yield entry


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        entry = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _pass_line(file: IO[bytes], data: bytes) -> None:
    while data and not data.endswith(b"\n"):
        data = file.readline(BLOCK_BYTES)


def header(session: object, cwd: object, started: object) -> Mapping[str, Any]:
    """The first line of a transcript in our form."""
    entry = {"session": session, "cwd": cwd, "started": started}
    return {key: value for key, value in entry.items() if isinstance(value, str) and value}


def message(role: str, parts: Sequence[Mapping[str, Any]], time: object) -> Mapping[str, Any]:
    """A message in our form."""
    entry: dict[str, Any] = {"role": role, "content": list(parts)}
    return entry | {"time": time} if is_timestamp(time) else entry


def is_timestamp(value: object) -> bool:
    """Whether that is a moment: one that is none must not cost the message."""
    try:
        datetime.fromisoformat(value)  # type: ignore[arg-type]  # hosts write anything there
    except (TypeError, ValueError):
        return False
    return True


def text_part(value: object) -> Mapping[str, Any]:
    """Words, as a part of a message."""
    return {"type": "text", "text": value if isinstance(value, str) else ""}


def tool_call(name: object, arguments: object, id: object = None) -> Mapping[str, Any]:
    """A call of a tool, as a part of a message; its result has the same id."""
    given = arguments if isinstance(arguments, dict | str) else None
    return {"type": "tool_call", "name": tool_name(name), "arguments": given} | _id_field(id)


def tool_result(name: object, text: str, id: object = None) -> Mapping[str, Any]:
    """The result of a tool, as a part of a message."""
    return {"type": "tool_result", "name": tool_name(name), "content": text} | _id_field(id)


def _id_field(id: object) -> dict[str, Any]:
    return {"id": id} if isinstance(id, str) and id else {}


def tool_name(name: object) -> str:
    """A tool by our name for it."""
    if not isinstance(name, str):
        return ""
    plain = name.lower()
    return "bash" if plain in SHELLS else OTHERS.get(plain, name)


def content_text(content: object, *kinds: str) -> str:
    """The text in a content that is a text or a list of parts, of which those of these types are meant."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    words = [part.get("text") for part in parts if part.get("type", "text") in (kinds or ("text",))]
    return "\n".join(one for one in words if isinstance(one, str))


def files(folder: str, *, end: str = ".jsonl", begin: str = "", deep: bool = True) -> Iterator[str]:
    """The files of a folder by name, oldest name first; links and unreadable files are left out."""
    for where, below, names in os.walk(folder):
        below[:] = sorted(below) if deep else []
        yield from (
            os.path.join(where, name) for name in sorted(names) if name.endswith(end) and name.startswith(begin)
        )

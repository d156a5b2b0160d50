"""The index of a working tree, read as a file: which content Git last put at a path, or was given from there."""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator

from commonplace.model.values import Value

INDEX_BYTES = 1 << 30
_HEADER = struct.Struct(">4sII")
_STAT = struct.Struct(">10I")
_FLAGS = struct.Struct(">H")
_EXTENSION = struct.Struct(">4sI")
_EXTENDED, _LENGTH = 0x4000, 0x0FFF
_SKIP_WORKTREE = 0x4000  # of the second flags
_PADDED, _PLAIN, _COMPRESSED = 2, 3, 4  # versions


class Staged(Value):
    """An entry of the index; a path with a conflict has several."""

    blob: str
    size: int  #: of the file when Git last looked, modulo 2**32
    mtime: tuple[int, int]  #: of the file then: seconds, nanoseconds
    is_left_out: bool = False  #: a sparse checkout leaves the file out of the working tree

    def is_unchanged(self, status: os.stat_result) -> bool:
        """Whether a file is as Git left it: its content is this blob's, whatever a checkout made of it."""
        seconds, nanoseconds = divmod(status.st_mtime_ns, 1_000_000_000)
        return self.size == status.st_size & 0xFFFFFFFF and self.mtime in (
            (seconds & 0xFFFFFFFF, nanoseconds),
            (seconds & 0xFFFFFFFF, 0),  # a Git that was built without them
        )


class Unreadable(Exception):
    """The index is none of the kinds that are read here: it is split, newer, or damaged."""


def read_index(path: str, wanted: Collection[str], *, id_bytes: int = 20) -> dict[str, list[Staged]]:
    """Return the entries of these paths; raises ``Unreadable``.  Without an index nothing is tracked.

    Capitals and the two forms of an accent make no difference: on some file systems ``DECISIONS/a.md`` of a repository
    lands in ``decisions/a.md``.
    """
    try:
        if os.path.getsize(path) > INDEX_BYTES or not os.path.isfile(path):
            raise Unreadable
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Unreadable from error
    names: dict[bytes, list[str]] = {}
    for name in wanted:
        names.setdefault(_folded(os.fsencode(name)), []).append(name)
    found: dict[str, list[Staged]] = {}
    try:
        for folded, staged in _entries(data, names, id_bytes):
            for name in names[folded]:
                found.setdefault(name, []).append(staged)
    except (struct.error, IndexError, ValueError) as error:
        raise Unreadable from error
    return found


def _folded(name: bytes) -> bytes:
    """A path without regard to what some file systems do not tell apart."""
    if name.isascii():
        return name.lower()
    from unicodedata import normalize  # noqa: PLC0415 - hardly any path needs it

    return os.fsencode(normalize("NFC", normalize("NFC", os.fsdecode(name)).casefold()))


def _entries(data: bytes, names: Collection[bytes], id_bytes: int) -> Iterator[tuple[bytes, Staged]]:
    """The entries of the index that are wanted, by their folded paths; the others are only passed over."""
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in (_PADDED, _PLAIN, _COMPRESSED):
        raise Unreadable
    at, name = _HEADER.size, b""
    for _ in range(count):
        start, at = at, at + _STAT.size + id_bytes
        (flags,) = _FLAGS.unpack_from(data, at)
        at += _FLAGS.size
        more = _FLAGS.unpack_from(data, at)[0] if flags & _EXTENDED else 0
        at += _FLAGS.size if flags & _EXTENDED else 0
        if version == _COMPRESSED:
            strip, at = _offset(data, at)
            end = data.index(b"\0", at)
            name, at = name[: len(name) - strip] + data[at:end], end + 1
        else:
            length = flags & _LENGTH
            end = at + length if length < _LENGTH else data.index(b"\0", at)
            name = data[at:end]
            at = start + ((end - start + 8) & ~7)  # one NUL at least, up to a multiple of eight
        if (folded := _folded(name)) in names:
            _, _, seconds, nanoseconds, *_, size = _STAT.unpack_from(data, start)
            blob = data[start + _STAT.size : start + _STAT.size + id_bytes].hex()
            left_out = bool(more & _SKIP_WORKTREE)
            yield folded, Staged(blob=blob, size=size, mtime=(seconds, nanoseconds), is_left_out=left_out)
    _refuse_split(data, at, len(data) - id_bytes)


def _offset(data: bytes, at: int) -> tuple[int, int]:
    """A number in the encoding that packs use, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _refuse_split(data: bytes, at: int, end: int) -> None:
    """Raise for an index of which a part is in another file."""
    while at + _EXTENSION.size <= end:
        name, length = _EXTENSION.unpack_from(data, at)
        if name == b"link":
            raise Unreadable
        at += _EXTENSION.size + length

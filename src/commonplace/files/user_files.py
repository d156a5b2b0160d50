"""Files that people name: read with a sentence for what is wrong with them, replaced whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from commonplace.files import disk
from commonplace.model.errors import InvalidInput

STDIN = "-"
PIPES = ("/dev/stdin", "/dev/fd/")  # open already, so that opening them waits for nobody
LINE_BYTES = 64 * 1024 * 1024  # a record with all its versions is one line
TEXT_BYTES = 64 * 1024 * 1024  # an export of years; a disk image named by mistake is not read


def read_lines(file: str) -> Iterator[str]:
    """Yield the lines of a file, or of standard input for ``-``, with their ends."""
    number = 0
    try:
        with _open(file) as source:
            while line := source.readline(LINE_BYTES + 1):
                number += 1
                if len(line) > LINE_BYTES:
                    raise InvalidInput(f"{file}:{number}: longer than {LINE_BYTES} bytes")
                yield line.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}:{number}: not UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error


def read_text(file: str, *, limit: int = TEXT_BYTES) -> str:
    """Return the text of a file, or of standard input for ``-``, without a mark of byte order."""
    try:
        with _open(file, limit=limit) as source:
            data = disk.read_rest(source, limit=limit)
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"{file}:{line}: not UTF-8") from error


def _open(file: str, *, limit: int | None = None) -> BinaryIO:
    if file == STDIN:
        return sys.stdin.buffer
    return open(file, "rb") if file.startswith(PIPES) else disk.open_file(file, limit=limit)


@contextmanager
def replacing(file: str, *, private: bool) -> Iterator[BinaryIO]:
    """Write beside a file, then move it there; a link to a file stays one.

    ``private``: only its owner may read it; else a file that was there keeps its rights.
    """
    path = os.path.realpath(file)
    temporary = f"{path}.{os.getpid()}.part"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with open(os.open(temporary, flags, 0o600 if private else 0o666), "wb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        if not private and os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
        os.replace(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)

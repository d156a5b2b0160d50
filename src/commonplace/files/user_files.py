"""Files that people name: read with a sentence for what is wrong with them, replaced whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from commonplace.model.errors import InvalidInput

STDIN = "-"


def read_lines(file: str) -> Iterator[str]:
    """Yield the lines of a file, or of standard input for ``-``, with their ends."""
    number = 0
    try:
        with sys.stdin.buffer if file == STDIN else open(file, "rb") as source:
            for number, line in enumerate(source, start=1):  # noqa: B007 - an error names it
                yield line.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}:{number}: not UTF-8") from error
    except OSError as error:
        raise InvalidInput(f"{file!r} cannot be read: {error.strerror}") from error


def read_text(file: str) -> str:
    """Return the text of a file, or of standard input for ``-``, without a mark of byte order."""
    return "".join(read_lines(file)).removeprefix("\ufeff")


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

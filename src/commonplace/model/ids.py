"""Record ids: twenty characters, ordered by time, safe in URLs and file names.

Nine characters of milliseconds, eleven random ones.  Within one process no two ids share their time part: it is moved
forward instead, so that ids sort in the order in which they were made and ten characters are enough to tell them apart.
"""

from __future__ import annotations

import os
import threading
from datetime import UTC, datetime

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: nothing to misread
LENGTH = 20
SHORT = 10  # a beginning that no other record of the same process has
PART_LEAST = 4  # characters of any part of an id that name a record, if no other has them
SHOWN = 5  # random ones from the end of an id: what people see and type

_guard = threading.Lock()
_last_ms = 0


def new_id(now: datetime) -> str:
    """Return an id that sorts after every earlier one of this process."""
    global _last_ms  # noqa: PLW0603 - the one counter of the process, behind its lock
    with _guard:
        _last_ms = max(int(now.timestamp() * 1000), _last_ms + 1)
        moment = _last_ms
    return _base32(moment, 9) + _base32(int.from_bytes(os.urandom(7), "big"), 11)


def is_id(text: str) -> bool:
    """Whether the text could be an id, whole."""
    return len(text) == LENGTH and is_prefix(text)


def is_prefix(text: str) -> bool:
    """Whether the text could be the beginning of an id."""
    return 0 < len(text) <= LENGTH and not text.strip(ALPHABET)


def moment_of(id: str) -> datetime:
    """Return when an id was made, to the millisecond."""
    number = 0
    for letter in id[:9]:
        number = number << 5 | ALPHABET.index(letter)
    return datetime.fromtimestamp(number // 1000, UTC).replace(microsecond=number % 1000 * 1000)


def _base32(number: int, length: int) -> str:
    return "".join(ALPHABET[number >> shift & 31] for shift in range(5 * (length - 1), -1, -5))

"""What both stores share when they are carried to another one.  Pure: no connection is seen here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from commonplace.stores.rows import FIELDS

PAGE = 200  # things that are read at once, with all that hangs on them
MARK = "moving"  # the key under which a store notes what it is being filled from

#: A version as it is carried: its columns, then its terms as one text, its vector and the one beside it.
CARRIED = (*FIELDS, "valid_from", "digest", "hash")
SCOPE, KIND, KEY = (CARRIED.index(name) for name in ("scope", "kind", "key"))
TAGS, PARENTS = CARRIED.index("tags"), CARRIED.index("parents")
ARCHIVED, HELD, EXPIRES = (CARRIED.index(name) for name in ("archived_at", "held", "expires_at"))
CATEGORY = CARRIED.index("category")

DOCUMENT = ("digest", "content", "metadata", "channel", "ref", "parents", "trust", "created_at", "updated_at")
CHUNK = ("seq", "ref", "text", "speaker", "occurred_at", "trust")
FILE = ("record", "version", "digest", "stamp")
JOB = (
    "status", "token", "lease_until", "retry_at", "tries_left", "error", "input", "done", "started_at", "finished_at",
)  # fmt: skip

EVENT = ("scope", "what", "at", "record", "kind", "key", "version", "previous", "tags", "detail")

TERM_MOST = 500  # bytes: an index of PostgreSQL holds no long ones


def indexed(term: str) -> str:
    """A term as the index of PostgreSQL has it: a very long one by its hash."""
    said = term.encode()
    return term if len(said) <= TERM_MOST else f"#{sha256(said).hexdigest()}"


def terms_of(terms: Iterable[str]) -> str:
    """Terms as they are carried."""
    return " ".join(map(indexed, terms))


def names(columns: Iterable[str], alias: str) -> str:
    """These columns under an alias; of a scope its path, under the alias `s`."""
    return ", ".join("s.path" if column == "scope" else f"{alias}.{column}" for column in columns)


def is_keyed(version: Sequence[Any]) -> bool:
    """Whether a version holds its key."""
    return version[KEY] is not None and version[ARCHIVED] is None and not version[HELD]


def is_open(version: Sequence[Any]) -> bool:
    """Whether a version is neither archived nor held."""
    return version[ARCHIVED] is None and not version[HELD]

"""A store as an ordered list of items, to copy it to another store and to compare the two.

An item is everything about one thing: a record with its versions, use and vectors, a document with its chunks.
It refers to things by name, never by a database's row number: two stores with the same contents give the same items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from commonplace.model.records import Json
from commonplace.model.values import Value

#: The sorts of items, in the order in which they are copied: owners come before what they own.
SORTS = ("embedder", "scope", "record", "document", "file", "job", "event", "trimmed", "tombstone")
Place: TypeAlias = tuple[int, tuple[Any, ...]]  #: the position of an item in that order


class Item(Value):
    """One thing of a store."""

    sort: str  #: one of ``SORTS``
    key: tuple[Any, ...]  #: its name among its sort: texts, or numbers
    data: tuple[Any, ...]  #: everything else; vectors are bytes

    @property
    def place(self) -> Place:
        """Its position in the order."""
        return SORTS.index(self.sort), self.key

    @property
    def encoded(self) -> bytes:
        """The canonical bytes of the item: the same for equal items, and only for them."""
        return json.dumps([self.sort, self.key, self.data], ensure_ascii=False, default=bytes.hex).encode()


def digest(items: Iterator[Item]) -> str:
    """Return one hash of all items."""
    whole = sha256()
    for item in items:
        whole.update(sha256(item.encoded).digest())
    return whole.hexdigest()


class TextCleaner(Protocol):
    """Cleans the texts of items, and notes what it found where."""

    def at(self, place: str) -> AbstractContextManager[None]:
        """Name the thing that the following texts belong to."""

    def clean(self, field: str, value: Json, *, under: str = "") -> Json:
        """Return a text or a JSON value as it may be stored; ``under`` is the key that it is stored under."""

    def refuse(self, field: str, name: str) -> None:
        """Note a name that may not be stored and cannot be replaced."""

    def terms(self, text: str) -> list[str]:
        """Return the search terms of a text."""


class ItemCopier(Protocol):
    """Copies a store item by item; every store has one."""

    @property
    def name(self) -> str:
        """The store's name, without any password."""

    def count(self) -> int:
        """Return the number of items."""

    def reading(self) -> AbstractContextManager[Iterator[Item]]:
        """Open a snapshot: every item in order, unaffected by concurrent writes."""

    def items(self) -> Iterator[Item]:
        """Yield every item in order, without a snapshot: for a process that is the only writer."""

    def copy_source(self) -> str | None:
        """Return the name of the store that is being copied into this one; None if no copy is unfinished."""

    def write(self, items: Sequence[Item], *, gone: Collection[Item] = (), copy_source: str | None) -> None:
        """Erase ``gone``, write ``items`` over those of the same name and set the copy source, in one transaction."""

    def rewrite_item(self, item: Item, cleaner: TextCleaner) -> Item | None:
        """Return an item with its texts as the cleaner leaves them; None if it leaves them as they are."""

    def rewrite(self, places: Collection[Place], cleaner: TextCleaner) -> int:
        """Read these items again and clean them, in one transaction; returns how many were written."""

    def erase_old_bytes(self) -> bool:
        """Remove what was overwritten from every file; False while a reader needs the old bytes."""

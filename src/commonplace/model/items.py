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

from commonplace.model.values import Value

#: The sorts of items, in the order in which they are copied: owners come before what they own.
SORTS = ("embedder", "scope", "record", "document", "file", "job", "event", "trimmed", "audit")
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

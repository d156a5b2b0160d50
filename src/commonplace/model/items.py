"""A store as a list of items in one order, so that it can be copied to another store and compared with it.

An item is everything about one thing: a record with its versions, usage and vectors, a document with its chunks.  It
uses names, never the row numbers of a database: two stores that hold the same give the same items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from commonplace.model.values import Value

#: The sorts of items, in order: what others belong to comes before them.
SORTS = ("embedder", "scope", "record", "document", "file", "job", "event", "trimmed")
Place: TypeAlias = tuple[int, tuple[Any, ...]]  #: the place of an item in that order


class Item(Value):
    """One thing of a store."""

    sort: str  #: one of ``SORTS``
    key: tuple[Any, ...]  #: unique among its sort: texts, or numbers
    data: tuple[Any, ...]  #: everything else; vectors are bytes

    @property
    def place(self) -> Place:
        """Its place in the order."""
        return SORTS.index(self.sort), self.key

    @property
    def encoded(self) -> bytes:
        """The item as bytes: equal for equal items, and for no others."""
        return json.dumps([self.sort, self.key, self.data], ensure_ascii=False, default=bytes.hex).encode()


def digest(items: Iterator[Item]) -> str:
    """Hash a whole store."""
    whole = sha256()
    for item in items:
        whole.update(sha256(item.encoded).digest())
    return whole.hexdigest()


class Mover(Protocol):
    """Reads a store as items, and writes items to it."""

    @property
    def name(self) -> str:
        """What tells the store from every other, without any password."""

    def count(self) -> int:
        """Return how many items there are."""

    def reading(self) -> AbstractContextManager[Iterator[Item]]:
        """Yield every item in order, of one state of the store, while others write."""

    def items(self) -> Iterator[Item]:
        """Yield every item in order, of the state at each moment: for the only writer."""

    def begun(self) -> str | None:
        """Return the name of the store that this one is being filled from; None: it is not being filled."""

    def write(self, items: Sequence[Item], *, gone: Collection[Item] = (), begun: str | None) -> None:
        """Erase items and write others, replacing those of the same key, in one transaction, with the mark."""

"""A store as a list of items in one order, so that it can be carried to another store and compared with it.

An item is everything about one thing, whole: a record with its versions, use and vectors, a document with its chunks.
It names things by what they are called, never by where a database happens to number them: two stores that hold the same
give the same items.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from typing import Any, Protocol, TypeAlias

from commonplace.model.values import Value

#: What there is, in the order in which it is carried: what others belong to comes before them.
SORTS = ("embedder", "scope", "record", "document", "file", "job", "event", "trimmed")
Place: TypeAlias = tuple[int, tuple[Any, ...]]  #: where an item stands in that order


class Item(Value):
    """One thing of a store, whole."""

    sort: str  #: one of ``SORTS``
    key: tuple[Any, ...]  #: what it is called among its sort: texts, or numbers
    data: tuple[Any, ...]  #: everything else; vectors are bytes

    @property
    def place(self) -> Place:
        """Where it stands."""
        return SORTS.index(self.sort), self.key

    @property
    def said(self) -> bytes:
        """The item in one form: equal items, and no others, say the same."""
        return json.dumps([self.sort, self.key, self.data], ensure_ascii=False, default=bytes.hex).encode()


def digest(items: Iterator[Item]) -> str:
    """What a whole store says, in one number."""
    whole = sha256()
    for item in items:
        whole.update(sha256(item.said).digest())
    return whole.hexdigest()


class Mover(Protocol):
    """What carries a store: every store has one."""

    @property
    def name(self) -> str:
        """What the store is called, without any password."""

    def count(self) -> int:
        """How many items there are."""

    def reading(self) -> AbstractContextManager[Iterator[Item]]:
        """Every item in order, of one state of the store, while others write."""

    def items(self) -> Iterator[Item]:
        """Every item in order, of the state at each moment: for whoever alone writes."""

    def begun(self) -> str | None:
        """The name of the store that this one is being filled from; None: it is nobody's copy in the making."""

    def write(self, items: Sequence[Item], *, gone: Collection[Item] = (), begun: str | None) -> None:
        """Erase these and put those in the place of whatever is called the same, in one transaction, with the mark."""

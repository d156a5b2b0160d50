"""Binding: who writes where, who may read what, and within which limits.  Every configuration becomes one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from commonplace.model.errors import InvalidInput
from commonplace.model.queries import Order
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

CONTENT_BYTES = 16_384  # a long runbook fits; a pasted log does not
CONTENT_BYTES_LIMIT = 1_048_576  # no configuration may exceed it


PERSONAL = ("allow", "mask", "block")  #: what becomes of personal data: it is tagged, replaced, or refused


class Limit(Value):
    """How many records of a kind a scope may hold, and which go first."""

    keep: int
    order: Order = Order.OLDEST

    def _check(self) -> None:
        if self.keep < 1:
            raise InvalidInput(f"a limit of {self.keep} records would keep nothing")


class Binding(Value):
    """What one caller may do."""

    channel: Channel  #: the channel of everything that it writes
    writes: Mapping[Kind, Scope]  #: default scope of each kind; a kind without an entry is off
    reads: tuple[Scope, ...]  #: the scopes that it may read
    also_writes: frozenset[Scope] = frozenset()  #: where else it may write if the caller names the scope
    transcripts: frozenset[Scope] = frozenset()  #: where sessions and tickets may be indexed
    categories: Mapping[str, Kind] | None = None  #: a closed list, with the kind of each; None: any slug
    temporary: frozenset[str] | None = None  #: the categories that may expire; None: any
    limits: Mapping[Kind, Limit] = MappingProxyType({})
    content_bytes: int = CONTENT_BYTES
    personal: Mapping[Scope, str] = MappingProxyType({})  #: one of ``PERSONAL`` for a scope; without one: allow
    filed: bool = True  #: a Markdown file may have to hold what it writes, and holds smaller, flatter values

    def may_write(self, scope: Scope) -> bool:
        """Whether it may write there at all."""
        return scope in self.also_writes or scope in self.writes.values()

    def _check(self) -> None:
        if not self.reads:
            raise InvalidInput("a binding that may read nothing has no use")
        if not 1 <= self.content_bytes <= CONTENT_BYTES_LIMIT:
            raise InvalidInput(f"content_bytes is {self.content_bytes}; it must be between 1 and {CONTENT_BYTES_LIMIT}")

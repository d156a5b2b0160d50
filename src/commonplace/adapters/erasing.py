"""How an adapter deletes: for good, with whatever memory has written of it elsewhere, in one write for all of it."""

from __future__ import annotations

from collections.abc import Sequence

from commonplace.engine.forgetting import erase
from commonplace.engine.memory import Memory
from commonplace.model.records import Record
from commonplace.model.scopes import Scope


def erased(memory: Memory, records: Sequence[Record], *, scope: Scope) -> tuple[str, ...]:
    """Erase records of a scope; the ids of those that went, without any that somebody else has erased meanwhile."""
    if not records:
        return ()
    outcome, erasure = erase(memory.store, records, scope=scope, reads=(scope,), now=memory.clock())
    memory.erased(erasure)
    return outcome.gone

"""Find one record by its id, by a part of it, or by its key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.ids import LENGTH, PART_LEAST, is_prefix
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Record

if TYPE_CHECKING:
    from commonplace.engine.memory import Memory

SHOWN = 3  # records that an ambiguous part could mean


def find_by_id(memory: Memory, id: str) -> Record:
    """Return the record with an id that begins so, or else has this somewhere; archived ones too."""
    text = id.strip().lower()
    if not is_prefix(text):
        raise NotFound(f"there is no record {id!r}")
    where = Filter(scopes=frozenset(memory.binding.reads), at=memory.clock(), states=ANY_STATE, prefix=text)
    found, how = memory.store.find(where, order=Order.ID, limit=SHOWN + 1), "begins"
    if not found and PART_LEAST <= len(text) < LENGTH:
        found, how = memory.store.find(where.replace(prefix=None, part=text), order=Order.ID, limit=SHOWN + 1), "is in"
    if not found:
        raise NotFound(f"there is no record {id!r}")
    if len(found) > 1:
        several = ", ".join(record.id for record in found[:SHOWN]) + (", ..." if len(found) > SHOWN else "")
        raise InvalidInput(f"{id!r} {how} the ids of several records: {several}")
    return found[0]


def find_by_key(memory: Memory, key: str) -> Record:
    """Return the live record with a key."""
    where = Filter(scopes=frozenset(memory.binding.reads), at=memory.clock(), keys=frozenset({key}))
    found = memory.store.find(where, order=Order.NEWEST, limit=SHOWN)
    if not found:
        raise NotFound(f"there is no live record with the key {key!r}")
    if len(found) > 1:
        several = ", ".join(f"{one.id} ({one.scope}, {one.kind})" for one in found)
        raise InvalidInput(f"several records have the key {key!r}: {several}; get one by its id")
    return found[0]

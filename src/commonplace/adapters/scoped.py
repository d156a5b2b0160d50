"""What every adapter does with its own scopes: a memory bound to them, records found by key, erased for good."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from commonplace.engine.admission import Gate
from commonplace.engine.forgetting import Removal, erase
from commonplace.engine.memory import Memory, with_binding
from commonplace.model.binding import CONTENT_BYTES_LIMIT, Binding
from commonplace.model.queries import Filter, Order, State
from commonplace.model.records import Channel, Kind, Record
from commonplace.model.scopes import Scope

ALL = -1
LIVE = frozenset({State.LIVE})


def scoped_memory(
    memory: Memory, *scopes: Scope, channel: Channel = Channel.AGENT, kind: Kind = Kind.SEMANTIC
) -> Memory:
    """Return the same memory bound to these scopes alone, of which the first is written to by default."""
    return with_binding(
        memory,
        Binding(
            channel=channel, writes={kind: scopes[0]}, reads=scopes, also_writes=frozenset(scopes),
            content_bytes=CONTENT_BYTES_LIMIT, filed=False,
        ),
    )  # fmt: skip


def find_records(
    memory: Memory,
    keys: Collection[str] | None = None,
    *,
    states: frozenset[State] = LIVE,
    order: Order = Order.NEWEST,
    limit: int = ALL,
) -> list[Record]:
    """Return the records of a bound memory, of these keys or all."""
    where = Filter(
        scopes=frozenset(memory.binding.reads), at=memory.clock(), states=states,
        keys=None if keys is None else frozenset(keys),
    )  # fmt: skip
    return memory.store.find(where, order=order, limit=limit)


def stored_key(memory: Memory, key: str, *, what: str) -> str:
    """Return a key as it is stored: it passes the gate on every write, so it has to pass it when it is looked up."""
    return Gate(memory.secret()).text(key, what=what)


def erase_records(memory: Memory, records: Sequence[Record]) -> tuple[str, ...]:
    """Erase records of one scope irreversibly, with everything that memory derived from them, in one write.

    Returns the ids of the erased records, without those that another process has erased meanwhile.
    """
    if not records:
        return ()
    scope = records[0].scope
    removal = Removal(records=tuple(records))
    outcome, erasure = erase(memory.store, removal, reads=(scope,), now=memory.clock())
    memory.erased(erasure)
    return outcome.gone

"""A LangGraph store on Commonplace: ``graph.compile(store=CommonplaceStore(commonplace.open("memory.db")))``.

An item is a record with a key in the scope of its namespace; a search is Commonplace's own recall, by words and by
meaning, over the namespaces below a prefix.  What comes in passes the gate that every write passes, so a secret in a
value is stored as its mark.  Expiry is decided when reading; there is nothing to sweep.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, cast

from commonplace.adapters.erasing import erased
from commonplace.engine.admission import Gate
from commonplace.engine.memory import Memory, bound
from commonplace.model.binding import CONTENT_BYTES_MOST, Binding
from commonplace.model.errors import NotFound
from commonplace.model.queries import ANY_STATE, Filter, Hit, Order, State
from commonplace.model.records import Channel, Json, Kind, Record
from commonplace.model.scopes import Scope

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError("this adapter needs LangGraph: pip install 'commonplace[langgraph]'") from error

Namespace = tuple[str, ...]

TTL = "ttl_minutes"  # in a record's metadata: how long it lives after it was read last
SEARCHED_MOST = 1000  # items that a filter looks through behind a question
ALL = -1
LIVE = frozenset({State.LIVE})

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt,
    "$lte": operator.le,
}  # fmt: skip


class CommonplaceStore(BaseStore):
    """A ``BaseStore`` that keeps its items in a memory, under one name, apart from everything else in it."""

    __slots__ = ("_memory", "_root", "ttl_config")
    supports_ttl = True

    def __init__(self, memory: Memory, *, name: str = "langgraph", ttl: TTLConfig | None = None) -> None:
        """Keep items in the store of ``memory``; two stores of one name there are one."""
        self._memory = memory
        self._root = ("namespace", name)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer what is asked, then make the changes, the last one for each item; see ``BaseStore``."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        puts = {(op.namespace, op.key): op for op in asked if isinstance(op, PutOp)}
        answers = [None if isinstance(op, PutOp) else self._answer(op) for op in asked]
        for put in puts.values():
            if put.value is not None:
                self._put(put, put.value)
        self._delete([put for put in puts.values() if put.value is None])
        return answers

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, off the loop."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: GetOp | SearchOp | ListNamespacesOp) -> Result:
        if isinstance(op, GetOp):
            record = self._held(op.namespace, op.key)
            return Item(**self._read(record, refresh=op.refresh_ttl)) if record else None
        if isinstance(op, SearchOp):
            return list(self._searched(op))
        return self._listed(op)

    # Items

    def _bound(self, *namespaces: Namespace) -> Memory:
        scopes = tuple(self._scope(namespace) for namespace in namespaces)
        binding = Binding(
            channel=Channel.AGENT, writes={Kind.SEMANTIC: scopes[0]}, reads=scopes, also_writes=frozenset(scopes),
            content_bytes=CONTENT_BYTES_MOST, filed=False,
        )  # fmt: skip
        return bound(self._memory, binding)

    def _scope(self, namespace: Namespace) -> Scope:
        return Scope.of(self._root, *(("namespace", label) for label in namespace))

    def _key(self, key: str) -> str:
        """A key as it is kept: it passes the gate as well, and what it is asked for by has to pass it likewise."""
        return Gate(self._memory.secret()).text(key, what="the key")

    def _at(self, namespace: Namespace, keys: Iterable[str], states: frozenset[State]) -> list[Record]:
        scopes, asked = frozenset({self._scope(namespace)}), frozenset(map(self._key, keys))
        where = Filter(scopes=scopes, at=self._memory.clock(), keys=asked, states=states)
        return self._memory.store.find(where, order=Order.NEWEST, limit=ALL)

    def _held(self, namespace: Namespace, key: str) -> Record | None:
        return next(iter(self._at(namespace, [key], LIVE)), None)

    def _put(self, op: PutOp, value: Mapping[str, Any]) -> None:
        metadata: dict[str, Json] = {TTL: op.ttl} if op.ttl is not None else {}
        lives = timedelta(minutes=op.ttl) if op.ttl is not None else None
        self._bound(op.namespace).remember(_text(op), key=op.key, value=dict(value), metadata=metadata, ttl=lives)

    def _delete(self, ops: Iterable[PutOp]) -> None:
        """Erase items for good, those of a namespace at once; what had expired under their keys goes too."""
        keys: dict[Namespace, list[str]] = {}
        for op in ops:
            keys.setdefault(op.namespace, []).append(op.key)
        for namespace, meant in keys.items():
            erased(self._memory, self._at(namespace, meant, ANY_STATE), scope=self._scope(namespace))

    def _read(self, record: Record, *, refresh: bool) -> dict[str, Any]:
        """A record as an item's fields; being read gives one with a time to live as much time again."""
        namespace = tuple(label for _, label in record.scope.segments[1:])
        lives = record.metadata.get(TTL)
        if refresh and isinstance(lives, int | float):
            until = self._memory.clock() + timedelta(minutes=lives)
            with suppress(NotFound):  # somebody has deleted it since it was found
                self._bound(namespace).update(record.id, expires_at=until)
        return {
            "value": record.value, "key": record.key, "namespace": namespace,
            "created_at": record.created_at, "updated_at": record.updated_at,
        }  # fmt: skip

    # Searching

    def _searched(self, op: SearchOp) -> Iterator[SearchItem]:
        found = self._found(op)
        fitting = ((record, score) for record, score in found if _fits(record.value, op.filter))
        for record, score in list(fitting)[op.offset : op.offset + op.limit]:
            yield SearchItem(**self._read(record, refresh=op.refresh_ttl), score=score)

    def _found(self, op: SearchOp) -> Iterator[tuple[Record, float | None]]:
        """What the question finds, best first; without one everything, what was written last first."""
        namespaces = self._below(op.namespace_prefix)
        if not namespaces:
            return
        memory = self._bound(*namespaces)
        if not op.query:
            live = memory.list(limit=ALL)
            yield from ((record, None) for record in sorted(live, key=lambda one: one.updated_at, reverse=True))
            return
        most = SEARCHED_MOST if op.filter else op.offset + op.limit
        for hit in memory.recall(op.query, limit=most):
            yield from ((record, hit.score) for record in _records(memory, hit))

    def _below(self, prefix: Namespace) -> list[Namespace]:
        """The namespaces that begin so and hold anything."""
        own = [
            tally.scope for tally in self._memory.store.census(at=self._memory.clock()) if tally.state is State.LIVE
            and tally.scope.segments[0] == self._root
        ]  # fmt: skip
        names = {tuple(label for _, label in scope.segments[1:]) for scope in own}
        return sorted(name for name in names if name[: len(prefix)] == prefix)

    def _listed(self, op: ListNamespacesOp) -> list[Namespace]:
        fitting = [name for name in self._below(()) if all(_matches(name, one) for one in op.match_conditions or ())]
        cut = sorted({name[: op.max_depth] for name in fitting})
        return cut[op.offset : op.offset + op.limit]


def _records(memory: Memory, hit: Hit) -> Iterator[Record]:
    """A hit's record, and those that say the same: items are never one because their values are."""
    if hit.record:
        yield hit.record
    yield from (memory.get(name) for name in hit.alike)


def _text(op: PutOp) -> str:
    """What an item is found by: the fields that it names, else its whole value; its key alone if it wants no index."""
    if op.index is False:
        return op.key
    texts = [text for path in op.index or () for text in get_text_at_path(op.value, path)]
    return "\n".join(texts)


def _matches(name: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(name) < len(path):
        return False
    part = name[: len(path)] if condition.match_type == "prefix" else name[len(name) - len(path) :]
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))


def _fits(value: Json, wanted: Mapping[str, Any] | None) -> bool:
    fields = value if isinstance(value, dict) else {}
    return all(_compared(fields.get(name), asked) for name, asked in (wanted or {}).items())


def _compared(value: Any, asked: Any) -> bool:
    """Whether a field is what is asked for: a value, or conditions such as ``{"$gte": 3}``."""
    if not isinstance(asked, dict) or not any(str(name).startswith("$") for name in asked):
        return cast("bool", value == asked)
    unknown = [name for name in asked if name not in _COMPARE]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a comparison; use one of {', '.join(_COMPARE)}")
    try:
        return all(_COMPARE[name](value, bound) for name, bound in asked.items())
    except TypeError:  # what cannot be compared is neither less nor more
        return False

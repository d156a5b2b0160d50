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

from commonplace.adapters.scoped import ALL, LIVE, erase_records, find_records, scoped_memory, stored_key
from commonplace.engine.memory import Memory
from commonplace.install import hint
from commonplace.model.errors import NotFound
from commonplace.model.queries import ANY_STATE, Hit, State
from commonplace.model.records import Json, Record
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
    raise ImportError(hint("this adapter needs LangGraph", "langgraph")) from error

Namespace = tuple[str, ...]

TTL = "ttl_minutes"  # in a record's metadata: how long it lives after it was read last
SEARCHED_MOST = 1000  # items that a filter looks through behind a question

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt,
    "$lte": operator.le,
}  # fmt: skip


class CommonplaceStore(BaseStore):
    """A ``BaseStore`` whose items are records of a memory, in scopes of its own."""

    __slots__ = ("_memory", "_root", "ttl_config")
    supports_ttl = True

    def __init__(self, memory: Memory, *, name: str = "langgraph", ttl: TTLConfig | None = None) -> None:
        """Store items where ``memory`` does; two stores of one name there are one."""
        self._memory = memory
        self._root = ("namespace", name)
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer the reads, then make the changes, the last one for each item; see ``BaseStore``."""
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
            record = next(iter(self._find(op.namespace, [op.key])), None)
            return Item(**self._read(record, refresh=op.refresh_ttl)) if record else None
        if isinstance(op, SearchOp):
            return list(self._search(op))
        return self._list_namespaces(op)

    # Items

    def _memory_of(self, *namespaces: Namespace) -> Memory:
        scopes = [Scope.of(self._root, *(("namespace", label) for label in namespace)) for namespace in namespaces]
        return scoped_memory(self._memory, *scopes)

    def _find(self, namespace: Namespace, keys: Iterable[str], states: frozenset[State] = LIVE) -> list[Record]:
        memory = self._memory_of(namespace)
        return find_records(memory, [stored_key(memory, key, what="the key") for key in keys], states=states)

    def _put(self, op: PutOp, value: Mapping[str, Any]) -> None:
        metadata: dict[str, Json] = {TTL: op.ttl} if op.ttl is not None else {}
        lives = timedelta(minutes=op.ttl) if op.ttl is not None else None
        self._memory_of(op.namespace).remember(_text(op), key=op.key, value=dict(value), metadata=metadata, ttl=lives)

    def _delete(self, ops: Iterable[PutOp]) -> None:
        """Erase items for good, those of a namespace at once; what had expired under their keys goes too."""
        keys: dict[Namespace, list[str]] = {}
        for op in ops:
            keys.setdefault(op.namespace, []).append(op.key)
        for namespace, meant in keys.items():
            erase_records(self._memory, self._find(namespace, meant, ANY_STATE))

    def _read(self, record: Record, *, refresh: bool) -> dict[str, Any]:
        """Return a record as an item's fields; reading one with a time to live extends it."""
        namespace = tuple(label for _, label in record.scope.segments[1:])
        lives = record.metadata.get(TTL)
        if refresh and isinstance(lives, int | float):
            until = self._memory.clock() + timedelta(minutes=lives)
            with suppress(NotFound):  # deleted since it was found
                self._memory_of(namespace).update(record.id, expires_at=until)
        return {
            "value": record.value, "key": record.key, "namespace": namespace,
            "created_at": record.created_at, "updated_at": record.updated_at,
        }  # fmt: skip

    # Searching

    def _search(self, op: SearchOp) -> Iterator[SearchItem]:
        found = self._matching(op)
        fitting = ((record, score) for record, score in found if _passes_filter(record.value, op.filter))
        for record, score in list(fitting)[op.offset : op.offset + op.limit]:
            yield SearchItem(**self._read(record, refresh=op.refresh_ttl), score=score)

    def _matching(self, op: SearchOp) -> Iterator[tuple[Record, float | None]]:
        """Yield what the question finds, best first; without a question everything, last written first."""
        namespaces = self._namespaces(op.namespace_prefix)
        if not namespaces:
            return
        memory = self._memory_of(*namespaces)
        if not op.query:
            live = memory.list(limit=ALL)
            yield from ((record, None) for record in sorted(live, key=lambda one: one.updated_at, reverse=True))
            return
        most = SEARCHED_MOST if op.filter else op.offset + op.limit
        for hit in memory.recall(op.query, limit=most):
            yield from ((record, hit.score) for record in _records(memory, hit))

    def _namespaces(self, prefix: Namespace) -> list[Namespace]:
        """Return the namespaces below a prefix that hold anything."""
        own = [
            tally.scope for tally in self._memory.store.census(at=self._memory.clock()) if tally.state is State.LIVE
            and tally.scope.segments[0] == self._root
        ]  # fmt: skip
        names = {tuple(label for _, label in scope.segments[1:]) for scope in own}
        return sorted(name for name in names if name[: len(prefix)] == prefix)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        fitting = [
            name for name in self._namespaces(()) if all(_matches(name, one) for one in op.match_conditions or ())
        ]
        cut = sorted({name[: op.max_depth] for name in fitting})
        return cut[op.offset : op.offset + op.limit]


def _records(memory: Memory, hit: Hit) -> Iterator[Record]:
    """Yield a hit's record and its duplicates: equal values do not make items one."""
    if hit.record:
        yield hit.record
    yield from (memory.get(name) for name in hit.alike)


def _text(op: PutOp) -> str:
    """Return the text that finds an item: the fields that it names, else its whole value; its key if not indexed."""
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


def _passes_filter(value: Json, wanted: Mapping[str, Any] | None) -> bool:
    fields = value if isinstance(value, dict) else {}
    return all(_compare(fields.get(name), asked) for name, asked in (wanted or {}).items())


def _compare(value: Any, asked: Any) -> bool:
    """Return whether a field is what is asked for: a value, or conditions such as ``{"$gte": 3}``."""
    if not isinstance(asked, dict) or not any(str(name).startswith("$") for name in asked):
        return cast("bool", value == asked)
    unknown = [name for name in asked if name not in _COMPARE]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a comparison; use one of {', '.join(_COMPARE)}")
    try:
        return all(_COMPARE[name](value, bound) for name, bound in asked.items())
    except TypeError:  # what cannot be compared is neither less nor more
        return False

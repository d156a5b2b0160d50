"""The same verbs for programs with an event loop.  Every verb runs in a thread; the core is synchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from commonplace.engine.bulk import Transaction
from commonplace.engine.memory import Memory
from commonplace.engine.results import BulkResult
from commonplace.model.records import Record

P = ParamSpec("P")
R = TypeVar("R")


def _in_thread(verb: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[AsyncMemory, P], Awaitable[R]]:
    async def call(self: AsyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(verb, self.memory, *args, **kwargs)

    call.__doc__ = verb.__doc__
    call.__name__ = getattr(verb, "__name__", "call")
    call.__wrapped__ = verb  # type: ignore[attr-defined]  # inspect shows the verb's own signature
    return call


class AsyncMemory:
    """A memory whose verbs are awaited."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    remember = _in_thread(Memory.remember)
    remember_many = _in_thread(Memory.remember_many)
    learn = _in_thread(Memory.learn)
    update = _in_thread(Memory.update)
    reclassify = _in_thread(Memory.reclassify)
    pin = _in_thread(Memory.pin)
    unpin = _in_thread(Memory.unpin)
    hold = _in_thread(Memory.hold)
    release = _in_thread(Memory.release)
    approve = _in_thread(Memory.approve)
    reject = _in_thread(Memory.reject)
    archive = _in_thread(Memory.archive)
    restore = _in_thread(Memory.restore)
    forget = _in_thread(Memory.forget)
    clear = _in_thread(Memory.clear)
    index = _in_thread(Memory.index)
    recall = _in_thread(Memory.recall)
    get = _in_thread(Memory.get)
    list = _in_thread(Memory.list)
    history = _in_thread(Memory.history)
    close = _in_thread(Memory.close)

    def for_user(self, user: str) -> AsyncMemory:
        """See ``Memory.for_user``."""
        return AsyncMemory(self.memory.for_user(user))

    async def iterate(self, **filters: Any) -> AsyncIterator[Record]:
        """See ``Memory.iterate``."""
        pages = self.memory.iterate(**filters)
        while (record := await asyncio.to_thread(next, pages, None)) is not None:
            yield record

    def transaction(self) -> AsyncTransaction:
        """See ``Memory.transaction``; the block is an ``async with``, and its writes are awaited."""
        return AsyncTransaction(self.memory.transaction())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


for _name in ("for_user", "iterate", "transaction"):  # inspect shows the verb's own signature
    vars(AsyncMemory)[_name].__wrapped__ = vars(Memory)[_name]


class AsyncTransaction:
    """A transaction whose writes are awaited."""

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction

    async def remember(self, content: str = "", **fields: Any) -> Record:
        """See ``Transaction.remember``."""
        return await asyncio.to_thread(self.transaction.remember, content, **fields)

    async def update(self, id: str, **fields: Any) -> Record:
        """See ``Transaction.update``."""
        return await asyncio.to_thread(self.transaction.update, id, **fields)

    async def archive(self, id: str) -> None:
        """See ``Transaction.archive``."""
        await asyncio.to_thread(self.transaction.archive, id)

    @property
    def result(self) -> BulkResult | None:
        """See ``Transaction``."""
        return self.transaction.result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            await asyncio.to_thread(self.transaction.commit)

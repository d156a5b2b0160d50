"""The same verbs for programs with an event loop.  Every verb runs in a thread; the core is synchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, Self, TypeVar

from commonplace.engine.memory import Memory

P = ParamSpec("P")
R = TypeVar("R")


def _threaded(verb: Callable[Concatenate[Memory, P], R]) -> Callable[Concatenate[AsyncMemory, P], Awaitable[R]]:
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

    remember = _threaded(Memory.remember)
    update = _threaded(Memory.update)
    reclassify = _threaded(Memory.reclassify)
    pin = _threaded(Memory.pin)
    unpin = _threaded(Memory.unpin)
    hold = _threaded(Memory.hold)
    release = _threaded(Memory.release)
    archive = _threaded(Memory.archive)
    restore = _threaded(Memory.restore)
    forget = _threaded(Memory.forget)
    clear = _threaded(Memory.clear)
    index = _threaded(Memory.index)
    recall = _threaded(Memory.recall)
    get = _threaded(Memory.get)
    list = _threaded(Memory.list)
    history = _threaded(Memory.history)
    close = _threaded(Memory.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

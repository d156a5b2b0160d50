"""The same verbs for programs with an event loop.  Every verb runs in a thread; the core is synchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, Self, TypeVar

from commonplace.engine.memory import Memory

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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

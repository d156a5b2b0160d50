"""One event loop in one thread, on which every provider's coroutine runs.

The core is synchronous and the providers' libraries are not.  A loop of our own makes a call safe from any thread, and
from inside a loop that is running already, where the libraries refuse to wait.  The thread starts with the first call
and is a daemon: it need not be stopped.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import Coroutine
from threading import Lock, Thread, current_thread
from typing import Any, TypeVar

T = TypeVar("T")
PARTING_S = 1.0  # for what still runs when the process ends


class _Loop:
    """The loop and its thread."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self._turn, name="commonplace providers", daemon=True)
        self.thread.start()
        atexit.register(self.stop)

    def _turn(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def stop(self) -> None:
        """End the thread, in the process that started it."""
        if self.process == os.getpid():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(PARTING_S)


_lock = Lock()
_running: _Loop | None = None


def _loop() -> _Loop:
    global _running  # noqa: PLW0603 - there is one for the process, by design
    with _lock:
        if _running is None or _running.process != os.getpid():  # a thread does not survive a fork
            _running = _Loop()
        return _running


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop and return its result; an interrupted caller cancels it."""
    here = _loop()
    if current_thread() is here.thread:
        work.close()
        raise RuntimeError("a coroutine on the providers' loop cannot wait for another one there: await it")
    future = asyncio.run_coroutine_threadsafe(work, here.loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise

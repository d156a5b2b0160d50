"""Client and AsyncClient: intent memory for programs, in a local store or behind a server, with the same methods.

    client = Client("memory.db")                                    # local
    client = Client("http://127.0.0.1:8000", api_key="cp_...")      # remote

A client without an agent acts for the agent that each call names; one with ``agent=`` acts for that agent only.  The
methods are the verbs of ``intents.verbs``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from commonplace.app import LOCAL
from commonplace.engine.memory import now_utc
from commonplace.install import hint
from commonplace.intents import verbs
from commonplace.intents.entries import Caller, Entry, Page, Permissions, Policy, Task, make_scope
from commonplace.intents.opening import open_intents
from commonplace.intents.verbs import IntentAccess
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Embedder
from commonplace.verbs import Verb

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
TIMEOUT_SECONDS = 30.0
REMOTE = ("http://", "https://", "unix://")


class Backend(Protocol):
    """What a client's calls go to."""

    def call(self, verb: Verb[IntentAccess, P, R], *args: P.args, **given: P.kwargs) -> R:
        """Call a verb."""

    def close(self) -> None:
        """Release connections and files."""


class Local:
    """A store that this process opens itself."""

    def __init__(self, access: IntentAccess) -> None:
        self.access = access

    def call(self, verb: Verb[IntentAccess, P, R], *args: P.args, **given: P.kwargs) -> R:
        """Call a verb."""
        return verb(self.access, *args, **given)

    def close(self) -> None:
        """Close the store."""
        self.access.intents.close()


def _method(verb: Verb[IntentAccess, P, R]) -> Callable[Concatenate[Any, P], R]:
    """Return a verb as a method that calls it on the backend."""

    def call(self: Any, /, *args: P.args, **given: P.kwargs) -> R:
        backend: Backend = self.backend
        return backend.call(verb, *args, **given)

    return _copy_name(verb.function, call)


def _in_thread(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Any, P], Awaitable[R]]:
    """Return a method that runs another one in a thread."""

    async def call(self: Any, /, *args: P.args, **given: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.plain, *args, **given)

    return _copy_name(method, call)


def _copy_name(original: Callable[..., Any], call: Callable[P, R]) -> Callable[P, R]:
    """Give a function the name, the documentation and the signature of another."""
    call.__name__ = getattr(original, "__name__", "call").rstrip("_")
    call.__doc__ = original.__doc__
    call.__wrapped__ = original  # type: ignore[attr-defined]  # inspect shows the original's signature
    return call


class Entries:
    """``client.memory``: entries with keys, versions and tiers."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    store = _method(verbs.store)
    batch = _method(verbs.batch)
    get = _method(verbs.get)
    entry = _method(verbs.entry)
    recall = _method(verbs.recall)
    list = _method(verbs.list_)
    update = _method(verbs.update)
    pin = _method(verbs.pin)
    unpin = _method(verbs.unpin)
    forget = _method(verbs.forget)
    erase = _method(verbs.erase)
    summary = _method(verbs.summary)
    events = _method(verbs.events)
    namespaces = _method(verbs.namespaces)
    permissions = _method(verbs.permissions)
    permit = _method(verbs.permit)


class Tasks:
    """``client.tasks``: what working memory belongs to."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    begin = _method(verbs.begin_task)
    assign = _method(verbs.assign_task)
    finish = _method(verbs.finish_task)
    get = _method(verbs.get_task)
    archive = _method(verbs.task_archive)
    erase = _method(verbs.erase_task)


class Client:
    """Intent memory for a program."""

    def __init__(
        self,
        store: str | None = None,
        *,
        agent: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        embedder: Embedder | str | None = LOCAL,
        capacity: int | None = None,
        event_days: int | None = None,
        clock: Clock = now_utc,
    ) -> None:
        """Open a file, the address of a database, a server (``http://...``), or by default the command's own store.

        ``api_key`` and ``timeout`` are for a server; ``embedder``, ``capacity``, ``event_days`` and ``clock`` for a
        local store.
        """
        if store is not None and store.startswith(REMOTE):
            self.backend: Backend = _remote(store, agent=agent, api_key=api_key, timeout=timeout)
        elif api_key is not None:
            raise InvalidInput("an api_key is for a server; a local store needs none")
        else:
            if agent is not None:
                make_scope(("agent", agent))  # raises for what is no name
            engine = open_intents(store, embedder=embedder, capacity=capacity, event_days=event_days, clock=clock)
            self.backend = Local(IntentAccess(intents=engine, caller=Caller(agent=agent)))
        self.memory = Entries(self.backend)
        self.tasks = Tasks(self.backend)

    def close(self) -> None:
        """Release connections and files."""
        self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _remote(url: str, **options: Any) -> Backend:
    try:
        from commonplace.intents.remote import Remote  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        need = hint("a client of a server needs an extra", "server")
        raise InvalidInput(f"{need} ({error.name!r} is missing)") from error
    return Remote(url, **options)


class AsyncEntries:
    """``client.memory``, awaited."""

    def __init__(self, plain: Entries) -> None:
        self.plain = plain

    store = _in_thread(Entries.store)
    batch = _in_thread(Entries.batch)
    get = _in_thread(Entries.get)
    entry = _in_thread(Entries.entry)
    recall = _in_thread(Entries.recall)
    list = _in_thread(Entries.list)
    update = _in_thread(Entries.update)
    pin = _in_thread(Entries.pin)
    unpin = _in_thread(Entries.unpin)
    forget = _in_thread(Entries.forget)
    erase = _in_thread(Entries.erase)
    summary = _in_thread(Entries.summary)
    events = _in_thread(Entries.events)
    namespaces = _in_thread(Entries.namespaces)
    permissions = _in_thread(Entries.permissions)
    permit = _in_thread(Entries.permit)


class AsyncTasks:
    """``client.tasks``, awaited."""

    def __init__(self, plain: Tasks) -> None:
        self.plain = plain

    begin = _in_thread(Tasks.begin)
    assign = _in_thread(Tasks.assign)
    finish = _in_thread(Tasks.finish)
    get = _in_thread(Tasks.get)
    archive = _in_thread(Tasks.archive)
    erase = _in_thread(Tasks.erase)


class AsyncClient:
    """Intent memory for a program with an event loop; every call runs in a thread."""

    def __init__(
        self,
        store: str | None = None,
        *,
        agent: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT_SECONDS,
        embedder: Embedder | str | None = LOCAL,
        capacity: int | None = None,
        event_days: int | None = None,
        clock: Clock = now_utc,
    ) -> None:
        """Open what ``Client`` opens."""
        self.plain = Client(
            store, agent=agent, api_key=api_key, timeout=timeout, embedder=embedder, capacity=capacity,
            event_days=event_days, clock=clock,
        )  # fmt: skip
        self.memory = AsyncEntries(self.plain.memory)
        self.tasks = AsyncTasks(self.plain.tasks)

    close = _in_thread(Client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


__all__ = ["AsyncClient", "Client", "Entry", "Page", "Permissions", "Policy", "Task"]

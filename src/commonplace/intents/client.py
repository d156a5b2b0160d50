"""Client and AsyncClient: intent memory for programs, in a file of their own or behind a server, with the same verbs.

    client = Client("memory.db")                                    # embedded
    client = Client("http://127.0.0.1:8000", api_key="cp_...")      # remote

A client without an agent of its own acts for whichever agent a call names; one with ``agent=`` acts for that one alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from commonplace.app import LOCAL
from commonplace.engine.memory import now_utc
from commonplace.intents.entries import scope_named, texts_listed
from commonplace.intents.intents import Caller, Entry, EntryDraft, EntryFilter, Intents, Page, Permissions, Policy, Task
from commonplace.intents.opening import open_intents
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Embedder
from commonplace.model.records import Json

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
TIMEOUT_SECONDS = 30.0
REMOTE = ("http://", "https://")


class Backend(Protocol):
    """What answers a client's calls: the engine's verbs by name, with their arguments."""

    def entry(self, verb: str, **arguments: Any) -> Entry:
        """A verb that gives one entry."""

    def entries(self, verb: str, **arguments: Any) -> list[Entry]:
        """A verb that gives several."""

    def batch(self, items: Sequence[EntryDraft]) -> list[Entry]:
        """Keep all of these or none."""

    def page(self, where: EntryFilter, *, limit: int, offset: int) -> Page:
        """A part of a list."""

    def forget(self, **arguments: Any) -> None:
        """Erase an entry."""

    def permit(self, namespace: str, permissions: Permissions) -> Permissions:
        """Say who may do what in a namespace."""

    def permissions(self, namespace: str) -> Permissions:
        """Who may do what in a namespace."""

    def task(self, verb: str, **arguments: Any) -> Task:
        """A verb of tasks."""

    def erase(self, task: str) -> None:
        """Erase a task with its archive."""

    def close(self) -> None:
        """Give back what is held."""


class Entries:
    """``client.memory``: entries with keys, versions and tiers."""

    def __init__(self, behind: Backend) -> None:
        self._behind = behind

    def store(
        self,
        agent_id: str,
        key: str,
        value: Json,
        tier: str = "episodic",
        tags: Iterable[str] = (),
        *,
        namespace: str | None = None,
        ttl: float | str | None = None,
        version: int | None = None,
        task: str | None = None,
        intent: str | None = None,
        pinned: bool | None = None,
        priority: str | None = None,
        sensitivity: str | None = None,
        expires_at: datetime | None = None,
        fresh: bool = False,
        max_entries: int | None = None,
    ) -> Entry:
        """Keep a value under a key; one that is there gets a new version.

        ``version`` makes it conditional: if the entry is at another one, ``Conflict`` says at which (``.current``).
        """
        return self._behind.entry(
            "store", agent=agent_id, key=key, value=value, tier=tier, tags=texts_listed(tags), namespace=namespace,
            ttl=ttl, version=version, task=task, intent=intent, pinned=pinned, priority=priority,
            sensitivity=sensitivity, expires_at=expires_at, fresh=fresh, max_entries=max_entries,
        )  # fmt: skip

    def recall(
        self,
        agent_id: str,
        query: str | None = None,
        tags: Iterable[str] = (),
        *,
        key: str | None = None,
        tier: str | None = None,
        namespace: str | None = None,
        task: str | None = None,
        limit: int = 10,
        brief: bool = False,
    ) -> list[Entry]:
        """Find entries: all of these tags, best first by a query, else newest first."""
        return self._behind.entries(
            "recall", agent=agent_id, query=query, tags=texts_listed(tags), key=key, tier=tier, namespace=namespace,
            task=task, limit=limit, brief=brief,
        )  # fmt: skip

    def get(
        self,
        agent_id: str,
        key: str,
        *,
        namespace: str | None = None,
        tier: str | None = None,
        task: str | None = None,
    ) -> Entry:
        """The entry with a key; ``NotFound`` if there is none that the agent may see."""
        return self._behind.entry("get", agent=agent_id, key=key, namespace=namespace, tier=tier, task=task)

    def pin(
        self,
        agent_id: str,
        key: str,
        *,
        namespace: str | None = None,
        tier: str | None = None,
        task: str | None = None,
    ) -> Entry:
        """Let an entry survive every eviction."""
        return self._behind.entry("pin", agent=agent_id, key=key, namespace=namespace, tier=tier, task=task)

    def unpin(
        self,
        agent_id: str,
        key: str,
        *,
        namespace: str | None = None,
        tier: str | None = None,
        task: str | None = None,
    ) -> Entry:
        """Let an entry be evicted again."""
        return self._behind.entry("unpin", agent=agent_id, key=key, namespace=namespace, tier=tier, task=task)

    def forget(
        self,
        agent_id: str,
        key: str,
        *,
        namespace: str | None = None,
        tier: str | None = None,
        task: str | None = None,
    ) -> None:
        """Erase an entry for good."""
        self._behind.forget(agent=agent_id, key=key, namespace=namespace, tier=tier, task=task)

    def list(
        self,
        agent_id: str | None = None,
        *,
        namespace: str | None = None,
        key: str | None = None,
        tier: str | None = None,
        tags: Iterable[str] = (),
        tags_any: Iterable[str] = (),
        task: str | None = None,
        intent: str | None = None,
        pinned: bool | None = None,
        updated_after: datetime | None = None,
        updated_before: datetime | None = None,
        query: str | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> Page:
        """A part of the entries meant, newest first, and ``.total``, how many there are; a namespace may end in *."""
        where = EntryFilter(
            agent=agent_id, namespace=namespace, key=key, tier=tier, tags=texts_listed(tags), task=task, intent=intent,
            tags_any=texts_listed(tags_any, "tags_any"), pinned=pinned, updated_after=updated_after,
            updated_before=updated_before, query=query,
        )  # fmt: skip
        return self._behind.page(where, limit=limit, offset=offset)

    def batch(self, items: Iterable[Mapping[str, Any]]) -> Sequence[Entry]:
        """Keep all of these or none; each is a mapping of what ``store`` takes."""
        if isinstance(items, str | Mapping) or not isinstance(items, Iterable):
            raise InvalidInput(f"a batch should be a list of mappings, not {items!r}")
        return self._behind.batch([_draft(item) for item in items])

    def permit(self, namespace: str, *, default: str = "read", allow: Mapping[str, str] | None = None) -> Permissions:
        """Say who may do what in a shared namespace: ``default`` for all, ``allow`` by agent."""
        if not isinstance(allow, Mapping | None):
            raise InvalidInput(f"allow should be a mapping from agents to permissions, not {allow!r}")
        return self._behind.permit(namespace, Permissions(default=default, allow=dict(allow or {})))

    def permissions(self, namespace: str) -> Permissions:
        """Who may do what in a shared namespace."""
        return self._behind.permissions(namespace)


class Tasks:
    """``client.tasks``: what working memory belongs to."""

    def __init__(self, behind: Backend) -> None:
        self._behind = behind

    def begin(
        self,
        task: str,
        agent_id: str,
        *,
        coordinator: str | None = None,
        parent: str | None = None,
        policy: Mapping[str, Any] | None = None,
    ) -> Task:
        """Begin a task for an agent."""
        return self._behind.task(
            "begin", task=task, agent=agent_id, coordinator=coordinator, parent=parent, policy=policy
        )

    def assign(self, task: str, agent_id: str) -> Task:
        """Hand a task to another agent, which may read what those before it kept."""
        return self._behind.task("assign", task=task, agent=agent_id)

    def finish(self, task: str, outcome: str = "completed") -> Task:
        """End a task; its working memory is archived and erased."""
        return self._behind.task("finish", task=task, outcome=outcome)

    def get(self, task: str) -> Task:
        """A task, for those who have to do with it."""
        return self._behind.task("get", task=task)

    def erase(self, task: str) -> None:
        """Erase a task with its working memory, its archive and everything that was told of it."""
        self._behind.erase(task)


class Embedded:
    """The engine itself answers."""

    def __init__(self, engine: Intents, caller: Caller) -> None:
        self.engine = engine
        self._caller = caller

    def entry(self, verb: str, **arguments: Any) -> Entry:
        """See ``Backend``."""
        found: Entry = getattr(self.engine, verb)(self._caller, **arguments)
        return found

    def entries(self, verb: str, **arguments: Any) -> list[Entry]:
        """See ``Backend``."""
        found: list[Entry] = getattr(self.engine, verb)(self._caller, **arguments)
        return found

    def batch(self, items: Sequence[EntryDraft]) -> list[Entry]:
        """See ``Backend``."""
        return self.engine.batch(self._caller, items)

    def page(self, where: EntryFilter, *, limit: int, offset: int) -> Page:
        """See ``Backend``."""
        return self.engine.page(self._caller, where, limit=limit, offset=offset)

    def forget(self, **arguments: Any) -> None:
        """See ``Backend``."""
        self.engine.forget(self._caller, **arguments)

    def permit(self, namespace: str, permissions: Permissions) -> Permissions:
        """See ``Backend``."""
        return self.engine.permit(self._caller, namespace, permissions)

    def permissions(self, namespace: str) -> Permissions:
        """See ``Backend``."""
        return self.engine.permissions(self._caller, namespace)

    def task(self, verb: str, **arguments: Any) -> Task:
        """See ``Backend``."""
        found: Task = getattr(self.engine, {"get": "task"}.get(verb, verb))(self._caller, **arguments)
        return found

    def erase(self, task: str) -> None:
        """See ``Backend``."""
        self.engine.erase(self._caller, task)

    def close(self) -> None:
        """See ``Backend``."""
        self.engine.close()


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
        """Open a file, the address of a database, a server (``http://...``), or without any the command's own store.

        ``api_key`` and ``timeout`` are for a server; ``embedder``, ``capacity``, ``event_days`` and ``clock`` for what
        is embedded.
        """
        if store is not None and store.startswith(REMOTE):
            from commonplace.intents.remote import Remote  # noqa: PLC0415 - only for those who are elsewhere

            self.behind: Backend = Remote(store, agent=agent, api_key=api_key, timeout=timeout)
        elif api_key is not None:
            raise InvalidInput("an api_key is for a server; a store of one's own asks for none")
        else:
            if agent is not None:
                scope_named(("agent", agent))  # refuses what cannot name an agent
            engine = open_intents(store, embedder=embedder, capacity=capacity, event_days=event_days, clock=clock)
            self.behind = Embedded(engine, Caller(agent=agent))
        self.memory = Entries(self.behind)
        self.tasks = Tasks(self.behind)

    def close(self) -> None:
        """Give back what is held."""
        self.behind.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _threaded(verb: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Any, P], Awaitable[R]]:
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(verb, self.plain, *args, **kwargs)

    call.__doc__ = verb.__doc__
    call.__name__ = getattr(verb, "__name__", "call")
    call.__wrapped__ = verb  # type: ignore[attr-defined]  # inspect shows the verb's own signature
    return call


class AsyncEntries:
    """``client.memory``, awaited."""

    def __init__(self, plain: Entries) -> None:
        self.plain = plain

    store = _threaded(Entries.store)
    recall = _threaded(Entries.recall)
    get = _threaded(Entries.get)
    pin = _threaded(Entries.pin)
    unpin = _threaded(Entries.unpin)
    forget = _threaded(Entries.forget)
    list = _threaded(Entries.list)
    batch = _threaded(Entries.batch)
    permit = _threaded(Entries.permit)
    permissions = _threaded(Entries.permissions)


class AsyncTasks:
    """``client.tasks``, awaited."""

    def __init__(self, plain: Tasks) -> None:
        self.plain = plain

    begin = _threaded(Tasks.begin)
    assign = _threaded(Tasks.assign)
    finish = _threaded(Tasks.finish)
    get = _threaded(Tasks.get)
    erase = _threaded(Tasks.erase)


class AsyncClient:
    """Intent memory for a program with an event loop; every verb runs in a thread."""

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
        """See ``Client``."""
        self.plain = Client(
            store, agent=agent, api_key=api_key, timeout=timeout, embedder=embedder, capacity=capacity,
            event_days=event_days, clock=clock,
        )  # fmt: skip
        self.memory = AsyncEntries(self.plain.memory)
        self.tasks = AsyncTasks(self.plain.tasks)

    close = _threaded(Client.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()


def _draft(item: Mapping[str, Any]) -> EntryDraft:
    """One mapping of a batch; a name that ``store`` does not know is told."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"an entry of a batch should be a mapping of what `store` takes, not {item!r}")
    named = {"agent" if name == "agent_id" else name: value for name, value in item.items()}
    fields = {"tier": "episodic"} | named | {"tags": texts_listed(item.get("tags", ()))}
    known = set(EntryDraft.fields)
    for name in fields:
        if name not in known or name in item.keys() & {"agent"}:
            raise InvalidInput(f"{name!r} is nothing that an entry can be stored with")
    for name in ("agent", "key", "value"):
        if name not in fields:
            raise InvalidInput(f"an entry of a batch has no {'agent_id' if name == 'agent' else name!r}")
    return EntryDraft(**fields)


__all__ = ["AsyncClient", "Client", "Entry", "Page", "Permissions", "Policy", "Task"]

"""Desk: the memory behind our own verbs, as one caller has it.

An operator has what the command has from the directory where the server was started: the project's memory and the
user's own, with their Markdown.  With a store of its own (``--store``) there is one memory without files instead.  An
agent has a memory of its own beside its entries, which nobody else's binding reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from commonplace.app import App
from commonplace.engine.memory import Memory
from commonplace.files.folders import RecallAnswer
from commonplace.learning import (
    Addresses,
    Injection,
    inject,
    injection_json,
    rules_in,
    save_brief_receipt,
    session_brief,
)
from commonplace.model.binding import Binding
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope

BRIEF_LIMIT = 10
SUMMARY_TOKENS = 5000  # there is no summary outside of a project; the brief asks for a limit all the same


class MemoryAccess(Protocol):
    """What our own verbs need."""

    memory: Memory

    def scope(self, name: str | None) -> Scope | None:
        """The scope that people call so; None: wherever it goes by itself."""

    def refresh(self) -> Sequence[str]:
        """Take in what people edited; returns what the caller should know."""

    def recall(self, query: str, **options: Any) -> RecallAnswer:
        """Find what bears on a question."""

    def brief(self, task: str, *, budget: int | None, session: str | None) -> Mapping[str, Any]:
        """What a session should be shown before it starts."""


class AppAccess:
    """What the command has here."""

    def __init__(self, place: App) -> None:
        self.place = place
        self.memory = place.memory

    def scope(self, name: str | None) -> Scope | None:
        """See ``MemoryAccess``."""
        return None if name is None else self.place.where.writable_scope(name)

    def refresh(self) -> Sequence[str]:
        """See ``MemoryAccess``."""
        return self.place.folders.refresh()

    def recall(self, query: str, **options: Any) -> RecallAnswer:
        """See ``MemoryAccess``."""
        return self.place.recall(query, **options)

    def brief(self, task: str, *, budget: int | None, session: str | None) -> Mapping[str, Any]:
        """See ``MemoryAccess``; what was shown leaves a receipt, as with the command."""
        injection = session_brief(self.place, task, budget=budget, session=session)
        return _told(injection, save_brief_receipt(self.place, injection, session=session)[1])


class ScopeAccess:
    """One scope of a store, and nothing beside it."""

    def __init__(self, memory: Memory, secret: Callable[[], bytes]) -> None:
        self.memory = memory
        self.secret = secret

    def scope(self, name: str | None) -> Scope | None:
        """See ``MemoryAccess``."""
        if name is not None:
            raise InvalidInput(f"there is one memory here, and no scope {name!r} in it")
        return None

    def refresh(self) -> Sequence[str]:
        """See ``MemoryAccess``; there are no files."""
        return ()

    def recall(self, query: str, **options: Any) -> RecallAnswer:
        """See ``MemoryAccess``."""
        found = self.memory.recall(query, **options)
        return RecallAnswer(recall=found, references={}, notes=found.notes)

    def brief(self, task: str, *, budget: int | None, session: str | None) -> Mapping[str, Any]:
        """See ``MemoryAccess``."""
        addresses = Addresses(memory=self.memory, scope=None, secret=self.secret)
        injection = inject(
            addresses, self.recall, task, rules=rules_in(None), limit=BRIEF_LIMIT, budget=budget,
            summary_budget=SUMMARY_TOKENS, session=session,
        )  # fmt: skip
        return _told(injection)


class AccessTable:
    """Every caller's desk on one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        embedder: Embedder | None,
        secret: Callable[[], bytes],
        own: MemoryAccess | None,
    ) -> None:
        """``own`` is the operator's; without one it is the memory of a store by itself."""
        self._open: Callable[[Binding], Memory] = lambda binding: Memory(
            store, binding, clock=clock, embedder=embedder, secret=secret
        )
        self._secret = secret
        self._own = own or ScopeAccess(self._open(_alone(Scope.of(("user", "default")), Channel.USER)), secret)

    def __call__(self, agent: str | None) -> MemoryAccess:
        """The desk of an agent; None: the operator's."""
        if agent is None:
            return self._own
        scope = Scope.of(("agent", agent), ("user", agent))  # not ``agent:<a>`` itself: that is where entries live
        return ScopeAccess(self._open(_alone(scope, Channel.AGENT)), self._secret)


def _alone(scope: Scope, channel: Channel) -> Binding:
    return Binding(channel=channel, writes=dict.fromkeys(Kind, scope), reads=(scope,))


def _told(injection: Injection, notes: Iterable[str] = ()) -> dict[str, Any]:
    return injection_json(injection) | {"notes": [*injection.notes, *notes]}

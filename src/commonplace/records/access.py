"""MemoryAccess: the memory that the verbs of the records system work on, as one caller has it.

A caller at a project has what the command has there: the project's memory and the user's own, with their Markdown.  A
server with a store of its own (``--store``) has one memory without files instead, and so has each agent that calls a
server: a memory in addition to its entries, which no other caller reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from commonplace.app import App, open_app
from commonplace.engine.memory import Memory
from commonplace.files.folders import RecallAnswer
from commonplace.learning import (
    Addresses,
    Injection,
    addresses_of,
    find_quote,
    inject,
    rebuild_block,
    rules_in,
    rules_of,
    save_brief_receipt,
    save_recall_receipt,
    session_brief,
)
from commonplace.model.binding import Binding
from commonplace.model.documents import Document
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import Hit
from commonplace.model.records import Channel, Kind, Record
from commonplace.model.scopes import Scope
from commonplace.model.uses import RebuiltBlock, Receipt
from commonplace.model.values import Value
from commonplace.records.verbs import Erased, ErasedSession

INJECTION = "injection"  # the sort of receipt that has a block
RECALL_LIMIT = 10  # hits, where no settings say otherwise
SUMMARY_TOKENS = 5000  # there is no summary outside of a project; the brief asks for a limit all the same


class ShownBrief(Value):
    """What a session is shown before it starts, and the receipt of it."""

    injection: Injection
    receipt: str | None
    notes: tuple[str, ...] = ()  #: what the caller should know, as sentences


class MemoryAccess:
    """One memory without files."""

    def __init__(self, memory: Memory, scopes: Mapping[str, Scope] | None = None) -> None:
        """Open a memory; ``scopes`` are those that a caller can name."""
        self.memory = memory
        self.secret = memory.secret
        self._scopes = scopes or {}

    @property
    def addresses(self) -> Addresses:
        """Where ``memory://`` addresses are looked up."""
        return Addresses(memory=self.memory, scope=self._scopes.get("project"), secret=self.secret)

    def scope(self, name: str) -> Scope:
        """Return the scope that a caller names."""
        if name not in self._scopes:
            known = f"use {' or '.join(sorted(self._scopes))}" if self._scopes else "there is one memory here, unnamed"
            raise InvalidInput(f"{name!r} is not a scope here; {known}")
        return self._scopes[name]

    def target(self, name: str | None) -> Scope | None:
        """Return the scope to write to; None: the one that the memory writes to by default."""
        return None if name is None else self.scope(name)

    def name_of(self, scope: Scope) -> str:
        """Return what people call a scope."""
        return next((name for name, known in self._scopes.items() if known == scope), str(scope))

    def refresh(self) -> Sequence[str]:
        """Read the files that people have edited, so that their words count; return what the caller should know."""
        return ()

    def recall(self, query: str, **options: Any) -> RecallAnswer:
        """Recall; ``options`` are those of ``Memory.recall``."""
        found = self.memory.recall(query, **{"limit": RECALL_LIMIT} | options)
        return RecallAnswer(recall=found, references={}, notes=found.notes)

    def brief(self, task: str, *, budget: int | None, session: str | None) -> ShownBrief:
        """Return what a session should be shown before it starts."""
        injection = inject(
            self.addresses, self.recall, task, rules=rules_in(None), limit=RECALL_LIMIT, budget=budget,
            summary_budget=SUMMARY_TOKENS, session=session,
        )  # fmt: skip
        return ShownBrief(injection=injection, receipt=None, notes=injection.notes)

    def find_quote(self, session: str, quote: str, *, category: str | None) -> str:
        """Return where words were said in a session; a memory without a project has no sessions."""
        del quote, category
        raise InvalidInput(f"there is no session {session!r} here: sessions belong to a project")

    def erase_record(self, record: Record) -> Erased:
        """Erase a record for good: a person wants it gone."""
        gone = self.memory.forget(record.id, for_good=True)
        return Erased(erased=gone.ids, pending=gone.pending, receipt=gone.receipt)

    def erase_session(self, document: Document, *, keep_approved: bool = False) -> ErasedSession:
        """Erase a session with everything that was made of it."""
        from commonplace.records.erasure import erase_document  # noqa: PLC0415 - only erasing needs it

        receipt = erase_document(self.memory, document, keep_approved=keep_approved)
        return ErasedSession(receipt=receipt.id, erased=receipt.records, pending=receipt.pending)

    def rebuild(self, receipt: Receipt) -> RebuiltBlock | None:
        """Rebuild the block that a session was shown; None for a recall."""
        return rebuild_block(self.addresses, receipt, rules=self.rules) if receipt.what == INJECTION else None

    @property
    def rules(self) -> str:
        """The rules of the brief."""
        return rules_in(None)

    def save_recall_receipt(self, query: str, hits: Sequence[Hit], *, tokens: int, session: str | None) -> None:
        """Note what a session has recalled; a memory without a project keeps no receipts."""


class AppAccess(MemoryAccess):
    """The project's memory and the user's own, with their files."""

    def __init__(self, app: App) -> None:
        super().__init__(app.memory)
        self.app = app
        self.secret = app.secret

    @property
    def addresses(self) -> Addresses:
        """Where ``memory://`` addresses are looked up."""
        return addresses_of(self.app)

    def find_quote(self, session: str, quote: str, *, category: str | None) -> str:
        """Return where words were said in a session of the project, as ``session:ID#TURN``."""
        return find_quote(self.app, session, quote, category=category)

    def scope(self, name: str) -> Scope:
        """Return the scope that a caller names."""
        return self.app.where.scope(name)

    def target(self, name: str | None) -> Scope | None:
        """Return the scope to write to: by default the project's, without a project the user's own."""
        return self.app.where.writable_scope(name or self.app.where.default)

    def name_of(self, scope: Scope) -> str:
        """Return what people call a scope."""
        return self.app.where.label(scope)

    def refresh(self) -> Sequence[str]:
        """Read the files that people have edited, so that their words count; return what the caller should know."""
        return self.app.folders.refresh()

    def recall(self, query: str, **options: Any) -> RecallAnswer:
        """Recall, after a look at the files; limits come from the project's settings."""
        settings = self.app.where.project_settings
        return self.app.recall(
            query, **{"limit": settings["recall_limit"], "budget": settings["recall_budget"]} | options
        )

    def brief(self, task: str, *, budget: int | None, session: str | None) -> ShownBrief:
        """Return what a session should be shown before it starts, and leave a receipt of it."""
        injection = session_brief(self.app, task, budget=budget, session=session)
        receipt, notes = save_brief_receipt(self.app, injection, session=session)
        return ShownBrief(injection=injection, receipt=receipt, notes=(*injection.notes, *notes))

    @property
    def rules(self) -> str:
        """The rules of the brief: those that the user has agreed to, else ours."""
        return rules_of(self.app)

    def erase_record(self, record: Record) -> Erased:
        """Erase a record here, in the files that follow the store, and in our own backups."""
        from commonplace.engine.erasing import Target  # noqa: PLC0415 - only erasing needs it
        from commonplace.records.erasure import forget  # noqa: PLC0415 - likewise

        done = forget(self.app, self.memory, Target(ids=frozenset({record.id})))
        receipt = done.receipt
        return Erased(erased=receipt.records, pending=receipt.pending, receipt=receipt.id, notes=done.notes)

    def erase_session(self, document: Document, *, keep_approved: bool = False) -> ErasedSession:
        """Erase a session here, in the files that follow the store, and in our own backups."""
        from commonplace.records.erasure import forget, session_target  # noqa: PLC0415 - only erasing needs it

        done = forget(self.app, self.memory, session_target(document, keep_approved=keep_approved))
        receipt = done.receipt
        return ErasedSession(receipt=receipt.id, erased=receipt.records, pending=receipt.pending, notes=done.notes)

    def save_recall_receipt(self, query: str, hits: Sequence[Hit], *, tokens: int, session: str | None) -> None:
        """Note what a session has recalled, for ``commonplace used``."""
        save_recall_receipt(self.app, query, hits, tokens=tokens, session=session)


@contextmanager
def open_project(directory: str | None = None) -> Iterator[AppAccess]:
    """Open the memory of the project around a directory for an agent, for one call.

    Nothing is locked between calls, edited files and settings count at once, and any number of servers can work on one
    store.
    """
    with open_app(directory, channel=Channel.AGENT) as app:
        yield AppAccess(app)


class AccessTable:
    """Every caller's memory on one store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        embedder: Embedder | None,
        secret: Callable[[], bytes],
        own: MemoryAccess | None,
    ) -> None:
        """``own`` is the operator's; without one, callers get the memory of the store alone."""
        self._open: Callable[[Binding], Memory] = lambda binding: Memory(
            store, binding, clock=clock, embedder=embedder, secret=secret
        )
        self._own = own or MemoryAccess(self._open(_alone(Scope.of(("user", "default")), Channel.USER)))

    def __call__(self, agent: str | None) -> MemoryAccess:
        """Return the memory of an agent; None: the operator's."""
        if agent is None:
            return self._own
        scope = Scope.of(("agent", agent), ("user", agent))  # not ``agent:<a>`` itself: that is where entries live
        return MemoryAccess(self._open(_alone(scope, Channel.AGENT)))


def _alone(scope: Scope, channel: Channel) -> Binding:
    return Binding(channel=channel, writes=dict.fromkeys(Kind, scope), reads=(scope,))

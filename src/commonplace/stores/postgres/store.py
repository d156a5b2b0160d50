"""The shared store: one schema of a PostgreSQL database with pgvector, any number of machines.

Transactions are here; the rules are those of every store (``sql``), what PostgreSQL does in its own way is in
``dialect`` and ``search``, whose turn it is to write in ``locks``, the connections in ``connection``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from commonplace.model.changes import (
    AdoptEmbedder,
    Change,
    DropFiles,
    Enqueue,
    Fail,
    Finish,
    FromCheckout,
    Heartbeat,
    Outcome,
    PutFiles,
)
from commonplace.model.errors import InvalidInput
from commonplace.model.items import Item
from commonplace.model.jobs import Claim, Job, Skipped
from commonplace.stores.postgres.connection import TENANT, Broken, Connections, Undone, own_options
from commonplace.stores.postgres.dialect import PostgresDb
from commonplace.stores.postgres.listener import EventListener
from commonplace.stores.postgres.locks import take_turns
from commonplace.stores.postgres.migrations import prepare
from commonplace.stores.rows import moment
from commonplace.stores.sql import changes as rules
from commonplace.stores.sql import jobs, vectors
from commonplace.stores.sql.store import NOT_DURABLE, SqlStore

T = TypeVar("T")

SCHEMA = "commonplace"
CLOCKS = ("database", "caller")
TRIES = 4  # of a read or write that the database undid or that lost its connection; each is made whole or not at all


class PostgresStore(SqlStore):
    """A store in one schema of a database."""

    def __init__(
        self, url: str, *, schema: str | None = None, tenant: str | None = None, machine: str = "",
        clock: str | None = None,
    ) -> None:  # fmt: skip
        """Open the store at that address (``postgresql://host/name``), making its schema if there is none.

        The address may say ``?schema=``, ``?tenant=`` and ``?clock=`` as well.  ``machine`` tells the folders of
        several machines apart that one store knows.  Leases run by the clock of the ``database``, or of each
        ``caller``: that is for tests.
        """
        address, given = own_options(url)
        self._clock = clock or given.get("clock") or CLOCKS[0]
        if self._clock not in CLOCKS:
            raise InvalidInput(f"leases run by the clock of the `database` or of the `caller`, not by {self._clock!r}")
        self._connections = Connections(
            address, schema or given.get("schema") or SCHEMA, tenant or given.get("tenant") or TENANT
        )
        self._listener = EventListener(self._connections)
        self.path = self._connections.name
        self.machine = machine
        for number in range(TRIES):
            try:
                prepare(self._connections)
                break
            except Broken:  # cut while it was opened: its steps are transactions, and begin anew
                if number == TRIES - 1:
                    raise

    # Reading

    def _ask(self, work: Callable[[PostgresDb], T]) -> T:
        return self._attempt(self._connections.using, work)

    def _read(self, work: Callable[[PostgresDb], T]) -> T:
        return self._attempt(self._connections.reading, work)

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """See ``Store``.  It waits on a connection of its own."""
        with self._listener.listening(seconds) as wait:
            last = self._last_event()
            if last > after:
                return last
            wait()
        return self._last_event()

    # Writing

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        if not changes:
            return []
        durable = not all(isinstance(change, NOT_DURABLE) for change in changes)

        def make(db: PostgresDb) -> tuple[list[Outcome], tuple[int, str] | None]:
            named = vectors.embedder(db) if any(isinstance(change, AdoptEmbedder) for change in changes) else None
            take_turns(db, changes, self._connections.turn, embedder=named)
            here = [self._with_machine(change) for change in changes]
            outcomes = [rules.make(db, self._with_server_time(db, change)) for change in here]
            rules.pin_checkouts(db, here, outcomes)
            return outcomes, self._append_audit(db, changes, outcomes, durable=durable)

        outcomes, last = self._write(make, durable=durable)
        self._note_audit(last)
        return outcomes

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        def take(db: PostgresDb) -> Claim | Skipped:
            take_turns(db, [Enqueue(job=job)], self._connections.turn, embedder=None)
            return jobs.claim(db, job, lease=lease, now=self._time(now))

        return self._write(take, durable=True)

    def close(self) -> None:
        self._listener.close()
        self._connections.close()

    def size(self) -> int:
        """Return how many bytes its tables and indexes take up."""
        sql = (
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname = ?"
        )
        return self._ask(lambda db: int(db.every(sql, [self.schema])[0][0]))

    @property
    def schema(self) -> str:
        """The schema that it lives in."""
        return self._connections.schema

    @property
    def turn(self) -> str:
        """Its schema and its tenant: what writers of it wait for each other by."""
        return self._connections.turn

    @property
    def name(self) -> str:
        """Its address, schema and tenant, without any password."""
        return f"{self.path} ({self.turn})"

    def _with_machine(self, change: Change) -> Change:
        """Return a change with its folder named for this machine: the same path on another is another folder."""
        return (
            change.replace(folder=self._folder(change.folder))
            if isinstance(change, PutFiles | DropFiles | FromCheckout)
            else change
        )

    def _time(self, now: datetime) -> datetime | None:
        """Return the time by which leases run; None: the database knows."""
        return now if self._clock == "caller" else None

    def _with_server_time(self, db: PostgresDb, change: Change) -> Change:
        """Return a change by the clock that all machines share."""
        if self._clock == "caller" or not isinstance(change, Finish | Fail | Heartbeat):
            return change
        return _by_database_clock(db, change)

    def _folder(self, folder: str) -> str:
        return f"machine:{self.machine}:{folder}" if self.machine else folder

    # Connections

    def using(self) -> AbstractContextManager[PostgresDb]:
        """Borrow a connection; for upkeep and moving."""
        return self._connections.using()

    def reading(self) -> AbstractContextManager[PostgresDb]:
        """See one state of the store throughout; for upkeep and moving."""
        return self._connections.reading()

    def writing(self, *, durable: bool = True) -> AbstractContextManager[PostgresDb]:
        """Make all of it or none, while no one else writes here; for upkeep and moving."""
        return self._connections.writing_alone(durable=durable)

    def load_items(self, db: Any, items: Sequence[Item], *, gone: Collection[Item]) -> None:
        from commonplace.stores.postgres.bulk_load import load  # noqa: PLC0415 - only what moves a store needs it

        load(db, items, self.own_folders, gone=gone)

    def _write(self, work: Callable[[PostgresDb], T], *, durable: bool) -> T:
        wait = not self._is_impatient
        return self._attempt(lambda: self._connections.writing(durable=durable, wait=wait), work)

    def _attempt(self, lend: Callable[[], AbstractContextManager[PostgresDb]], work: Callable[[PostgresDb], T]) -> T:
        """Try something several times: the one place that does, and only what was certainly not made."""
        for _ in range(TRIES - 1):
            try:
                with lend() as db:
                    return work(db)
            except Undone:
                continue
            except Broken:
                self._connections.renew()
        with lend() as db:
            return work(db)


def _by_database_clock(db: PostgresDb, change: Finish | Fail | Heartbeat) -> Finish | Fail | Heartbeat:
    """Return the same change by the database's clock.

    A job ends now, may be tried again as long from now as its worker wants, and a beat holds it for as long again as it
    was claimed for: what the worker's clock shows does not matter.
    """
    claim = change.claim
    sql = f"select {db.clock}, (select started_at from job j where {jobs.OF_CLAIM})"
    [(clock, started)] = db.every(sql, jobs.claim_values(claim))
    now, began = moment(clock), moment(started)
    match change:
        case Finish():
            return change.replace(at=change.at and now)
        case Fail():
            wait = change.retry_at - change.at if change.at else None
            return change if wait is None else change.replace(at=now, retry_at=now + wait)
        case Heartbeat():  # without a start there is no such job, and the beat will raise that
            return change.replace(until=now + (claim.until - began)) if began else change

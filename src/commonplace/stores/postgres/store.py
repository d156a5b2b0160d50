"""The shared store: one schema of a PostgreSQL database with pgvector, any number of machines.

Reads and the transaction around writes are here; searching is in ``postgres_search``, the changes themselves are in
``postgres_writes``, whose turn it is to write in ``postgres_scopes``, the connections in ``postgres_connection``.  The
answers are those of ``SqliteStore``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from commonplace.model.changes import (
    AdoptEmbedder,
    Change,
    DropFiles,
    Enqueue,
    Fail,
    Finish,
    Heartbeat,
    Outcome,
    PutFiles,
    SetVectors,
    Touch,
    TrimEvents,
)
from commonplace.model.documents import Chunk, Document, FileState
from commonplace.model.errors import InvalidInput
from commonplace.model.events import Event
from commonplace.model.jobs import Claim, Job, JobState, Skipped
from commonplace.model.ports import EmbedderIdentity, Measure, Tally, Unembedded
from commonplace.model.queries import DocumentFilter, Filter, Match, Order, Query, State, Survey, Vector
from commonplace.model.records import Kind, Record
from commonplace.model.scopes import Scope
from commonplace.stores.postgres import documents, events, jobs, search, vectors, writes
from commonplace.stores.postgres.connection import TENANT, Broken, Connections, Db, Undone, every, own_options
from commonplace.stores.postgres.filters import among, filter_sql, most, rows_of
from commonplace.stores.postgres.listener import EventListener
from commonplace.stores.postgres.migrations import prepare
from commonplace.stores.postgres.scopes import take_turns
from commonplace.stores.postgres.survey import speakers, survey
from commonplace.stores.rows import micros, order_sql, row_record, scope_at, select_list

T = TypeVar("T")

SCHEMA = "commonplace"
CLOCKS = ("database", "caller")
TRIES = 4  # of a read or write that the database undid or that lost its connection; each is made whole or not at all
#: Changes whose loss in a power cut loses nothing: they are not worth waiting for the disk.
_UNWORTHY = (Touch, PutFiles, DropFiles, SetVectors, TrimEvents)


class PostgresStore:
    """A store in one schema of a database."""

    def __init__(
        self, url: str, *, schema: str | None = None, tenant: str | None = None, machine: str = "",
        clock: str | None = None,
    ) -> None:  # fmt: skip
        """Open the store at that address (``postgresql://host/name``), making its schema if there is none.

        The address may say ``?schema=``, ``?tenant=`` and ``?clock=`` as well.  ``machine`` tells the folders of
        several machines apart that one store knows.  Leases run by the clock of the ``database``, or of each
        ``caller``: that is for who moves a clock by hand.
        """
        address, said = own_options(url)
        self._clock = clock or said.get("clock") or CLOCKS[0]
        if self._clock not in CLOCKS:
            raise InvalidInput(f"leases run by the clock of the `database` or of the `caller`, not by {self._clock!r}")
        self._connections = Connections(
            address, schema or said.get("schema") or SCHEMA, tenant or said.get("tenant") or TENANT
        )
        self._ear = EventListener(self._connections)
        self.path = self._connections.name
        self.machine = machine
        prepare(self._connections)

    # Reading

    def get(self, id: str) -> Record | None:
        """See ``Store``."""
        return self._look(lambda db: writes.read(db, id))

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        """See ``Store``."""
        condition, values = filter_sql(where, "r")
        table, moments = rows_of(where)
        sql = (
            f"select {select_list('r')} from {table} r join scope s on s.id = r.scope"
            f" left join usage u on u.record = r.row where {condition} order by {order_sql(order, 'r')} limit ?"
        )
        return [row_record(row) for row in self._rows(sql, [*moments, *values, most(limit)])]

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:
        """See ``Store``."""
        return self._read(lambda db: search.match(db, where, query, limit=limit))

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
        """See ``Store``."""
        return self._read(lambda db: search.nearest(db, where, vector, limit=limit))

    def survey(self, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
        """See ``Store``."""
        return self._read(lambda db: survey(db, where, query, vector, limit=limit))

    def speakers(self, scopes: Collection[Scope]) -> list[str]:
        """See ``Store``."""
        return self._read(lambda db: speakers(db, scopes))

    def documents(self, where: DocumentFilter, *, limit: int) -> list[Document]:
        """See ``Store``."""
        return self._look(lambda db: documents.listed(db, where, limit=limit))

    def chunks(self, where: DocumentFilter, *, limit: int, after: int = -1) -> list[Chunk]:
        """See ``Store``."""
        return self._look(lambda db: documents.chunks(db, where, limit=limit, after=after))

    def files(self, folder: str, *, records: Collection[str] | None = None) -> list[FileState]:
        """See ``Store``."""
        condition, values = "folder = ?", [self._folder(folder)]
        if records is not None:
            choice, wanted = among("record", records)
            condition, values = f"{condition} and {choice}", [*values, *wanted]
        rows = self._rows(
            f"select path, record, version, digest, stamp from file where {condition} order by path", values
        )
        return [FileState(path=p, record=r, version=v, digest=d, stamp=t) for p, r, v, d, t in rows]

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        """See ``Store``."""
        rows = self._rows(_CENSUS, [micros(at)])
        return [
            Tally(
                scope=scope_at(path),
                what=Kind(what) if what in set(Kind) else what,
                state=State(state),
                count=n,
                bytes=b,
            )
            for path, what, state, n, b in rows
        ]

    def measure(self, where: Filter) -> Measure:
        """See ``Store``."""
        return self._look(lambda db: writes.measure(db, where))

    def scopes(self, below: Scope | None = None) -> list[Scope]:
        """See ``Store``."""
        sql = "select path from scope" if below is None else f"{writes.BELOW} select path from below"
        rows = self._rows(sql, [] if below is None else [str(below)])
        return sorted((scope_at(path) for (path,) in rows), key=str)

    def scopes_with_records(self, below: Scope) -> list[Scope]:
        """See ``Store``."""
        sql = f"{writes.BELOW} select path from below where exists (select 1 from record r where r.scope = below.id)"
        return [scope_at(path) for path in sorted(path for (path,) in self._rows(sql, [str(below)]))]

    def events(self, scopes: Collection[Scope], *, after: int = 0, limit: int) -> list[Event]:
        """See ``Store``."""
        return self._look(lambda db: events.listed(db, scopes, after=after, limit=limit))

    def events_floor(self) -> int:
        """See ``Store``."""
        return self._look(events.events_floor)

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """See ``Store``.  It waits on a connection of its own."""
        with self._ear.listening(seconds) as wait:
            last = self._look(events.last)
            if last > after:
                return last
            wait()
        return self._look(events.last)

    def embedder(self) -> EmbedderIdentity | None:
        """See ``Store``."""
        return self._look(vectors.embedder)

    def unembedded(self, identity: EmbedderIdentity, *, limit: int) -> list[Unembedded]:
        """See ``Store``."""
        return self._read(lambda db: vectors.unembedded(db, identity, limit))

    def count_unembedded(self, identity: EmbedderIdentity) -> int:
        """See ``Store``."""
        return self._read(lambda db: vectors.count_unembedded(db, identity))

    def jobs(self, scopes: Collection[Scope], *, now: datetime) -> list[JobState]:
        """See ``Store``."""
        return self._look(lambda db: jobs.states(db, scopes, self._time(now)))

    # Writing

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """See ``Store``."""
        if not changes:
            return []
        durable = not all(isinstance(change, _UNWORTHY) for change in changes)

        def make(db: Db) -> list[Outcome]:
            named = vectors.embedder(db) if any(isinstance(change, AdoptEmbedder) for change in changes) else None
            take_turns(db, changes, self._connections.turn, embedder=named)
            return [writes.make(db, self._timed(db, self._placed(change))) for change in changes]

        return self._write(make, durable=durable)

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        """See ``Store``."""

        def take(db: Db) -> Claim | Skipped:
            take_turns(db, [Enqueue(job=job)], self._connections.turn, embedder=None)
            return jobs.take(db, job, lease=lease, now=self._time(now))

        return self._write(take, durable=True)

    def close(self) -> None:
        """See ``Store``."""
        self._ear.close()
        self._connections.close()

    def size(self) -> int:
        """How many bytes its tables and indexes take up."""
        sql = (
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c"
            " join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and n.nspname = ?"
        )
        return int(self._rows(sql, [self.schema])[0][0])

    @property
    def schema(self) -> str:
        """The schema that it lives in."""
        return self._connections.schema

    @property
    def turn(self) -> str:
        """Its schema and its tenant: what writers of it wait for each other by."""
        return self._connections.turn

    @property
    def own_folders(self) -> str:
        """What the folders of this machine begin with."""
        return self._folder("")

    def _placed(self, change: Change) -> Change:
        """A folder of this machine is not the one of the same path on another."""
        return (
            change.replace(folder=self._folder(change.folder)) if isinstance(change, PutFiles | DropFiles) else change
        )

    def _time(self, now: datetime) -> datetime | None:
        """What time it is to leases; None: the database knows."""
        return now if self._clock == "caller" else None

    def _timed(self, db: Db, change: Change) -> Change:
        """What a clock decides is decided by the one that all machines share."""
        if self._clock == "caller" or not isinstance(change, Finish | Fail | Heartbeat):
            return change
        return jobs.by_the_database(db, change)

    def _folder(self, folder: str) -> str:
        return f"machine:{self.machine}:{folder}" if self.machine else folder

    # Connections

    def using(self) -> contextlib.AbstractContextManager[Db]:
        """Borrow a connection; for upkeep and moving."""
        return self._connections.using()

    def reading(self) -> contextlib.AbstractContextManager[Db]:
        """See one state of the store throughout; for upkeep and moving."""
        return self._connections.reading()

    def writing(self, *, durable: bool = True) -> contextlib.AbstractContextManager[Db]:
        """Make all of it or none, while nobody else writes here; for upkeep and moving."""
        return self._connections.writing_alone(durable=durable)

    def _rows(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._look(lambda db: every(db, sql, values))

    def _look(self, work: Callable[[Db], T]) -> T:
        """Ask one question, which sees one state by itself."""
        return self._tried(lambda: self._looked(work))

    def _looked(self, work: Callable[[Db], T]) -> T:
        with self._connections.using() as db:
            return work(db)

    def _read(self, work: Callable[[Db], T]) -> T:
        """Ask several, of one state of the store."""
        return self._tried(lambda: self._seen(work))

    def _seen(self, work: Callable[[Db], T]) -> T:
        with self._connections.reading() as db:
            return work(db)

    def _write(self, work: Callable[[Db], T], *, durable: bool) -> T:
        return self._tried(lambda: self._written(work, durable=durable))

    def _written(self, work: Callable[[Db], T], *, durable: bool) -> T:
        with self._connections.writing(durable=durable) as db:
            return work(db)

    def _tried(self, attempt: Callable[[], T]) -> T:
        """The one place where something is made again: only what was certainly not made."""
        for _ in range(TRIES - 1):
            try:
                return attempt()
            except Undone:
                continue
            except Broken:
                self._connections.renew()
        return attempt()


_SAID = "octet_length(replace(replace({0}, E'\\x01\\x01', ' '), E'\\x01\\x02', ' '))"  # as it was before it was escaped
_CENSUS = (
    "select s.path, r.kind, case when r.archived_at is not null then 'archived' when r.held = 1 then 'held'"
    " when r.expires_at <= ? then 'expired' else 'live' end, count(*), sum(" + _SAID.format("r.content") + ")::bigint"
    " from record r join scope s on s.id = r.scope group by 1, 2, 3"
    " union all select s.path, d.kind, 'live', count(*), sum(coalesce(" + _SAID.format("d.content") + ", 0) + coalesce("
    "(select sum(" + _SAID.format("c.text") + ") from chunk c where c.document = d.row), 0))::bigint"
    " from document d join scope s on s.id = d.scope group by 1, 2 order by 1, 2, 3"
)

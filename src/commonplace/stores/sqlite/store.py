"""The embedded store: one SQLite file, any number of processes, no daemon.

Reads and the transaction around writes are here; searching is in ``sqlite_search``, the changes themselves are in
``sqlite_writes``, vectors in ``sqlite_vectors``, the connection in ``sqlite_connection``, checks and backups in
``sqlite_upkeep``.  ``:memory:`` is the in-memory store.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import apsw

from commonplace.model.changes import (
    Change,
    Delete,
    DeleteDocuments,
    DropFiles,
    DropScope,
    Outcome,
    PutFiles,
    SetVectors,
    Touch,
    TrimEvents,
)
from commonplace.model.documents import Chunk, Document, FileState
from commonplace.model.errors import StoreError
from commonplace.model.jobs import Claim, Job, JobState, Skipped
from commonplace.model.ports import EmbedderIdentity, Measure, Tally, Unembedded
from commonplace.model.queries import DocumentFilter, Filter, Match, Order, Query, State, Survey, Vector
from commonplace.model.records import Kind, Record
from commonplace.model.scopes import Scope
from commonplace.stores.rows import (
    among,
    filter_sql,
    micros,
    order_sql,
    row_record,
    scope_at,
    select_list,
)
from commonplace.stores.scoring import CHUNK, chunk_at, document_at
from commonplace.stores.sqlite import jobs, search, vectors, writes
from commonplace.stores.sqlite.connection import (
    APPLICATION_ID,
    BUSY_MS,
    CHECKPOINT_SECONDS,
    Connection,
    Pool,
    Together,
    WriterLock,
    every,
    first,
    mapped,
    prepare,
)
from commonplace.stores.sqlite.slack import wipe
from commonplace.stores.sqlite.survey import speakers, survey
from commonplace.version import PRODUCT

if TYPE_CHECKING:
    from commonplace.model.events import Event

LOOK_SECONDS = 0.1  # between two looks for an event; a look takes some 20 microseconds
#: Changes whose loss in a power cut loses nothing: they are not worth waiting for the disk.
_UNWORTHY = (Touch, PutFiles, DropFiles, SetVectors, TrimEvents)
#: Changes by which somebody wants words to be gone.  Making room (Trim, what has expired) is none: it happens with
#: every write to a full memory, and its bytes are overwritten where they lie, by secure_delete, as of any row.
_ERASING = (Delete, DeleteDocuments, DropScope)


class SqliteStore:
    """A store in one file."""

    def __init__(self, path: str, *, vec: str | None = None) -> None:
        """Open the store at that path, making it if there is none.

        ``vec`` is where sqlite-vec lies, if nearness is to be found with its help; the answers are the same.
        """
        self._vec = vec
        self.path = path if path == ":memory:" else os.path.abspath(path)
        self._pool = Pool(on_disk=path != ":memory:")
        self._lock = None if path == ":memory:" else WriterLock(self.path + ".lock")
        self._together = Together()
        self._private = threading.RLock()  # :memory: has one connection; everybody waits for it
        with self.using():
            pass

    # Reading

    def get(self, id: str) -> Record | None:
        """See ``Store``."""
        with self.using() as connection:
            return writes.read(connection.db, id)

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        """See ``Store``."""
        condition, values = filter_sql(where, "r")
        table, moments = search.rows_of(where)
        sql = (
            f"select {select_list('r')} from {table} r join scope s on s.id = r.scope"
            f" left join usage u on u.record = r.row where {condition} order by {order_sql(order, 'r')} limit ?"
        )
        with self.using() as connection:
            return [row_record(row) for row in every(connection.db, sql, [*moments, *values, limit])]

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:
        """See ``Store``."""
        with self.using() as connection, connection.reading() as db:
            return search.match(db, where, query, limit=limit)

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
        """See ``Store``."""
        with self.using() as connection, connection.reading() as db:
            return search.nearest(db, where, vector, limit=limit, vec=connection.has_vec)

    def survey(self, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
        """See ``Store``."""
        with self.using() as connection, connection.reading() as db:
            return survey(db, where, query, vector, limit=limit)

    def speakers(self, scopes: Collection[Scope]) -> list[str]:
        """See ``Store``."""
        with self.using() as connection, connection.reading() as db:
            return speakers(db, scopes)

    def documents(self, where: DocumentFilter, *, limit: int) -> list[Document]:
        """See ``Store``."""
        condition, values = writes.documents_sql(where)
        names = "d.digest, d.content, d.metadata, d.channel, d.ref, d.parents, d.trust, d.created_at, d.updated_at"
        sql = (
            f"select s.path, d.kind, d.name, {names} from document d join scope s on s.id = d.scope where {condition}"
            " order by d.updated_at desc, d.name limit ?"
        )
        with self.using() as connection:
            return [document_at(row) for row in every(connection.db, sql, [*values, limit])]

    def chunks(self, where: DocumentFilter, *, limit: int, after: int = -1) -> list[Chunk]:
        """See ``Store``."""
        condition, values = writes.documents_sql(where)
        sql = f"{CHUNK} where {condition} and c.seq > ? order by s.path, d.kind, d.name, c.seq limit ?"
        with self.using() as connection:
            return [chunk_at(row) for row in every(connection.db, sql, [*values, after, limit])]

    def files(self, folder: str, *, records: Collection[str] | None = None) -> list[FileState]:
        """See ``Store``."""
        by_record = "" if records is None else " indexed by file_record"  # or the whole folder is walked, in order
        sql = f"select path, record, version, digest, stamp from file{by_record} where folder = ?"
        values: list[Any] = [folder]
        if records is not None:
            choice, wanted = among("record", records)
            sql, values = f"{sql} and {choice}", [*values, *wanted]
        with self.using() as connection:
            rows = every(connection.db, f"{sql} order by path", values)
        return [FileState(path=p, record=r, version=v, digest=d, stamp=t) for p, r, v, d, t in rows]

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        """See ``Store``."""
        state = (
            "case when r.archived_at is not null then 'archived' when r.held then 'held'"
            " when r.expires_at <= ? then 'expired' else 'live' end"
        )
        records = (
            f"select s.path, r.kind, {state}, count(*), sum(length(cast(r.content as blob)))"
            " from record r join scope s on s.id = r.scope group by 1, 2, 3"
        )
        chunks = "select sum(length(cast(c.text as blob))) from chunk c where c.document = d.row"
        documents = (
            "select s.path, d.kind, 'live', count(*),"
            f" sum(coalesce(length(cast(d.content as blob)), 0) + coalesce(({chunks}), 0))"
            " from document d join scope s on s.id = d.scope group by 1, 2"
        )
        with self.using() as connection:
            rows = every(connection.db, f"{records} union all {documents} order by 1, 2, 3", [micros(at)])
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
        with self.using() as connection:
            return writes.measure(connection.db, where)

    def scopes(self, below: Scope | None = None) -> list[Scope]:
        """See ``Store``."""
        sql, values = ("select path from scope", []) if below is None else (writes.BELOW, [str(below)])
        with self.using() as connection:
            return sorted((scope_at(path) for path, *_ in every(connection.db, sql, values)), key=str)

    def scopes_with_records(self, below: Scope) -> list[Scope]:
        """See ``Store``."""
        with self.using() as connection:
            return [
                scope_at(path)
                for path in sorted(path for path, _ in every(connection.db, writes.INHABITED, [str(below)]))
            ]

    def events(self, scopes: Collection[Scope], *, after: int = 0, limit: int) -> list[Event]:
        """See ``Store``."""
        from commonplace.stores.sqlite import events as sqlite_events  # noqa: PLC0415 - no recall asks for them

        with self.using() as connection:
            return sqlite_events.listed(connection.db, scopes, after=after, limit=limit)

    def events_floor(self) -> int:
        """See ``Store``."""
        from commonplace.stores.sqlite import events as sqlite_events  # noqa: PLC0415 - no recall asks for it

        with self.using() as connection:
            return sqlite_events.events_floor(connection.db)

    def wait_for_event(self, *, after: int, seconds: float) -> int:
        """See ``Store``.  No file tells another process of a write: it is looked at now and then."""
        end = time.monotonic() + seconds
        while True:
            with self.using() as connection:
                [(last,)] = every(connection.db, "select coalesce(max(seq), 0) from event")
            left = end - time.monotonic()
            if last > after or left <= 0:
                return int(last)
            time.sleep(min(LOOK_SECONDS, left))

    def embedder(self) -> EmbedderIdentity | None:
        """See ``Store``."""
        with self.using() as connection:
            return vectors.embedder(connection.db)

    def unembedded(self, identity: EmbedderIdentity, *, limit: int) -> list[Unembedded]:
        """See ``Store``."""
        with self.using() as connection, connection.reading() as db:
            return vectors.unembedded(db, identity, limit)

    def count_unembedded(self, identity: EmbedderIdentity) -> int:
        """See ``Store``."""
        with self.using() as connection, connection.reading() as db:
            return vectors.count_unembedded(db, identity)

    # Writing

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """See ``Store``."""
        if not changes:
            return []
        durable = not all(isinstance(change, _UNWORTHY) for change in changes)
        if self._lock is None:
            with self.writing(durable=durable) as db:
                outcomes, erased = _made(db, changes)
        else:
            with mapped(self.path):
                outcomes, erased = self._together.made(self.writing, lambda db: _made(db, changes), durable=durable)
        if any(erased) and not self._scrubbed():
            outcomes = [outcome.replace(erasing=was) for outcome, was in zip(outcomes, erased, strict=True)]
        return outcomes

    def _scrubbed(self) -> bool:
        """Whether the bytes are gone too: the records are, and a failing disk must not make it look otherwise."""
        try:
            return self.scrub()
        except StoreError:
            return False

    def claim(self, job: Job, *, lease: timedelta, now: datetime) -> Claim | Skipped:
        """See ``Store``."""
        with self.writing(durable=True) as db:
            return jobs.take(db, job, lease=lease, now=now)

    def jobs(self, scopes: Collection[Scope], *, now: datetime) -> list[JobState]:
        """See ``Store``."""
        with self.using() as connection:
            return jobs.states(connection.db, scopes, now)

    def scrub(self) -> bool:
        """Bring erased bytes out of every file; False while a reader needs the old ones."""
        if self._lock is None:
            return True
        with self.using() as connection, self._lock.held():
            connection.db.set_busy_timeout(int(CHECKPOINT_SECONDS * 1000))
            try:
                row = first(connection.db, "pragma wal_checkpoint(truncate)")
                if row is None or row[0]:
                    return False
                with connection.writing(durable=False) as db:
                    wipe(db, self.path)
                    db.execute("delete from meta where key = 'erasing'")
            except apsw.BusyError:
                return False
            finally:
                connection.db.set_busy_timeout(BUSY_MS)
        return True

    def size(self) -> int:
        """How many bytes its files take up."""
        paths = [self.path + side for side in ("", "-wal", "-shm")]
        return sum(os.path.getsize(path) for path in paths if os.path.exists(path))

    def marked(self) -> tuple[str, int] | None:
        """The store's name and the number of the last durable write, as noted beside the database."""
        return self._lock.marked() if self._lock else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep every writer out; for upkeep."""
        with self._lock.held() if self._lock else self._private:
            yield

    def reopen(self) -> None:
        """Take up a database that was replaced as a whole: bring it to this schema and note its last number anew."""
        self.close()
        with self.writing(durable=True):
            pass

    def close(self) -> None:
        """See ``Store``."""
        self._pool.close()
        if self._lock:
            self._lock.close()

    # Connections

    @contextlib.contextmanager
    def using(self) -> Iterator[Connection]:
        """Borrow a connection; what the driver says is said in our words."""
        waiting = self._private if self._lock is None else contextlib.nullcontext()
        with waiting, mapped(self.path), self._pool.lent(self._open) as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self, *, durable: bool) -> Iterator[apsw.Connection]:
        """Open a transaction in turn with all other writers; a durable one is numbered and on disk when it ends."""
        with self.using() as connection:
            if self._lock is None:
                with connection.writing(durable=durable) as db:
                    yield db
                return
            with self._lock.held():
                with connection.writing(durable=durable) as db:
                    yield db
                    number = _count(db) if durable else None
                if number:
                    self._lock.mark(*number)

    def _open(self) -> Connection:
        if self._lock is None:
            connection = Connection(self.path, vec=self._vec)
            prepare(connection, self.path, _scripts(), fills=_FILLS, product=PRODUCT)
            return connection
        _make_file(self.path)
        connection = Connection(self.path, vec=self._vec)
        try:
            if _identity(connection) != (APPLICATION_ID, _NEWEST):
                with self._lock.held():
                    prepare(connection, self.path, _scripts(), fills=_FILLS, product=PRODUCT)
        except BaseException:
            connection.close()
            raise
        return connection


_NEWEST = 5  # the number of the last script in migrations/
_FILLS = {3: vectors.encode_all}


def _scripts() -> list[str]:
    folder = os.path.join(os.path.dirname(__file__), "migrations")
    scripts = []
    for number in range(1, _NEWEST + 1):
        with open(os.path.join(folder, f"{number:04d}.sql"), encoding="utf-8") as file:
            scripts.append(file.read())
    return scripts


def _identity(connection: Connection) -> tuple[int, int]:
    return int(connection.db.pragma("application_id")), int(connection.db.pragma("user_version"))


def _make_file(path: str) -> None:
    """Private from the first byte; SQLite gives its side files the same rights."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)) if not os.path.exists(path) else None
    except OSError as error:
        raise StoreError(f"the store {path!r} cannot be made: {error.strerror}") from error


def _made(db: apsw.Connection, changes: Sequence[Change]) -> tuple[list[Outcome], list[bool]]:
    """Make changes inside a transaction; returns what came of each, and whether bytes are to vanish for it."""
    outcomes = [writes.make(db, change) for change in changes]
    erased = [_erased(*pair) for pair in zip(changes, outcomes, strict=True)]
    if any(erased):
        db.execute("insert or replace into meta values ('erasing', 1)")
    return outcomes, erased


def _erased(change: Change, outcome: Outcome) -> bool:
    """Whether bytes are to vanish; a dropped scope names its records only, and may have held documents."""
    lapsed = isinstance(change, Delete) and change.tell is not None and change.tell == "memory.expired"
    return isinstance(change, DropScope) or (isinstance(change, _ERASING) and bool(outcome.gone) and not lapsed)


def _count(db: apsw.Connection) -> tuple[str, int] | None:
    """Number a durable write; the store's own name goes with the number."""
    counted = (
        "update meta set value = value + 1 where key = 'sequence'"
        " returning (select value from meta where key = 'store'), value"
    )
    [(store, sequence)] = every(db, counted)
    return str(store), int(sequence)

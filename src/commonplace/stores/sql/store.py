"""What every store in SQL does alike: all reads.  A database contributes its transactions."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from commonplace.model.changes import DropFiles, PutFiles, SetVectors, Touch, TrimEvents, versions_digest
from commonplace.model.documents import Chunk, Document, FileState
from commonplace.model.jobs import JobState
from commonplace.model.ports import EmbedderIdentity, Growth, Measure, Tally, UnembeddedText
from commonplace.model.queries import DocumentFilter, Filter, Match, Order, Query, State, Survey, Vector
from commonplace.model.records import Kind, Record
from commonplace.model.scopes import Scope
from commonplace.stores.rows import FILE, micros, row_records, scope_at, select_list
from commonplace.stores.sql import changes, search, vectors
from commonplace.stores.sql.filters import filter_sql, order_sql, rows_limit, rows_of, scopes_below

if TYPE_CHECKING:
    from commonplace.model.audit import AuditEntry
    from commonplace.model.changes import Change, Outcome
    from commonplace.model.events import Event
    from commonplace.model.items import Item
    from commonplace.model.tombstones import Tombstone
    from commonplace.stores.auditor import Auditor
    from commonplace.stores.sql.dialect import Db

T = TypeVar("T")

#: Changes whose loss in a power cut loses nothing: they are not worth waiting for the disk.
DAMAGED_NAMED = 5  # rows that are named in one answer
NOT_DURABLE = (Touch, PutFiles, DropFiles, SetVectors, TrimEvents)


class SqlStore(ABC):
    """The reads of a store.  A subclass lends connections and writes."""

    path: str  #: where it is
    make_auditor: Callable[[], Auditor] | None = None  #: gives what its audit log is written with; None: it has no log
    _patience = threading.local()  # of this thread: whether its writes wait for others

    @property
    def _is_impatient(self) -> bool:
        return getattr(self._patience, "is_short", False)

    @contextmanager
    def without_waiting(self) -> Iterator[None]:
        before, self._patience.is_short = self._is_impatient, True
        try:
            yield
        finally:
            self._patience.is_short = before

    def add_notice(self, sentence: str) -> None:
        """Note what the caller should know, once for each store that is opened."""
        self.__dict__.setdefault("_notices", {}).setdefault(sentence, True)

    def take_notices(self) -> tuple[str, ...]:
        notices: dict[str, bool] = self.__dict__.get("_notices", {})
        new = tuple(sentence for sentence, is_new in notices.items() if is_new)
        notices.update(dict.fromkeys(new, False))
        return new

    @abstractmethod
    def using(self) -> AbstractContextManager[Db]:
        """Borrow a connection."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Db]:
        """See one state of the store throughout."""

    @abstractmethod
    def writing(self, *, durable: bool = True) -> AbstractContextManager[Db]:
        """Make all of it or none, while no other process writes."""

    @abstractmethod
    def load_items(self, db: Any, items: Sequence[Item], *, gone: Collection[Item]) -> None:
        """Replace whatever has the same key as one of these items, and erase others, in a transaction."""

    def mark_erasing(self, db: Any) -> None:  # noqa: B027 - a database that cleans up by itself has nothing to note
        """Note, in a transaction, that bytes of what it overwrites have to vanish."""

    def scrub(self) -> bool:
        """Remove erased bytes from every file; False while a reader needs the old ones."""
        return True

    def require_current(self) -> None:
        """See ``Store``; a server's database is where it is."""
        self._ask(lambda db: db.first("select 1"))

    @property
    def name(self) -> str:
        """What tells it from every other store."""
        return self.path

    @property
    def own_folders(self) -> str:
        """What the names of this machine's folders begin with."""
        return self._folder("")

    # Reading

    def _ask(self, work: Callable[[Db], T]) -> T:
        """Ask one question, which sees one state by itself."""
        with self.using() as db:
            return self._answer(db, work)

    def _read(self, work: Callable[[Db], T]) -> T:
        """Ask several, of one state of the store."""
        with self.reading() as db:
            return self._answer(db, work)

    def _answer(self, db: Db, work: Callable[[Db], T]) -> T:
        """Return the answer; what was left out of it because it is damaged becomes a notice."""
        db.damaged.clear()
        answer = work(db)
        for sentence in db.damaged[:DAMAGED_NAMED]:
            self.add_notice(sentence)
        return answer

    def get(self, id: str) -> Record | None:
        return self._ask(lambda db: changes.read(db, id))

    def find(self, where: Filter, *, order: Order, limit: int) -> list[Record]:
        return self._ask(lambda db: _find(db, self._here(where), order, limit))

    def match(self, where: Filter, query: Query, *, limit: int) -> list[Match]:
        return self._read(lambda db: search.match(db, self._here(where), query, limit=limit))

    def nearest(self, where: Filter, vector: Vector, *, limit: int) -> list[Match]:
        return self._read(lambda db: search.nearest(db, self._here(where), vector, limit=limit))

    def survey(self, where: Filter, query: Query, vector: Vector | None, *, limit: int) -> Survey:
        return self._read(lambda db: search.survey(db, self._here(where), query, vector, limit=limit))

    def speakers(self, scopes: Collection[Scope]) -> list[str]:
        return self._read(lambda db: search.speakers(db, scopes))

    def documents(self, where: DocumentFilter, *, limit: int) -> list[Document]:
        from commonplace.stores.sql import documents  # noqa: PLC0415 - no recall asks for them

        return self._ask(lambda db: documents.list_documents(db, where, limit=limit))

    def chunks(self, where: DocumentFilter, *, limit: int, after: int = -1) -> list[Chunk]:
        from commonplace.stores.sql import documents  # noqa: PLC0415 - no recall asks for them

        return self._ask(lambda db: documents.chunks(db, where, limit=limit, after=after))

    def files(self, folder: str, *, records: Collection[str] | None = None) -> list[FileState]:
        return self._ask(lambda db: _files(db, self._folder(folder), records))

    def file_stamps(self, folder: str) -> dict[str, int]:
        return dict(
            self._ask(lambda db: db.every("select path, stamp from file where folder = ?", [self._folder(folder)]))
        )

    def mirrored_folders(self) -> list[str]:
        own = self.own_folders
        rows = self._ask(lambda db: db.every("select distinct folder from file"))
        return sorted(folder.removeprefix(own) for (folder,) in rows if folder.startswith(own))

    def census(self, *, at: datetime | None = None) -> list[Tally]:
        return self._ask(lambda db: _census(db, at))

    def growth(self, scopes: Collection[Scope], *, until: datetime, step: timedelta, steps: int) -> list[Growth]:
        from commonplace.stores.sql import growth  # noqa: PLC0415 - no recall asks for it

        return self._ask(lambda db: growth.growth(db, scopes, until=until, step=step, steps=steps))

    def measure(self, where: Filter) -> Measure:
        return self._ask(lambda db: changes.measure(db, where))

    def versions_digest(self, where: Filter) -> str:
        return versions_digest(self._ask(lambda db: changes.versions(db, where)))

    def scopes(self, below: Scope | None = None) -> list[Scope]:
        every = "select path from scope"
        found = self._ask(lambda db: db.every(every) if below is None else scopes_below(db, below))
        return sorted((scope_at(path) for path, *_ in found), key=str)

    def scopes_with_records(self, below: Scope) -> list[Scope]:
        having = "where exists (select 1 from record r where r.scope = below.id)"
        return [scope_at(path) for path, _ in sorted(self._ask(lambda db: scopes_below(db, below, having=having)))]

    def events(self, scopes: Collection[Scope], *, after: int = 0, limit: int) -> list[Event]:
        from commonplace.stores.sql import events  # noqa: PLC0415 - no recall asks for them

        return self._ask(lambda db: events.list_events(db, scopes, after=after, limit=limit))

    def events_floor(self) -> int:
        from commonplace.stores.sql import events  # noqa: PLC0415 - no recall asks for it

        return self._ask(events.floor)

    def _last_event(self) -> int:
        from commonplace.stores.sql import events  # noqa: PLC0415 - no recall asks for it

        return self._ask(events.last)

    def tombstones(self, digests: Collection[str] | None = None) -> list[Tombstone]:
        from commonplace.stores.sql import tombstones  # noqa: PLC0415 - no recall asks for them

        return self._ask(lambda db: tombstones.list_tombstones(db, digests))

    def audit_log(self, *, after: int = 0, record: str | None = None, limit: int) -> list[AuditEntry]:
        from commonplace.stores.sql import audit  # noqa: PLC0415 - no recall asks for it

        return self._ask(lambda db: audit.list_entries(db, after=after, record=record, limit=limit))

    def latest_audit(
        self, scopes: Collection[Scope], *, before: int | None = None, verbs: Collection[str] | None = None, limit: int
    ) -> list[AuditEntry]:
        from commonplace.stores.sql import audit  # noqa: PLC0415 - no recall asks for it

        return self._ask(lambda db: audit.list_latest(db, scopes, before=before, verbs=verbs, limit=limit))

    def _append_audit(
        self, db: Db, changes: Sequence[Change], outcomes: Sequence[Outcome], *, durable: bool
    ) -> tuple[int, str] | None:
        """Append to the audit log what these changes did; nothing if the store has no log."""
        if self.make_auditor is None or not durable:
            return None
        from commonplace.stores.sql import audit  # noqa: PLC0415 - no recall writes it

        return audit.append(db, self.make_auditor(), changes, outcomes)

    def _note_audit(self, last: tuple[int, str] | None) -> None:
        """Note outside of the database how far the log goes, after the commit."""
        if self.make_auditor is not None and last is not None:
            auditor = self.make_auditor()
            auditor.note(*last, lost=auditor.read().lost)

    def embedder(self) -> EmbedderIdentity | None:
        return self._ask(vectors.embedder)

    def list_unembedded(self, identity: EmbedderIdentity, *, limit: int) -> list[UnembeddedText]:
        return self._read(lambda db: vectors.list_unembedded(db, identity, limit))

    def count_unembedded(self, identity: EmbedderIdentity) -> int:
        return self._read(lambda db: vectors.count_unembedded(db, identity))

    def jobs(self, scopes: Collection[Scope], *, now: datetime) -> list[JobState]:
        from commonplace.stores.sql import jobs  # noqa: PLC0415 - no recall asks for them

        return self._ask(lambda db: jobs.states(db, scopes, self._time(now)))

    def _folder(self, folder: str) -> str:
        """Return the name under which the store knows a folder."""
        return folder

    def _here(self, where: Filter) -> Filter:
        """Return a filter with its checkouts under the names by which the store knows them."""
        return where.replace(views=frozenset(map(self._folder, where.views))) if where.views else where

    def _time(self, now: datetime) -> datetime | None:
        """Return the time by which leases run; None: the database knows."""
        return now


def _find(db: Db, where: Filter, order: Order, limit: int) -> list[Record]:
    condition, values = filter_sql(db, where, "r")
    table, moments = rows_of(db, where)
    sql = (
        f"select {select_list('r')} from {table} r join scope s on s.id = r.scope"
        f" left join usage u on u.record = r.row where {condition} order by {order_sql(order, 'r')} limit ?"
    )
    named = where.ids is not None or where.prefix is not None  # who asks for a record by its name is told
    return row_records(db.every(sql, [*moments, *values, rows_limit(limit)]), damaged=None if named else db.damaged)


def _files(db: Db, folder: str, records: Collection[str] | None) -> list[FileState]:
    sql, values = f"select path, {', '.join(FILE)} from file where folder = ?", [folder]
    if records is not None:
        choice, wanted = db.among("record", records)
        sql, values = f"{sql} and {choice}", [*values, *wanted]
    rows = sorted(db.every(sql, values))  # here: SQLite would walk the whole folder to have them in order
    return [FileState(path=p, record=r, version=v, digest=d, stamp=t) for p, r, v, d, t in rows]


def _census(db: Db, at: datetime | None) -> list[Tally]:
    state = (
        "case when r.archived_at is not null then 'archived' when r.held = 1 then 'held'"
        " when r.expires_at <= ? then 'expired' else 'live' end"
    )
    record, document, chunk = (db.bytes_of.format(text) for text in ("r.content", "d.content", "c.text"))
    chunked = f"(select sum({chunk}) from chunk c where c.document = d.row)"
    sql = (
        f"select s.path, r.kind, {state}, count(*), cast(sum({record}) as bigint)"
        " from record r join scope s on s.id = r.scope group by 1, 2, 3 union all"
        " select s.path, d.kind, 'live', count(*),"
        f" cast(sum(coalesce({document}, 0) + coalesce({chunked}, 0)) as bigint)"
        " from document d join scope s on s.id = d.scope group by 1, 2 order by 1, 2, 3"
    )
    kinds = {kind.value: kind for kind in Kind}
    return [
        Tally(scope=scope_at(path), what=kinds.get(what, what), state=State(state), count=count, bytes=size)
        for path, what, state, count, size in db.every(sql, [micros(at)])
    ]

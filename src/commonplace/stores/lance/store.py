"""The store behind ``store_backend: lancedb``: records in SQLite, and an index of their vectors in LanceDB.

Everything is stored, and decided, by the record store in ``records.db``; the tables beside it can be deleted at any
time.  A table of the index is never changed.  What has changed since it was written is noted in the record store, by
triggers, in the transaction that changes it: so a search sees one state of both, whichever process wrote.  It asks the
table for what has not changed and looks through the rest by itself; every candidate is checked and weighed by the
record store.  Where the table is gone, damaged or of another embedder the record store answers alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from commonplace.model.changes import (
    AppendChunks,
    Change,
    Delete,
    DeleteChunks,
    DeleteDocuments,
    DropScope,
    Load,
    Outcome,
    Put,
    PutDocument,
    SetVectors,
    SwitchEmbedder,
    Trim,
    TrimDocuments,
)
from commonplace.model.errors import StoreBusy, StoreError
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import Filter
from commonplace.stores import codes
from commonplace.stores.lance.index import PREFIX, SUFFIX, Found, IndexLost, LanceIndex, Row, WrittenTable, quote_text
from commonplace.stores.rows import micros
from commonplace.stores.sql.filters import entry_sql, is_plain
from commonplace.stores.sql.vectors import embedder
from commonplace.stores.sqlite.dialect import FLOAT_BYTES, SqliteDb, by_codes
from commonplace.stores.sqlite.store import SqliteStore

RECORDS = "records.db"
FOREIGN = ("memories", "_memories", "sessions", "_sessions")  # tables of the public implementation
MIN_TAIL = 1_000  # vectors that are looked through without an index; below that there is none
TAIL_SHARE = 4  # and a quarter of what is indexed: then each vector is written some five times in all
PARTITION_FROM = 100_000  # vectors; fewer are compared one by one in less time than a hybrid recall may take
WIDER = 4  # times as many are asked for, when too few of those that were found will do
TIE = 1e-6  # what single precision cannot tell apart

_ERASING = (Delete, DeleteChunks, DeleteDocuments, DropScope, Trim, TrimDocuments)
_GROWING = (Put, Load, SetVectors, SwitchEmbedder, PutDocument, AppendChunks)
_TRIGGERS = 3
_NOTES = """
  drop trigger if exists lance_added; drop trigger if exists lance_changed; drop trigger if exists lance_removed;
  drop table if exists lance_index; drop table if exists lance_tail; drop table if exists lance_gone;
  -- The table in use, if there is one: of which embedder, with how many rows, up to which entry, of which bytes.
  create table lance_index (
    name text not null, embedder text not null, dimensions integer not null, rows integer not null,
    newest integer not null, sum integer not null
  ) strict;
  -- What is not in it as it is now, and what was in it and is not there any more.
  create table lance_tail (seq integer primary key autoincrement, entry integer not null unique) strict;
  create table lance_gone (entry integer primary key) strict;
  create trigger lance_added after insert on code begin
    insert or replace into lance_tail (entry) values (new.id);
  end;
  create trigger lance_changed after update on code begin
    insert or replace into lance_tail (entry) values (new.id);
  end;
  create trigger lance_removed after delete on code begin
    insert or replace into lance_tail (entry) values (old.id);
    insert or ignore into lance_gone select old.id from lance_index where old.id <= newest;
  end;
"""


class LanceStore(SqliteStore):
    """A store in one folder."""

    def __init__(
        self,
        folder: str,
        *,
        vec: str | None = None,
        tail_least: int = MIN_TAIL,
        partition_from: int = PARTITION_FROM,
    ) -> None:
        """Open the store in that folder, making it if there is none; ``vec`` is that of ``SqliteStore``."""
        self.folder = os.path.abspath(folder)
        self._index = LanceIndex(self.folder, partition_from=partition_from)
        self._tail_least = tail_least
        self._lost: set[str] = set()  # tables that have failed: not asked again
        self.trouble: str | None = None  #: why the index was not built when it should have been
        _refuse_foreign(self.folder)
        _make_folder(self.folder)
        super().__init__(os.path.join(self.folder, RECORDS), vec=vec)
        self._install_triggers()
        self._sweep()

    def reopen(self) -> None:
        """See ``SqliteStore``: what is there now may never have had an index."""
        super().reopen()
        self._install_triggers()

    def _connect(self, path: str, *, reads_only: bool = False) -> SqliteDb:
        return SqliteDb(path, vec=self._vec, near=self._near, reads_only=reads_only)

    # Writing

    def apply(self, changes: Sequence[Change]) -> list[Outcome]:
        """See ``Store``.  The index follows after that; whatever becomes of it, the changes are made."""
        erasing = any(isinstance(change, _ERASING) for change in changes)
        before = self._count_gone() if erasing else 0
        outcomes = super().apply(changes)
        if erasing and any(_is_wanted(change) for change in changes) and self._count_gone() > before:
            if not self.withdraw():
                outcomes = [outcome.replace(erasing=outcome.erasing or bool(outcome.gone)) for outcome in outcomes]
        elif any(isinstance(change, _GROWING) for change in changes):
            self._tend()
        return outcomes

    def rebuild(self, *, progress: ProgressCallback = no_progress) -> int:
        """Write the index anew from the record store; returns how many vectors are in it: 0 if few need none.

        Raises ``StoreBusy`` while another process does, ``IndexLost`` if it cannot be written; the old one stays then.
        """
        with self._index.building():
            name = f"{PREFIX}{os.urandom(8).hex()}"
            with self.reading() as db:
                held, rows, newest, mark = embedder(db), *_extent(db)
                total, rows = 0, rows if held and rows > self._tail_least else 0
                if held and rows:
                    total = self._index.write(
                        name, held.dimensions, _rows(db, held.dimensions), of=rows, progress=progress
                    )
            with self.writing(durable=False) as db:
                db.execute("delete from lance_index")
                if held and rows:
                    row = (name, held.name, held.dimensions, rows, newest, total)
                    db.execute("insert into lance_index values (?, ?, ?, ?, ?, ?)", row)
                _note_since(db, mark, newest)
            self._drop_but(name)
        if self._count_gone():  # erased while the table was written: it must not stay there
            self.withdraw()
        self.trouble = None
        return rows

    def scrub(self) -> bool:
        """See ``SqliteStore``: the index goes as well, and is built anew when it is next wanted."""
        return self.withdraw() and super().scrub() if self._count_gone() else super().scrub()

    def withdraw(self) -> bool:
        """Do without an index until it is built anew; False if bytes of it could not be erased."""
        with self.writing(durable=True) as db:
            for table in ("lance_index", "lance_tail", "lance_gone"):
                db.execute(f"delete from {table}")
        try:
            with self._index.building():
                self._drop_but(None)
        except (OSError, StoreBusy):
            return False
        return True

    def count_indexed(self) -> int:
        """Return how many vectors the index in use holds; 0: there is none."""
        with self.using() as db:
            held = _current_table(db)
        return held.rows if held and held.name not in self._lost else 0

    def close(self) -> None:
        self._index.close()
        super().close()

    # The index

    def _install_triggers(self) -> None:
        """Let the database note what changes; one that has not done so all the time knows of no table."""
        with self.using() as db:
            ready = db.every("select 1 from sqlite_schema where type = 'trigger' and name glob 'lance_*'")
        if len(ready) != _TRIGGERS:
            with self.writing(durable=True) as db:
                db.every(_NOTES)

    def _sweep(self) -> None:
        """Drop the tables that a process left behind when it was killed: vectors of what was erased may be in them."""
        with contextlib.suppress(StoreBusy, OSError), self._index.building():
            with self.using() as db:
                row = db.first("select name from lance_index")
            self._drop_but(row[0] if row else None)

    def _count_gone(self) -> int:
        """Return how many rows of the index in use are of what is not there any more."""
        with self.using() as db:
            return int((db.first("select count(*) from lance_gone") or (0,))[0])

    def _tend(self) -> None:
        """Write the index anew when too much has changed; a write that is made is never undone because of it."""
        with self.using() as db:
            held = _current_table(db)
            usable = held if held and held.name not in self._lost else None
            table = "lance_tail" if usable else "vector"
            tail = int((db.first(f"select count(*) from {table}") or (0,))[0])
        if tail <= max(self._tail_least, usable.rows // TAIL_SHARE if usable else 0):
            return
        try:
            self.rebuild()
        except StoreBusy:
            return  # who builds it now has seen nearly as much
        except (StoreError, OSError) as error:
            self.trouble = str(error)

    def _drop_but(self, name: str | None) -> None:
        self._index.drop(*(other for other in self._index.names() if other != name))

    def _near(self, db: SqliteDb, where: Filter, asked: Sequence[float], count: int) -> list[int]:
        """Return what may be nearest: from the index what has not changed since, and what has changed by its codes."""
        held = _current_table(db)
        if held is None or held.name in self._lost or not is_plain(where):
            return by_codes(db, where, asked, count)
        changed = frozenset(entry for (entry,) in db.every("select entry from lance_tail"))
        try:
            found = self._search_index(db, held, where, asked, count=count, changed=changed)
        except IndexLost:
            self._lost.add(held.name)
            return by_codes(db, where, asked, count)
        if not changed:
            return found
        changed_codes = db.codes(where, len(asked), only="e.id in (select entry from lance_tail)")
        return [*found, *codes.best(changed_codes, asked, count)]

    def _search_index(
        self,
        db: SqliteDb,
        held: WrittenTable,
        where: Filter,
        asked: Sequence[float],
        *,
        count: int,
        changed: frozenset[int],
    ) -> list[int]:
        """Return the nearest of the index, and all that tie with the last of them; of what has changed none."""
        buckets, _, _ = db.buckets(where)
        if not buckets:
            return []
        condition, wanted = _condition(where, buckets), count + 1
        exact = not self._index.is_partitioned(held.rows)
        while True:
            rows = self._index.search(held, condition, asked, limit=wanted, exact=exact)
            unchanged = [row for row in rows if row.entry not in changed]
            if len(rows) < wanted:  # all there are, unless parts were passed over
                if exact:
                    return _check_found(db, where, buckets, unchanged, whole=True)
                exact = True
            elif len(unchanged) > count and unchanged[-1].distance > unchanged[count - 1].distance + TIE:
                return _check_found(db, where, buckets, unchanged, whole=False)
            else:
                wanted *= WIDER


def _condition(where: Filter, buckets: Sequence[int]) -> str:
    """Return a plain filter as LanceDB has it; see ``filters.entry_sql``."""
    parts = [f"bucket in ({', '.join(map(str, buckets))})", f"(expires is null or expires > {micros(where.at)})"]
    for column, allowed in {"kind": where.kinds, "category": where.categories}.items():
        if allowed is not None:
            named = ", ".join(quote_text(str(value)) for value in sorted(allowed)) or "null"
            parts.append(f"({column} in ({named}) or kind is null)")
    return " and ".join(parts)


def _check_found(
    db: SqliteDb, where: Filter, buckets: Sequence[int], found: Sequence[Found], *, whole: bool
) -> list[int]:
    """The entries, if the record store has each of them so; ``whole``: and no others.  Else the index is lost."""
    entries = [one.entry for one in found]
    condition, values = entry_sql(db, where)
    chosen, numbers = db.among("e.id", entries)
    within, rows = db.among("e.bucket", buckets)
    held = f"select count(*) from code e where {within} and {condition}"
    [(known,)] = db.every(f"{held} and {chosen}", [*rows, *values, *numbers]) if entries else [(0,)]
    unchanged = f"{held} and e.id not in (select entry from lance_tail)"
    total = db.every(unchanged, [*rows, *values])[0][0] if whole else known
    if known != len(set(entries)) or known != len(entries) or total != known:
        raise IndexLost("the index does not hold what the record store holds")
    return entries


def _current_table(db: SqliteDb) -> WrittenTable | None:
    """Return the table in use, if it is of the embedder in use."""
    now = embedder(db)
    if now is None:
        return None
    sql = "select name, rows, sum from lance_index where embedder = ? and dimensions = ?"
    row = db.first(sql, (now.name, now.dimensions))
    return WrittenTable(name=row[0], rows=row[1], sum=row[2]) if row else None


def _extent(db: SqliteDb) -> tuple[int, int, int]:
    """Return how many vectors there are, the last entry that has one, and the last note of a change."""
    rows, newest = db.first("select count(*), coalesce(max(entry), 0) from vector") or (0, 0)
    return rows, newest, int((db.first("select coalesce(max(seq), 0) from lance_tail") or (0,))[0])


def _note_since(db: SqliteDb, mark: int, newest: int) -> None:
    """Delete the notes that a new table includes; it holds vectors of what was deleted since."""
    db.execute("delete from lance_tail where seq <= ?", (mark,))
    db.execute("delete from lance_gone")
    gone = "select entry from lance_tail where entry <= ? and entry not in (select id from code)"
    db.execute(f"insert into lance_gone {gone}", (newest,))


def _rows(db: SqliteDb, dimensions: int) -> Iterator[Row]:
    sql = (
        "select c.id, c.bucket, c.expires, c.kind, c.category, v.data from vector v"
        " join code c on c.bucket = v.bucket and c.id = v.entry order by v.entry"
    )
    for row in db.execute(sql):
        if len(row[-1]) != FLOAT_BYTES * dimensions:
            raise IndexLost(f"the vector of entry {row[0]} is damaged; run `commonplace doctor`")
        yield row


def _is_wanted(change: Change) -> bool:
    """Return whether bytes are to vanish; a change that only makes room may leave them until later."""
    return isinstance(change, _ERASING) and not (isinstance(change, Trim | TrimDocuments) and change.keep > 0)


def _make_folder(folder: str) -> None:
    """Make a private folder: LanceDB makes files that others may read."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"the store {folder!r} cannot be made: {error.strerror}") from error


def _refuse_foreign(folder: str) -> None:
    """Refuse a folder of another program: an empty store there would look like lost memories."""
    theirs = [name for name in FOREIGN if os.path.isdir(os.path.join(folder, name + SUFFIX))]
    if theirs and not os.path.exists(os.path.join(folder, RECORDS)):
        way = f"`commonplace import --from lance {folder}` takes its memories over"
        raise StoreError(f"{folder!r} is a LanceDB store of another program; {way}, into a store of its own")

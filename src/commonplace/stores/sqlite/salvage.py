"""Carry everything that can be read out of a damaged database into a new one, row by row and table by table.

Nothing of the damaged file is trusted to fit together: no joins, no index that must agree.  A row that cannot be read
is passed over and counted; a record whose last version is lost is carried with the one before, and passages whose
session is lost are carried under a name of their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import apsw

from commonplace.model.errors import StoreDamaged
from commonplace.model.items import SORTS, Item
from commonplace.model.values import Value
from commonplace.stores.rows import CHUNK_FIELDS, FIELDS, FILE, SHARED_COLUMNS, decode_rows, scope_at
from commonplace.stores.scoring import CHUNK, RECORD, VERSION
from commonplace.stores.sql import audit, events
from commonplace.stores.sql.documents import DOCUMENT
from commonplace.stores.sql.items import EMBEDDERS, EVENT, JOB, SCOPE, SqlItemCopier
from commonplace.stores.sql.tombstones import TOMBSTONE
from commonplace.stores.sqlite.connection import translate_errors
from commonplace.stores.sqlite.store import LOST, SqliteStore

Row: TypeAlias = tuple[Any, ...]

WINDOW = 200  # rows that are read at once; where one of them is damaged, each by itself
ROWS_A_PAGE = 400  # at most, about: how far rows are looked for where nobody knows the last one
PAGE_BYTES = 8192
HEADER = 100  # bytes of a database's header
_UNREADABLE = (apsw.Error, UnicodeError, ValueError, TypeError, LookupError, OverflowError, StoreDamaged)
#: How a damaged row is named to people, by the table that it was in.
NAMES = {
    "record": "records", "version": "earlier versions", "document": "sessions and artifacts", "chunk": "passages",
    "event": "events", "job": "jobs", "file": "notes of files", "tombstone": "notes of erasures",
    "audit": "entries of the audit log", "usage": "counts of use", "scope": "scopes", "vector": "vectors",
}  # fmt: skip


class Carried(Value):
    """What came of one table."""

    table: str
    read: int
    lost: int  #: rows that could not be read, at most: some of these may never have been

    @property
    def sentence(self) -> str:
        """What people are told of it."""
        lost = f", up to {self.lost} could not be read" if self.lost else ""
        return f"{NAMES[self.table]}: {self.read} carried over{lost}"


def carry(path: str, fresh: SqliteStore) -> list[Carried]:
    """Write everything that can be read of the database at a path into a new store; return what came of each table."""
    with translate_errors(path), _opened(path) as db:
        reader = _Reader(db)
        copier = SqlItemCopier(fresh)
        refused = dict.fromkeys(NAMES, 0)
        items = sorted(reader.items(), key=lambda item: SORTS.index(item.sort))
        for start in range(0, len(items), WINDOW):
            for item in _refused(copier, items[start : start + WINDOW]):
                refused[item.sort] = refused.get(item.sort, 0) + 1
        fresh.forget_mark()  # it is given the name of the damaged one
        with fresh.writing() as own:
            for key, value in reader.notes.items():
                if key in ("store", "sequence") or key.startswith(LOST):
                    own.note(key, value)
    return [
        Carried(table=table, read=reader.read.get(table, 0) - refused[table], lost=lost + refused[table])
        for table in NAMES
        if (lost := reader.lost.get(table, 0)) is not None and (reader.read.get(table) or lost)
    ]


def _refused(copier: SqlItemCopier, items: Sequence[Item]) -> list[Item]:
    """Write items; return those that cannot be written, such as a second one of the same name."""
    try:
        copier.write(items, copy_source=None)
    except _UNREADABLE:
        return list(items) if len(items) == 1 else [bad for item in items for bad in _refused(copier, [item])]
    return []


@contextlib.contextmanager
def _opened(path: str) -> Iterator[apsw.Connection]:
    """Open a damaged database; of one whose first page is garbled a copy, with what is there in every one of ours."""
    copy = f"{path}.mended"
    try:
        db = _connect(path)
        for whole in (False, True):  # first its header only, then its list of tables as well
            if _is_readable(db):
                break
            db.close()
            shutil.copyfile(path, copy)
            _mend_first_page(copy, whole=whole)
            db = _connect(copy)
        yield db
        db.close()
    finally:
        remove_files(copy)


def _connect(path: str) -> apsw.Connection:
    db = apsw.Connection(path)
    with contextlib.suppress(apsw.Error):
        db.execute("pragma writable_schema = on").fetchall()  # an entry of the schema that makes no sense is skipped
    return db


def _is_readable(db: apsw.Connection) -> bool:
    """Whether it has its tables."""
    try:
        return bool(db.execute("select 1 from sqlite_schema where name = 'record'").fetchall())
    except _UNREADABLE:
        return False


def remove_files(path: str) -> None:
    """Remove a database with what lies beside it."""
    for side in ("", "-wal", "-shm", ".lock"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + side)


def _mend_first_page(path: str, *, whole: bool) -> None:
    """Write the first page of an empty store, or its header, over that of a damaged one, with its number of pages."""
    model = SqliteStore(f"{path}.model")
    model.scrub()
    model.close()
    try:
        with open(model.path, "rb") as file:
            page = bytearray(file.read(HEADER))
            size = int.from_bytes(page[16:18], "big")
            page += file.read(size - HEADER) if whole else b""
        page[28:32] = (os.path.getsize(path) // size).to_bytes(4, "big")
        page[32:40] = bytes(8)  # free pages: nothing is written to it any more
        with open(path, "r+b") as file:
            file.write(page)
    finally:
        remove_files(model.path)


class _Reader:
    """Reads the tables of a damaged database."""

    def __init__(self, db: apsw.Connection) -> None:
        self.db = db
        self.read: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        self.notes = {key: value for key, value in self._keyed("meta", ("key",), ("value",)) if isinstance(key, str)}
        self.scopes = self._scopes()
        self.vectors, self.coming = self._vectors("vector"), self._vectors("beside")

    def items(self) -> Iterator[Item]:
        """Yield everything that could be read; owners need not come first."""
        for which, keys in EMBEDDERS.items():
            if all(key in self.notes for key in keys):
                yield Item(sort="embedder", key=(which,), data=tuple(self.notes[key] for key in keys))
        yield from (Item(sort="scope", key=(path,), data=()) for path in sorted(set(self.scopes.values())))
        yield from self._records()
        yield from self._documents()
        for folder, path, *state in self._keyed("file", ("folder", "path"), FILE):
            yield Item(sort="file", key=(folder, path), data=tuple(state))
        for scope, kind, key, *rest in self._keyed("job", ("scope", "kind", "key"), JOB):
            yield from self._scoped("job", scope, lambda at, k=kind, n=key, r=rest: ((at, k, n), tuple(r)))
        for seq, scope, *rest in self._numbered("event", "seq", EVENT):
            yield from self._scoped("event", scope, lambda at, n=seq, r=rest: ((n,), (at, *r)))
        if events.FLOOR in self.notes:
            yield Item(sort="trimmed", key=("event",), data=(self.notes[events.FLOOR],))
        for row in self._keyed("tombstone", TOMBSTONE[:2], TOMBSTONE[2:]):
            yield Item(sort="tombstone", key=row[:2], data=row[2:])
        for seq, *rest in self._numbered("audit", "seq", audit.FIELDS[1:]):
            yield Item(sort="audit", key=(seq,), data=tuple(rest))

    def _vectors(self, table: str) -> dict[int, bytes]:
        """Vectors by entry; one that is no bytes any more is made again."""
        return {entry: data for entry, data in self._numbered(table, "entry", ("data",)) if isinstance(data, bytes)}

    def _scoped(self, table: str, scope: int, make: Any) -> Iterator[Item]:
        if scope in self.scopes:
            key, data = make(self.scopes[scope])
            yield Item(sort=table, key=key, data=data)
        else:
            self._count(table, read=-1, lost=1)

    def _records(self) -> Iterator[Item]:
        used = {row: tuple(rest) for row, *rest in self._numbered("usage", "record", ("recalls", "last_recalled_at"))}
        versions: dict[int, list[Row]] = {}
        for row, record, *columns in self._numbered("version", "row", ("record", *SHARED_COLUMNS, "terms")):
            if found := self._version(columns, row * 4 + VERSION, "version"):
                versions.setdefault(record, []).append(found)
        for row, *columns in self._numbered("record", "row", (*SHARED_COLUMNS, "terms")):
            if found := self._version(columns, row * 4 + RECORD, "record"):
                versions.setdefault(row, []).append(found)
        number = SHARED_COLUMNS.index("version")
        for row, known in versions.items():
            known.sort(key=lambda one: int(one[number]))
            yield Item(sort="record", key=(known[-1][0],), data=(used.get(row, ()), tuple(known)))

    def _version(self, columns: Sequence[Any], entry: int, table: str) -> Row | None:
        """A version as items have it, if it makes sense; its hash stays, so that what was altered is still noticed."""
        try:
            *fields, terms = columns
            fields[SCOPE] = self.scopes[fields[SCOPE]]
            decode_rows([[*fields[: len(FIELDS)], None, None]])
            terms.split()
        except (*_UNREADABLE, AttributeError):
            self._count(table, read=-1, lost=1)
            return None
        return (*fields, terms, self.vectors.get(entry), self.coming.get(entry))

    def _documents(self) -> Iterator[Item]:
        chunks: dict[int, list[tuple[int, Row]]] = {}
        for row, document, scope, *fields in self._numbered(
            "chunk", "row", ("document", "scope", *CHUNK_FIELDS, "terms")
        ):
            entry = row * 4 + CHUNK
            vectors = (self.vectors.get(entry), self.coming.get(entry))
            chunks.setdefault(document, []).append((scope, (*fields, *vectors)))
        for row, scope, kind, name, *fields in self._numbered("document", "row", ("scope", "kind", "name", *DOCUMENT)):
            own = tuple(chunk for _, chunk in sorted(chunks.pop(row, []), key=lambda one: one[1][0]))
            yield from self._scoped(
                "document", scope, lambda at, k=kind, n=name, f=fields, c=own: ((at, k, n), (tuple(f), c))
            )
        for row, orphans in chunks.items():
            yield from self._orphans(row, orphans)

    def _orphans(self, row: int, chunks: Sequence[tuple[int, Row]]) -> Iterator[Item]:
        """The passages of a session that could not be read itself."""
        own = tuple(chunk for _, chunk in sorted(chunks, key=lambda one: one[1][0]))
        document = ("", None, "{}", "capture", None, "[]", min(int(chunk[5]) for chunk in own), 0, 0, None)
        scope = chunks[0][0]
        if scope in self.scopes:
            yield Item(sort="document", key=(self.scopes[scope], "session", f"salvaged-{row}"), data=(document, own))
        else:
            self._count("chunk", read=-len(own), lost=len(own))

    def _scopes(self) -> dict[int, str]:
        """Scopes by their numbers: from the table, or where that is damaged from the index of their paths."""
        found = {number: path for number, path in self._numbered("scope", "id", ("path",)) if isinstance(path, str)}
        with contextlib.suppress(*_UNREADABLE):
            sql = "select id, path from scope indexed by sqlite_autoindex_scope_1 order by path"
            for number, path in self.db.execute(sql):
                found.setdefault(number, path)
        for number, path in list(found.items()):
            try:
                scope_at(path)
            except _UNREADABLE:
                del found[number]
        return found

    # Rows

    def _count(self, table: str, *, read: int = 0, lost: int = 0) -> None:
        self.read[table] = self.read.get(table, 0) + read
        self.lost[table] = self.lost.get(table, 0) + lost

    def _known(self, table: str, columns: Sequence[str]) -> list[str]:
        """The columns of a table, with null for those that a store of an earlier schema has not."""
        try:
            names = {name for (name,) in self.db.execute("select name from pragma_table_info(?)", (table,))}
        except _UNREADABLE:
            names = set()
        return [column if column in names or not names else "null" for column in columns]

    def _numbered(self, table: str, key: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of a table that has a number for each, by these."""
        wanted = f"select {key}, {', '.join(self._known(table, columns))} from {table}"
        last, after = self._last(table, key), -1
        while after < last:
            try:
                rows = self.db.execute(f"{wanted} where {key} > ? order by {key} limit {WINDOW}", (after,)).fetchall()
                if not rows:
                    return
                after = int(str(rows[-1][0]))
            except _UNREADABLE:
                rows = list(self._each(table, wanted, key, range(after + 1, min(after + WINDOW, last) + 1)))
                after += WINDOW
            self._count(table, read=len(rows))
            yield from rows

    def _each(self, table: str, wanted: str, key: str, numbers: range) -> Iterator[Row]:
        for number in numbers:
            try:
                yield from self.db.execute(f"{wanted} where {key} = ?", (number,)).fetchall()
            except UnicodeError:
                yield from self._patched(table, wanted, key, number)
            except _UNREADABLE:
                self._count(table, lost=1)

    def _patched(self, table: str, wanted: str, key: str, number: int) -> Iterator[Row]:
        """A row with bytes that are no text: each of them is replaced, and the hash of the row shows it."""
        columns, _, _ = wanted.removeprefix("select ").partition(" from ")
        names = columns.split(", ")
        ask = ", ".join(f"typeof({name}), iif(typeof({name}) = 'text', cast({name} as blob), {name})" for name in names)
        try:
            [found] = self.db.execute(f"select {ask} from {table} where {key} = ?", (number,)).fetchall()
        except _UNREADABLE:
            self._count(table, lost=1)
            return
        pairs = zip(found[::2], found[1::2], strict=True)
        yield tuple(str(value, "utf-8", "replace") if isinstance(value, bytes) and kind == "text" else value
                    for kind, value in pairs)  # fmt: skip

    def _last(self, table: str, key: str) -> int:
        """The last number of a table, or one that none of its rows is beyond."""
        try:
            [(last,)] = self.db.execute(f"select coalesce(max({key}), -1) from {table}")
            return int(str(last))
        except _UNREADABLE:
            pages = os.path.getsize(self.db.filename) // PAGE_BYTES
            return pages * ROWS_A_PAGE * (4 if key == "entry" else 1)

    def _keyed(self, table: str, keys: Sequence[str], columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of a table without numbers: from the start to the damage, and from the end back to it."""
        names = ", ".join([*keys, *self._known(table, columns)])
        first = list(self._until_damage(table, names, ", ".join(keys)))
        if first and first[-1] is not None:
            self._count(table, read=len(first))
            yield from (row for row in first if row is not None)
            return
        found = dict.fromkeys(row for row in first if row is not None)
        found |= dict.fromkeys(row for row in self._until_damage(table, names, " desc, ".join(keys) + " desc") if row)
        self._count(table, read=len(found), lost=self._missing(table, len(found)))
        yield from found

    def _until_damage(self, table: str, names: str, order: str) -> Iterator[Row | None]:
        """Yield rows in an order; None at the damage."""
        try:
            yield from self.db.execute(f"select {names} from {table} order by {order}")
        except _UNREADABLE:
            yield None

    def _missing(self, table: str, read: int) -> int:
        """How many rows of a table without numbers were not read, as far as another index tells; at least one."""
        try:
            [(count,)] = self.db.execute(f"select count(*) from {table}")
            return int(count) - read
        except _UNREADABLE:
            return 1 if read or table in NAMES else 0

"""A SQLite store as items in one order, and items as a SQLite store."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import apsw

from commonplace.model.items import Item
from commonplace.stores.codes import stamped
from commonplace.stores.event_rows import TRIMMED
from commonplace.stores.items import (
    CARRIED,
    CHUNK,
    DOCUMENT,
    EVENT,
    FILE,
    JOB,
    KEY,
    KIND,
    MARK,
    PAGE,
    PARENTS,
    SCOPE,
    TAGS,
    is_keyed,
    names,
    terms_of,
)
from commonplace.stores.rows import among, marks, scope_at, unpacked
from commonplace.stores.sqlite import events as told
from commonplace.stores.sqlite.connection import every, first, scope_row
from commonplace.stores.sqlite.store import SqliteStore

_EMBEDDERS = {"next": ("next_embedder", "next_dimensions"), "present": ("embedder", "dimensions")}  # keys of `meta`
_COUNTED = ("scope", "record", "document", "file", "job", "event")


class SqliteMover:
    """Carries one store."""

    def __init__(self, store: SqliteStore) -> None:
        self.store = store

    @property
    def name(self) -> str:
        """See ``Mover``."""
        return self.store.path

    def count(self) -> int:
        """See ``Mover``."""
        with self.store.using() as connection:
            tables = [first(connection.db, f"select count(*) from {table}") or (0,) for table in _COUNTED]
            return sum(int(row[0]) for row in tables) + len([*_embedders(connection.db), *_trimmed(connection.db)])

    @contextlib.contextmanager
    def reading(self) -> Iterator[Iterator[Item]]:
        """See ``Mover``."""
        with self.store.using() as connection, connection.reading() as db:
            yield items(db)

    def items(self) -> Iterator[Item]:
        """See ``Mover``."""
        with self.store.using() as connection:
            yield from items(connection.db)

    def begun(self) -> str | None:
        """See ``Mover``."""
        with self.store.using() as connection:
            row = first(connection.db, "select value from meta where key = ?", (MARK,))
        return str(row[0]) if row else None

    def write(self, items: Sequence[Item], *, gone: Collection[Item] = (), begun: str | None) -> None:
        """See ``Mover``."""
        with self.store.writing(durable=True) as db:
            keep(db, items, gone=gone)
            if begun is None:
                db.execute("delete from meta where key = ?", (MARK,))
            else:
                db.execute("insert or replace into meta values (?, ?)", (MARK, begun))


# Reading


def items(db: apsw.Connection) -> Iterator[Item]:
    """Every item, in order, a page at a time."""
    yield from _embedders(db)
    for (path,) in every(db, "select path from scope order by path"):
        yield Item(sort="scope", key=(path,), data=())
    yield from _records(db)
    yield from _documents(db)
    for *key, record, version, digest, stamp in every(
        db, f"select folder, path, {names(FILE, 'f')} from file f order by folder, path"
    ):
        yield Item(sort="file", key=tuple(key), data=(record, version, digest, stamp))
    sql = f"select s.path, j.kind, j.key, {names(JOB, 'j')} from job j join scope s on s.id = j.scope order by 1, 2, 3"
    for row in every(db, sql):
        yield Item(sort="job", key=row[:3], data=row[3:])
    yield from _events(db)
    yield from _trimmed(db)


def _embedders(db: apsw.Connection) -> Iterator[Item]:
    for which, keys in sorted(_EMBEDDERS.items()):
        held = dict(every(db, "select key, value from meta where key in (?, ?)", keys))
        if held:
            yield Item(sort="embedder", key=(which,), data=(held[keys[0]], int(held[keys[1]])))


def _records(db: apsw.Connection) -> Iterator[Item]:
    after = ""
    sql = (
        f"select r.row, r.terms, u.recalls, u.last_recalled_at, {names(CARRIED, 'r')} from record r"
        " join scope s on s.id = r.scope left join usage u on u.record = r.row"
        " where r.id > ? order by r.id limit ?"
    )
    while page := every(db, sql, (after, PAGE)):
        rows = [row[0] for row in page]
        earlier, present = _versions(db, rows), _vectors(db, [row * 4 for row in rows])
        for row, terms, recalls, recalled, *version in page:
            now = (*version, terms_of(terms.split()), *present[row * 4])
            used = () if recalls is None else (recalls, recalled)
            yield Item(sort="record", key=(version[0],), data=(used, (*earlier.get(row, ()), now)))
        after = page[-1][4]


def _versions(db: apsw.Connection, records: Sequence[int]) -> Mapping[int, list[tuple[Any, ...]]]:
    condition, values = among("v.record", records)
    sql = (
        f"select v.record, v.row, v.terms, {names(CARRIED, 'v')} from version v join scope s on s.id = v.scope"
        f" where {condition} order by v.record, v.version"
    )
    found = every(db, sql, values)
    vectors = _vectors(db, [row[1] * 4 + 2 for row in found])
    earlier: dict[int, list[tuple[Any, ...]]] = {}
    for record, row, terms, *version in found:
        earlier.setdefault(record, []).append((*version, terms_of(terms.split()), *vectors[row * 4 + 2]))
    return earlier


def _vectors(db: apsw.Connection, entries: Sequence[int]) -> Mapping[int, tuple[bytes | None, bytes | None]]:
    """The vector of each of these entries, and the one beside it."""
    condition, values = among("entry", entries)
    held, beside = (
        dict(every(db, f"select entry, data from {table} where {condition}", values) if entries else [])
        for table in ("vector", "beside")
    )
    return {entry: (held.get(entry), beside.get(entry)) for entry in entries}


def _events(db: apsw.Connection) -> Iterator[Item]:
    sql = f"select e.seq, {names(EVENT, 'e')} from event e join scope s on s.id = e.scope where e.seq > ?"
    after = -1
    while page := every(db, f"{sql} order by e.seq limit ?", (after, 10 * PAGE)):
        yield from (Item(sort="event", key=row[:1], data=row[1:]) for row in page)
        after = page[-1][0]


def _trimmed(db: apsw.Connection) -> Iterator[Item]:
    if last := told.events_floor(db):
        yield Item(sort="trimmed", key=("event",), data=(last,))


def _documents(db: apsw.Connection) -> Iterator[Item]:
    listed = "select s.path, d.kind, d.name, d.row from document d join scope s on s.id = d.scope order by 1, 2, 3"
    for path, kind, name, row in every(db, listed):
        [said] = every(db, f"select {names(DOCUMENT, 'd')} from document d where d.row = ?", (row,))
        sql = f"select c.row, c.terms, {names(CHUNK, 'c')} from chunk c where c.document = ? order by c.seq"
        parts = every(db, sql, (row,))
        vectors = _vectors(db, [number * 4 + 1 for number, *_ in parts])
        chunks = tuple((*chunk, terms_of(terms.split()), *vectors[n * 4 + 1]) for n, terms, *chunk in parts)
        yield Item(sort="document", key=(path, kind, name), data=(said, chunks))


# Writing


def keep(db: apsw.Connection, given: Sequence[Item], *, gone: Collection[Item] = ()) -> None:
    """Put items in the place of whatever is called the same; erase others."""
    for item in gone:
        _erase(db, item)
    for item in given:
        _keep(db, item)


def _erase(db: apsw.Connection, item: Item) -> None:
    match item.sort:
        case "embedder":
            db.execute("delete from meta where key in (?, ?)", _EMBEDDERS[item.key[0]])
        case "scope":
            db.execute("delete from scope where path = ?", item.key)
        case "record":
            db.execute("delete from record where id = ?", item.key)
        case "event":
            db.execute("delete from event where seq = ?", item.key)
        case "trimmed":
            db.execute("delete from meta where key = ?", (TRIMMED,))
        case "file":
            db.execute("delete from file where folder = ? and path = ?", item.key)
        case "document" | "job":
            last = "name" if item.sort == "document" else "key"
            scope = "scope = (select id from scope where path = ?)"
            db.execute(f"delete from {item.sort} where {scope} and kind = ? and {last} = ?", item.key)
        case _:
            raise AssertionError(item.sort)


def _keep(db: apsw.Connection, item: Item) -> None:
    _erase(db, item) if item.sort != "scope" else None
    match item.sort:
        case "embedder":
            rows = zip(_EMBEDDERS[item.key[0]], item.data, strict=True)
            db.executemany("insert into meta values (?, ?)", list(rows))
        case "scope":
            scope_row(db, scope_at(item.key[0]))
        case "record":
            _keep_record(db, *item.data)
        case "document":
            _keep_document(db, item)
        case "file":
            db.execute(f"insert into file (folder, path, {', '.join(FILE)}) values ({marks(range(6))})",
                       (*item.key, *item.data))  # fmt: skip
        case "job":
            row = (scope_row(db, scope_at(item.key[0])), *item.key[1:], *item.data)
            db.execute(f"insert into job (scope, kind, key, {', '.join(JOB)}) values ({marks(row)})", row)
        case "event":
            row = (*item.key, scope_row(db, scope_at(item.data[0])), *item.data[1:])
            db.execute(f"insert into event (seq, {', '.join(EVENT)}) values ({marks(row)})", row)
        case "trimmed":
            told.take_over(db, *item.data)
        case _:
            raise AssertionError(item.sort)


def _keep_record(db: apsw.Connection, used: tuple[Any, ...], versions: Sequence[tuple[Any, ...]]) -> None:
    *earlier, present = versions
    scope = scope_row(db, scope_at(present[SCOPE]))
    if is_keyed(present):  # whoever else holds the key has lost it, and is carried in turn
        holder = "scope = ? and kind = ? and key = ? and archived_at is null and held = 0"
        db.execute(f"delete from record where {holder}", (scope, present[KIND], present[KEY]))
    columns = f"{', '.join(CARRIED)}, terms, length"
    row = _stored(present, scope)
    db.execute(f"insert into record ({columns}) values ({marks(row)})", row)
    number = db.last_insert_rowid()
    _keep_vectors(db, number * 4, *present[-2:])
    db.executemany("insert into tag values (?, ?)", [(number, tag) for tag in unpacked(present[TAGS])])
    parents = dict.fromkeys(unpacked(present[PARENTS]))
    db.executemany("insert into parent values (?, ?)", [(number, parent) for parent in parents])
    for version in earlier:
        row = (number, *_stored(version, scope))
        db.execute(f"insert into version (record, {columns}) values ({marks(row)})", row)
        _keep_vectors(db, db.last_insert_rowid() * 4 + 2, *version[-2:])
    if used:
        db.execute("insert into usage values (?, ?, ?)", (number, *used))


def _stored(version: Sequence[Any], scope: int) -> tuple[Any, ...]:
    *columns, terms, _vector, _beside = version
    columns[SCOPE] = scope
    return (*columns, terms, len(terms.split()))


def _keep_vectors(db: apsw.Connection, entry: int, data: bytes | None, beside: bytes | None) -> None:
    if data is not None:
        db.execute("insert into vector select id, bucket, ? from entry where id = ?", (data, entry))
        code = stamped(entry, array("f", data))
        columns = "bucket, id, expires, kind, category, ?"
        db.execute(f"insert into code select {columns} from entry where id = ?", (code, entry))
    if beside is not None:
        db.execute("insert into beside values (?, ?, ?)", (entry, beside, stamped(entry, array("f", beside))))


def _keep_document(db: apsw.Connection, item: Item) -> None:
    path, kind, name = item.key
    said, chunks = item.data
    scope = scope_row(db, scope_at(path))
    row = (scope, kind, name, *said)
    db.execute(f"insert into document (scope, kind, name, {', '.join(DOCUMENT)}) values ({marks(row)})", row)
    document = db.last_insert_rowid()
    for *chunk, terms, data, beside in chunks:
        values = (document, scope, *chunk, terms, len(terms.split()))
        columns = f"document, scope, {', '.join(CHUNK)}, terms, length"
        db.execute(f"insert into chunk ({columns}) values ({marks(values)})", values)
        _keep_vectors(db, db.last_insert_rowid() * 4 + 1, data, beside)

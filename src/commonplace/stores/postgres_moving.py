"""A PostgreSQL store as items in one order, and items as a PostgreSQL store."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from commonplace.domain.moving import Item
from commonplace.stores import postgres_entries as entries
from commonplace.stores.moving import (
    ARCHIVED,
    CARRIED,
    CATEGORY,
    CHUNK,
    DOCUMENT,
    EVENT,
    EXPIRES,
    FILE,
    HELD,
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
from commonplace.stores.postgres import PostgresStore
from commonplace.stores.postgres_connection import Db, every, first, run, run_each, vectors_of
from commonplace.stores.postgres_scopes import scope_row
from commonplace.stores.postgres_vectors import NOTED
from commonplace.stores.rows import marks, scope_at, unpacked

_EMBEDDERS = {"next": ("next_embedder", "next_dimensions"), "present": ("embedder", "dimensions")}  # keys of `NOTED`
_COUNTED = ("scope", "record", "document", "file", "job", "event")


class PostgresMover:
    """Carries one store."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store

    @property
    def name(self) -> str:
        """See ``Mover``."""
        return f"{self.store.path} ({self.store.turn})"

    def count(self) -> int:
        """See ``Mover``."""
        with self.store.reading() as db:
            return sum(int(every(db, f"select count(*) from {table}")[0][0]) for table in _COUNTED) + len(
                list(_embedders(db))
            )

    @contextlib.contextmanager
    def reading(self) -> Iterator[Iterator[Item]]:
        """See ``Mover``."""
        with self.store.reading() as db:
            yield items(db, self.store.own_folders)

    def items(self) -> Iterator[Item]:
        """See ``Mover``."""
        with self.store.using() as db:
            yield from items(db, self.store.own_folders)

    def begun(self) -> str | None:
        """See ``Mover``."""
        with self.store.using() as db:
            row = first(db, f"select value from {NOTED} where key = ?", [MARK])
        return str(row[0]) if row else None

    def write(self, items: Sequence[Item], *, gone: Collection[Item] = (), begun: str | None) -> None:
        """See ``Mover``."""
        with self.store.writing() as db:
            keep(db, items, self.store.own_folders, gone=gone)
            note_mark(db, begun)


def note_mark(db: Db, begun: str | None) -> None:
    """Say what the store is being filled from."""
    run(db, f"delete from {NOTED} where key = ?", [MARK])
    if begun is not None:
        run(db, f"insert into {NOTED} (key, value) values (?, ?)", [MARK, begun])


# Reading


def items(db: Db, own: str) -> Iterator[Item]:
    """Every item, in order, a page at a time; ``own`` is what this machine's folders begin with."""
    yield from _embedders(db)
    for (path,) in every(db, "select path from scope order by path"):
        yield Item(sort="scope", key=(path,), data=())
    yield from _records(db)
    yield from _documents(db)
    files = every(db, f"select folder, path, {names(FILE, 'f')} from file f")
    for folder, path, *said in sorted((row[0].removeprefix(own), *row[1:]) for row in files):
        yield Item(sort="file", key=(folder, path), data=tuple(said))
    sql = f"select s.path, j.kind, j.key, {names(JOB, 'j')} from job j join scope s on s.id = j.scope order by 1, 2, 3"
    for row in every(db, sql):
        yield Item(sort="job", key=row[:3], data=row[3:])
    yield from _events(db)


def _embedders(db: Db) -> Iterator[Item]:
    for which, keys in sorted(_EMBEDDERS.items()):
        held = dict(every(db, f"select key, value from {NOTED} where key = any(?::text[])", [list(keys)]))
        if held:
            yield Item(sort="embedder", key=(which,), data=(held[keys[0]], int(held[keys[1]])))


def _records(db: Db) -> Iterator[Item]:
    after = ""
    sql = (
        f"select r.row, e.terms, u.recalls, u.last_recalled_at, {names(CARRIED, 'r')} from record r"
        " join scope s on s.id = r.scope join entry e on e.record = r.row left join usage u on u.record = r.row"
        " where r.id > ? order by r.id limit ?"
    )
    while page := every(db, sql, [after, PAGE]):
        rows = [row[0] for row in page]
        earlier, present = _versions(db, rows), _vectors(db, [row * 4 for row in rows])
        for row, terms, recalls, recalled, *version in page:
            now = (*version, terms_of(terms), *present[row * 4])
            used = () if recalls is None else (recalls, recalled)
            yield Item(sort="record", key=(version[0],), data=(used, (*earlier.get(row, ()), now)))
        after = page[-1][4]


def _versions(db: Db, records: Sequence[int]) -> Mapping[int, list[tuple[Any, ...]]]:
    sql = (
        f"select v.record, v.row, e.terms, {names(CARRIED, 'v')} from version v join scope s on s.id = v.scope"
        " join entry e on e.version = v.row where v.record = any(?::bigint[]) order by v.record, v.version"
    )
    found = every(db, sql, [list(records)])
    vectors = _vectors(db, [row[1] * 4 + entries.VERSION for row in found])
    earlier: dict[int, list[tuple[Any, ...]]] = {}
    for record, row, terms, *version in found:
        said = (*version, terms_of(terms), *vectors[row * 4 + entries.VERSION])
        earlier.setdefault(record, []).append(said)
    return earlier


def _vectors(db: Db, wanted: Sequence[int]) -> Mapping[int, tuple[bytes | None, bytes | None]]:
    """The vector of each of these entries, and the one beside it."""
    held, beside = (
        dict(vectors_of(db, f"select entry, data from {table} where entry = any(?::bigint[])", [list(wanted)]))
        for table in ("embedding", "beside")
    )
    return {entry: (_bytes(held.get(entry)), _bytes(beside.get(entry))) for entry in wanted}


def _bytes(vector: array[float] | None) -> bytes | None:
    return None if vector is None else vector.tobytes()


def _events(db: Db) -> Iterator[Item]:
    sql = f"select e.seq, {names(EVENT, 'e')} from event e join scope s on s.id = e.scope where e.seq > ?"
    after = -1
    while page := every(db, f"{sql} order by e.seq limit ?", [after, 10 * PAGE]):
        yield from (Item(sort="event", key=row[:1], data=row[1:]) for row in page)
        after = page[-1][0]


def _documents(db: Db) -> Iterator[Item]:
    listed = "select s.path, d.kind, d.name, d.row from document d join scope s on s.id = d.scope order by 1, 2, 3"
    for path, kind, name, row in every(db, listed):
        [said] = every(db, f"select {names(DOCUMENT, 'd')} from document d where d.row = ?", [row])
        sql = (
            f"select c.row, e.terms, {names(CHUNK, 'c')} from chunk c join entry e on e.chunk = c.row"
            " where c.document = ? order by c.seq"
        )
        parts = every(db, sql, [row])
        vectors = _vectors(db, [number * 4 + entries.CHUNK for number, *_ in parts])
        chunks = tuple((*chunk, terms_of(terms), *vectors[n * 4 + entries.CHUNK]) for n, terms, *chunk in parts)
        yield Item(sort="document", key=(path, kind, name), data=(said, chunks))


# Writing


def keep(db: Db, given: Sequence[Item], own: str, *, gone: Collection[Item] = ()) -> None:
    """Put items in the place of whatever is called the same; erase others."""
    with db.pipeline():  # what needs no answer does not wait for one
        for item in gone:
            _erase(db, item, own)
        scopes: dict[str, int] = {}  # rows of those that were asked for already: to ask costs an answer
        for item in given:
            _keep(db, item, own, scopes)
    if any(item.sort == "event" for item in given):  # later ones must be numbered later
        last = "(select max(seq) from event)"
        sequence = "pg_get_serial_sequence('event', 'seq')"
        run(db, f"select setval({sequence}, {last}) where {last} > nextval({sequence})")


def empty(db: Db) -> None:
    """Erase everything."""
    for table in ("scope", "file"):
        run(db, f"delete from {table}")
    run(db, f"delete from {NOTED} where key = any(?::text[])", [[key for keys in _EMBEDDERS.values() for key in keys]])


def _folder(folder: str, own: str) -> str:
    return folder if folder.startswith("machine:") else own + folder


def _erase(db: Db, item: Item, own: str) -> None:
    match item.sort:
        case "embedder":
            run(db, f"delete from {NOTED} where key = any(?::text[])", [list(_EMBEDDERS[item.key[0]])])
        case "scope":
            run(db, "delete from scope where path = ?", item.key)
        case "record":
            run(db, "delete from record where id = ?", item.key)
        case "event":
            run(db, "delete from event where seq = ?", item.key)
        case "file":
            run(db, "delete from file where folder = ? and path = ?", [_folder(item.key[0], own), item.key[1]])
        case "document" | "job":
            last = "name" if item.sort == "document" else "key"
            scope = "scope = (select id from scope where path = ?)"
            run(db, f"delete from {item.sort} where {scope} and kind = ? and {last} = ?", item.key)
        case _:
            raise AssertionError(item.sort)


def _scope(db: Db, path: str, scopes: dict[str, int]) -> int:
    if path not in scopes:
        scopes[path] = scope_row(db, scope_at(path))
    return scopes[path]


def _keep(db: Db, item: Item, own: str, scopes: dict[str, int]) -> None:
    _erase(db, item, own) if item.sort != "scope" else None
    match item.sort:
        case "embedder":
            rows = [(key, str(value)) for key, value in zip(_EMBEDDERS[item.key[0]], item.data, strict=True)]
            run_each(db, f"insert into {NOTED} (key, value) values (?, ?)", rows)
        case "scope":
            _scope(db, item.key[0], scopes)
        case "record":
            used, versions = item.data
            _keep_record(db, used, versions, _scope(db, versions[-1][SCOPE], scopes))
        case "document":
            _keep_document(db, item, _scope(db, item.key[0], scopes))
        case "file":
            row = (_folder(item.key[0], own), item.key[1], *item.data)
            run(db, f"insert into file (folder, path, {', '.join(FILE)}) values ({marks(row)})", row)
        case "job":
            row = (_scope(db, item.key[0], scopes), *item.key[1:], *item.data)
            run(db, f"insert into job (scope, kind, key, {', '.join(JOB)}) values ({marks(row)})", row)
        case "event":
            row = (*item.key, _scope(db, item.data[0], scopes), *item.data[1:])
            columns = f"seq, {', '.join(EVENT)}"
            run(db, f"insert into event ({columns}) overriding system value values ({marks(row)})", row)
        case _:
            raise AssertionError(item.sort)


def _keep_record(db: Db, used: tuple[Any, ...], versions: Sequence[tuple[Any, ...]], scope: int) -> None:
    *earlier, present = versions
    if is_keyed(present):  # whoever else holds the key has lost it, and is carried in turn
        holder = "scope = ? and kind = ? and key = ? and archived_at is null and held = 0"
        run(db, f"delete from record where {holder}", [scope, present[KIND], present[KEY]])
    columns = f"{', '.join(CARRIED)}, tagged, derived"
    row = _stored(present, scope)
    [(number,)] = every(db, f"insert into record ({columns}) values ({marks(row)}) returning row", row)
    _keep_entry(db, "record", number, present, scope * 4 + _class(present))
    for version in earlier:
        row = (number, *_stored(version, scope))
        [(kept,)] = every(db, f"insert into version (record, {columns}) values ({marks(row)}) returning row", row)
        _keep_entry(db, "version", kept, version, scope * 4 + entries.VERSION)
    if used:
        run(db, "insert into usage (record, recalls, last_recalled_at) values (?, ?, ?)", (number, *used))


def _class(version: Sequence[Any]) -> int:
    return entries.RECORD if version[ARCHIVED] is None and not version[HELD] else entries.CLOSED


def _stored(version: Sequence[Any], scope: int) -> tuple[Any, ...]:
    *columns, _terms, _vector, _beside = version
    columns[SCOPE] = scope
    return (*columns, unpacked(version[TAGS]), list(dict.fromkeys(unpacked(version[PARENTS]))))


_ENTRY_CLASS = {"record": entries.RECORD, "version": entries.VERSION, "chunk": entries.CHUNK}


def _keep_entry(db: Db, of: str, number: int, thing: Sequence[Any], bucket: int) -> None:
    """What is found: a version, or a chunk."""
    *_, terms, data, beside = thing
    words, entry = terms.split(), number * 4 + _ENTRY_CLASS[of]
    known = (None, None, None) if of == "chunk" else (thing[EXPIRES], thing[KIND], thing[CATEGORY])
    columns = f"id, {of}, bucket, length, expires, kind, category, terms"
    row = [entry, number, bucket, len(words), *known, words]
    run(db, f"insert into entry ({columns}) values ({marks(known)}, {marks(range(4))}, ?::text[])", row)
    for table, vector in (("embedding", data), ("beside", beside)):
        if vector is not None:
            run(db, f"insert into {table} (entry, data) values (?, ?)", [entry, array("f", vector)])


def _keep_document(db: Db, item: Item, scope: int) -> None:
    _, kind, name = item.key
    said, chunks = item.data
    row = (scope, kind, name, *said)
    columns = f"scope, kind, name, {', '.join(DOCUMENT)}"
    [(document,)] = every(db, f"insert into document ({columns}) values ({marks(row)}) returning row", row)
    for chunk in chunks:
        values = (document, scope, *chunk[:-3])
        columns = f"document, scope, {', '.join(CHUNK)}"
        [(number,)] = every(db, f"insert into chunk ({columns}) values ({marks(values)}) returning row", values)
        _keep_entry(db, "chunk", number, chunk, scope * 4 + entries.CHUNK)

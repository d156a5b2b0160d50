"""A store as items in one order (``model.items``), read alike from both databases; each loads items in its own way."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from commonplace.model.items import SORTS, Item, Place, TextCleaner
from commonplace.stores.rows import (
    CHUNK_FIELDS,
    FIELDS,
    FILE,
    SHARED_COLUMNS,
    columns_sql,
    from_json,
    row_hash,
    sha256_of,
    to_json,
)
from commonplace.stores.scoring import CHUNK, RECORD, VERSION
from commonplace.stores.sql import events
from commonplace.stores.sql.documents import DOCUMENT
from commonplace.stores.sql.search import vectors_sql
from commonplace.stores.sql.tombstones import TOMBSTONE
from commonplace.stores.sql.vectors import COMING, PRESENT, embedder

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db
    from commonplace.stores.sql.store import SqlStore

PAGE = 200  # things that are read at once, with all that belongs to them
MARK = "moving"  # the key under which a store notes what it is being filled from
EMBEDDERS = {"next": COMING, "present": PRESENT}

#: A version in an item: these columns, then its terms as one text, its vector and the coming one.
SCOPE, KIND, KEY = (SHARED_COLUMNS.index(name) for name in ("scope", "kind", "key"))
TAGS, PARENTS = SHARED_COLUMNS.index("tags"), SHARED_COLUMNS.index("parents")
ARCHIVED, HELD, EXPIRES = (SHARED_COLUMNS.index(name) for name in ("archived_at", "held", "expires_at"))
CATEGORY = SHARED_COLUMNS.index("category")
JOB = (
    "status", "token", "lease_until", "retry_at", "tries_left", "error", "input", "done", "started_at", "finished_at",
)  # fmt: skip
EVENT = ("scope", *events.FIELDS)

MAX_TERM_BYTES = 500  # bytes: an index of PostgreSQL holds no long ones
_COUNTED = ("scope", "record", "document", "file", "job", "event", "tombstone")


def indexed_term(term: str) -> str:
    """Return a term as the index of PostgreSQL has it: a very long one by its hash."""
    encoded = term.encode()
    return term if len(encoded) <= MAX_TERM_BYTES else f"#{sha256(encoded).hexdigest()}"


def is_open(version: Sequence[Any]) -> bool:
    """Return whether a version is neither archived nor held."""
    return version[ARCHIVED] is None and not version[HELD]


def is_keyed(version: Sequence[Any]) -> bool:
    """Return whether a version holds its key."""
    return version[KEY] is not None and is_open(version)


class SqlItemCopier:
    """Reads a store as items, and writes items to it: see ``ItemCopier``."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return self._store.name

    def count(self) -> int:
        with self._store.using() as db:
            counts = [db.every(f"select count(*) from {table}")[0][0] for table in _COUNTED]
            return sum(map(int, counts)) + len([*_embedders(db), *_floor(db)])

    @contextlib.contextmanager
    def reading(self) -> Iterator[Iterator[Item]]:
        with self._store.reading() as db:
            yield items(db, self._store.own_folders)

    def items(self) -> Iterator[Item]:
        with self._store.using() as db:
            yield from items(db, self._store.own_folders)

    def copy_source(self) -> str | None:
        with self._store.using() as db:
            row = db.first(f"select value from {db.notes} where key = ?", [MARK])
        return str(row[0]) if row else None

    def write(self, items: Sequence[Item], *, gone: Collection[Item] = (), copy_source: str | None) -> None:
        with self._store.writing() as db:
            self._store.load_items(db, items, gone=gone)
            if copy_source is None:
                db.run(f"delete from {db.notes} where key = ?", [MARK])
            else:
                db.note(MARK, copy_source)

    def rewrite_item(self, item: Item, cleaner: TextCleaner) -> Item | None:
        from commonplace.stores.sql.rewriting import rewrite_item  # noqa: PLC0415 - imports the columns from here

        return rewrite_item(item, cleaner)

    def rewrite(self, places: Collection[Place], cleaner: TextCleaner) -> int:
        with self._store.writing() as db:
            held = list(_items_at(db, places))
            pairs = [(item, after) for item in held if (after := self.rewrite_item(item, cleaner)) is not None]
            renamed = [item for item, after in pairs if item.key != after.key]
            self._store.load_items(db, [_with_free_key(db, item, after) for item, after in pairs], gone=renamed)
            self._store.mark_erasing(db)
        return len(pairs)

    def erase_old_bytes(self) -> bool:
        return self._store.scrub()


def _items_at(db: Db, places: Collection[Place]) -> Iterator[Item]:
    """Yield the items at these places, as they are now."""
    wanted: dict[str, set[tuple[Any, ...]]] = {}
    for number, key in places:
        wanted.setdefault(SORTS[number], set()).add(key)
    readers = {"record": _records, "document": _documents, "job": _jobs, "event": _events}
    for sort, keys in wanted.items():
        yield from (item for item in readers[sort](db, keys) if item.key in keys)


def _with_free_key(db: Db, before: Item, after: Item) -> Item:
    """Return a record under a key that no other live one of its scope and kind holds: it would take its place."""
    if after.sort != "record":
        return after
    used, (*earlier, present) = after.data
    if not is_keyed(present) or present[KEY] == before.data[1][-1][KEY]:
        return after
    sql = (
        "select 1 from record r join scope s on s.id = r.scope where s.path = ? and r.kind = ? and r.key = ?"
        " and r.archived_at is null and r.held = 0 and r.id <> ?"
    )
    if not db.every(sql, [present[SCOPE], present[KIND], present[KEY], after.key[0]]):
        return after
    return after.replace(data=(used, (*earlier, _under_key(present, f"{present[KEY]} {after.key[0]}"))))


def _under_key(version: Sequence[Any], key: str) -> tuple[Any, ...]:
    """Return a version under another key, with the hashes of that."""
    columns = list(version)
    columns[KEY] = key
    known = dict(zip(SHARED_COLUMNS, columns, strict=False))
    value = None if known["value"] is None else from_json(known["value"])
    columns[SHARED_COLUMNS.index("digest")] = sha256_of(to_json([known["content"], key, value]))
    columns[SHARED_COLUMNS.index("hash")] = row_hash(columns[: len(FIELDS)])
    return tuple(columns)


# Reading


def items(db: Db, own: str = "") -> Iterator[Item]:
    """Yield every item, in order, a page at a time; ``own`` is what this machine's folders begin with."""
    yield from _embedders(db)
    for (path,) in db.every("select path from scope order by path"):
        yield Item(sort="scope", key=(path,), data=())
    yield from _records(db)
    yield from _documents(db)
    files = db.every(f"select folder, path, {columns_sql(FILE, 'f')} from file f")
    for folder, path, *state in sorted((row[0].removeprefix(own), *row[1:]) for row in files):
        yield Item(sort="file", key=(folder, path), data=tuple(state))
    yield from _jobs(db)
    yield from _events(db)
    yield from _floor(db)
    for row in db.every(f"select {', '.join(TOMBSTONE)} from tombstone order by digest, erasure"):
        yield Item(sort="tombstone", key=row[:2], data=row[2:])


def _jobs(db: Db, _only: Collection[tuple[Any, ...]] | None = None) -> Iterator[Item]:
    jobs = f"select s.path, j.kind, j.key, {columns_sql(JOB, 'j')} from job j join scope s on s.id = j.scope"
    for row in db.every(f"{jobs} order by 1, 2, 3"):
        yield Item(sort="job", key=row[:3], data=row[3:])


def _embedders(db: Db) -> Iterator[Item]:
    for which, keys in sorted(EMBEDDERS.items()):
        if held := embedder(db, keys):
            yield Item(sort="embedder", key=(which,), data=(held.name, held.dimensions))


def _records(db: Db, only: Collection[tuple[Any, ...]] | None = None) -> Iterator[Item]:
    after = ""
    among, ids = ("1 = 1", []) if only is None else db.among("r.id", [key[0] for key in only])
    sql = (
        f"select r.row, u.recalls, u.last_recalled_at, {db.terms_sql('record', 'r')},"
        f" {columns_sql(SHARED_COLUMNS, 'r')} from record r join scope s on s.id = r.scope"
        f" left join usage u on u.record = r.row where r.id > ? and {among} order by r.id limit ?"
    )
    while page := db.every(sql, [after, *ids, PAGE]):
        rows = [row[0] for row in page]
        earlier, vectors = _versions(db, rows), _vectors(db, [row * 4 + RECORD for row in rows])
        for row, recalls, recalled, terms, *version in page:
            present = (*version, _terms(terms), *vectors[row * 4 + RECORD])
            used = () if recalls is None else (recalls, recalled)
            yield Item(sort="record", key=(version[0],), data=(used, (*earlier.get(row, ()), present)))
        after = page[-1][4]


def _versions(db: Db, records: Sequence[int]) -> Mapping[int, list[tuple[Any, ...]]]:
    condition, values = db.among("v.record", records)
    sql = (
        f"select v.record, v.row, {db.terms_sql('version', 'v')}, {columns_sql(SHARED_COLUMNS, 'v')} from version v"
        f" join scope s on s.id = v.scope where {condition} order by v.record, v.version"
    )
    found = db.every(sql, values)
    vectors = _vectors(db, [row[1] * 4 + VERSION for row in found])
    earlier: dict[int, list[tuple[Any, ...]]] = {}
    for record, row, terms, *version in found:
        earlier.setdefault(record, []).append((*version, _terms(terms), *vectors[row * 4 + VERSION]))
    return earlier


def _documents(db: Db, only: Collection[tuple[Any, ...]] | None = None) -> Iterator[Item]:
    listed = "select s.path, d.kind, d.name, d.row from document d join scope s on s.id = d.scope order by 1, 2, 3"
    for path, kind, name, row in db.every(listed):
        if only is not None and (path, kind, name) not in only:
            continue
        [document] = db.every(f"select {columns_sql(DOCUMENT, 'd')} from document d where d.row = ?", [row])
        terms, columns = db.terms_sql("chunk", "c"), columns_sql(CHUNK_FIELDS, "c")
        parts = db.every(f"select c.row, {terms}, {columns} from chunk c where c.document = ? order by c.seq", [row])
        vectors = _vectors(db, [number * 4 + CHUNK for number, *_ in parts])
        chunks = tuple((*chunk, _terms(text), *vectors[number * 4 + CHUNK]) for number, text, *chunk in parts)
        yield Item(sort="document", key=(path, kind, name), data=(document, chunks))


def _terms(text: str) -> str:
    return " ".join(map(indexed_term, text.split()))


def _vectors(db: Db, entries: Sequence[int]) -> Mapping[int, tuple[bytes | None, bytes | None]]:
    """Return the vector of each of these entries, and the coming one."""
    questions = [vectors_sql(db, table, entries) for table in (db.vectors, "beside")]
    held, coming = ({entry: bytes(data) for entry, data in rows} for rows in db.every_of(questions, numbers={0, 1}))
    return {entry: (held.get(entry), coming.get(entry)) for entry in entries}


def _events(db: Db, only: Collection[tuple[Any, ...]] | None = None) -> Iterator[Item]:
    sql = f"select e.seq, {columns_sql(EVENT, 'e')} from event e join scope s on s.id = e.scope where e.seq > ?"
    among, numbers = ("1 = 1", []) if only is None else db.among("e.seq", [key[0] for key in only])
    after = -1
    while page := db.every(f"{sql} and {among} order by e.seq limit ?", [after, *numbers, 10 * PAGE]):
        yield from (Item(sort="event", key=row[:1], data=row[1:]) for row in page)
        after = page[-1][0]


def _floor(db: Db) -> Iterator[Item]:
    if last := events.floor(db):
        yield Item(sort="trimmed", key=("event",), data=(last,))


# Erasing


def erase(db: Db, items: Iterable[Item], own: str = "") -> None:
    """Erase items."""
    for item in items:
        match item.sort:
            case "embedder" | "trimmed":
                condition, keys = db.among("key", EMBEDDERS.get(item.key[0], (events.FLOOR,)))
                db.run(f"delete from {db.notes} where {condition}", keys)
            case "scope":
                db.run("delete from scope where path = ?", item.key)
            case "record":
                db.run("delete from record where id = ?", item.key)
            case "event":
                db.run("delete from event where seq = ?", item.key)
            case "tombstone":
                db.run("delete from tombstone where digest = ? and erasure = ?", item.key)
            case "file":
                db.run("delete from file where folder = ? and path = ?", [own_folder(item.key[0], own), item.key[1]])
            case "document" | "job":
                last = "name" if item.sort == "document" else "key"
                scope = "scope = (select id from scope where path = ?)"
                db.run(f"delete from {item.sort} where {scope} and kind = ? and {last} = ?", item.key)
            case _:
                raise AssertionError(item.sort)


def own_folder(folder: str, own: str) -> str:
    """Return the name of a folder in this store; that of another machine keeps its name."""
    return folder if folder.startswith("machine:") else own + folder

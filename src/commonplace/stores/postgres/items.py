"""A PostgreSQL store as items in one order; ``postgres_filling`` makes a store of items."""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from commonplace.model.items import Item
from commonplace.stores.items import CARRIED, CHUNK, DOCUMENT, EVENT, FILE, JOB, MARK, PAGE, names
from commonplace.stores.postgres import entries
from commonplace.stores.postgres import events as told
from commonplace.stores.postgres.bulk_load import EMBEDDERS, keep
from commonplace.stores.postgres.connection import Db, every, first, numbers_of, run
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.postgres.vectors import NOTED

_TERMS = "array_to_string(e.terms, ' ')"  # as they are carried
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
                [*_embedders(db), *_trimmed(db)]
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
    yield from _trimmed(db)


def _embedders(db: Db) -> Iterator[Item]:
    for which, keys in sorted(EMBEDDERS.items()):
        held = dict(every(db, f"select key, value from {NOTED} where key = any(?::text[])", [list(keys)]))
        if held:
            yield Item(sort="embedder", key=(which,), data=(held[keys[0]], int(held[keys[1]])))


def _records(db: Db) -> Iterator[Item]:
    after = ""
    sql = (
        f"select r.row, {_TERMS}, u.recalls, u.last_recalled_at, {names(CARRIED, 'r')} from record r"
        " join scope s on s.id = r.scope join entry e on e.record = r.row left join usage u on u.record = r.row"
        " where r.id > ? order by r.id limit ?"
    )
    while page := every(db, sql, [after, PAGE]):
        rows = [row[0] for row in page]
        earlier, present = _versions(db, rows), _vectors(db, [row * 4 for row in rows])
        for row, terms, recalls, recalled, *version in page:
            now = (*version, terms, *present[row * 4])
            used = () if recalls is None else (recalls, recalled)
            yield Item(sort="record", key=(version[0],), data=(used, (*earlier.get(row, ()), now)))
        after = page[-1][4]


def _versions(db: Db, records: Sequence[int]) -> Mapping[int, list[tuple[Any, ...]]]:
    sql = (
        f"select v.record, v.row, {_TERMS}, {names(CARRIED, 'v')} from version v join scope s on s.id = v.scope"
        " join entry e on e.version = v.row where v.record = any(?::bigint[]) order by v.record, v.version"
    )
    found = every(db, sql, [list(records)])
    vectors = _vectors(db, [row[1] * 4 + entries.VERSION for row in found])
    earlier: dict[int, list[tuple[Any, ...]]] = {}
    for record, row, terms, *version in found:
        said = (*version, terms, *vectors[row * 4 + entries.VERSION])
        earlier.setdefault(record, []).append(said)
    return earlier


def _vectors(db: Db, wanted: Sequence[int]) -> Mapping[int, tuple[bytes | None, bytes | None]]:
    """The vector of each of these entries, and the one beside it."""
    held, beside = (
        dict(numbers_of(db, f"select entry, data from {table} where entry = any(?::bigint[])", [list(wanted)]))
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


def _trimmed(db: Db) -> Iterator[Item]:
    if last := told.events_floor(db):
        yield Item(sort="trimmed", key=("event",), data=(last,))


def _documents(db: Db) -> Iterator[Item]:
    listed = "select s.path, d.kind, d.name, d.row from document d join scope s on s.id = d.scope order by 1, 2, 3"
    for path, kind, name, row in every(db, listed):
        [said] = every(db, f"select {names(DOCUMENT, 'd')} from document d where d.row = ?", [row])
        sql = (
            f"select c.row, {_TERMS}, {names(CHUNK, 'c')} from chunk c join entry e on e.chunk = c.row"
            " where c.document = ? order by c.seq"
        )
        parts = every(db, sql, [row])
        vectors = _vectors(db, [number * 4 + entries.CHUNK for number, *_ in parts])
        chunks = tuple((*chunk, terms, *vectors[n * 4 + entries.CHUNK]) for n, terms, *chunk in parts)
        yield Item(sort="document", key=(path, kind, name), data=(said, chunks))

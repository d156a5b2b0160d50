"""Items (``model.items``) as rows of a SQLite store."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Sequence
from typing import Any

from commonplace.model.items import Item
from commonplace.stores.rows import FILE, from_json, insert_sql, scope_at
from commonplace.stores.scoring import CHUNK, VERSION
from commonplace.stores.sql.documents import DOCUMENT
from commonplace.stores.sql.events import FLOOR
from commonplace.stores.sql.filters import scope_row
from commonplace.stores.sql.items import (
    EMBEDDERS,
    EVENT,
    JOB,
    KEY,
    KIND,
    PARENTS,
    SCOPE,
    TAGS,
    erase,
    is_keyed,
)
from commonplace.stores.sql.tombstones import TOMBSTONE
from commonplace.stores.sqlite.dialect import SqliteDb


def load(db: SqliteDb, given: Sequence[Item], *, gone: Collection[Item] = ()) -> None:
    """Replace whatever has the same key as one of these items; erase others."""
    erase(db, gone)
    for item in given:
        erase(db, [item] if item.sort != "scope" else [])
        _load(db, item)


def _load(db: SqliteDb, item: Item) -> None:  # noqa: C901 - one case per sort
    match item.sort:
        case "embedder":
            for key, value in zip(EMBEDDERS[item.key[0]], item.data, strict=True):
                db.note(key, value)
        case "scope":
            scope_row(db, scope_at(item.key[0]))
        case "record":
            _load_record(db, *item.data)
        case "document":
            _load_document(db, item)
        case "file":
            db.run(insert_sql("file", ("folder", "path", *FILE)), (*item.key, *item.data))
        case "job":
            row = (scope_row(db, scope_at(item.key[0])), *item.key[1:], *item.data)
            db.run(insert_sql("job", ("scope", "kind", "key", *JOB)), row)
        case "event":
            row = (*item.key, scope_row(db, scope_at(item.data[0])), *item.data[1:])
            db.run(insert_sql("event", ("seq", *EVENT)), row)
        case "tombstone":
            db.run(insert_sql("tombstone", TOMBSTONE), (*item.key, *item.data))
        case "trimmed":
            _raise_floor(db, *item.data)
        case _:
            raise AssertionError(item.sort)


def _raise_floor(db: SqliteDb, last: int) -> None:
    """Note up to where events were erased elsewhere: the next one must have a later number here, too."""
    db.note(FLOOR, last)
    db.run(
        "insert into sqlite_sequence select 'event', 0"
        " where not exists (select 1 from sqlite_sequence where name = 'event')"
    )
    db.run("update sqlite_sequence set seq = max(seq, ?) where name = 'event'", (last,))


def _load_record(db: SqliteDb, used: tuple[Any, ...], versions: Sequence[tuple[Any, ...]]) -> None:
    *earlier, present = versions
    scope = scope_row(db, scope_at(present[SCOPE]))
    if is_keyed(present):  # another record that holds the key has lost it, and is loaded in turn
        holder = "scope = ? and kind = ? and key = ? and archived_at is null and held = 0"
        db.run(f"delete from record where {holder}", (scope, present[KIND], present[KEY]))
    [(number,)] = db.every(f"{insert_sql('record', db.columns)} returning row", _to_row(present, scope))
    _load_vectors(db, number * 4, *present[-2:])
    db.run_each("insert into tag values (?, ?)", [(number, tag) for tag in from_json(present[TAGS])])
    parents = dict.fromkeys(from_json(present[PARENTS]))
    db.run_each("insert into parent values (?, ?)", [(number, parent) for parent in parents])
    insert = f"{insert_sql('version', ('record', *db.columns))} returning row"
    for version in earlier:
        [(row,)] = db.every(insert, (number, *_to_row(version, scope)))
        _load_vectors(db, row * 4 + VERSION, *version[-2:])
    if used:
        db.run("insert into usage values (?, ?, ?)", (number, *used))


def _to_row(version: Sequence[Any], scope: int) -> tuple[Any, ...]:
    *columns, terms, _vector, _coming = version
    columns[SCOPE] = scope
    return (*columns, terms, len(terms.split()))


def _load_vectors(db: SqliteDb, entry: int, data: bytes | None, coming: bytes | None) -> None:
    if data is not None:
        db.save_vector(entry, array("f", data), coming=False)
    if coming is not None:
        db.save_vector(entry, array("f", coming), coming=True)


def _load_document(db: SqliteDb, item: Item) -> None:
    path, kind, name = item.key
    document, chunks = item.data
    scope = scope_row(db, scope_at(path))
    insert = f"{insert_sql('document', ('scope', 'kind', 'name', *DOCUMENT))} returning row"
    [(number,)] = db.every(insert, (scope, kind, name, *document))
    for *chunk, terms, data, coming in chunks:
        row = db.insert_chunk([number, scope, *chunk], tuple(terms.split()), scope=scope)
        _load_vectors(db, row * 4 + CHUNK, data, coming)

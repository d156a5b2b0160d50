"""Items (``model.items``) as rows of a PostgreSQL store, many at a time: numbered beforehand, so that no row waits.

They are sent with COPY.  Under row-level security, where the server refuses that, the same rows are inserted one by
one, without waiting for each answer.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from typing import Any, TypeAlias

from commonplace.model.items import Item
from commonplace.stores.postgres.dialect import NOTES, PostgresDb, array_text
from commonplace.stores.rows import CHUNK_FIELDS, FILE, from_json, insert_sql, scope_at
from commonplace.stores.scoring import CHUNK, CLOSED, RECORD, VERSION
from commonplace.stores.sql.documents import DOCUMENT
from commonplace.stores.sql.events import FLOOR
from commonplace.stores.sql.filters import scope_row
from commonplace.stores.sql.items import (
    CATEGORY,
    EMBEDDERS,
    EVENT,
    EXPIRES,
    JOB,
    KEY,
    KIND,
    PARENTS,
    SCOPE,
    TAGS,
    erase,
    is_keyed,
    is_open,
    own_folder,
)
from commonplace.stores.sql.tombstones import TOMBSTONE

_KEYS = [FLOOR, *(key for keys in EMBEDDERS.values() for key in keys)]
Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = dict[str, list[Row]]  # by table

#: In the order in which they are filled: what others belong to comes before them.
_COLUMNS = {
    NOTES: ("key", "value"),
    "record": ("row", *PostgresDb.columns),
    "version": ("row", "record", *PostgresDb.columns),
    "usage": ("record", "recalls", "last_recalled_at"),
    "document": ("row", "scope", "kind", "name", *DOCUMENT),
    "chunk": ("row", "document", "scope", *CHUNK_FIELDS),
    "entry": ("id", "record", "version", "chunk", "bucket", "length", "expires", "kind", "category", "terms"),
    "embedding": ("entry", "data"),
    "beside": ("entry", "data"),
    "file": ("folder", "path", *FILE),
    "job": ("scope", "kind", "key", *JOB),
    "event": ("seq", *EVENT),
    "tombstone": TOMBSTONE,
}
_NUMBERED = ("event", "trimmed")
_VECTORS = ("embedding", "beside")


def load(db: PostgresDb, given: Sequence[Item], own: str, *, gone: Collection[Item] = ()) -> None:
    """Replace whatever has the same key as one of these items; erase others."""
    scopes = _clear(db, given, own, gone)
    rows = _rows(db, given, own, scopes)
    [(watched, vector)] = db.every("select row_security_active('entry'), 'vector'::regtype::oid::bigint")
    for table in _COLUMNS:
        if rows[table] and watched:
            _insert(db, table, rows[table])
        elif rows[table]:
            _copy(db, table, rows[table], vector)
    numbers = [item.data[0] if item.sort == "trimmed" else item.key[0] for item in given if item.sort in _NUMBERED]
    if numbers:  # later ones must be numbered later
        sequence = "pg_get_serial_sequence('event', 'seq')"
        db.run(f"select setval({sequence}, ?) where ? > nextval({sequence})", [max(numbers)] * 2)


def empty(db: PostgresDb) -> None:
    """Erase everything."""
    for table in ("scope", "file", "tombstone"):
        db.run(f"delete from {table}")
    db.run(f"delete from {NOTES} where key = any(?::text[])", [_KEYS])


# What makes room


def _clear(db: PostgresDb, given: Sequence[Item], own: str, gone: Collection[Item]) -> dict[str, int]:
    """Erase what goes and what is replaced; the rows of the scopes that are needed."""
    db.run("set local enable_seqscan = off")  # the server still takes the tables for the small ones that they were
    with db.pipeline():  # what needs no answer does not wait for one
        erase(db, (*gone, *(item for item in given if item.sort not in ("scope", "record"))), own)
    replaced = [item.key[0] for item in given if item.sort == "record"]
    db.run("delete from record where id = any(?::text[])", [replaced]) if replaced else None
    paths = {path for item in given if (path := _path(item)) is not None}
    scopes = dict(db.every("select path, id from scope where path = any(?::text[])", [sorted(paths)]))
    scopes |= {path: scope_row(db, scope_at(path)) for path in sorted(paths - scopes.keys())}
    _free_keys(db, [item.data[1][-1] for item in given if item.sort == "record"], scopes)
    return scopes


def _free_keys(db: PostgresDb, present: Sequence[Row], scopes: dict[str, int]) -> None:
    """Delete other records that hold one of these keys: they have lost it, and are loaded in turn."""
    keyed = [(scopes[version[SCOPE]], version[KIND], version[KEY]) for version in present if is_keyed(version)]
    sql = (
        "delete from record r using unnest(?::bigint[], ?::text[], ?::text[]) k (scope, kind, key)"
        " where (r.scope, r.kind, r.key) = (k.scope, k.kind, k.key) and r.archived_at is null and r.held = 0"
    )
    if keyed:
        db.run(sql, [list(column) for column in zip(*keyed, strict=True)])


def _path(item: Item) -> str | None:
    """In which scope an item is, or which scope it is."""
    match item.sort:
        case "scope" | "document" | "job":
            return str(item.key[0])
        case "record":
            return str(item.data[1][-1][SCOPE])
        case "event":
            return str(item.data[0])
        case _:
            return None


# Rows


def _rows(db: PostgresDb, given: Sequence[Item], own: str, scopes: dict[str, int]) -> Rows:
    """Return every row of these items."""
    rows: Rows = {table: [] for table in _COLUMNS}
    numbers = {table: _numbers(db, table, count) for table, count in _counts(given).items()}
    for item in given:
        match item.sort:
            case "embedder":
                rows[NOTES] += [(k, str(v)) for k, v in zip(EMBEDDERS[item.key[0]], item.data, strict=True)]
            case "record":
                _record_rows(rows, item, scopes, numbers)
            case "document":
                _document_rows(rows, item, scopes, numbers)
            case "file":
                rows["file"].append((own_folder(item.key[0], own), item.key[1], *item.data))
            case "job":
                rows["job"].append((scopes[item.key[0]], *item.key[1:], *item.data))
            case "event":
                rows["event"].append((*item.key, scopes[item.data[0]], *item.data[1:]))
            case "tombstone":
                rows["tombstone"].append((*item.key, *item.data))
            case "trimmed":
                rows[NOTES].append((FLOOR, str(item.data[0])))
    return rows


def _counts(given: Sequence[Item]) -> dict[str, int]:
    """Return how many rows need a number."""
    records, documents = ([item for item in given if item.sort == sort] for sort in ("record", "document"))
    return {
        "record": len(records),
        "version": sum(len(item.data[1]) - 1 for item in records),
        "document": len(documents),
        "chunk": sum(len(item.data[1]) for item in documents),
    }


def _numbers(db: PostgresDb, table: str, count: int) -> Iterator[int]:
    sql = "select nextval(pg_get_serial_sequence(?, 'row')) from generate_series(1, ?)"
    return iter([number for (number,) in db.every(sql, [table, count])] if count else [])


def _record_rows(rows: Rows, item: Item, scopes: dict[str, int], numbers: dict[str, Iterator[int]]) -> None:
    used, (*earlier, present) = item.data
    scope, number = scopes[present[SCOPE]], next(numbers["record"])
    rows["record"].append((number, *_to_row(present, scope)))
    _entry_rows(rows, RECORD, number, present, scope * 4 + (RECORD if is_open(present) else CLOSED))
    for version in earlier:
        earlier_row = next(numbers["version"])
        rows["version"].append((earlier_row, number, *_to_row(version, scope)))
        _entry_rows(rows, VERSION, earlier_row, version, scope * 4 + VERSION)
    if used:
        rows["usage"].append((number, *used))


def _document_rows(rows: Rows, item: Item, scopes: dict[str, int], numbers: dict[str, Iterator[int]]) -> None:
    path, kind, name = item.key
    fields, chunks = item.data
    scope, document = scopes[path], next(numbers["document"])
    rows["document"].append((document, scope, kind, name, *fields))
    for chunk in chunks:
        number = next(numbers["chunk"])
        rows["chunk"].append((number, document, scope, *chunk[:-3]))
        _entry_rows(rows, CHUNK, number, chunk, scope * 4 + CHUNK)


def _to_row(version: Sequence[Any], scope: int) -> Row:
    *columns, _terms, _vector, _beside = version
    columns[SCOPE] = scope
    parents = dict.fromkeys(from_json(version[PARENTS]))
    return (*columns, array_text(from_json(version[TAGS])), array_text(parents))


def _entry_rows(rows: Rows, class_: int, number: int, thing: Sequence[Any], bucket: int) -> None:
    """Return what is found: a version, or a chunk."""
    *_, terms, data, beside = thing
    words, entry = terms.split(), number * 4 + class_
    of = [number if class_ == one else None for one in (RECORD, VERSION, CHUNK)]
    known = (None, None, None) if class_ == CHUNK else (thing[EXPIRES], thing[KIND], thing[CATEGORY])
    rows["entry"].append((entry, *of, bucket, len(words), *known, array_text(words)))
    for table, vector in zip(_VECTORS, (data, beside), strict=True):
        if vector is not None:
            rows[table].append((entry, array("f", vector)))


# Sending


def _copy(db: PostgresDb, table: str, rows: Sequence[Row], vector: int) -> None:
    """In the form of each value; vectors in binary, so that no number is written out and read again."""
    binary = table in _VECTORS
    form = " (format binary)" if binary else ""
    sql = f"copy {table} ({', '.join(_COLUMNS[table])}) from stdin{form}"
    with db.cursor() as cursor, cursor.copy(sql.encode()) as copy:
        if binary:
            copy.set_types(["int8", vector])
        for row in rows:
            copy.write_row(row)


def _insert(db: PostgresDb, table: str, rows: Sequence[Row]) -> None:
    sql = insert_sql(table, _COLUMNS[table]).replace(" values ", " overriding system value values ", 1)
    db.run_each(sql, rows)

"""Every change to records, made inside a transaction that somebody else opened; the match of changes is closed.

The rules are those of ``sqlite_writes``; what differs is what PostgreSQL does by itself and how it is asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, assert_never

import psycopg

from commonplace.model.changes import (
    AdoptEmbedder,
    AppendChunks,
    Archive,
    Cap,
    Change,
    Consolidated,
    Delete,
    DeleteDocuments,
    DropFiles,
    DropScope,
    Emit,
    Enqueue,
    Fail,
    Finish,
    Heartbeat,
    Load,
    Outcome,
    Put,
    PutDocument,
    PutFiles,
    Require,
    Restore,
    SetVectors,
    Supersede,
    SwitchEmbedder,
    Terms,
    Touch,
    Trim,
    TrimDocuments,
    TrimEvents,
)
from commonplace.model.errors import CapacityExceeded, Conflict, NotFound
from commonplace.model.events import Happened
from commonplace.model.ports import Measure
from commonplace.model.queries import Filter, Vector
from commonplace.model.records import UNUSED, Record
from commonplace.model.scopes import Scope
from commonplace.stores.event_rows import ended, written
from commonplace.stores.postgres import documents, entries, events, jobs, vectors
from commonplace.stores.postgres.connection import Db, every, first, run, run_each
from commonplace.stores.postgres.filters import COLUMNS, among, filter_sql
from commonplace.stores.postgres.scopes import scope_row
from commonplace.stores.rows import (
    digest,
    marks,
    micros,
    order_sql,
    record_row,
    row_hash,
    row_record,
    scope_at,
    select_list,
)
from commonplace.stores.scoring import whole_unit

#: A record and what it is found by, with its vector or without: in one statement, because each costs a way to and fro.
#: The vector is not kept where the store knows no embedder, or one of another length.
_MADE = (
    f"with made as (insert into record ({', '.join(COLUMNS)}) values ({marks(COLUMNS)}) on conflict do nothing"
    f" returning row), found as ({entries.INSERT} returning id)"
)
_NEAR = (
    f"near as (insert into embedding select f.id, ? from found f join {vectors.NOTED} d on d.key = 'dimensions'"
    " and d.value = ? returning entry)"
)
_INSERT = f"{_MADE} select row, true from made"
_INSERT_WITH_VECTOR = f"{_MADE}, {_NEAR} select row, exists (select 1 from near) from made"
_UPDATE = f"update record set {', '.join(f'{column} = ?' for column in COLUMNS[1:])} where id = ? and version = ?"
_KEEP = (
    f"insert into version (record, {', '.join(COLUMNS)}) select row, {', '.join(COLUMNS)} from record where row = ?"
    " returning row"
)
_LOAD_VERSION = f"insert into version (record, {', '.join(COLUMNS)}) values (?, {marks(COLUMNS)}) returning row"
_SELECT = (
    f"select {select_list('r')} from record r join scope s on s.id = r.scope left join usage u on u.record = r.row"
)

#: A scope and every scope below it.
BELOW = (
    "with recursive below (id, path) as (select id, path from scope where path = ? union all"
    " select s.id, s.path from scope s join below b on s.parent = b.id)"
)
SAID = "octet_length(replace(replace({0}, E'\\x01\\x01', ' '), E'\\x01\\x02', ' '))"  # as before it was escaped


def make(db: Db, change: Change) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one line per change
    """Make one change."""
    match change:
        case Put():
            return _put(db, change)
        case Load():
            return _load(db, change)
        case Archive():
            return _each(db, change.where, lambda record: _archived(record, change.at), from_=change.at)
        case Restore():
            return _each(db, change.where, lambda record: _restored(record, change.at), from_=change.at)
        case Supersede():
            return _supersede(db, change)
        case Require():
            return _require(db, change)
        case Delete():
            return _delete(db, change)
        case Consolidated():
            return _consolidated(db, change)
        case Touch():
            return _touch(db, change)
        case Trim():
            return _trim(db, change)
        case Cap():
            return _cap(db, change)
        case Emit():
            events.note(db, [change.event])
            return Outcome()
        case TrimEvents():
            return events.trim(db, change)
        case DropScope():
            return _drop_scope(db, change.scope)
        case SetVectors():
            return vectors.set_vectors(db, change)
        case AdoptEmbedder():
            return vectors.adopt(db, change.identity)
        case SwitchEmbedder():
            return vectors.switch(db, change.identity)
        case PutDocument():
            return documents.put(db, change)
        case AppendChunks():
            return documents.append(db, change)
        case DeleteDocuments():
            return documents.delete(db, change.where)
        case TrimDocuments():
            return documents.trim(db, change)
        case PutFiles():
            return documents.put_files(db, change)
        case DropFiles():
            return documents.drop_files(db, change)
        case Enqueue():
            return jobs.enqueue(db, change)
        case Finish():
            return jobs.finish(db, change)
        case Fail():
            return jobs.fail(db, change)
        case Heartbeat():
            return jobs.heartbeat(db, change)
        case _:
            assert_never(change)


def read(db: Db, id: str) -> Record | None:
    """The present version of a record."""
    row = first(db, f"{_SELECT} where r.id = ?", (id,))
    return row_record(row) if row else None


# Records


def _put(db: Db, change: Put) -> Outcome:
    record = change.record.replace(version=change.expect + 1, usage=UNUSED)
    if change.expect:
        _next_version(db, record, change.terms, from_=record.updated_at, vector=change.vector)
        events.note(db, [written(record)] if change.tell else [])
        return Outcome(records=(read(db, record.id) or record,))
    scope = scope_row(db, record.scope)
    if change.dedupe and (same := _saying_the_same(db, record, scope)):
        return _merge_tags(db, same, record)
    _insert(db, record, change.terms, scope=scope, vector=change.vector)
    events.note(db, [written(record)] if change.tell else [])
    return Outcome(records=(record,))


def _saying_the_same(db: Db, record: Record, scope: int) -> Record | None:
    live = "r.archived_at is null and r.held = 0 and (r.expires_at is null or r.expires_at > ?)"
    sql = f"{_SELECT} where r.scope = ? and r.kind = ? and r.digest = ? and {live} order by r.id"
    row = first(db, sql, (scope, record.kind.value, digest(record), micros(record.updated_at)))
    return row_record(row) if row else None


def _merge_tags(db: Db, same: Record, record: Record) -> Outcome:
    """A write that says nothing new is dropped, but for the tags that it brings."""
    if record.tags <= same.tags:
        return Outcome(records=(same,), deduped=True)
    merged = same.replace(tags=same.tags | record.tags, updated_at=record.updated_at, version=same.version + 1)
    return Outcome(records=(_next_version(db, merged, None, from_=record.updated_at),), deduped=True)


def _insert(
    db: Db, record: Record, terms: Terms, *, scope: int, vector: Vector | None, from_: datetime | None = None
) -> int:
    _free_key(db, record, scope)
    row = _stored_row(record, scope, from_=from_ or record.occurred_at or record.created_at)
    values = [*row, *entries.values(record, terms, entries.bucket(record, scope))]
    if vector is None:
        made = first(db, _INSERT, values)
    elif len(vector) == 0:  # the database knows no such thing
        raise vectors.refusal(vectors.embedder(db), vector)
    else:
        made = first(db, _INSERT_WITH_VECTOR, [*values, whole_unit(vector), str(len(vector))])
    if made is None:
        raise _taken(db, record, scope)
    number, kept = made
    if vector is not None and not kept:
        raise vectors.refusal(vectors.embedder(db), vector)
    return int(number)


def _next_version(
    db: Db, record: Record, terms: Terms | None, *, from_: datetime, vector: Vector | None = None
) -> Record:
    """Keep the present version as an earlier one and put this one in its place, if it follows on it."""
    found = "select r.row, r.scope, s.path, r.version from record r join scope s on s.id = r.scope"
    held = first(db, f"{found} where r.id = ? for update of r", [record.id])
    if held is None:
        raise NotFound(f"there is no record {record.id!r}")
    number, scope, path, version = held
    if path != str(record.scope):
        raise Conflict(f"record {record.id!r} lives in {path} and stays there", current=version, holder=record.id)
    if version != record.version - 1:
        raise _changed(record, version)
    [(kept,)] = every(db, _KEEP, [number])
    entries.copy_to_version(db, number, kept, scope=scope)
    vectors.copy(db, number * 4, kept * 4 + entries.VERSION)
    _free_key(db, record, scope)
    _replace(db, record, scope, from_=from_)
    entries.change_record(db, number, record, terms, scope=scope)
    if terms is not None:
        vectors.drop(db, number * 4)
        if vector is not None:
            vectors.put(db, number * 4, vector)
    return record


def _replace(db: Db, record: Record, scope: int, *, from_: datetime) -> None:
    """Put a version in the place of the one before it; a key that is taken undoes this statement alone."""
    values = (*_stored_row(record, scope, from_=from_)[1:], record.id, record.version - 1)
    keyed = record.key is not None and record.archived_at is None and not record.held
    try:
        with db.transaction() if keyed else contextlib.nullcontext():
            replaced = run(db, _UPDATE, values)
    except psycopg.errors.UniqueViolation as error:
        raise _taken(db, record, scope) from error
    if not replaced:
        raise _changed(record, None)


def _changed(record: Record, version: int | None) -> Conflict:
    there = "gone" if version is None else f"at version {version}"
    message = f"record {record.id!r} is {there}, not {record.version - 1}: it was changed meanwhile"
    return Conflict(message, current=version, holder=record.id)


def _stored_row(record: Record, scope: int, *, from_: datetime) -> tuple[Any, ...]:
    row = record_row(record, scope)
    asked = sorted(record.tags), list(dict.fromkeys(record.source.parents))
    return (*row, micros(from_), digest(record), row_hash(row, str(record.scope)), *asked)


def _free_key(db: Db, record: Record, scope: int) -> None:
    """An expired record no longer holds its key: it is archived as of its end."""
    if record.key is None or record.archived_at is not None or record.held:
        return
    where = "r.scope = ? and r.kind = ? and r.key = ? and r.archived_at is null and r.held = 0 and r.expires_at <= ?"
    sql = f"{_SELECT} where {where} and r.id <> ?"
    row = first(db, sql, (scope, record.kind.value, record.key, micros(record.updated_at), record.id))
    if row:
        lapsed = row_record(row)
        ended = lapsed.replace(archived_at=lapsed.expires_at, updated_at=record.updated_at, version=lapsed.version + 1)
        _next_version(db, ended, None, from_=lapsed.expires_at or record.updated_at)


def _taken(db: Db, record: Record, scope: int) -> Conflict:
    same = first(db, "select version from record where id = ?", (record.id,))
    if same and record.version == 1:
        return Conflict(f"there is a record {record.id!r} already", current=same[0], holder=record.id)
    sql = "select id, version from record where scope = ? and kind = ? and key = ? and archived_at is null and held = 0"
    holder, version = first(db, sql, (scope, record.kind.value, record.key)) or (None, None)
    message = f"the key {record.key!r} is taken by record {holder!r} in {record.scope}"
    return Conflict(message, current=version, holder=holder)


def _load(db: Db, change: Load) -> Outcome:
    present = change.versions[-1]
    scope = scope_row(db, present.scope)
    held = read(db, present.id)
    if held and held.scope != present.scope:
        raise Conflict(f"record {present.id!r} lives in {held.scope} already", current=held.version, holder=held.id)
    if held and held.version >= present.version:
        return Outcome(records=(held,), deduped=True)
    run(db, "delete from record where id = ?", [present.id])
    start = change.versions[0].occurred_at or change.versions[0].created_at
    moments = [start, *(version.archived_at or version.updated_at for version in change.versions[1:])]
    number = _insert(db, present, change.terms[-1], scope=scope, vector=change.vector, from_=moments[-1])
    for version, terms, from_ in zip(change.versions[:-1], change.terms[:-1], moments[:-1], strict=True):
        [(kept,)] = every(db, _LOAD_VERSION, (number, *_stored_row(version, scope, from_=from_)))
        entries.put_version(db, kept, version, terms, scope=scope)
        if version.content == present.content:
            vectors.copy(db, number * 4, kept * 4 + entries.VERSION)
    usage = max(present.usage, held.usage if held else UNUSED, key=lambda usage: usage.recalls)
    if usage.recalls:
        row = (number, usage.recalls, micros(usage.last_recalled_at))
        run(db, "insert into usage values (?, ?, ?)", row)
    return Outcome(records=(present.replace(usage=usage),))


def _each(db: Db, where: Filter, changed: Callable[[Record], Record | None], *, from_: datetime) -> Outcome:
    after = [record for before in _matching(db, where) if (record := changed(before))]
    return Outcome(records=tuple(_next_version(db, record, None, from_=from_) for record in after))


def _archived(record: Record, at: datetime) -> Record | None:
    if record.archived_at is not None:
        return None
    return record.replace(archived_at=at, updated_at=at, version=record.version + 1)


def _restored(record: Record, at: datetime) -> Record | None:
    if record.archived_at is None:
        return None
    return record.replace(archived_at=None, superseded_by=None, updated_at=at, version=record.version + 1)


def _supersede(db: Db, change: Supersede) -> Outcome:
    record = read(db, change.id)
    if record is None:
        raise NotFound(f"there is no record {change.id!r}")
    if record.superseded_by is not None:
        message = f"record {change.id!r} was superseded by {record.superseded_by!r} already"
        raise Conflict(message, current=record.version, holder=record.superseded_by)
    closed = record.replace(
        archived_at=change.at, superseded_by=change.by, updated_at=change.now, version=record.version + 1
    )
    return Outcome(records=(_next_version(db, closed, None, from_=change.at),))


def _matching(db: Db, where: Filter) -> list[Record]:
    condition, values = filter_sql(where, "r")
    return [row_record(row) for row in every(db, f"{_SELECT} where {condition} order by r.id", values)]


def _require(db: Db, change: Require) -> Outcome:
    condition, values = filter_sql(change.where, "r")
    [[count]] = every(db, f"select count(*) from record r where {condition}", values)
    if count != change.count:
        raise Conflict(f"there were {change.count} such records, and now there are {count}", current=count)
    return Outcome()


def _delete(db: Db, change: Delete) -> Outcome:
    if change.tell:
        events.note(db, [ended(record, change.tell, change.where.at) for record in _matching(db, change.where)])
    condition, values = filter_sql(change.where, "r")
    rows = every(db, f"select r.row, r.id from record r where {condition} order by r.id", values)
    return Outcome(gone=tuple(_erase(db, rows)))


def _erase(db: Db, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Erase rows, then whatever was derived from erased rows alone, until nothing more falls."""
    gone: list[str] = []
    while rows:
        _drop(db, rows)
        names = [name for _, name in rows]
        gone += names
        orphaned = (
            "select r.row, r.id from record r where r.derived && ?::text[]"
            " and not exists (select 1 from record k where k.id = any(r.derived)) order by r.id"
        )
        rows = every(db, orphaned, [names])
    return gone


def _drop(db: Db, rows: Sequence[tuple[Any, ...]]) -> None:
    run(db, "delete from record where row = any(?::bigint[])", [[number for number, _ in rows]])


def _trim(db: Db, change: Trim) -> Outcome:
    """Eviction makes room and nothing else: what was learned from the evicted stays."""
    if _fits(db, change.where, change.keep):
        return Outcome()
    condition, values = filter_sql(change.where, "r")
    tables = "record r left join usage u on u.record = r.row"
    total = first(db, f"select count(*) from record r where {condition}", values)
    excess = int(total[0]) - change.keep if total else 0
    if excess <= 0:
        return Outcome()
    order = order_sql(change.order, "r")
    spared, names = among("r.id", change.spare)
    condition = f"{condition} and r.pinned = 0 and not {spared}"
    sql = f"select r.row, r.id from {tables} where {condition} order by {order} limit ?"
    rows = every(db, sql, [*values, *names, excess])
    if change.tell:
        going = [record for _, name in rows if (record := read(db, name))]
        events.note(db, [ended(record, Happened.EVICTED, change.where.at) for record in going])
    _drop(db, rows)
    return Outcome(gone=tuple(name for _, name in rows))


def measure(db: Db, where: Filter) -> Measure:
    """How much there is."""
    condition, values = filter_sql(where, "r")
    size = SAID.format("r.content")
    sql = f"select count(*), coalesce(sum({size}), 0)::bigint from record r where {condition}"
    [(count, total)] = every(db, sql, values)
    return Measure(count=count, bytes=total)


def _fits(db: Db, where: Filter, most: int) -> bool:
    """Whether there are no more even if all of the scopes were meant: they are counted, and nearly always do.

    The records of a scope are in two of its buckets: the live ones and the rest.
    """
    within, values = among("s.path", where.scopes)
    counts = (
        "select coalesce(sum(t.texts), 0) from scope s cross join unnest(?::bigint[]) c (class)"
        " join tally t on t.bucket = s.id * 4 + c.class"
    )
    [(count,)] = every(db, f"{counts} where {within}", [[entries.RECORD, entries.CLOSED], *values])
    return int(count) <= most


def _cap(db: Db, change: Cap) -> Outcome:
    found = (
        scope_at(path)
        for scope in change.below
        for path, _ in every(db, f"{BELOW} select path, id from below", [str(scope)])
    )
    where = change.where.replace(scopes=change.where.scopes | frozenset(found)) if change.below else change.where
    if change.most_bytes is None and _fits(db, where, change.most or 0):
        return Outcome()
    there = measure(db, where)
    if change.most is not None and there.count > change.most:
        message = f"that would make {there.count} entries; the limit is {change.most}"
        raise CapacityExceeded(message, current=there.count, most=change.most)
    if change.most_bytes is not None and there.bytes > change.most_bytes:
        message = f"that would make {there.bytes} bytes; the limit is {change.most_bytes}"
        raise CapacityExceeded(message, current=there.bytes, most=change.most_bytes)
    return Outcome()


def _consolidated(db: Db, change: Consolidated) -> Outcome:
    """A mark, not a new version: what the record says is unchanged."""
    marked = []
    for name in change.ids:
        record = read(db, name)
        if record is None:
            raise NotFound(f"there is no record {name!r}")
        marked.append(record.replace(consolidated_at=change.at))
        row = record_row(marked[-1], scope_row(db, record.scope))
        values = (micros(change.at), row_hash(row, str(record.scope)), name)
        run(db, "update record set consolidated_at = ?, hash = ? where id = ?", values)
    return Outcome(records=tuple(marked))


def _touch(db: Db, change: Touch) -> Outcome:
    sql = (
        "insert into usage as u select row, 1, ?::bigint from record where id = ? on conflict (record) do update"
        " set recalls = u.recalls + 1, last_recalled_at = greatest(u.last_recalled_at, excluded.last_recalled_at)"
    )
    run_each(
        db, sql, [(micros(change.at), name) for name in sorted(change.ids)]
    )  # in one order: nobody waits in a circle
    return Outcome()


def _drop_scope(db: Db, scope: Scope) -> Outcome:
    sql = f"{BELOW} select r.id from record r join below b on b.id = r.scope order by b.id, r.id"
    gone = tuple(name for (name,) in every(db, sql, [str(scope)]))
    run(db, "delete from scope where path = ?", [str(scope)])
    return Outcome(gone=gone)

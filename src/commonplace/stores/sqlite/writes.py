"""Every change, made inside a transaction that somebody else opened.  One function per change; the match is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, assert_never

import apsw

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
from commonplace.model.ports import Measure
from commonplace.model.queries import DocumentFilter, Filter, Vector
from commonplace.model.records import UNUSED, Record
from commonplace.model.scopes import Scope
from commonplace.stores.rows import (
    COLUMNS,
    among,
    digest,
    filter_sql,
    marks,
    micros,
    order_sql,
    packed,
    record_row,
    row_hash,
    row_record,
    scope_at,
    scopes_sql,
    select_list,
)
from commonplace.stores.sqlite import jobs, vectors
from commonplace.stores.sqlite.connection import every, first, scope_row

if TYPE_CHECKING:
    from commonplace.model.events import Event, Happened

_INSERT = f"insert into record ({', '.join(COLUMNS)}) values ({marks(COLUMNS)})"
_UPDATE = f"update record set {', '.join(f'{column} = ?' for column in COLUMNS[1:])} where id = ? and version = ?"
_KEEP = f"insert into version (record, {', '.join(COLUMNS)}) select row, {', '.join(COLUMNS)} from record where row = ?"
_LOAD_VERSION = f"insert into version (record, {', '.join(COLUMNS)}) values (?, {marks(COLUMNS)})"
_SELECT = (
    f"select {select_list('r')} from record r join scope s on s.id = r.scope left join usage u on u.record = r.row"
)

#: A scope and every scope below it.
BELOW = (
    "with recursive below (id, path) as (select id, path from scope where path = ? union all"
    " select s.id, s.path from scope s join below b on s.parent = b.id) select path, id from below"
)
INHABITED = f"{BELOW} where exists (select 1 from record r where r.scope = below.id)"


def make(db: apsw.Connection, change: Change) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one line per change
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
            return _noted(db, [change.event])
        case TrimEvents():
            from commonplace.stores.sqlite import events as sqlite_events  # noqa: PLC0415 - see "Telling"

            return sqlite_events.trim(db, change)
        case DropScope():
            return _drop_scope(db, change.scope)
        case SetVectors():
            return vectors.set_vectors(db, change)
        case AdoptEmbedder():
            return vectors.adopt(db, change.identity)
        case SwitchEmbedder():
            return vectors.switch(db, change.identity)
        case PutDocument():
            return _put_document(db, change)
        case AppendChunks():
            from commonplace.stores.sqlite import documents as sqlite_documents  # noqa: PLC0415 - only sessions grow; no recall needs it

            return sqlite_documents.append(db, change, put_chunks=_put_chunks)
        case DeleteDocuments():
            return _delete_documents(db, change.where)
        case TrimDocuments():
            return _trim_documents(db, change)
        case PutFiles():
            return _put_files(db, change)
        case DropFiles():
            return _drop_files(db, change)
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


def read(db: apsw.Connection, id: str) -> Record | None:
    """The present version of a record."""
    row = first(db, f"{_SELECT} where r.id = ?", (id,))
    return row_record(row) if row else None


# Records


def _put(db: apsw.Connection, change: Put) -> Outcome:
    record = change.record.replace(version=change.expect + 1, usage=UNUSED)
    if change.expect:
        _next_version(db, record, change.terms, from_=record.updated_at, vector=change.vector)
        _tell_written(db, change, record)
        return Outcome(records=(read(db, record.id) or record,))
    scope = scope_row(db, record.scope)
    if change.dedupe and (same := _saying_the_same(db, record, scope)):
        return _merge_tags(db, same, record)
    _insert(db, record, change.terms, scope=scope, vector=change.vector)
    _tell_written(db, change, record)
    return Outcome(records=(record,))


def _saying_the_same(db: apsw.Connection, record: Record, scope: int) -> Record | None:
    live = "r.archived_at is null and r.held = 0 and (r.expires_at is null or r.expires_at > ?)"
    sql = f"{_SELECT} where r.scope = ? and r.kind = ? and r.digest = ? and {live} order by r.id"
    row = first(db, sql, (scope, record.kind.value, digest(record), micros(record.updated_at)))
    return row_record(row) if row else None


def _merge_tags(db: apsw.Connection, same: Record, record: Record) -> Outcome:
    """A write that says nothing new is dropped, but for the tags that it brings."""
    if record.tags <= same.tags:
        return Outcome(records=(same,), deduped=True)
    merged = same.replace(tags=same.tags | record.tags, updated_at=record.updated_at, version=same.version + 1)
    return Outcome(records=(_next_version(db, merged, None, from_=record.updated_at),), deduped=True)


def _insert(
    db: apsw.Connection,
    record: Record,
    terms: Terms,
    *,
    scope: int,
    vector: Vector | None,
    from_: datetime | None = None,
) -> int:
    _free_key(db, record, scope)
    row = _stored_row(record, terms, scope, from_=from_ or record.occurred_at or record.created_at)
    try:
        db.execute(_INSERT, row)
    except apsw.ConstraintError as error:
        raise _taken(db, record, scope) from error
    number = db.last_insert_rowid()
    _link(db, number, record, fresh=True)
    if vector is not None:
        vectors.put(db, number * 4, vector)
    return number


def _next_version(
    db: apsw.Connection, record: Record, terms: Terms | None, *, from_: datetime, vector: Vector | None = None
) -> Record:
    """Keep the present version as an earlier one and put this one in its place, if it follows on it."""
    found = "select r.row, r.scope, s.path, r.version, r.terms from record r join scope s on s.id = r.scope"
    held = first(db, f"{found} where r.id = ?", (record.id,))
    if held is None:
        raise NotFound(f"there is no record {record.id!r}")
    number, scope, path, version, old_terms = held
    if path != str(record.scope):
        raise Conflict(f"record {record.id!r} lives in {path} and stays there", current=version, holder=record.id)
    if version != record.version - 1:
        message = f"record {record.id!r} is at version {version}, not {record.version - 1}: it was changed meanwhile"
        raise Conflict(message, current=version, holder=record.id)
    words = tuple(old_terms.split()) if terms is None else terms
    db.execute(_KEEP, (number,))
    vectors.copy(db, number * 4, db.last_insert_rowid() * 4 + 2)
    _free_key(db, record, scope)
    try:
        db.execute(_UPDATE, (*_stored_row(record, words, scope, from_=from_)[1:], record.id, version))
    except apsw.ConstraintError as error:
        raise _taken(db, record, scope) from error
    _link(db, number, record)
    if terms is not None:
        vectors.drop(db, number * 4)
        if vector is not None:
            vectors.put(db, number * 4, vector)
    return record


def _stored_row(record: Record, terms: Terms, scope: int, *, from_: datetime) -> tuple[Any, ...]:
    row = record_row(record, scope)
    return (*row, micros(from_), digest(record), row_hash(row, str(record.scope)), " ".join(terms), len(terms))


def _link(db: apsw.Connection, number: int, record: Record, *, fresh: bool = False) -> None:
    """Tags and parents can be asked for by value."""
    if not fresh:
        db.execute("delete from tag where record = ?", (number,))
        db.execute("delete from parent where record = ?", (number,))
    if record.tags:
        db.executemany("insert into tag values (?, ?)", [(number, tag) for tag in sorted(record.tags)])
    if record.source.parents:
        parents = dict.fromkeys(record.source.parents)
        db.executemany("insert into parent values (?, ?)", [(number, parent) for parent in parents])


def _free_key(db: apsw.Connection, record: Record, scope: int) -> None:
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


def _taken(db: apsw.Connection, record: Record, scope: int) -> Conflict:
    same = first(db, "select version from record where id = ?", (record.id,))
    if same and record.version == 1:
        return Conflict(f"there is a record {record.id!r} already", current=same[0], holder=record.id)
    sql = "select id, version from record where scope = ? and kind = ? and key = ? and archived_at is null and held = 0"
    holder, version = first(db, sql, (scope, record.kind.value, record.key)) or (None, None)
    message = f"the key {record.key!r} is taken by record {holder!r} in {record.scope}"
    return Conflict(message, current=version, holder=holder)


def _load(db: apsw.Connection, change: Load) -> Outcome:
    present = change.versions[-1]
    scope = scope_row(db, present.scope)
    held = read(db, present.id)
    if held and held.scope != present.scope:
        raise Conflict(f"record {present.id!r} lives in {held.scope} already", current=held.version, holder=held.id)
    if held and held.version >= present.version:
        return Outcome(records=(held,), deduped=True)
    db.execute("delete from record where id = ?", (present.id,))
    first = change.versions[0]
    start = first.occurred_at or first.created_at
    moments = [start, *(version.archived_at or version.updated_at for version in change.versions[1:])]
    number = _insert(db, present, change.terms[-1], scope=scope, vector=change.vector, from_=moments[-1])
    for version, terms, from_ in zip(change.versions[:-1], change.terms[:-1], moments[:-1], strict=True):
        db.execute(_LOAD_VERSION, (number, *_stored_row(version, terms, scope, from_=from_)))
        if version.content == present.content:
            vectors.copy(db, number * 4, db.last_insert_rowid() * 4 + 2)
    usage = max(present.usage, held.usage if held else UNUSED, key=lambda usage: usage.recalls)
    if usage.recalls:
        row = (number, usage.recalls, micros(usage.last_recalled_at))
        db.execute("insert into usage values (?, ?, ?)", row)
    return Outcome(records=(present.replace(usage=usage),))


def _each(
    db: apsw.Connection, where: Filter, changed: Callable[[Record], Record | None], *, from_: datetime
) -> Outcome:
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


def _supersede(db: apsw.Connection, change: Supersede) -> Outcome:
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


def _matching(db: apsw.Connection, where: Filter) -> list[Record]:
    condition, values = filter_sql(where, "r")
    return [row_record(row) for row in every(db, f"{_SELECT} where {condition} order by r.id", values)]


def _require(db: apsw.Connection, change: Require) -> Outcome:
    condition, values = filter_sql(change.where, "r")
    [[count]] = every(db, f"select count(*) from record r where {condition}", values)
    if count != change.count:
        raise Conflict(f"there were {change.count} such records, and now there are {count}", current=count)
    return Outcome()


def _delete(db: apsw.Connection, change: Delete) -> Outcome:
    condition, values = filter_sql(change.where, "r")
    rows = every(db, f"select r.row, r.id from record r where {condition} order by r.id", values)
    if change.tell and rows:
        _tell_ended(db, _matching(db, change.where), change.tell, change.where.at)
    return Outcome(gone=tuple(_erase(db, rows)))


def _erase(db: apsw.Connection, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Erase rows, then whatever was derived from erased rows alone, until nothing more falls."""
    gone: list[str] = []
    while rows:
        db.executemany("delete from record where row = ?", [(number,) for number, _ in rows])
        gone += [name for _, name in rows]
        orphaned = (
            "select r.row, r.id from record r where r.row in (select record from parent where parent = ?)"
            " and not exists (select 1 from parent p join record k on k.id = p.parent where p.record = r.row)"
        )
        rows = list(dict.fromkeys(row for _, name in rows for row in every(db, orphaned, (name,))))
    return gone


def _trim(db: apsw.Connection, change: Trim) -> Outcome:
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
        _tell_evicted(db, [name for _, name in rows], change.where.at)
    db.executemany("delete from record where row = ?", [(number,) for number, _ in rows])
    return Outcome(gone=tuple(name for _, name in rows))


def measure(db: apsw.Connection, where: Filter) -> Measure:
    """How much there is."""
    condition, values = filter_sql(where, "r")
    sql = f"select count(*), coalesce(sum(length(cast(r.content as blob))), 0) from record r where {condition}"
    [(count, size)] = every(db, sql, values)
    return Measure(count=count, bytes=size)


def _fits(db: apsw.Connection, where: Filter, most: int) -> bool:
    """Whether there are no more even if all of the scopes were meant: their buckets are counted, and nearly always do.

    The records of a scope are in two of its buckets: the live ones and the rest.
    """
    within, values = among("s.path", where.scopes)
    counts = "select coalesce(sum(b.docs), 0) from scope s join bucket b on b.id in (s.id * 4, s.id * 4 + 3)"
    [(count,)] = every(db, f"{counts} where {within}", values)
    return int(count) <= most


def _cap(db: apsw.Connection, change: Cap) -> Outcome:
    found = (scope_at(path) for scope in change.below for path, _ in every(db, BELOW, (str(scope),)))
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


# Telling: only those who ask for it pay for its modules


def _tell_written(db: apsw.Connection, change: Put, record: Record) -> None:
    if change.tell:
        from commonplace.stores.event_rows import written  # noqa: PLC0415 - see above

        _noted(db, [written(record)])


def _tell_ended(db: apsw.Connection, records: Sequence[Record], what: Happened, at: datetime) -> None:
    from commonplace.stores.event_rows import ended  # noqa: PLC0415 - see above

    _noted(db, [ended(record, what, at) for record in records])


def _tell_evicted(db: apsw.Connection, ids: Sequence[str], at: datetime) -> None:
    from commonplace.model.events import Happened  # noqa: PLC0415 - see above

    _tell_ended(db, [record for name in ids if (record := read(db, name))], Happened.EVICTED, at)


def _noted(db: apsw.Connection, events: Sequence[Event]) -> Outcome:
    from commonplace.stores.sqlite import events as sqlite_events  # noqa: PLC0415 - see above

    sqlite_events.note(db, events)
    return Outcome()


def _consolidated(db: apsw.Connection, change: Consolidated) -> Outcome:
    """A mark, not a new version: what the record says is unchanged."""
    marked = []
    for name in change.ids:
        record = read(db, name)
        if record is None:
            raise NotFound(f"there is no record {name!r}")
        marked.append(record.replace(consolidated_at=change.at))
        row = record_row(marked[-1], scope_row(db, record.scope))
        values = (micros(change.at), row_hash(row, str(record.scope)), name)
        db.execute("update record set consolidated_at = ?, hash = ? where id = ?", values)
    return Outcome(records=tuple(marked))


def _touch(db: apsw.Connection, change: Touch) -> Outcome:
    sql = (
        "insert into usage select row, 1, ? from record where id = ? on conflict (record) do update"
        " set recalls = recalls + 1, last_recalled_at = max(coalesce(last_recalled_at, 0), excluded.last_recalled_at)"
    )
    db.executemany(sql, [(micros(change.at), name) for name in change.ids])
    return Outcome()


def _drop_scope(db: apsw.Connection, scope: Scope) -> Outcome:
    numbers = [int(number) for _, number in every(db, BELOW, (str(scope),))]
    gone = [
        str(row[0])
        for number in numbers
        for row in every(db, "select id from record where scope = ? order by id", (number,))
    ]
    db.execute("delete from scope where path = ?", (str(scope),))
    db.executemany("delete from bucket where id between ? and ?", [(number * 4, number * 4 + 3) for number in numbers])
    return Outcome(gone=tuple(gone))


# Documents and files


def _put_document(db: apsw.Connection, change: PutDocument) -> Outcome:
    document = change.document
    scope = scope_row(db, document.scope)
    identity = (scope, document.kind.value, document.name)
    sql = "select row, digest, created_at from document where scope = ? and kind = ? and name = ?"
    held = first(db, sql, identity)
    if held and held[1] == document.digest:
        return Outcome(deduped=True)
    if held:
        db.execute("delete from document where row = ?", (held[0],))
    source = document.source
    row = (
        *identity,
        document.digest,
        document.content,
        packed(dict(document.metadata)),
        source.channel.value,
        source.ref,
        packed(source.parents),
    )
    times = (int(document.trust), held[2] if held else micros(document.created_at), micros(document.updated_at))
    names = "scope, kind, name, digest, content, metadata, channel, ref, parents, trust, created_at, updated_at"
    db.execute(f"insert into document ({names}) values ({marks(range(12))})", (*row, *times))
    _put_chunks(db, change, document=db.last_insert_rowid(), scope=scope)
    return Outcome()


def _put_chunks(db: apsw.Connection, change: PutDocument, *, document: int, scope: int) -> None:
    names = "document, scope, seq, ref, text, speaker, occurred_at, trust, terms, length"
    sql = f"insert into chunk ({names}) values ({marks(range(10))})"
    for chunk, terms in zip(change.chunks, change.terms, strict=True):
        said = (chunk.seq, chunk.ref, chunk.text, chunk.speaker, micros(chunk.occurred_at), int(chunk.trust))
        db.execute(sql, (document, scope, *said, " ".join(terms), len(terms)))
        if chunk.seq in change.vectors:
            vectors.put(db, db.last_insert_rowid() * 4 + 1, change.vectors[chunk.seq])


def documents_sql(where: DocumentFilter) -> tuple[str, list[Any]]:
    """A filter as a condition on documents under the alias `d`."""
    sql, values = scopes_sql(where.scopes, "d.scope")
    for column, allowed in {"d.kind": where.kinds, "d.name": where.names}.items():
        if allowed is not None:
            choice, more = among(column, allowed)
            sql, values = f"{sql} and {choice}", [*values, *more]
    return sql, values


def _delete_documents(db: apsw.Connection, where: DocumentFilter) -> Outcome:
    condition, values = documents_sql(where)
    rows = every(db, f"select d.row, d.name from document d where {condition} order by d.name", values)
    db.executemany("delete from document where row = ?", [(row,) for row, _ in rows])
    return Outcome(gone=tuple(name for _, name in rows))


def _trim_documents(db: apsw.Connection, change: TrimDocuments) -> Outcome:
    condition, values = documents_sql(change.where)
    newest = "order by d.updated_at desc, d.name limit -1 offset ?"
    sql = f"select d.row, d.name from document d where {condition} {newest}"
    rows = every(db, sql, [*values, change.keep])
    db.executemany("delete from document where row = ?", [(row,) for row, _ in rows])
    return Outcome(gone=tuple(name for _, name in rows))


def _put_files(db: apsw.Connection, change: PutFiles) -> Outcome:
    rows = [(change.folder, f.path, f.record, f.version, f.digest, f.stamp) for f in change.files]
    db.executemany("insert or replace into file values (?, ?, ?, ?, ?, ?)", rows)
    return Outcome()


def _drop_files(db: apsw.Connection, change: DropFiles) -> Outcome:
    rows = [(change.folder, path) for path in sorted(change.paths)]
    db.executemany("delete from file where folder = ? and path = ?", rows)
    return Outcome()

"""Make every change, inside a transaction that the caller opened.  One function per change; the match is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from commonplace.model.changes import (
    AdoptEmbedder,
    AppendChunks,
    Archive,
    Audit,
    Cap,
    Change,
    Delete,
    DeleteChunks,
    DeleteDocuments,
    DeleteJobs,
    DropFiles,
    DropScope,
    Emit,
    Enqueue,
    Fail,
    Finish,
    FromCheckout,
    Heartbeat,
    LiftTombstones,
    Load,
    MarkConsolidated,
    Outcome,
    Put,
    PutDocument,
    PutFiles,
    PutTombstones,
    Require,
    RequireUnerased,
    Restore,
    SetVectors,
    Supersede,
    SwitchEmbedder,
    Terms,
    Touch,
    Trim,
    TrimDocuments,
    TrimEvents,
    versions_digest,
)
from commonplace.model.errors import CapacityExceeded, Conflict, NotFound
from commonplace.model.ports import Measure
from commonplace.model.queries import Filter, Vector
from commonplace.model.records import UNUSED, Record
from commonplace.model.scopes import Scope
from commonplace.stores.rows import (
    SHARED_COLUMNS,
    digest,
    insert_sql,
    micros,
    row_record,
    row_records,
    scope_at,
    select_list,
    stored_row,
)
from commonplace.stores.scoring import CLOSED, RECORD, VERSION
from commonplace.stores.sql import vectors
from commonplace.stores.sql.filters import filter_sql, order_sql, scope_row, scopes_below

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

#: The changes that no recall makes.
_Other: TypeAlias = (
    "Emit | TrimEvents | PutDocument | AppendChunks | DeleteDocuments | DeleteChunks | TrimDocuments | PutFiles"
    " | DropFiles | Enqueue | Finish | Fail | Heartbeat | DeleteJobs | PutTombstones | LiftTombstones"
    " | RequireUnerased"
)
_SELECT = (
    f"select {select_list('r')} from record r join scope s on s.id = r.scope left join usage u on u.record = r.row"
)


def make(db: Db, change: Change) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one line per change
    """Make one change."""
    match change:
        case Put():
            return _put(db, change)
        case Load():
            return _load(db, change)
        case Archive():
            return _each(db, change.where, lambda record: _archive(record, change.at), valid_from=change.at)
        case Restore():
            return _each(db, change.where, lambda record: _restore(record, change.at), valid_from=change.at)
        case Supersede():
            return _supersede(db, change)
        case Require():
            return _require(db, change)
        case Delete():
            return _delete(db, change)
        case MarkConsolidated():
            return _mark_consolidated(db, change)
        case Touch():
            return _touch(db, change)
        case Trim():
            return _trim(db, change)
        case Cap():
            return _cap(db, change)
        case DropScope():
            return _drop_scope(db, change.scope)
        case SetVectors():
            return vectors.set_vectors(db, change)
        case AdoptEmbedder():
            return vectors.adopt(db, change.identity)
        case SwitchEmbedder():
            return vectors.switch(db, change.identity)
        case Audit() | FromCheckout():  # of all changes together, once they are made: ``audit``, ``checkouts``
            return Outcome()
        case _:
            return _make_other(db, change)


def _make_other(db: Db, change: _Other) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one line per change
    """Make a change that no recall makes: only it pays for the modules."""
    from commonplace.stores.sql import documents, events, jobs, tombstones  # noqa: PLC0415 - see above

    match change:
        case Emit():
            return events.insert(db, [change.event])
        case TrimEvents():
            return events.trim(db, change)
        case PutDocument():
            return documents.put(db, change)
        case AppendChunks():
            return documents.append(db, change)
        case DeleteDocuments():
            return documents.delete(db, change.where)
        case DeleteChunks():
            return documents.delete_chunks(db, change)
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
        case DeleteJobs():
            return jobs.delete(db, change)
        case PutTombstones():
            return tombstones.put(db, change)
        case LiftTombstones():
            return tombstones.lift(db, change)
        case RequireUnerased():
            return tombstones.require_unerased(db, change)
        case _:
            assert_never(change)


def pin_checkouts(db: Db, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> None:
    """Note which checkouts show what, once the changes are made; nothing if no checkout made them."""
    made = [change for change in changes if isinstance(change, FromCheckout)]
    if not made:
        return
    from commonplace.stores.sql import checkouts  # noqa: PLC0415 - no recall changes a record

    changed = [
        record for change, outcome in zip(changes, outcomes, strict=True)
        if not isinstance(change, MarkConsolidated) for record in outcome.records if record.has_file
    ]  # fmt: skip
    for change in made:
        checkouts.pin(db, change, [record.id for record in changed if record.scope == change.scope])


def read(db: Db, id: str) -> Record | None:
    """Return the present version of a record."""
    row = db.first(f"{_SELECT} where r.id = ?", [id])
    return row_record(row) if row else None


# One record


def _put(db: Db, change: Put) -> Outcome:
    record = change.record.replace(version=change.expect + 1, usage=UNUSED)
    if change.expect:
        _next_version(db, record, change.terms, valid_from=record.updated_at, vector=change.vector)
        record = read(db, record.id) or record
    else:
        scope = scope_row(db, record.scope)
        if change.dedupe and (same := _duplicate(db, record, scope)):
            return _merge_tags(db, same, record)
        _insert(db, record, change.terms, scope=scope, vector=change.vector)
    if change.emit:
        _emit(db, [record], None, record.updated_at)
    return Outcome(records=(record,))


def _duplicate(db: Db, record: Record, scope: int) -> Record | None:
    live = "r.archived_at is null and r.held = 0 and (r.expires_at is null or r.expires_at > ?)"
    sql = f"{_SELECT} where r.scope = ? and r.kind = ? and r.digest = ? and {live} order by r.id"
    row = db.first(sql, [scope, record.kind.value, digest(record), micros(record.updated_at)])
    return next(iter(row_records([row], damaged=db.damaged)), None) if row else None  # a damaged one is no duplicate


def _merge_tags(db: Db, same: Record, record: Record) -> Outcome:
    """Drop a write that is a duplicate, but for the tags that it brings."""
    if record.tags <= same.tags:
        return Outcome(records=(same,), deduped=True)
    merged = same.replace(tags=same.tags | record.tags, updated_at=record.updated_at, version=same.version + 1)
    return Outcome(records=(_next_version(db, merged, None, valid_from=record.updated_at),), deduped=True)


def _insert(
    db: Db, record: Record, terms: Terms, *, scope: int, vector: Vector | None, valid_from: datetime | None = None
) -> int:
    _free_key(db, record, scope)
    row = stored_row(record, scope, valid_from=valid_from or record.occurred_at or record.created_at)
    number = db.insert_record(record, row, terms, scope=scope, vector=vector)
    if number is None:
        raise _key_conflict(db, record, scope)
    return number


def _next_version(
    db: Db, record: Record, terms: Terms | None, *, valid_from: datetime, vector: Vector | None = None
) -> Record:
    """Save the present version as an earlier one and replace it, if this one follows on it."""
    found = "select row, scope, (select path from scope where id = record.scope), version from record where id = ?"
    held = db.first(f"{found}{db.for_update}", [record.id])
    if held is None:
        raise NotFound(f"there is no record {record.id!r}")
    number, scope, path, version = held
    if path != str(record.scope):
        raise Conflict(f"record {record.id!r} lives in {path} and stays there", current=version, holder=record.id)
    if version != record.version - 1:
        raise _version_conflict(record, version)
    [(earlier,)] = db.every(_copy_sql(db.columns), [number])
    db.index_version(number, earlier, None, None, scope=scope)
    db.copy_vectors(number * 4, earlier * 4 + VERSION)
    _free_key(db, record, scope)
    _replace(db, record, terms, scope, valid_from=valid_from)
    db.index_record(number, record, terms, scope=scope)
    if terms is not None:
        vectors.drop(db, number * 4)
        if vector is not None:
            vectors.put(db, number * 4, vector)
    return record


@lru_cache(maxsize=2)
def _copy_sql(columns: tuple[str, ...]) -> str:
    names = ", ".join(columns)
    return f"insert into version (record, {names}) select row, {names} from record where row = ? returning row"


def _replace(db: Db, record: Record, terms: Terms | None, scope: int, *, valid_from: datetime) -> None:
    own = db.own_values(record, terms)
    sql = _update_sql((*SHARED_COLUMNS[1:], *own))
    row = stored_row(record, scope, valid_from=valid_from)[1:]
    keyed = record.key is not None and record.archived_at is None and not record.held
    replaced = db.run_unique(sql, [*row, *own.values(), record.id, record.version - 1], keyed=keyed)
    if replaced is None:
        raise _key_conflict(db, record, scope)
    if not replaced:
        raise _version_conflict(record, None)


@lru_cache(maxsize=4)
def _update_sql(columns: tuple[str, ...]) -> str:
    return f"update record set {', '.join(f'{column} = ?' for column in columns)} where id = ? and version = ?"


def _version_conflict(record: Record, version: int | None) -> Conflict:
    there = "gone" if version is None else f"at version {version}"
    message = f"record {record.id!r} is {there}, not {record.version - 1}: it was changed meanwhile"
    return Conflict(message, current=version, holder=record.id)


def _free_key(db: Db, record: Record, scope: int) -> None:
    """Archive an expired record that still holds the key, as of its end."""
    if record.key is None or record.archived_at is not None or record.held:
        return
    where = "r.scope = ? and r.kind = ? and r.key = ? and r.archived_at is null and r.held = 0 and r.expires_at <= ?"
    sql = f"{_SELECT} where {where} and r.id <> ?"
    row = db.first(sql, [scope, record.kind.value, record.key, micros(record.updated_at), record.id])
    if row:
        expired = row_record(row)
        end = expired.expires_at
        archived = expired.replace(archived_at=end, updated_at=record.updated_at, version=expired.version + 1)
        _next_version(db, archived, None, valid_from=end or record.updated_at)


def _key_conflict(db: Db, record: Record, scope: int) -> Conflict:
    same = db.first("select version from record where id = ?", [record.id])
    if same and record.version == 1:
        return Conflict(f"there is a record {record.id!r} already", current=same[0], holder=record.id)
    sql = "select id, version from record where scope = ? and kind = ? and key = ? and archived_at is null and held = 0"
    holder, version = db.first(sql, [scope, record.kind.value, record.key]) or (None, None)
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
    db.run("delete from record where id = ?", [present.id])
    start = change.versions[0].occurred_at or change.versions[0].created_at
    moments = [start, *(version.archived_at or version.updated_at for version in change.versions[1:])]
    number = _insert(db, present, change.terms[-1], scope=scope, vector=change.vector, valid_from=moments[-1])
    for version, terms, valid_from in zip(change.versions[:-1], change.terms[:-1], moments[:-1], strict=True):
        own = db.own_values(version, terms)
        sql = f"{insert_sql('version', ('record', *SHARED_COLUMNS, *own))} returning row"
        row = stored_row(version, scope, valid_from=valid_from)
        [(earlier,)] = db.every(sql, [number, *row, *own.values()])
        db.index_version(number, earlier, version, terms, scope=scope)
        if version.content == present.content:
            db.copy_vectors(number * 4, earlier * 4 + VERSION)
    usage = max(present.usage, held.usage if held else UNUSED, key=lambda usage: usage.recalls)
    if usage.recalls:
        row = [number, usage.recalls, micros(usage.last_recalled_at)]
        db.run(insert_sql("usage", ("record", "recalls", "last_recalled_at")), row)
    return Outcome(records=(present.replace(usage=usage),))


# The records that a filter means


def _each(db: Db, where: Filter, changed: Callable[[Record], Record | None], *, valid_from: datetime) -> Outcome:
    after = [record for before in _matching(db, where) if (record := changed(before))]
    return Outcome(records=tuple(_next_version(db, record, None, valid_from=valid_from) for record in after))


def _archive(record: Record, at: datetime) -> Record | None:
    if record.archived_at is not None:
        return None
    return record.replace(archived_at=at, updated_at=at, version=record.version + 1)


def _restore(record: Record, at: datetime) -> Record | None:
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
    return Outcome(records=(_next_version(db, closed, None, valid_from=change.at),))


def _matching(db: Db, where: Filter, *, lenient: bool = False) -> list[Record]:
    condition, values = filter_sql(db, where, "r")
    return row_records(
        db.every(f"{_SELECT} where {condition} order by r.id", values), damaged=db.damaged if lenient else None
    )


def _require(db: Db, change: Require) -> Outcome:
    found = versions(db, change.where)
    if change.count not in (None, len(found)):
        message = f"there were {change.count} such records, and now there are {len(found)}"
        raise Conflict(message, current=len(found))
    if change.digest is not None and change.digest != versions_digest(found):
        raise Conflict("such records were added, changed or erased since they were read")
    return Outcome()


def versions(db: Db, where: Filter) -> list[tuple[str, int]]:
    """Return the id and the version of each record meant."""
    condition, values = filter_sql(db, where, "r")
    return [
        (id_, version) for id_, version in db.every(f"select r.id, r.version from record r where {condition}", values)
    ]


def _delete(db: Db, change: Delete) -> Outcome:
    condition, values = filter_sql(db, change.where, "r")
    rows = db.every(f"select r.row, r.id from record r where {condition} order by r.id", values)
    if change.emit and rows:
        _emit(db, _matching(db, change.where, lenient=True), change.emit, change.where.at)
    return Outcome(gone=tuple(_erase(db, rows)))


def _erase(db: Db, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Erase rows, then whatever was derived from erased rows alone, until nothing more falls."""
    gone: list[str] = []
    while rows:
        _drop(db, rows)
        ids = [id_ for _, id_ in rows]
        gone += ids
        derived, values = db.derived_sql("r", ids, past=False)
        orphans = f"select r.row, r.id from record r where {derived} and {db.orphaned} order by r.id"
        rows = db.every(orphans, values)
    return gone


def _drop(db: Db, rows: Sequence[tuple[Any, ...]]) -> None:
    condition, values = db.among("row", [number for number, _ in rows])
    db.run(f"delete from record where {condition}", values)


def _trim(db: Db, change: Trim) -> Outcome:
    """Evict records to make room, and nothing else: what was learned from the evicted stays."""
    if _fits(db, change.where, change.keep):
        return Outcome()
    condition, values = filter_sql(db, change.where, "r")
    [(total,)] = db.every(f"select count(*) from record r where {condition}", values)
    if total <= change.keep:
        return Outcome()
    spared, ids = db.among("r.id", change.spare)
    tables = "record r left join usage u on u.record = r.row"
    condition = f"{condition} and r.pinned = 0 and not {spared}"
    sql = f"select r.row, r.id from {tables} where {condition} order by {order_sql(change.order, 'r')} limit ?"
    rows = db.every(sql, [*values, *ids, total - change.keep])
    if change.emit:
        evicted = [record for _, id_ in rows if (record := read(db, id_))]
        _emit(db, evicted, "memory.evicted", change.where.at)
    _drop(db, rows)
    return Outcome(gone=tuple(id_ for _, id_ in rows))


def measure(db: Db, where: Filter) -> Measure:
    """Count the records meant and the bytes of their content."""
    condition, values = filter_sql(db, where, "r")
    size = f"cast(coalesce(sum({db.bytes_of.format('r.content')}), 0) as bigint)"
    [(count, total)] = db.every(f"select count(*), {size} from record r where {condition}", values)
    return Measure(count=count, bytes=total)


def _fits(db: Db, where: Filter, limit: int) -> bool:
    """Return whether even all records of the scopes are within a limit: their buckets are counted, and nearly always.

    The records of a scope are in two of its buckets: the live ones and the rest.
    """
    within, values = db.among("s.path", where.scopes)
    buckets = f"t.bucket in (s.id * 4 + {RECORD}, s.id * 4 + {CLOSED})"
    [(count,)] = db.every(
        f"select coalesce(sum(t.texts), 0) from scope s join {db.counts} t on {buckets} where {within}", values
    )
    return int(count) <= limit


def _cap(db: Db, change: Cap) -> Outcome:
    found = frozenset(scope_at(path) for scope in change.below for path, _ in scopes_below(db, scope))
    where = change.where.replace(scopes=change.where.scopes | found) if found else change.where
    if change.max_bytes is None and _fits(db, where, change.max_records or 0):
        return Outcome()
    there = measure(db, where)
    if change.max_records is not None and there.count > change.max_records:
        message = f"that would make {there.count} entries; the limit is {change.max_records}"
        raise CapacityExceeded(message, current=there.count, limit=change.max_records)
    if change.max_bytes is not None and there.bytes > change.max_bytes:
        message = f"that would make {there.bytes} bytes; the limit is {change.max_bytes}"
        raise CapacityExceeded(message, current=there.bytes, limit=change.max_bytes)
    return Outcome()


def _mark_consolidated(db: Db, change: MarkConsolidated) -> Outcome:
    """Set a mark, not a new version: the content is unchanged."""
    marked = []
    for id_ in change.ids:
        record = read(db, id_)
        if record is None:
            raise NotFound(f"there is no record {id_!r}")
        marked.append(record.replace(consolidated_at=change.at))
        hashed = stored_row(marked[-1], 0, valid_from=record.created_at)[-1]
        db.run("update record set consolidated_at = ?, hash = ? where id = ?", [micros(change.at), hashed, id_])
    return Outcome(records=tuple(marked))


def _touch(db: Db, change: Touch) -> Outcome:
    sql = (
        "insert into usage as u (record, recalls, last_recalled_at) select row, 1, cast(? as bigint) from record"
        " where id = ? on conflict (record) do update set recalls = u.recalls + 1, last_recalled_at ="
        " case when u.last_recalled_at > excluded.last_recalled_at then u.last_recalled_at"
        " else excluded.last_recalled_at end"
    )
    at = micros(change.at)
    db.run_each(sql, [(at, id_) for id_ in sorted(change.ids)])  # in one order: no two writers wait in a circle
    return Outcome()


def _drop_scope(db: Db, scope: Scope) -> Outcome:
    condition, rows = db.among("scope", [row for _, row in scopes_below(db, scope)])
    gone = db.every(f"select id from record where {condition} order by scope, id", rows)
    db.run("delete from scope where path = ?", [str(scope)])
    db.drop_counts()
    return Outcome(gone=tuple(id_ for (id_,) in gone))


def _emit(db: Db, records: Iterable[Record], what: str | None, at: datetime) -> None:
    """Insert an event about each of these records; None: it was written."""
    from commonplace.stores.sql import events  # noqa: PLC0415 - only changes that emit events pay for the module

    events.insert(db, [events.about(record, what, at) for record in records])

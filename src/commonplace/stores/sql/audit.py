"""The audit log inside a transaction: which entries changes make, how they are chained, how they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from commonplace.model.audit import FIRST, AuditEntry, entry_digest
from commonplace.model.changes import (
    Archive,
    Audit,
    Change,
    Delete,
    DropScope,
    Load,
    Outcome,
    Put,
    Restore,
    Supersede,
    Trim,
)
from commonplace.model.records import Record
from commonplace.model.scopes import Scope
from commonplace.stores.rows import Sql, insert_sql, micros, moment
from commonplace.stores.sql.filters import join_and, rows_limit, scopes_sql

if TYPE_CHECKING:
    from commonplace.stores.auditor import Auditor
    from commonplace.stores.sql.dialect import Db

FIELDS = ("seq", "at", "verb", "record", "version", "actor", "channel", "digest")
_INSERT = insert_sql("audit", FIELDS)
_CHANGING = {Archive: "archive", Restore: "restore", Supersede: "supersede", Load: "put"}
_ENDING = {Delete: "erase", Trim: "evict", DropScope: "erase"}


def append(db: Db, auditor: Auditor, changes: Sequence[Change], outcomes: Sequence[Outcome]) -> tuple[int, str] | None:
    """Append an entry for each record that was changed or erased; return the number and the digest of the last one."""
    lines = list(dict.fromkeys(_lines(changes, outcomes)))
    if not lines:
        return None
    db.take_audit_turn()
    seq, before = _head(db)
    noted = auditor.read()
    if noted.seq > seq:  # said at once: the next entries would soon reach the number that is noted
        auditor.note(seq, before, lost=noted.lost + noted.seq - seq)
    key, now, rows = auditor.key(), auditor.clock(), []
    for number, (verb, record, version, channel) in enumerate(lines, start=seq + 1):
        entry = AuditEntry(
            seq=number, at=now, verb=verb, record=record, version=version, actor=auditor.actor, channel=channel
        )
        before = entry_digest(entry, before, key)
        rows.append(_row(entry.replace(digest=before)))
    db.run_each(_INSERT, rows)
    return seq + len(rows), before


def list_entries(db: Db, *, after: int, record: str | None, limit: int) -> list[AuditEntry]:
    """Return entries in order, from after a number on; of one record only, if one is given."""
    condition, values = ("", []) if record is None else (" and record = ?", [record])
    sql = f"select {', '.join(FIELDS)} from audit where {db.own_events} and seq > ?{condition} order by seq limit ?"
    return [_entry(row) for row in db.every(sql, [after, *values, rows_limit(limit)])]


def list_latest(
    db: Db, scopes: Collection[Scope], *, before: int | None, verbs: Collection[str] | None, limit: int
) -> list[AuditEntry]:
    """Return entries, latest first, that are about records of these scopes, about records that are gone, or none."""
    known = "select 1 from record r where r.id = audit.record"
    condition, values = scopes_sql(db, scopes, "r.scope")
    parts: list[Sql] = [(f"(not exists ({known}) or exists ({known} and {condition}))", values)]
    if before is not None:
        parts.append(("seq < ?", [before]))
    if verbs is not None:
        parts.append(db.among("verb", verbs))
    where, given = join_and(parts)
    sql = f"select {', '.join(FIELDS)} from audit where {db.own_events} and {where} order by seq desc limit ?"
    return [_entry(row) for row in db.every(sql, [*given, rows_limit(limit)])]


def _head(db: Db) -> tuple[int, str]:
    """Return the number and the digest of the last entry."""
    row = db.first(f"select seq, digest from audit where {db.own_events} order by seq desc limit 1")
    return (int(row[0]), str(row[1])) if row else (0, FIRST)


def _lines(
    changes: Sequence[Change], outcomes: Sequence[Outcome]
) -> Iterator[tuple[str, str | None, int | None, str | None]]:
    """Yield verb, record, version and channel of each entry; a change that names the act names all of them."""
    named = next((change.verb for change in changes if isinstance(change, Audit)), None)
    met = False
    for change, outcome in zip(changes, outcomes, strict=True):
        if verb := _verb_of(change, outcome):
            met = met or bool(outcome.records)
            yield from ((named or verb, *_named(record)) for record in outcome.records)
        if ending := _ENDING.get(type(change)):
            met = met or bool(outcome.gone)
            yield from ((ending, id_, None, None) for id_ in outcome.gone)
    if named and not met:
        yield named, None, None, None


def _verb_of(change: Change, outcome: Outcome) -> str | None:
    """Return what a change did to the records of its outcome; None: nothing."""
    if isinstance(change, Put):
        [record] = outcome.records
        merged = record.version > 1 and record.updated_at == change.record.updated_at  # the tags of a duplicate
        if outcome.deduped and not merged:
            return None
        return "put" if record.version == 1 else "update"
    return None if outcome.deduped else _CHANGING.get(type(change))


def _named(record: Record) -> tuple[str, int, str]:
    return record.id, record.version, record.source.channel.value


def _row(entry: AuditEntry) -> tuple[Any, ...]:
    return (
        entry.seq, micros(entry.at), entry.verb, entry.record, entry.version, entry.actor, entry.channel, entry.digest,
    )  # fmt: skip


def _entry(row: Sequence[Any]) -> AuditEntry:
    seq, at, *rest = row
    return AuditEntry(seq=seq, at=moment(at), **dict(zip(FIELDS[2:], rest, strict=True)))

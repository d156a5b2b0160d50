"""Whose turn it is to write: locks on outermost scopes, for one transaction.

Writers of one outermost scope take turns, as writers of one SQLite file do: so a look and the write that follows from
it see the same store.  Writers of different ones do not wait for each other.  A change that concerns all vectors waits
for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from commonplace.model.changes import (
    AdoptEmbedder,
    AppendChunks,
    Archive,
    Cap,
    Change,
    Delete,
    DeleteChunks,
    DeleteDocuments,
    DeleteJobs,
    DropScope,
    Emit,
    Enqueue,
    Fail,
    Finish,
    Heartbeat,
    Load,
    MarkConsolidated,
    Put,
    PutDocument,
    Require,
    Restore,
    SetVectors,
    Supersede,
    SwitchEmbedder,
    Trim,
    TrimDocuments,
)
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.scopes import Scope
from commonplace.stores.postgres.dialect import PostgresDb


def take_turns(db: PostgresDb, changes: Sequence[Change], schema: str, *, embedder: EmbedderIdentity | None) -> None:
    """Wait until no one else writes where these changes will; in one order, so that no two wait for each other."""
    if any(_concerns_all(change, embedder) for change in changes):
        db.run("select pg_advisory_xact_lock(hashtextextended(?, 0))", [schema])
        return
    roots = {root for change in changes for root in _roots(change)}
    if ids := [id_ for change in changes for id_ in _ids(change)]:
        take_turn(db, schema, [])
        sql = "select distinct s.path from record r join scope s on s.id = r.scope where r.id = any(?::text[])"
        roots |= {root_of(Scope.parse(path)) for (path,) in db.every(sql, [ids])}
    take_turn(db, schema, roots)


def take_turn(db: PostgresDb, schema: str, roots: Iterable[str]) -> None:
    """Wait for the turn in these outermost scopes, and until no transaction has all of them."""
    db.run(_TURN, [[schema, *(f"{schema} {root}" for root in sorted(roots))]])


#: One after the other, as they are given; the first together with others.
_TURN = (
    "select case number when 1 then pg_advisory_xact_lock_shared(hashtextextended(name, 0))"
    " else pg_advisory_xact_lock(hashtextextended(name, 0)) end"
    " from unnest(?::text[]) with ordinality turn (name, number)"
)


def _concerns_all(change: Change, embedder: EmbedderIdentity | None) -> bool:
    if isinstance(change, AdoptEmbedder):
        return change.identity != embedder  # the first one stays, and every write with a vector names it again
    return isinstance(change, SetVectors | SwitchEmbedder)


def root_of(scope: Scope) -> str:
    """Return the outermost scope around a scope."""
    return str(Scope(segments=scope.segments[:1]))


def _roots(change: Change) -> Iterator[str]:
    return map(root_of, _scopes(change))


def _scopes(change: Change) -> Iterable[Scope]:  # noqa: PLR0911 - one line per sort of change
    match change:
        case Put():
            return [change.record.scope]
        case Load():
            return [change.versions[-1].scope]
        case Archive() | Restore() | Require() | Delete() | Trim() | DeleteDocuments() | TrimDocuments():
            return change.where.scopes
        case Cap():
            return change.where.scopes | set(change.below)
        case DropScope() | DeleteJobs():
            return [change.scope]
        case Emit():
            return [change.event.scope]
        case PutDocument() | AppendChunks() | DeleteChunks():
            return [change.document.scope]
        case Enqueue():
            return [change.job.scope]
        case Finish() | Fail() | Heartbeat():
            return [change.claim.job.scope]
        case _:  # by id, or of no scope
            return []


def _ids(change: Change) -> Sequence[str]:
    match change:
        case Supersede():
            return [change.id]
        case MarkConsolidated():
            return change.ids
        case _:
            return []

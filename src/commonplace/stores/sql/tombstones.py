"""Tombstones inside a transaction: put, looked up, lifted."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from commonplace.model.changes import LiftTombstones, Outcome, PutTombstones, RequireUnerased
from commonplace.model.errors import ErasedBefore
from commonplace.model.tombstones import BuriedKind, Tombstone
from commonplace.stores.rows import insert_sql, micros, moment

if TYPE_CHECKING:
    from commonplace.stores.rows import Sql
    from commonplace.stores.sql.dialect import Db

TOMBSTONE = ("digest", "erasure", "kind", "owner", "at")
_SELECT = f"select {', '.join(TOMBSTONE)} from tombstone"


def list_tombstones(db: Db, digests: Collection[str] | None) -> list[Tombstone]:
    """Return the tombstones with these digests, or all; by digest, then in the order of the erasures."""
    condition, values = ("", []) if digests is None else _among(db, "digest", digests)
    rows = db.every(f"{_SELECT}{condition} order by digest, erasure", values)
    return [
        Tombstone(digest=digest, erasure=erasure, kind=BuriedKind(kind), owner=owner, at=moment(at))
        for digest, erasure, kind, owner, at in rows
    ]


def _among(db: Db, column: str, allowed: Collection[str]) -> Sql:
    condition, values = db.among(column, allowed)
    return f" where {condition}", values


def put(db: Db, change: PutTombstones) -> Outcome:
    """Store tombstones; one that is there already stays."""
    rows = [(one.digest, one.erasure, one.kind.value, one.owner, micros(one.at)) for one in change.tombstones]
    db.run_each(f"{insert_sql('tombstone', TOMBSTONE)} on conflict do nothing", sorted(rows))
    return Outcome()


def lift(db: Db, change: LiftTombstones) -> Outcome:
    """Erase the tombstones of an erasure, of an owner or of a digest."""
    gone: set[str] = set()
    for column, allowed in (("digest", change.digests), ("owner", change.owners), ("erasure", change.erasures)):
        if allowed:
            condition, values = _among(db, column, allowed)
            gone |= {digest for (digest,) in db.every(f"select digest from tombstone{condition}", values)}
            db.run(f"delete from tombstone{condition}", values)
    return Outcome(gone=tuple(sorted(gone)))


def require_unerased(db: Db, change: RequireUnerased) -> Outcome:
    """Raise ``ErasedBefore`` if one of the digests has a tombstone."""
    condition, values = _among(db, "digest", change.digests)
    if found := db.every(f"{_SELECT}{condition} order by at, digest", values):
        raise ErasedBefore(erasures=tuple(dict.fromkeys(erasure for _, erasure, *_ in found)), at=moment(found[0][4]))
    return Outcome()

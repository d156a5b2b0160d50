"""Vectors inside a transaction: of one embedder, and perhaps those of another one that is being prepared beside it.

Whatever lacks a vector can be listed, embedded by a caller, and set by a reference that holds only while the text is
still the same.  So a gap is filled, and so a whole store is embedded anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from commonplace.model.changes import Outcome, SetVectors
from commonplace.model.errors import Conflict, DimensionMismatch, EmbeddingModelChanged, InvalidInput
from commonplace.model.ports import EmbedderIdentity, UnembeddedText
from commonplace.model.queries import Vector
from commonplace.stores.rows import Sql
from commonplace.stores.scoring import checked_vector

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

#: The keys under which a store notes its embedder, and the one whose vectors are being built.
PRESENT, COMING = ("embedder", "dimensions"), ("next_embedder", "next_dimensions")
_TEXT = (
    "case e.id % 4 when 0 then (select content from record where row = e.id / 4)"
    " when 1 then (select text from chunk where row = e.id / 4)"
    " else (select content from version where row = e.id / 4) end"
)


# Which embedder


def embedder(db: Db, keys: tuple[str, str] = PRESENT) -> EmbedderIdentity | None:
    """Return which embedder the vectors come from; or those that are being built."""
    return identity_at(dict(db.every(*embedder_sql(db, keys))), keys)


def embedder_sql(db: Db, keys: tuple[str, str] = PRESENT) -> Sql:
    """Return the question for what ``identity_at`` reads."""
    condition, values = db.among("key", keys)
    return f"select key, value from {db.notes} where {condition}", values


def identity_at(held: Mapping[Any, Any], keys: tuple[str, str] = PRESENT) -> EmbedderIdentity | None:
    """Decode the notes about an embedder."""
    return EmbedderIdentity(name=held[keys[0]], dimensions=int(held[keys[1]])) if held else None


def adopt(db: Db, identity: EmbedderIdentity) -> Outcome:
    """Name the first embedder; refuse another one."""
    held = embedder(db)
    if held is None:
        _name(db, PRESENT, identity)
    elif held.name != identity.name:
        raise EmbeddingModelChanged(stored=held.name, offered=identity.name)
    elif held.dimensions != identity.dimensions:
        raise DimensionMismatch(stored=held.dimensions, offered=identity.dimensions)
    return Outcome()


def switch(db: Db, identity: EmbedderIdentity) -> Outcome:
    """Replace the vectors in use by those that were built beside them, if these are complete."""
    if identity == embedder(db):
        return Outcome()
    if missing := count_unembedded(db, identity):
        raise Conflict(f"{missing} texts have no vector of {identity.name!r} yet: the old ones stay in use")
    if embedder(db, COMING) != identity:
        _discard(db)
    db.switch_vectors()
    _discard(db)
    _name(db, PRESENT, identity)
    return Outcome()


def _name(db: Db, keys: tuple[str, str], identity: EmbedderIdentity) -> None:
    db.note(keys[0], identity.name)
    db.note(keys[1], identity.dimensions)


def _discard(db: Db) -> None:
    db.run("delete from beside")
    condition, values = db.among("key", COMING)
    db.run(f"delete from {db.notes} where {condition}", values)


# One vector


def put(db: Db, entry: int, vector: Vector) -> None:
    """Give an entry its vector."""
    held = embedder(db)
    if held is None or held.dimensions != len(vector):
        raise refusal(held, vector)
    db.save_vector(entry, checked_vector(vector, held), coming=False)


def refusal(held: EmbedderIdentity | None, vector: Vector) -> InvalidInput | DimensionMismatch:
    """Return why a store of that embedder, or of none, refuses a vector."""
    if held is None:
        return InvalidInput("a vector cannot be kept before the store knows which embedder it comes from")
    return DimensionMismatch(stored=held.dimensions, offered=len(vector))


def drop(db: Db, entry: int) -> None:
    """Delete the vectors of an entry: its text is another one now."""
    for table in (db.vectors, "beside"):
        db.run(f"delete from {table} where entry = ?", [entry])


# What has none


def list_unembedded(db: Db, identity: EmbedderIdentity, limit: int) -> list[UnembeddedText]:
    """Return texts that have no vector of an embedder, by the number of their entry."""
    sql = f"select e.id, {_TEXT} from entry e where {_lacks(db, identity)} order by e.id limit ?"
    return [UnembeddedText(ref=_ref(entry, text), text=text) for entry, text in db.every(sql, [limit])]


def count_unembedded(db: Db, identity: EmbedderIdentity) -> int:
    """Return how many they are."""
    [(count,)] = db.every(f"select count(*) from entry e where {_lacks(db, identity)}")
    return int(count)


def set_vectors(db: Db, change: SetVectors) -> Outcome:
    """Fill gaps, or build a set beside the one in use; a text that has changed meanwhile keeps its gap."""
    if embedder(db) is None:
        _name(db, PRESENT, change.identity)
    coming = embedder(db) != change.identity
    if coming and embedder(db, COMING) != change.identity:
        _discard(db)
        _name(db, COMING, change.identity)
    checked = {ref: checked_vector(vector, change.identity) for ref, vector in change.vectors.items()}
    for ref, entry in _entries(db, checked).items():
        db.save_vector(entry, checked[ref], coming=coming)
    return Outcome()


def _lacks(db: Db, identity: EmbedderIdentity) -> str:
    """Return a condition on entries under the alias `e`; what has no words is not searched."""
    if identity == (embedder(db) or identity):
        return f"e.length > 0 and not exists (select 1 from {db.vectors} m where m.entry = e.id)"
    if identity == embedder(db, COMING):
        return "e.length > 0 and not exists (select 1 from beside m where m.entry = e.id)"
    return "e.length > 0"


def _ref(entry: int, text: str) -> str:
    """Return an entry and its text: numbers are used again, and only the same text has the same vector."""
    from hashlib import sha256  # noqa: PLC0415 - recall must start without

    return f"{entry}:{sha256(text.encode()).hexdigest()[:32]}"


def _entries(db: Db, refs: Mapping[str, Any]) -> dict[str, int]:
    """Return the entries whose text is still what it was when they were listed."""
    numbers = [int(number) for number in (ref.partition(":")[0] for ref in refs) if number.isdecimal()]
    condition, values = db.among("e.id", numbers)
    rows = db.every(f"select e.id, {_TEXT} from entry e where {condition}", values)
    found = {_ref(entry, text): entry for entry, text in rows}
    return {ref: found[ref] for ref in refs if ref in found}

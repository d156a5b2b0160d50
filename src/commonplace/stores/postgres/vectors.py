"""Vectors inside a transaction: of one embedder, and perhaps those of another one beside them.

As in SQLite, whatever lacks a vector can be listed, embedded by somebody else, and handed in by a reference that holds
only while the text is still the same.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from hashlib import sha256

from commonplace.model.changes import Outcome, SetVectors
from commonplace.model.errors import Conflict, DimensionMismatch, EmbeddingModelChanged, InvalidInput
from commonplace.model.ports import EmbedderIdentity, Unembedded
from commonplace.model.queries import Vector
from commonplace.stores.postgres.connection import Db, every, first, run, run_each
from commonplace.stores.rows import Sql
from commonplace.stores.scoring import as_kept

NOTED = "setting"  # where it is kept which embedder the vectors come from
_PRESENT, _NEXT = ("embedder", "dimensions"), ("next_embedder", "next_dimensions")  # its keys
_TEXTS = (
    "entry e left join record r on r.row = e.record left join version v on v.row = e.version"
    " left join chunk c on c.row = e.chunk"
)
_TEXT = "coalesce(r.content, v.content, c.text)"


# Which embedder


def embedder(db: Db, *, coming: bool = False) -> EmbedderIdentity | None:
    """Which embedder the vectors come from; or those that are built beside them."""
    return _identity(db, _NEXT if coming else _PRESENT)


def adopt(db: Db, identity: EmbedderIdentity) -> Outcome:
    """Name the first embedder; refuse another one."""
    held = embedder(db)
    if held is None:
        _name(db, _PRESENT, identity)
    elif held.name != identity.name:
        raise EmbeddingModelChanged(stored=held.name, offered=identity.name)
    elif held.dimensions != identity.dimensions:
        raise DimensionMismatch(stored=held.dimensions, offered=identity.dimensions)
    return Outcome()


def switch(db: Db, identity: EmbedderIdentity) -> Outcome:
    """Put the set that was built beside in the place of the one in use, if it is whole."""
    if identity == embedder(db):
        return Outcome()
    if missing := count_unembedded(db, identity):
        raise Conflict(f"{missing} texts have no vector of {identity.name!r} yet: the old ones stay in use")
    if _identity(db, _NEXT) != identity:
        _discard(db)
    run(db, "delete from embedding")
    run(db, "insert into embedding select entry, data from beside")
    _discard(db)
    _name(db, _PRESENT, identity)
    return Outcome()


#: The question which embedder the vectors come from.
EMBEDDER: Sql = (f"select key, value from {NOTED} where key = any(?::text[])", [list(_PRESENT)])


def embedder_at(rows: Iterable[tuple[str, str]]) -> EmbedderIdentity | None:
    """Rows of ``EMBEDDER`` as what they name."""
    return _named(dict(rows), _PRESENT)


def _identity(db: Db, keys: tuple[str, str]) -> EmbedderIdentity | None:
    return _named(dict(every(db, EMBEDDER[0], [list(keys)])), keys)


def _named(held: Mapping[str, str], keys: tuple[str, str]) -> EmbedderIdentity | None:
    return EmbedderIdentity(name=held[keys[0]], dimensions=int(held[keys[1]])) if held else None


def _name(db: Db, keys: tuple[str, str], identity: EmbedderIdentity) -> None:
    sql = f"insert into {NOTED} values (?, ?) on conflict (key, tenant) do update set value = excluded.value"
    run_each(db, sql, list(zip(keys, (identity.name, str(identity.dimensions)), strict=True)))


def _discard(db: Db) -> None:
    run(db, "delete from beside")
    run(db, f"delete from {NOTED} where key = any(?::text[])", [list(_NEXT)])


# One vector


def put(db: Db, entry: int, vector: Vector) -> None:
    """Give an entry its vector."""
    held = embedder(db)
    if held is None or held.dimensions != len(vector):
        raise refusal(held, vector)
    _keep(db, "embedding", entry, as_kept(vector, held))


def refusal(held: EmbedderIdentity | None, vector: Vector) -> InvalidInput | DimensionMismatch:
    """Why a vector is not kept by a store of that embedder, or of none."""
    if held is None:
        return InvalidInput("a vector cannot be kept before the store knows which embedder it comes from")
    return DimensionMismatch(stored=held.dimensions, offered=len(vector))


def drop(db: Db, entry: int) -> None:
    """Take the vectors of an entry away: its text is another one now."""
    run(db, "delete from embedding where entry = ?", [entry])
    run(db, "delete from beside where entry = ?", [entry])


def copy(db: Db, entry: int, to: int) -> None:
    """Give another entry, of the same text, the same vectors."""
    for table in ("embedding", "beside"):
        run(db, f"insert into {table} select ?::bigint, data from {table} where entry = ?", [to, entry])


def _keep(db: Db, table: str, entry: int, numbers: array[float]) -> None:
    sql = f"insert into {table} values (?, ?) on conflict (entry) do update set data = excluded.data"
    run(db, sql, [entry, numbers])


# What has none


def unembedded(db: Db, identity: EmbedderIdentity, limit: int) -> list[Unembedded]:
    """Texts that have no vector of an embedder, by the number of their entry."""
    sql = f"select e.id, {_TEXT} from {_TEXTS} where {_lacks(db, identity)} order by e.id limit ?"
    return [Unembedded(ref=_ref(entry, text), text=text) for entry, text in every(db, sql, [limit])]


def count_unembedded(db: Db, identity: EmbedderIdentity) -> int:
    """How many they are."""
    row = first(db, f"select count(*) from entry e where {_lacks(db, identity)}")
    return int(row[0]) if row else 0


def set_vectors(db: Db, change: SetVectors) -> Outcome:
    """Fill gaps, or build a set beside the one in use; a text that has changed meanwhile keeps its gap."""
    if embedder(db) is None:
        _name(db, _PRESENT, change.identity)
    present = embedder(db) == change.identity
    if not present and _identity(db, _NEXT) != change.identity:
        _discard(db)
        _name(db, _NEXT, change.identity)
    checked = {ref: as_kept(vector, change.identity) for ref, vector in change.vectors.items()}
    for ref, entry in _referred(db, list(checked)).items():
        _keep(db, "embedding" if present else "beside", entry, checked[ref])
    return Outcome()


def _lacks(db: Db, identity: EmbedderIdentity) -> str:
    """A condition on entries under the alias `e`; what has no words is for nobody to find."""
    if identity == (embedder(db) or identity):
        return "e.length > 0 and not exists (select 1 from embedding m where m.entry = e.id)"
    if identity == _identity(db, _NEXT):
        return "e.length > 0 and not exists (select 1 from beside m where m.entry = e.id)"
    return "e.length > 0"


def _ref(entry: int, text: str) -> str:
    """An entry and what it says: only the same text has the same vector."""
    return f"{entry}:{sha256(text.encode()).hexdigest()[:32]}"


def _referred(db: Db, refs: list[str]) -> dict[str, int]:
    """The entries that still say what they said when they were listed."""
    numbers = [int(number) for number in (ref.partition(":")[0] for ref in refs) if number.isdecimal()]
    rows = every(db, f"select e.id, {_TEXT} from {_TEXTS} where e.id = any(?::bigint[])", [numbers])
    found = {_ref(entry, text): entry for entry, text in rows}
    return {ref: found[ref] for ref in refs if ref in found}

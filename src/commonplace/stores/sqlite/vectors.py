"""Vectors inside a transaction: each with its code, of one embedder, and perhaps those of another one beside them.

Whatever lacks a vector can be listed, embedded by somebody else, and handed in by a reference that holds only while the
text is still the same.  So a gap is filled, and so a whole store is embedded anew.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import apsw

from commonplace.model.changes import Outcome, SetVectors
from commonplace.model.errors import Conflict, DimensionMismatch, EmbeddingModelChanged, InvalidInput
from commonplace.model.ports import EmbedderIdentity, Unembedded
from commonplace.model.queries import Vector
from commonplace.stores.codes import STAMP_BYTES, stamped
from commonplace.stores.scoring import as_kept
from commonplace.stores.sqlite.connection import every, first

FLOAT_BYTES = 4
_PRESENT, _NEXT = ("embedder", "dimensions"), ("next_embedder", "next_dimensions")  # keys of `meta`
_TEXT = (
    "case {0} % 4 when 0 then (select content from record where row = {0} / 4)"
    " when 1 then (select text from chunk where row = {0} / 4)"
    " else (select content from version where row = {0} / 4) end"
)


# Which embedder


def embedder(db: apsw.Connection) -> EmbedderIdentity | None:
    """Which embedder the vectors come from."""
    return _identity(db, _PRESENT)


def adopt(db: apsw.Connection, identity: EmbedderIdentity) -> Outcome:
    """Name the first embedder; refuse another one."""
    held = embedder(db)
    if held is None:
        _name(db, _PRESENT, identity)
    elif held.name != identity.name:
        raise EmbeddingModelChanged(stored=held.name, offered=identity.name)
    elif held.dimensions != identity.dimensions:
        raise DimensionMismatch(stored=held.dimensions, offered=identity.dimensions)
    return Outcome()


def switch(db: apsw.Connection, identity: EmbedderIdentity) -> Outcome:
    """Put the set that was built beside in the place of the one in use, if it is whole."""
    if identity == embedder(db):
        return Outcome()
    if missing := count_unembedded(db, identity):
        raise Conflict(f"{missing} texts have no vector of {identity.name!r} yet: the old ones stay in use")
    if _identity(db, _NEXT) != identity:
        _discard(db)
    db.execute("delete from code")
    db.execute("delete from vector")
    db.execute("insert into vector select e.id, e.bucket, b.data from beside b join entry e on e.id = b.entry")
    columns = "e.bucket, e.id, e.expires, e.kind, e.category, b.code"
    db.execute(f"insert into code select {columns} from beside b join entry e on e.id = b.entry order by 1, 2")
    _discard(db)
    _name(db, _PRESENT, identity)
    return Outcome()


def _identity(db: apsw.Connection, keys: tuple[str, str]) -> EmbedderIdentity | None:
    held = dict(every(db, "select key, value from meta where key in (?, ?)", keys))
    return EmbedderIdentity(name=held[keys[0]], dimensions=held[keys[1]]) if held else None


def _name(db: apsw.Connection, keys: tuple[str, str], identity: EmbedderIdentity) -> None:
    rows = zip(keys, (identity.name, identity.dimensions), strict=True)
    db.executemany("insert or replace into meta values (?, ?)", list(rows))


def _discard(db: apsw.Connection) -> None:
    db.execute("delete from beside")
    db.execute("delete from meta where key in (?, ?)", _NEXT)


# One vector


def put(db: apsw.Connection, entry: int, vector: Vector) -> None:
    """Give an entry its vector."""
    held = embedder(db)
    if held is None:
        raise InvalidInput("a vector cannot be kept before the store knows which embedder it comes from")
    checked = as_kept(vector, held)
    _keep(db, entry, checked.tobytes(), stamped(entry, checked))


def drop(db: apsw.Connection, entry: int) -> None:
    """Take the vectors of an entry away: its text is another one now."""
    db.execute("delete from vector where entry = ?", (entry,))
    db.execute("delete from beside where entry = ?", (entry,))


def copy(db: apsw.Connection, entry: int, to: int) -> None:
    """Give another entry, of the same text, the same vectors."""
    held = "select v.data, c.data from vector v join code c on c.bucket = v.bucket and c.id = v.entry where v.entry = ?"
    for data, code in every(db, held, (entry,)):
        _keep(db, to, data, _restamped(code, to))
    for data, code in every(db, "select data, code from beside where entry = ?", (entry,)):
        db.execute("insert or replace into beside values (?, ?, ?)", (to, data, _restamped(code, to)))


def _keep(db: apsw.Connection, entry: int, data: bytes, code: bytes) -> None:
    db.execute("insert or replace into vector select id, bucket, ? from entry where id = ?", (data, entry))
    columns = "bucket, id, expires, kind, category, ?"
    db.execute(f"insert or replace into code select {columns} from entry where id = ?", (code, entry))


def _restamped(code: bytes, entry: int) -> bytes:
    return entry.to_bytes(STAMP_BYTES, "little") + code[STAMP_BYTES:]


# What has none


def unembedded(db: apsw.Connection, identity: EmbedderIdentity, limit: int) -> list[Unembedded]:
    """Texts that have no vector of an embedder, by the number of their entry."""
    sql = f"select e.id, {_TEXT.format('e.id')} from entry e where {_lacks(db, identity)} order by e.id limit ?"
    return [Unembedded(ref=_ref(entry, text), text=text) for entry, text in every(db, sql, (limit,))]


def count_unembedded(db: apsw.Connection, identity: EmbedderIdentity) -> int:
    """How many they are."""
    row = first(db, f"select count(*) from entry e where {_lacks(db, identity)}")
    return int(row[0]) if row else 0


def set_vectors(db: apsw.Connection, change: SetVectors) -> Outcome:
    """Fill gaps, or build a set beside the one in use; a text that has changed meanwhile keeps its gap."""
    if embedder(db) is None:
        _name(db, _PRESENT, change.identity)
    present = embedder(db) == change.identity
    if not present and _identity(db, _NEXT) != change.identity:
        _discard(db)
        _name(db, _NEXT, change.identity)
    for ref, vector in change.vectors.items():
        checked = as_kept(vector, change.identity)
        entry = _referred(db, ref)
        if entry is None:
            continue
        data, code = checked.tobytes(), stamped(entry, checked)
        if present:
            _keep(db, entry, data, code)
        else:
            db.execute("insert or replace into beside values (?, ?, ?)", (entry, data, code))
    return Outcome()


def _lacks(db: apsw.Connection, identity: EmbedderIdentity) -> str:
    """A condition on entries under the alias `e`; what has no words is for nobody to find."""
    if identity == (embedder(db) or identity):
        return "e.length > 0 and not exists (select 1 from vector v where v.entry = e.id)"
    if identity == _identity(db, _NEXT):
        return "e.length > 0 and not exists (select 1 from beside b where b.entry = e.id)"
    return "e.length > 0"


def _ref(entry: int, text: str) -> str:
    """An entry and what it says: numbers are used again, and only the same text has the same vector."""
    from hashlib import sha256  # noqa: PLC0415 - recall must start without

    return f"{entry}:{sha256(text.encode()).hexdigest()[:32]}"


def _referred(db: apsw.Connection, ref: str) -> int | None:
    number = ref.partition(":")[0]
    entry = int(number) if number.isdecimal() else -1
    row = first(db, f"select e.id, {_TEXT.format('e.id')} from entry e where e.id = ?", (entry,))
    return entry if row and _ref(*row) == ref else None


# Whether codes fit


def encode_all(db: apsw.Connection) -> None:
    """Make all codes anew; a vector of a wrong length is dropped, and will be missed and made again."""
    db.execute("delete from code")
    for table, keys in (("vector", _PRESENT), ("beside", _NEXT)):
        held = _identity(db, keys)
        bytes_each = FLOAT_BYTES * held.dimensions if held else 0
        db.execute(f"delete from {table} where length(data) <> ? or entry not in (select id from entry)", (bytes_each,))
    for (entry,) in every(db, "select entry from vector order by bucket, entry"):
        [(data,)] = every(db, "select data from vector where entry = ?", (entry,))
        _keep(db, entry, data, stamped(entry, array("f", data)))
    for (entry,) in every(db, "select entry from beside"):
        [(data,)] = every(db, "select data from beside where entry = ?", (entry,))
        db.execute("update beside set code = ? where entry = ?", (stamped(entry, array("f", data)), entry))


def misfits(db: apsw.Connection) -> int:
    """How many vectors have no code that fits them, or are of a wrong length, or of nothing; and codes of no vector."""
    wanted = "select e.bucket, e.id, e.expires, e.kind, e.category from vector v join entry e on e.id = v.entry"
    held = "select bucket, id, expires, kind, category from code"
    sql = f"select count(*) from (select * from ({held}) except select * from ({wanted}))"
    astray = int((first(db, sql) or (0,))[0])
    return astray + sum(1 for entry, data, code, length in _pairs(db) if not _fits(entry, data, code, length))


def _pairs(db: apsw.Connection) -> Iterator[tuple[int, bytes, bytes | None, int]]:
    coded = "vector v left join code c on c.bucket = v.bucket and c.id = v.entry"
    for sql, keys in (
        (f"select v.entry, v.data, c.data from {coded}", _PRESENT),
        ("select entry, data, code from beside", _NEXT),
    ):
        identity = _identity(db, keys)
        for entry, data, code in db.execute(sql):
            yield entry, data, code, FLOAT_BYTES * identity.dimensions if identity else 0


def _fits(entry: int, data: bytes, code: bytes | None, length: int) -> bool:
    return len(data) == length and code == stamped(entry, array("f", data))

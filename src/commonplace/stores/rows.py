"""Records as rows and back: the columns, the codecs and the hashes that both databases share.  Pure: no connection."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

from commonplace.model.errors import ADVICE, StoreDamaged
from commonplace.model.records import EMPTY, UNUSED, Channel, Json, Kind, Record, Source, Trust, Usage
from commonplace.model.scopes import Scope

try:  # the plain ones of the interpreter: `hashlib` and `json` are too much to load for a recall
    from _json import encode_basestring as _quote

    if sys.version_info >= (3, 12):
        from _sha2 import sha256
    else:
        from _sha256 import sha256  # type: ignore[import-not-found, unused-ignore]  # typeshed begins at 3.12
except ImportError:
    from hashlib import sha256
    from json.encoder import py_encode_basestring as _quote

Sql: TypeAlias = tuple[str, list[Any]]  #: a statement, or a part of one, and the values for its question marks

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

#: By value: looking a member up in the enumeration itself takes longer than all the rest of a field.
_UNREADABLE = (ValueError, LookupError, TypeError, OverflowError)  # what decoding a damaged row raises
_KINDS = {kind.value: kind for kind in Kind}
_CHANNELS = {channel.value: channel for channel in Channel}
_TRUSTS = {trust.value: trust for trust in Trust}


def micros(moment: datetime | None) -> int | None:
    """Return the microseconds since 1970."""
    return None if moment is None else (moment - EPOCH) // MICROSECOND


@lru_cache(maxsize=4096)
def moment(value: int | None) -> Any:
    """Return the moment so many microseconds after 1970; None for None.  Most rows have one moment twice."""
    return None if value is None else EPOCH + timedelta(0, 0, value)  # by place: a keyword takes half as long again


def to_json(value: Json | Mapping[str, Json] | Sequence[str]) -> str:
    """Return JSON in one canonical form: equal values give equal text."""
    return _encoder()(value)


@lru_cache(maxsize=1)
def _encoder() -> Callable[[Any], str]:
    """Build the encoder once: ``dumps`` builds one for every call that has options."""
    from json import JSONEncoder  # noqa: PLC0415 - see from_json

    return JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def from_json(text: str) -> Any:
    """Parse what ``to_json`` wrote; the library is loaded only for what is not empty, because a recall pays for it."""
    if text in _EMPTIES:
        return _EMPTIES[text]()
    from json import loads  # noqa: PLC0415

    return loads(text)


_EMPTIES: Mapping[str, Callable[[], Any]] = {"[]": list, "{}": dict}


@lru_cache(maxsize=4096)
def scope_at(path: str) -> Scope:
    """Parse a scope once: scopes are few and every row has one."""
    return Scope.parse(path)


# Records


@lru_cache(maxsize=4096)
def _tags(text: str) -> frozenset[str]:
    """Parse tags once: few sets of them are used again and again."""
    return frozenset(from_json(text))


def _moment_of(field: str) -> tuple[str, Callable[[Record], Any], Callable[[Any], Any]]:
    read = attrgetter(field)
    return field, lambda record: micros(read(record)), moment


def _flag_of(field: str) -> tuple[str, Callable[[Record], Any], Callable[[Any], Any]]:
    read = attrgetter(field)
    return field, lambda record: int(read(record)), bool


#: What a record is made of: each column, how it is written, and how it is read (None: as it is).
#: Insert, select, hash, versions and items derive from this.  A new field of ``Record`` is one line at the end, and a
#: nullable column in a migration of each database.  In a row the scope is a number; ``_records`` joins the columns of
#: the source.
_RECORD: tuple[tuple[str, Callable[[Record], Any], Callable[[Any], Any] | None], ...] = (
    ("id", attrgetter("id"), None),
    ("scope", lambda record: str(record.scope), scope_at),
    ("kind", attrgetter("kind.value"), _KINDS.__getitem__),
    ("category", attrgetter("category"), None),
    ("content", attrgetter("content"), None),
    ("key", attrgetter("key"), None),
    ("value", lambda record: None if record.value is None else to_json(record.value),
     lambda text: None if text is None else from_json(text)),
    ("tags", lambda record: to_json(sorted(record.tags)), _tags),
    ("metadata", lambda record: to_json(dict(record.metadata)),
     lambda text: EMPTY if text == "{}" else from_json(text)),
    ("channel", attrgetter("source.channel.value"), None),
    ("ref", attrgetter("source.ref"), None),
    ("parents", lambda record: to_json(record.source.parents), None),
    ("trust", lambda record: int(record.trust), _TRUSTS.__getitem__),
    _flag_of("pinned"),
    ("version", attrgetter("version"), None),
    _moment_of("created_at"),
    _moment_of("updated_at"),
    _moment_of("occurred_at"),
    _moment_of("expires_at"),
    _moment_of("archived_at"),
    ("superseded_by", attrgetter("superseded_by"), None),
    _flag_of("held"),
    _moment_of("consolidated_at"),
    _moment_of("approved_at"),
)  # fmt: skip
_ALWAYS_HASHED = 23  # columns of the first schema; later ones are hashed where not null: earlier rows still verify

FIELDS = tuple(column for column, _, _ in _RECORD)
_SCOPE, _CHANNEL, _VERSION = FIELDS.index("scope"), FIELDS.index("channel"), FIELDS.index("version")
_NAMES = (*FIELDS[:_CHANNEL], "source", *FIELDS[_CHANNEL + 3 :], "usage")
_ENCODERS = tuple(encode for _, encode, _ in _RECORD)
_DECODERS = tuple((place, decode) for place, (_, _, decode) in enumerate(_RECORD) if decode is not None)
#: The columns that both databases have; each adds its own (``Db.columns``).
SHARED_COLUMNS = (*FIELDS, "valid_from", "digest", "hash")
#: The columns of a mirrored file but for its folder and its path; of a chunk but for its document and its scope.
FILE = ("record", "version", "digest", "stamp")
CHUNK_FIELDS = ("seq", "ref", "text", "speaker", "occurred_at", "trust", "hash")


def stored_row(record: Record, scope: int, *, valid_from: datetime) -> list[Any]:
    """Encode a record as values for ``SHARED_COLUMNS``; ``scope`` is the row of its scope."""
    row = [encode(record) for encode in _ENCODERS]
    hashed = row_hash(row)
    row[_SCOPE] = scope
    return [*row, micros(valid_from), digest(record), hashed]


def row_record(row: Sequence[Any]) -> Record:
    """Decode a row of ``select_list``; raise ``StoreDamaged`` if it is not what was written."""
    return row_records([row])[0]


def row_records(rows: Sequence[Sequence[Any]], *, damaged: list[str] | None = None) -> list[Record]:
    """Decode rows of ``select_list``.

    A row that is not what was written raises ``StoreDamaged``; with ``damaged`` it is left out, and named there.
    """
    return [record for record in records_or_none(rows, damaged) if record is not None]


def records_or_none(rows: Sequence[Sequence[Any]], damaged: list[str] | None) -> list[Record | None]:
    """Decode rows of ``select_list``, with None in the place of each that is left out."""
    try:
        if all(row_hash(row[: len(FIELDS)]) == row[-1] for row in rows):
            return [*decode_rows([row[:-1] for row in rows])]
        error: Exception | None = None
    except _UNREADABLE as raised:
        error = raised
    if len(rows) > 1:  # which one is it?
        return [record for row in rows for record in records_or_none([row], damaged)]
    what = f"version {rows[0][_VERSION]} of record {rows[0][0]!r} {_why(error)}"
    if damaged is None:
        raise StoreDamaged(what + ADVICE) from error
    damaged.append(f"{what}, so it is left out{ADVICE}")
    return [None]


def _why(error: Exception | None) -> str:
    return f"cannot be read ({error})" if error else "is damaged: it is not what was written"


def decode_rows(rows: Sequence[Sequence[Any]]) -> list[Record]:
    """Decode rows of ``select_list`` without their hashes, whatever these say."""
    return _records(rows) if rows else []


def _records(rows: Sequence[Sequence[Any]]) -> list[Record]:
    """Decode column by column: a loop over the fields of each row takes a quarter longer."""
    columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
    for place, decode in _DECODERS:
        columns[place] = map(decode, columns[place])
    columns[_CHANNEL : _CHANNEL + 3] = [map(_source, *columns[_CHANNEL : _CHANNEL + 3])]
    columns[-2:] = [map(_usage, *columns[-2:])]
    return [Record(**dict(zip(_NAMES, values, strict=True))) for values in zip(*columns, strict=True)]


def _usage(recalls: int | None, recalled: int | None) -> Usage:
    return UNUSED if recalls is None else Usage(recalls=recalls, last_recalled_at=moment(recalled))


def _source(channel: str, ref: str | None, parents: str) -> Source:
    if ref is None and parents == "[]":
        return _plain_source(channel)
    return Source(channel=_CHANNELS[channel], ref=ref, parents=tuple(from_json(parents)))


@lru_cache(maxsize=16)
def _plain_source(channel: str) -> Source:
    return Source(channel=_CHANNELS[channel])


@lru_cache(maxsize=16)
def select_list(alias: str) -> str:
    """Return what ``row_record`` reads, from a record or version under that alias, its scope `s` and its usage `u`."""
    return f"{columns_sql(FIELDS, alias)}, u.recalls, u.last_recalled_at, {alias}.hash"


def columns_sql(columns: Collection[str], alias: str) -> str:
    """List columns under an alias; of the scope its path, under the alias `s`."""
    return ", ".join("s.path" if column == "scope" else f"{alias}.{column}" for column in columns)


def digest(record: Record) -> str:
    """Hash the content, key and value: two live records of one scope and kind with the same digest are duplicates."""
    return sha256_of(to_json([record.content, record.key, record.value]))


def row_hash(row: Sequence[Any]) -> str:
    """Hash a row of ``FIELDS`` with the path of its scope, so that damage is noticed."""
    later = zip(FIELDS[_ALWAYS_HASHED:], row[_ALWAYS_HASHED:], strict=True)
    named = [f"[{_quote(name)},{_plain(value)}]" for name, value in later if value is not None]
    return sha256_of(f"[{','.join([*map(_plain, row[:_ALWAYS_HASHED]), *named])}]")


def values_hash(values: Sequence[Any]) -> str:
    """Hash the columns of a document or a passage, likewise."""
    return sha256_of(f"[{','.join(map(_plain, values))}]")


def is_sound(values: Sequence[Any], held: str | None) -> bool:
    """Return whether columns have the hash that they were written with; rows of an early schema may have none."""
    try:
        return held is None or values_hash(values) == held
    except UnicodeError:
        return False


def _plain(value: str | int | None) -> str:
    """Return a column as ``to_json`` writes it, in a quarter of the time: every row that is read is hashed."""
    return _quote(value) if isinstance(value, str) else "null" if value is None else repr(value)


def sha256_of(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return str(sha256(text.encode()).hexdigest())


@lru_cache(maxsize=64)
def insert_sql(table: str, columns: tuple[str, ...]) -> str:
    """Return the statement that inserts a row of these columns."""
    return f"insert into {table} ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"

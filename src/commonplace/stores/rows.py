"""Records to rows and back, and filters to SQL.  Pure: no connection is seen here.

What both databases share lives here: the columns, the codecs, the hashes, the one SQL form of "what is live".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeAlias

from commonplace.model.errors import StoreDamaged
from commonplace.model.jobs import Job, JobState, Status
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import EMPTY, UNUSED, Channel, Json, Kind, Record, Source, Trust, Usage
from commonplace.model.scopes import Scope

Sql: TypeAlias = tuple[str, list[Any]]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MARKS_MOST = 500  # a statement has 32,766 places, and a long one takes longer to parse than a list to look through

#: The columns of a record that its value holds, in the order of ``record_row``; `scope` is the row of its scope.
FIELDS = (
    "id", "scope", "kind", "category", "content", "key", "value", "tags", "metadata", "channel", "ref", "parents",
    "trust", "pinned", "version", "created_at", "updated_at", "occurred_at", "expires_at", "archived_at",
    "superseded_by", "held", "consolidated_at",
)  # fmt: skip
#: All columns of a record: those, and what the store derives from them.
COLUMNS = (*FIELDS, "valid_from", "digest", "hash", "terms", "length")


def micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970."""
    return None if moment is None else (moment - EPOCH) // MICROSECOND


def moment(value: int | None) -> Any:
    """The moment so many microseconds after 1970; None for none."""
    return None if value is None else EPOCH + timedelta(microseconds=value)


def packed(value: Json | Mapping[str, Json] | Sequence[str]) -> str:
    """JSON in one canonical form: equal values give equal text."""
    return _encoder()(value)


@lru_cache(maxsize=1)
def _encoder() -> Callable[[Any], str]:
    """Made once: ``dumps`` makes one for every call that is told how to write."""
    from json import JSONEncoder  # noqa: PLC0415 - see unpacked

    return JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def unpacked(text: str) -> Any:
    """What ``packed`` wrote; the library is loaded only for what is not empty, because a recall pays for it."""
    if text in _EMPTIES:
        return _EMPTIES[text]()
    from json import loads  # noqa: PLC0415

    return loads(text)


_EMPTIES: Mapping[str, Callable[[], Any]] = {"[]": list, "{}": dict}


def record_row(record: Record, scope: int) -> tuple[Any, ...]:
    """A record as values for ``FIELDS``."""
    return (
        record.id,
        scope,
        record.kind.value,
        record.category,
        record.content,
        record.key,
        None if record.value is None else packed(record.value),
        packed(sorted(record.tags)),
        packed(dict(record.metadata)),
        record.source.channel.value,
        record.source.ref,
        packed(record.source.parents),
        int(record.trust),
        int(record.pinned),
        record.version,
        micros(record.created_at),
        micros(record.updated_at),
        micros(record.occurred_at),
        micros(record.expires_at),
        micros(record.archived_at),
        record.superseded_by,
        int(record.held),
        micros(record.consolidated_at),
    )


def row_record(row: Sequence[Any]) -> Record:
    """A row of ``select_list`` as a record; one that makes no sense was damaged."""
    try:
        return _record(row)
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise StoreDamaged(f"record {row[0]!r} cannot be read ({error}); run `commonplace doctor`") from error


def _record(row: Sequence[Any]) -> Record:
    (id_, path, kind, category, content, key, value, tags, metadata, channel, ref, parents, trust, pinned, version,
     created, updated, occurred, expires, archived, superseded, held, marked, recalls, recalled) = row  # fmt: skip
    return Record(
        id=id_,
        scope=scope_at(path),
        kind=_KINDS[kind],
        category=category,
        content=content,
        key=key,
        value=None if value is None else unpacked(value),
        tags=frozenset() if tags == "[]" else frozenset(unpacked(tags)),
        metadata=EMPTY if metadata == "{}" else unpacked(metadata),
        source=_source(channel, ref, parents),
        trust=_TRUSTS[trust],
        pinned=bool(pinned),
        version=version,
        created_at=moment(created),
        updated_at=moment(updated),
        occurred_at=moment(occurred),
        expires_at=moment(expires),
        archived_at=moment(archived),
        superseded_by=superseded,
        held=bool(held),
        consolidated_at=moment(marked),
        usage=UNUSED if recalls is None else Usage(recalls=recalls, last_recalled_at=moment(recalled)),
    )


#: By value: asking the enumeration itself takes longer than all the rest of a field.
_KINDS = {kind.value: kind for kind in Kind}
_CHANNELS = {channel.value: channel for channel in Channel}
_TRUSTS = {trust.value: trust for trust in Trust}


def _source(channel: str, ref: str | None, parents: str) -> Source:
    if ref is None and parents == "[]":
        return _plain_source(channel)
    return Source(channel=_CHANNELS[channel], ref=ref, parents=tuple(unpacked(parents)))


@lru_cache(maxsize=16)
def _plain_source(channel: str) -> Source:
    return Source(channel=_CHANNELS[channel])


@lru_cache(maxsize=4096)
def scope_at(path: str) -> Scope:
    """Scopes are few and asked for with every row."""
    return Scope.parse(path)


@lru_cache(maxsize=16)
def select_list(alias: str) -> str:
    """What ``row_record`` reads, from a record or version under that alias, its scope `s` and its usage `u`."""
    columns = ", ".join("s.path" if field == "scope" else f"{alias}.{field}" for field in FIELDS)
    return f"{columns}, u.recalls, u.last_recalled_at"


def digest(record: Record) -> str:
    """What a record says; two live records of one scope and kind with the same digest say the same."""
    return _sha256(packed([record.content, record.key, record.value]))


def row_hash(row: Sequence[Any], path: str) -> str:
    """The record's own hash, over everything it is but where its scope happens to be numbered."""
    return _sha256(packed([path if field == "scope" else value for field, value in zip(FIELDS, row, strict=True)]))


def _sha256(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 - only writes need it; recall must start without

    return sha256(text.encode()).hexdigest()


def marks(values: Collection[object]) -> str:
    """As many question marks."""
    return ", ".join("?" * len(values))


def state_sql(alias: str, states: frozenset[State], at: datetime) -> Sql:
    """The one rule of what is live, in SQL (``Record.state`` says it in Python)."""
    text, moments = _state_text(alias, states)
    return text, [micros(at)] * moments


@lru_cache(maxsize=64)
def _state_text(alias: str, states: frozenset[State]) -> tuple[str, int]:
    """The rule as text, and how often it asks for the time."""
    if states == ANY_STATE:
        return "1", 0
    open_ = f"{alias}.archived_at is null and {alias}.held = 0"
    rules: dict[State, str] = {
        State.ARCHIVED: f"{alias}.archived_at is not null",
        State.HELD: f"({alias}.archived_at is null and {alias}.held = 1)",
        State.EXPIRED: f"({open_} and {alias}.expires_at <= ?)",
        State.LIVE: f"({open_} and ({alias}.expires_at is null or {alias}.expires_at > ?))",
    }
    text = f"({' or '.join(rules[state] for state in sorted(states))})"
    return text, text.count("?")


def filter_sql(where: Filter, alias: str) -> Sql:
    """A filter as a condition on records or versions under that alias; ``alias.row`` is the record's row."""
    parts: list[Sql] = [
        scopes_sql(where.scopes, f"{alias}.scope"),
        state_sql(alias, where.states, where.as_of or where.at),
    ]
    choices = {"id": where.ids, "kind": where.kinds, "category": where.categories, "key": where.keys}
    for column, allowed in choices.items():
        if allowed is not None:
            parts.append(among(f"{alias}.{column}", allowed))
    past = where.versions or where.as_of is not None  # an earlier version's tags and parents are in its own row only
    tagged = f"exists (select 1 from json_each({alias}.tags) where value = ?)"
    parts += [
        (tagged if past else f"{alias}.row in (select record from tag where tag = ?)", [tag])
        for tag in sorted(where.tags)
    ]
    if where.prefix is not None:
        parts.append((f"{alias}.id >= ? and {alias}.id < ?", [where.prefix, where.prefix + "~"]))
    if where.after is not None:
        parts.append((f"{alias}.id > ?", [where.after]))
    if where.pinned is not None:
        parts.append((f"{alias}.pinned = ?", [int(where.pinned)]))
    if where.consolidated is not None:
        parts.append((f"({alias}.consolidated_at is not null) = ?", [int(where.consolidated)]))
    if where.parents is not None:
        inner, values = among("value" if past else "parent", where.parents)
        own = f"exists (select 1 from json_each({alias}.parents) where {inner})"
        parts.append((own if past else f"{alias}.row in (select record from parent where {inner})", values))
    return " and ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def scopes_sql(scopes: frozenset[Scope], column: str) -> Sql:
    """A column that must be the row of one of these scopes."""
    inner, values = among("path", scopes)
    return f"{column} in (select id from scope where {inner})", values


def among(column: str, allowed: Collection[Any]) -> Sql:
    """A column that must have one of these values, however many they are."""
    values: list[Any] = [value if isinstance(value, int) else str(value) for value in allowed]
    if len(values) == 1:
        return f"{column} in (?)", values
    values.sort()
    if len(values) <= MARKS_MOST:
        return f"{column} in ({marks(values)})", values
    return f"{column} in (select value from json_each(?))", [packed(values)]


ORDERS: Mapping[Order, str] = {
    Order.NEWEST: "{0}.created_at desc, {0}.id desc, {0}.version desc",
    Order.OLDEST: "{0}.created_at, {0}.id, {0}.version desc",
    Order.STALEST: "coalesce(u.last_recalled_at, {0}.created_at), {0}.id, {0}.version desc",
    Order.ID: "{0}.id, {0}.version desc",
    Order.EXPENDABLE: (  # a quote inside of a text of the metadata is escaped: only the field itself reads like this
        """case when replace({0}.metadata, '"priority":"low"', '') <> {0}.metadata then 0"""
        """ when replace({0}.metadata, '"priority":"high"', '') <> {0}.metadata then 2 else 1 end,"""
        " case when u.last_recalled_at > {0}.updated_at then u.last_recalled_at else {0}.updated_at end,"
        " {0}.id, {0}.version desc"
    ),
}


def order_sql(order: Order, alias: str) -> str:
    """An order as SQL: total, so that equal stores give equal lists."""
    return ORDERS[order].format(alias)


# Jobs

#: Every job with its scope; whoever asks says what time it is, and adds which scopes are meant and ``JOBS_ORDER``.
JOBS = (
    "select s.path, j.kind, j.key, j.input, j.status, j.done, j.tries_left, j.error, j.started_at, j.finished_at,"
    " j.lease_until, j.retry_at, coalesce(j.lease_until > {now}, false) from job j join scope s on s.id = j.scope"
)
JOBS_ORDER = "order by j.kind, j.key, s.path"


def job_at(row: Sequence[Any]) -> JobState:
    """A row of ``JOBS`` as where a job stands."""
    path, kind, key, watermark, status, done, tries, error, started, finished, until, retry, leased = row
    return JobState(
        job=Job(scope=scope_at(path), kind=kind, key=key, watermark=watermark), status=Status(status), done=done,
        tries_left=tries, error=error, started_at=moment(started), finished_at=moment(finished), until=moment(until),
        retry_at=moment(retry), leased=bool(leased),
    )  # fmt: skip

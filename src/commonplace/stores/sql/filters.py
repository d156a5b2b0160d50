"""Filters, orders and scopes as SQL; what a database words in its own way it is asked for (``Db.among``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order, State
from commonplace.model.records import INSTRUCTIVE, PROPOSAL, Channel, Kind, Trust
from commonplace.model.scopes import Scope
from commonplace.stores.rows import Sql, micros

if TYPE_CHECKING:
    from commonplace.stores.sql.dialect import Db

UNLIMITED = 1 << 62  # rows: both databases take it for a limit; what only one of them knows, such as -1, they do not


def rows_limit(limit: int) -> int:
    """Return a limit as SQL takes it; a negative one is none."""
    return limit if limit >= 0 else UNLIMITED


def join_and(parts: Sequence[Sql]) -> Sql:
    """Join conditions with `and`."""
    return " and ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def scopes_sql(db: Db, scopes: Collection[Scope], column: str) -> Sql:
    """Return the condition that a column is the row of one of these scopes."""
    inner, values = db.among("path", scopes)
    return f"{column} in (select id from scope where {inner})", values


def scope_row(db: Db, scope: Scope) -> int:
    """Return the row of a scope, inserting it with its parents if it is new."""
    path = str(scope)
    found = db.first("select id from scope where path = ?", [path])
    if found is None:
        parent = scope_row(db, scope.parent) if scope.parent else None
        sql = "insert into scope (parent, path) values (?, ?) on conflict do nothing returning id"
        found = db.first(sql, [parent, path])
    return int(found[0]) if found else scope_row(db, scope)  # another writer was first: now it is there


def scopes_below(db: Db, scope: Scope, *, having: str = "") -> list[tuple[str, int]]:
    """Return the path and the row of a scope and of every scope below it; ``having`` is a condition on `below`."""
    sql = (
        "with recursive below (id, path) as (select id, path from scope where path = ? union all"
        f" select s.id, s.path from scope s join below b on s.parent = b.id) select path, id from below {having}"
    )
    return [(path, row) for path, row in db.every(sql, [str(scope)])]


def state_sql(alias: str, states: frozenset[State], at: datetime) -> Sql:
    """Return the one rule of what is live, in SQL (``Record.state`` has it in Python)."""
    text, moments = _state_text(alias, states)
    return text, [micros(at)] * moments


@lru_cache(maxsize=64)
def _state_text(alias: str, states: frozenset[State]) -> tuple[str, int]:
    """Return the rule as text, and how many times it needs the moment."""
    open_ = f"{alias}.archived_at is null and {alias}.held = 0"
    rules: dict[State, str] = {
        State.ARCHIVED: f"{alias}.archived_at is not null",
        State.HELD: f"({alias}.archived_at is null and {alias}.held = 1)",
        State.EXPIRED: f"({open_} and {alias}.expires_at <= ?)",
        State.LIVE: f"({open_} and ({alias}.expires_at is null or {alias}.expires_at > ?))",
    }
    text = f"({' or '.join(rules[state] for state in sorted(states))})"
    return text, text.count("?")


def filter_sql(db: Db, where: Filter, alias: str) -> Sql:
    """Return a filter as a condition on records or versions under that alias; ``alias.row`` is the record's row."""
    parts = [scopes_sql(db, where.scopes, f"{alias}.scope")]
    if where.states != ANY_STATE:
        parts.append(state_sql(alias, where.states, where.as_of or where.at))
    choices = {
        "id": where.ids, "kind": where.kinds, "category": where.categories, "key": where.keys,
        "superseded_by": where.superseded_by, "trust": None if where.trusts is None else [*map(int, where.trusts)],
    }  # fmt: skip
    parts += [db.among(f"{alias}.{column}", allowed) for column, allowed in choices.items() if allowed is not None]
    return join_and([*parts, *_further_sql(db, where, alias), *_origin_sql(db, where, alias)])


def _further_sql(db: Db, where: Filter, alias: str) -> Iterator[Sql]:
    """Yield the conditions that few filters have."""
    past = where.versions or where.as_of is not None or bool(where.views)
    if where.tags:
        yield db.tagged_sql(alias, where.tags, past=past)
    if where.prefix is not None:
        yield f"{alias}.id >= ? and {alias}.id < ?", [where.prefix, where.prefix + "~"]
    if where.after is not None:
        yield f"{alias}.id > ?", [where.after]
    if where.earlier is not None:
        yield f"({alias}.created_at, {alias}.id) < (?, ?)", [micros(where.earlier[0]), where.earlier[1]]
    if where.waiting:
        yield _waiting_sql(db, alias)
    if where.pinned is not None:
        yield f"{alias}.pinned = ?", [int(where.pinned)]
    if where.consolidated is not None:
        yield f"{alias}.consolidated_at is {'not ' if where.consolidated else ''}null", []
    if where.parents is not None:
        yield db.derived_sql(alias, where.parents, past=past)


def _origin_sql(db: Db, where: Filter, alias: str) -> Iterator[Sql]:
    """Yield the conditions on when and from where records came, and on what their users noted with them."""
    if where.part is not None:
        yield f"{alias}.id like ?", [f"%{where.part}%"]
    for name, value in where.metadata:
        yield db.metadata_sql(alias, name, value)
    if where.since is not None:
        yield f"{alias}.created_at >= ?", [micros(where.since)]
    if where.until is not None:
        yield f"{alias}.created_at < ?", [micros(where.until)]
    if where.sources is not None:
        channels, refs = db.among(f"{alias}.channel", where.sources), db.among(f"{alias}.ref", where.sources)
        yield f"({channels[0]} or {refs[0]})", [*channels[1], *refs[1]]


def _waiting_sql(db: Db, alias: str) -> Sql:
    """Return the one rule of what waits for a person, in SQL (``Record.waits`` has it in Python)."""
    categories, values = db.among(f"{alias}.category", INSTRUCTIVE)
    instructs = f"({alias}.kind = '{Kind.PROCEDURAL}' or {categories})"
    by_file = f"({alias}.channel = '{Channel.FILE}' and {alias}.trust = {Trust.EXTERNAL:d})"
    lacks = f"({alias}.approved_at is null and {alias}.trust < {Trust.USER:d} and ({instructs} or {by_file}))"
    # A quote inside of a text of the metadata is escaped: only a name of its own reads like this.
    asks = f"replace({alias}.metadata, '\"{PROPOSAL}\":', '') <> {alias}.metadata"
    return f"({alias}.held = 1 or {asks} or {lacks})", values


def documents_sql(db: Db, where: DocumentFilter) -> Sql:
    """Return a filter as a condition on documents under the alias `d`."""
    parts = [scopes_sql(db, where.scopes, "d.scope")]
    choices = {"d.kind": where.kinds, "d.name": where.names}
    parts += [db.among(column, allowed) for column, allowed in choices.items() if allowed is not None]
    return join_and(parts)


def rows_of(db: Db, where: Filter) -> Sql:
    """Return the rows that a filter looks at: the present, every version, or what was valid at a moment."""
    if where.as_of is not None:
        return _as_of(db.columns), [micros(where.as_of), micros(where.as_of)]
    if where.versions:
        return _versions(db.columns), []
    if not where.views:
        return "record", []
    from commonplace.stores.sql import checkouts  # noqa: PLC0415 - only where a checkout differs from the store

    return checkouts.viewed_rows(db, where.views)


@lru_cache(maxsize=2)
def _versions(columns: tuple[str, ...]) -> str:
    present, past = (", ".join(f"{alias}.{column}" for column in columns) for alias in "pv")
    return (
        f"(select p.row as row, p.row * 4 as entry, {present} from record p"
        f" union all select v.record as row, v.row * 4 + 2 as entry, {past} from version v)"
    )


@lru_cache(maxsize=2)
def _as_of(columns: tuple[str, ...]) -> str:
    """Of each record the last version that had begun by then."""
    every = _versions(columns)
    return (
        f"(select t.* from {every} t where t.valid_from <= ? and not exists (select 1 from {every} later"
        " where later.row = t.row and later.version > t.version and later.valid_from <= ?))"
    )


#: What a filter can ask for that an entry does not know.
_BEYOND_ENTRIES = tuple(
    field for field in Filter.fields if field not in {"scopes", "at", "kinds", "categories", "records", "chunks"}
)


def is_plain(where: Filter) -> bool:
    """Return whether a filter asks for nothing but what an entry knows of itself."""
    return all(getattr(where, field) == Filter.defaults[field] for field in _BEYOND_ENTRIES)


def entry_sql(db: Db, where: Filter) -> Sql:
    """Return a filter as a condition on entries under the alias `e`; chunks pass it: they have no kind and no state."""
    if where.views and is_plain(where.replace(views=frozenset())):
        from commonplace.stores.sql import checkouts  # noqa: PLC0415 - see rows_of

        plain, values = entry_sql(db, where.replace(views=frozenset()))
        viewed, marks = checkouts.viewed_entries(db, where)
        return f"({plain} and {viewed})", [*values, *marks]
    if is_plain(where):
        parts: list[Sql] = [("(e.expires is null or e.expires > ?)", [micros(where.at)])]
        for column, allowed in {"kind": where.kinds, "category": where.categories}.items():
            if allowed is not None:
                sql, values = db.among(f"e.{column}", allowed)
                parts.append((f"({sql} or e.kind is null)", values))
        return join_and(parts)
    condition, values = filter_sql(db, where, "r")
    table, moments = rows_of(db, where)
    entry = "r.row * 4" if table == "record" else "r.entry"
    return f"(e.kind is null or e.id in (select {entry} from {table} r where {condition}))", [*moments, *values]


_ORDERS: Mapping[Order, str] = {
    Order.NEWEST: "{0}.created_at desc, {0}.id desc, {0}.version desc",
    Order.OLDEST: "{0}.created_at, {0}.id, {0}.version desc",
    Order.SAID: "coalesce({0}.occurred_at, {0}.created_at) desc, {0}.id desc, {0}.version desc",
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
    """Return an order as SQL: total, so that equal stores give equal lists."""
    return _ORDERS[order].format(alias)

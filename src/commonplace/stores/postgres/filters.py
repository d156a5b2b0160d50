"""Filters as conditions of PostgreSQL.  Pure: no connection is seen here.

What ``rows.py`` says for both databases is taken from there; here is what PostgreSQL says in its own way: lists are
arrays, tags and parents are arrays that are asked by value.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter
from commonplace.model.scopes import Scope
from commonplace.stores.rows import FIELDS, Sql, micros, state_sql

#: All columns of a record: those of its value, and what the store derives from them.
COLUMNS = (*FIELDS, "valid_from", "digest", "hash", "tagged", "derived")


def joined(parts: Collection[Sql]) -> Sql:
    """All of these conditions together."""
    return " and ".join(sql for sql, _ in parts), [value for _, values in parts for value in values]


def among(column: str, allowed: Collection[Any]) -> Sql:
    """A column that must have one of these values."""
    return f"{column} = any(?::text[])", [sorted(str(value) for value in allowed)]


def among_numbers(column: str, allowed: Collection[int]) -> Sql:
    """A column that must have one of these numbers."""
    return f"{column} = any(?::bigint[])", [sorted(allowed)]


def most(limit: int) -> int | None:
    """A limit as PostgreSQL takes it; a negative one is none, as in SQLite."""
    return limit if limit >= 0 else None


def scopes_sql(scopes: Collection[Scope], column: str) -> Sql:
    """A column that must be the row of one of these scopes."""
    inner, values = among("path", scopes)
    return f"{column} in (select id from scope where {inner})", values


def filter_sql(where: Filter, alias: str) -> Sql:
    """A filter as a condition on records or versions under that alias."""
    parts = [scopes_sql(where.scopes, f"{alias}.scope")]
    if where.states != ANY_STATE:
        parts.append(state_sql(alias, where.states, where.as_of or where.at))
    choices = {"id": where.ids, "kind": where.kinds, "category": where.categories, "key": where.keys}
    parts += [among(f"{alias}.{column}", allowed) for column, allowed in choices.items() if allowed is not None]
    if where.tags:
        parts.append((f"{alias}.tagged @> ?::text[]", [sorted(where.tags)]))
    if where.prefix is not None:
        parts.append((f"{alias}.id >= ? and {alias}.id < ?", [where.prefix, where.prefix + "~"]))
    if where.after is not None:
        parts.append((f"{alias}.id > ?", [where.after]))
    if where.pinned is not None:
        parts.append((f"{alias}.pinned = ?", [int(where.pinned)]))
    if where.consolidated is not None:
        parts.append((f"{alias}.consolidated_at is {'not ' if where.consolidated else ''}null", []))
    if where.parents is not None:
        parts.append((f"{alias}.derived && ?::text[]", [sorted(where.parents)]))
    return joined(parts)


def documents_sql(where: DocumentFilter) -> Sql:
    """A filter as a condition on documents under the alias `d`."""
    parts = [scopes_sql(where.scopes, "d.scope")]
    choices = {"d.kind": where.kinds, "d.name": where.names}
    parts += [among(column, allowed) for column, allowed in choices.items() if allowed is not None]
    return joined(parts)


def rows_of(where: Filter) -> Sql:
    """Which rows a filter looks at: the present, every version, or what was valid at a moment."""
    if where.as_of is not None:
        return _AS_OF, [micros(where.as_of), micros(where.as_of)]
    return (_EVERY, []) if where.versions else (_PRESENT, [])


def _columns(alias: str) -> str:
    return ", ".join(f"{alias}.{column}" for column in COLUMNS)


_PRESENT = "record"
_EVERY = (
    f"(select p.row as row, p.row * 4 as entry, {_columns('p')} from record p"
    f" union all select v.record as row, v.row * 4 + 2 as entry, {_columns('v')} from version v)"
)
#: Of each record the last version that had begun by then.
_AS_OF = (
    f"(select t.* from {_EVERY} t where t.valid_from <= ? and not exists (select 1 from {_EVERY} later"
    " where later.row = t.row and later.version > t.version and later.valid_from <= ?))"
)

#: What a filter can ask for that an entry does not know.
_BEYOND_ENTRIES = tuple(
    field for field in Filter.fields if field not in {"scopes", "at", "kinds", "categories", "records", "chunks"}
)


def entry_sql(where: Filter) -> Sql:
    """A filter as a condition on entries under the alias `e`; chunks pass it, they have no kind and no state."""
    if all(getattr(where, field) == Filter.defaults[field] for field in _BEYOND_ENTRIES):
        parts: list[Sql] = [("(e.expires is null or e.expires > ?)", [micros(where.at)])]
        for column, allowed in {"kind": where.kinds, "category": where.categories}.items():
            if allowed is not None:
                sql, values = among(f"e.{column}", allowed)
                parts.append((f"({sql} or e.kind is null)", values))
        return joined(parts)
    condition, values = filter_sql(where, "r")
    table, moments = rows_of(where)
    entry = "r.row * 4" if table == _PRESENT else "r.entry"
    return f"(e.kind is null or e.id in (select {entry} from {table} r where {condition}))", [*moments, *values]

"""Migrate a schema: numbered scripts, forward only, in one transaction, by one process at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping

from commonplace.model.errors import SchemaTooNew, StoreError
from commonplace.stores.postgres.connection import TENANT, Connections, adapt, quote_name
from commonplace.stores.postgres.dialect import PostgresDb
from commonplace.stores.sql.hashes import fill_hashes
from commonplace.version import PRODUCT

NEWEST = 9  # the number of the last script in scripts/
HASHED = 9  # the script that gives documents and passages a hash
_TURN = 0x436F6D6D  # "Comm": one process of the whole database migrates at a time, because extensions are shared


def prepare(connections: Connections) -> None:
    """Make the schema, or migrate it; one that is newer is refused, and so is one that is not ours."""
    schema = connections.schema
    with connections.alone() as db:
        _check_encoding(db, connections.name)
        if (found := _number(db, schema, connections.name)) > NEWEST:
            raise _too_new(db, schema, connections.name, found)
        if found < NEWEST:
            _bring_up(db, connections)
        _keep_apart(db, connections)


def _bring_up(db: PostgresDb, connections: Connections) -> None:
    """Run the scripts that are missing."""
    schema = connections.schema
    with db.transaction():
        db.run("select pg_advisory_xact_lock(?)", [_TURN])
        _make_room(db, schema, connections.name)
        place = db.every("select extnamespace::regnamespace::text from pg_extension where extname = 'vector'")
        db.run(f"set local search_path = {quote_name(schema)}, {place[0][0]}")
        if db.first("select 1 where current_schema() = ?", [schema]) is None:  # tables would be made in the next one
            raise StoreError(
                f"the store {connections.name!r} does not allow it: permission denied for schema {schema!r}"
            )
        for number in range(_number(db, schema, connections.name) + 1, NEWEST + 1):
            db.execute(_script(number))  # as it is: it may hold question marks
            if number == HASHED:
                adapt(db)
                fill_hashes(db)
            _note(db, {"schema": str(number), "written_by": PRODUCT})


def _keep_apart(db: PostgresDb, connections: Connections) -> None:
    """Enable row-level security when the first tenant comes; refuse a role that bypasses it."""
    db.run(f"set search_path = {quote_name(connections.schema)}")
    apart = db.first("select 1 from meta where key = 'tenancy'") is not None
    if not apart and connections.tenant == TENANT:
        return
    passing = db.first("select current_user from pg_roles where rolname = current_user and (rolsuper or rolbypassrls)")
    if passing:
        raise StoreError(
            f"the role {passing[0]!r} passes over row-level security, so in {connections.name!r} it would see every"
            " tenant's rows; open it with a role that does not"
        )
    if not apart:
        with db.transaction():
            for (table,) in db.every(_APART, [connections.schema]):
                db.run(f"alter table {quote_name(table)} enable row level security, force row level security")
            _note(db, {"tenancy": "on"})


#: The tables that have a policy.
_APART = (
    "select c.relname from pg_policy p join pg_class c on c.oid = p.polrelid"
    " join pg_namespace n on n.oid = c.relnamespace where n.nspname = ? order by 1"
)


def _make_room(db: PostgresDb, schema: str, name: str) -> None:
    """Create the extension and the schema, each only if it is missing: an administrator may have made them."""
    if not db.first("select 1 from pg_extension where extname = 'vector'"):
        if not db.first("select 1 from pg_available_extensions where name = 'vector'"):
            raise StoreError(
                f"the server of {name!r} has no extension `vector`: its administrator has to install pgvector"
            )
        db.run("create extension vector")
    if not db.first("select 1 from pg_namespace where nspname = ?", [schema]):
        db.run(f"create schema {quote_name(schema)}")


def _number(db: PostgresDb, schema: str, name: str) -> int:
    """Return the number of a schema; 0: it does not exist, or is empty."""
    tables = [table for (table,) in db.every("select tablename from pg_tables where schemaname = ?", [schema])]
    if not tables:
        return 0
    noted = None
    if "meta" in tables and "entry" in tables:
        noted = db.first(f"select value from {quote_name(schema)}.meta where key = 'schema'")
    if noted is None or not str(noted[0]).isdecimal():
        raise StoreError(f"the schema {schema!r} of {name!r} holds tables, but not those of a Commonplace store")
    return int(noted[0])


def _script(number: int) -> bytes:
    path = os.path.join(os.path.dirname(__file__), "scripts", f"{number:04d}.sql")
    with open(path, "rb") as file:
        return file.read()


def _note(db: PostgresDb, noted: Mapping[str, str]) -> None:
    sql = "insert into meta values (?, ?) on conflict (key) do update set value = excluded.value"
    for key, value in noted.items():
        db.run(sql, [key, value])


def _check_encoding(db: PostgresDb, name: str) -> None:
    if (encoding := db.info.parameter_status("server_encoding")) != "UTF8":
        raise StoreError(f"the database {name!r} is encoded in {encoding}; a store needs one in UTF8")


def _too_new(db: PostgresDb, schema: str, name: str, found: int) -> SchemaTooNew:
    writer = db.first(f"select value from {quote_name(schema)}.meta where key = 'written_by'")
    return SchemaTooNew(
        f"the store {name!r} was written by {writer[0] if writer else 'a later Commonplace'} (schema {found}); "
        f"this is {PRODUCT} (schema {NEWEST}). Nothing was changed."
    )

"""What an address says, and what an administrator has set for a role: neither changes what a store does."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from commonplace.model.changes import Cap
from commonplace.model.errors import CapacityExceeded, InvalidInput, StoreError
from commonplace.model.queries import Order
from commonplace.model.scopes import Scope
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sql import changes
from stands import ADA, rows

pytestmark = pytest.mark.postgres
BELOW = Scope.parse("user:ada/agent:scout")


@pytest.fixture
def opened(new_postgres):
    """Open one store, as often as asked, with whatever is added to its address."""
    first, made = new_postgres(), []

    def open_(added="", **given):
        address = os.environ["COMMONPLACE_TEST_POSTGRES"]
        made.append(PostgresStore(f"{address}&{added}", **{"schema": first.schema, **given}))
        return made[-1]

    yield open_
    for store in made:
        store.close()


def setting(name, value):
    """An option of an address that sets something for the session, as `alter role ... set` does."""
    return f"options=-c%20{name}%3D{value}"


@pytest.mark.parametrize("level", ["repeatable%5C%20read", "serializable"])
def test_a_stricter_isolation_does_not_hide_who_wrote_before(opened, make, level):
    """Who waited for its turn sees what was written meanwhile, whatever isolation is the database's default."""
    one, other = (opened(setting("default_transaction_isolation", level)) for _ in range(2))
    one.apply([make.put("first"), make.put(make("below", scope=BELOW))])
    full = Cap(where=make.where(), below=(ADA,), max_records=3)
    with ThreadPoolExecutor() as pool:
        with one.writing() as db:
            late = pool.submit(other.apply, [make.put(make("late", scope=BELOW)), full])
            time.sleep(0.5)  # until it waits
            changes.make(db, make.put("second"))
        with pytest.raises(CapacityExceeded):
            late.result()


def test_a_connection_that_was_idle_for_too_long_is_opened_anew(opened, make):
    """The server may hang up on who is silent; who speaks again does not notice."""
    store = opened(setting("idle_session_timeout", "200"))
    store.apply([make.put("before")])
    time.sleep(0.6)
    store.apply([make.put("after")])
    time.sleep(0.6)
    assert len(store.find(make.where(), order=Order.ID, limit=9)) == 2


def test_an_encoding_of_the_client_changes_nothing(opened, make):
    """Texts are sent as this store sends them, whatever the address, the environment or the role says."""
    store = opened("client_encoding=SQL_ASCII")
    [outcome] = store.apply([make.put("ein Häuschen")])
    assert store.get(outcome.records[0].id).content == "ein Häuschen"


@rows("name", ["a%b", "a?b", "a\0b", "x" * 64, "é" * 32])
def test_a_schema_that_the_server_would_call_otherwise_is_refused(opened, name):
    """A longer name would be cut, and two stores would be one; in others the driver looks for places of values."""
    with pytest.raises(InvalidInput, match="the name of a schema"):
        opened(schema=name)


def test_a_tenant_that_no_setting_can_hold_is_refused_at_once(opened):
    """It is said, and not waited for."""
    with pytest.raises(InvalidInput, match="the name of a tenant"):
        opened("tenant=a%00b")


@pytest.mark.parametrize("address", ["postgresql://ada:hun@ter@host/memory", "postgresql://ada:hun/ter@host/memory"])
def test_a_password_that_reads_like_a_host_is_not_shown(address):
    """Whoever forgot to write `%40` in a password is told so, without the password."""
    with pytest.raises(InvalidInput, match="%40") as caught:
        PostgresStore(address)
    assert "hun" not in str(caught.value)
    assert "ter@" not in str(caught.value)


def test_an_address_with_half_a_character_is_bad_input():
    """Bytes that are no text reach a program as lone surrogates."""
    with pytest.raises(InvalidInput, match="no address"):
        PostgresStore("postgresql://ada:secret@h\udcff/memory")


def test_somebody_elses_table_of_the_same_name_is_not_taken_for_ours(new_postgres, opened):
    """Who else keeps a version of a schema in a table `meta` counts otherwise."""
    store = new_postgres()
    with store.using() as db:
        db.execute("update meta set value = 'v1' where key = 'schema'")
    with pytest.raises(StoreError, match="not those of a Commonplace store"):
        opened(schema=store.schema)


@pytest.fixture
def stranger(new_postgres):
    """A schema with nothing in it, and the address of a role that may use the schema of the extension only."""
    store = new_postgres()
    address, role = os.environ["COMMONPLACE_TEST_POSTGRES"], f"stranger_{store.schema}"
    with psycopg.connect(address, autocommit=True) as db:
        [place] = db.execute(
            "select extnamespace::regnamespace::text from pg_extension where extname = 'vector'"
        ).fetchone()
        db.execute(f"drop schema {store.schema} cascade; create schema {store.schema}; create role {role} login")
        db.execute(f"grant create, usage on schema {place} to {role}")
        yield store.schema, psycopg.conninfo.make_conninfo(address, user=role)
        db.execute(f"drop owned by {role} cascade; drop role {role}")


def test_a_store_is_not_made_in_another_schema(stranger):
    """Where the schema may not be used, its tables are not made in the next one that may."""
    schema, address = stranger
    with pytest.raises(StoreError, match="permission denied for schema"):
        PostgresStore(address, schema=schema)
    with psycopg.connect(address) as db:
        found = db.execute("select count(*) from pg_tables where tableowner = current_user").fetchone()
    assert found == (0,)


def test_what_the_driver_logs_is_not_printed():
    """What fails is raised, in one sentence; nothing is said beside it."""
    code = "import logging, commonplace.stores.postgres.connection as c; logging.getLogger('psycopg').warning('beside')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr == b""

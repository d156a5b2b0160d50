"""Tenants in one schema: row-level security keeps them apart, and who does not say who it is sees nothing."""

from __future__ import annotations

import os

import psycopg
import pytest

from commonplace.app import copier_of, maintenance_of, open_store
from commonplace.engine.transfer import migrate
from commonplace.model.changes import TrimEvents
from commonplace.model.errors import StoreError
from commonplace.model.queries import Order
from commonplace.stores.postgres import migrations as postgres_migrations
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite.store import SqliteStore
from household import furnish, whole
from stands import give_later_columns

pytestmark = pytest.mark.postgres


@pytest.fixture
def hosted(new_postgres):
    """An empty schema with an owner and a user, neither of whom passes over anything; and the user's address."""
    given, schema = os.environ["COMMONPLACE_TEST_POSTGRES"], new_postgres().schema
    owner, user = f"owner_{schema}", f"user_{schema}"
    with psycopg.connect(given, autocommit=True) as db:
        db.execute(f"create role {owner} login; create role {user} login")
        db.execute(f"drop schema {schema} cascade; create schema {schema} authorization {owner}")
        first = PostgresStore(_as(given, owner), schema=schema, tenant="acme")
        db.execute(f"grant usage on schema {schema} to {user}")
        db.execute(f"grant select, insert, update, delete on all tables in schema {schema} to {user}")
        db.execute(f"revoke insert, update, delete on {schema}.meta from {user}")
        first.close()
        yield _as(given, user), schema, owner
        for role in (owner, user):
            db.execute(f"drop owned by {role} cascade; drop role {role}")


def _as(address, role):
    return psycopg.conninfo.make_conninfo(address, user=role)


@pytest.fixture
def tenants(hosted):
    """Two tenants of one schema, with the least rights that work."""
    address, schema, _ = hosted
    made = [PostgresStore(address, schema=schema, tenant=tenant) for tenant in ("acme", "umbrella")]
    yield made
    for store in made:
        store.close()


def tables(db, schema):
    """Every table of a schema that holds somebody's rows."""
    rows = db.execute("select tablename from pg_tables where schemaname = %s and tablename <> 'meta'", [schema])
    return sorted(table for (table,) in rows)


def test_two_tenants_have_the_same_names_and_different_memories(tenants, make):
    """The same scope, the same key, even the same id: each has its own."""
    acme, umbrella = tenants
    record = make("ours", key="k")
    acme.apply([make.put(record)])
    assert umbrella.census() == []
    umbrella.apply([make.put(record.replace(content="theirs"))])
    assert [store.get(record.id).content for store in tenants] == ["ours", "theirs"]


def test_a_tenant_hears_of_its_own_events_only(tenants, make):
    """Another's are neither waited for nor counted."""
    acme, umbrella = tenants
    acme.wait_for_event(after=0, seconds=0.0)  # listens from now on
    umbrella.apply([make.put(emit=True)])
    assert acme.wait_for_event(after=0, seconds=0.05) == 0
    assert umbrella.wait_for_event(after=0, seconds=60) == umbrella.events([make.scope], limit=1)[0].seq


def test_everything_a_store_does_it_does_for_a_tenant(tenants, make, query):
    """Both are furnished, searched, checked and emptied without the other noticing."""
    acme, umbrella = tenants
    furnish(acme, make)
    before = whole(acme)
    furnish(umbrella, make)
    assert acme.match(make.where(), query("thing"), limit=9)
    assert acme.nearest(make.where(), (1.0, 1.0, -2.0), limit=9)
    assert maintenance_of(acme).check() == []
    maintenance_of(umbrella).repair()
    assert whole(acme) == before


def test_a_query_without_its_tenant_sees_nothing(hosted, tenants, make):
    """No table shows a row to a connection that does not say who it is, not even to the owner; and none takes one."""
    _, schema, owner = hosted
    furnish(tenants[0], make)
    for role in (f"user_{schema}", owner):
        with psycopg.connect(_as(os.environ["COMMONPLACE_TEST_POSTGRES"], role), autocommit=True) as db:
            db.execute(f"set search_path = {schema}, public")
            for said in (None, "", "nobody"):
                if said is not None:
                    db.execute("select set_config('commonplace.tenant', %s, false)", [said])
                seen = {
                    table: db.execute(f"select count(*) from {table}").fetchone()[0] for table in tables(db, schema)
                }
                assert set(seen.values()) == {0}, (role, said)
            assert len(seen) >= 13
            assert db.execute("delete from record").rowcount == 0


def test_a_tenant_cannot_write_for_another(hosted, tenants, make):
    """A row that says it is somebody else's is refused by the database."""
    address, schema, _ = hosted
    tenants[0].apply([make.put("a")])
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"set search_path = {schema}, public; select set_config('commonplace.tenant', 'umbrella', false)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            db.execute("insert into scope (path, tenant) values ('user:eve', 'acme')")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute("update meta set value = '999' where key = 'schema'")


def test_every_table_keeps_tenants_apart(hosted):
    """Row-level security is on and forced wherever rows are somebody's; a new table without it fails here."""
    address, schema, _ = hosted
    with psycopg.connect(address) as db:
        sql = (
            "select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = %s"
            " and c.relkind = 'r' and not (c.relrowsecurity and c.relforcerowsecurity)"
        )
        assert db.execute(sql, [schema]).fetchall() == [("meta",)]


def test_a_store_without_a_tenant_is_a_tenant_too(hosted, tenants, make):
    """Who names none has rows of its own, and sees nobody else's."""
    address, schema, _ = hosted
    tenants[0].apply([make.put("a")])
    plain = PostgresStore(address, schema=schema)
    assert plain.census() == []
    plain.close()


def test_who_passes_over_the_rules_is_refused(hosted, new_postgres):
    """A superuser would see every tenant's rows, so it is nobody's store."""
    _, schema, _ = hosted
    given = os.environ["COMMONPLACE_TEST_POSTGRES"]
    for options in ({"schema": schema}, {"schema": new_postgres().schema, "tenant": "acme"}):
        with pytest.raises(StoreError, match="passes over row-level security"):
            PostgresStore(given, **options)


def test_the_address_may_name_the_tenant(hosted, tenants, make):
    """`?schema=` and `?tenant=` are ours, the rest is the driver's."""
    address, schema, _ = hosted
    parts = psycopg.conninfo.conninfo_to_dict(address)
    url = f"postgresql://{parts['user']}@/{parts['dbname']}?schema={schema}&host={parts['host']}&tenant=acme"
    tenants[0].apply([make.put("a")])
    store = open_store(url)
    assert len(store.find(make.where(), order=Order.ID, limit=9)) == 1
    store.close()


def test_a_tenant_moves_in_and_out(hosted, tenants, make, tmp_path):
    """A store is carried to a tenant and back, and a backup holds nothing but the tenant's own."""
    address, schema, owner = hosted
    source = SqliteStore(str(tmp_path / "source.db"))
    furnish(source, make)
    tenants[1].apply([make.put("another's")])
    target = PostgresStore(psycopg.conninfo.make_conninfo(address, user=owner), schema=schema, tenant="acme")
    migrate(copier_of(source), copier_of(target))
    maintenance_of(target).backup(str(tmp_path / "copy.db"))
    assert whole(open_store(str(tmp_path / "copy.db"))) == whole(source)
    maintenance_of(target).restore(str(tmp_path / "copy.db"))
    assert whole(target) == whole(source)
    assert len(tenants[1].find(make.where(), order=Order.ID, limit=9)) == 1
    target.close()


def test_tenants_of_an_older_schema_are_counted_each_for_itself(hosted, make, query, monkeypatch):
    """The owner brings it up to date: everybody's texts are counted, and the new table keeps tenants apart too."""
    _, schema, owner = hosted
    address = _as(os.environ["COMMONPLACE_TEST_POSTGRES"], owner)
    with psycopg.connect(os.environ["COMMONPLACE_TEST_POSTGRES"], autocommit=True) as db:
        db.execute(f"drop schema {schema} cascade; create schema {schema} authorization {owner}")
    with monkeypatch.context() as before:
        before.setattr(postgres_migrations, "NEWEST", 4)
        for tenant, texts in {"acme": ["one two", "three"], "umbrella": ["one"]}.items():
            older = PostgresStore(address, schema=schema, tenant=tenant)
            give_later_columns(older)
            older.apply([make.put(text) for text in texts])
            older.close()
    for tenant, expected in {"acme": 1, "umbrella": 1, "nobody": 0}.items():
        store = PostgresStore(address, schema=schema, tenant=tenant)
        assert len(store.match(make.where(), query("one"), limit=9)) == expected
        assert maintenance_of(store).check() == []
        store.close()
    test_every_table_keeps_tenants_apart(hosted)


def test_old_events_of_one_tenant_go_and_the_others_stay(tenants, make):
    """Each keeps its own for as long as it likes, with the least rights that work; each knows what it lacks."""
    acme, umbrella = tenants
    for store in tenants:
        store.apply([make.put(make("old", key=f"{number}"), emit=True) for number in range(3)])
    last = acme.events([make.scope], limit=9)[-1].seq
    [outcome] = acme.apply([TrimEvents(before=make.clock.forward(), limit=3)])
    assert (outcome.more, acme.events([make.scope], limit=9), acme.events_floor()) == (True, [], last)
    assert (len(umbrella.events([make.scope], limit=9)), umbrella.events_floor()) == (3, 0)

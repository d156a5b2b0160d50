"""What is counted beforehand is what there is, whoever writes at once; what older schemas hold is counted too."""

from __future__ import annotations

import os
import random
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from commonplace.model.changes import Archive, Delete, DropScope
from commonplace.stores.postgres import migrations as postgres_migrations
from commonplace.stores.postgres.search import places_of
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.postgres.upkeep import PostgresMaintenance
from household import furnish
from stands import POSTGRES, Clock, Maker, give_later_columns, postgres

pytestmark = pytest.mark.postgres


def rows(store):
    """The rows in which a store counts."""
    with store.using() as db:
        return db.execute("select bucket, texts, length from tally order by 1, 2, 3").fetchall()


def counted(store, make):
    """How many texts of what length a search takes a scope to hold."""
    with store.reading() as db:
        places = places_of(db, make.where())
    return places.texts, places.length


def test_writes_are_added_up(new_postgres, make):
    """A count is one row for each sort of texts in a scope, whatever is put, changed and put away."""
    store = new_postgres()
    first, *_ = [store.apply([make.put(text)])[0].records[0] for text in ("one", "two words", "three words here")]
    assert counted(store, make) == (3, 6)
    store.apply([make.update(first, content="one and more")])
    assert counted(store, make) == (3, 8)
    store.apply([Archive(where=make.where(ids=frozenset({first.id})), at=make.clock())])
    assert counted(store, make) == (2, 5)
    assert len(rows(store)) == 3


def test_a_scope_that_was_emptied_counts_nothing(new_postgres, make):
    """What was erased leaves no row that says how long it was; what is left is counted."""
    store = new_postgres()
    kept, gone = (store.apply([make.put(text)])[0].records[0] for text in ("left here", "to go"))
    store.apply([Delete(where=make.where(ids=frozenset({gone.id})))])
    assert [row[1:] for row in rows(store)] == [(1, 2)]
    store.apply([Delete(where=make.where(ids=frozenset({kept.id})))])
    assert rows(store) == []


def test_with_a_scope_goes_its_count(new_postgres, make):
    """Nothing is counted in a scope that is not there."""
    store = new_postgres()
    store.apply([make.put("a"), make.put("b")])
    store.apply([DropScope(scope=make.scope)])
    assert rows(store) == []


def test_who_writes_by_full_names_is_counted_too(new_postgres, make):
    """An administrator's connection need not look into the schema: what it erases is counted all the same."""
    store = new_postgres()
    store.apply([make.put("to stay"), make.put("to go")])
    with psycopg.connect(os.environ[POSTGRES], autocommit=True) as db:
        db.execute("select set_config('commonplace.tenant', 'default', false)")
        db.execute(f"delete from {store.schema}.record where content = 'to go'")
    assert counted(store, make) == (1, 2)
    assert PostgresMaintenance(store).check() == []


def test_many_writers_and_erasers_count_right(new_postgres):
    """Eight threads write, change and erase in one scope."""
    store = new_postgres()

    def write(number):
        mine, chance = Maker(Clock()), random.Random(number)
        for _ in range(15):
            [outcome] = store.apply([mine.put(f"text {chance.random()}")])
            [record] = outcome.records
            what = chance.choice(["leave", "change", "erase"])
            if what == "change":
                store.apply([mine.update(record, content="much longer than before it was")])
            if what == "erase":
                store.apply([Delete(where=mine.where(ids=frozenset({record.id})))])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(8)))
    assert PostgresMaintenance(store).check() == []


def test_an_older_schema_is_counted_when_it_is_opened(new_postgres, make, query, monkeypatch):
    """What was written before there was a count is in it, and is found as before."""
    with monkeypatch.context() as before:
        before.setattr(postgres_migrations, "NEWEST", 4)
        older = postgres(None)
        give_later_columns(older)
        furnish(older, make)
        older.close()
    address = older._connections._url
    store = PostgresStore(address, schema=older.schema, clock="caller")
    try:
        assert PostgresMaintenance(store).check() == []
        new = new_postgres()
        furnish(new, Maker(Clock()))
        asked = query("thing now")
        found, expected = (
            [(match.record.content, match.score) for match in one.match(make.where(), asked, limit=50)]
            for one in (store, new)
        )
        assert found
        assert found == expected
    finally:
        with store.using() as db:
            db.execute(f"drop schema {older.schema} cascade")
        store.close()

"""Nearness by an index: it finds what comparing everything finds, whatever the filter keeps."""

from __future__ import annotations

import os
import random
from array import array
from math import hypot

import pytest

from commonplace.model.changes import AdoptEmbedder
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.scopes import Scope
from commonplace.stores.postgres import hnsw as near
from commonplace.stores.postgres.search import nearest_vectors, places_of
from commonplace.stores.postgres.upkeep import PostgresMaintenance
from commonplace.stores.sql.filters import entry_sql
from stands import NO_POSTGRES, POSTGRES, Clock, Maker, forget, postgres

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
DIMENSIONS, RECORDS, QUESTIONS = 48, 3000, 40


def direction(chance, around=None):
    """A vector of unit length, of its own or near another."""
    base = around or [0.0] * DIMENSIONS
    numbers = [one + chance.gauss(0, 0.12 if around else 1) for one in base]
    return [number / hypot(*numbers) for number in numbers]


@pytest.fixture(scope="module")
def centres():
    """What texts are about."""
    return [direction(random.Random(number)) for number in range(30)]


@pytest.fixture(scope="module")
def pg(centres):
    """A store with many vectors in clusters, a tenth of them of one category, and an index."""
    if not os.environ.get(POSTGRES):
        pytest.fail(NO_POSTGRES)
    store, chance, make = postgres(None), random.Random(1), Maker(Clock())
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="clusters", dimensions=DIMENSIONS))])
    changes = [
        make.put(make(f"text {number}", category=f"c{number % 10}"), vector=direction(chance, chance.choice(centres)))
        for number in range(RECORDS)
    ]
    for start in range(0, RECORDS, 500):
        store.apply(changes[start : start + 500])
    with store.using() as db:
        near.build(db, DIMENSIONS)
        db.execute("analyze embedding; analyze entry")
    yield store
    forget(store)


def recall(store, where, centres):
    """The share of the ten nearest that the index finds."""
    chance, found = random.Random(2), 0
    for _ in range(QUESTIONS):
        asked = array("f", direction(chance, chance.choice(centres)))
        with store.reading() as db:
            quick, exact = (
                {entry for entry, _ in nearest_vectors(db, where, asked, 10, places_of(db, where), walk=walk)}
                for walk in (True, False)
            )
        found += len(quick & exact)
    return found / (10 * QUESTIONS)


def test_the_index_finds_what_is_nearest(pg, make, centres):
    """Of the ten nearest at least 98 in 100, with no filter and with one that keeps a tenth."""
    for where in (make.where(), make.where(categories=frozenset({"c3"}))):
        assert recall(pg, where, centres) >= 0.98


def test_the_index_is_what_is_used(pg, make):
    """The plan walks the index and stops; it does not sort everything."""
    asked = array("f", direction(random.Random(3)))
    with pg.reading() as db:
        condition, values = entry_sql(db, make.where())
        buckets = [row[0] for row in db.execute("select distinct bucket from entry")]
        db.execute("set local enable_sort = off")
        sql = f"explain {near.statement(DIMENSIONS, condition)}".replace("?", "%s")
        plan = "\n".join(row[0] for row in db.execute(sql, [buckets, *values, asked, 10]))
    assert near.index_name(DIMENSIONS) in plan


def test_a_filter_that_keeps_less_than_is_asked_for_gives_all_of_it(pg, make):
    """The walk ends before there are enough: then everything is compared, and nothing is left out."""
    other = Scope.parse("user:bob")
    pg.apply([make.put(make(f"his {n}", scope=other), vector=direction(random.Random(n))) for n in range(5)])
    where, asked = make.where(other), array("f", direction(random.Random(9)))
    with pg.reading() as db:
        found = nearest_vectors(db, where, asked, 10, places_of(db, where), walk=True)
    assert len(found) == 5


def test_a_keeper_says_when_an_index_is_missing_and_builds_it(pg):
    """Many vectors without an index are a problem that can be mended; a store with one is healthy."""
    with pg.using() as db:
        db.execute(f"drop index {near.index_name(DIMENSIONS)}")
        db.execute(
            "update pg_class set reltuples = 50000 where oid = 'embedding'::regclass"
        )  # as if there were so many
    assert ["no index of what is near" in problem.what for problem in PostgresMaintenance(pg).check()] == [True]
    assert PostgresMaintenance(pg).repair().done == ("an index of what is near was built",)
    assert PostgresMaintenance(pg).check() == []

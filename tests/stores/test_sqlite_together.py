"""Threads that write at once share a transaction: made whole or refused one by one, told once it is committed."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from commonplace.model.changes import Delete
from commonplace.model.errors import Conflict, StoreError
from commonplace.model.queries import Order
from commonplace.stores.sqlite.store import SqliteStore

WRITERS = 8


@pytest.fixture
def file_store(tmp_path):
    """A store in a file: what is in memory has one connection, and nobody to wait for."""
    store = SqliteStore(str(tmp_path / "memory.db"))
    yield store
    store.close()


def meanwhile(store, works):
    """Let threads write while somebody else holds the lock, so that all but the first wait; their futures."""
    with ThreadPoolExecutor(len(works)) as pool:
        with store.exclude_writers():
            runs = []
            for count, work in enumerate(works):
                runs.append(pool.submit(work))
                until = time.monotonic() + 10
                while len(store._commits._waiting) < count and time.monotonic() < until:
                    time.sleep(0.001)
        return [run.exception() or run.result() for run in runs]


def contents(store, make):
    """What the store holds."""
    return {record.content for record in store.find(make.where(), order=Order.ID, limit=99)}


def number(store):
    """How many durable transactions there have been."""
    return store.read_mark()[1]


def test_those_who_wait_are_made_together(file_store, make):
    """One leads and the rest share the next transaction: two commits for eight writes, and all of them are kept."""
    file_store.apply([make.put(make("before"))])
    before = number(file_store)
    records = [make(f"write {each}") for each in range(WRITERS)]
    outcomes = meanwhile(file_store, [lambda one=one: file_store.apply([make.put(one)]) for one in records])
    assert number(file_store) == before + 2
    assert [outcome.records[0].content for [outcome] in outcomes] == [record.content for record in records]
    assert contents(file_store, make) == {"before", *(record.content for record in records)}


def test_one_that_is_refused_refuses_nobody_else(file_store, make, query):
    """What is in conflict leaves nothing behind, not a word to be found by; its neighbours are kept."""
    [kept] = file_store.apply([make.put(make("start"))])[0].records
    stale = make.update(kept, content="too late")
    file_store.apply([make.update(kept, content="changed")])
    refused = [make.put(make("halfway elephants")), stale]
    works = [lambda: file_store.apply([make.put(make("first"))])]
    works += [lambda: file_store.apply(refused), lambda: file_store.apply([make.put(make("third"))])]
    _, conflict, _ = meanwhile(file_store, works)
    assert isinstance(conflict, Conflict)
    assert conflict.current == 2
    assert contents(file_store, make) == {"changed", "first", "third"}
    assert not file_store.match(make.where(), query("elephants"), limit=9)
    with file_store.using() as connection:
        connection.execute("insert into entry_fts (entry_fts, rank) values ('integrity-check', 1)")


def test_of_those_who_wait_for_one_version_one_wins(file_store, make):
    """Compare-and-set holds inside of a shared transaction as it does between two."""
    [kept] = file_store.apply([make.put(make("start"))])[0].records
    changes = [make.update(kept, content=f"by {each}") for each in range(WRITERS)]
    outcomes = meanwhile(file_store, [lambda one=one: file_store.apply([one]) for one in changes])
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == WRITERS - 1
    assert file_store.get(kept.id).version == 2


def test_a_full_disk_is_told_to_everybody(file_store, make):
    """Where nothing can be written nobody is told that it was, and the next write finds a store that works."""
    file_store.apply([make.put(make("before"))])
    with file_store.using() as connection:
        pages = connection.pragma("page_count")
        connection.pragma("max_page_count", pages)
        large = [make(f"{each} " + "word " * 20_000) for each in range(4)]
    outcomes = meanwhile(file_store, [lambda one=one: file_store.apply([make.put(one)]) for one in large])
    assert all(isinstance(outcome, StoreError) for outcome in outcomes)
    assert contents(file_store, make) == {"before"}
    with file_store.using() as connection:
        connection.pragma("max_page_count", pages * 100)
    file_store.apply([make.put(make("after"))])
    assert contents(file_store, make) == {"before", "after"}


def test_an_erasure_among_others_erases(file_store, make):
    """A delete that shares its transaction is made whole: the others' words stay, its own are gone."""
    [gone] = file_store.apply([make.put(make("gone"))])[0].records
    works = [lambda: file_store.apply([make.put(make("first"))])]
    works += [lambda: file_store.apply([Delete(where=make.where(ids=frozenset({gone.id})))])]
    works += [lambda: file_store.apply([make.put(make("third"))])]
    outcomes = meanwhile(file_store, works)
    assert outcomes[1][0].gone == (gone.id,)
    assert contents(file_store, make) == {"first", "third"}


def test_nobody_is_told_before_it_is_committed(file_store, make, tmp_path):
    """Whoever was answered finds the write in another store object at once, however many write."""
    other = SqliteStore(str(tmp_path / "memory.db"))
    start = threading.Barrier(WRITERS)

    def work(thread):
        start.wait()
        for turn in range(5):
            record = make(f"thread {thread} turn {turn}")
            file_store.apply([make.put(record)])
            assert other.get(record.id) is not None

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(work, range(WRITERS)))
    other.close()

"""One SQLite store, many users: threads, forked children, processes that come at once."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from commonplace.model.changes import Delete
from commonplace.model.errors import Conflict
from commonplace.model.queries import Order
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance


def at_once(count, work):
    """Call it from so many threads at the same moment, and return what came back."""
    start = threading.Barrier(count)

    def begin(number):
        start.wait()
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_sixteen_threads_share_a_store(store, make, query):
    """Every thread writes, reads and searches on one store object, and nothing is lost or mixed up."""

    def work(number):
        for turn in range(6):
            record = make(f"thread{number} turn{turn}")
            store.apply([make.put(record)])
            assert store.get(record.id).content == record.content
            assert store.match(make.where(), query(f"thread{number}"), limit=99)

    at_once(16, work)
    texts = {record.content for record in store.find(make.where(), order=Order.ID, limit=999)}
    assert texts == {f"thread{number} turn{turn}" for number in range(16) for turn in range(6)}


def test_of_many_threads_one_wins(store, make, keep):
    """Of sixteen updates of one version one is made, the others are conflicts that name the new version."""
    kept = keep("start")

    def work(number):
        try:
            return store.apply([make.update(kept, content=f"by {number}")])[0].records[0].content
        except Conflict as conflict:
            return conflict.current

    outcomes = at_once(16, work)
    assert outcomes.count(2) == 15
    assert store.get(kept.id).content in outcomes


def test_a_store_may_be_closed_while_others_use_it(file_store, make):
    """Closing takes nothing away from a thread that is just writing."""
    done = threading.Event()

    def write(_number):
        for turn in range(40):
            file_store.apply([make.put(f"turn {turn}")])

    def close():
        while not done.is_set():
            file_store.close()

    closer = threading.Thread(target=close)
    closer.start()
    try:
        at_once(4, write)
    finally:
        done.set()
        closer.join()
    assert len(file_store.find(make.where(), order=Order.ID, limit=999)) == 160


def test_writing_and_erasing_leak_no_descriptors(file_store, make):
    """A process that runs for ever does not run out of files."""
    counts = []
    for _ in range(12):
        file_store.apply([make.put()])
        file_store.apply([Delete(where=make.where())])
        counts.append(len(os.listdir("/proc/self/fd")))
    assert counts[2] == counts[-1]


def test_two_stores_on_one_file_see_each_other(tmp_path, make):
    """What one has written the other reads, and both are in one queue."""
    one, other = (SqliteStore(os.fspath(tmp_path / "memory.db")) for _ in range(2))
    record = make("one")
    one.apply([make.put(record)])
    other.apply([make.update(other.get(record.id), content="two")])
    assert one.get(record.id).content == "two"
    with pytest.raises(Conflict):
        one.apply([make.put(record.replace(content="three"), expect=1)])
    one.close()
    assert other.get(record.id).content == "two"
    other.close()


FORKED = """
store, make = SqliteStore(sys.argv[1]), Maker(Clock())
for turn in range(3):
    store.apply([make.put("parent before")])
    child = os.fork()
    if child == 0:
        store.apply([make.put("child")])
        assert len(store.find(make.where(), order=Order.ID, limit=99)) >= 2
        store.close()
        sys.exit(0)
    store.apply([make.put("parent beside")])
    assert os.waitpid(child, 0)[1] == 0
    store.apply([make.put("parent after")])
store.close()
print(" ".join(sorted(record.content for record in store.find(make.where(), order=Order.ID, limit=99))))
"""


@pytest.mark.parametrize("leave", ["sys.exit(0)", "os._exit(0)"])
def test_a_forked_child_and_its_parent_go_on_by_themselves(tmp_path, python, leave):
    """A store that was open when the process forked works on both sides, however the child ends."""
    program = "from commonplace.model.queries import Order" + FORKED.replace("sys.exit(0)", leave)
    said = python(program, tmp_path / "memory.db")
    assert said.split().count("child") == 3
    assert said.split().count("parent") == 9
    store = SqliteStore(os.fspath(tmp_path / "memory.db"))
    assert SqliteMaintenance(store).check() == []
    store.close()


FORKED_WHILE_WRITING = """
import threading, time
from commonplace.model.errors import StoreError
store, make = SqliteStore(sys.argv[1]), Maker(Clock())
writing, end = threading.Event(), threading.Event()

def write():
    with store.writing(durable=True):
        writing.set()
        end.wait(float(sys.argv[2]))

thread = threading.Thread(target=write)
thread.start()
writing.wait()
child = os.fork()
if child == 0:
    try:
        store.apply([make.put("child")])
    except StoreError as error:
        print(error)
    sys.exit(0)
end.set()
thread.join()
store.apply([make.put("parent")])
os.waitpid(child, 0)
print(len(store.find(make.where(), order=Order.ID, limit=9)))
"""


def test_a_fork_waits_for_a_write_to_end(tmp_path, python):
    """A process that forks while another of its threads writes has a child that can write."""
    program = "from commonplace.model.queries import Order" + FORKED_WHILE_WRITING
    assert python(program, tmp_path / "memory.db", 0.3) == "2\n"


@pytest.mark.slow
def test_a_child_that_was_forked_in_the_middle_of_a_write_is_told(tmp_path, python):
    """Where waiting did not help the child gets a clear error, and the parent goes on."""
    program = "from commonplace.model.queries import Order" + FORKED_WHILE_WRITING
    said, count = python(program, tmp_path / "memory.db", 60).splitlines()
    assert "was forked in the middle of a read or write" in said
    assert count == "1"


FORKED_AND_CLOSED = """
store, make = SqliteStore(sys.argv[1]), Maker(Clock())
(readable, ready), (waiting, go) = os.pipe(), os.pipe()
child = os.fork()
if child == 0:
    store.apply([make.put("child")])
    os.write(ready, b".")
    os.read(waiting, 1)
    store.apply([make.put("child")])
    sys.exit(0)
os.read(readable, 1)
store.close()
third = "from conftest import *; SqliteStore(sys.argv[1]).apply([Maker(Clock()).put('third')])"
subprocess.run([sys.executable, "-c", third, sys.argv[1]], check=True)
os.write(go, b".")
os.waitpid(child, 0)
print(" ".join(record.content for record in store.find(make.where(), order=Order.OLDEST, limit=9)))
"""


def test_a_parent_that_closes_takes_nothing_from_its_child(tmp_path, python):
    """When the parent has gone the child still shares the store with everybody else, and no write is lost."""
    said = python("from commonplace.model.queries import Order" + FORKED_AND_CLOSED, tmp_path / "memory.db")
    assert sorted(said.split()) == ["child", "child", "third"]


IN_MEMORY = """
store, make = SqliteStore(":memory:"), Maker(Clock())
store.apply([make.put("kept")])
child = os.fork()
if child == 0:
    store.apply([make.put("more")])
    print(len(store.find(make.where(), order=Order.ID, limit=9)))
    sys.exit(0)
os.waitpid(child, 0)
print(len(store.find(make.where(), order=Order.ID, limit=9)))
"""


def test_a_child_has_its_own_copy_of_what_is_in_memory(python):
    """Forking copies a store in memory: nothing is lost, and nothing is shared."""
    assert python("from commonplace.model.queries import Order" + IN_MEMORY) == "2\n1\n"


OPENED = """
store, make = SqliteStore(sys.argv[1]), Maker(Clock())
for _ in range(5):
    store.apply([make.put(f"by {os.getpid()}")])
"""


def test_processes_may_make_a_store_at_the_same_moment(tmp_path, make, python):
    """Whoever comes first makes it, the others wait and use it."""
    at_once(6, lambda _number: python(OPENED, tmp_path / "memory.db"))
    store = SqliteStore(os.fspath(tmp_path / "memory.db"))
    assert len(store.find(make.where(), order=Order.ID, limit=99)) == 30
    assert SqliteMaintenance(store).check() == []
    store.close()

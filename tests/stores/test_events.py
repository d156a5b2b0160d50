"""``events``: what happened, told in the transaction in which it happened, in the order in which it happened."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from commonplace.files.mirror import MirroredStore
from commonplace.model.changes import Cap, Delete, DropScope, Emit, Trim
from commonplace.model.errors import CapacityExceeded, Conflict
from commonplace.model.events import Event, EventKind
from commonplace.model.ports import Measure
from commonplace.model.queries import Order, State
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope

BOB = Scope.parse("user:bob")


def told(store, *scopes, after=0):
    """What was told of some scopes, shortly."""
    events = store.events(scopes, after=after, limit=99)
    return [(event.what.removeprefix("memory."), event.key, event.previous, event.version) for event in events]


def test_a_put_tells_what_came_and_what_changed(store, make):
    """The first version is told as created, the next as updated, each with the version before it."""
    [made] = store.apply([make.put(make("one", key="k", tags=frozenset({"b", "a"})), emit=True)])
    store.apply([make.update(made.records[0], content="two").replace(emit=True)])
    assert told(store, make.scope) == [("created", "k", None, 1), ("updated", "k", 1, 2)]
    [first, _] = store.events([make.scope], limit=9)
    assert (first.record, first.kind, first.tags, first.at) == (
        made.records[0].id,
        Kind.SEMANTIC,
        ("a", "b"),
        make.clock(),
    )


def test_an_event_never_says_what_the_record_says(store, make):
    """Neither the content nor the value is in an event."""
    store.apply([make.put(make("a whisper", value={"say": "a whisper"}, key="k"), emit=True)])
    assert "whisper" not in repr(store.events([make.scope], limit=9))


def test_only_those_who_ask_are_told_of(store, make, keep):
    """A write that does not ask for it leaves no event."""
    keep("one")
    store.apply([Delete(where=make.where())])
    assert told(store, make.scope) == []


def test_a_deletion_tells_each_record_as_it_was_named(store, make):
    """What is erased is told one by one, as deleted or as expired."""
    store.apply([make.put(make(key, key=key), emit=False) for key in "ab"])
    store.apply([Delete(where=make.where(keys=frozenset({"a"})), emit=EventKind.DELETED)])
    store.apply([Delete(where=make.where(keys=frozenset({"b"})), emit=EventKind.EXPIRED)])
    assert told(store, make.scope) == [("deleted", "a", 1, 1), ("expired", "b", 1, 1)]


def test_an_eviction_tells_what_went(store, make):
    """What makes room is told as evicted; what stays is not told of."""
    for key in "abc":
        make.clock.forward()
        store.apply([make.put(make(key, key=key))])
    store.apply([Trim(where=make.where(), keep=1, order=Order.OLDEST, emit=True)])
    assert told(store, make.scope) == [("evicted", "a", 1, 1), ("evicted", "b", 1, 1)]


def test_what_happened_to_several_is_told_as_it_is_given(store, make):
    """An event of one's own keeps its detail."""
    event = Event(what=EventKind.ARCHIVED, at=make.clock(), scope=make.scope, detail={"entries": [1, {"a": None}]})
    store.apply([Emit(event=event)])
    [kept] = store.events([make.scope], limit=9)
    assert kept == event.replace(seq=kept.seq)
    assert kept.seq > 0


def test_what_was_undone_is_not_told(store, make):
    """An apply that fails tells nothing."""
    record = make("one", key="k")
    with pytest.raises(Conflict):
        store.apply([make.put(record, emit=True), make.put(make("two", key="k"), emit=True)])
    assert told(store, make.scope) == []


def test_events_are_read_by_scope_in_pages(store, make):
    """Whoever may not read a scope hears nothing of it; pages go on after the last number."""
    for key in "abc":
        store.apply([make.put(make(key, key=key), emit=True), make.put(make(key, key=key, scope=BOB), emit=True)])
    [first, second] = store.events([BOB], limit=2)
    assert (first.key, second.key, first.scope) == ("a", "b", BOB)
    assert told(store, BOB, after=second.seq) == [("created", "c", None, 1)]
    assert len(told(store, BOB, make.scope)) == 6


def test_a_dropped_scope_takes_its_events_with_it(store, make):
    """Nothing is told any more of a scope that was erased, and numbers are not used again."""
    store.apply([make.put(make("one", scope=BOB), emit=True)])
    [last] = store.events([BOB], limit=9)
    store.apply([DropScope(scope=BOB)])
    assert told(store, BOB) == []
    store.apply([make.put(emit=True)])
    assert store.events([make.scope], limit=9)[0].seq > last.seq


def test_room_is_made_for_what_matters_least(store, make):
    """Low priority goes before normal before high, and of equals what was written longest ago."""
    for key, priority in zip("abcde", ("normal", "high", "low", "normal", "low"), strict=True):
        make.clock.forward()
        metadata = {"priority": priority, "note": '"priority":"low"'}
        store.apply([make.put(make(key, key=key, metadata=metadata))])
    gone = []
    for keep in (4, 3, 2, 1, 0):
        store.apply([Trim(where=make.where(), keep=keep, order=Order.EXPENDABLE, emit=True)])
    gone = "".join(key for _, key, _, _ in told(store, make.scope))
    assert gone == "ceadb"


def test_what_is_spared_counts_and_stays(store, make):
    """The record for which room is made is not what goes."""
    for key in "abc":
        store.apply([make.put(make(key, key=key))])
    [first] = store.find(make.where(keys=frozenset({"a"})), order=Order.ID, limit=1)
    store.apply([Trim(where=make.where(), keep=1, order=Order.OLDEST, spare=(first.id,))])
    assert [record.key for record in store.find(make.where(), order=Order.ID, limit=9)] == ["a"]


def test_a_cap_refuses_the_whole_apply(store, make):
    """More records or bytes than that undo everything, and the error says how many and how much."""
    store.apply([make.put("four"), Cap(where=make.where(), max_records=1, max_bytes=4)])
    with pytest.raises(CapacityExceeded, match="would make 2 entries; the limit is 1") as caught:
        store.apply([make.put("five"), Cap(where=make.where(), max_records=1)])
    assert (caught.value.current, caught.value.limit) == (2, 1)
    with pytest.raises(CapacityExceeded, match="would make 8 bytes; the limit is 7"):
        store.apply([make.put("füx"), Cap(where=make.where(), max_bytes=7)])
    assert store.measure(make.where()) == Measure(count=1, bytes=4)


def test_a_cap_counts_what_lies_below_as_it_is_then(store, make, keep):
    """Also in scopes that whoever asked for it did not know of; a scope that is not there holds nothing."""
    root, here, there = (Scope.parse(path) for path in ("agent:a", "agent:a/task:t", "agent:a/task:u/namespace:n"))
    keep("one", scope=there)
    keep("another", scope=Scope.parse("agent:ab"))
    put = make.put(make("two", scope=here))
    with pytest.raises(CapacityExceeded, match="would make 2 entries; the limit is 1"):
        store.apply([put, Cap(where=make.where(here), below=(root,), max_records=1)])
    with pytest.raises(CapacityExceeded, match="would make 6 bytes; the limit is 5"):
        store.apply([put, Cap(where=make.where(here), below=(root,), max_bytes=5)])
    store.apply([put, Cap(where=make.where(here), below=(here, Scope.parse("agent:nobody")), max_records=1)])


def test_measuring_counts_what_is_meant(store, make, keep):
    """Only the records meant are counted, in bytes."""
    keep("ü")
    keep("ab", scope=BOB)
    keep("gone", expires_at=make.clock())
    assert store.measure(make.where()) == Measure(count=1, bytes=2)
    assert store.measure(make.where(states=frozenset({State.EXPIRED}))) == Measure(count=1, bytes=4)
    assert store.measure(make.where(Scope.parse("user:nobody"))) == Measure(count=0, bytes=0)


def test_scopes_are_listed_with_what_is_below_them(store, keep):
    """A scope is named with all that it holds, and not with what only begins like it."""
    for path in ("agent:a", "agent:a/task:t", "agent:a/task:t/namespace:n", "agent:ab", "agent:a/task:u"):
        keep(path, scope=Scope.parse(path))
    below = [str(scope) for scope in store.scopes(Scope.parse("agent:a"))]
    assert below == ["agent:a", "agent:a/task:t", "agent:a/task:t/namespace:n", "agent:a/task:u"]
    assert [str(scope) for scope in store.scopes()] == [*below, "agent:ab"]
    assert store.scopes(Scope.parse("agent:nobody")) == []


def test_scopes_that_hold_nothing_are_not_inhabited(store, make, keep):
    """Only those with records, in whatever state, are named; a scope that is told of only is none of them."""
    for path in ("agent:a", "agent:a/task:b/namespace:n", "agent:a/task:c", "agent:ab"):
        keep(path, scope=Scope.parse(path))
    store.apply([Delete(where=make.where(Scope.parse("agent:a/task:c")), emit=EventKind.DELETED)])
    keep("over", scope=Scope.parse("agent:a/task:d"), expires_at=make.clock())
    found = [str(scope) for scope in store.scopes_with_records(Scope.parse("agent:a"))]
    assert found == ["agent:a", "agent:a/task:b/namespace:n", "agent:a/task:d"]
    assert MirroredStore(store, {}).scopes_with_records(Scope.parse("agent:ab")) == [Scope.parse("agent:ab")]
    assert store.scopes_with_records(Scope.parse("agent:nobody")) == []


def test_a_store_with_files_beside_it_tells_the_same(store, make):
    """What mirrors a store passes on what it is asked."""
    mirrored = MirroredStore(store, {})
    mirrored.apply([make.put(make("one", key="k"), emit=True)])
    assert told(mirrored, make.scope) == [("created", "k", None, 1)]
    assert mirrored.measure(make.where()) == store.measure(make.where())
    assert mirrored.scopes() == mirrored.scopes(make.scope) == [make.scope]


def test_who_waits_hears_of_the_last_event_at_once(store, make):
    """The number is that of the last event of any scope; where nothing was told it is 0, when the time is over."""
    assert store.wait_for_event(after=0, seconds=0.01) == 0
    store.apply([make.put(make("one", scope=BOB), emit=True), make.put("untold")])
    [event] = store.events([BOB], limit=9)
    assert store.wait_for_event(after=0, seconds=60) == event.seq
    assert store.wait_for_event(after=event.seq, seconds=0.01) == event.seq
    assert MirroredStore(store, {}).wait_for_event(after=0, seconds=60) == event.seq


def test_what_is_told_while_somebody_waits_ends_the_wait(store, make):
    """Long before the time is over, and whoever else waits."""
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(store.wait_for_event, after=0, seconds=60) for _ in range(2)]
        store.apply([make.put(emit=True)])
        [event] = store.events([make.scope], limit=9)
        assert [heard.result(timeout=30) for heard in waiting] == [event.seq, event.seq]


def test_what_was_not_told_ends_no_wait(store, make):
    """Neither a write that tells nothing nor one that was undone."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(store.wait_for_event, after=0, seconds=0.3)
        store.apply([make.put("untold")])
        with pytest.raises(CapacityExceeded):
            store.apply([make.put(emit=True), Cap(where=make.where(), max_records=0)])
        assert waiting.result(timeout=30) == 0


TELL = """
import sys
from commonplace.model.scopes import Scope
kind, place, name = sys.argv[1:]
if kind == "postgres":
    from commonplace.stores.postgres.store import PostgresStore
    store = PostgresStore(os.environ[POSTGRES], schema=place)
else:
    store = SqliteStore(place)
make = Maker(lambda: datetime.now(UTC))
make.scope = Scope.parse(f"agent:{name}")
for number in range(40):
    store.apply([make.put(make(f"{number}", key=f"{name}-{number}"), emit=True)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_whoever_follows_misses_nothing_that_several_processes_tell(kind, request):
    """A reader that asks again after the last number it saw has seen every event, once, when the writers are done."""
    store = request.getfixturevalue("new_postgres" if kind == "postgres" else "file_store")
    store = store() if kind == "postgres" else store
    place = store.schema if kind == "postgres" else store.path
    where = os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..")}
    command = [sys.executable, "-c", f"from conftest import *\n{TELL}", kind, place]
    writers = [subprocess.Popen([*command, name], env=where) for name in "abc"]
    scopes = [Scope.parse(f"agent:{name}") for name in "abc"]
    seen, last, over = [], 0, threading.Event()

    def wait():
        for writer in writers:
            writer.wait(60)
        over.set()

    threading.Thread(target=wait).start()
    while True:
        done = over.is_set()
        events = store.events(scopes, after=last, limit=7)
        seen += [event.key for event in events]
        last = events[-1].seq if events else last
        if done and not events:
            break
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert sorted(seen) == sorted(f"{name}-{number}" for name in "abc" for number in range(40))

"""``TrimEvents``: what was told long ago goes, a batch at a time; archives stay, and numbers are never used again."""

import os
import string
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from commonplace.app import copier_of, maintenance_of
from commonplace.engine.transfer import migrate
from commonplace.files.mirror import MirroredStore
from commonplace.model.changes import DropScope, Emit, TrimEvents
from commonplace.model.events import Event, EventKind
from commonplace.model.scopes import Scope
from commonplace.stores.postgres import migrations as postgres_migrations
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite.store import SqliteStore
from household import whole
from stands import give_later_columns, postgres

DAY = timedelta(days=1)


@pytest.fixture
def emit(make):
    """Tell of records with these keys; a dot is an archive."""

    def emit(over, keys, *, scope=make.scope):
        for key in keys:
            if key == ".":
                over.apply(
                    [Emit(event=Event(what=EventKind.ARCHIVED, at=make.clock(), scope=scope, detail={"held": 1}))]
                )
            else:
                over.apply([make.put(make(key, key=key, scope=scope), emit=True)])
        return over.events([scope], limit=999)[-1].seq

    return emit


def kept_in(kind, request):
    """A store that outlives its closing."""
    return request.getfixturevalue("new_postgres")() if kind == "postgres" else request.getfixturevalue("file_store")


def left(store, make):
    """What is still told, shortly; a dot is an archive."""
    return "".join(event.key or "." for event in store.events([make.scope], limit=9999))


def trimmed(store, before, most=1000):
    """Erase what was told before that; whether there may be more."""
    [outcome] = store.apply([TrimEvents(before=before, limit=most)])
    return outcome.more


def test_what_is_old_goes_and_what_is_not_stays(store, make, emit):
    """From the moment on what was told is kept; it can be told up to where it is not."""
    assert store.events_floor() == 0
    last = emit(store, "ab")
    now = make.clock.forward(DAY)
    emit(store, "cd")
    assert not trimmed(store, now)
    assert (left(store, make), store.events_floor()) == ("cd", last)
    assert not trimmed(store, now)
    assert (left(store, make), store.events_floor()) == ("cd", last)
    assert MirroredStore(store, {}).events_floor() == last


def test_archives_stay_whole(store, make, emit):
    """What holds an archive is kept, with all that it holds, wherever it lies and however often it is looked."""
    emit(store, ".a..b.")
    for _ in range(3):
        make.clock.forward(DAY)
        trimmed(store, make.clock())
    assert left(store, make) == "...."
    assert [dict(event.detail) for event in store.events([make.scope], limit=9)] == [{"held": 1}] * 4


def test_one_look_erases_no_more_than_a_batch(store, make, emit):
    """Whoever is told that there may be more looks again; archives do not stop it."""
    emit(store, "ab...cdef")
    now = make.clock.forward(DAY)
    seen = []
    while trimmed(store, now, most=2):
        seen.append(left(store, make))
    assert seen == ["...cdef", "...cdef", "...def", "...f"]
    assert left(store, make) == "..."


def test_nothing_old_is_nothing_to_do(store, make, emit):
    """An empty store, and one with fresh events only, stay as they are."""
    assert not trimmed(store, make.clock())
    emit(store, "ab")
    assert not trimmed(store, make.clock(), most=2)
    assert (left(store, make), store.events_floor()) == ("ab", 0)


def test_a_clock_that_ran_ahead_holds_nothing_up(store, make, emit):
    """What was told before something old is old, whatever the clock of its writer said."""
    emit(store, "a")
    now = make.clock()
    make.clock.forward(365 * DAY)
    emit(store, "b")
    make.clock.now = now
    emit(store, "c")
    trimmed(store, now + DAY)
    assert left(store, make) == ""


def test_numbers_go_on_when_everything_was_erased(store, make, emit):
    """Whoever asks after the last number that they saw hears of the next event."""
    last = emit(store, "ab")
    trimmed(store, make.clock.forward(DAY))
    assert store.events([make.scope], after=0, limit=9) == []
    assert emit(store, "c") > last
    assert [event.key for event in store.events([make.scope], after=last, limit=9)] == ["c"]
    assert store.wait_for_event(after=last, seconds=60) > last


def test_a_dropped_scope_does_not_hold_it_up(store, make, emit):
    """Events that went with their scope are not waited for, and the scopes that are left are looked after."""
    bob = Scope.parse("user:bob")
    emit(store, "a")
    emit(store, "b", scope=bob)
    emit(store, "c")
    store.apply([DropScope(scope=bob)])
    trimmed(store, make.clock.forward(DAY))
    assert left(store, make) == ""


def test_what_is_erased_is_carried_as_erased(store, make, emit, new_store, tmp_path):
    """A store that is filled from this one goes on with its numbers, and knows what is missing."""
    last = emit(store, "ab.c")
    trimmed(store, make.clock.forward(DAY))
    between, other = SqliteStore(str(tmp_path / "between.db")), new_store()
    emit(other, "xyz")
    for source, target in ((store, between), (between, other)):
        migrate(copier_of(source), copier_of(target), replace=True)
        assert whole(target) == whole(store)
        assert (left(target, make), target.events_floor()) == (".", last)
    assert emit(other, "d") > last
    migrate(copier_of(SqliteStore(str(tmp_path / "empty.db"))), copier_of(other), replace=True)
    assert other.events_floor() == 0


@pytest.mark.parametrize("kind", ["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_backup_knows_what_is_missing(kind, request, make, emit, tmp_path):
    """What a backup brings back, and no other number, says up to where events were erased."""
    store = kept_in(kind, request)
    last = emit(store, "ab")
    trimmed(store, make.clock.forward(DAY))
    emit(store, "c")
    maintenance_of(store).backup(str(tmp_path / "backup.db"))
    trimmed(store, make.clock.forward(DAY))
    assert store.events_floor() > last
    maintenance_of(store).restore(str(tmp_path / "backup.db"))
    assert (left(store, make), store.events_floor()) == ("c", last)
    assert maintenance_of(store).check() == []


def test_many_at_once_leave_nothing_and_lose_nothing(store, make, emit):
    """Threads that write, look and drop scopes at the same moment: what was old is gone, what is new is all there."""
    emit(store, string.ascii_letters)
    now = make.clock.forward(DAY)

    def work(number):
        scope = Scope.parse(f"agent:{number}")
        for turn in range(5):
            store.apply([make.put(make("x", key=f"{number}-{turn}", scope=scope), emit=True)])
            trimmed(store, now, most=10)
            if number % 2:
                store.apply([DropScope(scope=scope)])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    while trimmed(store, now, most=10):
        pass
    assert left(store, make) == ""
    kept = [event.key for event in store.events([Scope.parse(f"agent:{n}") for n in range(6)], limit=999)]
    assert sorted(kept) == sorted(f"{number}-{turn}" for number in (0, 2, 4) for turn in range(5))


TRIM = """
import sys
from datetime import timedelta
from commonplace.model.changes import TrimEvents
from commonplace.model.scopes import Scope
kind, place, name = sys.argv[1:]
if kind == "postgres":
    from commonplace.stores.postgres.store import PostgresStore
    store = PostgresStore(os.environ[POSTGRES], schema=place)
else:
    store = SqliteStore(place)
make = Maker(lambda: datetime.now(UTC))
make.scope = Scope.parse(f"agent:{name}")
for number in range(30):
    store.apply([make.put(make(f"{number}", key=f"{name}-{number}"), emit=True)])
    store.apply([TrimEvents(before=datetime(2026, 6, 1, tzinfo=UTC), limit=5)])
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_several_processes_erase_what_is_old_and_nothing_else(kind, request, make):
    """Each writes and looks: the old events are gone, each new one is there once, and one number says where."""
    store = kept_in(kind, request)
    store.apply([make.put(make("old", key=f"{number}"), emit=True) for number in range(100)])
    last = store.events([make.scope], limit=999)[-1].seq
    place = store.schema if kind == "postgres" else store.path
    where = os.environ | {"PYTHONPATH": os.path.join(os.path.dirname(__file__), "..")}
    command = [sys.executable, "-c", f"from conftest import *\n{TRIM}", kind, place]
    writers = [subprocess.Popen([*command, name], env=where) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert (left(store, make), store.events_floor()) == ("", last)
    told = store.events([Scope.parse(f"agent:{name}") for name in "abc"], limit=999)
    assert sorted(event.key for event in told) == sorted(f"{name}-{number}" for name in "abc" for number in range(30))


def test_the_bytes_of_erased_events_are_overwritten(tmp_path, make):
    """When the store is closed no file holds the key or the tags that an erased event told of."""
    store = SqliteStore(str(tmp_path / "memory.db"))
    event = Event(what=EventKind.DELETED, at=make.clock(), scope=make.scope, key="quokka-event", tags=("quokka-event",))
    store.apply([Emit(event=event)] * 200)
    store.apply([TrimEvents(before=make.clock.forward(DAY), limit=1000)])
    store.close()
    data = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert data.count(b"quokka-event") == 0


@pytest.mark.postgres
def test_an_older_schema_has_its_events_looked_after(make, emit, monkeypatch):
    """What was told before there was an order for each tenant is found and erased all the same."""
    with monkeypatch.context() as before:
        before.setattr(postgres_migrations, "NEWEST", 5)
        older = postgres(None)
        give_later_columns(older)
        emit(older, "ab")
        older.close()
    store = PostgresStore(older._connections._url, schema=older.schema, clock="caller")
    try:
        emit(store, "c")
        trimmed(store, make.clock.forward(DAY))
        assert left(store, make) == ""
        with store.using() as db:
            names = db.execute("select indexname from pg_indexes where schemaname = current_schema()").fetchall()
        assert ("event_tenant",) in names
        assert maintenance_of(store).check() == []
    finally:
        with store.using() as db:
            db.execute(f"drop schema {older.schema} cascade")
        store.close()

"""Many processes on one PostgreSQL: the database decides, and what was not certainly undone is never made again."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from commonplace.model.changes import AdoptEmbedder, DropScope, Finish, Touch
from commonplace.model.errors import Conflict, InvalidInput, SchemaTooNew, StoreBusy, StoreError
from commonplace.model.jobs import Claim, Job
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Order
from commonplace.model.scopes import Scope
from commonplace.stores.postgres.locks import take_turn
from commonplace.stores.postgres.store import PostgresStore
from stands import ADA

pytestmark = pytest.mark.postgres
BOB = Scope.parse("user:bob")
WRITERS = 6


@pytest.fixture
def pg(new_postgres):
    """A store."""
    return new_postgres()


@pytest.fixture
def others(pg):
    """Further stores in the same schema, as other machines have them."""
    made = [again(pg) for _ in range(WRITERS)]
    for store in made:
        store.census()  # connected, so that nobody comes late
    yield made
    for store in made:
        store.close()


def again(store):
    """The same store, opened once more."""
    return PostgresStore(os.environ["COMMONPLACE_TEST_POSTGRES"], schema=store._connections.schema)


def at_once(calls):
    """Call all of these at one moment; what each returned or raised."""
    gate = threading.Barrier(len(calls))

    def call(function):
        gate.wait()
        try:
            return function()
        except Conflict as error:
            return error

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


def test_of_many_who_put_the_next_version_one_does(pg, others, make):
    """A version is followed by one other; everybody else hears of the conflict."""
    [outcome] = pg.apply([make.put("old")])
    change = make.update(outcome.records[0], content="new")
    answers = at_once([lambda store=store: store.apply([change]) for store in others])
    assert sum(isinstance(answer, Conflict) for answer in answers) == WRITERS - 1
    assert pg.get(change.record.id).version == 2


def test_of_many_who_say_the_same_one_is_kept(pg, others, make):
    """A write that says nothing new is dropped, also if it comes at the same moment."""
    for number in range(10):
        changes = [make.put(make(f"the same {number}"), dedupe=True) for _ in others]
        at_once([lambda pair=pair: pair[0].apply([pair[1]]) for pair in zip(others, changes, strict=True)])
    assert len(pg.find(make.where(), order=Order.ID, limit=99)) == 10


def test_of_many_who_take_a_key_one_has_it(pg, others, make):
    """A key belongs to one live record."""
    changes = [make.put(make(str(number), key="k")) for number in range(WRITERS)]
    answers = at_once([lambda pair=pair: pair[0].apply([pair[1]]) for pair in zip(others, changes, strict=True)])
    [kept] = pg.find(make.where(), order=Order.ID, limit=9)
    assert {answer.holder for answer in answers if isinstance(answer, Conflict)} == {kept.id}


def test_of_many_who_claim_a_job_one_gets_it(pg, others, make):
    """One worker at a time, on whatever machine; who lost the lease ends nothing."""
    job = Job(scope=make.scope, kind="extract", key="s", watermark=1)
    lease = timedelta(minutes=1)
    answers = at_once([lambda store=store: store.claim(job, lease=lease, now=make.clock()) for store in others])
    [claim] = [answer for answer in answers if isinstance(answer, Claim)]
    pg.apply([Finish(claim=claim)])


WORKER = """
import sys, time
from commonplace.model import processes
from commonplace.model.changes import Fail, Finish, Heartbeat
from commonplace.model.errors import LeaseLost
from commonplace.model.jobs import Claim, Job, Skipped
from commonplace.stores.postgres.store import PostgresStore
schema, hours, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
processes._machine = lambda: f"machine {hours}"  # whether a process of another one is dead, nobody knows
store, lease = PostgresStore(os.environ[POSTGRES], schema=schema), timedelta(seconds=seconds)
job, wrong = Job(scope=ADA, kind="extract", key="s", watermark=1), timedelta(hours=hours)
clock = lambda: datetime.now(UTC) + wrong
"""
CLAIM = """
claim = store.claim(job, lease=lease, now=clock())
print(f"token {claim.token}" if isinstance(claim, Claim) else claim.reason.value)
"""
BEAT = CLAIM + "store.apply([Heartbeat(claim=claim, until=clock() + lease)])"
FAIL = CLAIM + "store.apply([Fail(claim=claim, error='no model', retry_at=clock() + lease, at=clock())])"


@pytest.fixture
def worker(pg, python):
    """Do something with one job, on a machine whose clock is so many hours wrong; what it says."""

    def worker(what, *, hours, lease=60.0):
        return python(WORKER + what, pg.schema, hours, lease).strip()

    return worker


@pytest.mark.parametrize(("ahead", "hold"), [((-1, 1), CLAIM), ((1, -1), BEAT)], ids=["claimed", "beating"])
def test_a_wrong_clock_takes_no_job_from_who_holds_it(worker, ahead, hold):
    """Of two machines whose clocks are two hours apart, the one that came first has the job."""
    assert worker(hold, hours=ahead[0]).startswith("token ")
    assert worker(CLAIM, hours=ahead[1]) == "running elsewhere"


@pytest.mark.parametrize(("hours", "hold"), [(1, CLAIM), (-1, BEAT)], ids=["claimed", "beating"])
def test_a_wrong_clock_holds_no_job_beyond_its_lease(worker, hours, hold):
    """A lease that was claimed by a clock that is ahead or behind ends when it is over, for everybody."""
    held = worker(hold, hours=hours, lease=0.01)
    taken = worker(CLAIM, hours=0)
    assert held.startswith("token ")
    assert taken.startswith("token ")
    assert held != taken


@pytest.mark.parametrize(
    ("hours", "wait", "then"), [(-1, 0.01, "token "), (1, 60.0, "waiting to be tried again")], ids=["over", "waiting"]
)
def test_a_failed_job_waits_as_long_as_its_worker_said(worker, hours, wait, then):
    """And not until the moment that the worker's clock shows."""
    worker(FAIL, hours=hours, lease=wait)
    assert worker(CLAIM, hours=0).startswith(then)


@pytest.mark.parametrize(("hours", "lease", "leased"), [(1, 60.0, True), (-1, 0.01, False)], ids=["held", "over"])
def test_a_wrong_clock_sees_who_is_at_a_job(pg, worker, hours, lease, leased):
    """Whether somebody holds it is told by the database's clock, and not by that of whoever asks."""
    worker(CLAIM, hours=0, lease=lease)
    asking = PostgresStore(os.environ["COMMONPLACE_TEST_POSTGRES"], schema=pg.schema)
    [state] = asking.jobs([ADA], now=datetime.now(UTC) + timedelta(hours=hours))
    asking.close()
    assert state.leased == leased


def test_a_job_is_dated_by_the_database(pg, worker):
    """Whoever lists jobs sees when they began and ended by one clock."""
    worker(CLAIM + "store.apply([Finish(claim=claim, at=clock())])", hours=-5)
    [state] = pg.jobs([ADA], now=datetime.now(UTC))
    assert abs(state.finished_at - datetime.now(UTC)) < timedelta(hours=1)
    assert state.started_at <= state.finished_at


def test_a_clock_that_nobody_has_is_refused(pg):
    """Before anything is opened."""
    with pytest.raises(InvalidInput, match="not by 'sundial'"):
        PostgresStore(f"{os.environ['COMMONPLACE_TEST_POSTGRES']}&clock=sundial", schema=pg.schema)


def test_no_recall_is_lost_in_the_count(pg, others, make):
    """Everybody who recalls the same records in whatever order is counted, and nobody waits in a circle."""
    kept = [outcome.records[0].id for outcome in pg.apply([make.put(str(number)) for number in range(4)])]
    orders = [kept if number % 2 else kept[::-1] for number in range(WRITERS)]
    calls = [
        lambda pair=pair: [pair[0].apply([Touch(ids=tuple(pair[1]), at=make.clock())]) for _ in range(5)]
        for pair in zip(others, orders, strict=True)
    ]
    at_once(calls)
    assert {pg.get(name).usage.recalls for name in kept} == {5 * WRITERS}


def test_scopes_do_not_wait_for_each_other(pg, others, make):
    """While somebody writes in one scope, others write in another; who waits too long hears that it is busy."""
    with pg._connections.writing(durable=True) as db:
        take_turn(db, pg.turn, [str(make.scope)])
        others[0].apply([make.put(make("meanwhile", scope=BOB))])
        with others[0]._connections.using() as hurried:
            hurried.execute("set lock_timeout = 100")
        with pytest.raises(StoreBusy):
            others[0].apply([make.put("never")])
    assert pg.find(make.where(), order=Order.ID, limit=9) == []


def test_a_write_with_a_vector_does_not_stop_the_others(pg, others, make):
    """Naming the embedder that the store has already is no reason to wait for everybody."""
    named = AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))
    pg.apply([named])
    with pg._connections.writing(durable=True) as db:
        db.execute("select pg_advisory_xact_lock_shared(hashtextextended(%s, 0))", [pg.turn])
        others[0].apply([named, make.put("meanwhile", vector=(1.0, 0.0))])


def test_what_is_erased_while_it_is_recalled_is_not_counted(pg, others, make):
    """A recall that meets an erasure waits for it, and then there is nothing to count: that is no error."""
    [outcome] = pg.apply([make.put("a")])
    touch = Touch(ids=(outcome.records[0].id,), at=make.clock())
    with ThreadPoolExecutor(1) as pool:
        with pg._connections.writing(durable=True) as db:
            db.execute("delete from record")
            counting = pool.submit(others[0].apply, [touch])
            until_somebody_waits(others[1])
        assert counting.result(timeout=10)
    assert pg.get(outcome.records[0].id) is None


WRITER = """
import sys
store = PostgresStore(os.environ[POSTGRES], schema=sys.argv[1])
make = Maker(Clock())
while True:
    [outcome] = store.apply([make.put(make(scope=ADA), dedupe=False)])
    print(outcome.records[0].id, flush=True)
"""


def test_a_killed_writer_loses_nothing_and_stops_nobody(pg, make):
    """What a process was told is kept is kept when it is killed, and its turn ends with it."""
    program = f"from conftest import *\nfrom commonplace.stores.postgres.store import PostgresStore\n{WRITER}"
    where = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
    command = [sys.executable, "-c", program, pg._connections.schema]
    with subprocess.Popen(command, env=where, stdout=subprocess.PIPE, text=True) as writer:
        told = [writer.stdout.readline().strip() for _ in range(40)]
        writer.kill()
        told += writer.stdout.read().split()
    pg.apply([make.put("after")])
    kept = {record.id for record in pg.find(make.where(), order=Order.ID, limit=9999)}
    assert set(told) <= kept
    assert len(kept) - len(told) in {1, 2}  # the last one may have been made and not been told


def until_somebody_waits(store):
    """Come back when a connection to the server waits for another one's lock on a row."""
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into usage%'"
    for _ in range(500):
        with store._connections.using() as db:
            if db.execute(waiting).fetchone()[0]:
                return
        time.sleep(0.01)
    pytest.fail("nobody waits")


# Connections


def cut(store):
    """End the connection that a store has open, as a restart of the server does."""
    with store._connections.using() as db:
        mine = db.info.backend_pid
    end(mine)


def end(process):
    """End one connection at the server's side."""
    with psycopg.connect(os.environ["COMMONPLACE_TEST_POSTGRES"], autocommit=True) as db:
        db.execute("select pg_terminate_backend(%s, 5000)", [process])


def test_a_broken_connection_is_opened_again(pg, make):
    """What breaks before a commit was asked for costs nothing: reads and writes are made on a new connection."""
    pg.apply([make.put("before")])
    cut(pg)
    assert len(pg.find(make.where(), order=Order.ID, limit=9)) == 1
    cut(pg)
    pg.apply([make.put("after")])
    assert len(pg.find(make.where(), order=Order.ID, limit=9)) == 2


def test_an_unknown_commit_is_said_and_not_made_again(pg):
    """Whether a write was made is not known when the connection breaks in its commit: that is an error of its own."""
    with pytest.raises(StoreError, match="not known") as caught, pg._connections.writing(durable=True) as db:
        end(db.info.backend_pid)
    assert not isinstance(caught.value, StoreBusy)


def test_a_closed_store_opens_itself_again(pg, make):
    """Closing gives the connections back, and is no end."""
    pg.apply([make.put("a")])
    pg.close()
    assert len(pg.find(make.where(), order=Order.ID, limit=9)) == 1


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")  # which is what is tried here
def test_a_forked_process_has_connections_of_its_own(pg, make):
    """A child neither uses nor closes what its parent opened."""
    [outcome] = pg.apply([make.put("a")])
    child = os.fork()
    if child == 0:
        os._exit(0 if pg.get(outcome.records[0].id) == outcome.records[0] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert pg.get(outcome.records[0].id) == outcome.records[0]


# Opening


def test_many_may_open_a_store_that_is_not_there_yet(pg):
    """One of them makes it, the others wait for it."""
    with pg._connections.alone() as db:
        db.execute(f"drop schema {pg._connections.schema} cascade")
    for store in at_once([lambda: again(pg) for _ in range(WRITERS)]):
        assert store.census() == []
        store.close()


@pytest.fixture
def clerk(pg):
    """A role without any rights, and its address."""
    address, role = os.environ["COMMONPLACE_TEST_POSTGRES"], f"clerk_{pg._connections.schema}"
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"create role {role} login")
        yield role, psycopg.conninfo.make_conninfo(address, user=role)
        db.execute(f"drop owned by {role} cascade; drop role {role}")


def test_an_owner_of_an_empty_schema_needs_no_right_in_the_database(pg, clerk):
    """Where an administrator has made the extension and the schema, the store is made by whoever owns the schema."""
    (role, address), schema = clerk, pg._connections.schema
    with pg._connections.alone() as db:
        db.execute(f"drop schema {schema} cascade; create schema {schema} authorization {role}")
    store = PostgresStore(address, schema=schema)
    assert store.census() == []
    store.close()


def test_whoever_uses_a_store_needs_no_right_to_make_one(pg, clerk, make):
    """A role that may only read and write rows does everything a store does; what it may not do is said."""
    (role, address), schema = clerk, pg._connections.schema
    with pg._connections.alone() as db:
        db.execute(f"grant usage on schema {schema} to {role}")
        db.execute(f"grant select, insert, update, delete on all tables in schema {schema} to {role}")
    store = PostgresStore(address, schema=schema)
    named = AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))
    [_, outcome] = store.apply([named, make.put("a", vector=(1.0, 0.0))])
    store.apply([make.update(outcome.records[0], content="b"), DropScope(scope=make.scope)])
    store.close()
    with pytest.raises(StoreError, match="does not allow it"):
        PostgresStore(address, schema="another")


def test_a_newer_store_is_refused(pg):
    """What a later Commonplace wrote is not touched."""
    with pg._connections.using() as db:
        db.execute("update meta set value = '999' where key = 'schema'")
    with pytest.raises(SchemaTooNew, match="schema 999"):
        again(pg)


def test_a_schema_of_somebody_else_is_refused(pg):
    """Tables that are not ours are left alone."""
    schema = pg._connections.schema
    with pg._connections.alone() as db:
        db.execute(f"drop schema {schema} cascade; create schema {schema}; create table {schema}.meta (a int)")
    with pytest.raises(StoreError, match="not those of a Commonplace store"):
        again(pg)


def test_a_server_that_is_not_there_is_named(tmp_path):
    """The error says where it was looked for, and no password."""
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        PostgresStore(f"postgresql://ada:secret@/memory?host={tmp_path}")
    assert str(tmp_path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_is_no_address_is_bad_input():
    """An address that cannot be read is not shown: a password may be in it."""
    with pytest.raises(InvalidInput, match="postgresql://host/name") as caught:
        PostgresStore("postgresql://ada:secret@[host/memory")
    assert "secret" not in str(caught.value)

"""Events across machines: what one tells, the others are woken by; a line that breaks is taken up again."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from commonplace.model.queries import Order
from commonplace.stores.postgres.store import PostgresStore

pytestmark = pytest.mark.postgres
LONG = 60.0  # seconds that no test here has: whoever waits so long was not woken


@pytest.fixture
def pair(new_postgres):
    """Two machines on one store."""
    first = new_postgres()
    second = PostgresStore(os.environ["COMMONPLACE_TEST_POSTGRES"], schema=first.schema)
    yield first, second
    second.close()


def test_what_one_machine_tells_wakes_another(pair, make):
    """Who waits is called, and does not look again and again."""
    here, there = pair
    here.wait_for_event(after=0, seconds=0.0)  # listens from now on
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(here.wait_for_event, after=0, seconds=LONG)
        there.apply([make.put(emit=True)])
        assert waiting.result(timeout=LONG / 2) == there.events([make.scope], limit=1)[0].seq


def test_what_is_told_between_two_waits_is_heard_in_the_second(pair, make):
    """Nothing is told to nobody: the line stays open."""
    here, there = pair
    assert here.wait_for_event(after=0, seconds=0.0) == 0
    there.apply([make.put(emit=True)])
    assert here.wait_for_event(after=0, seconds=LONG) > 0


def test_a_line_that_breaks_is_taken_up_again(pair, make):
    """The wait that it cuts short says what is there, and the next one listens on a new line."""
    here, there = pair
    with ThreadPoolExecutor(1) as pool:
        here.wait_for_event(after=0, seconds=0.0)
        waiting = pool.submit(here.wait_for_event, after=0, seconds=LONG)
        with psycopg.connect(os.environ["COMMONPLACE_TEST_POSTGRES"], autocommit=True) as db:
            db.execute("select pg_terminate_backend(%s, 5000)", [here._listener._db.info.backend_pid])
        assert waiting.result(timeout=LONG / 2) == 0
        again = pool.submit(here.wait_for_event, after=0, seconds=LONG)
        there.apply([make.put(emit=True)])
        assert again.result(timeout=LONG / 2) > 0


def test_writers_are_not_kept_waiting_by_who_listens(pair, make):
    """Everybody goes on while threads of a machine wait, and a store that is closed hears again when it is asked."""
    here, there = pair
    waiting = [threading.Thread(target=here.wait_for_event, kwargs={"after": 0, "seconds": 1.0}) for _ in range(3)]
    for thread in waiting:
        thread.start()
    for number in range(5):
        here.apply([make.put(str(number))])
    for thread in waiting:
        thread.join()
    here.close()
    there.apply([make.put(emit=True)])
    assert here.wait_for_event(after=0, seconds=LONG) > 0
    assert len(there.find(make.where(), order=Order.ID, limit=9)) == 6


@pytest.fixture
def alone(new_postgres):
    """A store of a role that the server lets have one connection at a time."""
    store = new_postgres()
    address, role = os.environ["COMMONPLACE_TEST_POSTGRES"], f"alone_{store.schema}"
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"create role {role} login connection limit 1; grant usage on schema {store.schema} to {role}")
        db.execute(f"grant select, insert, update, delete on all tables in schema {store.schema} to {role}")
        made = PostgresStore(psycopg.conninfo.make_conninfo(address, user=role), schema=store.schema)
        yield made
        made.close()
        db.execute(f"drop owned by {role} cascade; drop role {role}")


def test_who_gets_no_line_looks_when_its_time_is_over(alone, make):
    """Where the server takes no more connections, what is told is heard a little later, and nobody's stream ends."""
    assert alone.census() == []  # the one connection stays open
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(alone.wait_for_event, after=0, seconds=1.0)
        alone.apply([make.put(emit=True)])
        assert waiting.result(timeout=LONG / 2) > 0
    assert alone.wait_for_event(after=99, seconds=0.0) > 0

"""A server of one's own, which restarts, asks for passwords and lacks what others have."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psycopg
import pytest

from commonplace.engine.memory import Memory
from commonplace.model.binding import Binding
from commonplace.model.errors import StoreBusy, StoreError
from commonplace.model.queries import Order
from commonplace.model.records import Channel
from commonplace.model.scopes import Scope
from commonplace.stores.postgres.store import PostgresStore
from household import furnish

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres"
WRITERS = 4


def script(folder, *command):
    """Call the project's script for the server in a folder."""
    env = os.environ | {"COMMONPLACE_POSTGRES_DIR": folder, "PYTHON": sys.executable}
    done = subprocess.run([SCRIPT, *command], env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Server:
    """A private server."""

    def __init__(self, folder):
        self.folder = folder
        self.address = script(folder, "start")

    def __call__(self, *command):
        """Call the script for it."""
        return script(self.folder, *command)

    def sql(self, *statements, database="postgres"):
        """Do something as its superuser."""
        with psycopg.connect(self.address, dbname=database, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)


@pytest.fixture(scope="module")
def server():
    """One for all tests here; the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        os.chmod(folder, 0o755)
        made = Server(os.path.join(folder, "s"))
        yield made
        made("stop")


class Writer(threading.Thread):
    """Writes until it is told to stop; knows what was acknowledged, and what may have been made."""

    def __init__(self, store, make, number):
        super().__init__()
        self.store, self.make, self.scope = store, make, Scope.parse(f"user:{number}")
        self.sure, self.maybe, self.errors, self.over = set(), set(), [], threading.Event()

    def run(self):
        """Write; what is refused was not made, what is unknown may have been."""
        while not self.over.is_set():
            record = self.make("text", scope=self.scope)
            try:
                self.store.apply([self.make.put(record)])
                self.sure.add(record.id)
            except StoreBusy as error:
                self.errors.append(error)
            except StoreError as error:
                self.errors.append(error)
                self.maybe.add(record.id)

    def until(self, count):
        """Wait until so many writes more were acknowledged."""
        wanted, end = len(self.sure) + count, time.monotonic() + 60
        while len(self.sure) < wanted:
            assert time.monotonic() < end, self.errors[-3:]
            time.sleep(0.01)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_under_load_costs_errors_and_no_data(server, make, mode):
    """What was acknowledged is there, what was refused is not, and the same stores go on."""
    store = PostgresStore(server.address, schema=f"load_{mode}")
    writers = [Writer(store, make, number) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(2):
        writers[0].until(20)
        server("restart", mode)
    for writer in writers:
        writer.until(5)
        writer.over.set()
        writer.join()
    for writer in writers:
        found = {r.id for r in store.find(make.where(writer.scope), order=Order.ID, limit=-1)}
        assert writer.sure <= found <= writer.sure | writer.maybe
        assert all("not known" in str(error) for error in writer.errors if not isinstance(error, StoreBusy))
    store.close()


def test_a_wrong_password_is_one_sentence_without_it(server):
    """The server's answer is passed on, what was offered is not."""
    server.sql("create role clerk login password 'right'")
    rules = Path(server.folder, "data", "pg_hba.conf")
    rules.write_text(f"local all clerk scram-sha-256\n{rules.read_text()}")
    server.sql("select pg_reload_conf()")
    with pytest.raises(StoreError, match="password authentication failed") as caught:
        PostgresStore(f"postgresql://clerk:hunter2@/postgres?host={server.folder}")
    assert "hunter2" not in f"{caught.value} {caught.value.__cause__!r}"
    assert "\n" not in str(caught.value)


def test_a_server_without_pgvector_is_one_sentence(server):
    """It is said what is missing and who can help; nothing is made."""
    server.sql("create role poor login createdb", "create database poor owner poor")
    # A view that stands before the server's own list: as if pgvector had never been installed.
    view = "create view pg_available_extensions as select name from pg_catalog.pg_available_extensions where false"
    server.sql("create schema nothing", f"set search_path = nothing; {view}", database="poor")
    server.sql("grant usage on schema nothing to poor; grant select on all tables in schema nothing to poor",
               "alter role poor set search_path = nothing, pg_catalog", database="poor")  # fmt: skip
    with pytest.raises(StoreError, match="no extension `vector`"):
        PostgresStore(psycopg.conninfo.make_conninfo(server.address, user="poor", dbname="poor"))


@pytest.fixture
def replica(server):
    """A streaming replica of the server."""
    with tempfile.TemporaryDirectory(prefix="pg") as folder:
        os.chmod(folder, 0o755)
        place = os.path.join(folder, "r")
        yield server("follow", place)
        script(place, "stop")


def caught_up(server, replica):
    """Wait until a replica has all that the server has."""
    with psycopg.connect(server.address) as db, psycopg.connect(replica, autocommit=True) as behind:
        [wanted] = db.execute("select pg_current_wal_lsn()").fetchone()
        end = time.monotonic() + 60
        while not behind.execute("select pg_last_wal_replay_lsn() >= %s::pg_lsn", [wanted]).fetchone()[0]:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_replica_answers_what_the_server_answers(server, replica, make, query):
    """By words, by nearness and as a recall that counts nothing; a write there is refused in a sentence."""
    asked, binding = query("thing now"), Binding(channel=Channel.USER, writes={}, reads=(make.scope,))
    store, copy = PostgresStore(server.address, schema="followed"), None
    try:
        furnish(store, make)
        caught_up(server, replica)
        copy = PostgresStore(replica, schema="followed")
        assert copy.match(make.where(), asked, limit=50) == store.match(make.where(), asked, limit=50) != []
        near = (3.0, 1.0, -2.0)
        assert copy.nearest(make.where(), near, limit=50) == store.nearest(make.where(), near, limit=50) != []
        there, here = (Memory(one, binding).recall("thing", count=False).hits for one in (copy, store))
        assert there == here != ()
        with pytest.raises(StoreError, match="read-only transaction"):
            copy.apply([make.put("not here")])
        late = store.apply([make.put("a late thing")])[0].records[0]
        caught_up(server, replica)
        assert copy.get(late.id) == late
    finally:
        for one in (store, copy):
            if one is not None:
                one.close()

"""Two real servers on one store, clients of both, and workers: one server and one worker are killed in mid-work.

``serving`` plays one round and ``check_serving`` looks at what is left.  Clients know what was acknowledged to them and
what they never heard of again; everything else may not be there.
"""

import contextlib
import http.client
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lives import ADA, EVERYTHING, LEASE_SECONDS, LIVES, NOW, plain, put, settled, unhealthy

from commonplace.app import open_store
from commonplace.model.changes import Finish
from commonplace.model.errors import LeaseLost, StoreBusy
from commonplace.model.jobs import Claim, Job, Reason
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Kind

COMMAND = str(Path(sys.executable).with_name("commonplace"))
CLIENTS = 3  # of each server
WRITES = 4  # of each client, at least, before the kill and after it
PATIENCE = 60.0  # seconds until something that must happen is given up
COUNTER = "/api/v1/agents/all/memory/n/counter"


class Server:
    """A server, as people start it."""

    def __init__(self, folder, name, store):
        self.log = Path(folder) / f"{name}.log"
        places = {"COMMONPLACE_HOME": str(Path(folder) / name), "USER": "ada"}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [COMMAND, "serve", "--no-keys", "--quiet", "--port", "0", "--store", store],
                cwd=folder, env=os.environ | places, stderr=log,
            )  # fmt: skip

    def address(self):
        """Where it serves, as soon as it does."""
        until(lambda: "serving" in self.log.read_text() or self.process.poll() is not None, "no server")
        found = re.search(r"serving http://(\S+):(\d+)", self.log.read_text())
        assert found, self.log.read_text()
        return found[1], int(found[2])

    def kill(self):
        """End it as a power cut does, or do nothing if it has ended."""
        self.process.kill()
        self.process.wait()


def until(is_so, otherwise):
    """Come back when something is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.01)


# Clients


class Client(threading.Thread):
    """Keeps entries of its own and adds to a counter of everybody's, until it is told to stop or hears an error."""

    def __init__(self, name, place):
        super().__init__(daemon=True)
        self.agent, self.place = name, place
        self.sure, self.doubtful = [], []  # keys that were acknowledged; those of which nothing was heard again
        self.added, self.perhaps = 0, 0  # the same of the counter
        self.error, self.failures, self.over = None, [], threading.Event()

    def run(self):
        """Write."""
        wire = http.client.HTTPConnection(*self.place, timeout=PATIENCE)
        number = 0
        try:
            while not self.over.is_set():
                number += 1
                self.keep(wire, f"{self.agent}-{number}")
                self.add(wire)
        except (http.client.HTTPException, OSError) as error:
            self.error = error
        finally:
            wire.close()

    def keep(self, wire, key):
        """Keep one more entry."""
        self.doubtful.append(key)
        status, _ = ask(wire, "PUT", f"/api/v1/agents/{self.agent}/memory/n/{key}", {"value": key})
        self.doubtful.pop()
        if status == http.HTTPStatus.OK:
            self.sure.append(key)
        else:
            self.failures.append(status)

    def add(self, wire):
        """Add one to the counter, if nobody else has meanwhile."""
        _, seen = ask(wire, "GET", COUNTER)
        self.perhaps = 1
        status, _ = ask(wire, "PUT", COUNTER, {"value": seen["value"] + 1}, {"If-Match": str(seen["version"])})
        self.perhaps = 0
        self.added += status == http.HTTPStatus.OK
        self.failures += [] if status in (http.HTTPStatus.OK, http.HTTPStatus.CONFLICT) else [status]


def ask(wire, method, path, body=None, headers=None):
    """One request: its status, and what came back."""
    wire.request(
        method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"} | (headers or {})
    )
    response = wire.getresponse()
    return response.status, json.loads(response.read())


class Listener(threading.Thread):
    """Follows the events of one server."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.wire, self.wait_for_event, self.gone = http.client.HTTPConnection(*place, timeout=PATIENCE), [], None
        self.wire.request("GET", "/api/v1/memory/events", headers={"Accept": "text/event-stream"})
        self.lines = self.wire.getresponse()

    def run(self):
        """Note the number of each."""
        try:
            for line in self.lines:
                self.wait_for_event += [int(line[4:])] if line.startswith(b"id: ") else []
        except (http.client.HTTPException, OSError) as error:
            self.gone = error
        finally:
            self.lines.close()
            self.wire.close()


# A worker


def learn_for_ever(place):
    """Follow what is told; learn something of each new entry, under a lease: that and the job's end in one write."""
    store, chance, last, due = open_store(place), random.Random(os.getpid()), 0, set()
    while True:
        for event in store.events(agents(store), after=last, limit=500):
            last = event.seq
            due |= {event.key} if event.previous is None and "-" in event.key else set()
        for key in chance.sample(sorted(due), min(len(due), 5)):
            due -= {key} if learned(store, key, chance) else set()
        if not due:
            store.wait_for_event(after=last, seconds=1.0)


def learned(store, key, chance):
    """Do one job, if it is there to be done; whether it is done."""
    job, lease = Job(scope=ADA, kind="learn", key=key, watermark=1), timedelta(seconds=LEASE_SECONDS)
    try:
        claim = store.claim(job, lease=lease, now=datetime.now(UTC))
        if not isinstance(claim, Claim):
            return claim.reason is Reason.UP_TO_DATE
        time.sleep(chance.uniform(0, 0.01))  # where a model would think
        store.apply([put(plain(f"{key} learned "), vector=None), Finish(claim=claim, at=datetime.now(UTC))])
    except (LeaseLost, StoreBusy):
        return False
    return True


def agents(store):
    """Where clients keep their entries."""
    return [scope for scope in store.scopes() if scope.segments[0][0] == "agent"]


# One round


def serving(place, folder, chance):
    """Play one round; returns the clients of the server that was killed, those of the other, and a listener there."""
    open_store(place).close()
    servers = [Server(folder, name, place) for name in ("doomed", "other")]
    workers, listener = [], None
    try:
        doomed, other = (server.address() for server in servers)
        with contextlib.closing(http.client.HTTPConnection(*other, timeout=PATIENCE)) as wire:
            ask(wire, "PUT", COUNTER, {"value": 0})
        workers += [_working(place), _working(place)]
        listener = Listener(other)
        theirs, ours = (
            [Client(f"{name}{n}", to) for n in range(CLIENTS)] for name, to in (("d", doomed), ("o", other))
        )
        for thread in (listener, *theirs, *ours):
            thread.start()
        _until_written([*theirs, *ours])
        time.sleep(chance.uniform(0, 0.2))
        servers[0].kill()
        workers[0].kill()
        _until_written(ours)
        for client in (*theirs, *ours):
            client.over.set()
            client.join(PATIENCE)
        _until_learned(place, listener)
        return theirs, ours, listener
    finally:
        for ended in (*servers, *workers):
            ended.kill()
        for worker in workers:
            worker.join()
        if listener is not None:
            listener.join(PATIENCE)


def _working(place):
    worker = LIVES.Process(target=learn_for_ever, args=(place,))
    worker.start()
    return worker


def _until_written(clients):
    goals = {client: len(client.sure) + WRITES for client in clients}
    until(lambda: all(len(client.sure) >= goal or client.error for client, goal in goals.items()), "nothing is written")


def _until_learned(place, listener):
    store = open_store(place)
    settled(store)
    last, count = store.wait_for_event(after=0, seconds=0.0), len(kept(store))
    until(lambda: len(store.find(EVERYTHING, order=Order.ID, limit=-1)) >= count, "jobs are left undone")
    until(lambda: last in listener.wait_for_event or listener.gone, "an event was not told")
    store.close()


def kept(store):
    """The entries that clients kept, by key; each is there once."""
    where = Filter(scopes=frozenset(agents(store)), at=NOW, states=ANY_STATE, kinds=frozenset({Kind.EPISODIC}))
    found = store.find(where, order=Order.ID, limit=-1)
    entries = {record.key: record for record in found if record.key != "counter"}
    assert len(entries) == len([record for record in found if record.key != "counter"])
    return entries


def check_serving(place, theirs, ours, listener):
    """Nothing that was acknowledged is lost, nothing done twice, and only clients of the dead server heard errors."""
    store = open_store(place)
    entries, clients = kept(store), [*theirs, *ours]
    assert all(client.error for client in theirs), "a client of the dead server heard nothing of it"
    assert [client.error for client in ours] == [None] * CLIENTS
    assert [client.failures for client in clients] == [[]] * len(clients)
    sure, doubtful = ({key for client in clients for key in keys(client)} for keys in (_sure, _doubtful))
    assert sure <= entries.keys(), "what was acknowledged is lost"
    assert entries.keys() - sure <= doubtful, "something is there that nobody wrote"
    assert all(record.value == key and record.version == 1 for key, record in entries.items())
    learned = [record.content.split()[0] for record in store.find(EVERYTHING, order=Order.ID, limit=-1)]
    assert sorted(learned) == sorted(entries), "a job was not done, or done twice"
    _check_counter(store, clients)
    events = [event.seq for event in store.events(agents(store), limit=10**6)]
    assert listener.wait_for_event == events, "the stream did not tell what happened"
    assert unhealthy(store) == []
    store.close()
    return len(entries)


def _sure(client):
    return client.sure


def _doubtful(client):
    return client.doubtful


def _check_counter(store, clients):
    where = Filter(scopes=frozenset(agents(store)), at=NOW, states=ANY_STATE, keys=frozenset({"counter"}))
    [counter] = store.find(where, order=Order.ID, limit=9)
    added, perhaps = (sum(getattr(client, what) for client in clients) for what in ("added", "perhaps"))
    assert added <= counter.value <= added + perhaps, "an addition is lost, or was made twice"
    assert counter.version == counter.value + 1

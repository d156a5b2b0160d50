"""The server on loopback against the same calls in process and against the reference server of ``openintent``.

    python bench/server.py [ENTRIES [SECONDS]] [--reference PYTHON]

One server process, one client process with one connection, then 32 clients that compare-and-set one key.  Calls are
timed one after the other and told as calls per second, from the median.  Creates are also counted with 16 clients at
once, for both servers: then the disk is waited for together.  PYTHON is an interpreter that has
``openintent[server]``: its FastAPI and SQLAlchemy are no part of ours, so it lives in an environment of its own.
Memory is the server's resident size a third of the race's time before it, and after it.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from json import dumps, loads

from measure import clean_env, line, quantile, questions, texts

from commonplace.app import find_embedder, open_store
from commonplace.intents.intents import Caller, EntryDraft, Intents
from commonplace.server.keys import Keys

AGENT, SPACE = "bench-agent", "bench"
CLIENTS = 32
CREATORS = 16  # clients that create at once
CREATE_SECONDS = 6.0
CALLS = 300
OPERATOR = Caller(admin=True)


class Wire:
    """One connection that is kept, as a client keeps it."""

    def __init__(self, port: int, key: str) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"X-API-Key": key, "X-Agent-ID": AGENT, "Content-Type": "application/json"}

    def __call__(self, method: str, path: str, body: object = None, **headers: str):
        """Make a call; returns its status and what it said."""
        sent = None if body is None else dumps(body)
        self.connection.request(method, path, sent, self.headers | headers)
        response = self.connection.getresponse()
        said = response.read()
        return response.status, loads(said) if said else None


def main() -> None:
    """Fill a store, measure, race."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("entries", nargs="?", type=int, default=10_000)
    parser.add_argument("seconds", nargs="?", type=float, default=30.0)
    parser.add_argument("--reference", metavar="PYTHON", default=os.environ.get("OPENINTENT_PYTHON"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        print(f"{given.entries} entries, one server process, {os.cpu_count()} cores, load {load} before")
        path = os.path.join(folder, "memory.db")
        store = open_store(path)
        with Intents(store, embedder=find_embedder("local", {}), capacity=10 * given.entries) as intents:
            ids = filled(intents, given.entries)
            inside = in_process(intents, ids)
            key = Keys(store).create("bench")[1]
        with ours(folder, path) as (port, process):
            outside = over_wire(Wire(port, key), ids)
            for name, rate in inside.items():
                line(f"{name}: in process", rate, "a second")
                line(f"{name}: over the wire", outside[name], f"a second, {rate / outside[name]:.1f} times the time")
            together = creates_at_once(port, key)
            line(f"create: over the wire, {CREATORS} clients", together, "a second")
            race(port, key, process.pid, given.seconds)
        if given.reference is None:
            print("no reference server: give --reference an interpreter that has openintent[server]")
            return
        with reference(folder, given.reference) as port:
            creates = reference_creates(Wire(port, "bench-key"))
            line("create: the reference server", creates, "a second")
            theirs = creates_at_once(port, "bench-key")
            line(f"create: the reference server, {CREATORS} clients", theirs, "a second")
            line("create: ours, in multiples of it", outside["create"] / creates, "(aim: 10)")
            line(f"create: likewise, {CREATORS} clients", together / theirs, "(aim: 10)")


def filled(intents: Intents, count: int) -> list[str]:
    """Fill a store as an agent would, but in batches; returns the ids."""
    ids: list[str] = []
    drafts = [
        EntryDraft(agent=AGENT, namespace=SPACE, key=f"k{number}", value={"text": text}, tier="episodic")
        for number, text in enumerate(texts(count, least=10, most=40))
    ]
    for start in range(0, count, 500):
        ids += [entry.id for entry in intents.batch(OPERATOR, drafts[start : start + 500])]
    return ids


def rate(call, items) -> float:
    """Calls per second, by the median call."""
    taken = []
    for item in items:
        start = time.perf_counter()
        call(item)
        taken.append(time.perf_counter() - start)
    return 1 / quantile(taken, 0.5)


VALUE = {"text": "a short note about something"}
SHARED = {"tier": "semantic", "namespace": "in"}


def asked() -> list[str]:
    """Questions in the words of the entries."""
    return [" ".join(words) for words in questions(CALLS // 3)]


def in_process(intents: Intents, ids: list[str]) -> dict[str, float]:
    """The four calls, without a wire."""

    def keep(number: int, **options: object) -> object:
        return intents.store(OPERATOR, AGENT, f"k{number}", VALUE, **SHARED, **options)

    return {
        "get": rate(lambda one: intents.entry(OPERATOR, one), ids[:CALLS]),
        "create": rate(lambda number: keep(number, fresh=True), range(CALLS)),
        "update": rate(keep, range(CALLS)),
        "hybrid recall": rate(lambda query: intents.recall(OPERATOR, AGENT, query=query, namespace=SPACE), asked()),
    }


def over_wire(wire: Wire, ids: list[str]) -> dict[str, float]:
    """The same four calls over HTTP."""
    entry = {"agent_id": AGENT, "namespace": "out", "value": VALUE, "memory_type": "semantic"}
    base, put = f"/api/v1/agents/{AGENT}/memory/out", {"value": VALUE, "memory_type": "semantic"}
    question = {"agent_id": AGENT, "namespace": SPACE}
    return {
        "get": rate(lambda one: good(wire("GET", f"/api/v1/memory/{one}")), ids[:CALLS]),
        "create": rate(lambda n: good(wire("POST", "/api/v1/memory", entry | {"key": f"k{n}"})), range(CALLS)),
        "update": rate(lambda n: good(wire("PUT", f"{base}/k{n}", put)), range(CALLS)),
        "hybrid recall": rate(
            lambda query: good(wire("POST", "/v1/intents/recall", question | {"query": query})), asked()
        ),
    }


def good(answer):
    """What a call that must succeed said."""
    status, said = answer
    assert status == 200, (status, said)
    return said


def race(port: int, key: str, pid: int, seconds: float) -> None:
    """Thirty-two clients on one key: exactly the acknowledged increments, no 5xx, and no memory that grows."""
    body = {"agent_id": AGENT, "namespace": "race", "key": "count", "value": 0, "memory_type": "episodic"}
    entry = good(Wire(port, key)("POST", "/api/v1/memory", body))["id"]
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # clients in a process of their own, with its own lock
        warm = pool.apply(clients, (port, key, entry, seconds / 3))  # threads and connections come into being
        before = resident_mb(pid)
        statuses = pool.apply(clients, (port, key, entry, seconds))
    value, acknowledged = good(Wire(port, key)("GET", f"/api/v1/memory/{entry}"))["value"], statuses.get(200, 0)
    line(f"{CLIENTS} clients, one key: increments acknowledged", acknowledged / seconds, "a second")
    verdict = "exact" if value == acknowledged + warm.get(200, 0) else "BROKEN"
    failed = sum(count for status, count in statuses.items() if status >= 500)
    print(f"  value {value}, acknowledged {acknowledged} and {warm.get(200, 0)} before: {verdict}")
    print(f"  answers {statuses}, of them {failed} with 5xx")
    line("resident memory a third of the time before", before, "MB")
    line("resident memory after the race", resident_mb(pid), "MB")


def creates_at_once(port: int, key: str) -> float:
    """Creates per second of many clients, in a process of their own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(creators, (port, key)) / CREATE_SECONDS


def creators(port: int, key: str) -> int:
    """All clients that create; returns how many creates were acknowledged."""
    until = time.monotonic() + CREATE_SECONDS
    with ThreadPoolExecutor(CREATORS) as pool:
        return sum(pool.map(lambda number: creator(port, key, number, until), range(CREATORS)))


def creator(port: int, key: str, number: int, until: float) -> int:
    """Create, again and again; each client has keys of its own."""
    wire, made = Wire(port, key), 0
    entry = {"agent_id": AGENT, "namespace": "out", "value": VALUE, "memory_type": "semantic"}
    while time.monotonic() < until:
        good(wire("POST", "/api/v1/memory", entry | {"key": f"c{number}-{made}"}))
        made += 1
    return made


def clients(port: int, key: str, entry: str, seconds: float) -> dict[int, int]:
    """All clients of the race; returns how often each status came."""
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(CLIENTS) as pool:
        runs = [pool.submit(client, port, key, entry, until) for _ in range(CLIENTS)]
        return dict(Counter(status for run in runs for status in run.result()))


def client(port: int, key: str, entry: str, until: float) -> list[int]:
    """Add one, again and again; after a conflict it is read anew."""
    wire, statuses = Wire(port, key), []
    while time.monotonic() < until:
        seen = good(wire("GET", f"/api/v1/memory/{entry}"))
        match = {"If-Match": str(seen["version"])}
        statuses.append(wire("PATCH", f"/api/v1/memory/{entry}", {"value": seen["value"] + 1}, **match)[0])
    return statuses


def resident_mb(pid: int) -> float:
    """How much memory a process holds, on Linux."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextlib.contextmanager
def ours(folder: str, store: str):
    """Our server in a process of its own; yields its port."""
    command = [
        os.path.join(os.path.dirname(sys.executable), "commonplace"),
        "serve",
        "--port",
        "0",
        "--rate",
        "0",
        "--store",
        store,
    ]
    env = clean_env(COMMONPLACE_HOME=os.path.join(folder, "home"))
    process = subprocess.Popen([*command, "--quiet"], env=env, cwd=folder, stderr=subprocess.PIPE, text=True)
    try:
        yield int(re.search(r":(\d+)", process.stderr.readline().partition("serving")[2])[1].strip("/")), process
    finally:
        process.terminate()
        process.wait(timeout=60)


@contextlib.contextmanager
def reference(folder: str, python: str):
    """The reference server in a process of its own; yields its port."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    program = "from openintent.server.cli import main; main()"
    options = ["--host", "127.0.0.1", "--port", str(port), "--api-keys", "bench-key"]
    env = clean_env(DATABASE_URL=f"sqlite:///{folder}/reference.db")
    process = subprocess.Popen(
        [python, "-c", program, *options], env=env, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=60)


def reference_creates(wire: Wire) -> float:
    """The one call that both have in common under the same name and shape."""
    entry = {"agent_id": AGENT, "namespace": "out", "value": {"text": "a short note"}, "memory_type": "semantic"}
    return rate(lambda n: good(wire("POST", "/api/v1/memory", entry | {"key": f"out{n}"})), range(CALLS // 3))


if __name__ == "__main__":
    main()

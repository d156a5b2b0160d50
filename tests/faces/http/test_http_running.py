"""A server at work: several on one store, many clients on one key, and a signal that says stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import httpx
import pytest

CLIENTS = 32
STEPS = 2


def incremented(url, key, id):
    """Add one by compare-and-set until it is acknowledged, a few times; returns the statuses of everything else."""
    others = []
    with httpx.Client(base_url=url, headers={"X-API-Key": key}, timeout=60) as call:
        for _ in range(STEPS):
            while True:
                entry = call.get(f"/api/v1/memory/{id}").json()
                change = {"value": entry["value"] + 1}
                response = call.patch(f"/api/v1/memory/{id}", json=change, headers={"If-Match": str(entry["version"])})
                if response.status_code == 200:
                    break
                others.append(response.status_code)
    return others


@pytest.mark.slow
def test_no_increment_is_lost_by_many_clients_on_two_servers(serve, agent):
    """Thirty-two clients, one key, two processes: exactly the acknowledged increments, no answer but 200 and 409."""
    servers = [serve("--quiet", "--rate", "0"), serve("--quiet", "--rate", "0")]
    body = {"agent_id": agent, "namespace": "n", "key": "count", "value": 0, "memory_type": "episodic"}
    entry = servers[0].http().post("/api/v1/memory", json=body).json()["id"]
    with ThreadPoolExecutor(CLIENTS) as pool:
        runs = [
            pool.submit(incremented, servers[number % 2].url, servers[number % 2].operator, entry)
            for number in range(CLIENTS)
        ]
        others = {status for run in runs for status in run.result()}
    after = servers[1].http().get(f"/api/v1/memory/{entry}").json()

    assert others <= {409}
    assert (after["value"], after["version"]) == (CLIENTS * STEPS, CLIENTS * STEPS + 1)


@pytest.fixture
def database():
    """The address of a PostgreSQL database of a test's own."""
    psycopg = pytest.importorskip("psycopg")
    address, name = urlsplit(os.environ["COMMONPLACE_TEST_POSTGRES"]), f"served_{os.getpid()}"
    with psycopg.connect(address.geturl(), autocommit=True) as server:
        server.execute(f"create database {name}")
        yield address._replace(path=f"/{name}").geturl()
        server.execute(f"drop database {name} with (force)")


@pytest.mark.postgres
def test_servers_share_a_postgresql_database(serve, database, agent):
    """What one keeps the other reads, finds and tells of; a key of one is a key of both."""
    first, second = serve(store=database), serve(store=database)
    path = f"/api/v1/agents/{agent}/memory/n/k"
    kept = first.http().put(path, json={"value": "owls hunt at night"}).json()
    call = second.http(first.operator)
    question = {"agent_id": agent, "query": "what do owls do?"}

    assert call.get(path).json() == kept
    assert [one["id"] for one in call.post("/v1/intents/recall", json=question).json()] == [kept["id"]]
    assert [one["entry_id"] for one in call.get("/api/v1/memory/events").json()["events"]] == [kept["id"]]
    assert (first.stop(), second.stop()) == (0, 0)


def test_of_equal_creates_exactly_one_wins(served, agent):
    """Eight at once: one entry, seven conflicts that say its version."""
    body = {"agent_id": agent, "namespace": "n", "key": "k", "value": 1, "memory_type": "episodic"}

    def create(_):
        return httpx.post(f"{served.url}/api/v1/memory", json=body, headers={"X-API-Key": served.operator}, timeout=30)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(create, range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert {answer.json()["current_version"] for answer in answers if answer.status_code == 409} == {1}


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server(serve, how):
    """It says so, ends with 0, and closes the streams that are open."""
    server = serve()
    with (
        httpx.Client(base_url=server.url, headers={"X-API-Key": server.operator}, timeout=20) as call,
        call.stream("GET", "/api/v1/memory/events", headers={"Accept": "text/event-stream"}) as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        began = time.monotonic()
        threading.Thread(target=lambda: server.process.send_signal(how)).start()
        assert [line for line in lines if line] == []

    server.process.wait(timeout=20)  # a second Ctrl-C would end it at once
    assert server.stop() == 0
    assert time.monotonic() - began < 10
    assert "stopped" in server.log
    assert "Traceback" not in server.log


def test_what_is_under_way_is_finished(serve, agent):
    """A request whose body was still coming when the signal came is answered, and kept."""
    server = serve()
    host, _, port = server.url.removeprefix("http://").partition(":")
    body = json.dumps({"value": 1}).encode()
    head = (
        f"PUT /api/v1/agents/{agent}/memory/n/k HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {server.operator}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=20) as late:
        late.sendall(head.encode() + body[:4])
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        late.sendall(body[4:])
        answer = late.recv(65_536)

    assert answer.startswith(b"HTTP/1.1 200")
    assert server.stop() == 0


def test_a_server_that_is_killed_loses_nothing_that_it_acknowledged(serve, agent):
    """The next one on the store has it."""
    first = serve()
    path = f"/api/v1/agents/{agent}/memory/n/k"
    assert first.http().put(path, json={"value": 1}).status_code == 200
    first.stop(signal.SIGKILL)

    assert serve().http().get(path).json()["value"] == 1


MEBIBYTE = 1 << 20


def resident(pid):
    """How many bytes of memory a process holds."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def poured(server, head, piece, times):
    """Send a body piece by piece as long as the server takes it; returns what it said and the most memory it held."""
    place = urlsplit(server.url)
    most = resident(server.process.pid)
    with socket.create_connection((place.hostname, place.port), timeout=30) as client:
        try:
            client.sendall(head.encode())
            for _ in range(times):
                client.sendall(piece)
                most = max(most, resident(server.process.pid))
        except OSError:  # it hung up in the middle, as it may
            pass
        try:
            return client.recv(65_536).decode(), most
        except OSError:
            return "", most


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is read from /proc")
@pytest.mark.parametrize("length", ["Content-Length: 67108864", "Transfer-Encoding: chunked"])
def test_a_body_of_64_mebibytes_costs_no_memory(serve, length):
    """It is refused after what a body may have at most, whether it says how long it is or not."""
    server = serve("--quiet")
    assert server.http().get("/healthz").status_code == 200
    before = resident(server.process.pid)
    place = urlsplit(server.url).netloc
    head = f"POST /api/v1/memory HTTP/1.1\r\nHost: {place}\r\nX-API-Key: {server.operator}\r\n"
    head += f"Content-Type: application/json\r\n{length}\r\n\r\n"
    piece = b"x" * MEBIBYTE
    if "chunked" in length:
        piece = b"%x\r\n%b\r\n" % (MEBIBYTE, piece)
    said, most = poured(server, head, piece, 64)

    assert "413" in said.partition("\r\n")[0] or not said
    assert most - before < 40 * MEBIBYTE
    assert server.http().get("/healthz").status_code == 200

"""Many clients, and bad ones: silent, not reading, and with more streams than their share."""

from __future__ import annotations

import contextlib
import socket
import time
from datetime import UTC, datetime

import pytest

from commonplace.model.changes import Emit
from commonplace.model.events import Event, EventKind
from commonplace.model.ids import new_id
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope
from commonplace.server.settings import ServerLimits
from inside import Inside

EVENTS = "/api/v1/memory/events"
STREAM = {"Accept": "text/event-stream"}
POST = b"POST /v1/records/recall HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
WAIT_SECONDS = 30  # until something that has to happen has happened; a machine at work may take its time


@pytest.fixture
def inside(tmp_path):
    """Start servers with limits of their own."""
    started = []

    def inside(**limits):
        started.append(Inside(tmp_path, limits=ServerLimits(**limits)))
        return started[-1]

    yield inside
    for server in started:
        server.stop()


def silent(server, count, beginning=b""):
    """Open connections that say nothing, or begin something."""
    opened = [socket.create_connection((server.host, server.port)) for _ in range(count)]
    for one in opened:
        with contextlib.suppress(OSError):  # dropped already
            one.sendall(beginning)
    return opened


def until(condition):
    """Wait until it is so."""
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET /healthz HTTP/1.1\r\nX-", POST],
)
def test_silent_connections_keep_nobody_out(inside, beginning):
    """The oldest of them give way to whoever comes, whether they said nothing or half of something."""
    server = inside(connections=20, header_seconds=3600, body_seconds=3600)
    crowd = silent(server, 19, beginning)
    state = server.server.server_state
    until(lambda: len(state.connections) == 19 and len(state.tasks) == (19 if beginning == POST else 0))
    crowd += silent(server, 40, beginning)
    try:
        for _ in range(3):
            with server.http() as call:
                assert call.get("/healthz").status_code == 200
    finally:
        for one in crowd:
            one.close()


def test_a_client_that_speaks_outlives_the_silent_ones(inside):
    """A connection that rests between two requests is closed only when no silent one is left."""
    server = inside(connections=20, header_seconds=3600, idle_seconds=3600)
    with server.http() as call:
        call.get("/healthz")
        [mine] = server.server.server_state.connections
        crowd = silent(server, 60)
        until(lambda: len(server.server.server_state.connections) == 19)
        assert mine in server.server.server_state.connections
        assert call.get("/healthz").status_code == 200
    for one in crowd:
        one.close()


def test_one_key_has_a_share_of_the_streams(inside):
    """A quarter; others have theirs, all together have the whole, and a closed one is free again."""
    server = inside(streams=8)
    tokens = [server.keys.create(name)[1] for name in "abcde"]
    with contextlib.ExitStack() as opened:

        def opens(token):
            call = opened.enter_context(server.http(token))
            return opened.enter_context(call.stream("GET", EVENTS, headers=STREAM))

        assert [opens(tokens[0]).status_code for _ in range(2)] == [200, 200]
        refused = opens(tokens[0])
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert b'"TOO_MANY_STREAMS"' in refused.read()
        assert [opens(token).status_code for token in tokens[1:4] * 2] == [200] * 6
        assert opens(tokens[4]).status_code == 503
    with server.http(tokens[0]) as call:

        def status():
            with call.stream("GET", EVENTS, headers=STREAM) as stream:
                return stream.status_code

        until(lambda: status() == 200)


def filled(server):
    """Make more events than a system stores for a client."""
    event = Event(
        what=EventKind.CREATED, at=datetime(2026, 1, 1, tzinfo=UTC), scope=Scope.of(("agent", "a")),
        record=new_id(datetime(2026, 1, 1, tzinfo=UTC)), key="k", kind=Kind.EPISODIC, version=1, tags=("x" * 10_000,),
    )  # fmt: skip
    server.services.intents._store.apply([Emit(event=event)] * 400)
    return server.keys.create("listener")[1]


def deaf(server, token, path=EVENTS, **headers):
    """Ask for all of it and read none."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((server.host, server.port))
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", f"X-API-Key: {token}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    client.sendall("\r\n".join([*lines, "", ""]).encode())
    return client


def test_what_waits_for_a_client_that_does_not_read_is_bounded(inside):
    """Nothing more is made for it once the buffer is full."""
    server = inside(unread_seconds=3600)
    with deaf(server, filled(server), **STREAM):
        connections = server.server.server_state.connections
        until(lambda: any(one.flow.write_paused for one in connections))
        [waiting] = [one.transport.get_write_buffer_size() for one in connections]
        assert 65_536 < waiting < 4 * 65_536


@pytest.mark.parametrize(("path", "headers"), [(EVENTS, STREAM), (f"{EVENTS}?limit=1000", {})])
def test_a_client_that_does_not_read_is_dropped(inside, path, headers):
    """Whether it is a stream that does not end or an answer that is whole."""
    server = inside(unread_seconds=0.3)
    with deaf(server, filled(server), path, **headers):
        connections = server.server.server_state.connections
        until(lambda: any(one.flow.write_paused for one in connections))
        until(lambda: not connections)


def test_a_client_that_reads_slowly_is_kept(inside):
    """It is dropped for reading nothing since the last check, not for taking its time."""
    server = inside(unread_seconds=3600)
    with deaf(server, filled(server), f"{EVENTS}?limit=1000") as client:
        connections = server.server.server_state.connections
        until(lambda: any(one.flow.write_paused for one in connections))
        [connection] = connections
        before = connection.transport.get_write_buffer_size()
        while connection.transport.get_write_buffer_size() > before - 65_536:
            client.recv(16_384)
        server.call(connection._check_reader)
        assert connections
        server.call(connection._check_reader)
        assert not connections

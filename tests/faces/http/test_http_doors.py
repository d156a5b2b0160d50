"""Who may knock: keys, the name in Host, the page in Origin, and what is too much."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import sys
import time

import pytest

from commonplace.server.run import DiscreetFormatter
from stands import rows

PATH = "/api/v1/memory/namespaces"  # a route that needs a key and nothing else
CLOSED_SECONDS = 13  # a stalled client is gone by then: ten seconds for a body, and some


def code(response, status):
    """The name of an error, which every answer of that status has."""
    assert response.status_code == status, response.text
    body = response.json()
    assert body["message"] == body["detail"]
    return body["error"]


def test_without_a_key_nothing_is_answered(served):
    """A missing key, a wrong one and two that differ are all the same."""
    call = served.http()
    del call.headers["x-api-key"]

    assert code(call.get(PATH), 401) == "UNAUTHORIZED"
    assert code(call.get(PATH, headers={"X-API-Key": "cp_0123456789_nothing"}), 401) == "UNAUTHORIZED"
    both = {"X-API-Key": served.operator, "Authorization": "Bearer other"}
    assert code(call.get(PATH, headers=both), 401) == "UNAUTHORIZED"
    assert call.get(PATH).headers["www-authenticate"] == "Bearer"
    assert code(call.post("/v1/records/recall", content=b"{"), 401) == "UNAUTHORIZED"


def test_a_key_is_taken_from_either_header(served):
    """X-API-Key is what the public client sends, a bearer what everybody else does."""
    call = served.http()
    assert call.get(PATH).status_code == 200
    del call.headers["x-api-key"]
    assert call.get(PATH, headers={"Authorization": f"bearer {served.operator}"}).status_code == 200


def test_a_revoked_key_opens_nothing_from_the_next_request_on(served):
    """Another process revoked it; the server did not have to be told."""
    key, token = served.keys.create("for a moment")
    call = served.http(token)
    assert call.get(PATH).status_code == 200
    served.keys.revoke(key.id)

    assert call.get(PATH).status_code == 401


def test_an_agents_key_acts_for_that_agent_alone(served):
    """X-Agent-ID cannot make another agent of it."""
    call = served.http(served.key("bound", agent="café"))

    assert call.get(PATH, headers={"X-Agent-ID": "café".encode()}).status_code == 200
    assert code(call.get(PATH, headers={"X-Agent-ID": "other"}), 403) == "ACCESS_DENIED"


def test_health_needs_no_key(served):
    """Whoever watches the server has none."""
    call = served.http("nobody")

    assert call.get("/healthz").json()["status"] == "ok"
    assert call.get("/readyz").json()["status"] == "ready"


@rows(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "[::2]", "127.0.0.1@evil", "", "localhost:x"]
)
@rows("path", ["/healthz", PATH, "/nowhere"])
def test_a_server_answers_to_its_own_names_only(http, host, path):
    """A name that was pointed at this machine gets nothing from any route."""
    assert code(http.get(path, headers={"Host": host}), 421) == "WRONG_HOST"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9999", "127.0.0.1", "[::1]:8000"])
def test_this_machine_has_several_names(http, host):
    """All of them mean loopback, whatever the port: it may be a forwarded one."""
    assert http.get("/healthz", headers={"Host": host}).status_code == 200


@rows("origin", ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1", "x"])
@rows("method", ["GET", "POST", "OPTIONS", "DELETE"])
def test_a_foreign_page_may_not_call(http, origin, method):
    """No method, not even a look, and no header that would let a browser pass the answer on."""
    response = http.request(method, PATH, headers={"Origin": origin})

    assert code(response, 403) == "WRONG_ORIGIN"
    assert "access-control-allow-origin" not in response.headers


def test_our_own_page_may_call(served, http):
    """The page that the server itself serves has its own origin."""
    assert http.get(PATH, headers={"Origin": served.url}).status_code == 200


def test_another_site_may_not_write_without_an_origin_either(http):
    """Some browsers say where a request comes from by another header."""
    assert code(http.post("/v1/records/recall", headers={"Sec-Fetch-Site": "cross-site"}), 403) == "WRONG_ORIGIN"


def test_names_and_origins_can_be_added(serve):
    """An operator says under which names a proxy calls it, and which page may."""
    server = serve("--allow-host", "memory.example", COMMONPLACE_SERVE_ALLOW_ORIGINS="https://app.example, https://b")
    there = {"Host": "memory.example", "Origin": "https://app.example"}

    assert server.http().get(PATH, headers=there).status_code == 200
    assert server.http().get(PATH, headers=there | {"Origin": "https://c.example"}).status_code == 403


def test_a_body_must_be_json_of_the_right_shape(http):
    """What is wrong is said, with its place; nothing else is."""
    form = http.post(
        "/v1/records/recall", content="query=x", headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert code(form, 415) == "NOT_JSON"
    for body in (b"{", b"[]", b'{"query": 1}', b'{"query": "a", "qeury": "b"}', b"[" * 5000, b"\xff"):
        response = http.post("/v1/records/recall", content=body, headers={"Content-Type": "application/json"})
        assert code(response, 400) == "INVALID_INPUT"
        assert response.json()["errors"] == [response.json()["message"]]


def test_an_unknown_parameter_is_refused(http):
    """A mistyped filter that is ignored would mean everything."""
    assert "limt" in http.get("/api/v1/memory?limt=1").json()["message"]
    assert code(http.get("/api/v1/memory?limit=1&limit=2"), 400) == "INVALID_INPUT"
    assert code(http.get("/api/v1/memory?limit=0"), 400) == "INVALID_INPUT"


def test_what_does_not_exist_is_said_as_json(http):
    """No route and no method are errors like all others."""
    assert code(http.get("/nowhere"), 404) == "NO_SUCH_ROUTE"
    assert code(http.get("/v1/records/recall/"), 404) == "NO_SUCH_ROUTE"
    refused = http.put("/v1/records/recall")
    assert code(refused, 405) == "NO_SUCH_METHOD"
    assert refused.headers["allow"] == "POST"


def test_a_body_that_is_too_large_is_refused_before_it_is_read(serve):
    """Whether it says its size or not."""
    server = serve(COMMONPLACE_SERVE_BODY_BYTES="1000")
    call = server.http()

    assert code(call.post("/v1/records/recall", json={"query": "x" * 1000}), 413) == "BODY_TOO_LARGE"
    chunks = iter([b'{"query": "', *([b"x" * 400] * 5), b'"}'])
    response = call.post("/v1/records/recall", content=chunks, headers={"Content-Type": "application/json"})
    assert code(response, 413) == "BODY_TOO_LARGE"
    assert call.post("/v1/records/recall", json={"query": "x"}).status_code == 200


def test_headers_have_a_limit(http):
    """Beyond 32 KiB nobody reads on."""
    assert code(http.get("/healthz", headers={"X-Long": "x" * 70_000}), 431) == "HEADERS_TOO_LARGE"
    assert code(http.get("/healthz?" + "x" * 40_000), 431) == "HEADERS_TOO_LARGE"


STALLS = {
    "silent": b"",
    "half a header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-",
    "half a body": b"POST /v1/records/recall HTTP/1.1\r\nHost: localhost\r\nX-API-Key: %s\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    "half a body that nobody reads": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
}


@pytest.mark.slow
def test_clients_that_stall_are_closed(served):
    """Silence, half a header and half a body: all of them end within seconds, and others are served meanwhile."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    began = time.monotonic()
    sockets = {}
    for name, beginning in STALLS.items():
        for number in range(5):
            sockets[name, number] = socket.create_connection((host, int(port)))
            said = beginning % served.operator.encode() if b"%s" in beginning else beginning
            sockets[name, number].sendall(said)
    assert served.http().get("/healthz").status_code == 200
    for (name, _), stalled in sockets.items():
        stalled.settimeout(max(0.1, CLOSED_SECONDS - (time.monotonic() - began)))
        with stalled:
            while stalled.recv(4096):  # an answer may come first; then the end, or this times out
                pass
        assert time.monotonic() - began < CLOSED_SECONDS, name


def answered(connection):
    """Read one answer of health, which may come in pieces."""
    read = b""
    while not read.endswith(b"}") and (piece := connection.recv(4096)):
        read += piece
    return read


@pytest.mark.slow
def test_a_connection_that_rests_is_closed_and_one_that_asks_again_is_not(served):
    """Between two requests there are five seconds; a request that comes then has all of its own."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    ask = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
    with socket.create_connection((host, int(port)), timeout=CLOSED_SECONDS) as kept:
        kept.sendall(ask + b"\r\n")
        assert answered(kept).startswith(b"HTTP/1.1 200")
        time.sleep(3.5)
        kept.sendall(ask)
        time.sleep(2.5)
        kept.sendall(b"\r\n")
        assert answered(kept).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        assert kept.recv(4096) == b""
        assert 3 < time.monotonic() - began < 8


@pytest.mark.slow
def test_a_trickle_does_not_buy_time(served):
    """Bytes that drop in one by one do not start the clock anew."""
    host, _, port = served.url.removeprefix("http://").partition(":")
    began = time.monotonic()
    with socket.create_connection((host, int(port))) as slow, contextlib.suppress(OSError):  # reset, or a broken pipe
        slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        while time.monotonic() - began < CLOSED_SECONDS:
            slow.sendall(b"X-A: b\r\n")
            time.sleep(0.2)
    assert time.monotonic() - began < 7


def test_the_log_has_neither_secrets_nor_content(serve):
    """Not the key, not the words, not the path in which a key stands; the route and the id of the key are enough."""
    server = serve()
    call = server.http()
    call.post("/v1/records/recall", json={"query": "canary-query"})
    call.get("/api/v1/memory/canary-path?agent=canary-agent")
    call.put("/api/v1/agents/canary-agent/memory/canary-space/canary-key", json={"value": "canary-value"})
    call.get("/canary-nowhere", headers={"Authorization": "Bearer canary-bearer"})
    call.post("/v1/records/recall", content=b'{"canary-json', headers={"Content-Type": "application/json"})
    server.stop()

    assert "POST /v1/records/recall 200" in server.log
    assert f"POST /v1/records/recall 400 0.0ms key={server.operator[3:13]}" in re.sub(r"[\d.]+ms", "0.0ms", server.log)
    assert "canary" not in server.log
    assert server.operator not in server.log
    assert "Traceback" not in server.log


@pytest.mark.parametrize("name", ["uvicorn.error", "asyncio"])
def test_an_error_that_nobody_expected_is_logged_without_its_words(name):
    """Its kind and its place are enough to find it; what it was about may be somebody's memory."""
    try:
        {}["canary"]
    except KeyError:
        caught = sys.exc_info()
    words = (
        "Exception in ASGI application" if name == "uvicorn.error" else "future: <Task exception=KeyError('canary')>"
    )
    told = DiscreetFormatter().format(logging.LogRecord(name, logging.ERROR, "here.py", 1, words, (), caught))

    assert "KeyError" in told
    assert "test_http_doors.py" in told
    assert "KeyError('canary')" not in told
    assert "KeyError: 'canary'" not in told


def test_without_keys_everybody_on_this_machine_is_an_operator(serve):
    """Only where that was chosen, and the server says so."""
    server = serve("--no-keys")
    assert server.http("whatever").get(PATH).status_code == 200


def test_a_key_can_come_from_the_environment(serve):
    """For places where nobody can run a command first."""
    secret = "k" * 40
    server = serve(COMMONPLACE_SERVE_KEY=secret)

    assert server.http(secret).get(PATH).status_code == 200
    assert server.http(secret[:-1]).get(PATH).status_code == 401

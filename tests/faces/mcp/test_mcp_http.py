"""The HTTP transport from outside: who gets in, who does not, and how the command starts it."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from commonplace.engine.throttling import FREE_TRIES
from commonplace.mcp import http as face
from commonplace.model.errors import InvalidInput
from commonplace.records import records_surface
from stands import rows

COMMAND = str(Path(sys.executable).with_name("commonplace"))
KEY = "a-key-for-these-tests"
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})


def post(port, body=PING, *, path="/mcp", method="POST", **headers):
    """Send one request as it is; returns the status and what came back.  A header that is None is left out."""
    said = {
        "Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {KEY}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25",
    }  # fmt: skip
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in said.items():
        if value is not None:
            connection.putheader(name, value)
    data = body.encode()
    connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data)
    with connection.getresponse() as response:
        said = b""
        with contextlib.suppress(ConnectionResetError):  # whoever is refused unread may not hear why to the end
            said = response.read()
        answer = response.status, said.decode(), response.headers
    connection.close()
    return answer


def test_whoever_has_the_key_is_answered(listening):
    """A request with the key gets its answer as plain JSON."""
    status, body, _ = post(listening.port)
    assert status == 200
    assert json.loads(body)["result"]["tools"][0]["name"] == "recall"


@rows(
    "said",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic " + KEY, KEY, "Bearer a-key-for-these-test", "Bearer \xe9"],
)
def test_whoever_has_no_key_is_not(listening, said):
    """No key, a wrong one and a shortened one are all the same."""
    status, body, headers = post(listening.port, Authorization=said)
    assert status == 401
    assert headers["WWW-Authenticate"].startswith("Bearer")
    assert KEY not in body


def test_wrong_keys_make_their_sender_wait(listening):
    """The wait doubles until one comes too soon, however slow the machine; the right key is answered all the while."""
    answers = [post(listening.port, Authorization="Bearer wrong") for _ in range(FREE_TRIES + 10)]
    assert {status for status, *_ in answers[:FREE_TRIES]} == {401}
    assert "Retry-After" in next(headers for status, _, headers in answers if status == 429)
    assert post(listening.port)[0] == 200


@rows(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", "localhost:1", "[::1]:1", None]
)
def test_a_page_that_gives_this_machine_another_name_is_refused(listening, host):
    """Names are compared whole, with the port: rebinding a domain to loopback opens nothing."""
    assert post(listening.port, Host=host)[0] in {400, 421}


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1.evil"])
def test_no_web_page_may_come(listening, origin):
    """A browser's request from another page is refused even with the key."""
    assert post(listening.port, Origin=origin)[0] == 403


def test_the_loopback_names_are_all_good(listening):
    """This machine may be called by each of its own names."""
    for name in ("localhost", "127.0.0.1", "[::1]"):
        assert post(listening.port, Host=f"{name}:{listening.port}")[0] == 200


def test_a_form_is_not_a_message(listening):
    """What a page can send without asking first is not accepted."""
    assert post(listening.port, Content_Type="text/plain")[0] == 400


def test_a_body_beyond_the_limit_is_refused(listening):
    """Whether it says its length or not."""
    assert post(listening.port, "x" * (face.BODY_BYTES + 1))[0] == 413


@rows("body", ["nonsense", "{", "5", "{}", '{"jsonrpc":"1.0"}'])
def test_what_is_no_message_is_refused(listening, body):
    """The client's fault is a client's error, and nothing breaks."""
    assert post(listening.port, body)[0] == 400
    assert post(listening.port)[0] == 200


def test_other_addresses_are_not_there(listening):
    """There is one address."""
    assert post(listening.port, path="/")[0] == 404
    assert post(listening.port, path="/mcp/x")[0] == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    [
        b"", b"POST /mcp HTTP/1.1\r\nHost:",
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer " + KEY.encode()
        + b"\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: 100\r\n\r\n{",
    ],
    ids=["silent", "half-a-head", "half-a-body"],
)  # fmt: skip
def test_a_stalled_client_is_dropped(listening, said):
    """Whoever says nothing, or half of something, is hung up on."""
    with socket.create_connection(("127.0.0.1", listening.port), timeout=20) as client:
        client.sendall(said.replace(b"%d", str(listening.port).encode()))
        began = time.monotonic()
        while client.recv(65_536):
            pass
        assert time.monotonic() - began < 15
    assert post(listening.port)[0] == 200


def test_another_address_needs_a_key():
    """Nobody serves memory to the network without one."""
    with pytest.raises(InvalidInput, match="a key is needed"):
        face.serve(records_surface(), host="0.0.0.0", port=0, key=None, notify=print)


@rows("host, is_own", [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False),
     ("::", False), ("192.168.1.5", False), ("example.com", False), ("localhost.evil.example", False)])  # fmt: skip
def test_what_only_this_machine_reaches_is_known(host, is_own):
    """Loopback is an address, not a prefix of a name."""
    assert face.is_loopback(host) is is_own


def test_a_key_is_new_every_time():
    """A generated key is long, and can be found by scanners."""
    assert face.new_key() != face.new_key()
    assert re.fullmatch(r"cpm_[\w-]{43}", face.new_key())


class Started:
    """The real command with --http, and what it said first."""

    def __init__(self, *options):
        command = [COMMAND, "mcp", "--http", "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.said = []
        while not self.said or "listening at" not in self.said[-1]:
            self.said.append(self.process.stderr.readline())
            assert self.said[-1], self.said
        self.port = int(re.search(r":(\d+)/mcp", self.said[-1])[1])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait(10)
        self.process.stderr.close()


@pytest.mark.slow
def test_the_command_shows_a_new_key_once(cli):
    """The key on standard error opens the server, and nothing else does."""
    assert cli
    with Started() as server:
        key = re.search(r"cpm_[\w-]+", server.said[0])[0]
        assert post(server.port, Authorization=f"Bearer {key}")[0] == 200
        assert post(server.port)[0] == 401


@pytest.mark.slow
def test_the_command_takes_the_key_of_the_environment_and_does_not_show_it(cli):
    """Whoever sets the key knows it."""
    cli.env(COMMONPLACE_MCP_TOKEN=KEY)
    with Started() as server:
        assert KEY not in "".join(server.said)
        assert post(server.port)[0] == 200


@pytest.mark.slow
def test_on_this_machine_a_key_can_be_done_without(cli):
    """Only with --no-token, and then the names and pages are checked all the same."""
    assert cli
    with Started("--no-token") as server:
        assert post(server.port, Authorization=None)[0] == 200
        assert post(server.port, Authorization=None, Origin="https://evil.example")[0] == 403


@rows(
    "options, said",
    [
        (["--port", "8127"], "are for --http"),
        (["--host", "::1"], "are for --http"),
        (["--pipeline", "x.yml"], "need --agent"),
        (["--namespace", "x"], "need --agent"),
        (["--agent", "x", "--role", "r.yaml"], "goes with --pipeline"),
        (["--role", "r.yaml", "--directory", "."], "give one of them"),
        (["--directory", "nowhere"], "'nowhere' is not a folder"),
        (["--http", "--no-token", "--host", "0.0.0.0"], "a key is needed"),
    ],
)
def test_options_that_do_not_fit_are_refused_in_a_sentence(cli, options, said):
    """Nothing is served on a misunderstanding."""
    done = cli("mcp", *options)
    assert done.code == 2
    assert said in done.err


def test_a_weak_key_is_refused(cli):
    """A key that can be guessed is none."""
    cli.env(COMMONPLACE_MCP_TOKEN="short")
    done = cli("mcp", "--http")
    assert done.code == 2
    assert "at least 16" in done.err
    assert "short" not in done.err


def test_a_port_that_is_taken_is_named(cli):
    """The sentence says which."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = cli("mcp", "--http", "--port", port, "--no-token")
    assert done.code == 6
    assert f"127.0.0.1:{port}" in done.err

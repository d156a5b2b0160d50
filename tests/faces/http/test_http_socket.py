"""A server at a Unix socket: only its owner may open it, keys are asked all the same, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import httpx
import pytest

from commonplace import Client
from commonplace.app import open_store
from commonplace.model.errors import Forbidden, InvalidInput, StoreError
from commonplace.server.keys import Keys

COMMAND = str(Path(sys.executable).with_name("commonplace"))
PATH = "/api/v1/memory/namespaces"


class AtSocket:
    """A server that listens at a path."""

    def __init__(self, folder, *options, path=None, store="memory.db"):
        self.path = path or str(folder / "s.sock")
        self.store = str(folder / store)
        opened = open_store(self.store)
        self.key = Keys(opened).create("laptop")[1]
        opened.close()
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--socket", self.path, "--store", self.store, *options],
            cwd=folder, env=os.environ | {"COMMONPLACE_HOME": str(folder / "home")}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.first = self.process.stderr.readline()
        self.reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reader.start()

    def http(self, key=None, host="localhost"):
        """Call it."""
        carrier = httpx.HTTPTransport(uds=self.path)
        return httpx.Client(transport=carrier, base_url=f"http://{host}", headers={"X-API-Key": key or self.key})

    def stop(self, how=signal.SIGTERM):
        """End it, or with None wait until it ends; returns the exit code."""
        if how is not None and self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self.reader.join(timeout=10)
        self.process.stderr.close()
        return code


@pytest.fixture
def folder():
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="cp-") as folder:
        yield Path(folder)


@pytest.fixture
def at_socket(folder):
    """Start servers in that folder."""
    started = []

    def at_socket(*options, **given):
        started.append(AtSocket(folder, *options, **given))
        return started[-1]

    yield at_socket
    for server in started:
        if not server.process.stderr.closed:
            server.stop()


def test_a_socket_is_its_owners_and_asks_for_keys(at_socket):
    """It says where it is, and takes its file away at the end."""
    server = at_socket()
    assert server.first == f"commonplace: serving unix://{server.path}\n"
    assert stat.S_IMODE(os.stat(server.path).st_mode) == 0o600
    with server.http() as call, server.http("cp_wrong") as stranger, server.http(host="evil.example") as rebound:
        assert call.get(PATH).status_code == 200
        assert stranger.get(PATH).status_code == 401
        assert rebound.get(PATH).status_code == 421
    assert server.stop() == 0
    assert not os.path.exists(server.path)


def test_the_socket_of_a_dead_server_is_taken_over(at_socket):
    """One that was killed could not take it away."""
    first = at_socket()
    first.stop(signal.SIGKILL)
    assert os.path.exists(first.path)
    with at_socket().http() as call:
        assert call.get("/healthz").status_code == 200


def test_the_socket_of_a_live_server_is_not(at_socket):
    """The second one says so and ends; the first one is still there."""
    first = at_socket()
    second = at_socket()
    assert "another server listens there" in second.first
    assert second.stop(None) == 6
    with first.http() as call:
        assert call.get("/healthz").status_code == 200


def test_another_servers_socket_is_left_where_it_is(at_socket):
    """A server whose file was replaced removes nothing at its end."""
    first = at_socket()
    os.unlink(first.path)
    second = at_socket()
    first.stop()
    with second.http() as call:
        assert call.get("/healthz").status_code == 200


def test_a_file_that_is_no_socket_is_left_alone(at_socket, folder):
    """It may be anything."""
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    server = at_socket(path=str(folder / "notes.txt"))
    assert "the file that is there is no socket" in server.first
    assert server.stop(None) == 6
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_path_that_is_too_long_is_said(at_socket, folder):
    """The system takes some hundred letters."""
    assert "cannot serve at unix://" in at_socket(path=str(folder / ("x" * 200))).first


def test_without_keys_a_socket_may_be_served(at_socket):
    """As on loopback; but only to its owner."""
    server = at_socket("--no-keys")
    assert server.first.endswith("without keys, to you\n")
    with server.http("none") as call:
        assert call.get(PATH).status_code == 200


def test_a_socket_and_a_port_exclude_each_other(at_socket):
    """Neither wins silently."""
    server = at_socket("--port", "8000")
    assert "--socket takes the place of --host and --port" in server.first
    assert server.stop(None) == 2


def test_the_client_speaks_to_a_socket(at_socket):
    """By its address, which errors name."""
    server = at_socket()
    address = f"unix://{server.path}"
    with Client(address, api_key=server.key, agent="scout") as client:
        client.memory.store("scout", "owls", "Owls hunt at night")
        assert client.memory.get("scout", "owls").value == "Owls hunt at night"
    with Client(address, api_key="cp_wrong") as client, pytest.raises(Forbidden):
        client.memory.get("scout", "owls")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # httpcore leaves the socket to gc
def test_a_socket_that_nobody_serves_is_named(folder):
    """With its path."""
    with Client(f"unix://{folder}/none") as client, pytest.raises(StoreError, match=f"unix://{folder}/none cannot be"):
        client.memory.get("scout", "owls")


@pytest.mark.parametrize("address", ["unix://", "unix:///", "unix://host/path", "unix:///path?x=1"])
def test_the_address_of_a_socket_is_a_path(address):
    """Anything else is refused with an example."""
    with pytest.raises(InvalidInput, match="unix:///run/user/1000/commonplace"):
        Client(address)

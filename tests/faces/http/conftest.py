"""A server as people start it: its own process, its own store, a real port of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import httpx
import pytest
from openintent import AsyncOpenIntentClient, OpenIntentClient

from commonplace.app import open_store
from commonplace.server.keys import Keys

COMMAND = str(Path(sys.executable).with_name("commonplace"))
JSON = {"Content-Type": "application/json"}


class Served:
    """A server that runs, and ways to call it."""

    opened = None  # the store, for keys

    def __init__(self, folder, *options, store="memory.db", **environment):
        self.folder = folder
        self.store = store if "://" in store else str(folder / store)
        self.opened = open_store(self.store)
        self.keys = Keys(self.opened)
        self.operator = self.key("operator")
        places = {"COMMONPLACE_HOME": str(folder / "home"), "USER": "ada"}
        (folder / "work").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--port", "0", "--store", self.store, *options],
            cwd=folder / "work", env=os.environ | places | environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        said = self.process.stderr.readline()
        found = re.search(r"serving (\S+)", said)
        assert found, said + self.process.stderr.read()
        self.url = found[1]
        self.begin()

    def begin(self):
        """Read what it writes, so that it never waits for a reader."""
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._open = []

    def _read(self):
        self.lines.extend(self.process.stderr)

    @property
    def log(self):
        """What it wrote, all of it once it has stopped."""
        return "".join(self.lines)

    def key(self, name, agent=None):
        """Make a key."""
        return self.keys.create(name, agent=agent)[1]

    def http(self, key=None, **headers):
        """Call it by hand, with the operator's key unless another is given."""
        client = httpx.Client(base_url=self.url, headers={"X-API-Key": key or self.operator, **headers}, timeout=30)
        self._open.append(client)
        return client

    def sdk(self, agent="agent-a", key=None):
        """The public client, unmodified."""
        client = OpenIntentClient(base_url=self.url, api_key=key or self.operator, agent_id=agent)
        self._open.append(client)
        return client

    def async_sdk(self, agent="agent-a", key=None):
        """The public asynchronous client, unmodified."""
        return AsyncOpenIntentClient(base_url=self.url, api_key=key or self.operator, agent_id=agent)

    def stop(self, how=signal.SIGTERM):
        """Send a signal and wait; returns the exit code."""
        for client in self._open:
            client.close()
        if self.process.poll() is None:
            self.process.send_signal(how)
        code = self.process.wait(timeout=30)
        self._reader.join(timeout=10)
        self.process.stderr.close()
        if self.opened:
            self.opened.close()
        return code


class App(Served):
    """A server of what the command sees from a directory."""

    def __init__(self, folder):
        self.places = os.environ | {"COMMONPLACE_HOME": str(folder / "home"), "USER": "ada"}
        self.work = folder / "work"
        self.work.mkdir()
        self.command("init")
        self.operator = self.command("keys", "create", "ci").strip()
        self.process = subprocess.Popen(
            [COMMAND, "serve", "--port", "0"], cwd=self.work, env=self.places, stderr=subprocess.PIPE, text=True
        )
        self.url = re.search(r"serving (\S+)", self.process.stderr.readline())[1]
        self.begin()

    def command(self, *arguments):
        """Run the command there."""
        done = subprocess.run(
            [COMMAND, *arguments], cwd=self.work, env=self.places, capture_output=True, text=True, check=True
        )
        return done.stdout


@pytest.fixture
def here(tmp_path):
    """Such a server."""
    server = App(tmp_path)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One server for the tests of a module, which keep out of each other's way by the names of their agents."""
    server = Served(tmp_path_factory.mktemp("served"))
    yield server
    server.stop()


@pytest.fixture
def serve(tmp_path):
    """Start servers of a test's own."""
    started = []

    def serve(*options, store="memory.db", **environment):
        started.append(Served(tmp_path, *options, store=store, **environment))
        return started[-1]

    yield serve
    for server in started:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture
def http(served):
    """Call the server as its operator."""
    return served.http()


@pytest.fixture
def agent(request):
    """The name of an agent that no other test uses."""
    return f"{re.sub(r'[^a-z_]+', '-', request.node.name)[:40]}-{zlib.crc32(request.node.nodeid.encode())}"

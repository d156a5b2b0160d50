"""The SDK's own client, over both transports, against the real command and a real loopback server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx2
import pytest
import uvicorn
from anyio.from_thread import start_blocking_portal
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from commonplace.mcp import http
from commonplace.records import records_surface

COMMAND = str(Path(sys.executable).with_name("commonplace"))
KEY = "a-key-for-these-tests"
OFFER = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class Talk:
    """A connected client whose every method can be called without waiting for it."""

    def __init__(self, portal, client):
        self.portal, self.client = portal, client

    def __getattr__(self, name):
        verb = getattr(self.client, name)
        return (lambda *args, **given: self.portal.call(partial(verb, *args, **given))) if callable(verb) else verb

    def call(self, name, **arguments):
        """Call a tool, whatever comes of it."""
        return self.call_tool(name, arguments)

    def done(self, name, **arguments):
        """Call a tool that must succeed; returns its data."""
        result = self.call(name, **arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content

    def text(self, name, **arguments):
        """Call a tool that must succeed; returns its text."""
        result = self.call(name, **arguments)
        assert not result.is_error, result.content[0].text
        return result.content[0].text

    def refused(self, name, **arguments):
        """Call a tool that must not succeed; returns the sentence."""
        result = self.call(name, **arguments)
        assert result.is_error
        return result.content[0].text


@pytest.fixture
def portal():
    """A loop in a thread of its own."""
    with start_blocking_portal() as portal:
        yield portal


@pytest.fixture
def over_stdio(portal, tmp_path):
    """Connect to the real command on its standard input and output."""

    @contextmanager
    def connect(*options, mode="auto"):
        with open(tmp_path / "stderr", "a", encoding="utf-8") as errors:
            parameters = StdioServerParameters(
                command=COMMAND, args=["mcp", *map(str, options)], env=dict(os.environ), cwd=os.getcwd()
            )
            client = Client(stdio_client(parameters, errlog=errors), mode=mode)
            with portal.wrap_async_context_manager(client) as entered:
                yield Talk(portal, entered)

    return connect


class Listening:
    """A server on loopback, in a thread."""

    def __init__(self, surface, key=KEY):
        self.socket = http._listening("127.0.0.1", 0)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}{http.PATH}"
        app = http.app(surface, host="127.0.0.1", port=self.port, key=key)
        self.server = uvicorn.Server(http.config(app))
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))

    def __enter__(self):
        self.thread.start()
        until = time.monotonic() + 10
        while not self.server.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        return self

    def __exit__(self, *exception):
        self.server.should_exit = True
        self.thread.join(10)
        self.socket.close()


@pytest.fixture
def over_http(portal):
    """Connect to a real server on loopback."""

    @contextmanager
    def connect(surface=None, mode="auto"):
        with Listening(surface or records_surface()) as listening:
            headers = {"Authorization": f"Bearer {KEY}"}
            carrier = httpx2.AsyncClient(headers=headers, timeout=20)
            client = Client(streamable_http_client(listening.url, http_client=carrier), mode=mode)
            with portal.wrap_async_context_manager(client) as entered:
                yield Talk(portal, entered)
            portal.call(carrier.aclose)

    return connect


@pytest.fixture(params=["stdio", "http"])
def talk(request, cli):
    """A client in a project, over each transport."""
    assert cli
    with request.getfixturevalue(f"over_{request.param}")() as talk:
        yield talk


class Raw:
    """A server to which anything at all can be said."""

    def __init__(self, *options, **given):
        command = [COMMAND, "mcp", *map(str, options)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **given)
        self.lines = os.fdopen(os.dup(self.process.stdout.fileno()), "rb")

    def say(self, data):
        """Send bytes, or a message."""
        self.process.stdin.write(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def hear(self):
        """The next message."""
        return json.loads(self.lines.readline())

    def ask(self, method, id=1, **params):
        """Ask for something and hear the answer."""
        self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.hear()

    def end(self):
        """End its input; returns what it still said, line by line, and its exit code."""
        self.process.stdin.close()
        rest = [json.loads(line) for line in self.lines]
        return rest, self.process.wait(10)

    def close(self):
        """End it however it is."""
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.lines.close()


@pytest.fixture
def raws(cli):
    """Servers in a project, without a client's manners, as many as a test wants."""
    assert cli
    made = []

    def raws(*options, **given):
        made.append(Raw(*options, **given))
        return made[-1]

    yield raws
    for one in made:
        one.close()


@pytest.fixture
def raw(raws):
    """One of them."""
    return raws()


@pytest.fixture
def listening(cli):
    """A server on loopback, whose guard lets in whoever has the key."""
    assert cli
    with Listening(records_surface()) as listening:
        yield listening

"""A server in a thread of this process: real connections, with a clock that a test moves by hand."""

from __future__ import annotations

import asyncio
import threading

import httpx
import uvicorn

from commonplace.server.application import application
from commonplace.server.auth import Authenticator
from commonplace.server.listening import bind
from commonplace.server.run import open_services, uvicorn_options
from commonplace.server.settings import ServerSettings


class Ticks:
    """Seconds that pass when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def forward(self, seconds):
        """Let time pass."""
        self.now += seconds


class Inside:
    """A server of a store of its own; ``ticks`` is its clock for waits and rates."""

    def __init__(self, folder, **settings):
        self.ticks = Ticks()
        given = ServerSettings(store=str(folder / "memory.db"), port=0, **settings)
        services, close = open_services(given, {}, is_stopping=lambda: self.server.should_exit)
        self.keys = services.keys
        self.services = services.replace(authenticator=Authenticator(self.keys, given, clock=self.ticks))
        listening = bind(given)
        self.host, self.port = listening.getsockname()[:2]
        self.server = uvicorn.Server(uvicorn.Config(application(self.services, close=close), **uvicorn_options(given)))
        self.thread = threading.Thread(target=asyncio.run, args=(self.run(listening),))
        self.thread.start()

    async def run(self, listening):
        """Serve until it is stopped."""
        self.loop = asyncio.get_running_loop()
        await self.server.serve(sockets=[listening])

    def http(self, key=None):
        """Call it with a key."""
        headers = {} if key is None else {"X-API-Key": key}
        return httpx.Client(base_url=f"http://{self.host}:{self.port}", headers=headers, timeout=30)

    def call(self, function):
        """Call a function in the thread of the server."""

        async def called():
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(timeout=30)

    def stop(self):
        """End it."""
        self.server.should_exit = True
        self.thread.join(timeout=30)
        assert not self.thread.is_alive()

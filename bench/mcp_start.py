"""`commonplace mcp` as a host starts it: how soon it answers, against `python -c pass` in the same run.

    python bench/mcp_start.py

CPU of a server that answers `initialize` and `tools/list` and ends with its input; the time until the first answer is
there; and the time that calls take then, the first one with all that it loads.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time

from measure import clean_env, line, quantile

RUNS = 20
CALLS = 50
COMMAND = [os.path.join(os.path.dirname(sys.executable), "commonplace"), "mcp"]
BARE = [sys.executable, "-c", "pass"]
OFFER = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
FACT = {"content": "Deploys go through the blue cluster", "category": "decisions"}


def request(id: int, method: str, **params: object) -> bytes:
    """One request, as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def cpu_ms(command: list[str], said: bytes, env: dict[str, str], folder: str) -> float:
    """CPU milliseconds of a process that hears this and then the end of its input."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, input=said, env=env, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def exit_ms(env: dict[str, str], folder: str) -> float:
    """Milliseconds of a bare interpreter, from its start to its end."""
    began = time.perf_counter()
    subprocess.run(BARE, env=env, cwd=folder, check=True)
    return 1000 * (time.perf_counter() - began)


class Server:
    """A server, running, and the time its first answer took."""

    def __init__(self, env: dict[str, str], folder: str) -> None:
        began = time.perf_counter()
        self.process = subprocess.Popen(
            COMMAND, env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.call("initialize", **OFFER)
        self.first_ms = 1000 * (time.perf_counter() - began)

    def call(self, method: str, **params: object) -> float:
        """Ask, and return the milliseconds until the answer."""
        began = time.perf_counter()
        self.process.stdin.write(request(1, method, **params))
        answer = json.loads(self.process.stdout.readline())
        assert "result" in answer
        assert not answer["result"].get("isError")
        return 1000 * (time.perf_counter() - began)

    def close(self) -> None:
        """End it as a host does."""
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()


def started(env: dict[str, str], folder: str) -> float:
    """The milliseconds until a new server has answered for the first time."""
    server = Server(env, folder)
    server.close()
    return server.first_ms


def main() -> None:
    """Print the ratios and the times."""
    said = request(1, "initialize", **OFFER) + request(2, "tools/list")
    with tempfile.TemporaryDirectory() as folder:
        env = clean_env(COMMONPLACE_HOME=os.path.join(folder, "home"), PWD=folder)
        started(env, folder)  # byte code, and a warm disk
        pairs = [(cpu_ms(COMMAND, said, env, folder), cpu_ms(BARE, b"", env, folder)) for _ in range(RUNS)]
        ours, bare = (min(times) for times in zip(*pairs, strict=True))
        print(f"CPU: mcp {ours:.0f} ms, python -c pass {bare:.0f} ms")
        line("start, two answers, end / python -c pass, CPU", ours / bare, "times", limit=6)
        walls = [(started(env, folder), exit_ms(env, folder)) for _ in range(RUNS)]
        first, alone = (quantile(times, 0.5) for times in zip(*walls, strict=True))
        line("initialize answered after, median", first, "ms")
        line("  / python -c pass, median", first / alone, "times", limit=6)
        server = Server(env, folder)
        line(
            "first call (remember), with all that it loads",
            server.call("tools/call", name="remember", arguments=FACT),
            "ms",
        )
        for name, arguments in (("recall", {"query": "where do deploys go?"}), ("remember", FACT), ("brief", {})):
            times = [server.call("tools/call", name=name, arguments=arguments) for _ in range(CALLS)]
            line(f"then {name}, median of {CALLS}", quantile(times, 0.5), "ms")
        server.close()


if __name__ == "__main__":
    main()

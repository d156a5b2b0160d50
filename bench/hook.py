"""The hook of a prompt as a fresh process on 10,000 records with hybrid recall; then many hooks while others write.

    python bench/hook.py [RECORDS [CALLS]]          (default: 10000 1000)

First its CPU against `python -c pass` in the same run, and what of it are imports, embedder and database: each step is
a fresh process with all steps before it.  Then so many calls from four processes, of prompts, starts and stops, while
an MCP server keeps records: every call must end with 0 and nothing or JSON, the hooks' log must stay empty, no process
may be left, and every record that was acknowledged must be there.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from cold_start import ASKED, fill
from measure import clean_env, line, quantile

from commonplace.app import open_app

RUNS, WORKERS = 20, 4
CROWDED = 1_000  # records with a file each, where many write
COMMAND = os.path.join(os.path.dirname(sys.executable), "commonplace")
MARK = f"bench-{os.getpid()}"
BEGIN, END = "import gc, os; gc.disable()", "os._exit(0)"  # as the hook itself does
IMPORTS = (
    "import commonplace.cli.main, commonplace.hosts.hook_process, commonplace.hosts.hook,"
    " commonplace.hosts.claude_code, commonplace.hosts.hook_files, commonplace.providers.local, threading, json"
)
EMBED = f"[vector] = commonplace.providers.local.LocalEmbedder().embed([{ASKED!r}], query=True)"
SURVEY = f"""
from commonplace.model.queries import Filter
from commonplace.engine.memory import now_utc
from commonplace.engine.recall import CANDIDATES
from commonplace.text.words import plan
place = commonplace.hosts.hook.open_app()
where = Filter(scopes=frozenset(place.binding.reads), at=now_utc(), chunks=True)
place.store.survey(where, plan({ASKED!r}), vector, limit=CANDIDATES)
"""
OFFER = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Host:
    """An agent's host that keeps records through an MCP server, one after the other, until it is told to stop."""

    def __init__(self, env: dict[str, str], project: str) -> None:
        self.server = subprocess.Popen(
            [COMMAND, "mcp"], env=env, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.written, self.failed, self._stop = 0, 0, threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()

    def _call(self, id: int, method: str, **params: object) -> dict[str, object]:
        asked = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.server.stdin.write(json.dumps(asked) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())["result"]

    def _write(self) -> None:
        self._call(0, "initialize", **OFFER)
        while not self._stop.is_set():
            number = self.written + self.failed + 1
            said = {"content": f"Written record number {number} of the bench", "category": "decisions"}
            wrong = self._call(number, "tools/call", name="remember", arguments=said).get("isError")
            self.failed, self.written = self.failed + bool(wrong), self.written + (not wrong)

    def stop(self) -> None:
        """Let it end as a host does: its input ends."""
        self._stop.set()
        self._thread.join()
        self.server.stdin.close()
        self.server.wait(timeout=30)


def cpu(command: list[str], env: dict[str, str], folder: str, said: str) -> float:
    """CPU milliseconds of one fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, cwd=folder, input=said.encode(), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000


def least(commands: dict[str, list[str]], env: dict[str, str], folder: str, said: str) -> dict[str, float]:
    """CPU of each, the least of many runs; they take turns, so that noise hits all."""
    found: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            found[name].append(cpu(command, env, folder, said))
    return {name: min(times) for name, times in found.items()}


def prompt(folder: str, env: dict[str, str]) -> None:
    """Print the ratio and the shares."""
    project = os.path.join(folder, "project")
    said = json.dumps({"session_id": "bench", "cwd": project, "hook_event_name": "UserPromptSubmit", "prompt": ASKED})
    python = [sys.executable, "-c"]
    programs = {
        "the interpreter": [*python, "pass"],
        "imports": [*python, f"{BEGIN}\n{IMPORTS}\n{END}"],
        "embedder": [*python, f"{BEGIN}\n{IMPORTS}\n{EMBED}\n{END}"],
        "database": [*python, f"{BEGIN}\n{IMPORTS}\n{EMBED}\n{SURVEY}\n{END}"],
        "the hook": [COMMAND, "hook", "prompt", "--host", "claude-code"],
    }
    took = least(programs, env, project, said)
    print(f"the hook of a prompt {took['the hook']:.0f} ms, python -c pass {took['the interpreter']:.0f} ms of CPU")
    line("  hook / python -c pass", took["the hook"] / took["the interpreter"], "times", limit=8)
    rest = {"the hook": "the rest: ranking, files, answer"}
    for before, step in pairwise(took):
        line(f"  of it {rest.get(step, step)}", 100 * (took[step] - took[before]) / took["the hook"], "%")


def session(folder: str, number: int) -> dict[str, str]:
    """What a host says of one of the sessions, whose transcript is on disk."""
    path = os.path.join(folder, f"s{number}.jsonl")
    common = {"session_id": f"s{number}", "cwd": os.path.join(folder, "project"), "transcript_path": path}
    if not os.path.exists(path):
        words = f"w{100 + number} w250 is what session {number} said"
        own = {"type": "user", "sessionId": f"s{number}", "cwd": common["cwd"]}
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(own | {"message": {"role": "user", "content": words}}) + "\n")
    return common


def called(folder: str, env: dict[str, str], number: int) -> tuple[float, str | None]:
    """One call: how long it took, and what was wrong with it."""
    event = "stop" if number % 10 == 0 else "session-start" if number % 10 == 5 else "prompt"
    said = json.dumps(session(folder, number % 50) | {"prompt": f"w{100 + number % 300} w400"})
    began = time.monotonic()
    command = [COMMAND, "hook", event, "--host", "claude-code"]
    where = os.path.join(folder, "project")
    done = subprocess.run(command, input=said.encode(), capture_output=True, env=env, cwd=where, check=False)
    return (time.monotonic() - began) * 1000, _wrong(done.returncode, done.stdout)


def _wrong(code: int, out: bytes) -> str | None:
    try:
        return None if code == 0 and (not out or json.loads(out)) else f"exit code {code}"
    except ValueError:
        return "no JSON"


def left_behind() -> int:
    """Processes of this bench that are still there."""
    count = 0
    for folder in Path("/proc").iterdir():
        try:
            count += folder.name.isdigit() and f"BENCH={MARK}".encode() in (folder / "environ").read_bytes()
        except OSError:
            continue
    return count


def crowd(folder: str, env: dict[str, str], calls: int) -> None:
    """Print what became of many hooks while somebody else writes."""
    project = os.path.join(folder, "project")
    host = Host(env, project)
    with ThreadPoolExecutor(WORKERS) as pool:
        done = list(pool.map(lambda number: called(folder, env, number), range(calls)))
    host.stop()
    with open_app(project, env=env) as place:
        kept = sum("Written record number" in record.content for record in place.memory.list(limit=10**6))
        sessions = len(place.store.jobs(place.binding.reads, now=place.clock())) or 0
    log = Path(env["COMMONPLACE_HOME"]) / "hook.log"
    noted = log.read_text().splitlines() if log.exists() else []
    wrong = [trouble for _, trouble in done if trouble]
    times = [took for took, _ in done]
    print(f"{calls} hooks from {WORKERS} processes, {host.written} records kept over MCP, {sessions} sessions queued")
    line("  wall time p50", quantile(times, 0.5), "ms")
    line("  wall time p95", quantile(times, 0.95), "ms")
    counts = {"calls with an error": len(wrong), "lines in the hooks' log": len(noted)}
    counts |= {
        "processes left behind": left_behind(),
        "writes refused": host.failed,
        "writes lost": host.written - kept,
    }
    for name, count in counts.items():
        print(f"  {name}: {count}   limit 0: {'kept' if count == 0 else 'BROKEN'}")
    for trouble in [*wrong, *noted][:5]:
        print(f"  {trouble}")


def main() -> None:
    """Print both."""
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    calls = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, records, files=False)
        prompt(folder, environment(folder))
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, min(records, CROWDED), files=True)
        with open(os.path.join(folder, "project", ".commonplace", "config.yaml"), "a", encoding="utf-8") as file:
            file.write("memories:\n  enabled: true\n")
        crowd(folder, environment(folder), calls)


def environment(folder: str) -> dict[str, str]:
    """A user's, marked so that what is left behind is known."""
    return clean_env(COMMONPLACE_HOME=os.path.join(folder, "home"), BENCH=MARK, PWD=os.path.join(folder, "project"))


if __name__ == "__main__":
    main()

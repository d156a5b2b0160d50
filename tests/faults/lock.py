"""Readers while somebody holds the write lock: they answer at once, and count nothing."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from contextlib import contextmanager

from commonplace.app import open_app
from faults import Result, World

#: Holds both locks of a store, the queue of writers and the database's own, until its standard input closes.
HOLDER = """
import fcntl, os, sys
import apsw
lock = os.open(sys.argv[1] + ".lock", os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
db = apsw.Connection(sys.argv[1])
db.execute("begin immediate")
os.write(1, b"held")
sys.stdin.read()
"""
#: Writes, and ends without closing anything.
KILLED = """
import os
from commonplace.app import open_app
open_app().memory.remember("Use bun, as the log says", category="decisions")
os._exit(0)
"""
#: What reads: each as a person, an agent or a host asks for it.
READERS = {
    "recall": (["recall", "which package manager?"], None),
    "brief": (["brief", "--task", "package manager"], None),
    "list": (["list"], None),
    "status": (["status"], None),
    "prompt hook": (
        ["hook", "claude-code", "UserPromptSubmit"],
        {"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "which package manager do we use?"},
    ),
}


@contextmanager
def held_lock(world):
    """Another process writes, and does not come to an end."""
    holder = world.start(HOLDER, world.database, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout.read(4) == b"held"
        yield
        holder.stdin.close()


def furnished(folder):
    """A project with some records."""
    world = World(folder)
    with open_app(str(world.project), env=world.env) as app:
        for number in range(20):
            app.memory.remember(f"Use package manager number {number}", category="decisions")
    return world


def readers_under_a_held_lock(folder, tries):
    """Every reader with the lock held and without, in turns; beyond 1.2 times the time it is a violation."""
    result = Result("readers while the write lock is held")
    world, times, notes = furnished(folder), {}, []
    for number in range(tries):
        for name, call in READERS.items():
            free = _timed(world, *call, result)
            with held_lock(world):
                held = _timed(world, *call, result)
            times.setdefault(name, []).append((free, held)) if number else None  # the first fills the caches
            result.tries += 1
    for name, pairs in times.items():
        free, held = (statistics.median(column) for column in zip(*pairs, strict=True))
        notes.append(f"{name} {held / free:.2f}")
        if tries >= 20:  # fewer are noise on a busy machine
            result.expect(held <= 1.2 * free, f"{name} takes {held / free:.2f} times as long under a held lock")
    result.note = f"time under the lock as a ratio: {', '.join(notes)}"
    return result


def _timed(world, words, payload, result):
    start = time.perf_counter()
    try:
        done = world.run(*words, input=json.dumps(payload).encode() if payload else b"", timeout=20)
        result.expect(done.returncode == 0, f"{words[0]}: {done.returncode} {done.stderr.decode()[-200:]}")
    except subprocess.TimeoutExpired:
        result.expect(False, f"{words[0]} waits for the writer")
    return time.perf_counter() - start


def reads_of_read_only_places(folder, tries):
    """On a file system that is mounted read-only: every reader answers with one notice, every writer is refused."""
    result = Result("reads on a read-only file system")
    world = furnished(folder)
    if tries > 1:  # every other time with a log, as a killed process leaves it
        assert world.start(KILLED).wait() == 0
    for number in range(tries):
        calls = [["recall", "bun"], ["list"], ["status"], ["export"], ["brief"], ["doctor"]]
        for words in calls:
            done = _read_only(world, words)
            said = done.stderr.decode() + done.stdout.decode()
            result.expect(done.returncode in (0, 1) and "Traceback" not in said, f"{words}: {said[-300:]}")
            result.expect(said.count("can only be read here") <= 1 or words == ["doctor"], f"{words}: told twice")
            result.tries += 1
        done = _read_only(world, ["record", "add", f"No {number}", "--category", "decisions"])
        result.expect(done.returncode not in (0, 1), "a write on a read-only file system was acknowledged")
        result.expect(b"Traceback" not in done.stderr, f"a write: {done.stderr.decode()[-300:]}")
        result.tries += 1
    return result


def _read_only(world, words):
    """Run a command with everything mounted read-only, in a name space of its own."""
    script = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && cd "$2" && shift 2 && exec "$@"'
    command = world.command(*words)
    mounted = ["unshare", "-rm", "bash", "-c", script, "bash", str(world.folder), str(world.project), *command]
    return subprocess.run(mounted, env=world.env, capture_output=True, timeout=60, check=False)

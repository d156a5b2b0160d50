"""Eight processes, 500 writes of mixed kinds each, on one store, while two read.

    python bench/writers.py [PROCESSES] [WRITES]

Nothing may fail, be lost or be doubled; the check at the end must be clean.  Printed: writes a second, how long the
slowest write waited, and how evenly the writers were served.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time

from measure import line

import commonplace
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.stores.sqlite.upkeep import SqliteMaintenance

WRITER = """
import json, sys, time, commonplace
memory, kinds, waits, ids = commonplace.open(sys.argv[1]), list(commonplace.Kind), [], []
for number in range(int(sys.argv[3])):
    start = time.perf_counter()
    kept = memory.remember(f"writer {sys.argv[2]} notes number {number}", kind=kinds[number % 4])
    if number % 10 == 9:
        kept = memory.update(kept.record.id, tags=[f"t{number}"])
    waits.append(time.perf_counter() - start)
    ids.append(kept.record.id)
print(json.dumps({"ids": ids, "slowest": max(waits), "took": sum(waits)}))
"""
READER = """
import sys, os, commonplace
memory, asked = commonplace.open(sys.argv[1]), 0
while not os.path.exists(sys.argv[2]):
    memory.recall(f"writer notes number {asked % 500}")
    asked += 1
print(asked)
"""


def main() -> None:
    """Run them and count."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    writes = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    with tempfile.TemporaryDirectory() as folder:
        path, stop = os.path.join(folder, "store.db"), os.path.join(folder, "stop")
        commonplace.open(path).close()
        start = time.perf_counter()
        readers = [run(READER, path, stop) for _ in range(2)]
        writers = [run(WRITER, path, str(number), str(writes)) for number in range(processes)]
        done = [json.loads(finished(writer)) for writer in writers]
        took = time.perf_counter() - start
        open(stop, "w").close()
        asked = sum(int(finished(reader)) for reader in readers)
        ids = [name for writer in done for name in writer["ids"]]
        problems = SqliteMaintenance(SqliteStore(path)).check()
        kept = sum(tally.count for tally in SqliteStore(path).census())
    assert len(ids) == len(set(ids)) == kept == processes * writes, (len(ids), len(set(ids)), kept)
    assert problems == [], problems
    print(f"{processes} processes x {writes} writes, {asked} recalls beside them: nothing failed, lost or doubled")
    line("writes a second", processes * writes / took)
    line("slowest write", max(writer["slowest"] for writer in done), "s")
    line("fastest writer / slowest writer", min(w["took"] for w in done) / max(w["took"] for w in done), "of 1")


def run(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program in a process of its own."""
    return subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True)


def finished(process: subprocess.Popen[str]) -> str:
    """What a process printed, once it has ended well."""
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    return out


if __name__ == "__main__":
    main()

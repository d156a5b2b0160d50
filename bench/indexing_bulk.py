"""A history by its size: sessions as coding agents leave them, mostly results of tools, indexed once and again.

    python bench/indexing_bulk.py [MIB]      # 20 unless given; a year of daily work is about 200

Each session has about one MiB: a short question, a longer answer and two results of tools, again and again.  It is run
without an embedder.  The peak of memory is that of the whole process; it must not grow with the history.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time

from indexing import peak_mib
from measure import line, texts

from commonplace.app import open_app
from commonplace.learning import open_workspace
from commonplace.records.index import index

SESSION_BYTES = 1024 * 1024
TOOL, TOOL_CHARS, SHORT_CHARS = "tool", 6000, 1000


def write(path: str, seed: int) -> int:
    """One session; returns its size."""
    said = iter(texts(12_000, seed=seed))
    with open(path, "w", encoding="utf-8") as file:
        while file.tell() < SESSION_BYTES:
            result = ""
            while len(result) < TOOL_CHARS:
                result += next(said) + "\n"
            answer = " ".join(next(said) for _ in range(3))
            turns = [("user", next(said)), ("assistant", answer), (TOOL, result[:SHORT_CHARS]), (TOOL, result)]
            file.writelines(json.dumps({"role": role, "name": "bash", "content": text}) + "\n" for role, text in turns)
        return file.tell()


def main() -> None:
    """Index a history, then again."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as folder:
        source, shop = os.path.join(folder, "sessions"), os.path.join(folder, "shop", ".commonplace")
        os.makedirs(source)
        os.makedirs(shop)
        with open(os.path.join(shop, "config.yaml"), "w", encoding="utf-8") as file:
            file.write("project: bench.example/bulk\n")
        size = sum(write(os.path.join(source, f"s{number:04d}.jsonl"), number) for number in range(count)) / 1024**2
        env = {"COMMONPLACE_HOME": os.path.join(folder, "home")}
        with open_app(os.path.dirname(shop), env=env) as opened:
            place = open_workspace(opened).replace(embedder=None)
            before, began, clock = peak_mib(), time.process_time(), time.monotonic()
            report = index(place, [source])
            taken, wall = time.process_time() - began, time.monotonic() - clock
            after, began = peak_mib(), time.process_time()
            index(place, [source])
            again = time.process_time() - began
        home = env["COMMONPLACE_HOME"]
        kept = sum(os.path.getsize(os.path.join(home, name)) for name in os.listdir(home)) / 1024**2
    chunks = sum(file.chunks for file in report.files)
    print(f"{size:.0f} MiB in {count} sessions, {chunks} chunks; {before:.0f} MiB of memory before")
    line("indexed", size / taken, "MiB per CPU second")
    line("indexed", chunks / taken, "chunks per CPU second")
    line("on the clock", wall, "seconds")
    line("the same again, unchanged", again * 1000, "ms")
    line("peak of memory", after, "MiB")
    line("on disk", kept / size, "times the transcripts")


if __name__ == "__main__":
    main()

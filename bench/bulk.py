"""Many plain records at once: through the library, and through `commonplace import` with a Markdown file for each.

    python bench/bulk.py [RECORDS]

Wall and CPU seconds, embedding included, and the ratio to plain SQLite: the same texts in a table with a full-text
index, in one transaction.  `again` is the same data a second time, which changes nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import apsw
from measure import texts

import commonplace


def bare(folder: str, contents: list[str]) -> None:
    """Insert the texts into a table and its full-text index, in one transaction."""
    db = apsw.Connection(os.path.join(folder, "bare.db"))
    db.execute("pragma journal_mode = wal; pragma synchronous = full").fetchall()
    db.execute("create virtual table f using fts5 (content); create table r (id integer primary key, content text)")
    with db:
        db.executemany("insert into r (content) values (?)", [(text,) for text in contents])
        db.executemany("insert into f (content) values (?)", [(text,) for text in contents])


def library(folder: str, contents: list[str]) -> None:
    """Store them in a file of one's own."""
    with commonplace.open(os.path.join(folder, "library.db")) as memory:
        done = memory.remember_many({"text": text, "metadata": {"row": row}} for row, text in enumerate(contents))
        assert memory.store.count_unembedded(memory.embedder.identity) == 0
        print(f"  {done.added} added, {done.duplicates} duplicates", file=sys.stderr)


def command(folder: str, file: str) -> None:
    """Import them as JSON Lines, in a fresh process."""
    env = os.environ | {"COMMONPLACE_HOME": os.path.join(folder, "home"), "HOME": folder}
    program = [os.path.join(os.path.dirname(sys.executable), "commonplace"), "import", file]
    subprocess.run(program, env=env, cwd=folder, check=True, stdout=sys.stderr)


def measure(name: str, call: Callable[[], object], base: float | None = None) -> float:
    """Print the seconds of one call, and how many times those of the base they are; returns them."""
    before, start = os.times(), time.perf_counter()
    call()
    wall, after = time.perf_counter() - start, os.times()
    cpu = sum(after[:4]) - sum(before[:4])
    ratio = f"  {wall / base:6.1f} times plain SQLite" if base else ""
    print(f"{name:<34}{wall:8.1f} s wall {cpu:8.1f} s CPU{ratio}")
    return wall


def main() -> None:
    """Measure all of it."""
    contents = [f"{number} {text}" for number, text in enumerate(texts(int(sys.argv[1]) if sys.argv[1:] else 50_000,
                                                                       least=8, most=24))]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "home"))
        with open(os.path.join(folder, "home", "config.yaml"), "w", encoding="utf-8") as settings:
            settings.write("scripts_speak_as: user\n")
        file = os.path.join(folder, "rows.jsonl")
        with open(file, "w", encoding="utf-8") as rows:
            rows.writelines(json.dumps({"text": text, "row": row}) + "\n" for row, text in enumerate(contents))
        base = measure(f"plain SQLite, {len(contents)} rows", lambda: bare(folder, contents))
        measure("remember_many", lambda: library(folder, contents), base)
        measure("remember_many, again", lambda: library(folder, contents), base)
        measure("commonplace import, with files", lambda: command(folder, file), base)
        measure("commonplace import, again", lambda: command(folder, file), base)


if __name__ == "__main__":
    main()

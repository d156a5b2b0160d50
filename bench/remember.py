"""One durable write through the engine, against a bare insert of the same row with its full-text entry.

    python bench/remember.py [WRITES]

Bare: one parameterised insert into a table and one into an FTS5 table, in one transaction, WAL, synchronous=FULL.  The
engine's write also redacts, cuts terms, hashes and looks for who says the same: that is processor time, so on a disk
that is quick the ratio is larger.  CPU time is told beside.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from functools import partial

import apsw
from measure import line, quantile, texts

import commonplace
from commonplace.app import open_app


def bare(folder: str, contents: list[str]) -> list[float]:
    """Wall milliseconds of each bare insert."""
    db = apsw.Connection(os.path.join(folder, "bare.db"))
    db.execute("pragma page_size = 8192; pragma journal_mode = wal").fetchall()
    db.execute("pragma synchronous = full; pragma secure_delete = on").fetchall()
    db.execute(
        "create table r (id integer primary key, uid text unique, scope integer, kind text, category text,"
        " content text, tags text, meta text, created integer, updated integer, version integer);"
        "create virtual table f using fts5 (content, content = 'r', content_rowid = 'id',"
        " tokenize = 'porter unicode61');"
        "insert into f (f, rank) values ('secure-delete', 1)"
    )
    taken = []
    for number, text in enumerate(contents, start=1):
        start = time.perf_counter()
        db.execute("begin immediate")
        row = (number, f"id{number:018d}", 1, "semantic", "decisions", text, "[]", "{}", number, number, 1)
        db.execute("insert into r values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("insert into f (rowid, content) values (?, ?)", (number, text))
        db.execute("commit")
        taken.append((time.perf_counter() - start) * 1000)
    return taken


def engine(folder: str, contents: list[str], *, embedder: str | None = None) -> list[float]:
    """Wall milliseconds of each remember in a file of its own, without Markdown."""
    with commonplace.open(os.path.join(folder, f"engine-{embedder}.db"), embedder=embedder) as memory:
        return [timed(memory.remember, text) for text in contents]


def mirrored(folder: str, contents: list[str]) -> list[float]:
    """Wall milliseconds of each remember with its Markdown file."""
    project = os.path.join(folder, "project")
    os.makedirs(os.path.join(project, ".commonplace"))
    with open(os.path.join(project, ".commonplace", "config.yaml"), "w", encoding="utf-8") as file:
        file.write("project: bench.example/remember\n")
    with open_app(project, env={"COMMONPLACE_HOME": os.path.join(folder, "home")}) as place:
        return [timed(place.memory.remember, text, category="decisions") for text in contents]


def timed(call, *args, **kwargs) -> float:
    """Wall milliseconds of one call."""
    start = time.perf_counter()
    call(*args, **kwargs)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    """Run all side by side and print ratios of medians."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    contents = texts(count)
    rounds: dict[str, list[float]] = {"bare": [], "engine": [], "with vectors": [], "mirrored, with vectors": []}
    spent = dict.fromkeys(rounds, 0.0)
    for start in range(0, count, 200):
        part = contents[start : start + 200]
        with tempfile.TemporaryDirectory() as folder:
            ways = (bare, engine, partial(engine, embedder="local"), mirrored)
            for name, way in zip(rounds, ways, strict=True):
                began = time.process_time()
                rounds[name] += way(folder, part)
                spent[name] += (time.process_time() - began) * 1000
    median = {name: quantile(values, 0.5) for name, values in rounds.items()}
    print(f"{count} writes, one commit each, wall time, medians")
    for name, value in median.items():
        line(f"  {name}", value, f"ms, {spent[name] / count:.2f} of CPU on average")
    line("remember through the engine / bare insert", median["engine"] / median["bare"], "times", limit=3)
    line("the same with vectors / without", median["with vectors"] / median["engine"], "times")
    both = median["mirrored, with vectors"] / median["with vectors"]
    line("remember with its Markdown file / without", both, "times", limit=2)


if __name__ == "__main__":
    main()

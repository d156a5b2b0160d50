"""Chunks indexed in a second of CPU time, against a bare insert of the same ones into an FTS5 table in the same run.

    python bench/indexing.py [SESSIONS [TURNS]]      # 50 of 200 unless given; the issue asks for 500 of 200

Bare: the same chunk texts into a plain table and an FTS5 table, one transaction for each session, WAL,
synchronous=FULL.  Ours reads the files, redacts, cuts, makes terms, and remembers how far each file was read; it is run
without an embedder.  The peak of memory is that of the whole process, and is printed for one long session as well.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time

import apsw
from measure import line, texts

from commonplace.app import open_app
from commonplace.learning import open_workspace
from commonplace.model.documents import DocumentKind
from commonplace.model.queries import DocumentFilter
from commonplace.records.index import index


def write(folder: str, name: str, turns: list[str]) -> None:
    """One transcript: a person and an agent take turns."""
    with open(os.path.join(folder, f"{name}.jsonl"), "w", encoding="utf-8") as file:
        for number, text in enumerate(turns):
            role = "assistant" if number % 2 else "user"
            file.write(json.dumps({"role": role, "content": text, "time": "2026-01-01T00:00:00Z"}) + "\n")


def bare(path: str, sessions: list[list[tuple[str, str]]]) -> float:
    """Seconds for the same chunks without anything else."""
    db = apsw.Connection(path)
    db.execute("pragma page_size = 8192; pragma journal_mode = wal").fetchall()
    db.execute("pragma synchronous = full; pragma secure_delete = on").fetchall()
    db.execute(
        "create table c (id integer primary key, ref text, text text);"
        "create virtual table f using fts5 (text, content = 'c', content_rowid = 'id', tokenize = 'porter unicode61');"
        "insert into f (f, rank) values ('secure-delete', 1)"
    )
    start, number = time.process_time(), 0
    for session in sessions:
        db.execute("begin immediate")
        for ref, text in session:
            number += 1
            db.execute("insert into c values (?, ?, ?)", (number, ref, text))
            db.execute("insert into f (rowid, text) values (?, ?)", (number, text))
        db.execute("commit")
    return time.process_time() - start


def peak_mib() -> float:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Index, index again, and insert the same chunks barely."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    turns = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "sessions")
        os.makedirs(source)
        os.makedirs(os.path.join(folder, "shop", ".commonplace"))
        with open(os.path.join(folder, "shop", ".commonplace", "config.yaml"), "w", encoding="utf-8") as file:
            file.write("project: bench.example/indexing\n")
        for number in range(count):
            write(source, f"s{number:04d}", texts(turns, seed=number))
        env = {"COMMONPLACE_HOME": os.path.join(folder, "home")}
        with open_app(os.path.join(folder, "shop"), env=env) as opened:
            place = open_workspace(opened).replace(embedder=None)
            print(f"{count} sessions of {turns} turns; {peak_mib():.0f} MiB before")
            began = time.process_time()
            report = index(place, [source])
            taken = time.process_time() - began
            chunks = sum(file.chunks for file in report.files)
            after = peak_mib()
            began = time.process_time()
            index(place, [source])
            again = time.process_time() - began
            kind = frozenset({DocumentKind.SESSION})
            kept = [
                [(chunk.ref, chunk.text) for chunk in place.store.chunks(where, limit=100_000)]
                for file in report.files
                if (where := DocumentFilter(scopes=frozenset({place.scope}), kinds=kind, names=frozenset({file.name})))
            ]
            plain = bare(os.path.join(folder, "bare.db"), kept)
            before = peak_mib()
            write(folder, "long", texts(turns * 40, seed=7))
            size = os.path.getsize(os.path.join(folder, "long.jsonl")) / 1024**2
            index(place, [os.path.join(folder, "long.jsonl")])
    line("indexed", chunks / taken, "chunks per CPU second")
    line("bare FTS5 insert of the same chunks", chunks / plain, "chunks per CPU second")
    line("indexing / bare insert", taken / plain, "times as long")
    line("the same files again, unchanged", again / count * 1000, "ms per session")
    line("peak memory after indexing", after, "MiB")
    line(f"more after one session of {size:.0f} MiB", peak_mib() - before, "MiB")


if __name__ == "__main__":
    main()

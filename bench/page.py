"""Each view of the page on a large memory, over loopback, and the weight of a first load.

    python bench/page.py [RECORDS] [--calls N]

A project is filled with records that were made over a year, each with its Markdown file, a hundred sessions with
receipts, and some that wait for review.  Then `commonplace ui` runs on it, and every view is asked for by one
connection, one call after the other.  The time is that of the whole answer, compressed, as a browser asks for it.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
from measure import line, quantile, texts

from commonplace.engine.admission import admit
from commonplace.engine.transcripts import Turn
from commonplace.model.changes import Put
from commonplace.model.documents import DocumentKind
from commonplace.model.ids import new_id
from commonplace.model.records import Draft, Trust

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from ferry import CALL, Ferry

CATEGORIES = ("decisions", "facts", "preferences", "principles")
LIMIT_MS, LIMIT_KB = 200.0, 100.0
BATCH = 1_000
WAITING = 300  # that a person has to look at
SESSIONS = 100
FIRST_LOAD = ("", "static/style.css", "static/htmx.min.js", "static/keys.js", "static/icon.svg")


def main() -> None:
    """Fill, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=int, default=50_000)
    parser.add_argument("--calls", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        ferry, some = filled(folder, given.records)
        print(f"{given.records} records, filled in {time.perf_counter() - began:.0f} s, {os.cpu_count()} cores")
        command = [str(Path(sys.executable).with_name("commonplace")), "ui", "--no-browser"]
        process = subprocess.Popen(command, cwd=ferry.root, env=ferry.env, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            asked(process.stdout.readline().strip(), some, given.calls)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def filled(folder: str, count: int) -> tuple[Ferry, str]:
    """Return a project with so many records, and the id of one of them."""
    ferry, now = Ferry(folder, days=365), datetime.now(UTC)
    with ferry.access() as caller:
        app, puts = caller.app, []
        for place, text in enumerate(texts(count)):
            at = now - timedelta(days=365) * (1 - place / count)
            draft = Draft(content=text, category=CATEGORIES[place % 4], tags=(f"t{place % 50}",))
            admitted = admit(draft, binding=app.binding, id=new_id(at), now=at)
            waits = place >= count - WAITING
            record = admitted.record.replace(held=True, trust=Trust.AGENT) if waits else admitted.record
            puts.append(Put(record=record, terms=admitted.terms))
            if len(puts) == BATCH:
                app.store.apply(puts)
                puts = []
        app.store.apply(puts)
        app.catch_up()
        for scope in app.folders.scopes:
            app.folders.sync(scope)
        for number, words in enumerate(texts(SESSIONS, seed=5)):
            turns = [Turn(ref=str(n), text=f"{words} {n}", speaker="user" if n % 2 else "assistant") for n in range(20)]
            caller.memory.index(DocumentKind.SESSION, f"s{number}", turns)
            CALL["brief"](caller, task=words[:80], session=f"s{number}")
    return ferry, record.id


def asked(link: str, some: str, calls: int) -> None:
    """Ask for every view, and print how long the answers took."""
    root = link.partition("/enter")[0]
    words = [text.split()[:3] for text in texts(calls, seed=9)]
    views = {
        "search, newest": lambda _: "", "search": lambda n: f"?q={'+'.join(words[n])}",
        "search, as of": lambda n: f"?q={'+'.join(words[n])}&as_of=2026-06-01",
        "search, filtered": lambda n: f"?tag=t{n}",
        "record": lambda _: f"records/{some}", "timeline": lambda _: "timeline", "review": lambda _: "review",
        "injected": lambda _: "injected", "one injected": lambda n: f"injected/s{n}",
        "sessions": lambda _: "sessions", "one session": lambda n: f"sessions/s{n}", "health": lambda _: "health",
    }  # fmt: skip
    with httpx.Client(base_url=f"{root}/", headers={"Accept-Encoding": "gzip"}, timeout=60) as client:
        client.get(f"enter?{link.partition('?')[2]}").raise_for_status()
        weigh(client)
        for name, path in views.items():
            took = []
            for call in range(calls + 2):
                began = time.perf_counter()
                client.get(path(call % calls)).raise_for_status()
                took.append((time.perf_counter() - began) * 1000)
            line(f"{name}: p50 of {calls}", quantile(took[2:], 0.5), "ms")
            line(f"{name}: p95", quantile(took[2:], 0.95), "ms", limit=LIMIT_MS)


def weigh(client: httpx.Client) -> None:
    """Print how many bytes a first load carries, compressed, headers left out."""
    total = 0
    for path in FIRST_LOAD:
        with client.stream("GET", path) as answer:
            total += sum(len(part) for part in answer.iter_raw())
            assert re.match(r"2", str(answer.status_code))
    line("first load", total / 1000, "kB", limit=LIMIT_KB)


if __name__ == "__main__":
    main()

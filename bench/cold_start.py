"""`commonplace recall` as a fresh process on 10,000 records, full text only, against `python -c pass`.

    python bench/cold_start.py [RECORDS]

Twice: with all records in the project and a Markdown file for each, so that the look at the files is in it; and with
the records in the database only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from measure import child_cpu_ms, clean_env, line, texts

from commonplace.domain.changes import Put
from commonplace.domain.ids import new_id
from commonplace.domain.records import Channel, Draft
from commonplace.engine.admission import admit
from commonplace.engine.memory import now_utc
from commonplace.opening import here

RUNS = 20


def fill(folder: str, count: int, *, files: bool) -> None:
    """Keep so many records in the project at that folder."""
    os.makedirs(os.path.join(folder, "project", ".commonplace"))
    with open(os.path.join(folder, "project", ".commonplace", "config.yaml"), "w", encoding="utf-8") as file:
        file.write("project: bench.example/cold-start\n")
    with here(os.path.join(folder, "project"), env={"COMMONPLACE_HOME": os.path.join(folder, "home")}) as place:
        binding = place.where.bind(Channel.USER)
        puts = []
        for text in texts(count):
            now = now_utc()
            admitted = admit(Draft(content=text, category="decisions"), binding=binding, id=new_id(now), now=now)
            puts.append(Put(record=admitted.record, terms=admitted.terms))
        store = place.store if files else place.store.store
        for start in range(0, count, 500):
            store.apply(puts[start : start + 500])
        if not files:
            os.rename(os.path.join(folder, "project", ".commonplace"), os.path.join(folder, "project", "away"))
            git = ["git", "-C", os.path.join(folder, "project")]
            subprocess.run([*git, "init", "-q"], check=True)
            subprocess.run([*git, "remote", "add", "origin", "https://bench.example/cold-start"], check=True)


def measured(folder: str) -> tuple[float, float]:
    """CPU of a recall and of a bare interpreter, the least of many runs each, taken in turns."""
    env = clean_env(COMMONPLACE_HOME=os.path.join(folder, "home"), PWD=os.path.join(folder, "project"))
    command = [os.path.join(os.path.dirname(sys.executable), "commonplace"), "recall", "w100 w250 w400"]
    previous = os.getcwd()
    os.chdir(os.path.join(folder, "project"))
    try:
        ours, bare = [], []
        for _ in range(4):
            ours += child_cpu_ms(command, env=env, runs=RUNS // 4)
            bare += child_cpu_ms([sys.executable, "-c", "pass"], env=env, runs=RUNS // 4)
    finally:
        os.chdir(previous)
    return min(ours), min(bare)


def main() -> None:
    """Print the two ratios."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for files, name in ((False, "records in the database only"), (True, "with a Markdown file for each record")):
        with tempfile.TemporaryDirectory() as folder:
            fill(folder, count, files=files)
            ours, bare = measured(folder)
        print(f"{count} records, {name}: recall {ours:.0f} ms, python -c pass {bare:.0f} ms of CPU")
        line("  recall / python -c pass", ours / bare, "times", limit=5)


if __name__ == "__main__":
    main()

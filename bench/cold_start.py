"""`commonplace recall` as a fresh process on 10,000 records, by words and meaning, against `python -c pass`.

    python bench/cold_start.py [RECORDS]

Twice: with the records in the database only, there also by words alone; and with all records in the project and a
Markdown file for each, so that the look at the files is in it.  Then what embedding a question of ten words costs in a
fresh process, the table included, and how much of it the imports are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from measure import child_cpu_ms, clean_env, line, texts

from commonplace.app import open_app
from commonplace.engine.admission import admit
from commonplace.engine.memory import now_utc
from commonplace.model.changes import AdoptEmbedder, Put
from commonplace.model.ids import new_id
from commonplace.model.records import Channel, Draft
from commonplace.providers.local import LocalEmbedder

RUNS = 20
ASKED = "w100 w250 w400"
QUESTION = "which database did we choose for the new project and why"
#: One program for each step of embedding a question, each with all steps before it.
STEPS = {
    "the interpreter": "pass",
    "the package": "import commonplace",
    "the embedder's imports": "import commonplace.providers.local",
    "the table and the question": (
        f"from commonplace.providers.local import LocalEmbedder; LocalEmbedder().embed([{QUESTION!r}], query=True)"
    ),
}


def fill(folder: str, count: int, *, files: bool) -> None:
    """Keep so many records in the project at that folder."""
    os.makedirs(os.path.join(folder, "project", ".commonplace"))
    with open(os.path.join(folder, "project", ".commonplace", "config.yaml"), "w", encoding="utf-8") as file:
        file.write("project: bench.example/cold-start\n")
    with open_app(os.path.join(folder, "project"), env={"COMMONPLACE_HOME": os.path.join(folder, "home")}) as place:
        binding = place.where.bind(Channel.USER)
        puts, embedder = [], LocalEmbedder()
        for text in texts(count):
            now = now_utc()
            admitted = admit(Draft(content=text, category="decisions"), binding=binding, id=new_id(now), now=now)
            [vector] = embedder.embed([text])
            puts.append(Put(record=admitted.record, terms=admitted.terms, vector=vector))
        store = place.store if files else place.store.store
        store.apply([AdoptEmbedder(identity=embedder.identity)])
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
    command = [os.path.join(os.path.dirname(sys.executable), "commonplace"), "recall", ASKED]
    previous = os.getcwd()
    os.chdir(os.path.join(folder, "project"))
    try:
        ours, bare = least([command, [sys.executable, "-c", "pass"]], env)
    finally:
        os.chdir(previous)
    return ours, bare


def least(commands: list[list[str]], env: dict[str, str]) -> list[float]:
    """CPU milliseconds of each command, the least of many runs; they take turns, so that noise hits all."""
    found: list[list[float]] = [[] for _ in commands]
    for _ in range(4):
        for times, command in zip(found, commands, strict=True):
            times.extend(child_cpu_ms(command, env=env, runs=RUNS // 4))
    return [min(times) for times in found]


def shown(name: str, folder: str, *, limit: float) -> None:
    """Print one ratio."""
    ours, bare = measured(folder)
    print(f"{name}: recall {ours:.0f} ms, python -c pass {bare:.0f} ms of CPU")
    line("  recall / python -c pass", ours / bare, "times", limit=limit)


def main() -> None:
    """Print the ratios, and the steps of the embedder."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, count, files=False)
        shown(f"{count} records in the database only, hybrid", folder, limit=8)
        with open(os.path.join(folder, "home", "config.yaml"), "w", encoding="utf-8") as file:
            file.write("embedder: none\n")
        shown(f"{count} records in the database only, words alone", folder, limit=5)
    with tempfile.TemporaryDirectory() as folder:
        fill(folder, count, files=True)
        shown(f"{count} records with a Markdown file for each, hybrid", folder, limit=8)
    times = least([[sys.executable, "-c", program] for program in STEPS.values()], clean_env())
    print("embedding one question of ten words in a fresh process")
    for step, took, before in zip(STEPS, times, [0.0, *times], strict=False):
        line(f"  {step}", took - before, "ms CPU")
    line("  beyond the interpreter", times[-1] - times[0], "ms CPU", limit=10)
    line("  of that, imports", 100 * (times[2] - times[0]) / (times[-1] - times[0]), "%")


if __name__ == "__main__":
    main()

"""A recall that has to look at every file of a large project, against starting Python.

    python bench/files.py [FILES]          (default: 10000)

Each time one file is touched (its time, not its words), so that no mark of an earlier look helps, and the whole command
is started anew.  Printed is CPU time: of `commonplace recall`, of the same in a folder where nothing has to be looked
at, and of `python -c pass`; and what is left of the looking itself.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile

ROUNDS = 9


def cpu_of(command: list[str], *, at: str, env: dict[str, str]) -> float:
    """CPU milliseconds of one run of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=at, env=env, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def fill(folder: str, count: int) -> list[str]:
    """Write files as people write them, without ids."""
    paths = []
    for number in range(count):
        category = ("decisions", "procedures", "principles")[number % 3]
        path = os.path.join(folder, category, f"note-{number}.md")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"Folder note {number} about subject {number * 7919 % 1000}\n")
        paths.append(path)
    return paths


def measure(command: list[str], at: str, env: dict[str, str], marks: str) -> float:
    """The median; the mark of the last whole look is removed before each run."""
    found = []
    for _ in range(ROUNDS):
        for name in os.listdir(marks) if os.path.isdir(marks) else ():
            os.unlink(os.path.join(marks, name))
        found.append(cpu_of(command, at=at, env=env))
    return statistics.median(found)


def main(count: int) -> None:
    """Print the ratios."""
    with tempfile.TemporaryDirectory() as root:
        work, home = os.path.join(root, "work"), os.path.join(root, "home")
        env = {"HOME": root, "COMMONPLACE_HOME": home, "USER": "bench", "PATH": os.environ["PATH"]}
        program = os.path.join(os.path.dirname(sys.executable), "commonplace")
        os.makedirs(work)
        subprocess.run([program, "init"], cwd=work, env=env, check=True, capture_output=True)
        fill(os.path.join(work, ".commonplace"), count)
        subprocess.run([program, "sync"], cwd=work, env=env, check=True, capture_output=True)
        marks = next(os.path.join(home, name) for name in sorted(os.listdir(home)) if name.startswith("looked"))
        recall = [program, "recall", "subject 77"]
        plain = measure([sys.executable, "-c", "pass"], work, env, marks)
        whole = measure(recall, work, env, marks)
        subprocess.run(recall, cwd=work, env=env, check=True, capture_output=True)
        fresh = statistics.median(cpu_of(recall, at=work, env=env) for _ in range(ROUNDS))
        print(f"{count} files: python -c pass {plain:.0f} ms CPU")
        print(f"  recall that looks at every file {whole:.0f} ms: {whole / plain:.1f} times python -c pass")
        print(f"  recall with a fresh mark        {fresh:.0f} ms: {fresh / plain:.1f} times python -c pass")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

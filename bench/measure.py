"""How the benches measure: CPU time where the machine is noisy, medians, ratios within one run."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import time
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import accumulate

VOCABULARY = 20_000


def texts(count: int, *, seed: int = 1, least: int = 20, most: int = 100) -> list[str]:
    """Texts of 20 to 100 words, drawn as words are drawn in language: few often, many rarely."""
    chance = random.Random(seed)
    weights = list(accumulate(1 / (rank + 1) for rank in range(VOCABULARY)))
    return [
        " ".join(f"w{bisect(weights, chance.random() * weights[-1])}" for _ in range(chance.randint(least, most)))
        for _ in range(count)
    ]


def questions(count: int, *, seed: int = 2, words: int = 4) -> list[list[str]]:
    """Questions of words that are neither rare nor everywhere."""
    chance = random.Random(seed)
    return [[f"w{int(20 * (VOCABULARY / 40) ** chance.random())}" for _ in range(words)] for _ in range(count)]


def cpu_ms(call: Callable[[], object]) -> float:
    """CPU milliseconds of one call in this process."""
    before = time.process_time()
    call()
    return (time.process_time() - before) * 1000


def child_cpu_ms(command: Sequence[str], *, env: dict[str, str], runs: int) -> list[float]:
    """CPU milliseconds of a command as a fresh process, every run, sorted."""
    found = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000)
    return sorted(found)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def clean_env(**extra: str) -> dict[str, str]:
    """The environment of a user: byte code is kept, as an installation keeps it."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"} | extra


def line(name: str, figure: float, unit: str = "", *, limit: float | None = None) -> None:
    """Print one figure, and whether it keeps its limit."""
    verdict = "" if limit is None else f"   limit {limit:g}: {'kept' if figure <= limit else 'BROKEN'}"
    print(f"{name:<68}{figure:>9.2f} {unit}{verdict}", flush=True)
    if limit is not None and figure > limit:
        print(f"  (over by {figure / limit:.2f} times)", file=sys.stderr)

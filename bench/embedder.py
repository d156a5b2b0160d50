"""The built-in embedder: microseconds a text, and what the first query of a process costs.

    python bench/embedder.py

Cold: a process that imports the embedder and embeds one query of ten words, against one that does nothing; the least of
many runs each, taken in turns.  ``import commonplace`` alone is shown too, since every command has paid that already.
"""

from __future__ import annotations

import sys
import time

from measure import child_cpu_ms, clean_env, line, quantile

from commonplace.providers.local import LocalEmbedder

QUERY = "which database did we choose for the new project and why"
TEXT = (
    "We met on Tuesday to settle the storage question. Postgres was the favourite at first, because two of us know it"
    " well, but nobody wanted to run a server for a tool that lives on a laptop. In the end we picked SQLite, with full"
    " text search and a write-ahead log, and wrote down what would make us change our minds."
)
COLD = f"from commonplace.providers.local import LocalEmbedder; LocalEmbedder().embed([{QUERY!r}], query=True)"
RUNS = 40


def cold() -> tuple[float, float, float]:
    """CPU milliseconds: the query, the bare package, the bare interpreter."""
    programs = (COLD, "import commonplace", "pass")
    found: list[list[float]] = [[], [], []]
    for _ in range(RUNS // 5):
        for times, program in zip(found, programs, strict=True):
            times.extend(child_cpu_ms([sys.executable, "-c", program], env=clean_env(), runs=5))
    return min(found[0]), min(found[1]), min(found[2])


def warm(text: str) -> float:
    """Microseconds of CPU for a text whose words were met before."""
    embedder = LocalEmbedder()
    embedder.embed([text])
    times = []
    for _ in range(50):
        before = time.process_time()
        embedder.embed([text] * 20)
        times.append((time.process_time() - before) / 20 * 1e6)
    return quantile(times, 0.5)


def fresh(text: str) -> float:
    """Microseconds of CPU for a text whose words are all new to an embedder with the table open."""
    times = []
    for _ in range(50):
        embedder = LocalEmbedder()
        embedder.embed([""])
        before = time.process_time()
        embedder.embed([text])
        times.append((time.process_time() - before) * 1e6)
    return quantile(times, 0.5)


def main() -> None:
    """Print the figures."""
    query, package, bare = cold()
    print(f"cold: query {query:.1f} ms, import commonplace {package:.1f} ms, python -c pass {bare:.1f} ms of CPU")
    line("  beyond the interpreter", query - bare, "ms", limit=10)
    line("  beyond the package", query - package, "ms")
    line("  query / python -c pass", query / bare, "times")
    for name, text in (("ten words", QUERY), ("sixty words", TEXT)):
        line(f"{name}, met before ({len(text.split())} words)", warm(text), "us")
        line(f"{name}, all new ({len(text.split())} words)", fresh(text), "us")


if __name__ == "__main__":
    main()

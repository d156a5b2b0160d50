"""Kill a worker in mid-work, again and again: a writer and two workers on one store, then a look at what is left.

Run it as ``python bench/servers.py --runs 50``, on a file or, with ``--store postgresql://...``, on a database in which
it makes a schema for each run.  It stops at the first thing that is lost, done twice or torn.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "crash"))
from lives import check_servers, servers


def main() -> None:
    """Run it so many times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--store", help="the address of a database; a file unless given")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    done, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.runs):
            place = _place(given.store, folder, given.seed + number)
            done += check_servers(place, servers(place, random.Random(given.seed + number)))
            sys.stdout.write(f"run {number + 1} of {given.runs}: {done} jobs, each done once\n")
            sys.stdout.flush()
    sys.stdout.write(f"{given.runs} kills, {done} jobs in {time.monotonic() - began:.0f} s: nothing lost\n")


def _place(store: str | None, folder: str, seed: int) -> str:
    if store is None:
        return str(Path(folder) / f"{seed}.db")
    return f"{store}{'&' if '?' in store else '?'}schema=servers_{seed}"


if __name__ == "__main__":
    main()

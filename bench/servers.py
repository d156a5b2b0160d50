"""Kill in mid-work, again and again, then look at what is left; it stops at the first thing lost, done twice or torn.

    python bench/servers.py [--serve] [--runs 50] [--store postgresql://...] [--seed 0]

A writer and two workers on one store, of which one worker is killed.  With ``--serve``: two ``commonplace serve``,
three clients of each, a listener and two workers, of which one server and one worker are killed.  On a file, or on a
database in which each run has a schema that is dropped after it.
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
from serving import check_serving, serving

from commonplace.app import open_store


def main() -> None:
    """Run it so many times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--serve", action="store_true", help="kill a server, not a worker alone")
    parser.add_argument("--store", help="the address of a database; a file unless given")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    done, began = 0, time.monotonic()
    for number in range(given.runs):
        done += _run(given.store, random.Random(given.seed + number), serve=given.serve)
        sys.stdout.write(f"run {number + 1} of {given.runs}: {done} jobs, each done once\n")
        sys.stdout.flush()
    sys.stdout.write(f"{given.runs} kills, {done} jobs in {time.monotonic() - began:.0f} s: nothing lost\n")


def _run(store: str | None, chance: random.Random, *, serve: bool) -> int:
    with tempfile.TemporaryDirectory() as folder:
        schema = f"servers_{time.time_ns()}"
        place = f"{folder}/memory.db" if store is None else f"{store}{'&' if '?' in store else '?'}schema={schema}"
        try:
            if serve:
                return int(check_serving(place, *serving(place, folder, chance)))
            return int(check_servers(place, servers(place, chance)))
        finally:
            if store is not None:
                _drop(place, schema)


def _drop(place: str, schema: str) -> None:
    made = open_store(place)
    with made.using() as db:
        db.execute(f"drop schema {schema} cascade")
    made.close()


if __name__ == "__main__":
    main()

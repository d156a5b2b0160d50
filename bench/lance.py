"""`store_backend: lancedb` against `sqlite`, in one run over the same records: nearest, single writes, a cold process.

    python bench/lance.py [VECTORS]      (default: 10000)

Vectors of 256 numbers in clusters, in one scope; nothing is filtered out.  Both stores answer from the same
``records.db``: one with the index in LanceDB beside it, one by its codes.  Recall is against comparing every vector.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from math import hypot
from operator import mul

from measure import child_cpu_ms, clean_env, cpu_ms, quantile

from commonplace.model.changes import AdoptEmbedder, Put
from commonplace.model.ids import new_id
from commonplace.model.ports import EmbedderIdentity, Store
from commonplace.model.queries import Filter
from commonplace.model.records import Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.stores.lance.store import LanceStore
from commonplace.stores.sqlite.store import SqliteStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCOPE = Scope.of(("namespace", "bench"))
WHERE = Filter(scopes=frozenset({SCOPE}), at=NOW)
SIZE, TOP, ASKED, WRITES = 256, 10, 30, 300
#: What a fresh process does: open, ask once.  (It must not import this file: LanceDB knows another module of its name.)
COLD = """
import sys
from datetime import UTC, datetime
from commonplace.model.queries import Filter
from commonplace.model.scopes import Scope
from commonplace.stores.{module} import {store}
where = Filter(scopes=frozenset({{Scope.of(("namespace", "bench"))}}), at=datetime(2026, 1, 1, tzinfo=UTC))
assert len({store}(sys.argv[1]).nearest(where, [1.0] + [0.0] * 255, limit=10)) == 10
"""


def crowd(count: int, *, seed: int) -> list[array[float]]:
    """Vectors of unit length, around two hundred middles."""
    chance = random.Random(seed)
    middles = [[one.gauss(0, 1) for _ in range(SIZE)] for one in map(random.Random, range(200))]
    pool = [chance.gauss(0, 0.7) for _ in range(50_000)]
    made = []
    for number in range(count):
        start = chance.randrange(len(pool) - SIZE)
        numbers = [a + b for a, b in zip(middles[number % 200], pool[start : start + SIZE], strict=True)]
        length = hypot(*numbers)
        made.append(array("f", [one / length for one in numbers]))
    return made


def put(number: int, vector: array[float]) -> Put:
    """One record with its vector."""
    record = Record(
        id=new_id(NOW), scope=SCOPE, content=str(number), created_at=NOW, updated_at=NOW, kind=Kind.SEMANTIC,
        trust=Trust.USER, source=Source(channel=Channel.USER),
    )  # fmt: skip
    return Put(record=record, terms=(), vector=vector)


def wall_ms(call: Callable[[], object]) -> float:
    """Milliseconds that somebody waits."""
    before = time.perf_counter()
    call()
    return (time.perf_counter() - before) * 1000


def asked(name: str, store: Store, vectors: list[array[float]], questions: list[array[float]]) -> None:
    """Print how long a question takes, and how many of the ten nearest it finds."""
    store.nearest(WHERE, questions[0], limit=TOP)
    cpu = [cpu_ms(lambda q=question: store.nearest(WHERE, q, limit=TOP)) for question in questions]
    wall = [wall_ms(lambda q=question: store.nearest(WHERE, q, limit=TOP)) for question in questions]
    found = 0
    for question in questions[:5]:
        best = sorted(range(len(vectors)), key=lambda number: -sum(map(mul, question, vectors[number])))[:TOP]
        answer = {int(match.record.content) for match in store.nearest(WHERE, question, limit=TOP) if match.record}
        found += len(answer & set(best))
    figures = f"CPU {quantile(cpu, 0.5):6.1f} ms, wall {quantile(wall, 0.5):6.1f} ms (p95 {quantile(wall, 0.95):.1f})"
    print(f"  nearest  {name:8} {figures}, recall@{TOP} {found / 5 / TOP:.3f}", flush=True)


def main(count: int) -> None:
    """Fill, ask, write, start."""
    vectors, questions = crowd(count, seed=1), crowd(ASKED, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memory.lance")
        lance = LanceStore(path)
        lance.apply([AdoptEmbedder(identity=EmbedderIdentity(name="bench", dimensions=SIZE))])
        lance.apply([put(number, vector) for number, vector in enumerate(vectors)])
        built = wall_ms(lance.rebuild)
        print(
            f"{count} vectors of {SIZE}; the index holds {lance.count_indexed()}, built in {built:.0f} ms", flush=True
        )
        sqlite = SqliteStore(os.path.join(path, "records.db"))
        asked("sqlite", sqlite, vectors, questions)
        asked("lancedb", lance, vectors, questions)
        for name, store in {"sqlite": sqlite, "lancedb": lance}.items():
            new = crowd(WRITES, seed=len(vectors))
            taken = [wall_ms(lambda n=n, v=v: store.apply([put(n, v)])) for n, v in enumerate(new, len(vectors))]  # noqa: B023 - at once
            vectors += new
            print(f"  write    {name:8} wall p50 {quantile(taken, 0.5):.1f} ms, worst {max(taken):.0f} ms", flush=True)
        print(f"after {2 * WRITES} writes the index holds {lance.count_indexed()}", flush=True)
        asked("lancedb", lance, vectors, questions)
        for name, module, opened, place in (
            ("sqlite", "sqlite", "SqliteStore", os.path.join(path, "records.db")),
            ("lancedb", "lance", "LanceStore", path),
        ):
            program = COLD.format(module=module, store=opened)
            [_, middle, _] = child_cpu_ms([sys.executable, "-c", program, place], env=clean_env(), runs=3)
            print(f"  process  {name:8} CPU {middle:.0f} ms, from its start to the first answer", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

"""What is near, in process, with a filter that keeps a tenth: `Store.nearest` against bare statements, and its recall.

    [COMMONPLACE_SQLITE_VEC=.../vec0] python bench/vectors.py locomo10.json [VECTORS ...]      (default: 10000 100000)

The vectors are those of the built-in embedder over the turns of LoCoMo, repeated with a little noise where that is not
enough; the questions are LoCoMo's.  Bare, over plain tables whose key begins with the scope: the exact scan, and sign
bits by Hamming distance, of which the best 400 are compared exactly.  Both in pure Python, and with the scalar
functions of sqlite-vec where its path is given.  All in one run: the ratios are the figures.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from array import array
from collections.abc import Callable
from datetime import UTC, datetime
from math import hypot
from operator import add, mul

import apsw
from measure import cpu_ms, line, quantile

from commonplace.evaluation.datasets import locomo
from commonplace.model.changes import AdoptEmbedder, Put
from commonplace.model.ids import new_id
from commonplace.model.queries import Filter
from commonplace.model.records import Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.providers.local import LocalEmbedder
from commonplace.stores.codes import code
from commonplace.stores.sqlite.store import SqliteStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCOPES = [Scope.of(("namespace", f"n{number}")) for number in range(10)]
TOP, ASKED, COMPARED = 10, 30, 400
#: For each byte, four times two bits, its four signs as a hexadecimal digit.
SIGNS = bytes(ord(f"{sum((byte >> 2 * n + 1 & 1) << n for n in range(4)):x}") for byte in range(256))
NOISE = 0.02  # a number of a vector is about 0.06


def crowd(vectors: list[array[float]], count: int) -> list[array[float]]:
    """So many vectors, in no order: those of the texts, then the same with noise."""
    chance = random.Random(1)
    pool = [chance.gauss(0, NOISE) for _ in range(50_000)]
    made = list(vectors)
    while len(made) < count:
        start = chance.randrange(len(pool) - 256)
        numbers = list(map(add, vectors[len(made) % len(vectors)], pool[start : start + 256]))
        length = hypot(*numbers)
        made.append(array("f", [number / length for number in numbers]))
    chance.shuffle(made)
    return made[:count]


def fill(path: str, vectors: list[array[float]], vec: str | None) -> SqliteStore:
    """A store of ten scopes; only vectors are asked for, so the texts are short."""
    store = SqliteStore(path, vec=vec)
    store.apply([AdoptEmbedder(identity=LocalEmbedder().identity)])
    said = {"kind": Kind.SEMANTIC, "trust": Trust.USER, "source": Source(channel=Channel.USER)}
    for start in range(0, len(vectors), 1000):
        store.apply(
            [
                Put(
                    record=Record(
                        id=new_id(NOW), scope=SCOPES[number % 10], content=str(number), created_at=NOW, updated_at=NOW,
                        **said,
                    ),
                    terms=(),
                    vector=vectors[number],
                )
                for number in range(start, min(start + 1000, len(vectors)))
            ]
        )  # fmt: skip
    return store


def bits(vector: array[float]) -> bytes:
    """The signs of a turned vector: the upper of each two bits of its code."""
    return bytes.fromhex(code(vector).translate(SIGNS).decode())


def bare(path: str, vectors: list[array[float]], vec: str | None) -> apsw.Connection:
    """The same vectors in plain tables."""
    db = apsw.Connection(path)
    db.execute("pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = off").fetchall()
    db.execute(
        "create table v (scope integer, id integer, data blob, primary key (scope, id)) without rowid;"
        "create table b (scope integer, id integer, data blob, primary key (scope, id)) without rowid"
    )
    with db:
        rows = [(number % 10, number) for number in range(len(vectors))]
        db.executemany("insert into v values (?, ?, ?)", ((*row, vectors[row[1]].tobytes()) for row in sorted(rows)))
        db.executemany("insert into b values (?, ?, ?)", ((*row, bits(vectors[row[1]])) for row in sorted(rows)))
    if vec:
        db.enable_load_extension(True)
        db.load_extension(vec)
    return db


def exact(db: apsw.Connection, asked: array[float], scope: int) -> list[int]:
    """Every vector of the scope, in Python."""
    rows = db.execute("select id, data from v where scope = ?", (scope,)).fetchall()
    return _best(asked, rows)


def hamming(db: apsw.Connection, asked: array[float], scope: int) -> list[int]:
    """Sign bits, then the best of them, in Python."""
    sought = int.from_bytes(bits(asked), "little")
    rows = db.execute("select id, data from b where scope = ?", (scope,)).fetchall()
    far = sorted([((int.from_bytes(data, "little") ^ sought).bit_count(), number) for number, data in rows])
    ids = [number for _, number in far[:COMPARED]]
    sql = f"select id, data from v where scope = ? and id in ({', '.join('?' * len(ids))})"
    return _best(asked, db.execute(sql, (scope, *ids)).fetchall())


def _best(asked: array[float], rows: list[tuple[int, bytes]]) -> list[int]:
    near = sorted([(sum(map(mul, asked, memoryview(data).cast("f"))), number) for number, data in rows], reverse=True)
    return [number for _, number in near[:TOP]]


def exact_vec(db: apsw.Connection, asked: array[float], scope: int) -> list[int]:
    """Every vector of the scope, by sqlite-vec."""
    sql = "select id from v where scope = ? order by vec_distance_cosine(data, ?) limit ?"
    return [number for (number,) in db.execute(sql, (scope, asked.tobytes(), TOP))]


def hamming_vec(db: apsw.Connection, asked: array[float], scope: int) -> list[int]:
    """Sign bits, then the best of them, by sqlite-vec."""
    few = "select id from b where scope = ?1 order by vec_distance_hamming(vec_bit(data), vec_bit(?2)) limit ?3"
    sql = f"select id from v where scope = ?1 and id in ({few}) order by vec_distance_cosine(data, ?4) limit ?5"
    return [number for (number,) in db.execute(sql, (scope, bits(asked), COMPARED, asked.tobytes(), TOP))]


Way = Callable[["array[float]", int], list[int]]


def measured(ways: dict[str, Way], asked: list[array[float]]) -> tuple[dict[str, float], dict[str, float]]:
    """CPU milliseconds and recall of each way; the first one is exact.  They take turns, so that noise hits all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    found: dict[str, list[int]] = {name: [] for name in ways}
    right = dict.fromkeys(ways, 0)
    for turn in range(2):
        for number, question in enumerate(asked):
            for name, way in ways.items():
                took = cpu_ms(lambda w=way, q=question, s=number % 10, n=name: found.update({n: w(q, s)}))
                if turn:
                    times[name].append(took)
                    right[name] += len(set(found[name]) & set(next(iter(found.values()))))
    return {name: quantile(took, 0.5) for name, took in times.items()}, {
        name: count / TOP / len(asked) for name, count in right.items()
    }


def ours(store: SqliteStore) -> Way:
    """Ask the store."""

    def ask(asked: array[float], scope: int) -> list[int]:
        where = Filter(scopes=frozenset({SCOPES[scope]}), at=NOW)
        return [int(match.record.content) for match in store.nearest(where, asked, limit=TOP) if match.record]

    return ask


def main() -> None:
    """Print p50 of CPU time, the ratios and the recall, for each size."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    vec = os.environ.get("COMMONPLACE_SQLITE_VEC")
    embedder = LocalEmbedder()
    with open(sys.argv[1], encoding="utf-8") as file:
        corpus = locomo(file.read(), sys.argv[1])
    texts = list(dict.fromkeys(passage.text for passage in corpus.passages))
    known = [array("f", vector) for vector in embedder.embed(texts)]
    every = max(1, len(corpus.questions) // ASKED)
    asked = [array("f", vector) for vector in embedder.embed([q.text for q in corpus.questions[::every][:ASKED]])]
    for size in [int(argument) for argument in sys.argv[2:]] or [10_000, 100_000]:
        with tempfile.TemporaryDirectory() as folder:
            vectors = crowd(known, size)
            path = os.path.join(folder, "store.db")
            store, db = fill(path, vectors, None), bare(os.path.join(folder, "bare.db"), vectors, vec)
            plain = {"exact": exact, "sign bits": hamming}
            helped = {"exact, sqlite-vec": exact_vec, "sign bits, sqlite-vec": hamming_vec} if vec else {}
            ways: dict[str, Way] = {
                name: lambda a, s, w=way, d=db: w(d, a, s) for name, way in (plain | helped).items()
            }
            ways["nearest"] = ours(store)
            if vec:
                ways["nearest, sqlite-vec"] = ours(SqliteStore(path, vec=vec))
            show(size, *measured(ways, asked))


def show(size: int, times: dict[str, float], recall: dict[str, float]) -> None:
    """Print one size."""
    for name, took in times.items():
        line(f"{size:,} vectors, a tenth kept: {name}", took, "ms CPU p50")
    for name in (name for name in times if name.startswith("nearest")):
        helped = name.removeprefix("nearest")
        line(f"  {name} / the exact scan{helped}", times[name] / times[f"exact{helped}"], "times")
        line(f"  {name} / sign bits{helped}", times[name] / times[f"sign bits{helped}"], "times", limit=1.5)
        line(f"  {name}: share missed of the ten nearest", 1 - recall[name], limit=0.01)
    line("  sign bits: share missed of the ten nearest", 1 - recall["sign bits"])


if __name__ == "__main__":
    main()

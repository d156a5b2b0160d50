"""SQLite, PostgreSQL and a bare pgvector table side by side: recall with a filter that keeps a tenth, nearness, writes.

    COMMONPLACE_POSTGRES_MEMORY=4GB scripts/postgres run python bench/postgres.py [RECORDS]      (default: 10000)
        [--writes-only | --no-writes] [--keep FOLDER]

The address of the server is in COMMONPLACE_TEST_POSTGRES; a schema is made there and dropped again.  With --keep the
records stay, in a file of that folder and in the schema, for another run, and no writes are measured.  Texts are drawn
as words are drawn in language, vectors lie in clusters of 384 dimensions.  Records are in ten scopes, of ten
categories; a filter keeps one scope, or one category of all scopes.  The bare table has a full-text and an HNSW index,
and answers the same questions with the statements that pgvector's own page shows; it is the limit.  Times are of the
clock, because the server's work is not this process's; all three take turns, so that the ratios are the figures.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Sequence
from math import hypot
from operator import add

import psycopg
from measure import line, quantile, questions, texts

from commonplace.app import copier_of
from commonplace.engine.memory import Memory, now_utc
from commonplace.engine.recall import CANDIDATES
from commonplace.engine.transfer import migrate
from commonplace.model.binding import Binding
from commonplace.model.changes import AdoptEmbedder, Put
from commonplace.model.ids import new_id
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Filter
from commonplace.model.records import Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.stores.postgres import hnsw as near
from commonplace.stores.postgres.search import nearest_vectors, places_of
from commonplace.stores.postgres.store import PostgresStore
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.text.words import plan, terms

ADDRESS, SCHEMA = "COMMONPLACE_TEST_POSTGRES", "bench"
DIMENSIONS, CLUSTERS, NOISES, ASKED, ROUNDS, BATCH = 384, 300, 2000, 40, 3, 500
P50, P95 = 0.5, 0.95
SCOPES = [Scope.parse(f"project:p{number}") for number in range(10)]
CLIENTS, WRITE_SECONDS = (1, 2, 4, 8, 16), 2.0
BUILDING = "3GB"  # of memory, for an index that is built: as an administrator gives it


class Space:
    """Vectors in clusters; an embedder that knows a vector for every question."""

    identity = EmbedderIdentity(name="bench", dimensions=DIMENSIONS)

    def __init__(self) -> None:
        chance = random.Random(7)
        self.centres = [[chance.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(CLUSTERS)]
        self.noises = [[chance.gauss(0, 0.6) for _ in range(DIMENSIONS)] for _ in range(NOISES)]

    def vector(self, chance: random.Random) -> array[float]:
        """One more, near some centre."""
        numbers = list(map(add, chance.choice(self.centres), chance.choice(self.noises)))
        norm = hypot(*numbers)
        return array("f", [number / norm for number in numbers])

    def embed(self, given: Sequence[str], *, query: bool = False) -> list[Sequence[float]]:
        """A vector for each text, always the same."""
        del query
        return [self.vector(random.Random(text)) for text in given]


def fill(path: str, space: Space, count: int) -> SqliteStore:
    """A store in a file, written in groups."""
    store, chance = SqliteStore(path), random.Random(3)
    store.apply([AdoptEmbedder(identity=space.identity)])
    contents = texts(count)
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        store.apply([_put(n, contents[n], space.vector(chance)) for n in numbers])
    return store


def _put(number: int, content: str, vector: array[float], scope: Scope | None = None) -> Put:
    now = now_utc()
    record = Record(
        id=new_id(now), scope=scope or SCOPES[number % 10], kind=Kind.SEMANTIC, category=f"c{number // 10 % 10}",
        content=content, trust=Trust.USER, source=Source(channel=Channel.USER), created_at=now, updated_at=now,
    )  # fmt: skip
    return Put(record=record, terms=tuple(terms(content)), vector=vector)


# The bare table

_BARE = f"""
drop schema if exists bare cascade; create schema bare; set search_path = bare, public;
create table bare (id bigint generated always as identity primary key, scope int, category text, content text,
                   words tsvector, data vector({DIMENSIONS}));
"""
_INDEXES = f"""
set maintenance_work_mem = '{BUILDING}';
create index on bare using hnsw (data vector_cosine_ops); create index on bare using gin (words);
create index on bare (scope); vacuum analyze bare;
"""


def bare(address: str, source: SqliteStore) -> psycopg.Connection[tuple[object, ...]]:
    """The same records in one plain table, if they are not there already."""
    db = psycopg.connect(address, autocommit=True)
    if db.execute("select to_regclass('bare.bare_data_idx')").fetchone() == (None,):
        _fill_bare(db, source)
    db.execute("set search_path = bare, public; set hnsw.iterative_scan = strict_order; set hnsw.ef_search = 100")
    return db


def _fill_bare(db: psycopg.Connection[tuple[object, ...]], source: SqliteStore) -> None:
    db.execute(_BARE)
    sql = "copy bare (scope, category, content, words, data) from stdin"
    with db.cursor().copy(sql) as copy, copier_of(source).reading() as items:
        for item in items:
            if item.sort == "record":
                *said, _, data, _ = item.data[1][-1]
                words = " ".join(f"'{word}'" for word in dict.fromkeys(said[4].split()))
                scope = int(said[1].removeprefix("project:p"))
                copy.write_row((scope, said[3], said[4], words, str(list(array("f", data)))))
    for statement in _INDEXES.split(";")[:-1]:
        db.execute(statement)


def ask_bare(
    db: psycopg.Connection[tuple[object, ...]], words: Sequence[str], vector: array[float], scope: int | None
) -> object:
    """The best by words and the nearest, as many as a survey asks for, with their rows."""
    kept, value = ("scope = %s", scope) if scope is not None else ("category = %s", "c3")
    asked = " | ".join(f"'{word}'" for word in words)
    by_words = (
        "select id, content, ts_rank(words, q) from bare, cast(%s as tsquery) q"
        f" where words @@ q and {kept} order by 3 desc limit {CANDIDATES}"
    )
    by_meaning = f"select id, content from bare where {kept} order by data <=> %s::vector limit {CANDIDATES}"
    return db.execute(by_words, [asked, value]).fetchall(), db.execute(
        by_meaning, [value, str(vector.tolist())]
    ).fetchall()


# What is measured


def ways(
    stores: dict[str, SqliteStore | PostgresStore], plain: object, space: Space
) -> dict[str, Callable[..., object]]:
    """Each way to ask: with one scope, or with one category of all scopes."""
    found: dict[str, Callable[..., object]] = {}
    for name, store in stores.items():
        single = [
            Memory(store, Binding(channel=Channel.USER, writes={}, reads=(scope,)), embedder=space) for scope in SCOPES
        ]
        whole = Memory(store, Binding(channel=Channel.USER, writes={}, reads=tuple(SCOPES)), embedder=space)
        found[name] = lambda words, scope, single=single, whole=whole: (
            single[scope].recall(" ".join(words), count=False)
            if scope is not None
            else whole.recall(" ".join(words), categories=["c3"], count=False)
        )
        found[f"{name}, its survey"] = lambda words, scope, store=store: _surveyed(store, space, words, scope)
    found["bare pgvector table"] = lambda words, scope: ask_bare(plain, words, space.embed([" ".join(words)])[0], scope)
    return found


def _surveyed(store: SqliteStore | PostgresStore, space: Space, words: Sequence[str], scope: int | None) -> object:
    """The store's part of a recall: what the bare statements are to be compared with."""
    kept = {"scopes": frozenset(SCOPES), "categories": frozenset({"c3"})}
    kept = {"scopes": frozenset({SCOPES[scope]})} if scope is not None else kept
    question = " ".join(words)
    return store.survey(Filter(at=now_utc(), **kept), plan(question), space.embed([question])[0], limit=CANDIDATES)


def recalls(asking: dict[str, Callable[..., object]], *, scoped: bool) -> dict[str, list[float]]:
    """Milliseconds of each way and question; the first round warms all."""
    times: dict[str, list[float]] = {name: [] for name in asking}
    for turn in range(ROUNDS):
        for number, words in enumerate(questions(ASKED)):
            for name, way in asking.items():
                began = time.perf_counter()
                way(words, number % 10 if scoped else None)
                if turn:
                    times[name].append((time.perf_counter() - began) * 1000)
    return times


def show(title: str, times: dict[str, list[float]]) -> None:
    """One table."""
    print(title)
    for name, took in times.items():
        print(f"  {name:<40} p50 {quantile(took, P50):8.2f} ms   p95 {quantile(took, P95):8.2f} ms")
    for share, name in ((P50, "p50"), (P95, "p95")):
        ratio = quantile(times["PostgreSQL, its survey"], share) / quantile(times["bare pgvector table"], share)
        line(f"  PostgreSQL, its survey / bare table, {name}", ratio, "times", limit=2.0 if share == P50 else None)


def nearness(store: PostgresStore, space: Space) -> float:
    """The share of the ten nearest of one category that the index finds."""
    where, chance, found = Filter(scopes=frozenset(SCOPES), at=now_utc(), categories=frozenset({"c3"})), None, 0
    chance = random.Random(11)
    for _ in range(ASKED):
        asked = space.vector(chance)
        with store.reading() as db:
            quick, exact = (
                {e for e, _ in nearest_vectors(db, where, asked, 10, places_of(db, where), walk=walk)}
                for walk in (True, False)
            )
        found += len(quick & exact)
    return found / (10 * ASKED)


WRITER = """
import sys, time, random
sys.path.insert(0, sys.argv[1])
import postgres as bench
kind, place, number = sys.argv[2], sys.argv[3], int(sys.argv[4])
space, chance, content = bench.Space(), random.Random(number), bench.texts(200)
vectors = [space.vector(chance) for _ in range(50)]
write = bench.writing(kind, place, number)
write(content[0], vectors[0])
print("ready", flush=True)
sys.stdin.readline()
done, end = 0, time.monotonic() + bench.WRITE_SECONDS
while time.monotonic() < end:
    write(content[done % 200], vectors[done % 50])
    done += 1
print(done)
"""


def writing(kind: str, place: str, number: int) -> Callable[[str, array[float]], object]:
    """What writes one record and returns when it is committed."""
    scope = Scope.parse(f"user:w{number}")
    if kind == "bare":
        db = psycopg.connect(place, autocommit=True)
        db.execute("set search_path = bare, public")
        columns = "scope, category, content, words, data"
        sql = f"insert into bare ({columns}) values (%s, 'c', %s, to_tsvector('simple', %s), %s)"
        return lambda content, vector: db.execute(sql, [number, content, content, str(vector.tolist())])
    store = SqliteStore(place) if kind == "sqlite" else PostgresStore(place, schema=SCHEMA)
    return lambda content, vector: store.apply([_put(0, content, vector, scope)])


def rate(kind: str, place: str, clients: int) -> float:
    """Writes a second of so many processes at once."""
    command = [sys.executable, "-c", WRITER, os.path.dirname(os.path.abspath(__file__)), kind, place]
    running = [
        subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(clients)
    ]
    for process in running:
        assert process.stdout is not None
        process.stdout.readline()
    return sum(int(out) for out in _finished(running)) / WRITE_SECONDS


def _finished(running: Sequence[subprocess.Popen[str]]) -> list[str]:
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate()[0] for process in running]


def measure_recall(file: SqliteStore, store: PostgresStore, address: str, space: Space, count: int) -> None:
    """Recall, and how good the index is."""
    with store.using() as db:
        began = time.perf_counter()
        db.execute(f"set maintenance_work_mem = '{BUILDING}'")
        near.build(db, DIMENSIONS)
        line("seconds to build the HNSW index", time.perf_counter() - began, "s")
        db.execute("vacuum analyze")
    line("kB a record, HNSW and all other indexes included", store.size() / count / 1000, "kB")
    plain = bare(address, file)
    asking = ways({"SQLite": file, "PostgreSQL": store}, plain, space)
    for scoped, what in ((True, "one scope of ten"), (False, "one category of ten, in all scopes")):
        show(f"{count:,} records, the filter keeps {what}", recalls(asking, scoped=scoped))
    line("recall@10 of the index against exact search, a tenth kept", nearness(store, space))
    plain.close()


def moved(file: SqliteStore, address: str) -> PostgresStore:
    """The same records in PostgreSQL; those that are there already stay only if they are the same."""
    store = PostgresStore(address, schema=SCHEMA)
    if store.census() != file.census():
        store.close()
        _drop(address)
        store = PostgresStore(address, schema=SCHEMA)
        began = time.perf_counter()
        done = migrate(copier_of(file), copier_of(store))
        line("records a second moved from SQLite to PostgreSQL", done.records / (time.perf_counter() - began))
    return store


def main() -> None:
    """Print the figures for one size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="?", type=int, default=10_000)
    parser.add_argument("--writes-only", action="store_true")
    parser.add_argument("--no-writes", action="store_true")
    parser.add_argument("--keep", metavar="FOLDER")
    given = parser.parse_args()
    address, space = os.environ[ADDRESS], Space()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(given.keep or folder, f"{given.records}.db")
        file = SqliteStore(path) if os.path.exists(path) else fill(path, space, given.records)
        store = moved(file, address)
        try:
            if not given.writes_only:
                measure_recall(file, store, address, space, given.records)
            if not given.no_writes and not given.keep:
                measure_writes(file, address)
        finally:
            store.close()
            if not given.keep:
                _drop(address)


def measure_writes(file: SqliteStore, address: str) -> None:
    """Writes a second from 1 to 16 processes."""
    bare(address, file).close()
    places = {"sqlite": file.path, "postgres": address, "bare": address}
    for clients in CLIENTS:
        shown = [f"{kind} {rate(kind, place, clients):7.0f}" for kind, place in places.items()]
        print(f"writes a second, {clients:>2} clients: {'   '.join(shown)}", flush=True)


def _drop(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"drop schema if exists {SCHEMA} cascade; drop schema if exists bare cascade")


if __name__ == "__main__":
    main()

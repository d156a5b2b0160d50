"""Hybrid recall in process, with a filter that keeps a tenth; against the bare statements, in the same process.

    [COMMONPLACE_SQLITE_VEC=.../vec0] python bench/hybrid.py locomo10.json [RECORDS ...]      (default: 10000 100000)

Records are two turns of LoCoMo each, drawn by chance, with the vectors of the built-in embedder; the questions are
LoCoMo's.  Bare: FTS5 with the scope as a facet token inside the match, best 50 by bm25; vectors
in plain tables whose key begins with the scope, by the exact scan and by sign bits of which the best 400 are compared
exactly; the rows of both are fetched.  In pure Python, and with the scalar functions of sqlite-vec where its path is
given.  All of them read and embed the question; they take turns and are warm, so that the ratios are the figures.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from array import array
from collections.abc import Callable

import apsw
from measure import cpu_ms, line, quantile
from recall import SCOPES, ask_bare
from recall import bare as bare_words
from vectors import bare as bare_vectors
from vectors import exact, exact_vec, hamming, hamming_vec

from commonplace.engine.admission import admit
from commonplace.engine.memory import Memory, now_utc
from commonplace.engine.recall import CANDIDATES
from commonplace.evaluation.datasets import Corpus, locomo
from commonplace.model.binding import Binding
from commonplace.model.changes import AdoptEmbedder, Put
from commonplace.model.ids import new_id
from commonplace.model.queries import Filter
from commonplace.model.records import Channel, Draft, Kind
from commonplace.providers.local import LocalEmbedder
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.text.words import plan

SIZES = (10_000, 100_000)
ASKED, ROUNDS, BATCH = 60, 3, 500
P50, P95 = 0.5, 0.95

Way = Callable[[str, int], object]  # asks a question of one of the ten scopes


def pairs(corpus: Corpus, count: int) -> list[str]:
    """So many texts, each of two turns."""
    chance = random.Random(1)
    said = [passage.text for passage in corpus.passages]
    return [f"{chance.choice(said)} {chance.choice(said)}" for _ in range(count)]


def fill(path: str, contents: list[str], vectors: list[array[float]]) -> SqliteStore:
    """A store of ten scopes, written in groups."""
    store = SqliteStore(path)
    store.apply([AdoptEmbedder(identity=LocalEmbedder().identity)])
    bindings = [Binding(channel=Channel.USER, writes=dict.fromkeys(Kind, scope), reads=(scope,)) for scope in SCOPES]
    for start in range(0, len(contents), BATCH):
        puts = []
        for number in range(start, min(start + BATCH, len(contents))):
            now = now_utc()
            draft = Draft(content=contents[number])
            admitted = admit(draft, binding=bindings[number % 10], id=new_id(now), now=now)
            puts.append(Put(record=admitted.record, terms=admitted.terms, vector=vectors[number]))
        store.apply(puts)
    return store


def ours(store: SqliteStore, embedder: LocalEmbedder) -> dict[str, Way]:
    """The whole recall; the store's part of it; and the recall of words alone."""
    bindings = [Binding(channel=Channel.USER, writes={}, reads=(scope,)) for scope in SCOPES]
    hybrid = [Memory(store, binding, embedder=embedder) for binding in bindings]
    words = [Memory(store, binding) for binding in bindings]

    def survey(question: str, scope: int) -> object:
        where = Filter(scopes=frozenset({SCOPES[scope]}), at=now_utc(), chunks=True)
        [vector] = embedder.embed([question], query=True)
        return store.survey(where, plan(question), vector, limit=CANDIDATES)

    return {
        "recall": lambda question, scope: hybrid[scope].recall(question, count=False),
        "its survey": survey,
        "recall by words alone": lambda question, scope: words[scope].recall(question, count=False),
    }


def theirs(words: apsw.Connection, vectors: apsw.Connection, embedder: LocalEmbedder, *, vec: bool) -> dict[str, Way]:
    """The bare statements, with either way of finding what is near."""
    plain = {"bare, exact scan": exact, "bare, sign bits": hamming}
    helped = {"bare, exact scan, sqlite-vec": exact_vec, "bare, sign bits, sqlite-vec": hamming_vec} if vec else {}

    def asks(near: Callable[[apsw.Connection, array[float], int], list[int]]) -> Way:
        def ask(question: str, scope: int) -> object:
            [vector] = embedder.embed([question], query=True)
            terms = {term for word in plan(question).words for terms in word.terms for term in terms}
            found = ask_bare(words, [f'"{term}"' for term in sorted(terms)], scope)
            ids = near(vectors, array("f", vector), scope)
            sql = f"select id, content from r where id in ({', '.join('?' * len(ids))})"
            return found, words.execute(sql, [number + 1 for number in ids]).fetchall()

        return ask

    return {name: asks(near) for name, near in (plain | helped).items()}


def measured(ways: dict[str, Way], asked: list[str]) -> dict[str, list[float]]:
    """CPU milliseconds of each way and question; the first round warms all."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS):
        for number, question in enumerate(asked):
            for name, way in ways.items():
                took = cpu_ms(lambda w=way, q=question, s=number % 10: w(q, s))
                if turn:
                    times[name].append(took)
    return times


def show(size: int, times: dict[str, list[float]]) -> None:
    """Print one size; the limit is held against the quicker of the two bare ways."""
    print(f"{size:,} records, a tenth kept by the filter, CPU time")
    for name, took in times.items():
        print(f"  {name:<40} p50 {quantile(took, P50):8.2f} ms   p95 {quantile(took, P95):8.2f} ms")
    for helped in ("", ", sqlite-vec"):
        both = [
            took for name, took in times.items() if name in (f"bare, exact scan{helped}", f"bare, sign bits{helped}")
        ]
        if not both:
            continue
        for share, name in ((P50, "p50"), (P95, "p95")):
            best = min(quantile(took, share) for took in both)
            limit = None if helped or share != P50 else 1.5
            line(
                f"  recall / quicker bare statements{helped}, {name}",
                quantile(times["recall"], share) / best,
                "times",
                limit=limit,
            )
            line(f"  its survey / the same, {name}", quantile(times["its survey"], share) / best, "times")


def main() -> None:
    """Print p50 and p95 of CPU time, and the ratios, for each size."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    vec = os.environ.get("COMMONPLACE_SQLITE_VEC")
    with open(sys.argv[1], encoding="utf-8") as file:
        corpus = locomo(file.read(), sys.argv[1])
    embedder = LocalEmbedder()
    asked = [question.text for question in corpus.questions[:: len(corpus.questions) // ASKED][:ASKED]]
    for size in [int(argument) for argument in sys.argv[2:]] or SIZES:
        contents = pairs(corpus, size)
        vectors = [array("f", vector) for vector in embedder.embed(contents)]
        with tempfile.TemporaryDirectory() as folder:
            store = fill(os.path.join(folder, "store.db"), contents, vectors)
            words = bare_words(os.path.join(folder, "words.db"), contents)
            near = bare_vectors(os.path.join(folder, "vectors.db"), vectors, vec)
            ways = ours(store, embedder) | theirs(words, near, embedder, vec=vec is not None)
            show(size, measured(ways, asked))
            store.close()


if __name__ == "__main__":
    main()

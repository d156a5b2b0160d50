"""Recall in process, full text, with a filter that keeps a tenth; against the bare FTS5 statement.

    python bench/recall.py [RECORDS ...]          (default: 10000 100000)

Bare: one FTS5 table of the same texts, tokenised alike, with the scope as a facet token inside the match, ordered by
bm25, best 50, rows fetched: the fastest plain statement found.  It leaks one scope's statistics into
another's ranking, which ours must not.
"""

from __future__ import annotations

import os
import sys
import tempfile

import apsw
from measure import cpu_ms, line, quantile, questions, texts

from commonplace.engine.admission import admit
from commonplace.engine.memory import Memory, now_utc
from commonplace.model.binding import Binding
from commonplace.model.changes import Put
from commonplace.model.ids import new_id
from commonplace.model.queries import Filter
from commonplace.model.records import Channel, Draft, Kind
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore
from commonplace.text.words import plan, terms

SCOPES = [Scope.of(("namespace", f"n{number}")) for number in range(10)]


def fill(path: str, contents: list[str]) -> SqliteStore:
    """A store of ten scopes, written in groups."""
    store = SqliteStore(path)
    bindings = [Binding(channel=Channel.USER, writes=dict.fromkeys(Kind, scope), reads=(scope,)) for scope in SCOPES]
    puts = []
    for number, text in enumerate(contents):
        now = now_utc()
        admitted = admit(Draft(content=text), binding=bindings[number % 10], id=new_id(now), now=now)
        puts.append(Put(record=admitted.record, terms=admitted.terms))
        if len(puts) == 500:
            store.apply(puts)
            puts = []
    store.apply(puts)
    return store


def bare(path: str, contents: list[str]) -> apsw.Connection:
    """The same texts in one plain table."""
    db = apsw.Connection(path)
    db.execute("pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = off").fetchall()
    db.execute(
        "create table r (id integer primary key, scope integer, content text);"
        "create virtual table f using fts5 (content, facets, content = '', tokenize = 'ascii')"
    )
    with db:
        for number, text in enumerate(contents, start=1):
            db.execute("insert into r values (?, ?, ?)", (number, number % 10, text))
            words = " ".join(terms(text))
            db.execute("insert into f (rowid, content, facets) values (?, ?, ?)", (number, words, f"s{number % 10}"))
    return db


def ask_bare(db: apsw.Connection, words: list[str], scope: int) -> list[object]:
    """The bare statement."""
    match = f"content : ({' OR '.join(words)}) AND facets : s{scope}"
    ranked = "select rowid, bm25(f, 1.0, 0.0) b from f where f match ? order by b limit 50"
    sql = f"select r.id, r.content, m.b from ({ranked}) m join r on r.id = m.rowid"
    return db.execute(sql, (match,)).fetchall()


def main() -> None:
    """Print p50 and p95 of CPU time, and the ratios."""
    for size in [int(argument) for argument in sys.argv[1:]] or [10_000, 100_000]:
        contents = texts(size)
        asked = questions(60)
        with tempfile.TemporaryDirectory() as folder:
            store = fill(os.path.join(folder, "store.db"), contents)
            plain = bare(os.path.join(folder, "bare.db"), contents)
            bindings = [Binding(channel=Channel.USER, writes={}, reads=(scope,)) for scope in SCOPES]
            memories = [Memory(store, binding) for binding in bindings]
            ours, words_only, theirs = [], [], []
            for turn in range(3):
                for number, words in enumerate(asked):
                    scope, query = number % 10, " ".join(words)
                    one = cpu_ms(lambda m=memories[scope], q=query: m.recall(q, count=False))
                    two = cpu_ms(lambda db=plain, w=words, s=scope: ask_bare(db, w, s))
                    where = Filter(scopes=frozenset({SCOPES[scope]}), at=now_utc())
                    three = cpu_ms(lambda db=store, f=where, q=query: db.match(f, plan(q), limit=10))
                    if turn:  # the first round warms both
                        ours.append(one)
                        theirs.append(two)
                        words_only.append(three)
            print(f"{size} records, a tenth kept by the filter, CPU time")
            for share in (0.5, 0.95):
                line(f"  recall p{share * 100:.0f}", quantile(ours, share), "ms")
                line(f"  its full text p{share * 100:.0f}", quantile(words_only, share), "ms")
                line(f"  bare statement p{share * 100:.0f}", quantile(theirs, share), "ms")
            typical = quantile(theirs, 0.5)
            line("  full text / bare statement, p50", quantile(words_only, 0.5) / typical, "times", limit=2)
            line("  whole recall / bare statement, p50", quantile(ours, 0.5) / typical, "times")
            store.close()
            plain.close()


if __name__ == "__main__":
    main()

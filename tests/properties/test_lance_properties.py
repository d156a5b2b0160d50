"""Whatever happens to a store and to its index, in whatever order: what is found is what comparing everything finds."""

import glob
import os
import random
import shutil
from datetime import timedelta

import pytest

from commonplace.model.changes import AdoptEmbedder, Archive, Delete, PutDocument, Restore, Trim
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import ANY_STATE, Order, Query
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope
from commonplace.stores.lance.store import LanceStore
from commonplace.stores.sqlite.store import SqliteStore

SIZE, LIMIT, WIDE = 8, 7, 80  # the last is what a recall asks for: a survey by codes is right about its better part
BOB = Scope.parse("user:bob")
NO_WORDS = Query(text="", words=())


class Life:
    """What a store goes through, drawn by chance."""

    def __init__(self, seed, folder, make):
        self.chance, self.folder, self.make = random.Random(seed), folder, make
        self.store = LanceStore(os.fspath(folder), tail_least=5)
        self.store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="few", dimensions=SIZE))])

    def vector(self):
        """One of few directions, so that there are ties, or any, or none at all."""
        drawn = self.chance.random()
        if drawn < 0.2:
            return [float(number == self.chance.randrange(SIZE)) for number in range(SIZE)]
        return [0.0] * SIZE if drawn < 0.25 else [self.chance.gauss(0, 1) for _ in range(SIZE)]

    def some(self):
        """One of the records that there are, in whatever state."""
        found = self.store.find(self.make.anything(self.make.scope, BOB), order=Order.ID, limit=999)
        return self.chance.choice(found) if found else None

    def put(self):
        """Keep up to twenty, of any kind and category, here or elsewhere, some for a short time."""
        for _ in range(self.chance.randint(1, 20)):
            fields = {"kind": self.chance.choice([Kind.SEMANTIC, Kind.EPISODIC]), "category": self.chance.choice("ab")}
            fields |= {"scope": BOB} if self.chance.random() < 0.2 else {}
            fields |= {"expires_at": self.make.clock() + timedelta(hours=3)} if self.chance.random() < 0.1 else {}
            record = self.make(f"fact {self.chance.random()}", **fields)
            vector = self.vector() if self.chance.random() < 0.9 else None
            self.store.apply([self.make.put(record, vector=vector)])

    def document(self):
        """Keep a document in pieces, in place of the one that there is."""
        document = self.make.document(digest=str(self.chance.random()))
        chunks = self.make.chunks(document, *(f"piece {number}" for number in range(self.chance.randint(1, 9))))
        vectors = {chunk.seq: self.vector() for chunk in chunks["chunks"]}
        self.store.apply([PutDocument(document=document, **chunks, vectors=vectors)])

    def change(self):
        """Put the next version of one."""
        if record := self.some():
            changed = record.replace(content=f"fact {self.chance.random()}", category=self.chance.choice("ab"))
            changed = changed.replace(updated_at=self.make.clock())
            self.store.apply([self.make.put(changed, expect=record.version, vector=self.vector())])

    def archive(self):
        """Take one out, and sometimes all back."""
        if record := self.some():
            where = self.make.anything(record.scope, ids=frozenset({record.id}))
            self.store.apply([Archive(where=where, at=self.make.clock())])
        if self.chance.random() < 0.2:
            self.store.apply([Restore(where=self.make.anything(), at=self.make.clock())])

    def erase(self):
        """Erase one, or make room."""
        if record := self.some():
            self.store.apply([Delete(where=self.make.anything(record.scope, ids=frozenset({record.id})))])
        self.store.apply([Trim(where=self.make.where(), keep=60, order=Order.OLDEST)])

    def age(self):
        """Let an hour pass."""
        self.make.clock.forward(timedelta(hours=1))

    def harm(self):
        """Take the tables away, damage them, or open the store anew."""
        tables = glob.glob(os.fspath(self.folder / "vectors_*.lance"))
        drawn = self.chance.random()
        if drawn < 0.3 and tables:
            shutil.rmtree(tables[0])
        elif drawn < 0.6 and tables:
            [data] = glob.glob(os.path.join(tables[0], "data", "*"))
            os.truncate(data, os.path.getsize(data) - 1)
        self.store.close()
        self.store = LanceStore(os.fspath(self.folder), tail_least=5)

    def questions(self):
        """Filters of every sort."""
        yield self.make.where()
        yield self.make.where(BOB, self.make.scope, chunks=True)
        yield self.make.where(categories=frozenset("a"))
        yield self.make.where(kinds=frozenset({Kind.EPISODIC}), chunks=True)
        yield self.make.where(states=ANY_STATE, versions=True)
        yield self.make.where(as_of=self.make.clock() - timedelta(hours=2))

    def check(self):
        """Ask both ways; compare with a store that compares everything."""
        plain = SqliteStore(self.store.path)
        for where in self.questions():
            vector = self.vector()
            exact = [(round(m.score, 5), m.id) for m in plain.nearest(where, vector, limit=9_999)]
            assert [(round(m.score, 5), m.id) for m in self.store.nearest(where, vector, limit=LIMIT)] == exact[:LIMIT]
            seen = {one.id for one in self.store.survey(where, NO_WORDS, vector, limit=WIDE).candidates}
            last = exact[WIDE - 1][0] if len(exact) >= WIDE else -2.0  # of those that tie with it any may be seen
            assert {name for score, name in exact[:LIMIT] if score > last} <= seen
        plain.close()


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 15), *(pytest.param(seed, 60, marks=pytest.mark.slow) for seed in range(1, 5))]
)
def test_an_index_never_changes_an_answer(tmp_path, make, seed, steps):
    """One thing happens after the other, and after each of them every question is answered right."""
    life = Life(seed, tmp_path / "memory.lance", make)
    does = [life.put] * 5 + [life.document, life.change, life.archive, life.erase, life.age, life.harm]
    used = 0
    for _ in range(steps):
        life.chance.choice(does)()
        life.check()
        used += bool(life.store.count_indexed())
    assert used > steps // 4
    life.store.close()

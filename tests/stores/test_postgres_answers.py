"""PostgreSQL answers as SQLite does, keeps any character, and keeps nothing that was erased."""

import random
from math import hypot

import pytest

from commonplace.model.changes import AdoptEmbedder, Archive, Delete, DropScope, PutDocument
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Order
from commonplace.model.records import Channel, Kind, Source
from commonplace.stores.sqlite.store import SqliteStore

pytestmark = pytest.mark.postgres
DIMENSIONS = 32
WORDS = [f"w{number}" for number in range(40)]


@pytest.fixture
def pg(new_postgres):
    """A store."""
    return new_postgres()


def direction(chance):
    """A vector of unit length."""
    numbers = [chance.gauss(0, 1) for _ in range(DIMENSIONS)]
    return [number / hypot(*numbers) for number in numbers]


def text(chance):
    """Some words, the first ones oftener."""
    return " ".join(WORDS[int(40 * chance.random() ** 3)] for _ in range(chance.randint(1, 20)))


def filled(make):
    """Changes that leave live, archived, expired and changed records and a session."""
    chance = random.Random(5)
    changes = [AdoptEmbedder(identity=EmbedderIdentity(name="chance", dimensions=DIMENSIONS))]
    kinds = (Kind.SEMANTIC, Kind.EPISODIC)
    for number in range(150):
        tags = frozenset({"third"} if number % 3 == 0 else ())
        expires = make.clock() if number % 20 == 0 else None
        record = make(text(chance), kind=kinds[number % 2], tags=tags, expires_at=expires)
        changes.append(make.put(record, vector=direction(chance) if number % 5 else None))
    session = make.document()
    parts = make.chunks(session, *(text(chance) for _ in range(40)))
    changes.append(PutDocument(document=session, **parts, vectors={seq: direction(chance) for seq in range(0, 40, 2)}))
    ids = frozenset(change.record.id for change in changes[10:140:10])
    changes.append(Archive(where=make.where(ids=ids), at=make.clock()))
    return changes


def seen(survey):
    """A survey by what was seen, numbers rounded to what floats of single precision can say."""

    def rounded(number):
        return None if number is None else round(number, 5)

    return {
        candidate.id: (tuple(map(rounded, candidate.words)), rounded(candidate.similarity), rounded(candidate.together))
        for candidate in survey.candidates
    }


def test_both_stores_give_the_same_answers(pg, make, query):
    """By words, by nearness and by both, for many filters: the same things in the same order with the same scores."""
    sqlite, chance = SqliteStore(":memory:"), random.Random(6)
    changes = filled(make)
    for store in (pg, sqlite):
        store.apply(changes)
    fields = [{}, {"chunks": True}, {"tags": frozenset({"third"})}, {"kinds": frozenset({Kind.EPISODIC})}]
    fields += [{"as_of": make.clock()}, {"versions": True}]
    for number in range(30):
        where = make.where(**fields[number % len(fields)])
        asked, vector = query(" ".join(chance.sample(WORDS, 3)) + " w1&w2|w3"), direction(chance)
        words = [store.match(where, asked, limit=12) for store in (pg, sqlite)]
        assert words[0] == words[1]
        near = [store.nearest(where, vector, limit=12) for store in (pg, sqlite)]
        assert near[0] == near[1]
        surveys = [store.survey(where, asked, vector, limit=200) for store in (pg, sqlite)]
        assert seen(surveys[0]) == seen(surveys[1])
        assert surveys[0].rarities == surveys[1].rarities
    assert pg.census(at=make.clock()) == sqlite.census(at=make.clock())


def test_a_vector_of_no_length_stands_between_what_is_near_and_what_is_far(pg, make):
    """It has no angle, which is no reason to lose it behind all that points away."""
    pg.apply([AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))])
    pg.apply([make.put(str(number), vector=(-1.0, 0.001 * number)) for number in range(150)])
    pg.apply([make.put("none", vector=(0.0, 0.0)), make.put("near", vector=(1.0, 0.1))])
    answer = pg.nearest(make.where(), (1.0, 0.0), limit=3)
    assert [match.record.content for match in answer] == ["near", "none", "149"]


def test_characters_that_postgresql_lacks_are_kept_in_their_order(pg, make):
    """The character 0 comes back as itself, beside 1, in content and in tags, and is counted as one byte."""
    texts = ["", "\0", "\0\0", "\0\1", "\1", "\1\0", "\1\1", "\1\2", "\2"]
    pg.apply([make.put(make(said, category=said, tags=frozenset({said})), terms=(said,)) for said in texts])
    for said in texts:
        found = pg.find(make.where(tags=frozenset({said}), categories=frozenset({said})), order=Order.ID, limit=9)
        assert [record.content for record in found] == [said]
    assert pg.census()[0].bytes == sum(map(len, texts))
    with pg._connections.using() as db:
        rows = db.execute("select content from record order by content").fetchall()
    assert [content for (content,) in rows] == sorted(texts)


def test_a_long_word_is_found(pg, make, query):
    """An index has room for short words only: long ones are found all the same, and told apart."""
    alike = "x" * 4000
    one, other = (f"{alike}{''.join(random.Random(n).choices('abcdef', k=4000))}" for n in (1, 2))
    pg.apply([make.put(one), make.put(other)])
    assert [match.record.content for match in pg.match(make.where(), query(one), limit=9)] == [one]


def test_what_no_index_can_hold_is_refused(pg, make):
    """A key of many thousand characters is bad input, said in a sentence; nothing is kept."""
    key = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20_000))
    with pytest.raises(InvalidInput, match="too long"):
        pg.apply([make.put("before"), make.put(make(key=key))])
    assert pg.census() == []


def rows_left(store):
    """How many rows each table has; what is left of nothing is left out."""
    with store._connections.using() as db:
        tables = db.execute("select tablename from pg_tables where schemaname = current_schema()").fetchall()
        counts = {table: db.execute(f"select count(*) from {table}").fetchone()[0] for (table,) in tables}
    return {table: count for table, count in counts.items() if count and table not in {"meta", "setting", "scope"}}


@pytest.mark.parametrize("whole", [True, False], ids=["the scope", "the records"])
def test_nothing_is_left_of_what_was_erased(pg, make, whole):
    """With a record go its versions, terms, vectors and use; with a scope everything: by the database's own keys."""
    pg.apply([AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))])
    [outcome] = pg.apply([make.put("a", vector=(1.0, 0.0))])
    pg.apply([make.update(outcome.records[0], content="b", tags=frozenset({"t"}))])
    derived = make("c", source=Source(channel=Channel.CONSOLIDATION, parents=(outcome.records[0].id,)))
    pg.apply([make.put(derived, vector=(0.0, 1.0))])
    session = make.document()
    if whole:
        parts = make.chunks(session, "d", "e")
        pg.apply([PutDocument(document=session, **parts, vectors={1: (1.0, 0.0)})])
    pg.apply(
        [DropScope(scope=make.scope) if whole else Delete(where=make.where(ids=frozenset({outcome.records[0].id})))]
    )
    assert rows_left(pg) == {}

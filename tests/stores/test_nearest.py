"""``Store.nearest``: by cosine, best first, ties by id; what has no vector is not found."""

import math
import random
from datetime import timedelta

import pytest

from commonplace.model.changes import AdoptEmbedder, Archive, Delete, PutDocument, Restore, Supersede
from commonplace.model.errors import DimensionMismatch, InvalidInput
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope
from stands import rows

HOUR = timedelta(hours=1)
EAST, NORTH, WEST = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)


@pytest.fixture(autouse=True)
def _embedder(store):
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))])


def towards(degrees):
    """A vector of unit length."""
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))


def near(store, where, vector, limit=99):
    """What the nearest say, best first."""
    matches = store.nearest(where, vector, limit=limit)
    return [match.record.content if match.record else match.chunk.text for match in matches]


def test_the_nearest_come_first(store, make, keep):
    """Order and score are those of the cosine."""
    for text, degrees in {"far": 170, "near": 5, "aside": 90, "middle": 45}.items():
        keep(text, vector=towards(degrees))
    matches = store.nearest(make.where(), EAST, limit=9)
    assert [match.record.content for match in matches] == ["near", "middle", "aside", "far"]
    cosines = [math.cos(math.radians(degrees)) for degrees in (5, 45, 90, 170)]
    assert [match.score for match in matches] == pytest.approx(cosines, abs=1e-6)


def test_the_order_is_exact(store, make):
    """Of many vectors the best are the best, not nearly the best."""
    chance = random.Random(1)
    angles = [chance.uniform(0, 360) for _ in range(500)]
    store.apply([make.put(str(number), vector=towards(angle)) for number, angle in enumerate(angles)])
    best = sorted(range(500), key=lambda number: -math.cos(math.radians(angles[number] - 30)))
    assert near(store, make.where(), towards(30), limit=20) == [str(number) for number in best[:20]]


def test_ties_are_decided_by_id(store, make):
    """Equal vectors come in the order of their ids, at every limit."""
    records = [make(str(number)) for number in range(6)]
    store.apply([make.put(record, vector=NORTH) for record in reversed(records)])
    for limit in (1, 3, 6):
        assert near(store, make.where(), NORTH, limit) == [str(number) for number in range(limit)]


def test_what_has_no_vector_is_not_found(store, make, keep):
    """A record without a vector is in no answer."""
    keep("bare")
    assert near(store, make.where(), EAST) == []


def test_new_words_need_a_new_vector(store, make, keep):
    """An update without a vector takes the old one away; with one, it is in its place."""
    kept = keep("old", vector=EAST)
    store.apply([make.update(kept, content="new")])
    assert near(store, make.where(), EAST) == []
    store.apply([make.put(store.get(kept.id).replace(content="newer"), expect=2, vector=WEST)])
    assert [match.score for match in store.nearest(make.where(), WEST, limit=9)] == [1.0]


def test_what_is_not_live_is_not_found(store, make, keep):
    """Archived, erased and foreign vectors are in no answer; a restored one is again."""
    archived, gone, other = keep("archived", vector=EAST), keep("gone", vector=EAST), Scope.parse("user:bob")
    keep("foreign", vector=EAST, scope=other)
    keep("held", vector=EAST, held=True)
    keep("expired", vector=EAST, expires_at=make.clock())
    store.apply([Archive(where=make.where(ids=frozenset({archived.id})), at=make.clock())])
    store.apply([Delete(where=make.where(ids=frozenset({gone.id})))])
    assert near(store, make.where(), EAST) == []
    store.apply([Restore(where=make.anything(), at=make.clock())])
    assert (near(store, make.where(), EAST), near(store, make.where(other), EAST)) == (["archived"], ["foreign"])


def test_a_filter_holds_for_vectors_too(store, make, keep):
    """Only what the filter means is compared."""
    keep("a", vector=EAST, kind=Kind.EPISODIC, tags=frozenset({"t"}), category="x")
    keep("b", vector=EAST)
    for fields in ({"kinds": frozenset({Kind.EPISODIC})}, {"tags": frozenset({"t"})}, {"categories": frozenset({"x"})}):
        assert near(store, make.where(**fields), EAST) == ["a"], fields


def test_chunks_have_vectors_too(store, make, keep):
    """The pieces of documents are found by vector when they are asked for."""
    keep("record", vector=NORTH)
    session = make.document()
    parts = make.chunks(session, "bare", "chunk")
    store.apply([PutDocument(document=session, **parts, vectors={1: EAST})])
    assert near(store, make.where(), EAST) == ["record"]
    assert near(store, make.where(chunks=True), EAST) == ["chunk", "record"]
    assert near(store, make.where(chunks=True, records=False), EAST) == ["chunk"]


def test_the_past_is_searched_in_its_own_vectors(store, make, keep):
    """As of a moment a record is as near as its words of that moment were."""
    written = make.clock()
    kept = keep("old", vector=EAST)
    changed = make.clock.forward(HOUR)
    store.apply([make.put(kept.replace(content="new", updated_at=changed), expect=1, vector=WEST)])
    [then], [now] = (store.nearest(make.where(as_of=moment), EAST, limit=9) for moment in (written, changed))
    assert (then.record.content, then.score) == ("old", 1.0)
    assert (now.record.content, now.score) == ("new", -1.0)


def test_the_past_is_near_though_it_was_archived_or_replaced_since(store, make, keep):
    """What was live then is found then by vector, and what happened earlier was true earlier."""
    written = make.clock()
    a, b = keep("archived", vector=EAST), keep("replaced", vector=EAST)
    make.clock.forward(HOUR)
    keep("backdated", vector=EAST, occurred_at=written)
    store.apply([Archive(where=make.where(ids=frozenset({a.id})), at=make.clock())])
    store.apply([Supersede(id=b.id, by=a.id, at=make.clock(), now=make.clock())])
    assert set(near(store, make.where(as_of=written), EAST)) == {"archived", "replaced", "backdated"}
    assert near(store, make.where(as_of=make.clock()), EAST) == ["backdated"]


@rows("vector", [(1.0,), (1.0, 0.0, 0.0), ()])
def test_a_vector_of_another_length_is_refused(store, make, keep, vector):
    """Neither a write nor a question may have other dimensions than the store."""
    keep("a", vector=EAST)
    with pytest.raises(DimensionMismatch) as caught:
        store.apply([make.put("b", vector=vector)])
    assert (caught.value.stored, caught.value.offered) == (2, len(vector))
    with pytest.raises(DimensionMismatch):
        store.nearest(make.where(), vector, limit=9)


@rows("bad", [math.nan, math.inf, -math.inf, 1e300])
def test_a_vector_is_made_of_numbers(store, make, bad):
    """What is not finite would be near to everything and nothing: it is refused, and nothing is kept."""
    with pytest.raises(InvalidInput):
        store.apply([make.put("a", vector=(bad, 0.0))])
    assert store.census() == []

"""Texts without vectors: listed, embedded later, and embedded anew beside the vectors in use."""

import math
from datetime import timedelta

import pytest

from commonplace.model.changes import AdoptEmbedder, Archive, Delete, PutDocument, SetVectors, SwitchEmbedder
from commonplace.model.errors import Conflict, DimensionMismatch, InvalidInput
from commonplace.model.ports import EmbedderIdentity

OLD = EmbedderIdentity(name="old", dimensions=2)
NEW = EmbedderIdentity(name="new", dimensions=3)
EAST, NORTH = (1.0, 0.0), (0.0, 1.0)
UP, AHEAD = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)


@pytest.fixture(autouse=True)
def _embedder(store):
    store.apply([AdoptEmbedder(identity=OLD)])


def pending(store, identity=OLD, limit=99):
    """What lacks a vector, as texts."""
    return [text.text for text in store.list_unembedded(identity, limit=limit)]


def embed(store, identity, vector, *, limit=99):
    """Give this vector to whatever lacks one."""
    vectors = {text.ref: vector for text in store.list_unembedded(identity, limit=limit)}
    store.apply([SetVectors(identity=identity, vectors=vectors)])


def near(store, where, vector):
    """What the nearest say, best first."""
    return [
        match.record.content if match.record else match.chunk.text for match in store.nearest(where, vector, limit=9)
    ]


def test_what_lacks_a_vector_is_listed(store, make, keep):
    """Records, earlier versions and chunks are listed, in one order, and no more than asked for."""
    kept = keep("one")
    store.apply([make.update(kept, content="two")])
    session = make.document()
    store.apply([PutDocument(document=session, **make.chunks(session, "three", "four"))])
    keep("five", vector=EAST)
    assert sorted(pending(store)) == ["four", "one", "three", "two"]
    assert pending(store, limit=2) == pending(store)[:2]
    assert (store.count_unembedded(OLD), store.count_unembedded(NEW)) == (4, 5)


def test_a_gap_is_filled(store, make, keep):
    """A late vector is found like one that came with its text, and the text is listed no more."""
    keep("bare")
    embed(store, OLD, EAST)
    assert near(store, make.where(), EAST) == ["bare"]
    assert (pending(store), store.count_unembedded(OLD)) == ([], 0)


def test_a_late_vector_is_not_given_to_other_words(store, make, keep):
    """A vector of words that have changed or gone meanwhile is dropped; an earlier version may still get it."""
    kept, gone = keep("old"), keep("gone")
    vectors = {text.ref: EAST for text in store.list_unembedded(OLD, limit=9)}
    store.apply([make.update(kept, content="new"), Delete(where=make.where(ids=frozenset({gone.id})))])
    store.apply([SetVectors(identity=OLD, vectors=vectors | {"nonsense": EAST, "99:x": EAST})])
    assert near(store, make.where(), EAST) == []
    assert pending(store) == ["new", "old"]


def test_a_number_that_is_used_again_does_not_mislead(store, make, keep):
    """A reference to an erased text is not taken for the text that has its place now."""
    gone = keep("gone")
    vectors = {text.ref: EAST for text in store.list_unembedded(OLD, limit=9)}
    store.apply([Delete(where=make.where(ids=frozenset({gone.id})))])
    keep("other")
    store.apply([SetVectors(identity=OLD, vectors=vectors)])
    assert pending(store) == ["other"]


@pytest.mark.parametrize("identity", [OLD, NEW])
def test_every_late_vector_is_checked(store, keep, identity):
    """One bad vector among good ones is refused, and nothing of the change is kept."""
    keep("a"), keep("b")
    one, other = (text.ref for text in store.list_unembedded(identity, limit=9))
    good = (1.0,) * identity.dimensions
    for bad, error in (((1.0,), DimensionMismatch), ((math.nan,) * identity.dimensions, InvalidInput)):
        with pytest.raises(error):
            store.apply([SetVectors(identity=identity, vectors={one: good, other: bad})])
        assert store.count_unembedded(identity) == 2


def test_a_store_without_an_embedder_takes_the_first(new_store, make):
    """The first vectors bring their embedder along."""
    store = new_store()
    store.apply([make.put("a")])
    embed(store, NEW, UP)
    assert (store.embedder(), near(store, make.where(), UP)) == (NEW, ["a"])
    store.close()


def test_a_set_is_built_beside_the_one_in_use(store, make, keep):
    """While the new vectors are built the old ones answer; after the switch the new ones do."""
    keep("a", vector=EAST), keep("b", vector=NORTH)
    embed(store, NEW, AHEAD, limit=1)
    embed(store, NEW, UP)
    assert (near(store, make.where(), NORTH), store.embedder()) == (["b", "a"], OLD)
    store.apply([SwitchEmbedder(identity=NEW)])
    assert (near(store, make.where(), UP), store.embedder()) == (["b", "a"], NEW)
    with pytest.raises(DimensionMismatch):
        store.nearest(make.where(), NORTH, limit=9)


def test_no_switch_while_a_text_lacks_its_vector(store, make, keep):
    """A set that is not whole is refused and kept; what was written meanwhile is listed again."""
    kept = keep("a", vector=EAST)
    embed(store, NEW, UP)
    store.apply([make.put(kept.replace(content="b"), expect=1, vector=NORTH)])
    with pytest.raises(Conflict, match="'new'"):
        store.apply([SwitchEmbedder(identity=NEW)])
    assert (store.embedder(), pending(store, NEW), near(store, make.where(), EAST)) == (OLD, ["b"], ["b"])
    embed(store, NEW, AHEAD)
    store.apply([SwitchEmbedder(identity=NEW)])
    assert near(store, make.where(), AHEAD) == ["b"]


def test_the_past_keeps_its_vectors_over_a_switch(store, make, keep):
    """Earlier versions and archived records are near as they were, in the new vectors."""
    written, kept = make.clock(), keep("old", vector=EAST)
    embed(store, NEW, UP)
    make.clock.forward(timedelta(hours=1))
    store.apply([Archive(where=make.where(ids=frozenset({kept.id})), at=make.clock())])
    assert pending(store, NEW) == []
    store.apply([SwitchEmbedder(identity=NEW)])
    assert near(store, make.where(as_of=written), UP) == ["old"]
    assert (near(store, make.where(), UP), near(store, make.anything(), UP)) == ([], ["old"])


def test_a_third_embedder_discards_the_second(store, keep):
    """What was begun for one embedder is not mistaken for another's."""
    keep("a", vector=EAST), keep("b", vector=EAST)
    embed(store, NEW, UP, limit=1)
    third = NEW.replace(name="third")
    embed(store, third, AHEAD, limit=1)
    assert (store.count_unembedded(NEW), store.count_unembedded(third)) == (2, 1)


def test_the_same_name_with_other_dimensions_is_another_set(store, make, keep):
    """A model that now gives longer vectors is switched to like any other."""
    keep("a", vector=EAST)
    longer = OLD.replace(dimensions=3)
    embed(store, longer, UP)
    store.apply([SwitchEmbedder(identity=longer)])
    assert (store.embedder(), near(store, make.where(), UP)) == (longer, ["a"])


def test_a_switch_to_the_embedder_in_use_changes_nothing(store, make, keep):
    """Even while gaps are left; and an empty store switches at once."""
    keep("a"), keep("b", vector=EAST)
    store.apply([SwitchEmbedder(identity=OLD)])
    assert near(store, make.where(), EAST) == ["b"]
    store.apply([Delete(where=make.where()), SwitchEmbedder(identity=NEW)])
    assert store.embedder() == NEW


def test_what_is_erased_is_not_built_beside(store, make, keep):
    """An erased text is gone from the unfinished set as well."""
    keep("a", vector=EAST)
    embed(store, NEW, UP)
    store.apply([Delete(where=make.where())])
    keep("b", vector=EAST)
    assert pending(store, NEW) == ["b"]

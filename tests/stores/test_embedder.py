"""``Store.embedder``: which embedder the vectors come from; None before the first."""

import pytest

from commonplace.model.changes import AdoptEmbedder
from commonplace.model.errors import DimensionMismatch, EmbeddingModelChanged, InvalidInput
from commonplace.model.ports import EmbedderIdentity

FIRST = EmbedderIdentity(name="one", dimensions=2)


def test_there_is_none_before_the_first(store):
    """A new store knows no embedder."""
    assert store.embedder() is None


def test_the_first_one_stays(store):
    """The embedder that was adopted first is the store's, and may be named again."""
    store.apply([AdoptEmbedder(identity=FIRST)])
    store.apply([AdoptEmbedder(identity=FIRST)])
    assert store.embedder() == FIRST


def test_another_embedder_is_refused(store):
    """Vectors of two embedders are never mixed."""
    store.apply([AdoptEmbedder(identity=FIRST)])
    with pytest.raises(EmbeddingModelChanged) as caught:
        store.apply([AdoptEmbedder(identity=FIRST.replace(name="two"))])
    assert (caught.value.stored, caught.value.offered) == ("one", "two")
    assert store.embedder() == FIRST


def test_another_number_of_dimensions_is_refused(store):
    """The same name with other dimensions is another embedder."""
    store.apply([AdoptEmbedder(identity=FIRST)])
    with pytest.raises(DimensionMismatch) as caught:
        store.apply([AdoptEmbedder(identity=FIRST.replace(dimensions=3))])
    assert (caught.value.stored, caught.value.offered) == (2, 3)


def test_a_vector_needs_an_embedder(store, make):
    """A vector of unknown origin is refused, and its record with it."""
    with pytest.raises(InvalidInput):
        store.apply([make.put(vector=(1.0, 0.0))])
    assert store.census() == []


def test_adopting_and_putting_are_one_apply(store, make):
    """The first write with a vector brings its embedder along, all or nothing."""
    store.apply([AdoptEmbedder(identity=FIRST), make.put(vector=(1.0, 0.0))])
    assert len(store.nearest(make.where(), (1.0, 0.0), limit=9)) == 1


def test_asking_a_store_without_vectors_finds_nothing(store, make, keep):
    """Before the first embedder no question by vector has an answer, and none is an error."""
    keep()
    assert store.nearest(make.where(), (1.0, 0.0), limit=9) == []

"""``Delete``: erase records for good, with their versions, index, vectors and what was derived from them alone."""

from commonplace.model.changes import Delete, Outcome
from commonplace.model.queries import Order
from commonplace.model.records import Channel, Kind, Source
from commonplace.model.scopes import Scope
from stands import rows


def derived(*parents):
    """A source that names these records as parents."""
    return Source(channel=Channel.CONSOLIDATION, parents=tuple(parent.id for parent in parents))


def ids(store, where):
    """The ids of the records meant."""
    return {record.id for record in store.find(where, order=Order.ID, limit=99)}


def only(make, *records):
    """A filter that means these records, whatever their state."""
    return make.anything(ids=frozenset(record.id for record in records))


def test_what_is_erased_is_gone(store, make, keep, query):
    """No way of reading shows an erased record or an earlier version of it."""
    kept = keep("the sky is blue", tags=frozenset({"t"}), key="k")
    store.apply([make.update(kept, content="the sky is grey")])
    assert store.apply([Delete(where=make.where())]) == [Outcome(gone=(kept.id,))]
    assert store.get(kept.id) is None
    assert store.find(make.anything(versions=True), order=Order.ID, limit=9) == []
    assert store.match(make.anything(versions=True), query("sky blue grey"), limit=9) == []
    assert store.census() == []


def test_erasing_means_what_the_filter_means(store, make, keep):
    """A filter erases all that it means and nothing else, least of all another scope's."""
    episodic, other = keep("a", kind=Kind.EPISODIC), keep("b")
    foreign = keep("c", kind=Kind.EPISODIC, scope=Scope.parse("user:bob"))
    [outcome] = store.apply([Delete(where=make.where(kinds=frozenset({Kind.EPISODIC})))])
    assert outcome.gone == (episodic.id,)
    assert store.get(other.id)
    assert store.get(foreign.id)


def test_pins_do_not_protect_from_erasure(store, make, keep):
    """Pinned means exempt from eviction, not from being forgotten."""
    kept = keep(pinned=True)
    assert store.apply([Delete(where=make.where())])[0].gone == (kept.id,)


def test_what_was_derived_from_it_alone_goes_with_it(store, make, keep):
    """Derived records fall with their last parent, through every step."""
    fact = keep("fact")
    summary = keep("summary", source=derived(fact))
    digest = keep("digest", source=derived(summary), pinned=True, kind=Kind.PROCEDURAL)
    bystander = keep("bystander", source=Source(channel=Channel.USER))
    [outcome] = store.apply([Delete(where=only(make, fact))])
    assert outcome.gone == (fact.id, summary.id, digest.id)
    assert ids(store, make.anything()) == {bystander.id}


def test_what_has_another_parent_stays(store, make, keep):
    """A record that was derived from two falls only when both are gone."""
    one, two = keep("one"), keep("two")
    both = keep("both", source=derived(one, two))
    assert store.apply([Delete(where=only(make, one))])[0].gone == (one.id,)
    assert store.apply([Delete(where=only(make, two))])[0].gone == (two.id, both.id)


def test_parents_and_children_may_be_meant_together(store, make, keep):
    """Erasing a whole family at once names each member once."""
    one = keep("one")
    two = keep("two", source=derived(one))
    three = keep("three", source=derived(one, two))
    [outcome] = store.apply([Delete(where=make.where())])
    assert sorted(outcome.gone) == sorted({one.id, two.id, three.id})


def test_derived_records_of_another_scope_go_too(store, make, keep):
    """A fact that was forgotten does not live on in somebody else's summary."""
    fact = keep("fact")
    summary = keep("summary", source=derived(fact), scope=Scope.parse("user:bob"))
    assert store.apply([Delete(where=only(make, fact))])[0].gone == (fact.id, summary.id)


def test_records_that_name_each_other_fall_together(store, make, keep):
    """A circle of parents is no reason to run for ever."""
    one = keep("one")
    two = keep("two", source=derived(one))
    store.apply([make.update(one, source=derived(two))])
    assert set(store.apply([Delete(where=only(make, one))])[0].gone) == {one.id, two.id}


def test_an_erased_id_can_be_put_again(store, make, keep):
    """What comes back under its old id is a new record."""
    kept = keep("one")
    store.apply([Delete(where=make.where())])
    store.apply([make.put(kept.replace(content="two"))])
    assert [record.version for record in store.find(make.where(versions=True), order=Order.ID, limit=9)] == [1]


@rows("count", [1, 400])
def test_many_are_erased_at_once(store, make, count):
    """One change erases any number."""
    store.apply([make.put(f"text {number}") for number in range(count)])
    assert len(store.apply([Delete(where=make.where())])[0].gone) == count
    assert store.census() == []

"""``Load``: take a record over with its past, exactly as it was elsewhere; what is already as new stays."""

from datetime import timedelta

import pytest

from commonplace.model.changes import AdoptEmbedder, Archive, Load, Outcome, Restore, Supersede, Touch
from commonplace.model.errors import Conflict
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Order
from commonplace.model.records import Usage
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore

HOUR = timedelta(hours=1)


@pytest.fixture
def elsewhere(make):
    """Another store, with one record that has a past."""
    other = SqliteStore(":memory:")
    record = make("the sky is blue", occurred_at=make.clock() - HOUR, tags=frozenset({"t"}), key="k")
    other.apply([make.put(record)])
    make.clock.forward(HOUR)
    other.apply([make.update(other.get(record.id), content="the sky is grey")])
    other.apply([Archive(where=make.where(), at=make.clock.forward(HOUR))])
    other.apply([Restore(where=make.anything(), at=make.clock.forward(HOUR))])
    other.apply([Touch(ids=(record.id,), at=make.clock())])
    return other


def exported(store, make, id):
    """A record with its past, as the change that takes it over."""
    where = make.anything(ids=frozenset({id}), versions=True)
    versions = tuple(reversed(store.find(where, order=Order.ID, limit=99)))
    return Load(versions=versions, terms=tuple(tuple(version.content.split()) for version in versions))


def only(store, make):
    """The one record of a store."""
    [record] = store.find(make.anything(), order=Order.ID, limit=2)
    return record


def test_a_record_is_taken_over_with_its_past(store, make, elsewhere):
    """Every version, number, date and counter is as it was."""
    present = only(elsewhere, make)
    [outcome] = store.apply([exported(elsewhere, make, present.id)])
    everything = make.anything(versions=True)
    assert outcome == Outcome(records=(present,))
    assert store.get(present.id) == present
    assert store.find(everything, order=Order.ID, limit=9) == elsewhere.find(everything, order=Order.ID, limit=9)


def test_the_past_reads_alike_after_a_load(store, make, elsewhere, query):
    """As of every moment the copy says and finds what the original does."""
    store.apply([exported(elsewhere, make, only(elsewhere, make).id)])
    for hours in range(-2, 6):
        where = make.where(as_of=make.clock() - hours * HOUR)
        assert store.find(where, order=Order.ID, limit=9) == elsewhere.find(where, order=Order.ID, limit=9)
        for word in ("blue", "grey"):
            assert store.match(where, query(word), limit=9) == elsewhere.match(where, query(word), limit=9)


def test_loading_twice_changes_nothing_more(store, make, elsewhere):
    """What is already as new stays, and the outcome says so."""
    change = exported(elsewhere, make, only(elsewhere, make).id)
    store.apply([change])
    store.apply([Touch(ids=(change.versions[-1].id,), at=make.clock.forward())])
    [outcome] = store.apply([change])
    assert outcome == Outcome(records=(store.get(change.versions[-1].id),), deduped=True)
    assert outcome.records[0].usage.recalls == 2


def test_a_newer_one_replaces_an_older_one(store, make, elsewhere, query):
    """The copy is brought up to date, with the whole past and the greater use."""
    record = only(elsewhere, make)
    store.apply([exported(elsewhere, make, record.id)])
    for _ in range(3):
        store.apply([Touch(ids=(record.id,), at=make.clock.forward())])
    elsewhere.apply([make.update(record, content="the sky is black")])
    [outcome] = store.apply([exported(elsewhere, make, record.id)])
    assert (outcome.deduped, store.get(record.id).content, store.get(record.id).version) == (
        False,
        "the sky is black",
        5,
    )
    assert store.get(record.id).usage == Usage(recalls=4, last_recalled_at=make.clock())
    assert len(store.find(make.anything(versions=True), order=Order.ID, limit=9)) == 5
    assert store.match(make.where(), query("grey"), limit=9) == []


def test_an_older_one_does_not_replace_a_newer_one(store, make, elsewhere):
    """What is newer here stays, and nothing of its past is touched."""
    record = only(elsewhere, make)
    old = exported(elsewhere, make, record.id)
    elsewhere.apply([make.update(record, content="newest")])
    store.apply([exported(elsewhere, make, record.id), old])
    assert store.get(record.id).content == "newest"


def test_archived_and_superseded_records_stay_what_they_are(store, make):
    """A record that is closed elsewhere arrives closed, and reads alike in the past."""
    old, new = make("old"), make("new")
    elsewhere = SqliteStore(":memory:")
    elsewhere.apply([make.put(old), make.put(new)])
    moment = make.clock.forward(HOUR)
    elsewhere.apply([Supersede(id=old.id, by=new.id, at=moment, now=make.clock.forward(HOUR))])
    store.apply([exported(elsewhere, make, old.id), exported(elsewhere, make, new.id)])
    assert store.get(old.id) == elsewhere.get(old.id)
    for as_of in (moment - HOUR / 2, moment, moment + HOUR / 2):
        assert len(store.find(make.where(as_of=as_of), order=Order.ID, limit=9)) == 1 + (as_of < moment)


def test_a_taken_key_is_a_conflict(store, make, keep, elsewhere):
    """A record does not push another one out of its key, and nothing is left of the attempt."""
    holder = keep("mine", key="k")
    with pytest.raises(Conflict, match="'k'") as caught:
        store.apply([exported(elsewhere, make, only(elsewhere, make).id)])
    assert caught.value.holder == holder.id
    assert only(store, make) == holder


def test_a_record_cannot_be_loaded_into_another_scope(store, keep):
    """One id lives in one scope."""
    kept = keep()
    moved = kept.replace(scope=Scope.parse("user:bob"), version=2)
    with pytest.raises(Conflict, match="user:ada"):
        store.apply([Load(versions=(moved,), terms=(("a",),))])
    assert store.get(kept.id) == kept


def test_every_version_needs_its_terms(store, make, elsewhere):
    """A version that came without its terms would be lost to search: the load is refused, whole."""
    change = exported(elsewhere, make, only(elsewhere, make).id)
    with pytest.raises(ValueError, match="shorter"):
        store.apply([change.replace(terms=change.terms[1:])])
    assert store.census() == []


def test_a_vector_comes_along(store, make, elsewhere):
    """What is loaded with a vector is found by it, also in the past if its words were the same."""
    change = exported(elsewhere, make, only(elsewhere, make).id)
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="e", dimensions=1)), change.replace(vector=(1.0,))])
    [now] = store.nearest(make.where(), (1.0,), limit=9)
    [then] = store.nearest(make.where(as_of=make.clock() - 2 * HOUR), (1.0,), limit=9)
    assert (now.record.version, then.record.version) == (4, 2)
    assert store.nearest(make.where(as_of=make.clock() - 3 * HOUR), (1.0,), limit=9) == []

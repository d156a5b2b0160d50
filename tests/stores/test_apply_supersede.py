"""``Supersede``: close a record's validity because another one replaces it, and keep it."""

from datetime import timedelta

import pytest

from commonplace.model.changes import Archive, Outcome, Supersede
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.queries import Order, State

HOUR = timedelta(hours=1)


def texts(store, where):
    """What the records meant say."""
    return [record.content for record in store.find(where, order=Order.ID, limit=99)]


def test_a_superseded_record_is_archived_and_names_its_successor(store, make, keep):
    """The old one is kept, closed from when on the new one holds."""
    old, new = keep("old"), keep("new")
    holds, now = make.clock.forward(HOUR), make.clock.forward(HOUR)
    [outcome] = store.apply([Supersede(id=old.id, by=new.id, at=holds, now=now)])
    closed = old.replace(archived_at=holds, superseded_by=new.id, updated_at=now, version=2)
    assert outcome == Outcome(records=(closed,))
    assert (texts(store, make.where()), store.get(old.id)) == (["new"], closed)
    assert closed.state(now) is State.ARCHIVED


def test_the_past_still_holds_the_old_one(store, make, keep):
    """Before the moment the old one is read, from it on the new one."""
    start = make.clock()
    old = keep("port 80")
    change = make.clock.forward(HOUR)
    new = keep("port 443", occurred_at=change)
    store.apply([Supersede(id=old.id, by=new.id, at=change, now=make.clock.forward(HOUR))])
    assert texts(store, make.where(as_of=start)) == ["port 80"]
    assert texts(store, make.where(as_of=change - timedelta(microseconds=1))) == ["port 80"]
    assert texts(store, make.where(as_of=change)) == ["port 443"]


def test_a_change_that_is_learned_late_closes_the_old_one_when_it_happened(store, make, keep):
    """The old one ends when the new one began to hold, however late that was written."""
    old = keep("lives in Rome")
    moved, make.clock.now = make.clock.forward(HOUR), make.clock.forward(10 * HOUR)
    new = keep("lives in Oslo", occurred_at=moved)
    store.apply([Supersede(id=old.id, by=new.id, at=moved, now=make.clock())])
    assert texts(store, make.where(as_of=moved - timedelta(minutes=1))) == ["lives in Rome"]
    assert texts(store, make.where(as_of=moved + timedelta(minutes=1))) == ["lives in Oslo"]


def test_superseding_twice_is_a_conflict(store, make, keep):
    """Of two writers that replace one fact the second is told who was first."""
    old, new, late = keep("old"), keep("new"), keep("late")
    store.apply([Supersede(id=old.id, by=new.id, at=make.clock(), now=make.clock())])
    with pytest.raises(Conflict, match=new.id) as caught:
        store.apply([Supersede(id=old.id, by=late.id, at=make.clock(), now=make.clock())])
    assert (caught.value.holder, caught.value.current) == (new.id, 2)


def test_what_is_not_there_cannot_be_superseded(store, make, keep):
    """A successor of nothing is an error."""
    with pytest.raises(NotFound):
        store.apply([Supersede(id="0" * 20, by=keep().id, at=make.clock(), now=make.clock())])


def test_an_archived_record_can_be_superseded(store, make, keep):
    """What is out of recall already still learns its successor."""
    old, new = keep("old"), keep("new")
    store.apply([Archive(where=make.where(ids=frozenset({old.id})), at=make.clock.forward())])
    store.apply([Supersede(id=old.id, by=new.id, at=make.clock.forward(), now=make.clock())])
    assert store.get(old.id).superseded_by == new.id


def test_superseding_frees_the_key(store, make, keep):
    """The successor takes over the key in the same apply."""
    old = keep("old", key="port")
    new = make("new", key="port")
    store.apply([Supersede(id=old.id, by=new.id, at=make.clock(), now=make.clock()), make.put(new)])
    assert texts(store, make.where(keys=frozenset({"port"}))) == ["new"]

"""``Put``: keep a record, a new one or the next version of one."""

from datetime import timedelta

import pytest

from commonplace.model.changes import Archive, Delete, Outcome, Restore, Touch
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.queries import Order, State
from commonplace.model.records import UNUSED, Kind, Usage
from commonplace.model.scopes import Scope
from stands import rows

ARCHIVED = frozenset({State.ARCHIVED})


def texts(store, where):
    """What the records meant say, in the order in which they were made."""
    return [record.content for record in store.find(where, order=Order.ID, limit=99)]


# Versions


def test_a_new_record_is_at_version_one(store, make):
    """Whatever version a new record brings, the store counts from one."""
    [outcome] = store.apply([make.put(make(version=7))])
    assert [record.version for record in outcome.records] == [1]


def test_an_update_makes_the_next_version(store, make, keep):
    """Putting what follows on version n makes version n + 1."""
    kept = keep("one")
    for number, text in enumerate(["two", "three"], start=2):
        make.clock.forward()
        [outcome] = store.apply([make.update(store.get(kept.id), content=text)])
        assert (outcome.records[0].version, outcome.records[0].content) == (number, text)
    assert store.get(kept.id) == outcome.records[0]


def test_a_new_record_must_be_new(store, make, keep):
    """An id that is taken is a conflict that says at which version."""
    kept = keep()
    store.apply([make.update(kept, content="second")])
    with pytest.raises(Conflict, match=kept.id) as caught:
        store.apply([make.put(kept.replace(content="third"))])
    assert (caught.value.current, caught.value.holder) == (2, kept.id)


@rows("expect", [1, 3, 99])
def test_an_update_of_another_version_is_a_conflict(store, make, keep, expect):
    """Who has not seen the present version does not overwrite it, and learns which one it is."""
    kept = keep()
    store.apply([make.update(kept, content="second")])
    with pytest.raises(Conflict, match=kept.id) as caught:
        store.apply([make.put(kept.replace(content="third"), expect=expect)])
    assert caught.value.current == 2
    assert store.get(kept.id).content == "second"


def test_an_update_of_nothing_is_not_found(store, make):
    """The next version of a record that is not there cannot be."""
    with pytest.raises(NotFound):
        store.apply([make.put(make(), expect=1)])


def test_an_update_may_change_every_field(store, make, keep):
    """Kind, category, key, tags, dates and pins change with a version."""
    kept = keep("one", tags=frozenset({"a"}), key="k")
    changed = kept.replace(
        content="two", kind=Kind.EPISODIC, category="c", key="other", tags=frozenset({"b"}), pinned=True, value=1,
        metadata={"m": 1}, updated_at=make.clock.forward(), occurred_at=make.clock(), expires_at=make.clock.forward(),
    )  # fmt: skip
    store.apply([make.put(changed, expect=1)])
    assert store.get(kept.id) == changed.replace(version=2)


def test_an_update_does_not_move_a_record(store, make, keep):
    """A record stays in its scope: an update from elsewhere is a conflict."""
    kept = keep()
    with pytest.raises(Conflict, match="user:ada"):
        store.apply([make.update(kept, scope=Scope.parse("user:bob"))])
    assert store.get(kept.id) == kept


def test_usage_is_not_written_by_a_put(store, make, keep):
    """A record that was read a while ago does not turn its counters back."""
    kept = keep(usage=Usage(recalls=9))
    assert store.get(kept.id).usage == UNUSED
    store.apply([Touch(ids=(kept.id,), at=make.clock())])
    store.apply([make.update(kept, content="new")])
    assert store.get(kept.id).usage.recalls == 1


# Keys


def test_a_key_is_unique_among_live_records(store, make, keep):
    """A key that is taken is a conflict that names its holder."""
    holder = keep("one", key="k")
    with pytest.raises(Conflict, match="'k'") as caught:
        store.apply([make.put(make("two", key="k"))])
    assert (caught.value.holder, caught.value.current) == (holder.id, 1)


@pytest.mark.parametrize(
    "other", [{"kind": Kind.WORKING}, {"scope": Scope.parse("user:bob")}, {"key": "K"}, {"key": None}, {"held": True}]
)
def test_a_key_is_taken_within_its_scope_and_kind_only(store, make, keep, other):
    """Another scope, another kind, another spelling, and what waits for review do not collide."""
    keep("one", key="k")
    store.apply([make.put(make("two", **{"key": "k"} | other))])


def test_an_update_cannot_take_a_key(store, make, keep):
    """A record that changes its key to a taken one stays as it was."""
    holder, other = keep("one", key="k"), keep("two")
    with pytest.raises(Conflict, match="'k'") as caught:
        store.apply([make.update(other, key="k")])
    assert caught.value.holder == holder.id
    assert store.get(other.id) == other


def test_a_record_keeps_its_own_key(store, make, keep):
    """An update does not collide with itself."""
    kept = keep("one", key="k")
    store.apply([make.update(kept, content="two")])
    assert store.get(kept.id).key == "k"


def test_archiving_frees_the_key(store, make, keep):
    """What is out of recall holds no key, and cannot come back while another one holds it."""
    old = keep("one", key="k")
    store.apply([Archive(where=make.where(), at=make.clock.forward())])
    new = keep("two", key="k")
    with pytest.raises(Conflict, match="'k'") as caught:
        store.apply([Restore(where=make.where(states=ARCHIVED), at=make.clock())])
    assert caught.value.holder == new.id
    assert store.get(old.id).archived_at is not None


def test_erasing_frees_the_key(store, make, keep):
    """What is gone holds no key."""
    keep("one", key="k")
    store.apply([Delete(where=make.where())])
    assert keep("two", key="k").key == "k"


def test_expiry_frees_the_key(store, make, keep):
    """From the moment at which a record ends its key can be had, and it counts as archived since."""
    old = keep("one", key="k", expires_at=make.clock() + timedelta(hours=1))
    make.clock.forward(timedelta(minutes=59))
    with pytest.raises(Conflict):
        store.apply([make.put(make("two", key="k"))])
    make.clock.forward(timedelta(minutes=1))
    keep("two", key="k")
    assert store.get(old.id).archived_at == old.expires_at
    assert texts(store, make.where()) == ["two"]


def test_an_update_takes_the_key_of_an_expired_record(store, make, keep):
    """Expiry frees the key for an update as well."""
    keep("one", key="k", expires_at=make.clock() + timedelta(hours=1))
    other = keep("two")
    make.clock.forward(timedelta(hours=1))
    store.apply([make.update(other, key="k")])
    assert store.get(other.id).key == "k"


def test_releasing_a_held_record_asks_for_its_key(store, make, keep):
    """A record that leaves review takes its key only if it is free."""
    held = keep("one", key="k", held=True)
    keep("two", key="k")
    with pytest.raises(Conflict, match="'k'"):
        store.apply([make.update(held, held=False)])


# Dropping what says nothing new


def test_a_write_that_says_nothing_new_is_dropped(store, make, keep):
    """With dedupe, the live record that says the same is the answer."""
    kept = keep("the sky is blue")
    [outcome] = store.apply([make.put("the sky is blue", dedupe=True)])
    assert outcome == Outcome(records=(kept,), deduped=True)
    assert texts(store, make.where()) == ["the sky is blue"]


def test_without_dedupe_it_is_kept_twice(store, make, keep):
    """Only who asks for it gets a write dropped."""
    keep("same")
    store.apply([make.put("same")])
    assert texts(store, make.where()) == ["same", "same"]


@rows(
    "other",
    [{"content": "same!"}, {"kind": Kind.WORKING}, {"scope": Scope.parse("user:bob")}, {"value": 1}, {"key": "k"}],
)
def test_what_differs_is_kept(store, make, keep, other):
    """Another text, value, key, kind or scope says something else."""
    keep("same")
    [outcome] = store.apply([make.put(make(**{"content": "same"} | other), dedupe=True)])
    assert not outcome.deduped


@pytest.mark.parametrize("other", [{"category": "c"}, {"metadata": {"m": 1}}, {"pinned": True}, {"held": True}])
def test_what_only_looks_different_is_dropped(store, make, keep, other):
    """Where it is filed does not change what a record says."""
    kept = keep("same")
    [outcome] = store.apply([make.put(make("same", **other), dedupe=True)])
    assert (outcome.deduped, outcome.records) == (True, (kept,))


def test_a_dropped_write_leaves_its_tags(store, make, keep):
    """New tags are merged into the record that is there, as its next version; known ones change nothing."""
    kept = keep("same", tags=frozenset({"a"}))
    make.clock.forward()
    [outcome] = store.apply([make.put(make("same", tags=frozenset({"a", "b"})), dedupe=True)])
    merged = kept.replace(tags=frozenset({"a", "b"}), updated_at=make.clock(), version=2)
    assert outcome == Outcome(records=(merged,), deduped=True)
    [again] = store.apply([make.put(make("same", tags=frozenset({"b"})), dedupe=True)])
    assert again == Outcome(records=(merged,), deduped=True)


def test_only_a_live_record_drops_a_write(store, make, keep):
    """What is archived, held or expired does not stand in for a new record."""
    keep("archived")
    store.apply([Archive(where=make.where(), at=make.clock())])
    keep("held", held=True)
    keep("expired", expires_at=make.clock())
    for text in ("archived", "held", "expired"):
        [outcome] = store.apply([make.put(text, dedupe=True)])
        assert not outcome.deduped, text


def test_a_write_can_be_tried_again(store, make):
    """The very same put with dedupe, twice, keeps one record: an unknown commit can be repeated."""
    change = make.put(dedupe=True)
    first, second = store.apply([change])[0], store.apply([change])[0]
    assert (first.deduped, second.deduped) == (False, True)
    assert first.records == second.records


def test_an_updated_record_is_compared_by_its_present_words(store, make, keep):
    """What a record used to say can be said again."""
    kept = keep("old")
    store.apply([make.update(kept, content="new")])
    assert not store.apply([make.put("old", dedupe=True)])[0].deduped
    assert store.apply([make.put("new", dedupe=True)])[0].deduped

"""``Archive``, ``Restore``, ``MarkConsolidated`` and ``Touch``: what happens to a record without new words."""

from datetime import timedelta

import pytest

from commonplace.model.changes import Archive, MarkConsolidated, Outcome, Restore, Supersede, Touch
from commonplace.model.errors import NotFound
from commonplace.model.queries import Order, State
from commonplace.model.records import Kind, Usage

ARCHIVED = frozenset({State.ARCHIVED})


def found(store, where):
    """The ids of the records meant."""
    return [record.id for record in store.find(where, order=Order.ID, limit=99)]


def test_an_archived_record_is_kept_out_of_recall(store, make, keep, query):
    """Archiving takes a record out of lists and search, and keeps it."""
    kept = keep("the sky is blue")
    [outcome] = store.apply([Archive(where=make.where(), at=make.clock.forward())])
    archived = kept.replace(archived_at=make.clock(), updated_at=make.clock(), version=2)
    assert outcome == Outcome(records=(archived,))
    assert (found(store, make.where()), store.match(make.where(), query("sky"), limit=9)) == ([], [])
    assert store.find(make.where(states=ARCHIVED), order=Order.ID, limit=9) == [archived]


def test_archiving_means_what_the_filter_means(store, make, keep):
    """One change archives everything of a kind and nothing else."""
    task, other = keep("a", kind=Kind.WORKING), keep("b")
    store.apply([Archive(where=make.where(kinds=frozenset({Kind.WORKING})), at=make.clock())])
    assert (found(store, make.where()), found(store, make.where(states=ARCHIVED))) == ([other.id], [task.id])


def test_archiving_twice_changes_nothing_more(store, make, keep):
    """A record that is archived keeps the moment at which it was."""
    kept = keep()
    first = make.clock.forward()
    store.apply([Archive(where=make.where(), at=first)])
    [outcome] = store.apply([Archive(where=make.anything(), at=make.clock.forward())])
    assert outcome == Outcome()
    assert (store.get(kept.id).archived_at, store.get(kept.id).version) == (first, 2)


def test_a_restored_record_is_live_again(store, make, keep, query):
    """Restoring brings a record back into lists and search, as its next version."""
    kept = keep("the sky is blue")
    store.apply([Archive(where=make.where(), at=make.clock.forward())])
    [outcome] = store.apply([Restore(where=make.where(states=ARCHIVED), at=make.clock.forward())])
    assert outcome == Outcome(records=(kept.replace(updated_at=make.clock(), version=3),))
    assert [match.id for match in store.match(make.where(), query("sky"), limit=9)] == [kept.id]


def test_restoring_what_is_live_changes_nothing(store, make, keep):
    """Only archived records come back."""
    kept = keep()
    assert store.apply([Restore(where=make.anything(), at=make.clock.forward())]) == [Outcome()]
    assert store.get(kept.id) == kept


def test_a_restored_record_is_superseded_no_more(store, make, keep):
    """Bringing a replaced record back forgets that it was replaced."""
    old, new = keep("old"), keep("new")
    store.apply([Supersede(id=old.id, by=new.id, at=make.clock(), now=make.clock())])
    store.apply([Restore(where=make.where(states=ARCHIVED), at=make.clock())])
    assert (store.get(old.id).superseded_by, store.get(old.id).archived_at) == (None, None)


def test_a_held_record_stays_held_through_the_archive(store, make, keep):
    """Review is not skipped by archiving and restoring."""
    kept = keep(held=True)
    store.apply([Archive(where=make.anything(), at=make.clock())])
    store.apply([Restore(where=make.anything(), at=make.clock())])
    assert found(store, make.where(states=frozenset({State.HELD}))) == [kept.id]


def test_consolidated_is_a_mark_and_no_version(store, make, keep):
    """Being taken up by a consolidation changes nothing that a record says."""
    kept, other = keep("one"), keep("two")
    [outcome] = store.apply([MarkConsolidated(ids=(kept.id,), at=make.clock.forward())])
    marked = kept.replace(consolidated_at=make.clock())
    assert outcome == Outcome(records=(marked,))
    assert found(store, make.where(consolidated=True)) == [kept.id]
    assert found(store, make.where(consolidated=False)) == [other.id]
    store.apply([make.update(marked, content="one and more")])


def test_consolidating_what_is_not_there_is_an_error(store, make, keep):
    """A consolidation that took up a record which is gone meanwhile is not written."""
    kept = keep()
    with pytest.raises(NotFound):
        store.apply([MarkConsolidated(ids=(kept.id, "0" * 20), at=make.clock())])
    assert store.get(kept.id).consolidated_at is None


def test_a_touch_counts_and_changes_no_version(store, make, keep):
    """A recall is counted beside the record."""
    kept, other = keep("one"), keep("two")
    for _ in range(3):
        assert store.apply([Touch(ids=(kept.id,), at=make.clock.forward())]) == [Outcome()]
    assert store.get(kept.id) == kept.replace(usage=Usage(recalls=3, last_recalled_at=make.clock()))
    assert store.get(other.id) == other


def test_the_last_use_never_moves_back(store, make, keep):
    """A late report of an early recall counts, but the latest moment stays."""
    kept, late = keep(), make.clock.forward()
    store.apply([Touch(ids=(kept.id,), at=late), Touch(ids=(kept.id,), at=late - timedelta(days=1))])
    assert store.get(kept.id).usage == Usage(recalls=2, last_recalled_at=late)


def test_touching_what_is_gone_is_no_error(store, make, keep):
    """A recall of a record that was erased meanwhile is simply not counted."""
    kept = keep()
    store.apply([Touch(ids=("0" * 20, kept.id), at=make.clock())])
    assert store.get(kept.id).usage.recalls == 1


def test_usage_outlives_an_update(store, make, keep):
    """New words keep the counters, and history shows them too."""
    kept = keep()
    store.apply([Touch(ids=(kept.id,), at=make.clock()), make.update(kept, content="new")])
    assert {record.usage.recalls for record in store.find(make.where(versions=True), order=Order.ID, limit=9)} == {1}

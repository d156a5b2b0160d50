"""``Trim``: erase all but ``keep`` of the records meant, first in order first; pinned ones count and stay."""

from datetime import timedelta

from commonplace.model.changes import Outcome, Touch, Trim
from commonplace.model.queries import Order
from commonplace.model.records import Channel, Kind, Source
from commonplace.model.scopes import Scope


def texts(store, where):
    """What the records meant say."""
    return "".join(record.content for record in store.find(where, order=Order.ID, limit=99))


def trim(make, keep, order=Order.OLDEST, **fields):
    """The change that keeps so many."""
    return Trim(where=make.where(**fields), keep=keep, order=order)


def test_the_oldest_go_first(store, make, keep):
    """Trimming by age leaves the newest."""
    kept = {text: keep(text, created_at=make.clock.forward()) for text in "abcde"}
    [outcome] = store.apply([trim(make, 3)])
    assert outcome == Outcome(gone=(kept["a"].id, kept["b"].id))
    assert texts(store, make.anything()) == "cde"


def test_the_least_recently_used_go_first(store, make, keep):
    """Trimming by last use leaves what was recalled, and what is new."""
    kept = {text: keep(text, created_at=make.clock.forward()) for text in "abcd"}
    store.apply([Touch(ids=(kept["a"].id,), at=make.clock.forward())])
    store.apply([trim(make, 2, Order.STALEST)])
    assert texts(store, make.where()) == "ad"


def test_what_fits_stays(store, make, keep):
    """As many as may be kept are kept."""
    for text in "abc":
        keep(text)
    assert store.apply([trim(make, 3), trim(make, 99)]) == [Outcome(), Outcome()]
    assert texts(store, make.where()) == "abc"


def test_pinned_ones_count_and_stay(store, make, keep):
    """A pinned record takes a place and is never erased."""
    for text in "abcd":
        keep(text, pinned=text in "ab", created_at=make.clock.forward())
    store.apply([trim(make, 3)])
    assert texts(store, make.where()) == "abd"
    store.apply([trim(make, 1)])
    assert texts(store, make.where()) == "ab"


def test_only_what_is_meant_is_counted_and_erased(store, make, keep):
    """Other kinds, other scopes and what is out of recall neither count nor go."""
    for text in "abc":
        keep(text, kind=Kind.EPISODIC, created_at=make.clock.forward())
    keep("d")
    keep("e", kind=Kind.EPISODIC, scope=Scope.parse("user:bob"))
    keep("f", kind=Kind.EPISODIC, archived_at=make.clock())
    keep("g", kind=Kind.EPISODIC, expires_at=make.clock())
    store.apply([trim(make, 1, kinds=frozenset({Kind.EPISODIC}))])
    assert texts(store, make.anything()) == "cdfg"
    assert texts(store, make.where(Scope.parse("user:bob"))) == "e"


def test_trimming_leaves_what_was_learned(store, make, keep):
    """A fact outlives the episodes that it was derived from when they are evicted."""
    episode = keep("a", kind=Kind.EPISODIC)
    learned = keep("b", source=Source(channel=Channel.CONSOLIDATION, parents=(episode.id,)))
    [outcome] = store.apply([trim(make, 0, kinds=frozenset({Kind.EPISODIC}))])
    assert outcome.gone == (episode.id,)
    assert store.get(learned.id) == learned


def test_put_and_trim_are_one_apply(store, make):
    """A limit is kept by every write: the new one comes in, the oldest goes."""
    for text in "abcde":
        make.clock.forward(timedelta(minutes=1))
        store.apply([make.put(text), trim(make, 2)])
    assert texts(store, make.anything()) == "de"


def test_ties_go_by_id(store, make):
    """Of records of one moment those that were made first go first."""
    records = [make(text) for text in "abc"]
    store.apply([make.put(record) for record in reversed(records)])
    store.apply([trim(make, 1)])
    assert texts(store, make.where()) == "c"

"""``Store.apply``: every change, in order, in one transaction, or none of them; one outcome per change."""

import pytest

from commonplace.model.changes import (
    AdoptEmbedder,
    Archive,
    Delete,
    DropScope,
    MarkConsolidated,
    Outcome,
    PutDocument,
    PutFiles,
    Require,
    Supersede,
    Touch,
    versions_digest,
)
from commonplace.model.documents import FileState
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import DocumentFilter, Order
from commonplace.model.scopes import Scope


def test_nothing_to_do_is_done(store):
    """No changes make no outcomes."""
    assert store.apply([]) == []


def test_there_is_one_outcome_per_change_in_order(store, make):
    """Outcomes answer the changes one by one."""
    first, second = make("one"), make("two")
    outcomes = store.apply([make.put(first), Touch(ids=(first.id,), at=make.clock()), make.put(second)])
    assert [outcome.records for outcome in outcomes] == [(first.replace(version=1),), (), (second.replace(version=1),)]


def test_a_change_sees_those_before_it(store, make):
    """The second change of an apply finds what the first one made."""
    old, new = make("old"), make("new")
    close = Supersede(id=old.id, by=new.id, at=make.clock(), now=make.clock())
    store.apply([make.put(old), make.put(new), close])
    assert store.get(old.id).superseded_by == new.id


def test_what_was_read_is_required_to_be_all_there_is(store, make, keep):
    """A write that was decided upon one record is refused once there are two."""
    keep("one")
    required = Require(where=make.anything(), count=1)
    store.apply([required, make.put("two")])
    with pytest.raises(Conflict, match="there were 1 such records, and now there are 3") as caught:
        store.apply([make.put("three"), required, make.put("four")])
    assert caught.value.current == 3
    assert len(store.find(make.anything(), order=Order.ID, limit=9)) == 2


@pytest.mark.parametrize("meanwhile", ["added", "changed", "replaced"])
def test_what_was_read_is_required_to_be_unchanged(store, make, keep, meanwhile):
    """A write that was decided upon some versions is refused once there is another one, however many there are."""
    one, two = keep("one"), keep("two")
    required = Require(where=make.anything(), digest=versions_digest([(two.id, 1), (one.id, 1)]))
    assert required.digest == store.versions_digest(make.anything())
    store.apply([required, make.put(make("elsewhere", scope=Scope.parse("user:bob")))])
    if meanwhile == "changed":
        store.apply([make.update(one, content="three")])
    if meanwhile == "replaced":
        store.apply([Delete(where=make.where(ids=frozenset({one.id})))])
    if meanwhile != "changed":
        keep("three")
    with pytest.raises(Conflict, match="since they were read"):
        store.apply([required, make.put("four")])


def test_a_late_failure_undoes_everything_before_it(store, make, keep, query):
    """One change that cannot be made takes all the others of its apply with it."""
    kept, gone, doc = keep("one"), keep("two"), make.document()
    before = store.find(make.anything(), order=Order.ID, limit=9), store.census()
    changes = [
        make.put("three"),
        make.update(kept, content="four"),
        Delete(where=make.where(ids=frozenset({gone.id}))),
        MarkConsolidated(ids=(kept.id,), at=make.clock()),
        PutDocument(document=doc, **make.chunks(doc, "five")),
        PutFiles(folder="f", files=(FileState(path="p", record=kept.id, version=1, digest="d", stamp=1),)),
        AdoptEmbedder(identity=EmbedderIdentity(name="e", dimensions=2)),
        Supersede(id="0" * 20, by=kept.id, at=make.clock(), now=make.clock()),
    ]
    with pytest.raises(NotFound):
        store.apply(changes)
    assert (store.find(make.anything(), order=Order.ID, limit=9), store.census()) == before
    assert [match.id for match in store.match(make.where(chunks=True), query("one two three four five"), limit=9)] == [
        kept.id,
        gone.id,
    ]
    assert (store.documents(DocumentFilter(scopes=frozenset({make.scope})), limit=9), store.files("f")) == ([], [])
    assert store.embedder() is None


def test_a_failed_apply_leaves_a_usable_store(store, make):
    """After an error the next write is made as if nothing had been."""
    record = make()
    store.apply([make.put(record)])
    for _ in range(3):
        with pytest.raises(Conflict):
            store.apply([make.put("another"), make.put(record)])
    store.apply([make.put("and on")])
    assert len(store.find(make.where(), order=Order.ID, limit=9)) == 2


def test_what_is_no_change_undoes_it_too(store, make):
    """Whatever stops an apply halfway, nothing of it stays."""
    with pytest.raises(AssertionError, match="unreachable"):
        store.apply([make.put("one"), "nonsense"])
    assert store.census() == []


def test_outcomes_say_what_is_there_now(store, make, keep):
    """The records of an outcome are those that a reader gets, with their usage."""
    kept = keep()
    store.apply([Touch(ids=(kept.id,), at=make.clock())])
    stale = make.update(kept, content="new")
    merged = make.put(make(kept.content, tags=frozenset({"t"})), dedupe=True)
    for change in (
        merged,
        MarkConsolidated(ids=(kept.id,), at=make.clock()),
        stale.replace(expect=2),
        Archive(where=make.where(), at=make.clock.forward()),
    ):
        [outcome] = store.apply([change])
        assert outcome.records == (store.get(kept.id),), change


def test_dropping_what_is_not_there_does_nothing(store, make):
    """Changes that mean nothing that exists succeed and say so."""
    missing = make.where(ids=frozenset({"0" * 20}))
    changes = [Delete(where=missing), Archive(where=missing, at=make.clock()), DropScope(scope=make.scope)]
    assert store.apply(changes) == [Outcome()] * 3


def test_a_closed_store_opens_itself_again(file_store, make):
    """Closing gives back what is held and forbids nothing."""
    record = make()
    file_store.apply([make.put(record)])
    file_store.close()
    file_store.close()
    assert file_store.get(record.id).content == record.content
    file_store.apply([make.put("more")])

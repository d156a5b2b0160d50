"""``Store.growth``: how much was stored at some moments, a row for each scope and sort."""

from datetime import timedelta

from commonplace.model.changes import Archive, PutDocument
from commonplace.model.ports import Growth
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope

BOB = Scope.parse("user:bob")
WEEK = timedelta(weeks=1)


def grown(store, clock, *scopes, steps=3):
    return store.growth(scopes, until=clock(), step=WEEK, steps=steps)


def test_an_empty_store_has_not_grown(store, clock):
    """No row for what was never there."""
    assert grown(store, clock, BOB) == []


def test_records_count_from_when_they_were_made_until_they_were_archived(store, make, keep, clock):
    """Each moment has what was live then, also what was made or archived at that very moment."""
    keep("abc", created_at=clock() - 10 * WEEK)
    keep("de", kind=Kind.WORKING)
    clock.forward(WEEK)
    keep("f", created_at=clock())
    clock.forward(WEEK)
    store.apply([Archive(where=make.where(kinds=frozenset({Kind.WORKING})), at=clock())])
    assert grown(store, clock, make.scope) == [
        Growth(scope=make.scope, what="records", counts=(2, 3, 2), bytes=(5, 6, 4))
    ]


def test_what_came_between_two_moments_counts_at_the_later_one(store, make, keep, clock):
    """A record of Tuesday is there at the end of the week, not at its beginning."""
    clock.forward(timedelta(days=1))
    keep("a", created_at=clock())
    clock.forward(timedelta(days=6))
    assert grown(store, clock, make.scope)[0].counts == (0, 0, 1)


def test_only_the_scopes_that_are_named_are_counted_and_documents_apart(store, make, keep):
    """Documents have a row for each kind."""
    keep("a", scope=BOB)
    session = make.document()
    store.apply([PutDocument(document=session)])
    assert [(one.scope, one.what, one.counts[-1]) for one in grown(store, make.clock, make.scope)] == [
        (make.scope, session.kind, 1)
    ]

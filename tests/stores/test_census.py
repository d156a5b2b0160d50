"""``Store.census``: what is stored where, a row for each scope, kind and state."""

from datetime import timedelta

from commonplace.model.changes import Archive, PutDocument
from commonplace.model.documents import DocumentKind
from commonplace.model.ports import Tally
from commonplace.model.queries import State
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope

BOB = Scope.parse("user:bob")


def test_an_empty_store_has_an_empty_census(store):
    """Nothing is stored, nothing is counted."""
    assert store.census() == []


def test_records_are_counted_by_scope_kind_and_state(store, make, keep):
    """Each row says how many of one sort a scope holds, and how many bytes of text."""
    keep("aé")
    keep("b\0b")
    keep("c", kind=Kind.WORKING)
    keep("d", held=True)
    keep("e", scope=BOB)
    store.apply([Archive(where=make.where(kinds=frozenset({Kind.WORKING})), at=make.clock())])
    counted = {(tally.scope, tally.what, tally.state): (tally.count, tally.bytes) for tally in store.census()}
    assert counted == {
        (make.scope, Kind.SEMANTIC, State.LIVE): (2, 6),
        (make.scope, Kind.WORKING, State.ARCHIVED): (1, 1),
        (make.scope, Kind.SEMANTIC, State.HELD): (1, 1),
        (BOB, Kind.SEMANTIC, State.LIVE): (1, 1),
    }


def test_what_has_expired_is_told_apart_at_a_moment(store, make, keep):
    """Without a moment nothing has expired; at one, what has ended by then is counted as such."""
    keep("a", expires_at=make.clock())
    keep("b")
    assert [(tally.state, tally.count) for tally in store.census()] == [(State.LIVE, 2)]
    counted = {tally.state: tally.count for tally in store.census(at=make.clock())}
    assert counted == {State.LIVE: 1, State.EXPIRED: 1}


def test_documents_are_counted_with_all_their_text(store, make):
    """A document counts once, with the bytes of its own text and of its chunks."""
    session, artifact = make.document(), make.document("MEMORY.md", kind=DocumentKind.ARTIFACT, content="é" * 5)
    store.apply([PutDocument(document=session, **make.chunks(session, "abc", "de")), PutDocument(document=artifact)])
    assert store.census() == [
        Tally(scope=make.scope, what="artifact", state=State.LIVE, count=1, bytes=10),
        Tally(scope=make.scope, what="session", state=State.LIVE, count=1, bytes=5),
    ]


def test_kinds_are_kinds(store, keep):
    """What a row counts is a kind of record, not its name."""
    keep()
    assert [type(tally.what) for tally in store.census()] == [Kind]


def test_earlier_versions_are_not_counted(store, make, keep):
    """A record counts once, however often it was changed."""
    kept = keep("a")
    store.apply([make.update(kept, content="bb")])
    assert [(tally.count, tally.bytes) for tally in store.census()] == [(1, 2)]


def test_what_has_expired_is_told_apart(store, make, clock):
    """A lapsed record is counted as expired, from the moment it lapses."""
    store.apply([make.put(make("the proxy is down", expires_at=clock() + timedelta(days=1)))])
    [before] = store.census(at=clock())
    [after] = store.census(at=clock() + timedelta(days=2))
    assert (before.state, after.state) == (State.LIVE, State.EXPIRED)

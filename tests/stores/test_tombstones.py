"""``Store.tombstones`` and the changes around it; ``DeleteChunks``, ``DeleteJobs`` and ``Store.mirrored_folders``."""

from datetime import timedelta

import pytest

from commonplace.model.changes import (
    DeleteChunks,
    DeleteJobs,
    Enqueue,
    LiftTombstones,
    PutDocument,
    PutFiles,
    PutTombstones,
    RequireUnerased,
)
from commonplace.model.documents import FileState
from commonplace.model.errors import Conflict, ErasedBefore, NotFound
from commonplace.model.jobs import Job
from commonplace.model.queries import DocumentFilter
from commonplace.model.tombstones import BuriedKind, Tombstone
from commonplace.stores.sql.items import SqlItemCopier


@pytest.fixture
def bury(store, clock):
    """Leave a tombstone."""

    def bury(digest, *, erasure="e1", owner="r1", kind=BuriedKind.TEXT):
        tombstone = Tombstone(digest=digest, erasure=erasure, kind=kind, owner=owner, at=clock())
        store.apply([PutTombstones(tombstones=(tombstone,))])
        return tombstone

    return bury


def test_a_tombstone_comes_back_as_it_was_put(store, bury):
    """All of it, or those with the digests that are asked for."""
    one, other = bury("a"), bury("b", erasure="e2", kind=BuriedKind.SESSION)
    assert store.tombstones() == [one, other]
    assert store.tombstones(["b", "c"]) == [other]
    assert store.tombstones([]) == []


def test_a_tombstone_that_is_there_stays(store, bury, clock):
    """Put again later it keeps its time: that of the erasure."""
    first = bury("a")
    clock.forward(timedelta(days=1))
    bury("a")
    assert store.tombstones() == [first]


def test_a_write_that_holds_what_was_erased_is_undone(store, make, bury, clock):
    """The whole transaction, and the error names the erasure."""
    bury("a")
    with pytest.raises(ErasedBefore, match="e1") as caught:
        store.apply([make.put("one"), RequireUnerased(digests=frozenset({"x", "a"}))])
    assert (caught.value.erasures, caught.value.at) == (("e1",), clock())
    assert store.find(make.where(), order="id", limit=9) == []
    store.apply([make.put("one"), RequireUnerased(digests=frozenset({"x"}))])


def test_a_tombstone_is_lifted_by_its_digest_owner_or_erasure(store, bury):
    """Whatever a person names."""
    for digest, owner, erasure in (("a", "r1", "e1"), ("b", "r2", "e1"), ("c", "r3", "e2"), ("d", "r4", "e3")):
        bury(digest, owner=owner, erasure=erasure)
    [lifted] = store.apply([LiftTombstones(digests=frozenset({"a"}), owners=frozenset({"r2"}))])
    assert lifted.gone == ("a", "b")
    store.apply([LiftTombstones(erasures=frozenset({"e2"}))])
    assert [one.digest for one in store.tombstones()] == ["d"]


def test_tombstones_travel_with_a_store(new_store, bury, store):
    """A migration takes them along, and what only the target had goes."""
    bury("a")
    other = new_store()
    copier = SqlItemCopier(other)
    copier.write([*SqlItemCopier(store).items()], copy_source=None)
    assert other.tombstones() == store.tombstones()
    [item] = [one for one in copier.items() if one.sort == "tombstone"]
    copier.write([], gone=[item], copy_source=None)
    assert other.tombstones() == []


@pytest.fixture
def session(store, make):
    """A session of three turns."""
    document = make.document("s1")
    store.apply([PutDocument(document=document, **make.chunks(document, "one zebra", "two yaks", "three zebras"))])
    return document


def everything(make):
    """Every document."""
    return DocumentFilter(scopes=frozenset({make.scope}))


def test_chunks_are_erased_one_by_one(store, make, session, query):
    """The others keep their numbers, and no search finds what went."""
    after = session.replace(digest="d2")
    [outcome] = store.apply([DeleteChunks(document=after, seqs=frozenset({0, 2}), expect_digest="d1")])
    assert outcome.gone == ("0", "2")
    assert [(one.seq, one.text) for one in store.chunks(everything(make), limit=9)] == [(1, "two yaks")]
    assert store.documents(everything(make), limit=9)[0].digest == "d2"
    assert store.match(make.where(chunks=True), query("zebra"), limit=9) == []
    assert len(store.match(make.where(chunks=True), query("yaks"), limit=9)) == 1


def test_chunks_of_a_session_that_has_changed_are_not_erased(store, make, session):
    """Nor of one that is gone: the look that chose them was at another one."""
    with pytest.raises(Conflict):
        store.apply([DeleteChunks(document=session, seqs=frozenset({0}), expect_digest="other")])
    with pytest.raises(NotFound):
        store.apply([DeleteChunks(document=make.document("s2"), seqs=frozenset({0}), expect_digest="d1")])
    assert len(store.chunks(everything(make), limit=9)) == 3


def test_jobs_are_erased_by_their_keys(store, make, clock):
    """In one scope, whatever their kind."""
    jobs = [Job(scope=make.scope, kind="extract", key=key, watermark=1) for key in ("s1", "s2")]
    store.apply([Enqueue(job=job) for job in jobs])
    [outcome] = store.apply([DeleteJobs(scope=make.scope, keys=frozenset({"s1", "s9"}))])
    assert outcome.gone == ("extract s1",)
    assert [one.job.key for one in store.jobs([make.scope], now=clock())] == ["s2"]


def test_a_store_knows_the_folders_of_its_files(store):
    """Each once, in order."""
    state = FileState(path="a.md", record="r", version=1, digest="d", stamp=1)
    store.apply([PutFiles(folder=folder, files=(state,)) for folder in ("/two", "/one", "/two")])
    assert store.mirrored_folders() == ["/one", "/two"]

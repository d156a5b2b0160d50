"""``DropScope``: erase a scope with everything in it and below it; a scope that is made again starts empty."""

import pytest

from commonplace.model.changes import AdoptEmbedder, DropScope, Finish, Outcome, PutDocument
from commonplace.model.errors import LeaseLost
from commonplace.model.jobs import Claim, Job
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import DocumentFilter, Order
from commonplace.model.scopes import Scope
from stands import rows

RELEASE, REVIEWER = Scope.parse("pipeline:release"), Scope.parse("pipeline:release/agent:reviewer")
OTHERS = [Scope.parse(text) for text in ("pipeline:releases", "agent:reviewer", "pipeline:other/agent:reviewer")]


def test_a_dropped_scope_is_empty(store, make, keep, query):
    """Records, versions, index and vectors of the scope are gone."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="e", dimensions=1))])
    kept = keep("sky", scope=RELEASE, vector=(1.0,))
    store.apply([make.update(kept, content="sea")])
    assert store.apply([DropScope(scope=RELEASE)]) == [Outcome(gone=(kept.id,))]
    everything = make.anything(RELEASE, versions=True)
    assert store.find(everything, order=Order.ID, limit=9) == []
    assert store.match(everything, query("sky sea"), limit=9) == []
    assert store.nearest(make.anything(RELEASE), (1.0,), limit=9) == []
    assert (store.get(kept.id), store.census()) == (None, [])


def test_what_is_below_goes_too(store, keep):
    """Dropping a pipeline drops its agents, at every depth."""
    deep = Scope.of(*REVIEWER.segments, ("task", "t"))
    gone = {keep(str(scope), scope=scope).id for scope in (RELEASE, REVIEWER, deep)}
    assert set(store.apply([DropScope(scope=RELEASE)])[0].gone) == gone
    assert store.census() == []


def test_a_scope_that_was_never_written_still_has_what_is_below(store, keep):
    """An outer scope need not hold anything itself."""
    kept = keep(scope=REVIEWER)
    assert store.apply([DropScope(scope=RELEASE)])[0].gone == (kept.id,)


def test_what_is_around_and_beside_stays(store, keep):
    """Neither the parent nor a scope of similar name is touched."""
    kept = [keep(str(scope), scope=scope) for scope in (RELEASE, *OTHERS)]
    keep(scope=REVIEWER)
    store.apply([DropScope(scope=REVIEWER)])
    assert [store.get(record.id) for record in kept] == kept


def test_documents_and_chunks_go_with_their_scope(store, make, query):
    """Sessions and artifacts are part of a scope."""
    doc = make.document(scope=REVIEWER)
    store.apply([PutDocument(document=doc, **make.chunks(doc, "sky"))])
    store.apply([DropScope(scope=RELEASE)])
    assert store.documents(DocumentFilter(scopes=frozenset({REVIEWER})), limit=9) == []
    assert store.match(make.where(REVIEWER, chunks=True), query("sky"), limit=9) == []
    assert store.census() == []


def test_a_job_of_a_dropped_scope_cannot_be_finished(store, make):
    """Work on a scope that is gone writes nothing into the one that takes its place."""
    job = Job(scope=RELEASE, kind="consolidate", key="k", watermark=1)
    claim = store.claim(job, lease=make.clock.forward() - make.clock(), now=make.clock())
    assert isinstance(claim, Claim)
    store.apply([DropScope(scope=RELEASE)])
    with pytest.raises(LeaseLost):
        store.apply([make.put(make(scope=RELEASE)), Finish(claim=claim)])
    assert store.census() == []


def test_a_scope_that_is_made_again_starts_empty(store, make, keep, query):
    """A name that comes back brings nothing of what it held, not even in the scores."""
    fresh, again = RELEASE, Scope.parse("pipeline:again")
    for text in ("sky blue", "sky sea", "land"):
        keep(text, scope=fresh)
    keep("sky sky sky old", scope=again)
    store.apply([DropScope(scope=again)])
    for text in ("sky blue", "sky sea", "land"):
        keep(text, scope=again)
    ranked = [store.match(make.where(scope), query("sky sea"), limit=9) for scope in (fresh, again)]
    assert [match.score for match in ranked[0]] == [match.score for match in ranked[1]]


def test_dropping_leaves_the_scores_of_others(store, make, keep, query):
    """What happens to one scope moves nothing in another."""
    keep("sky sea")
    keep("sky")
    before = store.match(make.where(), query("sky sea"), limit=9)
    keep("sky sea", scope=RELEASE)
    store.apply([DropScope(scope=RELEASE)])
    assert store.match(make.where(), query("sky sea"), limit=9) == before


@rows("name", ["a/b", "a%2Fb", "a:b", "100%", "ünï", "x' or 1=1 --", "*", "a b"])
def test_a_scope_may_have_any_printable_name(store, make, keep, name):
    """Slashes, colons, quotes and wildcards in a name are part of the name."""
    scope = Scope.of(("project", name))
    kept, other = keep("in", scope=scope), keep("out", scope=Scope.of(("project", name + "x")))
    assert store.find(make.where(scope), order=Order.ID, limit=9) == [kept]
    store.apply([DropScope(scope=scope)])
    assert (store.get(kept.id), store.get(other.id)) == (None, other)

"""``Store.survey``: the best by words, the best by meaning, and what stands around them; ``Store.speakers``."""

import math
from datetime import timedelta

import pytest

from commonplace.model.changes import (
    AdoptEmbedder,
    AppendChunks,
    Archive,
    Delete,
    DeleteDocuments,
    PutDocument,
    Supersede,
)
from commonplace.model.errors import DimensionMismatch
from commonplace.model.ports import AROUND, EmbedderIdentity
from commonplace.model.queries import DocumentFilter, State
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope

HOUR = timedelta(hours=1)
BOB = Scope.parse("user:bob")
EAST, NORTH, WEST, NOWHERE = (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, 0.0)


@pytest.fixture
def compass(store):
    """Let vectors be kept."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="compass", dimensions=2))])


@pytest.fixture
def session(store, make):
    """Keep a session, each turn a chunk, by whom one likes."""

    def session(*texts, name="notes", scope=None, vectors=None, speakers=()):
        document = make.document(name, scope=scope or make.scope)
        parts = make.chunks(document, *texts)
        said = zip(parts["chunks"], [*speakers, *[""] * len(texts)], strict=False)
        parts["chunks"] = tuple(chunk.replace(speaker=speaker) for chunk, speaker in said)
        store.apply([PutDocument(document=document, **parts, vectors=vectors or {})])
        return document

    return session


def towards(degrees):
    """A vector of unit length."""
    return (math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))


def text(one):
    """What a candidate says."""
    return one.record.content if one.record else one.chunk.text


def seen(store, where, query, vector=None, limit=99):
    """Every candidate by what it says."""
    candidates = store.survey(where, query, vector, limit=limit).candidates
    assert len({text(one) for one in candidates}) == len(candidates)
    return {text(one): one for one in candidates}


# Words


def test_nothing_is_seen_where_nothing_is(store, make, query):
    """An empty store, a question without words and one that nothing answers give an empty survey."""
    assert store.survey(make.where(chunks=True), query("sky"), None, limit=9).candidates == ()
    store.apply([make.put("the sky")])
    for asked in ("", "sea"):
        assert store.survey(make.where(chunks=True), query(asked), None, limit=9).candidates == ()


def test_each_word_has_its_worth_in_the_order_of_the_question(store, make, keep, query, session):
    """A word that is not there is worth nothing; together the words are worth what a match scores."""
    for content in ("sky blue", "sky sky grey", "sea", "land"):
        keep(content)
    session("the sky", "the sea and sky")
    where, asked = make.where(chunks=True), query("sea sky unheard")
    found = seen(store, where, asked)
    assert [worth > 0 for worth in found["sky blue"].words] == [False, True, False]
    assert [worth > 0 for worth in found["sea"].words] == [True, False, False]
    matches = {match.id: match.score for match in store.match(where, asked, limit=99)}
    assert {one.id: sum(one.words) for one in found.values() if any(one.words)} == pytest.approx(matches)


def test_a_word_with_alternatives_is_one_word(store, make, keep, query):
    """Its ways are worth what they are worth to a match, under one number."""
    for content in ("email", "e-mail", "new york", "new jersey", "email e-mail"):
        keep(content)
    asked = query("email|e-mail new&york")
    found = seen(store, make.where(), asked)
    assert set(found) == {"email", "e-mail", "new york", "email e-mail"}
    assert all(len(one.words) == 2 for one in found.values())
    matches = {match.id: match.score for match in store.match(make.where(), asked, limit=9)}
    assert {one.id: sum(one.words) for one in found.values()} == pytest.approx(matches)


def test_a_survey_says_how_rare_each_word_is(store, make, keep, query):
    """What few have is rarer; what nobody has is rarest or unknown; all in the order of the question."""
    for content in ("common a", "common b", "common rare"):
        keep(content)
    common, rare = store.survey(make.where(), query("common rare"), None, limit=9).rarities
    assert 0 < common < rare
    assert store.survey(make.where(), query("rare common"), None, limit=9).rarities == (rare, common)


def test_the_best_by_words_are_seen_up_to_the_limit(store, make, query):
    """Fewer are the best of more."""
    store.apply([make.put("sky " * (number + 1) + "end " * (20 - number)) for number in range(20)])
    best = [match.record.content for match in store.match(make.where(), query("sky"), limit=5)]
    assert set(seen(store, make.where(), query("sky"), limit=5)) == set(best)
    assert len(seen(store, make.where(), query("sky"), limit=50)) == 20


# Meaning


@pytest.mark.usefixtures("compass")
def test_everything_that_has_a_vector_has_a_cosine(store, make, keep, query):
    """By whichever way it was found; what has none says so."""
    keep("near", vector=towards(10))
    keep("sky", vector=towards(120))
    keep("bare sky")
    keep("slant", vector=(3.0, 4.0))
    found = seen(store, make.where(), query("sky"), EAST)
    cosines = {said: one.similarity for said, one in found.items() if one.similarity is not None}
    assert cosines == pytest.approx({m.record.content: m.score for m in store.nearest(make.where(), EAST, limit=9)})
    assert cosines == pytest.approx(
        {"near": math.cos(math.radians(10)), "sky": math.cos(math.radians(120)), "slant": 0.6}, abs=1e-6
    )
    assert found["bare sky"].similarity is None
    assert seen(store, make.where(), query("sky"), (7.0, 0.0))["near"].similarity == pytest.approx(cosines["near"])


@pytest.mark.usefixtures("compass")
def test_the_best_by_meaning_are_seen_up_to_the_limit(store, make, query):
    """The nearest are there, and no more of them than were asked for."""
    store.apply([make.put(str(degrees), vector=towards(degrees)) for degrees in range(0, 180, 10)])
    found = seen(store, make.where(), query("sky"), EAST, limit=4)
    assert len(found) == 4
    assert {"0", "10"} <= set(found)


@pytest.mark.usefixtures("compass")
def test_the_nearest_is_seen_though_many_others_are_alike(store, make, query):
    """Texts that say the same have the same vector; they do not push out what is nearer, whoever came first."""
    store.apply([make.put(f"thanks {number}", vector=NORTH) for number in range(20)])
    store.apply([make.put("the answer", vector=EAST)])
    found = seen(store, make.where(), query("sky"), EAST, limit=5)
    assert "the answer" in found
    assert len(found) == 5


@pytest.mark.usefixtures("compass")
def test_both_ways_are_seen_together(store, make, query):
    """The best by words and the best by meaning are there, each up to the limit."""
    store.apply([make.put(f"sky {number}") for number in range(9)])
    store.apply([make.put(f"near {number}", vector=towards(number)) for number in range(9)])
    found = seen(store, make.where(), query("sky"), EAST, limit=3)
    assert sorted(said.split()[0] for said in found) == ["near"] * 3 + ["sky"] * 3


@pytest.mark.usefixtures("compass")
def test_a_vector_without_length_is_near_to_nothing(store, make, keep, query, session):
    """Its cosine is 0, as when the nearest are asked for; beside a neighbour it adds nothing."""
    keep("empty", vector=NOWHERE)
    session("one", "two", vectors={0: NOWHERE, 1: EAST})
    found = seen(store, make.where(chunks=True), query("sky"), EAST)
    assert (found["empty"].similarity, found["two"].together) == (0, pytest.approx(1))
    assert {one.similarity for one in seen(store, make.where(), query("sky"), NOWHERE).values()} <= {0}


@pytest.mark.usefixtures("compass")
def test_without_a_vector_only_words_are_searched(store, make, keep, query):
    """Then nothing has a cosine."""
    keep("sky", vector=EAST)
    keep("sea", vector=EAST)
    assert {said: one.similarity for said, one in seen(store, make.where(), query("sky")).items()} == {"sky": None}


def test_without_an_embedder_a_vector_is_no_matter(store, make, keep, query):
    """A store that holds no vectors has nothing to compare."""
    keep("sky")
    assert seen(store, make.where(), query("sky"), EAST)["sky"].similarity is None


@pytest.mark.usefixtures("compass")
@pytest.mark.parametrize("vector", [(1.0,), (1.0, 0.0, 0.0), ()])
def test_a_vector_of_another_length_is_refused(store, make, keep, query, vector):
    """A question may not have other dimensions than the store."""
    keep("sky", vector=EAST)
    with pytest.raises(DimensionMismatch) as caught:
        store.survey(make.where(), query("sky"), vector, limit=9)
    assert (caught.value.stored, caught.value.offered) == (2, len(vector))


# Around


def test_chunks_around_a_chunk_are_seen_with_it(store, make, query, session):
    """So many before and after it, in its own document only, with what they are worth."""
    turns = [f"turn {number}" for number in range(9)]
    turns[4] = "sky"
    session(*turns)
    session(*(f"other {number}" for number in range(9)), name="other")
    found = seen(store, make.where(chunks=True), query("sky"))
    assert set(found) == {turns[number] for number in range(4 - AROUND, 4 + AROUND + 1)}
    assert [one.words for said, one in found.items() if said != "sky"] == [(0.0,)] * (2 * AROUND)


def test_what_is_around_two_is_seen_once(store, make, query, session):
    """Neighbours that are shared, or found themselves, are not repeated."""
    session("sky one", "between", "sky two", "after")
    assert set(seen(store, make.where(chunks=True), query("sky"))) == {"sky one", "between", "sky two", "after"}


def test_what_is_around_goes_beyond_the_limit(store, make, query, session):
    """The limit is for what was found; what stands beside it comes along."""
    session("sky sky", "beside", "far", "farther", "sky and much else besides that")
    assert set(seen(store, make.where(chunks=True), query("sky"), limit=1)) == {"sky sky", "beside", "far"}


def test_without_chunks_only_records_are_seen(store, make, keep, query, session):
    """And without records only chunks."""
    keep("sky record")
    session("sky turn", "beside")
    assert set(seen(store, make.where(), query("sky"))) == {"sky record"}
    assert set(seen(store, make.where(chunks=True, records=False), query("sky"))) == {"sky turn", "beside"}
    assert set(seen(store, make.where(chunks=True), query("sky"))) == {"sky record", "sky turn", "beside"}


@pytest.mark.usefixtures("compass")
def test_a_chunk_and_the_one_before_it_are_compared_together(store, make, keep, query, session):
    """The cosine of both their vectors added; the first has none before it, nor has a record."""
    session("sky", "beside", "bare", "after", vectors={0: towards(20), 1: towards(80), 3: EAST})
    keep("sky record", vector=EAST)
    found = seen(store, make.where(chunks=True), query("sky"), EAST)
    assert found["beside"].together == pytest.approx(math.cos(math.radians(50)), abs=1e-6)
    assert [found[said].together for said in ("sky", "bare", "after", "sky record")] == [None] * 4


@pytest.mark.usefixtures("compass")
def test_opposite_neighbours_point_nowhere_together(store, make, query, session):
    """Two vectors that cancel out are near to nothing."""
    session("sky", "beside", vectors={0: EAST, 1: WEST})
    assert seen(store, make.where(chunks=True), query("sky"), EAST)["beside"].together == pytest.approx(0, abs=1e-6)


@pytest.mark.usefixtures("compass")
def test_a_document_that_has_grown_is_one_document(store, make, query, session):
    """What was appended stands around what was there before, and has its own words and vector."""
    before = session("turn 0", "sky", vectors={1: EAST})
    after = before.replace(digest="d2")
    parts = make.chunks(after, "turn 0", "sky", "turn 2", "turn 3", "turn 4")
    grown = {"chunks": parts["chunks"][2:], "terms": parts["terms"][2:], "vectors": {2: NORTH}}
    store.apply([AppendChunks(document=after, expect_digest="d1", **grown)])
    assert set(seen(store, make.where(chunks=True), query("sky"))) == {"turn 0", "sky", "turn 2", "turn 3"}
    found = seen(store, make.where(chunks=True), query("sky"), EAST)
    assert found["turn 2"].together == pytest.approx(math.cos(math.radians(45)), abs=1e-6)
    assert set(seen(store, make.where(chunks=True), query("4"))) == {"turn 2", "turn 3", "turn 4"}


def test_what_was_erased_stands_beside_nothing(store, make, query, session):
    """A document that is gone is gone from every survey."""
    session("sky", "beside")
    store.apply([DeleteDocuments(where=DocumentFilter(scopes=frozenset({make.scope})))])
    assert seen(store, make.where(chunks=True), query("sky")) == {}


# Filters


@pytest.mark.usefixtures("compass")
def test_a_filter_holds_for_both_ways(store, make, keep, query):
    """Only what is meant is seen, by words and by meaning."""
    for word in ("sky", "sea"):
        keep(f"{word} a", vector=EAST, kind=Kind.EPISODIC, category="x", tags=frozenset({"t"}), pinned=True)
        keep(f"{word} b", vector=EAST)
    fields = {"kinds": frozenset({Kind.EPISODIC}), "categories": frozenset({"x"}), "tags": frozenset({"t"})}
    for field, value in {**fields, "pinned": True}.items():
        assert set(seen(store, make.where(**{field: value}), query("sky"), EAST)) == {"sky a", "sea a"}, field


@pytest.mark.usefixtures("compass")
def test_only_the_states_that_are_meant_are_seen(store, make, keep, query):
    """Live ones unless others are asked for; each state by itself."""
    for word in ("sky", "sea"):
        gone = keep(f"{word} archived", vector=EAST)
        store.apply([Archive(where=make.where(ids=frozenset({gone.id})), at=make.clock())])
        keep(f"{word} held", held=True, vector=EAST)
        keep(f"{word} expired", expires_at=make.clock(), vector=EAST)
        keep(f"{word} live", vector=EAST)
    for state in State:
        found = seen(store, make.where(states=frozenset({state})), query("sky"), EAST)
        assert set(found) == {f"sky {state}", f"sea {state}"}
    assert set(seen(store, make.where(), query("sky"), EAST)) == {"sky live", "sea live"}


@pytest.mark.usefixtures("compass")
def test_the_past_is_seen_in_its_own_words_and_vectors(store, make, keep, query):
    """As of a moment a record says what it said, and is as near as it was."""
    written = make.clock()
    kept, replaced = keep("old sky", vector=EAST), keep("replaced", vector=EAST)
    changed = make.clock.forward(HOUR)
    store.apply([make.put(kept.replace(content="new sea", updated_at=changed), expect=1, vector=WEST)])
    store.apply([Supersede(id=replaced.id, by=kept.id, at=changed, now=changed)])
    then = seen(store, make.where(as_of=written), query("sky"), EAST)
    now = seen(store, make.where(as_of=changed), query("sky"), EAST)
    assert {said: one.similarity for said, one in then.items()} == pytest.approx({"old sky": 1, "replaced": 1})
    assert {said: (one.similarity, one.words) for said, one in now.items()} == {
        "new sea": (pytest.approx(-1), (0.0,)),
    }


@pytest.mark.usefixtures("compass")
def test_other_scopes_are_not_seen_and_move_nothing(store, make, keep, query, session):
    """Whatever is written elsewhere, and under the same names, a survey stays as it was, to the last bit."""
    keep("sky record", vector=towards(30))
    session("sky turn", "beside", vectors={0: towards(10), 1: towards(50)})
    where, asked = make.where(chunks=True), query("sky beside unheard")
    before = store.survey(where, asked, EAST, limit=3)
    store.apply([make.put(make(f"sky beside {n}", scope=BOB), vector=EAST) for n in range(50)])
    session("sky", "beside", "unheard", scope=BOB, vectors={0: EAST, 1: EAST})
    assert store.survey(where, asked, EAST, limit=3) == before
    store.apply([Delete(where=make.where(BOB))])
    assert store.survey(where, asked, EAST, limit=3) == before
    assert set(seen(store, make.where(BOB, chunks=True), query("unheard"), EAST)) == {"sky", "beside", "unheard"}


def test_several_scopes_are_one_collection(store, make, keep, query, session):
    """Over two scopes both are seen, and sessions of one name stay two."""
    keep("sky mine")
    keep("sky other", scope=BOB)
    session("sky turn", "mine too")
    session("nothing here", "nor here", scope=BOB)
    found = seen(store, make.where(make.scope, BOB, chunks=True), query("sky"))
    assert set(found) == {"sky mine", "sky other", "sky turn", "mine too"}


def test_a_survey_is_the_same_each_time(store, make, keep, query, session):
    """Asked twice it says the same, in the same order."""
    for number in range(5):
        keep(f"sky {number}")
    session("sky", "beside")
    first, second = (store.survey(make.where(chunks=True), query("sky"), None, limit=3) for _ in range(2))
    assert first == second


# Who speaks


def test_speakers_are_those_of_the_scopes(store, make, session):
    """Everybody who speaks in the sessions of these scopes, once and sorted; nobody from elsewhere."""
    session("a", "b", "c", speakers=["Cy", "Ada", "Cy"])
    session("d", name="more", speakers=["Bob"])
    session("e", scope=BOB, speakers=["Zoe"])
    assert store.speakers([make.scope]) == ["Ada", "Bob", "Cy"]
    assert store.speakers([BOB]) == ["Zoe"]
    assert store.speakers([BOB, make.scope]) == ["Ada", "Bob", "Cy", "Zoe"]
    assert store.speakers([Scope.parse("user:nobody")]) == store.speakers([]) == []


def test_nobody_in_particular_is_no_speaker(store, make, session):
    """A turn without a speaker names nobody."""
    session("a", "b", speakers=["", "Ada"])
    assert store.speakers([make.scope]) == ["Ada"]


def test_whoever_is_gone_speaks_no_more(store, make, session):
    """With the last of their turns a name is gone; a session that grows brings new ones."""
    before = session("a", speakers=["Ada"])
    after = before.replace(digest="d2")
    parts = make.chunks(after, "a", "b")
    said = tuple(chunk.replace(speaker="Bob") for chunk in parts["chunks"][1:])
    store.apply([AppendChunks(document=after, chunks=said, terms=parts["terms"][1:], expect_digest="d1")])
    assert store.speakers([make.scope]) == ["Ada", "Bob"]
    store.apply([DeleteDocuments(where=DocumentFilter(scopes=frozenset({make.scope})))])
    assert store.speakers([make.scope]) == []

"""``Store.match``: full text, best first, ties by id; BM25 over the scopes of the filter and nothing else."""

from datetime import timedelta

from commonplace.model.changes import Archive, Delete, PutDocument, Restore, Supersede
from commonplace.model.queries import State
from commonplace.model.records import Kind
from commonplace.model.scopes import Scope
from stands import rows

HOUR = timedelta(hours=1)
BOB = Scope.parse("user:bob")


def said(match):
    """What was found says."""
    return match.record.content if match.record else match.chunk.text


def found(store, where, query, limit=99):
    """What the matches say, best first."""
    return [said(match) for match in store.match(where, query, limit=limit)]


def scores(store, where, query):
    """What a reader sees of the ranking: every id, score and coverage, in order."""
    return [(match.id, match.score, match.coverage) for match in store.match(where, query, limit=999)]


# What is found


def test_any_word_makes_a_match(store, make, keep, query):
    """One term of the question is enough, none is not."""
    keep("the sky is blue")
    assert found(store, make.where(), query("green sky")) == ["the sky is blue"]
    assert found(store, make.where(), query("green grass")) == []
    assert found(store, make.where(), query("")) == []


def test_a_match_carries_the_whole_record(store, make, keep, query):
    """What is found is the record as a reader gets it."""
    kept = keep("the sky is blue", tags=frozenset({"t"}), key="k", value={"a": 1})
    [match] = store.match(make.where(), query("sky"), limit=9)
    assert (match.record, match.chunk, match.id) == (kept, None, kept.id)
    assert match.score > 0


def test_terms_are_whole(store, make, keep, query):
    """A part of a term is another term, and marks inside a term do not split it."""
    keep("see src/app.py:12 c++ @ada #42 foo_bar a-b")
    for word in ("src/app.py:12", "c++", "@ada", "#42", "foo_bar", "a-b"):
        assert len(found(store, make.where(), query(word))) == 1, word
    for word in ("src", "app.py", "c", "ada", "42", "foo", "se"):
        assert found(store, make.where(), query(word)) == [], word


@rows("term", ['"', "*", "a*", "sky*", "AND", "NEAR(", "title:", "'", "-", "^", "\0", "%", "🎉"])
def test_any_term_is_legal(store, make, keep, query, term):
    """No term means anything but itself: there is no query language underneath."""
    keep("the sky is blue")
    assert found(store, make.where(), query(term + " nothing")) == []


def test_a_word_is_found_by_any_of_its_alternatives(store, make, keep, query):
    """Of the ways in which a text can contain a word one is enough, and counts once."""
    keep("email")
    keep("e-mail")
    keep("mail")
    assert set(found(store, make.where(), query("email|e-mail"))) == {"email", "e-mail"}
    both, one = make("email e-mail"), make("email x")
    store.apply([make.put(both), make.put(one)])
    matches = {match.id: match for match in store.match(make.where(), query("email|e-mail"), limit=9)}
    assert matches[both.id].coverage == matches[one.id].coverage == 1.0


def test_of_one_alternative_every_term_must_be_there(store, make, keep, query):
    """An alternative of two terms is found where both are."""
    keep("new york")
    keep("new jersey")
    assert found(store, make.where(), query("new&york|nyc")) == ["new york"]


# Rank


def test_a_rare_word_says_more(store, make, keep, query):
    """What few texts have decides before what many have."""
    for number in range(8):
        keep(f"common n{number}")
    keep("rare x")
    assert found(store, make.where(), query("common rare"))[0] == "rare x"


def test_every_word_comes_before_some_words(store, make, keep, query):
    """A text that has all that was asked for leads, however well another one does by some of it."""
    keep("sky sky sky")
    keep("a long text that speaks of the sky and somewhere of the sea as well as of many other things")
    for number in range(5):
        keep(f"sea {number}")
    assert "sky and somewhere" in found(store, make.where(), query("sky sea"))[0]


def test_more_of_a_word_and_less_of_the_rest_is_better(store, make, keep, query):
    """A text that says the word oftener, or says less beside it, comes first."""
    keep("sky and sea and land")
    keep("sky sky sea land")
    keep("sky")
    assert found(store, make.where(), query("sky")) == ["sky", "sky sky sea land", "sky and sea and land"]


def test_coverage_is_the_share_of_the_words_by_their_rarity(store, make, keep, query):
    """All words cover 1.0; what is missing counts by its rarity, most if nobody has it."""
    keep("sky sea")
    for text in ("sky", "sea", "sky land"):
        keep(text)
    covered = {said(match): match.coverage for match in store.match(make.where(), query("sky sea"), limit=9)}
    assert covered["sky sea"] == 1.0
    assert 0 < covered["sky"] < covered["sea"] < 1
    [*_, partial] = store.match(make.where(), query("sky unheard"), limit=9)
    assert partial.coverage < 0.5


def test_ties_are_decided_by_id(store, make, query):
    """Texts that are equally good come in the order of their ids, at every limit."""
    records = [make("same words") for _ in range(9)]
    store.apply([make.put(record) for record in reversed(records)])
    for limit in (1, 4, 9):
        matches = store.match(make.where(), query("same"), limit=limit)
        assert [match.id for match in matches] == [record.id for record in records[:limit]]


def test_the_limit_takes_the_best(store, make, keep, query):
    """Fewer matches are the beginning of more."""
    for number in range(9):
        keep("sky " * number + "end")
    everything = scores(store, make.where(), query("sky end"))
    assert len(everything) == 9
    assert [match.id for match in store.match(make.where(), query("sky end"), limit=3)] == [
        name for name, _, _ in everything[:3]
    ]
    assert store.match(make.where(), query("sky"), limit=0) == []


def test_another_scope_moves_no_score(store, make, keep, query):
    """Thousands of writes elsewhere leave every score as it was, to the last bit."""
    for text in ("sky blue", "sky grey sea", "sea", "land sky sky"):
        keep(text)
    before = scores(store, make.where(), query("sky sea blue"))
    foreign = [make.put(make(f"sky sea blue grey {number % 7}", scope=BOB)) for number in range(2000)]
    store.apply(foreign)
    assert scores(store, make.where(), query("sky sea blue")) == before
    store.apply([Delete(where=make.where(BOB))])
    assert scores(store, make.where(), query("sky sea blue")) == before


def test_a_record_scores_alike_wherever_its_scope_was_numbered(store, make, query):
    """Two scopes with the same texts rank them alike, to the last bit."""
    for scope in (make.scope, BOB):
        store.apply([make.put(make(text, scope=scope)) for text in ("sky blue", "sky", "sea")])
    mine, other = (scores(store, make.where(scope), query("sky sea")) for scope in (make.scope, BOB))
    assert [values[1:] for values in mine] == [values[1:] for values in other]


def test_several_scopes_are_one_collection(store, make, keep, query):
    """Over two scopes a word is as rare as it is in both together."""
    keep("sky one")
    keep("sky two", scope=BOB)
    together = store.match(make.where(make.scope, BOB), query("sky"), limit=9)
    assert {match.record.scope for match in together} == {make.scope, BOB}
    assert together[0].score == together[1].score


def test_a_term_cannot_reach_into_another_scope(store, make, keep, query):
    """However a term is spelled, it is found in its own scope only."""
    keep("secret")
    forged = [f"{mark}{number}:secret" for number in range(40) for mark in ("", "x,", "x\n", "x\t", "'")]
    store.apply([make.put(make("forged", scope=BOB), terms=tuple(forged))])
    assert found(store, make.where(), query("secret")) == ["secret"]


# What is not there any more


def test_an_update_takes_the_old_words_out(store, make, keep, query):
    """After an update a record is found by its new words only."""
    kept = keep("the sky is blue")
    store.apply([make.update(kept, content="the sea is green")])
    assert found(store, make.where(), query("sky blue")) == []
    assert found(store, make.where(), query("sea")) == ["the sea is green"]


@rows("way", ["archived", "held", "gone", "superseded", "updated"])
def test_what_is_not_live_leaves_no_trace_in_the_scores(store, make, keep, query, way):
    """Archived, held, replaced and erased texts count for nothing: scores are as if they had never been."""
    for text in ("sky blue", "sky sea", "land"):
        keep(text)
    before = scores(store, make.where(), query("sky sea"))
    other = keep("sky sea sky sea long text here", held=way == "held")
    only = make.anything(ids=frozenset({other.id}))
    changes = {
        "archived": [Archive(where=only, at=make.clock())],
        "gone": [Delete(where=only)],
        "superseded": [Supersede(id=other.id, by=other.id, at=make.clock(), now=make.clock())],
        "updated": [make.update(other, content="unrelated"), Delete(where=only)],
    }
    store.apply(changes.get(way, []))
    assert scores(store, make.where(), query("sky sea")) == before


def test_what_comes_back_is_found_as_before(store, make, keep, query):
    """Archiving and restoring leaves every score as it was."""
    for text in ("sky blue", "sky sea", "land"):
        keep(text)
    before = scores(store, make.where(), query("sky sea"))
    store.apply([Archive(where=make.where(), at=make.clock())])
    assert scores(store, make.where(), query("sky sea")) == []
    store.apply([Restore(where=make.anything(), at=make.clock())])
    assert scores(store, make.where(), query("sky sea")) == before


def test_what_is_expired_is_not_found(store, make, keep, query):
    """Search decides expiry at the moment of the filter, as lists do."""
    keep("sky", expires_at=make.clock() + HOUR)
    assert found(store, make.where().replace(at=make.clock() + HOUR), query("sky")) == []
    assert found(store, make.where(), query("sky")) == ["sky"]


# Filters


def test_every_field_of_a_filter_holds_in_search(store, make, keep, query):
    """Search finds among the records that a list with the same filter shows."""
    a = keep("sky a", kind=Kind.EPISODIC, category="x", tags=frozenset({"t"}), pinned=True, key="k")
    b = keep("sky b")
    cases = [
        {"kinds": frozenset({Kind.EPISODIC})},
        {"categories": frozenset({"x"})},
        {"kinds": frozenset({Kind.EPISODIC}), "categories": frozenset({"x", "y"})},
        {"tags": frozenset({"t"})},
        {"pinned": True},
        {"keys": frozenset({"k"})},
        {"ids": frozenset({a.id})},
        {"prefix": a.id},
    ]
    for fields in cases:
        assert found(store, make.where(**fields), query("sky")) == ["sky a"], fields
    assert found(store, make.where(after=a.id), query("sky")) == [b.content]
    assert found(store, make.where(BOB), query("sky")) == []
    assert found(store, make.where(records=False), query("sky")) == []


def test_search_among_other_states(store, make, keep, query):
    """Archived, held and expired texts are found by who asks for them."""
    keep("sky archived")
    store.apply([Archive(where=make.where(), at=make.clock())])
    keep("sky held", held=True)
    keep("sky expired", expires_at=make.clock())
    keep("sky live")
    for state in State:
        assert found(store, make.where(states=frozenset({state})), query("sky")) == [f"sky {state}"]
    assert len(found(store, make.anything(), query("sky"))) == 4


def test_chunks_are_found_when_asked_for(store, make, keep, query):
    """With chunks, the pieces of documents are found beside records; else they count for nothing."""
    keep("sky record")
    before = scores(store, make.where(), query("sky"))
    session = make.document()
    store.apply([PutDocument(document=session, **make.chunks(session, "sky chunk", "sea chunk"))])
    assert scores(store, make.where(), query("sky")) == before
    assert set(found(store, make.where(chunks=True), query("sky"))) == {"sky record", "sky chunk"}
    [match] = store.match(make.where(chunks=True, records=False), query("sky"), limit=9)
    assert (match.chunk, match.record, match.id) == (
        make.chunks(session, "sky chunk")["chunks"][0],
        None,
        "session:notes#0",
    )


# The past


def test_the_past_is_searched_in_its_own_words(store, make, keep, query):
    """As of a moment a record is found by the words that it had then, and shown in them."""
    written = make.clock()
    kept = keep("the sky is blue")
    changed = make.clock.forward(HOUR)
    store.apply([make.update(kept, content="the sea is green")])
    assert found(store, make.where(as_of=written), query("sky")) == ["the sky is blue"]
    assert found(store, make.where(as_of=written), query("sea")) == []
    assert found(store, make.where(as_of=changed), query("sky")) == []
    assert found(store, make.where(as_of=changed), query("sea")) == ["the sea is green"]


def test_the_past_finds_what_was_archived_or_replaced_since(store, make, keep, query):
    """What was live then is found then."""
    written = make.clock()
    archived, replaced = keep("sky one"), keep("sky two")
    make.clock.forward(HOUR)
    store.apply([Archive(where=make.where(ids=frozenset({archived.id})), at=make.clock())])
    store.apply([Supersede(id=replaced.id, by=archived.id, at=make.clock(), now=make.clock())])
    assert set(found(store, make.where(as_of=written), query("sky"))) == {"sky one", "sky two"}
    assert found(store, make.where(as_of=make.clock()), query("sky")) == []


def test_the_past_finds_what_had_happened_by_then(store, make, keep, query):
    """A backdated record is found from when it happened."""
    happened = make.clock()
    make.clock.forward(HOUR)
    keep("it rained", occurred_at=happened)
    assert found(store, make.where(as_of=happened), query("rained")) == ["it rained"]
    assert found(store, make.where(as_of=happened - HOUR), query("rained")) == []


def test_earlier_versions_are_searched_when_asked_for(store, make, keep, query):
    """With every version meant, old words find the version that said them."""
    kept = keep("the sky is blue")
    store.apply([make.update(kept, content="the sea is green")])
    [match] = store.match(make.where(versions=True), query("sky"), limit=9)
    assert (match.record.content, match.record.version) == ("the sky is blue", 1)

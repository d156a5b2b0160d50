"""``Store.find``: the records meant, in order; ties by id; with ``versions`` every version, newest first."""

from datetime import timedelta
from itertools import combinations

import pytest

from commonplace.model.changes import Archive, Delete, MarkConsolidated, Restore, Touch
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import Channel, Kind, Source
from commonplace.model.scopes import Scope

HOUR = timedelta(hours=1)
NASTY = [
    "%",
    "_",
    "\\",
    "'",
    '"',
    "x' or 1=1 --",
    ";",
    "*",
    "a%",
    "[a]",
    "null",
    "",
    " ",
    "ü",
    "\u202e",
    "a,b",
    '["a"]',
]


def texts(store, where, order=Order.ID, limit=99):
    """What the records meant say."""
    return [record.content for record in store.find(where, order=order, limit=limit)]


# Order


def test_newest_and_oldest_go_by_creation(store, make, keep):
    """Lists run by the moment of creation, and an update moves nothing."""
    first, later = keep("a"), make.clock.forward()
    keep("b", created_at=later)
    make.clock.forward()
    keep("c", created_at=later - HOUR)
    store.apply([make.update(first, content="A")])
    assert texts(store, make.where(), Order.OLDEST) == ["c", "A", "b"]
    assert texts(store, make.where(), Order.NEWEST) == ["b", "A", "c"]


def test_ties_are_decided_by_id(store, make):
    """Records of one moment are always listed alike, in whatever order they were put."""
    records = [make(str(number)) for number in range(5)]
    store.apply([make.put(record) for record in (records[3], records[0], records[4], records[2], records[1])])
    assert texts(store, make.where(), Order.OLDEST) == ["0", "1", "2", "3", "4"]
    assert texts(store, make.where(), Order.NEWEST) == ["4", "3", "2", "1", "0"]
    assert texts(store, make.where(), Order.STALEST) == ["0", "1", "2", "3", "4"]


def test_stalest_goes_by_last_use_else_by_creation(store, make, keep):
    """What was never used counts from its creation; use makes fresh."""
    a, b = keep("a"), keep("b")
    keep("c", created_at=make.clock.forward())
    store.apply([Touch(ids=(a.id,), at=make.clock.forward()), Touch(ids=(b.id,), at=make.clock() - HOUR)])
    assert texts(store, make.where(), Order.STALEST) == ["b", "c", "a"]


def test_the_limit_cuts_the_list(store, make, keep):
    """No more than the limit come, the first in order."""
    for text in "abc":
        keep(text)
    assert texts(store, make.where(), limit=2) == ["a", "b"]
    assert texts(store, make.where(), limit=0) == []


# States


def test_live_is_neither_archived_nor_held_nor_expired(store, make, keep):
    """A record is in exactly one state, and a filter takes any of those it names."""
    keep("archived")
    store.apply([Archive(where=make.where(), at=make.clock())])
    keep("held", held=True)
    keep("expired", expires_at=make.clock())
    keep("live")
    for state in State:
        assert texts(store, make.where(states=frozenset({state}))) == [str(state)]
    for two in combinations(sorted(State), 2):
        assert set(texts(store, make.where(states=frozenset(two)))) == set(two)
    assert len(texts(store, make.where(states=ANY_STATE))) == 4


def test_the_states_of_a_record_are_those_of_its_value(store, make, keep):
    """The rule in SQL is the rule in Python, in every combination."""
    for archived in (None, make.clock()):
        for held in (False, True):
            for expires in (None, make.clock() - HOUR, make.clock(), make.clock() + HOUR):
                keep(archived_at=archived, held=held, expires_at=expires)
    everything = store.find(make.anything(), order=Order.ID, limit=99)
    assert len(everything) == 16
    for state in State:
        meant = store.find(make.where(states=frozenset({state})), order=Order.ID, limit=99)
        assert meant == [record for record in everything if record.state(make.clock()) is state]


def test_expiry_is_decided_at_the_moment_of_the_filter(store, make, keep):
    """A record is live until the very moment at which it ends; nobody has to sweep."""
    keep(expires_at=make.clock() + HOUR)
    assert len(texts(store, make.where().replace(at=make.clock() + HOUR - timedelta(microseconds=1)))) == 1
    assert texts(store, make.where().replace(at=make.clock() + HOUR)) == []


# Fields


@pytest.mark.parametrize(
    "case",
    [
        ("ids", "a", "a"),
        ("ids", "ab", "ab"),
        ("ids", "", ""),
        ("kinds", [Kind.EPISODIC], "a"),
        ("kinds", [Kind.SEMANTIC, Kind.WORKING], "bc"),
        ("kinds", "", ""),
        ("categories", ["x"], "a"),
        ("categories", ["x", "y", "z"], "ab"),
        ("categories", "", ""),
        ("keys", ["k1", "none"], "a"),
        ("keys", "", ""),
        ("tags", ["t"], "ab"),
        ("tags", ["t", "u"], "a"),
        ("tags", ["t", "u", "v"], ""),
        ("tags", "", "abc"),
        ("parents", "ac", "b"),
        ("parents", "b", ""),
        ("pinned", True, "a"),
        ("pinned", False, "bc"),
        ("consolidated", True, "c"),
        ("consolidated", False, "ab"),
    ],
)
def test_each_field_of_a_filter_chooses(store, make, keep, case):
    """Every field means what it says: any of its values, all of its tags, and nothing if it is empty."""
    kept = {"a": keep("a", kind=Kind.EPISODIC, category="x", key="k1", tags=frozenset("tu"), pinned=True)}
    parents = Source(channel=Channel.AGENT, parents=(kept["a"].id,))
    kept |= {"b": keep("b", category="y", key="k2", tags=frozenset("t"), source=parents), "c": keep("c")}
    store.apply([MarkConsolidated(ids=(kept["c"].id,), at=make.clock())])
    field, value, expected = case
    named = [kept[text].id for text in value] if field in ("ids", "parents") else value
    where = make.where(**{field: value if isinstance(value, bool) else frozenset(named)})
    assert "".join(texts(store, where)) == expected


def test_fields_are_met_together(store, make, keep):
    """A record must pass every field of the filter."""
    keep("a", category="x", tags=frozenset({"t"}))
    keep("b", category="x")
    keep("c", tags=frozenset({"t"}), pinned=True)
    narrow = make.where(
        categories=frozenset({"x"}), tags=frozenset({"t"}), pinned=False, kinds=frozenset({Kind.SEMANTIC})
    )
    assert texts(store, narrow) == ["a"]
    assert texts(store, narrow.replace(pinned=True)) == []


def test_metadata_chooses_by_name_value_and_sort(store, make, keep):
    """Texts, numbers and truths are told apart, nothing inside of a value counts, and no text is a pattern."""
    keep("a", metadata={"lang": "en", "n": 1, "paid": True, "we'ird": "%"})
    keep("b", metadata={"lang": "de", "n": 1.5, "paid": 1, "in": {"lang": "en"}})
    keep("c")
    cases = [
        ([("lang", "en")], "a"), ([("lang", "en"), ("n", 1)], "a"), ([("lang", "en"), ("n", 2)], ""),
        ([("n", 1.5)], "b"), ([("paid", True)], "a"), ([("paid", 1)], "b"), ([("n", "1")], ""), ([("in", "en")], ""),
        ([("we'ird", "%")], "a"), ([("lang", "%")], ""), ([], "abc"),
    ]  # fmt: skip
    for metadata, expected in cases:
        assert "".join(texts(store, make.where(metadata=tuple(metadata)))) == expected, metadata


def test_a_part_means_ids_that_have_it_anywhere(store, make, keep):
    """The end of an id, which is random, finds its record."""
    kept = keep("a")
    keep("b")
    assert texts(store, make.where(part=kept.id[-6:])) == ["a"]
    assert texts(store, make.where(part=kept.id)) == ["a"]


def test_a_prefix_means_ids_that_begin_so(store, make, keep):
    """The short form of an id finds its record, the whole id too, and no other text does."""
    kept = keep("a")
    keep("b")
    assert texts(store, make.where(prefix=kept.short)) == ["a"]
    assert texts(store, make.where(prefix=kept.id)) == ["a"]
    assert len(texts(store, make.where(prefix=kept.id[:4]))) == 2
    for text in (kept.id + "0", kept.id[1:], "%", "_", "~"):
        assert texts(store, make.where(prefix=text)) == []


def test_after_pages_through_by_id(store, make, keep):
    """Asking for what follows on the last id yields every record once."""
    kept = [keep(str(number)).id for number in range(7)]
    seen, last = [], None
    while page := store.find(make.where(after=last), order=Order.ID, limit=3):
        seen += [record.id for record in page]
        last = seen[-1]
    assert seen == kept


@pytest.mark.parametrize("text", NASTY)
def test_values_are_compared_by_value(store, make, keep, text):
    """Tags, keys and categories with wildcards, quotes or brackets find themselves and nothing else."""
    keep("plain", tags=frozenset({"a"}), key="a", category="a")
    keep("nasty", tags=frozenset({text, "b"}), key=text, category=text)
    for field in ("tags", "keys", "categories"):
        assert texts(store, make.where(**{field: frozenset({text})})) == ["nasty"], field
        assert texts(store, make.where(**{field: frozenset({"a"})})) == ["plain"], field


def test_more_ids_than_a_statement_has_places(store, make, keep):
    """A filter may name any number of ids."""
    kept = keep()
    many = frozenset(f"{number:020d}" for number in range(40_000))
    assert texts(store, make.where(ids=many | {kept.id})) == [kept.content]


# Scopes


def test_a_filter_needs_a_scope(make):
    """Nothing can be read everywhere."""
    with pytest.raises(InvalidInput):
        Filter(scopes=frozenset(), at=make.clock())


def test_scopes_are_compared_by_identity(store, make, keep):
    """A scope is neither its prefix, nor its child, nor its look-alike."""
    names = ["project:app", "project:apple", "project:App", "user:app", "project:app/agent:a", "project:app%2Fagent:a"]
    for name in names:
        keep(name, scope=Scope.parse(name))
    for name in names:
        assert texts(store, make.where(Scope.parse(name))) == [name]
    assert texts(store, make.where(Scope.parse("project:app"), Scope.parse("user:app"))) == ["project:app", "user:app"]
    assert texts(store, make.where(Scope.parse("project:%"))) == []


def test_reading_makes_no_scope(store, make):
    """A scope that nobody wrote to is empty, and stays unknown."""
    assert texts(store, make.where(Scope.parse("user:nobody"))) == []
    assert store.census() == []


# The past


def test_history_is_every_version_newest_first(store, make, keep):
    """Earlier versions are kept with their own words, dates, tags and numbers."""
    one = keep("one", tags=frozenset({"a"}))
    make.clock.forward()
    two = store.apply([make.update(one, content="two", tags=frozenset())])[0].records[0]
    make.clock.forward()
    store.apply([Archive(where=make.where(), at=make.clock())])
    make.clock.forward()
    store.apply([Restore(where=make.anything(), at=make.clock())])
    history = store.find(make.anything(versions=True, ids=frozenset({one.id})), order=Order.NEWEST, limit=9)
    assert [record.version for record in history] == [4, 3, 2, 1]
    assert history[2:] == [two, one]
    assert history[0] == store.get(one.id)


def test_every_version_is_filtered_by_what_it_was(store, make, keep):
    """Tags and states of a version are its own."""
    kept = keep("one", tags=frozenset({"old"}))
    store.apply([make.update(kept, content="two", tags=frozenset({"new"}))])
    assert texts(store, make.where(versions=True, tags=frozenset({"old"}))) == ["one"]
    assert texts(store, make.where(versions=True, tags=frozenset({"new"}))) == ["two"]


def test_every_version_remembers_its_parents(store, make, keep):
    """What a version was derived from is its own as well."""
    parent = keep("parent")
    derived = keep("one", source=Source(channel=Channel.AGENT, parents=(parent.id,)))
    store.apply([make.update(derived, content="two", source=Source(channel=Channel.USER))])
    assert texts(store, make.where(versions=True, parents=frozenset({parent.id}))) == ["one"]


def test_the_past_is_read_in_its_own_words(store, make, keep):
    """As of a moment every record says what it said then."""
    written = make.clock()
    kept = keep("the sky is blue")
    changed = make.clock.forward(HOUR)
    store.apply([make.update(kept, content="the sky is grey")])
    assert texts(store, make.where(as_of=written - timedelta(microseconds=1))) == []
    assert texts(store, make.where(as_of=written)) == ["the sky is blue"]
    assert texts(store, make.where(as_of=changed - timedelta(microseconds=1))) == ["the sky is blue"]
    assert texts(store, make.where(as_of=changed)) == ["the sky is grey"]


def test_what_was_archived_later_was_live_before(store, make, keep):
    """The past does not know what was archived, restored or expired after it."""
    start = make.clock()
    keep("a", expires_at=start + 3 * HOUR)
    archived, restored = make.clock.forward(HOUR), make.clock() + HOUR
    store.apply([Archive(where=make.where(), at=archived), Restore(where=make.anything(), at=restored)])
    seen = {moment: len(texts(store, make.where(as_of=start + moment * HOUR))) for moment in range(5)}
    assert seen == {0: 1, 1: 0, 2: 1, 3: 0, 4: 0}


def test_what_happened_earlier_was_true_earlier(store, make, keep):
    """A backdated record is part of the past from when it happened, not from when it was written."""
    happened = make.clock()
    make.clock.forward(10 * HOUR)
    keep("it rained", occurred_at=happened)
    assert texts(store, make.where(as_of=happened - HOUR)) == []
    assert texts(store, make.where(as_of=happened)) == ["it rained"]


def test_the_past_of_an_erased_record_is_erased(store, make, keep):
    """No moment shows what is gone."""
    written = make.clock()
    kept = keep("one")
    store.apply([make.update(kept, content="two")])
    store.apply([Delete(where=make.where())])
    assert texts(store, make.anything(as_of=written)) == []
    assert texts(store, make.anything(versions=True)) == []


def test_a_negative_limit_is_none(store, keep, make):
    """Whoever wants everything says so with -1."""
    kept = {keep(str(number)).id for number in range(5)}
    assert {record.id for record in store.find(make.where(), order=Order.ID, limit=-1)} == kept


# Where and when records came from


def test_a_filter_can_ask_for_the_time_of_creation_and_the_source(store, make, keep):
    """`since` is included and `until` is not; a source is a channel or the reference of one, whole."""
    start = make.clock()
    keep("old", created_at=start - HOUR)
    keep("now", created_at=start, source=Source(channel=Channel.IMPORT, ref="notes.md"))
    keep("new", created_at=start + HOUR, source=Source(channel=Channel.IMPORT, ref="other.md"))
    asked = {
        "since": (make.where(since=start), ["now", "new"]),
        "until": (make.where(until=start), ["old"]),
        "both": (make.where(since=start, until=start + HOUR), ["now"]),
        "a channel": (make.where(sources=frozenset({"import"})), ["now", "new"]),
        "a reference": (make.where(sources=frozenset({"notes.md", "gone"})), ["now"]),
        "a part of a reference": (make.where(sources=frozenset({"notes"})), []),
    }
    found = {name: texts(store, where, Order.OLDEST) for name, (where, _) in asked.items()}
    assert found == {name: expected for name, (_, expected) in asked.items()}

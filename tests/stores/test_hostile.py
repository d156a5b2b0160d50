"""Any text is only text: whatever is put or asked, it means itself and nothing else."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from commonplace.model.changes import AdoptEmbedder, Delete
from commonplace.model.errors import InvalidInput
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Order, Query, Word
from commonplace.model.records import Channel, Source
from commonplace.model.scopes import Scope

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
SQL = [
    "'",
    '"',
    "%",
    "_",
    "\\",
    "';drop table record;--",
    "x' or '1'='1",
    "\0",
    "*",
    "NEAR(a b)",
    "a AND b",
    "-a",
    "^a",
]
SQL += ["json_each", "[]", "{}", "null", "?", "?1", ":id", "@id", "$id", "/*", "0x00", "a\0b", "\u2028", "\ufeff", "İ"]

hostile = settings(max_examples=40, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def given_hostile(test):
    """Try any text, and all of those that have hurt somebody."""
    for text in SQL:
        test = example(text)(test)
    return hostile(given(TEXT)(test))


@given_hostile
def test_any_text_comes_back(store, make, text):
    """What was put in any field is read again as it was."""
    said = {"key": text, "category": text, "tags": frozenset({text}), "metadata": {text: [text]}, "value": {text: text}}
    record = make(text, source=Source(channel=Channel.USER, ref=text, parents=(text,)), **said)
    store.apply([make.put(record, terms=())])
    assert store.get(record.id) == record.replace(version=1)
    store.apply([Delete(where=make.where())])


@given_hostile
def test_any_text_chooses_by_value(store, make, text):
    """A filter finds what has this text, and not what only resembles it."""
    other = text + "x"
    for said in (text, other):
        fields = {"key": said, "category": said, "tags": frozenset({said})}
        store.apply([make.put(make(said, source=Source(channel=Channel.USER, parents=(said,)), **fields))])
    for field in ("keys", "categories", "tags", "parents"):
        found = store.find(make.where(**{field: frozenset({text})}), order=Order.ID, limit=9)
        assert [record.content for record in found] == [text], field
    store.apply([Delete(where=make.where())])


@given_hostile
def test_any_text_can_be_asked_for(store, make, text):
    """A question with any text in it is answered, and finds nothing that is not there."""
    store.apply([make.put(make("sky"))])
    asked = Query(
        text=text, words=(Word(text=text, terms=((text,), (text, "sky"))), Word(text="sky", terms=(("sky",),)))
    )
    assert [match.record.content for match in store.match(make.where(chunks=True), asked, limit=9)] == ["sky"]
    assert store.find(make.where(prefix=text + "!"), order=Order.ID, limit=9) == []
    assert store.get(text) is None
    assert store.files(text) == []
    store.apply([Delete(where=make.where())])


def test_half_a_character_is_refused(store, make):
    """A lone surrogate cannot be stored: it is bad input, and nothing of the write stays."""
    for record in (
        make("\ud800"),
        make(key="\udfff"),
        make(metadata={"a": "\ud800"}),
        make(tags=frozenset({"\udc00"})),
    ):
        with pytest.raises(InvalidInput, match="surrogate"):
            store.apply([make.put("before"), make.put(record, terms=())])
    with pytest.raises(InvalidInput, match="surrogate"):
        store.find(make.where(tags=frozenset({"\ud800"})), order=Order.ID, limit=9)
    assert store.census() == []


def test_very_many_scopes_are_searched_at_once(store, make, query, keep):
    """More than a statement of SQLite has room for values: the search finds what it finds."""
    store.apply([AdoptEmbedder(identity=EmbedderIdentity(name="e", dimensions=2))])
    keep("owls hunt", vector=(1.0, 0.0))
    where = make.where(make.scope, *(Scope.of(("task", str(number))) for number in range(33_000)))
    assert [match.record.content for match in store.match(where, query("owls"), limit=9)] == ["owls hunt"]
    assert [match.record.content for match in store.nearest(where, (1.0, 0.0), limit=9)] == ["owls hunt"]
    assert len(store.find(where, order=Order.ID, limit=9)) == store.measure(where).count == 1

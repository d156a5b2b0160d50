"""Checkouts: several folders of one scope, each of which shows the versions that its files say."""

from __future__ import annotations

from datetime import timedelta

import pytest

from commonplace.model.changes import Archive, FromCheckout, MarkConsolidated, Put, PutFiles, SetVectors
from commonplace.model.documents import HIDDEN, FileState, shown_in, shown_state
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.text.words import plan, terms

MAIN, OTHER = "/work/main", "/work/other"


@pytest.fixture
def show(store, make):
    """Write records with several versions, and see the store as a checkout does."""
    return Checkouts(store, make, make.clock())


class Checkouts:
    def __init__(self, store, make, now):
        self.store, self.make, self.now = store, make, now

    def put(self, content, *, id, version=1, at=None, **fields):
        record = self.make(content, id=id, category=fields.pop("category", "decisions"), version=version, **fields)
        change = Put(record=record, terms=tuple(terms(content)), expect=version - 1)
        made = [FromCheckout(scope=record.scope, folder=at)] if at else []
        self.store.apply([change, *made])
        return record

    def note(self, folder, record, version):
        state = FileState(path=f"decisions/{record.id}.md", record=record.id, version=version, digest="d", stamp=1)
        self.store.apply([PutFiles(folder=folder, files=(state,))])

    def shown(self, folder, *pairs):
        files = tuple(shown_state(record.id, version) for record, version in pairs)
        self.store.apply([PutFiles(folder=shown_in(folder), files=files)])

    def where(self, record, folder=MAIN, **options):
        views = frozenset({shown_in(folder)})
        return Filter(scopes=frozenset({record.scope}), at=self.now, views=views, **options)

    def found(self, record, folder=MAIN, **options):
        listed = self.store.find(self.where(record, folder, **options), order=Order.ID, limit=10)
        return [(one.content, one.version) for one in listed]

    def matched(self, record, word, folder=MAIN, **options):
        matches = self.store.match(self.where(record, folder, **options), plan(word), limit=10)
        return [(one.record.content, one.record.version) for one in matches]


A, B = "1kjmekwhbby1d6cnd627", "1kjmekwhbcy1d6cnd628"


def test_a_checkout_shows_the_version_that_its_files_say(show):
    """A search and a list see that version, and no other one of the record."""
    show.put("Deploy on Fridays", id=A)
    record = show.put("Deploy on Mondays", id=A, version=2)
    show.shown(MAIN, (record, 1))
    assert show.found(record) == [("Deploy on Fridays", 1)]
    assert show.matched(record, "deploy") == [("Deploy on Fridays", 1)]
    assert show.matched(record, "mondays") == []
    assert show.found(record, OTHER) == [("Deploy on Mondays", 2)]
    assert show.matched(record, "fridays", OTHER) == []


def test_a_record_without_a_file_there_is_hidden(show):
    """Nothing finds it in that checkout, everything in another one."""
    record, other = show.put("Deploy on Fridays", id=A), show.put("Deploy by hand", id=B)
    show.shown(MAIN, (record, HIDDEN))
    assert show.found(record) == show.matched(record, "deploy") == [(other.content, 1)]
    assert len(show.found(record, OTHER)) == len(show.matched(record, "deploy", OTHER)) == 2


def test_an_archived_record_may_be_live_on_another_branch(show):
    """The state that counts is the one of the version that is shown."""
    show.put("Deploy on Fridays", id=A)
    record = show.put("Deploy on Mondays", id=A, version=2, archived_at=show.now)
    show.shown(MAIN, (record, 1))
    assert show.matched(record, "deploy") == [("Deploy on Fridays", 1)]
    show.put("Deploy never", id=A, version=3)
    show.shown(MAIN, (record, 2))
    assert show.matched(record, "deploy") == show.found(record) == []
    assert show.found(record, states=ANY_STATE) == [("Deploy on Mondays", 2)]


def test_tags_and_nearness_are_those_of_the_version(show, store):
    """What else is asked of a record is asked of the version that is shown."""
    show.put("Deploy on Fridays", id=A, tags=frozenset({"old"}))
    record = show.put("Deploy on Mondays", id=A, version=2, tags=frozenset({"new"}))
    identity = EmbedderIdentity(name="test", dimensions=2)
    vectors = {one.ref: [1.0, 0.0] for one in store.list_unembedded(identity, limit=10)}
    store.apply([SetVectors(identity=identity, vectors=vectors)])
    show.shown(MAIN, (record, 1))
    assert show.found(record, tags=frozenset({"old"})) == [("Deploy on Fridays", 1)]
    assert show.found(record, tags=frozenset({"new"})) == show.matched(record, "deploy", tags=frozenset({"new"})) == []
    near = store.nearest(show.where(record), [1.0, 0.0], limit=5)
    assert [one.record.version for one in near] == [1]
    survey = store.survey(show.where(record), plan("deploy"), [1.0, 0.0], limit=5)
    assert [one.record.version for one in survey.candidates] == [1]


def test_a_version_that_is_gone_is_no_exception(show):
    """Rather the current version than nothing."""
    record = show.put("Deploy on Fridays", id=A)
    show.shown(MAIN, (record, 7))
    assert show.found(record) == show.matched(record, "deploy") == [("Deploy on Fridays", 1)]


def test_a_write_from_one_checkout_leaves_the_others_as_their_files_say(show, store):
    """There a new record is hidden, and a changed one is as the file says; here both are current."""
    record = show.put("Deploy on Fridays", id=A, at=OTHER)
    show.note(OTHER, record, 1)
    show.put("Deploy on Mondays", id=A, version=2, at=MAIN)
    added = show.put("Use pnpm", id=B, at=MAIN)
    assert show.found(record, OTHER) == [("Deploy on Fridays", 1)]
    assert show.found(record, MAIN) == [("Deploy on Mondays", 2), (added.content, 1)]
    show.put("Deploy on Sundays", id=A, version=3, at=OTHER)
    assert show.found(record, OTHER) == [("Deploy on Sundays", 3)]
    assert [one.version for one in store.files(shown_in(MAIN))] == [HIDDEN], "MAIN has no note of its file"


def test_what_has_no_file_is_the_same_everywhere(show, store):
    """A record of another category, and a mark, concern no checkout."""
    first = show.put("Deploy on Fridays", id=A, at=OTHER)
    record = show.put("A note", id=B, category="general", at=MAIN)
    scope = FromCheckout(scope=first.scope, folder=MAIN)
    store.apply([MarkConsolidated(ids=(A,), at=show.now), scope])
    assert show.found(record, OTHER) == [("Deploy on Fridays", 1), ("A note", 1)]


def test_a_whole_scope_may_be_archived_from_one_checkout(show, store):
    """The other one goes on until its files say so."""
    record = show.put("Deploy on Fridays", id=A, at=OTHER)
    show.note(OTHER, record, 1)
    where = Filter(scopes=frozenset({record.scope}), at=show.now)
    store.apply([
        Archive(where=where, at=show.now + timedelta(seconds=1)), FromCheckout(scope=record.scope, folder=MAIN),
    ])  # fmt: skip
    assert show.found(record, MAIN) == []
    assert show.found(record, OTHER) == [("Deploy on Fridays", 1)]

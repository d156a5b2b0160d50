"""Remembering: what is kept, what is not kept twice, what is replaced, what makes room."""

from __future__ import annotations

from datetime import timedelta

import pytest

from commonplace.model.binding import Limit
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from commonplace.model.queries import Order, State
from commonplace.model.records import Channel, Kind, Source, Trust, Usage
from stands import rows

DAY = timedelta(days=1)


def test_what_is_remembered_can_be_read_back(memory, clock, project):
    """A record holds what was said, where, by whom and when."""
    kept = memory.remember("Use pnpm, not npm", category="decisions")

    record = memory.get(kept.record.id)
    assert record == kept.record
    assert (record.content, record.category, record.kind) == ("Use pnpm, not npm", "decisions", Kind.SEMANTIC)
    assert (record.scope, record.version, record.usage) == (project, 1, Usage())
    assert (record.source, record.trust) == (Source(channel=Channel.USER), Trust.USER)
    assert record.created_at == record.updated_at == clock()


def test_every_option_is_kept(anything, clock, assistant):
    """Nothing that a caller names is lost on the way."""
    parent = anything.remember("the parent").record
    options = {
        "category": "team notes", "kind": Kind.EPISODIC, "scope": assistant, "key": "k", "value": {"a": [1, None]},
        "tags": ["x", "y"], "metadata": {"aliases": ["other name"], "team": "web"}, "ref": "ticket 7", "pinned": True,
        "held": True, "parents": [parent.id], "occurred_at": clock() - DAY, "expires_at": clock() + DAY,
    }  # fmt: skip
    record = anything.get(anything.remember("all of it", **options).record.id)

    assert (record.category, record.kind, record.scope, record.key) == ("team_notes", Kind.EPISODIC, assistant, "k")
    assert (record.value, record.tags, record.metadata) == ({"a": [1, None]}, {"x", "y"}, options["metadata"])
    assert record.source == Source(channel=Channel.USER, ref="ticket 7", parents=(parent.id,))
    assert (record.pinned, record.held) == (True, True)
    assert (record.occurred_at, record.expires_at) == (clock() - DAY, clock() + DAY)


@rows(
    "category, kind",
    [
        ("decisions", Kind.SEMANTIC),
        ("procedures", Kind.PROCEDURAL),
        ("principles", Kind.SEMANTIC),
        ("incidents", Kind.EPISODIC),
        ("preferences", Kind.SEMANTIC),
    ],
)
def test_a_category_says_the_kind(memory, category, kind):
    """Each of the five categories is a kind of memory."""
    assert memory.remember("something", category=category).record.kind is kind


def test_what_is_known_is_not_kept_twice(memory):
    """A live record that says the same is the answer."""
    first = memory.remember("Use pnpm", category="decisions")
    second = memory.remember("  Use pnpm\r\n", category="decisions")

    assert (first.deduped, second.deduped) == (False, True)
    assert second.record == first.record
    assert len(memory.list()) == 1


def test_a_write_that_is_dropped_leaves_its_tags(memory):
    """Of a write that says nothing new the new tags are kept, as a version."""
    memory.remember("Use pnpm", category="decisions", tags=["js"])
    kept = memory.remember("Use pnpm", category="decisions", tags=["build"])

    assert (kept.deduped, kept.record.version) == (True, 2)
    assert memory.get(kept.record.id).tags == {"js", "build"}


@pytest.mark.parametrize("end", ["archive", "hold", "forget"])
def test_what_is_no_longer_live_can_be_said_again(memory, end):
    """Only a live record makes a write superfluous."""
    first = memory.remember("Use pnpm", category="decisions").record
    getattr(memory, end)(first.id)
    second = memory.remember("Use pnpm", category="decisions")

    assert not second.deduped
    assert second.record.id != first.id


def test_the_same_words_elsewhere_are_another_record(memory, anything, assistant):
    """Scopes, kinds and values tell records apart."""
    kept = [
        memory.remember("be brief", category="preferences"),
        memory.remember("be brief", category="preferences", scope=assistant),
        memory.remember("be brief", category="procedures"),
        anything.remember("be brief", value=1),
    ]
    assert len({each.record.id for each in kept}) == len(kept)


def test_a_key_is_an_upsert(memory, clock):
    """The first use of a key makes a record, each further one its next version."""
    first = memory.remember("port 3000", category="decisions", key="dev port").record
    clock.forward()
    second = memory.remember("port 4000", category="decisions", key="dev port").record

    assert (second.id, second.version, second.created_at) == (first.id, 2, first.created_at)
    assert second.updated_at == clock()
    assert [past.content for past in memory.history(first.id)] == ["port 4000", "port 3000"]
    assert [hit.text for hit in memory.recall("port")] == ["port 4000"]


def test_a_key_that_says_the_same_again_changes_nothing(memory, clock):
    """An upsert without news makes no version."""
    first = memory.remember("port 3000", category="decisions", key="dev port").record
    clock.forward()
    again = memory.remember("port 3000", category="decisions", key="dev port")

    assert again.deduped
    assert again.record == first


def test_a_key_belongs_to_a_scope_and_a_kind(memory, assistant):
    """The same key elsewhere is another record's."""
    ids = {
        memory.remember("a", category="decisions", key="k").record.id,
        memory.remember("a", category="decisions", key="k", scope=assistant).record.id,
        memory.remember("a", category="procedures", key="k").record.id,
    }
    assert len(ids) == 3


def test_a_key_is_free_again_when_its_record_is_archived(memory):
    """The key of an archived record makes a new record, and the old one cannot come back while that holds it."""
    first = memory.remember("a", category="decisions", key="k").record
    memory.archive(first.id)
    second = memory.remember("b", category="decisions", key="k").record

    assert second.id != first.id
    with pytest.raises(Conflict, match="the key 'k' is taken") as caught:
        memory.restore(first.id)
    assert caught.value.holder == second.id


def test_a_key_is_free_again_when_its_record_has_expired(memory, clock):
    """Nobody has to sweep up before a key can be used anew."""
    first = memory.remember("a", category="incidents", key="k", ttl=DAY).record
    clock.forward(2 * DAY)
    second = memory.remember("b", category="incidents", key="k").record

    assert second.id != first.id
    assert memory.get(first.id).archived_at == first.expires_at


def test_a_ttl_ends_a_record(memory, clock):
    """Expiry is decided when reading: to the moment, and without a sweeper."""
    kept = memory.remember("the build is red", category="incidents", ttl=DAY).record

    assert kept.expires_at == clock() + DAY
    clock.forward(DAY - timedelta(microseconds=1))
    assert [hit.id for hit in memory.recall("build")] == [kept.id]
    clock.forward(timedelta(microseconds=1))
    assert not memory.recall("build").hits
    assert memory.get(kept.id).state(clock()) is State.EXPIRED


def test_a_value_is_rendered_if_nothing_else_is_said(anything):
    """A structured value can be found by what it says."""
    record = anything.remember(value={"port": 3000, "host": "localhost", "für": "Ä"}).record

    assert record.content == '{"für": "Ä", "host": "localhost", "port": 3000}'
    assert anything.recall("localhost")[0].record == record


def test_a_limit_evicts_the_oldest(through, clock):
    """A scope that is full makes room for what is new."""
    memory = through(limits={Kind.SEMANTIC: Limit(keep=2)})
    for content in ("one", "two", "three"):
        memory.remember(content, category="decisions")
        clock.forward()

    assert [record.content for record in memory.list()] == ["three", "two"]
    assert not memory.list(states=State)[2:]


def test_a_limit_by_use_evicts_what_was_not_used(through, clock):
    """What was recalled last stays longest."""
    memory = through(limits={Kind.SEMANTIC: Limit(keep=2, order=Order.STALEST)})
    for content in ("apples", "bananas"):
        memory.remember(content, category="decisions")
        clock.forward()
    memory.recall("apples")
    clock.forward()
    memory.remember("cherries", category="decisions")

    assert [record.content for record in memory.list()] == ["cherries", "apples"]


def test_what_is_pinned_counts_and_stays(through, clock):
    """A pin exempts from eviction, not from being counted."""
    memory = through(limits={Kind.SEMANTIC: Limit(keep=2)})
    for content in ("one", "two", "three", "four"):
        memory.remember(content, category="decisions", pinned=content == "one")
        clock.forward()

    assert [record.content for record in memory.list()] == ["four", "one"]
    assert memory.unpin(memory.list()[1].id).pinned is False
    memory.remember("five", category="decisions")
    assert [record.content for record in memory.list()] == ["five", "four"]


def test_a_limit_is_of_one_kind_in_one_scope(through, clock, assistant):
    """A full scope takes no room from another one, nor a full kind from another kind."""
    memory = through(limits={Kind.SEMANTIC: Limit(keep=1)})
    memory.remember("here", category="decisions")
    memory.remember("how", category="procedures")
    memory.remember("there", category="decisions", scope=assistant)
    clock.forward()
    memory.remember("here again", category="decisions")

    assert {record.content for record in memory.list()} == {"here again", "how", "there"}


def test_superseding_closes_the_old_record_and_keeps_it(memory, clock):
    """The old fact leaves recall, says what replaced it and from when, and can still be read."""
    old = memory.remember("We deploy on Fridays", category="decisions").record
    clock.forward(DAY)
    kept = memory.remember("We deploy on Mondays", category="decisions", supersedes=old.id)

    closed = memory.get(old.id)
    assert kept.superseded == closed
    assert (closed.superseded_by, closed.archived_at) == (kept.record.id, clock())
    assert [hit.text for hit in memory.recall("deploy")] == ["We deploy on Mondays"]
    assert [hit.text for hit in memory.recall("deploy", as_of=clock() - DAY)] == ["We deploy on Fridays"]


def test_a_fact_holds_from_when_it_became_true(memory, clock):
    """What supersedes closes the old fact as of the day on which it happened."""
    old = memory.remember("Ada leads", category="decisions", occurred_at=clock() - 9 * DAY).record
    new = memory.remember("Bo leads", category="decisions", supersedes=old.id, occurred_at=clock() - 3 * DAY)

    assert new.superseded.archived_at == clock() - 3 * DAY
    assert [hit.text for hit in memory.recall("leads", as_of=clock() - 4 * DAY)] == ["Ada leads"]
    assert [hit.text for hit in memory.recall("leads", as_of=clock() - 2 * DAY)] == ["Bo leads"]


def test_a_successor_may_take_over_the_key(memory):
    """A fact with a key can be superseded by one with the same key."""
    old = memory.remember("port 3000", category="decisions", key="port").record
    new = memory.remember("port 4000", category="decisions", key="port", supersedes=old.id).record

    assert new.id != old.id
    assert (memory.get(new.id).key, memory.get(old.id).superseded_by) == ("port", new.id)


def test_a_record_is_superseded_once(memory):
    """Whoever comes second is told, and nothing of the second write is kept."""
    old = memory.remember("one", category="decisions").record
    first = memory.remember("two", category="decisions", supersedes=old.id).record

    with pytest.raises(Conflict, match="superseded") as caught:
        memory.remember("three", category="decisions", supersedes=old.id)
    assert caught.value.holder == first.id
    assert {record.content for record in memory.list(states=State)} == {"one", "two"}


def test_nothing_is_kept_for_a_successor_of_nothing(memory):
    """Superseding what is not there keeps nothing."""
    with pytest.raises(NotFound, match="there is no record '0000'"):
        memory.remember("two", category="decisions", supersedes="0000")
    assert memory.list(states=State) == []


def test_what_is_held_replaces_nothing_yet(memory):
    """A record that waits for a person closes no other one meanwhile."""
    old = memory.remember("We deploy on Fridays", category="decisions").record
    kept = memory.remember("We deploy on Mondays", category="decisions", supersedes=old.id, held=True)

    assert kept.record.held
    assert "held for review" in kept.notes[0]
    assert [hit.id for hit in memory.recall("deploy")] == [old.id]


def test_a_kind_that_is_off_takes_nothing(through, project):
    """A binding without a scope for a kind has that kind switched off."""
    memory = through(writes={Kind.SEMANTIC: project})

    with pytest.raises(Forbidden, match="episodic memory is not enabled here"):
        memory.remember("it crashed", category="incidents")


def test_a_parent_must_be_there(memory):
    """Nobody derives a record from what they cannot see."""
    with pytest.raises(NotFound):
        memory.remember("derived", category="decisions", parents=["0123"])


def test_parents_are_kept_by_their_whole_id(memory):
    """A parent may be named by the beginning of its id, as everywhere."""
    parent = memory.remember("the parent", category="incidents").record
    child = memory.remember("the child", category="decisions", parents=[parent.short]).record

    assert child.source.parents == (parent.id,)


def test_a_memory_is_a_context(memory, store):
    """Leaving it gives the store back; a store opens itself again when it is used."""
    with memory as same:
        kept = same.remember("here", category="decisions").record
    if getattr(store, "path", "") != ":memory:":
        assert memory.get(kept.id) == kept


def test_a_secret_is_reported_also_when_the_write_is_dropped(memory):
    """Whoever says a secret twice is told twice."""
    said = {"content": "the password is hunter2secretX", "category": "decisions", "key": "login"}
    first, second = memory.remember(**said), memory.remember(**said)

    assert second.deduped
    assert [finding.kind for finding in second.redactions] == [finding.kind for finding in first.redactions] != []


def test_a_refused_write_keeps_nothing(memory):
    """Admission comes before everything."""
    with pytest.raises(InvalidInput):
        memory.remember("x", category="nonsense")
    assert memory.list(states=State) == []

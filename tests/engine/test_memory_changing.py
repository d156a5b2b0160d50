"""Changing what is remembered: updates, categories, archives, holds, and forgetting for good."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from commonplace.engine.transcripts import Turn
from commonplace.model.changes import MarkConsolidated
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from commonplace.model.queries import DocumentFilter, State
from commonplace.model.records import Channel, Kind
from stands import rows

DAY = timedelta(days=1)
SESSION = DocumentKind.SESSION
WRITERS = 4


def test_an_update_keeps_what_is_not_named(anything, clock):
    """Only what is named changes."""
    options = {"category": "notes", "key": "k", "value": {"a": 1}, "tags": ["x"], "metadata": {"aliases": ["b"]}}
    moments = {"occurred_at": clock() - DAY, "expires_at": clock() + DAY}
    before = anything.remember("one", pinned=True, ref="r", **options, **moments).record
    clock.forward()
    after = anything.update(before.id, tags=["y"]).record

    assert after == before.replace(tags=frozenset({"y"}), version=2, updated_at=clock())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("content", "two"),
        ("tags", frozenset({"y"})),
        ("metadata", {"aliases": ["c"]}),
        ("value", [1, 2]),
        ("occurred_at", None),
        ("expires_at", None),
        ("pinned", True),
        ("held", True),
        ("category", "other"),
    ],
)
def test_each_field_can_be_updated(anything, clock, field, value):
    """What is named is as it was named, now and when it is read again."""
    before = anything.remember("one", expires_at=clock() + DAY, occurred_at=clock()).record
    kept = anything.update(before.id, **{field: value})

    assert getattr(kept.record, field) == value
    assert anything.get(before.id) == kept.record
    assert kept.record.version == 2


def test_old_words_are_not_found_any_more(memory):
    """After an update the record is found by its new words alone."""
    record = memory.remember("Use yarn", category="decisions").record
    memory.update(record.id, content="Use pnpm")

    assert not memory.recall("yarn").hits
    assert memory.recall("pnpm")[0].record.version == 2


def test_an_update_that_changes_nothing_makes_no_version(memory, clock):
    """Saying what is so already is no edit."""
    record = memory.remember("Use pnpm", category="decisions", tags=["js"]).record
    clock.forward()
    kept = memory.update(record.id, content=" Use pnpm ", tags=["js"], category="decisions")

    assert kept.deduped
    assert memory.get(record.id) == record


def test_a_conditional_update_names_the_version_that_is_there(memory):
    """Whoever expects another version is told which one there is, and changes nothing."""
    record = memory.remember("one", category="decisions").record
    memory.update(record.id, content="two", expect=1)

    with pytest.raises(Conflict, match="is at version 2, not 1") as caught:
        memory.update(record.id, content="three", expect=1)
    assert (caught.value.current, caught.value.holder) == (2, record.id)
    assert memory.get(record.id).content == "two"


def test_a_conditional_update_holds_even_if_there_is_nothing_to_change(memory):
    """A wrong expectation is a conflict, also when the words happen to be the same."""
    record = memory.remember("one", category="decisions").record
    memory.update(record.id, content="two")

    with pytest.raises(Conflict):
        memory.update(record.id, content="two", expect=1)


def test_writers_without_an_expectation_all_get_through(through, file_store):
    """Under real contention an update is made on whatever version is there by then; none is lost."""
    memory = through(over=file_store)
    record = memory.remember("start", category="decisions").record
    failures = []

    def write(name):
        for number in range(5):
            try:
                memory.update(record.id, content=f"{name}{number}")
            except Conflict as error:
                failures.append(error)

    threads = [threading.Thread(target=write, args=(f"w{n}-",)) for n in range(WRITERS)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    said = [past.content for past in memory.history(record.id)]
    assert len(said) == len(set(said)) == 1 + 5 * WRITERS - len(failures)
    assert len(failures) < WRITERS


def test_writers_of_one_key_make_one_record(through, file_store):
    """Everybody who uses a key at once ends up with versions of one record."""
    memory = through(over=file_store)
    kept = []
    threads = [
        threading.Thread(target=lambda n=n: kept.append(memory.remember(f"says {n}", category="decisions", key="k")))
        for n in range(WRITERS)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert len({each.record.id for each in kept}) == 1
    assert sorted(each.record.version for each in kept) == [1, 2, 3, 4]


def test_reclassifying_keeps_the_id_and_changes_the_kind(memory):
    """A record moves to another category and is found there, and only there."""
    record = memory.remember("Run the tests first", category="decisions").record
    after = memory.reclassify(record.id, "procedures").record

    assert (after.id, after.category, after.kind, after.version) == (record.id, "procedures", Kind.PROCEDURAL, 2)
    assert [hit.id for hit in memory.recall("tests", categories=["procedures"])] == [record.id]
    assert not memory.recall("tests", categories=["decisions"]).hits


def test_reclassifying_to_nowhere_lists_the_categories(memory):
    """A category that does not exist is answered with those that do."""
    record = memory.remember("one", category="decisions").record

    with pytest.raises(InvalidInput, match="decisions, procedures, principles, incidents, preferences"):
        memory.reclassify(record.id, "opinions")


def test_what_expires_cannot_become_permanent_by_the_way(memory):
    """A temporary incident is made a decision only by whoever takes its expiry away."""
    record = memory.remember("one", category="incidents", ttl=DAY).record

    with pytest.raises(InvalidInput, match="decisions are permanent; only incidents can expire"):
        memory.reclassify(record.id, "decisions")
    assert memory.update(record.id, category="decisions", expires_at=None).record.expires_at is None


def test_a_new_value_is_a_new_rendering(anything):
    """Content that is the rendering of a value follows the value."""
    record = anything.remember(value={"port": 3000}).record
    after = anything.update(record.id, value={"port": 4000}).record

    assert after.content == '{"port": 4000}'
    assert not anything.recall("3000").hits
    assert anything.update(record.id, value=None).record.content == '{"port": 4000}'


def test_words_beside_a_value_stay(anything):
    """Content that somebody wrote is not overwritten by a new value."""
    record = anything.remember("the dev port", value=3000).record

    assert anything.update(record.id, value=4000).record.content == "the dev port"


def test_an_archived_record_is_kept_out_of_recall(memory, clock):
    """Archiving takes a record out of recall and lists, and keeps it to be read and restored."""
    record = memory.remember("Use pnpm", category="decisions").record
    clock.forward()
    archived = memory.archive(record.id)

    assert (archived.archived_at, archived.version) == (clock(), 2)
    assert not memory.recall("pnpm").hits
    assert memory.list() == []
    assert memory.get(record.id) == archived == memory.list(states=[State.ARCHIVED])[0]
    assert memory.restore(record.id).archived_at is None
    assert memory.recall("pnpm")[0].id == record.id


def test_archiving_twice_is_archiving_once(memory):
    """What is archived already stays as it is."""
    record = memory.remember("Use pnpm", category="decisions").record

    assert memory.archive(record.id) == memory.archive(record.id)
    assert memory.restore(record.id) == memory.restore(record.id)


def test_a_superseded_record_can_be_brought_back(memory):
    """Restoring it undoes its replacement; the other one stays as well."""
    old = memory.remember("Fridays", category="decisions").record
    memory.remember("Mondays", category="decisions", supersedes=old.id)
    restored = memory.restore(old.id)

    assert (restored.archived_at, restored.superseded_by) == (None, None)
    assert {record.content for record in memory.list()} == {"Fridays", "Mondays"}


def test_an_earlier_version_comes_back_as_a_new_one(memory, clock):
    """Restoring a version loses nothing of the history."""
    record = memory.remember("one", category="decisions", tags=["x"]).record
    memory.update(record.id, content="two", tags=[])
    memory.archive(record.id)
    clock.forward()
    back = memory.restore(record.id, version=1)

    assert (back.content, back.tags, back.version, back.archived_at) == ("one", {"x"}, 4, None)
    assert [past.version for past in memory.history(record.id)] == [4, 3, 2, 1]
    assert memory.recall("one", count=False)[0].record == memory.get(record.id) == back


def test_a_version_that_never_was_cannot_come_back(memory):
    """The answer names the record and the version."""
    record = memory.remember("one", category="decisions").record

    with pytest.raises(NotFound, match=f"record '{record.id}' has no version 7"):
        memory.restore(record.id, version=7)


def test_a_held_record_waits(memory, clock):
    """What is held is neither recalled nor listed until it is released."""
    record = memory.remember("Use pnpm", category="decisions").record

    assert memory.hold(record.id).state(clock()) is State.HELD
    assert not memory.recall("pnpm").hits
    assert [held.id for held in memory.list(states=[State.HELD])] == [record.id]
    assert memory.release(record.id).state(clock()) is State.LIVE
    assert memory.recall("pnpm")[0].id == record.id


@pytest.mark.parametrize("way", [lambda m, r: m.release(r.id), lambda m, r: m.restore(r.id, version=1)])
def test_only_a_person_releases_what_waits_for_a_person(memory, through, way):
    """An agent cannot approve what is held for review, by whatever verb."""
    record = memory.remember("Use pnpm", category="decisions").record
    memory.hold(record.id)

    with pytest.raises(Forbidden, match="a person"):
        way(through(Channel.AGENT), record)
    assert memory.get(record.id).held


def test_an_agent_may_bring_back_a_version_of_its_own(memory, through):
    """Only a release, and what a person wrote, needs a person."""
    agent = through(Channel.AGENT)
    own = agent.remember("one", category="decisions").record
    agent.update(own.id, content="two")
    record = memory.remember("a person's", category="decisions").record

    assert agent.restore(own.id, version=1).content == "one"
    with pytest.raises(Forbidden, match="is a person's"):
        agent.restore(record.id, version=1)


def test_new_words_have_to_be_consolidated_anew(memory, store, clock):
    """What a consolidation took up is marked until the words change."""
    record = memory.remember("one", category="incidents").record
    store.apply([MarkConsolidated(ids=(record.id,), at=clock())])

    assert memory.update(record.id, tags=["x"]).record.consolidated_at == clock()
    assert memory.update(record.id, content="two").record.consolidated_at is None


def test_a_pin_is_a_version_like_any_other(memory):
    """Pinning and unpinning are edits."""
    record = memory.remember("Use pnpm", category="decisions").record

    assert (memory.pin(record.id).pinned, memory.unpin(record.id).pinned) == (True, False)
    assert memory.get(record.id).version == 3


def test_forgetting_is_for_good(memory):
    """The record, its versions and its words are gone."""
    record = memory.remember("Use yarn", category="decisions").record
    memory.update(record.id, content="Use pnpm")
    forgotten = memory.forget(record.short)

    assert (forgotten.ids, forgotten.pending) == ((record.id,), False)
    assert not memory.recall("yarn pnpm").hits
    for verb in (memory.get, memory.history, memory.forget, memory.restore):
        with pytest.raises(NotFound):
            verb(record.id)


def test_what_was_derived_from_it_alone_is_forgotten_with_it(memory):
    """Forgetting follows provenance, down to the last descendant."""
    parent = memory.remember("parent", category="incidents").record
    child = memory.remember("child", category="decisions", parents=[parent.id]).record
    grandchild = memory.remember("grandchild", category="decisions", parents=[child.id]).record

    assert memory.forget(parent.id).ids == (parent.id, child.id, grandchild.id)
    assert memory.list(states=State) == []


def test_what_has_another_parent_stays(memory):
    """A record that something else speaks for is not forgotten."""
    one = memory.remember("one", category="incidents").record
    two = memory.remember("two", category="incidents").record
    child = memory.remember("child", category="decisions", parents=[one.id, two.id]).record

    assert memory.forget(one.id).ids == (one.id,)
    assert memory.get(child.id) == child
    assert memory.forget(two.id).ids == (two.id, child.id)


def test_clearing_a_scope_leaves_the_other(memory, project, assistant, store):
    """Everything in the scope goes, whatever its state, its sessions too; nothing else does."""
    kept = memory.remember("mine", category="preferences", scope=assistant).record
    gone = [memory.remember(content, category="decisions").record for content in ("one", "two")]
    memory.archive(gone[0].id)
    memory.index(SESSION, "s1", [Turn(ref="1", text="two words")])

    assert set(memory.clear(project).ids) == {record.id for record in gone}
    assert memory.list(states=State) == [kept]
    assert store.documents(DocumentFilter(scopes=frozenset({project})), limit=10) == []
    assert not memory.recall("two words").hits


def test_the_history_has_every_version_newest_first(memory, clock):
    """Each edit is there, with its time."""
    record = memory.remember("v1", category="decisions").record
    for number in (2, 3):
        clock.forward(DAY)
        memory.update(record.id, content=f"v{number}")

    history = memory.history(record.id)
    assert [(past.version, past.content) for past in history] == [(3, "v3"), (2, "v2"), (1, "v1")]
    assert history[0].updated_at - history[2].updated_at == 2 * DAY


VERBS = {
    "update": lambda memory, record: memory.update(record.id, content="changed"),
    "reclassify": lambda memory, record: memory.reclassify(record.id, "principles"),
    "archive": lambda memory, record: memory.archive(record.id),
    "restore": lambda memory, record: memory.restore(record.id),
    "forget": lambda memory, record: memory.forget(record.id),
    "clear": lambda memory, record: memory.clear(record.scope),
    "pin": lambda memory, record: memory.pin(record.id),
    "hold": lambda memory, record: memory.hold(record.id),
    "supersede": lambda memory, record: memory.remember("new", category="decisions", supersedes=record.id),
    "remember": lambda memory, record: memory.remember("new", category="decisions", scope=record.scope),
}


@rows("verb", VERBS.values())
def test_what_may_only_be_read_cannot_be_changed(memory, through, assistant, verb):
    """A scope outside of what the binding writes is read-only by every verb."""
    record = memory.remember("Prefer concise responses", category="preferences", scope=assistant).record
    reader = through(also_writes=frozenset())

    with pytest.raises(Forbidden, match="may not write to user:ada"):
        verb(reader, record)
    assert reader.get(record.id) == record


@rows("verb", [verb for name, verb in VERBS.items() if name not in {"clear", "remember"}])
def test_what_may_not_be_read_does_not_exist(memory, through, project, assistant, verb):
    """A record of a foreign scope is not found, as if its id had never been."""
    record = memory.remember("Prefer concise responses", category="preferences", scope=assistant).record
    stranger = through(reads=(project,), also_writes=frozenset())

    with pytest.raises(NotFound, match=f"there is no record '{record.id}'"):
        verb(stranger, record)

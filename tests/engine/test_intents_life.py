"""How entries end: eviction, expiry, the end of a task; and what is told of it."""

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.intents.intents import Caller, EntryDraft, Intents, agent_of, namespace_of, task_of
from commonplace.model.changes import TrimEvents
from commonplace.model.errors import CapacityExceeded, Conflict, Forbidden, InvalidInput, NotFound, StoreError
from commonplace.model.events import EventKind
from stands import rows

OPERATOR = Caller()


def fill(actor, clock, keys, **options):
    """Keep an entry for each letter, a second apart."""
    for key in keys:
        clock.forward()
        actor.store(key, f"entry {key}", **options)


# Eviction: five fit


def test_the_least_recently_used_goes_first(ada, clock):
    """Getting and recalling refresh an entry, listing does not."""
    fill(ada, clock, "abcde")
    clock.forward()
    ada.get("a")
    clock.forward()
    ada.recall(key="b")
    ada.listed()
    fill(ada, clock, "fg")
    assert sorted(ada.listed()) == ["a", "b", "e", "f", "g"]


def test_writing_refreshes_too(ada, clock):
    """An entry that was just written again is not the stalest."""
    fill(ada, clock, "abcde")
    fill(ada, clock, "af")
    assert sorted(ada.listed()) == ["a", "c", "d", "e", "f"]


def test_lower_priority_goes_first_however_fresh(ada, clock):
    """Low before normal before high; what is being written stays, whatever its priority."""
    fill(ada, clock, "ab", priority="high")
    fill(ada, clock, "cd")
    fill(ada, clock, "e", priority="low")
    fill(ada, clock, "f", priority="low")
    assert sorted(ada.listed()) == ["a", "b", "c", "d", "f"]
    fill(ada, clock, "ghi", priority="high")
    assert sorted(ada.listed()) == ["a", "b", "g", "h", "i"]


def test_what_is_pinned_counts_and_stays(intents, ada, clock):
    """Pinning exempts from eviction, unpinning ends that."""
    fill(ada, clock, "abcde")
    assert intents.pin(ada.caller, "ada", "a").pinned
    fill(ada, clock, "fghij")
    assert sorted(ada.listed()) == ["a", "g", "h", "i", "j"]
    assert not intents.unpin(ada.caller, "ada", "a").pinned
    clock.forward()
    fill(ada, clock, "klmno")
    assert sorted(ada.listed()) == ["k", "l", "m", "n", "o"]


def test_when_everything_is_pinned_there_is_no_room(ada, clock):
    """A new entry is refused with how many there are; one that is there can still be written."""
    fill(ada, clock, "abcde", pinned=True)
    with pytest.raises(CapacityExceeded) as caught:
        ada.store("f")
    assert (caught.value.current, caught.value.limit) == (6, 5)
    assert ada.store("a", "again").version == 2
    assert ada.store("f", namespace="other").version == 1
    assert sorted(ada.listed(namespace="default")) == ["a", "b", "c", "d", "e"]


def test_a_call_can_say_how_many(ada, clock):
    """``max_entries`` is for that tier and namespace: episodic entries make room, others are refused."""
    fill(ada, clock, "abc", max_entries=2)
    assert ada.listed() == ["c", "b"]
    fill(ada, clock, "ab", tier="working", task="t", max_entries=2)
    with pytest.raises(CapacityExceeded):
        ada.store("c", tier="working", task="t", max_entries=2)
    ada.store("a", tier="semantic", namespace="n", max_entries=1)
    with pytest.raises(CapacityExceeded):
        ada.store("b", tier="semantic", namespace="n", max_entries=1)


def test_shared_and_working_memory_are_not_evicted(ada, clock):
    """Only episodic memory makes room by itself."""
    fill(ada, clock, "abcdefgh", tier="semantic", namespace="n")
    fill(ada, clock, "abcdefgh", tier="working", task="t")
    assert len(ada.listed(tier="semantic")) == len(ada.listed(tier="working")) == 8


def test_a_batch_makes_room_for_all_of_it(intents, ada, clock):
    """What was there goes, nothing of the batch does."""
    fill(ada, clock, "abcde")
    clock.forward()
    intents.batch(ada.caller, [EntryDraft(agent="ada", key=key, value=1, tier="episodic") for key in "fgh"])
    assert sorted(ada.listed()) == ["d", "e", "f", "g", "h"]


# Expiry


@rows(
    "ttl, seconds",
    [(60, 60), (1.5, 1.5), ("duration:PT1H30M", 5400), ("duration:P1W", 604_800), ("duration:P1Y2M3DT4S", 36_979_204)],
)
def test_an_entry_is_gone_when_its_time_is_over(intents, ada, clock, ttl, seconds):
    """Not in get, recall, list, or by id, from that moment on."""
    entry = ada.store("k", "a word", ttl=ttl)
    assert entry.expires_at == clock() + timedelta(seconds=seconds)
    clock.forward(timedelta(seconds=seconds) - timedelta(microseconds=1))
    assert ada.get("k") == entry
    clock.forward(timedelta(microseconds=1))
    for ask in (lambda: ada.get("k"), lambda: intents.entry(ada.caller, entry.id)):
        with pytest.raises(NotFound):
            ask()
    with pytest.raises(NotFound):
        intents.update(ada.caller, entry.id, version=1, value=2)
    assert ada.recall() == ada.recall("a word") == ada.listed() == []


def test_a_moment_wins_over_a_ttl(ada, clock):
    """``expires_at`` is the moment, whatever the ttl says; it needs a time zone."""
    moment = clock() + timedelta(days=1)
    assert ada.store("k", 1, ttl=60, expires_at=moment).expires_at == moment
    with pytest.raises(InvalidInput, match="with a time zone"):
        ada.store("k", 1, expires_at=datetime(2030, 1, 1))  # noqa: DTZ001 - that is the test
    assert moment.tzinfo is UTC


def test_an_update_can_set_and_lift_a_ttl(intents, ada, clock):
    """From now on for so long, or for good; what is not named stays."""
    entry = ada.store("k", 1, ttl=60)
    clock.forward()
    assert intents.pin(ada.caller, "ada", "k").expires_at == entry.expires_at
    assert intents.update(ada.caller, entry.id, version=2, ttl=60).expires_at == clock() + timedelta(seconds=60)
    assert intents.update(ada.caller, entry.id, version=3, ttl=None).expires_at is None


def test_a_write_erases_what_has_expired_beside_it(intents, ada, clock, store, make):
    """Nothing of an expired entry is left after the next write to its place, and its key is free."""
    ada.store("old", "a whisper", ttl=1)
    ada.store("k", "a whisper", ttl=1)
    clock.forward()
    assert ada.store("k", "new").version == 1
    found = store.find(make.anything(*store.scopes(), versions=True), order="id", limit=9)
    assert [record.content for record in found] == ["new"]
    assert ada.told()[-3:] == [("expired", "old"), ("expired", "k"), ("created", "k")]
    assert intents.summary(ada.caller, "ada").episodic_count == 1


def test_task_lifetime_is_as_long_as_the_task(intents, ada, clock):
    """Such a ttl has no moment; the end of the task is its end."""
    intents.begin(ada.caller, "t", agent="ada")
    assert ada.store("k", 1, "working", task="t", ttl="task_lifetime").expires_at is None
    clock.forward(timedelta(days=1000))
    assert ada.get("k", task="t").ttl == "task_lifetime"


# The end of a task


@pytest.mark.parametrize("outcome", ["completed", "failed", "cancelled"])
def test_working_memory_is_archived_when_its_task_ends(intents, ada, store, make, outcome):
    """It is in no answer any more, and whole in the archive, which only those have who had the memory."""
    intents.begin(ada.caller, "t", agent="ada", coordinator="bob")
    ada.store("a", {"step": 1}, "working", task="t", tags=["x"])
    ada.store("b", None, "working", task="t", namespace="n")
    ada.store("own", 1)
    assert intents.finish(ada.caller, "t", outcome).status == outcome
    assert ada.listed() == ada.recall() == ["own"]
    [event] = intents.archive(ada.caller, "t")
    assert (event.what, event.detail["outcome"], event.detail["entries_archived"]) == (EventKind.ARCHIVED, outcome, 2)
    assert event.detail["snapshot"] == [
        {"namespace": "default", "key": "a", "value": {"step": 1}, "tags": ["x"]},
        {"namespace": "n", "key": "b", "value": None, "tags": []},
    ]
    assert (agent_of(event.scope), task_of(event.scope), namespace_of(event.scope)) == ("ada", "t", "default")
    assert intents.archive(Caller(agent="bob"), "t") == [event]
    with pytest.raises(NotFound):
        intents.archive(Caller(agent="eve"), "t")
    assert [one.key for one in store.find(make.anything(*store.scopes()), order="id", limit=9)] == ["task", "own"]


def test_an_ended_task_takes_nothing_more(intents, ada):
    """Writing is refused, ending it again changes nothing, ending it otherwise is a conflict."""
    intents.begin(ada.caller, "t", agent="ada")
    entry = ada.store("a", 1, "working", task="t")
    intents.finish(ada.caller, "t", "failed")
    with pytest.raises(Forbidden, match="'t' is failed; its working memory takes nothing more"):
        ada.store("a", 1, "working", task="t")
    with pytest.raises(NotFound):
        intents.update(ada.caller, entry.id, version=1, value=2)
    assert intents.finish(OPERATOR, "t", "failed").status == "failed"
    with pytest.raises(Conflict, match="is failed already"):
        intents.finish(OPERATOR, "t", "completed")
    with pytest.raises(Conflict, match="is failed"):
        intents.assign(OPERATOR, "t", "bob")
    with pytest.raises(InvalidInput, match="'done' is not an outcome"):
        intents.finish(OPERATOR, "t", "done")
    assert len(intents.archive(OPERATOR, "t")) == 1


class Dying:
    """A store whose process dies after so many writes."""

    def __init__(self, store, lives):
        self.store = store
        self.lives = lives

    def __getattr__(self, name):
        return getattr(self.store, name)

    def apply(self, changes):
        """Make the changes, while it lives."""
        if self.lives == 0:
            raise StoreError("the process died")
        self.lives -= 1
        return self.store.apply(changes)


def test_an_end_that_was_interrupted_is_taken_up(intents, ada, store, clock):
    """Whoever dies between closing a task and archiving it leaves work that ending it again does."""
    intents.begin(ada.caller, "t", agent="ada")
    ada.store("a", 1, "working", task="t")
    with pytest.raises(StoreError):
        Intents(Dying(store, lives=1), clock=clock).finish(ada.caller, "t")
    assert intents.archive(ada.caller, "t") == []
    with pytest.raises(Forbidden):
        ada.store("b", 1, "working", task="t")
    intents.finish(ada.caller, "t")
    [event] = intents.archive(ada.caller, "t")
    assert event.detail["entries_archived"] == 1
    assert ada.listed() == []


def test_what_was_acknowledged_before_the_end_is_in_the_archive(intents, ada):
    """Writers race with the end of their task: each write is archived or refused, none is lost."""
    intents.begin(ada.caller, "t", agent="ada")
    kept, refused = [], []

    def write(name):
        for number in range(60):
            try:
                kept.append(ada.store(f"{name}-{number}", 1, "working", task="t").key)
            except Forbidden:
                refused.append(number)
                return

    writers = [threading.Thread(target=write, args=(name,)) for name in "ab"]
    for writer in writers:
        writer.start()
    while len(kept) < 6:
        time.sleep(0.001)
    intents.finish(ada.caller, "t")
    for writer in writers:
        writer.join()
    [event] = intents.archive(ada.caller, "t")
    assert sorted(entry["key"] for entry in event.detail["snapshot"]) == sorted(kept)
    assert len(refused) == 2
    assert ada.listed() == []


def test_only_those_who_have_to_do_with_a_task_end_it(intents, ada, bob, eve):
    """The assigned agent and the coordinator do; for others there is no such task."""
    intents.begin(OPERATOR, "t", agent="ada")
    intents.assign(OPERATOR, "t", "bob")
    with pytest.raises(NotFound):
        intents.finish(eve.caller, "t")
    with pytest.raises(Forbidden):
        intents.finish(ada.caller, "t")
    assert intents.finish(bob.caller, "t").status == "completed"


def test_each_agent_of_a_task_has_its_own_archive(intents, ada, bob):
    """What a predecessor kept stays attributed to it; it does not see what came after it."""
    intents.begin(OPERATOR, "t", agent="ada")
    ada.store("a", 1, "working", task="t")
    intents.assign(OPERATOR, "t", "bob")
    bob.store("b", 2, "working", task="t")
    intents.finish(OPERATOR, "t")
    assert [agent_of(event.scope) for event in intents.archive(bob.caller, "t")] == ["bob", "ada"]
    assert [agent_of(event.scope) for event in intents.archive(ada.caller, "t")] == ["ada"]


def test_a_task_can_ask_for_no_archive(intents, ada):
    """Then its working memory is erased, and told as deleted."""
    intents.begin(ada.caller, "t", agent="ada", policy={"archive_on_completion": False})
    ada.store("a", "a whisper", "working", task="t")
    intents.finish(ada.caller, "t")
    assert intents.archive(ada.caller, "t") == []
    assert ada.told() == [("created", "a"), ("deleted", "a")]


def test_an_archive_can_be_erased(intents, ada, bob):
    """With the task, its entries and all that was told of it; not by just anybody."""
    intents.begin(OPERATOR, "t", agent="ada")
    ada.store("a", "a whisper", "working", task="t")
    intents.finish(OPERATOR, "t")
    with pytest.raises(NotFound):
        intents.erase(bob.caller, "t")
    intents.erase(ada.caller, "t")
    assert ada.told() == []
    with pytest.raises(NotFound):
        intents.task(OPERATOR, "t")
    assert intents.begin(ada.caller, "t", agent="ada").status == "active"


def test_a_task_limits_its_working_memory(intents, ada, bob):
    """By number and by size, over all who work on it; what is refused leaves nothing."""
    intents.begin(OPERATOR, "t", agent="ada", policy={"max_entries": 2, "max_total_size_kb": 1})
    ada.store("a", 1, "working", task="t")
    intents.assign(OPERATOR, "t", "bob")
    bob.store("b", 2, "working", task="t", namespace="n")
    with pytest.raises(CapacityExceeded) as caught:
        bob.store("c", 3, "working", task="t")
    assert (caught.value.current, caught.value.limit) == (3, 2)
    with pytest.raises(CapacityExceeded, match="the limit is 1024"):
        bob.store("b", "x" * 1024, "working", task="t", namespace="n")
    assert bob.store("b", "x" * 1000, "working", task="t", namespace="n").version == 2
    assert bob.store("c", 3, "working", task="other").version == 1


# What is told


def test_the_six_events_are_told_without_the_value(intents, ada, clock):
    """Created, updated, deleted, evicted, expired and archived: who, what and when, and of the value nothing."""
    ada.store("a", "a whisper", tags=["x"])
    ada.store("a", "a whisper 2", tags=["x"])
    intents.forget(ada.caller, "ada", "a")
    fill(ada, clock, "bcdefg")
    ada.store("h", "a whisper", ttl=1, namespace="n")
    clock.forward()
    ada.store("i", namespace="n")
    intents.begin(ada.caller, "t", agent="ada")
    ada.store("j", "a whisper", "working", task="t")
    intents.finish(ada.caller, "t")
    told = ada.told()
    assert told[:3] == [("created", "a"), ("updated", "a"), ("deleted", "a")]
    assert {what for what, _ in told} == {"created", "updated", "deleted", "evicted", "expired", "archived"}
    assert ("evicted", "b") in told
    events = intents.events(ada.caller)
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert "whisper" not in repr([event for event in events if event.what is not EventKind.ARCHIVED])
    updated = events[1]
    assert (updated.previous, updated.version, updated.tags, updated.kind.value) == (1, 2, ("x",), "episodic")


def test_everybody_hears_of_what_they_may_read(intents, ada, bob):
    """One's own and what is shared; an operator hears all, or what one agent hears; after a number only the rest."""
    ada.store("own")
    bob.store("his")
    bob.store("ours", 1, "semantic", namespace="team")
    assert ada.told() == [("created", "own"), ("created", "ours")]
    operator = [event.key for event in intents.events(OPERATOR)]
    assert operator == ["own", "his", "ours"]
    assert [event.key for event in intents.events(OPERATOR, agent="ada")] == ["own", "ours"]
    first = intents.events(ada.caller, limit=1)[0]
    assert [event.key for event in intents.events(ada.caller, after=first.seq)] == ["ours"]


# What happened, for as long as it is kept


MONTH = timedelta(days=30)


def test_what_happened_is_kept_for_thirty_days(intents, ada, clock):
    """Not longer, once something is written: what is left is told, and up to where there was more."""
    ada.store("a")
    last = intents.events(ada.caller)[-1].seq
    clock.forward(MONTH)
    ada.store("b")
    assert (ada.told(), intents.events_floor()) == ([("created", "a"), ("created", "b")], 0)
    clock.forward(timedelta(minutes=1))
    ada.store("c")
    assert (ada.told(), intents.events_floor()) == ([("created", "b"), ("created", "c")], last)
    assert ada.told(after=last - 1) == ada.told(after=last)
    assert sorted(ada.listed()) == ["a", "b", "c"]


def test_an_archive_is_kept_for_ever(intents, ada, clock):
    """What a task held at its end can be asked for when everything else that was told of it is gone."""
    intents.begin(OPERATOR, "t", agent="ada")
    ada.store("k", {"found": 1}, tier="working", task="t")
    intents.finish(OPERATOR, "t")
    before = intents.archive(OPERATOR, "t")
    clock.forward(100 * MONTH)
    ada.store("a")
    assert ada.told() == [("archived", None), ("created", "a")]
    assert intents.archive(OPERATOR, "t") == before
    assert before[0].detail["snapshot"][0]["value"] == {"found": 1}


def test_a_long_past_goes_a_batch_at_a_time(intents, ada, clock):
    """Each write takes a batch along until nothing old is left; after that a write looks once a minute."""
    for _ in range(3):
        drafts = [EntryDraft(agent="ada", key=f"{n}", value=n, tier="semantic", namespace="n") for n in range(900)]
        intents.batch(ada.caller, drafts)
    clock.forward(MONTH + timedelta(seconds=1))
    left = []
    for number in range(4):
        ada.store(f"new {number}")
        left.append(len(intents.events(OPERATOR, limit=1000)))
    assert left == [1000, 702, 3, 4]


def test_what_happened_can_be_kept_for_longer_or_for_ever(store, clock):
    """As many days as are said; 0 is for ever; what is no number of days is refused."""
    told = []
    for agent, days in (("weekly", 7), ("always", 0)):
        memory = Intents(store, clock=clock, event_days=days)
        memory.store(OPERATOR, agent, "a", 1, tier="episodic")
        clock.forward(timedelta(days=8))
        memory.store(OPERATOR, agent, "b", 1, tier="episodic")
        told.append([event.key for event in memory.events(OPERATOR, agent=agent)])
    assert told == [["b"], ["a", "b"]]
    for wrong in (-1, 36_501, True, 1.5, "7"):
        with pytest.raises(InvalidInput, match="event_days must be 0"):
            Intents(store, event_days=wrong)


def test_a_store_that_cannot_erase_has_written_all_the_same(store, clock):
    """What was kept is answered; the next write looks again."""
    Intents(store, clock=clock).store(OPERATOR, "ada", "a", 1, tier="episodic")
    clock.forward(2 * MONTH)
    flawed = Flawed(store)
    memory = Intents(flawed, clock=clock)
    assert memory.store(OPERATOR, "ada", "b", 1, tier="episodic").version == 1
    flawed.works = True
    clock.forward(timedelta(minutes=1))
    memory.store(OPERATOR, "ada", "c", 1, tier="episodic")
    assert [event.key for event in memory.events(OPERATOR)] == ["b", "c"]


class Flawed:
    """A store that cannot erase events, until it works."""

    works = False

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def apply(self, changes):
        """See ``Store``."""
        if not self.works and any(isinstance(change, TrimEvents) for change in changes):
            raise StoreError("the disk is tired")
        return self._store.apply(changes)

"""Intent memory: entries with keys and versions, in three tiers."""

import pytest

from commonplace.intents.intents import Caller, EntryDraft, EntryFilter, Intents
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from stands import rows

OPERATOR = Caller()
VALUES = [None, True, 0, -1.5, "", " ", "plain", "ünï\u2028", [], [1, [2, [3]]], {}, {"a": {"b": [None]}}, "x" * 60_000]


@rows("value", VALUES)
def test_any_json_value_comes_back_as_it_went_in(ada, value):
    """Null, an empty text, a deep list: what is JSON is kept as it is."""
    ada.store("k", value)
    assert ada.get("k").value == value
    assert ada.get("k").get("value") == value


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), b"bytes"], ids=["set", "object", "nan", "bytes"])
def test_what_is_not_json_is_refused_in_a_sentence(ada, value):
    """Nothing is kept of a value that JSON does not know."""
    with pytest.raises(InvalidInput, match="the value is not JSON"):
        ada.store("k", value)
    with pytest.raises(NotFound):
        ada.get("k")


def test_a_deep_value_is_kept_and_a_bottomless_one_refused(ada):
    """Twenty levels are fine; hundreds are a mistake."""
    deep, deeper = [], []
    for _ in range(20):
        deep = [deep]
    for _ in range(200):
        deeper = [deeper]
    assert ada.store("k", deep).value == deep
    with pytest.raises(InvalidInput, match="nested deeper than 64 levels"):
        ada.store("k", deeper)


def test_64_kib_are_the_most(ada):
    """A value of more than 65,536 bytes of JSON is refused, and what was there stays."""
    ada.store("k", "before")
    with pytest.raises(InvalidInput, match="the limit is 65536"):
        ada.store("k", {"text": "x" * 65_536})
    assert ada.get("k").value == "before"


def test_an_entry_says_what_it_is(ada, clock):
    """Every field can be read as an attribute and by name."""
    entry = ada.store(
        "k", {"a": 1}, tags=["b", "a"], ttl=60, namespace="n", task="t", intent="i", pinned=True, priority="high",
        sensitivity="internal",
    )  # fmt: skip
    assert (entry.agent, entry.namespace, entry.key, entry.tier, entry.version) == ("ada", "n", "k", "episodic", 1)
    assert (entry.tags, entry.ttl, entry.task, entry.intent) == (("a", "b"), 60, "t", "i")
    assert (entry.pinned, entry.priority, entry.sensitivity) == (True, "high", "internal")
    assert (entry.expires_at - clock()).total_seconds() == 60
    assert ada.get("k", namespace="n") == entry
    assert entry.get("key") == "k"
    assert entry.get("colour", "none") == "none"


def test_a_second_store_updates_and_raises_the_version(ada):
    """A key is one entry: value, tags and ttl are the new ones; pin and priority stay."""
    first = ada.store("k", 1, tags=["a"], ttl=60, pinned=True, priority="low")
    second = ada.store("k", 2)
    assert (second.id, second.version, second.value, second.tags, second.ttl) == (first.id, 2, 2, (), None)
    assert (second.pinned, second.priority, second.expires_at) == (True, "low", None)
    assert ada.listed(agent="ada") == ["k"]


def test_a_stale_version_is_a_conflict_that_says_the_current_one(ada):
    """Compare and set: only who knows the version may write."""
    ada.store("k", 1)
    assert ada.store("k", 2, version=1).version == 2
    with pytest.raises(Conflict) as caught:
        ada.store("k", 3, version=1)
    assert caught.value.current == 2
    assert ada.get("k").value == 2


def test_version_zero_and_fresh_mean_that_it_must_be_new(ada):
    """The first writer makes the entry, everybody else is told its version."""
    ada.store("k", 1, version=0)
    for options in ({"version": 0}, {"fresh": True}):
        with pytest.raises(Conflict) as caught:
            ada.store("k", 2, **options)
        assert caught.value.current == 1
    with pytest.raises(Conflict):
        ada.store("other", 1, version=3)


def test_an_update_changes_what_is_named_and_nothing_else(intents, ada):
    """By id and version: the rest stays, even an empty change raises the version."""
    entry = ada.store("k", 1, tags=["a"], ttl=60, priority="high")
    same = intents.update(ada.caller, entry.id, version=1)
    assert same == entry.replace(version=2)
    changed = intents.update(ada.caller, entry.id, version=2, value=None, tags=["b"], ttl=None, pinned=True)
    assert (changed.value, changed.tags, changed.ttl, changed.expires_at) == (None, ("b",), None, None)
    assert (changed.pinned, changed.priority, changed.version) == (True, "high", 3)
    with pytest.raises(Conflict) as caught:
        intents.update(ada.caller, entry.id, version=1, value=2)
    assert caught.value.current == 3


def test_namespaces_and_tiers_keep_equal_keys_apart(ada):
    """The same key in two namespaces, tiers or tasks is as many entries."""
    places = [{}, {"namespace": "n"}, {"tier": "working"}, {"tier": "working", "task": "t"}, {"tier": "semantic"}]
    for number, place in enumerate(places):
        assert ada.store("k", number, **place).version == 1
    assert [ada.get("k", **{"tier": "episodic"} | place).value for place in places] == [0, 1, 2, 3, 4]


def test_without_a_tier_the_nearest_entry_is_found(intents, ada):
    """A task's working memory comes before one's own, which comes before what is shared."""
    for tier, options in {"semantic": {}, "episodic": {}, "working": {"task": "t"}}.items():
        assert ada.store("k", tier, tier, **options).tier == tier
    assert [ada.get("k", task="t").value, ada.get("k").value] == ["working", "episodic"]
    intents.forget(ada.caller, "ada", "k")
    assert ada.get("k").value == "semantic"


@rows(
    "field, value, says",
    [
        ("tier", "procedural", "'procedural' is not a tier; use one of working, episodic, semantic"),
        ("priority", "urgent", "'urgent' is not a priority; use one of low, normal, high"),
        ("sensitivity", "secret", "'secret' is not a sensitivity"),
        ("namespace", "a*", "a star stands for the rest"),
        ("namespace", " ", "cannot name a namespace"),
        ("task", "\n", "cannot name a task"),
        ("tags", "research", "tags should be a list of texts"),
        ("ttl", 0, "would expire at once"),
        ("ttl", -1, "would expire at once"),
        ("ttl", True, "is not a ttl"),
        ("ttl", "1 day", "is not a ttl"),
        ("ttl", "duration:P", "is not a ttl"),
        ("ttl", 1e300, "the last day of the calendar"),
        ("ttl", float("nan"), "the last day of the calendar"),
        ("ttl", "task_lifetime", "is for working memory, not for episodic"),
        ("version", -1, "-1 is not a version"),
    ],
)
def test_bad_words_are_refused_in_a_sentence(ada, field, value, says):
    """What cannot be meant is named, and nothing is kept."""
    with pytest.raises(InvalidInput, match=says.replace("*", r"\*")):
        ada.store("k", 1, **{"tier": "episodic"} | {field: value})
    assert ada.listed(agent="ada") == []


@rows("key", ["", " ", "a\nb", "k" * 600, None, 7])
def test_what_can_be_no_key_is_refused(ada, key):
    """A key is one line of text."""
    with pytest.raises(InvalidInput):
        ada.store(key)


def test_recall_by_tags_wants_all_of_them(ada):
    """Tags narrow; without a query the newest come first."""
    ada.store("one", tags=["a"])
    ada.store("two", tags=["a", "b"])
    ada.store("three", tags=["a", "b", "c"])
    assert ada.recall(tags=["a", "b"]) == ["three", "two"]
    assert ada.recall(tags=["a", "nobody"]) == []
    assert ada.recall(limit=1) == ["three"]
    assert ada.recall(key="one") == ["one"]


def test_recall_by_a_query_ranks_what_bears_on_it(ada):
    """Words of the value and of the key find an entry, in whatever tier; equal values are not taken for one."""
    ada.store("cats", {"likes": "warm windows"})
    ada.store("dogs", {"likes": "wet grass"}, "semantic", namespace="pets")
    ada.store("lions", {"likes": "warm windows"}, "working", task="t")
    assert sorted(ada.recall("warm windows?", task="t")) == ["cats", "lions"]
    assert ada.recall("grass") == ["dogs"]
    assert ada.recall("dogs", namespace="pets") == ["dogs"]
    assert ada.recall("grass", tier="episodic") == []
    assert ada.recall("?!") == ada.recall()


def test_recall_by_meaning_finds_other_words(store, clock, embedder):
    """With an embedder an entry is found by what it means."""
    intents = Intents(store, clock=clock, embedder=embedder("car automobile vehicle", "red crimson"))
    intents.store(OPERATOR, "ada", "a", "the crimson automobile", tier="episodic")
    intents.store(OPERATOR, "ada", "b", "a green house", tier="episodic")
    assert [entry.key for entry in intents.recall(OPERATOR, "ada", query="red car")] == ["a"]


def test_a_brief_leaves_out_what_is_confidential(ada):
    """What is marked confidential or restricted is not put into prompts; whoever asks for it gets it."""
    for level in ("public", "internal", "confidential", "restricted"):
        ada.store(level, "a shared word", sensitivity=level)
    assert ada.recall(brief=True) == ["internal", "public"]
    assert sorted(ada.recall("shared word", brief=True, limit=2)) == ["internal", "public"]
    assert len(ada.recall("shared word")) == 4


def test_a_page_is_a_part_of_a_stable_list(intents, ada, clock):
    """Every filter narrows, pages follow each other, and the total counts all of them."""
    for number in range(5):
        clock.forward()
        ada.store(f"k{number}", number, tags=["even" if number % 2 == 0 else "odd"], pinned=number == 3)
    pages = [intents.page(ada.caller, EntryFilter(agent="ada"), limit=2, offset=offset) for offset in (0, 2, 4, 6)]
    assert [[entry.key for entry in page] for page in pages] == [["k4", "k3"], ["k2", "k1"], ["k0"], []]
    assert [page.total for page in pages] == [5, 5, 5, 5]
    assert ada.listed(tags=("even",)) == ["k4", "k2", "k0"]
    assert ada.listed(tags_any=("odd", "none")) == ["k3", "k1"]
    assert ada.listed(pinned=True) == ["k3"]
    assert ada.listed(key="k2") == ["k2"]


def test_further_filters_of_a_list(ada, clock):
    """Namespace by name or beginning, tier, task, intent and the time of the last write."""
    ada.store("a", namespace="team/one", intent="i")
    moment = clock.forward()
    clock.forward()
    ada.store("b", namespace="team/two", tier="working", task="t")
    ada.store("c", namespace="other", tier="semantic", task="t")
    assert ada.listed(namespace="team/*") == ["b", "a"]
    assert ada.listed(namespace="team/two") == ["b"]
    assert ada.listed(tier="semantic") == ["c"]
    assert ada.listed(task="t") == ["c", "b"]
    assert ada.listed(task="t", tier="working") == ["b"]
    assert ada.listed(intent="i") == ["a"]
    assert ada.listed(updated_before=moment) == ["a"]
    assert ada.listed(updated_after=moment) == ["c", "b"]
    assert ada.listed(query="something", tags_any=("x",)) == []


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (1, -1)])
def test_a_page_of_nothing_is_refused(intents, ada, limit, offset):
    """A limit below one and an offset below zero are mistakes."""
    with pytest.raises(InvalidInput):
        intents.page(ada.caller, EntryFilter(agent="ada"), limit=limit, offset=offset)


def test_a_page_has_at_most_a_thousand(intents, ada):
    """Whatever is asked for."""
    assert intents.page(ada.caller, EntryFilter(agent="ada"), limit=10**9).limit == 1000


def test_a_batch_is_made_whole_or_not_at_all(intents, ada):
    """One entry that cannot be kept takes the others with it."""
    ada.store("held", 1)
    drafts = [EntryDraft(agent="ada", key=key, value=key, tier="episodic") for key in ("a", "b")]
    kept = intents.batch(ada.caller, [*drafts, EntryDraft(agent="ada", key="held", value=2, tier="episodic")])
    assert [(entry.key, entry.version) for entry in kept] == [("a", 1), ("b", 1), ("held", 2)]
    for wrong in ({"key": "held", "version": 1}, {"key": "x", "tier": "none"}, {"key": "x", "agent": "bob"}):
        bad = EntryDraft(**{"agent": "ada", "value": 9, "tier": "episodic"} | wrong)
        with pytest.raises((Conflict, InvalidInput, Forbidden)):
            intents.batch(ada.caller, [drafts[0].replace(key="new"), bad])
    with pytest.raises(InvalidInput, match="'a' is in this batch twice"):
        intents.batch(ada.caller, [drafts[0], drafts[0]])
    assert sorted(ada.listed(agent="ada")) == ["a", "b", "held"]
    assert intents.batch(ada.caller, []) == []


def test_forgetting_is_for_good(intents, ada, store, make):
    """By key, by id or by filter: the entry is gone with its earlier versions, and the key is free."""
    for key in ("a", "b", "c", "d"):
        ada.store(key, "a whisper", tags=["x"] if key in "cd" else [])
        ada.store(key, "a shout", tags=["x"] if key in "cd" else [])
    intents.forget(ada.caller, "ada", "a")
    intents.remove(ada.caller, ada.get("b").id)
    assert intents.remove_where(ada.caller, EntryFilter(agent="ada", tags=("x",))) == 2
    assert ada.listed(agent="ada") == []
    assert store.find(make.anything(*store.scopes(), versions=True), order="id", limit=9) == []
    assert ada.store("a").version == 1
    with pytest.raises(NotFound):
        intents.forget(ada.caller, "ada", "b")


def test_a_secret_is_taken_out_of_every_part(ada):
    """Value, key and tags pass the gate that every write passes; a redacted key is found by what was said."""
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    kept = ada.store(token, {"token": token}, tags=[token])
    assert token not in repr(kept)
    assert ada.get(token) == kept
    assert ada.recall(tags=[token]) == [kept.key]
    assert ada.store(token, 2).version == 2


def test_a_summary_counts_what_an_agent_holds(intents, ada, bob, clock):
    """Numbers of each tier, of nobody else."""
    oldest = clock()
    ada.store("a", "four")
    newest = clock.forward()
    ada.store("b", "ü", pinned=True, namespace="n")
    ada.store("c", 12345, "working", task="t")
    ada.store("d", 1, "working")
    ada.store("e", 1, "semantic", namespace="team")
    bob.store("f")
    found = intents.summary(ada.caller, "ada")
    assert (found.working_count, found.working_bytes, found.tasks) == (2, 6, ("t",))
    assert (found.episodic_count, found.episodic_bytes, found.pinned_count, found.capacity) == (2, 6, 1, 5)
    assert (found.oldest, found.newest, found.namespaces) == (oldest, newest, ("team",))
    assert intents.summary(OPERATOR, "nobody").episodic_count == 0

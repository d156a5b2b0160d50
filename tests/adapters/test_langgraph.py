"""The LangGraph store: what LangGraph's own store answers, and what only ours keeps."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from typing import TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore, InvalidNamespaceError, PutOp
from langgraph.store.memory import InMemoryStore

import commonplace
from commonplace.adapters.langgraph import CommonplaceStore
from commonplace.engine.memory import Memory
from commonplace.install import install_command
from commonplace.model.binding import Binding
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore

HERE = Scope.of(("user", "ada"))
LABELS = st.sampled_from(["users", "ada", "bob", "notes", "é/x", "%"])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
VALUES = st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 3) | st.sampled_from(["x", " y\n"]), min_size=1)
ACTS = st.one_of(
    st.tuples(st.just("put"), NAMESPACES, st.sampled_from(["k", "l"]), VALUES),
    st.tuples(st.just("delete"), NAMESPACES, st.sampled_from(["k", "l"])),
)
CONDITIONS = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.integers(0, 3) | st.dictionaries(st.sampled_from(["$eq", "$ne"]), st.integers(0, 3), min_size=1),
    max_size=2,
)


@pytest.fixture
def memory(clock):
    """A memory whose clock is moved by hand."""
    binding = Binding(channel=Channel.USER, writes={Kind.SEMANTIC: HERE}, reads=(HERE,))
    with Memory(SqliteStore(":memory:"), binding, clock=clock) as memory:
        yield memory


@pytest.fixture
def store(memory):
    """A LangGraph store on it."""
    return CommonplaceStore(memory)


def seen(items):
    """Items without their dates, in no order."""
    return sorted((item.namespace, item.key, sorted(item.value.items(), key=str)) for item in items)


@settings(deadline=None, max_examples=60)
@given(st.lists(ACTS, max_size=8), st.lists(LABELS, max_size=2).map(tuple), CONDITIONS)
def test_it_answers_as_langgraphs_own_store_does(acts, prefix, conditions):
    """Any run of puts and deletes: the same items, the same search by filter, the same namespaces."""
    theirs, ours = InMemoryStore(), CommonplaceStore(commonplace.open(":memory:"))
    for name, *told in acts:
        for one in (theirs, ours):
            getattr(one, name)(*told)
    for _, namespace, key, *_ in acts:
        found = ours.get(namespace, key)
        wanted = theirs.get(namespace, key)
        assert (found and found.value) == (wanted and wanted.value)
    search = {"filter": conditions or None, "limit": 50}
    assert seen(ours.search(prefix, **search)) == seen(theirs.search(prefix, **search))
    left = InMemoryStore()  # theirs goes on to list namespaces from which everything was deleted
    for item in theirs.search((), limit=50):
        left.put(item.namespace, item.key, item.value)
    for asked in ({"prefix": prefix}, {"max_depth": 1}, {"suffix": prefix or None}, {"prefix": ("*", "ada")}):
        assert ours.list_namespaces(**asked) == sorted(left.list_namespaces(**asked))


def test_a_question_finds_by_words_and_names_its_score(store):
    """The best comes first, from every namespace below the prefix and from no other."""
    store.put(("users", "ada"), "drink", {"likes": "green tea in the morning"})
    store.put(("users", "bob"), "drink", {"likes": "black coffee"})
    store.put(("other",), "drink", {"likes": "green tea"})
    [best, *_] = store.search(("users",), query="who drinks green tea")
    assert (best.namespace, best.key) == (("users", "ada"), "drink")
    assert best.score > 0
    assert not [item for item in store.search(("users",), query="green tea") if item.namespace == ("other",)]


def test_equal_values_of_two_users_are_two_items(store):
    """What recall would show once is still two items."""
    for user in ("ada", "bob"):
        store.put(("users", user), "drink", {"likes": "tea"})
    assert {item.namespace[1] for item in store.search(("users",), query="tea")} == {"ada", "bob"}


def test_numbers_are_compared_and_nonsense_is_refused(store):
    """``$gte`` and ``$lt`` look at fields; an unknown comparison is named."""
    for age in (20, 30, 40):
        store.put(("people",), str(age), {"age": age})
    assert {item.key for item in store.search(("people",), filter={"age": {"$gte": 30, "$lt": 40}})} == {"30"}
    assert store.search(("people",), filter={"name": {"$gt": 1}}) == []
    with pytest.raises(ValueError, match=r"'\$like' is not a comparison"):
        store.search(("people",), filter={"age": {"$like": 1}})


def test_an_item_is_found_by_the_fields_it_names(store):
    """``index`` says which; False leaves the key alone."""
    store.put(("docs",), "one", {"title": "Postgres", "body": "about elephants"}, index=["title"])
    store.put(("docs",), "two", {"title": "elephants"}, index=False)
    assert [item.key for item in store.search(("docs",), query="postgres")] == ["one"]
    assert store.search(("docs",), query="elephants") == []
    assert [item.key for item in store.search(("docs",), query="two")] == ["two"]


def test_time_to_live_counts_from_the_last_read(store, clock):
    """A read gives an item as much time again, unless it says not to."""
    store.put(("cache",), "k", {"a": 1}, ttl=10)
    clock.now += timedelta(minutes=8)
    assert store.get(("cache",), "k")
    clock.now += timedelta(minutes=8)
    assert store.get(("cache",), "k", refresh_ttl=False)
    clock.now += timedelta(minutes=3)
    assert store.get(("cache",), "k") is None
    assert store.search(("cache",)) == []
    assert store.list_namespaces() == []


def test_a_default_time_to_live_is_taken(memory, clock):
    """What a put does not say, the store's configuration does."""
    store = CommonplaceStore(memory, ttl={"default_ttl": 5, "refresh_on_read": False})
    store.put(("cache",), "k", {"a": 1})
    clock.now += timedelta(minutes=4)
    assert store.get(("cache",), "k")
    clock.now += timedelta(minutes=2)
    assert store.get(("cache",), "k") is None


def test_a_secret_is_not_kept(store):
    """A value passes the gate that every write passes."""
    store.put(("notes",), "k", {"said": "my password is hunter2-Sesame-99x"})
    assert "hunter2" not in str(store.get(("notes",), "k").value)


def test_a_label_with_a_dot_is_refused(store):
    """Also when it comes through a batch."""
    with pytest.raises(InvalidNamespaceError):
        store.put(("a.b",), "k", {"a": 1})


def test_names_keep_stores_apart(memory):
    """Two stores of one name are one; of two names they see nothing of each other."""
    CommonplaceStore(memory, name="one").put(("n",), "k", {"a": 1})
    assert CommonplaceStore(memory, name="one").get(("n",), "k")
    assert CommonplaceStore(memory, name="two").get(("n",), "k") is None
    assert CommonplaceStore(memory, name="two").search(()) == []


def test_the_asynchronous_calls_are_the_same(store):
    """``aput`` and ``asearch`` go through the same store."""

    async def go():
        await store.aput(("n",), "k", {"said": "hello world"})
        await store.adelete(("n",), "gone")
        return await store.aget(("n",), "k"), await store.asearch(("n",), query="hello")

    item, found = asyncio.run(go())
    assert item.value == found[0].value == {"said": "hello world"}


class State(TypedDict):
    """What the graph of the test passes on."""

    said: str


def test_a_graph_uses_it(store):
    """A node of a real graph writes, the next one reads."""

    def keep(state: State, *, store: BaseStore):
        store.put(("facts",), "one", {"said": state["said"]})
        return {}

    def find(_state: State, *, store: BaseStore):
        return {"said": store.search(("facts",), query="elephants")[0].value["said"].upper()}

    graph = StateGraph(State)
    graph.add_node("keep", keep)
    graph.add_node("find", find)
    graph.add_edge(START, "keep")
    graph.add_edge("keep", "find")
    graph.add_edge("find", END)
    assert graph.compile(store=store).invoke({"said": "elephants never forget"}) == {"said": "ELEPHANTS NEVER FORGET"}


def test_without_langgraph_it_says_what_to_install():
    """The error names the extra."""
    code = "import sys; sys.modules['langgraph.store.base'] = None; import commonplace.adapters.langgraph"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert install_command("langgraph") in done.stderr


TOKEN = "xylophonequokka"
NOTES = Scope.of(("namespace", "langgraph"), ("namespace", "notes"))


def test_deleted_items_leave_no_byte_and_take_few_rounds(shared):
    """Nor in what memory has written of them; what had expired under the same key goes too."""
    store = CommonplaceStore(shared.memory)
    store.put(("notes",), "0", {"said": f"An old {TOKEN}"}, ttl=1)
    shared.memory.clock.now += timedelta(minutes=2)
    store.put(("notes",), "tea", {"said": "Tea is at four"})
    for number in range(20):
        store.put(("notes",), str(number), {"said": f"Tunnel {number} is under the {TOKEN}"})
    shared.tell(NOTES)
    shared.rounds.clear()
    store.batch([PutOp(("notes",), str(number), None) for number in range(20)])

    assert len(shared.rounds) <= 10
    assert (shared.left(TOKEN), shared.left("Tunnel")) == ([], [])
    assert shared.left("Tea is at four") != []
    assert len(shared.erasures) == 1


def test_an_expired_item_can_be_deleted(shared):
    """Whoever deletes means the bytes, also where time was quicker."""
    store = CommonplaceStore(shared.memory)
    store.put(("notes",), "k", {"said": f"The tunnel is under the {TOKEN}"}, ttl=1)
    shared.memory.clock.now += timedelta(minutes=2)
    store.delete(("notes",), "k")
    assert shared.left(TOKEN) == []


@pytest.mark.parametrize("key", [" k ", "bell\x07", "\ufeffmarked", "password=hunter2-Sesame-99x"])
def test_an_item_is_found_by_the_key_it_was_put_under(store, key):
    """Also where the gate keeps a key in another form; and it is deleted by it."""
    store.put(("n",), key, {"a": 1})
    assert store.get(("n",), key).value == {"a": 1}
    store.delete(("n",), key)
    assert store.search(("n",)) == []

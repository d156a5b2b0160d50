"""Intent memory against races and nonsense: what others do meanwhile, and what nobody should ask for."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.intents.intents import Caller, EntryDraft, EntryFilter, Intents, Permissions
from commonplace.model.changes import Delete, DropScope, Put
from commonplace.model.errors import CapacityExceeded, Conflict, InvalidInput, NotFound
from commonplace.model.queries import ANY_STATE, Filter
from commonplace.stores.sqlite.store import SqliteStore
from stands import rows

OPERATOR = Caller()
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - a moment without a time zone, which nobody can place


class Meanwhile:
    """A store in which somebody else does something between the first look and the first write."""

    def __init__(self, store, deed):
        self._store = store
        self._deed = deed

    def __getattr__(self, name):
        return getattr(self._store, name)

    def apply(self, changes):
        """See ``Store``."""
        deed, self._deed = self._deed, None
        if deed and any(isinstance(change, Put) for change in changes):
            deed()
        return self._store.apply(changes)


def gone(store, clock, *records):
    """What erases these records, whatever they are."""
    scopes = frozenset(store.scopes())
    where = Filter(scopes=scopes, at=clock(), states=ANY_STATE, ids=frozenset(records))
    return lambda: store.apply([Delete(where=where)])


# What others do meanwhile


def test_an_entry_that_is_forgotten_meanwhile_is_kept_anew(store, clock, ada):
    """Whoever stores wants it to be there afterwards; it begins again at version 1."""
    first = ada.store("k", "old")
    memory = Intents(Meanwhile(store, gone(store, clock, first.id)), clock=clock)
    again = memory.store(ada.caller, "ada", "k", "new", tier="episodic")
    assert (again.version, again.id != first.id, ada.get("k").value) == (1, True, "new")


def test_a_version_that_is_forgotten_meanwhile_is_a_conflict(store, clock, ada):
    """Who expects a version hears that there is none, and not the name of a row."""
    first = ada.store("k", "old")
    memory = Intents(Meanwhile(store, gone(store, clock, first.id)), clock=clock)
    with pytest.raises(Conflict, match="there is no entry 'k', so it is not at version 1") as caught:
        memory.store(ada.caller, "ada", "k", "new", tier="episodic", version=1)
    assert caught.value.current == 0


def test_a_pin_of_what_is_forgotten_meanwhile_says_so(store, clock, ada):
    """There is nothing left to pin."""
    first = ada.store("k", "old")
    memory = Intents(Meanwhile(store, gone(store, clock, first.id)), clock=clock)
    with pytest.raises(NotFound, match=f"there is no entry '{first.id}'"):
        memory.pin(ada.caller, "ada", "k")


@pytest.mark.parametrize("ttl", range(1, 14))
def test_an_entry_that_expires_while_it_is_written_is_kept_anew(store, clock, ttl):
    """Wherever in the course of a write its time is over: each look at this clock takes a second."""
    memory = Intents(store, clock=clock.forward)
    memory.store(OPERATOR, "ada", "k", 1, tier="episodic", ttl=ttl)
    assert memory.store(OPERATOR, "ada", "k", 2, tier="episodic").version in (1, 2)
    assert memory.get(OPERATOR, "ada", "k").value == 2


def test_a_task_that_is_erased_meanwhile_is_not_found(store, clock, intents):
    """By its name, not by that of the record that kept it."""
    intents.begin(OPERATOR, "t", agent="ada")
    [scope] = [scope for scope in store.scopes() if scope.kind == "task"]
    memory = Intents(Meanwhile(store, lambda: store.apply([DropScope(scope=scope)])), clock=clock)
    with pytest.raises(NotFound, match="there is no task 't'"):
        memory.assign(OPERATOR, "t", "bob")


def test_storing_and_forgetting_at_once_fails_nobody_who_stores(tmp_path):
    """Threads fight over one key: whoever stores succeeds every time."""
    memory, failed = Intents(SqliteStore(str(tmp_path / "memory.db"))), []

    def store(number):
        try:
            for turn in range(40):
                memory.store(OPERATOR, "ada", "k", [number, turn], tier="episodic")
        except NotFound as error:
            failed.append(error)

    def forget():
        while any(thread.is_alive() for thread in writers):
            memory.remove_where(OPERATOR, EntryFilter(agent="ada", key="k"))

    writers = [threading.Thread(target=store, args=(number,)) for number in range(3)]
    for thread in writers:
        thread.start()
    forget()
    assert failed == []


def test_the_limit_of_a_task_holds_for_namespaces_that_are_new(store, clock, intents, ada):
    """Two writers that each begin a namespace of their own cannot both take the last place."""
    intents.begin(OPERATOR, "t", agent="ada", policy={"max_entries": 1})
    other = Meanwhile(store, lambda: ada.store("k", tier="working", task="t", namespace="first"))
    with pytest.raises(CapacityExceeded, match="would make 2 entries; the limit is 1"):
        Intents(other, clock=clock).store(ada.caller, "ada", "k", 1, tier="working", task="t", namespace="second")
    assert [entry.namespace for entry in intents.page(OPERATOR, EntryFilter(task="t"))] == ["first"]


# Very many


def test_an_agent_is_not_slowed_down_by_the_tasks_that_it_has_ended(intents, ada, store):
    """Where nothing is left but an archive nobody looks; what is still worked on is found."""
    for task in ("one", "two", "three"):
        intents.begin(OPERATOR, task, agent="ada")
        ada.store("step", f"owls in {task}", tier="working", task=task)
    for task in ("one", "two"):
        intents.finish(OPERATOR, task)
    asked = []
    seen = Intents(Listening(store, asked))
    assert [entry.task for entry in seen.recall(ada.caller, "ada", query="owls")] == ["three"]
    assert seen.summary(ada.caller, "ada").tasks == ("three",)
    assert {str(scope) for where in asked for scope in where.scopes} == {"agent:ada/task:three"}


class Listening:
    """A store that notes what is asked of it."""

    def __init__(self, store, asked):
        self._store = store
        self._asked = asked

    def __getattr__(self, name):
        return getattr(self._store, name)

    def survey(self, where, query, vector, *, limit):
        """See ``Store``."""
        self._asked.append(where)
        return self._store.survey(where, query, vector, limit=limit)


# What nobody should ask for


def test_blanks_around_a_text_count(ada):
    """A value is as long as it is, not as long as what is left of it when it is shown."""
    for value in (" " * 65_536 + "x", "x" + "\n" * 65_536):
        with pytest.raises(InvalidInput, match="the value has 65537 bytes; the limit is 65536"):
            ada.store("k", value)
    assert ada.store("k", " " * 65_535 + "x").version == 1


@rows(
    "given, said",
    [
        ({"version": "1"}, "a version is a whole number, not '1'"),
        ({"version": True}, "a version is a whole number, not True"),
        ({"namespace": 5}, "namespace should be a text, not 5"),
        ({"task": 5}, "task should be a text, not 5"),
        ({"intent": 5}, "intent should be a text, not 5"),
        ({"pinned": "false"}, "pinned should be true or false, not 'false'"),
        ({"max_entries": "5"}, "max_entries should be a whole number above zero, not '5'"),
        ({"max_entries": 0}, "max_entries should be a whole number above zero, not 0"),
        ({"expires_at": "2030-01-01"}, "expires_at should be a moment with a time zone, not '2030-01-01'"),
        ({"ttl": "soon", "expires_at": datetime(2030, 1, 1, tzinfo=UTC)}, "'soon' is not a ttl"),
        ({"ttl": "task_lifetime", "expires_at": datetime(2030, 1, 1, tzinfo=UTC)}, "is for working memory"),
        ({"ttl": "duration:PT٣S"}, "is not a ttl"),
    ],
)
def test_a_draft_of_the_wrong_sort_is_refused_in_a_sentence(ada, given, said):
    """Nothing is kept, and nothing is taken for something else."""
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        ada.store("k", 1, **given)
    assert ada.listed() == []


def test_a_moment_that_is_over_keeps_nothing(ada, clock):
    """As a ttl of 0 does; what was there stays."""
    ada.store("k", "kept")
    for moment in (clock(), clock() - timedelta(days=1)):
        with pytest.raises(InvalidInput, match="would expire at once"):
            ada.store("k", 1, expires_at=moment)
    assert ada.get("k").value == "kept"


@rows(
    "asked, said",
    [
        ({"updated_after": NAIVE}, "updated_after should be a moment with a time zone"),
        ({"updated_before": "2026-01-01"}, "updated_before should be a moment with a time zone, not '2026-01-01'"),
        ({"namespace": 5}, "namespace should be a text, not 5"),
        ({"key": 5}, "key should be a text, not 5"),
        ({"query": 5}, "query should be a text, not 5"),
        ({"task": 5}, "task should be a text, not 5"),
        ({"tags": (1,)}, "tags should be a list of texts"),
        ({"tags_any": "abc"}, "tags_any should be a list of texts, not 'abc'"),
        ({"pinned": "yes"}, "pinned should be true or false, not 'yes'"),
    ],
)
def test_a_question_of_the_wrong_sort_is_refused_in_a_sentence(ada, asked, said):
    """Whether or not anything is there."""
    ada.store("k", 1)
    with pytest.raises(InvalidInput, match=said):
        ada.listed(agent="ada", **asked)


def test_a_tag_is_asked_for_as_it_is_kept(ada):
    """Blanks around it and secrets in it are taken out of both, whether all of the tags are wanted or any."""
    tags = (" owls ", "password=hunter2hunter2")
    ada.store("k", 1, tags=tags)
    for tag in tags:
        assert ada.listed(agent="ada", tags=(tag,)) == ada.listed(agent="ada", tags_any=("other", tag)) == ["k"]


def test_tags_that_come_one_by_one_are_kept_or_refused(intents, ada):
    """Whoever reads them twice would find none: a verb reads them once, a draft refuses them."""
    entry = ada.store("k", 1, tags=(tag for tag in "ab"))
    assert entry.tags == ("a", "b")
    assert intents.update(ada.caller, entry.id, version=1, tags=(tag for tag in "cd")).tags == ("c", "d")
    with pytest.raises(InvalidInput, match="tags should be a list of texts"):
        EntryDraft(agent="ada", key="k", value=1, tier="episodic", tags=(tag for tag in "ab"))


def test_pages_are_numbered_by_numbers(intents, ada):
    """A limit or an offset that is none is refused; one that lies beyond everything is an empty page."""
    ada.store("k", 1)
    where = EntryFilter(agent="ada")
    for wrong in ({"limit": "5"}, {"offset": "5"}, {"limit": 1.5}, {"offset": -1}):
        with pytest.raises(InvalidInput):
            intents.page(ada.caller, where, **wrong)
    page = intents.page(ada.caller, where, offset=10**30)
    assert (len(page), page.total) == (0, 1)


def test_names_of_agents_and_tasks_are_texts(intents, store):
    """Also where an operator leaves one out: a task that is nobody's could never be worked on."""
    for call in (
        lambda: intents.begin(OPERATOR, "t", agent=None),
        lambda: intents.begin(OPERATOR, 5, agent="ada"),
        lambda: intents.begin(OPERATOR, "t", agent="ada", parent=5),
        lambda: intents.begin(OPERATOR, "t", agent="ada", policy=5),
        lambda: intents.task(OPERATOR, 5),
        lambda: intents.get(OPERATOR, None, "k"),
        lambda: intents.get(OPERATOR, "ada", None),
        lambda: intents.get(OPERATOR, "ada", "k", namespace=5),
        lambda: intents.permit(OPERATOR, 5, Permissions()),
        lambda: intents.permit(OPERATOR, "n", Permissions(allow={5: "read"})),
        lambda: Intents(store, capacity=0),
        lambda: Intents(store, capacity="5"),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert store.census() == []


def test_a_batch_with_one_wrong_draft_keeps_nothing(intents, ada):
    """Its sentence names what is wrong; the others are not kept."""
    good = EntryDraft(agent="ada", key="good", value=1, tier="episodic")
    with pytest.raises(InvalidInput, match="the value is not JSON"):
        intents.batch(ada.caller, [good, good.replace(key="bad", value={1, 2})])
    assert ada.listed() == []

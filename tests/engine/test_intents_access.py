"""Who may see what of intent memory: a foreign agent can neither read, list, guess nor infer."""

import pytest

from commonplace.intents.intents import Caller, EntryDraft, EntryFilter, Permissions
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from stands import rows

OPERATOR = Caller()
TIERS = [("episodic", {}), ("episodic", {"namespace": "n"}), ("working", {}), ("working", {"task": "t"})]


@rows("tier, place", TIERS)
def test_a_foreign_agent_reads_nothing_by_any_way(intents, ada, eve, tier, place):
    """By key, by id, by tag, by query, in lists or in events: what is Ada's is not there for Eve."""
    entry = ada.store("plan", "the crown jewels", tier, tags=["gold"], **place)
    for ask in (
        lambda: eve.get("plan", **place),
        lambda: eve.get("plan", of="ada", **place),
        lambda: eve.get("plan", of="ada", tier=tier, **place),
        lambda: intents.entry(eve.caller, entry.id),
        lambda: intents.update(eve.caller, entry.id, version=1, value=1),
        lambda: intents.remove(eve.caller, entry.id),
        lambda: intents.pin(eve.caller, "ada", "plan", **place),
        lambda: intents.forget(eve.caller, "ada", "plan", **place),
    ):
        with pytest.raises(NotFound):
            ask()
    for options in ({"of": "ada"}, {}):
        assert eve.recall("crown jewels", **options, **place) == eve.recall(tags=["gold"], **options) == []
    for where in ({}, {"agent": "ada"}, {"agent": "eve"}, {"agent": "ada", "tier": tier, **place}, {"query": "crown"}):
        assert eve.listed(**where) == []
    assert intents.remove_where(eve.caller, EntryFilter(agent="ada")) == 0
    assert eve.told() == eve.told(agent="ada") == []
    assert intents.entry(ada.caller, entry.id) == entry


def test_what_is_foreign_reads_like_what_is_not_there(intents, ada, eve):
    """The same words for an entry of somebody else and for none."""
    entry = ada.store("plan")
    with pytest.raises(NotFound) as foreign:
        eve.get("plan", of="ada")
    with pytest.raises(NotFound) as absent:
        eve.get("other", of="ada")
    assert str(foreign.value).replace("plan", "other") == str(absent.value)
    with pytest.raises(NotFound) as foreign:
        intents.entry(eve.caller, entry.id)
    intents.remove(ada.caller, entry.id)
    with pytest.raises(NotFound) as absent:
        intents.entry(eve.caller, entry.id)
    assert str(foreign.value) == str(absent.value)


def test_nobody_writes_for_somebody_else(intents, ada, eve):
    """Whether the key is taken or not, the answer is the same."""
    ada.store("taken")
    answers = set()
    for key in ("taken", "free"):
        with pytest.raises(Forbidden) as caught:
            intents.store(eve.caller, "ada", key, 1, tier="episodic", fresh=True)
        answers.add(str(caught.value))
    assert answers == {"'eve' may not write for 'ada'"}
    with pytest.raises(Forbidden):
        intents.batch(eve.caller, [EntryDraft(agent="ada", key="k", value=1, tier="working")])
    with pytest.raises(Forbidden):
        intents.summary(eve.caller, "ada")


def test_nothing_of_another_shows_in_what_one_keeps(ada, eve, clock):
    """Keys are one's own, and so are versions, room and the order of what is found."""
    for number in range(9):
        ada.store(f"k{number}", "quick brown foxes")
    alone = [eve.store(f"k{number}", f"brown {number}") for number in range(5)]
    assert [entry.version for entry in alone] == [1] * 5
    assert eve.listed() == ["k4", "k3", "k2", "k1", "k0"]
    before = eve.recall("brown 3")
    for number in range(5):
        ada.store(f"b{number}", "brown brown brown 3 3 3")
    clock.forward()
    assert eve.recall("brown 3") == before


def test_an_operator_acts_for_any_agent_with_its_rights(intents, ada, bob):
    """An operator reads and writes as the agent that is named, and sees by id whatever there is."""
    entry = ada.store("k", 1)
    assert intents.store(OPERATOR, "ada", "k", 2, tier="episodic").version == 2
    assert intents.entry(OPERATOR, entry.id).value == 2
    intents.permit(ada.caller, "closed", Permissions(default="none"))
    ada.store("s", 1, "semantic", namespace="closed")
    assert intents.get(OPERATOR, "ada", "s", namespace="closed").value == 1
    with pytest.raises(NotFound):
        intents.get(OPERATOR, "bob", "s", namespace="closed")
    assert bob.listed(namespace="closed") == []


def test_an_operator_who_names_nobody_sees_what_is_shared(intents, ada, eve):
    """Episodic and working entries are somebody's, and have to be asked for by name."""
    ada.store("own")
    ada.store("ours", 1, "semantic", namespace="team")
    intents.permit(eve.caller, "hers", Permissions(default="none"))
    eve.store("hidden", 1, "semantic", namespace="hers")
    page = intents.page(OPERATOR, EntryFilter())
    assert sorted(entry.key for entry in page) == ["hidden", "ours"]
    with pytest.raises(InvalidInput, match="name the agent whose episodic entries are meant"):
        intents.page(OPERATOR, EntryFilter(tier="episodic"))


# Shared namespaces


def test_the_first_writer_administers_a_namespace_that_others_read(intents, ada, bob):
    """Unless it is said otherwise everybody reads, and nobody else writes."""
    ada.store("specs", {"version": 3}, "semantic", namespace="team")
    assert bob.get("specs", namespace="team").value == {"version": 3}
    assert bob.recall("version", namespace="team") == ["specs"]
    with pytest.raises(Forbidden, match="'bob' may not write to the namespace 'team'"):
        bob.store("specs", 4, "semantic", namespace="team")
    assert intents.permissions(ada.caller, "team") == Permissions(default="read", allow={"ada": "admin"})


def test_permissions_are_checked_on_every_read_and_write(intents, ada, bob, eve):
    """None, read, write and admin, each as soon as it is said."""
    entry = ada.store("k", 1, "semantic", namespace="team", tags=["t"])
    intents.permit(ada.caller, "team", Permissions(default="none", allow={"bob": "write"}))
    assert bob.store("k", 2, "semantic", namespace="team").curated_by == "bob"
    assert bob.get("k", namespace="team").agent == "ada"
    with pytest.raises(Forbidden):
        intents.permit(bob.caller, "team", Permissions())
    for ask in (lambda: eve.get("k", namespace="team"), lambda: intents.entry(eve.caller, entry.id)):
        with pytest.raises(NotFound):
            ask()
    assert eve.listed(namespace="team") == eve.listed() == eve.recall(tags=["t"]) == eve.told() == []
    assert intents.namespaces(eve.caller) == []
    assert intents.summary(eve.caller, "eve").namespaces == ()
    intents.permit(ada.caller, "team", Permissions(default="read"))
    assert eve.get("k", namespace="team").value == 2
    with pytest.raises(Forbidden):
        intents.update(bob.caller, entry.id, version=2, value=3)
    for change in (
        lambda: intents.pin(eve.caller, "eve", "k", namespace="team"),
        lambda: intents.forget(eve.caller, "eve", "k", namespace="team"),
        lambda: intents.remove(eve.caller, entry.id),
    ):
        with pytest.raises(Forbidden):
            change()
    assert intents.remove_where(eve.caller, EntryFilter(namespace="team")) == 0
    assert ada.get("k", namespace="team").version == 2


def test_a_refused_writer_learns_nothing_of_keys(intents, ada, eve):
    """A taken and a free key of a closed namespace are refused in the same words."""
    intents.permit(ada.caller, "closed", Permissions(default="none"))
    ada.store("taken", 1, "semantic", namespace="closed")
    answers = set()
    for key in ("taken", "free"):
        with pytest.raises(Forbidden) as caught:
            eve.store(key, 1, "semantic", namespace="closed", fresh=True)
        answers.add(str(caught.value))
    assert answers == {"'eve' may not write to the namespace 'closed'"}
    with pytest.raises(NotFound) as closed:
        intents.permissions(eve.caller, "closed")
    with pytest.raises(NotFound) as absent:
        intents.permissions(eve.caller, "absent")
    assert str(closed.value).replace("closed", "absent") == str(absent.value)


def test_a_batch_of_several_agents_has_one_first_writer(intents, ada):
    """The namespace is whose entry comes first; another one of the same batch is refused, and all of it with them."""
    drafts = [
        EntryDraft(agent=agent, key=agent, value=1, tier="semantic", namespace="team") for agent in ("ada", "bob")
    ]
    with pytest.raises(Forbidden, match="'bob' may not write to the namespace 'team'"):
        intents.batch(OPERATOR, drafts)
    assert intents.namespaces(OPERATOR) == []
    assert len(intents.batch(OPERATOR, [drafts[0], drafts[0].replace(key="more")])) == 2
    assert ada.listed(namespace="team") == ["more", "ada"]


def test_only_who_administers_sees_and_changes_permissions(intents, ada, bob):
    """A reader is refused; an operator and an administrator are not; nobody locks themselves out."""
    ada.store("k", 1, "semantic", namespace="team")
    with pytest.raises(Forbidden):
        intents.permissions(bob.caller, "team")
    with pytest.raises(Forbidden):
        intents.permit(bob.caller, "team", Permissions(allow={"bob": "admin"}))
    assert intents.permit(ada.caller, "team", Permissions(allow={"bob": "admin"})).of("ada") == "admin"
    assert intents.permit(bob.caller, "team", Permissions(default="write")).of("bob") == "admin"
    assert intents.permit(OPERATOR, "team", Permissions(default="none")).allow == {}
    assert intents.permissions(OPERATOR, "team").default == "none"


@pytest.mark.parametrize("wrong", [{"default": "admin"}, {"default": "all"}, {"allow": {"bob": "rw"}}])
def test_a_permission_that_there_is_not_is_refused(wrong):
    """None, read and write for everybody; admin for those who are named."""
    with pytest.raises(InvalidInput, match="permission"):
        Permissions(**wrong)


def test_what_other_systems_keep_there_is_no_entry(intents, ada, store, make):
    """Whoever claims the namespace of a role's memory gets nothing of it to see."""
    record = make("a role's own fact", scope=make.scope.parse("namespace:team"), key="fact")
    store.apply([make.put(record)])
    ada.store("k", 1, "semantic", namespace="team")
    assert ada.listed(namespace="team") == ["k"]
    assert ada.recall("fact", namespace="team") == []
    with pytest.raises(NotFound):
        ada.get("fact", namespace="team")
    with pytest.raises(NotFound):
        intents.entry(OPERATOR, record.id)
    with pytest.raises(Conflict, match="taken by what is no entry") as caught:
        ada.store("fact", 1, "semantic", namespace="team")
    assert record.id not in str(caught.value)


# Tasks


def test_working_memory_is_open_to_the_coordinator_alone(intents, ada, bob, eve):
    """The coordinator reads what the assigned agent keeps for the task, and writes none of it."""
    intents.begin(OPERATOR, "t", agent="ada", coordinator="bob")
    entry = ada.store("step", 1, "working", task="t", tags=["x"])
    private = ada.store("own", 1)
    assert bob.get("step", of="ada", task="t") == bob.get("step", task="t") == entry
    assert bob.listed(task="t", tier="working") == bob.recall(tags=["x"], task="t") == ["step"]
    assert intents.entry(bob.caller, entry.id) == entry
    for change in (
        lambda: intents.update(bob.caller, entry.id, version=1, value=2),
        lambda: intents.remove(bob.caller, entry.id),
        lambda: intents.forget(bob.caller, "ada", "step", task="t"),
        lambda: bob.store("step", 2, "working", task="t"),
    ):
        with pytest.raises(Forbidden):
            change()
    with pytest.raises(NotFound):
        intents.entry(bob.caller, private.id)
    with pytest.raises(NotFound):
        eve.get("step", of="ada", task="t")
    with pytest.raises(NotFound):
        intents.task(eve.caller, "t")
    assert eve.listed(task="t") == []


def test_who_takes_a_task_over_reads_what_was_kept(intents, ada, bob, eve):
    """The successor reads the predecessor's entries, writes its own under the same keys, and the old ones stay."""
    intents.begin(OPERATOR, "t", agent="ada")
    ada.store("step", "ada's", "working", task="t")
    ada.store("note", "ada's", "working", task="t", namespace="n")
    with pytest.raises(NotFound):
        bob.get("step", task="t")
    assert intents.assign(OPERATOR, "t", "bob").former == ("ada",)
    found = bob.get("step", task="t")
    assert (found.value, found.agent, bob.get("note", task="t", namespace="n").agent) == ("ada's", "ada", "ada")
    with pytest.raises(Forbidden):
        intents.update(bob.caller, found.id, version=1, value="bob's")
    bob.store("step", "bob's", "working", task="t")
    assert (bob.get("step", task="t").value, ada.get("step", task="t").value) == ("bob's", "ada's")
    assert bob.get("step", of="ada", task="t").value == "ada's"
    with pytest.raises(Forbidden, match="is not assigned to 'ada'"):
        ada.store("step", 3, "working", task="t")
    with pytest.raises(NotFound):
        ada.get("step", of="bob", task="t")
    with pytest.raises(Forbidden, match="is not assigned to 'eve'"):
        eve.store("step", 3, "working", task="t")
    intents.forget(ada.caller, "ada", "step", task="t")  # what one wrote one may erase


def test_a_task_is_not_taken_by_whoever_likes_to(intents, ada, eve):
    """An agent begins tasks for itself only, and only an operator hands one on: else naming one would open it."""
    ada.store("step", "private", "working", task="t")
    with pytest.raises(Forbidden):
        intents.begin(eve.caller, "t", agent="ada", coordinator="eve")
    intents.begin(eve.caller, "t", agent="eve", coordinator="eve")
    with pytest.raises(Forbidden, match="only an operator may"):
        intents.assign(eve.caller, "t", "ada")
    assert eve.listed(task="t") == []
    with pytest.raises(NotFound):
        eve.get("step", of="ada", task="t")
    with pytest.raises(NotFound):
        intents.begin(eve.caller, "sub", agent="eve", parent="absent", policy={"inherit_from_parent": True})


def test_a_sub_task_that_inherits_reads_the_one_above(intents, ada, bob, eve):
    """Read-only, only if it says so, and only begun by who may read the parent."""
    intents.begin(OPERATOR, "top", agent="ada")
    ada.store("goal", 1, "working", task="top")
    with pytest.raises(NotFound):
        intents.begin(eve.caller, "sneak", agent="eve", parent="top", policy={"inherit_from_parent": True})
    intents.begin(OPERATOR, "plain", agent="bob", parent="top")
    with pytest.raises(NotFound):
        bob.get("goal", task="plain")
    intents.begin(OPERATOR, "sub", agent="bob", parent="top", policy={"inherit_from_parent": True})
    intents.begin(OPERATOR, "subsub", agent="eve", parent="sub", policy={"inherit_from_parent": True})
    bob.store("part", 2, "working", task="sub")
    assert bob.get("goal", task="sub").agent == "ada"
    assert bob.recall(task="sub", tier="working") == bob.listed(task="sub", tier="working") == ["part", "goal"]
    assert eve.listed(task="subsub") == ["part", "goal"]
    with pytest.raises(NotFound):
        bob.get("goal", task="top")
    with pytest.raises(Forbidden):
        intents.forget(bob.caller, "bob", "goal", task="sub")
    intents.finish(bob.caller, "sub")
    assert bob.listed(task="sub") == []


def test_a_sub_task_opens_the_one_above_to_nobody_but_who_works_on_it(intents, ada, bob, eve):
    """A coordinator of the part is none of the whole."""
    intents.begin(OPERATOR, "top", agent="ada", coordinator="bob")
    ada.store("goal", 1, "working", task="top")
    intents.begin(bob.caller, "sub", agent="bob", coordinator="eve", parent="top", policy={"inherit_from_parent": True})
    bob.store("part", 2, "working", task="sub")
    assert bob.listed(task="sub") == ["part", "goal"]
    assert eve.listed(task="sub") == ["part"]
    with pytest.raises(NotFound):
        eve.get("goal", task="sub")


def test_a_task_begins_once(intents, ada, bob):
    """Its name is taken from then on, and a policy that makes no sense is refused."""
    intents.begin(ada.caller, "t", agent="ada", coordinator="bob")
    assert intents.task(bob.caller, "t").assigned == "ada"
    with pytest.raises(Conflict, match="there is a task 't' already"):
        intents.begin(ada.caller, "t", agent="ada")
    for policy in ({"colour": 1}, {"max_entries": 0}, {"inherit_from_parent": "yes"}, {"max_total_size_kb": True}):
        with pytest.raises(InvalidInput):
            intents.begin(ada.caller, "u", agent="ada", policy=policy)

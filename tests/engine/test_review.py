"""A person's word is told from an agent's: what agents change of it waits, and only a person decides."""

from __future__ import annotations

import pytest

from commonplace.engine.origins import trace_origin
from commonplace.engine.review import find_waiting, list_waiting
from commonplace.engine.rollback import plan_rollback, roll_back
from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from commonplace.model.queries import State
from commonplace.model.records import Channel, Source, Trust
from stands import rows


@pytest.fixture
def agent(through):
    """The same project as an agent sees it."""
    return through(Channel.AGENT)


@pytest.fixture
def fact(memory):
    """A decision that a person wrote."""
    return memory.remember("Deploys happen on Fridays", category="decisions", tags=["ops"]).record


# Authority


def test_an_approved_record_counts_as_a_persons_word(memory, agent):
    """It keeps its source and its trust; only a person's yes is new."""
    record = agent.remember("Release: tag, build", category="procedures").record
    approved = memory.approve(record.id).record

    assert (record.has_authority, approved.has_authority) == (False, True)
    assert (approved.trust, approved.source, approved.approved_at) == (Trust.AGENT, record.source, memory.clock())


def test_an_agent_neither_approves_nor_rejects(agent):
    """Not even what it wrote itself."""
    record = agent.remember("Release: tag, build", category="procedures", held=True).record
    for decide in (agent.approve, agent.reject, agent.release):
        with pytest.raises(Forbidden, match="waits for a person"):
            decide(record.id)


def test_what_is_approved_is_not_changed_by_who_is_no_person(memory, agent):
    """An approved record is as safe from an agent as a person's own, though its trust is an agent's."""
    record = memory.approve(agent.remember("Use yarn", category="preferences").record.id).record
    held = agent.update(record.id, content="Use npm")
    replaced = agent.remember("Use bun", category="preferences", supersedes=record.id)

    assert (held.held_for, replaced.record.held, replaced.superseded) == (record.id, True, None)
    assert memory.get(record.id) == record


def test_a_persons_edit_keeps_the_approval_and_the_words_are_theirs(memory, agent):
    """After it there is no need to ask again."""
    record = memory.approve(agent.remember("Use yarn", category="preferences").record.id).record
    assert memory.update(record.id, content="Use pnpm").record.trust is Trust.USER


# Held writes


def test_an_agents_change_of_a_persons_record_waits(memory, agent, fact):
    """The record stays as it is, and the answer says so in one sentence."""
    done = agent.update(fact.id, content="Deploys happen on Mondays")

    assert (done.held_for, done.record.held, memory.get(fact.id)) == (fact.id, True, fact)
    waits = f"so this waits for review as {done.record.short} and nothing has changed yet"
    assert done.notes == (f"record {fact.short} is trusted more than agent, {waits}",)


def test_the_same_change_waits_once(agent, memory, fact):
    """A model that tries again adds nothing."""
    first = agent.update(fact.id, content="Deploys happen on Mondays")
    again = agent.update(fact.id, content="Deploys happen on Mondays")

    assert (again.record.id, again.deduped) == (first.record.id, True)
    assert len(memory.list(states=[State.HELD])) == 1


def test_an_approved_change_is_made_and_nothing_else(memory, agent, fact):
    """What a person changed meanwhile stays; the new words keep their author and are approved."""
    held = agent.update(fact.id, content="Deploys happen on Mondays").record
    memory.update(fact.id, tags=["ops", "weekly"])
    after = memory.approve(held.id).record

    assert (after.id, after.content, after.tags) == (fact.id, "Deploys happen on Mondays", {"ops", "weekly"})
    assert (after.trust, after.source.channel, after.has_authority) == (Trust.AGENT, Channel.AGENT, True)
    assert memory.get(held.id).superseded_by == fact.id
    assert [past.content for past in memory.history(fact.id)][-1] == "Deploys happen on Fridays"


@rows("fields", [{"content": "x y z"}, {"category": "principles"}, {"tags": ["new"]}, {"pinned": True}])
def test_each_field_of_a_change_is_held_and_made(through, fields):
    """Words, category, tags and the pin alike."""
    memory, agent = through(), through(Channel.AGENT)
    record = memory.remember(f"A decision {fields!r}", category="decisions").record
    held = agent.update(record.id, **fields).record
    after = memory.approve(held.id).record

    name, value = next(iter(fields.items()))
    assert getattr(memory.history(record.id)[1], name) == getattr(record, name)
    assert getattr(after, name) == (frozenset(value) if name == "tags" else value)


def test_a_stale_version_is_a_conflict_before_anything_waits(memory, agent, fact):
    """Who says which version they have read is told that it is another one."""
    memory.update(fact.id, tags=[])
    with pytest.raises(Conflict, match="is at version 2, not 1"):
        agent.update(fact.id, content="Deploys happen on Mondays", expect=1)
    assert memory.list(states=[State.HELD]) == []


def test_an_agents_wish_to_erase_waits(memory, agent, fact):
    """Rejected, the record is as before; approved, it is gone with the wish itself."""
    wish = agent.forget(fact.id)
    assert (wish.ids, wish.held.held, memory.get(fact.id)) == ((), True, fact)

    memory.reject(wish.held.id)
    assert (memory.get(fact.id), memory.get(wish.held.id).archived_at) == (fact, memory.clock())

    done = memory.approve(agent.forget(fact.id).held.id)
    assert (done.record, done.erased[0]) == (None, fact.id)
    for gone in (fact.id, wish.held.id):
        with pytest.raises(NotFound):
            memory.get(gone)


def test_an_agents_wish_to_archive_waits(memory, agent, fact):
    """It takes nothing of a person out of recall."""
    wish = agent.archive(fact.id)
    assert (wish.held, memory.get(fact.id)) == (True, fact)
    assert memory.approve(wish.id).record.archived_at == memory.clock()


def test_an_approved_replacement_closes_what_it_replaces(memory, agent, fact):
    """What ``supersedes`` wanted is done by the approval."""
    held = agent.remember("Deploys happen on Mondays", category="decisions", supersedes=fact.id).record
    approved = memory.approve(held.id).record

    assert (approved.held, memory.get(fact.id).superseded_by) == (False, approved.id)


def test_an_agent_clears_no_memory_that_holds_a_persons_words(memory, agent, fact, project):
    """What it may not erase one by one, it may not erase at once."""
    with pytest.raises(Forbidden, match="holds what a person wrote or approved"):
        agent.clear(project)
    assert memory.get(fact.id) == fact


def test_agents_change_their_own_records_as_before(agent):
    """Nothing waits among equals."""
    record = agent.remember("one", category="decisions").record
    assert agent.update(record.id, content="two").record.content == "two"
    assert agent.forget(record.id).ids == (record.id,)


def test_erasing_a_record_erases_what_was_proposed_for_it(memory, agent, fact):
    """A proposal repeats the record's words, so it may not outlive it."""
    held = agent.update(fact.id, content="Deploys happen on Mondays").record
    assert memory.forget(fact.id).ids == (fact.id, held.id)


# What waits


def test_what_waits_is_held_proposed_or_an_instruction(memory, agent, through, fact):
    """And nothing else: facts of agents and of the outside are live without a question."""
    held = memory.hold(memory.remember("perhaps", category="incidents").record.id)
    procedure = agent.remember("Release: tag", category="procedures").record
    agent.remember("The cache is Redis", category="decisions")
    through(Channel.IMPORT).remember("Imported fact", category="decisions")
    proposed = agent.update(fact.id, content="Deploys happen on Mondays").record

    found = list_waiting(memory)
    assert {one.record.id for one in found} == {held.id, procedure.id, proposed.id}
    assert {one.change.action for one in found if one.change} == {"update"}
    assert next(one for one in found if one.change).target == fact


def test_a_file_from_elsewhere_waits(memory, store, make, project):
    """A record of a file that is trusted as external, whatever it says."""
    came = make("It says so", scope=project, category="decisions", trust=Trust.EXTERNAL)
    store.apply([make.put(came.replace(source=Source(channel=Channel.FILE, ref="decisions/it.md")))])

    assert [one.why for one in list_waiting(memory)] == ["it came with a file from elsewhere"]
    assert memory.approve(came.id).record.has_authority


@rows(
    "ref, origin, found",
    [
        ("session:0b1c#4", "session:0b1c", True),
        ("session:0b1c#4", "0b1c", True),
        ("session:0b1c#4", "session:0b1", False),
        ("decisions/a.md", "decisions", True),
        ("session:0b1c#4", "agent", True),
        ("session:0b1c#4", "import", False),
    ],
)
def test_an_origin_is_a_channel_a_session_or_a_file(through, ref, origin, found):
    """Whole names only: one session is not taken for another."""
    agent = through(Channel.AGENT)
    agent.remember(f"Steps {ref} {origin}", category="procedures", ref=ref)
    assert bool([one for one in list_waiting(agent, origin=origin) if origin in one.record.content]) == found


def test_only_what_waits_can_be_rejected(memory, fact):
    """A person's own record is archived or deleted by those verbs."""
    with pytest.raises(InvalidInput, match="does not wait for review"):
        memory.reject(fact.id)
    with pytest.raises(InvalidInput, match="does not wait for review"):
        find_waiting(memory, fact.id)


def test_an_archived_record_is_not_approved(memory, agent):
    """What was rejected does not come back by an approval."""
    record = agent.remember("Release: tag", category="procedures").record
    memory.reject(record.id)
    with pytest.raises(InvalidInput, match="is archived"):
        memory.approve(record.id)


# Where it comes from


def test_a_record_is_traced_to_its_parents_and_turns(memory, agent):
    """Each record of the chain once, with the words of the turn that it rests on."""
    memory.index(DocumentKind.SESSION, "0b1c", [Turn(ref="4", text="We deploy on Fridays", speaker="user")])
    parent = agent.remember("Deploys on Fridays", category="decisions", ref="session:0b1c#4").record
    child = memory.remember("No deploys on Mondays", category="principles", parents=[parent.id]).record
    chain = trace_origin(memory, child.id).chain

    assert [(one.id, one.depth) for one in chain] == [(child.id, 0), (parent.id, 1)]
    assert [(turn.ref, turn.text, turn.speaker) for turn in chain[1].turns] == [
        ("session:0b1c#4", "We deploy on Fridays", "user")
    ]
    assert chain[1].steps[0].trust is Trust.AGENT


def test_an_erased_parent_and_a_lost_session_are_said(memory):
    """What is gone is named and nothing more."""
    parent = memory.remember("one", category="decisions", ref="session:gone#1").record
    other = memory.remember("other", category="decisions").record
    child = memory.remember("two", category="decisions", parents=[parent.id, other.id]).record
    memory.forget(other.id)
    chain = {one.id: one for one in trace_origin(memory, child.id).chain}

    assert chain[other.id].erased
    assert chain[parent.id].turns[0].text is None


# Undoing


def test_what_came_from_an_origin_is_undone(memory, agent, clock):
    """New records are archived, changed ones go back, replaced ones come back."""
    mine = agent.remember("Tabs", category="decisions").record
    memory.update(mine.id, content="Spaces")
    clock.forward()
    new = agent.remember("Fridays", category="decisions").record
    own = agent.remember("Port 1", category="incidents").record
    next_one = agent.remember("Port 2", category="incidents", supersedes=own.id).record
    done = roll_back(memory, origin="agent")

    assert {undo.record.id for undo in done.undone} == {new.id, next_one.id}
    assert [undo.record.id for undo in done.left] == [mine.id]
    assert memory.get(mine.id).content == "Spaces"
    assert memory.get(own.id).superseded_by == next_one.id
    assert memory.list() == [memory.get(mine.id)]


def test_a_change_goes_back_to_the_version_before(memory, agent, fact):
    """An approved change of an agent is undone to a person's words, with their trust."""
    memory.approve(agent.update(fact.id, content="Deploys happen on Mondays").record.id)
    roll_back(memory, origin="agent")

    after = memory.get(fact.id)
    assert (after.content, after.trust, after.version) == (fact.content, Trust.USER, 3)


def test_what_was_replaced_comes_back(memory, agent, through):
    """If what replaced it goes, it holds again."""
    first = through(Channel.CAPTURE).remember("Mondays", category="decisions").record
    agent.remember("Fridays", category="decisions", supersedes=first.id)
    roll_back(memory, origin="agent")

    assert [record.content for record in memory.list()] == ["Mondays"]
    assert memory.get(first.id).superseded_by is None


def test_what_happened_since_is_undone_and_that_can_be_undone(memory, agent, clock, fact):
    """Nothing is erased: a rollback since before the first one brings all of it back."""
    clock.forward()
    since = clock()
    new = agent.remember("new", category="decisions").record
    memory.update(fact.id, content="Deploys happen on Mondays")
    memory.archive(memory.remember("short-lived", category="incidents").record.id)
    clock.forward()
    first = clock()
    roll_back(memory, since=since)
    assert [record.content for record in memory.list()] == [fact.content]

    clock.forward()
    roll_back(memory, since=first)
    assert {record.content for record in memory.list()} == {"new", "Deploys happen on Mondays"}
    assert memory.get(new.id).archived_at is None


def test_a_preview_changes_nothing(memory, agent):
    """It says what would be done."""
    record = agent.remember("new", category="decisions").record
    assert [undo.action for undo in plan_rollback(memory, origin="agent").undone] == ["archive"]
    assert memory.get(record.id) == record


def test_an_agent_undoes_nothing(agent):
    """An undo is a person's decision."""
    agent.remember("new", category="decisions")
    with pytest.raises(Forbidden, match="waits for a person"):
        roll_back(agent, origin="agent")


def test_a_rollback_names_an_origin_or_a_time(memory):
    """Neither or both would mean nothing or too much."""
    with pytest.raises(InvalidInput, match="an origin or a time"):
        plan_rollback(memory)

"""What a person has erased comes back by no door but their own."""

from __future__ import annotations

from datetime import timedelta

import pytest

from commonplace.engine.erasing import Eraser, Target, list_receipts, select
from commonplace.engine.export_format import export_lines, read_export
from commonplace.engine.memory import with_binding
from commonplace.engine.transcripts import Turn
from commonplace.engine.transfer import Arrival, import_items
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import ErasedBefore
from commonplace.model.queries import ANY_STATE
from commonplace.model.records import Channel, Draft

SECRET = "The vault is behind the quokka painting"


def by(memory, channel):
    """The same memory by another door."""
    return with_binding(memory, memory.binding.replace(channel=channel))


@pytest.fixture
def erased(memory):
    """A record that a person has erased."""
    record = memory.remember(SECRET, category="decisions").record
    done = memory.forget(record.id)
    return record, done.receipt


def texts(memory):
    """Everything that is stored, in whatever state."""
    return [one.content for one in memory.list(states=ANY_STATE)]


@pytest.mark.parametrize("channel", [Channel.AGENT, Channel.EXTRACTION, Channel.CONSOLIDATION, Channel.FILE])
@pytest.mark.usefixtures("erased")
def test_nobody_but_a_person_writes_it_again(memory, channel):
    """Not with other capitals, blanks or a full stop; what is said otherwise is another fact."""
    theirs = by(memory, channel)
    for text in (SECRET, f"  {SECRET.upper()}. "):
        with pytest.raises(ErasedBefore, match="forget --allow"):
            theirs.remember(text, category="decisions")
    theirs.remember("The vault is behind the wombat painting", category="decisions")
    assert SECRET not in texts(memory)


def test_an_agent_does_not_edit_it_back(memory, erased):
    """An update is a write like any other."""
    other = memory.remember("The vault is closed", category="decisions").record
    with pytest.raises(ErasedBefore, match=erased[1]):
        by(memory, Channel.AGENT).update(other.id, content=SECRET)
    assert texts(memory) == ["The vault is closed"]


@pytest.mark.usefixtures("erased")
def test_a_person_who_writes_it_again_lifts_the_tombstone(memory):
    """Their word counts: it is stored, they are told, and from then on agents may say it too."""
    result = memory.remember(SECRET, category="decisions")
    assert "you had erased this before" in result.notes[0]
    again = by(memory, Channel.AGENT).update(result.record.id, tags=["vault"]).record
    assert again.content == SECRET


def test_what_another_record_says_as_well_stays_sayable(memory):
    """One of two is erased: the other one is edited, recalled and learned as before."""
    one = memory.remember(SECRET, category="decisions").record
    other = by(memory, Channel.AGENT).remember(SECRET, category="incidents", ttl=timedelta(days=9)).record
    memory.forget(one.id)
    assert by(memory, Channel.AGENT).update(other.id, tags=["vault"]).record.content == SECRET


def test_an_agent_s_own_housekeeping_leaves_no_tombstone(memory):
    """What an agent erases for itself it may write again; what it erases for a person it may not."""
    agent = by(memory, Channel.AGENT)
    agent.forget(agent.remember(SECRET, category="decisions").record.id)
    record = agent.remember(SECRET, category="decisions").record
    assert agent.forget(record.id, for_good=True).receipt
    with pytest.raises(ErasedBefore):
        agent.remember(SECRET, category="decisions")


def test_an_export_does_not_bring_it_back(memory, clock):
    """By its id, and by any of its texts; the rest of the export comes in, and the note counts."""
    record = memory.remember(SECRET, category="decisions").record
    memory.update(record.id, content="The vault is empty now")
    memory.remember("Tea is at four", category="decisions")
    lines = [*export_lines(memory.store, frozenset(memory.binding.reads), now=clock())]
    memory.forget(record.id)
    done = import_items(memory, read_export(lines, "x"))
    assert (done.added, done.duplicates, done.erased) == (0, 1, 1)
    assert "1 record not revived" in done.notes[0]
    assert texts(memory) == ["Tea is at four"]

    renamed = [line.replace(record.id, "0" * len(record.id)) for line in lines]
    assert import_items(memory, read_export(renamed, "x")).erased == 1
    assert texts(memory) == ["Tea is at four"]


def test_a_file_of_another_tool_does_not_bring_it_back(memory, erased):
    """An import of facts is no person's word."""
    fact = Arrival(place="AGENTS.md:1", draft=Draft(content=SECRET, category="decisions", ref="AGENTS.md#1"))
    done = import_items(by(memory, Channel.IMPORT), [fact])
    assert (done.added, done.erased) == (0, 1)
    assert erased[1] in done.notes[0]


def test_a_receipt_holds_no_word(memory, erased):
    """Who, when, how many, which ids, and digests that only this key makes."""
    record, receipt = erased
    [found] = list_receipts(memory.store, memory.binding.reads)
    assert (found.id, found.records, found.counts) == (receipt, (record.id,), {"records": 1})
    assert found.digests
    held = repr(found) + repr(memory.store.tombstones())
    assert [word for word in SECRET.split() if word in held] == []


# Sessions

TURNS = [
    Turn(ref="1", text="Please remember that the vault is behind the quokka painting.", speaker="user"),
    Turn(ref="2", text="ok", speaker="assistant"),
]


def erase_session(memory, name, clock):
    """Erase a session as a person does."""
    eraser = Eraser(
        memory.store, reads=memory.binding.reads, secret=memory.secret, clock=clock, by="user"
    )  # fmt: skip
    target = Target(sessions=frozenset({name}))
    return eraser.carry_out(select(memory.store, target, memory.binding.reads, clock()))


@pytest.fixture
def indexed(memory, clock):
    """A session that was indexed and then erased."""
    memory.index(DocumentKind.SESSION, "s1", TURNS)
    receipt, _ = erase_session(memory, "s1", clock)
    return receipt


def found(memory, question="vault quokka painting"):
    """What recall finds of sessions."""
    return [hit.text for hit in memory.recall(question).hits]


def test_an_erased_session_is_gone_and_does_not_come_back(memory, indexed):
    """Not under its name, and its turns not under another one; what says too little to be recognised may stand."""
    assert found(memory) == []
    assert "1 session not revived" in memory.index(DocumentKind.SESSION, "s1", TURNS).notes[0]
    assert indexed.counts == {"sessions": 1}
    assert "1 turn not revived" in memory.index(DocumentKind.SESSION, "copy", TURNS).notes[0]
    assert found(memory) == []
    assert found(memory, "ok") == ["ok"]


@pytest.mark.usefixtures("indexed")
def test_a_turn_that_is_said_after_the_erasure_is_new(memory, clock):
    """A person may say the same again; a copy of the old transcript has the old time."""
    later = clock.forward(timedelta(hours=1))
    old, new = (TURNS[0].replace(occurred_at=at) for at in (later - timedelta(days=9), later))
    memory.index(DocumentKind.SESSION, "old", [old])
    assert found(memory) == []
    memory.index(DocumentKind.SESSION, "new", [new])
    assert found(memory) == [TURNS[0].text]

"""Trust is set by the way something came in, and only ever goes down."""

from __future__ import annotations

from itertools import product

import pytest

from commonplace.model.queries import State
from commonplace.model.records import CEILING, Channel, Source, Trust
from stands import rows

ONE_OF_EACH = (Channel.USER, Channel.FILE, Channel.CONSOLIDATION, Channel.IMPORT)
PAIRS = list(product(ONE_OF_EACH, ONE_OF_EACH))


@pytest.mark.parametrize("channel", Channel)
def test_a_channel_gives_what_trust_it_can(through, channel):
    """The binding says where something comes from; nobody else does."""
    record = through(channel).remember("trust me: I am the user", category="decisions").record

    assert (record.source.channel, record.trust) == (channel, CEILING[channel])


def test_nothing_that_is_said_changes_its_origin(through):
    """Words, metadata and references that claim a source are words, metadata and references."""
    claims = {"source": "user", "trust": "user", "channel": "user"}
    record = through(Channel.IMPORT).remember("source: user", category="decisions", metadata=claims, ref="user").record

    assert (record.source, record.trust) == (Source(channel=Channel.IMPORT, ref="user"), Trust.EXTERNAL)


@pytest.mark.parametrize(("parent", "child"), PAIRS)
def test_what_is_derived_is_trusted_no_more_than_its_parents(through, parent, child):
    """The least trusted parent sets the most that a child can have."""
    first = through(parent).remember("the parent", category="incidents").record
    other = through(Channel.USER).remember("another parent", category="incidents").record
    derived = through(child).remember("the child", category="decisions", parents=[other.id, first.id]).record

    assert derived.trust is min(CEILING[parent], CEILING[child])


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_fact_never_gives_way_to_one_that_is_trusted_less(through, old, new):
    """It is superseded by its equals and betters; anything less is held, with a note, and replaces nothing."""
    fact = through(old).remember("Pay to account 1", category="decisions").record
    kept = through(new).remember("Pay to account 2", category="decisions", supersedes=fact.id)

    weaker = CEILING[new] < CEILING[old]
    assert (kept.record.held, kept.superseded is None, len(kept.notes)) == (weaker, weaker, int(weaker))
    assert [hit.id for hit in through().recall("account")] == [fact.id if weaker else kept.record.id]


def test_the_note_says_what_was_not_replaced(through):
    """Whoever reads it finds the record that stands, and can release the one that waits."""
    memory, agent = through(), through(Channel.AGENT)
    fact = memory.remember("Deploy on Mondays", category="decisions").record
    kept = agent.remember("Deploy on Fridays", category="decisions", supersedes=fact.id)

    assert kept.notes == (f"it is trusted less than {fact.short}, so it is held for review and replaces nothing yet",)
    assert memory.list(states=[State.HELD]) == [kept.record]
    assert memory.release(kept.record.id).trust is Trust.AGENT


@rows(
    "first, second, trust",
    [
        (Channel.IMPORT, Channel.AGENT, Trust.EXTERNAL),
        (Channel.IMPORT, Channel.USER, Trust.USER),
        (Channel.AGENT, Channel.USER, Trust.USER),
    ],
)
def test_whoever_changes_the_words_is_their_source(through, first, second, trust):
    """A person's words are a person's; anybody else's add no trust to what was there."""
    record = through(first).remember("one", category="decisions").record
    after = through(second).update(record.id, content="two").record

    assert (after.source.channel, after.trust) == (second, trust)


@pytest.mark.parametrize(
    "change", [{"tags": ["x"]}, {"pinned": True}, {"category": "principles"}, {"metadata": {"a": 1}}]
)
def test_whoever_changes_anything_else_is_not(through, change):
    """A tag from an agent does not make a person's words an agent's, nor the other way round."""
    record = through(Channel.AGENT).remember("one", category="decisions").record
    after = through(Channel.USER).update(record.id, **change).record

    assert (after.source, after.trust) == (record.source, record.trust)


@pytest.mark.parametrize("weaker", [Channel.AGENT, Channel.IMPORT])
def test_a_key_does_not_let_the_weaker_speak_for_the_stronger(through, weaker):
    """An upsert over what is trusted more is held for review, and the record of the key stays as it is."""
    memory = through()
    record = memory.remember("port 3000", category="decisions", key="port").record
    done = through(weaker).remember("port 6666", category="decisions", key="port")

    assert (done.held_for, done.record.held, done.record.trust) == (record.id, True, CEILING[weaker])
    assert memory.get(record.id) == record
    assert memory.approve(done.record.id).record.content == "port 6666"


def test_parents_survive_an_edit(through):
    """What a record was derived from is still known after somebody rewrote it."""
    memory = through()
    parent = memory.remember("the parent", category="incidents").record
    child = through(Channel.AGENT).remember("the child", category="decisions", parents=[parent.id]).record
    after = memory.update(child.id, content="the child, reworded").record

    assert after.source == Source(channel=Channel.USER, parents=(parent.id,))
    assert memory.forget(parent.id).ids == (parent.id, child.id)

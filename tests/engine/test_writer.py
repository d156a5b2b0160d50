"""The writer: one transaction with the vectors of what it stores, planned again while somebody else is first."""

from __future__ import annotations

import pytest

from commonplace.engine.writer import Writer, document_change
from commonplace.model.changes import Cap, SetVectors, SwitchEmbedder
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import CapacityExceeded, Conflict, InvalidInput
from commonplace.model.records import Channel, Source, Trust


@pytest.fixture
def asked(embedder):
    """An embedder that knows what it was asked."""
    return embedder()


@pytest.fixture
def writer(store, clock, asked):
    """A writer with that embedder."""
    return Writer(store, clock=clock, embedder=asked)


@pytest.fixture
def session(make, clock):
    """A session of some turns, as the change that stores it."""

    def session(*texts, first=0, expect_digest=None, digest="d"):
        source, now = Source(channel=Channel.CAPTURE), clock()
        scope = make.scope
        document = Document(
            scope=scope, kind=DocumentKind.SESSION, name="s", digest=digest, source=source, trust=Trust.AGENT,
            created_at=now, updated_at=now,
        )  # fmt: skip
        chunks = [
            Chunk(
                scope=scope, kind=DocumentKind.SESSION, document="s", seq=number, ref=str(number), text=text,
                trust=Trust.AGENT,
            )
            for number, text in enumerate(texts, start=first)
        ]  # fmt: skip
        return document_change(document, chunks, expect_digest=expect_digest)

    return session


def test_everything_that_a_transaction_stores_is_embedded_at_once(store, writer, asked, make, session):
    """Records and chunks, among whatever else belongs to it; one outcome for each change that was given."""
    where = make.where()
    done = writer.apply([make.put("one"), Cap(where=where, max_records=2), session("two", "three"), make.put("four")])
    done_again = writer.apply([session("five", first=2, expect_digest="d", digest="e")])

    assert [len(outcome.records) for outcome in done.outcomes] == [1, 0, 0, 1]
    assert done.notes == done_again.notes == ()
    assert asked.asked == [(text, False) for text in ("one", "two", "three", "four", "five")]
    assert (store.embedder(), store.count_unembedded(asked.identity)) == (asked.identity, 0)


def test_all_of_a_transaction_lands_or_nothing(store, writer, make):
    """Also the name of the embedder."""
    with pytest.raises(CapacityExceeded):
        writer.apply([make.put("one"), make.put("two"), Cap(where=make.where(), max_records=1)])
    assert (store.measure(make.where()).count, store.embedder()) == (0, None)


def test_what_nobody_searches_for_needs_no_vector(store, writer, asked, make):
    """A record without terms, such as a server's own."""
    writer.apply([make.put("one").replace(terms=())])
    assert (asked.asked, store.embedder()) == ([], None)


def test_nothing_is_written_for_no_changes(writer):
    """A plan that finds nothing to do costs no transaction."""
    assert writer.apply([]).outcomes == ()


def test_a_store_that_changes_over_in_between_gets_the_text_without_a_vector(store, clock, embedder, make):
    """Between the look at the store and the write another process may have embedded it anew."""
    other = embedder(name="other")

    class Slow(embedder):
        """While it embeds, the store changes over."""

        def embed(self, texts, *, query=False):
            """Let another process do its work first."""
            store.apply([SetVectors(identity=other.identity, vectors={}), SwitchEmbedder(identity=other.identity)])
            return super().embed(texts, query=query)

    done = Writer(store, clock=clock, embedder=Slow()).apply([make.put("one")])
    assert "the store holds vectors of 'other', the embedder in use is 'meanings'" in done.notes[0]
    assert (store.embedder(), store.count_unembedded(other.identity)) == (other.identity, 1)


def test_a_plan_is_made_again_while_somebody_else_is_first(store, writer, asked, make):
    """It sees what is there by then, and each text is embedded once."""
    [outcome] = store.apply([make.put("first")])
    record, plans = outcome.records[0], []

    def plan():
        held = store.get(record.id)
        plans.append(held.version)
        if len(plans) < 3:
            store.apply([make.update(held, content="in between")])
        return [make.update(held, content="mine")], f"on {held.version}"

    written, made = writer.retry(plan, busy="it is busy")
    assert (plans, made) == ([1, 2, 3], "on 3")
    assert (written.outcomes[0].records[0].version, store.get(record.id).content) == (4, "mine")
    assert asked.asked == [("mine", False)]


def test_after_so_many_tries_it_is_a_conflict(store, writer, make):
    """The sentence says what is busy and how often it was tried; the conflict that was met last is its cause."""
    [outcome] = store.apply([make.put("first")])
    record = outcome.records[0]
    with pytest.raises(Conflict, match="the key is busy; it was tried 3 times") as caught:
        writer.retry(
            lambda: ([make.update(record, content="mine").replace(expect=7)], None), busy="the key is busy", tries=3
        )
    assert (caught.value.current, caught.value.holder) == (1, record.id)


def test_what_a_plan_refuses_is_not_tried_again(store, writer, make):
    """Errors of the plan are the caller's, and so is a conflict that no second plan could avoid."""
    plans = []

    def refusing():
        plans.append(1)
        raise InvalidInput("no")

    with pytest.raises(InvalidInput, match="no"):
        writer.retry(refusing, busy="busy")
    record = store.apply([make.put("first")])[0].records[0]

    def hopeless():
        plans.append(2)
        return [make.update(record, content="mine").replace(expect=7)], None

    with pytest.raises(Conflict, match="version"):
        writer.retry(hopeless, busy="busy", when=lambda _: False)
    assert plans == [1, 2]

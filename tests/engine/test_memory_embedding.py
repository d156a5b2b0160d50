"""Meaning beside words: an embedder helps, fails and changes without losing anything."""

from __future__ import annotations

import pytest

from commonplace.engine.transcripts import Turn
from commonplace.intents.intents import Caller, Intents
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import ProviderError

ALIKE = "car automobile vehicle"


@pytest.fixture
def failing(embedder):
    """An embedder whose service is down for as long as one likes."""

    class Failing(embedder):
        """Fails while ``down``."""

        down = True

        def embed(self, texts, *, query=False):
            """Embed, or fail as providers do."""
            if self.down:
                raise ProviderError("the embedding service does not answer")
            return super().embed(texts, query=query)

    return Failing(ALIKE)


def test_a_paraphrase_is_found_that_words_alone_miss(through, embedder):
    """With vectors a question finds what says the same in other words."""
    memory = through(embedder=embedder(ALIKE))
    memory.remember("the automobile needs petrol", category="decisions")
    memory.remember("lunch is at noon", category="decisions")

    assert not through().recall("car").hits
    hit = memory.recall("car")[0]
    assert hit.text == "the automobile needs petrol"
    assert hit.similarity == pytest.approx(0.5, abs=0.01)
    assert {"meaning", "words"} & {name for name, _ in hit.parts} == {"meaning"}


def test_words_and_meaning_add_up(through, embedder):
    """What matches by both stands above what matches by one."""
    memory = through(embedder=embedder(ALIKE))
    for content in ("my vehicle broke", "my car broke", "the car park of the other office building"):
        memory.remember(content, category="incidents")

    hits = memory.recall("my car broke").hits
    assert hits[0].text == "my car broke"
    assert {"words", "reach", "meaning"} <= {name for name, _ in hits[0].parts}
    assert hits[0].score == pytest.approx(sum(part for _, part in hits[0].parts))


def test_chunks_are_found_by_meaning_too(through, embedder):
    """Sessions are embedded like records."""
    memory = through(embedder=embedder(ALIKE))
    memory.index(DocumentKind.SESSION, "s", [Turn(ref="1", text="the automobile stalled")])
    memory.remember("lunch is at noon", category="decisions")

    assert memory.recall("vehicle stalled")[0].id == "session:s#1"


def test_a_question_is_embedded_as_a_question(through, embedder):
    """Texts and questions are told apart, for embedders that care."""
    asked = embedder(ALIKE)
    memory = through(embedder=asked)
    memory.remember("the automobile", category="decisions")
    memory.recall("car")

    assert asked.asked == [("the automobile", False), ("car", True)]


def test_an_update_is_embedded_anew(through, embedder):
    """The old meaning is gone with the old words."""
    memory = through(embedder=embedder(ALIKE))
    record = memory.remember("the automobile", category="decisions").record
    memory.update(record.id, content="the banana")

    assert memory.recall("vehicle", count=False).hits == ()
    assert memory.recall("banana")[0].similarity == pytest.approx(0.707, abs=0.01)


def test_an_embedder_that_fails_blocks_no_write(through, failing):
    """The text is stored and found by its words until a vector catches up, and a note says so."""
    memory = through(embedder=failing)
    done = memory.remember("the automobile", category="decisions")
    assert done.notes == ("stored without a vector, so that only words find it: the embedding service does not answer",)
    memory.update(done.record.id, content="the red automobile")
    memory.index(DocumentKind.SESSION, "s", [Turn(ref="1", text="an automobile stalled")])

    failing.down = False
    assert {hit.id for hit in memory.recall("automobile")} == {done.record.id, "session:s#1"}


def test_an_embedder_that_fails_blocks_no_recall(through, failing):
    """Words still find what they find, and a note says what was missing."""
    memory = through(embedder=failing)
    failing.down = False
    memory.remember("the automobile", category="decisions")
    failing.down = True
    recalled = memory.recall("automobile")

    assert [hit.text for hit in recalled] == ["the automobile"]
    assert recalled.notes == ("only words were searched: the embedding service does not answer",)


def test_a_store_keeps_to_its_embedder(through, embedder, store):
    """With another one texts are stored without vectors and words are searched; a note names both and the way out."""
    own, other = embedder(ALIKE, name="small"), embedder(ALIKE, name="large")
    through(embedder=own).remember("the automobile", category="decisions")
    memory = through(embedder=other)
    why = "the store holds vectors of 'small', the embedder in use is 'large'; `commonplace reembed` changes over"

    done = memory.remember("the vehicle", category="decisions")
    assert done.notes == (f"stored without a vector, so that only words find it: {why}",)
    assert memory.update(done.record.id, content="the other vehicle").notes == done.notes
    memory.index(DocumentKind.SESSION, "s", [Turn(ref="1", text="a vehicle stalled")])
    found = memory.recall("vehicle")
    assert {hit.id for hit in found} == {done.record.id, "session:s#1"}
    assert found.notes == (f"only words were searched: {why}",)
    assert (other.asked, store.embedder()) == ([], own.identity)
    assert store.count_unembedded(own.identity) == 3  # the record, its earlier version and the turn


def test_a_store_keeps_to_its_dimensions(through, embedder, store):
    """The same model with longer vectors is another embedder."""
    through(embedder=embedder(dimensions=64)).remember("one", category="decisions")
    done = through(embedder=embedder(dimensions=128)).remember("two", category="decisions")

    assert "vectors of 64 dimensions, this one has 128; `commonplace reembed`" in done.notes[0]
    assert (store.embedder().dimensions, store.count_unembedded(store.embedder())) == (64, 1)


@pytest.mark.parametrize(
    ("given", "reason"),
    [([[0.6, 0.8]], "'meanings' gave a vector of 2 dimensions and announced 512"),
     ([], "'meanings' gave 0 vectors for 1 texts"),
     ([[float("nan")] * 512], "'meanings' gave a vector that is not made of finite numbers")],
    ids=["short", "none", "nan"],
)  # fmt: skip
def test_what_is_no_vector_is_not_stored(through, embedder, store, given, reason):
    """An embedder that is wrong about itself is caught at the first vector; the text is stored without."""

    class Wrong(embedder):
        """Gives something else than it announced."""

        def embed(self, texts, *, query=False):  # noqa: ARG002 - the port's
            """Give that, whatever is asked."""
            return given

    done = through(embedder=Wrong()).remember("one", category="decisions")
    assert done.notes == (f"stored without a vector, so that only words find it: {reason}",)
    assert (store.embedder(), [record.content for record in through().list()]) == (None, ["one"])


def test_who_has_no_embedder_reads_and_writes_all_the_same(through, embedder):
    """A store with vectors serves those who have none."""
    through(embedder=embedder(ALIKE)).remember("the automobile", category="decisions")
    plain = through()
    plain.remember("the other automobile", category="decisions")

    assert len(plain.recall("automobile")) == 2
    assert all(hit.similarity is None for hit in plain.recall("automobile"))


def test_an_entry_is_stored_and_found_by_its_words_with_another_embedder(store, clock, embedder):
    """Intent memory writes and searches by the same rule; a store that has none yet adopts the first."""
    own, other = embedder(ALIKE, name="small"), embedder(ALIKE, name="large")
    ada = Caller(agent="ada")
    Intents(store, clock=clock, embedder=own).store(ada, "ada", "a", "the automobile", tier="episodic")
    intents = Intents(store, clock=clock, embedder=other)
    intents.store(ada, "ada", "b", "the vehicle", tier="episodic")

    assert [entry.key for entry in intents.recall(ada, "ada", query="vehicle")] == ["b"]
    assert [entry.key for entry in Intents(store, clock=clock, embedder=own).recall(ada, "ada", query="car")] == ["a"]
    assert (other.asked, store.embedder(), store.count_unembedded(own.identity)) == ([], own.identity, 1)

"""Meaning beside words: an embedder helps, fails and changes without losing anything."""

from __future__ import annotations

import pytest

from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import DimensionMismatch, EmbeddingModelChanged, ProviderError

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
    """The text is kept, and found by its words until a vector catches up."""
    memory = through(embedder=failing)
    record = memory.remember("the automobile", category="decisions").record
    memory.update(record.id, content="the red automobile")
    memory.index(DocumentKind.SESSION, "s", [Turn(ref="1", text="an automobile stalled")])

    failing.down = False
    assert {hit.id for hit in memory.recall("automobile")} == {record.id, "session:s#1"}


def test_an_embedder_that_fails_blocks_no_recall(through, failing):
    """Words still find what they find, and a note says what was missing."""
    memory = through(embedder=failing)
    failing.down = False
    memory.remember("the automobile", category="decisions")
    failing.down = True
    recalled = memory.recall("automobile")

    assert [hit.text for hit in recalled] == ["the automobile"]
    assert recalled.notes == ("only words were searched: the embedding service does not answer",)


def test_a_store_keeps_to_its_embedder(through, embedder):
    """Vectors of another model are refused by name, on both sides, and nothing is written."""
    through(embedder=embedder(name="small")).remember("one", category="decisions")
    other = through(embedder=embedder(name="large"))

    for verb in (lambda: other.remember("two", category="decisions"), lambda: other.recall("one")):
        with pytest.raises(EmbeddingModelChanged, match=r"'small'.*'large'") as caught:
            verb()
        assert (caught.value.stored, caught.value.offered) == ("small", "large")
    assert [record.content for record in through().list()] == ["one"]


def test_a_store_keeps_to_its_dimensions(through, embedder):
    """The same model with longer vectors is refused by its length."""
    through(embedder=embedder(dimensions=64)).remember("one", category="decisions")

    with pytest.raises(DimensionMismatch) as caught:
        through(embedder=embedder(dimensions=128)).remember("two", category="decisions")
    assert (caught.value.stored, caught.value.offered) == (64, 128)


def test_a_vector_that_is_not_as_long_as_announced_is_refused(through, embedder):
    """An embedder that lies about itself is caught at the first vector."""

    class Liar(embedder):
        """Says 512 and gives 2."""

        def embed(self, texts, *, query=False):
            """Give too little, to whomever."""
            return [[0.6, 0.8] for _ in [*texts, query][:-1]]

    with pytest.raises(DimensionMismatch):
        through(embedder=Liar()).remember("one", category="decisions")
    assert through().list() == []


def test_who_has_no_embedder_reads_and_writes_all_the_same(through, embedder):
    """A store with vectors serves those who have none."""
    through(embedder=embedder(ALIKE)).remember("the automobile", category="decisions")
    plain = through()
    plain.remember("the other automobile", category="decisions")

    assert len(plain.recall("automobile")) == 2
    assert all(hit.similarity is None for hit in plain.recall("automobile"))

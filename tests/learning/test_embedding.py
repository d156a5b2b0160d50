"""Vectors are caught up after a failing embedder, and a store is embedded anew beside the vectors that it uses."""

import os
import signal
import subprocess
import sys

import pytest
from learners import lines

from commonplace.engine.embedding import BATCH, catch_up, reembed
from commonplace.engine.writer import Writer
from commonplace.model.binding import Binding
from commonplace.model.changes import AdoptEmbedder
from commonplace.model.errors import ProviderError
from commonplace.model.ports import EmbedderIdentity, ModelAnswer
from commonplace.model.records import Channel, Kind
from commonplace.roles.consolidate import consolidate

COUNT = 3 * BATCH + 10


class Lengths:
    """An embedder that knows a text by its length; it fails, or dies, after so many texts."""

    def __init__(self, name="lengths", *, after=10**9, dying=False):
        self.identity = EmbedderIdentity(name=name, dimensions=2)
        self.left, self.dying, self.texts = after, dying, []

    def embed(self, texts, *, query=False):  # noqa: ARG002 - the port's
        """Embed, until it is too much."""
        if len(texts) > self.left:
            if self.dying:
                os.kill(os.getpid(), signal.SIGKILL)
            raise ProviderError("the embedding service does not answer")
        self.left -= len(texts)
        self.texts += texts
        return [(1.0, len(text) / 100) for text in texts]


@pytest.fixture
def bare(store, make):
    """A store with texts that have no vector."""
    store.apply([make.put(f"text {number}") for number in range(COUNT)])
    return store


def test_gaps_are_filled_in_batches_and_told(bare, make):
    """Every text gets its vector, and whoever listens hears how far it is."""
    told = []
    assert catch_up(bare, Lengths(), progress=lambda *progress: told.append(progress)) == COUNT
    assert told == [(BATCH, COUNT), (2 * BATCH, COUNT), (3 * BATCH, COUNT), (COUNT, COUNT)]
    assert len(bare.nearest(make.where(), (1.0, 0.0), limit=COUNT)) == COUNT
    assert catch_up(bare, Lengths()) == 0


def test_no_more_are_filled_than_asked_for(bare):
    """A bound is kept to the text."""
    assert catch_up(bare, Lengths(), limit=BATCH + 1) == BATCH + 1
    assert bare.count_unembedded(Lengths().identity) == COUNT - BATCH - 1
    assert catch_up(bare, Lengths(), limit=0) == 0


def test_what_was_embedded_before_a_failure_is_kept(bare):
    """A failing embedder is told, and the next run goes on from there."""
    with pytest.raises(ProviderError, match="does not answer"):
        catch_up(bare, Lengths(after=2 * BATCH))
    assert catch_up(bare, Lengths()) == COUNT - 2 * BATCH


def test_an_embedder_that_gives_too_few_is_told(bare):
    """A vector is never given to the wrong text."""

    class Short(Lengths):
        """Gives one vector less."""

        def embed(self, texts, *, query=False):
            """Forget the last one."""
            return super().embed(texts, query=query)[:-1]

    with pytest.raises(ProviderError, match=f"'lengths' gave {BATCH - 1} vectors for {BATCH} texts"):
        catch_up(bare, Short())


def test_another_embedder_catches_nothing_up(bare):
    """Gaps are filled by the store's own embedder only; `reembed` is what changes over."""
    catch_up(bare, Lengths(), limit=1)
    other = Lengths("other")
    assert (catch_up(bare, other), other.texts) == (0, [])
    assert bare.count_unembedded(Lengths().identity) == COUNT - 1


def test_a_store_is_embedded_anew(bare, make):
    """After it the store's vectors are all of the new embedder."""
    catch_up(bare, Lengths())
    report = reembed(bare, Lengths("other"))
    assert (report.embedded, report.before.name, report.now.name) == (COUNT, "lengths", "other")
    assert (bare.embedder().name, bare.count_unembedded(report.now)) == ("other", 0)
    assert len(bare.nearest(make.where(), (1.0, 0.0), limit=COUNT)) == COUNT


def test_a_failure_leaves_the_old_vectors_in_use(bare, make):
    """What was built is kept beside, and the next run needs only the rest."""
    catch_up(bare, Lengths())
    with pytest.raises(ProviderError):
        reembed(bare, Lengths("other", after=BATCH))
    assert bare.embedder().name == "lengths"
    assert len(bare.nearest(make.where(), (1.0, 0.0), limit=COUNT)) == COUNT
    assert reembed(bare, Lengths("other")).embedded == COUNT - BATCH


def test_what_is_written_meanwhile_is_embedded_too(bare, make):
    """A text that comes in the middle, or just before the switch, gets its vector before it."""

    class Interrupted(Lengths):
        """Somebody writes while it works."""

        def embed(self, texts, *, query=False):
            """Embed, and be interrupted now and then."""
            if len(self.texts) < COUNT + 2:
                bare.apply([make.put(f"meanwhile {len(self.texts)}")])
            return super().embed(texts, query=query)

    catch_up(bare, Lengths())
    other = Interrupted("other")
    reembed(bare, other)
    assert sorted(other.texts) == sorted(
        match.record.content for match in bare.nearest(make.where(), (1.0, 0.0), limit=999)
    )
    assert sum("meanwhile" in text for text in other.texts) >= 4


def test_embedding_anew_with_the_same_embedder_fills_gaps(bare):
    """The same identity gives the same vectors: only what lacks one is embedded."""
    catch_up(bare, Lengths(), limit=BATCH)
    assert reembed(bare, Lengths()).embedded == COUNT - BATCH


class Silent:
    """A model that finds one fact in every episode."""

    name, window = "test:silent", None

    def ask(self, system, prompt, *, max_tokens, effort="low"):  # noqa: ARG002 - the port's
        """Answer with the fact."""
        return ModelAnswer(text="fact: Deploys are on Fridays [1]", model=self.name)


def test_sessions_and_what_is_learned_of_them_are_stored_with_another_embedder(place, learn, indexed):
    """Found by words; the reports say why, once for each run."""
    place.store.apply([adopt("own")])
    other = place.replace(embedder=Lengths("other"))
    found = indexed("s", lines("Let's use pnpm, not npm", "We decided to use PostgreSQL for the shop"), other)
    done = learn("s", lines("Let's use pnpm, not npm", "We decided to use PostgreSQL for the shop"), other)

    why = "the store holds vectors of 'own', the embedder in use is 'other'; `commonplace reembed` changes over"
    assert done.records
    assert found.notes == done.notes == (f"stored without a vector, so that only words find it: {why}",)
    assert (other.embedder.texts, place.store.embedder().name) == ([], "own")
    assert place.store.count_unembedded(Lengths("own").identity) >= len(done.records) + 2


def test_the_first_session_names_the_embedder(place, indexed):
    """A store without vectors adopts the embedder of the first write, whatever that writes."""
    own = place.replace(embedder=Lengths("own"))
    indexed("s", lines("Let's use pnpm, not npm"), own)
    assert (own.embedder.texts, place.store.embedder().name) == (["Let's use pnpm, not npm"], "own")


def test_facts_of_episodes_are_stored_with_another_embedder(store, clock, make):
    """A role opens no store of another embedder; one that changes over while it runs costs no fact."""
    binding = Binding(channel=Channel.CONSOLIDATION, writes={Kind.SEMANTIC: make.scope}, reads=(make.scope,))
    store.apply([make.put(make("The deploy went out on Friday", kind=Kind.EPISODIC)), adopt("own")])
    done = consolidate(Writer(store, clock=clock, embedder=Lengths("other")), binding, Silent(), most=20)

    assert (done.created, len(done.notes)) == (1, 1)
    assert (store.embedder().name, store.count_unembedded(Lengths("own").identity)) == ("own", 2)


def adopt(name):
    """The change that names the embedder of a store."""
    return AdoptEmbedder(identity=Lengths(name).identity)


DIE = """
import sys
sys.path.insert(0, sys.argv[2])
from test_embedding import BATCH, Lengths, reembed
from commonplace.stores.sqlite.store import SqliteStore
reembed(SqliteStore(sys.argv[1]), Lengths("other", after=2 * BATCH, dying=True))
"""


def test_a_killed_process_leaves_work_that_the_next_one_finishes(file_store, make):
    """Whoever is killed in the middle loses a batch at the most; the old vectors answer until the switch."""
    file_store.apply([make.put(f"text {number}") for number in range(COUNT)])
    catch_up(file_store, Lengths())
    file_store.close()
    command = [sys.executable, "-c", DIE, file_store.path, os.path.dirname(__file__)]
    died = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert (file_store.embedder().name, file_store.count_unembedded(Lengths("other").identity)) == (
        "lengths",
        COUNT - 2 * BATCH,
    )
    assert len(file_store.nearest(make.where(), (1.0, 0.0), limit=COUNT)) == COUNT
    assert reembed(file_store, Lengths("other")).embedded == COUNT - 2 * BATCH
    assert file_store.embedder().name == "other"

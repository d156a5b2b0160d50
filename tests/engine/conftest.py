"""Memories to try the verbs on: a store seen through the records system's binding, and whatever differs from it."""

from __future__ import annotations

from hashlib import sha256

import pytest

from commonplace.engine.memory import Memory
from commonplace.intents.intents import Caller, EntryFilter, Intents
from commonplace.model.binding import Binding
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.records import CATEGORIES, Channel, Kind
from commonplace.model.scopes import Scope

PROJECT = Scope.of(("project", "github.com/acme/shop"))
ASSISTANT = Scope.of(("user", "ada"))


class Meanings:
    """An embedder that hashes words into a few dimensions, and takes the words of one list for the same word."""

    chance = 0.0  # its words have nothing in common but by chance

    def __init__(self, *alike, name="meanings", dimensions=512):
        self.identity = EmbedderIdentity(name=name, dimensions=dimensions)
        self.asked = []
        self._alike = {word: words.split()[0] for words in alike for word in words.split()}

    def embed(self, texts, *, query=False):
        """Count hashed words, to unit length."""
        self.asked += [(text, query) for text in texts]
        return [self._vector(text) for text in texts]

    def _vector(self, text):
        counts = [0.0] * self.identity.dimensions
        for word in text.lower().split():
            hashed = sha256(self._alike.get(word, word).encode()).digest()
            counts[int.from_bytes(hashed[:4], "big") % len(counts)] += 1.0
        length = sum(count * count for count in counts) ** 0.5 or 1.0
        return [count / length for count in counts]


class Acting:
    """One caller, at one intent memory: ``ada.store("key", 1)``."""

    def __init__(self, intents, caller):
        self.intents = intents
        self.caller = caller
        self.agent = caller.agent

    def store(self, key, value="something", tier="episodic", **options):
        """Keep something of one's own."""
        return self.intents.store(self.caller, self.agent, key, value, tier=tier, **options)

    def get(self, key, *, of=None, **options):
        """Read by key, of oneself unless of somebody else."""
        return self.intents.get(self.caller, of or self.agent, key, **options)

    def recall(self, query=None, *, of=None, **options):
        """Look for entries; what is found, by key."""
        found = self.intents.recall(self.caller, of or self.agent, query=query, **options)
        return [entry.key for entry in found]

    def listed(self, **where):
        """List entries; what is there, by key."""
        page = self.intents.page(self.caller, EntryFilter(**where))
        assert page.total == len(page)
        return [entry.key for entry in page]

    def told(self, **options):
        """What one hears of, shortly."""
        events = self.intents.events(self.caller, **options)
        return [(event.what.removeprefix("memory."), event.key) for event in events]


@pytest.fixture
def project():
    """The scope that a memory writes to unless told otherwise."""
    return PROJECT


@pytest.fixture
def assistant():
    """The user's own scope."""
    return ASSISTANT


@pytest.fixture
def through(store, clock):
    """See the store through a binding: the records system's, with whatever fields differ."""

    def through(channel=Channel.USER, *, over=None, embedder=None, **fields):
        given = {"writes": dict.fromkeys(Kind, PROJECT), "also_writes": frozenset({ASSISTANT})}
        given |= {"reads": (PROJECT, ASSISTANT), "transcripts": frozenset({PROJECT})}
        given |= {"categories": CATEGORIES, "temporary": frozenset({"incidents"})}
        binding = Binding(channel=channel, **given | fields)
        return Memory(over or store, binding, clock=clock, embedder=embedder, secret=lambda: b"a key")

    return through


@pytest.fixture
def memory(through):
    """What a person sees who works on the project."""
    return through()


@pytest.fixture
def anything(through):
    """A memory in which every category is allowed and everything may expire."""
    return through(categories=None, temporary=None)


@pytest.fixture
def embedder():
    """Builds embedders: each argument is a list of words that mean the same."""
    return Meanings


@pytest.fixture
def intents(store, clock):
    """Intent memory over every sort of store."""
    return Intents(store, clock=clock, capacity=5)


@pytest.fixture
def ada(intents):
    """An agent with a key of her own."""
    return Acting(intents, Caller(agent="ada"))


@pytest.fixture
def bob(intents):
    """Another one."""
    return Acting(intents, Caller(agent="bob"))


@pytest.fixture
def eve(intents):
    """One that has no business with the others."""
    return Acting(intents, Caller(agent="eve"))

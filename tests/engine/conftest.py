"""Memories to try the verbs on: a store seen through the records system's binding, and whatever differs from it."""

from __future__ import annotations

from hashlib import sha256

import pytest

from commonplace.domain.binding import Binding
from commonplace.domain.ports import EmbedderIdentity
from commonplace.domain.records import CATEGORIES, Channel, Kind
from commonplace.domain.scopes import Scope
from commonplace.engine.memory import Memory

PROJECT = Scope.of(("project", "github.com/acme/shop"))
ASSISTANT = Scope.of(("user", "ada"))


class Meanings:
    """An embedder that hashes words into a few dimensions, and takes the words of one list for the same word."""

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

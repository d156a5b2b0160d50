"""What tests of adapters ask for: a memory in a file, documents that repeat what it holds, and a look at the bytes."""

from __future__ import annotations

import pytest

from commonplace.engine.memory import Memory
from commonplace.model.binding import Binding
from commonplace.model.changes import Archive, PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.queries import ANY_STATE, Filter, Order
from commonplace.model.records import Channel, Kind, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore

OWN = Scope.of(("user", "ada"))


class Shared:
    """A memory in a file that several frameworks use, and what tests do with it besides."""

    def __init__(self, folder, clock):
        binding = Binding(channel=Channel.USER, writes={Kind.SEMANTIC: OWN}, reads=(OWN,))
        self.folder, self.erasures, self.rounds = folder, [], []
        self.store = Counting(SqliteStore(str(folder / "memory.db")), self.rounds)
        self.memory = Memory(self.store, binding, clock=clock, erased=self.erasures.append)

    def records(self, scope):
        """Everything that is in a scope."""
        where = Filter(scopes=frozenset({scope}), at=self.memory.clock(), states=ANY_STATE)
        return self.store.find(where, order=Order.ID, limit=99)

    def tell(self, scope):
        """Have memory repeat what a scope holds wherever it can: as it does when it learns and consolidates."""
        records = self.records(scope)
        line = "".join(f"- {one.content} (record {one.short})\n" for one in records)
        made = {"records": [one.id for one in records], "digests": {}, "slug": None, "summary": line}
        self._put(scope, DocumentKind.ARTIFACT, "MEMORY.md", f"# Memory\n\n{line}- Mine")
        self._put(scope, DocumentKind.EXTRACTION, "s1", line, made)
        before = {"MEMORY.md": {"text": line, "metadata": {}}}
        self._put(scope, DocumentKind.RECEIPT, "r1", None, {"before": before})

    def _put(self, scope, kind, name, content, metadata=None):
        now = self.memory.clock()
        document = Document(
            scope=scope, kind=kind, name=name, digest=f"{name}{now}", content=content, metadata=metadata or {},
            source=Source(channel=Channel.CONSOLIDATION), trust=Trust.AGENT, created_at=now, updated_at=now,
        )  # fmt: skip
        self.store.apply([PutDocument(document=document)])

    def archive(self, scope):
        """Take everything in a scope out of recall."""
        where = Filter(scopes=frozenset({scope}), at=self.memory.clock(), states=ANY_STATE)
        self.store.apply([Archive(where=where, at=self.memory.clock())])

    def left(self, needle):
        """The files in which a word still stands, by any bytes."""
        return [path.name for path in self.folder.iterdir() if needle.encode() in path.read_bytes()]


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store, rounds):
        self._store, self._rounds = store, rounds

    def __getattr__(self, name):
        """Pass everything through."""
        self._rounds.append(name)
        return getattr(self._store, name)


@pytest.fixture
def shared(tmp_path, clock):
    """A memory in a file."""
    made = Shared(tmp_path, clock)
    yield made
    made.memory.close()

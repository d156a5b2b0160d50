"""What every test may ask for: real stores, a clock moved by hand, and short ways to say what is put and asked."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.domain.changes import Put
from commonplace.domain.documents import Chunk, Document, DocumentKind
from commonplace.domain.ids import new_id
from commonplace.domain.queries import ANY_STATE, Filter, Query, Word
from commonplace.domain.records import Channel, Kind, Record, Source, Trust
from commonplace.domain.scopes import Scope
from commonplace.stores.sqlite import SqliteStore

ADA = Scope.of(("user", "ada"))


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, start=datetime(2026, 1, 1, 12, tzinfo=UTC)):
        self.now = start

    def __call__(self):
        return self.now

    def forward(self, by=timedelta(seconds=1)):
        """Move on, and say what time it is then."""
        self.now += by
        return self.now


class Maker:
    """Builds what tests put into stores and ask of them; whatever is not said has a plain default."""

    scope = ADA

    def __init__(self, clock):
        self.clock = clock

    def __call__(self, content="the sky is blue", **fields):
        """Build a record."""
        given = {"scope": self.scope, "kind": Kind.SEMANTIC, "trust": Trust.USER, "id": new_id(self.clock())}
        given |= {"source": Source(channel=Channel.USER), "created_at": self.clock(), "updated_at": self.clock()}
        return Record(content=content, **given | fields)

    def put(self, record="the sky is blue", **options):
        """Build the change that keeps a record, found by its words."""
        record = self(record) if isinstance(record, str) else record
        return Put(record=record, **{"terms": words(record.content)} | options)

    def update(self, record, **fields):
        """Build the change that puts a record's next version, written now."""
        return self.put(record.replace(updated_at=self.clock(), **fields), expect=record.version)

    def where(self, *scopes, **fields):
        """Build a filter: live now, and in Ada's scope unless others are given."""
        return Filter(scopes=frozenset(scopes or {self.scope}), at=self.clock(), **fields)

    def anything(self, *scopes, **fields):
        """Build a filter for records in whatever state."""
        return self.where(*scopes, states=ANY_STATE, **fields)

    def document(self, name="notes", **fields):
        """Build a document."""
        given = {"scope": self.scope, "kind": DocumentKind.SESSION, "digest": "d1", "trust": Trust.AGENT}
        given |= {"source": Source(channel=Channel.CAPTURE), "created_at": self.clock(), "updated_at": self.clock()}
        return Document(name=name, **given | fields)

    def chunks(self, document, *texts):
        """Build the chunks of a document and their terms, as ``PutDocument`` wants them."""
        identity = {"scope": document.scope, "kind": document.kind, "document": document.name, "trust": document.trust}
        chunks = tuple(Chunk(seq=seq, ref=str(seq), text=text, **identity) for seq, text in enumerate(texts))
        return {"chunks": chunks, "terms": tuple(words(text) for text in texts)}


def words(text):
    """Cut a text as plainly as can be: a store takes the terms it is given."""
    return tuple(text.lower().split())


def sqlite_file(folder):
    """A store in a file of its own."""
    return SqliteStore(os.fspath(folder / "memory.db"))


def sqlite_memory(_folder):
    """A store that is gone when it is closed."""
    return SqliteStore(":memory:")


#: The address of a PostgreSQL for tests, and what to do when there is none.
POSTGRES = "COMMONPLACE_TEST_POSTGRES"
NO_POSTGRES = f"no PostgreSQL to test on: set {POSTGRES} to its address, or run `scripts/postgres run COMMAND`"
_numbers = itertools.count()


def postgres(_folder):
    """A store in a schema of its own; ``forget`` drops it."""
    from commonplace.stores.postgres import PostgresStore  # noqa: PLC0415 - only with the extra

    return PostgresStore(os.environ[POSTGRES], schema=f"test_{os.getpid()}_{next(_numbers)}")


def forget(store):
    """Close a store and leave nothing of it on a server that outlives the test."""
    store.close()
    if (connections := getattr(store, "_connections", None)) is not None:
        with connections.alone() as db:
            db.execute(f'drop schema if exists "{connections.schema}" cascade')


STORES = [sqlite_file, sqlite_memory, pytest.param(postgres, marks=pytest.mark.postgres)]


def pytest_configure(config):
    """Name the marker."""
    config.addinivalue_line("markers", "postgres: needs a PostgreSQL server with pgvector (scripts/postgres)")


def pytest_collection_modifyitems(items):
    """Without a server its tests are skipped, unless they must not be: where CI is set they fail instead."""
    if os.environ.get(POSTGRES):
        return
    for item in items:
        if item.get_closest_marker("postgres") and not os.environ.get("CI"):
            item.add_marker(pytest.mark.skip(reason=NO_POSTGRES))


def pytest_terminal_summary(terminalreporter):
    """Say loudly what was not tested."""
    missed = sum(NO_POSTGRES in str(report.longrepr) for report in terminalreporter.stats.get("skipped", []))
    if missed:
        terminalreporter.write_line(f"{missed} tests were NOT run: {NO_POSTGRES}", red=True, bold=True)


@pytest.fixture(params=STORES, ids=lambda maker: maker.__name__)
def new_store(request, tmp_path_factory):
    """Make stores of one sort, as many as a test wants; every sort there is, one after the other."""
    if request.param is postgres and not os.environ.get(POSTGRES):
        pytest.fail(NO_POSTGRES)
    made = []

    def new_store():
        made.append(request.param(tmp_path_factory.mktemp("store")))
        return made[-1]

    yield new_store
    for store in made:
        forget(store)


@pytest.fixture
def new_postgres():
    """Make stores on PostgreSQL, where a test is about the server."""
    if not os.environ.get(POSTGRES):
        pytest.fail(NO_POSTGRES)
    made = []

    def new_postgres():
        made.append(postgres(None))
        return made[-1]

    yield new_postgres
    for store in made:
        forget(store)


@pytest.fixture
def store(new_store):
    """A store of every sort: they are equal, or they are not stores."""
    made = new_store()
    yield made
    made.close()


@pytest.fixture
def file_store(tmp_path):
    """The store in a file, where a test is about the file."""
    made = sqlite_file(tmp_path)
    yield made
    made.close()


@pytest.fixture
def clock():
    """A clock that stands still until it is moved."""
    return Clock()


@pytest.fixture
def make(clock):
    """Build records, changes and filters by that clock."""
    return Maker(clock)


@pytest.fixture
def keep(store, make):
    """Keep a record in the store and return it as it is there."""

    def keep(content="the sky is blue", *, vector=None, **fields):
        [outcome] = store.apply([make.put(make(content, **fields), vector=vector)])
        return outcome.records[0]

    return keep


@pytest.fixture
def python():
    """Run a program in a process of its own, with the names of this file at hand, and return what it printed."""

    def python(program, *arguments):
        command = [sys.executable, "-c", f"from conftest import *\n{program}", *map(str, arguments)]
        where = os.environ | {"PYTHONPATH": os.path.dirname(__file__)}
        done = subprocess.run(command, env=where, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return python


@pytest.fixture
def query():
    """Ask in plain words: ``email|e-mail`` is a word with two alternatives, ``new&york`` one that needs both terms."""

    def query(text):
        return Query(
            text=text,
            words=tuple(
                Word(text=word, terms=tuple(tuple(way.split("&")) for way in word.split("|"))) for word in words(text)
            ),
        )

    return query

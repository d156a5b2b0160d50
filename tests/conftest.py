"""What every test may ask for: real stores, a clock moved by hand, and short ways to say what is put and asked."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from commonplace.config.speaker import AGENTS
from commonplace.model.queries import Query, Word
from stands import *  # noqa: F403 - a program in a process of its own finds all of it here
from stands import (
    NO_POSTGRES,
    ON_POSTGRES,
    POSTGRES,
    STORES,
    Clock,
    Maker,
    forget,
    lance,
    postgres,
    sqlite_file,
    sqlite_memory,
    stores_of,
    words,
)

#: Files of the conformance suite in which an index of vectors can make a difference.
ABOUT_VECTORS = {
    "test_nearest.py", "test_vectors.py", "test_vectors_many.py", "test_survey.py", "test_embedder.py",
    "test_apply_delete.py", "test_apply_load.py", "test_documents.py",
}  # fmt: skip


def pytest_configure(config):
    """Name the markers; a shell that ignores Ctrl-C must not hide it from the programs that tests start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in {name for _, marks in AGENTS for name in marks} - {"HOME", "USER", "PAGER", "TERM_PROGRAM"}:
        os.environ.pop(name, None)  # a coding agent may run the tests, but is not the person in them
    os.environ["COMMONPLACE_PROGRESS"] = "terminal"  # how long something takes is no part of what is tested
    config.addinivalue_line("markers", "postgres: needs a PostgreSQL server with pgvector (scripts/postgres)")
    config.addinivalue_line("markers", "every_store: runs on every sort of store, also outside of tests/stores")


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


def pytest_generate_tests(metafunc):
    """Choose the stores of a test: every sort where stores are tested, the quickest one elsewhere.

    The conformance suite makes all stores equal, so other tests need one of them.  The first test of each file and
    those marked ``every_store`` run on PostgreSQL as well.
    """
    if "new_store" in metafunc.fixturenames:
        metafunc.parametrize("new_store", _sorts(metafunc), indirect=True, ids=lambda maker: maker.__name__)


def _sorts(metafunc):
    folder, module = os.path.split(metafunc.module.__file__)
    if os.path.basename(folder) == "stores":
        sorts = STORES if _is_first(metafunc) else [sqlite_file, ON_POSTGRES]
        return [*sorts, lance] if module in ABOUT_VECTORS else sorts
    if os.path.basename(folder) == "properties" or metafunc.definition.get_closest_marker("every_store"):
        return STORES
    return [sqlite_memory, ON_POSTGRES] if _is_first(metafunc) else [sqlite_memory]


_FIRST = {}


def _is_first(metafunc):
    """Whether this is the first test of its file that asks for a store."""
    return _FIRST.setdefault(metafunc.module.__file__, metafunc.function.__qualname__) == metafunc.function.__qualname__


@pytest.fixture
def new_store(request, tmp_path_factory):
    """Make stores of one sort, as many as a test wants; ``pytest_generate_tests`` chooses the sorts."""
    yield from stores_of(request.param, tmp_path_factory)


class Places:
    """Makes places for stores that several processes can open: each a path, or an address."""

    def __init__(self, folders, sorts):
        self._folders, self._sorts, self._made = folders, sorts, []

    def __call__(self, sort=None):
        """A place where nothing is yet; of the first sort unless told otherwise."""
        folder = self._folders.mktemp("place")
        made = (sort or self._sorts[0])(folder)
        made.close()
        self._made.append(made)
        return _place(made)

    @property
    def pair(self):
        """Two places, of the two sorts."""
        return self(self._sorts[0]), self(self._sorts[-1])

    def forget(self):
        """Leave nothing behind."""
        for store in self._made:
            forget(store)


def _place(store):
    """Where a store is, as whoever opens it names it; clocks of tests are moved by hand, and leases run by them."""
    schema = getattr(store, "schema", None)
    given = os.environ.get(POSTGRES, "")
    return store.path if schema is None else f"{given}{'&' if '?' in given else '?'}schema={schema}&clock=caller"


def _places(sorts, folders):
    if postgres in sorts and not os.environ.get(POSTGRES):
        pytest.fail(NO_POSTGRES)
    made = Places(folders, sorts)
    yield made
    made.forget()


NEEDS_SERVER = pytest.mark.postgres
PAIRS = [
    pytest.param((sqlite_file, sqlite_file), id="sqlite-sqlite"),
    pytest.param((sqlite_file, postgres), id="sqlite-postgres", marks=NEEDS_SERVER),
    pytest.param((postgres, sqlite_file), id="postgres-sqlite", marks=NEEDS_SERVER),
    pytest.param((postgres, postgres), id="postgres-postgres", marks=NEEDS_SERVER),
]


@pytest.fixture(params=PAIRS)
def new_place(request, tmp_path_factory):
    """Make places for stores; every pair of sorts in turn."""
    yield from _places(request.param, tmp_path_factory)


@pytest.fixture(params=[sqlite_file, pytest.param(postgres, marks=NEEDS_SERVER)], ids=lambda maker: maker.__name__)
def new_home(request, tmp_path_factory):
    """Make places for stores that several processes can open; every sort in turn."""
    yield from _places((request.param,), tmp_path_factory)


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

"""What tests stand on, for any of them to import: stores of every sort, a clock moved by hand, plain records."""

from __future__ import annotations

import inspect
import itertools
import os
from datetime import UTC, datetime, timedelta

import pytest

from commonplace.config.paths import Place, find
from commonplace.config.trust_registry import read_claim, trust_folder
from commonplace.model.changes import Put
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.ids import new_id
from commonplace.model.queries import ANY_STATE, Filter
from commonplace.model.records import Channel, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore

ADA = Scope.of(("user", "ada"))


def agree(folder, data=None):
    """Say yes to a project's folder as it is now, as `commonplace trust` does; ``data`` is the data folder."""
    data = str(data or os.environ["COMMONPLACE_HOME"])
    place = find(str(folder)) or Place(root=str(folder), folder=None, git=None)
    return trust_folder(place, data, read_claim(place, data).identity or "local/tests")


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


def scripts_of_the_user(home, *more):
    """Set in a data folder that commands without a terminal are the user's own scripts, as a test is."""
    os.makedirs(home, mode=0o700, exist_ok=True)
    with open(os.path.join(home, "config.yaml"), "w", encoding="utf-8") as file:
        file.write("\n".join(["scripts_speak_as: user", *more, ""]))
    os.chmod(file.name, 0o600)


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
    """A store in a schema of its own, with leases by the clock of who claims, moved by hand; ``forget`` drops it."""
    from commonplace.stores.postgres.store import PostgresStore  # noqa: PLC0415 - only with the extra

    return PostgresStore(os.environ[POSTGRES], schema=f"test_{os.getpid()}_{next(_numbers)}", clock="caller")


def give_later_columns(store):
    """Let today's code write to a PostgreSQL schema of before: the columns come, which a migration adds later."""
    with store.using() as db:
        for table in ("record", "version"):
            db.execute(f"alter table {table} add column if not exists approved_at bigint")
        for table in ("document", "chunk"):
            db.execute(f'alter table {table} add column if not exists hash text collate "C"')


def forget(store):
    """Close a store and leave nothing of it on a server that outlives the test."""
    store.close()
    if (connections := getattr(store, "_connections", None)) is not None:
        with connections.alone() as db:
            db.execute(f'drop schema if exists "{connections.schema}" cascade')


def lance(folder):
    """A store with an index in LanceDB, which is built anew as soon as one vector has changed."""
    from commonplace.stores.lance.store import LanceStore  # noqa: PLC0415 - only with the extra

    return LanceStore(os.fspath(folder / "memory.lance"), tail_least=0)


ON_POSTGRES = pytest.param(postgres, marks=pytest.mark.postgres)
STORES = [sqlite_file, sqlite_memory, ON_POSTGRES]


def rows(names, cases):
    """Run a test for every row of a table as one test, and report each row that fails.

    For tables of pure cases: what the rows share, such as a store, is not made anew between them.
    """
    parameters = names.replace(" ", "").split(",") if isinstance(names, str) else list(names)
    cases = list(cases)
    assert cases

    def decorate(test):
        signature = inspect.signature(test)

        def every_row(**fixtures):
            failures = []
            for case in cases:
                values = [case] if len(parameters) == 1 else getattr(case, "values", case)
                try:
                    test(**fixtures, **dict(zip(parameters, values, strict=True)))
                except BaseException as error:
                    if isinstance(error, KeyboardInterrupt | SystemExit):
                        raise
                    failures.append(f"{case!r}: {type(error).__name__}: {error}")
            assert not failures, f"{len(failures)} of {len(cases)} rows fail:\n" + "\n\n".join(failures)

        every_row.__name__, every_row.__doc__, every_row.__module__ = test.__name__, test.__doc__, test.__module__
        every_row.__qualname__ = test.__qualname__
        shared = [parameter for name, parameter in signature.parameters.items() if name not in parameters]
        every_row.__signature__ = signature.replace(parameters=shared)
        every_row.pytestmark = getattr(test, "pytestmark", [])
        return every_row

    return decorate


def stores_of(maker, folders):
    """Make stores of one sort, as many as a test wants, and take them away after it."""
    if maker is postgres and not os.environ.get(POSTGRES):
        pytest.fail(NO_POSTGRES)
    made = []

    def new_store():
        made.append(maker(folders.mktemp("store")))
        return made[-1]

    yield new_store
    for store in made:
        forget(store)

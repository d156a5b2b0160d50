"""Connections to one PostgreSQL schema: pooled, opened alike, errors translated, texts that hold any character.

Transactions begin and end here, and errors of the driver are translated in one place.  Nothing
here knows what a record is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from struct import pack
from typing import Any
from urllib.parse import unquote

from commonplace.install import hint
from commonplace.model.errors import CommonplaceError, InvalidInput, StoreBusy, StoreDamaged, StoreError

try:
    import psycopg
    from psycopg import errors, pq
    from psycopg.abc import Buffer
    from psycopg.adapt import Dumper, Loader
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.types import TypeInfo
    from psycopg.types.string import StrDumperUnknown, TextLoader
    from psycopg_pool import ConnectionPool, PoolTimeout

    from commonplace.stores.postgres.dialect import PostgresDb
except ImportError as error:
    raise StoreError(f"{hint('a PostgreSQL store needs the extra `postgres`', 'postgres')} ({error})") from error

LOCK_MS = 10_000  # how long a statement waits for a lock
IMPATIENT_MS = 20  # how long it does where nobody is to wait for it
OPEN_SECONDS = 5.0  # how long opening is tried again while the server restarts or cuts connections
OPEN_PAUSE = 0.1  # between two tries, at first
IDLE_MS = 60_000  # a transaction in which nothing happens for so long belongs to a frozen process: others go on
CONNECT_SECONDS = 10
WAIT_SECONDS = 15.0  # how long a thread waits for a connection of the pool
WORK_MEMORY = "64MB"  # a set of found rows that does not fit is stored by pages, and all of their rows are read
MAX_CONNECTIONS = 8  # connections of one process
TENANT = "default"  # the tenant of a store that has no others
NAME_BYTES = 63  # of a schema: the server cuts off the rest, and two stores would be one
OWN_OPTIONS = ("schema", "tenant", "clock")  # of an address; the driver refuses what it does not know

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what fails is raised; nothing is printed beside


# Texts and vectors


class _TextDumper(StrDumperUnknown):
    """PostgreSQL cannot keep the character 0: it becomes 1 1, and 1 becomes 1 2.

    So no two texts become one, and their order stays.
    """

    def dump(self, obj: str) -> Buffer | None:
        return super().dump(_escape(obj) if "\0" in obj or "\1" in obj else obj)


class _TextLoader(TextLoader):
    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")  # as every connection of ours is set up
        return _unescape(text) if "\1" in text else text


def _escape(text: str) -> str:
    return text.replace("\1", "\1\2").replace("\0", "\1\1")


def _unescape(text: str) -> str:
    return text.replace("\1\1", "\0").replace("\1\2", "\1")


class _VectorDumper(Dumper):
    """pgvector's binary form: the number of dimensions, two empty bytes, and small floats, the large end first."""

    format = pq.Format.BINARY

    def dump(self, obj: array[float]) -> Buffer | None:
        return pack(">HH", len(obj), 0) + _large_end_first(obj).tobytes()


class _VectorLoader(Loader):
    format = pq.Format.BINARY

    def load(self, data: Buffer) -> array[float]:
        return _large_end_first(array("f", bytes(data)[4:]))


def _large_end_first(numbers: array[float]) -> array[float]:
    if sys.byteorder == "little":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers


# Connections

#: How each is opened, whatever the address, the environment or the role would have it.
_ALIKE: dict[str, Any] = {"autocommit": True, "connect_timeout": CONNECT_SECONDS, "client_encoding": "UTF8"}
#: Who waited for a turn must see what was written meanwhile: a stricter default would show the state before.
_SEEING = "set default_transaction_isolation = 'read committed'"


class Connections:
    """The connections of one store.  They are opened when they are needed, and anew in a forked process."""

    def __init__(self, url: str, schema: str, tenant: str) -> None:
        self.schema = _schema(schema)
        self.tenant = _tenant(tenant)
        self.turn = (
            schema if tenant == TENANT else f"{schema}, {tenant}"
        )  #: what writers of this store wait for each other by
        self.name = _public_name(url)
        self._url = url
        self._pool: ConnectionPool[PostgresDb] | None = None
        self._pid = os.getpid()
        self._guard = threading.Lock()

    @contextlib.contextmanager
    def alone(self) -> Iterator[PostgresDb]:
        """One connection outside of the pool, not yet set up: for the first look at the database."""
        with translate_errors(self.name), self._connect() as db:
            db.run(_SEEING)
            yield db

    def _connect(self) -> PostgresDb:
        """Connect, and try again while the server is restarting or cuts connections."""
        end, pause = time.monotonic() + OPEN_SECONDS, OPEN_PAUSE
        while True:
            try:
                return PostgresDb.connect(self._url, **_ALIKE)
            except psycopg.OperationalError as error:
                what = _first_line(error)
                if not any(sign in str(error) for sign in _PASSING) or time.monotonic() + pause > end:
                    raise StoreError(f"the store {self.name!r} cannot be opened: {what}") from error
            time.sleep(pause)
            pause *= 2

    def apart(self) -> PostgresDb:
        """Open one connection outside of the pool, set up like those in it; the caller closes it."""
        db = PostgresDb.connect(self._url, **_ALIKE)
        try:
            self._configure(db)
        except BaseException:
            db.close()
            raise
        return db

    @contextlib.contextmanager
    def using(self) -> Iterator[PostgresDb]:
        """Borrow a connection; each statement stands for itself."""
        with translate_errors(self.name):
            pool = self._open()
            db = pool.getconn()
            try:
                yield db
            finally:
                pool.putconn(db)

    @contextlib.contextmanager
    def reading(self) -> Iterator[PostgresDb]:
        """See one state of the store throughout."""
        with self.using() as db:
            db.run("begin isolation level repeatable read, read only")
            try:
                yield db
            finally:
                if not db.closed:
                    db.rollback()  # there is nothing to commit

    @contextlib.contextmanager
    def writing(self, *, durable: bool, wait: bool = True) -> Iterator[PostgresDb]:
        """Make all of it or none; when it returns it is on disk, unless it need not be durable.

        Without ``wait`` it is given up as soon as another writer stands in its way.
        """
        with self.using() as db:
            db.run("begin")
            try:
                if not wait:
                    db.run(f"set local lock_timeout = {IMPATIENT_MS}")
                if not durable:
                    db.run("set local synchronous_commit = off")
                yield db
            except BaseException:
                if not db.closed:
                    db.rollback()
                raise
            self._commit(db)

    @contextlib.contextmanager
    def writing_alone(self, *, durable: bool) -> Iterator[PostgresDb]:
        """Open a transaction while no other writer of this store writes."""
        with self.writing(durable=durable) as db:
            db.run("select pg_advisory_xact_lock(hashtextextended(?, 0))", [self.turn])
            yield db

    def _commit(self, db: PostgresDb) -> None:
        """Commit: the one moment at which it can be unknown what became of a write."""
        try:
            done = db.execute("commit").statusmessage
        except psycopg.Error as error:
            if error.sqlstate is not None and error.sqlstate[:2] in _REFUSED:
                raise
            raise StoreError(
                f"the connection to {self.name!r} broke while a write was being committed ({_first_line(error)}):"
                " whether it was made is not known. Look before trying again."
            ) from error
        if done != "COMMIT":  # an error within was passed over, and the server has undone everything
            raise StoreError(f"the store {self.name!r} did not commit a write; nothing was changed")

    def renew(self) -> None:
        """Look at the idle connections after one has broken, and open those anew that have broken too."""
        self._open().check()

    def close(self) -> None:
        """Close what is not lent."""
        if self._pid != os.getpid():
            return
        with self._guard:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _open(self) -> ConnectionPool[PostgresDb]:
        if self._pid != os.getpid():  # the sockets are the parent's: they are neither used nor closed here
            _inherited.append(self._pool)
            self._pool, self._pid, self._guard = None, os.getpid(), threading.Lock()
        with self._guard:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._url,
                    connection_class=PostgresDb,
                    kwargs=_ALIKE,
                    configure=self._configure,
                    min_size=0,
                    max_size=MAX_CONNECTIONS,
                    timeout=WAIT_SECONDS,
                    reconnect_timeout=WAIT_SECONDS,
                    num_workers=1,
                    open=True,
                )
            return self._pool

    def _configure(self, db: PostgresDb) -> None:
        place = db.first("select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace"
                          " where e.extname = 'vector'")  # fmt: skip
        path = f"{quote_name(self.schema)}, {quote_name(place[0] if place else 'public')}"
        db.run(f"set search_path = {path}")
        db.run(_SEEING)
        db.run(f"set lock_timeout = {LOCK_MS}")
        db.run("set random_page_cost = 1.1")  # a search is worth it in memory only: there a page costs what any costs
        db.run(f"set work_mem = '{WORK_MEMORY}'")
        db.run(f"set idle_in_transaction_session_timeout = {IDLE_MS}")
        db.run("select set_config('commonplace.tenant', ?, false)", [self.tenant])
        adapt(db)


#: What a server says that will take connections in a moment; a wrong password, name or port is told at once.
_PASSING = ("starting up", "shutting down", "in recovery mode", "terminating connection", "closed the connection",
            "too many clients", "Connection reset")  # fmt: skip
_inherited: list[ConnectionPool[PostgresDb] | None] = []  # pools of a parent process, which are not ours to close


def adapt(db: PostgresDb) -> None:
    """Teach a connection our texts and vectors."""
    db.adapters.register_dumper(str, _TextDumper)
    db.adapters.register_loader("text", _TextLoader)
    info = TypeInfo.fetch(db, "vector")
    if info is not None:
        dumper = type("_VectorDumper", (_VectorDumper,), {"oid": info.oid})
        db.adapters.register_dumper(array, dumper)
        db.adapters.register_loader(info.oid, _VectorLoader)


def quote_name(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def own_options(url: str) -> tuple[str, dict[str, str]]:
    """Return an address as the driver knows it, and what only we know of it (``OWN_OPTIONS``)."""
    address, _, query = url.partition("?")
    parts = [part for part in query.split("&") if part]
    ours = {name: unquote(value) for name, _, value in (part.partition("=") for part in parts) if name in OWN_OPTIONS}
    theirs = "&".join(part for part in parts if part.partition("=")[0] not in OWN_OPTIONS)
    return f"{address}?{theirs}" if theirs else address, ours


def _schema(name: str) -> str:
    if set("%?\0") & set(name) or len(name.encode("utf-8", "surrogatepass")) > NAME_BYTES:
        raise InvalidInput(
            f"the name of a schema has at most {NAME_BYTES} bytes, and no `%`, no `?` and no character 0 in it,"
            f" unlike {name!r}"
        )
    return name


def _tenant(name: str) -> str:
    if "\0" in name:
        raise InvalidInput(f"the name of a tenant has no character 0 in it, unlike {name!r}")
    return name


def _public_name(url: str) -> str:
    """Where the database is, without who asks and by what password."""
    server, _, database = url.partition("://")[2].partition("?")[0].partition("/")
    if server.count("@") > 1 or "@" in database:  # what is taken for the host would hold the rest of a password
        raise InvalidInput("an `@` within a password is written `%40` in the address of a database, and a `/` `%2F`")
    try:
        parts = conninfo_to_dict(url)
    except (psycopg.ProgrammingError, UnicodeEncodeError) as error:
        raise InvalidInput(
            "this is no address of a PostgreSQL database; it looks like postgresql://host/name"
        ) from error
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


# Errors


class Undone(StoreBusy):
    """Another write stood in the way and the database undid this one: it can be made again at once."""


class Broken(StoreBusy):
    """The connection broke before a commit was asked for: nothing was written, and it can be made again at once."""


_REFUSED = {"23", "40"}  # classes of errors of a commit that was certainly not made: a constraint, another write
#: What an error of the driver means, first match first; the cause stays.
_ERRORS: tuple[tuple[Any, type[CommonplaceError], str], ...] = (
    # The last: what a row was to belong to went away meanwhile; made again, the write finds it gone.
    ((errors.SerializationFailure, errors.DeadlockDetected, errors.ForeignKeyViolation), Undone,
     "the store {0!r} is in use ({1}); nothing was changed"),
    (errors.LockNotAvailable, StoreBusy, "the store {0!r} is locked; nothing was changed"),
    ((errors.TooManyConnections, errors.CannotConnectNow, PoolTimeout), StoreBusy,
     "the store {0!r} takes no connection now ({1}); nothing was changed"),
    ((errors.AdminShutdown, errors.CrashShutdown, errors.IdleInTransactionSessionTimeout, errors.IdleSessionTimeout),
     Broken, "the store {0!r} ended the connection ({1}); nothing was changed"),
    (UnicodeEncodeError, InvalidInput,
     "text with half a character in it, a lone surrogate, can be neither kept nor found"),
    (errors.ProgramLimitExceeded, InvalidInput,
     "an id, key, tag or name is too long for an index of PostgreSQL: {1}"),
    ((errors.DataCorrupted, errors.IndexCorrupted, UnicodeDecodeError), StoreDamaged,
     "the store {0!r} is damaged ({1})"),
    (errors.DiskFull, StoreError, "the disk of {0!r} is full; nothing was changed"),
    ((errors.ReadOnlySqlTransaction, errors.InsufficientPrivilege), StoreError,
     "the store {0!r} does not allow it: {1}"),
)  # fmt: skip


@contextlib.contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Translate errors of the driver."""
    try:
        yield
    except (psycopg.Error, UnicodeError) as error:
        for kinds, translated, message in _ERRORS:
            if isinstance(error, kinds):
                raise translated(message.format(name, _first_line(error))) from error
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:  # it came from no server
            raise Broken(f"the connection to {name!r} broke ({_first_line(error)}); nothing was changed") from error
        raise StoreError(f"the store {name!r} failed: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    """Return the first line of the driver's message; further ones may quote what was to be written."""
    return str(error).strip().partition("\n")[0]

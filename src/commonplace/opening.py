"""Open a memory: the only module that knows stores, files, configuration and engine at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from commonplace.config.project import ASSISTANT, PROJECT, Context, context
from commonplace.domain.binding import Binding
from commonplace.domain.errors import StoreError
from commonplace.domain.ports import Clock, Embedder, Keeper
from commonplace.domain.records import Channel, Kind
from commonplace.domain.scopes import Scope
from commonplace.engine.memory import Memory, now_utc
from commonplace.markdown.mirror import MirroredStore
from commonplace.pipelines.recall import Brief, brief
from commonplace.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from commonplace.pipelines.sync import Report


class Here:
    """Commonplace as it is from one directory: the project there, the user's own memory, one store behind both."""

    def __init__(self, where: Context, *, channel: Channel, clock: Clock, embedder: Embedder | None) -> None:
        """Open what the context describes; nothing is read yet."""
        self.where = where
        self.clock = clock
        self.secret = secret_in(where.home)
        self.database = SqliteStore(where.database)
        for scope, folder in where.folders.items():
            if scope == where.assistant:
                os.makedirs(folder, mode=0o700, exist_ok=True)
        self.store = MirroredStore(self.database, where.folders)
        self.binding = where.bind(channel)
        self.memory = Memory(self.store, self.binding, clock=clock, embedder=embedder, secret=self.secret)

    def recall(self, query: str, **options: Any) -> Brief:
        """Recall with a look at the files first; ``options`` are those of ``Memory.recall``."""
        return brief(self.memory, self.store, query, sync=self._sync_quietly, **options)

    def sync(self, scope: Scope, *, accept_missing: bool = False) -> Report:
        """Bring one scope's files and records together."""
        from commonplace.pipelines.sync import Syncer  # noqa: PLC0415 - a recall without edited files must not load it

        syncer = Syncer(self.store, scope, self.binding, clock=self.clock, secret=self.secret)
        return syncer.run(accept_missing=accept_missing)

    def _sync_quietly(self, scope: Scope) -> Iterable[str]:
        report = self.sync(scope)
        for trouble in report.troubles:
            yield f"{trouble.path}:{trouble.line}: {trouble.reason}"
        if report.missing:
            yield (
                f"{len(report.missing)} files of {scope} are gone at once; their records were kept. "
                "`commonplace sync --accept-missing` archives them"
            )
        for path, finding in report.redactions:
            yield f"{path}: a {finding.kind} was taken out and replaced by {finding.mark}"

    def named(self, scope: Scope) -> str:
        """What people call a scope."""
        return PROJECT if scope == self.where.project else ASSISTANT if scope == self.where.assistant else str(scope)

    @property
    def keeper(self) -> Keeper:
        """Checks, repairs, backups."""
        from commonplace.stores.sqlite_upkeep import SqliteKeeper  # noqa: PLC0415 - no recall needs it

        return SqliteKeeper(self.database)

    def close(self) -> None:
        """Give back what is held."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def here(
    directory: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    channel: Channel = Channel.USER,
    clock: Clock = now_utc,
    embedder: Embedder | None = None,
) -> Here:
    """Open what is at a directory: the project around it and the user's own memory, with their Markdown."""
    where = context(directory or os.getcwd(), os.environ if env is None else env)
    return Here(where, channel=channel, clock=clock, embedder=embedder)


def open(  # noqa: A001 - `commonplace.open` is what it is called
    path: str | None = None,
    *,
    user: str = "default",
    clock: Clock = now_utc,
    embedder: Embedder | None = None,
) -> Memory:
    """Open a memory: one file of your own, or without a path what the command sees from the working directory.

    ``":memory:"`` keeps nothing.  In a file of your own any category is allowed.
    """
    if path is None:
        return here(clock=clock, embedder=embedder).memory
    scope = Scope.of(("user", user))
    binding = Binding(
        channel=Channel.USER,
        writes=dict.fromkeys(Kind, scope),
        reads=(scope,),
        transcripts=frozenset({scope}),
    )
    secret = bytes if path == ":memory:" else secret_in(os.path.dirname(os.path.abspath(path)))
    return Memory(SqliteStore(path), binding, clock=clock, embedder=embedder, secret=secret)


def secret_in(folder: str) -> Callable[[], bytes]:
    """The key of redaction marks, made on first use: equal secrets get equal marks, and none can be guessed back."""

    def read() -> bytes:
        path = os.path.join(folder, "redaction.key")
        try:
            return _read(path) or _make(path)
        except OSError as error:
            raise StoreError(f"{path!r} cannot be used: {error.strerror}") from error

    return read


def _read(path: str) -> bytes:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def _make(path: str) -> bytes:
    """Two processes may make it at once: the first one's stays."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}"
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(os.urandom(32))
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
    return _read(path)

"""Open a memory: the only module that knows stores, files, configuration and engine at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from commonplace.config.project import ASSISTANT, PROJECT, Context, context
from commonplace.domain.binding import Binding
from commonplace.domain.errors import StoreError
from commonplace.domain.ports import Clock, Embedder, Keeper, Tell, silent
from commonplace.domain.records import Channel, Kind
from commonplace.domain.scopes import Scope
from commonplace.engine.memory import Memory, now_utc
from commonplace.markdown.mirror import MirroredStore
from commonplace.pipelines.look import Look
from commonplace.pipelines.recall import Brief, brief
from commonplace.stores.sqlite import SqliteStore

if TYPE_CHECKING:
    from commonplace.markdown.plan import Action
    from commonplace.pipelines.sync import Report

RECALL_WAIT_SECONDS = 0.5  # so long a recall waits for another process that takes in the same files


class Here:
    """Commonplace as it is from one directory: the project there, the user's own memory, one store behind both."""

    def __init__(self, where: Context, *, channel: Channel, clock: Clock, embedder: Embedder | None) -> None:
        """Open what the context describes; nothing is read yet."""
        self.where = where
        self.clock = clock
        self.embedder = embedder
        self.secret = secret_in(where.home)
        self.database = SqliteStore(where.database)
        for scope, folder in where.folders.items():
            if scope == where.assistant:
                os.makedirs(folder, mode=0o700, exist_ok=True)
        self.store = MirroredStore(self.database, where.folders)
        self.binding = where.bind(channel)
        self.memory = Memory(self.store, self.binding, clock=clock, embedder=embedder, secret=self.secret)
        self.look = Look(self.store, os.path.join(where.home, "looked"))

    def narrowed(self, scope: Scope) -> Memory:
        """The same memory, which sees one scope alone."""
        binding = self.binding.replace(reads=(scope,))
        return Memory(self.store, binding, clock=self.clock, embedder=self.embedder, secret=self.secret)

    def recall(self, query: str, **options: Any) -> Brief:
        """Recall with a look at the files first; ``options`` are those of ``Memory.recall``."""
        return brief(self.memory, self.look, query, sync=self._sync_quietly, **options)

    @property
    def mirrored(self) -> list[Scope]:
        """The scopes that have files here."""
        return [scope for scope in self.binding.reads if scope in self.store.folders]

    def refresh(self, *, tell: Tell = silent) -> list[str]:
        """Take in what people have edited, before their files are written to; returns what they should know."""
        edited = [scope for scope in self.mirrored if self.look.differs(scope)]
        return [note for scope in edited for note in self.told(scope, self.sync(scope, tell=tell))]

    def sync(self, scope: Scope, *, accept_missing: bool = False, tell: Tell = silent, wait: float = 10.0) -> Report:
        """Bring one scope's files and records together; ``tell`` hears how much of it is done."""
        from commonplace.pipelines.sync import Syncer  # noqa: PLC0415 - a recall without edited files must not load it

        began = time.time_ns()
        syncer = Syncer(self.store, scope, self.binding, clock=self.clock, secret=self.secret)
        report = syncer.run(accept_missing=accept_missing, tell=tell, wait=wait)
        self.look.mark(scope, began, len(self.store.files(self.store.folders[scope])))
        return report

    def planned(self, scope: Scope) -> list[Action]:
        """What a sync of the scope would have to do."""
        from commonplace.pipelines.sync import Syncer  # noqa: PLC0415 - see sync

        return Syncer(self.store, scope, self.binding, clock=self.clock, secret=self.secret).planned()

    def _sync_quietly(self, scope: Scope) -> Iterable[str]:
        try:
            report = self.sync(scope, wait=RECALL_WAIT_SECONDS)
        except StoreError as error:  # what is stored can be asked all the same
            return [f"the files of the {self.named(scope)} memory were not looked at: {error}"]
        return self.told(scope, report)

    def told(self, scope: Scope, report: Report) -> Iterator[str]:
        """What people should know of a sync, as sentences."""
        folder = self.store.folders[scope]
        for trouble in report.troubles:
            yield f"{os.path.join(folder, trouble.path)}:{trouble.line}: {trouble.reason}"
        if report.missing:
            yield (
                f"{len(report.missing)} files of the {self.named(scope)} memory are gone at once; "
                "their records were kept. "
                "`commonplace sync --accept-missing` archives them"
            )
        for path, finding in report.redactions:
            found = os.path.join(folder, path)
            yield f"{found}: a secret ({finding.kind}) was taken out; {finding.mark} stands in its place"

    def named(self, scope: Scope) -> str:
        """What people call a scope."""
        return PROJECT if scope == self.where.project else ASSISTANT if scope == self.where.assistant else str(scope)

    @property
    def keeper(self) -> Keeper:
        """Checks, repairs, backups."""
        from commonplace.stores.sqlite_upkeep import SqliteKeeper  # noqa: PLC0415 - no recall needs it

        return SqliteKeeper(self.database)

    def restored(self, path: str) -> int:
        """Put a backup in the place of what is stored, and let the files follow; returns the number of records."""
        from commonplace.pipelines.sync import follow  # noqa: PLC0415 - see sync

        before = {scope: self.store.files(folder) for scope, folder in self.store.folders.items()}
        count = self.keeper.restore(path)
        for scope, states in before.items():
            follow(self.store, scope, states, now=self.clock())
        return count

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


def set_aside(where: Context) -> str:
    """Move a database that cannot be opened out of the way; the next one is made anew.  Returns where it is now."""
    aside, number = f"{where.database}.damaged", 0
    while os.path.exists(aside):
        number += 1
        aside = f"{where.database}.damaged-{number}"
    for side in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(where.database + side, aside + side)
    return aside


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
    temporary = f"{path}.{os.urandom(8).hex()}"  # a process id comes again, and would find what a dead one left
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(os.urandom(32))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)
    return _read(path)

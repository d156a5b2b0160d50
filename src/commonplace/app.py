"""Open a memory: the only module that knows stores, files, configuration, providers and engine at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from commonplace.config.paths import CONFIG, DATABASE, home, is_address
from commonplace.config.project import PROJECT, Context, context
from commonplace.engine.memory import Memory, now_utc, with_binding
from commonplace.files.folders import Folders, RecallAnswer
from commonplace.files.mirror import MirroredStore
from commonplace.model.errors import ConfigError, InvalidInput, ProviderError, StoreBusy, StoreError
from commonplace.model.ports import Clock, Embedder, Maintenance, ProgressCallback, Repair, Store, no_progress
from commonplace.model.records import Channel, Trust
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from commonplace.engine.asynchronous import AsyncMemory
    from commonplace.engine.embedding import EmbeddingReport
    from commonplace.engine.forgetting import Erasure
    from commonplace.files.external import Judge
    from commonplace.git.branches import AheadOfMain
    from commonplace.model.items import ItemCopier
    from commonplace.stores.auditor import Auditor
    from commonplace.stores.postgres.store import PostgresStore

    Database: TypeAlias = SqliteStore | PostgresStore

LOCAL = "local"  # the embedder of this package
BACKUPS = "backups"  # the folder of copies, in the data folder
COPY_SIDES = (".lock", "-wal", "-shm")
CONFIGURED = "configured"  # whichever the user's settings name
VEC = "COMMONPLACE_SQLITE_VEC"  # where sqlite-vec lies, for those who have it: nearness is then found sooner


class App:
    """Commonplace as seen from one directory: the project there, the user's own memory, one store behind both.

    It opens and hands out; what a room does with it is in the room.
    """

    def __init__(
        self, where: Context, *, channel: Channel, clock: Clock, embedder: Embedder | None, env: Mapping[str, str]
    ) -> None:
        """Open what the context describes; nothing is read yet."""
        self.where = where
        self.env = env
        self.clock = clock
        self.embedder = embedder
        self.secret = redaction_key_in(where.home)
        self.database = open_store(where.database, env=env, machine=lambda: machine_name(where.home))
        self.actor = channel.value  #: who writes, as the audit log names them; hosts add themselves and their session
        self.database.make_auditor = lambda: self.auditor
        for scope, folder in where.folders.items():
            if scope == where.assistant:
                os.makedirs(folder, mode=0o700, exist_ok=True)
        self.store = MirroredStore(self.database, where.folders)  # type: ignore[abstract]  # the rest passes through __getattr__
        self.binding = where.bind(channel)
        self.memory = Memory(
            self.store,
            self.binding,
            clock=clock,
            embedder=embedder,
            secret=self.secret,
            erased=self._erase_in_artifacts,
        )
        self.folders = Folders(
            self.store, self.binding, clock=clock, secret=self.secret, label=where.label,
            marks=os.path.join(where.home, _of_store(where, "looked")),
            on_change=self.catch_up, judge_of=self._judge_of, foreign=where.foreign,
            further=where.further,
        )  # fmt: skip

    def adopt(self, identity: str) -> None:
        """Give the project what its folder knew under another identity, before its user trusted it."""
        from commonplace.files.foreign import adopt  # noqa: PLC0415 - it happens once in the life of a project

        if self.where.project is not None and self.where.place is not None:
            old = Scope.of(("project", identity))
            adopt(self.database, old, self.where.project, self.where.place.folder, self.clock)
            self.catch_up()

    @cached_property
    def auditor(self) -> Auditor:
        """Who writes the audit log of the store."""
        from commonplace.stores.auditor import Auditor  # noqa: PLC0415 - only writes need it

        path = os.path.join(self.where.home, _of_store(self.where, "audit"))
        return Auditor(actor=self.actor, key=self.secret, clock=self.clock, path=path)

    def memory_of(self, scope: Scope) -> Memory:
        """The same memory, limited to one scope."""
        return with_binding(self.memory, self.binding.replace(reads=(scope,)))

    def _judge_of(self, scope: Scope) -> Judge:
        """Return what finds out where the files of a scope come from; only the user writes to the user's own folder."""
        from commonplace.files.external import judge_as_hand_edits  # noqa: PLC0415 - no recall without edits needs it
        from commonplace.git.provenance import Provenance  # noqa: PLC0415 - see above

        place, trust = self.where.place, self.where.trust
        if scope != self.where.project or place is None or trust is None:
            return judge_as_hand_edits
        return Provenance(
            place.root, self.where.folders[scope], trusted=trust.is_trusted, authors=trust.authors, signed=trust.signed,
            env=self.env,
        ).judge  # fmt: skip

    def ahead_of_main(self) -> AheadOfMain | None:
        """Return which record files of the project the main branch does not have so; None where there is none.

        Git is asked, so only in a folder that the user trusts.
        """
        place, project = self.where.place, self.where.project
        folder = self.where.folders.get(project) if project else None
        if place is None or folder is None or not self.where.is_trusted:
            return None
        from commonplace.files.disk import read_known  # noqa: PLC0415 - only the status asks
        from commonplace.git.branches import ahead_of_main  # noqa: PLC0415 - likewise
        from commonplace.git.command import TrustedRepository  # noqa: PLC0415 - likewise
        from commonplace.git.repository import repository_at  # noqa: PLC0415 - likewise

        repository = repository_at(place.root)
        if repository is None:
            return None
        trusted = TrustedRepository(repository=repository, is_trusted=self.where.is_trusted)
        return ahead_of_main(trusted, folder, read_known(folder, [one.path for one in self.store.files(folder)]))

    def is_foreign(self, path: str, data: bytes) -> bool:
        """Whether a file of the project's folder is somebody else's word; it is while Git is changing the folder."""
        project = self.where.project
        if project is None or project not in self.where.folders:
            return True
        try:
            return self._judge_of(project)({path: data})[path].trust is Trust.EXTERNAL
        except StoreBusy:
            return True

    def _erase_in_artifacts(self, erasure: Erasure) -> None:
        """Erase words in the project's artifacts as well; those of other projects follow when they learn."""
        project = self.where.project
        if project is None or not self.where.is_enabled(PROJECT) or project not in self.where.folders:
            return
        from commonplace.files.artifacts import ArtifactFolder, erase  # noqa: PLC0415 - no recall erases

        erase(ArtifactFolder(store=self.store, scope=project, folder=self.where.folders[project]), erasure)

    def recall(self, query: str, **options: Any) -> RecallAnswer:
        """Recall after a check of the files; ``options`` are those of ``Memory.recall``."""
        return self.folders.recall(self.memory, query, **options)

    def catch_up(self, *, progress: ProgressCallback = no_progress) -> int:
        """Embed texts that have no vector yet; returns how many.  If the embedder fails they are embedded later."""
        from commonplace.engine.embedding import catch_up  # noqa: PLC0415 - no recall without edits needs it

        try:
            return catch_up(self.store, self.embedder, progress=progress) if self.embedder else 0
        except ProviderError:
            return 0

    def reembed(self, *, progress: ProgressCallback = no_progress) -> EmbeddingReport:
        """Embed everything anew with the configured embedder; the old vectors answer until all are replaced."""
        from commonplace.engine.embedding import reembed  # noqa: PLC0415 - see catch_up

        if self.embedder is None:
            file = os.path.join(self.where.home, CONFIG)
            raise ConfigError("is none, so there is nothing to embed with", file=file, path="embedder")
        return reembed(self.store, self.embedder, progress=progress)

    def scrub(self) -> bool:
        """Overwrite the bytes of what was erased; False while a reader needs the old ones.

        PostgreSQL does so by itself, when its operator has it vacuumed.
        """
        return not isinstance(self.database, SqliteStore) or self.database.scrub()

    @property
    def maintenance(self) -> Maintenance:
        """Checks, repairs, backups."""
        return maintenance_of(self.database)

    def restore(self, path: str) -> tuple[int, tuple[str, ...]]:
        """Replace what is stored by a backup and rewrite the files to match.

        What was erased since the backup was made stays erased.  Returns the number of records, and notes.
        """
        from commonplace.engine.erasing import keep_erased, read_erasures  # noqa: PLC0415 - no recall restores
        from commonplace.files.sync import rewrite_files  # noqa: PLC0415 - likewise

        before = {scope: self.store.files(folder) for scope, folder in self.store.folders.items()}
        erasures = read_erasures(self.database)
        count = self.maintenance.restore(path)
        from commonplace.model.changes import Audit  # noqa: PLC0415 - likewise

        self.auditor.forget()  # the log is as long as that of the backup
        self.store.apply([Audit(verb="restore-backup")])
        gone, erasure, notes = keep_erased(self.database, erasures, secret=self.secret(), now=self.clock())
        for scope, states in before.items():
            rewrite_files(self.store, scope, states, now=self.clock())
        if erasure:
            self._erase_in_artifacts(erasure)
            self.store.settle()
            self.scrub()
        return count - gone, notes

    def close(self) -> None:
        """Release the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_app(
    directory: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    channel: Channel | Callable[[Context], Channel] = Channel.USER,
    clock: Clock = now_utc,
    embedder: Embedder | str | None = CONFIGURED,
) -> App:
    """Open what is at a directory: the project around it and the user's own memory, with their Markdown.

    ``channel`` may depend on the settings that are found there.  The embedder is the one of the user's settings unless
    another is given; None searches by words alone.
    """
    known = os.environ if env is None else env
    where = context(directory or os.getcwd(), known)
    if embedder == CONFIGURED:
        chosen = configured_embedder(where.user_settings, known, file=os.path.join(where.home, CONFIG))
    else:
        chosen = find_embedder(embedder, known)
    by = channel if isinstance(channel, Channel) else channel(where)
    return App(where, channel=by, clock=clock, embedder=chosen, env=known)


def configured_embedder(settings: Mapping[str, Any], env: Mapping[str, str], *, file: str) -> Embedder | None:
    """The embedder that a user's settings name."""
    try:
        return find_embedder(
            settings["embedder"], env, base_url=settings["embedder_base_url"],
            api_key_env=settings["embedder_api_key_env"], dimensions=settings["embedder_dimensions"],
        )  # fmt: skip
    except InvalidInput as error:
        raise ConfigError(str(error), file=file, path="embedder") from error


def find_embedder(spec: Embedder | str | None, env: Mapping[str, str], **options: Any) -> Embedder | None:
    """An embedder by what it is called; ``none`` is none."""
    if spec is None or spec == "none":
        return None
    if spec == LOCAL and not any(options.values()):
        from commonplace.providers.local import LocalEmbedder  # noqa: PLC0415 - only what is used is loaded

        return LocalEmbedder()
    if not isinstance(spec, str):
        return spec
    from commonplace.providers.embedders import embedder_of  # noqa: PLC0415 - see above

    return embedder_of(spec, env=env, **options)


def open_store(place: str, *, env: Mapping[str, str] = os.environ, machine: Callable[[], str] = str) -> Database:
    """The store in a file, or at the address of a PostgreSQL database.

    ``machine`` says what this machine is called, where one store knows the folders of several.
    """
    if not is_address(place):
        return SqliteStore(place, vec=env.get(VEC))
    from commonplace.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra, and only what is used is loaded

    return PostgresStore(place, machine=machine())


def open_lance_store(folder: str, *, env: Mapping[str, str] = os.environ) -> SqliteStore:
    """Return the store in a folder, with its vectors in a LanceDB index next to the database."""
    from commonplace.stores.lance.store import LanceStore  # noqa: PLC0415 - only what is used is loaded

    return LanceStore(folder, vec=env.get(VEC))


def require_lance() -> None:
    """Raise an error without LanceDB, before anything is created."""
    from commonplace.stores.lance.index import require_library  # noqa: PLC0415 - likewise

    require_library()


def copy_database(source: str, target: str) -> int:
    """Copy the database in a file to where there is none yet; returns the number of records.  The source stays.

    It is copied to a file next to the target and linked when it is whole: of two processes at once, one wins.
    """
    copy = f"{target}.{os.urandom(8).hex()}"
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    store = SqliteStore(copy)
    try:
        count = maintenance_of(store).restore(source)
        store.close()
        with suppress(FileExistsError):
            os.link(copy, target)
    finally:
        store.close()
        for side in ("", "-wal", "-shm", ".lock"):
            with suppress(FileNotFoundError):
                os.unlink(copy + side)
    return count


def reindex(store: Store, *, progress: ProgressCallback = no_progress) -> int:
    """Rebuild the separate vector index of a store, if it has one; returns the number of its vectors."""
    from commonplace.stores.lance.store import LanceStore  # noqa: PLC0415 - likewise

    return store.rebuild(progress=progress) if isinstance(store, LanceStore) else 0


def read_lance_tables(folder: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The tables of a LanceDB store that the public implementation of role memory wrote, row by row."""
    from commonplace.stores.lance.reader import tables  # noqa: PLC0415 - likewise

    return tables(folder)


def maintenance_of(store: Database) -> Maintenance:
    """What looks after a store."""
    if isinstance(store, SqliteStore):
        from commonplace.stores.sqlite.upkeep import SqliteMaintenance  # noqa: PLC0415 - no recall needs it

        return SqliteMaintenance(store)
    from commonplace.stores.postgres.upkeep import PostgresMaintenance  # noqa: PLC0415 - likewise

    return PostgresMaintenance(store)


def copier_of(store: Database) -> ItemCopier:
    """What carries a store to another one, row by row."""
    from commonplace.stores.sql.items import SqlItemCopier  # noqa: PLC0415 - no recall needs it

    return SqlItemCopier(store)


def copy_paths(where: Context) -> list[str]:
    """Every copy of the store that we have made: backups, and damaged databases that were set aside."""
    folder = os.path.join(where.home, BACKUPS)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    backups = [os.path.join(folder, name) for name in names if not name.endswith(COPY_SIDES)]
    home, name = os.path.split(where.database)
    aside = sorted(os.listdir(home)) if os.path.isdir(home) and not is_address(where.database) else []
    damaged = [os.path.join(home, one) for one in aside if one.startswith(f"{name}.damaged")]
    return backups + [path for path in damaged if not path.endswith(COPY_SIDES)]


@contextmanager
def open_copy(path: str) -> Iterator[SqliteStore]:
    """Open a copy of the store to erase in it; it is one file again afterwards.  Raises for one that is damaged."""
    from commonplace.stores.sqlite.upkeep import finish_file, opened_backup  # noqa: PLC0415 - no recall needs it

    with opened_backup(path):
        pass
    store = SqliteStore(path)
    try:
        yield store
        store.scrub()
    finally:
        store.close()
        finish_file(path)


def machine_name(folder: str) -> str:
    """What this machine is called in a store that it shares: a name by chance, kept in the data folder."""
    path = os.path.join(folder, "machine")
    try:
        return (_read(path) or _make(path)).hex()[:16]
    except OSError as error:
        raise StoreError(f"{path!r} cannot be used: {error.strerror}") from error


def _of_store(where: Context, name: str) -> str:
    """What a file or folder of the data folder is called that each store has its own of."""
    if where.database == os.path.join(where.home, DATABASE):
        return name
    from hashlib import sha256  # noqa: PLC0415 - the usual store must open without

    return f"{name}-{sha256(where.database.encode()).hexdigest()[:16]}"


def salvage_database(where: Context) -> Repair:
    """Carry what can be read of a database that cannot be opened into a new one; the damaged one stays beside it."""
    from commonplace.stores.sqlite.upkeep import salvage  # noqa: PLC0415 - no recall needs it

    return salvage(where.database)


def open(  # noqa: A001 - `commonplace.open` is what it is called
    path: str | os.PathLike[str] | None = None,
    *,
    user: str = "default",
    clock: Clock = now_utc,
    embedder: Embedder | str | None = LOCAL,
) -> Memory:
    """Open a memory: one file of your own, or without a path what the command sees from the working directory.

    ``":memory:"`` keeps nothing; ``"postgresql://host/name"`` is a database that several machines share.  In a store of
    your own any category is allowed.  ``embedder`` finds what says the same in other words: the built-in one unless you
    name another, such as ``"openai:text-embedding-3-small"``; None searches by words alone.
    """
    if path is None:
        return open_app(clock=clock, embedder=CONFIGURED if embedder == LOCAL else embedder).memory
    from commonplace.engine.users import user_binding  # noqa: PLC0415 - the command has its own binding

    place = _as_place(path)
    chosen = find_embedder(embedder, os.environ)
    return Memory(open_store(place), user_binding(user), clock=clock, embedder=chosen, secret=redaction_key_for(place))


async def open_async(
    path: str | os.PathLike[str] | None = None,
    *,
    user: str = "default",
    clock: Clock = now_utc,
    embedder: Embedder | str | None = LOCAL,
) -> AsyncMemory:
    """Open a memory whose verbs are awaited; see ``open``.  The event loop goes on meanwhile."""
    import asyncio  # noqa: PLC0415 - only programs with an event loop need it

    from commonplace.engine.asynchronous import AsyncMemory  # noqa: PLC0415 - see above

    return AsyncMemory(await asyncio.to_thread(open, path, user=user, clock=clock, embedder=embedder))


def _as_place(path: str | os.PathLike[str]) -> str:
    """Return the path or the address of a store as text."""
    place = path if isinstance(path, str) else os.fspath(path)
    if not isinstance(place, str) or not place:
        raise InvalidInput(f"{path!r} names no store; give a path, ':memory:' or a postgresql:// address")
    return place


def redaction_key_for(place: str) -> Callable[[], bytes]:
    """Return the key of redaction marks for a store: from the folder of its file, or from the data folder."""
    if place == ":memory:":
        return bytes
    return redaction_key_in(home(os.environ) if is_address(place) else os.path.dirname(os.path.abspath(place)))


def redaction_key_in(folder: str) -> Callable[[], bytes]:
    """The key of redaction marks, made on first use: equal secrets get equal marks, and none can be guessed back."""

    @cache  # it is the same for every write
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

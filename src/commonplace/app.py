"""Open a memory: the only module that knows stores, files, configuration and engine at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from commonplace.config.paths import CONFIG, DATABASE, home, is_address
from commonplace.config.project import ASSISTANT, PROJECT, Context, context
from commonplace.engine.memory import Memory, bound, now_utc
from commonplace.files.freshness import Look
from commonplace.files.mirror import MirroredStore
from commonplace.files.recall import Brief, brief
from commonplace.model.binding import Binding
from commonplace.model.errors import ConfigError, Forbidden, InvalidInput, ProviderError, StoreError
from commonplace.model.ports import Clock, Embedder, Keeper, Store, Tell, silent
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.stores.sqlite.store import SqliteStore

if TYPE_CHECKING:
    from commonplace.engine.embedding import Report as Reembedded
    from commonplace.engine.forgetting import Erasure
    from commonplace.files.sync import Report
    from commonplace.intents.intents import Intents
    from commonplace.learning.addresses import Shelf
    from commonplace.learning.brief import Injection
    from commonplace.learning.workspace import Workplace
    from commonplace.model.items import Mover
    from commonplace.model.ports import Model, Store
    from commonplace.stores.postgres.store import PostgresStore

    Database: TypeAlias = SqliteStore | PostgresStore

LOCAL = "local"  # the embedder of this package
CONFIGURED = "configured"  # whichever the user's settings name
VEC = "COMMONPLACE_SQLITE_VEC"  # where sqlite-vec lies, for those who have it: nearness is then found sooner
RECALL_WAIT_SECONDS = 0.5  # so long a recall waits for another process that takes in the same files


class App:
    """Commonplace as it is from one directory: the project there, the user's own memory, one store behind both."""

    def __init__(
        self, where: Context, *, channel: Channel, clock: Clock, embedder: Embedder | None, env: Mapping[str, str]
    ) -> None:
        """Open what the context describes; nothing is read yet."""
        self.where = where
        self.env = env
        self.clock = clock
        self.embedder = embedder
        self.secret = secret_in(where.home)
        self.database = store_at(where.database, env=env, machine=lambda: machine_in(where.home))
        for scope, folder in where.folders.items():
            if scope == where.assistant:
                os.makedirs(folder, mode=0o700, exist_ok=True)
        self.store = MirroredStore(self.database, where.folders)
        self.binding = where.bind(channel)
        self.memory = Memory(
            self.store, self.binding, clock=clock, embedder=embedder, secret=self.secret, erased=self._forgotten
        )
        self.look = Look(self.store, os.path.join(where.home, _looked(where)))

    def narrowed(self, scope: Scope) -> Memory:
        """The same memory, which sees one scope alone."""
        return bound(self.memory, self.binding.replace(reads=(scope,)))

    def _forgotten(self, erasure: Erasure) -> None:
        """Take erased words out of the project's artifacts as well; those of other projects follow when they learn."""
        if not self.where.on(PROJECT) or self.where.project not in self.where.folders:
            return
        from commonplace.learning.artifacts import forgotten  # noqa: PLC0415 - no recall erases

        forgotten(workplace(self), erasure)

    def recall(self, query: str, **options: Any) -> Brief:
        """Recall with a look at the files first; ``options`` are those of ``Memory.recall``."""
        return brief(self.memory, self.look, query, sync=self._sync_quietly, **options)

    @property
    def shelf(self) -> Shelf:
        """What addresses mean here: the project's artifacts, and every record that can be seen."""
        from commonplace.learning.addresses import Shelf  # noqa: PLC0415 - a recall reads no artifact

        project = self.where.project if self.where.on(PROJECT) else None
        folder = self.store.folders.get(project) if project else None
        return Shelf(memory=self.memory, scope=project, folder=folder, secret=self.secret)

    def inject(self, task: str, *, budget: int | None = None, session: str | None = None) -> Injection:
        """What a session should be shown before it starts on a task."""
        from commonplace.learning.brief import inject, rules_in  # noqa: PLC0415 - see shelf

        shelf, settings = self.shelf, self.where.project_settings
        return inject(
            shelf, self.recall, task, rules=rules_in(shelf.folder, secret=self.secret()),
            limit=settings["recall_limit"], recall_budget=settings["recall_budget"], budget=budget,
            summary_budget=self.where.learning.summary_injection_token_limit, session=session,
        )  # fmt: skip

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
        from commonplace.files.sync import Syncer  # noqa: PLC0415 - a recall without edited files must not load it

        began = time.time_ns()
        syncer = Syncer(self.store, scope, self.binding, clock=self.clock, secret=self.secret)
        report = syncer.run(accept_missing=accept_missing, tell=tell, wait=wait)
        self.look.mark(scope, began, len(self.store.files(self.store.folders[scope])))
        if report.added or report.changed or report.restored:
            self.catch_up()
        return report

    def catch_up(self, *, tell: Tell = silent) -> int:
        """Give texts the vectors that they lack; returns how many got one.  An embedder that fails is tried later."""
        from commonplace.engine.embedding import catch_up  # noqa: PLC0415 - no recall without edits needs it

        try:
            return catch_up(self.store, self.embedder, tell=tell) if self.embedder else 0
        except ProviderError:
            return 0

    def foreseen(self, scope: Scope) -> tuple[Report, int]:
        """What a sync of the scope would say, and how much it would do."""
        from commonplace.files.sync import Syncer  # noqa: PLC0415 - see sync

        return Syncer(self.store, scope, self.binding, clock=self.clock, secret=self.secret).foreseen()

    def reembed(self, *, tell: Tell = silent) -> Reembedded:
        """Embed everything anew with the embedder of the settings; the old vectors answer until all are there."""
        from commonplace.engine.embedding import reembed  # noqa: PLC0415 - see catch_up

        if self.embedder is None:
            file = os.path.join(self.where.home, CONFIG)
            raise ConfigError("is none, so there is nothing to embed with", file=file, path="embedder")
        return reembed(self.store, self.embedder, tell=tell)

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
        return keeper_of(self.database)

    def restored(self, path: str) -> int:
        """Put a backup in the place of what is stored, and let the files follow; returns the number of records."""
        from commonplace.files.sync import follow  # noqa: PLC0415 - see sync

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
    embedder: Embedder | str | None = CONFIGURED,
) -> App:
    """Open what is at a directory: the project around it and the user's own memory, with their Markdown.

    The embedder is the one of the user's settings unless another is given; None searches by words alone.
    """
    known = os.environ if env is None else env
    where = context(directory or os.getcwd(), known)
    if embedder == CONFIGURED:
        chosen = configured(where.user_settings, known, file=os.path.join(where.home, CONFIG))
    else:
        chosen = embedder_named(embedder, known)
    return App(where, channel=channel, clock=clock, embedder=chosen, env=known)


def configured(settings: Mapping[str, Any], env: Mapping[str, str], *, file: str) -> Embedder | None:
    """The embedder that a user's settings name."""
    try:
        return embedder_named(
            settings["embedder"], env, base_url=settings["embedder_base_url"],
            api_key_env=settings["embedder_api_key_env"], dimensions=settings["embedder_dimensions"],
        )  # fmt: skip
    except InvalidInput as error:
        raise ConfigError(str(error), file=file, path="embedder") from error


def embedder_named(spec: Embedder | str | None, env: Mapping[str, str], **options: Any) -> Embedder | None:
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


def workplace(place: App) -> Workplace:
    """The project here as the pipelines that learn see it."""
    from commonplace.learning.extractors import prompts_in  # noqa: PLC0415 - a recall learns nothing
    from commonplace.learning.workspace import Workplace  # noqa: PLC0415 - likewise

    where = place.where
    scope = where.scope(PROJECT)
    return Workplace(
        store=place.store, scope=scope, personal=where.assistant if where.on(ASSISTANT) else None,
        folder=where.folders.get(scope), bind=where.bind, learning=where.learning, clock=place.clock,
        secret=place.secret, embedder=place.embedder, model=model_in(where, place.env),
        prompt=prompts_in(where.folders.get(scope)),
    )  # fmt: skip


def learning_place(place: App) -> Workplace:
    """The same, if learning is switched on."""
    if not place.where.learning.enabled:
        file = (
            os.path.join(place.where.place.folder, CONFIG) if place.where.place and place.where.place.folder else CONFIG
        )
        raise Forbidden(f"learning is switched off here; `memories.enabled: true` in {file} switches it on")
    place.where.writable(PROJECT)
    return workplace(place)


def model_in(where: Context, env: Mapping[str, str]) -> Callable[[str], Model]:
    """The models of the settings, by role."""

    def model(role: str) -> Model:
        models, file = where.models, os.path.join(where.place.folder or "", CONFIG) if where.place else CONFIG
        spec = models.of(role)
        if spec is None:
            raise ConfigError("says no model, and memories.mode is model", file=file, path="models.default")
        from commonplace.providers.models import model_of  # noqa: PLC0415 - only what is used is loaded

        try:
            return model_of(
                spec, base_url=models.base_url, api_key_env=models.api_key_env, timeout=models.timeout_seconds,
                env=env,
            )  # fmt: skip
        except InvalidInput as error:
            raise ConfigError(str(error), file=file, path=f"models.{role}") from error

    return model


def store_at(place: str, *, env: Mapping[str, str] = os.environ, machine: Callable[[], str] = str) -> Database:
    """The store in a file, or at the address of a PostgreSQL database.

    ``machine`` says what this machine is called, where one store knows the folders of several.
    """
    if not is_address(place):
        return SqliteStore(place, vec=env.get(VEC))
    from commonplace.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra, and only what is used is loaded

    return PostgresStore(place, machine=machine())


def lance_store(folder: str, *, env: Mapping[str, str] = os.environ) -> SqliteStore:
    """The store in a folder, with an index of its vectors in LanceDB beside the records."""
    from commonplace.stores.lance.store import LanceStore  # noqa: PLC0415 - only what is used is loaded

    return LanceStore(folder, vec=env.get(VEC))


def lance_needed() -> None:
    """Refuse to go on without LanceDB, before anything is made."""
    from commonplace.stores.lance.index import needed  # noqa: PLC0415 - likewise

    needed()


def carried(source: str, target: str) -> int:
    """Copy the database in a file to where there is none yet; returns the number of records.  The source stays.

    It is copied beside its place and linked there when it is whole: of two who do so at once, one is too late.
    """
    beside = f"{target}.{os.urandom(8).hex()}"
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    store = SqliteStore(beside)
    try:
        count = keeper_of(store).restore(source)
        store.close()
        with suppress(FileExistsError):
            os.link(beside, target)
    finally:
        store.close()
        for side in ("", "-wal", "-shm", ".lock"):
            with suppress(FileNotFoundError):
                os.unlink(beside + side)
    return count


def reindex(store: Store, *, tell: Tell = silent) -> int:
    """Write the index beside a store anew, if it has one; returns how many vectors are in it."""
    from commonplace.stores.lance.store import LanceStore  # noqa: PLC0415 - likewise

    return store.rebuild(tell=tell) if isinstance(store, LanceStore) else 0


def lance_tables(folder: str) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """The tables of a LanceDB store that the public implementation of role memory wrote, row by row."""
    from commonplace.stores.lance.reader import tables  # noqa: PLC0415 - likewise

    return tables(folder)


def keeper_of(store: Database) -> Keeper:
    """What looks after a store."""
    if isinstance(store, SqliteStore):
        from commonplace.stores.sqlite.upkeep import SqliteKeeper  # noqa: PLC0415 - no recall needs it

        return SqliteKeeper(store)
    from commonplace.stores.postgres.upkeep import PostgresKeeper  # noqa: PLC0415 - likewise

    return PostgresKeeper(store)


def mover_of(store: Database) -> Mover:
    """What carries a store to another one, row by row."""
    from commonplace.stores.sql.items import SqlMover  # noqa: PLC0415 - no recall needs it

    return SqlMover(store)


def machine_in(folder: str) -> str:
    """What this machine is called in a store that it shares: a name by chance, kept in the data folder."""
    path = os.path.join(folder, "machine")
    try:
        return (_read(path) or _make(path)).hex()[:16]
    except OSError as error:
        raise StoreError(f"{path!r} cannot be used: {error.strerror}") from error


def _looked(where: Context) -> str:
    """The folder that says which files were seen; what one store has seen says nothing of another."""
    if where.database == os.path.join(where.home, DATABASE):
        return "looked"
    from hashlib import sha256  # noqa: PLC0415 - the usual store must open without

    return f"looked-{sha256(where.database.encode()).hexdigest()[:16]}"


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
    embedder: Embedder | str | None = LOCAL,
) -> Memory:
    """Open a memory: one file of your own, or without a path what the command sees from the working directory.

    ``":memory:"`` keeps nothing; ``"postgresql://host/name"`` is a database that several machines share.  In a store of
    your own any category is allowed.  ``embedder`` finds what says the same in other words: the built-in one unless you
    name another, such as ``"openai:text-embedding-3-small"``; None searches by words alone.
    """
    if path is None:
        return here(clock=clock, embedder=CONFIGURED if embedder == LOCAL else embedder).memory
    scope = Scope.of(("user", user))
    binding = Binding(
        channel=Channel.USER,
        writes=dict.fromkeys(Kind, scope),
        reads=(scope,),
        transcripts=frozenset({scope}),
    )
    chosen = embedder_named(embedder, os.environ)
    store = store_at(path)
    return Memory(store, binding, clock=clock, embedder=chosen, secret=secret_beside(path))


def intents(
    place: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    embedder: Embedder | str | None = LOCAL,
    capacity: int | None = None,
    event_days: int | None = None,
) -> Intents:
    """Open intent memory: a file of your own, the address of a database, or without either the store of the command.

    ``capacity`` is how many episodic entries an agent may have in one namespace, ``event_days`` for how long it is kept
    what happened (0: for ever).
    """
    from commonplace.intents.intents import EPISODIC_CAPACITY, Intents  # noqa: PLC0415 - likewise
    from commonplace.model.events import EVENT_DAYS  # noqa: PLC0415 - no recall needs it

    known, most = os.environ if env is None else env, EPISODIC_CAPACITY if capacity is None else capacity
    days = EVENT_DAYS if event_days is None else event_days
    if place is not None:
        chosen = embedder_named(embedder, known)
        store: Store = store_at(place, env=known)
        return Intents(store, clock=clock, embedder=chosen, secret=secret_beside(place), capacity=most, event_days=days)
    where = context(os.getcwd(), known)
    if embedder == LOCAL:
        chosen = configured(where.user_settings, known, file=os.path.join(where.home, CONFIG))
    else:
        chosen = embedder_named(embedder, known)
    store = store_at(where.database, env=known, machine=lambda: machine_in(where.home))
    return Intents(store, clock=clock, embedder=chosen, secret=secret_in(where.home), capacity=most, event_days=days)


def secret_beside(place: str) -> Callable[[], bytes]:
    """The key of redaction marks for a store of one's own: beside its file, or in the data folder."""
    if place == ":memory:":
        return bytes
    return secret_in(home(os.environ) if is_address(place) else os.path.dirname(os.path.abspath(place)))


def secret_in(folder: str) -> Callable[[], bytes]:
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

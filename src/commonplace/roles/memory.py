"""The memory of a role: its store, opened with the role's embedder and backend, and what is done with it as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

from commonplace import app as opening
from commonplace.config.paths import home, is_address
from commonplace.engine import embedding
from commonplace.engine.memory import Memory, now_utc, with_binding
from commonplace.engine.transfer import Arrival, ImportResult, import_items
from commonplace.model.changes import Delete, Trim
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import ConfigError, InvalidInput, ProviderError
from commonplace.model.ports import Clock, Model, ProgressCallback, Store, no_progress
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Channel, Kind
from commonplace.model.values import Value
from commonplace.roles import consolidate as role_consolidate
from commonplace.roles import transfer
from commonplace.roles.dialect import LANCEDB, ModelSettings, Role, model_settings
from commonplace.roles.embedders import EmbedderChoice, check_embedder, embedder_for
from commonplace.roles.operator import (
    claim_memory,
    environment,
    ignored_variables,
    require_trusted_role,
    role_key_hosts,
)
from commonplace.roles.sessions import MOST, Sessions
from commonplace.text.cleaning import plural

UNEMBEDDED = "older memories are found by their words alone"
CATCH_UP = 256  # texts that get their vectors when an agent starts: a second or two, the rest the next time


class LanceStoreFound(Value):
    """What a LanceDB store of the public implementation holds, checked."""

    memories: tuple[Arrival, ...]
    conversations: tuple[transfer.StoredConversation, ...]  #: oldest first


class LanceStoreImported(Value):
    """The result of importing such a store."""

    memories: ImportResult
    sessions: int  #: that are new
    present: int  #: sessions that were there already


class RoleMemory:
    """The memory of one role, open."""

    def __init__(
        self,
        role: Role,
        store: Store,
        *,
        home: str,
        env: Mapping[str, str],
        clock: Clock,
        secret: Callable[[], bytes],
        chosen: EmbedderChoice | None,
        notes: Sequence[str] = (),
    ) -> None:
        """Wrap an open store; ``env`` has the role's .env in it already."""
        self.role = role
        self.store = store
        self.home = home
        self.env = env
        self.clock = clock
        self.secret = secret
        self.embedder = chosen.embedder if chosen else None
        self.notes = (*notes, *(chosen.notes if chosen else ()))  #: for the user, to be shown once
        self.scope = role.scope(home)
        self.sessions = Sessions(store, self.scope, role.name, clock=clock, secret=secret)

    def memory(self, channel: Channel = Channel.AGENT) -> Memory:
        """Return the memory for writes by this channel."""
        binding = self.role.bind(channel, home=self.home)
        return Memory(self.store, binding, clock=self.clock, embedder=self.embedder, secret=self.secret)

    def consolidate(self, model: Model | None = None) -> role_consolidate.RoleConsolidationReport:
        """Make facts of the oldest episodes, by default with the role's own model."""
        settings = self.role.memory_settings().consolidation
        if not role_consolidate.waiting_episodes(self.store, self.scope, self.clock, most=1):  # then no key is needed
            return role_consolidate.RoleConsolidationReport()
        memory = self.memory(Channel.CONSOLIDATION)
        return role_consolidate.consolidate(
            memory.writer, memory.binding, model or self.model(), most=settings.max_episodes_per_run
        )

    def model(self) -> Model:
        """Return the model that consolidates: ``model_override`` at the role's own address, else the role's own."""
        from commonplace.providers.models import model_of  # noqa: PLC0415 - most commands ask no model

        used = consolidation_model(self.role)
        try:
            return model_of(
                used.spec, base_url=used.base_url, api_key_env=used.api_key_env, timeout=used.timeout_seconds,
                env=self.env, key_hosts=role_key_hosts(self.role, self.env),
            )  # fmt: skip
        except InvalidInput as error:
            raise ConfigError(str(error), file=self.role.file, path=self.role.path("model")) from error

    def reembed(self, *, progress: ProgressCallback = no_progress) -> embedding.EmbeddingReport:
        """Embed every text with the role's embedder; the old vectors answer until all new ones are there.

        A separate vector index is rebuilt, even if nothing had to be embedded.
        """
        if self.embedder is None:
            raise InvalidInput("this memory was opened without an embedder")
        done = embedding.reembed(self.store, self.embedder, progress=progress)
        opening.reindex(self.store, progress=progress)
        return done

    def catch_up(self, *, notify: Callable[[str], None]) -> int:
        """Embed memories that have no vector because the embedder was unavailable; returns how many got one.

        Nothing is asked if nothing is missing.  An embedder that still fails is tried the next time.
        """
        stored = self.store.embedder()
        missing = self.store.count_unembedded(stored) if stored else len(self.memory().list(limit=1))
        if self.embedder is None or not missing:
            return 0
        try:
            return embedding.catch_up(self.store, self.embedder, limit=CATCH_UP)
        except ProviderError as error:
            if not self.notes:  # else it has been shown
                notify(f"{UNEMBEDDED}: {error}")
            return 0

    def import_(self, text: str, *, progress: ProgressCallback = no_progress) -> ImportResult:
        """Import the memories of an export."""
        return import_items(self.memory(Channel.IMPORT), transfer.read_entries(text), progress=progress)

    def import_store(
        self, found: LanceStoreFound, *, limited: bool, progress: ProgressCallback = no_progress
    ) -> LanceStoreImported:
        """Import what another program's store holds, once; ``limited``: within the role's limits."""
        memory = self.memory(Channel.IMPORT)
        memory = memory if limited else with_binding(memory, memory.binding.replace(limits={}))
        done = import_items(memory, found.memories, progress=progress)
        there = frozenset({DocumentKind.SESSION})
        held = self.store.documents(DocumentFilter(scopes=frozenset({self.scope}), kinds=there), limit=MOST)
        names = {document.name for document in held}
        new = [one for one in found.conversations if one.id not in names]
        for one in new:  # as of the moment at which they were saved; one to come would be the newest for ever
            then = partial(min, one.at, self.clock())
            sessions = Sessions(
                self.store, self.scope, one.agent, clock=then, secret=self.secret, channel=Channel.IMPORT
            )
            sessions.save(one.id, [dict(message) for message in one.messages])
        return LanceStoreImported(memories=done, sessions=len(new), present=len(found.conversations) - len(new))

    def clear(self, kinds: frozenset[Kind] | None = None) -> tuple[int, bool]:
        """Erase memories of these kinds, or all; returns how many, and whether bytes of them are still held.

        Only what was asked for goes: what was learned from an episode stays when episodes are cleared.
        """
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, kinds=kinds)
        outcomes = self.store.apply([Trim(where=where, keep=0, order=Order.OLDEST), Delete(where=where)])
        return sum(len(outcome.gone) for outcome in outcomes), any(outcome.erasing for outcome in outcomes)


def read_lance_store(folder: str) -> LanceStoreFound:
    """Read a LanceDB store of the public implementation to its end; nothing is written yet."""
    tables = opening.read_lance_tables(folder)
    return LanceStoreFound(
        memories=tuple(transfer.read_rows(tables[transfer.MEMORIES])),
        conversations=tuple(transfer.read_conversations(tables[transfer.SESSIONS])),
    )


def consolidation_model(role: Role) -> ModelSettings:
    """Return the settings of the model that consolidates the episodes of a role."""
    override = role.memory_settings().consolidation.model_override
    path = role.path("memory.consolidation.model_override")
    if role.model is None:
        if override is None:
            raise ConfigError("is missing; consolidation needs one", file=role.file, path=role.path("model"))
        return model_settings(override, file=role.file, path=path)
    if override is None:
        return role.model
    if role.model.base_url or ":" not in override:  # a name of the same provider or at the same address
        return role.model.replace(name=override.removeprefix(f"{role.model.provider}:"))
    other = model_settings(override, file=role.file, path=path)
    return role.model.replace(name=other.name) if other.provider == role.model.provider else other


def has_store(role: Role, *, env: Mapping[str, str] | None = None) -> bool:
    """Return whether the role has a store; none is created."""
    data = home(os.environ if env is None else env)
    store = role.store(data)
    return is_address(store) or os.path.exists(store) or _previous_store(role, data) is not None


@contextmanager
def role_memory(
    role: Role,
    *,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    embedded: bool = True,
    anew: bool = False,
) -> Iterator[RoleMemory]:
    """Open the memory of a role.

    Without ``embedded`` no embedder is needed: lists, exports and clears work without it.
    ``anew`` takes the embedder that the role names, not the one of the store's vectors: for ``reembed``.
    """
    known = os.environ if env is None else env
    data = home(known)
    require_trusted_role(role, known)
    path = role.store(data)
    merged = environment(role, known, home=data)
    os.makedirs(data, mode=0o700, exist_ok=True)  # a folder of a folder would be made for all to read
    if not is_address(path):
        lance = role.memory_settings().store_backend == LANCEDB
        claim_memory(role, path, known, has_records=os.path.exists(_database(path, lance=lance)))
    carried = _carry_over(role, data)
    with closing(_open_store(role, path, merged)) as store:
        chosen = embedder_for(role, merged, None if anew else store.embedder()) if embedded else None
        if chosen and not anew:
            check_embedder(role, store, chosen.embedder)
        yield RoleMemory(
            role, store, home=data, env=merged, clock=clock,
            secret=opening.redaction_key_in(data), chosen=chosen,
            notes=(*carried, *ignored_variables(role)),
        )  # fmt: skip


def _database(place: str, *, lance: bool) -> str:
    """Return the file that holds the records of a store."""
    return os.path.join(place, "records.db") if lance else place


def _previous_store(role: Role, data: str) -> str | None:
    """Return the database of the other backend, if the role has one there, none with this one and names no path."""
    settings, own = role.memory_settings(), role.store(data)
    lance = settings.store_backend == LANCEDB
    if settings.store_path or is_address(own) or os.path.exists(_database(own, lance=lance)):
        return None
    place = os.path.join(data, "memory", f"{role.name}.{'db' if lance else 'lance'}")
    found = _database(place, lance=not lance)
    return found if os.path.exists(found) else None


def _carry_over(role: Role, data: str) -> tuple[str, ...]:
    """Copy what the role remembered with the other backend: changing it must not look like a loss."""
    other, own = _previous_store(role, data), role.store(data)
    if other is None:
        return ()
    if role.memory_settings().store_backend == LANCEDB:
        opening.require_lance()  # else the copy would be outdated when it can first be used
    count = opening.copy_database(other, _database(own, lance=role.memory_settings().store_backend == LANCEDB))
    return (f"copied from {other!r} to {own!r}: {plural(count, 'record')}; the old store stays and is no longer used",)


def _open_store(role: Role, place: str, env: Mapping[str, str]) -> Store:
    """Open the store of a role by its backend."""
    if role.memory_settings().store_backend == LANCEDB and not is_address(place):
        return opening.open_lance_store(place, env=env)
    return opening.open_store(place, env=env)

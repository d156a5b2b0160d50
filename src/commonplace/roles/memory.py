"""What a role remembers: its store opened, its embedder found, and the ways that lead into it.

The embedder is the one that the role names; one that only follows from its model's provider gives way to the built-in
one where it could not work, and says so.  A store keeps to the embedder of its vectors until it is embedded anew.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

from commonplace import app as opening
from commonplace.config.paths import home, is_address
from commonplace.engine import embedding
from commonplace.engine.memory import Memory, now_utc
from commonplace.model.changes import Delete, Trim
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import (
    ConfigError,
    DimensionMismatch,
    EmbeddingModelChanged,
    InvalidInput,
    ProviderError,
)
from commonplace.model.ports import Clock, Embedder, EmbedderIdentity, Model, Store, Tell, silent
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Channel, Kind
from commonplace.model.values import Value
from commonplace.providers.embedders import DEFAULTS, LOCAL, ONNX, embedder_of
from commonplace.providers.services import key_of
from commonplace.roles import consolidate as role_consolidate
from commonplace.roles import lance_import
from commonplace.roles import transfer as role_transfer
from commonplace.roles.dialect import LANCEDB, ModelSettings, Role, environment, model_settings
from commonplace.roles.sessions import MOST, Sessions

OPENAI = "openai"  # what the document falls back on


class Chosen(Value):
    """An embedder, and what people should know of how it was chosen."""

    embedder: Embedder
    notes: tuple[str, ...] = ()


class TakenOver(Value):
    """What came of taking over another program's store."""

    memories: role_transfer.Imported
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
        chosen: Chosen | None,
        notes: Sequence[str] = (),
    ) -> None:
        """See a store as this role does; ``env`` has its .env in it already."""
        self.role = role
        self.store = store
        self.home = home
        self.env = env
        self.clock = clock
        self.secret = secret
        self.embedder = chosen.embedder if chosen else None
        self.notes = (*notes, *(chosen.notes if chosen else ()))  #: what to tell people, once
        self.scope = role.scope(home)
        self.sessions = Sessions(store, self.scope, role.name, clock=clock, secret=secret)

    def memory(self, channel: Channel = Channel.AGENT) -> Memory:
        """The memory for what comes in by this channel."""
        binding = self.role.bind(channel, home=self.home)
        return Memory(self.store, binding, clock=self.clock, embedder=self.embedder, secret=self.secret)

    def consolidate(self, model: Model | None = None) -> role_consolidate.Report:
        """Make facts of the oldest episodes, with the role's own model unless another is given."""
        settings = self.role.remembering().consolidation
        if not role_consolidate.waiting(self.store, self.scope, self.clock, most=1):  # then nobody needs a key
            return role_consolidate.Report()
        memory = self.memory(Channel.CONSOLIDATION)
        return role_consolidate.consolidate(
            memory.writer, memory.binding, model or self.model(), most=settings.max_episodes_per_run
        )

    def model(self) -> Model:
        """The model that consolidates: ``model_override`` at the role's own address, else the role's own."""
        from commonplace.providers.models import model_of  # noqa: PLC0415 - most commands ask no model

        used = consolidating(self.role)
        try:
            return model_of(
                used.spec, base_url=used.base_url, api_key_env=used.api_key_env, timeout=used.timeout_seconds,
                env=self.env,
            )  # fmt: skip
        except InvalidInput as error:
            raise ConfigError(str(error), file=self.role.file, path=self.role.path("model")) from error

    def reembed(self, *, tell: Tell = silent) -> embedding.Report:
        """Embed every text with the role's embedder; the old vectors answer until all new ones are there.

        An index beside the records is written anew, also where nothing had to be embedded.
        """
        done = embedding.reembed(self.store, self._embedding(), tell=tell)
        opening.reindex(self.store, tell=tell)
        return done

    def import_(self, text: str, *, tell: Tell = silent) -> role_transfer.Imported:
        """Keep the memories of an export."""
        binding = self.role.bind(Channel.IMPORT, home=self.home)
        return role_transfer.imported(
            self.store, text, binding=binding, scope=self.scope, clock=self.clock, embedder=self.embedder,
            secret=self.secret(), tell=tell,
        )  # fmt: skip

    def take_over(self, found: lance_import.Found, *, limited: bool, tell: Tell = silent) -> TakenOver:
        """Keep what another program's store holds, once; ``limited``: within the role's limits."""
        binding = self.role.bind(Channel.IMPORT, home=self.home)
        done = lance_import.take_over(
            self.store, found.memories, binding=binding if limited else binding.replace(limits={}), scope=self.scope,
            clock=self.clock, embedder=self.embedder, secret=self.secret(), tell=tell,
        )  # fmt: skip
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
        return TakenOver(memories=done, sessions=len(new), present=len(found.conversations) - len(new))

    def clear(self, kinds: frozenset[Kind] | None = None) -> tuple[int, bool]:
        """Erase memories of these kinds, or all; returns how many, and whether bytes of them are still held.

        Only what was asked for goes: what was learned from an episode stays when episodes are cleared.
        """
        where = Filter(scopes=frozenset({self.scope}), at=self.clock(), states=ANY_STATE, kinds=kinds)
        outcomes = self.store.apply([Trim(where=where, keep=0, order=Order.OLDEST), Delete(where=where)])
        return sum(len(outcome.gone) for outcome in outcomes), any(outcome.erasing for outcome in outcomes)

    def _embedding(self) -> Embedder:
        if self.embedder is None:
            raise InvalidInput("this memory was opened without an embedder")
        return self.embedder


def lance_found(folder: str) -> lance_import.Found:
    """What a LanceDB store of the public implementation holds, checked; nothing is kept yet."""
    return lance_import.read(opening.read_lance_tables(folder))


def consolidating(role: Role) -> ModelSettings:
    """The model that consolidates the episodes of a role."""
    override = role.remembering().consolidation.model_override
    path = role.path("memory.consolidation.model_override")
    if role.model is None:
        if override is None:
            raise ConfigError("is missing, so nobody can consolidate", file=role.file, path=role.path("model"))
        return model_settings(override, file=role.file, path=path)
    if override is None:
        return role.model
    if role.model.base_url or ":" not in override:  # a name of the same provider or at the same address
        return role.model.replace(name=override.removeprefix(f"{role.model.provider}:"))
    other = model_settings(override, file=role.file, path=path)
    return role.model.replace(name=other.name) if other.provider == role.model.provider else other


def exists(role: Role, *, env: Mapping[str, str] | None = None) -> bool:
    """Whether the role has a store; asking makes none."""
    data = home(os.environ if env is None else env)
    store = role.store(data)
    return is_address(store) or os.path.exists(store) or _elsewhere(role, data) is not None


@contextmanager
def role_memory(
    role: Role,
    *,
    env: Mapping[str, str] | None = None,
    clock: Clock = now_utc,
    embedded: bool = True,
    anew: bool = False,
) -> Iterator[RoleMemory]:
    """Open what a role remembers.

    Without ``embedded`` nobody needs an embedder: lists, exports and clears work whatever the role says of one.
    ``anew`` means the embedder that the role says, whatever the store's vectors come from: for ``reembed``.
    """
    known = os.environ if env is None else env
    data = home(known)
    path = role.store(data)
    merged = environment(role, known, home=data)
    os.makedirs(data, mode=0o700, exist_ok=True)  # a folder of a folder would be made for all to read
    carried = _carried(role, data)
    with closing(_opened(role, path, merged)) as store:
        stored = store.embedder()
        chosen = embedder_for(role, merged, None if anew else stored) if embedded else None
        if chosen and not anew:
            agreeing(role, stored, chosen.embedder)
        yield RoleMemory(
            role, store, home=data, env=merged, clock=clock,
            secret=opening.redaction_key_in(data), chosen=chosen, notes=carried,
        )  # fmt: skip


def _database(place: str, *, lance: bool) -> str:
    """The file that holds the records of a store."""
    return os.path.join(place, "records.db") if lance else place


def _elsewhere(role: Role, data: str) -> str | None:
    """The database that the role had with another backend, where it has none with this one and names no place."""
    settings, own = role.remembering(), role.store(data)
    lance = settings.store_backend == LANCEDB
    if settings.store_path or is_address(own) or os.path.exists(_database(own, lance=lance)):
        return None
    place = os.path.join(data, "memory", f"{role.name}.{'db' if lance else 'lance'}")
    found = _database(place, lance=not lance)
    return found if os.path.exists(found) else None


def _carried(role: Role, data: str) -> tuple[str, ...]:
    """Start with what the role remembered so far: a change of backend must not look like having lost it."""
    other, own = _elsewhere(role, data), role.store(data)
    if other is None:
        return ()
    if role.remembering().store_backend == LANCEDB:
        opening.require_lance()  # a copy that nobody can use yet would be an old one when somebody can
    count = opening.copy_database(other, _database(own, lance=role.remembering().store_backend == LANCEDB))
    return (f"{count} records of {other!r} were copied to {own!r}; the old store stays, and is not used any more",)


def _opened(role: Role, place: str, env: Mapping[str, str]) -> Store:
    """The store of a role, by its backend."""
    if role.remembering().store_backend == LANCEDB and not is_address(place):
        return opening.open_lance_store(place, env=env)
    return opening.open_store(place, env=env)


def agreeing(role: Role, stored: EmbedderIdentity | None, embedder: Embedder) -> None:
    """Refuse an embedder whose vectors cannot be compared with those of the store."""
    if stored is None:
        return
    offered = _says(embedder)
    if offered is None:  # words find what they find
        return
    way = f"`commonplace memory reembed {role.file}` changes over"
    if stored.name != offered.name:
        changed = EmbeddingModelChanged(stored=stored.name, offered=offered.name)
        changed.args = (
            f"the memory of {role.name} has vectors of {stored.name!r}, the role now says {offered.name!r}; {way}",
        )
        raise changed
    if stored.dimensions != offered.dimensions:
        mismatch = DimensionMismatch(stored=stored.dimensions, offered=offered.dimensions)
        sizes = f"vectors of {stored.dimensions} dimensions, {offered.name!r} now has {offered.dimensions}"
        mismatch.args = (f"the memory of {role.name} has {sizes}; {way}",)
        raise mismatch


def embedder_for(role: Role, env: Mapping[str, str], stored: EmbedderIdentity | None = None) -> Chosen:
    """The embedder of a role: its model, else its provider's, else that of the agent's provider, else the local one."""
    said = role.remembering().embeddings
    if said.said:
        return _named(role, env)
    provider = role.model.provider if role.model else ""
    reason = _unusable(role, provider, env)
    derived = LOCAL if reason else provider if provider in DEFAULTS else OPENAI
    wanted = embedder_of(derived, env=env)
    kept = _kept(stored, wanted.identity, env)
    if kept is None:
        fallback = f"memories are embedded by the local embedder: {reason}"
        return Chosen(embedder=wanted, notes=(fallback,) if reason else ())
    lacking = _lacking(kept.identity.name.partition(":")[0], env)
    if lacking:
        return Chosen(embedder=kept, notes=(f"memories are found by their words alone: {lacking}",))
    if reason:
        return Chosen(embedder=kept)
    way = f"`commonplace memory reembed {role.file}` changes over to {wanted.identity.name}"
    return Chosen(embedder=kept, notes=(f"the memory keeps to {kept.identity.name}; {way}",))


def _kept(stored: EmbedderIdentity | None, wanted: EmbedderIdentity, env: Mapping[str, str]) -> Embedder | None:
    """The embedder that a store's vectors come from, if it is another and can be had by its name."""
    if stored is None or stored.name == wanted.name:
        return None
    local = embedder_of(LOCAL, env=env)
    if stored == local.identity:
        return local
    known = stored.name.partition(":")[0] in {OPENAI, "google", "ollama"}
    found = embedder_of(stored.name, env=env) if known else None
    return found if found and _says(found) == stored else None


def _says(embedder: Embedder) -> EmbedderIdentity | None:
    """What an embedder says it is; None if it cannot be asked."""
    try:
        return embedder.identity
    except ProviderError:
        return None


def _lacking(provider: str, env: Mapping[str, str]) -> str | None:
    """Which key a provider lacks, as a sentence."""
    key = key_of(provider, api_key_env=None, custom=False, env=env)
    return f"{key.variable} is not set" if key.needed and not key.value else None


def _unusable(role: Role, provider: str, env: Mapping[str, str]) -> str | None:
    """Why the default embedder of a provider cannot be used here, if so."""
    if provider in {"", "test"}:
        return "the role names no other"
    if role.model and role.model.base_url:  # what it is told must not go to somebody else
        return "the model is at an address of its own, and `embeddings` names none"
    remote, _ = DEFAULTS.get(provider, DEFAULTS[OPENAI])
    return _lacking(remote, env)


def _named(role: Role, env: Mapping[str, str]) -> Chosen:
    """The embedder that a role names."""
    said = role.remembering().embeddings
    provider = said.provider or (role.model.provider if role.model else "")
    spec = _spec(provider, said.model, custom=bool(said.base_url))
    try:
        embedder = embedder_of(spec, base_url=said.base_url or None, api_key_env=said.api_key_env or None, env=env)
    except InvalidInput as error:
        raise ConfigError(str(error), file=role.file, path=role.path("memory.embeddings")) from error
    remote = spec.partition(":")[0]
    key = key_of(DEFAULTS.get(remote, (remote, ""))[0], api_key_env=said.api_key_env or None,
                 custom=bool(said.base_url), env=env)  # fmt: skip
    if key.needed and not key.value:
        note = f"memories are found by their words alone: {spec} needs a key, and {key.variable} is not set"
        return Chosen(embedder=embedder, notes=(note,))
    return Chosen(embedder=embedder)


def _spec(provider: str, model: str, *, custom: bool) -> str:
    """What ``embedder_of`` calls it; a model's own colon, as in ``nomic-embed-text:latest``, is no provider's."""
    if provider in {LOCAL, ONNX}:
        return f"{provider}:{model}" if model else provider
    remote, default = DEFAULTS.get(provider, DEFAULTS[OPENAI])
    if model.partition(":")[0] in {OPENAI, "google", "ollama", LOCAL, ONNX}:
        return model
    if not model and not custom:
        return provider or OPENAI
    named = model or default
    return named if custom and provider not in DEFAULTS else f"{remote}:{named}"

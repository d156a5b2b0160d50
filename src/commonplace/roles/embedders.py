"""The embedder of a role: the one it names, else that of its model's provider, else the built-in one.

One that only follows from the provider gives way to the built-in one where it could not work, and a note says so.  A
store stays with the embedder of its vectors until it is embedded again.
"""

from __future__ import annotations

from collections.abc import Mapping

from commonplace.engine import embedding
from commonplace.model.errors import (
    ConfigError,
    DimensionMismatch,
    EmbeddingModelChanged,
    InvalidInput,
    ProviderError,
)
from commonplace.model.ports import Embedder, EmbedderIdentity, Store
from commonplace.model.values import Value
from commonplace.providers.embedders import DEFAULTS, LOCAL, ONNX, embedder_of
from commonplace.providers.services import key_of
from commonplace.roles.dialect import Role
from commonplace.roles.operator import role_key_hosts

OPENAI = "openai"  # what the document falls back on
REMOTE = frozenset({OPENAI, "google", "ollama"})


class EmbedderChoice(Value):
    """An embedder, and notes for the user about how it was chosen."""

    embedder: Embedder
    notes: tuple[str, ...] = ()


def check_embedder(role: Role, store: Store, embedder: Embedder) -> None:
    """Refuse an embedder whose vectors cannot be compared with those of the store; the error names the way out."""
    if store.embedder() is None:  # a first start asks no embedder
        return
    try:
        embedding.check_embedder(store, embedder)
    except ProviderError:  # it cannot be asked; words still match
        return
    except (EmbeddingModelChanged, DimensionMismatch) as error:
        why, _, _ = str(error).partition(";")
        error.args = (f"the memory of {role.name}: {why}; `commonplace role reembed {role.file}` changes over",)
        raise


def embedder_for(role: Role, env: Mapping[str, str], stored: EmbedderIdentity | None = None) -> EmbedderChoice:
    """Return the embedder of a role; ``stored`` is the one of its store's vectors."""
    settings = role.memory_settings().embeddings
    if settings.is_set:
        return _named_embedder(role, env)
    provider = role.model.provider if role.model else ""
    reason = _unusable(role, provider, env)
    derived = LOCAL if reason else provider if provider in DEFAULTS else OPENAI
    wanted = embedder_of(derived, env=env, key_hosts=role_key_hosts(role, env))
    kept = _stored_embedder(role, stored, wanted.identity, env)
    if kept is None:
        fallback = f"memories are embedded by the local embedder: {reason}"
        return EmbedderChoice(embedder=wanted, notes=(fallback,) if reason else ())
    lacking = _missing_key(kept.identity.name.partition(":")[0], env)
    if lacking:
        return EmbedderChoice(embedder=kept, notes=(f"memories are found by their words alone: {lacking}",))
    if reason:
        return EmbedderChoice(embedder=kept)
    way = f"`commonplace role reembed {role.file}` changes over to {wanted.identity.name}"
    return EmbedderChoice(embedder=kept, notes=(f"the memory keeps to {kept.identity.name}; {way}",))


def _stored_embedder(
    role: Role, stored: EmbedderIdentity | None, wanted: EmbedderIdentity, env: Mapping[str, str]
) -> Embedder | None:
    """Return the embedder of a store's vectors, if it is another one and its name says how to make it."""
    if stored is None or stored.name == wanted.name:
        return None
    local = embedder_of(LOCAL, env=env)
    if stored == local.identity:
        return local
    known = stored.name.partition(":")[0] in REMOTE
    found = embedder_of(stored.name, env=env, key_hosts=role_key_hosts(role, env)) if known else None
    return found if found and _identity(found) == stored else None


def _identity(embedder: Embedder) -> EmbedderIdentity | None:
    """Return the identity of an embedder; None if it cannot be asked."""
    try:
        return embedder.identity
    except ProviderError:
        return None


def _missing_key(provider: str, env: Mapping[str, str]) -> str | None:
    """Return a sentence about the key that a provider needs and does not have."""
    key = key_of(provider, api_key_env=None, custom=False, env=env)
    return f"{key.variable} is not set" if key.needed and not key.value else None


def _unusable(role: Role, provider: str, env: Mapping[str, str]) -> str | None:
    """Return why the default embedder of a provider cannot be used here, if so."""
    if provider in {"", "test"}:
        return "the role names no other"
    if role.model and role.model.base_url:  # its texts must not be sent to another service
        return "the model is at an address of its own, and `embeddings` names none"
    remote, _ = DEFAULTS.get(provider, DEFAULTS[OPENAI])
    return _missing_key(remote, env)


def _named_embedder(role: Role, env: Mapping[str, str]) -> EmbedderChoice:
    """Return the embedder that a role names."""
    settings = role.memory_settings().embeddings
    provider = settings.provider or (role.model.provider if role.model else "")
    spec = _spec(provider, settings.model, custom=bool(settings.base_url))
    try:
        embedder = embedder_of(
            spec, base_url=settings.base_url or None, api_key_env=settings.api_key_env or None, env=env,
            key_hosts=role_key_hosts(role, env),
        )  # fmt: skip
    except InvalidInput as error:
        raise ConfigError(str(error), file=role.file, path=role.path("memory.embeddings")) from error
    remote = spec.partition(":")[0]
    key = key_of(DEFAULTS.get(remote, (remote, ""))[0], api_key_env=settings.api_key_env or None,
                 custom=bool(settings.base_url), env=env)  # fmt: skip
    if key.needed and not key.value:
        note = f"memories are found by their words alone: {spec} needs a key, and {key.variable} is not set"
        return EmbedderChoice(embedder=embedder, notes=(note,))
    return EmbedderChoice(embedder=embedder)


def _spec(provider: str, model: str, *, custom: bool) -> str:
    """Return the name for ``embedder_of``; a model may have a colon of its own, as in ``nomic-embed-text:latest``."""
    if provider in {LOCAL, ONNX}:
        return f"{provider}:{model}" if model else provider
    remote, default = DEFAULTS.get(provider, DEFAULTS[OPENAI])
    if model.partition(":")[0] in REMOTE | {LOCAL, ONNX}:
        return model
    if not model and not custom:
        return provider or OPENAI
    named = model or default
    return named if custom and provider not in DEFAULTS else f"{remote}:{named}"

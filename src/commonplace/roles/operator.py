"""What a role file may not decide unless its folder is trusted, and what the ``.env`` in its folder may set.

A role may come from somebody else.  Its prompt, its limits and its own memory are its business; addresses, variables of
keys, places of stores, files of other folders and what starts it without a user are the operator's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from commonplace.config.operator import KeyHosts, is_inside, is_operators, key_hosts_for, require_operator
from commonplace.config.paths import home, is_address
from commonplace.files import disk
from commonplace.model.errors import ConfigError
from commonplace.providers.embedders import DEFAULTS
from commonplace.providers.services import SERVICES, model_uses
from commonplace.roles.dialect import DOTENV, Role, WebhookTrigger, read_dotenv
from commonplace.roles.flow_dialect import Flow

BEGUN_BY = ".begun-by"  # after a memory's file: the folder of the role that began it, while nobody trusts that folder
PATH_BYTES = 4096
#: Variables that would move requests, programs or memory elsewhere.  Others of a .env are not ours and go unmentioned.
_MOVES = re.compile(
    r".*(_BASE_URL|_API_BASE|_ENDPOINT|_PROXY|_HOST)|SSL_CERT_.*|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|PYTHON.*|PATH|HOME"
    r"|LD_.*|DYLD_.*|COMMONPLACE_.*",
    re.IGNORECASE,
)


def require_trusted_role(role: Role, env: Mapping[str, str]) -> None:
    """Raise ``ConfigError`` if a role of somebody else decides what only the operator may."""
    require_operator(role.file, _uses(role, home(env)), env)


def claim_memory(role: Role, store: str, env: Mapping[str, str], *, has_records: bool) -> None:
    """Keep memories apart that share a name: a file of somebody else opens none but those that its own folder began.

    The folder that began one is noted next to it until the user trusts that folder.  Raises ``ConfigError``.
    """
    if not os.path.exists(role.file):  # a program made the role, and speaks for its user
        return
    note, folder = f"{store}{BEGUN_BY}", os.path.dirname(os.path.realpath(role.file))
    began = disk.read_text(note, limit=PATH_BYTES) if os.path.exists(note) else None
    mine, trusted = began == folder, is_operators(role.file, env)
    if has_records and not (mine or (trusted and began is None)):
        whose = f"was begun by a role in {began}" if began else "is another role's"
        reason = f"the memory {os.path.basename(store)} {whose}; `commonplace trust {folder}` lets this role use it"
        other = f"the memory {os.path.basename(store)} {whose}, which is not trusted; give the role another name"
        raise ConfigError(other if trusted else reason, file=role.file, path=role.path("name"))
    os.makedirs(os.path.dirname(store), mode=0o700, exist_ok=True)
    if trusted and began:
        disk.remove(os.path.dirname(note), os.path.basename(note))
    elif not trusted and not mine:
        disk.replace(os.path.dirname(note), os.path.basename(note), folder.encode())


def require_trusted_flow(flow: Flow, env: Mapping[str, str]) -> None:
    """The same for a flow: its agents lie in its own folder, or it is the user's."""
    folder = os.path.dirname(os.path.abspath(flow.file))
    foreign = (one for one in flow.members if not is_inside(one.role.file, folder))
    uses = ((f"spec.agents.{one.name}.role", f"runs an agent of another folder ({one.role.file})") for one in foreign)
    require_operator(flow.file, uses, env)


def require_trusted_triggers(role: Role, env: Mapping[str, str]) -> None:
    """The same for what starts an agent without a user."""
    started = f"starts the agent by itself ({role.triggers[0].type})" if role.triggers else ""
    require_operator(role.file, [(role.path("triggers"), started)] if started else [], env)


def _uses(role: Role, data: str) -> Iterator[tuple[str, str]]:
    """Yield what a role decides that is the operator's business, each with its path in the file."""
    if role.model:
        given = model_uses(role.model.spec, base_url=role.model.base_url, api_key_env=role.model.api_key_env)
        yield from ((role.path(f"model.{name}"), what) for name, what in given)
    yield from _embedder_uses(role)
    yield from _store_uses(role.path("memory.store_path"), role.memory.store_path if role.memory else None, data)
    if not role.security.tools.restrict_db_paths:
        yield role.path("security.tools.restrict_db_paths"), "lifts the fence around stores"
    for number, tool in enumerate(role.tools):
        path = role.path(f"tools[{number}]")
        if tool.shared_memory:
            yield from _store_uses(f"{path}.shared_memory.store_path", tool.shared_memory.store_path, data)
        for place, one in enumerate(tool.agents):
            if not is_inside(os.path.join(role.folder, os.path.expanduser(one.role_file)), role.folder):
                yield f"{path}.agents[{place}].role_file", f"asks an agent of another folder ({one.role_file})"


def _embedder_uses(role: Role) -> Iterator[tuple[str, str]]:
    if role.memory is None:
        return
    embeddings = role.memory.embeddings
    provider = embeddings.provider or (role.model.provider if role.model else "")
    given = model_uses(f"{provider}:", base_url=embeddings.base_url, api_key_env=embeddings.api_key_env)
    yield from ((role.path(f"memory.embeddings.{name}"), what) for name, what in given)


def _store_uses(path: str, store: str | None, data: str) -> Iterator[tuple[str, str]]:
    """Yield a store that is not in the data folder."""
    if store and (is_address(store) or not is_inside(os.path.join(data, os.path.expanduser(store)), data)):
        yield path, f"names a store outside of the data folder ({store.partition('?')[0].rpartition('@')[2]})"


# The environment of a role, and where its keys may go


def role_key_hosts(role: Role, env: Mapping[str, str]) -> KeyHosts | None:
    """Return where keys may go besides their providers; ``env`` is the role's.

    A key of the ``.env`` in its folder is no secret to the author of the role: it may go to the role's own addresses.
    """
    pairs = key_hosts_for(role.file, env)
    if pairs is None:
        return None
    own = [name for name, value in _role_variables(role).items() if env.get(name) == value]
    named = [role.model.base_url if role.model else None, role.memory.embeddings.base_url if role.memory else None]
    hosts = {urlsplit(address).hostname for address in named if address}
    return pairs | {(name, host) for name in own for host in hosts if host}


def environment(role: Role, env: Mapping[str, str], *, home: str) -> dict[str, str]:
    """Return the environment of a role: the process's, then ``.env`` in its folder, then the one in the data folder.

    Neither file overrides what is set already.  The first one may have come with the role, so it sets keys only.
    """
    merged = dict(env)
    for variables in (_role_variables(role), read_dotenv(os.path.join(home, DOTENV))):
        for name, value in variables.items():
            merged.setdefault(name, value)
    return merged


def _role_variables(role: Role) -> dict[str, str]:
    """Return what the ``.env`` in the folder of a role may set: the keys that the role itself uses."""
    allowed = _key_variables(role)
    return {name: value for name, value in _dotenv_of(role).items() if name in allowed}


def ignored_variables(role: Role) -> tuple[str, ...]:
    """Return one sentence about the variables of that ``.env`` that would have moved something elsewhere."""
    allowed = _key_variables(role)
    names = [name for name in _dotenv_of(role) if name not in allowed and _MOVES.fullmatch(name)]
    if not names:
        return ()
    file = os.path.join(role.folder, DOTENV)
    return (f"{file} may set the keys of its role and nothing else; ignored: {', '.join(names)}",)


def _dotenv_of(role: Role) -> dict[str, str]:
    return read_dotenv(os.path.join(role.folder, DOTENV))


def _key_variables(role: Role) -> set[str]:
    """Return the variables of the keys that a role uses: of its model, of its embedder and of its webhooks."""
    model = role.model
    embeddings = role.memory.embeddings if role.memory else None
    override = role.memory.consolidation.model_override if role.memory else None
    provider = model.provider if model else ""
    embedder = (embeddings.provider if embeddings else "") or DEFAULTS.get(provider, ("openai", ""))[0]
    providers = {provider, embedder, DEFAULTS.get(embedder, ("", ""))[0], (override or "").partition(":")[0]}
    named = {model.api_key_env if model else None, embeddings.api_key_env if embeddings else None}
    named |= {one.secret_env for one in role.triggers if isinstance(one, WebhookTrigger)}
    providers = providers if model else set(SERVICES)  # then the first key that is set chooses the model
    keys = {key for name in providers if name in SERVICES for key in SERVICES[name].keys}
    return keys | {name for name in named if name and not _MOVES.fullmatch(name)}

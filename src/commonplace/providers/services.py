"""What all remote providers share: addresses, keys, the words of their errors, and when to retry.  Sends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from commonplace.model.errors import InvalidInput, ProviderError
from commonplace.model.values import Value


class Service(Value):
    """A provider, as its users know it."""

    keys: tuple[str, ...]  #: variables that may hold its key, the first one found counts
    needs_key: bool
    addresses: tuple[str, ...]  #: variables that may hold another address, for a gateway that speaks its protocol
    address: str  #: where it is if none of them is set


SERVICES = {
    "openai": Service(
        keys=("OPENAI_API_KEY",), needs_key=True, addresses=("OPENAI_BASE_URL",), address="https://api.openai.com/v1"
    ),
    "anthropic": Service(
        keys=("ANTHROPIC_API_KEY",),
        needs_key=True,
        addresses=("ANTHROPIC_BASE_URL",),
        address="https://api.anthropic.com",
    ),
    "google": Service(
        keys=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        needs_key=True,
        addresses=("GOOGLE_GEMINI_BASE_URL",),
        address="https://generativelanguage.googleapis.com",
    ),
    "ollama": Service(
        keys=("OLLAMA_API_KEY",),
        needs_key=False,
        addresses=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        address="http://127.0.0.1:11434",
    ),
}
#: Which variables' keys may go to which hosts besides those of their own providers; None: to any, because whoever named
#: the address is the operator.
KeyHosts: TypeAlias = frozenset[tuple[str, str]] | None
ENDPOINT = "endpoint"  #: the provider's name in the identity of what a custom address serves
OLLAMA_PORT = 11434
SHOWN = 200  # characters of a provider's error message
BUSY = frozenset({429, 500, 502, 503, 504, 529})  #: statuses that may be gone in a moment
TRIES = 4  # requests in all
FIRST_DELAY_S = 0.5  # before the second request; doubled before each further one
LONGEST_DELAY_S = 20.0  # a provider that asks for more is given up


class Key(Value):
    """A key and where it was looked up.  It is never shown."""

    value: str | None
    variable: str  #: what to set if it is missing or wrong
    needed: bool

    def __repr__(self) -> str:
        """Say the variable only: values are printed in tests and logs."""
        return f"Key(variable={self.variable!r})"

    def require(self, provider: str) -> None:
        """Raise ``ProviderError`` if the key is needed and missing."""
        if self.needed and not self.value:
            raise ProviderError(f"{provider} needs a key: set the environment variable {self.variable}")

    def as_provider_error(self, provider: str) -> ProviderError:
        """The error for a key that does not work; the provider's own message may repeat the key."""
        way = f"check the environment variable {self.variable}" if self.variable else "name its variable in api_key_env"
        return ProviderError(f"{provider} refused the key: {way}")

    def hide(self, text: object) -> str:
        """A foreign text in one line, short, and without the key."""
        return " ".join(str(text).replace(self.value or "\0", "...").split())[:SHOWN]

    def quote(self, body: Any) -> str:
        """The message in the body of an error, in the forms that are common, ready to follow a sentence."""
        for field in ("error", "message"):
            body = body.get(field, body) if isinstance(body, dict) else body
        return f": {self.hide(body)}" if isinstance(body, str) else ""


def retry_delay(*, tried: int, retry_after: float | None, left: float, chance: float) -> float | None:
    """The seconds to wait after ``tried`` failures; None to give up.

    ``retry_after`` is what the provider asks for; a little more is waited, so that many clients do not come back at
    once.  ``chance`` is from 0 to 1, ``left`` is the time that the whole request still has.
    """
    if tried >= TRIES or (retry_after or 0) > LONGEST_DELAY_S:
        return None
    if retry_after is None:
        wait = FIRST_DELAY_S * 2 ** (tried - 1) * (0.5 + chance / 2)
    else:
        wait = retry_after + chance * FIRST_DELAY_S
    return wait if wait < left else None


def key_of(provider: str, *, api_key_env: str | None, custom: bool, env: Mapping[str, str]) -> Key:
    """The key for a provider: from the variable that was named, else from its own; an endpoint has none of its own."""
    service = SERVICES.get(provider)
    if api_key_env:
        return Key(value=_value(api_key_env, env), variable=api_key_env, needed=True)
    if service is None:
        return Key(value=None, variable="", needed=False)
    found = next((name for name in service.keys if env.get(name, "").strip()), service.keys[0])
    return Key(value=_value(found, env), variable=found, needed=service.needs_key and not custom)


def _value(variable: str, env: Mapping[str, str]) -> str | None:
    """A key as it goes into a header, where a stray line end would be an error that prints it."""
    value = env.get(variable, "").strip()
    if not value.isascii() or not value.isprintable():
        raise InvalidInput(f"the environment variable {variable} holds characters that no key has")
    return value or None


def address_of(provider: str, *, base_url: str | None, env: Mapping[str, str]) -> str:
    """Where to send requests, without a slash at the end.  Ollama's is its root, with ``/v1`` or without."""
    service = SERVICES.get(provider)
    given = base_url
    if not given and service:
        given = next((env[name] for name in service.addresses if env.get(name)), service.address)
    if not given:
        raise InvalidInput(f"{provider!r} has no address: give a base_url")
    address = _ollama(given) if provider == "ollama" else given.rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput(f"the address {address!r} is not an http or https URL")
    if parts.username or parts.password:
        raise InvalidInput(f"the address of {parts.hostname!r} holds a user or a password: name a variable instead")
    return address


def check_key_host(provider: str, key: Key, address: str, *, env: Mapping[str, str], key_hosts: KeyHosts) -> None:
    """Refuse to send a key to a host that is not its provider's, unless the operator has paired the two.

    The operator's environment may move a provider; its own key goes there too.
    """
    if key.value is None or key_hosts is None:
        return
    parts = urlsplit(address)
    host = parts.hostname or ""
    if {(key.variable, host), (key.variable, f"{host}:{parts.port}")} & key_hosts:
        return
    owner = next((name for name, service in SERVICES.items() if key.variable in service.keys), provider)
    if owner == provider and owner in SERVICES and address in _own_addresses(provider, key, env):
        return
    raise InvalidInput(
        f"the key in {key.variable} is not sent to {host}, because you have not paired the two; "
        f"`key_hosts: {key.variable}@{host}` in your own config.yaml does"
    )


def model_uses(spec: str, *, base_url: str | None, api_key_env: str | None) -> Iterator[tuple[str, str]]:
    """Yield what a file's model decides that is the operator's business: the key that says it, and what it does."""
    if base_url:
        yield "base_url", f"names an address of its own ({base_url})"
    provider = spec.replace("/", ":").partition(":")[0]
    if api_key_env and api_key_env not in (SERVICES[provider].keys if provider in SERVICES else ()):
        yield "api_key_env", f"names the variable of a key ({api_key_env})"


def _own_addresses(provider: str, key: Key, env: Mapping[str, str]) -> set[str]:
    """Where a provider is, and for its own key where the operator's environment says it is."""
    service = SERVICES[provider]
    moved = {address_of(provider, base_url=None, env=env)} if key.variable in service.keys else set()
    return moved | {address_of(provider, base_url=None, env={})}


def _ollama(given: str) -> str:
    """OLLAMA_HOST may lack the scheme and the port, and 0.0.0.0 is where a server listens, not where it is."""
    if "://" not in given:
        parts = urlsplit(f"http://{given}")
        try:
            host, port = parts.hostname or "", parts.port or OLLAMA_PORT
        except ValueError:
            raise InvalidInput(f"the address {given!r} has no proper port") from None
        host = "127.0.0.1" if host in {"", "0.0.0.0"} else host  # noqa: S104 - nothing is bound here
        given = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return given.rstrip("/").removesuffix("/v1").rstrip("/")

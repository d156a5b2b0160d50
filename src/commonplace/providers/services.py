"""Who offers models and embedders: at which address, with the key in which variable.  No request is made here."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from commonplace.model.errors import InvalidInput
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
ENDPOINT = "endpoint"  #: the provider's name in the identity of what a custom address serves
OLLAMA_PORT = 11434


class Key(Value):
    """A key and where it was looked for.  It is never shown."""

    value: str | None
    variable: str  #: what to set if it is missing or wrong
    needed: bool

    def __repr__(self) -> str:
        """Say the variable only: values are printed in tests and logs."""
        return f"Key(variable={self.variable!r})"


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
    """Where to send requests, without a slash at the end.  Ollama's is its root, whether or not ``/v1`` was said."""
    service = SERVICES.get(provider)
    said = base_url
    if not said and service:
        said = next((env[name] for name in service.addresses if env.get(name)), service.address)
    if not said:
        raise InvalidInput(f"{provider!r} has no address: give a base_url")
    address = _ollama(said) if provider == "ollama" else said.rstrip("/")
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise InvalidInput(f"the address {address!r} is not an http or https URL")
    if parts.username or parts.password:
        raise InvalidInput(f"the address of {parts.hostname!r} holds a user or a password: name a variable instead")
    return address


def _ollama(said: str) -> str:
    """OLLAMA_HOST may lack the scheme and the port, and 0.0.0.0 is where a server listens, not where it is."""
    if "://" not in said:
        parts = urlsplit(f"http://{said}")
        try:
            host, port = parts.hostname or "", parts.port or OLLAMA_PORT
        except ValueError:
            raise InvalidInput(f"the address {said!r} has no proper port") from None
        host = "127.0.0.1" if host in {"", "0.0.0.0"} else host  # noqa: S104 - nothing is bound here
        said = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return said.rstrip("/").removesuffix("/v1").rstrip("/")

"""Makes the embedder that a specification names.  Imports only the module that it needs; sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from commonplace.model.errors import InvalidInput

if TYPE_CHECKING:
    from commonplace.model.ports import Embedder
    from commonplace.providers.services import KeyHosts

LOCAL, ONNX = "local", "onnx"
#: What a provider's name alone means.  Anthropic has no embedder; its users' default is OpenAI's.
DEFAULTS = {
    "openai": ("openai", "text-embedding-3-small"),
    "anthropic": ("openai", "text-embedding-3-small"),
    "google": ("google", "text-embedding-004"),
    "ollama": ("ollama", "nomic-embed-text"),
}
KNOWN = (
    "local, onnx:/PATH/model.onnx, openai:MODEL, google:MODEL, ollama:MODEL, "
    "or MODEL with the base_url of an OpenAI-compatible endpoint"
)
NO_MODEL_FILE = (
    "the embedder 'onnx' needs the absolute path of a model, such as onnx:/PATH/model.onnx with tokenizer.json in the "
    "same folder; 'onnx' alone no longer means all-MiniLM-L6-v2"
)


def embedder_of(
    spec: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    dimensions: int | None = None,
    env: Mapping[str, str],
    key_hosts: KeyHosts = None,
) -> Embedder:
    """Return the embedder; no request is made before a text is embedded.  Raises ``InvalidInput``.

    ``key_hosts`` has to be given where a file that is not the user's own settings names the address or the variable.
    """
    if dimensions is not None and dimensions < 1:
        raise InvalidInput(f"dimensions must be at least 1, not {dimensions!r}")
    provider, model = _parts(spec.strip(), custom=bool(base_url))
    if provider not in {LOCAL, ONNX}:
        return _remote(
            provider, model, base_url=base_url, api_key_env=api_key_env, dimensions=dimensions, env=env,
            key_hosts=key_hosts,
        )  # fmt: skip
    if base_url or api_key_env or dimensions:
        raise InvalidInput(f"the embedder {provider!r} takes no base_url, api_key_env or dimensions")
    if provider == LOCAL:
        from commonplace.providers.local import LocalEmbedder  # noqa: PLC0415 - only what is named

        return LocalEmbedder()
    from commonplace.providers.onnx import OnnxEmbedder  # noqa: PLC0415 - an extra, at its leaf

    return OnnxEmbedder(_model_file(model))


def _model_file(path: str) -> str:
    """The absolute path of an ONNX model; the same file from every working directory."""
    from os.path import expanduser, isabs  # noqa: PLC0415 - not for the built-in one

    if not isabs(expanduser(path)):
        raise InvalidInput(NO_MODEL_FILE)
    return expanduser(path)


def _parts(spec: str, *, custom: bool) -> tuple[str, str]:
    """Return the provider and the model; at a custom address, a name that is no provider's is a model's."""
    from commonplace.providers.services import ENDPOINT  # noqa: PLC0415 - not for the built-in one

    provider, colon, model = spec.partition(":")
    if not colon and spec in DEFAULTS:
        return DEFAULTS[spec]
    if spec == LOCAL or provider == ONNX:
        return provider, model
    if provider in {"openai", "google", "ollama"} and model:
        return provider, model
    if custom and spec and provider not in {LOCAL, ONNX, "anthropic"}:
        return ENDPOINT, spec
    if provider == "anthropic":
        raise InvalidInput(f"Anthropic has no embedder, so {spec!r} is none; 'anthropic' alone means OpenAI's default")
    raise InvalidInput(f"there is no embedder {spec!r}; there are: {KNOWN}")


def _remote(
    provider: str,
    model: str,
    *,
    base_url: str | None,
    api_key_env: str | None,
    dimensions: int | None,
    env: Mapping[str, str],
    key_hosts: KeyHosts,
) -> Embedder:
    from commonplace.providers import remote_embedders as remote  # noqa: PLC0415 - HTTP is for those who use it
    from commonplace.providers.http_json import Endpoint  # noqa: PLC0415
    from commonplace.providers.services import address_of, check_key_host, key_of  # noqa: PLC0415

    name = f"{provider}:{model}"
    custom = bool(base_url)
    key = key_of(provider, api_key_env=api_key_env, custom=custom, env=env)
    address = address_of(provider, base_url=base_url, env=env)
    check_key_host(provider, key, address, env=env, key_hosts=key_hosts)
    kinds = {"google": remote.GoogleEmbedder, "ollama": remote.OllamaEmbedder}
    # A custom address speaks OpenAI's protocol, for any provider; Ollama's own is at every address of Ollama's.
    kind = remote.OpenAIEmbedder if custom and provider != "ollama" else kinds.get(provider, remote.OpenAIEmbedder)
    if kind is remote.GoogleEmbedder:
        headers = {"x-goog-api-key": key.value or ""}
    else:
        headers = {"Authorization": f"Bearer {key.value}"} if key.value else {}
    endpoint = Endpoint(f"the embedder {name!r}", address, key=key, headers=headers)
    return kind(name, model, endpoint, dimensions=dimensions)

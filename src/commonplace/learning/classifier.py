"""Our own small classifier: is a clause worth keeping, and of which kind.  Pure Python, no model runtime.

Weights for words, signs and the vector of the built-in embedder, trained by ``training/classifier.py`` on clauses that
were written for it.  The file, all numbers little-endian: 8 bytes of magic; the scales and then the biases of all kinds
as f32; for each feature and then each dimension of the vector one byte for each kind.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp
from pathlib import Path
from struct import unpack_from

from commonplace.learning.features import BUCKETS, features
from commonplace.model.values import Value
from commonplace.providers.local import DIMENSIONS, LocalEmbedder

FILE = Path(__file__).parent / "data" / "clauses.bin"
MAGIC = b"cmncls1\0"
KINDS = ("none", "decisions", "procedures", "principles", "preferences", "facts")
MEANING = 3.0  # how much the vector weighs against the words; the same in training


class Judgement(Value):
    """What a clause was found to be."""

    durable: float  #: how likely it is worth keeping, 0..1
    category: str  #: the likeliest kind, if it is
    sure: float  #: how likely that kind is, if it is worth keeping


class _Weights:
    def __init__(self, data: bytes) -> None:
        width = len(KINDS)
        head = len(MAGIC)
        if data[:head] != MAGIC or len(data) != head + 8 * width + (BUCKETS + DIMENSIONS) * width:
            raise ValueError(f"{FILE.name} is not a file of weights of this version")
        numbers = unpack_from(f"<{2 * width}f", data, head)
        self.scales, self.biases = numbers[:width], numbers[width:]
        self.rows = memoryview(data)[head + 8 * width :].cast("b")
        self.embedder = LocalEmbedder()


@lru_cache(maxsize=1)
def _weights() -> _Weights:
    return _Weights(FILE.read_bytes())


def judge(clause: str, *, before: str = "", speaker: str = "user", asked: bool = False) -> Judgement:
    """Say whether a clause is worth keeping; ``before`` is what the other one said last."""
    weights, width = _weights(), len(KINDS)
    found = features(clause, before=before, speaker=speaker, asked=asked)
    share = 1 / max(1, len(found)) ** 0.5
    sums = [0.0] * width
    for feature in found:
        row = weights.rows[feature * width : (feature + 1) * width]
        for kind in range(width):
            sums[kind] += row[kind] * share
    for at, number in enumerate(weights.embedder.embed([clause])[0]):
        row = weights.rows[(BUCKETS + at) * width : (BUCKETS + at + 1) * width]
        for kind in range(width):
            sums[kind] += row[kind] * number * MEANING
    scores = [one * scale + bias for one, scale, bias in zip(sums, weights.scales, weights.biases, strict=True)]
    highest = max(scores)
    shares = [exp(score - highest) for score in scores]
    durable = sum(shares[1:])
    best = max(range(1, width), key=shares.__getitem__)
    return Judgement(durable=durable / sum(shares), category=KINDS[best], sure=shares[best] / durable)

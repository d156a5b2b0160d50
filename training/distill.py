"""The table without any training: every vocabulary entry alone through the teacher, principal components, weights.

usage: MINILM=... python training/distill.py OUT.npz
"""

from __future__ import annotations

import sys

import numpy as np

from teacher import Teacher, tokenizer


def vocabulary_vectors() -> np.ndarray:
    """The teacher's vector of every entry, as [CLS] entry [SEP]."""
    return Teacher().encode([[token] for token in range(tokenizer().get_vocab_size())])


def components(vectors: np.ndarray, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and principal axes."""
    mean = vectors.mean(0)
    _, _, axes = np.linalg.svd(vectors - mean, full_matrices=False)
    return mean, axes[:dimensions].T


def main() -> None:
    raw = vocabulary_vectors()
    np.savez(sys.argv[1], raw=raw)


if __name__ == "__main__":
    main()

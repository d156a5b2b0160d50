# ruff: noqa: INP001
"""The table without any training: every vocabulary entry alone through the teacher, principal components, weights.

usage: MINILM=... python training/distill.py OUT.npy

A minute of CPU; the baseline that training has to beat.
"""

from __future__ import annotations

import sys

import numpy as np
from teacher import Teacher, tokenizer

DIMENSIONS = 256


def main() -> None:
    """Write the weighted rows."""
    raw = Teacher().encode([[token] for token in range(tokenizer().get_vocab_size())])
    centred = raw - raw.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    rank = np.arange(1, len(raw) + 1)  # the vocabulary is sorted by frequency, more or less
    np.save(sys.argv[1], centred @ axes[:DIMENSIONS].T * np.log1p(rank)[:, None])


if __name__ == "__main__":
    main()

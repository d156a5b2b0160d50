"""Tables as arrays: reading them, and embedding with them.  The file format itself is in pack.py."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np


def read_table(path: Path) -> np.ndarray:
    """Weighted rows as floats, from a .npy or from the file that is shipped."""
    if path.suffix == ".npy":
        return np.load(path).astype(np.float32)
    from pack import unpack

    return unpack(path)


def embed(table: np.ndarray, rows: list[list[int]]) -> np.ndarray:
    """Unit vectors: the sum of each row's tokens, as the product does it."""
    flat = np.fromiter(chain.from_iterable(rows), np.int64)
    out = np.zeros((len(rows), table.shape[1]), np.float32)
    where = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    for at in range(0, len(flat), 1 << 18):
        piece = slice(at, at + (1 << 18))
        starts = np.flatnonzero(np.r_[True, np.diff(where[piece]) > 0])
        if len(flat[piece]):
            out[where[piece][starts]] += np.add.reduceat(table[flat[piece]], starts, axis=0)
    norm = np.linalg.norm(out, axis=1, keepdims=True)
    return out / np.maximum(norm, 1e-9)

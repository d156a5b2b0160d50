# ruff: noqa: INP001, N812, PLC0415
"""Tables as arrays: reading them, and embedding with them.  The file format itself is in pack.py."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def read_table(path: Path) -> np.ndarray:
    """Weighted rows as floats, from a .npy or from the file that is shipped."""
    if path.suffix == ".npy":
        return np.load(path).astype(np.float32)
    from pack import unpack

    return unpack(path)


def bag(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of ids as one line of ids and where each row starts."""
    flat = np.fromiter(chain.from_iterable(rows), np.int64)
    starts = np.cumsum([0] + [len(row) for row in rows[:-1]])
    return torch.from_numpy(flat).to(DEVICE), torch.from_numpy(starts).to(DEVICE)


def embed(table: np.ndarray, rows: list[list[int]]) -> np.ndarray:
    """Unit vectors: the sum of each row's tokens, as the product does it."""
    flat, starts = bag(rows)
    sums = F.embedding_bag(flat, torch.as_tensor(table, device=DEVICE), starts, mode="sum")
    return F.normalize(sums, dim=1).cpu().numpy()

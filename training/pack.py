# ruff: noqa: INP001, T201
"""From weighted rows to the file that is shipped: bytes and a whole-number scale for each row, an index of the texts.

usage: MINILM=... python training/pack.py TABLE.npy OUT.bin

The format is described in ``src/commonplace/providers/local.py``.  The vocabulary's entries up to ``[unused993]``,
which no text can have, lend their rows to character n-grams; the row of ``[PAD]`` is what a blank text gets.
"""

from __future__ import annotations

import struct
import sys
from binascii import crc32
from pathlib import Path

import numpy as np
from teacher import folder

MAGIC, VERSION, HEADER = b"cmnplce\0", 1, struct.Struct("<8s6I")
SLOTS, NONE = 65536, 0xFFFF
LARGEST_SCALE = 4095
FIRST_GRAM, GRAMS = 1, 998  # [unused0] to [unused993], [UNK], [CLS], [SEP] and [MASK]
LENGTH_OF_A_GRAM = 0.3  # of a usual token's: a word has about three grams to a character, and shall weigh as one


def with_grams(table: np.ndarray) -> np.ndarray:
    """Random directions where no token is: the same at every run."""
    usual = np.median(np.linalg.norm(table[FIRST_GRAM + GRAMS :], axis=1))
    chance = np.random.default_rng(2).standard_normal((FIRST_GRAM + GRAMS, table.shape[1]))
    table = table.copy()
    table[: FIRST_GRAM + GRAMS] = chance / np.linalg.norm(chance, axis=1, keepdims=True) * usual * LENGTH_OF_A_GRAM
    return table


def quantise(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers from -127 to 127 and a whole-number scale for each row; the unit does not matter to a direction."""
    largest = np.abs(table).max(1)
    unit = largest.max() / 127 / LARGEST_SCALE
    scales = np.maximum(1, np.ceil(largest / 127 / unit)).astype(np.uint16)
    return np.rint(table / (scales[:, None] * unit)).astype(np.int8), scales


def index(texts: list[bytes]) -> np.ndarray:
    """Slots by CRC-32, the next one if it is taken; what no text can have is not in it."""
    slots = np.full(SLOTS, NONE, "<u2")
    for entry, text in enumerate(texts):
        if entry < FIRST_GRAM + GRAMS:
            continue
        slot = crc32(text) % SLOTS
        while slots[slot] != NONE:
            slot = (slot + 1) % SLOTS
        slots[slot] = entry
    return slots


def pack(table: np.ndarray, texts: list[bytes]) -> bytes:
    """The whole file."""
    rows, scales = quantise(with_grams(table))
    starts = np.cumsum([0, *map(len, texts)]).astype("<u4")
    return b"".join((
        HEADER.pack(MAGIC, VERSION, table.shape[1], len(texts), SLOTS, FIRST_GRAM, GRAMS),
        scales.astype("<u2").tobytes(), index(texts).tobytes(), starts.tobytes(), *texts,
        (rows.astype(np.int16) + 128).astype(np.uint8).tobytes(),
    ))  # fmt: skip


def unpack(path: Path) -> np.ndarray:
    """Weighted rows as floats, in whatever unit."""
    data = path.read_bytes()
    _, _, dimensions, entries, *_ = HEADER.unpack_from(data)
    scales = np.frombuffer(data, "<u2", entries, HEADER.size).astype(np.float32)
    rows = np.frombuffer(data, np.uint8, entries * dimensions, len(data) - entries * dimensions)
    return (rows.reshape(entries, dimensions).astype(np.float32) - 128) * scales[:, None]


def main() -> None:
    """Write the file and say how large it is."""
    texts = (folder() / "vocab.txt").read_bytes().splitlines()
    data = pack(np.load(sys.argv[1]).astype(np.float32), texts)
    Path(sys.argv[2]).write_bytes(data)
    print(f"{len(data)} bytes")


if __name__ == "__main__":
    main()

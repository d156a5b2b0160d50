"""Short codes of vectors, two bits a dimension, and what they say about nearness.  Pure: shared by all stores.

A vector is turned at random, always in the same way, so that no dimension says more than another; then each number is
known by its sign and by whether it is small or large.  A question is not shortened: each byte of a code is looked up in
a table of what its four numbers add to the cosine.  So the ten nearest are among the best hundred, where the Hamming
distance of sign bits loses two in a hundred of them among its best four hundred (docs/design/decisions.md).

There is no numpy here.  A whole vector is one large integer of lanes, and so is a whole column of codes: one operation
of Python then works on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import nlargest
from math import hypot, sqrt
from operator import mul
from struct import Struct, unpack
from typing import TypeAlias

LEAST_SIZE = 256  # dimensions: a shorter vector is filled up, since two bits of a few numbers say little
LEVELS = (-1.510, -0.4528, 0.4528, 1.510)  # what two bits stand for, where numbers are spread as by chance (Lloyd, Max)
EDGE = 0.9816  # from here on a number is large
ZERO = 1 << 30  # what a lane holds for 0: negative numbers are below
NEAR_UNIT = 0.01  # a lane has room for a vector that is so much too long
STAMP_BYTES = 8  # before each code: which entry it is of
BLOCK = 8_192  # codes that are looked at together: they fit into a processor's cache
GROUP, MAX_COLUMN = 4, 63  # so many columns, each adding at most so much, fit into a byte
MAX_TOTAL = 0xFFFF  # what all columns together may add: it must fit into two

_LOW, _HIGH = bytes(range(16)) * 16, bytes(number >> 4 for number in range(256))  # the halves of every byte
_REST = bytes(240)

Adds: TypeAlias = tuple[int, int, int, int]  # what a number adds for each of the two bits' values


def code_for_entry(entry: int, vector: Sequence[float]) -> bytes:
    """Return the code of a vector, and before it the entry that it is of."""
    return entry.to_bytes(STAMP_BYTES, "little") + code(vector)


def change_entry(entry: int, coded: bytes) -> bytes:
    """Return the same code, of another entry."""
    return entry.to_bytes(STAMP_BYTES, "little") + coded[STAMP_BYTES:]


def code(vector: Sequence[float]) -> bytes:
    """Two bits for each dimension, counted from the least to the largest: 0, 1, 2, 3."""
    turn = rotation(len(vector))
    lanes, ones = turn.rotate(vector), turn.ones
    counts = (lanes >> 30 & ones) + (lanes + turn.edge >> 30 & ones) + (lanes - turn.edge >> 30 & ones)
    digits, quarter, packed = counts.to_bytes(4 * turn.size, "little")[::4], turn.size // 4, 0
    for number in range(4):
        packed |= _lanes(digits[number * quarter : (number + 1) * quarter]) << 2 * number
    return packed.to_bytes(quarter, "little")


def best(codes: bytes, asked: Sequence[float], count: int) -> list[int]:
    """Return the entries of so many codes that are nearest to what is asked, and of all that tie with the last."""
    tables = _tables(asked)
    stride = STAMP_BYTES + len(tables)
    if len(codes) <= count * stride:
        chosen: Iterator[int] | range = range(len(codes) // stride)
    else:
        totals = _totals(codes, tables)
        cut = nlargest(count, totals)[-1]
        chosen = (place for place, total in enumerate(totals) if total >= cut)
    return [int.from_bytes(codes[place * stride : place * stride + STAMP_BYTES], "little") for place in chosen]


def length(dimensions: int) -> int:
    """Return how many bytes a stamped code has."""
    return STAMP_BYTES + rotation(dimensions).size // 4


class Rotation:
    """The one way in which vectors of some size are turned: twice, signs by chance and then a Hadamard transform."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ones = _lanes(b"\1\0\0\0" * size)
        self.zero = self.ones * ZERO
        spans = [1 << power for power in range(size.bit_length() - 1)]
        masks = [_lanes((b"\xff" * 4 * span + bytes(4 * span)) * (size // span // 2)) for span in spans]
        self.steps = [(32 * span, mask, self.zero & mask) for span, mask in zip(spans, masks, strict=True)]
        scale = ZERO // 2 // size  # for no number ever gets more than that many times as large
        chance = _chance(2 * size)
        self.signs = [scale if sign else -scale for sign in chance[:size]]
        self.kept = _lanes(b"".join(b"\xff" * 4 if sign else bytes(4) for sign in chance[size:]))
        self.flipped = self.ones * 0xFFFFFFFF ^ self.kept
        self.twice = self.zero * 2 & self.flipped
        self.edge = self.ones * round(EDGE * scale * sqrt(size))

    def rotate(self, vector: Sequence[float]) -> int:
        """Return the direction of a vector, turned: a number in each lane, beginning at ``ZERO``."""
        norm = hypot(*vector)
        if norm and abs(norm - 1) > NEAR_UNIT:
            vector = [number / norm for number in vector]
        numbers = _signed_lanes(len(vector)).pack(*map(int, map(mul, vector, self.signs)))
        lanes = self._transform((_lanes(numbers) ^ self.ones << 31) - self.zero)
        return self._transform(lanes & self.kept | self.twice - (lanes & self.flipped))

    def _transform(self, lanes: int) -> int:
        """Sums and differences of lanes, at every distance."""
        for shift, mask, zero in self.steps:
            low, high = lanes & mask, lanes >> shift & mask
            lanes = low + high - zero | low - high + zero << shift
        return lanes

    def numbers(self, vector: Sequence[float]) -> list[int]:
        """Return the same as a list."""
        lanes = self.rotate(vector).to_bytes(4 * self.size, "little")
        return [number - ZERO for number in unpack(f"<{self.size}I", lanes)]


def rotation(dimensions: int) -> Rotation:
    """Return how vectors of so many dimensions are turned: the size is the next power of two."""
    return _rotation(max(LEAST_SIZE, 1 << (dimensions - 1).bit_length()))


@lru_cache(maxsize=4)
def _rotation(size: int) -> Rotation:
    return Rotation(size)


@lru_cache(maxsize=4)
def _signed_lanes(dimensions: int) -> Struct:
    return Struct(f"<{dimensions}i")


def _lanes(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _chance(count: int) -> list[bool]:
    """Coins that fall alike on every machine and in every version: they are part of what is stored."""
    state, coins = 1, []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        coins.append(state >> 63 == 1)
    return coins


def _tables(asked: Sequence[float]) -> list[bytes]:
    """For each byte of a code what every value of it adds, in whole numbers from 0 on."""
    numbers = rotation(len(asked)).numbers(asked)
    columns = len(numbers) // 4
    fours = [numbers[column::columns] for column in range(columns)]
    most = min(MAX_COLUMN, MAX_TOTAL // columns) - 2  # four roundings add 2 at the most
    widest = max([sum(map(abs, four)) for four in fours]) * (LEVELS[-1] - LEVELS[0]) or 1.0
    one, two, three = ((level - LEVELS[0]) * most / widest for level in LEVELS[1:])
    adds = [
        (0, int(number * one + 0.5), int(number * two + 0.5), int(number * three + 0.5))
        if number >= 0
        else (int(0.5 - number * three), int(0.5 - number * two), int(0.5 - number * one), 0)
        for number in numbers
    ]
    return [_table(*adds[column::columns]) for column in range(columns)]


def _table(first: Adds, second: Adds, third: Adds, fourth: Adds) -> bytes:
    low = bytes([a + b for b in second for a in first])
    high = bytes([a + b for b in fourth for a in third])
    both = _lanes(_LOW.translate(low + _REST)) + _lanes(_HIGH.translate(high + _REST))
    return both.to_bytes(256, "little")


def _totals(codes: bytes, tables: Sequence[bytes]) -> list[int]:
    """Return what each code adds up to: more is nearer."""
    stride, totals = STAMP_BYTES + len(tables), []
    for start in range(0, len(codes), BLOCK * stride):
        totals += _block(codes[start : start + BLOCK * stride], tables, stride)
    return totals


def _block(codes: bytes, tables: Sequence[bytes], stride: int) -> list[int]:
    """Column by column: every code's first byte, every code's second, and so on; some of them add up within a byte."""
    rows = len(codes) // stride
    pairs = (rows + 1) // 2
    every_other = _lanes(b"\xff\0" * pairs)
    even = odd = 0
    for first in range(0, len(tables), GROUP):
        group = 0
        for column in range(first, first + GROUP):
            group += _lanes(codes[STAMP_BYTES + column :: stride].translate(tables[column]))
        even += group & every_other
        odd += group >> 8 & every_other
    totals = [0] * (2 * pairs)
    totals[0::2] = unpack(f"<{pairs}H", even.to_bytes(2 * pairs, "little"))
    totals[1::2] = unpack(f"<{pairs}H", odd.to_bytes(2 * pairs, "little"))
    return totals[:rows]

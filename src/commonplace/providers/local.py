"""The built-in embedder: a table of word pieces, each a vector; a text is the sum of its pieces.

No model runtime, no numpy, no download: the table is a file of the package, mapped into memory, of which only the rows
that a text needs are read.  ``data/MODEL_CARD.md`` says how it was made and how good it is.  The arithmetic is in whole
numbers until the last division, so that the same text has the same vector on every machine.

The file, all numbers little-endian::

    header   8 bytes of magic, then u32: version, dimensions, entries, slots, first row for n-grams, rows for n-grams
    scales   u16 for each entry
    slots    u16 for each: the number of the entry whose CRC-32 leads here, or of one before it; 0xFFFF is none
    starts   u32 for each entry and one more: where its text begins
    texts    the entries in UTF-8, one after the other
    rows     dimensions bytes for each entry: 128 + a number from -127 to 127, to be multiplied by the entry's scale
"""

from __future__ import annotations

import os
from array import array
from binascii import crc32
from math import sqrt
from mmap import ACCESS_READ, mmap
from struct import Struct, error, unpack_from

from commonplace.providers.wordpiece import LONGEST_WORD, pieces, words

TYPE_CHECKING = False  # type checkers take the name for true; importing it from typing costs more than a query
if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.model.ports import EmbedderIdentity
    from commonplace.model.queries import Vector

FILE = os.path.join(os.path.dirname(__file__), "data", "commonplace-static-1.bin")
NAME, DIMENSIONS = "commonplace-static-1", 256
MAGIC, VERSION = b"cmnplce\0", 1
HEADER = Struct("<8s6I")
NONE = 0xFFFF
BIAS = 128  # what a row's bytes are above the numbers they stand for
#: A row's bytes are spread to lanes of 32 bits of one large integer: then one addition adds all dimensions at once.
LANES = Struct(f"<{DIMENSIONS}I")
EVERY_FOURTH = int.from_bytes(b"\xff\0\0\0" * (DIMENSIONS // 4), "little")
FULL = (1 << 32) // 256  # sum of scales that a lane holds
MOST_WORDS = 8_000  # remembered at a time, about 1.1 kB each
MOST_GRAMMED = 24  # characters: a blob is known by its beginning, and does not outweigh the text around it


class _Table:
    """The file, opened."""

    def __init__(self, path: str) -> None:
        with open(path, "rb") as file:
            self.data = mmap(file.fileno(), 0, access=ACCESS_READ)
        magic, version, dimensions, *counts = HEADER.unpack_from(self.data)
        if (magic, version, dimensions) != (MAGIC, VERSION, DIMENSIONS):
            raise ValueError("not a table of this version")
        entries: int
        entries, self.slots, self.first_gram, self.grams = counts
        self.scales_at: int = HEADER.size
        self.slots_at = self.scales_at + 2 * entries
        self.starts_at = self.slots_at + 2 * self.slots
        self.texts_at = self.starts_at + 4 * (entries + 1)
        self.rows_at = self.texts_at + self._start(entries)
        if self.rows_at + entries * DIMENSIONS != len(self.data):
            raise ValueError("the table is cut off")

    def _start(self, entry: int) -> int:
        start: int = unpack_from("<I", self.data, self.starts_at + 4 * entry)[0]
        return start

    def find(self, text: bytes) -> int | None:
        """The number of an entry."""
        slot = crc32(text)
        while True:
            slot %= self.slots
            entry: int = unpack_from("<H", self.data, self.slots_at + 2 * slot)[0]
            if entry == NONE:
                return None
            begin, end = unpack_from("<2I", self.data, self.starts_at + 4 * entry)
            if self.data[self.texts_at + begin : self.texts_at + end] == text:
                return entry
            slot += 1

    def row(self, entry: int) -> tuple[int, int]:
        """An entry's vector as lanes, and its scale."""
        scale: int = unpack_from("<H", self.data, self.scales_at + 2 * entry)[0]
        at = self.rows_at + entry * DIMENSIONS
        row = int.from_bytes(self.data[at : at + DIMENSIONS], "little")
        lanes = 0
        for quarter in range(4):
            lanes |= ((row >> 8 * quarter) & EVERY_FOURTH) << quarter * (DIMENSIONS * 8)
        return lanes * scale, scale

    def gram(self, text: str) -> int:
        """The row that stands for some characters, shared with others by chance."""
        row: int = self.first_gram + crc32(text.encode("utf-8", "surrogatepass")) % self.grams
        return row


class LocalEmbedder:
    """Embeds with the table of this package.  Opens it when it is first used; may be shared by threads.

    A word of a script that the vocabulary does not have is the sum of its characters' n-grams, so that it is like
    itself and a little like its inflections.  A blank text has a vector too, always the same, that is near to no other.
    """

    chance = 0.06  #: the cosine of texts that have nothing to do with each other

    def __init__(self, path: str = FILE) -> None:
        self._path = path
        self._opened: _Table | None = None
        self._known: dict[str, tuple[int, int]] = {}

    @property
    def identity(self) -> EmbedderIdentity:
        """Which table this is; another table gets another name."""
        from commonplace.model.ports import EmbedderIdentity  # noqa: PLC0415 - one query must not pay for the domain

        return EmbedderIdentity(name=NAME, dimensions=DIMENSIONS)

    def embed(self, texts: Sequence[str], *, query: bool = False) -> list[Vector]:  # noqa: ARG002 - both are alike here
        """Return one vector of unit length per text, in order.  Raises ``ProviderError`` if the table is unreadable."""
        return [self._vector(text) for text in texts]

    def embed_words(self, words: Sequence[str]) -> list[Vector]:
        """Return one vector of unit length per word: a table has one for each, alone as in a text."""
        return self.embed(words)

    def _vector(self, text: str) -> Vector:
        known = self._known
        lanes = scales = 0
        sums: list[int] | None = None
        for word in words(text):
            row, scale = known.get(word) or self._learn(word)
            if scales + scale >= FULL:
                sums, lanes, scales = _add(sums, lanes, scales), 0, 0
            lanes += row
            scales += scale
        return self._unit(_add(sums, lanes, scales))

    def _unit(self, sums: list[int]) -> Vector:
        length = sqrt(sum([number * number for number in sums]))
        if not length:
            return self._unit(_add(None, *self._table().row(0)))
        return array("f", [number / length for number in sums])

    def _learn(self, word: str) -> tuple[int, int]:
        """What a word adds, cached for the next time."""
        table = self._table()
        rows = [table.row(piece) for piece in pieces(word, table.find) or self._grams(word)]
        known = sum([lanes for lanes, _ in rows]), sum([scale for _, scale in rows])
        if len(self._known) >= MOST_WORDS:
            self._known.clear()
        if len(word) <= LONGEST_WORD:
            self._known[word] = known
        return known

    def _grams(self, word: str) -> list[int]:
        """The rows of a word that has no pieces: of each character, and of each two and three that are neighbours."""
        table = self._table()
        word = word[:MOST_GRAMMED]
        whole = f"<{word}>"
        grams = [whole[at : at + size] for size in (2, 3) for at in range(len(whole) - size + 1)]
        return [table.gram(gram) for gram in dict.fromkeys((*word, *grams))]

    def _table(self) -> _Table:
        if self._opened is None:
            try:
                self._opened = _Table(self._path)
            except (OSError, ValueError, error) as cause:
                from commonplace.model.errors import ProviderError  # noqa: PLC0415 - see identity

                raise ProviderError(f"the built-in embedder's table {self._path!r} cannot be read: {cause}") from cause
        return self._opened


def _add(sums: list[int] | None, lanes: int, scales: int) -> list[int]:
    """The numbers of all dimensions, of what was added up as lanes."""
    bias = BIAS * scales
    numbers = [number - bias for number in LANES.unpack(lanes.to_bytes(LANES.size, "little"))]
    return numbers if sums is None else [one + other for one, other in zip(sums, numbers, strict=True)]

"""Vectors in LanceDB, as an index that can be lost: a table is written once, as a whole, and never changed.

LanceDB keeps a file and a list of all files for every write, so a table that grows row by row grows slow
(docs/store-backends.md has the figures).  Here each table is one bulk write; a newer one takes its place.  Nothing here
knows a record: a row is the number of an entry, what a filter asks of it, and its vector.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import threading
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, TypeAlias
from zlib import crc32

from commonplace.install import hint
from commonplace.model.errors import StoreBusy, StoreError
from commonplace.model.ports import ProgressCallback
from commonplace.model.values import Value

try:
    import fcntl
except ImportError:  # Windows: two processes may then build at once, and the later one's table stays
    fcntl = None  # type: ignore[assignment]

PREFIX, SUFFIX = "vectors_", ".lance"  # of our tables; the second is what LanceDB calls the folder of one
LOCK = "index.lock"
BATCH = 16_384  # rows written at a time: some 25 MB
PIECE = 1 << 20  # bytes read at a time
PROBED = 40  # parts of a partitioned table that are looked into
#: What the library raises; most of it as a bare RuntimeError.
ERRORS = (RuntimeError, ValueError, OSError)

Row: TypeAlias = tuple[int, int, int | None, str | None, str | None, bytes]  #: as in ``COLUMNS``
COLUMNS = ("entry", "bucket", "expires", "kind", "category", "vector")


class WrittenTable(Value):
    """A table that was written."""

    name: str
    rows: int
    sum: int  #: of its bytes


class Found(Value):
    """One row that is near to what was asked."""

    entry: int
    distance: float  #: 1 - the product of both vectors, in single precision


class IndexLost(StoreError):
    """The index is not there, or not what it should be; the caller asks the record store."""


def require_library() -> None:
    """Refuse to go on without the library, before anything is made."""
    if find_spec("lancedb") is None:
        raise StoreError(hint("a LanceDB store needs the extra `lancedb`", "lancedb"))


class LanceIndex:
    """The tables in one folder."""

    def __init__(self, folder: str, *, partition_from: int) -> None:
        """``partition_from`` so many rows a table is cut into parts, of which a search looks into some."""
        require_library()
        self.folder = folder
        self._partition_from = partition_from
        self._open: tuple[str, Any] | None = None  # the table that was searched last
        self._lock = threading.Lock()

    def write(self, name: str, dimensions: int, rows: Iterable[Row], *, of: int, progress: ProgressCallback) -> int:
        """Write a table, at once; returns the sum of its bytes.  Raises ``IndexLost``, and then there is none."""
        import lancedb  # noqa: PLC0415 - two seconds, which only who needs it should wait

        try:
            table, count = None, 0
            for batch in _batches(rows, dimensions):
                if table is None:
                    table = lancedb.connect(self.folder).create_table(name, data=batch)
                else:
                    table.add(batch)
                count += batch.num_rows
                progress(count, max(of, count))
            if table is not None and count >= self._partition_from:
                from lancedb.index import IvfFlat  # noqa: PLC0415 - see above

                table.create_index("vector", config=IvfFlat(distance_type="dot"))
        except ERRORS as error:
            self.drop(name)
            raise IndexLost(f"the index in {self.folder!r} cannot be written: {error}") from error
        return self._sum(name)

    def search(
        self, held: WrittenTable, condition: str, asked: Sequence[float], *, limit: int, exact: bool
    ) -> list[Found]:
        """Return the rows that fit a condition and are nearest, best first; ``exact`` looks at every one.

        Raises ``IndexLost`` if the table is gone or is not, byte for byte, what was written.
        """
        try:
            asking = self._table(held).search(list(asked), vector_column_name="vector").distance_type("dot")
            asking = asking.where(condition, prefilter=True).select(["entry", "_distance"]).limit(limit)
            found = (asking.bypass_vector_index() if exact else asking.nprobes(PROBED)).to_arrow()
            pairs = zip(found["entry"].to_pylist(), found["_distance"].to_pylist(), strict=True)
            return [Found(entry=entry, distance=distance) for entry, distance in pairs]
        except ERRORS as error:
            raise IndexLost(f"the index in {self.folder!r} cannot be read: {error}") from error

    def is_partitioned(self, rows: int) -> bool:
        """Return whether a table of so many rows is cut into parts: then a search may miss some."""
        return rows >= self._partition_from

    def drop(self, *names: str) -> None:
        """Erase tables.  Raises ``OSError`` if the disk will not."""
        with self._lock:
            self._open = None if self._open and self._open[0] in names else self._open
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self._path(name))

    def names(self) -> list[str]:
        """Return the tables that are there, whole or not."""
        found = glob.glob(os.path.join(glob.escape(self.folder), f"{PREFIX}*{SUFFIX}"))
        return sorted(os.path.basename(path).removesuffix(SUFFIX) for path in found)

    @contextlib.contextmanager
    def building(self) -> Iterator[None]:
        """Be the only one who builds.  Raises ``StoreBusy`` while another process builds."""
        descriptor = os.open(os.path.join(self.folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if fcntl:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise StoreBusy(f"the index in {self.folder!r} is being built by another process") from None
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Give back what is held."""
        with self._lock:
            self._open = None

    def _table(self, held: WrittenTable) -> Any:
        with self._lock:
            known = self._open
        if known and known[0] == held.name and os.path.isdir(self._path(held.name)):
            return known[1]
        if self._sum(held.name) != held.sum:  # LanceDB itself would take flipped bits for vectors
            raise ValueError(f"{held.name} is not what was written")
        import lancedb  # noqa: PLC0415 - see above

        table = lancedb.connect(self.folder).open_table(held.name)
        with self._lock:
            self._open = held.name, table
        return table

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name + SUFFIX)

    def _sum(self, name: str) -> int:
        """Return the sum of all bytes of a table, and of the names of its files."""
        total, found = 0, glob.glob("**", root_dir=self._path(name), recursive=True)
        for path in sorted(found):
            full = os.path.join(self._path(name), path)
            if os.path.isfile(full):
                total = crc32(path.encode(), total)
                with open(full, "rb") as file:
                    while piece := file.read(PIECE):
                        total = crc32(piece, total)
        return total


def quote_text(text: str) -> str:
    """Quote a text for a condition of LanceDB."""
    return "'" + text.replace("'", "''") + "'"


def _batches(rows: Iterable[Row], dimensions: int) -> Iterator[Any]:
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if len(held) == BATCH:
            yield _batch(held, dimensions)
            held = []
    if held:
        yield _batch(held, dimensions)


def _batch(rows: Sequence[Row], dimensions: int) -> Any:
    """Rows as columns; the bytes of vectors are taken as they are."""
    import pyarrow as pa  # type: ignore[import-untyped] # noqa: PLC0415 - it has no types; see above

    entry, bucket, expires, kind, category, data = zip(*rows, strict=True)
    floats = pa.Array.from_buffers(pa.float32(), len(rows) * dimensions, [None, pa.py_buffer(b"".join(data))])
    columns = [
        pa.array(entry, pa.int64()), pa.array(bucket, pa.int64()), pa.array(expires, pa.int64()),
        pa.array(kind, pa.string()), pa.array(category, pa.string()),
        pa.FixedSizeListArray.from_arrays(floats, dimensions),
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, names=list(COLUMNS))

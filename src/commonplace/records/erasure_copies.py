"""Erase in our own copies of the store: each backup is a database, opened and erased in, then looked through.

A copy that cannot be rewritten is named with the reason, so that a person can remove it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from commonplace.app import App, copy_paths, open_copy
from commonplace.engine.erasing import Target, drop_file_states, select
from commonplace.engine.forgetting import Removal, erase, preview
from commonplace.model.errors import CommonplaceError
from commonplace.model.ports import ProgressCallback
from commonplace.model.scopes import Scope
from commonplace.model.values import Value

SCAN_BYTES = 8 * 1024 * 1024
NEEDLE_BYTES = 120  # of a text that is looked for in a file: a longer one is cut up by the pages of a database
NEEDLE_LEAST = 12  # a shorter one stands anywhere by chance


class CopyReport(Value):
    """What became of one of our own copies of the store."""

    path: str
    erased: int = 0  #: records and sessions that were erased in it
    trouble: str | None = None  #: why it may still hold what was erased


def count_copies(app: App) -> int:
    """Return how many copies of the store we have made."""
    return len(copy_paths(app.where))


def erase_in_copies(
    app: App, target: Target, scopes: frozenset[Scope], progress: ProgressCallback
) -> Iterator[CopyReport]:
    """Erase a target in each of our copies, one after the other; one that cannot be rewritten is named."""
    paths = copy_paths(app.where)
    for number, path in enumerate(paths):
        progress(number, len(paths))
        try:
            yield _erase_in_copy(path, target, scopes, app)
        except (CommonplaceError, OSError) as error:
            yield CopyReport(path=path, trouble=str(error))


def _erase_in_copy(path: str, target: Target, scopes: frozenset[Scope], app: App) -> CopyReport:
    """Erase in one copy, and look afterwards whether it is gone."""
    with open_copy(path) as store:
        removal = select(store, target, scopes, app.clock())
        if removal.is_empty:
            return CopyReport(path=path)
        needles = _needles(removal)
        seen = preview(store, removal, reads=tuple(scopes), now=app.clock())
        erase(store, removal, reads=tuple(scopes), now=app.clock())
        drop_file_states(store, seen.erasure.ids | {one.name for one in seen.gone})
        left = not select(store, target, scopes, app.clock()).is_empty
    found = left or _holds(path, needles)
    trouble = "it still holds words of what was erased" if found else None
    return CopyReport(path=path, erased=len(removal.records) + len(removal.documents), trouble=trouble)


def _needles(removal: Removal) -> list[bytes]:
    """Return bytes by which what was erased would be recognised in a file."""
    texts = [*(record.content for record in removal.records), *removal.texts]
    cut = {text.encode()[:NEEDLE_BYTES] for text in texts}
    return sorted(one for one in cut if len(one) >= NEEDLE_LEAST)


def _holds(path: str, needles: Sequence[bytes]) -> bool:
    with open(path, "rb") as file:
        before = b""
        while block := file.read(SCAN_BYTES):
            data = before + block
            if any(needle in data for needle in needles):
                return True
            before = block[-NEEDLE_BYTES:]
    return False

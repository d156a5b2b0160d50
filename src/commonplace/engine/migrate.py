"""Move house: carry a whole store to another one, and show at the end that both say the same.

Both stores are read side by side in one order; what the target lacks or has otherwise is written, what it has beyond
the source is erased.  So a move that was stopped is taken up by running it again, and one that is done changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256

from commonplace.model.errors import Conflict, InvalidInput, StoreError
from commonplace.model.items import Item, Mover, digest
from commonplace.model.ports import Tell, silent
from commonplace.model.values import Value

BATCH = 100  # items of one transaction: little is lost when it is stopped, and few transactions wait for the disk


class Moved(Value):
    """What came of a move."""

    items: int  #: that both hold now
    written: int  #: of them, by this run
    erased: int  #: that only the target had
    records: int
    digest: str  #: what both say


def migrate(source: Mover, target: Mover, *, replace: bool = False, tell: Tell = silent) -> Moved:
    """Make the target say what the source says.

    A target that holds something else is refused unless it may be replaced.  Others may use the source meanwhile: what
    is carried is one state of it.
    """
    if source.name == target.name:
        raise InvalidInput(f"{source.name!r} cannot be moved to itself")
    _check_free(source, target, replace=replace)
    with source.reading() as items:
        moved = _carried(items, target, source.name, tell=tell, of=source.count())
    if digest(target.items()) != moved.digest:
        raise StoreError(
            f"what {target.name!r} holds is not what {source.name!r} held: somebody else wrote into it. Run it again."
        )
    target.write([], begun=None)
    return moved


def _check_free(source: Mover, target: Mover, *, replace: bool) -> None:
    if replace or target.begun() == source.name or not target.count():
        target.write([], begun=source.name)
        return
    with source.reading() as items:
        if digest(items) == digest(target.items()):  # it was moved before
            return
    raise Conflict(f"{target.name!r} holds something else already; nothing was moved")


def _carried(items: Iterator[Item], target: Mover, name: str, *, tell: Tell, of: int) -> Moved:
    """Walk along both, writing a batch at a time; returns what the source said."""
    whole, done, written, erased, records = sha256(), 0, 0, 0, 0
    batch: list[Item] = []
    gone: list[Item] = []
    for ours, theirs in side_by_side(items, target.items()):
        if ours is None and theirs is not None:
            gone.append(theirs)
        elif ours is not None:
            said = ours.said
            whole.update(sha256(said).digest())
            done, records = done + 1, records + (ours.sort == "record")
            if theirs is None or theirs.said != said:
                batch.append(ours)
            tell(done, of)
        if len(batch) + len(gone) >= BATCH:
            target.write(batch, gone=gone, begun=name)
            written, erased, batch, gone = written + len(batch), erased + len(gone), [], []
    target.write(batch, gone=gone, begun=name)
    return Moved(
        items=done, written=written + len(batch), erased=erased + len(gone), records=records, digest=whole.hexdigest()
    )


def side_by_side(ours: Iterator[Item], theirs: Iterator[Item]) -> Iterator[tuple[Item | None, Item | None]]:
    """Pairs of what stands at the same place in both; None where one of them has nothing there."""
    one, other = next(ours, None), next(theirs, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one.place < other.place):
            yield one, None
            one = next(ours, None)
        elif one is None or other.place < one.place:
            yield None, other
            other = next(theirs, None)
        else:
            yield one, other
            one, other = next(ours, None), next(theirs, None)

"""Read everything that is stored with today's rules, and replace the secrets that earlier rules let through.

It needs no plan of its own: a store can be read as items, and an item that changes is written again whole, with new
hashes and terms and without the vector of its old words.  What is found is reported by its kind and its place, never
by its words.  An interrupted run has cleaned what it wrote; the next one finds the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from commonplace.engine.admission import Gate, secret_name
from commonplace.model.errors import InvalidInput
from commonplace.model.items import Item, ItemCopier, Place
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.records import Json
from commonplace.model.values import Value
from commonplace.redact.redaction import redact
from commonplace.text.words import terms

BATCH = 100  # items that are written in one transaction


class Found(Value):
    """A secret that is stored, or was."""

    kind: str
    place: str  #: such as "record 01jk3v9q2c, version 2: content"


class ScrubResult(Value):
    """What a run found."""

    found: tuple[Found, ...] = ()
    left: tuple[str, ...] = ()  #: what it cannot replace, as sentences
    items: int = 0  #: that were read
    rewritten: int = 0  #: of them
    pending: bool = False  #: a reader still holds old bytes of the file; they go when it ends


class Cleaner:
    """Redacts the texts of items, and notes what it found where."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self.found: list[Found] = []
        self.left: list[str] = []
        self._place = ""

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """Name the thing that the following texts belong to."""
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    def clean(self, field: str, value: Json, *, under: str = "") -> Json:
        """Return a text or a JSON value without its secrets: the same object if it has none."""
        gate = Gate(self.secret)
        if isinstance(value, str) and value[:1] in {"[", "{"} and (parsed := _parse(value)) is not None:
            after: Json = json.dumps(gate.json(parsed, what=field), ensure_ascii=False, separators=(",", ":"))
        else:
            after = gate.json(value, what=field, name=secret_name(under, value))
        self.found += [Found(kind=one.kind, place=self._label(field)) for one in gate.findings]
        return after if gate.findings else value

    def refuse(self, field: str, name: str) -> None:
        """Note a name that holds a secret and cannot be replaced, because everything below it is known by it."""
        if found := redact(name).findings:
            self.left.append(f"{field} holds a secret ({found[0].kind}): erase it and begin anew under another name")

    def terms(self, text: str) -> list[str]:
        """Return the search terms of a text."""
        return list(terms(text))

    def _label(self, field: str) -> str:
        return f"{self._place}: {field}" if self._place else field


def _parse(text: str) -> Json:
    try:
        return json.loads(text)  # type: ignore[no-any-return]  # JSON is JSON
    except (ValueError, RecursionError):
        return None


def scrub(
    items: ItemCopier, *, secret: Callable[[], bytes], dry_run: bool = False, progress: ProgressCallback = no_progress
) -> ScrubResult:
    """Find every secret in a store and, unless it is a dry run, replace it everywhere and erase the old bytes."""
    cleaner = Cleaner(secret())
    marked: list[Place] = []
    read, of = 0, items.count()
    with items.reading() as every:
        for item in every:
            read += 1
            progress(read, of)
            if _is_unclean(items, item, cleaner):
                marked.append(item.place)
    rewritten = 0
    for start in range(0, 0 if dry_run else len(marked), BATCH):
        progress(start, len(marked))
        rewritten += items.rewrite(marked[start : start + BATCH], Cleaner(secret()))
    gone = items.erase_old_bytes() if rewritten else True
    return ScrubResult(
        found=tuple(cleaner.found), left=tuple(cleaner.left), items=read, rewritten=rewritten, pending=not gone
    )


def _is_unclean(items: ItemCopier, item: Item, cleaner: Cleaner) -> bool:
    try:
        return items.rewrite_item(item, cleaner) is not None
    except InvalidInput as error:  # a text that no gate would let in again is reported, and the rest is read
        cleaner.left.append(f"{item.sort} {str(item.key[-1])[:10]} cannot be read: {error}")
        return False

"""Rebuild the block that a session was shown, from the versions that its receipt names, and compare digests.

A receipt holds no word, so the block is made again by the code that made it: of the same versions, with the same
scores.  What was erased since is named as erased; then, and where the rules or the summary have changed, the block is
not the one that the agent received, and the digest says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from commonplace.engine.memory import Memory
from commonplace.engine.rendering import keyed_digest
from commonplace.files.artifacts import LEARNED, SUMMARY
from commonplace.learning.addresses import SCHEME, AddressedText, Addresses, address, artifact
from commonplace.learning.brief import references_of, shown_text
from commonplace.learning.brief_layout import BriefMaterial, Note, Part, render_brief
from commonplace.model.documents import Chunk
from commonplace.model.errors import CommonplaceError, NotFound
from commonplace.model.queries import DocumentFilter, Hit
from commonplace.model.records import Record
from commonplace.model.uses import RebuiltBlock, Receipt, ShownItem

ALL = -1


def rebuild_block(addresses: Addresses, receipt: Receipt, *, rules: str) -> RebuiltBlock:
    """Rebuild the block of a receipt."""
    memory, secret = addresses.memory, addresses.secret()
    records = {item.id: _record(memory, item) for item in receipt.items if item.kind == "record"}
    turns = {item.id: _turn(memory, item) for item in receipt.items if item.kind == "turn"}
    pages = {item.id: _page(addresses, item) for item in receipt.items if item.kind == "artifact"}
    found = {**records, **turns, **pages}
    notes = tuple(_notes(receipt, records, turns))
    material = BriefMaterial(
        rules=rules, summary=shown_text(pages.get(address(SUMMARY))), lessons=shown_text(pages.get(address(LEARNED))),
        notes=notes, references=references_of(notes),
    )  # fmt: skip
    block = render_brief(
        material, secret=secret, budget=None, summary_budget=receipt.summary_budget, standing_budget=None
    )
    digests = {item.id: item.digest for item in receipt.items}
    changed = [id_ for id_, one in found.items() if one and keyed_digest(_words(one), secret) != digests[id_]]
    known = receipt.block is not None and bool(receipt.parts or not receipt.order)
    matches = None if not known else keyed_digest(block.text, secret) == receipt.block
    erased = tuple(id_ for id_, one in found.items() if one is None)
    return RebuiltBlock(text=block.text, matches=matches, erased=erased, changed=tuple(changed))


def _words(found: Record | Chunk | AddressedText) -> str:
    return found.content if isinstance(found, Record) else found.text


def _notes(receipt: Receipt, records: dict[str, Record | None], turns: dict[str, Chunk | None]) -> Iterator[Note]:
    for id_ in receipt.order:
        record, chunk = records.get(id_), turns.get(id_)
        if record or chunk:
            yield Note(
                hit=Hit(score=receipt.scores.get(id_, 1.0), record=record, chunk=chunk),  # type: ignore[arg-type]  # see Hit
                part=Part(receipt.parts.get(id_, Part.MATCHING)), start=receipt.starts.get(id_, 0),
                newer=receipt.newer.get(id_),
            )  # fmt: skip


def _record(memory: Memory, item: ShownItem) -> Record | None:
    try:
        return next((one for one in memory.history(item.id) if one.version == item.version), None)
    except NotFound:
        return None


def _turn(memory: Memory, item: ShownItem) -> Chunk | None:
    kind, _, rest = item.id.partition(":")
    name, _, ref = rest.rpartition("#")
    where = DocumentFilter(scopes=frozenset(memory.binding.reads), kinds=frozenset({kind}), names=frozenset({name}))
    return next((chunk for chunk in memory.store.chunks(where, limit=ALL) if chunk.ref == ref), None)


def _page(addresses: Addresses, item: ShownItem) -> AddressedText | None:
    try:
        return artifact(addresses, item.id.removeprefix(f"{SCHEME}root/") if item.id != f"{SCHEME}root" else SUMMARY)
    except CommonplaceError:  # a page that cannot be read cannot be compared
        return None

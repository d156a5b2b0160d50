"""Irreversible erasure of records, and of their words in documents that memory has written.

A text about a record usually names it; what a model writes may not.  So a block is removed if it names only erased
records, or if it has a word that occurs only in them.  The documents are rewritten in the same ``apply`` that erases.
Text that users wrote stays, and so do sessions, which are the original source.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from commonplace.model.changes import AppendChunks, Change, Delete, DeleteDocuments, Outcome, PutDocument
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.ids import SHORT
from commonplace.model.ports import Store
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import CATEGORIES, Channel, Json, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.blocks import INTRO, Block, blocks, join_blocks, references, strip_reference, without_empty
from commonplace.text.cleaning import plain_line
from commonplace.text.words import says_something, terms

TRIES = 5  # while others write the same documents
EVERYTHING = 1_000_000
WORD_LETTERS = 3  # shorter ones are numbers of steps, or say too little to tell one record from another
REPEATING = frozenset({DocumentKind.ARTIFACT.value, DocumentKind.EXTRACTION.value, DocumentKind.RECEIPT.value})
LEARNED, RAW = "learned.md", "raw_memories.md"
SKILLS, ROLLOUTS = "skills/", "rollout_summaries/"
_SECTIONS = frozenset(category.replace("_", " ") for category in CATEGORIES) | {"from sessions"}
_SESSION = re.compile(r"\(session:([^()]*)\)\s*$")
_SOURCE = re.compile(r"^Source: record [^\n]*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.;!?])\s+")


class Erasure(Value):
    """The records, words and sessions to remove from documents."""

    ids: frozenset[str]
    names: frozenset[str]  #: the same, as texts name them
    words: frozenset[str] = frozenset()  #: terms that occur only in the erased records
    sessions: frozenset[str] = frozenset()  #: the sessions that they were made from

    @classmethod
    def of(
        cls, ids: Iterable[str], *, words: frozenset[str] = frozenset(), sessions: frozenset[str] = frozenset()
    ) -> Erasure:
        """Of records by their ids."""
        meant = frozenset(ids)
        return cls(ids=meant, names=frozenset(one[:SHORT] for one in meant), words=words, sessions=sessions)

    def is_in(self, text: str) -> bool:
        """Whether a text has any of the words."""
        return not self.words.isdisjoint(terms(text))


def erase(
    store: Store, records: Sequence[Record], *, scope: Scope, reads: Collection[Scope], now: datetime
) -> tuple[Outcome, Erasure]:
    """Erase records of a scope, what was derived from them alone, and what memory has written about them."""
    ids = frozenset(record.id for record in records)
    only = Filter(scopes=frozenset({scope}), at=now, states=ANY_STATE, ids=ids)
    scopes = _repeating_scopes(store, scope)
    for left in reversed(range(TRIES)):
        found = _documents(store, scopes)
        erasure = _erasure(store, ids, found, frozenset({*scopes, *reads}), now)
        pairs = [(one, clean_document(one, erasure)) for one in found]
        try:
            outcome, *_ = store.apply(
                [
                    Delete(where=only.replace(ids=erasure.ids)),
                    *(change for pair in pairs for change in _rewrite_changes(*pair)),
                ]
            )
            break
        except (Conflict, NotFound):  # another process has rewritten one of them: read again
            if not left:
                raise
    seen = {clean.digest for _, clean in pairs if clean}
    since = [one for one in _documents(store, scopes) if one.digest not in seen]
    late = [change for one in since for change in _replace_changes(one, clean_document(one, erasure))]
    if late:  # of a consolidation that ended between the look and the write; none can any more
        outcome = outcome.replace(erasing=outcome.erasing or any(one.erasing for one in store.apply(late)))
    return outcome, erasure


def clear(store: Store, scope: Scope, *, now: datetime) -> tuple[Outcome, Erasure]:
    """Erase everything in a scope, and what documents elsewhere tell of it."""
    where = Filter(scopes=frozenset({scope}), at=now, states=ANY_STATE)
    records = store.find(where, order=Order.ID, limit=EVERYTHING)
    elsewhere = scope.kind == "user" and bool(records)
    before = erase(store, records, scope=scope, reads=(scope,), now=now)[0] if elsewhere else Outcome()
    documents = DeleteDocuments(where=DocumentFilter(scopes=frozenset({scope})))
    outcome, _ = store.apply([Delete(where=where), documents])
    erasing = outcome.erasing or before.erasing
    gone = (*before.gone, *outcome.gone)
    return outcome.replace(gone=gone, erasing=erasing), Erasure.of(gone)


# Looking


def _repeating_scopes(store: Store, scope: Scope) -> frozenset[Scope]:
    """Return the scopes whose documents can repeat a record: a user's own may come from sessions of any project."""
    projects = [one for one in store.scopes() if one.kind == "project"] if scope.kind == "user" else []
    return frozenset({scope, *projects})


def _documents(store: Store, scopes: frozenset[Scope]) -> list[Document]:
    return store.documents(DocumentFilter(scopes=scopes, kinds=REPEATING), limit=EVERYTHING)


def _erasure(
    store: Store, meant: frozenset[str], found: Sequence[Document], scopes: frozenset[Scope], now: datetime
) -> Erasure:
    where = Filter(scopes=scopes, at=now, states=ANY_STATE)
    ids = _with_derived(store, meant, where)
    if not found:
        return Erasure.of(ids)
    erased = store.find(where.replace(ids=ids, versions=True), order=Order.ID, limit=EVERYTHING)
    rest = [one for one in store.find(where, order=Order.ID, limit=EVERYTHING) if one.id not in ids]
    others = (one for one in rest if not _is_proposed_skill(one))
    sessions = frozenset(one.name for one in found if one.kind is DocumentKind.EXTRACTION and ids & _record_ids(one))
    words = words_only_in(map(_record_text, erased), map(_record_text, others))
    erasure = Erasure.of(ids, words=words, sessions=sessions)
    repeating = {one.id for one in rest if _is_proposed_skill(one) and erasure.is_in(one.content)}
    return Erasure.of(ids | repeating, words=words, sessions=sessions)


def _is_proposed_skill(record: Record) -> bool:
    """Whether a model made it of what it read, and it still waits: such text repeats records and is nobody's word."""
    return record.held and record.source.channel is Channel.CONSOLIDATION


def _with_derived(store: Store, meant: frozenset[str], where: Filter) -> frozenset[str]:
    """Return some records with those derived from them that have no other existing parent."""
    gone = new = meant
    while new:
        derived = store.find(where.replace(parents=new), order=Order.ID, limit=EVERYTHING)
        new = frozenset(
            one.id
            for one in derived
            if one.id not in gone and all(name in gone or store.get(name) is None for name in one.source.parents)
        )
        gone |= new
    return gone


def _record_ids(extraction: Document) -> set[str]:
    """The records that an extraction was made into, once or now."""
    listed, digests = (extraction.metadata.get(name) for name in ("records", "digests"))
    return {str(one) for part in (listed, digests) if isinstance(part, list | dict) for one in part}


def _record_text(record: Record) -> str:
    return " ".join([record.content, *(str(record.metadata.get(name) or "") for name in ("quote", "subject"))])


def words_only_in(gone: Iterable[str], others: Iterable[str]) -> frozenset[str]:
    """Return the words that occur in some texts and not in others, except words without meaning of their own."""
    left = {
        term for text in gone for token in text.split() if says_something(token)
        for term in terms(token) if len(term) >= WORD_LETTERS
    }  # fmt: skip
    for text in others:
        left.difference_update(terms(text))
    return frozenset(left)


# Rewriting


def _rewrite_changes(document: Document, clean: Document | None) -> list[Change]:
    """Replace a document by its cleaned version, unless it has changed since it was read."""
    if clean is None:
        return [_delete_change(document)]
    if clean is document:
        return []
    return [AppendChunks(document=clean, chunks=(), terms=(), expect_digest=document.digest)]


def _replace_changes(document: Document, clean: Document | None) -> list[Change]:
    """The same as an erasure, after which the store lets go of the old bytes."""
    if clean is document:
        return []
    return [_delete_change(document), *([PutDocument(document=clean)] if clean else [])]


def _delete_change(document: Document) -> DeleteDocuments:
    where = DocumentFilter(
        scopes=frozenset({document.scope}), kinds=frozenset({document.kind.value}), names=frozenset({document.name})
    )
    return DeleteDocuments(where=where)


def clean_document(document: Document, erasure: Erasure) -> Document | None:
    """A document without what is erased: the same object if it tells nothing of it, None if nothing else is left."""
    metadata: Mapping[str, Any] = document.metadata
    text = document.content or ""
    new: tuple[str, dict[str, Json]] | None
    if document.kind is DocumentKind.EXTRACTION:
        new = _clean_extraction(document.name, text, metadata, erasure)
    elif document.kind is DocumentKind.ARTIFACT:
        new = clean_artifact(document.name, text, metadata, erasure)
    else:
        new = text, _clean_receipt(metadata, erasure)
    if new is None or new == (text, dict(metadata)):
        return None if new is None else document
    digest = sha256(f"{new[0]}\x1f{new[1]!r}".encode()).hexdigest()
    return document.replace(content=new[0] or None, metadata=new[1], digest=digest)


def _clean_extraction(
    name: str, text: str, metadata: Mapping[str, Any], erasure: Erasure
) -> tuple[str, dict[str, Json]]:
    """What was made of a session; what was forgotten stays known by its digest alone, so that it is not made again."""
    if name not in erasure.sessions:
        return text, dict(metadata)
    slug, made = metadata.get("slug"), metadata.get("records") or []
    return without_erased_blocks(text, erasure), {
        **metadata,
        "summary": without_erased_sentences(str(metadata.get("summary") or ""), erasure),
        "slug": None if slug and erasure.is_in(slug.replace("_", " ")) else slug,
        "records": [one for one in made if one not in erasure.ids],
    }


def clean_artifact(
    name: str, text: str, metadata: Mapping[str, Any], erasure: Erasure
) -> tuple[str, dict[str, Json]] | None:
    """An artifact without what is erased; None if nothing is left of it.  A file that is a person's stays theirs."""
    same = text, dict(metadata)
    if name == LEARNED or metadata.get("by_hand") is True:
        return same
    if name.startswith(SKILLS):
        return None if references(text) & erasure.names or erasure.is_in(_SOURCE.sub("", text)) else same
    if name.startswith(ROLLOUTS):
        return None if _tells_of(name, text, erasure) else same
    owned = [one for one in metadata.get("owned") or [] if not _named_only(one["text"], erasure)]
    theirs = {one["text"] for one in owned}
    kept, moved = _remaining_blocks(name, text, erasure, theirs)
    if moved and all(block.level or block.text == INTRO for block in kept):
        return None
    placed: list[Json] = [
        {
            **one,
            "after": moved.get(one["after"], one["after"]),
            "path": [line for line in one["path"] if line not in moved],
        }
        for one in owned
    ]
    cleaned = {key: value for key, value in metadata.items() if key not in ("owned", "left_out")}
    cleaned |= ({"owned": placed} if "owned" in metadata else {}) | _drop_metadata(metadata, erasure)
    return join_blocks(kept) if moved else text, cleaned


def _drop_metadata(metadata: Mapping[str, Any], erasure: Erasure) -> dict[str, Json]:
    left_out = metadata.get("left_out")
    return {"left_out": {one: what for one, what in left_out.items() if one not in erasure.names}} if left_out else {}


def _tells_of(name: str, text: str, erasure: Erasure) -> bool:
    """Whether the synopsis of a session repeats what is erased, in its text or in its very name."""
    head, _, body = text.partition("\n\n")
    session = head.partition("\n")[0].removeprefix("thread_id: ")
    ours = session in {plain_line(one) for one in erasure.sessions}
    return ours and (erasure.is_in(body) or erasure.is_in(re.sub(r"[-_/.]", " ", name)))


def _clean_receipt(metadata: Mapping[str, Any], erasure: Erasure) -> dict[str, Json]:
    """A receipt of a consolidation; one of what a session was shown holds no words."""
    cleaned: dict[str, Json] = dict(metadata)
    if before := metadata.get("before"):
        cleaned["before"] = {name: _clean_before(name, was, erasure) for name, was in before.items()}
    if dropped := metadata.get("dropped"):
        cleaned["dropped"] = [one for one in dropped if not _repeats(one, erasure)]
    return cleaned


def _clean_before(name: str, was: Mapping[str, Any] | None, erasure: Erasure) -> Json:
    left = clean_artifact(name, was["text"], was["metadata"], erasure) if was else None
    return {"text": left[0], "metadata": left[1]} if left else None


def _repeats(dropped: Mapping[str, str], erasure: Erasure) -> bool:
    named = references(dropped["text"]) & erasure.names
    return bool(named) or erasure.is_in(f"{strip_reference(dropped['text'])} {dropped['reason']}")


# Blocks


def without_erased_blocks(text: str, erasure: Erasure) -> str:
    """A text without the blocks that repeat what is erased."""
    found = blocks(text)
    kept = [block for block in found if block.level or not erasure.is_in(strip_reference(block.text))]
    return text if len(kept) == len(found) else join_blocks(without_empty(kept))


def without_erased_sentences(text: str, erasure: Erasure) -> str:
    """A text without the sentences that repeat what is erased."""
    parts = _SENTENCE.split(text)
    kept = [part for part in parts if not erasure.is_in(part)]
    return text if len(kept) == len(parts) else " ".join(kept).rstrip("; ")


def without_erased_names(text: str, erasure: Erasure) -> str:
    """A text without the blocks that name nothing but what is erased: for one in which anything may be a person's."""
    found = blocks(text)
    kept = [block for block in found if not _named_only(block.text, erasure)]
    return text if len(kept) == len(found) else join_blocks(without_empty(kept))


def _named_only(text: str, erasure: Erasure) -> bool:
    names = references(text)
    return bool(names) and names <= erasure.names


def _remaining_blocks(
    name: str, text: str, erasure: Erasure, theirs: Collection[str]
) -> tuple[list[Block], dict[str, str]]:
    """What stays of an artifact if any of it goes; and for each block that does or changes what is before it then."""
    kept: list[Block] = []
    moved: dict[str, str] = {}
    before: dict[tuple[str, ...], str] = {}
    if not references(text) & erasure.names and not erasure.is_in(text):
        return kept, moved  # as nearly always: it need not be cut into blocks
    for block in blocks(text):
        left = _remaining_text(name, block, erasure, theirs)
        if left is not None:
            kept.append(block.replace(text=left))
            before[block.path] = left
        if left != block.text:
            moved[block.text] = before.get(block.path, "")
    return without_empty(kept, theirs), moved


def _remaining_text(name: str, block: Block, erasure: Erasure, theirs: Collection[str]) -> str | None:
    """What stays of a block; None: nothing."""
    if _named_only(block.text, erasure):
        return None
    if block.text in theirs or block.text == INTRO:
        return block.text
    if block.level:
        plain = block.text.lstrip("# ").casefold()
        stays = block.level == 1 or name == RAW or plain in _SECTIONS or not erasure.is_in(plain)
        return block.text if stays else None
    if not _is_elsewhere(name, block, erasure) and erasure.is_in(strip_reference(block.text)):
        return None
    return _without_references(block.text, references(block.text) & erasure.names)


def _without_references(text: str, names: Collection[str]) -> str:
    """A block of which some references go: others say the same."""
    return re.sub(rf"record (?:{'|'.join(sorted(names))})(?![0-9a-z])(?:; ?)?", "", text) if names else text


def _is_elsewhere(name: str, block: Block, erasure: Erasure) -> bool:
    """Whether a block is from a session that the erased records were not made from."""
    ours = {plain_line(one) for one in erasure.sessions}
    if name == RAW:
        return not block.path or block.path[-1].lstrip("# ") not in ours
    session = _SESSION.search(block.text)
    return not references(block.text) and session is not None and session[1] not in ours

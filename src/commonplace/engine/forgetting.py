"""Irreversible erasure of records, and of their words in documents that memory has written.

A text about a record usually names it; what a model writes may not.  So a block is removed if it names only erased
records, or if it has a word that occurs only in them.  The documents are rewritten in the same ``apply`` that erases.
Text that users wrote stays, and so do sessions, which are the original source, unless they are erased themselves: a
session goes with everything that was made of it (``erasing`` finds out what that is).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from commonplace.model.changes import (
    AppendChunks,
    Change,
    Delete,
    DeleteChunks,
    DeleteDocuments,
    DeleteJobs,
    Load,
    Outcome,
    PutDocument,
)
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.ids import SHORT
from commonplace.model.ports import Store
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order, Query, Word
from commonplace.model.records import CATEGORIES, Channel, Json, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.text.blocks import INTRO, Block, blocks, join_blocks, references, strip_reference, without_empty
from commonplace.text.cleaning import plain_line
from commonplace.text.words import says_something, terms

TRIES = 5  # while others write the same documents
EVERYTHING = 1_000_000
SAID_MOST = 200  # places of one word that are looked at to find one outside of what is erased
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
    gone: frozenset[str] = frozenset()  #: sessions that are erased whole
    subjects: tuple[frozenset[str], ...] = ()  #: a text that has every term of one of these goes

    @classmethod
    def of(
        cls, ids: Iterable[str], *, words: frozenset[str] = frozenset(), sessions: frozenset[str] = frozenset()
    ) -> Erasure:
        """Of records by their ids."""
        meant = frozenset(ids)
        return cls(ids=meant, names=frozenset(one[:SHORT] for one in meant), words=words, sessions=sessions)

    def is_in(self, text: str) -> bool:
        """Whether a text has any of the words, or speaks of one of the subjects."""
        found = set(terms(text)) if self.words or self.subjects else set()
        return not self.words.isdisjoint(found) or any(subject <= found for subject in self.subjects)


class RemovedTurns(Value):
    """Pieces of a session or a ticket that go, while the rest of it stays."""

    document: Document
    chunks: tuple[Chunk, ...]


class Removal(Value):
    """What goes in one erasure; what follows from it is found by ``erase``."""

    records: tuple[Record, ...] = ()
    rewritten: tuple[tuple[Record, ...], ...] = ()  #: records that stay, each with the versions that it has then
    documents: tuple[Document, ...] = ()  #: sessions and tickets that go whole
    turns: tuple[RemovedTurns, ...] = ()
    texts: tuple[str, ...] = ()  #: what these sessions and turns say, and versions that rewritten records lose
    subjects: tuple[frozenset[str], ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing goes."""
        return not (self.records or self.rewritten or self.documents or self.turns)

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions of which anything goes."""
        return frozenset(one.name for one in (*self.documents, *(turns.document for turns in self.turns)))

    @property
    def scopes(self) -> frozenset[Scope]:
        """Where anything goes."""
        records = (*self.records, *(one[-1] for one in self.rewritten))
        documents = (*self.documents, *(one.document for one in self.turns))
        return frozenset({one.scope for one in records} | {one.scope for one in documents})

    def changes(self, now: datetime, scopes: frozenset[Scope], ids: frozenset[str]) -> list[Change]:
        """The changes that erase it, the records first: its own and the others with these ids."""
        where = Filter(scopes=scopes, at=now, states=ANY_STATE, ids=ids)
        gone: list[Change] = [Delete(where=where)] if ids else []
        gone += [_delete_change(one) for one in self.documents]
        gone += [DeleteJobs(scope=one.scope, keys=frozenset({one.name})) for one in self.documents]
        gone += [_delete_turns(one) for one in self.turns]
        return gone + [Load(versions=kept, terms=_search_terms(kept)) for kept in self.rewritten]


def _delete_turns(turns: RemovedTurns) -> DeleteChunks:
    document, seqs = turns.document, frozenset(chunk.seq for chunk in turns.chunks)
    digest = sha256(f"{document.digest} without {sorted(seqs)}".encode()).hexdigest()
    return DeleteChunks(document=document.replace(digest=digest), seqs=seqs, expect_digest=document.digest)


def _search_terms(versions: Iterable[Record]) -> tuple[tuple[str, ...], ...]:
    from commonplace.engine.admission import search_terms  # noqa: PLC0415 - nearly no erasure rewrites a record

    return tuple(search_terms(version) for version in versions)


def erase(
    store: Store,
    removal: Removal,
    *,
    reads: Collection[Scope],
    now: datetime,
    bury: Callable[[Erasure], Sequence[Change]] = lambda _: (),
) -> tuple[Outcome, Erasure]:
    """Erase records and sessions, what was derived from them alone, and what memory has written about them.

    ``bury`` gives further changes of the same transaction, once it is known what goes: tombstones and a receipt.
    """
    scopes = frozenset().union(*(_repeating_scopes(store, scope) for scope in removal.scopes))
    for left in reversed(range(TRIES)):
        erasure, pairs = _look(store, removal, scopes, reads, now)
        gone, others = (
            removal.changes(now, scopes, erasure.ids),
            [change for pair in pairs for change in _rewrite_changes(*pair)],
        )
        try:
            outcomes = store.apply([*gone, *others, *bury(erasure)])
            outcome = _joined(outcomes, records=bool(erasure.ids))
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
    before = erase(store, Removal(records=tuple(records)), reads=(scope,), now=now)[0] if elsewhere else Outcome()
    documents = DeleteDocuments(where=DocumentFilter(scopes=frozenset({scope})))
    outcome, _ = store.apply([Delete(where=where), documents])
    erasing = outcome.erasing or before.erasing
    gone = (*before.gone, *outcome.gone)
    return outcome.replace(gone=gone, erasing=erasing), Erasure.of(gone)


# Looking


class Preview(Value):
    """What an erasure would do besides what it is about."""

    erasure: Erasure
    gone: tuple[Document, ...]  #: documents of memory that go whole: notes of sessions, artifacts, receipts
    changed: tuple[Document, ...]  #: those that lose lines
    kept: tuple[Document, ...]  #: artifacts in which words of a person stay that speak of it


def preview(store: Store, removal: Removal, *, reads: Collection[Scope], now: datetime) -> Preview:
    """Return what ``erase`` would do; nothing is changed."""
    scopes = frozenset().union(*(_repeating_scopes(store, scope) for scope in removal.scopes))
    erasure, pairs = _look(store, removal, scopes, reads, now)
    return Preview(
        erasure=erasure,
        gone=tuple(one for one, clean in pairs if clean is None),
        changed=tuple(one for one, clean in pairs if clean is not None and clean is not one),
        kept=tuple(one for one, clean in pairs if clean and _still_speaks(clean, erasure)),
    )


def _still_speaks(clean: Document, erasure: Erasure) -> bool:
    """Whether words of a person in an artifact speak of what is erased: those stay."""
    if clean.kind is not DocumentKind.ARTIFACT:
        return False
    owned: Any = clean.metadata.get("owned") or []
    theirs = [one["text"] for one in owned]
    whole = clean.metadata.get("by_hand") is True or clean.name == LEARNED
    return any(map(erasure.is_in, [clean.content or ""] if whole else theirs))


def _look(
    store: Store, removal: Removal, scopes: frozenset[Scope], reads: Collection[Scope], now: datetime
) -> tuple[Erasure, list[tuple[Document, Document | None]]]:
    """Return what goes, and each document of memory as it is then."""
    found = _documents(store, scopes)
    erasure = _erasure(store, removal, found, frozenset({*scopes, *reads}), now)
    return erasure, [(one, clean_document(one, erasure)) for one in found]


def _joined(outcomes: Sequence[Outcome], *, records: bool) -> Outcome:
    """One outcome of several: the ids of the records that went, and whether any bytes are still held."""
    gone = outcomes[0].gone if records else ()
    return Outcome(gone=gone, erasing=any(one.erasing for one in outcomes))


def _repeating_scopes(store: Store, scope: Scope) -> frozenset[Scope]:
    """Return the scopes whose documents can repeat a record: a user's own may come from sessions of any project."""
    projects = [one for one in store.scopes() if one.kind == "project"] if scope.kind == "user" else []
    return frozenset({scope, *projects})


def _documents(store: Store, scopes: frozenset[Scope]) -> list[Document]:
    return store.documents(DocumentFilter(scopes=scopes, kinds=REPEATING), limit=EVERYTHING)


def _erasure(
    store: Store, removal: Removal, found: Sequence[Document], scopes: frozenset[Scope], now: datetime
) -> Erasure:
    where = Filter(scopes=scopes, at=now, states=ANY_STATE)
    ids = with_derived(store, frozenset(record.id for record in removal.records), where)
    gone = frozenset(one.name for one in removal.documents)
    if not found:
        return Erasure.of(ids).replace(gone=gone, subjects=removal.subjects)
    erased = store.find(where.replace(ids=ids, versions=True), order=Order.ID, limit=EVERYTHING) if ids else []
    after = {versions[-1].id: versions[-1] for versions in removal.rewritten}
    rest = [one for one in store.find(where, order=Order.ID, limit=EVERYTHING) if one.id not in ids]
    others = (after.get(one.id, one) for one in rest if not _is_proposed_skill(one))
    sessions = frozenset(one.name for one in found if one.kind is DocumentKind.EXTRACTION and ids & _record_ids(one))
    words = words_only_in([*map(_record_text, erased), *removal.texts], map(_record_text, others))
    if removal.texts:
        words = _not_said_elsewhere(store, words, removal, found, where)
    erasure = Erasure.of(ids, words=words, sessions=sessions | removal.sessions)
    repeating = {one.id for one in rest if _is_proposed_skill(one) and erasure.is_in(one.content)}
    named = Erasure.of(ids | repeating, words=words, sessions=sessions | removal.sessions)
    return named.replace(gone=gone, subjects=removal.subjects)


def _is_proposed_skill(record: Record) -> bool:
    """Whether a model made it of what it read, and it still waits: such text repeats records and is nobody's word."""
    return record.held and record.source.channel is Channel.CONSOLIDATION


def _not_said_elsewhere(
    store: Store, words: frozenset[str], removal: Removal, found: Sequence[Document], where: Filter
) -> frozenset[str]:
    """Return the words of erased sessions that memory's documents repeat, and that no other session says."""
    repeated = {term for one in found for term in terms(f"{one.content or ''} {_plain_texts(one.metadata)}")}
    others = (one for one in found if one.kind is DocumentKind.EXTRACTION and one.name not in removal.sessions)
    left = (words & repeated).difference(*(terms(f"{one.content or ''}") for one in others))
    chunks = where.replace(records=False, chunks=True)
    return frozenset(word for word in left if not _is_said(store, word, removal, chunks))


def _is_said(store: Store, word: str, removal: Removal, where: Filter) -> bool:
    """Whether a session that stays says a word."""
    query = Query(text=word, words=(Word(text=word, terms=((word,),)),))
    erased = {(chunk.id, chunk.seq) for turns in removal.turns for chunk in turns.chunks}
    whole = {one.name for one in removal.documents}
    said = [match.chunk for match in store.match(where, query, limit=SAID_MOST) if match.chunk]
    return any(one.document not in whole and (one.id, one.seq) not in erased for one in said)


def _plain_texts(value: Any) -> str:
    """Every text in metadata."""
    if isinstance(value, str):
        return value
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return " ".join(filter(None, map(_plain_texts, inside)))


def with_derived(store: Store, meant: frozenset[str], where: Filter) -> frozenset[str]:
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
    if document.kind is DocumentKind.EXTRACTION and document.name in erasure.gone:
        new = None
    elif document.kind is DocumentKind.EXTRACTION:
        new = _clean_extraction(document.name, text, metadata, erasure)
    elif document.kind is DocumentKind.ARTIFACT:
        new = clean_artifact(document.name, text, metadata, erasure)
    elif metadata.get("session") in erasure.gone:
        new = None  # what a session was shown
    else:
        new = _less_sessions(text, _clean_receipt(metadata, erasure), erasure.gone)
    if new is None or new == (text, dict(metadata)):
        return None if new is None else document
    digest = sha256(f"{new[0]}\x1f{new[1]!r}".encode()).hexdigest()
    return document.replace(content=new[0] or None, metadata=new[1], digest=digest)


def _clean_extraction(
    name: str, text: str, metadata: Mapping[str, Any], erasure: Erasure
) -> tuple[str, dict[str, Json]]:
    """What was made of a session; what was forgotten stays known by its digest alone, so that it is not made again."""
    if name not in erasure.sessions and not erasure.subjects:
        return text, dict(metadata)
    slug, made = metadata.get("slug"), metadata.get("records") or []
    return without_erased_blocks(text, erasure), {
        **metadata,
        "summary": without_erased_sentences(str(metadata.get("summary") or ""), erasure),
        "slug": None if slug and erasure.is_in(slug.replace("_", " ")) else slug,
        "records": [one for one in made if one not in erasure.ids],
    } | _clean_requests(metadata, erasure)


def _clean_requests(metadata: Mapping[str, Any], erasure: Erasure) -> dict[str, Json]:
    """The requests to remember that were refused, without those that say what is erased."""
    refused = metadata.get("not_kept")
    return {"not_kept": [one for one in refused if not erasure.is_in(str(one["quote"]))]} if refused else {}


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
    if session in {plain_line(one) for one in erasure.gone}:
        return True
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


def _less_sessions(text: str, metadata: dict[str, Json], gone: Collection[str]) -> tuple[str, dict[str, Json]]:
    """A receipt without the lines and entries that name a session which is erased."""
    if not gone:
        return text, metadata
    named = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, sorted(gone)))})(?!\w)")
    lines = [line for line in text.split("\n") if not named.search(line)]
    return "\n".join(lines), {name: _less_named(item, named) for name, item in metadata.items()}


def _less_named(value: Json, named: re.Pattern[str]) -> Json:
    """JSON without the texts and list entries in which a name stands, and without what stands behind one."""
    if isinstance(value, str):
        return "" if named.search(value) else value
    if isinstance(value, list):
        left = (item for item in value if not (isinstance(item, str | dict) and named.search(_plain_texts(item))))
        return [_less_named(item, named) for item in left]
    if isinstance(value, dict):
        return {key: _less_named(item, named) for key, item in value.items() if not named.search(key)}
    return value


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
    tells = references(text) & erasure.names or erasure.is_in(text) or any(one in text for one in erasure.gone)
    if not tells:
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
    if _named_only(block.text, erasure) or _is_of_gone(name, block, erasure):
        return None
    if block.text in theirs or block.text == INTRO:
        return block.text
    if block.level:
        plain = block.text.lstrip("# ").casefold()
        stays = block.level == 1 or name == RAW or plain in _SECTIONS or not erasure.is_in(plain)
        return block.text if stays else None
    if not _is_elsewhere(name, block, erasure) and erasure.is_in(strip_reference(block.text)):
        return None
    left = _without_references(block.text, references(block.text) & erasure.names)
    return _without_sessions(left, erasure.gone)


def _is_of_gone(name: str, block: Block, erasure: Erasure) -> bool:
    """Whether a block was made of a session that is erased whole."""
    gone = {plain_line(one) for one in erasure.gone}
    if name == RAW and any(line.lstrip("# ") in gone for line in (*block.path, block.text if block.level else "")):
        return True
    session = _SESSION.search(block.text)
    return session is not None and session[1].partition("#")[0] in gone and not references(block.text)


def _without_references(text: str, names: Collection[str]) -> str:
    """A block of which some references go: others say the same."""
    return re.sub(rf"record (?:{'|'.join(sorted(names))})(?![0-9a-z])(?:; ?)?", "", text) if names else text


def _without_sessions(text: str, gone: Collection[str]) -> str:
    """A block that names sessions which go as its origin: what it says comes from others as well."""
    for name in sorted(map(plain_line, gone)):
        text = re.sub(rf"session:{re.escape(name)}(?:#[^\s;()]*)?(?:; ?|(?=\)))", "", text)
    return text


def _is_elsewhere(name: str, block: Block, erasure: Erasure) -> bool:
    """Whether a block is from a session that the erased records were not made from."""
    ours = {plain_line(one) for one in erasure.sessions}
    if name == RAW:
        return not block.path or block.path[-1].lstrip("# ") not in ours
    session = _SESSION.search(block.text)
    return not references(block.text) and session is not None and session[1] not in ours

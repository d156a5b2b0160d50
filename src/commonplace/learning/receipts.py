"""Receipts of what sessions were shown, and what became of it.

A receipt names records with the version that was shown, turns and artifacts, and holds no word of them: digests under
this store's key say whether they have changed, and what is forgotten stays forgotten.  ``session_use`` compares the
receipts of a session with what its agent then wrote: a citation names a thing, an echo only repeats its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from commonplace.app import App
from commonplace.engine.admission import Gate
from commonplace.engine.memory import Memory
from commonplace.engine.rendering import keyed_digest, remove_fenced
from commonplace.files.artifacts import SUMMARY
from commonplace.learning.addresses import SCHEME, address
from commonplace.learning.brief import Injection, injection_json
from commonplace.learning.brief_layout import Part, shown_items
from commonplace.model.changes import Change, PutDocument, TrimDocuments
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import InvalidInput, NotFound, StoreError, StoreReadOnly
from commonplace.model.ids import SHORT, new_id
from commonplace.model.ports import Store
from commonplace.model.queries import DocumentFilter, Hit
from commonplace.model.records import Channel, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.uses import ItemUse, Receipt, SessionUse, ShownItem
from commonplace.text.cleaning import one_line

KEEP = 500  # of each sort in one project: months of work, and less than a megabyte
UNKNOWN = "unknown"  # the session of a brief that was asked for without one
INJECTION, RECALL = "injection", "recall"  # what a session was given before it began, and what it asked for itself
SESSION_CHARS = 200
RECEIPTS_READ = 10_000  # of all sorts, when those of a session are looked for
CHUNKS_READ = 500  # at once
ECHO_WORDS = 6  # in a row: fewer are repeated by chance
ECHO_LEAST = 4  # a note of fewer words cannot be distinguished from talk
ASSISTANT = "assistant"

_ADDRESS = re.compile(r"memory://[^\s()\[\]<>\"'`,;]+")
_ID = re.compile(rf"(?<![0-9a-z])[0-9a-hjkmnp-tv-z]{{{SHORT},20}}(?![0-9a-z])")
_ARTIFACT = re.compile(rf"(?<![\w./-])(?:MEMORY\.md|{re.escape(SUMMARY)}|learned\.md|skills/[\w.-]+/SKILL\.md)(?!\w)")
_CHUNK = re.compile(r"(?<!\w)(?:session|ticket):[^\s()\[\]<>\"'`,;]+#[\w.-]*\w")


def save_brief_receipt(app: App, injection: Injection, *, session: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Save a receipt of a brief if that can be done; returns its name, and what the caller should know.

    A store that can only be read still answers, with a note; of an empty brief there is no receipt.  Being shown is not
    counted as use: use moves the ranking, and the same brief a minute later would have other bytes.
    """
    if not injection.text:
        return None, ()
    try:
        return save_receipt(app, _items(injection, app.secret()), session=session), ()
    except StoreReadOnly:  # the store's own notice says so
        return None, app.store.take_notices()
    except StoreError as error:
        return None, (f"no receipt of this brief was saved: {error}",)


def save_recall_receipt(
    app: App, query: str, hits: Sequence[Hit], *, tokens: int, session: str | None
) -> tuple[str | None, tuple[str, ...]]:
    """Save a receipt of what a session recalled, likewise; of a recall without hits or session there is none."""
    if not hits or not session:
        return None, ()
    items = shown_items(query, hits, secret=app.secret(), tokens=tokens)
    try:
        return save_receipt(app, items, session=session, what=RECALL), ()
    except StoreReadOnly:  # likewise
        return None, app.store.take_notices()
    except StoreError as error:
        return None, (f"no receipt of this recall was saved: {error}",)


def save_receipt(app: App, items: Mapping[str, Any], *, session: str | None, what: str = INJECTION) -> str:
    """Save a receipt of things whose digests were taken when they were shown; returns its name.

    ``items`` are as ``shown_items`` makes them.  Raises ``StoreError``.
    """
    scope, now = app.memory.binding.reads[0], app.clock()
    who = _session(session or UNKNOWN, app.secret())
    name = f"{what}/{who}/{new_id(now)}"
    document = _document({"session": who, **items}, name, scope=scope, now=now)
    known = [receipt.name for receipt in _receipts(app.store, frozenset({scope})) if receipt.what == what]
    changes: list[Change] = [PutDocument(document=document)]
    if len(known) >= KEEP:
        where = DocumentFilter(
            scopes=frozenset({scope}), kinds=frozenset({DocumentKind.RECEIPT}), names=frozenset({*known, name})
        )
        changes.append(TrimDocuments(where=where, keep=KEEP))
    with app.store.without_waiting():  # who asks for memory waits for no writer
        app.store.apply(changes)
    return name


def list_receipts(memory: Memory) -> list[Receipt]:
    """Return the receipts of what sessions were shown, newest first."""
    return _receipts(memory.store, frozenset(memory.binding.reads))


def session_use(memory: Memory, session: str) -> SessionUse:
    """What a session was shown, what it cited and what it only repeated."""
    scopes = frozenset(memory.binding.reads)
    shown = [receipt for receipt in _receipts(memory.store, scopes) if receipt.session == session]
    spoken = session_turns(memory, session)
    indexed, turns = spoken is not None, spoken or {}
    if not shown and not indexed:
        raise NotFound(f"nothing is known of session {session!r}: it was shown nothing, and it is not indexed")
    items = {(item.kind, item.id, item.version): item for receipt in shown for item in receipt.items}
    uses = tuple(item_use(memory, item, turns, known=indexed) for item in items.values())
    return SessionUse(
        session=session, shown=tuple(sorted(shown, key=lambda receipt: receipt.name)), uses=uses, indexed=indexed,
        others=_others(turns, [item.id for item in items.values()]),
    )  # fmt: skip


def record_uses(memory: Memory, id: str, *, limit: int) -> list[tuple[Receipt, ItemUse]]:
    """Return the receipts that show a record, newest first, and what became of it in their sessions."""
    shown = [
        (receipt, item)
        for receipt in sorted(list_receipts(memory), key=lambda one: one.at, reverse=True)
        for item in receipt.items
        if item.kind == "record" and item.id == id
    ][:limit]
    turns = {receipt.session: session_turns(memory, receipt.session) for receipt, _ in shown}
    return [
        (receipt, item_use(memory, item, turns[receipt.session] or {}, known=turns[receipt.session] is not None))
        for receipt, item in shown
    ]


def session_turns(memory: Memory, session: str) -> dict[str, str] | None:
    """Return the text of the agent in a session by turn; None: the session is not indexed."""
    where = DocumentFilter(
        scopes=frozenset(memory.binding.reads), kinds=frozenset({DocumentKind.SESSION}), names=frozenset({session})
    )
    return agent_turns(memory.store, where) if memory.store.documents(where, limit=1) else None


# Saving


def _session(session: str, secret: bytes) -> str:
    name = one_line(Gate(secret).text(session, what="the session"))
    if not name or len(name) > SESSION_CHARS:
        raise InvalidInput(f"{session[:40]!r} cannot name a session: it is blank or has over {SESSION_CHARS} letters")
    return name


def _items(injection: Injection, secret: bytes) -> Mapping[str, Any]:
    """What an injection showed, without a word of it."""
    block = injection.guidance
    texts = {hit.id: hit.text for hit in block.hits}
    seen = injection_json(injection)
    return {
        "query": keyed_digest(injection.query, secret),
        "budget": injection.budget,
        "tokens": block.tokens,
        "block": keyed_digest(block.text, secret),
        "summary_budget": block.texts_budget,
        "order": [note.id for note in block.shown],
        "parts": {note.id: note.part.value for note in block.shown},
        "scores": {note.id: note.hit.score for note in block.shown if note.part is Part.MATCHING},
        "starts": {note.id: note.start for note in block.shown if note.start},
        "newer": {note.id: note.newer for note in block.shown if note.newer},
        "records": [
            {"id": one["id"], "version": one["version"], "digest": keyed_digest(texts[one["id"]], secret)}
            for one in seen["records"]
        ],
        "turns": [{"id": one, "digest": keyed_digest(texts[one], secret)} for one in seen["chunks"]],
        "artifacts": [{"id": page.url, "digest": keyed_digest(page.text, secret)} for page in injection.texts],
    }


def _document(metadata: Mapping[str, Any], name: str, *, scope: Scope, now: datetime) -> Document:
    return Document(
        scope=scope, kind=DocumentKind.RECEIPT, name=name, digest=sha256(repr(metadata).encode()).hexdigest(),
        metadata=metadata, source=Source(channel=Channel.AGENT, ref=metadata["session"]), trust=Trust.AGENT,
        created_at=now, updated_at=now,
    )  # fmt: skip


def _receipts(store: Store, scopes: frozenset[Scope]) -> list[Receipt]:
    where = DocumentFilter(scopes=scopes, kinds=frozenset({DocumentKind.RECEIPT}))
    found = store.documents(where, limit=RECEIPTS_READ)
    return [_to_receipt(one) for one in found if one.name.partition("/")[0] in (INJECTION, RECALL)]


def _to_receipt(document: Document) -> Receipt:
    spoken: Any = document.metadata
    items = [
        ShownItem(kind=kind, id=one["id"], version=one.get("version"), digest=one["digest"])
        for kind, name in (("record", "records"), ("turn", "turns"), ("artifact", "artifacts"))
        for one in spoken[name]
    ]
    return Receipt(
        name=document.name, what=document.name.partition("/")[0], session=spoken["session"], at=document.created_at,
        tokens=spoken["tokens"], items=tuple(items), order=tuple(spoken.get("order", ())),
        parts=spoken.get("parts", {}), scores=spoken.get("scores", {}), starts=spoken.get("starts", {}),
        newer=spoken.get("newer", {}),
        summary_budget=spoken.get("summary_budget", 0), block=spoken.get("block"),
    )  # fmt: skip


# Comparing


def agent_turns(store: Store, where: DocumentFilter) -> dict[str, str]:
    """The text of the agent by turn, without what memory injected."""
    spoken: dict[str, list[str]] = {}
    for chunk in _chunks(store, where):
        if chunk.speaker == ASSISTANT:
            spoken.setdefault(chunk.ref.partition(".")[0], []).append(chunk.text)
    return {ref: remove_fenced("\n".join(texts)) for ref, texts in spoken.items()}


def _chunks(store: Store, where: DocumentFilter) -> Iterator[Chunk]:
    after = -1
    while page := store.chunks(where, limit=CHUNKS_READ, after=after):
        yield from page
        after = page[-1].seq


def item_use(memory: Memory, item: ShownItem, turns: dict[str, str], *, known: bool) -> ItemUse:
    """Return what became of an item in the turns of its session; ``known``: whether those are known."""
    text, current = _LOOKED_UP[item.kind](memory, item)
    cited = tuple(ref for ref, spoken in turns.items() if _is_cited(item, spoken))
    echoed = tuple(ref for ref, spoken in turns.items() if text and ref not in cited and _is_echoed(text, spoken))
    return ItemUse(item=item, text=text, current=current, cited=cited, echoed=echoed, known=known)


def _record_text(memory: Memory, item: ShownItem) -> tuple[str | None, int | None]:
    try:
        versions = memory.history(item.id)
    except NotFound:
        return None, None
    then = next((record.content for record in versions if record.version == item.version), None)
    return then, versions[0].version


def _turn_text(memory: Memory, item: ShownItem) -> tuple[str | None, int | None]:
    kind, _, rest = item.id.partition(":")
    document, _, ref = rest.rpartition("#")
    where = DocumentFilter(scopes=frozenset(memory.binding.reads), kinds=frozenset({kind}), names=frozenset({document}))
    return next((chunk.text for chunk in _chunks(memory.store, where) if chunk.ref == ref), None), None


def _artifact_text(_memory: Memory, _item: ShownItem) -> tuple[str | None, int | None]:
    """An artifact of several pages is repeated somewhere by chance: only a citation counts."""
    return None, None


_LOOKED_UP: dict[str, Callable[[Memory, ShownItem], tuple[str | None, int | None]]] = {
    "record": _record_text, "turn": _turn_text, "artifact": _artifact_text,
}  # fmt: skip


def _is_cited(item: ShownItem, spoken: str) -> bool:
    if item.kind == "record":
        return any(item.id.startswith(named) for named in _ID.findall(spoken.lower()))
    if item.kind == "turn":
        return item.id in _CHUNK.findall(spoken)
    return item.id in _addresses(spoken)


def _addresses(spoken: str) -> list[str]:
    """The artifacts that a text names, by address or by path, as addresses."""
    urls = [url.rstrip(".:!?*_") for url in _ADDRESS.findall(spoken)]
    plain = [address(SUMMARY) if url == f"{SCHEME}root/{SUMMARY}" else url for url in urls]
    return plain + [address(path) for path in _ARTIFACT.findall(spoken)]


def _is_echoed(text: str, spoken: str) -> bool:
    words = _words(text)
    length = min(ECHO_WORDS, len(words))
    return length >= ECHO_LEAST and not _runs(words, length).isdisjoint(_runs(_words(spoken), length))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + length]) for at in range(len(words) - length + 1)}


def _others(turns: dict[str, str], shown: Sequence[str]) -> tuple[str, ...]:
    named = [url for spoken in turns.values() for url in _addresses(spoken)]
    return tuple(dict.fromkeys(url for url in named if not _was_shown(url, shown)))


def _was_shown(url: str, shown: Sequence[str]) -> bool:
    named = url.removeprefix(SCHEME)
    return url in shown or (len(named) >= SHORT and any(one.startswith(named) for one in shown))

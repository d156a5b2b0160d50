"""Indexed sessions as people look at them: a list, and one of them turn by turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from commonplace.engine.memory import Memory
from commonplace.engine.transcripts import join_chunks
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Record
from commonplace.records.insight_verbs import MadeRecord
from commonplace.records.verbs import SessionSummary, ShownSession, SpokenTurn
from commonplace.text.cleaning import one_line

EVERYTHING = 1_000_000
LOOKED_THROUGH = 500  # sessions whose first words are compared
TITLE_CHARS = 80
FIRST_CHUNKS = 20  # of a session, among which its title is looked for
PERSON = "user"
#: Where hosts keep their transcripts, for sessions that were indexed before the host was noted.
_FOLDERS = {
    "/.claude/": "claude-code", "/.codex/": "codex", "/.gemini/": "gemini", "/.pi/": "pi", "/opencode/": "opencode",
    "/taken-down/": "cursor",
}  # fmt: skip


def list_sessions(
    memory: Memory, *, since: datetime | None = None, host: str | None = None, words: str | None = None,
    before: str | None = None, limit: int = EVERYTHING,
) -> list[SessionSummary]:  # fmt: skip
    """Return the sessions that a memory may read, newest first; ``before`` is the last one of the page before."""
    documents = [
        one for one in _documents(memory)
        if (since is None or one.updated_at >= since) and (host is None or session_host(one) == host)
    ]  # fmt: skip
    at = next((place for place, one in enumerate(documents, start=1) if one.name == before), 0)
    titles = {one.name: _title(memory, one) for one in documents[:LOOKED_THROUGH]} if words else {}
    wanted = (words or "").casefold()
    chosen = [one for one in documents[at:] if not words or wanted in titles.get(one.name, "").casefold()][:limit]
    learned = _learned(memory, chosen)
    return [_summary(memory, one, learned) for one in chosen]


def show_session(memory: Memory, id: str) -> ShownSession:
    """Return one session with its turns, by its id or a beginning of it that no other shares."""
    document = find_session(memory, id)
    turns = join_chunks(memory.store.chunks(_only(document), limit=EVERYTHING))
    spoken = tuple(SpokenTurn(ref=one.ref, speaker=one.speaker, at=one.occurred_at, text=one.text) for one in turns)
    summary = _summary(memory, document, _learned(memory, [document]))
    return ShownSession(session=summary.replace(turns=len(spoken)), turns=spoken)


def list_made(memory: Memory, document: Document) -> list[MadeRecord]:
    """Return the records that were learned from a session and are there, with the turns that they rest on."""
    names = frozenset({document.name})
    where = DocumentFilter(
        scopes=frozenset({document.scope}), kinds=frozenset({DocumentKind.EXTRACTION.value}), names=names
    )
    listed = [one.metadata.get("records") for one in memory.store.documents(where, limit=1)]
    ids = frozenset(str(id_) for found in listed if isinstance(found, list) for id_ in found)
    if not ids:
        return []
    meant = Filter(scopes=frozenset(memory.binding.reads), at=memory.clock(), states=ANY_STATE, ids=ids)
    records = memory.store.find(meant, order=Order.OLDEST, limit=EVERYTHING)
    return [MadeRecord(record=one, turns=tuple(_turns_of(one, document))) for one in records]


def _turns_of(record: Record, document: Document) -> list[str]:
    evidence = record.metadata.get("evidence")
    refs = [record.source.ref, *(map(str, evidence) if isinstance(evidence, list) else [])]
    head = f"{document.kind}:{document.name}#"
    return list(dict.fromkeys(ref.removeprefix(head).partition(".")[0] for ref in refs if ref and ref.startswith(head)))


def find_session(memory: Memory, id: str) -> Document:
    """Return the document of a session; raises ``NotFound``, and ``InvalidInput`` if several begin like that."""
    wanted = id.strip().removeprefix("session:")
    documents = _documents(memory)
    found = [one for one in documents if one.name == wanted] or [
        one for one in documents if wanted and one.name.startswith(wanted)
    ]
    if not found:
        raise NotFound(f"there is no session {id!r}; `commonplace session list` shows what is indexed")
    if len(found) > 1:
        several = ", ".join(one.name for one in found[:3])
        raise InvalidInput(f"{id!r} begins the ids of several sessions: {several}")
    return found[0]


def session_host(document: Document) -> str | None:
    """Return the coding agent that a session is of."""
    host, file = document.metadata.get("host"), document.metadata.get("file")
    if isinstance(host, str):
        return host
    return next((name for part, name in _FOLDERS.items() if isinstance(file, str) and part in file), None)


def _documents(memory: Memory) -> list[Document]:
    return memory.store.documents(_filter(memory, DocumentKind.SESSION), limit=EVERYTHING)


def _filter(memory: Memory, kind: DocumentKind) -> DocumentFilter:
    return DocumentFilter(scopes=frozenset(memory.binding.reads), kinds=frozenset({kind.value}))


def _only(document: Document) -> DocumentFilter:
    return DocumentFilter(
        scopes=frozenset({document.scope}), kinds=frozenset({document.kind.value}), names=frozenset({document.name})
    )


def _learned(memory: Memory, documents: Sequence[Document]) -> frozenset[str]:
    """Return those sessions that were learned from: a job of theirs is done, or there is an extraction."""
    if not documents:
        return frozenset()
    done = {
        one.job.key
        for one in memory.store.jobs(memory.binding.reads, now=memory.clock())
        if one.job.kind == "extract" and one.done is not None
    }
    made = memory.store.documents(
        _filter(memory, DocumentKind.EXTRACTION).replace(names=frozenset(one.name for one in documents)),
        limit=EVERYTHING,
    )
    return frozenset(done | {one.name for one in made})


def _summary(memory: Memory, document: Document, learned: Iterable[str]) -> SessionSummary:
    held = document.metadata
    turns, started, file = held.get("turns"), held.get("started"), held.get("file")
    return SessionSummary(
        id=document.name, host=session_host(document), scope=document.scope,
        started=datetime.fromisoformat(started) if isinstance(started, str) else None, updated=document.updated_at,
        turns=turns if isinstance(turns, int) else _count_turns(memory, document), title=_title(memory, document),
        learned=document.name in frozenset(learned), file=file if isinstance(file, str) else None,
    )  # fmt: skip


def _title(memory: Memory, document: Document) -> str:
    """Return the first words of a person in a session."""
    first = memory.store.chunks(_only(document), limit=FIRST_CHUNKS)
    return _shorten(next((chunk.text for chunk in first if chunk.speaker == PERSON), first[0].text if first else ""))


def _count_turns(memory: Memory, document: Document) -> int:
    return len(join_chunks(memory.store.chunks(_only(document), limit=EVERYTHING)))


def _shorten(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"

"""Forget on a person's request, wherever it lies on this machine: what is meant, a preview, the erasure, a report.

The store forgets in one transaction (``engine.erasing``).  What lies beside it follows: files of records and artifacts,
what hooks have written, work that was prepared for an agent, and our own backups, each of which is opened and erased in
as well.  What cannot be rewritten is named, and so is what is not ours: an agent's own transcript, a commit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from commonplace.app import App
from commonplace.engine.erasing import (
    Eraser,
    ErasureReceipt,
    Target,
    erased_texts,
    list_receipts,
    select,
)
from commonplace.engine.forgetting import Removal
from commonplace.engine.memory import Memory
from commonplace.engine.tombstones import INDEXED, owners_named, text_digest
from commonplace.files import disk
from commonplace.files.codec import FILE_BYTES, file_name
from commonplace.hosts import forget_session_files
from commonplace.learning import forget_prepared
from commonplace.model.changes import DropFiles, LiftTombstones
from commonplace.model.documents import Document, FileState
from commonplace.model.errors import InvalidInput, NotFound
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Hit, Order
from commonplace.model.records import Channel, Record
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.records.erasure_copies import CopyReport, erase_in_copies
from commonplace.records.sessions import session_host
from commonplace.text.words import says_something, terms

EVERYTHING = 1_000_000


class Forgotten(Value):
    """The report of an erasure."""

    receipt: ErasureReceipt
    copies: tuple[CopyReport, ...] = ()
    files: tuple[str, ...] = ()  #: of hooks and of prepared work, removed or rewritten
    elsewhere: tuple[str, ...] = ()  #: transcripts of agents that still say it: they are not ours

    @property
    def notes(self) -> tuple[str, ...]:
        """Where it may still be, as sentences."""
        held = [f"{one.path} may still hold it ({one.trouble}); remove that file" for one in self.copies if one.trouble]
        theirs = [
            f"the transcript {path} is not ours and was left as it is: it still says it" for path in self.elsewhere
        ]
        return (*held, *theirs)


# What is meant


def target_of(
    app: App,
    *,
    ids: Iterable[str] = (),
    sessions: Iterable[str] = (),
    sources: Iterable[str] = (),
    subjects: Iterable[str] = (),
    hits: Sequence[Hit] = (),
) -> Target:
    """Return what a person's words mean; raises ``NotFound`` and ``InvalidInput``."""
    records = [app.memory.get(one) for one in ids]
    named = [document for name in sessions for document in _documents_named(app.memory, name)]
    given = frozenset(sources)
    hosted = [one for one in _indexed(app.memory) if session_host(one) in given]
    return Target(
        ids=frozenset(one.id for one in (*records, *(hit.record for hit in hits if hit.record))),
        sessions=frozenset(f"{one.kind}:{one.name}" for one in (*named, *hosted)),
        turns=frozenset(hit.chunk.id for hit in hits if hit.chunk),
        sources=given | frozenset(os.path.realpath(one) for one in given if os.path.exists(one)),
        subjects=tuple(_subject(words) for words in subjects),
    )


def _subject(words: str) -> frozenset[str]:
    if not says_something(words):
        raise InvalidInput(f"{words!r} names no subject: every word of it stands in nearly any text")
    return frozenset(term for token in words.split() if says_something(token) for term in terms(token))


def _documents_named(memory: Memory, name: str) -> list[Document]:
    kind, _, rest = name.partition(":")
    plain = rest if kind in set(INDEXED) else name
    documents = _indexed(memory)
    found = [one for one in documents if one.name == plain] or [
        one for one in documents if plain and one.name.startswith(plain)
    ]
    if not found:
        raise NotFound(f"there is no session {name!r}; `commonplace session list` shows what is indexed")
    if len({one.name for one in found}) > 1:
        several = ", ".join(one.name for one in found[:3])
        raise InvalidInput(f"{name!r} begins the ids of several sessions: {several}")
    return found


def _indexed(memory: Memory) -> list[Document]:
    kinds = frozenset(kind.value for kind in INDEXED)
    return memory.store.documents(DocumentFilter(scopes=frozenset(memory.binding.reads), kinds=kinds), limit=EVERYTHING)


def find_removal(memory: Memory, target: Target) -> Removal:
    """Return everything that a target means in a memory, with what was made of it."""
    scopes = [scope for scope in memory.binding.reads if memory.binding.may_write(scope)] or memory.binding.reads
    return select(memory.store, target, scopes, memory.clock())


def turns_saying(memory: Memory, records: Sequence[Record]) -> list[str]:
    """Return the turns of indexed sessions that some records were learned from: recall still finds those."""
    indexed = {f"{one.kind}:{one.name}" for one in _indexed(memory)}
    found: dict[str, None] = {}
    for record in records:
        evidence = record.metadata.get("evidence")
        refs = [record.source.ref, *(evidence if isinstance(evidence, list) else [])]
        found |= {str(ref): None for ref in refs if ref and str(ref).partition("#")[0] in indexed and "#" in str(ref)}
    return list(found)


# Erasing


def forget(app: App, memory: Memory, target: Target, *, progress: ProgressCallback = no_progress) -> Forgotten:
    """Erase what a memory of the app holds of a target, in the files that follow the store, and in our own backups."""
    removal = find_removal(memory, target)
    if removal.is_empty:
        raise NotFound("nothing that is stored here is meant by that; nothing was erased")
    texts = erased_texts(app.store, removal, app.clock())
    scopes = frozenset({*memory.binding.reads, *removal.scopes})
    names = _file_names(app, removal)
    receipt, erasure = eraser_of(app.memory, by=_who(app)).carry_out(removal, sources=_lasting_sources(app, target))
    app.memory.erased(erasure)
    if removal.rewritten:
        _rename_files(app, names)
        app.catch_up()
    app.store.settle()
    sessions = removal.sessions
    files = (
        *_remove_elsewhere(app, erasure.ids),
        *forget_session_files(app.where.home, sessions),
        *forget_prepared(app.where.home, sessions),
    )
    wider = _wider_target(target, removal, ids=erasure.ids, texts=_buried(app, texts, scopes, receipt))
    copies = tuple(erase_in_copies(app, wider, scopes, progress))
    if not app.scrub():  # the paths of files held words as well
        receipt = receipt.replace(pending=True)
    return Forgotten(receipt=receipt, copies=copies, files=files, elsewhere=tuple(_elsewhere(removal)))


def _buried(app: App, texts: Iterable[str], scopes: Iterable[Scope], receipt: ErasureReceipt) -> frozenset[str]:
    """Return the texts that nothing says any more: what another record says too stays in copies as well."""
    digests, secret = set(receipt.digests), app.secret()
    return frozenset(text for text in texts if any(text_digest(scope, text, secret) in digests for scope in scopes))


def _wider_target(target: Target, removal: Removal, *, ids: frozenset[str], texts: frozenset[str]) -> Target:
    """Return a target with what it came to here: a copy may know less, or other things, of the same."""
    return target.replace(
        ids=target.ids | ids, texts=texts,
        sessions=target.sessions | {f"{one.kind}:{one.name}" for one in removal.documents},
        turns=target.turns | {chunk.id for one in removal.turns for chunk in one.chunks},
    )  # fmt: skip


def session_target(document: Document, *, keep_approved: bool = False) -> Target:
    """Return the target that a session or a ticket is; ``keep_approved`` spares what a person has approved."""
    return Target(sessions=frozenset({f"{document.kind}:{document.name}"}), keep_approved=keep_approved)


def erase_document(memory: Memory, document: Document, *, keep_approved: bool = False) -> ErasureReceipt:
    """Erase a session in a memory without files."""
    removal = find_removal(memory, session_target(document, keep_approved=keep_approved))
    receipt, erasure = eraser_of(memory, by=memory.binding.channel).carry_out(removal)
    memory.erased(erasure)
    return receipt


def eraser_of(memory: Memory, *, by: str) -> Eraser:
    """Return what erases in a memory, as its caller."""
    return Eraser(memory.store, reads=memory.binding.reads, secret=memory.secret, clock=memory.clock, by=by)


def _who(app: App) -> str:
    return f"{app.binding.channel} {app.where.assistant.name}"


def _lasting_sources(app: App, target: Target) -> frozenset[str]:
    """Return the sources that must not come in again: files and addresses; a channel or an agent goes on."""
    hosts = {session_host(one) for one in _indexed(app.memory)}
    return frozenset(one for one in target.sources if one not in {*Channel, *hosts})


def _elsewhere(removal: Removal) -> Iterator[str]:
    for document in (*removal.documents, *(one.document for one in removal.turns)):
        file = document.metadata.get("file")
        if isinstance(file, str) and os.path.exists(file):
            yield file


def _file_names(app: App, removal: Removal) -> dict[str, set[str]]:
    """Return the names that files of records which stay were given by us, of any version."""
    ids = frozenset(versions[-1].id for versions in removal.rewritten)
    where = Filter(scopes=removal.scopes, at=app.clock(), states=ANY_STATE, ids=ids, versions=True)
    found: dict[str, set[str]] = {}
    for version in app.store.find(where, order=Order.ID, limit=EVERYTHING) if ids else ():
        found.setdefault(version.id, set()).add(os.path.basename(file_name(version)))
    return found


def _rename_files(app: App, names: Mapping[str, set[str]]) -> None:
    """Name files anew whose names are the words of a version that went; what a person has called otherwise stays."""
    records = {id_: record for id_ in names if (record := app.store.get(id_))}
    for id_, path in app.store.references(records.values()).items():
        record = records[id_]
        folder = app.store.folders.get(record.scope)
        if folder and os.path.basename(path) in names[id_] - {os.path.basename(file_name(record))}:
            app.store.write(folder, id_, at=os.path.relpath(path, folder), to=file_name(record))


def _remove_elsewhere(app: App, ids: frozenset[str]) -> list[str]:
    """Remove the files of erased records from other folders that this machine mirrors: worktrees, other clones.

    One that a person has changed since it was written is theirs and stays; the next sync there names it.
    """
    removed: list[str] = []
    for folder in set(app.database.mirrored_folders()) - set(app.store.folders.values()):
        states = app.database.files(folder, records=ids)
        ours = [one.path for one in states if os.path.isdir(folder) and _is_unchanged(folder, one)]
        for path in ours:
            disk.remove(folder, path)
        if states:
            app.database.apply([DropFiles(folder=folder, paths=frozenset(one.path for one in states))])
        removed += [os.path.join(folder, path) for path in ours]
    return removed


def _is_unchanged(folder: str, state: FileState) -> bool:
    try:
        return sha256(disk.read(folder, state.path, limit=FILE_BYTES)[0]).hexdigest() == state.digest
    except OSError:
        return False


# Receipts, and the way back


def receipts(memory: Memory) -> list[ErasureReceipt]:
    """Return the receipts of erasures, newest first."""
    return list_receipts(memory.store, memory.binding.reads)


def allow(memory: Memory, name: str) -> int:
    """Let something erased come back: an erasure by its receipt, a record, a session or a source; return how much."""
    owners = frozenset(owners_named(name, memory.binding.reads, memory.secret()))
    found = [one for one in memory.store.tombstones() if one.erasure == name or one.owner in owners]
    if not found:
        raise NotFound(f"nothing that was erased is called {name!r}; `commonplace forget --receipts` lists erasures")
    [outcome] = memory.store.apply([LiftTombstones(owners=owners, erasures=frozenset({name}))])
    return len(outcome.gone)

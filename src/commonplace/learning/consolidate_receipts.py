"""Receipts of consolidations: what went in, what came out, and what it takes to take one back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from typing import Any

from commonplace.engine import jobs
from commonplace.files.artifacts import EVERYTHING, publish
from commonplace.learning.artifacts import Artifact, edits_in, edits_json, load_artifacts, note_edits, own_text
from commonplace.learning.hand_edits import merge_edits
from commonplace.learning.workspace import Workspace
from commonplace.model.changes import (
    Change,
    DeleteDocuments,
    Finish,
    MarkConsolidated,
    PutDocument,
    Require,
    Restore,
)
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import Conflict, NotFound
from commonplace.model.ids import SHORT, new_id
from commonplace.model.jobs import Claim, Job
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import EMPTY, Channel, Json, Record
from commonplace.model.values import Value
from commonplace.text.blocks import blocks, join_blocks, references
from commonplace.text.cleaning import one_line, plural

PREFIX = "consolidation/"
KIND, KEY = "consolidate", "memory"  # the job of a project
TRIES = 3  # of an undo whose records others erase between the look and the commit
KEEP = 20  # receipts: so many consolidations can be looked at; only the last can be taken back


class UndoReport(Value):
    """The result of an undo."""

    receipt: str  #: of the consolidation that was taken back
    written: tuple[str, ...]  #: artifacts that are as they were before it
    removed: tuple[str, ...]  #: artifacts that it had made
    restored: tuple[str, ...]  #: ids of the records that it had replaced
    unmarked: tuple[str, ...] = ()  #: ids of the records that it had taken up, and that wait for the next one again
    theirs: tuple[str, ...] = ()  #: artifacts in which a person's words stay


def consolidate_job(place: Workspace, watermark: int = 0) -> Job:
    """The one job of consolidation in the project."""
    return Job(scope=place.scope, kind=KIND, key=KEY, watermark=watermark)


def consolidation_receipts(place: Workspace) -> list[Document]:
    """The receipts of consolidations, newest first."""
    where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.RECEIPT.value}))
    found = [one for one in place.store.documents(where, limit=EVERYTHING) if one.name.startswith(PREFIX)]
    return sorted(found, key=lambda one: one.name, reverse=True)


def receipt_changes(
    place: Workspace,
    text: str,
    details: Mapping[str, Json],
    earlier: Sequence[Document],
    clean: Mapping[str, Json] = EMPTY,
) -> list[Change]:
    """The changes that store a receipt and delete the oldest; ``clean`` is from the store, and not redacted again."""
    name = f"{PREFIX}{new_id(place.clock())}"
    put = place.document(DocumentKind.RECEIPT, name, text, Channel.CONSOLIDATION, details)
    document = put.document.replace(metadata={**put.document.metadata, **clean})
    changes: list[Change] = [PutDocument(document=document)]
    stale = frozenset(one.name for one in earlier[KEEP - 1 :])
    return changes + ([DeleteDocuments(where=_filter(place, DocumentKind.RECEIPT, stale))] if stale else [])


def _filter(place: Workspace, kind: DocumentKind, names: Collection[str]) -> DocumentFilter:
    return DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({kind.value}), names=frozenset(names))


def delete_artifacts(place: Workspace, names: Collection[str]) -> DeleteDocuments:
    """The change that erases these artifacts."""
    return DeleteDocuments(where=_filter(place, DocumentKind.ARTIFACT, names))


def require_present(place: Workspace, records: Collection[Record]) -> Require:
    """Refuse the transaction if one of these records was erased meanwhile."""
    ids = frozenset(one.id for one in records)
    where = Filter(scopes=frozenset({place.scope}), at=place.clock(), states=ANY_STATE, ids=ids)
    return Require(where=where, count=len(ids))


def before_texts(found: Iterable[Document]) -> list[str]:
    """Return the texts that artifacts once had; a file that was never rewritten may still have one."""
    earlier: list[Any] = [one.metadata.get("before") for one in found]
    return [was["text"] for before in earlier if isinstance(before, dict) for was in before.values() if was]


def before_json(held: Artifact | None, known: Collection[str]) -> Json:
    """An artifact as it was in the store, to be put back; without what names a record that was erased."""
    if held is None or held.stored is None:
        return None
    return {"text": _less(held.stored, known), "metadata": dict(held.metadata)}


def scrub_changes(place: Workspace, found: Sequence[Document], known: Collection[str]) -> list[Change]:
    """Receipts without what names a record that was erased: forgotten means gone from here, too."""
    changes: list[Change] = []
    for one in found:
        before: Any = one.metadata.get("before") or {}
        dropped: Any = one.metadata.get("dropped") or []
        clean = {name: was and was | {"text": _less(was["text"], known)} for name, was in before.items()}
        left = [entry for entry in dropped if references(entry["text"]) <= set(known)]
        if clean != before or left != dropped:
            metadata = dict(one.metadata) | {"before": clean, "dropped": left}
            put = place.document(DocumentKind.RECEIPT, one.name, one.content or "", Channel.CONSOLIDATION, metadata)
            changes.append(PutDocument(document=put.document.replace(updated_at=one.updated_at)))
    return changes


def _less(text: str, known: Collection[str]) -> str:
    if references(text) <= set(known):
        return text
    return join_blocks([block for block in blocks(text) if references(block.text) <= set(known)])


# Taking back


def undo_consolidation(place: Workspace, *, force: bool = False) -> UndoReport:
    """Take the last consolidation back: artifacts as they were, replaced records live again, the others unmarked.

    What a person has written into artifacts stays, also what that consolidation has taken in.  Leaves its own receipt.

    Raises ``NotFound`` if there is none, ``Conflict`` if a person has edited since or another process is at work.
    """
    found = consolidation_receipts(place)
    last = _last(found)
    held = load_artifacts(place, before_texts(found))
    changed = tuple(name for name, one in held.items() if one.edited)
    if changed and not force:
        raise Conflict(f"{', '.join(changed)} was edited since; --force takes the consolidation back all the same")
    with hold_job(place) as claim:
        _, done = place.writer.retry(
            lambda: _undo_changes(place, last, held, found, claim), tries=TRIES,
            busy="its records are changed by others",
        )  # fmt: skip
    publish(place)
    return done


def _undo_changes(
    place: Workspace, last: Document, held: Mapping[str, Artifact], found: Sequence[Document], claim: Claim
) -> tuple[Sequence[Change], UndoReport]:
    undone: Any = last.metadata
    back = {name: _before_edits(was, held.get(name)) for name, was in undone["before"].items()}
    put = {name: was for name, was in back.items() if was is not None}
    gone = sorted(back.keys() - put.keys())
    again, marked = _find_still_replaced(place, undone["superseded"]), _find_still_marked(place, undone.get("marked"))
    changes: list[Change] = [_restore_artifact(place, name, was) for name, was in sorted(put.items())]
    changes += [delete_artifacts(place, gone)] if gone else []
    changes += [MarkConsolidated(ids=marked, at=None)] if marked else []
    changes += [*_restore_changes(place, again), *note_edits(place, held.values())]
    receipt: dict[str, Json] = {"what": "undo", "undid": last.name, "before": {}, "superseded": []}
    receipt |= {"fingerprint": input_digest(place, restored=again), "restored": [record.id for record in again]}
    text = f"took back {last.name}: {plural(len(back), 'artifact')}, {plural(len(again), 'record')}"
    done = UndoReport(
        receipt=last.name, written=tuple(sorted(put)), removed=tuple(gone),
        restored=tuple(record.id for record in again), unmarked=marked,
        theirs=tuple(name for name in sorted(put) if name in held and held[name].by_hand),
    )  # fmt: skip
    return [*changes, *receipt_changes(place, text, receipt, found), Finish(claim=claim, at=place.clock())], done


def _before_edits(was: Mapping[str, Any] | None, held: Artifact | None) -> Mapping[str, Any] | None:
    """An artifact as it was before, with what a person has written in it by now; None: it was not there."""
    if held is None or not (held.by_hand or held.edits.struck):
        return was
    if held.whole:
        return {"text": held.text, "metadata": {"by_hand": True}}
    before = was or {"text": "", "metadata": {}}
    text = merge_edits(own_text(before["text"], edits_in(before["metadata"])), held.edits)
    metadata = {name: value for name, value in before["metadata"].items() if name not in ("owned", "struck")}
    return {"text": text, "metadata": metadata | edits_json(held.edits)} if text else None


def _last(found: Sequence[Document]) -> Document:
    undone = {one.metadata.get("undid") for one in found}
    for one in found:
        if one.metadata.get("what") == "consolidation" and one.name not in undone and one.metadata.get("before"):
            return one
    raise NotFound("there is no consolidation to take back")


@contextmanager
def hold_job(place: Workspace) -> Iterator[Claim]:
    """Hold the job of consolidation, so that none can publish what is changed here."""
    if any(one.leased for one in place.store.jobs([place.scope], now=place.clock()) if one.job.kind == KIND):
        raise Conflict("a consolidation of this project is running; try again when it has ended")
    lease = timedelta(seconds=place.learning.phase2_lease_seconds)
    claim = jobs.claim(place.store, consolidate_job(place), lease=lease, clock=place.clock, force=True)
    if not isinstance(claim, Claim):
        raise Conflict(f"the consolidation of this project is {claim.reason.value}; try again when it has ended")
    with place.hold(claim, lease=lease):
        yield claim


def _restore_artifact(place: Workspace, name: str, was: Mapping[str, Any]) -> PutDocument:
    return place.document(DocumentKind.ARTIFACT, name, was["text"], Channel.CONSOLIDATION, was["metadata"])


def _find_still_replaced(place: Workspace, superseded: Sequence[Mapping[str, str]]) -> list[Record]:
    """Of the records that were replaced those that still are, by the same one."""
    pairs = [(place.store.get(one["old"]), one["new"]) for one in superseded]
    return [record for record, by in pairs if record is not None and record.superseded_by == by]


def _find_still_marked(place: Workspace, marks: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the ids of marked records that still have this mark; a record that changed since has lost it."""
    if marks is None or not marks["ids"]:  # an old receipt, without marks
        return ()
    where = Filter(scopes=frozenset({place.scope}), at=place.clock(), states=ANY_STATE, ids=frozenset(marks["ids"]))
    found = place.store.find(where, order=Order.ID, limit=EVERYTHING)
    return tuple(one.id for one in found if one.consolidated_at and one.consolidated_at.isoformat() == marks["at"])


def _restore_changes(place: Workspace, records: Sequence[Record]) -> list[Change]:
    if not records:
        return []
    ids = frozenset(record.id for record in records)
    where = Filter(scopes=frozenset({place.scope}), at=place.clock(), states=ANY_STATE, ids=ids)
    return [Restore(where=where, at=place.clock())]


# What was there


def input_digest(place: Workspace, *, restored: Sequence[Record] = ()) -> str:
    """A digest of everything that consolidation reads, as it will be when these records are back."""
    return fingerprint(records_of(place), extractions_of(place), restored=restored)


def fingerprint(
    records: Sequence[Record], extractions: Sequence[Document], *, without: Collection[str] = (),
    restored: Sequence[Record] = (),
) -> str:  # fmt: skip
    """A digest of what was read, as it will be when these records are replaced or back."""
    live = [f"{one.id}@{one.version}" for one in records if one.id not in without]
    live += [f"{one.id}@{one.version + 1}" for one in restored]
    texts = [f"{one.name}={one.digest}" for one in extractions]
    return sha256("\n".join([*sorted(live), "", *sorted(texts)]).encode()).hexdigest()


def records_of(place: Workspace) -> list[Record]:
    """The live records of the project, and of nothing else."""
    where = Filter(scopes=frozenset({place.scope}), at=place.clock())
    return place.store.find(where, order=Order.ID, limit=EVERYTHING)


def extractions_of(place: Workspace) -> list[Document]:
    """What was made of sessions, newest first, as many as one consolidation reads."""
    where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.EXTRACTION.value}))
    return place.store.documents(where, limit=place.learning.max_raw_memories_for_global)


def shared_extractions(place: Workspace, every: Mapping[str, Record]) -> list[Document]:
    """The same as files of the project may show them: where a fact is the user's own, by the project's records alone.

    New extractions have been divided already (``extract``); earlier ones have not.
    """
    found = extractions_of(place)
    others = frozenset(name for one in found for name in record_ids(one) if name[:SHORT] not in every)
    if place.personal is None or not others:
        return found
    where = Filter(scopes=frozenset({place.personal}), at=place.clock(), states=ANY_STATE, ids=others)
    personal = {one.id for one in place.store.find(where, order=Order.ID, limit=EVERYTHING)}
    return [one if personal.isdisjoint(record_ids(one)) else _by_records(one, every) for one in found]


def record_ids(extraction: Document) -> list[str]:
    """The records that were made of a session."""
    found = extraction.metadata.get("records")
    return [str(name) for name in found] if isinstance(found, list) else []


def _by_records(extraction: Document, every: Mapping[str, Record]) -> Document:
    known = [every[name[:SHORT]] for name in record_ids(extraction) if name[:SHORT] in every]
    lines = [f"- [{one.category}] {one_line(one.content)}" for one in known]
    summary = "; ".join(one_line(one.content) for one in known[:3])
    return extraction.replace(
        content="\n".join(lines), metadata={**extraction.metadata, "summary": summary, "slug": None}
    )


def all_records(place: Workspace) -> dict[str, Record]:
    """Every record of the project in any state, by the beginning of its id."""
    where = Filter(scopes=frozenset({place.scope}), at=place.clock(), states=ANY_STATE)
    return {one.id[:SHORT]: one for one in place.store.find(where, order=Order.ID, limit=EVERYTHING)}

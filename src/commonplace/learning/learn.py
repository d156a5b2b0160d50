"""Learning at a host's start-up: extraction, then consolidation; and clearing or asking for it by hand.

A run tells what it did and what went wrong, and leaves that in the store for ``status`` to show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from commonplace.engine.rendering import iso
from commonplace.files.artifacts import EVERYTHING, LEARNED, WOVEN, publish, stored_artifacts
from commonplace.learning import consolidate_receipts as ledger
from commonplace.learning.artifacts import Artifact, edits_json, load_artifacts, note_edits
from commonplace.learning.consolidate import ConsolidateReport, consolidate_memory, describe
from commonplace.learning.extract import ExtractReport, extract_sessions
from commonplace.learning.hand_edits import Edits, merge_edits
from commonplace.learning.workspace import Workspace
from commonplace.model.changes import Change, Delete, DeleteDocuments, Enqueue, Finish
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import ConfigError, InvalidInput, ProviderError
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Order
from commonplace.model.records import Channel, Json
from commonplace.model.values import Value
from commonplace.text.blocks import OwnedBlock, level_of
from commonplace.text.cleaning import plural

LAST = "learning/last"  # the name of what the last run left
LEARNED_CHANNELS = frozenset({Channel.EXTRACTION, Channel.CONSOLIDATION})
SUBJECT_LEVEL = 3  # of a heading from which on it is in the words of records
ENQUEUED = "Memory consolidation enqueued."
OFF = "learning is switched off; `commonplace config set memories.enabled true` switches it on"


class LearnReport(Value):
    """What one run did."""

    skipped: str | None = None  #: why nothing was done at all
    extracted: ExtractReport | None = None
    consolidated: ConsolidateReport | None = None
    troubles: tuple[str, ...] = ()  #: what went wrong, as sentences

    @property
    def lines(self) -> list[str]:
        """What happened, as sentences."""
        if self.skipped:
            return [f"nothing was learned: {self.skipped}"]
        return [*_extract_lines(self.extracted), *_consolidate_lines(self.consolidated)]


class ClearReport(Value):
    """What was erased."""

    records: tuple[str, ...]  #: ids
    documents: int  #: extractions, artifacts and receipts
    kept: tuple[str, ...] = ()  #: artifacts in which a person's own words stay
    pending: bool = False  #: a reader still holds old bytes


def skip_reason(place: Workspace, *, depth: int, saved: bool) -> str | None:
    """Why a start-up learns nothing; None if it does."""
    if not place.learning.enabled:
        return OFF
    if depth > 0:
        return "a subagent does not learn; the session that started it does"
    return None if saved else "this session is not saved"


def learn_from_sessions(
    place: Workspace,
    *,
    active: str | None = None,
    depth: int = 0,
    saved: bool = True,
    ended: Collection[str] = (),
    stop: Callable[[], bool] = lambda: False,
    progress: ProgressCallback = no_progress,
) -> LearnReport:
    """Extract from sessions that are at rest, then consolidate if anything is new; ``active`` is left alone.

    ``ended`` are sessions that are over, however recently they changed; ``stop`` is asked before each session.
    """
    if reason := skip_reason(place, depth=depth, saved=saved):
        return LearnReport(skipped=reason)
    if place.learning.mode == "host":
        publish(place)
        return LearnReport(
            skipped="memories.mode is host: the thinking waits for `extract` and `consolidate --prepare`"
        )
    troubles: list[str] = []
    extracted = None
    try:
        extracted = extract_sessions(place, exclude=active, ended=ended, stop=stop, progress=progress)
        troubles += [f"session {left.session}: {left.reason}" for left in extracted.failed]
    except (ConfigError, InvalidInput, ProviderError) as error:  # what was extracted before can be consolidated
        troubles.append(f"nothing was extracted: {error}")
    consolidated = consolidate_memory(place, progress=progress)
    troubles += [f"consolidation: {consolidated.reason}"] if consolidated.status == "failed" else []
    troubles += [f"consolidation, a part of it: {reason}" for reason in consolidated.failed_parts]
    report = LearnReport(extracted=extracted, consolidated=consolidated, troubles=tuple(troubles))
    place.store.apply(
        [place.document(DocumentKind.RECEIPT, LAST, "\n".join(report.lines), Channel.AGENT, _metadata(place, report))]
    )
    return report


def _extract_lines(report: ExtractReport | None) -> list[str]:
    if report is None:
        return []
    lines = []
    if report.done:
        lines.append(f"extracted {plural(len(report.records), 'record')} from {plural(len(report.done), 'session')}")
    if report.empty:
        lines.append(f"{plural(len(report.empty), 'session')} had nothing to keep")
    if report.skipped:
        lines.append(f"skipped {plural(len(report.skipped), 'session')}; `commonplace status --jobs` says why")
    return lines or ["no session waits to be extracted"]


def _consolidate_lines(report: ConsolidateReport | None) -> list[str]:
    if report is None:
        return []
    if report.status in ("skipped", "failed"):
        return [f"consolidation {report.status}: {report.reason}"]
    return [describe(report)]


def _metadata(place: Workspace, report: LearnReport) -> Mapping[str, Json]:
    skipped = report.extracted.skipped if report.extracted else ()
    return {
        "at": iso(place.clock()),
        "lines": list[Json](report.lines),
        "troubles": list[Json](report.troubles),
        "skipped": [{"session": left.session, "reason": str(left.reason)} for left in skipped],
    }


def last_run(place: Workspace) -> Mapping[str, Any] | None:
    """What the last run left; None if there was none."""
    where = DocumentFilter(
        scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.RECEIPT.value}), names=frozenset({LAST})
    )
    return next((one.metadata for one in place.store.documents(where, limit=1)), None)


# By hand


def enqueue_consolidation(place: Workspace) -> None:
    """Ask for a consolidation at the next start-up, even if nothing has changed."""
    place.store.apply([Enqueue(job=ledger.consolidate_job(place), force=True)])


def clear_learned(place: Workspace, *, every: bool = False) -> ClearReport:
    """Erase what this project learned: extractions, artifacts, receipts, and the records that were made of sessions.

    Records that a person wrote stay unless ``every`` is given, and so do a person's own words in artifacts.  Sessions
    stay indexed and are not extracted again until they change.
    """
    held = load_artifacts(place, ledger.before_texts(ledger.consolidation_receipts(place)))
    theirs = {name: one for name, one in held.items() if one.by_hand}
    with ledger.hold_job(place) as claim:
        ids = _ids(place, every=every)
        erase: list[Change] = [Delete(where=_only(place, ids))] if ids else []
        end = [*note_edits(place, held.values()), Finish(claim=claim, at=place.clock())]
        outcomes = place.store.apply([*erase, *_document_changes(place, theirs, every=every), *end])
    publish(place)
    erased = outcomes[0].gone if ids else ()
    documents = sum(len(one.gone) for one in outcomes) - len(erased)
    pending = any(one.erasing for one in outcomes)
    return ClearReport(records=erased, documents=documents, kept=tuple(sorted(theirs)), pending=pending)


def _document_changes(place: Workspace, theirs: Mapping[str, Artifact], *, every: bool) -> list[Change]:
    """The changes that erase what was learned, but for a person's own words."""
    gone = {name for name in stored_artifacts(place) if name not in theirs and (every or name != LEARNED)}
    changes: list[Change] = [ledger.delete_artifacts(place, gone)] if gone else []
    for kind in (DocumentKind.EXTRACTION, DocumentKind.RECEIPT):
        where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({kind.value}))
        changes.append(DeleteDocuments(where=where))
    for name, one in theirs.items():
        edits = Edits(owned=_without_neighbours(one.edits.owned))
        text = merge_edits("", edits) if name in WOVEN else one.text
        metadata = edits_json(edits) if name in WOVEN else {"by_hand": True}
        changes.append(place.document(DocumentKind.ARTIFACT, name, text, Channel.CONSOLIDATION, metadata))
    return changes


def _without_neighbours(owned: Sequence[OwnedBlock]) -> tuple[OwnedBlock, ...]:
    """Return a person's blocks, placed by each other alone: their old place is named in words that are erased."""
    theirs = {one.text for one in owned}
    return tuple(
        one.replace(
            path=tuple(line for line in one.path if level_of(line) < SUBJECT_LEVEL),
            after=one.after if one.after in theirs else "",
        )
        for one in owned
    )


def _ids(place: Workspace, *, every: bool) -> frozenset[str]:
    where = Filter(scopes=frozenset({place.scope}), at=place.clock(), states=ANY_STATE)
    found = place.store.find(where, order=Order.ID, limit=EVERYTHING)
    return frozenset(one.id for one in found if every or one.source.channel in LEARNED_CHANNELS)


def _only(place: Workspace, ids: frozenset[str]) -> Filter:
    return Filter(scopes=frozenset({place.scope}), at=place.clock(), states=ANY_STATE, ids=ids)

"""Consolidation: what a project has learned becomes MEMORY.md, a summary and skills.  Claim, read, think, check, apply.

One process at a time, by a lease that is held while somebody thinks; facts, marks, artifacts, receipt and the end of
the job land in one ``apply`` or not at all.  Files are written after that, from the store.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from commonplace.engine import jobs
from commonplace.engine.admission import Gate
from commonplace.engine.rendering import redaction_notes
from commonplace.files.artifacts import MEMORY, RAW, ROLLOUTS, SKILLS, SUMMARY, publish, stored_artifacts
from commonplace.learning import consolidate_receipts as ledger
from commonplace.learning.artifacts import Held, edits_json, ours, present, taken_in
from commonplace.learning.consolidate_checks import Dropped, Reply, facts_of, reply_of, settled, shortened
from commonplace.learning.consolidate_model import (
    PROMPT,
    Asked,
    Part,
    Thought,
    asked,
    parts_of,
    room_of,
    thought,
    together,
)
from commonplace.learning.consolidate_rules import (
    Line,
    Supersession,
    lines_of,
    memory_md,
    raw_memories_md,
    rollout_summaries,
    said_at,
    skills_of,
    summary_md,
    superseded,
    written,
)
from commonplace.learning.consolidate_text import Edits, digest, harmless, said, woven
from commonplace.learning.workspace import Workplace
from commonplace.model.changes import Change, Enqueue, Finish, MarkConsolidated, PutDocument, Supersede
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import ConfigError, Conflict, InvalidInput, LeaseLost, NotFound, ProviderError
from commonplace.model.jobs import Claim, Reason, Skipped
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import State
from commonplace.model.records import Channel, Json, Kind, Record, Trust
from commonplace.model.values import Value
from commonplace.text.blocks import references
from commonplace.text.cleaning import estimate_tokens

TRIES = 3  # of a run whose records others change between the look and the commit
RULES, HOST = "rules", "host"
HOST_TOKENS = 16_000  # of a part for a host's agent, whose window is large, but whose answer must stay whole
HOST_ANSWER = 8192


class ConsolidateReport(Value):
    """What a consolidation came to."""

    status: str  #: consolidated, unchanged, skipped, failed or planned
    reason: str = ""  #: why it was skipped or failed
    mode: str = RULES
    model: str | None = None  #: which one answered
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    extractions: int = 0  #: that were read
    records: int = 0
    written: tuple[str, ...] = ()  #: artifacts that are new or changed
    removed: tuple[str, ...] = ()
    superseded: tuple[Supersession, ...] = ()
    disputed: tuple[tuple[str, str], ...] = ()  #: ids: an older record, and a later one that is trusted less
    dropped: tuple[Dropped, ...] = ()  #: facts that are no longer in MEMORY.md, each with its reason
    carried: int = 0  #: facts that a proposal forgot and code put back
    stale: tuple[str, ...] = ()  #: ids of records derived only from replaced ones
    edited: tuple[str, ...] = ()  #: artifacts whose hand edits were taken in
    left: tuple[str, ...] = ()  #: files that were changed while it ran; the next run takes them in
    redactions: tuple[str, ...] = ()  #: secrets taken out of hand edits, as sentences
    receipt: str | None = None
    diff: str = ""  #: what would change, if it was only planned


class _Inputs(Value):
    """Everything that is read."""

    held: Mapping[str, Held]
    records: Sequence[Record]  #: live
    every: Mapping[str, Record]  #: in whatever state, by the beginnings of their ids
    extractions: Sequence[Document]
    receipts: Sequence[Document]

    @property
    def memory(self) -> Held:
        return self.held.get(MEMORY) or Held(name=MEMORY, stored=None, text="")

    @property
    def summary(self) -> Held:
        return self.held.get(SUMMARY) or Held(name=SUMMARY, stored=None, text="")


class _Outcome(Value):
    """What is to be kept."""

    texts: Mapping[str, str]
    metadata: Mapping[str, Mapping[str, Json]]
    removed: tuple[str, ...]
    replaced: Sequence[Supersession]
    report: ConsolidateReport
    trust: Trust


def consolidate(
    place: Workplace, *, dry_run: bool = False, force: bool = False, tell: ProgressCallback = no_progress
) -> ConsolidateReport:
    """Consolidate if there is anything new, or with ``force`` in any case; with ``dry_run`` only say what would be."""
    mode = place.learning.mode
    if mode == HOST:
        reason = "a host's agent does the thinking here: `commonplace consolidate --prepare DIR`, then --commit DIR"
        return ConsolidateReport(status="skipped", mode=mode, reason=reason)
    think = _by_rules if mode == RULES else _by_model(place, tell)
    if dry_run:
        return _planned(place, think, mode)
    publish(place)  # what a process that died had stored and not written
    return _run(place, think, mode, force=force)


def _run(place: Workplace, think: Think, mode: str, *, force: bool) -> ConsolidateReport:
    claim = _claim(place, force=force)
    if isinstance(claim, Skipped):
        reason = claim.reason.value + (f": {claim.error}" if claim.error else "")
        return ConsolidateReport(status="skipped", mode=mode, reason=reason)
    return _work(place, claim, think, mode)


def _claim(place: Workplace, *, force: bool) -> Claim | Skipped:
    """Take the job if somebody asked for it, or if what it reads has changed since the last receipt."""
    lease = timedelta(seconds=place.learning.phase2_lease_seconds)
    claim = jobs.claim(place.store, ledger.job(place), lease=lease, clock=place.clock, force=force)
    if isinstance(claim, Claim) or claim.reason is not Reason.UP_TO_DATE or not is_dirty(place):
        return claim
    states = place.store.jobs([place.scope], now=place.clock())
    done = next((one.done or 0 for one in states if one.job.kind == ledger.KIND), 0)
    place.store.apply([Enqueue(job=ledger.job(place, done + 1))])  # two processes ask for the same: it is done once
    return jobs.claim(place.store, ledger.job(place), lease=lease, clock=place.clock)


def is_dirty(place: Workplace) -> bool:
    """Whether there is anything that the last consolidation has not seen."""
    found = ledger.receipts(place)
    if any(one.edited for one in present(place, ledger.before_texts(found)).values()):
        return True
    if not found:
        return bool(ledger.records_of(place) or ledger.extractions_of(place) or stored_artifacts(place))
    return found[0].metadata.get("fingerprint") != ledger.live_after(place)


def _work(place: Workplace, claim: Claim, think: Think, mode: str) -> ConsolidateReport:
    began, learning = time.monotonic(), place.learning

    def plan() -> tuple[Sequence[Change], ConsolidateReport]:
        inputs = _read(place)
        return _changes(place, inputs, _thought(place, inputs, think, mode), claim, time.monotonic() - began)

    try:
        with place.hold(
            claim, lease=timedelta(seconds=learning.phase2_lease_seconds),
            every=timedelta(seconds=learning.phase2_heartbeat_seconds),
            retry_after=timedelta(seconds=learning.phase2_retry_delay_seconds),
        ):  # fmt: skip
            _, report = place.writer.retry(plan, tries=TRIES, busy="the project's records are changed by others")
    except (LeaseLost, ProviderError, ConfigError, InvalidInput, Conflict, NotFound) as error:
        return ConsolidateReport(status="failed", mode=mode, reason=place.clean(error))
    return report.replace(left=publish(place).left)


# Reading


def _read(place: Workplace) -> _Inputs:
    found, every, now = ledger.receipts(place), ledger.all_records(place), place.clock()
    return _Inputs(
        held=present(place, ledger.before_texts(found)), every=every, receipts=found,
        records=[one for one in every.values() if one.state(now) is State.LIVE],
        extractions=ledger.extractions_of(place),
    )  # fmt: skip


# Thinking

Think = Callable[[Workplace, _Inputs, Sequence[Line], Sequence[Document]], Thought | None]


def _by_rules(_place: Workplace, _inputs: _Inputs, _lines: Sequence[Line], _prose: Sequence[Document]) -> None:
    """Nobody is asked."""


def _by_model(place: Workplace, tell: ProgressCallback) -> Think:
    def think(_place: Workplace, inputs: _Inputs, lines: Sequence[Line], _prose: Sequence[Document]) -> Thought:
        model, template = place.model("smol"), place.prompt(PROMPT)
        summary = ours(inputs.summary.text, inputs.summary.edits)
        room, answer = room_of(model, template, summary, place.learning)
        parts = _parts(inputs, lines, room=room, answer=answer)

        def questions(present_summary: str) -> list[Asked]:
            return _questions(place, inputs, parts, template=template, summary=present_summary, answer=answer)

        return thought(model, questions, len(parts), summary=summary, tell=tell)

    return think


def _parts(inputs: _Inputs, lines: Sequence[Line], *, room: int, answer: int) -> list[Part]:
    live = {record.short for line in lines for record in line.records}
    facts = [
        fact
        for fact in facts_of(inputs.memory.text, inputs.memory.edits)
        if not (names := references(fact.text)) or names & live
    ]
    named = references(inputs.memory.text)
    new = [line for line in lines if not {record.short for record in line.records} & named]
    return parts_of(facts, new, inputs.extractions, room=room, answer=answer)


def _questions(
    place: Workplace, inputs: _Inputs, parts: Sequence[Part], *, template: str, summary: str, answer: int
) -> list[Asked]:
    skills = sorted({name.split("/")[1] for name in inputs.held if name.startswith(f"{SKILLS}/")})
    return [
        asked(
            part, number=number, of=len(parts), template=template, summary=summary, skills=skills,
            learning=place.learning, most=answer, secret=place.secret(),
        )
        for number, part in enumerate(parts, start=1)
    ]  # fmt: skip


def prepared(place: Workplace) -> tuple[str, list[Asked]]:
    """The work for a host's agent: a digest of what it was made from, and one question for each part."""
    inputs = _read(place)
    template = place.prompt(PROMPT)
    lines, _prose, _replaced, _disputed = _lines(inputs, ())
    parts = _parts(inputs, lines, room=HOST_TOKENS, answer=HOST_ANSWER)
    summary = ours(inputs.summary.text, inputs.summary.edits)
    return ledger.live_after(place), _questions(
        place, inputs, parts, template=template, summary=summary, answer=HOST_ANSWER
    )


def committed(place: Workplace, answers: Sequence[str], *, made_from: str, by: str, dry_run: bool) -> ConsolidateReport:
    """Take a host's answers through the same checks; raises ``InvalidInput`` if they are unreadable or out of date."""
    reply = together([reply_of(text) for text in answers])
    if made_from != ledger.live_after(place):
        raise InvalidInput("what is stored has changed since the work was prepared; prepare it again")
    answer = Thought(reply=reply, model=by)

    def think(*_given: object) -> Thought:
        return answer

    return _planned(place, think, HOST) if dry_run else _run(place, think, HOST, force=True)


# Checking


def _lines(
    inputs: _Inputs, further: Sequence[tuple[str, str]]
) -> tuple[list[Line], list[Document], list[Supersession], list[tuple[Record, Record]]]:
    """What is live after replaced facts are closed, as lines; and extractions that no live record tells of."""
    records = [record for record in inputs.records if record.kind is not Kind.WORKING]
    by_name = {record.short: record for record in records}
    pairs = [(by_name[old], by_name[new]) for old, new in further if old in by_name and new in by_name]
    replaced, disputed = superseded(records, pairs)
    closed = {one.old.id for one in replaced}
    ended = closed | {record.id for record in inputs.every.values() if record.superseded_by}
    left = [record for record in records if record.id not in closed]
    stale = {one.id: one.source.parents for one in left if one.source.parents and set(one.source.parents) <= ended}
    lines = lines_of(left, stale=stale, disputed=disputed)
    struck = inputs.memory.edits.struck
    told = {record.id for record in records}
    prose = [one for one in inputs.extractions if (one.content or "").strip() and not _ids(one) & told]
    left_in = [line for line in lines if said(written(line)) not in struck] if struck else lines
    return left_in, prose, replaced, disputed


def _ids(extraction: Document) -> set[str]:
    found = extraction.metadata.get("records")
    return {str(name) for name in found} if isinstance(found, list) else set()


def _thought(place: Workplace, inputs: _Inputs, think: Think, mode: str) -> _Outcome:
    lines, prose, replaced, disputed = _lines(inputs, ())
    answer = think(place, inputs, lines, prose) if lines or prose or inputs.extractions else None
    if answer and answer.reply.superseded:
        lines, prose, replaced, disputed = _lines(inputs, answer.reply.superseded)
    memory = inputs.memory
    reply = answer.reply if answer else _assembled(lines, prose)
    whole = settled(
        reply, old=memory.text, edits=memory.edits,
        records=_as_closed(inputs.every, replaced), lines=lines, prose=prose,
        left_out=_left_out(memory) if answer else {}, limit=place.learning.max_loss_percent if answer else None,
    )  # fmt: skip
    report = ConsolidateReport(
        status="consolidated", mode=mode, model=answer.model if answer else None,
        tokens_in=answer.tokens_in if answer else 0, tokens_out=answer.tokens_out if answer else 0,
        extractions=len(inputs.extractions), records=len(inputs.records), superseded=tuple(replaced),
        disputed=tuple((old.id, new.id) for old, new in disputed), dropped=whole.dropped, carried=len(whole.carried),
        stale=tuple(line.records[0].id for line in lines if line.stale),
        edited=tuple(name for name, one in inputs.held.items() if one.edited),
        redactions=tuple(
            note for name, one in inputs.held.items() for note in redaction_notes(one.findings, source=name)
        ),
    )  # fmt: skip
    return _outcome(place, inputs, lines, answer, memory=whole.text, report=report)


def _as_closed(every: Mapping[str, Record], replaced: Sequence[Supersession]) -> dict[str, Record]:
    """The records as they will be when the replaced ones are closed."""
    closed = {
        one.old.short: one.old.replace(superseded_by=one.new.id, archived_at=said_at(one.new)) for one in replaced
    }
    return {**every, **closed}


def _assembled(lines: Sequence[Line], prose: Sequence[Document]) -> Reply:
    return Reply(memory=memory_md(lines, prose), summary="")


def _left_out(memory: Held) -> dict[str, str]:
    told = memory.metadata.get("left_out")
    return {name: str(what) for name, what in told.items()} if isinstance(told, dict) else {}


def _outcome(
    place: Workplace, inputs: _Inputs, lines: Sequence[Line], answer: Thought | None, *, memory: str,
    report: ConsolidateReport,
) -> _Outcome:  # fmt: skip
    edits, summary_edits = inputs.memory.edits, inputs.summary.edits
    texts = {MEMORY: woven(memory, edits), SUMMARY: _summary(place, lines, answer, summary_edits)}
    metadata: dict[str, Mapping[str, Json]] = {MEMORY: edits_json(edits), SUMMARY: edits_json(summary_edits)}
    if answer and (out := _now_left_out(inputs, lines, report.dropped)):
        metadata[MEMORY] = {**metadata[MEMORY], "left_out": out}
    made = dict(answer.reply.skills) if answer else skills_of([line.records[0] for line in lines])
    theirs = {name: one for name, one in inputs.held.items() if one.whole and name.startswith(f"{SKILLS}/")}
    texts |= {name: text for name, text in made.items() if name not in theirs}
    texts |= {name: one.text for name, one in theirs.items()}
    metadata |= {name: {"by_hand": True} for name in theirs}
    texts |= _kept_skills(inputs, theirs, texts)
    if inputs.extractions:
        texts |= {RAW: raw_memories_md(inputs.extractions), **rollout_summaries(inputs.extractions)}
    texts = {name: text for name, text in texts.items() if text.strip()}
    ours_before = {name for name, one in inputs.held.items() if one.stored is not None}
    known = {name for name in ours_before if name in (MEMORY, SUMMARY, RAW) or name.startswith((SKILLS, ROLLOUTS))}
    least = min([line.records[0].trust for line in lines], default=Trust.AGENT)
    return _Outcome(
        texts=texts, metadata=metadata, removed=tuple(sorted(known - texts.keys())), replaced=report.superseded,
        report=report, trust=min(least, Trust.AGENT),
    )  # fmt: skip


def _summary(place: Workplace, lines: Sequence[Line], answer: Thought | None, edits: Edits) -> str:
    """The summary with a person's own lines in it, which are never cut; ours take the room that they leave."""
    room = place.learning.summary_injection_token_limit - sum(estimate_tokens(text) + 1 for text in edits.texts)
    made = harmless(answer.reply.summary) if answer else summary_md(lines, most=max(0, room))
    return woven(shortened(made, most=max(1, room)) if made and room > 0 else "", edits)


def _now_left_out(inputs: _Inputs, lines: Sequence[Line], dropped: Sequence[Dropped]) -> dict[str, Json]:
    """Records that a model left out with a reason, now or earlier, as long as they say the same."""
    names = {name for one in dropped if one.by == "model" for name in references(one.text)}
    earlier = _left_out(inputs.memory)
    content = {record.short: digest(record.content) for line in lines for record in line.records}
    return {name: what for name, what in sorted(content.items()) if name in names or earlier.get(name) == what}


def _kept_skills(inputs: _Inputs, theirs: Mapping[str, Held], texts: Mapping[str, str]) -> dict[str, str]:
    """Files of ours in a skill that a person works on: it is not taken apart under their hands."""
    names = {name.split("/")[1] for name in theirs}
    return {
        name: one.text
        for name, one in inputs.held.items()
        if name.startswith(f"{SKILLS}/") and name.split("/")[1] in names and name not in texts
    }


# Writing


def _changes(
    place: Workplace, inputs: _Inputs, outcome: _Outcome, claim: Claim, seconds: float
) -> tuple[Sequence[Change], ConsolidateReport]:
    """The changes that finish a consolidation, and its report."""
    now = place.clock()
    puts = _puts(place, inputs, outcome)
    names = tuple(put.document.name for put in puts)
    changes: list[Change] = [ledger.unerased(place, inputs.every.values())]
    changes += [Supersede(id=one.old.id, by=one.new.id, at=said_at(one.new), now=now) for one in outcome.replaced]
    closed = {one.old.id for one in outcome.replaced}
    fresh = tuple(one.id for one in inputs.records if one.consolidated_at is None and one.id not in closed)
    changes += [MarkConsolidated(ids=fresh, at=now)] if fresh else []
    changes += puts
    changes += [ledger.without(place, outcome.removed)] if outcome.removed else []
    changes += taken_in(place, inputs.held.values())
    quiet = not (names or outcome.removed or outcome.replaced)
    report = outcome.report.replace(
        status="unchanged" if quiet else "consolidated", written=names, removed=outcome.removed, seconds=seconds
    )
    # Of what was read, not of what is there by now: a record that came meanwhile is for the next run.
    told = _receipt(report) | {"fingerprint": ledger.fingerprint(inputs.records, inputs.extractions, without=closed)}
    clean = _clean_receipt(place, inputs, report) | {"marked": {"ids": list[Json](fresh), "at": now.isoformat()}}
    changes += ledger.scrubbed(place, inputs.receipts, inputs.every.keys())
    receipt = ledger.kept(place, described(report), told, inputs.receipts, clean)
    first = receipt[0]
    name = first.document.name if isinstance(first, PutDocument) else None
    return [*changes, *receipt, Finish(claim=claim, at=now)], report.replace(receipt=name)


def _puts(place: Workplace, inputs: _Inputs, outcome: _Outcome) -> list[PutDocument]:
    """The artifacts that differ from what is stored, as trusted as the least of what they were made from."""
    puts: list[PutDocument] = []
    for name, text in sorted(outcome.texts.items()):
        held, beside = inputs.held.get(name), outcome.metadata.get(name, {})
        if held is not None and held.stored == text and dict(held.metadata) == dict(beside):
            continue  # it was redacted when it was stored
        put = place.document(DocumentKind.ARTIFACT, name, text, Channel.CONSOLIDATION, beside)
        document = put.document.replace(trust=outcome.trust)
        same = held is not None and held.stored == document.content and dict(held.metadata) == dict(document.metadata)
        puts += [] if same else [PutDocument(document=document)]
    return puts


def _clean_receipt(place: Workplace, inputs: _Inputs, report: ConsolidateReport) -> dict[str, Json]:
    """What went in, and what it takes to take it back: ids, names and texts that came from the store."""
    gate = Gate(place.secret())  # but the names of people's files, which have passed none
    return {
        "inputs": {
            "extractions": [one.name for one in inputs.extractions],
            "records": [one.id for one in inputs.records],
            "edited": [gate.text(name, what="a name") for name in report.edited],
        },
        "outputs": list[Json](report.written),
        "removed": list[Json](report.removed),
        "superseded": [{"old": one.old.id, "new": one.new.id, "why": one.why} for one in report.superseded],
        "disputed": [list[Json](pair) for pair in report.disputed],
        "stale": list[Json](report.stale),
        "before": {
            name: ledger.as_before(inputs.held.get(name), inputs.every.keys())
            for name in (*report.written, *report.removed)
        },
    }


def _receipt(report: ConsolidateReport) -> dict[str, Json]:
    """How a run went, and what it dropped, in whosever words."""
    return {
        "what": "consolidation",
        "mode": report.mode,
        "model": report.model,
        "tokens_in": report.tokens_in,
        "tokens_out": report.tokens_out,
        "seconds": round(report.seconds, 3),
        "dropped": [{"text": one.text, "reason": one.reason, "by": one.by} for one in report.dropped],
        "carried": report.carried,
    }


def described(report: ConsolidateReport) -> str:
    """A run in a few sentences."""
    said = f"{report.status} by {report.model or report.mode}"
    for what, count in {
        "records": report.records, "sessions": report.extractions,
        "artifacts written": len(report.written), "removed": len(report.removed),
        "records superseded": len(report.superseded), "facts dropped": len(report.dropped),
        "facts put back": report.carried, "stale": len(report.stale),
        "contradictions left for review": len(report.disputed),
    }.items():  # fmt: skip
        said += f"; {what}: {count}" if count else ""
    return said


# Only looking


def _planned(place: Workplace, think: Think, mode: str) -> ConsolidateReport:
    try:
        inputs = _read(place)
        outcome = _thought(place, inputs, think, mode)
    except (ProviderError, ConfigError, InvalidInput) as error:
        return ConsolidateReport(status="failed", mode=mode, reason=str(error))
    puts = {put.document.name: put.document.content or "" for put in _puts(place, inputs, outcome)}
    shown = "".join(
        _diff(name, inputs.held[name].stored if name in inputs.held else None, puts.get(name))
        for name in sorted({*puts, *outcome.removed})
    )
    return outcome.report.replace(
        status="planned", written=tuple(sorted(puts)), removed=outcome.removed, diff=shown.rstrip("\n")
    )


def _diff(name: str, before: str | None, after: str | None) -> str:
    old, new = ([] if text is None else f"{text}\n".splitlines(keepends=True) for text in (before, after))
    names = (f"a/{name}" if before is not None else "/dev/null", f"b/{name}" if after is not None else "/dev/null")
    return "".join(difflib.unified_diff(old, new, *names))

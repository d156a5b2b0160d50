"""Consolidation: what a project has learned becomes MEMORY.md, a summary and skills.  Claim, read, think, check, apply.

One process at a time, by a lease that is held while a model runs; facts, marks, artifacts, receipt and the end of
the job land in one ``apply`` or not at all.  Files are written after that, from the store.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from commonplace.engine import jobs
from commonplace.engine.admission import Gate, search_terms
from commonplace.engine.rendering import redaction_notes
from commonplace.engine.replacing import Rivals, naming
from commonplace.files.artifacts import MEMORY, RAW, ROLLOUTS, SKILLS, SUMMARY, publish, stored_artifacts
from commonplace.learning import consolidate_receipts as ledger
from commonplace.learning.artifacts import Artifact, edits_json, load_artifacts, note_edits, own_text
from commonplace.learning.consolidate_checks import (
    Dropped,
    Reply,
    check_proposal,
    cut_summary,
    fact_blocks,
    founded_skills,
    mark_summary,
    parse_proposal,
)
from commonplace.learning.consolidate_model import (
    PROMPT,
    REPEATED,
    ModelProposal,
    Part,
    Question,
    ask_model,
    build_question,
    merge_replies,
    split_into_parts,
    token_limits,
)
from commonplace.learning.consolidate_rules import (
    Line,
    Supersession,
    choose_lines,
    fact_date,
    find_supersessions,
    group_lines,
    is_playbook,
    line_text,
    memory_md,
    more_note,
    raw_memories_md,
    rollout_summaries,
    skills_of,
    subject,
    summary_md,
)
from commonplace.learning.consolidate_scope import Scope as ConsolidationScope
from commonplace.learning.consolidate_scope import (
    live_facts,
    scope_of,
    skills_held,
    unseen_sessions,
    was_by_model,
    whole_scope,
    with_kept,
)
from commonplace.learning.hand_edits import Edits, block_digest, content_digest, merge_edits
from commonplace.learning.workspace import Workspace
from commonplace.model.changes import Change, Enqueue, Finish, MarkConsolidated, Put, PutDocument, Supersede
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import ConfigError, Conflict, InvalidInput, LeaseLost, NotFound, ProviderError
from commonplace.model.jobs import Claim, Reason, Skipped
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import State
from commonplace.model.records import PROPOSAL, Channel, Draft, Json, Kind, Record, Trust
from commonplace.model.values import Value
from commonplace.text.blocks import escape_tags, references
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
    unapproved: int = 0  #: procedures with steps that make no skill because no person has approved them
    held_skills: tuple[str, ...] = ()  #: names of skills that wait for review: no person's word stands behind them
    edited: tuple[str, ...] = ()  #: artifacts whose hand edits were taken in
    left: tuple[str, ...] = ()  #: files that were changed while it ran; the next run takes them in
    redactions: tuple[str, ...] = ()  #: secrets taken out of hand edits, as sentences
    failed_parts: tuple[str, ...] = ()  #: why, for each part of the work of which a model's answer could not be used
    receipt: str | None = None
    diff: str = ""  #: what would change, if it was only planned


class _Inputs(Value):
    """Everything that is read."""

    held: Mapping[str, Artifact]
    records: Sequence[Record]  #: live
    every: Mapping[str, Record]  #: in any state, by the beginnings of their ids
    extractions: Sequence[Document]
    receipts: Sequence[Document]

    @property
    def memory(self) -> Artifact:
        return self.held.get(MEMORY) or Artifact(name=MEMORY, stored=None, text="")

    @property
    def summary(self) -> Artifact:
        return self.held.get(SUMMARY) or Artifact(name=SUMMARY, stored=None, text="")


class _Outcome(Value):
    """What is to be stored."""

    texts: Mapping[str, str]
    metadata: Mapping[str, Mapping[str, Json]]
    removed: tuple[str, ...]
    replaced: Sequence[Supersession]
    asked: Sequence[Record]  #: records that may replace another one, which they name
    report: ConsolidateReport
    trust: Trust
    proposed: Sequence[Put] = ()  #: held records of skills that no person's word stands behind


def consolidate_memory(
    place: Workspace, *, dry_run: bool = False, force: bool = False, progress: ProgressCallback = no_progress
) -> ConsolidateReport:
    """Consolidate if there is anything new, or with ``force`` in any case; with ``dry_run`` only say what would be."""
    mode = place.learning.mode
    if mode == HOST:
        reason = "a host's agent does the thinking here: `commonplace consolidate --prepare DIR`, then --commit DIR"
        return ConsolidateReport(status="skipped", mode=mode, reason=reason)
    think = _by_rules if mode == RULES else _by_model(place, progress, whole=force)
    if dry_run:
        return _dry_run(place, think, mode)
    publish(place)  # what a process that died had stored and not written
    return _run(place, think, mode, force=force)


def _run(place: Workspace, think: Think, mode: str, *, force: bool) -> ConsolidateReport:
    claim = _claim(place, force=force)
    if isinstance(claim, Skipped):
        reason = claim.reason.value + (f": {claim.error}" if claim.error else "")
        return ConsolidateReport(status="skipped", mode=mode, reason=reason)
    return _work(place, claim, think, mode)


def _claim(place: Workspace, *, force: bool) -> Claim | Skipped:
    """Claim the job if it was requested, or if its inputs have changed since the last receipt."""
    lease = timedelta(seconds=place.learning.phase2_lease_seconds)
    claim = jobs.claim(place.store, ledger.consolidate_job(place), lease=lease, clock=place.clock, force=force)
    if isinstance(claim, Claim) or claim.reason is not Reason.UP_TO_DATE or not is_dirty(place):
        return claim
    states = place.store.jobs([place.scope], now=place.clock())
    done = next((one.done or 0 for one in states if one.job.kind == ledger.KIND), 0)
    place.store.apply(
        [Enqueue(job=ledger.consolidate_job(place, done + 1))]
    )  # two processes ask for the same: it is done once
    return jobs.claim(place.store, ledger.consolidate_job(place), lease=lease, clock=place.clock)


def is_dirty(place: Workspace) -> bool:
    """Whether there is anything that the last consolidation has not seen."""
    found = ledger.consolidation_receipts(place)
    if any(one.edited for one in load_artifacts(place, ledger.before_texts(found)).values()):
        return True
    if not found:
        return bool(ledger.records_of(place) or ledger.extractions_of(place) or stored_artifacts(place))
    return found[0].metadata.get("fingerprint") != ledger.input_digest(place)


def _work(place: Workspace, claim: Claim, think: Think, mode: str) -> ConsolidateReport:
    began, learning = time.monotonic(), place.learning

    def plan() -> tuple[Sequence[Change], ConsolidateReport]:
        inputs = _read(place)
        return _changes(place, inputs, _think(place, inputs, think, mode), claim, time.monotonic() - began)

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


def _read(place: Workspace) -> _Inputs:
    found, every, now = ledger.consolidation_receipts(place), ledger.all_records(place), place.clock()
    return _Inputs(
        held=load_artifacts(place, ledger.before_texts(found)), every=every, receipts=found,
        records=[one for one in every.values() if one.state(now) is State.LIVE],
        extractions=ledger.shared_extractions(place, every),
    )  # fmt: skip


# Thinking

Think = Callable[[Workspace, _Inputs, Sequence[Line], Sequence[Document]], ModelProposal | None]


def _by_rules(_place: Workspace, _inputs: _Inputs, _lines: Sequence[Line], _prose: Sequence[Document]) -> None:
    """Rules need no model."""


def _by_model(place: Workspace, progress: ProgressCallback, *, whole: bool) -> Think:
    def think(_place: Workspace, inputs: _Inputs, lines: Sequence[Line], _prose: Sequence[Document]) -> ModelProposal:
        model, template = place.model("smol"), place.prompt(PROMPT)
        summary = own_text(inputs.summary.text, inputs.summary.edits)
        room, answer = token_limits(model, template, summary, place.learning)
        scope = _scope(inputs, lines, answer=answer, whole=whole)
        if scope.is_empty:
            reply = Reply(memory=with_kept("", scope.kept), summary=summary)
            return _with_rest(inputs, lines, scope, ModelProposal(reply=reply, model=model.name))
        parts = split_into_parts(scope.shown, scope.new, scope.sessions, room=room, answer=answer)

        def questions(present_summary: str) -> list[Question]:
            return _questions(place, inputs, parts, template=template, summary=present_summary, answer=answer)

        made = ask_model(model, questions, len(parts), summary=summary, progress=progress)
        return _with_rest(inputs, lines, scope, made)

    return think


def _scope(inputs: _Inputs, lines: Sequence[Line], *, answer: int, whole: bool = False) -> ConsolidationScope:
    """What a model is shown: what is new and its neighbours; all there is if that is asked for, or none was at it."""
    facts, _ended = live_facts(fact_blocks(inputs.memory.text, inputs.memory.edits), lines)
    left_out, named = _read_left_out(inputs.memory), frozenset(references(inputs.memory.text))
    wanted = [one for one in lines if left_out.get(one.records[0].short) != block_digest(one.records[0].content)]
    if whole or not was_by_model(inputs.receipts):
        return whole_scope(facts, lines, inputs.extractions, named=named)
    sessions = unseen_sessions(inputs.extractions, inputs.receipts)
    return scope_of(facts, wanted, sessions, named=named, room=int(answer * REPEATED))


def _with_rest(inputs: _Inputs, lines: Sequence[Line], scope: ConsolidationScope, made: ModelProposal) -> ModelProposal:
    """An answer with what it was not about: facts that were not shown, and skills that still say a person's word.

    An answer about everything, of which no part failed, says by itself which skills there are.
    """
    if scope.is_whole and not made.failed:
        return made
    held = {
        name: one.text for name, one in inputs.held.items() if name.startswith(f"{SKILLS}/") and one.stored is not None
    }
    founded, _unfounded = founded_skills(skills_held(held, made.reply.skills), lines)
    memory = with_kept(made.reply.memory, scope.kept)
    return made.replace(reply=made.reply.replace(memory=memory, skills={**founded, **made.reply.skills}))


def _questions(
    place: Workspace, inputs: _Inputs, parts: Sequence[Part], *, template: str, summary: str, answer: int
) -> list[Question]:
    skills = sorted({name.split("/")[1] for name in inputs.held if name.startswith(f"{SKILLS}/")})
    return [
        build_question(
            part, number=number, of=len(parts), template=template, summary=summary, skills=skills,
            learning=place.learning, most=answer, secret=place.secret(),
        )
        for number, part in enumerate(parts, start=1)
    ]  # fmt: skip


def prepare_questions(place: Workspace) -> tuple[str, list[Question]]:
    """The work for a host's agent: a digest of what it was made from, and one question for each part."""
    inputs = _read(place)
    template = place.prompt(PROMPT)
    lines, _ = choose_lines(_lines(inputs, ())[0])
    scope = _scope(inputs, lines, answer=HOST_ANSWER)
    parts = split_into_parts(scope.shown, scope.new, scope.sessions, room=HOST_TOKENS, answer=HOST_ANSWER)
    summary = own_text(inputs.summary.text, inputs.summary.edits)
    return ledger.input_digest(place), _questions(
        place, inputs, parts, template=template, summary=summary, answer=HOST_ANSWER
    )


def commit_answers(
    place: Workspace, answers: Sequence[str], *, made_from: str, by: str, dry_run: bool
) -> ConsolidateReport:
    """Take a host's answers through the same checks; raises ``InvalidInput`` if they are unreadable or out of date."""
    reply = merge_replies([parse_proposal(text) for text in answers])
    if made_from != ledger.input_digest(place):
        raise InvalidInput("what is stored has changed since the work was prepared; prepare it again")
    answer = ModelProposal(reply=reply, model=by)

    def think(_place: Workspace, inputs: _Inputs, lines: Sequence[Line], _prose: Sequence[Document]) -> ModelProposal:
        return _with_rest(inputs, lines, _scope(inputs, lines, answer=HOST_ANSWER), answer)

    return _dry_run(place, think, HOST) if dry_run else _run(place, think, HOST, force=True)


# Checking


def _lines(
    inputs: _Inputs, further: Sequence[tuple[str, str]]
) -> tuple[list[Line], list[Document], list[Supersession], list[tuple[Record, Record]]]:
    """What is live after replaced facts are closed, as lines; and extractions that no live record tells of."""
    records = [record for record in inputs.records if record.kind is not Kind.WORKING]
    by_name = {record.short: record for record in records}
    pairs = [(by_name[old], by_name[new]) for old, new in further if old in by_name and new in by_name]
    replaced, disputed = find_supersessions(records, pairs)
    closed = {one.old.id for one in replaced}
    ended = closed | {record.id for record in inputs.every.values() if record.superseded_by}
    left = [record for record in records if record.id not in closed]
    stale = {one.id: one.source.parents for one in left if one.source.parents and set(one.source.parents) <= ended}
    lines = group_lines(left, stale=stale, disputed=disputed)
    struck = inputs.memory.edits.struck
    prose = [one for one in inputs.extractions if (one.content or "").strip() and not ledger.record_ids(one)]
    left_in = [line for line in lines if content_digest(line_text(line)) not in struck] if struck else lines
    return left_in, prose, replaced, disputed


def _think(place: Workspace, inputs: _Inputs, think: Think, mode: str) -> _Outcome:
    lines, prose, replaced, disputed = _lines(inputs, ())
    listed, beyond = choose_lines(lines)
    answer = think(place, inputs, listed, prose) if lines or prose or inputs.extractions else None
    if answer and answer.reply.superseded:
        lines, prose, replaced, disputed = _lines(inputs, answer.reply.superseded)
        listed, beyond = choose_lines(lines)
    memory = inputs.memory
    reply = answer.reply if answer else _reply_by_rules(listed, prose)
    whole = check_proposal(
        reply, old=memory.text, edits=memory.edits,
        records=_close_records(inputs.every, replaced), lines=listed, prose=prose, beyond=beyond,
        left_out=_read_left_out(memory) if answer else {}, limit=place.learning.max_loss_percent if answer else None,
    )  # fmt: skip
    report = ConsolidateReport(
        status="consolidated", mode=mode, model=answer.model if answer else None,
        tokens_in=answer.tokens_in if answer else 0, tokens_out=answer.tokens_out if answer else 0,
        failed_parts=answer.failed if answer else (),
        extractions=len(inputs.extractions), records=len(inputs.records), superseded=tuple(replaced),
        disputed=tuple((old.id, new.id) for old, new in disputed), dropped=whole.dropped, carried=len(whole.carried),
        stale=tuple(line.records[0].id for line in lines if line.stale),
        edited=tuple(name for name, one in inputs.held.items() if one.edited),
        unapproved=sum(is_playbook(one) and not one.has_authority for line in lines for one in line.records[:1]),
        redactions=tuple(
            note for name, one in inputs.held.items() for note in redaction_notes(one.findings, source=name)
        ),
    )  # fmt: skip
    noted = f"{whole.text}\n\n{more_note(len(beyond))}" if beyond else whole.text
    return _outcome(place, inputs, lines, answer, memory=noted, report=report)


def _close_records(every: Mapping[str, Record], replaced: Sequence[Supersession]) -> dict[str, Record]:
    """The records as they will be when the replaced ones are closed."""
    closed = {
        one.old.short: one.old.replace(superseded_by=one.new.id, archived_at=fact_date(one.new)) for one in replaced
    }
    return {**every, **closed}


def _reply_by_rules(lines: Sequence[Line], prose: Sequence[Document]) -> Reply:
    return Reply(memory=memory_md(lines, prose), summary="")


def _read_left_out(memory: Artifact) -> dict[str, str]:
    left_out = memory.metadata.get("left_out")
    return {name: str(what) for name, what in left_out.items()} if isinstance(left_out, dict) else {}


def _outcome(
    place: Workspace, inputs: _Inputs, lines: Sequence[Line], answer: ModelProposal | None, *, memory: str,
    report: ConsolidateReport,
) -> _Outcome:  # fmt: skip
    edits, summary_edits = inputs.memory.edits, inputs.summary.edits
    texts = {MEMORY: merge_edits(memory, edits), SUMMARY: _summary(place, lines, answer, summary_edits)}
    metadata: dict[str, Mapping[str, Json]] = {MEMORY: edits_json(edits), SUMMARY: edits_json(summary_edits)}
    if answer and (out := _now_left_out(inputs, lines, report.dropped)):
        metadata[MEMORY] = {**metadata[MEMORY], "left_out": out}
    ours = skills_of([line.records[0] for line in lines])
    made, unfounded = founded_skills(answer.reply.skills if answer else {}, lines)
    made = ours | made
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
        asked=_asking(inputs, report),
        report=report, trust=min(least, Trust.AGENT), proposed=_proposed_skills(place, inputs, unfounded),
    )  # fmt: skip


def _asking(inputs: _Inputs, report: ConsolidateReport) -> list[Record]:
    """Records that may replace another one, each with that one named: a person has to say."""
    by_id = {record.id: record for record in inputs.records}
    pairs = [(by_id[old], by_id[new]) for old, new in report.disputed]
    return [naming(new, Rivals(asks=(old,))) for old, new in pairs if PROPOSAL not in new.metadata]


def _proposed_skills(place: Workspace, inputs: _Inputs, skills: Mapping[str, str]) -> list[Put]:
    """Hold skills that a model made of no person's words: approved, they are procedures, and made into skills."""
    made = [one for one in inputs.every.values() if one.source.channel is Channel.CONSOLIDATION]
    known = {subject(record) for record in made}  # it waits, or a person has decided about it
    binding = place.bind(Channel.CONSOLIDATION)
    drafts = [
        Draft(content=text, category="procedures", scope=place.scope, metadata={"subject": name}, held=True)
        for name, text in sorted(skills.items())
        if name not in known
    ]
    return [place.writer.admit(draft, binding).put() for draft in drafts]


def _summary(place: Workspace, lines: Sequence[Line], answer: ModelProposal | None, edits: Edits) -> str:
    """The summary with a person's own lines in it, which are never cut; ours take the room that they leave."""
    room = place.learning.summary_injection_token_limit - sum(estimate_tokens(text) + 1 for text in edits.texts)
    made = mark_summary(escape_tags(answer.reply.summary), lines) if answer else summary_md(lines, most=max(0, room))
    return merge_edits(cut_summary(made, most=max(1, room)) if made and room > 0 else "", edits)


def _now_left_out(inputs: _Inputs, lines: Sequence[Line], dropped: Sequence[Dropped]) -> dict[str, Json]:
    """Records that a model left out with a reason, now or earlier, as long as they say the same."""
    names = {name for one in dropped if one.by == "model" for name in references(one.text)}
    earlier = _read_left_out(inputs.memory)
    content = {record.short: block_digest(record.content) for line in lines for record in line.records}
    return {name: what for name, what in sorted(content.items()) if name in names or earlier.get(name) == what}


def _kept_skills(inputs: _Inputs, theirs: Mapping[str, Artifact], texts: Mapping[str, str]) -> dict[str, str]:
    """Files of ours in a skill that a person works on: it is not taken apart under their hands."""
    names = {name.split("/")[1] for name in theirs}
    return {
        name: one.text
        for name, one in inputs.held.items()
        if name.startswith(f"{SKILLS}/") and name.split("/")[1] in names and name not in texts
    }


# Writing


def _changes(
    place: Workspace, inputs: _Inputs, outcome: _Outcome, claim: Claim, seconds: float
) -> tuple[Sequence[Change], ConsolidateReport]:
    """The changes that finish a consolidation, and its report."""
    now = place.clock()
    puts = _puts(place, inputs, outcome)
    names = tuple(put.document.name for put in puts)
    changes: list[Change] = [ledger.require_present(place, inputs.every.values())]
    changes += [Supersede(id=one.old.id, by=one.new.id, at=fact_date(one.new), now=now) for one in outcome.replaced]
    closed = {one.old.id for one in outcome.replaced}
    fresh = tuple(one.id for one in inputs.records if one.consolidated_at is None and one.id not in closed)
    changes += [Put(record=one, terms=search_terms(one), expect=one.version) for one in outcome.asked]
    changes += [MarkConsolidated(ids=fresh, at=now)] if fresh else []
    changes += puts
    changes += outcome.proposed
    changes += [ledger.delete_artifacts(place, outcome.removed)] if outcome.removed else []
    changes += note_edits(place, inputs.held.values())
    quiet = not (names or outcome.removed or outcome.replaced)
    report = outcome.report.replace(
        status="unchanged" if quiet else "consolidated",
        written=names,
        removed=outcome.removed,
        seconds=seconds,
        held_skills=tuple(str(subject(put.record)) for put in outcome.proposed),
    )
    # Of what was read, not of what is there by now: a record that came meanwhile is for the next run.
    details = _receipt(report) | {
        "fingerprint": ledger.fingerprint(_as_left(inputs, outcome), inputs.extractions, without=closed)
    }
    clean = _clean_receipt(place, inputs, report) | {"marked": {"ids": list[Json](fresh), "at": now.isoformat()}}
    changes += ledger.scrub_changes(place, inputs.receipts, inputs.every.keys())
    receipt = ledger.receipt_changes(place, describe(report), details, inputs.receipts, clean)
    first = receipt[0]
    name = first.document.name if isinstance(first, PutDocument) else None
    return [*changes, *receipt, Finish(claim=claim, at=now)], report.replace(receipt=name)


def _as_left(inputs: _Inputs, outcome: _Outcome) -> list[Record]:
    """The records as this run leaves them."""
    asked = {one.id: one.replace(version=one.version + 1) for one in outcome.asked}
    return [asked.get(one.id, one) for one in inputs.records]


def _puts(place: Workspace, inputs: _Inputs, outcome: _Outcome) -> list[PutDocument]:
    """The artifacts that differ from what is stored, as trusted as the least of what they were made from."""
    puts: list[PutDocument] = []
    for name, text in sorted(outcome.texts.items()):
        held, metadata = inputs.held.get(name), outcome.metadata.get(name, {})
        if held is not None and held.stored == text and dict(held.metadata) == dict(metadata):
            continue  # it was redacted when it was stored
        put = place.document(DocumentKind.ARTIFACT, name, text, Channel.CONSOLIDATION, metadata)
        document = put.document.replace(trust=outcome.trust)
        same = held is not None and held.stored == document.content and dict(held.metadata) == dict(document.metadata)
        puts += [] if same else [PutDocument(document=document)]
    return puts


def _clean_receipt(place: Workspace, inputs: _Inputs, report: ConsolidateReport) -> dict[str, Json]:
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
            name: ledger.before_json(inputs.held.get(name), inputs.every.keys())
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


def describe(report: ConsolidateReport) -> str:
    """A run in a few sentences."""
    text = f"{report.status} by {report.model or report.mode}"
    for what, count in {
        "records": report.records, "sessions": report.extractions,
        "artifacts written": len(report.written), "removed": len(report.removed),
        "records superseded": len(report.superseded), "facts dropped": len(report.dropped),
        "facts put back": report.carried, "parts that failed": len(report.failed_parts), "stale": len(report.stale),
        "procedures to approve before they are skills": report.unapproved,
        "contradictions left for review": len(report.disputed), "skills held for review": len(report.held_skills),
    }.items():  # fmt: skip
        text += f"; {what}: {count}" if count else ""
    return text


# Only looking


def _dry_run(place: Workspace, think: Think, mode: str) -> ConsolidateReport:
    try:
        inputs = _read(place)
        outcome = _think(place, inputs, think, mode)
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

"""Extraction: claim, read, think, admit, apply, for each session that changed and is at rest.

Records, the raw memory, the request to consolidate and the end of the job land together or not at all.  A worker that
lost its lease has written nothing; a failure is reported, stored with its reason, and retried later.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TypeAlias

from commonplace.engine import jobs
from commonplace.engine.forgetting import Erasure, without_erased_blocks, without_erased_sentences
from commonplace.engine.rendering import keyed_digest
from commonplace.engine.transcripts import TOOL, Turn, join_chunks
from commonplace.learning.extract_gate import FORGOTTEN, Decision, comparable_text, decide
from commonplace.learning.extractors import Extraction, Transcript, by_model, by_rules, texts_of
from commonplace.learning.learned import learned_counts
from commonplace.learning.proposals import Proposal
from commonplace.learning.refused import NOT_KEPT
from commonplace.learning.rules_text import brings_in_text
from commonplace.learning.workspace import Workspace
from commonplace.model.changes import Change, DeleteDocuments, Enqueue, Finish
from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import Conflict, ErasedBefore, InvalidInput, LeaseLost, NotFound, ProviderError
from commonplace.model.jobs import Claim, Job, Reason, Skipped
from commonplace.model.ports import ProgressCallback, no_progress
from commonplace.model.queries import DocumentFilter
from commonplace.model.records import Channel, Json
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.cleaning import slug

EXTRACT_JOB = "extract"
CONSOLIDATE = ("consolidate", "memory")  # the kind and the key of the job that follows
PAGE = 1000  # chunks that are read at once
TOKEN_CHARS = 4  # at most, as tokens are counted here
RULES_CHARS = 2_000_000  # of each end of a session: more than anybody types, and a bound all the same
CHECK_CHARS = 4000  # of a tool result: rules read only its end, to see whether a check has passed
OUTSIDE_CHARS = 200
SLUG_CHARS = 40
GATE_TRIES = 20  # to judge and write while others write as well; each failure means that another writer got on

Think: TypeAlias = Callable[[Transcript], Extraction]


class ExtractedSession(Value):
    """What came of one session."""

    session: str
    records: tuple[str, ...]  #: ids of what was kept
    held: int = 0  #: of them wait for a person
    replaced: tuple[str, ...] = ()  #: ids of records that they replace
    left_out: tuple[str, ...] = ()  #: why, for each proposal that came to nothing
    redactions: tuple[Finding, ...] = ()


class UnfinishedSession(Value):
    """A session that was skipped or failed, and why."""

    session: str
    reason: str
    error: str | None = None  #: of the last try, if one failed


class ExtractReport(Value):
    """What one run did."""

    done: tuple[ExtractedSession, ...] = ()
    empty: tuple[str, ...] = ()  #: sessions with no output, which is a success
    skipped: tuple[UnfinishedSession, ...] = ()
    failed: tuple[UnfinishedSession, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[str, ...]:
        """Ids of all records that were stored."""
        return tuple(kept for taken in self.done for kept in taken.records)

    @property
    def redactions(self) -> Mapping[str, int]:
        """How many secrets of which kind were removed."""
        return Counter(finding.kind for taken in self.done for finding in taken.redactions)

    @property
    def is_well(self) -> bool:
        """Whether nothing failed, now or so often that it is not tried any more."""
        return not self.failed and all(left.reason != Reason.EXHAUSTED for left in self.skipped)


def extract_sessions(
    place: Workspace,
    *,
    exclude: str | None = None,
    only: Collection[str] | None = None,
    ended: Collection[str] = (),
    force: bool = False,
    stop: Callable[[], bool] = lambda: False,
    progress: ProgressCallback = no_progress,
) -> ExtractReport:
    """Make records of sessions that changed since they were last looked at, are at rest and not too old.

    ``only`` names sessions that are known to be over: their age does not matter.  ``ended`` are over as well, so they
    need not have rested.  ``force`` takes also those that are up to date.  ``exclude`` is the session that is under
    way.  Once ``stop`` is true no further session is begun.
    """
    think = choose_extractor(place)
    choice = choose_sessions(place, exclude=exclude, only=only, ended=ended, force=force)
    run = ExtractRun(place, choice, progress, stop=stop)
    at_once = place.learning.stage1_concurrency if place.learning.mode == "model" else 1
    workers = min(at_once, len(run.waiting)) or 1
    with ThreadPoolExecutor(workers, thread_name_prefix="extract") as pool:
        for done in [pool.submit(run.work, think) for _ in range(workers)]:
            done.result()
    return run.report()


def choose_extractor(place: Workspace) -> Think:
    """The way to think that the settings choose.  Raises ``ConfigError`` before anything is claimed."""
    learning = place.learning
    if learning.mode == "host":
        raise InvalidInput("memories.mode is host: `commonplace extract --prepare DIR` writes the work for your agent")
    if learning.mode == "rules":
        return lambda transcript: by_rules(transcript, most=learning.max_records_per_session)
    model = place.model("default")
    return lambda transcript: by_model(transcript, model, learning, place.prompt)


class SessionChoice(Value):
    """Which sessions a run looks at."""

    sessions: tuple[Document, ...]  #: to be claimed, newest first
    skipped: tuple[UnfinishedSession, ...]
    notes: tuple[str, ...] = ()
    force: bool = False


def choose_sessions(
    place: Workspace, *, exclude: str | None, only: Collection[str] | None, force: bool, ended: Collection[str] = ()
) -> SessionChoice:
    """The project's newest sessions that are due, and why the others are not."""
    learning = place.learning
    limit = learning.thread_scan_limit if only is None else len(only)
    names = None if only is None else frozenset(only)
    where = DocumentFilter(scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.SESSION}), names=names)
    seen = place.store.documents(where, limit=limit + 1)
    if missing := (names or frozenset()) - {document.name for document in seen}:
        raise NotFound(f"there is no session {min(missing)!r}; `commonplace index` takes one in")
    done = {
        state.job.key: state.done
        for state in place.store.jobs([place.scope], now=place.clock())
        if state.job.kind == EXTRACT_JOB
    }
    reasons = {
        document.name: _skip_reason(
            place,
            document,
            done.get(document.name),
            exclude=exclude,
            named=bool(only),
            force=force,
            ended=document.name in ended,
        )
        for document in seen[:limit]
    }
    more = (f"only the newest {limit} sessions were looked at",) if len(seen) > limit else ()
    return SessionChoice(
        sessions=tuple(document for document in seen[:limit] if reasons[document.name] is None),
        skipped=tuple(UnfinishedSession(session=name, reason=reason) for name, reason in reasons.items() if reason),
        notes=more, force=force,
    )  # fmt: skip


def _skip_reason(
    place: Workspace,
    document: Document,
    done: int | None,
    *,
    exclude: str | None,
    named: bool,
    force: bool,
    ended: bool,
) -> str | None:
    """Why a session is not due; None if it is."""
    if document.name == exclude:
        return "under way"
    if not force and done is not None and done >= session_watermark(document):
        return Reason.UP_TO_DATE
    if named or force:
        return None
    rest, learning = place.clock() - document.updated_at, place.learning
    if rest > timedelta(days=learning.max_rollout_age_days):
        return f"older than {learning.max_rollout_age_days} days"
    if not ended and rest < timedelta(hours=learning.min_rollout_idle_hours):
        return f"active in the last {learning.min_rollout_idle_hours} hours"
    return None


def queue_session(place: Workspace, name: str) -> None:
    """Say that a session waits to be extracted."""
    where = DocumentFilter(
        scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.SESSION}), names=frozenset({name})
    )
    jobs = [
        Job(scope=place.scope, kind=EXTRACT_JOB, key=one.name, watermark=session_watermark(one))
        for one in place.store.documents(where, limit=1)
    ]
    place.store.apply([Enqueue(job=job) for job in jobs])


def session_watermark(document: Document) -> int:
    """How new a session is: it rises whenever more of it, or something else, is indexed."""
    revision = document.metadata.get("revision")
    return revision if isinstance(revision, int) else int(document.updated_at.timestamp() * 1_000_000)


class ExtractRun:
    """One run: what waits, what is claimed, what came of it.  Several threads may work in it."""

    def __init__(
        self,
        place: Workspace,
        choice: SessionChoice,
        progress: ProgressCallback = no_progress,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._place, self._progress, self._force, self._stop = place, progress, choice.force, stop
        self.waiting = list(choice.sessions)
        self._all = len(self.waiting)
        self._claimed = 0
        self._guard = threading.Lock()
        self._done: list[ExtractedSession] = []
        self._empty: list[str] = []
        self._skipped = list(choice.skipped)
        self._failed: list[UnfinishedSession] = []
        self._notes = list(choice.notes)

    def work(self, think: Think) -> None:
        """Take session after session until none is left."""
        lease = timedelta(seconds=self._place.learning.stage1_lease_seconds)
        while found := self.next(lease):
            self._one(*found, think, lease)
            self._progress(self._all - len(self.waiting), self._all)

    def next(self, lease: timedelta) -> tuple[Claim, Document] | None:
        """Claim the next session; only claimed ones count against the cap."""
        most = self._place.learning.max_rollouts_per_startup
        with self._guard:
            while self.waiting:
                if self._claimed >= most or self._stop():
                    full = self._claimed >= most
                    why = f"one takes {most} sessions" if full else "this one has used up its time"
                    reason = f"left for the next run: {why}"
                    self._skipped += [
                        UnfinishedSession(session=document.name, reason=reason) for document in self.waiting
                    ]
                    self.waiting.clear()
                    return None
                document = self.waiting.pop(0)
                claim = self._claim(document, lease)
                if isinstance(claim, Claim):
                    self._claimed += 1
                    return claim, document
                self._skipped.append(UnfinishedSession(session=document.name, reason=claim.reason, error=claim.error))
        return None

    def _claim(self, document: Document, lease: timedelta) -> Claim | Skipped:
        place = self._place
        job = Job(scope=place.scope, kind=EXTRACT_JOB, key=document.name, watermark=session_watermark(document))
        return jobs.claim(place.store, job, lease=lease, clock=place.clock, force=self._force)

    def _one(self, claim: Claim, document: Document, think: Think, lease: timedelta) -> None:
        """Read, think, admit, write; what fails is reported with its reason and tried again later."""
        place = self._place
        retry_after = timedelta(seconds=place.learning.stage1_retry_delay_seconds)
        try:
            with place.hold(claim, lease=lease, retry_after=retry_after):
                self.write(claim, document, think(load_transcript(place, document)))
        except (LeaseLost, ProviderError, InvalidInput, Conflict, NotFound, ErasedBefore) as error:
            self.refuse(document.name, place.clean(error))

    def write(self, claim: Claim, document: Document, thought: Extraction) -> None:
        """Write all results of a session at once; raises ``LeaseLost`` if another worker has taken it over.

        If others have written in between, it is judged again by what is there now.
        """
        written, taken = self._place.writer.retry(
            lambda: changes_of(self._place, claim, document, thought), tries=GATE_TRIES,
            busy="the project's records are changed by others all the time",
        )  # fmt: skip
        if taken is None:
            self._empty.append(document.name)
        else:
            self._done.append(taken)
        self._notes += [note for note in written.notes if note not in self._notes]

    def refuse(self, session: str, reason: str) -> None:
        """Report a session as failed."""
        self._failed.append(UnfinishedSession(session=session, reason=reason))

    def skip(self, session: str, reason: str) -> None:
        """Note that a session has nothing to take yet."""
        self._skipped.append(UnfinishedSession(session=session, reason=reason))

    def report(self) -> ExtractReport:
        """What was done, by name."""
        return ExtractReport(
            done=tuple(sorted(self._done, key=lambda taken: taken.session)), empty=tuple(sorted(self._empty)),
            skipped=tuple(sorted(self._skipped, key=lambda left: left.session)),
            failed=tuple(sorted(self._failed, key=lambda left: left.session)), notes=tuple(self._notes),
        )  # fmt: skip


def load_transcript(place: Workspace, document: Document) -> Transcript:
    """A session as it was indexed: redacted, filtered, without what memory injected.

    Of one that is too long its beginning and its end are held, more of both than a model is ever shown: however long a
    session is, memory stays bounded.
    """
    by_rules = place.learning.mode == "rules"
    ends = _Ends(RULES_CHARS if by_rules else place.learning.phase1_input_token_limit * TOKEN_CHARS)
    for turn in _turns(place, document):
        ends.add(turn.replace(text=turn.text[-CHECK_CHARS:]) if by_rules and turn.speaker == TOOL else turn)
    return Transcript(name=document.name, turns=ends.turns)


def _turns(place: Workspace, document: Document) -> Iterator[Turn]:
    """The turns of a session one by one, read page by page; a turn may begin on one page and end on another."""
    where = DocumentFilter(
        scopes=frozenset({document.scope}), kinds=frozenset({document.kind}), names=frozenset({document.name})
    )
    last: Chunk | None = None
    held: Turn | None = None
    while page := place.store.chunks(where, limit=PAGE, after=last.seq if last else -1):
        found = join_chunks([last, *page] if last else page)
        if last and held:
            held = held.replace(text=held.text + found.pop(0).text[len(last.text) :])
        if held and found:
            yield held
        yield from found[:-1]
        held, last = (found[-1] if found else held), page[-1]
    if held:
        yield held


class _Ends:
    """The first turns and the last ones, each up to so many characters."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._first: list[Turn] = []
        self._last: deque[Turn] = deque()
        self._first_chars = self._last_chars = 0
        self._outside: tuple[Turn, ...] = ()

    def add(self, turn: Turn) -> None:
        """Add the next turn, and drop one in the middle if there are too many."""
        if self._first_chars < self._most:
            self._first.append(turn)
            self._first_chars += len(turn.text)
            return
        self._last.append(turn)
        self._last_chars += len(turn.text)
        while self._last_chars - len(self._last[0].text) >= self._most:
            gone = self._last.popleft()
            self._last_chars -= len(gone.text)
            if not self._outside and brings_in_text(gone):  # words from outside lower trust, wherever they were
                self._outside = (gone.replace(text=gone.text[:OUTSIDE_CHARS], speaker=TOOL),)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What is held, in order."""
        return (*self._first, *self._outside, *self._last)


def changes_of(
    place: Workspace, claim: Claim, document: Document, thought: Extraction
) -> tuple[Sequence[Change], ExtractedSession | None]:
    """The changes that finish a job, and what they store; None if there is no output."""
    extraction = DocumentFilter(
        scopes=frozenset({place.scope}), kinds=frozenset({DocumentKind.EXTRACTION}), names=frozenset({document.name})
    )
    earlier = next(iter(place.store.documents(extraction, limit=1)), None)
    kind, key = CONSOLIDATE
    due = Job(scope=place.scope, kind=kind, key=key, watermark=claim.job.watermark)
    end = Finish(claim=claim, at=place.clock())
    if thought.is_empty:
        gone: list[Change] = [DeleteDocuments(where=extraction), Enqueue(job=due, force=True)] if earlier else []
        return [*gone, end], None
    passed = decide(place, document.name, thought.proposals, earlier=earlier)
    thought = _without_erased(_without_personal(thought, document.name, passed.shared), passed.unsayable)
    text = place.document(
        DocumentKind.EXTRACTION, document.name, thought.raw, Channel.EXTRACTION,
        _metadata(place, claim, thought, passed, earlier),
    )  # fmt: skip
    taken = ExtractedSession(
        session=document.name, records=tuple(record.id for record in passed.records), held=passed.held,
        replaced=passed.replaced, left_out=(*thought.left_out, *passed.left_out), redactions=passed.redactions,
    )  # fmt: skip
    return [*passed.changes, text, Enqueue(job=due), end], taken


def _without_personal(thought: Extraction, session: str, shared: Sequence[Proposal]) -> Extraction:
    """Replace the texts of an extraction, which files of the project show, if something in it is the user's own.

    What a model has written in its own words cannot be divided, so they are made of the project's facts alone.
    """
    if len(shared) == len(thought.proposals):
        return thought
    raw, summary = texts_of(session, shared)
    return thought.replace(raw=raw, summary=summary, slug=None)


def _without_erased(thought: Extraction, words: frozenset[str]) -> Extraction:
    """Remove the words of records that a person has erased: the transcript may still have them."""
    if not words:
        return thought
    erasure = Erasure.of((), words=words)
    slug_text = thought.slug if thought.slug and not erasure.is_in(thought.slug.replace("_", " ")) else None
    return thought.replace(
        raw=without_erased_blocks(thought.raw, erasure),
        summary=without_erased_sentences(thought.summary, erasure),
        slug=slug_text,
    )


def _metadata(
    place: Workspace, claim: Claim, thought: Extraction, passed: Decision, earlier: Document | None
) -> Mapping[str, Json]:
    """Return the metadata of an extraction; its digests recognise forgotten facts and reveal nothing else."""
    before = earlier.metadata.get("digests") if earlier else None
    secret = place.secret()
    digests: dict[str, Json] = {record.id: keyed_digest(comparable_text(record), secret) for record in passed.records}
    return {
        "summary": thought.summary,
        "slug": slug(thought.slug)[:SLUG_CHARS] if thought.slug else None,
        "mode": thought.mode,
        "model": thought.model,
        "watermark": claim.job.watermark,
        NOT_KEPT: [
            {"turn": one.ref, "quote": one.quote, "reason": one.reason}
            for one in (*thought.refused, *passed.refused)
            if one.reason != FORGOTTEN
        ],
        "records": list[Json](dict.fromkeys([*(record.id for record in passed.records), *passed.again])),
        **learned_counts(len(passed.records), passed.held),
        "digests": (before if isinstance(before, dict) else {}) | digests,
        "tokens_in": thought.tokens_in,
        "tokens_out": thought.tokens_out,
    }

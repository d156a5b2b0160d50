"""From proposals to changes: what is worth a record, what is known, what replaces what.  Nothing is written here.

A later fact about the same subject replaces an earlier one, which is kept; an older one joins the past that it belongs
to; one that is trusted less than what it would replace waits for a person.  Nothing is dropped without a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from commonplace.engine.admission import Admitted
from commonplace.engine.forgetting import words_only_in
from commonplace.engine.rendering import keyed_digest
from commonplace.engine.replacing import Rivals, closing, find_rivals, naming, relate, subject_of
from commonplace.engine.review import SUPERSEDE, HeldChange
from commonplace.engine.tombstones import normal_form, record_erased
from commonplace.learning.consolidate_rules import evidence_of
from commonplace.learning.proposals import Proposal, RefusedRequest
from commonplace.learning.workspace import Workspace
from commonplace.learning.worth import worthless_reason
from commonplace.model.changes import Change, Require
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import INSTRUCTIVE, Channel, Draft, Json, Record, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.replacement import Relation
from commonplace.text.words import plan

FORGOTTEN = "forgotten by a person"
KNOWN = "known already"
LIVE = frozenset({State.LIVE})
LOOKED_UP = 16  # records that are read at first to find one that says the same: nearly always enough
QUOTE_CHARS = 1000  # of a quote that is stored with a record


class Decision(Value):
    """What passed, and what did not."""

    changes: tuple[Change, ...]  #: the first one refuses them all if another process has written meanwhile
    records: tuple[Record, ...] = ()  #: that will be there, live or not
    again: tuple[str, ...] = ()  #: ids of records that say the same already
    held: int = 0  #: of them wait for a person
    replaced: tuple[str, ...] = ()  #: ids of records whose validity ends
    left_out: tuple[str, ...] = ()  #: why, for each proposal that came to nothing
    refused: tuple[RefusedRequest, ...] = ()  #: those of them that the user asked to have remembered
    redactions: tuple[Finding, ...] = ()
    shared: tuple[Proposal, ...] = ()  #: those of the project; all others are the user's own and in none of its files
    unsayable: frozenset[str] = frozenset()  #: words that nothing but what a person has forgotten would tell


def decide(
    place: Workspace, session: str, proposals: Sequence[Proposal], *, earlier: Document | None = None
) -> Decision:
    """Decide what is stored of some proposals; ``earlier`` is the former extraction of this session."""
    gate = _Decider(place, session, earlier)
    shared = tuple(one for one in proposals if gate.scope(one) == place.scope)
    oldest = datetime.min.replace(tzinfo=UTC)
    for proposal in sorted(proposals, key=lambda one: one.occurred_at or oldest):
        gate.propose(proposal)
    return Decision(
        changes=gate.all_changes(), records=tuple(gate.records), again=tuple(gate.again),
        replaced=tuple(gate.replaced), held=sum(record.held for record in gate.records),
        left_out=tuple(gate.left_out), refused=tuple(gate.refused),
        redactions=tuple(gate.redactions), shared=shared, unsayable=gate.unsayable(),
    )  # fmt: skip


def comparable_text(record: Record) -> str:
    """The text of a record without what makes no difference."""
    return normal_form(record.content)


class _Known:
    """What is stored already, looked up by its words: only what a proposal can collide with is read."""

    def __init__(self, place: Workspace) -> None:
        scopes = frozenset({place.scope} | ({place.personal} if place.personal else set()))
        self._store, self._where = place.store, Filter(scopes=scopes, at=place.clock(), states=ANY_STATE)
        self.unchanged = Require(where=self._where, digest=place.store.versions_digest(self._where))
        self._added: dict[tuple[Scope, str], str] = {}  # what this session adds: its id by its text
        self._live: dict[str, Record] = {}  # and those of it that hold
        self._closed: set[str] = set()

    def add(self, record: Record, *, closes: Sequence[Record] = (), current: bool) -> None:
        """Take a record of this session into account."""
        self._closed |= {one.id for one in closes}
        self._live = {name: one for name, one in self._live.items() if name not in self._closed}
        if current:
            self._live[record.id] = record
        self._added.setdefault((record.scope, comparable_text(record)), record.id)

    def same(self, record: Record) -> str | None:
        """Return the id of a record with the same text, in any state."""
        name = (record.scope, comparable_text(record))
        stored = self._with_words(self._where.replace(scopes=frozenset({record.scope})), name[1])
        return self._added.get(name) or max((one.id for one in stored if comparable_text(one) == name[1]), default=None)

    def rivals(self, record: Record) -> Rivals:
        """What a record does to the live ones, those of this session among them."""
        found = find_rivals(self._store, record, now=self._where.at, among=[*self._live.values()])
        return found.replace(closes=tuple(one for one in found.closes if one.id not in self._closed))

    def said(self, record: Record) -> str | None:
        """Return the id of a live record that was saved from the same words of the same turn, by the agent itself."""
        evidence, quote = set(evidence_of(record)), str(record.metadata.get("quote") or "")
        if not evidence or not quote:
            return None
        where = self._where.replace(states=LIVE, sources=frozenset(evidence))
        found = self._store.find(where, order=Order.ID, limit=LOOKED_UP)
        return next((one.id for one in found if _same_words(one, quote)), None)

    def words_only_in(self, texts: Sequence[str]) -> frozenset[str]:
        """The words of some texts that no record has."""
        left = words_only_in(texts, (text for _, text in self._added))
        return frozenset(word for word in left if not self._store.match(self._where, plan(word), limit=1))

    def _with_words(self, where: Filter, text: str) -> list[Record]:
        """The records that may say that text: those with its longest word, if they are few, else with more words."""
        query = plan(text)
        longest = sorted(query.words, key=lambda word: len(word.text), reverse=True)
        words, limit = 1, LOOKED_UP
        while True:
            found = self._store.match(where, query.replace(words=tuple(longest[:words])), limit=limit)
            whole = [match.record for match in found if match.record and match.coverage >= 1]
            if len(whole) < limit:  # what has every word comes first: there are no more
                return whole
            words, limit = (words + 1, limit) if words < len(longest) else (words, limit * 4)


class _Decider:
    """What comes of each proposal."""

    def __init__(self, place: Workspace, session: str, earlier: Document | None) -> None:
        self._place, self._session = place, session
        self._known = _Known(place)
        self._erased_digests = _erased_digests(place, earlier)
        self.changes: list[Change] = []
        self.records: list[Record] = []
        self.again: list[str] = []
        self.replaced: list[str] = []
        self.left_out: list[str] = []
        self.refused: list[RefusedRequest] = []
        self._unwanted: list[str] = []
        self.redactions: list[Finding] = []

    def all_changes(self) -> tuple[Change, ...]:
        """The changes, which are refused if other records were written meanwhile."""
        return (self._known.unchanged, *self.changes) if self.changes else ()

    def unsayable(self) -> frozenset[str]:
        """Words that would bring back what was erased if they stayed in the extraction."""
        return self._known.words_only_in(self._unwanted) if self._unwanted else frozenset()

    def propose(self, proposal: Proposal) -> None:
        """Store a proposal, or note why not."""
        reason = worthless_reason(proposal.content)
        limit = self._place.learning.max_records_per_session
        if reason is None and len(self.records) >= limit and not proposal.asked:
            reason = f"more than {limit} of one session"
        if reason is None:
            try:
                reason = self._add(proposal)
            except InvalidInput as error:
                reason = str(error)
        if reason:
            self.left_out.append(reason)
            if proposal.asked and reason != KNOWN:
                ref = next(iter(proposal.refs), "")
                self.refused.append(RefusedRequest(quote=proposal.quote, ref=ref, reason=reason))

    def _add(self, proposal: Proposal) -> str | None:
        """Make the changes for a proposal; a reason if there is none to make."""
        place, draft = self._place, self._draft(proposal)
        admitted = place.writer.admit(draft, place.bind(Channel.EXTRACTION), parent_trust=proposal.trust)
        record = admitted.record
        self.redactions += admitted.redactions
        if same := self._known.same(record) or self._known.said(record):
            self.again.append(same)
            return KNOWN
        if self._was_erased(record):
            self._unwanted += [proposal.content, proposal.quote]
            return FORGOTTEN
        self._put_in_time(admitted)
        return None

    def _was_erased(self, record: Record) -> bool:
        """Whether a person has erased what this says, wherever it came from then."""
        known = keyed_digest(comparable_text(record), self._place.secret()) in self._erased_digests
        return known or record_erased(self._place.store, [record], self._place.secret()) is not None

    def _draft(self, proposal: Proposal) -> Draft:
        evidence: list[Json] = [f"{DocumentKind.SESSION}:{self._session}#{ref}" for ref in proposal.refs]
        subject = " ".join((proposal.subject or "").split()).casefold()
        about: dict[str, Json] = {
            "evidence": evidence or [f"{DocumentKind.SESSION}:{self._session}"],
            "quote": proposal.quote[:QUOTE_CHARS],
            "subject": subject,
            "keywords": [subject.replace("_", " ")] if subject else [],  # so that it is found by what it is about
        }
        untrusted = proposal.trust is Trust.EXTERNAL and proposal.category in INSTRUCTIVE
        scope = self.scope(proposal)
        unquoted = scope == self._place.personal and not proposal.by_user  # it would hold everywhere
        return Draft(
            content=proposal.content, category=proposal.category, scope=scope,
            metadata={name: value for name, value in about.items() if value}, ref=str((evidence or [None])[0] or ""),
            occurred_at=proposal.occurred_at, held=untrusted or unquoted or not proposal.founded,
        )  # fmt: skip

    def scope(self, proposal: Proposal) -> Scope:
        """Preferences that hold everywhere are the person's own; everything else is the project's."""
        everywhere = proposal.scope == "assistant" and proposal.category == "preferences"
        return self._place.personal if everywhere and self._place.personal else self._place.scope

    def _put_in_time(self, admitted: Admitted) -> None:
        """Put a record, and close what it contradicts, or itself if it is the older one."""
        record = admitted.record
        rivals = self._known.rivals(record)
        outranked = [one for one in rivals.asks if record.authority < one.authority and _contradicts(record, one)]
        if outranked:  # both stay until a person has decided
            change = HeldChange(action=SUPERSEDE, target=outranked[0].id, version=outranked[0].version)
            record, rivals = record.replace(held=True, metadata=change.metadata(record.metadata)), Rivals()
        record = naming(record, rivals)
        put = admitted.replace(record=record).put(dedupe=not (rivals.closes or rivals.closed_by))
        self.records.append(record)
        self.changes += [closing(old, record, now=record.created_at) for old in rivals.closes]
        self.changes.append(put)
        if rivals.closed_by:
            self.changes.append(closing(record, rivals.closed_by, now=record.created_at))
        self.replaced += [old.id for old in rivals.closes]
        self._known.add(record, closes=rivals.closes, current=not (record.held or rivals.closed_by))


def _contradicts(record: Record, other: Record) -> bool:
    return relate(other, record) is Relation.REPLACES or subject_of(other) == subject_of(record) is not None


def _same_words(record: Record, quote: str) -> bool:
    own = str(record.metadata.get("quote") or "")
    return record.source.channel is Channel.AGENT and bool(own) and (own in quote or quote in own)


def _erased_digests(place: Workspace, earlier: Document | None) -> frozenset[str]:
    """What was made of this session once and erased by a person since: old transcripts must not bring it back."""
    made = earlier.metadata.get("digests") if earlier else None
    if not isinstance(made, dict):
        return frozenset()
    return frozenset(str(digest) for name, digest in made.items() if place.store.get(name) is None)

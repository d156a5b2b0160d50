"""From proposals to changes: what is worth a record, what is known, what replaces what.  Nothing is written here.

A later fact about the same subject replaces an earlier one, which is kept; an older one joins the past that it belongs
to; one that is trusted less than what it would replace waits for a person.  Nothing is dropped without a reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from commonplace.engine.admission import Admitted
from commonplace.engine.forgetting import only_in
from commonplace.engine.rendering import keyed_digest
from commonplace.learning.rules import Proposal
from commonplace.learning.workspace import Workplace
from commonplace.model.changes import Change, Require, Supersede
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import Channel, Draft, Json, Record, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import Value
from commonplace.redact.redaction import Finding
from commonplace.text.words import terms

CONTENT_CHARS = 8  # "Use pnpm": shorter is no sentence
CONTENT_WORDS = 2
QUOTE_CHARS = 1000  # of a quote that is kept beside a record
EVENTS = frozenset({"incidents"})  # what happened does not replace what happened before
INSTRUCTIVE = frozenset({"procedures", "principles", "preferences"})  # they tell agents what to do
_EMPTY_WORDS = frozenset(
    """a an the is are was were be it this that these those i you we they he she do does did done to of in on at for
    and or but not no yes ok okay please thanks thank so just very really will would can could should there here
    """.split()  # noqa: SIM905 - fifty quoted words are harder to read
)


class Gated(Value):
    """What passed, and what did not."""

    changes: tuple[Change, ...]  #: the first one refuses them all if somebody else has written meanwhile
    records: tuple[Record, ...] = ()  #: that will be there, live or not
    again: tuple[str, ...] = ()  #: ids of records that say the same already
    held: int = 0  #: of them wait for a person
    replaced: tuple[str, ...] = ()  #: ids of records whose validity ends
    left_out: tuple[str, ...] = ()  #: why, for each proposal that came to nothing
    redactions: tuple[Finding, ...] = ()
    unsayable: frozenset[str] = frozenset()  #: words that nothing but what a person has forgotten would tell


def gated(place: Workplace, session: str, proposals: Sequence[Proposal], *, earlier: Document | None = None) -> Gated:
    """The changes that keep what is worth keeping; ``earlier`` is what was made of this session before."""
    gate = _Gate(place, session, earlier)
    oldest = datetime.min.replace(tzinfo=UTC)
    for proposal in sorted(proposals, key=lambda one: one.occurred_at or oldest):
        gate.take(proposal)
    return Gated(
        changes=gate.decided(), records=tuple(gate.records), again=tuple(gate.again),
        replaced=tuple(gate.replaced), held=sum(record.held for record in gate.records),
        left_out=tuple(gate.left_out), redactions=tuple(gate.redactions), unsayable=gate.unsayable(),
    )  # fmt: skip


def said(record: Record) -> str:
    """What a record says, whatever its spaces and capitals."""
    return _folded(record.content)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".!")


class _Gate:
    """What is known so far, and what comes of each proposal."""

    def __init__(self, place: Workplace, session: str, earlier: Document | None) -> None:
        self._place, self._session = place, session
        scopes = frozenset({place.scope} | ({place.personal} if place.personal else set()))
        where = Filter(scopes=scopes, at=place.clock(), states=ANY_STATE)
        known = place.store.find(where, order=Order.OLDEST, limit=-1)
        self.unchanged = Require(where=where, count=len(known))
        self._known = {(record.scope, said(record)): record.id for record in known}
        self._forgotten = _forgotten(place, earlier)
        live = [record for record in known if record.state(place.clock()) is State.LIVE]
        self._current = {about: record for record in live if (about := _about(record))}
        self.changes: list[Change] = []
        self.records: list[Record] = []
        self.again: list[str] = []
        self.replaced: list[str] = []
        self.left_out: list[str] = []
        self._unwanted: list[str] = []
        self.redactions: list[Finding] = []

    def decided(self) -> tuple[Change, ...]:
        """The changes, which hold only as long as nobody else has written."""
        return (self.unchanged, *self.changes) if self.changes else ()

    def unsayable(self) -> frozenset[str]:
        """Words by which the rest of what was thought would bring back what was forgotten."""
        return only_in(self._unwanted, (text for _, text in self._known)) if self._unwanted else frozenset()

    def take(self, proposal: Proposal) -> None:
        """Keep a proposal, or say why not."""
        reason = worthless(proposal.content)
        if reason is None and len(self.records) >= self._place.learning.max_records_per_session:
            reason = f"more than {self._place.learning.max_records_per_session} of one session"
        if reason is None:
            try:
                reason = self._admitted(proposal)
            except InvalidInput as error:
                reason = str(error)
        if reason:
            self.left_out.append(reason)

    def _admitted(self, proposal: Proposal) -> str | None:
        """Make the changes for a proposal; a reason if there is none to make."""
        place, draft = self._place, self._draft(proposal)
        admitted = place.writer.admit(draft, place.bind(Channel.EXTRACTION), parent_trust=proposal.trust)
        record = admitted.record
        self.redactions += admitted.redactions
        if same := self._known.get((record.scope, said(record))):
            self.again.append(same)
            return "known already"
        if keyed_digest(said(record), self._place.secret()) in self._forgotten:
            self._unwanted += [proposal.content, proposal.quote]
            return "forgotten by a person"
        self._known[record.scope, said(record)] = record.id
        self._place_in_time(admitted)
        return None

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
        return Draft(
            content=proposal.content, category=proposal.category, scope=self._scope(proposal),
            metadata={name: value for name, value in about.items() if value}, ref=str((evidence or [None])[0] or ""),
            occurred_at=proposal.occurred_at, held=untrusted,
        )  # fmt: skip

    def _scope(self, proposal: Proposal) -> Scope:
        """Preferences that hold everywhere are the person's own; everything else is the project's."""
        everywhere = proposal.scope == "assistant" and proposal.category == "preferences"
        return self._place.personal if everywhere and self._place.personal else self._place.scope

    def _place_in_time(self, admitted: Admitted) -> None:
        """Put a record, and close whichever of it and its rival is the older one."""
        record, about = admitted.record, _about(admitted.record)
        rival = self._current.get(about) if about and not record.held else None
        if rival and record.trust < rival.trust:
            record, rival = record.replace(held=True), None  # beside the other one, until a person has decided
        put = admitted.replace(record=record).put(dedupe=True)
        self.records.append(record)
        if rival is None or _since(record) == _since(rival):
            self.changes.append(put)
        elif _since(record) > _since(rival):
            close = Supersede(id=rival.id, by=record.id, at=_since(record), now=record.created_at)
            self.changes += [close, put.replace(dedupe=False)]
            self.replaced.append(rival.id)
        else:
            close = Supersede(id=record.id, by=rival.id, at=_since(rival), now=record.created_at)
            self.changes += [put.replace(dedupe=False), close]
            return
        if about and not record.held:
            self._current[about] = record


def _about(record: Record) -> tuple[Scope, str, str] | None:
    """What a record is about, if it is something of which one thing holds at a time."""
    subject = record.metadata.get("subject") or record.key
    if not isinstance(subject, str) or record.category in EVENTS:
        return None
    return record.scope, record.category, subject.casefold()


def _since(record: Record) -> datetime:
    return record.occurred_at or record.created_at


def worthless(content: str) -> str | None:
    """Why a text is no fact: the least that a record has to say."""
    text = " ".join(content.split())
    words = [word for word in terms(text) if word not in _EMPTY_WORDS]
    if len(text) < CONTENT_CHARS or len(words) < CONTENT_WORDS:
        return "too short to mean anything"
    if text.endswith("?"):
        return "a question"
    return None


def _forgotten(place: Workplace, earlier: Document | None) -> frozenset[str]:
    """What was made of this session once and erased by a person since: old transcripts must not bring it back."""
    made = earlier.metadata.get("digests") if earlier else None
    if not isinstance(made, dict):
        return frozenset()
    return frozenset(str(digest) for name, digest in made.items() if place.store.get(name) is None)

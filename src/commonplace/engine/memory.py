"""Memory: the verbs of records.  Each is one decision: read what it needs, make changes, apply them once.

A memory is a store seen through a binding: it writes where the binding says and sees nothing outside of it; a record
that the binding may not read does not exist here.  How changes are written is in ``writer``, how questions are
answered in ``recall``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.ranking import distinct, within
from commonplace.engine.recall import CANDIDATES, RECALL_LIMIT, Recall, count_use, newest, search
from commonplace.model.binding import Binding
from commonplace.model.changes import Archive, Change, Outcome, Restore, Supersede
from commonplace.model.documents import Document, DocumentKind
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound
from commonplace.model.ids import is_prefix
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import CEILING, EMPTY, Channel, Draft, Json, Kind, Record, Source, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import UNSET, Value
from commonplace.text.cleaning import one_line
from commonplace.text.question import Profile

if TYPE_CHECKING:  # writing is half of the start-up, and no recall writes
    from commonplace.engine.admission import Admitted
    from commonplace.engine.forgetting import Erasure
    from commonplace.engine.review import ReviewResult
    from commonplace.engine.transcripts import Turn
    from commonplace.engine.writer import Writer
    from commonplace.redact.redaction import Finding

LIST_LIMIT = 50


class WriteResult(Value):
    """The result of a write."""

    record: Record
    deduped: bool = False  #: a live record had the same text and is returned instead
    redactions: tuple[Finding, ...] = ()  #: secrets that were removed before anything was written
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences
    superseded: Record | None = None  #: the record whose validity was closed
    held_for: str | None = None  #: the id of the record that would be changed: ``record`` is a proposal for review


class IndexResult(Value):
    """The result of indexing a session or a ticket."""

    redactions: tuple[Finding, ...] = ()  #: secrets that were removed before anything was written
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences


class ForgetResult(Value):
    """The result of erasing records."""

    ids: tuple[str, ...]  #: the record, and what was derived from it alone
    pending: bool = False  #: gone from every answer, but a reader still holds old bytes of the file; tried again later
    receipt: str | None = None  #: the receipt, where a tombstone was left
    held: Record | None = None  #: the proposal that waits for review; then nothing was erased
    notes: tuple[str, ...] = ()  #: what else the caller should know, as sentences


def now_utc() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Memory:
    """The records of a store, as one caller may read and write them."""

    def __init__(
        self,
        store: Store,
        binding: Binding,
        *,
        clock: Clock = now_utc,
        embedder: Embedder | None = None,
        secret: Callable[[], bytes] = bytes,
        erased: Callable[[Erasure], None] = lambda _: None,
    ) -> None:
        """See the store through the binding; ``secret`` gives the key of redaction marks, asked for when needed.

        ``erased`` is called after an erasure, so that files that repeat the erased text can be rewritten.
        """
        self.store = store
        self.binding = binding
        self.clock = clock
        self.embedder = embedder
        self.secret = secret
        self.erased = erased

    # Writing

    def remember(
        self,
        content: str = "",
        *,
        category: str | None = None,
        kind: Kind | None = None,
        scope: Scope | None = None,
        key: str | None = None,
        value: Json = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Json] = EMPTY,
        ref: str | None = None,
        parents: Sequence[str] = (),
        pinned: bool = False,
        held: bool = False,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        ttl: timedelta | None = None,
        supersedes: str | None = None,
    ) -> WriteResult:
        """Store a record.

        If a live record of the same scope and kind has the same text, that one is returned and nothing is written.  A
        key that is taken gets a new version.  ``supersedes`` names a record that this one replaces; it is archived.
        """
        draft = Draft(
            content=content, category=category, kind=kind, scope=scope, key=key, value=value, tags=frozenset(tags),
            metadata=metadata, ref=ref, parents=tuple(parents), pinned=pinned, held=held, occurred_at=occurred_at,
            expires_at=expires_at, ttl=ttl,
        )  # fmt: skip
        admitted = self._admit(draft)
        if supersedes is not None:
            return self._supersede(self.get(supersedes), admitted)
        if key is not None:
            return self._remember_key(admitted)
        return self._put(admitted, dedupe=True)

    def update(
        self,
        id: str,
        *,
        content: str = UNSET,
        tags: Iterable[str] = UNSET,
        metadata: Mapping[str, Json] = UNSET,
        value: Json = UNSET,
        occurred_at: datetime | None = UNSET,
        expires_at: datetime | None = UNSET,
        pinned: bool = UNSET,
        held: bool = UNSET,
        category: str = UNSET,
        expect: int | None = None,
    ) -> WriteResult:
        """Change the named fields of a record; its former version stays in the history.

        ``expect`` makes it conditional: if the record is at another version, ``Conflict`` says which.  A change of a
        record that is trusted more than the caller is held for review (``held_for``).
        """
        named = {
            "content": content, "tags": tags, "metadata": metadata, "value": value, "occurred_at": occurred_at,
            "expires_at": expires_at, "pinned": pinned, "held": held, "category": category,
        }  # fmt: skip
        changes: dict[str, Any] = {field: change for field, change in named.items() if change is not UNSET}
        if "tags" in changes:
            changes["tags"] = frozenset(changes["tags"])
        from commonplace.engine.edits import edit_record, outranks, readmit  # noqa: PLC0415 - no recall edits

        before = self._writable(id)
        if outranks(before, self):
            return self._propose(before, edit_record(self, before, changes), changes, expect=expect)
        return self._rewrite(id, lambda before: readmit(self, edit_record(self, before, changes), before), expect)

    def reclassify(self, id: str, category: str, *, expect: int | None = None) -> WriteResult:
        """Move a record to another category; its id stays."""
        return self.update(id, category=category, expect=expect)

    def pin(self, id: str) -> Record:
        """Exempt a record from eviction."""
        return self.update(id, pinned=True).record

    def unpin(self, id: str) -> Record:
        """Let a record be evicted again."""
        return self.update(id, pinned=False).record

    def hold(self, id: str) -> Record:
        """Take a record out of recall until a person has looked at it."""
        return self.update(id, held=True).record

    def release(self, id: str) -> Record:
        """Let a held record be recalled, or make the change that it proposes: the same as ``approve``."""
        from commonplace.engine import review  # noqa: PLC0415 - no recall decides

        return review.release(self, self._writable(id))

    def approve(self, id: str, *, alone: bool = False) -> ReviewResult:
        """Make a record a person's word: release it, approve its words, or make the change that it proposes.

        ``alone`` approves the words of one that would replace another, and leaves that one as it is.
        """
        from commonplace.engine import review  # noqa: PLC0415 - no recall decides

        return review.approve(self, self._writable(id), alone=alone)

    def reject(self, id: str) -> Record:
        """Archive what waits for review; a change that it proposes is not made."""
        from commonplace.engine import review  # noqa: PLC0415 - no recall decides

        return review.reject(self, self._writable(id))

    def archive(self, id: str) -> Record:
        """Remove a record from recall without erasing it; of a more trusted record, propose it (held for review)."""
        from commonplace.engine import edits, review  # noqa: PLC0415 - no recall archives

        record = self._writable(id)
        if edits.outranks(record, self):
            return review.propose_end(self, record, review.ARCHIVE).record
        self.store.apply([Archive(where=self._only(record), at=self.clock())])
        return self.get(record.id)

    def restore(self, id: str, *, version: int | None = None) -> Record:
        """Bring an archived record back, or an earlier version of a record."""
        from commonplace.engine.edits import outranks  # noqa: PLC0415 - no recall restores

        record = self._writable(id)
        if outranks(record, self):
            raise Forbidden(f"record {record.id!r} is a person's; {self.binding.channel} may not restore it")
        if version is not None:
            earlier = next((past for past in self.history(record.id) if past.version == version), None)
            if earlier is None:
                raise NotFound(f"record {record.id!r} has no version {version}")
            return self._revert(record, earlier)
        self.store.apply([Restore(where=self._only(record), at=self.clock())])
        return self.get(record.id)

    def forget(self, id: str, *, for_good: bool | None = None) -> ForgetResult:
        """Erase a record with its history, the records derived from it alone, and what memory has written of it.

        ``for_good`` leaves a tombstone, so that no agent, import, file or old session brings the text back, and a
        receipt; by default where a person erases.  Of a record that is trusted more than the caller nothing is erased:
        the wish is held for review.
        """
        from commonplace.engine import edits, review  # noqa: PLC0415 - no recall erases
        from commonplace.engine.forgetting import Removal, erase  # noqa: PLC0415 - no recall erases

        record = self._writable(id)
        if edits.outranks(record, self):
            held = review.propose_end(self, record, review.FORGET)
            return ForgetResult(ids=(), held=held.record, notes=held.notes)
        removal = Removal(records=(record,))
        if self.binding.channel is Channel.USER if for_good is None else for_good:
            from commonplace.engine.erasing import Eraser  # noqa: PLC0415 - see above

            eraser = Eraser(
                self.store, reads=self.binding.reads, secret=self.secret, clock=self.clock, by=self.binding.channel
            )
            receipt, erasure = eraser.carry_out(removal)
            done = ForgetResult(ids=receipt.records, pending=receipt.pending, receipt=receipt.id)
        else:
            outcome, erasure = erase(self.store, removal, reads=self.binding.reads, now=self.clock())
            done = ForgetResult(ids=outcome.gone, pending=outcome.erasing)
        self.erased(erasure)
        return done

    def clear(self, scope: Scope) -> ForgetResult:
        """Erase everything in a scope."""
        from commonplace.engine.edits import is_person, outranks  # noqa: PLC0415 - see forget
        from commonplace.engine.forgetting import clear  # noqa: PLC0415 - see forget

        self._may_write(scope)
        if not is_person(self) and any(outranks(record, self) for record in self._everything(scope)):
            raise Forbidden(f"{scope} holds what a person wrote or approved; {self.binding.channel} may not clear it")
        outcome, erasure = clear(self.store, scope, now=self.clock())
        self.erased(erasure)
        return ForgetResult(ids=outcome.gone, pending=outcome.erasing)

    def index(self, kind: DocumentKind, name: str, turns: Sequence[Turn], *, scope: Scope | None = None) -> IndexResult:
        """Make a session or a ticket searchable; indexing the same text again changes nothing.

        Only scopes that take transcripts do; the assistant's own holds records alone.
        """
        target = scope or next(iter(sorted(self.binding.transcripts, key=str)), None)
        if target is None or target not in self.binding.transcripts:
            raise Forbidden(f"{target or 'this binding'} takes records only, no sessions and no tickets")
        from commonplace.engine.admission import Gate, transcript_policy  # noqa: PLC0415 - see above
        from commonplace.engine.tombstones import (  # noqa: PLC0415 - see above
            document_erased,
            refusal_notes,
            without_erased_turns,
        )
        from commonplace.engine.transcripts import chunk_turns, digest_of  # noqa: PLC0415 - see above
        from commonplace.engine.writer import document_change  # noqa: PLC0415 - see above

        gate = Gate(self.secret(), personal=transcript_policy(self.binding, target))
        name = one_line(gate.text(name, what="the name"))
        if erased := document_erased(self.store, (target, name), self.secret()):
            return IndexResult(redactions=tuple(gate.findings), notes=refusal_notes([erased], kind))
        said = chunk_turns(target, kind, name, turns, gate)
        pieces, gone = without_erased_turns(self.store, said, self.secret())
        now = self.clock()
        source = Source(channel=Channel.CAPTURE, ref=name)
        document = Document(
            scope=target, kind=kind, name=name, digest=digest_of(pieces), source=source,
            trust=CEILING[Channel.CAPTURE], created_at=now, updated_at=now,
        )  # fmt: skip
        written = self.writer.apply([document_change(document, pieces)])
        return IndexResult(redactions=tuple(gate.findings), notes=(*written.notes, *refusal_notes(gone, "turn")))

    # Reading

    def recall(
        self,
        query: str,
        *,
        scopes: Sequence[Scope] | None = None,
        kinds: Iterable[Kind] | None = None,
        categories: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        limit: int = RECALL_LIMIT,
        budget: int | None = None,
        as_of: datetime | None = None,
        trusts: Iterable[Trust] | None = None,
        states: Iterable[State] = (State.LIVE,),
        profile: Profile | None = None,
        count: bool = True,
    ) -> Recall:
        """Return the records that match a question, best first; without words in it, the newest.

        ``budget`` limits the tokens of all hits; ``as_of`` searches a past state; ``profile`` is a question about the
        past or about current work (default: guessed from its form); ``count`` counts the recall as use.
        """
        if limit < 1:
            raise InvalidInput(f"a limit of {limit} would find nothing")
        where = self._where(
            scopes, kinds=kinds, categories=categories, tags=tags, as_of=as_of, states=frozenset(states), trusts=trusts
        )
        found = search(
            self.store, self.embedder, where.replace(chunks=_searches_chunks(where)), query, profile=profile,
            limit=2 * limit, candidates=max(CANDIDATES, 2 * limit),
        )  # fmt: skip
        hits = newest(self.store, where, limit=limit) if found is None else distinct(found.hits)[:limit]
        chosen, notes = within(hits, budget), () if found is None else found.notes
        used = [hit.record.id for hit in chosen if hit.record] if count and as_of is None else []
        return Recall(
            query=query, hits=tuple(chosen), notes=(*notes, *count_use(self.store, used, self.clock()))
        )  # fmt: skip

    def get(self, id: str) -> Record:
        """Return a record by its id or a unique prefix of it; archived ones too."""
        if not is_prefix(id):
            raise NotFound(f"there is no record {id!r}")
        where = Filter(scopes=frozenset(self.binding.reads), at=self.clock(), states=ANY_STATE, prefix=id)
        found = self.store.find(where, order=Order.ID, limit=4)
        if not found:
            raise NotFound(f"there is no record {id!r}")
        if len(found) > 1:
            several = ", ".join(record.id for record in found[:3]) + (", ..." if len(found) > 3 else "")  # noqa: PLR2004
            raise InvalidInput(f"{id!r} begins the ids of several records: {several}")
        return found[0]

    def list(
        self,
        *,
        scopes: Sequence[Scope] | None = None,
        kinds: Iterable[Kind] | None = None,
        categories: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        trusts: Iterable[Trust] | None = None,
        states: Iterable[State] = (State.LIVE,),
        sources: Iterable[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: Record | None = None,
        pinned: bool | None = None,
        order: Order = Order.NEWEST,
        limit: int = LIST_LIMIT,
    ) -> Sequence[Record]:
        """Return the records that match, newest first; ``before`` is the last record of the page before.

        ``sources`` are channels (`import`) or references of sources; ``since`` and ``until`` limit when the records
        were created; ``pinned`` returns only those that are, or are not.
        """
        where = self._where(
            scopes, kinds=kinds, categories=categories, tags=tags, states=frozenset(states), trusts=trusts
        ).replace(since=since, until=until, sources=None if sources is None else frozenset(sources), pinned=pinned)
        if before is not None:
            where = where.replace(earlier=(before.created_at, before.id))
        return self.store.find(where, order=order, limit=limit)

    def history(self, id: str) -> Sequence[Record]:
        """Return every version of a record, newest first."""
        record = self.get(id)
        where = self._only(record).replace(versions=True)
        return self.store.find(where, order=Order.ID, limit=record.version + 1)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # How writes are made

    @property
    def writer(self) -> Writer:
        """Writes to this store with this embedder, wherever the caller may."""
        from commonplace.engine.writer import Writer  # noqa: PLC0415 - see above

        return Writer(self.store, clock=self.clock, embedder=self.embedder, secret=self.secret)

    def _admit(self, draft: Draft) -> Admitted:
        parents = [self.get(parent) for parent in draft.parents]
        known = draft.replace(parents=tuple(parent.id for parent in parents))
        trust = min((parent.trust for parent in parents), default=Trust.USER)
        return self.writer.admit(known, self.binding, parent_trust=trust)

    def _put(self, admitted: Admitted, *, expect: int = 0, dedupe: bool = False) -> WriteResult:
        written = self.writer.apply(self._puts(admitted, expect=expect, dedupe=dedupe))
        return _result(written.outcomes[0], admitted, written.notes)

    def _puts(self, admitted: Admitted, *, expect: int, dedupe: bool = False) -> Sequence[Change]:
        from commonplace.engine.writer import trims  # noqa: PLC0415 - see above

        record = admitted.record
        limits = trims(self.binding, record.scope, [record.kind], record.updated_at)
        return [admitted.put(expect=expect, dedupe=dedupe), *limits]

    def _remember_key(self, admitted: Admitted) -> WriteResult:
        """Create the record of a key, or write its next version if the key is taken."""
        from commonplace.engine.edits import outranks  # noqa: PLC0415 - see above

        def plan() -> tuple[Sequence[Change], WriteResult | None]:
            holder = self._holder(admitted.record)
            if holder is not None and outranks(holder, self):
                fields = ("content", "value", "tags", "metadata", "category")
                return [], self._propose(holder, admitted.record, fields, expect=None, ref=admitted.record.source.ref)
            return (self._puts(admitted, expect=0), None) if holder is None else self._next_version(holder, admitted)

        written, same = self.writer.retry(
            plan, busy=f"the key {admitted.record.key!r} is changed by others all the time"
        )
        return same or _result(written.outcomes[0], admitted, written.notes)

    def _holder(self, record: Record) -> Record | None:
        where = Filter(
            scopes=frozenset({record.scope}), at=record.updated_at, kinds=frozenset({record.kind}),
            keys=frozenset({record.key or ""}),
        )  # fmt: skip
        return next(iter(self.store.find(where, order=Order.NEWEST, limit=1)), None)

    def _propose(
        self, before: Record, after: Record, fields: Iterable[str], *, expect: int | None, ref: str | None = None
    ) -> WriteResult:
        """Hold a change of a more trusted record for review."""
        from commonplace.engine import edits, review  # noqa: PLC0415 - see above

        if expect not in (None, before.version):
            message = f"record {before.id!r} is at version {before.version}, not {expect}: it was changed meanwhile"
            raise Conflict(message, current=before.version, holder=before.id)
        if edits.is_same(after, before):
            return WriteResult(record=before, deduped=True)
        return review.propose_update(self, before, after, fields, ref=ref)

    def _rewrite(self, id: str, change: Callable[[Record], Admitted], expect: int | None) -> WriteResult:
        """Put the next version of a record; without ``expect``, on the current one."""

        def plan() -> tuple[Sequence[Change], tuple[WriteResult | None, Admitted]]:
            before = self._writable(id)
            admitted = change(before)
            changes, same = self._next_version(before, admitted, expect=expect)
            return changes, (same, admitted)

        written, (same, admitted) = self.writer.retry(
            plan, busy=f"record {id!r} is changed by others all the time",
            when=lambda conflict: expect is None and (conflict.holder or "").startswith(id),
        )  # fmt: skip
        return same or _result(written.outcomes[0], admitted, written.notes)

    def _next_version(
        self, before: Record, admitted: Admitted, *, expect: int | None = None
    ) -> tuple[Sequence[Change], WriteResult | None]:
        """The changes that make a record the next version of another; none, and what is there, if it is the same."""
        from commonplace.engine.edits import is_same  # noqa: PLC0415 - see above

        after = admitted.record.replace(id=before.id, created_at=before.created_at)
        if is_same(after, before) and expect in (None, before.version):
            return [], WriteResult(record=before, deduped=True, redactions=admitted.redactions, notes=admitted.notes)
        return self._puts(admitted.replace(record=after), expect=before.version if expect is None else expect), None

    def _revert(self, record: Record, earlier: Record) -> Record:
        """Restore an earlier version as a new one; nothing of the history is lost."""
        from commonplace.engine.admission import Admitted, search_terms  # noqa: PLC0415 - see above
        from commonplace.engine.edits import require_person  # noqa: PLC0415 - see above

        if record.held and not earlier.held:
            require_person(self, record)
        now = self.clock()
        after = earlier.replace(
            version=record.version, updated_at=now, archived_at=None, superseded_by=None, usage=record.usage
        )
        admitted = Admitted(record=after, terms=search_terms(after))
        return self._put(admitted, expect=record.version).record

    def _supersede(self, old: Record, admitted: Admitted) -> WriteResult:
        """Replace a fact, unless the new one is trusted less: then it is held for review and the old one stays."""
        self._may_write(old.scope)
        new = admitted.record
        if new.held or new.authority < old.authority:
            from commonplace.engine.review import SUPERSEDE, HeldChange  # noqa: PLC0415 - see above

            why = "" if new.held else f"it is trusted less than {old.short}, so "
            note = f"{why}it is held for review and replaces nothing yet"
            change = HeldChange(action=SUPERSEDE, target=old.id, version=old.version)
            held = new.replace(held=True, metadata=change.metadata(new.metadata))
            return self._put(admitted.replace(record=held, notes=(*admitted.notes, note)))
        close = Supersede(id=old.id, by=new.id, at=new.occurred_at or new.created_at, now=new.created_at)
        changes = [close, *self._puts(admitted, expect=0)]  # closed first: the new one may take over its key
        written = self.writer.apply(changes)
        closed, put, *_ = written.outcomes
        return _result(put, admitted, written.notes).replace(superseded=closed.records[0])

    def _writable(self, id: str) -> Record:
        record = self.get(id)
        self._may_write(record.scope)
        return record

    def _may_write(self, scope: Scope) -> None:
        if not self.binding.may_write(scope):
            raise Forbidden(f"this binding may not write to {scope}")

    # How reads are made

    def _everything(self, scope: Scope) -> Sequence[Record]:
        where = Filter(scopes=frozenset({scope}), at=self.clock(), states=ANY_STATE)
        return self.store.find(where, order=Order.ID, limit=-1)

    def _only(self, record: Record) -> Filter:
        return Filter(scopes=frozenset({record.scope}), at=self.clock(), states=ANY_STATE, ids=frozenset({record.id}))

    def _where(
        self,
        scopes: Sequence[Scope] | None,
        *,
        kinds: Iterable[Kind] | None,
        categories: Iterable[str] | None,
        tags: Iterable[str],
        as_of: datetime | None = None,
        states: frozenset[State] = frozenset({State.LIVE}),
        trusts: Iterable[Trust] | None = None,
    ) -> Filter:
        asked = frozenset(self.binding.reads if scopes is None else scopes)
        if foreign := asked - frozenset(self.binding.reads):
            raise Forbidden(f"this binding may not read {', '.join(sorted(str(scope) for scope in foreign))}")
        return Filter(
            scopes=asked, at=self.clock(), states=states, as_of=as_of, tags=frozenset(tags),
            trusts=None if trusts is None else frozenset(trusts),
            kinds=None if kinds is None else frozenset(kinds),
            categories=None if categories is None else self._categories(categories),
        )  # fmt: skip

    def _categories(self, categories: Iterable[str]) -> frozenset[str]:
        asked, known = frozenset(categories), self.binding.categories
        if known is not None and (unknown := asked - frozenset(known)):
            from commonplace.text.suggest import unknown_category  # noqa: PLC0415 - no recall is mistaken

            raise InvalidInput(unknown_category(min(unknown), known))
        return asked


def _result(outcome: Outcome, admitted: Admitted, notes: tuple[str, ...]) -> WriteResult:
    return WriteResult(
        record=outcome.records[0], deduped=outcome.deduped, redactions=admitted.redactions,
        notes=(*admitted.notes, *notes),
    )  # fmt: skip


def _searches_chunks(where: Filter) -> bool:
    """Return whether a filter can match chunks, which have no kind, category, tag, trust, state or past."""
    of_records = (where.kinds, where.categories, where.tags or None, where.as_of, where.trusts)
    return where.states == frozenset({State.LIVE}) and all(one is None for one in of_records)


def with_binding(memory: Memory, binding: Binding) -> Memory:
    """Return the same memory, seen through another binding."""
    clock, embedder, secret = memory.clock, memory.embedder, memory.secret
    return Memory(memory.store, binding, clock=clock, embedder=embedder, secret=secret, erased=memory.erased)

"""Memory: the verbs of records.  Each is one decision: read what it needs, make changes, apply them once.

A memory is a store seen through a binding: it writes where the binding says and sees nothing outside of it; a record
that the binding may not read does not exist here.  How changes are written is in ``writer``, how questions are
answered in ``recall``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from commonplace.engine.ranking import distinct, within
from commonplace.engine.recall import (
    CANDIDATES,
    RECALL_LIMIT,
    Recall,
    count_use,
    mark_replaced,
    newest,
    search,
    searches_chunks,
)
from commonplace.model.binding import Binding
from commonplace.model.changes import Archive, Change, Outcome, Restore
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Conflict, Forbidden, InvalidInput, NotFound, StoreError
from commonplace.model.ports import Clock, Embedder, Store
from commonplace.model.queries import ANY_STATE, Filter, Order, State
from commonplace.model.records import EMPTY, Channel, Draft, Json, Record, Trust
from commonplace.model.scopes import Scope
from commonplace.model.values import UNSET
from commonplace.text.question import Profile

if TYPE_CHECKING:  # writing is half of the start-up, and no recall writes
    from commonplace.engine.admission import Admitted
    from commonplace.engine.arguments import Duration, KindName, Moment, NewRecord, ScopeName, StateName, TrustName
    from commonplace.engine.bulk import Transaction
    from commonplace.engine.forgetting import Erasure
    from commonplace.engine.results import BulkResult, ForgetResult, IndexResult, LearnResult, WriteResult
    from commonplace.engine.review import ReviewResult
    from commonplace.engine.transcripts import Message, Turn
    from commonplace.engine.writer import Writer

LIST_LIMIT = 50
PAGE = 500  # records that ``iterate`` reads at a time


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
        maker: Memory | None = None,
    ) -> None:
        """See the store through the binding; ``secret`` gives the key of redaction marks, asked for when needed.

        ``erased`` is called after an erasure, so that files that repeat the erased text can be rewritten.  The store
        belongs to ``maker``, if there is one, and is closed with it.
        """
        self._store = store
        self._closed = False
        self._maker = maker
        self.binding = binding
        self.clock = clock
        self.embedder = embedder
        self.secret = secret
        self.erased = erased

    @property
    def store(self) -> Store:
        """Where the records are; raises ``StoreError`` after ``close``."""
        if self.is_closed:
            raise StoreError("this memory is closed; open it again to use it")
        return self._store

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, or the memory that it was made of."""
        return self._closed or (self._maker is not None and self._maker.is_closed)

    # Writing

    def remember(
        self,
        content: str = "",
        *,
        category: str | None = None,
        kind: KindName | None = None,
        scope: ScopeName | None = None,
        key: str | None = None,
        value: Json = None,
        tags: Iterable[str] = (),
        metadata: Mapping[str, Json] = EMPTY,
        ref: str | None = None,
        parents: Sequence[str] = (),
        pinned: bool = False,
        held: bool = False,
        occurred_at: Moment | None = None,
        expires_at: Moment | None = None,
        ttl: Duration | None = None,
        supersedes: str | None = None,
    ) -> WriteResult:
        """Store a record.

        If a live record of the same scope and kind has the same text, that one is returned and nothing is written.  A
        key that is taken gets a new version.  ``supersedes`` names a record that this one replaces; it is archived.
        Kinds and scopes can be given by name, dates and durations as text.
        """
        from commonplace.engine.arguments import to_draft  # noqa: PLC0415 - no recall writes

        given = {
            "content": content, "category": category, "kind": kind, "scope": scope, "key": key, "value": value,
            "tags": tags, "metadata": metadata, "ref": ref, "parents": parents, "pinned": pinned, "held": held,
            "occurred_at": occurred_at, "expires_at": expires_at, "ttl": ttl,
        }  # fmt: skip
        return self._remember(to_draft(given, self.binding), supersedes)

    def _remember(self, draft: Draft, supersedes: str | None = None) -> WriteResult:
        from commonplace.engine import superseding  # noqa: PLC0415 - no recall writes

        admitted = self._admit(draft)
        if supersedes is not None:
            return superseding.supersede(self, self.get(supersedes), admitted)
        if draft.key is not None:
            return self._remember_key(admitted)
        return superseding.put_in_time(self, admitted)

    def remember_many(self, records: Iterable[NewRecord], *, skip_invalid: bool = False) -> BulkResult:
        """Store many records: texts, or the arguments of ``remember`` by name.

        All are checked before the first is written; one that cannot be stored refuses all of them with its number, or
        with ``skip_invalid`` is left out and reported.  Repeating it changes nothing.
        """
        from commonplace.engine.bulk import remember_many  # noqa: PLC0415 - no recall writes

        return remember_many(self, records, skip_invalid=skip_invalid)

    def transaction(self) -> Transaction:
        """Collect writes in a ``with`` block and make all of them or, after an error, none."""
        from commonplace.engine.bulk import Transaction  # noqa: PLC0415 - no recall writes

        return Transaction(self)

    def learn(self, messages: str | Iterable[Message], *, user: str | None = None, model: Any = None) -> LearnResult:
        """Store what a conversation states for good: preferences, facts, decisions, corrections.

        ``messages`` are ``{"role": ..., "content": ...}`` or one text of the user's.  Rules extract unless a ``model``
        is given, such as ``"openai:gpt-5-mini"``.  A later statement replaces an earlier one about the same.
        """
        from commonplace.lazy import load  # noqa: PLC0415 - learning is a room, which no recall enters

        target = self if user is None else self.for_user(user)
        learned: LearnResult = load("learning:learn_from_messages")(target, messages, model=model)
        return learned

    def for_user(self, user: str) -> Memory:
        """Return the memory of one user in the same store, over the same connection: it sees nothing of the others.

        Only a memory that belongs to one user gives it, such as ``commonplace.open("notes.db")``.
        """
        from commonplace.engine.users import binding_of_user  # noqa: PLC0415 - no recall changes users

        return with_binding(self, binding_of_user(self.binding, user))

    def update(
        self,
        id: str,
        *,
        content: str = UNSET,
        tags: Iterable[str] = UNSET,
        metadata: Mapping[str, Json] = UNSET,
        value: Json = UNSET,
        occurred_at: Moment | None = UNSET,
        expires_at: Moment | None = UNSET,
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
        from commonplace.engine.arguments import to_changes  # noqa: PLC0415 - no recall edits

        changes = to_changes({field: change for field, change in named.items() if change is not UNSET})
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
        from commonplace.engine.results import ForgetResult  # noqa: PLC0415 - no recall writes

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

    def clear(self, scope: ScopeName) -> ForgetResult:
        """Erase everything in a scope."""
        from commonplace.engine.arguments import to_scope  # noqa: PLC0415 - see forget
        from commonplace.engine.edits import is_person, outranks  # noqa: PLC0415 - see forget
        from commonplace.engine.forgetting import clear  # noqa: PLC0415 - see forget
        from commonplace.engine.results import ForgetResult  # noqa: PLC0415 - no recall writes

        scope = to_scope(scope, self.binding)
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
        from commonplace.engine.documents import index_document  # noqa: PLC0415 - no recall indexes

        return index_document(self, kind, name, turns, scope=scope)

    # Reading

    def recall(
        self,
        query: str,
        *,
        scopes: Iterable[ScopeName] | None = None,
        kinds: Iterable[KindName] | None = None,
        categories: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        limit: int = RECALL_LIMIT,
        budget: int | None = None,
        as_of: Moment | None = None,
        trusts: Iterable[TrustName] | None = None,
        states: Iterable[StateName] = (State.LIVE,),
        metadata: Mapping[str, Json] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        profile: Profile | None = None,
        count: bool = True,
    ) -> Recall:
        """Return the records that match a question, best first; without words in it, the newest.

        ``budget`` limits the tokens of all hits; ``as_of`` searches a past state; ``metadata`` are names and values
        that a record must have; ``since`` and ``until`` limit when it was created; ``profile`` is a question about the
        past or about current work (default: guessed from its form); ``count`` counts the recall as use.
        """
        if limit < 1:
            raise InvalidInput(f"a limit of {limit} would find nothing")
        where = self._where(
            scopes=scopes, kinds=kinds, categories=categories, tags=tags, as_of=as_of, states=states, trusts=trusts,
            metadata=metadata, since=since, until=until,
        )  # fmt: skip
        found = search(
            self.store, self.embedder, where.replace(chunks=searches_chunks(where)), query, profile=profile,
            limit=2 * limit, candidates=max(CANDIDATES, 2 * limit),
        )  # fmt: skip
        hits = newest(self.store, where, limit=limit) if found is None else distinct(found.hits)
        if as_of is None:  # before the list is cut: of two rivals the newer one is shown
            hits = mark_replaced(self.store, where, hits)
        chosen, notes = within(hits[:limit], budget), () if found is None else found.notes
        used = [hit.record.id for hit in chosen if hit.record] if count and where.as_of is None else []
        return Recall(
            query=query, hits=tuple(chosen), notes=(*notes, *count_use(self.store, used, self.clock()))
        )  # fmt: skip

    def get(self, id: str | None = None, *, key: str | None = None) -> Record:
        """Return a record by its id, archived ones too, or the live one that has a key.

        An id can be shortened to any part of it that no other record has.
        """
        from commonplace.engine.lookup import find_by_id, find_by_key  # noqa: PLC0415 - no recall looks one up

        if (id is None) == (key is None):
            raise InvalidInput("get takes an id, or key=...; give one of them")
        return find_by_id(self, str(id)) if key is None else find_by_key(self, key)

    def list(
        self,
        *,
        scopes: Iterable[ScopeName] | None = None,
        kinds: Iterable[KindName] | None = None,
        categories: Iterable[str] | None = None,
        tags: Iterable[str] = (),
        trusts: Iterable[TrustName] | None = None,
        states: Iterable[StateName] = (State.LIVE,),
        sources: Iterable[str] | None = None,
        metadata: Mapping[str, Json] | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        before: Record | str | None = None,
        pinned: bool | None = None,
        order: Order = Order.NEWEST,
        limit: int = LIST_LIMIT,
        offset: int = 0,
    ) -> Sequence[Record]:
        """Return the records that match, newest first: at most ``limit`` (-1: all), after the first ``offset``.

        ``before`` is the last record of the page before, or its id: a cursor that later writes do not shift.
        ``sources`` are channels (`import`) or references of sources; ``metadata`` are names and values that a record
        must have; ``since`` and ``until`` limit when it was created; ``pinned`` returns those that are, or are not.
        """
        if offset < 0:
            raise InvalidInput(f"an offset of {offset} is before the first record")
        where = self._where(
            scopes=scopes, kinds=kinds, categories=categories, tags=tags, states=states, trusts=trusts,
            sources=sources, metadata=metadata, since=since, until=until,
        ).replace(pinned=pinned)  # fmt: skip
        if before is not None:
            last = self.get(before) if isinstance(before, str) else before
            where = where.replace(earlier=(last.created_at, last.id))
        return self.store.find(where, order=order, limit=limit if limit < 0 else limit + offset)[offset:]

    def iterate(self, **filters: Any) -> Iterator[Record]:
        """Yield every record that matches, newest first, with the filters of ``list``: pages are read as needed."""
        last: Record | None = None
        while page := self.list(**filters, before=last, limit=PAGE):
            yield from page
            last = page[-1]

    def __len__(self) -> int:
        """Return how many live records there are."""
        return self.store.measure(self._where()).count

    def __bool__(self) -> bool:
        """Return True: a memory without records is one too."""
        return True

    def __repr__(self) -> str:
        places = ", ".join(map(str, self.binding.reads))
        path = getattr(self._store, "path", None) or "a store"
        return f"<Memory of {places} in {path}{', closed' if self.is_closed else ''}>"

    def history(self, id: str) -> Sequence[Record]:
        """Return every version of a record, newest first."""
        record = self.get(id)
        where = self._only(record).replace(versions=True)
        return self.store.find(where, order=Order.ID, limit=record.version + 1)

    def close(self) -> None:
        """Close the memory and, if it was not made of another one, its store; later calls raise ``StoreError``."""
        if not self.is_closed and self._maker is None:
            self._store.close()
        self._closed = True

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
            from commonplace.engine.results import WriteResult  # noqa: PLC0415 - no recall writes

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
        from commonplace.engine.results import WriteResult  # noqa: PLC0415 - no recall writes

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

    def _where(self, **asked: Any) -> Filter:
        said = {name for name, value in asked.items() if value is not None and (name != "tags" or value)}
        if said <= {"states"} and list(asked.get("states", (State.LIVE,))) == [State.LIVE]:
            return Filter(scopes=frozenset(self.binding.reads), at=self.clock())
        from commonplace.engine.arguments import to_filter  # noqa: PLC0415 - a recall without filters needs it not

        return to_filter(self.binding, self.clock(), **asked)


def _result(outcome: Outcome, admitted: Admitted, notes: tuple[str, ...]) -> WriteResult:
    from commonplace.engine.results import WriteResult  # noqa: PLC0415 - no recall writes

    return WriteResult(
        record=outcome.records[0], deduped=outcome.deduped, redactions=admitted.redactions,
        notes=(*admitted.notes, *notes),
    )  # fmt: skip


def with_binding(memory: Memory, binding: Binding) -> Memory:
    """Return the same memory, seen through another binding; it is closed with the one that it is made of."""
    clock, embedder, secret, erased = memory.clock, memory.embedder, memory.secret, memory.erased
    return Memory(memory.store, binding, clock=clock, embedder=embedder, secret=secret, erased=erased, maker=memory)

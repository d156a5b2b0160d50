"""A store and a dictionary do the same: any sequence of changes, compared after every step."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from commonplace.model.changes import Archive, Delete, DropScope, Restore, Supersede, Touch, Trim
from commonplace.model.errors import Conflict
from commonplace.model.queries import ANY_STATE, Order, Query, State, Word
from commonplace.model.records import UNUSED, Channel, Kind, Source, Usage
from commonplace.model.scopes import Scope

SCOPES = [Scope.parse(text) for text in ("user:ada", "pipeline:p", "pipeline:p/agent:a")]
QUERY = Query(text="sky sea", words=tuple(Word(text=word, terms=((word,),)) for word in ("sky", "sea")))
TEXTS = ["sky", "sea sky", "land sea land", ""]
ALL = 999  # more than the longest sequence makes
LIVE = frozenset({State.LIVE})
STEP = timedelta(minutes=20)  # so that a look two hours back sees something else
HOURS = st.sampled_from([None, None, None, -1, 1, 5])

scopes = st.sampled_from([SCOPES[0], *SCOPES])
kinds = st.sampled_from([Kind.SEMANTIC, Kind.WORKING])
numbers = st.integers(0, 99)


class Oracle:
    """What a store must be: for every id its versions, oldest first, each with the moment from which on it holds."""

    def __init__(self):
        self.past = {}
        self.usage = {}

    def put(self, record, from_):
        """Keep a version."""
        self.past.setdefault(record.id, []).append((from_, record))

    def present(self):
        """The last version of each record, by id."""
        return [self.used(self.past[name][-1][1]) for name in sorted(self.past)]

    def used(self, record):
        """A version with the record's use."""
        return record.replace(usage=self.usage.get(record.id, UNUSED))

    def meant(self, scope, at, states=LIVE, kind=None):
        """The records of a scope in one of these states."""
        mine = [record for record in self.present() if record.scope == scope and kind in (None, record.kind)]
        return [record for record in mine if record.state(at) in states]

    def as_of(self, scope, moment):
        """What held at a moment: of each record the last version that had begun."""
        begun = [[record for from_, record in past if from_ <= moment] for _, past in sorted(self.past.items())]
        held = [self.used(records[-1]) for records in begun if records]
        return [record for record in held if record.scope == scope and record.state(moment) is State.LIVE]

    def history(self, scope):
        """Every version of a scope, newest first within its record."""
        return [
            self.used(record)
            for _, past in sorted(self.past.items())
            for _, record in reversed(past)
            if record.scope == scope
        ]

    def holder(self, record, now):
        """Who else holds the key; one that has expired gives it up."""
        if record.key is None or record.held or record.archived_at:
            return None
        for other in self.present():
            same = (other.scope, other.kind, other.key) == (record.scope, record.kind, record.key)
            if same and other.id != record.id and other.archived_at is None and not other.held:
                if other.expires_at and other.expires_at <= now:
                    lapsed = {"archived_at": other.expires_at, "updated_at": now, "version": other.version + 1}
                    self.put(other.replace(**lapsed), other.expires_at)
                    return None
                return other
        return None

    def erase(self, names):
        """Erase records and whatever was derived from erased ones alone."""
        while names:
            for name in names:
                self.past.pop(name)
            names = [
                record.id
                for record in self.present()
                if set(record.source.parents) & set(names) and not set(record.source.parents) & set(self.past)
            ]


class StoreMachine(RuleBasedStateMachine):
    """Changes at random, made to a store and to a dictionary."""

    def __init__(self, store, make):
        super().__init__()
        self.store, self.make, self.clock = store, make, make.clock
        self.oracle = Oracle()

    def teardown(self):
        """Give the store back."""
        self.store.close()

    def chosen(self, number):
        """One of the records there are."""
        present = self.oracle.present()
        return present[number % len(present)]

    def attempt(self, change, *, conflict):
        """Make a change, which must conflict exactly if the dictionary says so."""
        if conflict:
            with pytest.raises(Conflict):
                self.store.apply([change])
            return None
        return self.store.apply([change])[0]

    @rule(scope=scopes, texts=st.lists(st.sampled_from(TEXTS), min_size=2, max_size=5))
    def put_several(self, scope, texts):
        """New records without anything special, so that there is something to change."""
        for text in texts:
            self.put(scope, Kind.SEMANTIC, text)

    @rule(
        scope=scopes,
        kind=kinds,
        text=st.sampled_from(TEXTS),
        flags=st.sets(st.sampled_from(["pinned", "held", "dedupe", "keyed"])),
        tags=st.frozensets(st.sampled_from("ab")),
        hours=st.tuples(HOURS, HOURS),
        parent=st.none() | numbers,
    )
    def put(self, scope, kind, text, flags=(), tags=frozenset(), hours=(None, None), parent=None):  # noqa: PLR0917
        """A new record is kept, dropped for one that says the same, or refused for its key."""
        key, dedupe = "k" if "keyed" in flags else None, "dedupe" in flags
        now = self.clock.forward(STEP)
        occurred, expires = (None if hour is None else now + timedelta(hours=hour) for hour in hours)
        parents = () if parent is None or not self.oracle.past else (self.chosen(parent).id,)
        fields = {
            "scope": scope,
            "kind": kind,
            "key": key,
            "tags": tags,
            "pinned": "pinned" in flags,
            "held": "held" in flags,
        }
        fields |= {"occurred_at": occurred, "expires_at": expires}
        record = self.make(text, source=Source(channel=Channel.AGENT, parents=parents), **fields)
        change = self.make.put(record, dedupe=dedupe)
        same = [
            other
            for other in self.oracle.meant(scope, now, kind=kind)
            if dedupe and (other.content, other.key) == (text, key)
        ]
        if same:
            if not tags <= same[0].tags:
                merged = same[0].replace(tags=same[0].tags | tags, updated_at=now, version=same[0].version + 1)
                self.oracle.put(merged, now)
            assert self.attempt(change, conflict=False).deduped
        elif self.oracle.holder(record, now):
            self.attempt(change, conflict=True)
        else:
            assert not self.attempt(change, conflict=False).deduped
            self.oracle.put(record.replace(version=1), occurred or now)

    @precondition(lambda self: self.oracle.past)
    @rule(
        number=numbers,
        text=st.sampled_from(TEXTS),
        key=st.sampled_from([None, "k"]),
        behind=st.sampled_from([0, 0, 0, 1]),
    )
    def update(self, number, text, key, behind):
        """The next version is put by who has seen the present one, and by nobody else."""
        now = self.clock.forward(STEP)
        record = self.chosen(number)
        after = record.replace(content=text, key=key, updated_at=now, held=False)
        taken = not behind and self.oracle.holder(after, now)
        self.attempt(self.make.put(after, expect=record.version + behind), conflict=behind or taken)
        if not behind and not taken:
            self.oracle.put(after.replace(version=record.version + 1), now)

    @rule(scope=scopes, kind=kinds)
    def archive(self, scope, kind):
        """Everything live of a kind is archived."""
        now = self.clock.forward(STEP)
        for record in self.oracle.meant(scope, now, kind=kind):
            self.oracle.put(record.replace(archived_at=now, updated_at=now, version=record.version + 1), now)
        self.store.apply([Archive(where=self.make.where(scope, kinds=frozenset({kind})), at=now)])

    @precondition(lambda self: self.oracle.past)
    @rule(number=numbers)
    def restore(self, number):
        """An archived record comes back, unless its key is taken."""
        now = self.clock.forward(STEP)
        record = self.chosen(number)
        change = Restore(where=self.make.anything(*SCOPES, ids=frozenset({record.id})), at=now)
        back = record.replace(archived_at=None, superseded_by=None, updated_at=now, version=record.version + 1)
        taken = record.archived_at is not None and self.oracle.holder(back, now)
        self.attempt(change, conflict=taken)
        if record.archived_at is not None and not taken:
            self.oracle.put(back, now)

    @precondition(lambda self: self.oracle.past)
    @rule(number=numbers, other=numbers, hours=st.sampled_from([0, -1]))
    def supersede(self, number, other, hours):
        """A record is replaced once, from now on or from earlier on."""
        now = self.clock.forward(STEP)
        record, by, at = self.chosen(number), self.chosen(other), now + timedelta(hours=hours)
        self.attempt(Supersede(id=record.id, by=by.id, at=at, now=now), conflict=record.superseded_by is not None)
        if record.superseded_by is None:
            closed = {"archived_at": at, "superseded_by": by.id, "updated_at": now, "version": record.version + 1}
            self.oracle.put(record.replace(**closed), at)

    @precondition(lambda self: self.oracle.past)
    @rule(number=numbers)
    def delete(self, number):
        """A record is erased, with what was derived from it alone."""
        name = self.chosen(number).id
        before = set(self.oracle.past)
        self.oracle.erase([name])
        [outcome] = self.store.apply([Delete(where=self.make.anything(*SCOPES, ids=frozenset({name})))])
        assert set(outcome.gone) == before - set(self.oracle.past)

    @precondition(lambda self: self.oracle.past)
    @rule(number=numbers)
    def touch(self, number):
        """A recall is counted."""
        record, now = self.chosen(number), self.clock.forward(STEP)
        self.oracle.usage[record.id] = Usage(recalls=record.usage.recalls + 1, last_recalled_at=now)
        self.store.apply([Touch(ids=(record.id,), at=now)])

    @rule(scope=scopes, keep=st.integers(1, 9), order=st.sampled_from([Order.OLDEST, Order.STALEST]))
    def trim(self, scope, keep, order):
        """All but so many are erased, pinned ones last of all: never."""
        live = self.oracle.meant(scope, self.clock())
        free = sorted((record for record in live if not record.pinned), key=lambda record: ranked(record, order))
        for record in free[: max(0, len(live) - keep)]:
            del self.oracle.past[record.id]
        self.store.apply([Trim(where=self.make.where(scope), keep=keep, order=order)])

    @rule(scope=scopes, seldom=st.integers(0, 3))
    def drop_scope(self, scope, seldom):
        """A scope goes with everything in it and below it."""
        if seldom:
            return
        below = [
            record.id
            for record in self.oracle.present()
            if record.scope.segments[: len(scope.segments)] == scope.segments
        ]
        for name in below:
            del self.oracle.past[name]
        [outcome] = self.store.apply([DropScope(scope=scope)])
        assert sorted(outcome.gone) == below

    @rule(hours=st.integers(1, 3))
    def wait(self, hours):
        """Time passes, and records expire by themselves."""
        self.clock.forward(timedelta(hours=hours))

    @invariant()
    def records_agree(self):
        """Every record is what the dictionary says, in its state and in every order."""
        for scope in SCOPES:
            everything = self.store.find(self.make.anything(scope), order=Order.ID, limit=ALL)
            assert everything == self.oracle.meant(scope, self.clock(), ANY_STATE)
            live = self.oracle.meant(scope, self.clock())
            for order in (Order.OLDEST, Order.STALEST):
                found = self.store.find(self.make.where(scope), order=order, limit=ALL)
                assert found == sorted(live, key=lambda record, order=order: ranked(record, order))

    @invariant()
    def the_past_agrees(self):
        """History and every moment of the past are what the dictionary says."""
        for scope in SCOPES:
            every = self.make.anything(scope, versions=True)
            assert self.store.find(every, order=Order.ID, limit=ALL) == self.oracle.history(scope)
            for back in (0, 2):
                moment = self.clock() - timedelta(hours=back)
                found = self.store.find(self.make.where(scope, as_of=moment), order=Order.ID, limit=ALL)
                assert found == self.oracle.as_of(scope, moment)

    @invariant()
    def search_agrees(self):
        """Words find exactly the live records that have one of them, now and in the past."""
        for scope in SCOPES:
            for as_of in (None, self.clock() - timedelta(hours=1)):
                live = self.oracle.as_of(scope, as_of) if as_of else self.oracle.meant(scope, self.clock())
                found = self.store.match(self.make.where(scope, as_of=as_of), QUERY, limit=ALL)
                having = {record.id: set(record.content.split()) & {"sky", "sea"} for record in live}
                assert {match.id for match in found} == {name for name, both in having.items() if both}
                assert all((match.coverage == 1) == (len(having[match.id]) == 2) for match in found)


def ranked(record, order):
    """What an order sorts by."""
    used = record.usage.last_recalled_at if order is Order.STALEST else None
    return used or record.created_at, record.id


def run(new_store, make, *, examples, steps):
    """Try so many sequences of so many changes."""
    checks = settings(max_examples=examples, stateful_step_count=steps, deadline=None, database=None)
    run_state_machine_as_test(
        lambda: StoreMachine(new_store(), make), settings=settings(checks, suppress_health_check=list(HealthCheck))
    )


def test_a_store_is_a_dictionary(new_store, make):
    """Whatever happens in whatever order, store and dictionary agree."""
    run(new_store, make, examples=4, steps=35)


@pytest.mark.slow
def test_a_store_is_a_dictionary_at_length(new_store, make):
    """The same with many more and longer sequences."""
    run(new_store, make, examples=30, steps=60)

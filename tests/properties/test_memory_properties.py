"""Memory: what holds for any text, any question and any run of verbs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from commonplace.engine.memory import Memory
from commonplace.model.binding import Binding
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import State
from commonplace.model.records import Channel, Kind
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import clean
from commonplace.text.replacement import Relation, compare
from commonplace.text.words import terms

HERE, THERE = Scope.of(("project", "here")), Scope.of(("project", "there"))
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=300)
QUERYLIKE = st.lists(
    st.sampled_from(
        [
            *(
                '"',
                "'",
                "(",
                ")",
                "*",
                "^",
                ":",
                "-",
                "+",
                "{",
                "}",
                "\\",
                "\x00",
                " ",
                "\n",
                "AND",
                "OR",
                "NOT",
                "NEAR",
                "NEAR(",
            ),
            *(
                "pnpm",
                "deploy",
                "server",
                "E1234",
                "foo_bar",
                "v2.1",
                "src/a.py",
                "日本",
                "🦀",
                "\ud800",
                "%",
                ";",
                "--",
                "terms:",
            ),
        ]
    ),
    max_size=12,
).map("".join)
WORDS = st.lists(
    st.sampled_from(["deploy", "server", "monday", "pnpm", "cache", "flush", "red", "green"]), min_size=1, max_size=5
)


class Clock:
    """A clock moved by hand."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now


def memory_in(store, scope=HERE, clock=None):
    """A memory in which everything is allowed."""
    binding = Binding(
        channel=Channel.USER, writes=dict.fromkeys(Kind, scope), reads=(scope,), transcripts=frozenset({scope})
    )
    return Memory(store, binding, clock=clock or Clock())


@pytest.fixture(scope="module")
def stocked(fresh):
    """A memory with a little of everything, asked again and again."""
    memory = memory_in(fresh())
    for content in (
        "Use pnpm, not npm",
        "deploy the server with foo_bar v2.1",
        "E1234 in src/a.py",
        "日本 🦀",
        "NEAR and far",
    ):
        memory.remember(content)
    yield memory
    memory.close()


@settings(deadline=None)
@given(ANYTHING | QUERYLIKE)
def test_any_text_is_a_legal_question(stocked, query):
    """Every text is answered, twice the same, best first, with nothing made up."""
    hits = stocked.recall(query, count=False).hits

    assert stocked.recall(query, count=False).hits == hits
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len(hits) <= 5


@settings(deadline=None)
@given(ANYTHING)
def test_any_text_is_kept_or_refused(fresh, text):
    """What is kept is the cleaned text, found by its own words; what is refused says why."""
    with memory_in(fresh()) as memory:
        try:
            kept = memory.remember(text)
        except InvalidInput as error:
            said = str(error)
            assert "the content" in said
            return
        record = memory.get(kept.record.id)
        if not kept.redactions:
            assert record.content == clean(text, what="it")[0]
        if terms(record.content):
            assert record.id in {hit.id for hit in memory.recall(record.content)}


@settings(deadline=None, max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, max_size=6), WORDS)
def test_nobody_else_moves_an_answer(fresh, ours, theirs, asked):
    """Whatever is written into another scope, the same question gives the same hits with the same scores."""
    store = fresh()
    memory, stranger = memory_in(store), memory_in(store, THERE)
    for words in ours:
        memory.remember(" ".join(words))
    before = memory.recall(" ".join(asked), count=False).hits
    for words in theirs:
        stranger.remember(" ".join(words))

    assert memory.recall(" ".join(asked), count=False).hits == before
    store.close()


@settings(deadline=None, max_examples=40)
@given(st.lists(WORDS, min_size=1, max_size=6, unique_by=tuple), WORDS, st.randoms(use_true_random=False))
def test_the_order_of_words_does_not_matter(fresh, ours, asked, random):
    """A question is a set of words."""
    with memory_in(fresh()) as memory:
        for words in ours:
            memory.remember(" ".join(words))
        before = [hit.id for hit in memory.recall(" ".join(asked), count=False)]
        random.shuffle(asked)

        assert [hit.id for hit in memory.recall(" ".join(asked), count=False)] == before


class Verbs(RuleBasedStateMachine):
    """Any run of verbs, against a small picture of what should be there; and the past stays as it was."""

    ids = Bundle("ids")

    def __init__(self, store):
        super().__init__()
        self.clock = Clock()
        self.memory = memory_in(store, clock=self.clock)
        self.picture = {}  # id -> [content, state]
        self.versions = {}
        self.past = []  # (moment, the live contents at it)

    def teardown(self):
        self.memory.close()

    def _note(self, id, content, state, *, new_version):
        self.picture[id] = [content, state]
        self.versions[id] = self.versions.get(id, 0) + new_version

    @rule(target=ids, words=WORDS, tag=st.sampled_from(["", "x"]))
    def remember(self, words, tag):
        content = " ".join(words)
        known = [key for key, held in self.picture.items() if held == [content, State.LIVE]]
        kept = self.memory.remember(content, tags=[tag])
        assert kept.deduped == bool(known)
        assert kept.record.id in known or not known
        self.versions[kept.record.id] = kept.record.version
        self.picture[kept.record.id] = [content, State.LIVE]
        self._note_closed(kept.record)
        return kept.record.id

    def _note_closed(self, by):
        """What a record contradicts is closed by it, and nothing else is."""
        for key, (content, state) in self.picture.items():
            if key != by.id and state is State.LIVE and self.memory.get(key).superseded_by == by.id:
                assert compare(content, by.content) is not Relation.NONE
                self._note(key, content, State.ARCHIVED, new_version=1)

    @precondition(lambda self: self.picture)
    @rule(id=ids, words=WORDS)
    def update(self, id, words):
        if id in self.picture:
            content, state = " ".join(words), self.picture[id][1]
            new = content != self.picture[id][0]
            assert self.memory.update(id, content=content).record.content == content
            self._note(id, content, state, new_version=new)

    @rule(id=ids, verb=st.sampled_from(["archive", "restore", "hold", "release"]))
    def move(self, id, verb):
        if id in self.picture:
            before = self.memory.get(id)
            if verb == "release" and before.archived_at is not None:
                with pytest.raises(InvalidInput, match="restore it first"):
                    self.memory.release(id)
                return
            after = getattr(self.memory, verb)(id)
            assert after.version - before.version in (0, 1)
            self._note(id, after.content, after.state(self.clock()), new_version=after.version - before.version)
            if verb == "release":  # it may have been held with the change that it proposes
                self._note_closed(after)

    @rule(id=ids)
    def forget(self, id):
        if id in self.picture:
            assert self.memory.forget(id).ids == (id,)
            content, _ = self.picture.pop(id)
            del self.versions[id]
            self.past = [(moment, {key: said for key, said in then.items() if key != id}) for moment, then in self.past]
            assert content

    @rule()
    def wait(self):
        self.past.append((self.clock.now, self._live()))
        self.clock.now += timedelta(seconds=1)

    def _live(self):
        return {key: content for key, (content, state) in self.picture.items() if state is State.LIVE}

    @invariant()
    def everything_is_where_it_should_be(self):
        for state in State:
            wanted = {key: content for key, (content, held) in self.picture.items() if held is state}
            assert {record.id: record.content for record in self.memory.list(states=[state])} == wanted

    @invariant()
    def every_version_is_there(self):
        assert {key: len(self.memory.history(key)) for key in self.versions} == self.versions

    @invariant()
    def only_what_is_live_is_recalled(self):
        found = {hit.id: hit.text for hit in self.memory.recall("deploy server", limit=50, count=False)}
        live = {key: said for key, said in self._live().items() if {"deploy", "server"} & set(said.split())}
        assert found.items() <= live.items()
        assert set(found.values()) == set(live.values())  # of two that say the same, one is shown and names the other

    @invariant()
    def the_past_stays_as_it_was(self):
        for moment, then in self.past[-3:]:
            assert {hit.id: hit.text for hit in self.memory.recall("", as_of=moment, limit=99)} == then


@pytest.mark.parametrize(("examples", "steps"), [(8, 20), pytest.param(25, 25, marks=pytest.mark.slow)])
def test_any_run_of_verbs_leaves_what_it_should(fresh, examples, steps):
    """Whatever is done in whatever order, memory is what the picture says, and the past stays as it was."""
    checks = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    checks = settings(checks, suppress_health_check=list(HealthCheck))
    run_state_machine_as_test(lambda: Verbs(fresh()), settings=checks)

"""Reading what is remembered: recall, get, list, and the past."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import Forbidden, InvalidInput, NotFound, StoreError
from commonplace.model.ids import new_id
from commonplace.model.queries import Order, State
from commonplace.model.records import Channel, Kind, Usage
from commonplace.text.cleaning import estimate_tokens
from stands import rows

DAY = timedelta(days=1)
SESSION, TICKET = DocumentKind.SESSION, DocumentKind.TICKET


class ReadOnly:
    """A store on a disk that cannot be written."""

    def __init__(self, store):
        self._store = store

    def __getattr__(self, name):
        return getattr(self._store, name)

    def apply(self, changes):
        """Refuse, as a store does whose disk is full."""
        raise StoreError(f"{len(changes)} changes cannot be written: the disk is full")


def test_both_scopes_come_back_as_one_list(memory, assistant):
    """Project and assistant are asked at once and merged by score, not one after the other."""
    memory.remember("Commit messages are short", category="preferences", scope=assistant)
    memory.remember("Commit messages name the ticket, are signed, and mention reviewers", category="principles")
    memory.remember("Prefer short names", category="preferences", scope=assistant)

    hits = memory.recall("short commit messages").hits
    assert [hit.record.scope.kind for hit in hits] == ["user", "project", "user"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_records_sessions_and_tickets_are_found_together(memory):
    """What is searched is records, session chunks and ticket content; each says which it is."""
    memory.remember("The cache is flushed at deploy", category="procedures")
    memory.index(SESSION, "s1", [Turn(ref="4", text="we flushed the cache by hand")])
    memory.index(TICKET, "SHOP-7", [Turn(ref="description", text="flush the cache on deploy")])

    hits = memory.recall("flush cache").hits
    assert {hit.chunk.kind.value if hit.chunk else "record" for hit in hits} == {"record", "session", "ticket"}
    assert {hit.id for hit in hits if hit.chunk} == {"session:s1#4", "ticket:SHOP-7#description"}


@pytest.mark.parametrize("query", ["", "  \n", "?!", '""'])
def test_a_question_without_words_gives_the_newest(memory, clock, query):
    """Nothing asked is answered with what is fresh."""
    for content in ("one", "two", "three"):
        memory.remember(content, category="decisions")
        clock.forward()

    recalled = memory.recall(query, limit=2)
    assert [hit.text for hit in recalled] == ["three", "two"]
    assert [hit.parts for hit in recalled] == [(("newest", 1.0),)] * 2


def test_a_recall_is_a_sequence_of_hits(memory):
    """What comes back can be counted, walked and indexed, and says what was asked."""
    memory.remember("Use pnpm", category="decisions")
    recalled = memory.recall("pnpm")

    assert (len(recalled), recalled.query, list(recalled), recalled[0]) == (
        1,
        "pnpm",
        [*recalled.hits],
        recalled.hits[0],
    )


def test_the_limit_cuts_the_list(memory):
    """No more than so many come back, and they are the best ones."""
    for number in range(6):
        memory.remember(f"deploy step {number} " + "filler " * number, category="procedures")

    every = memory.recall("deploy", limit=10, count=False).hits
    assert len(every) == 6
    assert memory.recall("deploy", limit=3).hits == every[:3]
    with pytest.raises(InvalidInput, match="a limit of 0 would find nothing"):
        memory.recall("deploy", limit=0)


def test_a_budget_is_never_exceeded(memory):
    """Tokens are cut as well as numbers; what does not fit makes room for something shorter."""
    memory.remember("deploy " + "by hand " * 40, category="procedures")
    memory.remember("deploy on Monday", category="decisions")

    assert len(memory.recall("deploy")) == 2
    short = memory.recall("deploy", budget=10)
    assert [hit.text for hit in short] == ["deploy on Monday"]
    assert sum(estimate_tokens(hit.text) for hit in short) <= 10
    assert not memory.recall("deploy", budget=0).hits


FILTERS = {
    "one category": ({"categories": ["decisions"]}, {"decision"}),
    "two categories": ({"categories": ["decisions", "incidents"]}, {"decision", "incident"}),
    "a kind": ({"kinds": [Kind.PROCEDURAL]}, {"procedure"}),
    "a tag": ({"tags": ["web"]}, {"decision", "preference"}),
    "both tags": ({"tags": ["web", "js"]}, {"decision"}),
    "part of a tag": ({"tags": ["we"]}, set()),
    "everything": ({}, {"decision", "procedure", "incident", "preference"}),
}


@pytest.fixture
def filled(memory, assistant):
    """One record of each sort, all with one word in common."""
    memory.remember("common decision", category="decisions", tags=["web", "js"])
    memory.remember("common procedure", category="procedures")
    memory.remember("common incident", category="incidents", tags=["we b"])
    memory.remember("common preference", category="preferences", tags=["web"], scope=assistant)
    return memory


@rows("options, expected", FILTERS.values())
def test_a_filter_means_the_same_to_recall_and_to_list(filled, options, expected):
    """Categories, kinds and tags choose what is asked, in words or without."""
    assert {hit.text.split()[1] for hit in filled.recall("common", **options)} == expected
    assert {hit.text.split()[1] for hit in filled.recall("", **options)} == expected
    assert {record.content.split()[1] for record in filled.list(**options)} == expected


def test_scopes_choose_where_to_look(filled, assistant, project):
    """One scope can be asked alone."""
    assert {hit.record.scope for hit in filled.recall("common", scopes=[assistant])} == {assistant}
    assert {record.scope for record in filled.list(scopes=[project])} == {project}


@pytest.mark.usefixtures("filled")
def test_a_scope_outside_of_the_binding_is_refused(through, project, assistant):
    """Asking where one may not look is an error, not an empty answer."""
    stranger = through(reads=(project,))

    assert {hit.text for hit in stranger.recall("common preference")} & {"common preference"} == set()
    for verb in (lambda: stranger.recall("common", scopes=[assistant]), lambda: stranger.list(scopes=[assistant])):
        with pytest.raises(Forbidden, match="may not read user:ada"):
            verb()


def test_a_category_that_is_none_is_answered_with_the_five(filled):
    """A typing mistake in a filter is told, not answered with nothing."""
    for verb in (lambda: filled.recall("common", categories=["decision"]), lambda: filled.list(categories=["x"])):
        with pytest.raises(InvalidInput, match="decisions, procedures, principles, incidents, preferences"):
            verb()


def test_whoever_asks_for_categories_asks_for_records(memory):
    """Chunks have no category, kind or tag, so a filter by those leaves them out."""
    memory.index(SESSION, "s1", [Turn(ref="1", text="the cache")])

    assert len(memory.recall("cache")) == 1
    assert not memory.recall("cache", categories=["decisions"]).hits
    assert not memory.recall("cache", tags=["x"]).hits
    assert not memory.recall("cache", kinds=[Kind.SEMANTIC]).hits


def test_a_recall_counts_as_use(memory, clock):
    """Use is counted for what came back, without a new version."""
    used = memory.remember("Use pnpm", category="decisions").record
    other = memory.remember("Deploy on Monday", category="decisions").record
    clock.forward()
    memory.recall("pnpm")
    memory.recall("pnpm", count=False)
    memory.recall("pnpm", as_of=clock())

    assert memory.get(used.id) == used.replace(usage=Usage(recalls=1, last_recalled_at=clock()))
    assert memory.get(other.id).usage == Usage()


def test_a_store_that_cannot_be_written_still_answers(memory, through, store):
    """Not being able to count is a note, not a failure."""
    memory.remember("Use pnpm", category="decisions")
    recalled = through(over=ReadOnly(store)).recall("pnpm")

    assert [hit.text for hit in recalled] == ["Use pnpm"]
    assert "not counted" in recalled.notes[0]
    assert "disk is full" in recalled.notes[0]


def test_the_past_answers_in_its_own_words(memory, clock):
    """As of a moment, what was valid then is found by what it said then."""
    record = memory.remember("Use yarn", category="decisions").record
    then = clock()
    clock.forward(DAY)
    memory.update(record.id, content="Use pnpm")

    assert [hit.text for hit in memory.recall("yarn", as_of=then)] == ["Use yarn"]
    assert not memory.recall("pnpm", as_of=then).hits
    assert [hit.text for hit in memory.recall("", as_of=then)] == ["Use yarn"]
    assert not memory.recall("pnpm yarn", as_of=then - DAY).hits


def test_the_past_knows_what_was_archived_since(memory, clock):
    """What was live then is found then, and what was not yet is not."""
    gone = memory.remember("the old server", category="decisions").record
    then = clock()
    clock.forward(DAY)
    memory.archive(gone.id)
    memory.remember("the new server", category="decisions")

    assert [hit.text for hit in memory.recall("server", as_of=then)] == ["the old server"]
    assert [hit.text for hit in memory.recall("server")] == ["the new server"]


def test_the_past_needs_a_time_zone(memory):
    """A moment that could be any of twenty-four is refused."""
    with pytest.raises(InvalidInput, match="has no time zone"):
        memory.recall("x", as_of=datetime(2026, 1, 1))  # noqa: DTZ001 - that is the mistake


def test_any_beginning_of_an_id_that_is_unique_will_do(memory):
    """People see and type ten letters."""
    record = memory.remember("one", category="decisions").record

    assert memory.get(record.short) == memory.get(record.id) == record


def test_a_beginning_that_several_share_names_them(memory):
    """Ambiguity is answered with the ids that are meant, not with one of them."""
    for count, end in ((2, ""), (3, ""), (4, ", ...")):
        while len(memory.list()) < count:
            memory.remember(f"note {len(memory.list())}", category="decisions")
        ids = sorted(record.id for record in memory.list())
        with pytest.raises(InvalidInput) as caught:
            memory.get(ids[0][:3])
        assert str(caught.value) == f"'{ids[0][:3]}' begins the ids of several records: {', '.join(ids[:3])}{end}"


@rows("id", ["", "zzzz", "NOT AN ID", "'; drop table record; --", "0" * 21, "é"])
def test_what_is_not_there_is_named(memory, id):
    """An unknown id is a clear error, whatever it looks like."""
    with pytest.raises(NotFound, match="there is no record") as caught:
        memory.get(id)
    assert repr(id) in str(caught.value)


def test_a_record_outside_of_the_binding_does_not_exist(memory, through, project, assistant, clock):
    """Neither its id nor the beginning of it tells that it is there."""
    record = memory.remember("mine", category="preferences", scope=assistant).record
    stranger = through(reads=(project,))

    for name in (record.id, record.short, new_id(clock())):
        with pytest.raises(NotFound, match=f"there is no record '{name}'"):
            stranger.get(name)


def test_a_foreign_record_makes_no_beginning_ambiguous(memory, through, project, assistant):
    """What one may not see has no say in what is unique."""
    memory.remember("mine", category="preferences", scope=assistant)
    record = memory.remember("ours", category="decisions").record

    assert through(reads=(project,)).get(record.id[:3]) == record


def test_a_list_is_of_live_records_newest_first(memory, clock):
    """What is archived, held or expired is listed only if asked for."""
    ids = {}
    for name in ("live", "archived", "held", "expired"):
        ids[name] = memory.remember(name, category="incidents", ttl=DAY if name == "expired" else None).record.id
        clock.forward()
    memory.archive(ids["archived"])
    memory.hold(ids["held"])
    clock.forward(2 * DAY)

    assert [record.id for record in memory.list()] == [ids["live"]]
    for state in State:
        assert [record.id for record in memory.list(states=[state])] == [ids[state.value]]
    assert [record.content for record in memory.list(states=State)] == ["expired", "held", "archived", "live"]


def test_a_list_has_an_order_and_a_limit(memory, clock):
    """Newest, oldest, least used, by id; and not more than asked for."""
    for content in ("one", "two", "three"):
        memory.remember(content, category="decisions")
        clock.forward()
    memory.recall("one")

    def listed(order):
        return [record.content for record in memory.list(order=order, limit=2)]

    assert listed(Order.NEWEST) == ["three", "two"]
    assert listed(Order.OLDEST) == listed(Order.ID) == ["one", "two"]
    assert listed(Order.STALEST) == ["two", "three"]


def test_one_channel_reads_what_another_wrote(memory, through):
    """Agents of one project share its memory; the record says who wrote it."""
    memory.remember("Use pnpm", category="decisions")
    hit = through(Channel.AGENT).recall("pnpm")[0]

    assert hit.record.source.channel is Channel.USER

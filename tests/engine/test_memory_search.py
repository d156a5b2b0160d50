"""Full text, through the engine: any text is a question, and the order of the answers can be relied on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from commonplace.engine.memory import Memory
from commonplace.engine.transcripts import Turn
from commonplace.model.documents import DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.scopes import Scope
from commonplace.text.cleaning import estimate_tokens
from commonplace.text.question import Profile
from stands import rows

OTHER = Scope.of(("project", "github.com/acme/other"))
AWKWARD = [
    '"', '""', "'", 'pnpm"', '"pnpm', "pnpm AND", "AND", "OR NOT", "NOT pnpm", "NEAR(pnpm npm, 2)", "pnpm*", "*",
    "^pnpm", "content:pnpm", "pnpm - npm", "-pnpm", "(pnpm", "pnpm)", "{pnpm npm}:x", "pnpm; drop table record",
    "pn\x00pm", "\x00", "\ud800", "🦀", "👩‍👩‍👧", "pnpm\u202e", "%", "_", "\\", "a" * 5000, "' or 1=1 --", "\n\t\r",
    "µ½Ⅷ",
]  # fmt: skip


@rows("query", AWKWARD)
def test_any_text_is_a_legal_question(memory, query):
    """Quotes, operators, NUL, half characters and emoji are asked as they are."""
    memory.remember("Use pnpm, not npm", category="decisions")

    assert len(memory.recall(query)) <= 1


@rows("query", ['"pnpm', "NOT pnpm", "pnpm*", "-pnpm", "(pnpm)", "pnpm; drop table x"])
def test_operators_are_words(memory, query):
    """A question is never refused or turned around by what it looks like."""
    memory.remember("Use pnpm", category="decisions")

    assert memory.recall(query)[0].text == "Use pnpm"


def test_ten_kilobytes_of_prose_are_a_question(memory):
    """A whole ticket can be asked; what it is about is found."""
    memory.remember("The checkout page times out when the cart holds gift cards", category="incidents")
    memory.remember("The printer is on the second floor", category="preferences")
    ticket = (
        "Customers complain. " * 250 + "The checkout page times out with gift cards in the cart. " + "Urgent! " * 600
    )

    assert len(ticket) > 9000
    assert memory.recall(ticket)[0].text.startswith("The checkout page")


def test_words_count_in_any_order(memory):
    """A question is a set of words."""
    memory.remember("the quick brown fox jumps", category="decisions")
    forward, backward = memory.recall("quick brown fox", count=False), memory.recall("fox brown quick", count=False)

    assert forward.hits == backward.hits


def test_all_words_first_then_most_words(memory):
    """Whoever has every word stands above whoever has them often, and most words above few."""
    memory.remember("deploy deploy deploy deploy", category="procedures")
    memory.remember("deploy the staging server " + "and wait for the lamp " * 10, category="procedures")
    memory.remember("the staging server", category="procedures")
    memory.remember("something else entirely", category="procedures")

    texts = [hit.text[:16] for hit in memory.recall("deploy staging server")]
    assert texts == ["deploy the stagi", "the staging serv", "deploy deploy de"]
    scores = [hit.score for hit in memory.recall("deploy staging server")]
    assert scores[0] > 0.5 > scores[1] > scores[2] > 0


@rows(
    "said, asked",
    [
        ("we are deploying the servers", "deploy server"),
        ("the tests failed", "failing test"),
        ("migrations were run", "run migration"),
        ("caf\u00e9 opening hours", "cafe"),
        ("don\u2019t push to main", "dont push"),
        ("E-mail the release notes", "email"),
    ],
)
def test_endings_and_accents_do_not_matter(memory, said, asked):
    """A word is found in its other forms."""
    memory.remember(said, category="procedures")

    hit = memory.recall(asked)[0]
    assert hit.text == said
    assert hit.score > 0.5


@rows(
    "said, near_misses",
    [
        ("E1234", ["E1235", "E123", "E12345"]),
        ("useEffect", ["useState", "useEffects2"]),
        ("foo_bar", ["foo_baz", "qux_bar"]),
        ("v2.1", ["v2.10", "v2", "v3.1"]),
        ("src/app/main.py", ["src/app/other.py", "lib/main.py"]),
        ("user@example.com", ["user@example.org"]),
        ("ERR_PNPM_OUTDATED", ["ERR_PNPM_OTHER"]),
        ("192.168.0.1", ["192.168.0.11", "10.0.0.1"]),
    ],
)
def test_exact_tokens_are_found_exactly(memory, said, near_misses):
    """Codes, names, versions and paths come before everything that only looks like them."""
    for near in near_misses:
        memory.remember(f"seen {near} in the log", category="incidents")
    memory.remember(f"seen {said} in the log", category="incidents")

    hits = memory.recall(said).hits
    assert hits[0].text == f"seen {said} in the log"
    assert len(hits) == 1 or hits[0].score > hits[1].score


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("デプロイは月曜日に行う", "月曜日"),
        ("部署在星期一进行", "星期一"),
        ("배포는 월요일에 한다", "월요일"),
        ("การนำขึ้นระบบทำวันจันทร์", "วันจันทร์"),
    ],
)
def test_scripts_without_spaces_are_searched(memory, said, asked):
    """A word is found within a sentence that has no spaces around it."""
    memory.remember("unrelated", category="decisions")
    memory.remember(said, category="decisions")

    assert memory.recall(asked)[0].text == said


def test_aliases_keywords_and_keys_count(memory):
    """A question that matches only an alias, a keyword or a key finds the record."""
    names = {"aliases": ["package manager"], "keywords": ["dependency", "install"]}
    record = memory.remember("Pin what we have", category="decisions", metadata=names, key="node-tooling").record

    for asked in ("package manager", "dependency", "installing", "node-tooling"):
        assert [hit.id for hit in memory.recall(asked)] == [record.id]
    memory.update(record.id, metadata={"aliases": ["bundler"]})
    assert not memory.recall("dependency").hits
    assert memory.recall("bundler")[0].id == record.id


def test_tags_and_other_metadata_are_not_words(memory):
    """A tag chooses by its whole value; it is not found by a question."""
    memory.remember("Use pnpm", category="decisions", tags=["tooling"], metadata={"team": "platform"})

    assert not memory.recall("tooling platform").hits
    assert len(memory.recall("", tags=["tooling"])) == 1
    assert not memory.recall("", tags=["tool"]).hits


def test_another_scope_moves_no_score(memory, through, store, clock):
    """Whatever others write, the same question gives the same scores, to the last digit."""
    memory.remember("deploy the server on Monday", category="decisions")
    memory.remember("deploy by hand", category="decisions")
    memory.index(DocumentKind.SESSION, "s", [Turn(ref="1", text="the server was slow")])
    before = memory.recall("deploy server", count=False).hits
    stranger = through(
        writes=dict.fromkeys(memory.binding.writes, OTHER), reads=(OTHER,), transcripts=frozenset({OTHER})
    )
    for number in range(20):
        stranger.remember(f"deploy server {number} " * 5, category="decisions")
    stranger.index(DocumentKind.SESSION, "s", [Turn(ref="1", text="deploy deploy server")])

    assert memory.recall("deploy server", count=False).hits == before
    assert Memory(store, memory.binding, clock=clock).recall("deploy server", count=False).hits == before


def test_a_shared_scope_does_move_scores(memory, assistant):
    """What one may read is one collection: rarity is counted over both scopes."""
    memory.remember("deploy the server", category="decisions")
    memory.remember("lunch", category="decisions")
    before = memory.recall("deploy lunch", count=False)[0].score
    for number in range(5):
        memory.remember(f"deploy {number}", category="preferences", scope=assistant)

    assert memory.recall("deploy lunch", count=False)[0].score != before


def test_what_is_not_live_moves_no_score(memory):
    """An archived record is not even counted."""
    memory.remember("deploy the server", category="decisions")
    memory.remember("lunch", category="decisions")
    before = memory.recall("deploy server", count=False).hits
    for verb in (memory.archive, memory.hold, memory.forget):
        verb(memory.remember("deploy server deploy", category="decisions").record.id)

    assert memory.recall("deploy server", count=False).hits == before


def test_equal_matches_stand_in_the_order_of_their_ids(memory):
    """Ties are decided the same way every time: the older first."""
    texts = [f"deploy {word}" for word in ("alpha", "beta", "gamma", "delta", "epsilon")]
    ids = [memory.remember(text, category="decisions").record.id for text in texts]

    answers = [memory.recall("deploy", count=False).hits for _ in range(3)]
    assert [hit.id for hit in answers[0]] == ids == sorted(ids)
    assert answers[0] == answers[1] == answers[2]
    assert memory.recall("deploy", limit=2, count=False).hits == answers[0][:2]


def test_a_question_without_an_answer_finds_nothing(memory):
    """Nothing is made up to fill the list."""
    memory.remember("Use pnpm", category="decisions")

    assert memory.recall("quarterly revenue").hits == ()


# Sessions: context, names, times


@pytest.fixture
def session(memory):
    """Index a session: each turn is who says what."""

    def session(name, *turns, **fields):
        said = [Turn(ref=str(at), text=text, speaker=who, **fields) for at, (who, text) in enumerate(turns)]
        memory.index(DocumentKind.SESSION, name, said)

    return session


def test_an_answer_is_found_by_the_question_before_it(memory, session):
    """A turn that has none of the words is found through the turn that asks with them; other sessions are not."""
    session("a", ("Ada", "Where do you keep the spare key?"), ("Bob", "Under the flower pot by the door."))
    session("b", ("Ada", "Nice weather."), ("Bob", "It is."))
    found = [hit.text for hit in memory.recall("Where is the spare key?")]
    assert found[0] == "Under the flower pot by the door."
    assert set(found) == {"Under the flower pot by the door.", "Where do you keep the spare key?"}


def test_context_stays_within_a_session(memory, session):
    """The first turn of one session does not follow the last turn of another."""
    session("a", ("Ada", "Where is the spare key?"))
    session("b", ("Bob", "Under the flower pot."))
    assert [hit.id for hit in memory.recall("Where is the spare key?")] == ["session:a#0"]


def test_whom_a_question_names_is_preferred(memory, session):
    """Of two who say the same, the one that is named comes first; of two that are named, neither."""
    for name in ("Ada", "Bob", "Cy"):
        session(name, (name, f"I like {'green' if name == 'Ada' else 'black'} tea with milk in the morning"))
    for name in ("Bob", "Cy"):
        assert memory.recall(f"What tea does {name} like?", count=False)[0].chunk.speaker == name
    both = memory.recall("Do Bob and Cy like tea?", count=False).hits
    assert "who" not in {part for hit in both for part, _ in hit.parts}


def test_a_name_is_a_word_where_nothing_else_is_asked(memory, session):
    """Who asks about somebody finds what was kept about them, not what holds the words of the asking."""
    session("a", ("Ada", "I moved to Lisbon"))
    memory.remember("Who is on call is decided on Monday", category="decisions")
    record = memory.remember("Ada is the owner of billing", category="decisions").record
    assert memory.recall("Who is Ada?")[0].id == record.id
    assert memory.recall("Ada")[0].id == record.id


def test_a_role_is_a_word(memory, session):
    """User and assistant are nobody's names: they are searched."""
    session("a", ("user", "hello"), ("assistant", "hi"))
    memory.remember("The assistant answers in French", category="preferences")
    memory.remember("Meals are in French", category="preferences")
    assert memory.recall("Does the assistant answer in French?")[0].text == "The assistant answers in French"


def test_the_time_that_is_meant_decides_between_equals(memory, session):
    """A session of that month stands above the like of it of another."""
    for month in (3, 5, 7):
        said = ("Ada", f"We planted the tomatoes, row {month}")
        session(f"m{month}", said, occurred_at=datetime(2025, month, 10, tzinfo=UTC))
    assert memory.recall("What did we plant in May 2025?", count=False)[0].id == "session:m5#0"
    assert memory.recall("What did we plant on 10 March?", count=False)[0].id == "session:m3#0"


def test_the_profile_is_told_or_read_off_the_question(memory, clock):
    """A message prefers the newest of two alike, a question about the past does not; who knows better says so."""
    old = memory.remember("the deploy of monday was late", category="decisions").record
    clock.forward(timedelta(days=1))
    new = memory.remember("the deploy of tuesday was late", category="decisions").record

    def first(query, **options):
        return memory.recall(query, count=False, **options)[0].id

    assert (first("deploy"), first("deploy?")) == (new.id, old.id)
    assert first("deploy", profile=Profile.RECALL) == old.id
    assert first("deploy?", profile=Profile.WORKING) == new.id


@pytest.mark.parametrize("query", ["kettle descaling vinegar", "kettle descaling vinegar?"])
def test_every_word_stands_above_half_of_them(memory, clock, query):
    """Also if the other one is short, newer, pinned and says its word often."""
    memory.remember("kettle descaling needs vinegar", category="procedures")
    clock.forward(timedelta(days=1))
    memory.remember("kettle kettle kettle", category="procedures", pinned=True)
    assert memory.recall(query)[0].text == "kettle descaling needs vinegar"


# What is shown


def test_what_says_nearly_the_same_is_shown_once(memory):
    """The better one names the other, and makes room for something else."""
    text = "the nightly backup of the shop runs at four and is kept for ten days"
    first = memory.remember(text, category="decisions").record
    second = memory.remember(f"{text} too", category="decisions").record
    memory.remember("backup tapes are in the cellar", category="decisions")
    hits = memory.recall("nightly backup", limit=2).hits
    assert len(hits) == 2
    assert {hits[0].id, *hits[0].alike} == {first.id, second.id}
    assert hits[1].text == "backup tapes are in the cellar"


def test_a_budget_cuts_by_tokens(memory):
    """What does not fit is left out, and a shorter one behind it is taken."""
    for size in (40, 4, 3):
        memory.remember("backup " + f"words{size} " * size, category="decisions")
    hits = memory.recall("backup", budget=20).hits
    assert len(hits) == 2
    assert sum(estimate_tokens(hit.text) for hit in hits) <= 20


def test_a_hit_explains_its_score(memory, session):
    """For records and for turns, in both profiles, the parts add up."""
    session("a", ("Ada", "Where is the spare key?"), ("Bob", "Under the pot, since yesterday."))
    memory.remember("The spare key is blue", category="decisions", pinned=True)
    for query in ("When did Bob move the spare key?", "spare key"):
        hits = memory.recall(query).hits
        assert {hit.chunk is None for hit in hits} == {True, False}
        for hit in hits:
            assert sum(part for _, part in hit.parts) == pytest.approx(hit.score)


def test_a_limit_of_nothing_is_refused(memory):
    """It would find nothing."""
    with pytest.raises(InvalidInput, match="a limit of 0"):
        memory.recall("x", limit=0)

"""What a new record closes, whatever the way in; and what a person is asked about."""

from datetime import UTC, datetime, timedelta

from commonplace.engine.memory import with_binding
from commonplace.engine.review import list_waiting
from commonplace.engine.transcripts import Turn
from commonplace.engine.transfer import Arrival, import_items
from commonplace.model.documents import DocumentKind
from commonplace.model.queries import State
from commonplace.model.records import Channel, Draft
from commonplace.text.replacement import Relation, compare
from stands import rows

OLD, NEW = "The API listens on port 8080.", "The API listens on port 9090 now."


def as_agent(memory):
    """The same memory, written to by an agent."""
    return with_binding(memory, memory.binding.replace(channel=Channel.AGENT))


def contents(memory, state=State.LIVE):
    return {record.content for record in memory.list(states=[state])}


def test_a_later_fact_closes_the_one_it_contradicts(memory):
    """It says so, and the old one is kept and can be restored."""
    old = memory.remember(OLD, category="decisions").record
    saved = memory.remember(NEW, category="decisions")
    assert saved.superseded.id == old.id
    assert any(OLD in note and old.short in note for note in saved.notes)
    assert (contents(memory), contents(memory, State.ARCHIVED)) == ({NEW}, {OLD})


@rows(
    "old, new",
    [
        ("We use Postgres for the orders service", "We use Redis for the orders service"),
        ("We use pytest", "We use factory_boy"),
        ("We deploy to AWS.", "We also deploy to Azure."),
        ("note number 1", "note number 2"),
        ("Ticket 77 is closed", "Ticket 78 is open"),
        ("We use pip", "We use npm"),
    ],
)
def test_what_does_not_contradict_stays(old, new):
    """Another respect, another condition, another number of the same series."""
    assert compare(old, new) is Relation.NONE


def test_a_fact_that_is_older_than_what_contradicts_it_joins_the_past(memory):
    """Facts may come in any order: the end is the same."""
    memory.remember(NEW, category="decisions", occurred_at=datetime(2026, 3, 1, tzinfo=UTC))
    late = memory.remember(OLD, category="decisions", occurred_at=datetime(2026, 1, 1, tzinfo=UTC))
    assert late.record.superseded_by is not None
    assert (contents(memory), contents(memory, State.ARCHIVED)) == ({NEW}, {OLD})


def test_what_code_is_not_sure_of_is_asked(memory):
    """Both stay, the newer one ranks first, and the review queue has the two until a person says."""
    old = memory.remember("The mascot is a fox.", category="facts").record
    saved = memory.remember("The mascot is an otter.", category="facts")
    assert any(f"supersedes {old.short}" in note for note in saved.notes)
    assert [(one.record.id, one.target.id) for one in list_waiting(memory)] == [(saved.record.id, old.id)]
    assert [hit.record.id for hit in memory.recall("what is the mascot?")] == [saved.record.id, old.id]

    memory.approve(saved.record.id)
    assert memory.get(old.id).superseded_by == saved.record.id
    assert list_waiting(memory) == []


def test_both_of_an_asked_pair_can_be_kept(memory):
    """Then nobody is asked again."""
    memory.remember("The mascot is a fox.", category="facts")
    new = memory.remember("The mascot is an otter.", category="facts").record
    memory.approve(new.id, alone=True)
    assert (list_waiting(memory), len(memory.list())) == ([], 2)


def test_saying_it_again_with_what_it_replaces_answers_the_question(memory):
    """No second record is made of the same words."""
    old = memory.remember("The mascot is a fox.", category="facts").record
    new = memory.remember("The mascot is an otter.", category="facts").record
    again = memory.remember("The mascot is an otter.", category="facts", supersedes=old.id)
    assert (again.record.id, again.deduped, again.superseded.id) == (new.id, True, old.id)
    assert (list_waiting(memory), [one.id for one in memory.list()]) == ([], [new.id])


def test_an_agents_word_does_not_close_a_persons(memory):
    """It is asked; the person's stays."""
    old = memory.remember(OLD, category="facts").record
    saved = as_agent(memory).remember(NEW, category="facts")
    assert saved.superseded is None
    assert [one.target.id for one in list_waiting(memory)] == [old.id]


def test_a_pinned_fact_is_closed_by_a_person_alone(memory):
    """It is asked."""
    memory.remember(OLD, category="facts", pinned=True)
    assert memory.remember(NEW, category="facts").superseded is None
    assert contents(memory) == {OLD, NEW}


def test_what_is_imported_closes_what_it_contradicts_among_itself(memory):
    """A file may hold the old and the new."""
    importer = with_binding(memory, memory.binding.replace(channel=Channel.IMPORT))
    days = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    drafts = [
        Draft(content=text, category="facts", occurred_at=day) for text, day in zip((OLD, NEW), days, strict=True)
    ]
    import_items(importer, [Arrival(place=f"line {n}", draft=draft) for n, draft in enumerate(drafts)])
    assert (contents(memory), contents(memory, State.ARCHIVED)) == ({NEW}, {OLD})


def test_a_turn_whose_fact_was_replaced_is_marked(memory, clock):
    """Its words stay what they were; who reads them is told."""
    memory.index(DocumentKind.SESSION, "s", [Turn(ref="0", speaker="user", text=OLD)])
    memory.remember(OLD, category="facts", ref="session:s#0")
    clock.forward(timedelta(days=1))
    new = memory.remember(NEW, category="facts").record
    turn = next(hit for hit in memory.recall("port of the API") if hit.chunk)
    assert turn.replaced_by == new.id

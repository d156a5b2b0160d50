"""``Record``: the one thing that is kept; what it refuses, and what state it is in."""

from datetime import UTC, datetime, timedelta

import pytest

from commonplace.model.documents import Chunk, Document, DocumentKind
from commonplace.model.errors import InvalidInput
from commonplace.model.queries import State
from commonplace.model.records import CATEGORIES, CEILING, Channel, Kind, Source, Trust
from commonplace.model.scopes import Scope
from stands import rows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


@rows(
    "fields, state",
    [
        ({}, State.LIVE),
        ({"expires_at": NOW + HOUR}, State.LIVE),
        ({"expires_at": NOW}, State.EXPIRED),
        ({"expires_at": NOW - HOUR}, State.EXPIRED),
        ({"held": True}, State.HELD),
        ({"held": True, "expires_at": NOW - HOUR}, State.HELD),
        ({"archived_at": NOW + HOUR}, State.ARCHIVED),
        ({"archived_at": NOW, "held": True, "expires_at": NOW - HOUR}, State.ARCHIVED),
        ({"archived_at": NOW, "superseded_by": "0" * 20}, State.ARCHIVED),
        ({"occurred_at": NOW + HOUR}, State.LIVE),
    ],
)
def test_a_record_is_in_exactly_one_state(make, fields, state):
    """Archived comes before held, held before expired, and the rest is live."""
    assert make(**fields).state(NOW) is state


@rows("name", ["", "short", "0" * 21, "0" * 19 + "L", "../" + "0" * 17])
def test_a_record_needs_an_id(make, name):
    """What could not be a file name or an address is no id."""
    with pytest.raises(InvalidInput, match="not a record id"):
        make(id=name)


def test_superseded_implies_archived(make):
    """A record with a successor is out of recall."""
    with pytest.raises(InvalidInput, match="superseded but not archived"):
        make(superseded_by="0" * 20)


DATES = ("created_at", "updated_at", "occurred_at", "expires_at", "archived_at", "consolidated_at")


@rows("field", DATES)
def test_dates_have_a_time_zone(make, field):
    """A moment that nobody can place is refused."""
    with pytest.raises(InvalidInput, match="time zone"):
        make(**{field: NOW.replace(tzinfo=None)})


@pytest.mark.parametrize("field", ["created_at", "updated_at"])
def test_dates_of_documents_have_a_time_zone(make, field):
    """The rule holds for documents."""
    with pytest.raises(InvalidInput, match="time zone"):
        make.document(**{field: NOW.replace(tzinfo=None)})


def test_a_document_needs_a_name(make):
    """A blank name is none."""
    with pytest.raises(InvalidInput, match="name"):
        make.document("  ")


def test_the_date_of_a_chunk_has_a_time_zone(make):
    """The rule holds for chunks."""
    [chunk] = make.chunks(make.document(), "text")["chunks"]
    with pytest.raises(InvalidInput, match="time zone"):
        chunk.replace(occurred_at=NOW.replace(tzinfo=None))


def test_a_chunk_leads_back_to_its_origin():
    """The reference of a chunk names its document and its place there."""
    given = {"scope": Scope.parse("user:ada"), "kind": DocumentKind.SESSION, "trust": Trust.AGENT}
    assert Chunk(document="0b1c", seq=3, ref="4", text="x", **given).id == "session:0b1c#4"


def test_a_record_has_a_short_name(make):
    """People see and type the beginning of an id."""
    record = make()
    assert record.id.startswith(record.short)
    assert len(record.short) == 10


@pytest.mark.parametrize(
    ("metadata", "words"),
    [({}, ()), ({"aliases": ["a", 1]}, ("a", "1")), ({"aliases": "a"}, ()), ({"aliases": None}, ())],
)
def test_aliases_and_keywords_are_read_from_metadata(make, metadata, words):
    """Lists count, anything else is not taken for one."""
    keywords = {"keywords": metadata["aliases"]} if metadata else {}
    assert make(metadata=metadata).aliases == make(metadata=keywords).keywords == words


def test_trust_is_ordered():
    """A person is trusted before a model, a model before the world."""
    assert Trust.USER > Trust.AGENT > Trust.EXTERNAL
    assert min(Trust.USER, Trust.EXTERNAL) is Trust.EXTERNAL


def test_every_channel_has_a_ceiling():
    """No way in is without a limit to the trust that it gives, and only people reach the top."""
    assert set(CEILING) == set(Channel)
    assert {channel for channel, trust in CEILING.items() if trust is Trust.USER} == {Channel.USER, Channel.FILE}


def test_the_categories_are_kinds_of_memory():
    """Decisions, principles, preferences and facts are semantic, procedures are ways, incidents are events."""
    assert {kind: sum(value is kind for value in CATEGORIES.values()) for kind in set(CATEGORIES.values())} == {
        Kind.SEMANTIC: 4,
        Kind.PROCEDURAL: 1,
        Kind.EPISODIC: 1,
    }


def test_a_record_equals_itself_read_from_json(make):
    """An empty mapping is an empty mapping, whatever its type."""
    assert make(id="0" * 20) == make(id="0" * 20, metadata={}, source=Source(channel=Channel.USER))
    assert isinstance(make.document(), Document)

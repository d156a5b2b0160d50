"""``Filter``, ``DocumentFilter``, ``Match`` and ``Hit``: what can be asked, and what comes back."""

import pytest

from commonplace.model.errors import InvalidInput
from commonplace.model.queries import ANY_STATE, DocumentFilter, Filter, Hit, Match, State


def test_a_filter_means_live_records_unless_told_otherwise(make):
    """Nothing archived, held or expired, no version, no chunk is meant by default."""
    where = make.where()
    assert (where.states, where.versions, where.as_of, where.records, where.chunks) == (
        frozenset({State.LIVE}),
        False,
        None,
        True,
        False,
    )


def test_any_state_is_every_state():
    """Who wants everything gets everything."""
    assert frozenset(State) == ANY_STATE


def test_filters_need_a_scope(make):
    """Nothing can be read everywhere."""
    with pytest.raises(InvalidInput, match="scope"):
        Filter(scopes=frozenset(), at=make.clock())
    with pytest.raises(InvalidInput, match="scope"):
        DocumentFilter(scopes=frozenset())


@pytest.mark.parametrize("field", ["at", "as_of"])
def test_the_moments_of_a_filter_have_a_time_zone(make, field):
    """A moment that nobody can place is refused."""
    with pytest.raises(InvalidInput, match="time zone"):
        make.where().replace(**{field: make.clock().replace(tzinfo=None)})


def test_filters_are_values(make):
    """Two filters that mean the same are the same."""
    assert make.where(tags=frozenset({"a", "b"})) == make.where(tags=frozenset({"b", "a"}))
    assert len({make.where(), make.where()}) == 1


def test_a_match_is_known_by_what_was_found(make):
    """Record or chunk: its id is the match's."""
    record, [chunk] = make(), make.chunks(make.document(), "text")["chunks"]
    assert Match(score=1.0, record=record).id == record.id
    assert Match(score=1.0, chunk=chunk).id == chunk.id
    assert Match(score=1.0).id == ""


def test_a_hit_shows_what_was_found(make):
    """The words to show are the record's or the chunk's."""
    record, [chunk] = make("said"), make.chunks(make.document(), "text")["chunks"]
    assert [(hit.id, hit.text) for hit in (Hit(score=1.0, record=record), Hit(score=0.5, chunk=chunk))] == [
        (record.id, "said"),
        (chunk.id, "text"),
    ]
    assert (Hit(score=0.0).id, Hit(score=0.0).text) == ("", "")

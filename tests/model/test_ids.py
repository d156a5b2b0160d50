"""Record ids: twenty characters, ordered by time, safe in URLs and file names."""

import threading
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commonplace.model.ids import ALPHABET, LENGTH, SHORT, is_id, is_prefix, new_id
from stands import rows

relaxed = settings(max_examples=50, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_id_has_twenty_plain_characters():
    """An id needs no escaping anywhere and reads the same in every case."""
    made = new_id(NOW)
    assert len(made) == LENGTH
    assert set(made) <= set(ALPHABET)
    assert ALPHABET.islower()
    assert not set("ilou") & set(ALPHABET)


def test_ids_sort_in_the_order_in_which_they_were_made():
    """A clock that stands still or goes back does not disturb the order."""
    moments = [NOW, NOW, NOW - timedelta(days=1), NOW + timedelta(seconds=1), NOW, NOW]
    made = [new_id(moment) for moment in moments * 50]
    assert made == sorted(made)


def test_ids_sort_by_time():
    """An id of a later millisecond is greater, whatever process made it."""
    earlier, later = new_id(NOW), new_id(NOW + timedelta(hours=1))
    assert earlier[:9] < later[:9]


def test_the_short_form_tells_ids_apart():
    """Of all ids of one process no two share their first ten characters."""
    made = [new_id(NOW) for _ in range(5000)]
    assert len({name[:SHORT] for name in made}) == len(made)


def test_threads_never_get_the_same_id():
    """Sixteen threads at once make ids that all differ in their time part."""
    made = []
    threads = [threading.Thread(target=lambda: made.extend([new_id(NOW) for _ in range(200)])) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({name[:9] for name in made}) == 3200


@rows("text", ["", "0" * 19, "0" * 21, "I" * 20, "0" * 19 + "-", "0" * 19 + "\n", "é" * 20, "0" * 10])
def test_what_is_no_id_is_told(text):
    """Another length or another character is no id."""
    assert not is_id(text)


@relaxed
@given(st.datetimes(min_value=datetime(1970, 1, 1), max_value=datetime(2026, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_every_moment_makes_an_id_and_its_prefixes(moment):
    """Every id and every beginning of one is recognised."""
    made = new_id(moment)
    assert is_id(made)
    assert all(is_prefix(made[:length]) for length in range(1, LENGTH + 1))


@relaxed
@given(st.text())
def test_any_text_is_either_a_prefix_or_not(text):
    """A prefix is one to twenty characters of the alphabet, and nothing else."""
    assert is_prefix(text) == (0 < len(text) <= LENGTH and set(text) <= set(ALPHABET))

"""Times in a text: what is meant by them as of when it was said, and what is no time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.text.periods import YEARS_BACK, Period, periods
from stands import rows

NOW = datetime(2023, 7, 12, 15, 30, tzinfo=UTC)  # a Wednesday
DAY = timedelta(days=1)


def spans(text, said_at=NOW):
    """Every period as its first and its last day."""
    return [(f"{one.start:%Y-%m-%d}", f"{one.end - timedelta(seconds=1):%Y-%m-%d}") for one in periods(text, said_at)]


@rows(
    "text, first, last",
    [
        ("Where was I in May 2023?", "2023-05-01", "2023-05-31"),
        ("in may 2023", "2023-05-01", "2023-05-31"),
        ("What did she say in Sept. 2022", "2022-09-01", "2022-09-30"),
        ("December 2022", "2022-12-01", "2022-12-31"),
        ("What broke last May?", "2023-05-01", "2023-05-31"),
        ("last july", "2022-07-01", "2022-07-31"),
        ("last November", "2022-11-01", "2022-11-30"),
        ("July 3rd, 2022", "2022-07-03", "2022-07-03"),
        ("on the 3rd of July, 2022", "2022-07-03", "2022-07-03"),
        ("on 3 July 2022", "2022-07-03", "2022-07-03"),
        ("March 3, 2022 was cold", "2022-03-03", "2022-03-03"),
        ("29 February 2020", "2020-02-29", "2020-02-29"),
        ("2023-05-17", "2023-05-17", "2023-05-17"),
        ("since (2023-05-17).", "2023-05-17", "2023-05-17"),
        ("yesterday", "2023-07-11", "2023-07-11"),
        ("Yesterday's stand-up", "2023-07-11", "2023-07-11"),
        ("what do I do today?", "2023-07-12", "2023-07-12"),
        ("tonight", "2023-07-12", "2023-07-12"),
        ("tomorrow", "2023-07-13", "2023-07-13"),
        ("last night", "2023-07-11", "2023-07-11"),
        ("last Friday", "2023-07-07", "2023-07-07"),
        ("last Wednesday", "2023-07-05", "2023-07-05"),
        ("last Tues.", "2023-07-11", "2023-07-11"),
        ("3 days ago", "2023-07-09", "2023-07-09"),
        ("a day ago", "2023-07-11", "2023-07-11"),
        ("in 2023", "2023-01-01", "2023-12-31"),
        ("last year", "2022-01-01", "2022-12-31"),
        ("this month", "2023-07-01", "2023-07-31"),
        ("last month", "2023-06-01", "2023-06-30"),
        ("next year", "2024-01-01", "2024-12-31"),
        ("in the summer of 2022", "2022-06-01", "2022-08-31"),
        ("in the fall of 2022", "2022-09-01", "2022-11-30"),
        ("winter 2022", "2022-12-01", "2023-02-28"),
        ("last summer", "2022-06-01", "2022-08-31"),
        ("last spring", "2023-03-01", "2023-05-31"),
        ("we may ship in 2022", "2022-01-01", "2022-12-31"),
    ],
)
def test_a_time_is_read(text, first, last):
    """One period, from its first day to its last."""
    assert spans(text) == [(first, last)]


@pytest.mark.parametrize(
    ("text", "days", "unit"), [("two weeks ago", 14, 7), ("a couple of months ago", 60, 30), ("3 years ago", 1095, 365)]
)
def test_longer_times_ago_lie_around_the_middle(text, days, unit):
    """As long as the unit, half of it on each side."""
    [period] = periods(text, NOW)
    middle = NOW - days * DAY
    assert (period.start, period.end) == (middle - unit * DAY / 2, middle + unit * DAY / 2)


@rows(
    "text",
    [
        "may I ask",
        "May I ask who broke it?",
        "it may be so",
        "we march on",
        "March on!",
        "they fall down",
        "the sun and the moon",
        "on 31 June",
        "on 31 June 2022",
        "30 February 2020",
        "29 February 2023",
        "2023-13-45",
        "1-2-3",
        "--",
        "version 3.5",
        "port 8080",
        "a hundred weeks of nothing",
        "99999999999999999999 days ago",
        "1001 weeks ago",
        "9999 years ago",
        "0 days ago",
        "ago",
        "days ago",
        "Friday",
        "in summer",
        "for two weeks",
        "",
        "   ",
        "\x00 \ud800 \u202e",
    ],
)
def test_what_is_no_time_is_none(text):
    """Words that look like times, days that do not exist and numbers beyond all calendars are nothing."""
    assert periods(text, NOW) == []


def test_a_month_without_a_year_is_any_of_the_last_years():
    """In May may be any May up to this year's."""
    found = spans("in May")
    assert len(found) == YEARS_BACK + 1
    assert (found[0][0], found[-1]) == ("2013-05-01", ("2023-05-01", "2023-05-31"))


def test_a_day_without_a_year_is_any_of_the_last_years():
    """On 3 July may be this year's or an earlier one."""
    found = spans("on 3 July")
    assert (len(found), found[-1]) == (YEARS_BACK + 1, ("2023-07-03", "2023-07-03"))


def test_the_29th_of_february_is_in_every_leap_year():
    """Years that do not have the day do not hide those that do."""
    assert [start for start, _ in spans("on 29 February")] == ["2016-02-29", "2020-02-29"]


def test_several_times_are_all_read():
    """A text may name more than one."""
    assert spans("between 3 July 2022 and last Friday") == [("2022-07-03",) * 2, ("2023-07-07",) * 2]


def test_a_week_is_counted_back_from_today():
    """Last week is what was around seven days ago, as people count."""
    [last] = periods("last week", NOW)
    assert last.holds(NOW - 7 * DAY)
    assert not last.holds(NOW)
    assert not last.holds(NOW - 14 * DAY)


@pytest.mark.parametrize(("text", "exact"), [("yesterday", True), ("3 days ago", True), ("last month", False)])
def test_days_are_exact(text, exact):
    """Only a day is a matter of days."""
    assert [one.exact for one in periods(text, NOW)] == [exact]


def test_near_a_day_is_the_day_beside_it():
    """A day earlier and a day later are near, two are not; a month has nothing beside it."""
    [day], [month] = periods("yesterday", NOW), periods("last month", NOW)
    assert [day.near(NOW - ago * DAY) for ago in (-1, 0, 1, 2, 3)] == [False, True, True, True, False]
    assert not month.near(month.start)


def test_periods_meet_where_they_overlap():
    """The end of one is not in it."""
    one, two, three = (Period(start=NOW + at * DAY, end=NOW + (at + 2) * DAY) for at in (0, 1, 2))
    assert (one.meets(two), two.meets(one), one.meets(three)) == (True, True, False)
    assert (one.holds(one.start), one.holds(one.end)) == (True, False)


def test_a_text_is_read_as_of_when_it_was_said():
    """Yesterday is the day before, in the time zone of whoever said it."""
    tokyo = timezone(timedelta(hours=9))
    [period] = periods("yesterday", datetime(2024, 3, 1, 1, tzinfo=tokyo))
    assert period.start == datetime(2024, 2, 29, tzinfo=tokyo)


SPOKEN = (
    "may May march last this next in of on 3 3rd 31 0 29th february June summer fall two couple of days weeks ago "
    "yesterday tomorrow 2023 1999 2099 9999 2023-05-17 9999-12-31 0001-01-01 1900 year month weekend \u0663 \xb3 st nd"
)
ANY_TEXT = st.text(max_size=80) | st.lists(st.sampled_from(SPOKEN.split()), max_size=8).map(" ".join)
MOMENTS = st.datetimes(timezones=st.just(UTC)) | st.sampled_from(
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), NOW]
)


@given(ANY_TEXT, MOMENTS)
def test_any_text_is_legal_at_any_moment(text, said_at):
    """Nothing is refused, and every period begins before it ends."""
    for period in periods(text, said_at):
        assert period.start < period.end

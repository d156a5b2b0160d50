"""Find the periods that a text names: "in May 2023", "on 3 July", "two weeks ago", "last Friday".  Pure; English only.

A period is relative to ``now``, the time of the text.  No pattern is compiled: a recall starts cold on every prompt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from commonplace.model.values import Value

_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # the month in which each begins
_UNITS = {"day": 1, "night": 1, "week": 7, "weekend": 7, "month": 30, "year": 365}
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "couple": 2, "few": 3, "several": 4,
}  # fmt: skip
_AMBIGUOUS = {"may", "march", "mar", "sun", "sat", "mon", "wed", "fall", "second"}  # a name only with a capital letter
_ASIDE = {day: ago for ago, days in ((-1, "tomorrow"), (0, "today tonight"), (1, "yesterday")) for day in days.split()}
YEARS_BACK = 10  # "in May" may mean any of so many
LONG_AGO = 1000  # days, weeks or months: a greater number names no date
_MONTH_FORMS = {form: number for number, name in enumerate(_MONTHS, start=1) for form in (name, name[:3])} | {"sept": 9}
_DAY_FORMS = {form: number for number, name in enumerate(_DAYS) for form in (name, name[:3])} | {"tues": 1, "thurs": 3}


class Period(Value):
    """The time from ``start`` up to ``end``, which is excluded."""

    start: datetime
    end: datetime
    exact: bool = False  #: one day or a few days

    def holds(self, moment: datetime) -> bool:
        """Whether a moment lies within it."""
        return self.start <= moment < self.end

    def near(self, moment: datetime) -> bool:
        """Whether an exact period contains a moment, give or take a day."""
        day = timedelta(days=1)
        return self.exact and self.start - day <= moment < self.end + day

    def meets(self, other: Period) -> bool:
        """Whether the two overlap."""
        return self.start < other.end and other.start < self.end


def periods(text: str, now: datetime) -> list[Period]:
    """Return every period that a text names, seen from ``now``."""
    words = [word.strip(".,;:?!\"'()[]") for word in text.split()]
    small = [word.lower().removesuffix("'s") for word in words]
    if not any(word[-1:].isdigit() or word in _TELLING or word.rstrip("s") in _UNITS for word in small):
        return []
    for at, word in enumerate(small):
        if word in _AMBIGUOUS and not _is_time(small, at, capital=words[at][:1].isupper()):
            small[at] = ""
    found: list[Period] = []
    for at, word in enumerate(small):
        if word not in _NAMING and not word[-1:].isdigit():  # nearly every word: a recall reads thousands
            continue
        try:
            found += _periods_at(small, at, word, now)
        except (OverflowError, ValueError):  # the 31st of June, or before the first day of the calendar
            continue
    return found


_TELLING = frozenset((*_MONTH_FORMS, *_DAY_FORMS, *_SEASONS, *_ASIDE, "ago"))
_NAMING = _TELLING | _UNITS.keys()


def _is_time(words: Sequence[str], at: int, *, capital: bool) -> bool:
    """Whether a word that can mean something else is a month, a day or a season here; "May I?" begins with none."""
    first, second = (*words[at + 1 : at + 3], "", "")[:2]
    if _year(first) or (_year(second) and (first == "of" or _number(first))):
        return True
    return at > 0 and (capital or words[at - 1] in ("in", "last", "this"))


def _periods_at(words: Sequence[str], at: int, word: str, now: datetime) -> Iterator[Period]:
    before = words[at - 1] if at else ""
    if word in _ASIDE:
        yield _day(now - timedelta(days=_ASIDE[word]))
    elif word in _MONTH_FORMS:
        yield from _month(words, at, _MONTH_FORMS[word], now)
    elif word in _SEASONS:
        yield from _season(words, at, _SEASONS[word], now)
    elif word in _DAY_FORMS and before == "last":
        back = (now.weekday() - _DAY_FORMS[word]) % 7 or 7
        yield _day(now - timedelta(days=back))
    elif word in _UNITS and before in ("last", "this", "next"):
        yield _span(word, {"last": -1, "this": 0, "next": 1}[before], now)
    elif word == "ago":
        yield from _ago(words, at, now)
    elif _year(word) and not any(near in _MONTH_FORMS or near in _SEASONS for near in words[max(0, at - 3) : at]):
        yield Period(start=_first(int(word), 1), end=_first(int(word) + 1, 1))
    elif word.count("-") == 2 and word.replace("-", "").isdecimal():  # noqa: PLR2004 - an ISO date
        yield _day(datetime.fromisoformat(word).replace(tzinfo=UTC))


def _month(words: Sequence[str], at: int, month: int, now: datetime) -> Iterator[Period]:
    """A month, or a day in it; without a year the latest one if it is the last, else any."""
    after = [_number(word) for word in words[at + 1 : at + 3]]
    year = next((number for number in after if _year(str(number))), None)
    ahead = _number(words[at - 2 if at > 1 and words[at - 1] == "of" else at - 1]) if at else 0
    day = next((number for number in (ahead, *after[:1]) if 0 < number <= 31), None)  # noqa: PLR2004 - days of a month
    last = at > 0 and words[at - 1] == "last"
    latest = now.year - (month >= now.month if last else 0)
    for chosen in [year] if year else [latest] if last else range(now.year - YEARS_BACK, now.year + 1):
        if day and (year or last or day <= _length(chosen, month)):  # any year that has a 29th of February
            yield _day(datetime(chosen, month, day, tzinfo=UTC))
        elif not day:
            yield Period(start=_first(chosen, month), end=_first(chosen, month + 1))


def _season(words: Sequence[str], at: int, month: int, now: datetime) -> Iterator[Period]:
    year = next((int(word) for word in words[at + 1 : at + 3] if _year(word)), None)
    before = words[at - 1] if at else ""
    if year is None and before not in ("last", "this"):
        return
    chosen = year or now.year - (before == "last" and now.month < month + 3)
    yield Period(start=_first(chosen, month), end=_first(chosen, month + 3))


def _ago(words: Sequence[str], at: int, now: datetime) -> Iterator[Period]:
    unit = words[at - 1].removesuffix("s") if at else ""
    counted = words[at - 3] if at > 2 and words[at - 2] == "of" else words[at - 2] if at > 1 else ""  # noqa: PLR2004
    count = _NUMBERS.get(counted) or _number(counted)
    if unit in _UNITS and 0 < count <= LONG_AGO:
        days = _UNITS[unit]
        middle = now - timedelta(days=days * count)
        if days == 1:
            yield _day(middle)
        else:
            yield Period(start=middle - timedelta(days=days / 2), end=middle + timedelta(days=days / 2))


def _span(unit: str, ahead: int, now: datetime) -> Period:
    """The last, this or the next day, week, month or year; weeks are counted back from today, as people do."""
    if unit == "year":
        return Period(start=_first(now.year + ahead, 1), end=_first(now.year + ahead + 1, 1))
    if unit == "month":
        return Period(start=_first(now.year, now.month + ahead), end=_first(now.year, now.month + ahead + 1))
    if unit in ("day", "night"):
        return _day(now + timedelta(days=ahead))
    middle = now + timedelta(days=7 * ahead)
    return Period(start=middle - timedelta(days=6), end=middle + timedelta(days=6))


def _day(moment: datetime) -> Period:
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return Period(start=start, end=start + timedelta(days=1), exact=True)


def _length(year: int, month: int) -> int:
    """How many days a month has."""
    return (_first(year, month + 1) - _first(year, month)).days


def _first(year: int, month: int) -> datetime:
    """The first moment of a month, counted on into other years."""
    return datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=UTC)


def _number(word: str) -> int:
    """A number as it is written, 3 or 3rd; 0 if it is none."""
    digits = word[:-2] if word[-2:] in ("st", "nd", "rd", "th") else word
    return int(digits) if digits.isdecimal() and len(digits) <= 4 else 0  # noqa: PLR2004 - a year is the longest


def _year(word: str) -> bool:
    return len(word) == 4 and word.isdecimal() and word[:2] in ("19", "20")  # noqa: PLR2004 - as years are written

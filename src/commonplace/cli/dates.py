"""Dates and durations as people write them on a command line."""

from __future__ import annotations

from datetime import datetime, timedelta

from commonplace.text.moments import HOURS_AND_MORE, parse_duration, parse_moment, unreadable

_DATE_LETTERS = len("2026-12-01")
_DAYS = {"today": 0, "yesterday": 1}


def until(text: str, now: datetime) -> datetime:
    """A moment to come: a date, or a time from now such as ``12h``, ``7d``, ``2w``."""
    ahead = _duration(text)
    return parse_moment(text) if ahead is None else _shift(now, ahead, text)


def since(text: str, now: datetime) -> datetime:
    """A moment of the past to look back to: a date, whose whole day counts, or a time ago such as ``7d``."""
    text = _as_date(text, now)
    ago = _duration(text)
    if ago is not None:
        return _shift(now, -ago, text)
    moment = parse_moment(text)
    return moment + timedelta(days=1, microseconds=-1) if len(text.strip()) == _DATE_LETTERS else moment


def start(text: str, now: datetime) -> datetime:
    """A moment of the past from which on something counts: a date means its first second; or a time ago."""
    text = _as_date(text, now)
    ago = _duration(text)
    return parse_moment(text) if ago is None else _shift(now, -ago, text)


def on(text: str, now: datetime) -> datetime:
    """A moment: a date, or a date and a time; without a zone in UTC, as in the files."""
    return parse_moment(_as_date(text, now))


def _as_date(text: str, now: datetime) -> str:
    """Return the date that "today" or "yesterday" is; any other text as it is."""
    days = _DAYS.get(text.strip().lower())
    return text if days is None else f"{now - timedelta(days=days):%Y-%m-%d}"


def _duration(text: str) -> timedelta | None:
    return parse_duration(text, units=HOURS_AND_MORE)


def _shift(now: datetime, by: timedelta, text: str) -> datetime:
    try:
        return now + by
    except OverflowError:
        raise unreadable(text) from None

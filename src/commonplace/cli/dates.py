"""Dates and durations as people write them on a command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from commonplace.model.errors import InvalidInput

_HOURS = {"h": 1, "d": 24, "w": 168}
_DATE_LETTERS = len("2026-12-01")


def until(text: str, now: datetime) -> datetime:
    """A moment to come: a date, or a time from now such as ``12h``, ``7d``, ``2w``."""
    ahead = _duration(text)
    return _moment(text) if ahead is None else _shift(now, ahead, text)


def since(text: str, now: datetime) -> datetime:
    """A moment of the past to look back to: a date, whose whole day counts, or a time ago such as ``7d``."""
    ago = _duration(text)
    if ago is not None:
        return _shift(now, -ago, text)
    moment = _moment(text)
    return moment + timedelta(days=1, microseconds=-1) if len(text.strip()) == _DATE_LETTERS else moment


def start(text: str, now: datetime) -> datetime:
    """A moment of the past from which on something counts: a date means its first second; or a time ago."""
    ago = _duration(text)
    return _moment(text) if ago is None else _shift(now, -ago, text)


def on(text: str, _now: datetime) -> datetime:
    """A moment: a date, or a date and a time; without a zone in UTC, as in the files."""
    return _moment(text)


def _duration(text: str) -> timedelta | None:
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    if unit not in _HOURS or not (number.isascii() and number.isdecimal()):
        return None
    try:
        return timedelta(hours=int(number) * _HOURS[unit])
    except OverflowError:
        raise _unreadable(text) from None


def _shift(now: datetime, by: timedelta, text: str) -> datetime:
    try:
        return now + by
    except OverflowError:
        raise _unreadable(text) from None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip().upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _unreadable(text) from None


def _unreadable(text: str) -> InvalidInput:
    return InvalidInput(f"{text!r} is not a date; write 2026-12-01, 2026-12-01T09:30Z, or a duration: 12h, 7d, 2w")

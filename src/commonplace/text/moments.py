"""Dates and durations as people write them: ``2026-12-01``, ``12h``, ``7d``, ``2w``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from commonplace.model.errors import InvalidInput

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
HOURS_AND_MORE = frozenset("hdw")  # what a command takes for a duration; a `5m` there could be months


def parse_duration(text: str, *, units: frozenset[str] = frozenset(_SECONDS)) -> timedelta | None:
    """Return the duration that a text names; None if it names none."""
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    if unit not in units or not (number.isascii() and number.isdecimal()):
        return None
    try:
        return timedelta(seconds=int(number) * _SECONDS[unit])
    except OverflowError:
        raise unreadable(text) from None


def parse_moment(text: str) -> datetime:
    """Return the moment that a text names; a date means its first second, and without a zone it is in UTC."""
    try:
        moment = datetime.fromisoformat(text.strip().upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise unreadable(text) from None


def unreadable(text: str) -> InvalidInput:
    """Return the error for a text that is no date."""
    return InvalidInput(f"{text!r} is not a date; write 2026-12-01, 2026-12-01T09:30Z, or a duration: 12h, 7d, 2w")

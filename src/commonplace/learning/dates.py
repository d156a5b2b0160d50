"""Say which day a relative date means: "last Friday" is no date to anybody who reads it next month.  Pure."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from commonplace.text.periods import periods

_RELATIVE = re.compile(
    r"\b(?:yesterday|tomorrow|today|tonight"
    r"|(?:last|next|this)\s+(?:night|week|weekend|month|year|spring|summer|autumn|fall|winter|monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december)"
    r"|(?:since|on|until|till|from)\s+(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
    r"|(?:\d{1,2}|an?|one|two|three|four|five|six|seven|eight|nine|ten|a\s+(?:couple\s+of|few))\s+(?:days?|weeks?|months?|years?)\s+ago)\b",
    re.IGNORECASE,
)  # fmt: skip
_DAY = timedelta(days=1)
_ONE = timedelta(days=1, hours=2)
_MONTH = timedelta(days=32)


def with_dates(text: str, said_at: datetime | None) -> str:
    """Return a text in which each relative date is followed by the day or the month that it means."""
    if said_at is None:
        return text
    now = said_at

    def dated(found: re.Match[str]) -> str:
        meant = next(iter(periods(found[0], now)), None)
        if meant is None:
            return found[0]
        if meant.end - meant.start <= _ONE:
            when = f"{meant.start:%Y-%m-%d}"
        elif meant.end - meant.start <= _MONTH:
            when = f"{meant.start:%Y-%m}" if meant.end - meant.start > 8 * _DAY else f"week of {meant.start:%Y-%m-%d}"
        else:
            when = f"{meant.start:%Y}" if meant.end - meant.start > 300 * _DAY else f"{meant.start:%Y-%m}"
        return f"{found[0]} ({when})"

    return _RELATIVE.sub(dated, text)

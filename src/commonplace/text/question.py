"""Parse a question: what it asks about, whom it names, which time it means, and what sort of question it is.  Pure.

There are two sorts.  A *recall* is a question about the past: "When did Ada move the build?"  A *working
context* is what a user is working on: a message, a ticket, a few words.  Each has its own profile in
``ranking``, because what counts besides the words differs.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from commonplace.model.values import Value
from commonplace.text.periods import Period, periods
from commonplace.text.words import says_something


class Profile(StrEnum):
    """How the hits of a question are ranked."""

    RECALL = "recall"  #: a question about the past
    WORKING = "working context"  #: what a user is working on


_OPENINGS = frozenset(
    (
        *("who", "whom", "whose", "what", "which", "when", "where", "why", "how", "remind"),
        *("did", "does", "do", "is", "are", "was", "were", "has", "have", "had"),
        *("can", "could", "would", "should", "will"),
    )
)
_WHEN = frozenset(["date", "day", "month", "year", "time"])
#: Speakers in a session that are not people.
MACHINES = frozenset(("assistant", "tool", "system", "developer"))
ROLES = MACHINES | {"", "user"}  # none of them is a name


class ParsedQuestion(Value):
    """What a question asks for."""

    text: str  #: without the names of the speakers in the sessions
    profile: Profile
    names: frozenset[str] = frozenset()  #: of speakers, in lower case
    periods: tuple[Period, ...] = ()  #: a match in any of them counts
    when: bool = False  #: it asks for a time


def parse_question(
    text: str, *, speakers: Collection[str], now: datetime, profile: Profile | None = None
) -> ParsedQuestion:
    """Parse a question about sessions with these speakers."""
    words = [_bare(word) for word in text.split()]
    names = frozenset(name for name in speakers if name.lower() not in ROLES and _is_named(name, words))
    return ParsedQuestion(
        text=_without(text, names) if names else text,
        profile=profile or (Profile.RECALL if _is_question(text, words) else Profile.WORKING),
        names=frozenset(name.lower() for name in names),
        periods=tuple(periods(text, now)),
        when=_wants_time(words),
    )


def _is_question(text: str, words: list[str]) -> bool:
    return text.rstrip().endswith("?") or (bool(words) and words[0] in _OPENINGS)


def _wants_time(words: list[str]) -> bool:
    opening = words[:2]
    return opening[:1] == ["when"] or opening == ["how", "long"] or (opening[:1] == ["what"] and opening[-1] in _WHEN)


def _is_named(name: str, words: list[str]) -> bool:
    """Whether a question names a person, by any part of the name."""
    return any(part in words or f"{part}'s" in words for part in name.lower().split())


def _bare(word: str) -> str:
    """Return a word in lower case, without the marks around it and with a plain apostrophe."""
    return word.lower().replace("\u2019", "'").strip(".,;:?!\"'()")


def _without(text: str, names: Collection[str]) -> str:
    """Remove names, which pull a vector towards everything by the same speaker; ranking scores speakers separately.

    A question about a person only, such as "Who is Ada?", stays as it is.
    """
    parts = {part for name in names for part in name.lower().split()}
    kept = " ".join([word for word in text.split() if _bare(word).removesuffix("'s") not in parts])
    return kept if says_something(kept) else text

"""Read a question: what it asks about, whom it names, which time it means, and what sort of question it is.  Pure.

Two sorts of text are asked.  A *recall* is a question about the past: "When did Ada move the build?"  A *working
context* is whatever somebody is at: a message, a ticket, a few words.  What counts besides the words differs between
the two, so that each has a profile of its own in ``ranking``.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from enum import StrEnum

from commonplace.model.values import Value
from commonplace.text.periods import Period, periods
from commonplace.text.words import says_something


class Profile(StrEnum):
    """How a question is weighed."""

    RECALL = "recall"  #: a question about the past
    WORKING = "working context"  #: what somebody is at just now


_OPENINGS = frozenset(
    (
        *("who", "whom", "whose", "what", "which", "when", "where", "why", "how", "remind"),
        *("did", "does", "do", "is", "are", "was", "were", "has", "have", "had"),
        *("can", "could", "would", "should", "will"),
    )
)
_WHEN = frozenset(["date", "day", "month", "year", "time"])
#: Who speaks in a session and is no person.
MACHINES = frozenset(("assistant", "tool", "system", "developer"))
ROLES = MACHINES | {"", "user"}  # nobody in particular


class Asked(Value):
    """A question, read."""

    text: str  #: without the names of those who speak in the sessions
    profile: Profile
    names: frozenset[str] = frozenset()  #: of speakers, in small letters
    periods: tuple[Period, ...] = ()  #: the times that are meant, any of them
    when: bool = False  #: it wants to know a time


def ask(text: str, *, speakers: Collection[str], now: datetime, profile: Profile | None = None) -> Asked:
    """Read a question that is asked now of sessions in which these people speak."""
    words = [_bare(word) for word in text.split()]
    names = frozenset(name for name in speakers if name.lower() not in ROLES and _is_named(name, words))
    return Asked(
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
    """Whether a question names somebody, by any of their names."""
    return any(part in words or f"{part}'s" in words for part in name.lower().split())


def _bare(word: str) -> str:
    """A word in small letters, without the marks around it and with a plain apostrophe in it."""
    return word.lower().replace("\u2019", "'").strip(".,;:?!\"'()")


def _without(text: str, names: Collection[str]) -> str:
    """Names draw a vector to whatever the same people say; who speaks is weighed apart from what is said.

    A question about nothing but somebody, such as "Who is Ada?", stays as it is.
    """
    parts = {part for name in names for part in name.lower().split()}
    kept = " ".join([word for word in text.split() if _bare(word).removesuffix("'s") not in parts])
    return kept if says_something(kept) else text

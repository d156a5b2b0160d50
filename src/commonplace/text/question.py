"""Parse a question: what it asks about, whom it names, which time it means, and what sort of question it is.  Pure.

There are two sorts.  A *recall* is a question about the past: "When did Ada move the build?"  A *working
context* is what a user is working on: a message, a ticket, a few words.  Each has its own profile in
``ranking``, because what counts besides the words differs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import TypeAlias

from commonplace.model.values import Value
from commonplace.text.periods import Period, periods
from commonplace.text.words import says_something


class Profile(StrEnum):
    """How the hits of a question are ranked."""

    RECALL = "recall"  #: a question about the past
    WORKING = "working context"  #: what a user is working on


#: How people and agents name them.
PROFILES = {"past": Profile.RECALL, "work": Profile.WORKING}

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


class Want(StrEnum):
    """A sort of answer that can be recognised."""

    NUMBER = "number"
    TIME = "time"
    COLOUR = "colour"
    PERSON = "person"


Wants: TypeAlias = frozenset[Want]

_AMOUNTS = frozenset(("many", "much", "tall", "deep", "old", "long", "far", "high", "big", "large", "often", "heavy",
                      "wide", "fast"))  # fmt: skip
_PRICES = frozenset(("cost", "costs", "price", "earn", "earns", "fee"))
_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())  # noqa: SIM905 - shorter
_NUMBERS = frozenset(
    "one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand"  # noqa: SIM905
    " million half quarter once twice dozen daily weekly monthly yearly hourly every each first second third midnight"
    " noon free no none".split()
)
_COLOURS = frozenset(
    "red green blue teal navy orange yellow purple violet pink black white grey gray brown beige gold silver".split()  # noqa: SIM905
)
_MOMENTS = _NUMBERS | _DAYS | {f"{day}s" for day in _DAYS} | frozenset(
    "january february march april may june july august september october november december morning evening night spring"  # noqa: SIM905
    " summer autumn winter today tomorrow yesterday week month year day days hour hours dawn weekend holidays before"
    " after until when while".split()
)  # fmt: skip


def wanted_answers(question: str) -> Wants:
    """Return the sorts of answers that a question asks for, as far as its words say so; English."""
    words = [_bare(word) for word in question.split()]
    after_how = words[words.index("how") + 1 :][:1] if "how" in words else []
    found = {
        Want.NUMBER: not _AMOUNTS.isdisjoint(after_how) or not _PRICES.isdisjoint(words),
        Want.COLOUR: "colour" in words or "color" in words,
        Want.TIME: "when" in words[:3]
        or ("what" in words and "time" in words)
        or ("which" in words and "day" in words),
        Want.PERSON: words[:1] in (["who"], ["whom"], ["whose"]) or "whom" in words[:3],
    }
    return frozenset(want for want, is_wanted in found.items() if is_wanted)


def holds(text: str, want: Want) -> bool:
    """Whether a text has something of the sort that a question asks for; a name is a word with a capital letter."""
    words = {_bare(word) for word in text.split()}
    digits = any(letter.isdecimal() for letter in text)
    if want is Want.PERSON:
        return any(word[:1].isupper() for word in text.split()[1:]) or _opens_with_name(text)
    known = {Want.NUMBER: _NUMBERS, Want.TIME: _MOMENTS, Want.COLOUR: _COLOURS}[want]
    return (digits and want is not Want.COLOUR) or not known.isdisjoint(words)


def _opens_with_name(text: str) -> bool:
    """Whether a sentence begins with somebody who does something: "Ada owns billing"."""
    first, second = [*text.split(), "", ""][:2]
    acts = second.islower() and second.endswith("s") and says_something(second)
    return first[:1].isupper() and acts and says_something(first)


class ParsedQuestion(Value):
    """What a question asks for."""

    text: str  #: without the names of the speakers in the sessions
    profile: Profile
    names: frozenset[str] = frozenset()  #: of speakers, in lower case
    periods: tuple[Period, ...] = ()  #: a match in any of them counts
    when: bool = False  #: it asks for a time
    of_assistant: bool = False  #: it asks for what an assistant said
    phrases: tuple[str, ...] = ()  #: numbers with the words before them, in lower case


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
        of_assistant=bool(re.search(_TOLD, text, re.IGNORECASE)),
        phrases=tuple(_phrases(text)),
    )


# Patterns as text: re compiles them when they are first used.
_SAY = (
    r"(?:tell|told|say|said|suggest|recommend|mention|advise|explain|propose|g[ai]ven?|provide|list|wrote|write|describe"
    r"|name|share|c[ao]me up with)\w*"
)
_TOLD = (
    rf"\b(?:you|assistant|chatgpt|claude)\s+(?:(?:just|had|have|once|also|first)\s+)?{_SAY}"
    rf"|\bdid (?:you|the assistant) {_SAY}"
    r"|\byour (?:suggest|recommend|advice|answer|explanation|proposal|list|tip)\w*"
    r"|\b(?:our|the) (?:previous|last|earlier|past) (?:conversation|chat|discussion|session)\b"
)
_SIGNS = ("always", "never", "from now on", "going forward", "future", "whenever", "every time", "prefer")
_INSTRUCTS = (
    r"(?:^|[.!?;\n]\s*|,\s*)(?:please\s+)?"
    r"(?:always|never|from now on|going forward|in (?:the )?future|whenever you|every time you)\b"
    r"|\bI(?:'d| would)? (?:always |strongly |generally |usually |really )?prefer\b|\bmy preference is\b"
)


def is_standing_instruction(text: str) -> bool:
    """Whether a text says how things are to be done from now on: "always", "never", "from now on", "I prefer"."""
    words = text.lower()  # hundreds of texts are looked at for a question, and nearly none has one of these
    return any(sign in words for sign in _SIGNS) and bool(re.search(_INSTRUCTS, text, re.IGNORECASE))


def phrase_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without the marks around them."""
    return [bare for word in text.split() if (bare := _bare(word))]


def _phrases(text: str) -> Iterator[str]:
    """Each number that follows a word that says something, with that word."""
    words = phrase_words(text)
    for word, number in pairwise(words):
        if number.isdecimal() and word.isalpha() and says_something(word):
            yield f"{word} {number}"


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

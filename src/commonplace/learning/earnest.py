"""What takes a turn's words out of earnest: plays, jokes, words that steer a reader, addresses, retractions.  Pure."""

from __future__ import annotations

import re

_PLAYS = re.compile(
    r"\b(?:pretend|role-?play\w*|rehears\w+|imagine (?:you|that you|we)|let's play|write (?:me )?an?"
    r" (?:\w+ )?(?:story|poem|song|novel|haiku|screenplay|dialogue|joke))\b",
    re.IGNORECASE,
)
_PLAYS_NO_MORE = re.compile(
    r"\b(?:end of (?:the )?\w+|back to (?:work|reality|the code)|seriously|stop (?:the )?(?:role|game|play)\w*)\b",
    re.IGNORECASE,
)
_JOKES = re.compile(
    r"(?:(?<!\w)/s\b|\b(?:lol|lmao|rofl|haha\w*|hehe\w*|jk|just kidding|i'm joking|yeah right"
    r"|what could go wrong|why not)\b|(?<!\w)[:;]-?[DP](?!\w)|[\U0001f602\U0001f923\U0001f61c\U0001f643\U0001f609])",
    re.IGNORECASE,
)
_UNSAFE = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){0,3}(?:previous|prior|earlier|above|all|system)\s+(?:\w+\s+)?"
    r"(?:instructions?|prompts?|rules|messages?)|\b(?:for|to|attention)\s+(?:all\s+)?(?:ai|llm)\s+(?:agents?|assistants?|models?)\b"
    r"|\bsystem\s+prompt\b|<\|?(?:system|im_start)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://|\b[\w.]+@[\w.]+\.\w+|\bcurl\b|\|\s*(?:ba)?sh\b", re.IGNORECASE)
_RETRACTS = re.compile(
    r"""(?:^|[.!?\n,]\s{0,3}|\b(?:ok(?:ay)?|oh|wait|no|hmm?|sorry|haha|lol|ah|actually)[,\s]+)
        (?:forget\s+(?:what|that|it|about)|scratch\s+that|never\s*mind(?!\s+the)|ignore\s+(?:that|what\s+i)|disregard\s+(?:that|what)
        |i\s+take\s+(?:that|it)\s+back|on\s+second\s+thoughts?|(?:sorry,?\s+)?my\s+(?:mistake|bad)|i\s+was\s+wrong
        |you'?re\s+right|(?:please\s+)?(?:do\s+not|don'?t)\s*[.!]?$|just\s+kidding|was\s+(?:joking|kidding)|undo\s+that
        |actually\s+no\b|changed\s+my\s+mind|let'?s\s+not\b)""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip


def plays(own: str, playing: bool) -> bool:
    """Return whether the session is a role play after this turn; statements in one do not count."""
    if playing and _PLAYS_NO_MORE.search(own):
        return False
    return playing or bool(_PLAYS.search(own))


def jokes(own: str) -> bool:
    """Tell whether a turn is marked as a joke."""
    return bool(_JOKES.search(own))


def is_unsafe(text: str) -> bool:
    """Tell whether a turn carries words that try to steer a reader: then nothing of it is believed."""
    return bool(_UNSAFE.search(text))


def mentions_address(plain: str) -> bool:
    """Tell whether words lead somewhere: to a page, a mailbox, a shell."""
    return bool(_ADDRESS.search(plain))


def retracts(own: str) -> bool:
    """Tell whether a turn takes back what was said before it."""
    return bool(_RETRACTS.search(own))

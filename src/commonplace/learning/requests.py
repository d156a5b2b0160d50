"""Find what the user asks to have remembered: "remember ...", "write that down", "for the record: ...".

Pure; English only.  A request is never passed over in silence: it has the words to keep, or says nothing that could be
kept, and then the caller tells the user so.  "Do you remember ..." and "I always forget ..." ask for nothing.
"""

# ruff: noqa: E501 - one pattern a line: broken up they could not be read against each other

from __future__ import annotations

import re
from collections.abc import Iterator

from commonplace.learning.rules_text import mask_quoted
from commonplace.model.values import Value

REQUEST_CHARS = 900  # of what is asked for: a list of steps may be that long
_WORDS_LEAST = 2


class Request(Value):
    """One request of the user to remember something."""

    start: int  #: where what is to be kept begins in the turn
    end: int  #: where it ends; the same as ``start`` if the request does not say what
    asked_at: int  #: where the request itself begins
    everywhere: bool = False  #: it is meant for every project


_ASKS = re.compile(
    r"""\b(?:
        (?P<verb>remember|memori[sz]e)(?!\s+(?:when\b(?!\s+you)|me\b|how\s+(?:we|you|i)\b|the\s+(?:time|day|old)\b|last\b|those\b|back\s+when))
      | (?:keep|bear|have)(?:\s+(?:it|this|that))?\s+in\s+mind | mind\s+(?:that|this)\b(?=\s*[,:;.!]|\s*$)
      | (?:do\s+not|don'?t|dont|never|(?:please|pls)\s+not)\s+forget\b
      | (?:make\s+a\s+note|take\s+a?\s*note|note(?:\s+to\s+(?:self|yourself)|\s+for\s+(?:later|the\s+future)|\s+(?:this|that|it)\s+down|(?=\s*:)|\s+that(?=\s+\w)))
      | (?:write|jot|note|get)\s+(?:this|that|it|these|them)\s+down
      | for\s+the\s+record | for\s+future\s+reference
      | put\s+(?:it|this|that)\s+(?:(?:on|in|into|to)\s+(?:the\s+|your\s+|ur\s+|our\s+)?(?:records?|notes?|memory|head|books?)|wherever\b[^.!?\n]{0,40})
      | (?:record|save|store|log|file|keep)\s+(?:this|that|it|these)\s+(?:please|pls|for\s+(?:later|next\s+time|me|the\s+future)|somewhere|away|in\s+(?:your|ur)\s+(?:head|memory|notes))
      | keep\s+for\s+later
      | (?:memo|reminder)\s+to\s+(?:yourself|self)
      | add\s+(?:this|that|it)\s+to\s+(?:your\s+|the\s+)?(?:memory|notes)
      | commit\s+(?:this|that|it)\s+to\s+memory
    )""",
    re.IGNORECASE | re.VERBOSE,
)  # fmt: skip
# Before "remember" these ask nothing of the one who is told.
_NOT_ASKED = re.compile(
    r"""\b(?:(?<!want\s)i|i'?ll|we|we'?ll|he|she|they|it|who|nobody|everyone|people|cannot|can'?t|cant|couldn'?t|don'?t|dont|didn'?t
        |doesn'?t|won'?t|(?:do|did|if|since|as)\s+you|(?:hard|easy|nice|good|trying|try|tried|have|need|needed|(?:told|asked|reminds?|reminded)\s+(?:me|us|him|her|them))\s+to|not\s+sure\s+i)
        (?:\s+(?:not|always|never|even|still|just|really|only|also|ever|now|dimly|vaguely))*\s*$""",
    re.IGNORECASE | re.VERBOSE,
)
_ASKED_OF_YOU = re.compile(
    r"\bi(?:'d)?\s+(?:want|need|like|would\s+like|expect)\s+you\s+to\s*$|\byou\s+(?:have|need)\s+to\s*$", re.IGNORECASE
)
# "don't forget the negative case" and "remember to push" are orders for the task at hand.
_ORDERED = re.compile(
    r"\s+(?:to\s+(?!always|never|not)\w+|(?:the|a|an|your|my)\s+\w+(?:\s+\w+){0,2}\s*$)", re.IGNORECASE
)
_LASTS = re.compile(r"\b(?:always|never|every|each|whenever|when|before|after|from now on|any ?time)\b", re.IGNORECASE)
_TO = re.compile(r"\s*to\s+(?=[a-z])")
_POINTS_BACK = re.compile(
    r"^\s*(?:(?:this|that|it|these|those|them|pls|please|ok(?:ay)?|thanks?|thx|too|forever|always|for\s+(?:me|later|next\s+time|the\s+future))\b\s*)*"
    r"(?:[,;:.\s]*$|(?<=\w)\s*[,;]|(?<=\w\s)(?:or|because|so|every|wherever|in\s+case|as)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"^(?:\s*(?:[,:;.!\u2013\u2014)\"'-]+|please\b|pls\b|(?:down|also)\b(?=\s*:)"
    r"|(?:that|this|it|these)\b(?:\s+please|\s+pls)?(?=\s*:|\s*,?\s*(?:always|everywhere|for\s+\w+)\s*:|\s+(?!(?:is|was|one|has|will|can)\b)\w)"
    r"|(?:for\s+(?:later|every|any|all|the\s+future|next\s+time)|(?:always|everywhere)(?=\s*:)|wherever|in\s+every|whenever\s+you\s+work)(?:\s[^:.\n]{0,40})?:))+",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<![\s:(]\d)"
    r"[.!?]+(?=[\s)]|$)|\n+"
)
_LISTED = re.compile(r"\n[ \t]*(?:[-*\u2022]|\(?[0-9a-z]{1,2}[.)])[ \t]")
_EVERYWHERE = re.compile(
    r"\b(?:every(?:where| project| repo)|all (?:my |our )?(?:projects|repos)|any (?:project|repo)"
    r"|wherever (?:you|u) work|no matter (?:which|what) (?:project|repo))\b",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:\s+(?:please|pls|ok(?:ay)?|thanks?|thx|lol|btw)|\s*[,;:(\u2013\u2014-])+\s*$", re.IGNORECASE)


def find_requests(own: str) -> Iterator[Request]:
    """Yield the requests in the user's own words, in order; positions are positions in the turn."""
    plain = mask_quoted(own)
    taken = 0
    for found in _ASKS.finditer(plain):
        if found.start() < taken or not _is_asked(plain, found):
            continue
        start, end = _what(plain, found)
        if end - start > REQUEST_CHARS or len(plain[start:end].split()) < _WORDS_LEAST:
            start = end = found.start()
        taken = max(end, found.end())
        around = plain[min(start, found.start()) : max(end, found.end())]
        yield Request(start=start, end=end, asked_at=found.start(), everywhere=bool(_EVERYWHERE.search(around)))


def _is_asked(plain: str, found: re.Match[str]) -> bool:
    before = plain[max(0, found.start() - 60) : found.start()]
    sentence = before[_last_end(before) :]
    if re.match(r"\s*\?", plain[found.end() :]) and not sentence.strip():
        return False  # "Remember?"
    rest = plain[found.end() : _sentence_from(plain, found.end())[1]]
    if _ORDERED.match(rest) and not _LASTS.search(rest):
        return False
    return found["verb"] is None or bool(_ASKED_OF_YOU.search(sentence)) or not _NOT_ASKED.search(sentence)


def _last_end(text: str) -> int:
    ends = [end.end() for end in _SENTENCE_END.finditer(text) if text[end.end() :].strip()]
    return ends[-1] if ends else 0


def _what(plain: str, found: re.Match[str]) -> tuple[int, int]:
    """Return where the words that are to be kept begin and end: after the request, before it, or beside it."""
    sentence = _last_end(plain[: found.start()]) if plain[: found.start()].strip() else 0
    after = _after(plain, found.end())
    if after is not None:
        head = plain[sentence : found.start()].rstrip(" (,")
        if plain[found.start() - 1 : found.start()] == "(" and len(head.split()) >= _WORDS_LEAST:
            return _trimmed(plain, sentence, after[1])  # "how to backfill (write it down): pause the DAG ..."
        return _trimmed(plain, *after)
    here = _trimmed(plain, sentence, found.start())
    if _is_statement(plain[here[0] : here[1]]):
        return here
    earlier = plain[:sentence].rstrip(" .!\n\t")
    if earlier.strip():
        return _trimmed(plain, _last_end(earlier), len(earlier))
    later = _sentence_from(plain, _sentence_from(plain, found.end())[1])
    return _trimmed(plain, *later)


_CALL = re.compile(
    r"^\W*(?:(?:and|oh|btw|also|so|please|pls|ok(?:ay)?|yes|can|could|would|will|you|u|want|should|must|always|i)\b\W*)*$",
    re.IGNORECASE,
)


def _is_statement(words: str) -> bool:
    return len(words.split()) > _WORDS_LEAST and not _CALL.match(words)


def _after(plain: str, at: int) -> tuple[int, int] | None:
    """Return the words after a request, if they are what is to be kept."""
    start, end = _sentence_from(plain, at)
    rest = plain[start:end]
    lead = _LEAD.match(rest)
    if _POINTS_BACK.match(rest) and not (lead and rest[: lead.end()].rstrip().endswith(":")):
        return None
    start += lead.end() if lead else 0
    if order := _TO.match(plain, start, end):
        start = order.end()
    if plain[start:end].rstrip().endswith(":") or _LISTED.match(plain, end):
        end = _list_end(plain, end)
    elif not plain[start:end].strip():
        start, end = _sentence_from(plain, end)
    return (start, end) if len(plain[start:end].split()) >= _WORDS_LEAST else None


def _list_end(plain: str, at: int) -> int:
    """Return where a list ends that follows: at a blank line, or at the first line that is none of its items."""
    while item := _LISTED.match(plain, at):
        line = plain.find("\n", item.end())
        at = line if line >= 0 else len(plain)
    return at


def _sentence_from(plain: str, at: int) -> tuple[int, int]:
    """Return where the next sentence begins and ends."""
    while at < len(plain) and plain[at] in " \t\n.!?)\x00":
        at += 1
    for stop in _SENTENCE_END.finditer(plain, at):
        if not re.fullmatch(r"\s*(?:\(?[0-9a-z]{1,2})", plain[at : stop.start()]):  # "1." begins, and ends nothing
            return at, stop.start()
    return at, len(plain)


def _trimmed(plain: str, start: int, end: int) -> tuple[int, int]:
    """Return a piece without the blanks, courtesies and marks around it."""
    while start < end and plain[start] in " \t\n,:;.!-\u2013\u2014)\x00":
        start += 1
    tail = _TAIL.search(plain, start, end)
    end = tail.start() if tail else end
    while end > start and plain[end - 1] in " \t\n\x00":
        end -= 1
    return start, end

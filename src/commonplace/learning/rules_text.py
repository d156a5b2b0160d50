"""A turn as the rules read it: only the speaker's own running words, cut into clauses that know where they stand.

Pure.  What is pasted, quoted, code, log or injected by memory is blanked (``pasted``), character for character, so that
every position in what is left is a position in the turn.  What the clauses mean is in ``rules_patterns``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from commonplace.engine.transcripts import TOOL, Turn
from commonplace.learning.pasted import GONE, blank_page, blank_pasted
from commonplace.model.values import Value

PASTED_CHARS = 100_000  # outside code this is a paste for certain, and not worth looking for its beginning
OWN_CHARS_AT_MOST = 3500  # without blanks; a longer turn was pasted, not typed, and is not read
CLAUSE_CHARS_AT_MOST = 400  # a longer one is no single fact
STEPS_CHARS_AT_MOST = 900  # a list of steps may be longer


class Clause(Value):
    """A piece of a turn that could state one fact."""

    start: int  #: where it begins in the turn
    end: int  #: where it ends
    plain: str  #: its words, with quoted text and code masked
    asked: bool  #: it is part of a question


_QUOTED = re.compile(
    r"`[^`\n]{1,300}`"
    r'|"[^"\n]{1,300}"'
    r"|\u201c[^\u201d\n]{1,300}\u201d"
    r"|(?<!\w)'[^'\n]{2,300}'(?!\w)"
)


def own_words(text: str, *, typed: bool = True) -> str:
    """The turn with all that is not the speaker's own running text blanked; positions stay.

    Nothing of a turn that is too long to have been typed.  A turn of the assistant is not typed, and has headings.
    """
    text = blank_pasted(text)
    if _count_visible(text) > PASTED_CHARS:
        return ""
    own = blank_page(text, typed=typed)
    return "" if _count_visible(own) > OWN_CHARS_AT_MOST or len(own) - own.count(GONE) > 4 * OWN_CHARS_AT_MOST else own


def brings_in_text(turn: Turn) -> bool:
    """Whether a turn brings in words that its session did not write: a tool's output, or what the user pasted."""
    return turn.speaker == TOOL or (turn.speaker == "user" and own_words(turn.text) != turn.text)


def _count_visible(text: str) -> int:
    return sum(map(len, text.replace(GONE, "").split()))


_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)[.!?]+(?=[\s)]|$)|[;\n]+|\s(?=[a-z0-9]\)\s)|(?<=\w)\s-{1,2}\s(?=so\b)"
)
_BULLET = re.compile(r"[\s,:.)]*(?:[-*\u2022]\s+|\(?[a-z0-9]{1,2}[.)]\s+)?")
# Where a sentence continues with another fact.
_NEXT_FACT = re.compile(
    r"""[,:]\s+(?:and\s+|but\s+|so\s+|also\s+|oh\s+)*(?=
          (?:we|we're|we've|we'll|our|every|all|each|nobody|always|never|i|i'd)\s+(?!\w+\s+(?:ago|before)\b)
        | no\s+\w+\s+\w+ | don'?t\s | do\s+not\s | let'?s\s | from\s+now\s | use\s | in\s+(?:this|our)\s
        | remember\s | to\s+\w+\s | first\s | (?:the|that|those|this)\s+\w+(?:\s+\w+){0,4}
          \s+(?:was|were|broke|came|failed)\b )
      | \s+and\s+(?=(?:always|never|we|i)\s+(?:use|prefer|run|never|always)\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)


def clauses(own: str) -> Iterator[Clause]:
    """The clauses of the own words, in order."""
    plain = mask_quoted(own)
    at = 0
    for stop in [*_SENTENCE_END.finditer(plain), None]:
        end = stop.start() if stop else len(plain)
        asked = stop is not None and "?" in stop[0]
        if end - at <= CLAUSE_CHARS_AT_MOST * 2:
            yield from _parts(plain, at, end, asked=asked)
        at = stop.end() if stop else end


def mask_quoted(own: str) -> str:
    """The own words with quoted text and code masked, character for character."""
    return _QUOTED.sub(_mask, own)


def _mask(quoted: re.Match[str]) -> str:
    mark = "`" if quoted[0][0] == "`" else '"'
    return mark + "_" * (len(quoted[0]) - 2) + mark


def _parts(plain: str, start: int, end: int, *, asked: bool) -> Iterator[Clause]:
    at = start
    for cut in [*_NEXT_FACT.finditer(plain, start, end), None]:
        stop = cut.start() if cut else end
        if cut and not plain[at:stop].strip().count(" "):
            continue  # "no, use pnpm": the first word belongs to the fact
        first = _BULLET.match(plain, at, stop)
        at = first.end() if first else at
        words = plain[at:stop].rstrip(" \t,:-")
        if 0 < len(words) <= CLAUSE_CHARS_AT_MOST:
            yield Clause(start=at, end=at + len(words), plain=words, asked=asked)
        at = cut.end() if cut else stop


_HEADED_STEPS = re.compile(
    r"""(?:^|(?<=[.!?]\s)|(?<=\n))
        (?P<head>(?:to|how\s+to|steps\s+(?:to|for))\s+\w[^\n.:?]{2,80}
          |[\w ]{3,40}\s(?:steps|process|procedure|checklist))\s*:
        (?:\s*\n)?(?P<steps>(?:[ \t]*(?:\d{1,2}[.)]|[-*])[ \t]+[^\n]{2,160}\n?){2,12})""",
    re.IGNORECASE | re.VERBOSE,
)


def step_lists(own: str) -> Iterator[Clause]:
    """Lists of steps under a heading that says what they are for."""
    plain = mask_quoted(own)
    for found in _HEADED_STEPS.finditer(plain):
        words = found[0].strip()
        start = plain.index(words, found.start())
        if len(words) <= STEPS_CHARS_AT_MOST:
            yield Clause(start=start, end=start + len(words), plain=words, asked=False)

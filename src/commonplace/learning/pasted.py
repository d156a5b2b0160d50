"""Which part of a turn was pasted, told by its form: nobody vouches for what they only show.

Pure.  Code and quotations, what stands below an introduction ("what do you think of this page?"), and everything from
the first line on that has the form of a page, a mail, a chat, a prompt or a policy.  What is pasted without any such
form reads like the person's own words, and counts as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

GONE = "\x00"  # stands for what is not read; a blank would make every pattern look at it

_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)
_TRIPLE = re.compile(r'"""|\'\'\'')
# The marks that ``rendering.fence`` writes; a transcript may have been written as JSON, which escapes quotes.
_MEMORY = re.compile(r'<(/?)memory seal=\\{0,9}"([0-9A-Za-z]{0,64})\\{0,9}">')
_LINES = re.compile(
    r"""^(?:
      [ \t]*>.*                                                  # quoted by mail or Markdown
    | -[ ]\[[^\n]{0,200}\btrust[ ]\w{1,12},[ ]score[^\n]*         # a line of memory that lost its frame
    | The[ ]lines[ ]below[ ]are[ ]notes[ ]kept[^\n]*
    | [ \t]*(?:at[ ][\w$.<>]+\(|File[ ]"|Traceback|\$[ ]|[>#]{3}[ ]|\|)[^\n]*   # a trace, a prompt, a table
    | [ \t]*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\n]*                 # a line of a log
    | [ \t]*(?:\w{1,20}[ ])?(?:ERR!|ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL)(?!\w)[^\n]*
    )$""",
    re.MULTILINE | re.VERBOSE,
)
_THINGS = (
    "page|docs?|document|article|readme|log|logs|output|guide|spec|mail|e-?mail|message|thread|ticket|transcript|post"
    "|comment|issue|answer|snippet|website|site|file|diff|paste|excerpt|quote|reply|review|report|newsletter|prompt"
)
# What these open is someone else's text, to the end of the turn.
_INTRODUCED = re.compile(
    rf"""
      \b(?:says?|said|wrote|writes|sent|got|getting|received|reads|prints?|shows?|crash\w*|fails?|error|message|mail
        |e-?mail|page|docs?|document|article|readme|text|log|logs|output|guide|spec|ticket|transcript|summari[sz]e
        |translate|review|proofread|rewrite|slack|thread|below|following)\b[^.!?\n]{{0,80}}:[ \t]*\n
    | \b(?:here(?:'s|[ ]is|[ ]are)|this[ ]is|see)[ ](?:the|a|an|my|his|her|their)[ ][^.!?:\n]{{0,40}}
        \b(?:page|docs?|document|article|readme|text|log|output|guide|spec|mail|e-?mail|message|transcript)\b[^.!?:\n]{{0,40}}:
    | \b(?:this|these|following|pasted|attached)\b[ ](?:\w+[ ]){{0,2}}(?:{_THINGS})s?\b[^\n]{{0,60}}\n[ \t]*\n
    | \b(?:summari[sz]e|translate|proofread|tl;?dr)\b[^\n]{{0,60}}\n[ \t]*\n
    | \b(?:pasted?|copied|quoting|forwarded|fwd)\b[^\n]{{0,40}}:
    """,
    re.IGNORECASE | re.VERBOSE,
)
_OWN_RULES = re.compile(r"\b(?:remember|rules?|conventions?|note|keep in mind)\b", re.IGNORECASE)
# The first line of a text that was not typed into a prompt: from there on it is somebody's page.
_PAGE = re.compile(
    r"""^[ \t]*(?:
      \#{1,6}[ ]\S                                                    # a heading
    | (?:={3,}|-{3,}|\*{3,})[ \t]*$                                   # a rule, the head of a file
    | </?[A-Za-z!|][^>\n]{0,300}>                                     # markup, a mark of a chat template
    | <!--
    | \[/?INST\]
    | (?:https?://|www\.)\S+[ \t]*$                                   # an address on a line of its own
    | !?\[[^\]\n]{1,200}\]\([^)\n]{0,500}\)[ \t]*$                    # a link
    | (?:From|To|Cc|Subject|Date|Sent|Reply-To|Message-ID|Title|Author|Published|Posted)[ ]?:[ ]\S
    | (?:System|Assistant|User|Human|Operator|Developer|AI)[ ]?:      # who speaks
    | (?:\[?\d{1,2}:\d\d(?::\d\d)?\]?|On[ ][^\n]{4,60}[ ]wrote:)
    | (?:apiVersion|kind|metadata|spec):
    | \[[\w.\- ]{1,40}\][ \t]*$                                       # a section of a file of settings
    | [{[](?:[ \t]*$|[ ]*["{[])                                       # data
    )""",
    re.MULTILINE | re.VERBOSE,
)


def blank_pasted(text: str) -> str:
    """The turn with all that was pasted, quoted or injected by memory blanked; positions stay.

    Each form is looked for in the text as it was: what stands in one of them cannot open or close another.
    """
    spans = [*_memory_spans(text), *_from_first_to_last(text, _FENCE), *_from_first_to_last(text, _TRIPLE)]
    return _without(text, spans)


def blank_page(text: str, *, typed: bool) -> str:
    """Cut the rest of a turn where a page begins or is introduced, and blank quoted lines before."""
    text = _without(text, ((m.start(), m.end()) for m in _LINES.finditer(text)))
    starts = [m.start() for m in _INTRODUCED.finditer(text) if not _OWN_RULES.search(m[0])]
    starts += [m.start() for m in [_PAGE.search(text)] if m and typed]
    return text[: min(starts, default=len(text))]


def _memory_spans(text: str) -> list[tuple[int, int]]:
    """What stands between the marks of memory; the rest if it only begins, and everything if it only ends."""
    opened: re.Match[str] | None = None
    spans: list[tuple[int, int]] = []
    for mark in _MEMORY.finditer(text):
        if opened is None and not mark[1]:
            opened = mark
        elif opened is None:
            return [(0, len(text))]  # nobody types it, and what came before may have said whose words follow
        elif mark[1] and mark[2] == opened[2]:
            spans.append((opened.start(), mark.end()))
            opened = None
    return [*spans, (opened.start(), len(text))] if opened else spans


def _from_first_to_last(text: str, mark: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """From the first mark to the last one, or to the end if one is open.

    A page can have marks of its own, so what stands between two blocks is perhaps a piece of the page.
    """
    marks = [(m.start(), m.end()) for m in mark.finditer(text)]
    if marks:
        yield marks[0][0], marks[-1][1] if len(marks) % 2 == 0 else len(text)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            pieces += [text[at : max(start, at)], _blank(text[max(start, at) : end])]
            at = end
    return "".join([*pieces, text[at:]])


def _blank(text: str) -> str:
    """As many characters that no pattern stops at, on a line of their own."""
    return f"\n{GONE * (len(text) - 2)}\n" if len(text) > 1 else "\n" * len(text)

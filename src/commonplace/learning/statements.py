"""What a turn states for good: its sentences as they are judged, joined so that each makes sense alone.  Pure.

The classifier judges; the plainest forms of rules, decisions and tastes are known beforehand (``rules_patterns``).

A sentence that leans on the one before it ("same for my other repos", "it expires after a week") is kept with that one;
an answer is kept with its question; what leans on nothing that is there is not kept.
"""

# ruff: noqa: E501 - one pattern a line: broken up they could not be read against each other

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from commonplace.learning.classifier import Judgement, judge
from commonplace.learning.earnest import jokes
from commonplace.learning.rules_patterns import read
from commonplace.learning.rules_text import mask_quoted
from commonplace.model.values import Value

#: How likely a sentence of each kind has to be worth keeping; chosen on the dev sessions of bench/sets/learning.
KEEP = {"decisions": 0.95, "procedures": 0.9, "principles": 0.93, "preferences": 0.9, "facts": 0.97}
AGREED = 0.35  # ... what the assistant proposed and the user agreed to
JOIN = 0.3  # ... one that leans on a sentence that is kept
SENTENCE_CHARS = 400  # a longer one is no single fact
JOINED_CHARS = 600
_ANSWER_WORDS = 10  # of an answer that says too little without its question
_ALONE_WORDS = 3

_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\betc)(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)(?<!\bSt)(?<![\s:(]\d)"
    r"[.!?]+(?=[\s)]|$)|[;\n]+"
)
_LEAD_IN = re.compile(r"[\s,:.)]*(?:[-*\u2022]\s+|\(?[a-z0-9]{1,2}[.)]\s+)?")
_LEANS = re.compile(
    r"(?:it|its|it's|that|that's|they|this|these|those|he|she|them|same|not|NOT|and|or|but|because|since|is|are|was|only"
    r"|always|never|except|otherwise|else|which|until|also for|in this|for all|applies|everywhere|wherever|no exceptions?)\b",
    re.IGNORECASE,
)
#: Two such sentences are two rules, unless the second one speaks of what the first one names.
_RULE = re.compile(r"(?:always|never)\b(?!.*\b(?:it|its|them|they|that|this|these|those)\b)", re.IGNORECASE)
_NAMES_NOTHING = re.compile(r"(?:it|its|it's|that|that's|they|this|these|those|he|she|them|which)\b", re.IGNORECASE)
_CONTINUES = re.compile(
    r"(?:same|(?:i )?(?:insist|mean it)|applies|for all|everywhere|wherever|always[,.]|never[,.]|also (?:in|for)|instead|otherwise"
    r"|and|but|because|so|old|or)\b|.{0,60}\b(?:instead|that way|this way|like that|like this|in this order|on this)\W*$",
    re.IGNORECASE,
)
_ANSWERS = re.compile(r"(?:yes|yep|yeah|no|nope|nah|the (?:first|second|old|new|other) one|both)\b", re.IGNORECASE)
_SUPPOSED = re.compile(
    r"\bif\b[^.!?]{0,60}\b(?:were|was|had|would|could)\b|\b(?:would|could)\b[^.!?]{0,60}\bif\b"
    r"|^\W*(?:suppose|imagine|pretend|what if|let'?s say|say we|assum\w+|in theory|hypothetically)\b"
    r"|\b(?:maybe|perhaps|i (?:think|guess|wonder|believe|suspect)|not sure|might|someday|some day|one day)\b"
    r"|\b(?:docs?|readme|guide|wiki|blog|page|manual|paper|error|colleague|teacher|he|she|they|somebody|someone)"
    r"\s(?:\w+\s){0,2}(?:says?|said|writes?|wrote|claims?|recommends?)\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(
    r"^(?:\W*\S+\W*){1,4}$|\b(?:the|a|an|is|are|we|i|you|it|to|of|on|for|and|or|not|no|with|my|our|use|always|never|from|by|at|only"
    r"|every|all|me|don'?t|please|keep|be|has|have|must|can|will|that|this|before|after|then|when|if|as|one|two|call|answer|run)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\n[ \t]*(?:[-*\u2022]|\(?[a-z0-9]{1,2}[.)])[ \t]")
_TAG = re.compile(r",\s*(?:ok(?:ay)?|got it|understood|alright|right|please)\s*$", re.IGNORECASE)
_HERE = re.compile(
    r"\b(?:in|for|of|across|within) (?:this|our|the) (?:whole |entire )?(?:repo(?:sitory)?|project|code\s?base|team|company)\b",
    re.IGNORECASE,
)


class Statement(Value):
    """What a turn states for good."""

    start: int  #: where it begins in the turn
    end: int
    category: str
    scope: str  #: project | assistant
    durable: float  #: how likely it is worth keeping
    lead: str = ""  #: the question that it answers, without which it says too little


class _Sentence(Value):
    start: int
    end: int
    plain: str
    asked: bool
    judgement: Judgement
    known: bool = False  #: it has one of the plainest forms, and makes sense alone

    def is_kept(self, speaker: str) -> bool:
        """Whether it is likely enough to be worth keeping."""
        least = KEEP.get(self.judgement.category, 0.0) if speaker == "user" else AGREED
        return self.judgement.durable >= least

    @property
    def is_earnest(self) -> bool:
        """Whether it is stated, and neither asked, supposed, reported nor joked."""
        quoted = self.plain.count("_") > len(self.plain) / 2
        asked = self.asked and not _TAG.search(self.plain)
        return not (
            asked or quoted or jokes(self.plain) or _SUPPOSED.search(self.plain) or not _ENGLISH.search(self.plain)
        )


def find_statements(own: str, *, before: str = "", speaker: str = "user", at_work: bool = True) -> Iterator[Statement]:
    """Yield what is worth keeping of a turn's own words; ``before`` is the sentence that came right before."""
    plain = mask_quoted(own)
    sentences = list(_sentences(plain, before, speaker, at_work=at_work))
    at = 0
    while at < len(sentences):
        one = sentences[at]
        if not one.is_kept(speaker) or not one.is_earnest:
            at += 1
            continue
        last = _last_joined(plain, sentences, at)
        if found := _alone(plain, sentences, at, last, before):
            yield found
        at = last + 1


def last_sentence(text: str) -> str:
    """Return the sentence with which a turn ends, with its mark."""
    ends = [end.end() for end in _END.finditer(text) if text[end.end() :].strip()]
    return text[ends[-1] if ends else 0 :].strip()[-SENTENCE_CHARS:]


def _sentences(plain: str, before: str, speaker: str, *, at_work: bool) -> Iterator[_Sentence]:
    at = 0
    for stop in [*_END.finditer(plain), None]:
        end = stop.start() if stop else len(plain)
        lead = _LEAD_IN.match(plain, at, end)
        start = lead.end() if lead else at
        words = plain[start:end].rstrip(" \t,:-")
        asked = stop is not None and "?" in stop[0]
        if 0 < len(words) <= SENTENCE_CHARS and any(map(str.isalnum, words)):
            heard = before if not plain[:start].strip(" \n\0") else ""
            found = judge(words, before=heard, speaker=speaker, asked=asked)
            known = read(words, asked=asked, at_work=at_work) if speaker == "user" else None
            if known:
                found = Judgement(durable=1.0, category=known.category, sure=1.0)
                start, words = start + known.start, words[known.start : known.end]
            asks = asked and known is None
            yield _Sentence(
                start=start, end=start + len(words), plain=words, asked=asks, judgement=found, known=known is not None
            )
        at = stop.end() if stop else end


def _last_joined(plain: str, sentences: Sequence[_Sentence], first: int) -> int:
    """Return the number of the last sentence that leans on the ones from the first on."""
    last = first
    while last + 1 < len(sentences):
        after = sentences[last + 1]
        listed = _LISTED.search(plain, sentences[last].end, after.start)
        short = len(after.plain.split()) <= _ALONE_WORDS
        another = after.known and not short and _RULE.match(sentences[last].plain) and _RULE.match(after.plain)
        leans = not listed and not another and (_LEANS.match(after.plain) or short)
        apart = "\n\n" in plain[sentences[last].end : after.start] or after.end - sentences[first].start > JOINED_CHARS
        if not leans or apart or after.judgement.durable < JOIN or not after.is_earnest:
            break
        last += 1
    return last


def _alone(plain: str, sentences: Sequence[_Sentence], first: int, last: int, before: str) -> Statement | None:
    """Return sentences as a statement that makes sense alone, with what it leans on; None if that is not there."""
    one, start, lead = sentences[first], sentences[first].start, ""
    opens = all(len(each.plain.split()) < _ALONE_WORDS for each in sentences[:first])
    nothing = not one.known and bool(_NAMES_NOTHING.match(one.plain) or _CONTINUES.match(one.plain))
    if opens and before.endswith("?"):
        short = len(one.plain.split()) <= _ANSWER_WORDS
        lead = before if short or nothing or _ANSWERS.match(one.plain) else ""
    elif nothing and first > 0 and not sentences[first - 1].asked:
        start = sentences[first - 1].start
    elif not one.known and (_NAMES_NOTHING.match(one.plain) or len(one.plain.split()) < _ALONE_WORDS):
        return None
    best = max((each.judgement for each in sentences[first : last + 1]), key=lambda found: found.durable)
    words = plain[start : sentences[last].end]
    everywhere = best.category == "preferences" and not _HERE.search(words)
    return Statement(
        start=start, end=sentences[last].end, category=best.category, durable=best.durable, lead=lead,
        scope="assistant" if everywhere else "project",
    )  # fmt: skip

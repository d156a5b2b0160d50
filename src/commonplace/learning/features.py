"""What the classifier sees of a clause: its words, its form, and what was said right before.  Pure.

Training and reading use this one function, so both see the same.  Names and numbers count by their shape, since which
tool or which number it is says nothing about whether a clause is worth keeping.
"""

# ruff: noqa: E501 - one pattern a line: broken up they could not be read against each other

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterator

BUCKETS = 1 << 13  # that the features share; two of them meet by chance now and then
WORDS_READ = 60  # of a clause
_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d[\d.,:]*|[^\sa-z\d]", re.IGNORECASE)
_CODE = re.compile(
    r"`|\w[_/\\]\w|--\w|\b[a-z]+[A-Z]\w+|\b\w+\.(?:py|js|ts|go|rs|md|json|ya?ml|toml|sh|css|html|docx|csv)\b"
)
_PAST = re.compile(
    r"\b(?:was|were|did|had|got|went|ran|broke|tried|forgot|said|told|found|saw|took|\w{3,}ed)\b", re.IGNORECASE
)
_ALWAYS = re.compile(
    r"\b(?:always|never|every|each|all|any|only|no|not|don'?t|nothing|nobody|must|ever|wherever|whenever)\b",
    re.IGNORECASE,
)
_LASTS = re.compile(
    r"\b(?:from now on|from here on|going forward|as a rule|in general|generally|for good|every time|in future"
    r"|until|since|by default|in (?:all|any|every)|everywhere|wherever)\b",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\b(?:maybe|perhaps|might|could|would|suppose|imagine|pretend|assum\w+|think|guess|believe|wonder|probably|possibly"
    r"|seems?|apparently|hypothetical\w*|someday|some day|one day|if i|if we|if this|what if|whether|thinking)\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"\b(?:now|today|tonight|tomorrow|yesterday|this (?:time|once|week|afternoon|morning|one|run)|for now|yet|again|still"
    r"|moment|temporarily|just|last (?:week|night|time))\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(r"\b(?:says?|said|told|wrote|thinks?|claims?|according|recommends?)\b", re.IGNORECASE)
_STEPS = re.compile(r"->|\bthen\b|\bfirst\b|\bafter that\b|\b1[.)]|,[^,]{3,40},[^,]{3,60}", re.IGNORECASE)
_SIGNS = (
    ("code", _CODE), ("past", _PAST), ("always", _ALWAYS), ("lasts", _LASTS), ("doubt", _DOUBT), ("now", _NOW),
    ("reported", _REPORTED), ("steps", _STEPS), ("joke", re.compile(r"\b(?:lol|haha|jk)\b|/s\b|[\U0001f600-\U0001f64f]|[:;]-?[)DP]")),
    ("me", re.compile(r"\b(?:me|my|mine|i|i'm|i'd|im)\b", re.IGNORECASE)),
    ("you", re.compile(r"\b(?:you|your|u|ur)\b", re.IGNORECASE)),
    ("we", re.compile(r"\b(?:we|our|us|we're|we've|here)\b", re.IGNORECASE)),
    ("it", re.compile(r"^\W*(?:it|that|this|they|these|those)\b", re.IGNORECASE)),
    ("number", re.compile(r"\d")), ("colon", re.compile(r"\w:\s")), ("name", re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")),
    ("everywhere", re.compile(r"\b(?:everywhere|wherever|(?:all|any|every|each)\b.{0,12}\b(?:projects?|repos?|codebases?|languages?|of mine|i \w+))", re.IGNORECASE)),
)  # fmt: skip
_SHORT, _LONG = 4, 14


def words(text: str) -> list[str]:
    """Cut a text into words and marks, numbers by their shape."""
    small = text.lower().replace("\u2019", "'")
    return ["0" if token[0].isdigit() else token for token in _TOKEN.findall(small)[:WORDS_READ]]


def features(clause: str, *, before: str = "", speaker: str = "user", asked: bool = False) -> list[int]:
    """Return the numbers of what a clause shows; ``before`` is the sentence that the other one ended with."""
    return sorted(
        {
            crc32(name.encode("utf-8", "surrogatepass")) % BUCKETS
            for name in _names(clause, before, speaker, asked=asked)
        }
    )


def _names(clause: str, before: str, speaker: str, *, asked: bool) -> Iterator[str]:
    tokens = words(clause)
    yield f"speaker {speaker}"
    yield from tokens
    yield from (f"{one} {other}" for one, other in zip(["^", *tokens], [*tokens, "$"], strict=True))
    yield from (f"3 {' '.join(tokens[at : at + 3])}" for at in range(min(3, len(tokens) - 2)))
    signs = [name for name, pattern in _SIGNS if pattern.search(clause)]
    yield from (f"sign {name}" for name in signs)
    yield from (f"signs {one} {other}" for at, one in enumerate(signs) for other in signs[at + 1 :])
    size = "short" if len(tokens) <= _SHORT else "long" if len(tokens) > _LONG else "middle"
    yield f"size {size}"
    if asked or clause.rstrip().endswith("?"):
        yield "asked"
        yield f"asked {tokens[0] if tokens else ''}"
    if before:
        heard = words(before)
        question = "?" in before[-3:]
        yield f"before {'question' if question else 'statement'}"
        yield f"before {question} {size}"
        yield from (f"before {word}" for word in heard[:2])
        yield f"before {' '.join(heard[:1])} then {' '.join(tokens[:1])}"
        yield "before or" if question and "or" in heard else "before and"

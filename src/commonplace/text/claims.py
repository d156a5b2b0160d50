"""Read a statement as claims: of what, in which respect, which value of which sort.  Pure; English.

One statement can be read in several ways: "We use pnpm as the package manager" is a claim about what is used and one
about the package manager.  ``replacement`` compares the claims of two statements.
"""

# ruff: noqa: E501, SIM905 - one pattern a line; quoted, lists of words could not be read

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from commonplace.model.values import Value
from commonplace.text.frames import (
    COPULAS,
    DETERMINERS,
    PREPOSITIONS,
    PRONOUNS,
    Frame,
    read_frame,
    verb_stem,
    without_closing,
)
from commonplace.text.stem import stem


class Claim(Value):
    """One way to read a statement: of what, and which value."""

    about: frozenset[str]  #: stems of all but the value
    nouns: frozenset[str]  #: the same without the verb
    value: str
    words: frozenset[str]  #: stems of the value
    sort: tuple[str, str]  #: what sort of value it is, with its unit
    place: str  #: the class of its preposition
    verb: str
    frame: Frame
    changes: bool = False  #: a verb of change leads to the value: "moved to"


MEASURES = frozenset(["when", "often", "amount"])  #: sorts of values that are times or amounts
LIGHT = frozenset("up down be use do go get happen set take keep make run out enough done way place stay".split())
GENERIC = frozenset(
    "stack servic app applic system team tool thing kind new current present main one actual whole".split()
)
_SYNONYMS = {"call": "name", "belong": "own", "mail": "email", "repositori": "repo", "db": "databas", "reside": "live",
             "maximum": "max", "minimum": "min", "colour": "color", "telephon": "phone", "cost": "price", "maintain": "own", "owner": "own"}  # fmt: skip
_NUMBER_WORDS = {word: str(number) for number, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve".split()
)} | {"a": "1", "an": "1", "once": "1", "twice": "2", "half": "0.5", "dozen": "12"}  # fmt: skip
PREPOSITION_STEMS = frozenset(map(stem, PREPOSITIONS))
_PLACES = {
    **dict.fromkeys(("in", "on", "at", "to", "into", "onto", "under", "inside", "behind", "from"), "where"),
    **dict.fromkeys(("through", "via", "with", "by", "using"), "how"),
    **dict.fromkeys(("after", "for", "within", "during"), "long"),
    **dict.fromkeys(("above", "over"), "above"),
    **dict.fromkeys(("below", "under"), "below"),
}
_CHANGES = frozenset(
    map(
        verb_stem,
        """move switch migrate change upgrade update rewrite convert port extend postpone raise lower increase decrease
        reduce reschedule shift bump rename""".split(),
    )
)
_GROWS = frozenset(map(verb_stem, "go rise fall drop climb grow shrink jump come".split()))
OWNING = frozenset(map(verb_stem, "own maintain lead manage".split()))
ROLES = frozenset(
    map(
        stem,
        """color theme name status language license licence style brand size version provider framework library editor
        database branch format address currency timezone region plan tier mode type level strategy host domain port
        theme font shell manager owner lead""".split(),
    )
)


_SPLIT = re.compile(r"(?<![A-Z]r)(?<!Mrs)(?<!Dr)(?<!e\.g)(?<!i\.e)[.!?]+(?=\s|$)|;|\s-{1,2}\s|\s\u2013\s|:\s")
_REASON = re.compile(r"[\s,]+(?:since|because|so that|so|due to|but|although)\s+(?=\w+\s+\w)", re.IGNORECASE)
_TAKES_BACK = re.compile(r"^(?:and\s+)?(?:not|no more|no longer|instead of|rather than|never)\b", re.IGNORECASE)
_BEGINS_CONDITION = re.compile(
    r"^(?:before|after|to|when|whenever|if|unless|while|in|on|for|at|until|once|with)\b", re.IGNORECASE
)


def split_statements(text: str) -> list[str]:
    """Return the statements of a text: its sentences, cut where a comma begins another one."""
    found: list[str] = []
    for sentence in _SPLIT.split(_mask_labels(text)):
        found += _at_commas(sentence.replace("\x00", ":").strip(" ,"))
    named, pieces = "", []
    for piece in filter(None, found):
        frame = read_frame(piece)
        leans = _PRONOUN.match(piece)
        pieces.append(
            f"{named} {'is' if leans['verb'] == 's' else leans['verb']}{piece[leans.end() :]}"
            if leans and named
            else piece
        )
        named = f"the {frame.subject}" if frame is not None and frame.subject else named
    return pieces


_PRONOUN = re.compile(r"^(?:it|they)(?:\s+|['\u2019])(?P<verb>is|are|s\b)", re.IGNORECASE)


def _mask_labels(text: str) -> str:
    """Keep "trial period: 30 days" in one."""
    return re.sub(
        r"^([\w' -]{3,40}):\s(?=[\w$\u20ac]+[^.!?]{0,60}[.!]?$)",
        lambda m: m[0].replace(":", "\x00") if not _finite(m[1]) else m[0],
        text,
    )


def _finite(text: str) -> bool:
    frame = read_frame(text)
    return frame is not None and not frame.ordered


def _at_commas(sentence: str) -> Iterator[str]:
    if reason := _REASON.search(sentence):
        yield from _at_commas(sentence[: reason.start()])
        yield sentence[reason.end() :]
        return
    head, *tails = sentence.split(", ")
    for tail in tails:
        if not _BEGINS_CONDITION.match(head) and (_TAKES_BACK.match(tail) or _finite(tail)):
            yield head
            head = tail
        else:
            head = f"{head}, {tail}"
    yield head


@lru_cache(maxsize=4096)
def read_claims(statement: str) -> tuple[Claim, ...]:
    """Return every way to read a statement as a value of something."""
    frame = read_frame(statement)
    return tuple(_claims(frame)) if frame is not None else ()


def _claims(frame: Frame) -> Iterator[Claim]:
    slots = frame.slots
    if not slots:
        return
    complement = slots[0] if slots[0][0] == "" else None
    if frame.verb == "be" and complement and not frame.definite and frame.subject and is_definite(complement[1]):
        about = " ".join([complement[1], *(said for _, said in slots[1:])])
        yield from _values(frame, about, frame.subject, "")
        return
    if frame.verb in OWNING and complement and frame.subject:
        yield from _values(frame, complement[1], frame.subject, "")
        return
    if complement and not frame.ordered and is_named(frame) and frame.verb != "be":
        yield from _values(frame, " ".join(said for _, said in slots), frame.subject, "by")
    if frame.verb == "be" and frame.subject and (charge := _in_charge(slots)):
        yield from _values(frame.replace(verb="own"), charge, frame.subject, "")
        return
    if frame.subject and _quantity(frame.subject) and not is_versioned(frame.subject):  # "ticket 77" is a name
        yield from _values(frame, " ".join(said for _, said in slots), frame.subject, "")
    if (
        frame.verb == "be"
        and len(slots) > 1
        and all(_sort(said, preposition)[0] == "when" for preposition, said in slots)
    ):
        yield from _values(frame, frame.subject, " ".join(said for _, said in slots), "where")
        return
    for number, (preposition, said) in enumerate(slots):
        if (preposition == "about" and frame.verb != "be") or (frame.verb == "use" and preposition):
            continue
        others = [f"{said}" for at, (_, said) in enumerate(slots) if at != number]
        yield from _values(frame, " ".join([frame.subject, *others]), said, preposition)


def _in_charge(slots: Sequence[tuple[str, str]]) -> str | None:
    """Return what somebody is responsible for."""
    said = " ".join(f"{preposition} {words}".strip() for preposition, words in slots)
    found = re.match(r"(?:responsible|accountable|in charge|on duty)\s+(?:for|of)\s+(?P<what>.+)$", said, re.IGNORECASE)
    return found["what"] if found else None


def _values(frame: Frame, about: str, value: str, preposition: str) -> Iterator[Claim]:
    """Yield a value as it is, and what is left of it when its words move to what it is about: "MySQL 8", "20 mg of"."""
    changes = frame.verb in _CHANGES and preposition in ("to", "into", "in", "until", "for")
    changes = changes or (frame.verb in _GROWS and preposition == "to")
    shared = f"{about} {frame.condition}"
    nouns = topic_of(shared)
    verb = _SYNONYMS.get(frame.verb, frame.verb)
    full = nouns if changes or verb in LIGHT else nouns | {verb}
    place = "every" if preposition == "every" else _PLACES.get(preposition, preposition)
    found = _quantity(value)
    variants = [(value, "")] if found is None or is_versioned(value) else []
    if found is not None:
        variants.append(found)
    for said, more in variants:
        extra = topic_of(more)
        if said:
            yield Claim(
                about=full | extra, nouns=nouns | extra, value=said, words=frozenset(stems_of(said)), place=place,
                sort=_sort(said, preposition), verb=frame.verb, frame=frame, changes=changes,
            )  # fmt: skip


def is_definite(phrase: str) -> bool:
    """Whether a phrase names one thing: by its article, or by whose it is."""
    return phrase.split(maxsplit=1)[0].lower() in ("the", "our", "my", "your", "their", "his", "her")


def topic_of(text: str) -> frozenset[str]:
    """The words of what something is about, without those that are everywhere."""
    words = frozenset(word for word in stems_of(text) if word not in LIGHT | PREPOSITION_STEMS)
    return words - GENERIC or words or stems_of(text)


_WORD = re.compile(r"[^\s,;()\"\u201c\u201d]+")
_DROPPED = (
    DETERMINERS | PRONOUNS | COPULAS | frozenset(["and", "or", "please", "me", "us", "of", "o'clock", "ever", "also"])
    | frozenset(["do", "does", "did", "now", "today", "currently", "already", "again"])
    | frozenset(["not", "never", "no", "with", "without", "per"])
)  # fmt: skip


@lru_cache(maxsize=8192)
def stem_word(word: str) -> str:
    """Return the form of a word in which words are compared."""
    small = word.strip("'`.:!?[]{}\u2019").lower().removesuffix("'s").removesuffix("\u2019s")
    small = _NUMBER_WORDS.get(small, small) if small not in ("a", "an") else small
    plain = (
        verb_stem(small)
        if small.isascii() and small.isalpha()
        else small.replace(",", "")
        if small[:1].isdigit()
        else small
    )
    return _SYNONYMS.get(plain, plain)


def stems_of(text: str) -> frozenset[str]:
    """Return the words of a text in the form in which they are compared, without those that every text has."""
    plain = without_closing(re.sub(r"n['\u2019]t\b", " not", text))
    found = (word for word in _WORD.findall(plain) if word.lower().strip(".!?:") not in _DROPPED)
    return frozenset(stemmed for word in found if (stemmed := stem_word(word)))


def is_negated(text: str) -> bool:
    """Whether a text denies what it says."""
    return bool(re.search(r"\b(?:not|never|no|nobody|cannot|without)\b|n['\u2019]t\b", text, re.IGNORECASE))


# Sorts of values


_UNITS = {
    **dict.fromkeys("second minute hour day week month year quarter fortnight sec min hr ms s h d".split(), "time"),
    **dict.fromkeys("b kb mb gb tb byte kib mib gib bytes".split(), "bytes"),
    **dict.fromkeys("euro dollar pound usd eur gbp cent franc krona yen".split(), "money"),
    **dict.fromkeys("kilo kg gram g mg pound lb".split(), "mass"),
    **dict.fromkeys("km m mile meter metre cm mm".split(), "length"),
    **dict.fromkeys("% percent".split(), "percent"),
}  # fmt: skip
_NUMBER = (
    r"(?:[$\u20ac\u00a3]\s?)?(?:\d[\d.,:]*(?:e-?\d+)?(?:st|nd|rd|th)?|"
    + "|".join(rf"{word}\b" for word in _NUMBER_WORDS if word not in ("once", "twice"))
    + r")"
)
_QUANTITY = re.compile(
    rf"^(?:about |around |roughly |up to |at most |at least )?(?P<number>{_NUMBER})(?:\s*(?P<unit>%|[A-Za-z][\w-]*))?(?P<rest>(?:\s.*)?)$",
    re.IGNORECASE,
)
_VERSIONED = re.compile(r"^(?P<name>[A-Za-z][\w.+# -]*?)\s+v?(?P<number>\d[\w.]*)$")
_CLOCK = re.compile(r"^\d{1,2}(?::\d\d)?\s*(?:am|pm|o'clock|h)?$|^(?:midnight|noon)$", re.IGNORECASE)
_DAY = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays?|weekends?|january|february|march|april|may|june|july|august"
    r"|september|october|november|december|\d{1,2}(?:st|nd|rd|th)|(?:19|20)\d\d-\d\d-\d\d|mornings?|evenings?|afternoons?|noon|midnight)\b",
    re.IGNORECASE,
)
_RANGE = r"\d{1,2}(?::\d\d)? to \d{1,2}(?::\d\d)?"
_FREQUENT = re.compile(
    r"\b(?:hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annually|(?:once|twice) an? \w+|\w+ times an? \w+|every \w+)\b",
    re.IGNORECASE,
)


_UPWARDS = re.compile(r"\s+(?:and|or)\s+(?:up|above|newer|later|higher|more)$|\+$", re.IGNORECASE)
_OF_AMOUNT = re.compile(
    r"^(?:an?|the)\s+(?P<name>.+?)\s+of\s+(?P<amount>(?:about |up to |at most |at least )?[$\u20ac\u00a3]?\d.*)$",
    re.IGNORECASE,
)


def is_versioned(value: str) -> bool:
    """Whether a value is a name with its version."""
    return _VERSIONED.match(value) is not None


def _quantity(phrase: str) -> tuple[str, str] | None:
    """Cut a phrase into an amount and the rest of it, or a name into its version and the name."""
    if _FREQUENT.search(phrase) or re.fullmatch(_RANGE, phrase):
        return None
    phrase = _UPWARDS.sub("", phrase)
    if (inside := _OF_AMOUNT.match(phrase)) and (found := _QUANTITY.match(inside["amount"])):
        return inside["amount"], inside["name"]
    if found := _QUANTITY.match(phrase):
        unit = (found["unit"] or "").lower()
        if found["number"].lower() in ("a", "an") and _unit(unit) != "time":
            return None
        return f"{found['number']} {unit}".strip(), found["rest"].strip()
    if found := _VERSIONED.match(phrase):
        return found["number"], found["name"]
    return None


def _unit(word: str) -> str:
    small = word.lower().strip(".")
    return _UNITS.get(small) or _UNITS.get(small.removesuffix("s")) or stem(small)


def _sort(value: str, preposition: str) -> tuple[str, str]:
    """Tell of which sort a value is; two that are compared have to be of one."""
    clock = _CLOCK.match(value) and (preposition in ("at", "until") or (preposition == "" and ":" in value))
    if preposition == "every" or _FREQUENT.search(value):
        return "often", ""
    if _UPWARDS.search(value):
        return "amount", "least"
    if clock or _DAY.search(value) or re.fullmatch(_RANGE, value):
        return "when", ""
    if unit := _amount_unit(value):
        return "amount", unit.strip()
    return ("name", "") if _is_name(value) else ("text", "")


def _amount_unit(value: str) -> str | None:
    """Return the unit of an amount, a blank where it has none; None if it is no amount."""
    found = _QUANTITY.match(value)
    if found is None:
        return None
    rest, unit = found["rest"].strip(), _unit(found["unit"] or "")
    if value[:1] in "$\u20ac\u00a3" and not found["unit"]:
        unit = "money"
    article = found["number"].lower() in ("a", "an")
    if rest:
        return unit or " " if found["number"][:1].isdigit() and rest.startswith(("per ", "a ", "an ")) else None
    return None if article and unit != "time" else unit or " "


def _is_name(value: str) -> bool:
    """Whether a phrase names a thing: a capital letter, or a word in the shape of code."""
    return bool(re.search(r"[A-Z]|\w[._/:@-]\w|\w\d|\d\w|`", value))


def is_named(frame: Frame) -> bool:
    """Whether the subject is one word with a capital letter, which no plural and no role is."""
    subject = frame.subject
    plain = frame.definite or len(subject.split()) != 1 or not subject[:1].isupper() or subject.isupper()
    return not plain and not subject.endswith("s") and stem_word(subject) not in ROLES
